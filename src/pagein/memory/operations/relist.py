"""Context that an application hands over for one turn, and takes back in the next list.

What it looked up stands before, behind or in the user's message while the model answers; later lists have the message
alone. The run goes on in its branch: what was taken back leaves the view. The log keeps the originals.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from pagein.context.view.body import find_shown, preview
from pagein.events.entries import BY_LIST, RELISTED, REWRITTEN, Compaction, Replacement, Stub
from pagein.events.handles import step_handle
from pagein.events.protocol import MODEL_PREFIX, USER_PREFIX, fingerprint, handed_items, is_same_item, normal_text
from pagein.events.steps import ActionStep, TaskStep, Text, as_parts, as_text
from pagein.formats import Item
from pagein.memory._effects import Flow, Read
from pagein.memory._state import RunState
from pagein.memory.operations.client_lists import words_beside
from pagein.memory.operations.lineage import Chain, Marks, Return, align, find_return

MAX_TAKEN_BACK = 8
"""Items that are taken back at once, at most."""

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
    words: TaskStep | None = None
    is_uncertain: bool = False
    """True where the list may have been cut: the view keeps it."""


def find_taken_back(
    items: Sequence[Item], marks: Marks, chain: Marks, recorded: Sequence[Item], *, is_begun: bool, is_history: bool
) -> tuple[Relisted, ...]:
    """Find what of a run's newest items a list has no more, or with fewer words. Places count from the first of them.

    The list must go on behind them as the run does, or with an answer. ``is_begun`` says that both have the same before
    them; ``is_history`` that answers among them may be those of a history that was handed over at first.
    """
    for count in range(min(len(recorded), MAX_TAKEN_BACK) + 1):
        gone, kept = recorded[:count], chain[count:]
        if not all(map(_is_context, gone)):
            return ()
        is_asked = bool(kept) and kept[0].startswith(USER_PREFIX)
        is_behind = is_begun and all(isinstance(item, TaskStep) for item in gone)
        if count and (is_asked or is_behind) and _goes_on(marks, kept):
            is_uncertain = is_history and any(isinstance(item, ActionStep) for item in gone)
            return tuple(Relisted(place, is_uncertain=is_uncertain) for place in range(count))
        words = _fewer_words(items[0], recorded[count]) if count < len(recorded) else None
        if words is not None and _goes_on(marks[1:], kept[1:]):
            return (*map(Relisted, range(count)), Relisted(count, words))
    return ()


def find_gap(recorded: Sequence[Item]) -> tuple[Relisted, ...]:
    """Find what a list lacks between two places that it has: context of an earlier turn, which the view keeps."""
    places = range(len(recorded)) if all(map(_is_context, recorded)) else ()
    return tuple(Relisted(place, is_uncertain=True) for place in places)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Messages of the user that a list has in other words, and where it goes on with what was recorded behind them."""

    messages: tuple[Relisted, ...]
    back: Return


def find_rewriting(items: Sequence[Item], marks: Marks, chain: Marks) -> Rewriting | None:
    """Find what a list words anew, where it goes on with all that was recorded behind that; None where more differs.

    The list and the chain begin where they differ. ``marks`` are the fingerprints of the items.
    """
    back = find_return(marks, chain, 0, 0)
    if back is None or back.first != back.chain or back.first > MAX_TAKEN_BACK:
        return None
    changed = [place for place in range(back.first) if not is_same_item(chain[place], marks[place])]
    messages = tuple(Relisted(place, item) for place in changed if isinstance(item := items[place], TaskStep))
    is_users = len(messages) == len(changed) and all(chain[place].startswith(USER_PREFIX) for place in changed)
    return Rewriting(messages, back) if is_users else None


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


def read_items(run: RunState, chain: Chain, first: int, stop: int) -> Flow[list[Item]]:
    """Read the items of a chain at the places ``[first, stop)``."""
    positions, numbers = run.log.fingerprint_positions, chain.numbers[first:stop]
    entries = yield from Read(positions[numbers[0]], positions[numbers[-1]] + 1)
    items = [item for entry in entries for item in handed_items(entry.body)]
    offset = run.log.count_fingerprints(positions[numbers[0]])
    return [items[number - offset] for number in numbers]


