"""Context that an application hands over for one turn, and takes back in the next list.

What it looked up stands before, behind or in the user's message while the model answers; later lists have the message
alone. The run goes on in its branch: what was taken back leaves the view. The log keeps the originals.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from pagein.context.view.body import find_shown, preview
from pagein.events.entries import (
    BY_LIST,
    IN_TEXT,
    RELISTED,
    REWRITTEN,
    Compaction,
    Observed,
    Replacement,
    Slot,
    Stub,
    at_step,
)
from pagein.events.handles import observation_handle, step_handle
from pagein.events.protocol import (
    MODEL_PREFIX,
    RESULT_PREFIX,
    USER_PREFIX,
    fingerprint,
    is_same_item,
    normal_text,
    relisted_fingerprint,
)
from pagein.events.steps import ActionStep, Observation, TaskStep, as_parts, as_text
from pagein.formats import Item
from pagein.memory._state import RunState
from pagein.memory.operations.client_lists import shown_result, words_beside
from pagein.memory.operations.lineage import Chain, Marks, align, results_end

MAX_TAKEN_BACK = 8
"""Items that are taken back at once, at most."""

MAX_REWRITTEN = 64
"""Items that one list words anew, at most."""

MAX_RELISTED = 16
"""Items that one list changes or takes back, after which the rest of it is compared as it is."""

ACKNOWLEDGED_CONTEXT = 2
"""Items before the user's first words that are context, and an answer to it."""

CERTAIN_LETTERS = 8
"""Letters of a message by which it is known in the middle of a longer one."""


@dataclass(frozen=True, slots=True)
class Relisted:
    """A recorded item, by its place, that a list does not have any more; or has with these ``words`` in its place."""

    place: int
    words: Item | None = None
    is_uncertain: bool = False
    """True where the list may have been cut: the view keeps it."""
    index: int | None = None
    action: int | None = None
    """Of a result its index, and the position of its action."""


def find_taken_back(
    items: Sequence[Item], marks: Marks, chain: Marks, recorded: Sequence[Item], *, is_begun: bool, is_history: bool, is_newest: bool
) -> tuple[Relisted, ...]:  # fmt: skip
    """Find what of a run's newest items a list has no more, or with fewer words. Places count from the first of them.

    The list must go on behind them as the run does, or with an answer; it may have them further on, and must where
    they are not ``is_newest``. ``is_begun`` says that both have the same before them; ``is_history`` that answers among
    them may be those of a history that was handed over at first.
    """
    for count in range(min(len(recorded), MAX_TAKEN_BACK) + 1):
        gone, kept = recorded[:count], chain[count:]
        moving = [mark for mark in chain[:count] if mark.startswith(USER_PREFIX)]
        others = [mark for mark in marks if mark not in moving]
        is_moved = len(moving) == count and set(moving) <= set(marks)
        if not all(map(_is_context, gone)) or not (is_newest or is_moved):
            return ()
        is_asked = bool(kept) and kept[0].startswith(USER_PREFIX)
        is_behind = is_begun and all(isinstance(item, TaskStep) for item in gone)
        if count and (is_asked or is_behind) and _goes_on(others, kept):
            is_uncertain = is_history and any(isinstance(item, ActionStep) for item in gone)
            return tuple(Relisted(place, is_uncertain=is_uncertain) for place in range(count))
        words = _fewer_words(items[0], recorded[count]) if is_newest and count < len(recorded) else None
        if words is not None and _goes_on(marks[1:], kept[1:]):
            return (*map(Relisted, range(count)), Relisted(count, words))
    return ()


