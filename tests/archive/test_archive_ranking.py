"""Ranking and packing: pure, so told exactly."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagein.search import Hit, pack
from pagein.search.dates import Window, day_said, windows
from pagein.search.fusion import CONFIDENCE, MEANING, RECENCY, TIME, Candidate, chosen, fuse
from pagein.search.passages import LONGEST, spans
from pagein.search.ranking import AROUND, Statistics, best_of, by_presence, padded, rarity, scores
from pagein.search.sessions import bm25, fused
from pagein.search.snippets import GAP, snippet
from pagein.search.tokenizer import Wanted
from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")
DAY = 86_400.0
NOW = 1_700_000_000.0  # Tuesday, 14 November 2023


def candidate(id, words=0.0, meaning=None, *, at=0.0, said=None, role="user", position=None, same=None):
    where = (0, id if position is None else position, -1)
    return Candidate(id, where, role, at, said, words, meaning, id if same is None else same)


def order(fused_):
    return [each.candidate.id for each in fused_]


# Words


def test_a_rare_term_is_worth_more_and_one_that_all_hold_still_something():
    assert rarity(1_000, 1) > rarity(1_000, 10) > rarity(1_000, 1_000) > 0


def test_a_neighbour_counts_less_than_the_passage_and_nearer_ones_more():
    sizes = dict.fromkeys(range(10, 20), 20)
    found = scores(range(10, 20), sizes, {"quay": {14: 1}}, Statistics(100, 20.0, {"quay": 3.0}))
    assert max(found, key=found.get) == 14
    assert found[14] > found[15] > found[16] > found[17] > 0 == found[18]
    assert found[15] > found[13], "what answers a question stands behind it"


def test_a_short_passage_is_better_than_a_long_one_with_the_same_terms():
    found = scores([1, 50], {1: 10, 50: 100}, {"quay": {1: 1, 50: 1}}, Statistics(100, 20.0, {"quay": 3.0}))
    assert found[1] > found[50]


def test_terms_are_counted_whole():
    assert padded("quay quay quay_side aquay quay").count(" quay ") == 3
    assert padded("").count(" quay ") == 0


def test_of_equals_the_newest_are_looked_at():
    assert set(best_of(by_presence({"a": range(10), "b": [3]}, {"a": 1.0, "b": 2.0}), 3)) == {3, 9, 8}


# Fusion


def test_arms_are_fused_by_their_scores_not_their_ranks():
    found = fuse([candidate(1, 10.0, 0.1), candidate(2, 9.5, 0.8), candidate(3, 0.5, 0.79)])
    assert order(found) == [2, 1, 3]
    assert found[0].arms["words"] == pytest.approx(0.95)
    assert found[0].arms["meaning"] == 1.0


def test_a_faint_similarity_is_not_stretched():
    assert order(fuse([candidate(1, 1.0, 0.0), candidate(2, 0.94, 0.02)])) == [1, 2]


@settings(deadline=None)
@given(st.floats(0.01, 100), st.floats(-1, 1), st.floats(0, 1e10), st.sampled_from(sorted(CONFIDENCE)))
def test_recency_confidence_and_time_are_bounded(words, meaning, at, role):
    pair = [candidate(1, words, meaning, at=at, role=role), candidate(2, words, meaning, at=5e9)]
    least = (1 - RECENCY) * min(CONFIDENCE.values())
    most = (1 + RECENCY) * (1 + TIME)
    for each in fuse(pair, [Window(0, 5e9, "then")]):
        base = each.arms["words"] + MEANING * each.arms["meaning"]
        assert least * base - 1e-9 <= each.score <= most * base + 1e-9


def test_what_nothing_speaks_for_is_left_out():
    assert order(fuse([candidate(1, 0.0, -0.3), candidate(2, 1.0)])) == [2]
    assert fuse([]) == []


def test_the_best_of_each_arm_has_a_place():
    crowd = [candidate(id, 10.0 - id / 100, 0.0) for id in range(20)]
    ranked = fuse([*crowd, candidate(99, 0.0, 0.9)])
    assert order(chosen(ranked, 5))[-1] == 99
    assert 99 not in order(chosen(ranked, 3)), "few places are for the best alone"


def test_one_text_does_not_fill_the_hits():
    ranked = fuse([candidate(id, 10.0 - id, position=7) for id in range(6)] + [candidate(50, 1.0)])
    assert order(chosen(ranked, 4)) == [0, 1, 50]
    same = fuse([candidate(1, 3.0, same=5), candidate(2, 2.0, same=5), candidate(3, 1.0)])
    assert order(chosen(same, 3)) == [1, 3]


def test_sessions_sum_what_their_words_and_their_best_passage_say():
    scores_ = fused({1: 2.0, 2: 4.0}, {1: 1.0, 3: 0.5})
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
    found = windows(f"what happened {text}?", NOW)
    from datetime import UTC, datetime

    assert datetime.fromtimestamp(found[0].first, UTC).strftime("%Y-%m-%d") == first_day
    assert math.isclose(found[0].last - found[0].first + 1, days * DAY)


@pytest.mark.parametrize(
    "text", ["two weeks ago", "a few days ago", "last month", "3 hours ago", "a couple of days ago"]
)
def test_a_time_counted_back_holds_it(text):
    assert windows(text, NOW)[0].first < NOW
    assert windows(text) == ()


@pytest.mark.parametrize("text", ["", "may I?", "the year 99999", "1/0/2023", "march on", "2023-99-99"])
def test_what_names_no_time_is_no_window(text):
    assert windows(text, NOW) == ()


def test_a_day_in_a_text_is_its_event_time():
    assert day_said("It broke on 8 May 2023.") == pytest.approx(1_683_547_199.5)
    assert day_said("It broke.", NOW) is None


# Packing


def hit(text, score, handle="s1"):
    return Hit(handle, text, score, "words", "default", 1, 0.0, "user")


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=200), st.floats(0.01, 2)), max_size=8), st.integers(0, 120))
def test_what_is_packed_is_within_the_budget(given_, tokens):
    hits = [hit(text, score, f"s{number}") for number, (text, score) in enumerate(given_)]
    packed = pack(hits, tokens, COUNTER, "anything")
    assert sum(COUNTER.text(each.text) for each in packed) <= tokens
    assert [each.hit.score for each in packed] == sorted((each.hit.score for each in packed), reverse=True)


def test_of_two_that_match_alike_the_short_one_is_packed():
    short, long = hit("the quay is closed", 1.0, "s1"), hit("the quay is closed " * 5, 1.0, "s2")
    assert [each.handle for each in pack([long, short], 12, COUNTER, "quay")] == ["s1"]
    assert len(pack([short, short], 100, COUNTER, "quay")) == 1


def test_a_long_hit_is_shown_by_the_lines_that_match():
    text = "\n".join(f"line {number} of the log says nothing" for number in range(60))
    text = text.replace("line 30 of", "line 30: E4711 at the quay, of")
    shown, tokens = snippet(text, Wanted({"e4711", "quay"}), 40, COUNTER)
    assert "line 30: E4711 at the quay" in shown
    assert shown.startswith(GAP)
    assert shown.endswith(GAP)
    assert tokens <= 60
    assert all(line in text or line == GAP for line in shown.splitlines())


@settings(deadline=None)
@given(st.text(max_size=5_000), st.integers(10, 400))
def test_spans_lose_nothing_but_space(text, longest):
    found = list(spans(text, longest))
    assert all(text[start : start + len(span)] == span and len(span) <= longest for start, span in found)
    kept = sum(len(span) for _, span in found)
    assert text[kept:].strip() == "" if found else text.strip() == ""


def test_neighbours_weigh_less_than_all_there_is():
    assert all(0 < share < 1 for share in AROUND.values())
    assert LONGEST > 400
