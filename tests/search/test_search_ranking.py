"""Ranking and packing: pure functions with exact results."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.search import Hit, pack
from pagein.search.dates import DateWindow, date_windows, first_date
from pagein.search.passages import MAX_PASSAGE_CHARS, spans
from pagein.search.ranking import (
    DATE_BOOST,
    NEIGHBOUR_WEIGHTS,
    RECENCY_BOOST,
    ROLE_CONFIDENCE,
    VECTOR_WEIGHT,
    PassageCandidate,
    TermStatistics,
    bm25f_scores,
    fuse,
    pad_terms,
    rarity,
    select_hits,
    sum_rarities,
    top_ids,
)
from pagein.search.sessions import bm25, combine_scores
from pagein.search.snippets import GAP, snippet
from pagein.search.tokenizer import TermMatcher
from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")
DAY = 86_400.0
NOW = 1_700_000_000.0  # Tuesday, 14 November 2023


def candidate(id, words=0.0, meaning=None, *, at=0.0, mentioned_at=None, role="user", position=None, same=None):
    where = (0, id if position is None else position, -1)
    return PassageCandidate(id, where, role, at, mentioned_at, words, meaning, id if same is None else same)


def order(fused_):
    return [scored.candidate.id for scored in fused_]


# Words


def test_a_rare_term_is_worth_more_and_one_that_all_hold_still_something():
    assert rarity(1_000, 1) > rarity(1_000, 10) > rarity(1_000, 1_000) > 0


def test_a_neighbour_counts_less_than_the_passage_and_nearer_ones_more():
    sizes = dict.fromkeys(range(10, 20), 20)
    scores = bm25f_scores(range(10, 20), sizes, {"quay": {14: 1}}, TermStatistics(20.0, {"quay": 3.0}))
    assert max(scores, key=scores.get) == 14
    assert scores[14] > scores[15] > scores[16] > scores[17] > 0 == scores[18]
    assert scores[15] > scores[13], "what answers a question stands behind it"


def test_a_short_passage_is_better_than_a_long_one_with_the_same_terms():
    scores = bm25f_scores([1, 50], {1: 10, 50: 100}, {"quay": {1: 1, 50: 1}}, TermStatistics(20.0, {"quay": 3.0}))
    assert scores[1] > scores[50]


def test_the_answer_to_a_question_counts_its_words_nearly_as_its_own():
    statistics = TermStatistics(20.0, {"quay": 3.0})
    asked = bm25f_scores(range(3), dict.fromkeys(range(3), 20), {"quay": {1: 1}}, statistics, {1})
    said = bm25f_scores(range(3), dict.fromkeys(range(3), 20), {"quay": {1: 1}}, statistics)
    assert said[1] == asked[1] > asked[2] > said[2]
    assert asked[0] == said[0]


def test_what_was_said_at_length_scores_less_and_what_a_tool_wrote_does_not():
    long, tool, short = (
        candidate(id, 1.0, role=role)._replace(size=size)
        for id, role, size in ((1, "assistant", 320), (2, "tool", 320), (3, "assistant", 80))
    )
    assert order(fuse([long, tool, short])) == [2, 3, 1]


def test_terms_are_counted_whole():
    assert pad_terms("quay quay quay_side aquay quay").count(" quay ") == 3
    assert pad_terms("").count(" quay ") == 0


def test_of_equals_the_newest_are_looked_at():
    assert set(top_ids(sum_rarities({"a": range(10), "b": [3]}, {"a": 1.0, "b": 2.0}), 3)) == {3, 9, 8}


# Fusion


def test_words_and_vectors_are_fused_by_their_scores_not_their_ranks():
    fused = fuse([candidate(1, 10.0, 0.1), candidate(2, 9.5, 0.8), candidate(3, 0.5, 0.79)])
    assert order(fused) == [2, 1, 3]
    assert fused[0].scores["words"] == pytest.approx(0.95)
    assert fused[0].scores["meaning"] == 1.0


def test_a_faint_similarity_is_not_stretched():
    assert order(fuse([candidate(1, 0.94, 0.02), candidate(2, 1.0, 0.0)])) == [2, 1]


@given(st.floats(0.01, 100), st.floats(-1, 1), st.floats(0, 1e10), st.sampled_from(sorted(ROLE_CONFIDENCE)))
def test_recency_confidence_and_time_are_bounded(words, meaning, at, role):
    pair = [candidate(1, words, meaning, at=at, role=role), candidate(2, words, meaning, at=5e9)]
    least = (1 - RECENCY_BOOST) * min(ROLE_CONFIDENCE.values())
    most = (1 + RECENCY_BOOST) * (1 + DATE_BOOST)
    for scored in fuse(pair, [DateWindow(0, 5e9, "then")]):
        base = scored.scores["words"] + VECTOR_WEIGHT * scored.scores["meaning"]
        assert least * base - 1e-9 <= scored.score <= most * base + 1e-9


@given(st.lists(st.floats(0, 1e10), min_size=3, max_size=3, unique=True))
def test_ages_count_in_order_not_in_seconds(times):
    def scores(times):
        return [(scored.candidate.id, scored.scores) for scored in fuse([*map(dated, range(3), sorted(times))])]

    def dated(id, at):
        return candidate(id, 1.0, at=at)

    assert scores(times) == scores([0.0, 0.0, 0.0]), "recorded at once, the order is that of the records"
    assert [id for id, _ in scores(times)] == [2, 1, 0]
    recent = dated(0, 8.0), dated(1, 7.0)
    assert order(fuse(recent)) == [0, 1], "of two sessions the later one is newer, whichever was indexed first"


def test_what_nothing_speaks_for_is_left_out():
    assert order(fuse([candidate(1, 0.0, -0.3), candidate(2, 1.0)])) == [2]
    assert fuse([]) == []


def test_the_best_by_words_and_by_vectors_have_a_place():
    crowd = [candidate(id, 10.0 - id / 100, 0.0) for id in range(20)]
    ranked = fuse([*crowd, candidate(99, 0.0, 0.9)])
    assert order(select_hits(ranked, 5))[-1] == 99
    assert 99 not in order(select_hits(ranked, 3)), "few places are for the best alone"


def test_one_text_does_not_fill_the_hits():
    ranked = fuse([candidate(id, 10.0 - id, position=7) for id in range(6)] + [candidate(50, 1.0)])
    assert order(select_hits(ranked, 4)) == [0, 1, 50]
    same = fuse([candidate(1, 3.0, same=5), candidate(2, 2.0, same=5), candidate(3, 1.0)])
    assert order(select_hits(same, 3)) == [1, 3]


def test_sessions_sum_what_their_words_and_their_best_passage_say():
    scores_ = combine_scores({1: 2.0, 2: 4.0}, {1: 1.0, 3: 0.5})
    assert scores_ == {1: 1.5, 2: 1.0, 3: 0.5}
    assert bm25({1: {"a": 2}, 2: {"a": 1}}, {1: 10, 2: 10, 3: 10})[1] > 0
    assert bm25({}, {}) == {}


# Dates


@pytest.mark.parametrize(
    ("text", "first_day", "days"),
    [
        ("on 2023-05-08", "2023-05-08", 1),
        ("8 May 2023", "2023-05-08", 1),
        ("May 8th, 2023", "2023-05-08", 1),
        ("in February 2024", "2024-02-01", 29),
        ("during 2022", "2022-01-01", 365),
        ("yesterday", "2023-11-13", 1),
        ("last Friday", "2023-11-10", 1),
        ("in March", "2023-03-01", 31),
        ("in December", "2022-12-01", 31),
    ],
)
def test_a_time_named_is_a_window(text, first_day, days):
    windows = date_windows(f"what happened {text}?", NOW)
    from datetime import UTC, datetime

    assert datetime.fromtimestamp(windows[0].first, UTC).strftime("%Y-%m-%d") == first_day
    assert math.isclose(windows[0].last - windows[0].first + 1, days * DAY)


@pytest.mark.parametrize(
    "text", ["two weeks ago", "a few days ago", "last month", "3 hours ago", "a couple of days ago"]
)
def test_a_time_counted_back_holds_it(text):
    assert date_windows(text, NOW)[0].first < NOW
    assert date_windows(text) == ()


@pytest.mark.parametrize("text", ["", "may I?", "the year 99999", "1/0/2023", "march on", "2023-99-99"])
def test_what_names_no_time_is_no_window(text):
    assert date_windows(text, NOW) == ()


def test_a_day_in_a_text_is_its_event_time():
    assert first_date("It broke on 8 May 2023.") == pytest.approx(1_683_547_199.5)
    assert first_date("It broke.", NOW) is None
    assert all(first_date(f"({month} 2023)") for month in ("June", "AUGUST", "may", "december"))
    assert first_date("It broke YESTERDAY.", NOW) == first_date("yesterday it broke", NOW) is not None
    assert first_date("dismay 4th, an embargo", NOW) is None


# Packing


def hit(text, score, handle="s1"):
    return Hit(handle, text, score, "words", "default", 1, 0.0, "user")


@given(st.lists(st.tuples(st.text(max_size=200), st.floats(0.01, 2)), max_size=8), st.integers(0, 120))
def test_what_is_packed_is_within_the_budget(given_, tokens):
    hits = [hit(text, score, f"s{number}") for number, (text, score) in enumerate(given_)]
    packed = pack(hits, tokens, COUNTER, "anything")
    assert sum(COUNTER.text(snippet.text) for snippet in packed) <= tokens
    assert [snippet.hit.score for snippet in packed] == sorted((snippet.hit.score for snippet in packed), reverse=True)


def test_of_two_that_match_alike_the_short_one_is_packed():
    short, long = hit("the quay is closed", 1.0, "s1"), hit("the quay is closed " * 5, 1.0, "s2")
    assert [snippet.handle for snippet in pack([long, short], 12, COUNTER, "quay")] == ["s1"]
    assert len(pack([short, short], 100, COUNTER, "quay")) == 1


def test_a_long_hit_is_shown_by_the_lines_that_match():
    text = "\n".join(f"line {number} of the log says nothing" for number in range(60))
    text = text.replace("line 30 of", "line 30: E4711 at the quay, of")
    excerpt, tokens = snippet(text, TermMatcher({"e4711", "quay"}), 40, COUNTER)
    assert "line 30: E4711 at the quay" in excerpt
    assert excerpt.startswith(GAP)
    assert excerpt.endswith(GAP)
    assert tokens <= 60
    assert all(line in text or line == GAP for line in excerpt.splitlines())


@given(st.text(max_size=5_000), st.integers(10, 400))
def test_spans_lose_nothing_but_space(text, longest):
    pieces = list(spans(text, longest))
    assert all(text[start : start + len(span)] == span and len(span) <= longest for start, span in pieces)
    length = sum(len(span) for _, span in pieces)
    assert text[length:].strip() == "" if pieces else text.strip() == ""


def test_neighbours_weigh_less_than_all_there_is():
    assert all(0 < share < 1 for share in NEIGHBOUR_WEIGHTS.values())
    assert MAX_PASSAGE_CHARS > 400


def test_a_text_of_many_dates_is_read_in_linear_time():
    def seconds_for(count):
        started = time.process_time()
        assert [window.phrase for window in date_windows("1\u6708" * count, 1.7e9)] == ["1\u6708"]
        return time.process_time() - started

    least = min(seconds_for(1_000) for _ in range(3))
    assert seconds_for(8_000) < 24 * least  # in the square of their number: 64 times
