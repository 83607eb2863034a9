"""The state of a fold as JSON-safe values, for snapshots: a log that was folded once need not be folded again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from pagein.context.ledger.heard import restore_heard
from pagein.context.salience.tracker import SalienceTracker
from pagein.context.view.body import ViewBody
from pagein.context.view.changes import Rewritten
from pagein.context.view.fold import Fold
from pagein.context.view.layout import Item, ViewEntry, messages_of, with_stubs
from pagein.events import entries, steps
from pagein.events.protocol import OpenCall, current_prompt, with_observations
from pagein.tokens import TokenCounter


def fold_to_state(fold: Fold) -> dict[str, Any]:
    """Return the state of a fold as JSON-safe values; recorded steps are named by their position in the log."""
    fold.show_observations()
    calls, changes, learned, costs = fold.calls, fold.changes, fold.learned, fold.costs
    pairs = [(action, at) for action, answers in calls.answers.items() for at in answers]
    pairs.sort(key=lambda pair: pair[1])
    abandoned = [call for same_id in calls.abandoned.values() for call in same_id]
    return {
        "head": fold.head,
        "skip": sorted(fold.skip),
        "open": [[call.action, call.index, call.id] for call in calls.open.values()],
        "abandoned": [[call.action, call.index, call.id] for call in abandoned],
        "compactions": fold.compactions,
        "cleared": fold.cleared,
        "records": [[*pair, record] for pair, record in fold.records.items()],
        "pinned": list(fold.pinned.items()),
        "marks": list(fold.marks.items()),
        "by_hand": [sorted(changes.removed), sorted(changes.edited)],
        "wordings": list(changes.wordings.items()),
        "relisted": list(changes.relisted.items()),
        "rewritten": [[*place, rewritten.position] for place, rewritten in changes.rewritten.items()],
        "known": [fold.facts.position, *(entry.tokens for entry in fold.facts.entries)],
        "answers": [delta_encode(action for action, _ in pairs), delta_encode(at for _, at in pairs)],
        "costs": [delta_encode(costs.by_position), list(costs.by_position.values())],
        "used": sorted(fold.used_ids),
        "spoken": costs.of_user,
        "shown": [list(map(_entry_state, part)) for part in (fold.systems, fold.body.front, fold.body.run)],
        "memo": learned.tracker.to_state(),
        "ledger": None if learned.known_ledger is None and not fold.compactions else learned.ledger.to_state(),
        "heard": [text.to_state() for text in learned.heard],
    }


def required_positions(state: Mapping[str, Any]) -> frozenset[int]:
    """Return the positions whose entries ``restore_fold`` needs: entries shown as recorded, and their results."""
    verbatim = {values[0] for part in state["shown"] for values in part if values[-1] is None}
    actions, places = map(delta_decode, state["answers"])
    return (
        frozenset(verbatim)
        .union(at for at in state["known"][:1] if at is not None)
        .union(at for action, at in zip(actions, places, strict=True) if action in verbatim)
        .union(position for text in state["heard"] for position in text[:-1])
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
    calls, changes, learned, costs = fold.calls, fold.changes, fold.learned, fold.costs
    for is_abandoned, name in enumerate(("open", "abandoned")):
        for action, index, id in state[name]:
            calls.restore(OpenCall(action, index, id), recorded[action], is_abandoned=bool(is_abandoned))
    fold.records = {(first, last): record for first, last, record in state["records"]}
    fold.pinned = dict(state["pinned"])
    fold.marks = dict(state["marks"])
    changes.removed, changes.edited = map(set, state["by_hand"])
    changes.wordings, changes.relisted = dict(state["wordings"]), dict(state["relisted"])
    for first, slot, index, at in state["rewritten"]:
        named = {(by.first, stub.slot, stub.index): stub for by in recorded[at].replacements for stub in by.stubs}
        changes.rewritten[first, slot, index] = Rewritten(named[first, slot, index], at)
    if state["known"][0] is not None:
        position, *tokens = state["known"]
        fold.facts.show(position, recorded[position], fold.counter, *tokens)
    for action, at in zip(*map(delta_decode, state["answers"]), strict=True):
        calls.answers.setdefault(action, []).append(at)
    positions, tokens_of_steps = state["costs"]
    costs.by_position = dict(zip(delta_decode(positions), tokens_of_steps, strict=True))
    costs.total, costs.of_user = sum(tokens_of_steps), list(state["spoken"])
    fold.used_ids = set(state["used"])
    systems, front, run = ([_restore_entry(fold, values, recorded) for values in part] for part in state["shown"])
    fold.systems, fold.body = systems, ViewBody(front, run)
    learned.tracker = SalienceTracker.from_state(state["memo"])
    if state["ledger"] is not None:
        from pagein.context.ledger.run_ledger import RunLedger  # noqa: PLC0415 - loads where something left

        learned.known_ledger = RunLedger.from_state(state["ledger"])
    learned.heard = [restore_heard(recorded, *text) for text in state["heard"]]
    return fold


def _restore_entry(fold: Fold, state: Sequence[Any], recorded: Mapping[int, Any]) -> ViewEntry:
    first, last, tier, why, tokens, ids, stub_values, summary_values = state
    stubs = tuple(
        fold.changes.rewritten[first, slot, index].stub if text is None else entries.Stub(slot, index, text, stub_tier)
        for slot, index, text, stub_tier in stub_values
    )
    item: Item = recorded[first] if summary_values is None else steps.SummaryStep(*summary_values)
    if isinstance(item, steps.ActionStep):
        observed = (recorded[at] for at in fold.calls.answers.get(first, ()))
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
