"""The parts of a fold: a call is closed once, and a list's words that were undone are found but not shown."""

from pagein import ActionStep, Observation, ToolCall
from pagein.context.view.calls import RunCalls
from pagein.context.view.changes import Rewritten, StepChanges
from pagein.events.entries import REWRITTEN, Compaction, Observed, Replacement, Stub

CALL = ToolCall("a", "read", '{"path": "x"}')


def abandoned_call():
    calls = RunCalls()
    calls.open_step(0, ActionStep("I read it.", (CALL,)))
    assert calls.close(1, Observed(0, 0, Observation("a", "It may have run.", status="unknown"))) is CALL
    return calls


def test_a_late_result_finds_its_call_once():
    calls = abandoned_call()
    late = Observed(0, 0, Observation("a", "done"), late=True)
    assert calls.close_late(2, late) is CALL
    assert calls.close_late(3, late) is None
    assert (calls.open, calls.abandoned, calls.waiting) == ({}, {}, {})
    assert calls.answers == {0: [1, 2, 3]}


def test_a_closed_call_waits_no_more():
    calls = RunCalls()
    calls.open_step(0, ActionStep("I read it.", (CALL,)))
    assert calls.close(1, Observed(0, 0, Observation("a", "done"))) is CALL
    assert (calls.open, calls.waiting) == ({}, {})


def test_a_late_result_leaves_an_open_call_open():
    calls = RunCalls()
    calls.open_step(0, ActionStep("I read it.", (CALL,)))
    assert calls.close_late(1, Observed(0, 0, Observation("a", "half"), late=True)) is CALL
    assert calls.close(2, Observed(0, 0, Observation("a", "done"))) is CALL
    assert (calls.open, calls.waiting) == ({}, {})


def test_words_of_a_list_that_were_undone_are_found_and_not_shown():
    stub, changes = Stub("content", 0, "Other words.", "whole"), StepChanges()
    compaction = Compaction((Replacement(3, 4, (stub,)),), REWRITTEN, "the list has other words", 9, 9)
    changes.note(5, compaction, is_undone=True)
    assert (changes.wordings, changes.rewritten, changes.has_unchanged(4)) == ({3: [5]}, {}, True)
    changes.note(7, compaction, is_undone=False)
    assert (changes.wordings, changes.rewritten) == ({3: [5, 7]}, {(3, "content", 0): Rewritten(stub, 7)})
    assert not changes.has_unchanged(4)