def find_newest_place(run: RunState, chain: Chain) -> int:
    """Return the place of the first item that came with the newest list that had words of the user.

    Where that is not known, it is the first of the user's last words in a row.
    """
    if run.transcript.newest is not None:
        return chain.place_of(run.transcript.newest)
    marks = chain.marks()
    place = len(marks)
    while place and not marks[place - 1].startswith(USER_PREFIX):
        place -= 1
    while place and marks[place - 1].startswith(USER_PREFIX):
        place -= 1
    return 0 if place <= ACKNOWLEDGED_CONTEXT else place


def plan_relisting(
    run: RunState, chain: Chain, first: int, relisted: Sequence[Relisted], policy: str = RELISTED
) -> Compaction | None:
    """Plan the compaction by which the view follows the list; None where it cannot. Places count from ``first`` in the chain."""
    view = run.current_view()
    replacements = []
    for item in relisted:
        position = run.log.fingerprint_positions[chain.numbers[first + item.place]]
        stubs: tuple[Stub, ...] = ()
        if item.words is not None:
            if not is_plain_text(item.words):
                return None
            stubs = (Stub("content", 0, as_text(item.words.content), "clip"),)
        summary = None if stubs or item.is_uncertain else ""
        replacements.append(Replacement(position, position + 1, stubs, summary))
    shown = [by for by in replacements if find_shown(view.run, by.first) is not None]
    after = preview(view, shown)
    if not any(isinstance(entry.item, TaskStep) for entry in after.run):
        return None
    return Compaction(tuple(replacements), policy, "the list", view.tokens, after.tokens)


def read_changes_before(run: RunState, position: int) -> Flow[tuple[Compaction, ...]]:
    """Read what lists changed before a position after it was recorded: a branch from there lacks it, and the list has it."""
    if not any(at < position for at in run.fold.removed | run.fold.edited):
        return ()
    entries = yield from Read(position, run.fold.head)
    newest: dict[int, tuple[str, Replacement]] = {}
    for entry in entries:
        if isinstance(entry.body, Compaction) and entry.body.policy in BY_LIST and entry.position not in run.fold.skip:
            newest |= {by.first: (entry.body.policy, by) for by in entry.body.replacements if by.first < position}
    tokens = run.current_view().tokens
    return tuple(
        Compaction(replacements, policy, "the list", tokens, tokens)
        for policy in sorted(BY_LIST)
        if (replacements := tuple(by for name, by in newest.values() if name == policy))
    )


def is_plain_text(step: TaskStep) -> bool:
    """True for text alone, which can be shown in the place of what was recorded."""
    is_text = all(isinstance(part, Text) for part in as_parts(step.content))
    return is_text and fingerprint(TaskStep(as_text(step.content))) == fingerprint(step)


def forget_lists_with(run: RunState, compaction: Compaction) -> None:
    """Forget the lists and requests that have what left the view: one that has it again is compared by what it says."""
    changed = (by.first for by in compaction.replacements if by.stubs or by.summary is not None)
    if (first := next(changed, None)) is None:
        return
    state, place = run.transcript, run.log.count_fingerprints(first)
    state.lists = {digest: known for digest, known in state.lists.items() if known.place <= place}
    state.sent = deque((sent for sent in state.sent if sent.place <= place), state.sent.maxlen)


def note_relisting(compaction: Compaction) -> tuple[str, ...]:
    """Name what a relisting changed."""
    if compaction.policy == REWRITTEN:
        handles = ", ".join(step_handle(replacement.first) for replacement in compaction.replacements)
        return (f"the list has {handles} in other words than before, and so has the view",)
    return tuple(
        f"the list lacks {step_handle(replacement.first)}, which was recorded"
        if not replacement.stubs and replacement.summary is None
        else f"the list has {step_handle(replacement.first)} with fewer words, and so has the view; expand() gives what was recorded"
        if replacement.stubs
        else f"the list no longer has {step_handle(replacement.first)}: it left the view; expand() gives it"
        for replacement in compaction.replacements
    )
