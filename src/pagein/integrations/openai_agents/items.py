"""The items of a session as the OpenAI Agents SDK hands them over, and the run that they tell, in one log.

A run is recorded as steps; the SDK wants its items back equal, newest last, and may take the newest back. So each batch
is also noted as it came, in the same write as its steps. To take an item back hides its batch's entries and notes the
rest anew: nothing is destroyed, and a crash in between leaves the items as they are to be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack, cast

from pagein.errors import Conflict, FormatError, UnknownBranch
from pagein.events.entries import Checkpoint
from pagein.events.steps import SystemPromptStep
from pagein.formats.openai_responses.outputs import NAME
from pagein.formats.parsing import plain
from pagein.integrations._editable_history import EDIT, EditedMemory
from pagein.log.base import Entry, Log
from pagein.memory._effects import Flow
from pagein.memory.branches import MAIN, Asked
from pagein.memory.operations import load as flows
from pagein.memory.operations.load import Recorded
from pagein.memory.options import Options

NOTE = "openai-agents:items"
"""The checkpoints that hold items as they came."""

ATTEMPTS = 64
"""How often a write is made again that another writer came before."""

Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Items handed over at once: the entries ``[first, note]`` tell them. A loose one is not told as steps yet."""

    first: int
    note: int
    items: tuple[Item, ...]
    replaces: int | None = None
    loose: bool = False
    time: float = 0.0

    @property
    def entries(self) -> list[int]:
        """The positions that go when this batch goes."""
        older = [] if self.replaces is None else [self.replaces]
        return [*older, *range(self.first, self.note + 1)]


