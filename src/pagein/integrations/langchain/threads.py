"""The conversations of a LangChain agent, each in a session of its own: what is new in its state, and the view of it.

The state of a graph is the truth about what its model may see, and others edit it: a summary replaces messages, a
user goes back to an earlier checkpoint. The log only grows. So a conversation that no longer begins as it was recorded
goes on in a new session, ``thread#1`` and so on, and the old one stays as it was.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter, is_
from typing import Any

from pagein.errors import ConfigurationError, FormatError
from pagein.events.steps import ActionStep, Step, SystemPromptStep, as_text
from pagein.formats.base import Item
from pagein.formats.langchain.wire import NAME, LangChain
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.operations.ingest import fingerprint
from pagein.memory.options import Options

Source = str | os.PathLike[str] | AgentMemory
"""Where conversations are recorded: a store, with a session for each thread; or one memory, for one conversation."""

OPEN = 64
"""How many conversations are held open; the one that rested longest is closed, and opened again when it goes on."""

_FRAMING = 8
_CONTENT = attrgetter("content")
_SAID = (
    "type",
    "content",
    "tool_calls",
    "invalid_tool_calls",
    "tool_call_id",
    "status",
    "name",
    "additional_kwargs",
)


@dataclass(slots=True)
class Conversation:
    """An open memory and the messages of the state that it holds, as they were when they were recorded."""

    memory: AgentMemory
    seen: list[Any] = field(default_factory=list)
    contents: list[Any] = field(default_factory=list)
    system: str | None = None

    def fresh(self, messages: Sequence[Any]) -> Sequence[Any] | None:
        """The messages behind those that are recorded, or None where the state is not that conversation."""
        if len(messages) < len(self.seen):
            return None
        said, contents = self.seen, self.contents
        # All of them each turn, as any may have been edited: nearly always they are the very same.
        if not (all(map(is_, said, messages)) and all(map(is_, contents, map(_CONTENT, messages)))):
            for message, content, given in zip(said, contents, messages, strict=False):
                if (given is not message or given.content is not content) and not _same(
                    given, message, content
                ):
                    return None
        return messages[len(said) :]

    def record(self, messages: Sequence[Any]) -> None:
        """Write the messages durably, all or none."""
        if messages:
            self.memory.record_messages([_storable(each) for each in messages], NAME, whole=False)
            self.heard(messages)

    def heard(self, messages: Sequence[Any]) -> None:
        """Keep in mind that these are recorded."""
        self.seen += messages
        self.contents += map(_CONTENT, messages)

    def instruct(self, system: str | None) -> None:
        """Record the first instructions. Later ones, which may be others each turn, go with their request alone."""
        if system is not None:
            self.memory.record(SystemPromptStep(system))
            self.system = system

    def rows(self, system: str | None, reserve: int = 0) -> list[dict[str, Any]]:
        """The view, without the instructions, in the room that the instructions of this turn leave. Raises OverBudget."""
        limit, more = None, reserve
        if system != self.system:
            counter = self.memory.view().counter
            more += max(0, _cost(system, counter) - _cost(self.system, counter))
        if more:
            limit = max(1, self.memory.budget.limit - more)
        rows = self.memory.to_messages(NAME, max_tokens=limit)
        return rows[1:] if self.system is not None and rows and rows[0]["type"] == "system" else rows


def _cost(text: str | None, counter: Any) -> int:
    return 0 if text is None else counter.text(text) + _FRAMING


def _same(given: Any, message: Any, content: Any) -> bool:
    """Whether two messages say the same: one read back from a checkpoint is another object."""
    return (
        bool(given.content == content)
        and given.type.removesuffix("MessageChunk").lower()
        == message.type.removesuffix("MessageChunk").lower()
        and all(getattr(given, name, None) == getattr(message, name, None) for name in _SAID)
    )


def _storable(message: Any) -> Any:
    """The message, without an artifact that is no JSON: the graph's state has it, and no model is sent it."""
    artifact = getattr(message, "artifact", None)
    if artifact is None:
        return message
    try:
        json.dumps(artifact, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return message.model_copy(update={"artifact": {"not recorded": type(artifact).__name__}})
    return message


@dataclass(slots=True)
class _Thread:
    """The conversations of a thread that are open, and how many sessions it has in the store."""

    conversations: list[Conversation] = field(default_factory=list)
    sessions: int = 0


class Threads:
    """The conversations of one agent, by thread. Calls from several threads take their turns."""

    def __init__(self, source: Source, options: Options) -> None:
        if isinstance(source, AgentMemory) and options:
            raise ConfigurationError(f"{', '.join(options)}: an open memory has its options already")
        self._source = source
        self.options = options
        if isinstance(source, AgentMemory) and source._session.has_facts:  # noqa: SLF001 - it has no verb that tells
            self.options = Options(facts=True)
        self._open: OrderedDict[str, _Thread] = OrderedDict()
        self._turn = threading.RLock()
        if not isinstance(source, AgentMemory):
            self._scratch().close()  # a bad option is told now

    def at(self, thread: str, messages: Sequence[Any], system: str | None) -> Conversation:
        """The conversation of a thread with everything in the messages recorded. Raises FormatError, LogError."""
        with self._turn:
            known = self._open.get(thread) or self._opened(thread, messages)
            self._open.move_to_end(thread)
            for found in sorted(known.conversations, key=lambda each: -len(each.seen)):
                fresh = found.fresh(messages) if found.seen else None
                if fresh is not None:
                    found.record(fresh)
                    known.conversations.remove(found)
                    known.conversations.append(found)  # the one that spoke last
                    return found
            begun = self._begun(thread, known, system)
            begun.record(messages)
            return begun

    def answered(
        self, thread: str, found: Conversation, asked: Sequence[Any], said: Sequence[Any]
    ) -> Conversation:
        """The conversation with what the model said to the messages it was asked with. Raises FormatError, LogError."""
        with self._turn:
            known = self._open.get(thread)
            is_open = known is not None and any(each is found for each in known.conversations)
            if not is_open or len(found.seen) != len(asked):
                return self.at(thread, [*asked, *said], None)
            found.record(said)
            return found

    def latest(self, thread: str) -> Conversation | None:
        """The conversation of the thread that spoke last, where one is open."""
        with self._turn:
            known = self._open.get(thread)
            return known.conversations[-1] if known and known.conversations else None

    def apart(self, messages: Sequence[Any], system: str | None) -> list[dict[str, Any]]:
        """A view of messages that are not the conversation's own, recorded nowhere. Raises OverBudget."""
        with self._scratch() as memory:
            passing = Conversation(memory)
            passing.instruct(system)
            passing.record(messages)
            return passing.rows(system)

    def close(self) -> None:
        """Close what this opened; a memory handed in stays open."""
        with self._turn:
            for thread in list(self._open):
                self._forget(thread)

    def _scratch(self) -> AgentMemory:
        source = self._source
        if isinstance(source, AgentMemory):
            return AgentMemory.open(":memory:", budget=source.budget, counter=source.view().counter)
        return AgentMemory.open(":memory:", **self.options)

    def _opened(self, thread: str, messages: Sequence[Any]) -> _Thread:
        """The thread as the store has it: of its sessions, the newest that the state goes on from."""
        if isinstance(self._source, AgentMemory) and self._open:
            raise ConfigurationError(
                f"thread {thread!r}: the memory holds thread {next(iter(self._open))!r}. One memory is one "
                "conversation: hand over the path of a store instead, where each thread has its own"
            )
        while len(self._open) >= OPEN:
            self._forget(next(iter(self._open)))
        items = LangChain().parse([_storable(each) for each in messages])
        known = _Thread()
        aligned: Conversation | None = None
        while True:
            held = Conversation(self._memory(thread, known.sessions))
            steps = held.memory.steps
            count = _aligned(held, steps, items) if steps else None
            if count is not None:
                held.heard(messages[:count])
            for gone in (aligned,) if count is not None else (held,):
                self._let_go(gone)
            aligned = aligned if count is None else held
            known.sessions += bool(steps)
            if not steps or isinstance(self._source, AgentMemory):
                break
        known.conversations += [aligned] if aligned is not None else []
        self._open[thread] = known
        return known

    def _begun(self, thread: str, known: _Thread, system: str | None) -> Conversation:
        if isinstance(self._source, AgentMemory) and known.sessions:
            raise FormatError(
                "the state is not the conversation that this memory holds: it was edited, or another agent records "
                "here. Hand over the path of a store instead: there, what was edited goes on in a session of its own"
            )
        begun = Conversation(self._memory(thread, known.sessions))
        known.sessions += 1
        while begun.memory.steps:  # another agent was first
            self._let_go(begun)
            begun = Conversation(self._memory(thread, known.sessions))
            known.sessions += 1
        known.conversations.append(begun)
        begun.instruct(system)
        return begun

    def _memory(self, thread: str, number: int) -> AgentMemory:
        if isinstance(self._source, AgentMemory):
            return self._source
        name = thread.replace("%", "%25").replace("#", "%23") + (f"#{number}" if number else "")
        return AgentMemory.open(self._source, session=name, **self.options)

    def _forget(self, thread: str) -> None:
        for each in self._open.pop(thread, _Thread()).conversations:
            self._let_go(each)

    def _let_go(self, found: Conversation | None) -> None:
        if found is not None and found.memory is not self._source:
            found.memory.close()


def _aligned(found: Conversation, steps: Sequence[Step], items: Sequence[Item]) -> int | None:
    """How many of the items a recorded conversation holds, or None where it is another.

    A call without a result may stand in the log alone: the run ended before the state that had it was saved.
    """
    begins_alike = bool(items) and isinstance(items[0], SystemPromptStep)
    if steps and isinstance(steps[0], SystemPromptStep) and not begins_alike:
        found.system, steps = as_text(steps[0].content), steps[1:]
    at = 0
    for step in steps:
        said, results = _heard(step)
        if at >= len(items) or fingerprint(items[at]) != said:
            if results or not (isinstance(step, ActionStep) and step.tool_calls):
                return None
            continue
        end = at + 1 + len(results)
        answers = items[at + 1 : end]
        if len(answers) < len(results) or sorted(map(fingerprint, answers)) != results:
            return None
        at = end
    return at


def _heard(step: Step) -> tuple[bytes, list[bytes]]:
    """What a host said of one step, and the results it gave, in an order of their own."""
    seen = step.observations if isinstance(step, ActionStep) else ()
    told = (each for each in seen if each is not None and each.status != "unknown")
    return fingerprint(step), sorted(map(fingerprint, told))
