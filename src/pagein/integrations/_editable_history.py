"""A history that a framework may edit, kept in an append-only log.

Frameworks let a user change an agent's history as a list. Each change is an entry of the log. ``EditedLog`` reads as the
history stands after the edits, at unchanged positions, so that handles keep their meaning. The log beneath still has
everything.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any, Self, Unpack

from pagein.backends.base import BareLog, stored_log
from pagein.errors import BudgetError, OverBudget, ProtocolError
from pagein.events.entries import Body, Checkpoint, Compaction, Observed, Pin, Unpin
from pagein.events.steps import Observation, Step, SystemPromptStep
from pagein.log.base import Entry, Log, StoredLog
from pagein.log.codec import decode, encode
from pagein.memory.host_memory import HostMemory
from pagein.memory.options import Options

EDIT_CHECKPOINT = "host:edit"
"""Name of the checkpoints that change the history."""

HIDDEN = Checkpoint("host:hidden")
"""Body read in place of a removed one; no view shows it."""

NoteFactory = Callable[[int], Mapping[str, Any]]
"""Makes the note that is written with steps, as JSON-safe values, from the position of the first step."""


class EditedLog(BareLog):
    """A log as it reads after the edits in it; without edits, the log beneath.

    A compaction that covered an edited position is hidden, and so are those after it: they were made of another history.
    """

    def __init__(self, log: Log) -> None:
        stored = stored_log(log)
        super().__init__(stored)
        self.session, self.tenant, self.readonly = stored.session, stored.tenant, stored.readonly
        self._pending_note: tuple[str, NoteFactory] | None = None
        self.learn_again()

    def learn_again(self) -> None:
        """Read the edits anew, without what was erased of them."""
        self._start = 0
        self._never_reset: set[int] = set()
        self._hidden: set[int] = set()
        self._replaced: dict[int, Body] = {}
        self._observations: dict[int, list[int]] = {}
        self._compactions: list[tuple[int, int, int]] = []
        self._read_to = 0
        for entry in self._log.read():
            self._learn(entry)

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        """See Log.append. A note added by ``add_note`` is written with the bodies, all or none."""
        rows = tuple(bodies)
        if self._pending_note is not None:
            name, make_note = self._pending_note
            first_step = next((i for i, body in enumerate(rows) if isinstance(body, Step)), len(rows))
            rows = (*rows, Checkpoint(name, to_json(make_note(after + first_step))))
        entries = self._log.append(rows, after=after, at=at)
        self._pending_note = None
        return tuple(map(self._edited_entry, self._learn_new(entries)))

    def add_note(self, name: str, make_note: NoteFactory) -> None:
        """Write a checkpoint of this name with the next bodies."""
        self._pending_note = (name, make_note)

    def drop_note(self) -> None:
        """Write no note with the next bodies."""
        self._pending_note = None

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries ``[start, stop)``, each as it stands after the edits."""
        # A later entry may hide an earlier one, so all are learned before the first is returned.
        return map(self._edited_entry, self._learn_new(tuple(self._log.read(start, stop))))

    def is_hidden(self, position: int) -> bool:
        """True where the entry at a position was removed from the history."""
        return position in self._hidden or (position < self._start and position not in self._never_reset)

    def _edited_entry(self, entry: Entry) -> Entry:
        position = entry.position
        if self.is_hidden(position):
            return Entry(position, entry.at, HIDDEN, entry.digest)
        body = self._replaced.get(position)
        return entry if body is None else replace(entry, body=body)

    def _learn_new(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        for entry in entries:
            if entry.position >= self._read_to:
                self._learn(entry)
        return entries

    def _learn(self, entry: Entry) -> None:
        position = entry.position
        self._read_to = position + 1
        match entry.body:
            case SystemPromptStep() | Pin() | Unpin():
                self._never_reset.add(position)
            case Observed(action=action):
                self._observations.setdefault(action, []).append(position)
                if action in self._replaced or (action >= 0 and self.is_hidden(action)):
                    self._hidden.add(position)
            case Compaction() as compaction:
                self._compactions.append((position, compaction.first, compaction.last))
            case Checkpoint(name=name, state=state) if name == EDIT_CHECKPOINT:
                self._apply(position, json.loads(state))
            case _:
                pass

    def _apply(self, position: int, change: dict[str, Any]) -> None:
        if change["op"] == "reset":
            self._start = position
            return
        for at in change["at"]:
            self._hide_compactions(at)
            self._hidden.update(self._observations.get(at, ()))
            if change["op"] == "delete":
                self._hidden.add(at)
                self._replaced.pop(at, None)
            else:
                self._replaced[at] = _decode_body(change["body"])

    def _hide_compactions(self, at: int) -> None:
        """Hide the first compaction that covers the position, and all after it."""
        first_hidden = next(
            (i for i, (_, first, last) in enumerate(self._compactions) if first <= at < last), len(self._compactions)
        )
        self._hidden.update(position for position, _, _ in self._compactions[first_hidden:])
        del self._compactions[first_hidden:]


class EditedMemory(HostMemory):
    """A memory that reads its log as it stands after the edits."""

    def wrap_log(self, log: StoredLog) -> EditedLog:
        return EditedLog(log)


class EditableHistory:
    """The history of a session that a framework may edit; each change is an entry."""

    def __init__(self, memory: EditedMemory, clock: Callable[[], float] = time.time) -> None:
        self.memory = memory
        self._clock = clock

    @classmethod
    def open(
        cls, url: str | os.PathLike[str], *, session: str = "default", tenant: str = "", **options: Unpack[Options]
    ) -> Self:
        """Open the history of one session in a store. See ``AgentMemory.open``."""
        memory = EditedMemory.open(url, session=session, tenant=tenant, **options)
        return cls(memory, options.get("clock", time.time))

    @property
    def log(self) -> EditedLog:
        """The log of the current branch."""
        log = self.memory.log()
        assert isinstance(log, EditedLog)
        return log

    def record(self, items: Sequence[Step | Observation], name: str, make_note: NoteFactory) -> int:
        """Record the items and a note about them, all or none; return the position of the first step.

        Without items only the note is written, and its own position is returned. Raises ProtocolError, LogError.
        """
        positions: list[int] = []

        def placed_note(first: int) -> Mapping[str, Any]:
            positions.append(first)
            return make_note(first)

        with self.memory.exclusive():
            log = self.log
            log.add_note(name, placed_note)
            try:
                if items:
                    self.memory.record(*items)
                else:
                    self._append()
            finally:
                log.drop_note()
        return positions[-1]

    def has_open_calls(self, position: int) -> bool:
        """True where a call of the action at a position has no result."""
        return any(action == position for action, _ in self.memory.open_calls)

    def replace(self, position: int, step: Step, name: str, note: Mapping[str, Any]) -> None:
        """Read the step at a position as this one from now on, and write a note about it."""
        change = {"op": "edit", "at": [position], "body": _encode_step(step)}
        self._change(change, Checkpoint(name, to_json(note)))

    def delete(self, positions: Sequence[int], note: Checkpoint | None = None) -> None:
        """Remove the entries at these positions from the history, and write a note beside that."""
        if positions:
            self._change({"op": "delete", "at": list(positions)}, note)

    def reset(self) -> None:
        """Begin the history anew, behind the system prompts and the pins."""
        self._change({"op": "reset"})

    def entries(self) -> tuple[Entry, ...]:
        """Every entry as it stands after the edits."""
        with self.memory.exclusive():
            return tuple(self.log.read())

    def is_hidden(self, position: int) -> bool:
        """True where the entry at a position was removed from the history."""
        return self.log.is_hidden(position)

    def reduce_budget(self, tokens: int, bytes: int = 0) -> None:
        """Hold every later view to so many tokens, and bytes, less. Raises OverBudget where no budget is left."""
        budget = self.memory.budget
        if budget.bytes is not None and bytes:
            if bytes >= budget.bytes:
                raise OverBudget(bytes + 1, budget.bytes, (), unit="bytes")
            budget = replace(budget, bytes=budget.bytes - bytes)
        try:
            budget = replace(budget, window=budget.window - ceil(tokens / (1 - budget.margin)))
        except BudgetError:
            raise OverBudget(budget.limit + tokens, budget.limit, ()) from None
        self.memory.set_budget(budget)

    def close(self) -> None:
        """Release the store; a second call does nothing."""
        self.memory.close()

    def _append(self, *bodies: Body) -> None:
        self.log.append(bodies, after=self.memory.head, at=self._clock())
        self.memory.refresh()

    def _change(self, change: dict[str, Any], note: Checkpoint | None = None) -> None:
        with self.memory.exclusive():
            log, head = self.log, self.memory.head
            positions = change.get("at", ())
            if any(not 0 <= at < head for at in positions):
                raise ProtocolError(f"there is nothing to change at {positions}. Nothing was recorded.")
            edit = Checkpoint(EDIT_CHECKPOINT, to_json(change))
            log.append((edit,) if note is None else (edit, note), after=head, at=self._clock())
            self.memory.refresh(rebuild=True)


def to_json(value: Mapping[str, Any]) -> str:
    """Encode the state of a checkpoint as compact JSON."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _encode_step(step: Step) -> dict[str, Any]:
    record = encode(step)
    blobs = {blob.name: base64.b64encode(blob.data).decode() for blob in record.blobs}
    return {"kind": record.kind, "version": record.version, "json": record.body.decode("utf-8"), "blobs": blobs}


def _decode_body(stored: Mapping[str, Any]) -> Body:
    blobs: Mapping[str, str] = stored["blobs"]
    return decode(
        stored["kind"], stored["version"], stored["json"].encode("utf-8"), lambda name: base64.b64decode(blobs[name])
    )
