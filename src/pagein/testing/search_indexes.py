# ruff: noqa: RUF001 - letters of other languages
"""Conformance suite for search indexes: a subclass of ``SearchIndexTests`` with one fixture.

    class TestMySearchIndex(SearchIndexTests):
        @pytest.fixture
        def open_index(self, tmp_path) -> OpenSearchIndex:
            return lambda **options: MySearchIndex(tmp_path / "index", **options)

Indexes opened by one fixture share a store, as processes do. The options are ``session``, ``tenant``, ``embedder`` and
``own_tools``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.errors import ConfigurationError, LogClosed, LogError
from pagein.events import steps
from pagein.events.entries import Body, Compaction, Observed, Pin, Undo, Unpin
from pagein.events.steps import ActionStep, Observation, Opaque, TaskStep, Text, ToolCall
from pagein.log.base import Log
from pagein.search import Query, SearchIndex, pack
from pagein.search.tokenizer import STOP_WORDS
from pagein.testing._threads import run_in_threads
from pagein.tokens.encodings import Encoding

OpenSearchIndex = Callable[..., SearchIndex]

RUN: tuple[Body, ...] = (
    steps.SystemPromptStep("You mend the harbour office's ledgers."),
    steps.TaskStep("The nightly export of crane receipts fails."),
    steps.PlanningStep("First the exporter, then the receipts."),
    steps.ActionStep(
        "I read the exporter.",
        (steps.ToolCall("c1", "bash", '{"command": "cat src/ledger/export_rows.py"}'),),
        (steps.Observation("c1", "def export_rows(batchSize):\n    raise ReceiptError('E4711: no quay')\n"),),
    ),
    steps.ActionStep("And its tests.", (steps.ToolCall("c2", "bash", "{}"), steps.ToolCall("c3", "bash", "{}"))),
    Observed(4, 1, steps.Observation("c3", "3 passed in test_quay.py")),
    Observed(4, 0, steps.Observation("c2", "1 failed: test_crane_totals", status="error")),
    Pin("Never touch the bollard table."),
    steps.FinalAnswerStep("The quay was missing for receipts of 8 May 2023; it is there now."),
)

HOSTILE_QUERIES = (
    "",
    " ",
    "\0",
    'crane" OR "receipts',
    "crane NEAR(receipts) AND NOT *",
    "terms:crane ^crane -crane +crane {crane}",
    "crane'; DROP TABLE archive_passages; --",
    "%s %d {0} \\",
    "\ud83d crane",
    "=user =tool",
    "( [ ] ) \" ' ` * ^ ~ : ; , . ? !",
    "\u202ecrane\u202c",
)


OTHER_FORMS = (
    ("Meine Katze schläft gern auf dem Dach.", "Katzen"),
    ("Wir haben gestern den alten Zaun gestrichen.", "Zäune streichen"),
    ("Moja siostra mieszka w Krakowie.", "siostry"),
    ("Huomenna menemme kalatorille.", "kalatori"),
    ("Lütfen faturaları pazartesiden önce öde.", "fatura"),
    ("A szerződés decemberben lejár.", "szerződések"),
    ("Договор истекает в декабре.", "договоры"),
    ("Το σκάφος είναι στην προβλήτα.", "ΣΚΑΦΗ"),
    ("נלך לשוק הדגים מחר", "השוק"),
    ("ادفع الفواتير قبل الاثنين", "فواتير"),
)
"""Texts in languages that change their words, each with a query that has other forms of them."""


class CountingEmbedder:
    """A deterministic embedder for tests; texts that share words are near. ``texts`` lists what it embedded."""

    def __init__(self, dimension: int = 96, name: str = "counting") -> None:
        self.dimension, self.name = dimension, name
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts by the hashes of their words."""
        self.texts += texts
        return [self._of(text) for text in texts]

    def _of(self, text: str) -> list[float]:
        vector = [-0.02] * self.dimension
        for word in set(text.lower().split()) - STOP_WORDS:
            digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
            for byte in digest[:4]:
                vector[byte % self.dimension] += 1.0
        return vector


