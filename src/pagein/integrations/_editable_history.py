"""A run that its host edits: resets, deletions and edits are entries too, and what they hide stays in the record.

Frameworks let a user change an agent's history as a list. Each change is an entry of the log; ``EditedLog`` reads as
the history stands after them, at the positions that were always there, so that handles keep their meaning. The log
beneath, opened by itself, still has every word.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any, Unpack

from pagein.context.view.view import View
from pagein.errors import BudgetError, OverBudget, ProtocolError
from pagein.events.entries import Body, Checkpoint, Compaction, Observed, Pin, Unpin
from pagein.events.steps import Observation, Step, SystemPromptStep
from pagein.log.base import Entry, Log, Verification
from pagein.log.codec import decode, encode
from pagein.memory._effects import Effect
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.branches import Asked, Moved
from pagein.memory.operations import load as flows
from pagein.memory.operations import view as paging
from pagein.memory.options import Options
from pagein.tokens import TokenCounter

EDIT = "host:edit"
"""The name of the checkpoints that change history."""

HIDDEN = Checkpoint("host:hidden")
"""What stands where something was taken out of the history: nothing that is shown."""

Note = Callable[[int], Mapping[str, Any]]
"""From the position of the first step that is written to what is noted beside it, as JSON-safe values."""


class EditedLog:
    """A log as it reads after the edits in it. With none, it is the log beneath.

    A compaction that covered something edited is hidden with those after it, since they were made of another history.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._floor = 0
        self._kept: set[int] = set()
        self._hidden: set[int] = set()
        self._instead: dict[int, Body] = {}
        self._seen: dict[int, list[int]] = {}
        self._compactions: list[tuple[int, int, int]] = []
        self._beside: tuple[str, Note] | None = None
        self._learned = 0
        for entry in log.read():
            self._learn(entry)

    @property
    def readonly(self) -> bool:
        """True where nothing may be written."""
        return bool(getattr(self._log, "readonly", False))

    def head(self) -> int:
        """See Log.head."""
        return self._log.head()

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        """See Log.append; what ``beside`` asked for is written with the bodies, all or none."""
        whole = tuple(bodies)
        if self._beside is not None:
            name, note = self._beside
            first = next((i for i, each in enumerate(whole) if isinstance(each, Step)), len(whole))
            whole = (*whole, Checkpoint(name, _json(note(after + first))))
        entries = self._log.append(whole, after=after, at=at)
        self._beside = None
        return tuple(map(self._as_it_stands, self._learned_from(entries)))

    def beside(self, name: str, note: Note | None) -> None:
        """Write a checkpoint of this name with the next bodies; None takes the wish back."""
        self._beside = None if note is None else (name, note)

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries ``[start, stop)``, each as it stands after the edits."""
        # What is hidden may be told only by an entry behind it, so all are learned before the first is given.
        return map(self._as_it_stands, self._learned_from(tuple(self._log.read(start, stop))))

    def verify(self) -> Verification:
        """See Log.verify: the record beneath."""
        return self._log.verify()

    def close(self) -> None:
        """See Log.close."""
        self._log.close()

    def is_hidden(self, position: int) -> bool:
        """True where what stands at a position was taken out of the history."""
        return position in self._hidden or (position < self._floor and position not in self._kept)

    def _as_it_stands(self, entry: Entry) -> Entry:
        position = entry.position
        if self.is_hidden(position):
            return Entry(position, entry.at, HIDDEN, entry.digest)
        body = self._instead.get(position)
        return entry if body is None else Entry(position, entry.at, body, entry.digest)

    def _learned_from(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        for entry in entries:
            if entry.position >= self._learned:
                self._learn(entry)
        return entries

    def _learn(self, entry: Entry) -> None:
        position = entry.position
        self._learned = position + 1
        match entry.body:
            case SystemPromptStep() | Pin() | Unpin():
                self._kept.add(position)
            case Observed(action=action):
                self._seen.setdefault(action, []).append(position)
                if action in self._instead or (action >= 0 and self.is_hidden(action)):
                    self._hidden.add(position)
            case Compaction() as body:
                self._compactions.append((position, body.first, body.last))
            case Checkpoint(name=name, state=state) if name == EDIT:
                self._edit(position, json.loads(state))
            case _:
                pass

    def _edit(self, position: int, change: dict[str, Any]) -> None:
        if change["op"] == "reset":
            self._floor = position
            return
        for at in change["at"]:
            self._recompact(at)
            self._hidden.update(self._seen.get(at, ()))
            if change["op"] == "delete":
                self._hidden.add(at)
                self._instead.pop(at, None)
            else:
                self._instead[at] = _body(change["body"])

    def _recompact(self, at: int) -> None:
        touched = next(
            (i for i, (_, first, last) in enumerate(self._compactions) if first <= at < last),
            len(self._compactions),
        )
        self._hidden.update(position for position, _, _ in self._compactions[touched:])
        del self._compactions[touched:]


class EditedMemory(AgentMemory):
    """An AgentMemory whose history its host may edit. ``put``, ``edit``, ``delete`` and ``reset`` are entries."""

    def __init__(self, log: Log, **options: Unpack[Options]) -> None:
        self._edited = EditedLog(log)
        super().__init__(self._edited, **options)

    @property
    def counter(self) -> TokenCounter:
        """What its tokens are counted by."""
        return self._session.counter

    def put(self, items: Sequence[Step | Observation], name: str, note: Note) -> int:
        """Record the items and a note of ours about them, all or none; gives the position of the first step.

        With no items the note stands alone, and its own position is given. Raises ProtocolError, LogError.
        """
        where: list[int] = []

        def noted(first: int) -> Mapping[str, Any]:
            where.append(first)
            return note(first)

        with self._turn:
            self._edited.beside(name, noted)
            try:
                if items:
                    self.record(*items)
                else:
                    self._append()
            finally:
                self._edited.beside(name, None)
        return where[-1]

    def _branched(self, effect: Effect[Any]) -> Any:
        """A branch reads as it stands after the edits on it, too."""
        given = super()._branched(effect)
        if isinstance(effect, Asked) and effect.verb == "log":
            return EditedLog(given)
        if isinstance(effect, Moved) and isinstance(effect.log, EditedLog):
            self._edited = effect.log
        return given

    def answered(self, position: int) -> bool:
        """True where no call of the action at a position is open any more."""
        return all(action != position for action, _ in self._session.fold.open)

    def edit(self, position: int, step: Step, name: str, note: Mapping[str, Any]) -> None:
        """From now on the step at the position reads as this one; the one recorded stays in the record."""
        self._change({"op": "edit", "at": [position], "body": _stored(step)}, name, note)

    def delete(self, positions: Sequence[int]) -> None:
        """From now on nothing stands at these positions; what was recorded there stays in the record."""
        if positions:
            self._change({"op": "delete", "at": list(positions)})

    def reset(self) -> None:
        """From now on the history starts here, behind the system prompts and the pins."""
        self._change({"op": "reset"})

    def history(self) -> tuple[Entry, ...]:
        """Every entry as it stands after the edits."""
        with self._turn:
            return tuple(self._edited.read())

    def is_hidden(self, position: int) -> bool:
        """True where what stands at a position was taken out of the history."""
        return self._edited.is_hidden(position)

    def shown(self, *, summary_mode: bool = False, room: int | None = None) -> View:
        """The view, or within ``room`` tokens or in summary mode another look at it, which records nothing."""
        return self._run(
            paging.shown(self._session, summary_mode, None, None if room is None else max(1, room))
        )

    def tighten(self, tokens: int) -> None:
        """Hold every view from now on to so many tokens less. Raises OverBudget when nothing is left."""
        budget = self._session.budget
        try:
            self._session.budget = replace(budget, window=budget.window - ceil(tokens / (1 - budget.margin)))
        except BudgetError:
            raise OverBudget(budget.limit + tokens, budget.limit, ()) from None

    def _append(self, *bodies: Body) -> None:
        self._check_open()
        self._edited.append(bodies, after=self._session.fold.head, at=self._clock())
        self._run(flows.catch_up(self._session))

    def _change(
        self, change: Mapping[str, Any], name: str = "", note: Mapping[str, Any] | None = None
    ) -> None:
        if change["op"] != "reset" and any(not 0 <= at < self._session.fold.head for at in change["at"]):
            raise ProtocolError(f"there is nothing to change at {change['at']}. Nothing was recorded.")
        bodies = [Checkpoint(EDIT, _json(change))]
        if note is not None:
            bodies.append(Checkpoint(name, _json(note)))
        with self._turn:
            self._append_and_fold(bodies)

    def _append_and_fold(self, bodies: Sequence[Body]) -> None:
        self._check_open()
        self._edited.append(bodies, after=self._session.fold.head, at=self._clock())
        self._run(flows.load(self._session))
        # What was taken out is not found any more: the index is built anew from what stands, when it is next asked.
        archive = self._library._archive  # noqa: SLF001 - it has no verb for history that changed
        if archive is not None:
            archive.clear()


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _stored(step: Step) -> dict[str, Any]:
    record = encode(step)
    blobs = {blob.name: base64.b64encode(blob.data).decode() for blob in record.blobs}
    return {
        "kind": record.kind,
        "version": record.version,
        "json": record.body.decode("utf-8"),
        "blobs": blobs,
    }


def _body(stored: Mapping[str, Any]) -> Body:
    blobs: Mapping[str, str] = stored["blobs"]
    return decode(
        stored["kind"],
        stored["version"],
        stored["json"].encode("utf-8"),
        lambda name: base64.b64decode(blobs[name]),
    )
