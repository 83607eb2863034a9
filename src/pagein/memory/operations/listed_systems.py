"""The system prompts of a list that was handed over: which are new, and where they stand among its new items. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pagein.events.handles import step_handle
from pagein.events.protocol import SYSTEM_PREFIX, as_current_prompt, fingerprint
from pagein.events.steps import SystemPromptStep, as_text
from pagein.formats import Item
from pagein.formats.raw_messages import RawRequest, is_system
from pagein.memory._state import RunState

_EXCERPT_CHARS = 60


class ListedSystems:
    """The system prompts of one list beside one run: they stand outside the chain of its other items."""

    def __init__(self, request: RawRequest, run: RunState) -> None:
        self.run, known = run, run.transcript.system_marks
        beside = [item for item in request.parse_system() if isinstance(item, SystemPromptStep)]
        prompts = [(fingerprint(item), -1) for item in beside]
        self.first: int | None = None
        """The number of the first other message; None where there is none."""
        for at, (row, row_hash) in enumerate(zip(request.rows, request.hashes(), strict=True)):
            if is_system(row):
                if row_hash not in known:
                    known[row_hash] = fingerprint(request.parse(at, at + 1)[0])
                prompts.append((known[row_hash], at))
            elif self.first is None:
                self.first = at
        self.marks = Counter(mark for mark, _ in prompts)
        """The fingerprints of all prompts in the list."""
        unknown = self.marks - Counter(mark for mark in run.log.fingerprints if mark.startswith(SYSTEM_PREFIX))
        self.new: list[tuple[int, SystemPromptStep]] = []
        """Those that were not recorded, each with the number of its message, -1 for one beside the messages."""
        for mark, at in reversed(prompts):  # of equal ones the last are new
            if unknown[mark] > 0:
                unknown[mark] -= 1
                step = beside[0] if at < 0 else request.parse(at, at + 1)[0]
                if isinstance(step, SystemPromptStep):
                    self.new.insert(0, (at, step))

    def merge_into(
        self, new: Sequence[Item], items: Sequence[Item], start: int, *, is_whole: bool
    ) -> tuple[Sequence[Item], tuple[str, ...]]:
        """Return the new items with the new system prompts, and notes.

        ``items`` are those from the message ``start`` on. Prompts among them stand in their place, others before all
        that is new.
        """
        if not self.new:
            return new, ()
        before: list[Item] = []
        notes: list[str] = []
        behind = Counter[bytes]()
        for number, step in self.new:
            if is_whole and self.first is not None and number < self.first:
                current, note = self._as_current(step)
                before.append(current)
                notes.append(note)
            elif number < start:
                before.append(step)
            else:
                behind[fingerprint(step)] += 1
        listed = {id(item) for item in items}
        before += [item for item in new if id(item) not in listed]  # words of a message that was joined
        chosen = {id(item) for item in new}
        ordered: list[Item] = []
        for item in reversed(items):
            if isinstance(item, SystemPromptStep) and behind[mark := fingerprint(item)] > 0:
                behind[mark] -= 1
                ordered.append(item)
            elif id(item) in chosen:
                ordered.append(item)
        before += [step for number, step in self.new if behind[fingerprint(step)] > 0 and number >= start]
        return (*before, *reversed(ordered)), tuple(notes)

    def _as_current(self, step: SystemPromptStep) -> tuple[SystemPromptStep, str]:
        """A system prompt at the beginning of a whole list, in the place of those that are no longer there; and a note."""
        log, positions = self.run.log, self.run.fold.system_positions
        marks = (log.fingerprints[log.count_fingerprints(position)] for position in positions)
        replaced = [position for position, mark in zip(positions, marks, strict=True) if not self.marks[mark]]
        place = f"in the place of {', '.join(map(step_handle, replaced))}" if replaced else "beside those before"
        return as_current_prompt(step, replaced), f"the system prompt was changed: {excerpt(step)} stands {place}"


def excerpt(item: Item) -> str:
    """Return the beginning of an item's text, quoted, for a note."""
    text = " ".join(as_text(item.content).split())
    return repr(text if len(text) <= _EXCERPT_CHARS else text[:_EXCERPT_CHARS] + "...")
