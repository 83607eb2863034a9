"""Retries beside other writers."""

import pytest

from pagein._common.retry import FIRST_PAUSE, LONGEST_PAUSE, retry_on_conflict
from pagein.errors import Conflict, LogErased


class Contested:
    """An append that loses to other writers ``conflicts`` times."""

    def __init__(self, conflicts):
        self.conflicts, self.calls = conflicts, 0

    def __call__(self):
        self.calls += 1
        if self.calls <= self.conflicts:
            raise Conflict(0, self.calls)
        return "written"


def test_a_writer_that_loses_waits_longer_and_longer_and_gets_through():
    pauses = []
    assert retry_on_conflict(Contested(12), attempts=16, sleep=pauses.append) == "written"
    assert len(pauses) == 12
    assert all(0 <= pause <= min(FIRST_PAUSE * 2**at, LONGEST_PAUSE) for at, pause in enumerate(pauses))
    assert len(set(pauses)) > 1, "two writers that pause alike meet again"


def test_the_last_conflict_goes_through():
    contested = Contested(99)
    with pytest.raises(Conflict, match="head is 3"):
        retry_on_conflict(contested, attempts=3, sleep=lambda _: None)
    assert contested.calls == 3


def test_another_error_is_not_retried():
    def fail():
        raise LogErased("gone")

    pauses = []
    with pytest.raises(LogErased):
        retry_on_conflict(fail, attempts=3, sleep=pauses.append)
    assert pauses == []
