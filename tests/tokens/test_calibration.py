"""Reports teach a factor: soon when they agree, never when they are stale, missing or wild."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.tokens.calibration import MAX_FACTOR, MAX_OVERHEAD_TOKENS, MIN_CHANGE_SHARE, MIN_FACTOR, Calibration


def observe_all(reports, calibration=None):
    """The calibrations after error report."""
    return list(
        itertools.accumulate(reports, lambda state, pair: state.observe(*pair), initial=calibration or Calibration())
    )


@given(
    ratio=st.floats(0.5, 4.5),
    sizes=st.lists(st.integers(1_000, 900_000), min_size=3, max_size=3, unique=True).map(sorted),
)
def test_a_consistent_ratio_is_learned_to_five_percent_within_three_turns(ratio, sizes):
    learned = observe_all([(size, round(size * ratio)) for size in sizes])[-1]
    assert abs(learned.factor / ratio - 1) <= 0.05
    assert abs(learned.apply(sizes[-1]) / (sizes[-1] * ratio) - 1) <= 0.051


@pytest.mark.parametrize("ratio", [0.5, 0.8, 1.0, 1.3, 2.2, 4.5])
@pytest.mark.parametrize(
    "sizes", [(1_000, 1_000, 1_000), (1_000, 2_000, 4_000), (80_000, 40_000, 42_000), (50, 51, 52)]
)
def test_it_is_learned_whatever_the_sizes_do(ratio, sizes):
    learned = observe_all([(size, round(size * ratio)) for size in sizes])[-1]
    assert abs(learned.factor / ratio - 1) <= 0.05


def test_an_undercount_is_learned_from_two_reports_and_an_overcount_from_three():
    assert [state.factor for state in observe_all([(1_000, 3_000), (2_000, 6_000), (3_000, 9_000)])] == [1, 1, 3, 3]
    assert [state.factor for state in observe_all([(1_000, 600), (2_000, 1_200), (3_000, 1_800)])] == [1, 1, 1, 0.6]


@given(wild=st.integers(1, 10_000_000), at=st.integers(0, 8), ratio=st.floats(0.6, 4.0))
def test_one_wild_report_never_moves_a_settled_factor(wild, at, ratio):
    reports = [(10_000 + 700 * turn, round((10_000 + 700 * turn) * ratio)) for turn in range(9)]
    settled = observe_all(reports)[-1]
    turns = [(20_000 + 700 * turn, round((20_000 + 700 * turn) * ratio)) for turn in range(9)]
    turns[at] = (turns[at][0], wild)
    for state in observe_all(turns, settled):
        assert abs(state.factor / ratio - 1) <= 0.05


@pytest.mark.parametrize("nothing", [None, 0, -5])
def test_a_missing_report_changes_nothing(nothing):
    state = observe_all([(1_000, 2_000), (2_000, 4_000)])[-1]
    assert state.observe(3_000, nothing) is state
    assert state.observe(0, 500) is state
    assert state.observe(-3, 500) is state


def test_a_report_that_leaves_out_what_the_cache_served_is_not_believed():
    state = observe_all([(50_000, 60_000), (51_000, 61_200), (52_000, 62_400)])[-1]
    for turn in range(20):
        state = state.observe(53_000 + turn, 900 + turn)
    assert state.factor == 1.2


def test_the_number_of_an_earlier_request_after_a_compaction_teaches_nothing():
    state = observe_all([(90_000, 108_000), (95_000, 114_000), (99_000, 118_800)])[-1]
    assert state.factor == 1.2
    for estimate in (30_000, 31_000, 33_000):
        state = state.observe(estimate, 118_800)
    assert state.factor == 1.2


def test_a_report_that_comes_one_turn_late_teaches_nothing():
    state = observe_all([(90_000, 108_000), (95_000, 114_000), (99_000, 118_800)])[-1]
    assert state.observe(30_000, round(99_000 * 1.2) + 7).words == state.words


def test_reports_that_are_always_a_turn_late_do_not_run_away():
    sizes = [10_000 + 900 * turn for turn in range(40)] + [9_000 + 900 * turn for turn in range(20)]
    late = [(now, round(before * 1.25)) for before, now in itertools.pairwise(sizes)]
    assert all(1.0 <= state.factor <= 1.30 for state in observe_all(late))


@given(st.lists(st.floats(-0.03, 0.03), min_size=20, max_size=60), st.floats(0.6, 4.0))
def test_a_settled_factor_does_not_breathe_with_the_noise(noise, ratio):
    reports = [
        (20_000 + 997 * turn, round((20_000 + 997 * turn) * ratio * (1 + error))) for turn, error in enumerate(noise)
    ]
    factors = [state.factor for state in observe_all(reports)]
    assert sum(one != other for one, other in itertools.pairwise(factors)) <= 4
    for one, other in itertools.pairwise(factors):
        assert one == other or abs(other - one) > MIN_CHANGE_SHARE * one


@given(st.lists(st.tuples(st.integers(-10, 10**9), st.none() | st.integers(-10, 10**12)), max_size=30), st.booleans())
def test_nothing_raises_and_the_factor_keeps_its_bounds(reports, exact):
    for state in observe_all(reports, Calibration(exact=exact)):
        assert MIN_FACTOR <= state.factor <= MAX_FACTOR
        assert 0 <= state.overhead <= MAX_OVERHEAD_TOKENS
        assert state.apply(0) == 0
        assert state.apply(1_000) >= 500
        assert state.apply(state.max_count(100_000)) <= 100_001 or state.max_count(100_000) == 0
        assert len(state.reports) <= 8


def test_a_long_run_is_not_remembered_whole():
    state = observe_all([(1_000 + turn, 1_200 + turn) for turn in range(500)])[-1]
    assert len(state.reports) == 8
    assert len(state.words) == 3


def test_the_room_is_what_fits_after_all_that_was_learned():
    state = Calibration(factor=2.0, overhead=100)
    assert state.max_count(10_100) == 5_000
    assert state.apply(5_000) == 10_100
    assert state.max_count(50) == 0


def test_an_exact_counter_learns_a_constant_and_no_ratio():
    state = observe_all([(size, size + 700) for size in (1_000, 2_000, 5_000, 20_000)], Calibration(exact=True))[-1]
    assert (state.factor, state.overhead) == (1.0, 700)
    assert state.apply(10_000) == 10_700


def test_an_exact_counters_overhead_rises_by_little_too_so_that_a_full_request_fits():
    state = observe_all([(size, size * 11 // 10) for size in range(10_000, 56_000, 2_500)], Calibration(exact=True))[-1]
    assert state.max_count(58_800) * 1.1 < 60_000, "of a window of 60,000 tokens the proxy keeps 2 % free"


def test_an_exact_counter_that_counts_upper_bounds_has_no_overhead():
    state = observe_all([(size, size - 40) for size in (1_000, 2_000, 5_000)], Calibration(exact=True))[-1]
    assert (state.factor, state.overhead) == (1.0, 0)


def test_an_exact_counters_overhead_is_not_learned_from_one_report_and_is_bounded():
    state = Calibration(exact=True).observe(1_000, 4_000)
    assert state.overhead == 0
    state = observe_all([(100_000, 200_000), (110_000, 220_000), (120_000, 240_000)], state)[-1]
    assert state.overhead == MAX_OVERHEAD_TOKENS