class FailingEmbedder(CountingEmbedder):
    """An embedder that raises."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise ConnectionError("the endpoint is down")


def record_bodies(*bodies: Body, session: str = "default", tenant: str = "", log: Log | None = None) -> Log:
    """Append the bodies to a new log, or to ``log``, a minute apart; return the log."""
    log = log or InMemoryLog(session=session, tenant=tenant)
    for body in bodies:
        log.append([body], after=log.head(), at=1_000.0 + 60 * log.head())
    return log


def hit_handles(index: SearchIndex, query: Query | str) -> list[str]:
    """Return the handles of the hits."""
    return [hit.handle for hit in index.search(query)]


class SearchIndexTests:
    """The contract of ``pagein.search.SearchIndex``: subclass it, and give the fixture ``open_index``."""

    @pytest.fixture
    def open_index(self) -> OpenSearchIndex:
        raise NotImplementedError("a subclass of SearchIndexTests gives the fixture open_index")

    @pytest.fixture
    def opener(self, open_index: OpenSearchIndex) -> Iterator[OpenSearchIndex]:
        """Open indexes, and close them after the test."""
        indexes: list[SearchIndex] = []

        def open_one(**options: object) -> SearchIndex:
            indexes.append(open_index(**options))
            return indexes[-1]

        yield open_one
        for index in indexes:
            with suppress(LogError):
                index.close()

    @pytest.fixture
    def empty(self, opener: OpenSearchIndex) -> SearchIndex:
        """An index of nothing yet."""
        return opener()

    @pytest.fixture
    def index(self, empty: SearchIndex) -> SearchIndex:
        """An index of the run."""
        empty.catch_up(record_bodies(*RUN))
        return empty

    # Hits

    def test_an_empty_index_finds_nothing(self, empty: SearchIndex) -> None:
        assert empty.search("anything") == ()
        assert empty.sessions("anything") == ()
        assert empty.watermark() == 0

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
        self, index: SearchIndex, query: str, handle: str
    ) -> None:
        assert hit_handles(index, query)[0] == handle

    def test_what_a_person_can_read_of_opaque_parts_is_found(self, empty: SearchIndex) -> None:
        thought = Opaque("anthropic", "thinking", '{"signature": "xyzzy"}', "the gantry may be jammed")
        empty.catch_up(record_bodies(ActionStep((thought, Text("I look.")))))
        assert hit_handles(empty, "gantry") == ["s0"]
        assert hit_handles(empty, "xyzzy") == []

    def test_a_late_observation_is_found_where_it_stands(self, empty: SearchIndex) -> None:
        late = Observed(0, 0, Observation("c", "the sluice opened"), late=True)
        empty.catch_up(record_bodies(ActionStep("go", (ToolCall("c", "run"),)), TaskStep("well?"), late))
        assert hit_handles(empty, "sluice")[0] == "s2"

    def test_what_is_about_the_record_itself_is_not_indexed(self, empty: SearchIndex) -> None:
        log = record_bodies(TaskStep("one"), Compaction((), "policy", "reason", 2, 1), Undo(1), Pin("hawser"), Unpin(3))
        empty.catch_up(log)
        assert empty.watermark() == 5
        assert hit_handles(empty, "policy reason") == []
        assert hit_handles(empty, "hawser") == ["s3", "s0"], (
            "a pin is found after it was unpinned, its neighbour behind it"
        )

    def test_scripts_without_spaces_are_found(self, empty: SearchIndex) -> None:
        empty.catch_up(
            record_bodies(
                TaskStep("港湾の会計システムを修理してください"),
                TaskStep("수출 작업이 실패했습니다"),
                TaskStep("ระบบบัญชีท่าเรือ"),
                TaskStep("猫が好き"),
            )
        )
        assert hit_handles(empty, "会計システム")[0] == "s0"
        assert hit_handles(empty, "실패")[0] == "s1"
        assert hit_handles(empty, "บัญชี")[0] == "s2"
        assert hit_handles(empty, "猫")[0] == "s3"

    def test_words_of_many_languages_are_found_in_other_forms(self, empty: SearchIndex) -> None:
        empty.catch_up(record_bodies(*(TaskStep(text) for text, _ in OTHER_FORMS)))
        found = {query: hit_handles(empty, query)[:1] for _, query in OTHER_FORMS}
        assert found == {query: [f"s{at}"] for at, (_, query) in enumerate(OTHER_FORMS)}

    def test_words_that_only_begin_alike_are_no_forms_of_one(self, empty: SearchIndex) -> None:
        empty.catch_up(record_bodies(TaskStep("Fixed parser bug"), TaskStep("Please restart worker")))
        assert [hit_handles(empty, query) for query in ("partial refund", "Restaurant reservation")] == [[], []]

    def test_a_word_that_nothing_has_is_found_by_the_stored_one_that_it_was_to_be(self, empty: SearchIndex) -> None:
        texts = (
            "A table at the restaurant",
            "Her friend is Ana",
            "The window seat, definitely",
            "Sign the contract",
            "Ana's contact",
        )
        empty.catch_up(record_bodies(*map(TaskStep, texts), *(TaskStep(f"day {number}") for number in range(9))))
        queries = ("resturant", "freind", "definately", "restaurannt", "contravt", "contact", "form", "xylophone")
        found = [hit_handles(empty, query)[:1] for query in queries]
        assert found == [["s0"], ["s1"], ["s2"], ["s0"], ["s3"], ["s4"], [], []]
        assert empty.search("resturant")[0].why == "words: resturant"

    def test_the_answer_stands_before_what_only_shares_a_word(self, empty: SearchIndex) -> None:
        talk = ("Where did you buy the old anchor?", "In Tromsø, of a sailor.", "I see.", "Anchor it, please, old man.")
        empty.catch_up(record_bodies(*(TaskStep(text) for text in talk), *(TaskStep(f"day {n}") for n in range(9))))
        assert hit_handles(empty, "the old anchor that I bought")[:2] == ["s0", "s1"]

    @pytest.mark.parametrize("count", [1, 2, 5, 9])
    def test_few_steps_are_ranked_sensibly(self, empty: SearchIndex, count: int) -> None:
        texts = [
            f"pilot report {number}: the tide is {'rising' if number else 'falling fast'}" for number in range(count)
        ]
        empty.catch_up(record_bodies(*map(TaskStep, texts)))
        hits = empty.search("is the tide falling fast?")
        assert hits[0].handle == "s0"
        assert all(hit.score > 0 for hit in hits)

    def test_only_stop_words_find_those_who_hold_them(self, empty: SearchIndex) -> None:
        empty.catch_up(record_bodies(TaskStep("Who was it?"), TaskStep("Nobody."), TaskStep("To be")))
        assert hit_handles(empty, "who was it")[0] == "s0"

    def test_long_texts_are_found_by_the_page_that_matches(self, empty: SearchIndex) -> None:
        pages = "\n".join(f"line {number} of the harbour log, nothing to report" for number in range(2_000))
        needle = pages[:60_000] + "\nthe windlass is broken\n" + pages[60_000:]
        empty.catch_up(record_bodies(TaskStep(needle)))
        hit = empty.search("broken windlass")[0]
        assert (hit.handle, hit.whole) == ("s0", False)
        assert "the windlass is broken" in hit.text
        assert len(hit.text) < 2_000
        assert hit.text in needle

    # Fields of a hit

    def test_a_hit_says_where_it_is_from_and_why(self, index: SearchIndex) -> None:
        hit = index.search("E4711 export_rows")[0]
        assert (hit.session, hit.position, hit.role, hit.at, hit.whole) == ("default", 3, "tool", 1180.0, True)
        assert hit.text.startswith("def export_rows")
        assert "e4711" in hit.why
        assert hit.scores["words"] == 1.0
        assert hit.score > 0

    def test_hits_come_best_first_and_no_more_than_asked(self, index: SearchIndex) -> None:
        hits = index.search(Query("crane receipts quay export tests", limit=4))
        assert len(hits) == 4
        assert [hit.score for hit in hits[:3]] == sorted((hit.score for hit in hits[:3]), reverse=True)

    def test_what_was_said_twice_is_shown_once(self, empty: SearchIndex) -> None:
        empty.catch_up(record_bodies(*[TaskStep("Pump the bilge!")] * 5, TaskStep("The bilge pump is dry.")))
        assert sorted(hit.text for hit in empty.search("bilge pump")) == ["Pump the bilge!", "The bilge pump is dry."]

    # Filters

    def test_roles_are_kept_apart(self, index: SearchIndex) -> None:
        roles = {
            role: {hit.role for hit in index.search(Query("quay crane exporter ledgers bollard", role=role))}
            for role in ("system", "user", "assistant", "tool", "note")
        }
        assert roles == {role: {role} for role in roles}
        both = index.search(Query("quay crane exporter", role=("user", "tool")))
        assert {hit.role for hit in both} == {"user", "tool"}

    def test_bounds_of_time_hold_exactly(self, index: SearchIndex) -> None:
        query = "crane receipts quay exporter tests"
        early = index.search(Query(query, until=1_060.0))
        late = index.search(Query(query, since=1_060.5))
        assert {hit.at for hit in early} == {1_000.0, 1_060.0}
        assert min(hit.at for hit in late) > 1_060.5
        assert index.search(Query(query, since=9e9)) == ()

    def test_what_is_excluded_is_not_found(self, index: SearchIndex) -> None:
        assert "s3.0" in hit_handles(index, "E4711")
        assert "s3.0" not in hit_handles(index, Query("E4711", exclude=frozenset({3})))
        every = frozenset(range(9))
        assert index.search(Query("crane receipts", exclude=every)) == ()

    def test_the_question_is_not_found_and_raises_nothing_beside_it(self, empty: SearchIndex) -> None:
        empty.catch_up(
            record_bodies(*map(TaskStep, ("My flight is LH 123.", "Ok.", "Thanks.", "Which flight did I name?")))
        )
        assert hit_handles(empty, Query("which flight did I name", asking=frozenset({3}))) == ["s0", "s1", "s2"]

    def test_sessions_are_found_together_or_alone(self, empty: SearchIndex) -> None:
        empty.catch_up(record_bodies(TaskStep("the anchor chain")), session="a")
        empty.catch_up(record_bodies(TaskStep("the anchor watch")), session="b")
        assert {hit.session for hit in empty.search("anchor")} == {"a", "b"}
        assert {hit.session for hit in empty.search(Query("anchor", sessions=("b",)))} == {"b"}
        assert empty.search(Query("anchor", sessions=("nowhere",))) == ()
        assert [name for name, _ in empty.sessions("the watch at anchor")] == ["b", "a"]

    def test_tenants_never_meet(self, opener: OpenSearchIndex) -> None:
        ours, theirs = opener(tenant="ours"), opener(tenant="theirs")
        ours.catch_up(record_bodies(TaskStep("the keel of ours")))
        theirs.catch_up(record_bodies(TaskStep("the keel of theirs")))
        assert [hit.text for hit in ours.search("keel theirs")] == ["the keel of ours"]
        assert [hit.text for hit in theirs.search(Query("keel", sessions=("default",)))] == ["the keel of theirs"]
        ours.clear()
        assert ours.search("keel") == ()
        assert len(theirs.search("keel")) == 1

    def test_a_time_named_in_the_query_lifts_what_is_from_then(self, empty: SearchIndex) -> None:
        log = InMemoryLog()
        for at in (1_683_500_000.0, 1_691_500_000.0):  # in May and in August 2023
            log.append([TaskStep(f"the hull was scraped {'again ' * (at > 1.69e9)}today")], after=log.head(), at=at)
        empty.catch_up(log)
        assert hit_handles(empty, "hull scraped in May 2023")[0] == "s0"
        assert hit_handles(empty, "hull scraped in August 2023")[0] == "s1"
        assert len(hit_handles(empty, "hull scraped in August 2023")) == 2, "a window lifts, it does not filter"

    # Bad input

    @pytest.mark.parametrize("query", HOSTILE_QUERIES)
    def test_any_text_is_data(self, index: SearchIndex, query: str) -> None:
        before = index.search("crane receipts")
        hits = index.search(query)
        if "crane" in query:
            assert any("crane" in hit.text for hit in hits)
        assert index.search("crane receipts") == before

    def test_a_megabyte_is_a_query_too(self, index: SearchIndex) -> None:
        assert hit_handles(index, "x" * 1_000_000) == []
        long = "the " * 250_000
        assert hit_handles(index, f"{long} E4711")[0] == "s3.0"

    @pytest.mark.parametrize("bad", [{"limit": 0}, {"limit": True}, {"role": "cook"}, {"sessions": "one"}])
    def test_a_query_that_cannot_be_is_refused(self, bad: dict[str, object]) -> None:
        with pytest.raises(ConfigurationError):
            Query("crane", **bad)  # type: ignore[arg-type]

    def test_texts_that_no_database_likes_are_found_again(self, empty: SearchIndex) -> None:
        empty.catch_up(
            record_bodies(
                TaskStep("a\0b davit"), TaskStep("\ud83d fender"), TaskStep(""), TaskStep("\u2028\x1b[2J oakum")
            )
        )
        assert [hit_handles(empty, word)[0] for word in ("davit", "fender", "oakum")] == ["s0", "s1", "s3"]

    def test_a_log_that_skips_an_entry_is_refused(self, empty: SearchIndex) -> None:
        entries = list(record_bodies(*RUN).read())
        empty.index(entries[:2])
        with pytest.raises(LogError, match="expected"):
            empty.index(entries[4:])
        assert empty.watermark() == 2

    # Indexing, forgetting, rebuilding

    def test_it_grows_by_what_is_new_and_equals_one_built_at_once(self, opener: OpenSearchIndex) -> None:
        grown, at_once = opener(tenant="grown"), opener(tenant="at once")
        log = record_bodies()
        for body in RUN:
            record_bodies(body, log=log)
            assert grown.catch_up(log) == 1
        assert grown.catch_up(log) == 0
        assert at_once.catch_up(log) == len(RUN)
        for query in ("crane receipts", "E4711", "tests passed", "8 May 2023", "bollard"):
            assert grown.search(query) == at_once.search(query)

    def test_entries_are_taken_in_once(self, index: SearchIndex) -> None:
        entries = list(record_bodies(*RUN).read())
        assert index.index(entries) == 0
        assert index.index(entries[:3]) == 0
        assert index.watermark() == len(RUN)

    def test_another_handle_sees_what_was_indexed(self, opener: OpenSearchIndex, index: SearchIndex) -> None:
        other = opener()
        assert other.watermark() == index.watermark()
        assert other.search("E4711") == index.search("E4711")

    def test_a_log_that_was_replaced_is_indexed_anew(self, index: SearchIndex) -> None:
        index.catch_up(record_bodies(TaskStep("A new voyage."), TaskStep("With a compass.")))
        assert index.watermark() == 2
        assert hit_handles(index, "compass") == ["s1", "s0"]
        assert hit_handles(index, "crane E4711") == []

    def test_what_is_forgotten_is_not_found(self, index: SearchIndex) -> None:
        assert index.forget([3, 7, 99]) == 3
        assert "s3.0" not in hit_handles(index, "E4711 export_rows bollard")
        assert "s7" not in hit_handles(index, "E4711 export_rows bollard")
        assert index.catch_up(record_bodies(*RUN)) == 0, "it stays forgotten"
        assert hit_handles(index, "crane receipts fail")[0] == "s1"

    def test_cleared_it_is_built_again(self, index: SearchIndex) -> None:
        before = index.search("crane receipts")
        index.clear()
        assert index.search("crane receipts") == ()
        index.catch_up(record_bodies(*RUN))
        assert index.search("crane receipts") == before

    def test_what_our_own_tools_brought_back_is_not_taken_in_again(self, opener: OpenSearchIndex) -> None:
        index = opener(own_tools=("recall",))
        calls = (ToolCall("c1", "recall", '{"query": "the rudder"}'), ToolCall("c2", "bash", "{}"))
        log = record_bodies(
            TaskStep("the rudder is jammed"),
            ActionStep("What jammed?", calls, (Observation("c1", "s0: the rudder is jammed!"),)),
            Observed(1, 1, Observation("c2", "rudder angle 35")),
            ActionStep("", (ToolCall("c3", "mcp__pagein__recall", '{"query": "rudder"}'),)),
            Observed(3, 0, Observation("c3", "rudder, once more")),
        )
        index.catch_up(log)
        assert {"s0", "s1.1"} <= set(hit_handles(index, "rudder")) <= {"s0", "s1", "s1.1"}
        assert [hit.text for hit in index.search("what jammed") if hit.handle == "s1"] == ["What jammed?\nbash: "]
        assert index.revise(log.read()) == 0, "nothing was erased"

    # Vectors

    def test_meaning_finds_what_shares_no_stem(self, opener: OpenSearchIndex) -> None:
        embedder = CountingEmbedder()
        index = opener(embedder=embedder)
        index.catch_up(record_bodies(*RUN))
        assert "meaning" not in index.search("quay was missing")[0].scores, "found before anything is embedded"
        while index.embed_pending(3):
            pass
        hit = index.search("quay was missing")[0]
        assert hit.scores["meaning"] > 0
        assert index.embed_pending() == 0
        embedder.texts.clear()
        index.search("quay")
        assert embedder.texts == ["quay"], "what has a vector is not embedded again"

    def test_an_embedder_that_fails_costs_a_search_nothing(self, opener: OpenSearchIndex) -> None:
        index = opener(embedder=FailingEmbedder())
        index.catch_up(record_bodies(*RUN))
        assert hit_handles(index, "E4711")[0] == "s3.0"
        with pytest.raises(ConnectionError):
            index.embed_pending()
        assert hit_handles(index, "E4711")[0] == "s3.0"

    @pytest.mark.parametrize("other", [CountingEmbedder(48), CountingEmbedder(96, "another")])
    def test_vectors_of_another_model_are_never_compared(
        self, opener: OpenSearchIndex, other: CountingEmbedder
    ) -> None:
        first = opener(embedder=CountingEmbedder())
        first.catch_up(record_bodies(*RUN))
        while first.embed_pending():
            pass
        second = opener(embedder=other)
        assert all("meaning" not in hit.scores for hit in second.search("crane receipts"))
        while second.embed_pending():
            pass
        assert any("meaning" in hit.scores for hit in second.search("crane receipts"))
        assert all("meaning" not in hit.scores for hit in first.search("crane receipts"))

    def test_vectors_that_are_not_as_promised_are_refused(self, opener: OpenSearchIndex) -> None:
        lying = CountingEmbedder(96)
        lying.embed = lambda texts: [[1.0, 2.0]] * len(texts)  # type: ignore[method-assign]
        index = opener(embedder=lying)
        index.catch_up(record_bodies(*RUN))
        with pytest.raises(ConfigurationError, match="shape"):
            index.embed_pending()
        assert hit_handles(index, "E4711")[0] == "s3.0"

    # Sharing and closing

    def test_threads_share_one(self, index: SearchIndex) -> None:
        hits: list[list[str]] = []
        log = record_bodies(*[TaskStep(f"buoy {number}") for number in range(40)], session="other")

        def search() -> None:
            hits.extend(hit_handles(index, "E4711")[:1] for _ in range(20))

        run_in_threads(search, search, search, lambda: index.catch_up(log, session="other"))
        assert hits == [["s3.0"]] * 60
        assert index.watermark("other") == 40

    def test_closed_it_refuses(self, index: SearchIndex) -> None:
        index.close()
        index.close()
        with pytest.raises(LogClosed):
            index.search("crane")
        with pytest.raises(LogClosed):
            index.catch_up(record_bodies(*RUN))

    def test_what_is_packed_fits_and_keeps_its_handle(self, index: SearchIndex) -> None:
        query = "crane receipts quay exporter tests passed"
        counter = Encoding("o200k_base")
        hits = index.search(query)
        for tokens in (0, 5, 20, 60, 500):
            packed = pack(hits, tokens, counter, query)
            assert sum(excerpt.tokens for excerpt in packed) <= tokens
            assert all(excerpt.tokens == counter.text(excerpt.text) for excerpt in packed)
        assert {excerpt.handle for excerpt in packed} == {hit.handle for hit in hits}
