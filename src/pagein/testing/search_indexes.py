"""What every archive must keep. An archive proves itself with one fixture:

    class TestMyArchive(ArchiveTests):
        @pytest.fixture
        def open_archive(self, tmp_path) -> OpenArchive:
            return lambda **options: MyArchive(tmp_path / "index", **options)

Archives opened by one fixture share a store, as processes do; ``session``, ``tenant``, ``embedder`` and ``own_tools`` go
through. What is indexed comes from logs, so the suite judges what is found again, not how.
"""

from __future__ import annotations

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.errors import ConfigurationError, LogError
from pagein.events.entries import Compaction, Observed, Pin, Undo, Unpin
from pagein.events.steps import (
    ActionStep,
    Observation,
    Opaque,
    TaskStep,
    Text,
    ToolCall,
)
from pagein.search import Archive, Query
from pagein.testing.search_index_growth import GrowingTests
from pagein.testing.search_index_material import (
    HOSTILE,
    RUN,
    OpenArchive,
    handles,
    recorded,
)


class ArchiveTests(GrowingTests):
    """The contract of an archive."""

    # What is found

    def test_an_empty_archive_finds_nothing(self, opened: OpenArchive) -> None:
        archive = opened()
        assert archive.search("anything") == ()
        assert archive.sessions("anything") == ()
        assert archive.watermark() == 0

    @pytest.mark.parametrize(
        ("query", "handle"),
        [
            ("ledgers", "s0"),
            ("crane receipts fail", "s1"),
            ("the exporter first", "s2"),
            ("export_rows", "s3.0"),
            ("batch size", "s3.0"),
            ("batchSize", "s3.0"),
            ("E4711", "s3.0"),
            ("4711", "s3.0"),
            ("src/ledger/export_rows.py", "s3"),
            ("export_rows.py", "s3"),
            ("test_crane_totals failed", "s4.0"),
            ("passed", "s4.1"),
            ("bollards", "s7"),
            ("missing quays", "s8"),
        ],
    )
    def test_each_step_is_found_by_its_words_whole_stemmed_or_in_part(
        self, archive: Archive, query: str, handle: str
    ) -> None:
        assert handles(archive, query)[0] == handle

    def test_what_a_person_can_read_of_opaque_parts_is_found(self, opened: OpenArchive) -> None:
        archive = opened()
        thought = Opaque("anthropic", "thinking", '{"signature": "xyzzy"}', "the gantry may be jammed")
        archive.catch_up(recorded(ActionStep((thought, Text("I look.")))))
        assert handles(archive, "gantry") == ["s0"]
        assert handles(archive, "xyzzy") == []

    def test_a_late_observation_is_found_where_it_stands(self, opened: OpenArchive) -> None:
        archive = opened()
        late = Observed(0, 0, Observation("c", "the sluice opened"), late=True)
        archive.catch_up(recorded(ActionStep("go", (ToolCall("c", "run"),)), TaskStep("well?"), late))
        assert handles(archive, "sluice")[0] == "s2"

    def test_what_is_about_the_record_itself_is_not_indexed(self, opened: OpenArchive) -> None:
        archive = opened()
        log = recorded(
            TaskStep("one"), Compaction((), "policy", "reason", 2, 1), Undo(1), Pin("hawser"), Unpin(3)
        )
        archive.catch_up(log)
        assert archive.watermark() == 5
        assert handles(archive, "policy reason") == []
        assert handles(archive, "hawser") == ["s3", "s0"], (
            "a pin is found after it was unpinned, its neighbour behind it"
        )

    def test_scripts_without_spaces_are_found(self, opened: OpenArchive) -> None:
        archive = opened()
        archive.catch_up(
            recorded(
                TaskStep("港湾の会計システムを修理してください"),
                TaskStep("수출 작업이 실패했습니다"),
                TaskStep("ระบบบัญชีท่าเรือ"),
                TaskStep("猫が好き"),
            )
        )
        assert handles(archive, "会計システム")[0] == "s0"
        assert handles(archive, "실패")[0] == "s1"
        assert handles(archive, "บัญชี")[0] == "s2"
        assert handles(archive, "猫")[0] == "s3"

    @pytest.mark.parametrize("count", [1, 2, 5, 9])
    def test_few_steps_are_ranked_sensibly(self, opened: OpenArchive, count: int) -> None:
        archive = opened()
        texts = [
            f"pilot report {number}: the tide is {'rising' if number else 'falling fast'}"
            for number in range(count)
        ]
        archive.catch_up(recorded(*map(TaskStep, texts)))
        hits = archive.search("is the tide falling fast?")
        assert hits[0].handle == "s0"
        assert all(hit.score > 0 for hit in hits)

    def test_only_stop_words_find_those_who_hold_them(self, opened: OpenArchive) -> None:
        archive = opened()
        archive.catch_up(recorded(TaskStep("Who was it?"), TaskStep("Nobody."), TaskStep("To be")))
        assert handles(archive, "who was it")[0] == "s0"

    def test_long_texts_are_found_by_the_page_that_matches(self, opened: OpenArchive) -> None:
        archive = opened()
        pages = "\n".join(f"line {number} of the harbour log, nothing to report" for number in range(2_000))
        needle = pages[:60_000] + "\nthe windlass is broken\n" + pages[60_000:]
        archive.catch_up(recorded(TaskStep(needle)))
        hit = archive.search("broken windlass")[0]
        assert (hit.handle, hit.whole) == ("s0", False)
        assert "the windlass is broken" in hit.text
        assert len(hit.text) < 2_000
        assert hit.text in needle

    # What a hit says

    def test_a_hit_says_where_it_is_from_and_why(self, archive: Archive) -> None:
        hit = archive.search("E4711 export_rows")[0]
        assert (hit.session, hit.position, hit.role, hit.at, hit.whole) == (
            "default",
            3,
            "tool",
            1180.0,
            True,
        )
        assert hit.text.startswith("def export_rows")
        assert "e4711" in hit.why
        assert hit.arms["words"] == 1.0
        assert hit.score > 0

    def test_hits_come_best_first_and_no_more_than_asked(self, archive: Archive) -> None:
        hits = archive.search(Query("crane receipts quay export tests", limit=4))
        assert len(hits) == 4
        assert [hit.score for hit in hits[:3]] == sorted((hit.score for hit in hits[:3]), reverse=True)

    def test_what_was_said_twice_is_shown_once(self, opened: OpenArchive) -> None:
        archive = opened()
        archive.catch_up(recorded(*[TaskStep("Pump the bilge!")] * 5, TaskStep("The bilge pump is dry.")))
        assert sorted(hit.text for hit in archive.search("bilge pump")) == [
            "Pump the bilge!",
            "The bilge pump is dry.",
        ]

    # Where is looked

    def test_roles_are_kept_apart(self, archive: Archive) -> None:
        roles = {
            role: {
                hit.role for hit in archive.search(Query("quay crane exporter ledgers bollard", role=role))
            }
            for role in ("system", "user", "assistant", "tool", "note")
        }
        assert roles == {role: {role} for role in roles}
        both = archive.search(Query("quay crane exporter", role=("user", "tool")))
        assert {hit.role for hit in both} == {"user", "tool"}

    def test_bounds_of_time_hold_exactly(self, archive: Archive) -> None:
        query = "crane receipts quay exporter tests"
        early = archive.search(Query(query, until=1_060.0))
        late = archive.search(Query(query, since=1_060.5))
        assert {hit.at for hit in early} == {1_000.0, 1_060.0}
        assert min(hit.at for hit in late) > 1_060.5
        assert archive.search(Query(query, since=9e9)) == ()

    def test_what_is_excluded_is_not_found(self, archive: Archive) -> None:
        assert "s3.0" in handles(archive, "E4711")
        assert "s3.0" not in handles(archive, Query("E4711", exclude=frozenset({3})))
        every = frozenset(range(9))
        assert archive.search(Query("crane receipts", exclude=every)) == ()

    def test_sessions_are_found_together_or_alone(self, opened: OpenArchive) -> None:
        archive = opened()
        archive.catch_up(recorded(TaskStep("the anchor chain")), session="a")
        archive.catch_up(recorded(TaskStep("the anchor watch")), session="b")
        assert {hit.session for hit in archive.search("anchor")} == {"a", "b"}
        assert {hit.session for hit in archive.search(Query("anchor", sessions=("b",)))} == {"b"}
        assert archive.search(Query("anchor", sessions=("nowhere",))) == ()
        assert [name for name, _ in archive.sessions("the watch at anchor")] == ["b", "a"]

    def test_tenants_never_meet(self, opened: OpenArchive) -> None:
        ours, theirs = opened(tenant="ours"), opened(tenant="theirs")
        ours.catch_up(recorded(TaskStep("the keel of ours")))
        theirs.catch_up(recorded(TaskStep("the keel of theirs")))
        assert [hit.text for hit in ours.search("keel theirs")] == ["the keel of ours"]
        assert [hit.text for hit in theirs.search(Query("keel", sessions=("default",)))] == [
            "the keel of theirs"
        ]
        ours.clear()
        assert ours.search("keel") == ()
        assert len(theirs.search("keel")) == 1

    def test_a_time_named_in_the_query_lifts_what_is_from_then(self, opened: OpenArchive) -> None:
        archive = opened()
        log = InMemoryLog()
        for at in (1_683_500_000.0, 1_691_500_000.0):  # in May and in August 2023
            log.append(
                [TaskStep(f"the hull was scraped {'again ' * (at > 1.69e9)}today")], after=log.head(), at=at
            )
        archive.catch_up(log)
        assert handles(archive, "hull scraped in May 2023")[0] == "s0"
        assert handles(archive, "hull scraped in August 2023")[0] == "s1"
        assert len(handles(archive, "hull scraped in August 2023")) == 2, "a window lifts, it does not filter"

    # Bad input

    @pytest.mark.parametrize("query", HOSTILE)
    def test_any_text_is_data(self, archive: Archive, query: str) -> None:
        before = archive.search("crane receipts")
        hits = archive.search(query)
        if "crane" in query:
            assert any("crane" in hit.text for hit in hits)
        assert archive.search("crane receipts") == before

    def test_a_megabyte_is_a_query_too(self, archive: Archive) -> None:
        assert handles(archive, "x" * 1_000_000) == []
        long = "the " * 250_000
        assert handles(archive, f"{long} E4711")[0] == "s3.0"

    @pytest.mark.parametrize("bad", [{"limit": 0}, {"limit": True}, {"role": "cook"}, {"sessions": "one"}])
    def test_a_query_that_cannot_be_is_refused(self, bad: dict[str, object]) -> None:
        with pytest.raises(ConfigurationError):
            Query("crane", **bad)  # type: ignore[arg-type]

    def test_texts_that_no_database_likes_are_found_again(self, opened: OpenArchive) -> None:
        archive = opened()
        archive.catch_up(
            recorded(
                TaskStep("a\0b davit"),
                TaskStep("\ud83d fender"),
                TaskStep(""),
                TaskStep("\u2028\x1b[2J oakum"),
            )
        )
        assert [handles(archive, word)[0] for word in ("davit", "fender", "oakum")] == ["s0", "s1", "s3"]

    def test_a_log_that_skips_an_entry_is_refused(self, opened: OpenArchive) -> None:
        archive = opened()
        entries = list(recorded(*RUN).read())
        archive.index(entries[:2])
        with pytest.raises(LogError, match="expected"):
            archive.index(entries[4:])
        assert archive.watermark() == 2
