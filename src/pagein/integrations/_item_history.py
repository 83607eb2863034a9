"""A session's items as a framework hands them over, and the run they make, in one log.

A run is recorded as steps. The framework wants its items back equal, oldest first, and may remove the newest. So each
batch of items is also noted as it came, in the same write as its steps. Removing an item hides the entries of its batch
and notes the rest again: nothing is destroyed, and a crash in between leaves the items as they are to be.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from pagein._common.retry import retry_on_conflict
from pagein.errors import FormatError, UnknownBranch
from pagein.events.entries import Checkpoint, Erased
from pagein.events.steps import SystemPromptStep
from pagein.formats import Item, format_named
from pagein.formats.parsing import to_plain_json
from pagein.integrations._editable_history import EDIT_CHECKPOINT, EditableHistory, EditedLog, EditedMemory, to_json
from pagein.integrations._threads import count_instructions
from pagein.log.base import Entry
from pagein.memory.branches import MAIN
from pagein.tokens.bytes import json_bytes

ITEMS_CHECKPOINT = "openai-agents:items"
"""Name of the checkpoints that hold items as they came, of every framework."""

RESPONSES_FORMAT: Final = "openai-responses"

MAX_ATTEMPTS = 64
"""Times that a write is tried while other writers append first."""

HostItem = dict[str, Any]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ItemBatch:
    """Items handed over at once: entries ``[first, note]`` record them. ``loose`` items are noted, not yet recorded."""

    first: int
    note: int
    items: tuple[HostItem, ...]
    replaces: int | None = None
    loose: bool = False
    time: float = 0.0
    is_erased: bool = False

    @property
    def positions(self) -> list[int]:
        """Positions that are deleted with this batch."""
        older = [] if self.replaces is None else [self.replaces]
        return [*older, *range(self.first, self.note + 1)]


class ItemHistory(EditableHistory):
    """The history of a session of items. ``append``, ``pop`` and ``clear`` are durable when they return.

    Threads may share it, and several processes may share a session. ``format`` names the
    format of the items, and ``parse`` reads them.
    """

    format = RESPONSES_FORMAT
    _read_log: EditedLog
    _read_to: int
    _batches: list[ItemBatch]
    _current: list[ItemBatch] | None
    _last_edit: int

    def __init__(self, memory: EditedMemory, clock: Callable[[], float] = time.time) -> None:
        super().__init__(memory, clock)
        self._reserved_tokens = self._reserved_bytes = 0
        self._start_reading(self.log)
        self.refresh()

    def items(self) -> list[HostItem]:
        """Every current item, oldest first; a copy."""
        return [json.loads(text) for text in map(json.dumps, self.current_items())]

    def current_items(self) -> list[HostItem]:
        """Every current item, oldest first; not to be changed."""
        with self.memory.exclusive():
            self.refresh()
            return [item for batch in self._current_batches() for item in batch.items]

    def erased_numbers(self) -> frozenset[int]:
        """The numbers of the current items of which something was erased, or of those beside them."""
        flags = [batch.is_erased for batch in self._current_batches() for _ in batch.items]
        return frozenset(number for number, is_erased in enumerate(flags) if is_erased)

    def append(self, items: Iterable[Any]) -> None:
        """Write the items, all or none. Raises FormatError for what is not JSON, LogError."""
        rows = tuple(to_plain_json(item, f"items[{at}]") for at, item in enumerate(items))
        self._write(lambda: self._append_items(rows, None))

    def pop(self) -> HostItem | None:
        """Remove the newest item from the history, and return it; None where there is none."""
        return self._write(self._pop)

    def clear(self) -> None:
        """Remove all items, and instructions that came as items. Pins stay."""
        self._write(self._clear)

    def refresh(self) -> None:
        """Fold in what another process wrote, its edits included, and finish what a crash left undone."""
        with self.memory.exclusive():
            log = self.log
            if log is not self._read_log:  # the memory switched to another branch
                self._start_reading(log)
            entries = tuple(log.read(self._read_to))
            if any(isinstance(entry.body, Erased) for entry in entries) and self._batches:
                log.learn_again()
                self._start_reading(log)
                entries = tuple(log.read())
            was_edited = any(_has_name(entry, EDIT_CHECKPOINT) for entry in entries)
            if was_edited:
                self.memory.refresh(rebuild=True)
                self._current = None
            elif entries and entries[-1].position >= self.memory.head:
                self.memory.refresh()
            for entry in entries:
                if _has_name(entry, ITEMS_CHECKPOINT):
                    self._add_batch(_parse_batch(entry))
                elif _has_name(entry, EDIT_CHECKPOINT):
                    self._last_edit = entry.position
                self._read_to = entry.position + 1
            # An edit notes loose items, and a later write records them.
            loose = next((b for b in self._current_batches() if b.loose), None) if was_edited else None
            if loose is not None and not log.readonly:
                self._append_items(loose.items, loose.note)

    def parse(self, rows: Sequence[Any]) -> tuple[Item, ...]:
        """Parse items into steps and results. Raises FormatError."""
        return format_named(self.format).parse(rows)

    def reserve_instructions(self, instructions: str | None) -> None:
        """Keep room for the longest instructions so far, which are sent beside the items. Raises OverBudget."""
        tokens = count_instructions(instructions or None, self.memory.counter)
        size = json_bytes(instructions or "")
        if tokens > self._reserved_tokens or size > self._reserved_bytes:
            more = max(0, tokens - self._reserved_tokens), max(0, size - self._reserved_bytes)
            self.reduce_budget(*more)
            self._reserved_tokens += more[0]
            self._reserved_bytes += more[1]

    def switch(self, branch: str) -> None:
        """Go on with another branch. See ``AgentMemory.switch``."""
        with self.memory.exclusive():
            self.memory.switch(branch)
            self.refresh()

    def _start_reading(self, log: EditedLog) -> None:
        self._read_log = log
        self._read_to = 0
        self._batches, self._current, self._last_edit = [], None, -1

    def _add_batch(self, batch: ItemBatch) -> None:
        self._batches.append(batch)
        if batch.replaces is not None:
            self._current = None
        elif self._current is not None and not self.is_hidden(batch.note):
            self._current.append(batch)

    def _current_batches(self) -> list[ItemBatch]:
        if self._current is None:
            self._current = _without_replaced([b for b in self._batches if not self.is_hidden(b.note)])
        return self._current

    def _write(self, work: Callable[[], T]) -> T:
        """Do the work on the current items; again where another writer was first."""

        def attempt() -> T:
            self.refresh()
            return work()

        with self.memory.exclusive():
            return retry_on_conflict(attempt, attempts=MAX_ATTEMPTS)

    def _append_items(self, rows: tuple[HostItem, ...], replaces: int | None) -> None:
        if not rows:
            return
        first, log = self.memory.head, self.log
        note = {"first": first, "items": rows} | ({} if replaces is None else {"replaces": replaces})
        log.add_note(ITEMS_CHECKPOINT, lambda _: note)
        try:
            was_recorded = False
            try:
                result = self.memory.record_new_messages(list(rows), self.parse)
                was_recorded = result.last > result.first
            except FormatError:
                pass  # no step can be made of them: they are given back as they came, and no model sees them
            if not was_recorded:
                self._append()
        finally:
            log.drop_note()
        self.refresh()

    def _pop(self) -> HostItem | None:
        batches = self._current_batches()
        if not batches:
            return None
        newest = batches[-1].items[-1]
        self._keep_first(sum(len(batch.items) for batch in batches) - 1)
        return newest

    def _keep_first(self, keep: int) -> None:
        positions, rest, count = list[int](), tuple[HostItem, ...](), 0
        for batch in self._current_batches():
            count += len(batch.items)
            if count > keep:
                positions += batch.positions
                rest += batch.items[: max(0, len(batch.items) - (count - keep))]
        if not positions:
            return
        note = {"first": self.memory.head + 1, "items": rest, "loose": True}
        self.delete(positions, Checkpoint(ITEMS_CHECKPOINT, to_json(note)) if rest else None)
        self.refresh()

    def _clear(self) -> None:
        branches = self.memory.branches()
        if any(branch.name == MAIN and not branch.is_current for branch in branches):
            self.switch(MAIN)
        for branch in branches:
            if branch.name != MAIN:
                self.memory.drop(branch.name)
        self.delete([entry.position for entry in self.entries() if isinstance(entry.body, SystemPromptStep)])
        self.reset()
        self.refresh()

    # -- branches

    def items_on(self, branch: str | None = None) -> tuple[tuple[HostItem, float], ...]:
        """The items of a branch, by default the current one, each with the time of its write. Raises UnknownBranch."""
        with self.memory.exclusive():
            self.refresh()
            branches = self.memory.branches()
            if branch is None or any(other.name == branch and other.is_current for other in branches):
                batches = self._current_batches()
            elif all(other.name != branch for other in branches):
                raise UnknownBranch(branch, tuple(other.name for other in branches))
            else:
                entries = self.memory.log(branch).read()
                batches = _without_replaced(
                    [_parse_batch(entry) for entry in entries if _has_name(entry, ITEMS_CHECKPOINT)]
                )
            return tuple((item, batch.time) for batch in batches for item in batch.items)

    def fork_at(self, keep: int, name: str | None) -> str:
        """Fork a branch with the first ``keep`` items, switch to it, and return its name.

        The fork is at that place where a batch begins there and no edit came after it; otherwise it is at the head, and
        the rest is removed. Raises ConfigurationError, LogError.
        """
        with self.memory.exclusive():
            self.refresh()
            count, at = 0, None
            for batch in self._current_batches():
                if count == keep and batch.replaces is None and batch.first > self._last_edit:
                    at = batch.first
                count += len(batch.items)
            branch = self.memory.fork(at, name)
            self.switch(branch.name)
            self._write(lambda: self._keep_first(keep))
            return branch.name


def _has_name(entry: Entry, name: str) -> bool:
    return isinstance(entry.body, Checkpoint) and entry.body.name == name


def _without_replaced(batches: Sequence[ItemBatch]) -> list[ItemBatch]:
    replaced = {batch.replaces for batch in batches}
    return [batch for batch in batches if batch.note not in replaced]


def _parse_batch(entry: Entry) -> ItemBatch:
    note: Mapping[str, Any] = json.loads(cast("Checkpoint", entry.body).state)
    note = note.get("host", note)  # an erasure left it so, before these notes were known as such
    items, replaces = tuple(note["items"]), note.get("replaces")
    is_erased = entry.erased is not None
    return ItemBatch(note["first"], entry.position, items, replaces, note.get("loose", False), entry.at, is_erased)
