"""Tests of the stateful machine: it finds each seeded bug, by the right promise."""

from bisect import bisect_left
from dataclasses import replace
from inspect import getmembers

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RULE_MARKER, rule, run_state_machine_as_test

from pagein.context.compaction.policies.window import Window
from pagein.context.view import body as view_body
from pagein.context.view import cuts, fold, layout
from pagein.context.view.calls import RunCalls
from pagein.errors import ConfigurationError, LogErased, LogUnreadable
from pagein.events.entries import Compaction
from pagein.events.messages import Message
from pagein.events.protocol import with_observations
from pagein.events.steps import ActionStep
from pagein.log import branch_log as branching
from pagein.memory import snapshots, tools
from pagein.memory.host_memory import take_turn
from pagein.memory.operations import client_lists, compact, load, pins
from pagein.memory.operations import view as views
from pagein.memory.operations.load import write_snapshot
from pagein.search import index_writes
from pagein.testing.machine import MemoryMachine, profile


def a_result_stands_before_its_call(patch):
    original = layout._action_messages

    def wrong(step, ids):
        call, *results = original(step, ids)
        return (*results, call)

    patch.setattr(layout, "_action_messages", wrong)


def a_cut_parts_a_call_from_its_result(patch):
    patch.setattr(cuts, "RULES", (cuts.entry_bounds,))


def a_summary_pushes_the_view_over_budget(patch):
    def wrong(current, budget, policy):
        return policy(current, budget)

    patch.setattr(views, "plan_to_fit", wrong)


def a_range_off_by_one_hides_a_step(patch):
    whole = fold.ViewBody.replace

    def wrong(self, by, counter, why):
        gained = whole(self, by, counter, why)
        at = bisect_left(self.run, by.last, key=lambda entry: entry.first)
        if by.summary is not None and at < len(self.run) - 2:
            del self.run[at]
        return gained

    patch.setattr(fold.ViewBody, "replace", wrong)


def a_summary_stands_at_the_end(patch):
    whole = fold.ViewBody.replace

    def wrong(self, by, counter, why):
        gained = whole(self, by, counter, why)
        if by.summary is not None:
            at = bisect_left(self.run, by.first, key=lambda entry: entry.first)
            self.run.append(self.run.pop(at))
        return gained

    patch.setattr(fold.ViewBody, "replace", wrong)


def a_pin_leaves_with_what_stands_around_it(patch):
    patch.setattr(view_body, "is_permanent", lambda entry: False)


def a_reused_call_id_goes_out_twice(patch):
    patch.setattr(fold, "wire_ids", lambda step, position, used: tuple(call.id or "c" for call in step.tool_calls))


def an_undo_keeps_half(patch):
    patch.setattr(load, "undone_positions", lambda bodies: frozenset())


def a_late_result_rewrites_the_past(patch):
    whole = fold.Fold._observe

    def wrong(self, position, body):
        if body.late and body.action >= 0:
            run = self.body.run
            at = bisect_left(run, body.action, key=lambda entry: entry.first)
            if at < len(run) and isinstance(run[at].item, ActionStep) and run[at].first == body.action:
                old = run[at]
                item = with_observations(old.item, {body.index: body.observation})
                run[at] = fold.make_entry(
                    item, old.first, old.last, self.counter, tier=old.tier, why=old.why, ids=old.ids
                )
        whole(self, position, body)

    patch.setattr(fold.Fold, "_observe", wrong)


def a_second_late_result_is_taken(patch):
    patch.setattr(RunCalls, "close_late", lambda self, position, late: None)


def a_compaction_lies_about_its_tokens(patch):
    patch.setattr(
        compact,
        "Compaction",
        lambda what, policy, why, before, after, *more: Compaction(what, policy, why, before, after - 1, *more),
    )


def a_summary_can_end_its_own_frame(patch):
    patch.setattr(layout, "escape_frames", str)


def a_result_of_recall_is_as_the_tool_wrote_it(patch):
    patch.setattr(tools, "quote", str)


def a_summary_speaks_as_the_system(patch):
    whole = layout.messages_of

    def wrong(item, ids=(), *, late_system=False):
        messages = whole(item, ids, late_system=late_system)
        if type(item).__name__ == "SummaryStep":
            return (Message("system", messages[0].content),)
        return messages

    patch.setattr(layout, "messages_of", wrong)