def find_gap(recorded: Sequence[Item]) -> tuple[Relisted, ...]:
    """Find what a list lacks between two places that it has: context of an earlier turn, which the view keeps."""
    places = range(len(recorded)) if all(map(_is_context, recorded)) else ()
    return tuple(Relisted(place, is_uncertain=True) for place in places)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Messages of the user and results that a list has in other words, all else in it as it was recorded.

    Its first ``at`` items are the first ``reached`` of the chain, but for ``late`` results among them that are new.
    """

    items: tuple[Relisted, ...]
    at: int
    reached: int
    late: tuple[int, ...] = ()
    is_of_user: bool = False
    """True where words of the user are among them, not results alone."""


def find_rewriting(items: Sequence[Item], marks: Marks, chain: Chain, first: int) -> Rewriting | None:
    """Find what a list words anew, where it has all else of the chain from ``first`` on; None where more differs.

    ``marks`` are the fingerprints of the items. An answer that both have, or that the list goes on with, must stand behind it.
    """
    recorded, changed = chain.marks(first), list[Relisted]()
    at = reached = 0
    late: tuple[int, ...] = ()
    while True:
        rest = align(marks[at:], recorded[reached:], chain.skippable(first + reached))
        at, reached = at + rest.at, reached + rest.reached
        late = tuple(at - rest.at + index for index in rest.late)
        if late or reached == len(recorded) or at == len(marks):
            break
        kind = recorded[reached][:1]
        if kind != marks[at][:1] or kind not in (USER_PREFIX, RESULT_PREFIX) or len(changed) == MAX_REWRITTEN:
            return None
        stop, end = (
            (at + 1, reached + 1) if kind == USER_PREFIX else (results_end(marks, at), results_end(recorded, reached))
        )
        pairs = _pair_results(items[at:stop], chain, first + reached, first + end)
        if not pairs:
            return None
        changed += pairs
        at, reached = stop, end
    if not changed or any(not mark.startswith(RESULT_PREFIX) for mark in recorded[reached:]):
        return None
    behind = (*recorded[changed[-1].place - first + 1 : reached], *marks[at : at + 1])
    if not any(mark.startswith(MODEL_PREFIX) for mark in behind):
        return None
    return Rewriting(tuple(changed), at, reached, late, any(item.index is None for item in changed))


def _pair_results(listed: Sequence[Item], chain: Chain, first: int, stop: int) -> tuple[Relisted, ...]:
    """The results of a step, or one message, that the list has in other words, each beside its own; none where that is not certain."""
    if len(listed) != stop - first:
        return ()
    positions = list(map(chain.position, range(first, stop)))
    entries = chain.run.runtime.read_entries(min(positions), max(positions) + 1)
    bodies = {entry.position: entry.body for entry in entries}
    recorded = [bodies[at] for at in positions]
    ids = [item.call_id for item in listed if isinstance(item, Observation)]
    own_ids = [body.observation.call_id for body in recorded if isinstance(body, Observed)]
    is_known = len({*ids}) == len(ids) and {*ids} == {*own_ids}
    if is_known and ids:
        listed = [listed[ids.index(id)] for id in own_ids]
    pairs = zip(range(first, stop), recorded, listed, strict=True)
    changed = [pair for pair in pairs if not is_same_item(chain.mark(pair[0]), fingerprint(pair[2]))]
    # Ids that a client made anew do not say which of several is whose.
    return tuple(_relist(*pair) for pair in changed) if is_known or len(changed) == 1 else ()


def _relist(place: int, body: object, item: Item) -> Relisted:
    if not isinstance(body, Observed):
        return Relisted(place, item)
    return Relisted(place, item, index=IN_TEXT if body.late else body.index, action=body.action)


def _is_context(item: Item) -> bool:
    """True for what an application may hand over for one turn: words, as the user's or as an answer to them."""
    return isinstance(item, TaskStep) or (isinstance(item, ActionStep) and not item.tool_calls)


def _goes_on(marks: Marks, chain: Marks) -> bool:
    """True if a list has all of these items of the run, and an answer among them or behind them."""
    alignment = align(marks, chain)
    behind = marks[alignment.at : alignment.at + 1]
    is_whole = alignment.reached == len(chain) and not alignment.late
    return is_whole and any(mark.startswith(MODEL_PREFIX) for mark in (*chain, *behind))


def _fewer_words(listed: Item, recorded: Item) -> TaskStep | None:
    """Return a message of the list that says a part of what was recorded; None for another one."""
    if not isinstance(listed, TaskStep) or not isinstance(recorded, TaskStep):
        return None
    if words_beside(recorded, [listed]):
        return listed
    words, text = ("".join(normal_text(as_text(step.content)).split()) for step in (listed, recorded))
    is_part = len(text) > len(words) >= CERTAIN_LETTERS and words in text
    is_bare = words == text and len(as_parts(listed.content)) < len(as_parts(recorded.content))
    return listed if is_part or is_bare else None


def find_newest_place(chain: Chain) -> int:
    """Return the place of the first item that came with the newest list that had words of the user.

    Where that is not known, it is the first of the user's last words in a row.
    """
    if (newest := chain.run.transcript.newest) is not None:
        return chain.place_of(newest)
    marks = chain.marks()
    place = len(marks)
    while place and not marks[place - 1].startswith(USER_PREFIX):
        place -= 1
    while place and marks[place - 1].startswith(USER_PREFIX):
        place -= 1
    return 0 if place <= ACKNOWLEDGED_CONTEXT else place


