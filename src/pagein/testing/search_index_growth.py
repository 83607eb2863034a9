"""The part of the archives' contract that is about growing, forgetting, vectors and sharing."""

from __future__ import annotations

import threading

import pytest

from pagein.errors import ConfigurationError, LogClosed
from pagein.events.entries import Observed
from pagein.events.steps import (
    ActionStep,
    Observation,
    TaskStep,
    ToolCall,
)
from pagein.search import Archive, pack
from pagein.testing.search_index_material import (
    RUN,
    ArchiveFixtures,
    Counting,
    Failing,
    OpenArchive,
    handles,
    recorded,
)
from pagein.tokens.encodings import Encoding


class GrowingTests(ArchiveFixtures):
    """What must hold as an archive grows, forgets, embeds, and is shared."""

    # Growing, forgetting, building anew

    def test_it_grows_by_what_is_new_and_equals_one_built_at_once(self, opened: OpenArchive) -> None:
        grown, at_once = opened(tenant="grown"), opened(tenant="at once")
        log = recorded()
        for body in RUN:
            recorded(body, log=log)
            assert grown.catch_up(log) == 1
        assert grown.catch_up(log) == 0
        assert at_once.catch_up(log) == len(RUN)
        for query in ("crane receipts", "E4711", "tests passed", "8 May 2023", "bollard"):
            assert grown.search(query) == at_once.search(query)

    def test_entries_are_taken_in_once(self, archive: Archive) -> None:
        entries = list(recorded(*RUN).read())
        assert archive.index(entries) == 0
        assert archive.index(entries[:3]) == 0
        assert archive.watermark() == len(RUN)

    def test_another_handle_sees_what_was_indexed(self, opened: OpenArchive, archive: Archive) -> None:
        other = opened()
        assert other.watermark() == archive.watermark()
        assert other.search("E4711") == archive.search("E4711")

    def test_a_log_that_was_replaced_is_indexed_anew(self, archive: Archive) -> None:
        archive.catch_up(recorded(TaskStep("A new voyage."), TaskStep("With a compass.")))
        assert archive.watermark() == 2
        assert handles(archive, "compass") == ["s1", "s0"]
        assert handles(archive, "crane E4711") == []

    def test_what_is_forgotten_is_not_found(self, archive: Archive) -> None:
        assert archive.forget([3, 7, 99]) == 3
        assert "s3.0" not in handles(archive, "E4711 export_rows bollard")
        assert "s7" not in handles(archive, "E4711 export_rows bollard")
        assert archive.catch_up(recorded(*RUN)) == 0, "it stays forgotten"
        assert handles(archive, "crane receipts fail")[0] == "s1"

    def test_cleared_it_is_built_again(self, archive: Archive) -> None:
        before = archive.search("crane receipts")
        archive.clear()
        assert archive.search("crane receipts") == ()
        archive.catch_up(recorded(*RUN))
        assert archive.search("crane receipts") == before

    def test_what_our_own_tools_brought_back_is_not_taken_in_again(self, opened: OpenArchive) -> None:
        archive = opened(own_tools=("recall",))
        calls = (ToolCall("c1", "recall", '{"query": "rudder"}'), ToolCall("c2", "bash", "{}"))
        archive.catch_up(
            recorded(
                TaskStep("the rudder is jammed"),
                ActionStep("What was it?", calls, (Observation("c1", "s0: the rudder is jammed!"),)),
                Observed(1, 1, Observation("c2", "rudder angle 35")),
                ActionStep("Again.", (ToolCall("c3", "recall", "{}"),)),
                Observed(3, 0, Observation("c3", "rudder, once more")),
            )
        )
        assert not {"s1.0", "s3.0"} & set(handles(archive, "rudder"))
        assert {"s0", "s1.1"} <= set(handles(archive, "rudder"))

    # By meaning

    def test_meaning_finds_what_shares_no_stem(self, opened: OpenArchive) -> None:
        embedder = Counting()
        archive = opened(embedder=embedder)
        archive.catch_up(recorded(*RUN))
        assert "meaning" not in archive.search("quay was missing")[0].arms, (
            "found before anything is embedded"
        )
        while archive.embed_pending(3):
            pass
        hit = archive.search("quay was missing")[0]
        assert hit.arms["meaning"] > 0
        assert archive.embed_pending() == 0
        embedder.texts.clear()
        archive.search("quay")
        assert embedder.texts == ["quay"], "what has a vector is not embedded again"

    def test_an_embedder_that_fails_costs_a_search_nothing(self, opened: OpenArchive) -> None:
        archive = opened(embedder=Failing())
        archive.catch_up(recorded(*RUN))
        assert handles(archive, "E4711")[0] == "s3.0"
        with pytest.raises(ConnectionError):
            archive.embed_pending()
        assert handles(archive, "E4711")[0] == "s3.0"

    @pytest.mark.parametrize("other", [Counting(48), Counting(96, "another")])
    def test_vectors_of_another_model_are_never_compared(self, opened: OpenArchive, other: Counting) -> None:
        first = opened(embedder=Counting())
        first.catch_up(recorded(*RUN))
        while first.embed_pending():
            pass
        second = opened(embedder=other)
        assert all("meaning" not in hit.arms for hit in second.search("crane receipts"))
        while second.embed_pending():
            pass
        assert any("meaning" in hit.arms for hit in second.search("crane receipts"))
        assert all("meaning" not in hit.arms for hit in first.search("crane receipts"))

    def test_vectors_that_are_not_as_promised_are_refused(self, opened: OpenArchive) -> None:
        lying = Counting(96)
        lying.embed = lambda texts: [[1.0, 2.0]] * len(texts)  # type: ignore[method-assign]
        archive = opened(embedder=lying)
        archive.catch_up(recorded(*RUN))
        with pytest.raises(ConfigurationError, match="shape"):
            archive.embed_pending()
        assert handles(archive, "E4711")[0] == "s3.0"

    # Sharing and closing

    def test_threads_share_one(self, archive: Archive) -> None:
        found: list[list[str]] = []
        log = recorded(*[TaskStep(f"buoy {number}") for number in range(40)], session="other")

        def search() -> None:
            found.extend(handles(archive, "E4711")[:1] for _ in range(20))

        threads = [threading.Thread(target=search) for _ in range(3)]
        threads.append(threading.Thread(target=lambda: archive.catch_up(log, session="other")))
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert found == [["s3.0"]] * 60
        assert archive.watermark("other") == 40

    def test_closed_it_refuses(self, archive: Archive) -> None:
        archive.close()
        archive.close()
        with pytest.raises(LogClosed):
            archive.search("crane")
        with pytest.raises(LogClosed):
            archive.catch_up(recorded(*RUN))

    def test_what_is_packed_fits_and_keeps_its_handle(self, archive: Archive) -> None:
        query = "crane receipts quay exporter tests passed"
        counter = Encoding("o200k_base")
        hits = archive.search(query)
        for tokens in (0, 5, 20, 60, 500):
            packed = pack(hits, tokens, counter, query)
            assert sum(each.tokens for each in packed) <= tokens
            assert all(each.tokens == counter.text(each.text) for each in packed)
        assert {each.handle for each in packed} == {hit.handle for hit in hits}