def a_pin_is_kept_in_mind_although_the_disk_was_full(patch):
    right = pins.pin

    def wrong(run, text):
        if any(entry.item == pins.Pin(text) for entry in run.current_view().entries):
            return right(run, text)
        run.transcript.repairs.append(text)
        run.fold.head += 1
        entries = run.runtime.append((pins.Pin(text),), run.fold.head - 1)
        run.fold.head -= 1
        run.apply_entries(entries)
        return f"s{entries[0].position}"

    patch.setattr(pins, "pin", wrong)


def each_request_begins_with_the_time(patch):
    whole, ticks = fold.View.messages, iter(range(10**9))

    def wrong(self):
        first, *rest = whole(self)
        return (replace(first, content=f"{next(ticks)} {first.content}"), *rest)

    patch.setattr(fold.View, "messages", wrong)


def a_snapshot_forgets_an_id(patch):
    whole = snapshots.restore_fold

    def wrong(counter, state, recorded):
        return whole(counter, state | {"used": state["used"][1:]}, recorded)

    patch.setattr(snapshots, "restore_fold", wrong)


def a_snapshot_is_taken_although_an_undo_came(patch):
    patch.setattr(load, "_fold_rest", unseen(load._fold_rest))


def unseen(follow):
    def wrong(run, folded_log, log):
        if folded_log.fold.head:  # behind a snapshot
            folded_log.fold.skip |= frozenset(range(folded_log.fold.head))
        return follow(run, folded_log, log)

    return wrong


def a_branch_takes_the_snapshot_of_its_parent_from_behind_the_fork(patch):
    patch.setattr(
        branching.BranchLog,
        "snapshot_slot",
        lambda self, before=None: (self.pieces[0].log if self.pieces else self.own).snapshot_slot(before),
    )
    patch.setattr(load, "_matches_log", lambda snapshot, run, last: True)


def joined_or_divided_words_are_an_edit(patch):
    patch.setattr(client_lists, "match_joined", lambda listed, recorded: (0, 0, ()))


def a_cleared_result_is_an_edit(patch):
    def wrong(self):
        return False

    patch.setattr(client_lists._Reader, "_read_results", wrong)


def a_snapshot_forgets_what_a_list_words_anew(patch):
    right = snapshots.fold_to_state
    patch.setattr(snapshots, "fold_to_state", lambda fold: right(fold) | {"rewritten": []})


def a_search_has_the_words_of_before(patch):
    right = index_writes.passages
    patch.setattr(
        index_writes, "passages", lambda entry, own=(): [] if isinstance(entry.body, Compaction) else right(entry, own)
    )


def words_of_other_letters_are_no_words(patch):
    right = index_writes.terms
    patch.setattr(index_writes, "terms", lambda text: [term for term in right(text) if term.isascii()])


BUGS = {
    a_result_stands_before_its_call: "orphan tool result",
    a_cut_parts_a_call_from_its_result: "the view has no action there",
    a_summary_pushes_the_view_over_budget: "the request costs .* the limit is",
    a_range_off_by_one_hides_a_step: "is not shown, and behind 0 summaries|are not in the request|the newest user message must stay",
    a_summary_stands_at_the_end: "overlap|the view has",
    a_pin_leaves_with_what_stands_around_it: "the pin .* is not in the request",
    a_reused_call_id_goes_out_twice: "a call id is used twice|two calls of one id",
    an_undo_keeps_half: "the log folded again|from a snapshot, and|NothingToUndo was due",
    a_late_result_rewrites_the_past: "without a compaction between|and was recorded as|tokens before; they were|from a snapshot, and",
    a_second_late_result_is_taken: "ProtocolError was due|and was Observed",
    a_compaction_lies_about_its_tokens: "tokens after; they are",
    a_summary_can_end_its_own_frame: "can be ended from inside",
    a_result_of_recall_is_as_the_tool_wrote_it: "passes for a (?:line|frame)",
    a_summary_speaks_as_the_system: "system|the view says",
    a_pin_is_kept_in_mind_although_the_disk_was_full: "is not shown|the log folded again|changed something|entries when this log last looked|was erased",
    a_snapshot_forgets_an_id: "from a snapshot, and",
    a_snapshot_is_taken_although_an_undo_came: "from a snapshot, and",
    a_branch_takes_the_snapshot_of_its_parent_from_behind_the_fork: "from a snapshot, and|unreachable, but got: Compaction",
    joined_or_divided_words_are_an_edit: "was taken for an edit",
    a_cleared_result_is_an_edit: "clear_results was taken for an edit|unexpected entry",
    each_request_begins_with_the_time: "without a compaction between|the view says",
    a_snapshot_forgets_what_a_list_words_anew: "from a snapshot, and|is read back as",
    a_search_has_the_words_of_before: "is not found",
    words_of_other_letters_are_no_words: "is not found",
}
"""The seeded bugs, with a pattern of the message that the machine must raise."""


