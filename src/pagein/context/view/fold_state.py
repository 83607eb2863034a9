"""The state of a fold as JSON-safe values, for snapshots: a log that was folded once need not be folded again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from pagein.context.ledger.heard import restore_heard
from pagein.context.salience.tracker import SalienceTracker
from pagein.context.view.body import ViewBody
from pagein.context.view.fold import Fold, Rewritten
from pagein.context.view.layout import Item, ViewEntry, messages_of, with_stubs
from pagein.events import entries, steps
from pagein.events.protocol import OpenCall, current_prompt, with_observations
from pagein.tokens import TokenCounter


def fold_to_state(fold: Fold) -> dict[str, Any]:
    """Return the state of a fold as JSON-safe values; recorded steps are named by their position in the log."""
    fold.show_observations()
    pairs = [(action, at) for action, answers in fold.answers.items() for at in answers]
    pairs.sort(key=lambda pair: pair[1])
    waiting = [call for calls in fold.abandoned.values() for call in calls]
    return {
        "head": fold.head,
        "skip": sorted(fold.skip),
        "open": [[call.action, call.index, call.id] for call in fold.open.values()],
        "abandoned": [[call.action, call.index, call.id] for call in waiting],
        "compactions": fold.compactions,
        "cleared": fold.cleared,
        "records": [[*pair, record] for pair, record in fold.records.items()],
        "pinned": list(fold.pinned.items()),
        "marks": list(fold.marks.items()),
        "by_hand": [sorted(fold.removed), sorted(fold.edited)],
        "wordings": list(fold.wordings.items()),
        "relisted": list(fold.relisted.items()),
        "rewritten": [[*place, rewritten.position] for place, rewritten in fold.rewritten.items()],
        "known": [fold.facts_position, *(entry.tokens for entry in fold.facts_entries)],
        "answers": [delta_encode(action for action, _ in pairs), delta_encode(at for _, at in pairs)],
        "costs": [delta_encode(fold.costs), list(fold.costs.values())],
        "used": sorted(fold.used_ids),
        "spoken": fold.user_costs,
        "shown": [list(map(_entry_state, part)) for part in (fold.systems, fold.body.front, fold.body.run)],
        "memo": fold.tracker.to_state(),
        "ledger": None if fold.learned_ledger is None and not fold.compactions else fold.ledger.to_state(),
        "heard": [heard.to_state() for heard in fold.heard],
    }


def required_positions(state: Mapping[str, Any]) -> frozenset[int]:
    """Return the positions whose entries ``restore_fold`` needs: entries shown as recorded, and their results."""
    verbatim = {values[0] for part in state["shown"] for values in part if values[-1] is None}
    actions, places = map(delta_decode, state["answers"])
    return (
        frozenset(verbatim)
        .union(at for at in state["known"][:1] if at is not None)
        .union(at for action, at in zip(actions, places, strict=True) if action in verbatim)
        .union(position for heard in state["heard"] for position in heard[:-1])
        .union(action for action, _, _ in (*state["open"], *state["abandoned"]))
        .union(values[-1] for values in state["rewritten"])
    )


def restore_fold(counter: TokenCounter, state: Mapping[str, Any], recorded: Mapping[int, Any]) -> Fold:
    """Restore a fold from its state; ``recorded`` has the bodies of its ``required_positions``.

    ``counter`` is the one that the state was made with. Raises ValueError, KeyError, TypeError or LogUnreadable
    for a state that does not fit.
    """
    fold = Fold(counter, skip=frozenset(state["skip"]))
    fold.head, fold.compactions, fold.cleared = state["head"], state["compactions"], state["cleared"]
    fold.open = {(action, index): OpenCall(action, index, id) for action, index, id in state["open"]}
    for action, index, id in state["abandoned"]:
        fold.abandoned.setdefault(id, []).append(OpenCall(action, index, id))
    for action, index, _ in (*state["open"], *state["abandoned"]):
        fold.waiting_calls[action, index] = recorded[action].tool_calls[index]
    fold.records = {(first, last): record for first, last, record in state["records"]}
    fold.pinned = dict(state["pinned"])
    fold.marks = dict(state["marks"])
    fold.removed, fold.edited = map(set, state["by_hand"])
    fold.wordings, fold.relisted = dict(state["wordings"]), dict(state["relisted"])
    for first, slot, index, at in state["rewritten"]:
        named = {(by.first, stub.slot, stub.index): stub for by in recorded[at].replacements for stub in by.stubs}
        fold.rewritten[first, slot, index] = Rewritten(named[first, slot, index], at)
    if state["known"][0] is not None:
        position, *tokens = state["known"]
        fold.show_facts(position, recorded[position], *tokens)
    for action, at in zip(*map(delta_decode, state["answers"]), strict=True):
        fold.answers.setdefault(action, []).append(at)
    positions, costs = state["costs"]
    fold.costs = dict(zip(delta_decode(positions), costs, strict=True))
    fold.recorded_tokens = sum(costs)
    fold.used_ids, fold.user_costs = set(state["used"]), list(state["spoken"])
    systems, front, run = ([_restore_entry(fold, values, recorded) for values in part] for part in state["shown"])
    fold.systems, fold.body = systems, ViewBody(front, run)
    fold.tracker = SalienceTracker.from_state(state["memo"])
    _restore_ledger(fold, state, recorded)
    return fold


def _restore_ledger(fold: Fold, state: Mapping[str, Any], recorded: Mapping[int, Any]) -> None:
    if state["ledger"] is not None:
        from pagein.context.ledger.run_ledger import RunLedger  # noqa: PLC0415 - loads where something left

        fold.learned_ledger = RunLedger.from_state(state["ledger"])
    fold.heard = [restore_heard(recorded, *heard) for heard in state["heard"]]


def _restore_entry(fold: Fold, state: Sequence[Any], recorded: Mapping[int, Any]) -> ViewEntry:
    first, last, tier, why, tokens, ids, stub_values, summary_values = state
    stubs = tuple(
        fold.rewritten[first, slot, index].stub if text is None else entries.Stub(slot, index, text, stub_tier)
        for slot, index, text, stub_tier in stub_values
    )
    item: Item = recorded[first] if summary_values is None else steps.SummaryStep(*summary_values)
    if isinstance(item, steps.ActionStep):
        observed = (recorded[at] for at in fold.answers.get(first, ()))
        answers = {answer.index: answer.observation for answer in observed if not answer.late}
        item = with_observations(item, answers) if answers else item
    elif isinstance(item, steps.SystemPromptStep):
        item, _ = current_prompt(item)
    item = with_stubs(item, stubs)
    messages = messages_of(item, ids, late_system=tier == "note")
    return ViewEntry(first, last, item, tier, why, messages, tokens, tuple(ids), stubs)


def _entry_state(entry: ViewEntry) -> list[Any]:
    """Return an entry as JSON-safe values; a recorded step by its position, a summary with its text."""
    item = entry.item
    # What has more than text is read from the log: a picture would be in every snapshot.
    stubs = [[stub.slot, stub.index, None if stub.parts else stub.text, stub.tier] for stub in entry.stubs]
    summary = [item.content, item.author] if isinstance(item, steps.SummaryStep) else None
    return [entry.first, entry.last, entry.tier, entry.why, entry.tokens, entry.ids, stubs, summary]


def delta_encode(numbers: Iterable[int]) -> list[int]:
    """Return the first number, then the difference of each number to the one before it.

    >>> delta_encode([3, 5, 7]), list(delta_decode([3, 2, 2]))
    ([3, 2, 2], [3, 5, 7])
    """
    every = list(numbers)
    return [number - before for before, number in zip([0, *every], every, strict=False)]


def delta_decode(deltas: Iterable[int]) -> Iterator[int]:
    """Yield the numbers from which ``delta_encode`` made these differences."""
    return accumulate(deltas)