def plan_relisting(chain: Chain, first: int, relisted: Sequence[Relisted], policy: str = RELISTED) -> Compaction | None:
    """Plan the compaction by which the view follows the list; None where it cannot. Places count from ``first`` in the chain."""
    view = chain.run.current_view()
    replacements = []
    for item in relisted:
        place = first + item.place
        by = _replacement(chain.position(place), item)
        if item.words is not None and relisted_fingerprint(chain.mark(place), by) != fingerprint(item.words):
            return None
        if by.stubs and by.stubs[0].is_of_result:
            result = shown_result(view, by.first, by.stubs[0].index)
            if result is None or fingerprint(result) != chain.mark(place):
                return None  # it left the view: in another place it would be a surprise
        replacements.append(by)
    shown = [at_step(by) for by in replacements if find_shown(view.run, by.first) is not None]
    after = preview(view, shown)
    if not any(isinstance(entry.item, TaskStep) for entry in after.run):
        return None
    return Compaction(tuple(replacements), policy, "the list", view.tokens, after.tokens)


def _replacement(position: int, item: Relisted) -> Replacement:
    if item.words is None:
        return Replacement(position, position + 1, (), None if item.is_uncertain else "")
    content = item.words.content or ""
    parts = () if fingerprint(TaskStep(as_text(content))) == fingerprint(TaskStep(content)) else as_parts(content)
    is_behind = item.index is not None and item.index != IN_TEXT
    slot: Slot = "observation" if is_behind else "content"
    stub = Stub(slot, item.index or 0, as_text(content), "clip", parts)
    return Replacement(item.action if is_behind and item.action is not None else position, position + 1, (stub,))


def read_changes_before(run: RunState, position: int) -> tuple[Compaction, ...]:
    """Read what lists changed before a position after it was recorded: a branch from there lacks it, and the list has it."""
    rewritten = {first for first, *_ in run.fold.changes.rewritten}
    if not any(at < position for at in run.fold.changes.removed | run.fold.changes.edited | rewritten):
        return ()
    entries = run.runtime.read_entries(position, run.fold.head)
    newest: dict[object, tuple[str, Replacement]] = {}
    for entry in entries:
        if isinstance(entry.body, Compaction) and entry.body.policy in BY_LIST and entry.position not in run.fold.skip:
            changes = (by for by in entry.body.replacements if by.last <= position)
            newest |= {(by.first, by.last): (entry.body.policy, by) for by in changes}
    tokens = run.current_view().tokens
    return tuple(
        Compaction(replacements, policy, "the list", tokens, tokens)
        for policy in sorted(BY_LIST)
        if (replacements := tuple(by for name, by in newest.values() if name == policy))
    )


def forget_lists_with(run: RunState, compaction: Compaction) -> None:
    """Forget the lists and requests that have what left the view: one that has it again is compared by what it says."""
    changed = [by.last - 1 for by in compaction.replacements if by.stubs or by.summary is not None]
    if (first := min(changed, default=None)) is None:
        return
    state, covers = run.transcript, run.log.count_fingerprints(first)
    state.lists = {digest: known for digest, known in state.lists.items() if known.covers <= covers}
    state.sent = deque((sent for sent in state.sent if sent.covers <= covers), state.sent.maxlen)


def _handle(by: Replacement) -> str:
    is_behind = by.stubs and by.stubs[0].slot == "observation"
    return observation_handle(by.first, by.stubs[0].index) if is_behind else step_handle(by.first)


def note_relisting(compaction: Compaction) -> tuple[str, ...]:
    """Name what a relisting changed."""
    if compaction.policy == REWRITTEN:
        handles = ", ".join(map(_handle, compaction.replacements))
        return (f"the list has {handles} in other words than before, and so has the view",)
    return tuple(
        f"the list lacks {step_handle(replacement.first)}, which was recorded"
        if not replacement.stubs and replacement.summary is None
        else f"the list has {step_handle(replacement.first)} with fewer words, and so has the view; expand() gives what was recorded"
        if replacement.stubs
        else f"the list no longer has {step_handle(replacement.first)}: it left the view; expand() gives it"
        for replacement in compaction.replacements
    )