class Folding(MemoryMachine):
    """A machine whose policy folds as much as it may."""

    def policy(self):
        return Window(keep=0)

    def _check_over_budget(self, error):
        """Skip this check: no seeded bug raises OverBudget too early."""


class Forging(Folding):
    """A machine whose tools forge, and whose policy folds as much as it may; nothing is erased, nobody else writes."""

    erases = second_writer = None


def moves_only(base, *moves):
    """A machine with these moves alone: the others make a rare bug rarer."""
    rules = (name for name, _ in getmembers(base, lambda member: hasattr(member, RULE_MARKER)))
    return type(f"{base.__name__}Few", (base,), {name: None for name in rules if name not in moves})


class Forking(moves_only(Folding, "assistant_speaks", "pin")):
    """A machine that forks its run before its newest snapshot: in any history that is rare."""

    @rule(data=st.data())
    def rewinds_before_a_snapshot(self, data):
        self._collect_compactions()
        take_turn(self.memory, write_snapshot)
        self._rewind(data.draw(st.integers(0, self.oracle.head)))
        self._check_snapshot_state()


class Keeping(moves_only(Folding, "assistant_speaks", "compact")):
    """A machine whose policy leaves something behind what it folds."""

    def policy(self):
        return Window(keep=3)


MACHINES = {
    a_branch_takes_the_snapshot_of_its_parent_from_behind_the_fork: Forking,
    a_cleared_result_is_an_edit: moves_only(Folding, "client_clears_results", "clear_view"),
    a_cut_parts_a_call_from_its_result: moves_only(Folding, "assistant_calls", "result_comes_late", "user_interrupts"),
    a_range_off_by_one_hides_a_step: Keeping,
    a_reused_call_id_goes_out_twice: moves_only(Folding, "whole_turn", "assistant_calls"),
    a_second_late_result_is_taken: moves_only(Folding, "assistant_calls", "result_comes_late", "user_interrupts"),
    a_snapshot_forgets_what_a_list_words_anew: moves_only(
        Folding, "client_words_anew", "clear_view", "goes_on_elsewhere"
    ),
    a_search_has_the_words_of_before: moves_only(Folding, "client_words_anew", "clear_view", "compact"),
    words_of_other_letters_are_no_words: moves_only(Folding, "client_words_anew", "clear_view", "compact"),
    a_snapshot_forgets_an_id: moves_only(
        Folding, "assistant_calls", "results_come", "goes_on_elsewhere", "crash_and_reopen"
    ),
    a_snapshot_is_taken_although_an_undo_came: (
        moves_only(Folding, "assistant_speaks", "compact", "undo", "goes_on_elsewhere")
    ),
    an_undo_keeps_half: moves_only(Folding, "assistant_speaks", "undo", "goes_on_elsewhere"),
    a_late_result_rewrites_the_past: (moves_only(Folding, "assistant_calls", "user_interrupts", "result_comes_late")),
    a_pin_is_kept_in_mind_although_the_disk_was_full: moves_only(Folding, "user_speaks", "pin", "disk_is_full"),
    a_pin_leaves_with_what_stands_around_it: moves_only(Folding, "assistant_speaks", "pin", "compact"),
    a_result_of_recall_is_as_the_tool_wrote_it: Forging,
    joined_or_divided_words_are_an_edit: moves_only(Folding, "client_joins_or_divides", "clear_view"),
    a_summary_can_end_its_own_frame: moves_only(Folding, "user_speaks", "pin"),
}
"""Machines that find a rare bug in any history; the plain one finds the others."""


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_the_machine_finds(bug, monkeypatch):
    bug(monkeypatch)
    machine = MACHINES.get(bug, Folding)
    moves = 30 if machine in (Folding, Forking) else 20
    with pytest.raises((AssertionError, ConfigurationError, LogErased, LogUnreadable), match=BUGS[bug]):
        run_state_machine_as_test(machine, settings=profile(300, moves))


@pytest.mark.slow
def test_no_tool_passes_for_the_library():
    run_state_machine_as_test(Forging, settings=profile(5))
