"""The measurements of speed, on a run too short to say anything: they run, and give what they promise."""

import pytest

from benchmarks import peers
from benchmarks.speed import TELEMETRY, append_rows, counting_rows, telemetry_rows, turn_costs
from benchmarks.synthetic_run import turns


def silent(what, done, of):
    assert 0 <= done <= of, what


def test_a_made_up_run_is_the_same_each_time():
    assert list(turns(5)) == list(turns(5))


@pytest.mark.slow
def test_turns_are_timed_at_each_length():
    both = turn_costs((50, 60), silent)
    assert len(both) == 2
    for costs in both:
        assert {length: len(spent) for length, spent in costs.items()} == {50: 50, 60: 50}
        assert costs[50][10:] == costs[60][:40]


def test_appends_and_counts_are_ratios_to_something_measured_beside_them():
    for rows in (append_rows(5, silent), counting_rows(1, silent)):
        base, *others = rows
        assert base.ratio == 1
        assert all(each.ratio > 0 and each.samples == base.samples for each in others)


def test_a_turn_is_timed_with_each_telemetry():
    off, *traced = telemetry_rows(1, silent, 40)
    assert off.ratio == 1
    assert [row.what for row in traced] == [f"telemetry {mode}" for mode in TELEMETRY[1:]]
    assert all(row.ratio > 0.2 for row in traced)


def test_a_module_that_is_not_there_is_not_installed():
    assert peers.is_installed("json")
    assert not peers.is_installed("no_such_module_at_all")
