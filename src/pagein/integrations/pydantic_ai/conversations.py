"""The conversations of a pydantic-ai agent, each in a session of its own: what is new in its messages, and their view."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from pagein.formats.parsing import plain
from pagein.integrations.openai_agents.items import ItemMemory
from pagein.integrations.pydantic_ai.messages import NAME, to_items, to_rows
from pagein.memory.operations import load as flows
from pagein.memory.operations.ingest import Handed
from pagein.memory.operations.load import Recorded
from pagein.memory.options import Options

Row = dict[str, Any]

_SAID = ("part_kind", "content", "tool_name", "tool_call_id", "args", "signature")
"""The fields of a part that a model is sent; the framework fills others in as it goes."""

_FRAMING = 8


class MessageMemory(ItemMemory):
    """A memory of a conversation in pydantic-ai's messages, each given back as it came."""

    def _tell(self, rows: Sequence[Row]) -> Recorded:
        items = to_items(rows)
        given = Handed(NAME, rows, items, lambda start: to_items(rows[start:]))
        return self._run(flows.record(self._session, given, strict=False, whole=False))

    def rows(self) -> list[Row]:
        """The view as pydantic-ai's messages: within budget and legal. Raises OverBudget."""
        return to_rows(self.view().messages())


@dataclass(slots=True)
class Conversation:
    """An open memory, what it holds of the messages, and what it gave last in their place."""

    memory: MessageMemory
    said: list[Any] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    given: list[Any] = field(default_factory=list)
    counted: int = 0
    reserved: int = 0
    run: str | None = None
    """The run that spoke here last."""

    def has(self, messages: Sequence[Any]) -> bool:
        """Whether the messages begin with what is recorded: the very same objects, as they were when that was done."""
        return (
            0 < len(self.said) == len(self.marks)
            and len(messages) >= len(self.marks)
            and all(map(_is_unchanged, messages, self.marks))
        )

    def fresh(self, said: Sequence[Any]) -> int | None:
        """How many of the messages are recorded, or None where they are another conversation's.

        Messages that begin with what was given in place of others are that conversation too.
        """
        if list(said[: len(self.said)]) == self.said:
            return len(self.said)
        begun, since = len(self.given), self.said[self.counted :]
        if begun and list(said[:begun]) == self.given and list(said[begun : begun + len(since)]) == since:
            return begun + len(since)
        return None

    def record(self, messages: Sequence[Any], rows: Sequence[Row]) -> None:
        """Write the messages durably, all or none; ``rows`` is what they say."""
        if rows:
            self.memory.put_items(rows)
            if len(self.marks) == len(self.said):
                self.marks += map(mark, messages)
            self.said += map(spoken, rows)

    def view(self, instructions: str) -> list[Row]:
        """The view, with room for the instructions that are sent beside it. Raises OverBudget."""
        cost = self.memory.counter.text(instructions) + _FRAMING if instructions else 0
        if cost > self.reserved:
            self.memory.tighten(cost - self.reserved)
            self.reserved = cost
        rows = self.memory.rows()
        self.given, self.counted = [spoken(each) for each in rows], len(self.said)
        return rows


class Conversations:
    """The conversations in one store, by name. Calls from several threads take their turns.

    ``dump`` says messages as JSON-safe rows; it is asked for what is new, and for all only where something changed.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        tenant: str,
        options: Options,
        dump: Callable[[Sequence[Any]], list[Row]],
    ) -> None:
        self._url, self._tenant, self._options, self._dump = url, tenant, options, dump
        self._open: dict[str, list[Conversation]] = {}
        self._turn = threading.RLock()
        MessageMemory.open(":memory:", **options).close()  # a bad option is told now

    def at(self, name: str, messages: Sequence[Any], run: str | None = None) -> Conversation:
        """The conversation of that name that begins with these messages, all of them recorded in it.

        Messages that were edited go on in another session, ``name#1`` and so on. ``run`` is who speaks. Raises
        FormatError, LogError.
        """
        with self._turn:
            known = self._known(name)
            same = [each for each in known if each.has(messages)]
            if same:
                found = max(same, key=lambda each: len(each.said))
                fresh = messages[len(found.said) :]
                found.record(fresh, plain(self._dump(fresh), "messages"))
            else:
                found = self._compared(name, known, messages)
            known.remove(found)
            known.append(found)  # the one that spoke last
            found.run = run
            return found

    def answered(self, name: str, message: Any, run: str | None = None) -> None:
        """Record what the model said, in the conversation where its run spoke last."""
        with self._turn:
            self.latest(name, run).record([message], self._dump([message]))

    def _compared(self, name: str, known: list[Conversation], messages: Sequence[Any]) -> Conversation:
        """As ``at``, told by what the messages say."""
        rows: list[Row] = plain(self._dump(messages), "messages")
        said = [spoken(row) for row in rows]
        matches = [(each, begun) for each in known if (begun := each.fresh(said)) is not None]
        found, begun = max(matches, key=lambda pair: len(pair[0].said), default=(None, 0))
        if found is None:
            found = self._opened(name, len(known))
            known.append(found)
        if begun == len(found.said):
            found.marks = [mark(each) for each in messages[:begun]]
        found.record(messages[begun:], rows[begun:])
        return found

    def latest(self, name: str, run: str | None = None) -> Conversation:
        """The conversation of that name where the run spoke last, or anybody did, or the one in the store."""
        with self._turn:
            known = self._known(name)
            return next((each for each in reversed(known) if run is not None and each.run == run), known[-1])

    def close(self) -> None:
        """Release the store."""
        with self._turn:
            for each in (one for found in self._open.values() for one in found):
                each.memory.close()
            self._open.clear()

    def _known(self, name: str) -> list[Conversation]:
        known = self._open.get(name)
        if known is None:
            known = [self._opened(name, 0)]
            while known[-1].said:
                known.append(self._opened(name, len(known)))
            if len(known) > 1:
                known.pop().memory.close()
            self._open[name] = known
        return known

    def _opened(self, name: str, number: int) -> Conversation:
        session = name.replace("%", "%25").replace("#", "%23") + (f"#{number}" if number else "")
        memory = MessageMemory.open(self._url, session=session, tenant=self._tenant, **self._options)
        return Conversation(memory, [spoken(row) for row in memory.items()])


Mark = tuple[Any, tuple[tuple[Any, ...], ...]]
"""A message and what it held: the same objects while nobody edits it."""


def mark(message: Any) -> Mark:
    """The message as it is now. Cheap, since every turn looks at every message."""
    return message, tuple(map(_held, message.parts))


def _held(part: Any) -> tuple[Any, ...]:
    content = getattr(part, "content", None)
    within = tuple(content) if isinstance(content, list) else ()
    return (part, content, getattr(part, "args", None), *within)


def _is_unchanged(message: Any, known: Mark) -> bool:
    return message is known[0] and all(
        len(now) == len(then) and all(a is b for a, b in zip(now, then, strict=True))
        for now, then in zip_longest(map(_held, message.parts), known[1], fillvalue=())
    )


def spoken(row: Mapping[str, Any]) -> Any:
    """What a message says, without what the framework notes beside it."""
    parts = [
        {key: part.get(key) for key in _SAID if part.get(key) is not None} for part in row.get("parts", ())
    ]
    return row.get("kind"), parts