class ItemMemory(EditedMemory):
    """A memory of a session of items. ``put``, ``take_back`` and ``clear`` are durable when they return.

    Calls from several threads take their turns, and several processes may share a session.
    """

    def __init__(self, log: Log, **options: Unpack[Options]) -> None:
        super().__init__(log, **options)
        self._batches: list[_Batch] = []
        self._stand: list[_Batch] | None = None
        self._edited_at = -1
        self._learnt_to = 0
        self.follow()

    def items(self) -> list[Item]:
        """Every item that stands, oldest first, new at each call."""
        return [json.loads(text) for text in map(json.dumps, self.standing_items())]

    def standing_items(self) -> list[Item]:
        """Every item that stands, oldest first: to look at, not to be changed."""
        with self._turn:
            self.follow()
            return [item for each in self._standing() for item in each.items]

    def count(self) -> int:
        """How many items stand."""
        with self._turn:
            self.follow()
            return sum(len(each.items) for each in self._standing())

    def put_items(self, items: Iterable[Any]) -> None:
        """Write the items, all or none. Raises FormatError for what is not JSON, LogError."""
        rows = tuple(plain(each, f"items[{at}]") for at, each in enumerate(items))
        with self._turn:
            self._write(lambda: self._put(rows, None))

    def take_back(self) -> Item | None:
        """Take the newest item out of the history, and give it; None where there is none."""
        with self._turn:
            taken: Item | None = self._write(self._take_back)
            return taken

    def clear(self) -> None:
        """From now on the session has no items, nor instructions that came as items. Pins stay."""
        with self._turn:
            self._write(self._clear)

    def follow(self) -> None:
        """Fold in what another process wrote, its edits included, and finish what a crash left undone."""
        with self._turn:
            self._check_open()
            entries = tuple(self._edited.read(self._learnt_to))
            edited = any(_is_named(each, EDIT) for each in entries)
            if edited:
                self._run(flows.load(self._session))
                self._stand = None
            elif entries and entries[-1].position >= self._session.fold.head:
                self._run(flows.catch_up(self._session))
            for entry in entries:
                if _is_named(entry, NOTE):
                    self._take_in(_batch(entry))
                elif _is_named(entry, EDIT):
                    self._edited_at = entry.position
                self._learnt_to = entry.position + 1
            # What is loose was noted by an edit, and told by a later write.
            loose = next((each for each in self._standing() if each.loose), None) if edited else None
            if loose is not None and not getattr(self._log, "readonly", False):
                self._put(loose.items, loose.note)

    def _take_in(self, batch: _Batch) -> None:
        self._batches.append(batch)
        if batch.replaces is not None:
            self._stand = None
        elif self._stand is not None and not self.is_hidden(batch.note):
            self._stand.append(batch)

    def _standing(self) -> list[_Batch]:
        if self._stand is None:
            self._stand = _unreplaced([each for each in self._batches if not self.is_hidden(each.note)])
        return self._stand

    def _write(self, work: Any) -> Any:
        """Do it on what stands now; another writer's turn comes first where there is one."""
        for attempt in range(ATTEMPTS):
            try:
                self.follow()
                return work()
            except Conflict:
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _put(self, rows: tuple[Item, ...], replaces: int | None) -> None:
        if not rows:
            return
        first = self._session.fold.head
        note = {"first": first, "items": rows} | ({} if replaces is None else {"replaces": replaces})
        self._edited.beside(NOTE, lambda _: note)
        try:
            written = False
            try:
                told = self._tell(rows)
                written = told.last > told.first
            except FormatError:
                pass  # no item that can be told: it is given back as it came, and shown to no model
            if not written:
                self._append()
        finally:
            self._edited.beside(NOTE, None)
        self.follow()

    def _tell(self, rows: Sequence[Item]) -> Recorded:
        """Record what the items say, in one write. Raises FormatError."""
        return self.record_messages(list(rows), NAME, whole=False)

    def _take_back(self) -> Item | None:
        standing = self._standing()
        if not standing:
            return None
        last = standing[-1].items[-1]
        self._cut(sum(len(each.items) for each in standing) - 1)
        return last

    def _cut(self, keep: int) -> None:
        """Take all items but the first ``keep`` out of the history."""
        gone, rest, count = list[int](), tuple[Item, ...](), 0
        for batch in self._standing():
            count += len(batch.items)
            if count > keep:
                gone += batch.entries
                rest += batch.items[: max(0, len(batch.items) - (count - keep))]
        if not gone:
            return
        change: Mapping[str, Any] = {"op": "delete", "at": gone}
        note = {"first": self._session.fold.head + 1, "items": rest, "loose": True}
        self._change(change, NOTE, note if rest else None)
        self.follow()

    def _clear(self) -> None:
        if any(each.name == MAIN and not each.is_current for each in self.branches()):
            self.switch(MAIN)
        for each in self.branches():
            if each.name != MAIN:
                self.drop(each.name)
        told = [each.position for each in self.history() if isinstance(each.body, SystemPromptStep)]
        self.delete(told)
        self.reset()
        self.follow()

    # -- branches

    def items_on(self, branch: str | None = None) -> tuple[tuple[Item, float], ...]:
        """The items of a branch, of this one without a name, each with when it was written. Raises UnknownBranch."""
        with self._turn:
            self.follow()
            known = self.branches()
            if branch is None or any(each.name == branch and each.is_current for each in known):
                standing = self._standing()
            elif all(each.name != branch for each in known):
                raise UnknownBranch(branch, tuple(each.name for each in known))
            else:
                log: Log = self._run(_log_of(branch))
                standing = _unreplaced([_batch(each) for each in log.read() if _is_named(each, NOTE)])
            return tuple((item, each.time) for each in standing for item in each.items)

    def fork_at(self, keep: int, name: str | None) -> str:
        """A new branch with the first ``keep`` items, on which the session goes on; its name.

        Where these are whole batches, and nothing was edited since, it is forked there, else from here with the rest
        taken out. Raises ConfigurationError, LogError.
        """
        with self._turn:
            self.follow()
            count, at = 0, None
            for batch in self._standing():
                if count == keep and batch.replaces is None and batch.first > self._edited_at:
                    at = batch.first
                count += len(batch.items)
            made = self.fork(at, name)
            self.switch(made.name)
            self._write(lambda: self._cut(keep))
            return made.name

    def switch(self, branch: str) -> None:
        """See AgentMemory.switch."""
        with self._turn:
            super().switch(branch)
            self._batches, self._stand, self._learnt_to, self._edited_at = [], None, 0, -1
            self.follow()


def _log_of(branch: str) -> Flow[Log]:
    log: Log = yield from Asked("log", (branch,))
    return log


def _is_named(entry: Entry, name: str) -> bool:
    return isinstance(entry.body, Checkpoint) and entry.body.name == name


def _unreplaced(batches: Sequence[_Batch]) -> list[_Batch]:
    replaced = {each.replaces for each in batches}
    return [each for each in batches if each.note not in replaced]


def _batch(entry: Entry) -> _Batch:
    note: Mapping[str, Any] = json.loads(cast("Checkpoint", entry.body).state)
    items, replaces = tuple(note["items"]), note.get("replaces")
    return _Batch(note["first"], entry.position, items, replaces, note.get("loose", False), entry.at)
