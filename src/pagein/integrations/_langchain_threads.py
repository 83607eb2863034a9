"""The conversations of a LangChain agent or a LangGraph, each in a session of its own, and the tools over them.

The state of a graph decides what its model may see, and others edit it: a summary replaces messages, a user goes back to
an earlier checkpoint. The log only grows. So a conversation that no longer begins as it was recorded goes on in a new
session, ``thread#1`` and so on, and the old one stays as it was.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, cast

from pagein._common.retry import retry_on_conflict
from pagein.errors import ConfigurationError, Conflict, FormatError
from pagein.events.protocol import RESULT_PREFIX, erased_fingerprint, fingerprint, is_same_item
from pagein.events.steps import ActionStep, Step, SystemPromptStep, as_text
from pagein.formats.base import Item
from pagein.formats.langchain.wire import NAME, LangChain
from pagein.integrations._owners import OWNER_MARK, OwnedConversation, OwnerChoice, OwnerOf
from pagein.integrations._threads import HistoryTracker, OpenConversations, count_instructions, session_name
from pagein.integrations._tools import ToolChoice, ToolDefinition, offered_tools
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.erasure.redact import ERASED, redact
from pagein.memory.host_memory import runtime_of
from pagein.memory.options import Options
from pagein.tokens import TokenCounter

try:
    from langchain_core.tools import BaseTool, StructuredTool
    from langgraph.config import get_config
except ImportError as missing:
    raise ConfigurationError(
        "LangChain needs pip install 'pagein[langchain]', and a plain graph pip install 'pagein[langgraph]'"
    ) from missing

Source = str | os.PathLike[str] | AgentMemory
"""Where conversations are recorded: a store, with a session for each thread; or one memory, for one conversation."""

MAX_CONFLICTS = 8
"""Times that messages are recorded while other processes write to the thread."""

_COMPARED_FIELDS = (
    "type",
    "content",
    "tool_calls",
    "invalid_tool_calls",
    "tool_call_id",
    "status",
    "name",
    "additional_kwargs",
)

Record = tuple[Any, Any]
"""A recorded message, and the content it had then."""


@dataclass(slots=True)
class ThreadConversation:
    """An open memory, and the messages of the state that it has recorded."""

    memory: AgentMemory
    tracker: HistoryTracker = field(
        default_factory=lambda: HistoryTracker(is_same=_is_same_message, values_of=attrgetter("content"))
    )
    system: str | None = None
    counter: TokenCounter | None = None

    def new_messages(self, messages: Sequence[Any]) -> Sequence[Any] | None:
        """The messages behind the recorded ones, or None where the state is another conversation."""
        if self.tracker.has_same_objects(messages):
            return messages[len(self.tracker) :]
        count = next(self.tracker.recorded_counts(messages), None)
        return None if count is None else messages[count:]

    def record(self, messages: Sequence[Any]) -> None:
        """Write the messages durably, all or none."""
        if messages:
            self.memory.record_messages(list(messages), NAME, whole=False)
            self.add_recorded(messages)

    def add_recorded(self, messages: Sequence[Any]) -> None:
        """Note that these messages are recorded."""
        self.tracker.add(messages, ((message, message.content) for message in messages))

    def record_system(self, system: str | None) -> None:
        """Record the first instructions. Later ones, which may change each turn, go with their request alone."""
        if system is not None:
            self.memory.record(SystemPromptStep(system))
            self.system = system

    def view_rows(self, system: str | None, reserve: int = 0) -> list[dict[str, Any]]:
        """The view without instructions, in the tokens that this turn's instructions leave. Raises OverBudget."""
        if system != self.system:
            counter = self.counter = self.counter or self.memory.view().counter
            reserve += max(0, count_instructions(system, counter) - count_instructions(self.system, counter))
        rows = self.memory.to_messages(NAME, reserve=reserve)
        return rows[1:] if self.system is not None and rows and rows[0]["type"] == "system" else rows


def _is_same_message(message: Any, record: Record) -> bool:
    """True for messages that say the same: one read back from a checkpoint is another object."""
    other, content = record
    return (
        bool(message.content == content)
        and message.type.removesuffix("MessageChunk").lower() == other.type.removesuffix("MessageChunk").lower()
        and all(getattr(message, name, None) == getattr(other, name, None) for name in _COMPARED_FIELDS)
    )


@dataclass(slots=True)
class ThreadSessions:
    """The open conversations of a thread, and the number of sessions it has in the store.

    ``is_compared`` is False where they were opened for a tool, before any state was compared with them.
    """

    conversations: list[ThreadConversation] = field(default_factory=list)
    count: int = 0
    is_compared: bool = True


class Threads:
    """The conversations of one agent, by thread. Calls from several threads are serialized."""

    def __init__(self, source: Source, options: Options, tenant: str | OwnerOf = "") -> None:
        if isinstance(source, AgentMemory) and (options or tenant):
            raise ConfigurationError(f"{', '.join(options) or 'tenant'}: an open memory has its options already")
        self._source = source
        self._owners = OwnerChoice(tenant, options)
        self.options = options
        if isinstance(source, AgentMemory) and source.has_facts:
            self.options = Options(facts=True)
        self._open = OpenConversations[OwnedConversation, ThreadSessions]()
        self._lock = threading.RLock()
        if not isinstance(source, AgentMemory):
            self._scratch_memory().close()  # a bad option raises now

    def running(self, thread: str | None = None, config: Any = None) -> OwnedConversation:
        """The thread that runs now, or another one of its owner. Raises ConfigurationError where nobody is its owner."""
        if config is None:
            config = running_config()
        name = thread or str(config.get("configurable", {}).get("thread_id") or "default")
        return self._owners.conversation(name, config)

    def named(self, thread: str, owners: Mapping[str, str]) -> OwnedConversation:
        """A thread by its name and its owners. Raises ConfigurationError."""
        return self._owners.named_conversation(thread, owners)

    def using(self, thread: OwnedConversation) -> AbstractContextManager[None]:
        """Keep the memories of a thread open meanwhile, whatever other threads are opened."""
        return self._open.using(thread)

    def record(self, thread: OwnedConversation, messages: Sequence[Any], system: str | None) -> ThreadConversation:
        """Record the messages, and return the conversation of the thread that has them. Raises FormatError, LogError."""
        self._owners.check_marks(thread, (getattr(message, "response_metadata", None) for message in messages))
        with self._lock:
            return retry_on_conflict(lambda: self._record(thread, messages, system), attempts=MAX_CONFLICTS)

    def _record(self, thread: OwnedConversation, messages: Sequence[Any], system: str | None) -> ThreadConversation:
        sessions = self._open.get(thread)
        if sessions is None or not sessions.is_compared:
            self._close_thread(thread)
            sessions = self._open_thread(thread, messages)
        self._open.move_to_end(thread)
        longest_first = sorted(sessions.conversations, key=lambda conversation: -len(conversation.tracker))
        try:
            for conversation in longest_first:
                fresh = conversation.new_messages(messages) if conversation.tracker.records else None
                if fresh is not None:
                    conversation.record(fresh)
                    sessions.conversations.remove(conversation)
                    sessions.conversations.append(conversation)  # the newest is last
                    return conversation
            conversation = self._start_conversation(thread, sessions, system)
            conversation.record(messages)
        except Conflict:  # another process has the thread too: what it recorded may be what the state has
            self._close_thread(thread)
            raise
        return conversation

    def record_answer(
        self,
        thread: OwnedConversation,
        conversation: ThreadConversation,
        request: Sequence[Any],
        response: Sequence[Any],
    ) -> ThreadConversation:
        """Record the model's messages behind those of its request, marked as the owner's. Raises FormatError, LogError."""
        if mark := self._owners.mark(thread):
            for message in response:
                message.response_metadata[OWNER_MARK] = mark
        with self._lock:
            sessions = self._open.get(thread)
            is_open = sessions is not None and any(other is conversation for other in sessions.conversations)
            if not is_open or len(conversation.tracker) != len(request):
                return self.record(thread, [*request, *response], None)
            try:
                conversation.record(response)
            except Conflict:
                self._close_thread(thread)
                return self.record(thread, [*request, *response], None)
            return conversation

    def latest(self, thread: OwnedConversation) -> ThreadConversation | None:
        """The conversation of the thread that was used last, else the newest in the store; None where there is none."""
        with self._lock:
            sessions = self._open.get(thread) or self._open_thread(thread, None)
            self._open.move_to_end(thread)
            return sessions.conversations[-1] if sessions.conversations else None

    def view_unrecorded(self, messages: Sequence[Any], system: str | None) -> list[dict[str, Any]]:
        """A view of messages that are not the conversation's own, recorded nowhere. Raises OverBudget."""
        with self._scratch_memory() as memory:
            conversation = ThreadConversation(memory)
            conversation.record_system(system)
            conversation.record(messages)
            return conversation.view_rows(system)

    def close(self) -> None:
        """Close the opened memories; one that was handed in stays open."""
        with self._lock:
            for thread in list(self._open):
                self._close_thread(thread)

    def _scratch_memory(self) -> AgentMemory:
        source = self._source
        if isinstance(source, AgentMemory):
            return AgentMemory.open(":memory:", budget=source.budget, counter=source.view().counter)
        return AgentMemory.open(":memory:", **self._owners.options)

    def _open_thread(self, thread: OwnedConversation, messages: Sequence[Any] | None) -> ThreadSessions:
        """The thread as the store has it: of its sessions, the newest that the state goes on from, or the newest."""
        if isinstance(self._source, AgentMemory) and self._open:
            raise ConfigurationError(
                f"thread {thread.name!r}: the memory holds thread {next(iter(self._open)).name!r}. One memory is one "
                "conversation: pass the path of a store instead, where each thread has its own"
            )
        while (idle := self._open.first_to_close()) is not None:
            self._close_thread(idle)
        items = LangChain().parse(list(messages or ()))
        sessions = ThreadSessions(is_compared=messages is not None)
        newest: ThreadConversation | None = None
        while True:
            conversation = ThreadConversation(self._open_memory(thread, sessions.count))
            steps = conversation.memory.steps
            if not steps:
                self._close_memory(conversation)
                break
            sessions.count += 1
            count = 0 if messages is None else _count_recorded(conversation, steps, items)
            if count is None:
                self._close_memory(conversation)
            else:
                conversation.add_recorded((messages or ())[:count])
                self._close_memory(newest)
                newest = conversation
            if isinstance(self._source, AgentMemory):
                break
        sessions.conversations += [newest] if newest is not None else []
        self._open[thread] = sessions
        return sessions

    def _start_conversation(
        self, thread: OwnedConversation, sessions: ThreadSessions, system: str | None
    ) -> ThreadConversation:
        if isinstance(self._source, AgentMemory) and sessions.count:
            raise FormatError(
                "the state is not the conversation that this memory holds: it was edited, or another agent records "
                "here. Pass the path of a store instead: there, an edited conversation goes on in a session of its own"
            )
        conversation = ThreadConversation(self._open_memory(thread, sessions.count))
        sessions.count += 1
        while conversation.memory.steps:  # another agent was first
            self._close_memory(conversation)
            conversation = ThreadConversation(self._open_memory(thread, sessions.count))
            sessions.count += 1
        sessions.conversations.append(conversation)
        conversation.record_system(system)
        return conversation

    def _open_memory(self, thread: OwnedConversation, number: int) -> AgentMemory:
        if isinstance(self._source, AgentMemory):
            return self._source
        return AgentMemory.open(
            self._source,
            session=session_name(thread.session, number),
            tenant=thread.tenant,
            **self._owners.owner_options(thread),
        )

    def _close_thread(self, thread: OwnedConversation) -> None:
        for conversation in self._open.pop(thread, ThreadSessions()).conversations:
            self._close_memory(conversation)

    def _close_memory(self, conversation: ThreadConversation | None) -> None:
        if conversation is not None and conversation.memory is not self._source:
            conversation.memory.close()


class ThreadHolder:
    """Base of the objects that an application puts into a graph: gives the memories of its threads, and closes them."""

    _threads: Threads

    def memory(self, thread: str = "default", **owners: str) -> AgentMemory | None:
        """The memory of a thread, to look into; None where nothing was recorded. ``owners`` names those of the call."""
        conversation = self._threads.latest(self._threads.named(str(thread), owners))
        return None if conversation is None else conversation.memory

    def close(self) -> None:
        """Close the opened memories; one that was handed in stays open. The next request opens them again."""
        self._threads.close()


def _count_recorded(conversation: ThreadConversation, steps: Sequence[Step], items: Sequence[Item]) -> int | None:
    """Count the items that a recorded conversation has, or return None where it is another one.

    Instructions that the log alone has become the conversation's. A call without a result may stand in the log alone: the
    run ended before the state that had it was saved.
    """
    has_system = bool(items) and isinstance(items[0], SystemPromptStep)
    if isinstance(steps[0], SystemPromptStep) and not has_system:
        conversation.system, steps = as_text(steps[0].content), steps[1:]
    is_erased = any(entry.erased is not None for entry in runtime_of(conversation.memory).log.read())
    erased, at = ERASED if is_erased else None, 0
    for step in steps:
        mark, result_marks = _step_fingerprints(step, erased)
        if at >= len(items) or not is_same_item(mark, fingerprint(items[at])):
            if result_marks or not (isinstance(step, ActionStep) and step.tool_calls):
                return None
            continue
        end = at + 1 + len(result_marks)
        results = items[at + 1 : end]
        if not _are_same_results(result_marks, [fingerprint(item) for item in results]):
            return None
        at = end
    return at


def _step_fingerprints(step: Step, erased: str | None) -> tuple[bytes, list[bytes]]:
    """The fingerprint of a step, and those of the results its framework gave; of what was ``erased`` that of its kind."""
    observations = step.observations if isinstance(step, ActionStep) else ()
    bare = replace(step, observations=()) if isinstance(step, ActionStep) else step
    mark = fingerprint(step)
    if erased is not None and redact(bare) == bare:
        mark = erased_fingerprint(mark)
    results = (result for result in observations if result is not None and result.status != "unknown")
    marks = ((fingerprint(result), result.content == erased) for result in results)
    return mark, [erased_fingerprint(mark) if is_erased else mark for mark, is_erased in marks]


def _are_same_results(recorded: Sequence[bytes], marks: Sequence[bytes]) -> bool:
    """True for the same results in any order; an erased one is the same as any."""
    unknown = Counter(recorded) - Counter(marks)
    return len(recorded) == len(marks) and all(is_same_item(mark, RESULT_PREFIX) for mark in unknown)


def running_config() -> Mapping[str, Any]:
    """The config of the graph that runs now; empty outside of one."""
    try:
        return cast("Mapping[str, Any]", get_config())
    except RuntimeError:
        return {}


def memory_tools(threads: Threads, choice: ToolChoice) -> list[BaseTool]:
    """The tools a model is offered, over the conversation of the thread that calls them."""
    return [_make_tool(threads, definition) for definition in offered_tools(choice, threads.options)]


def _make_tool(threads: Threads, definition: ToolDefinition) -> BaseTool:
    name = definition["name"]

    def call_tool(**arguments: Any) -> str:
        thread = threads.running()
        with threads.using(thread):
            conversation = threads.latest(thread)
            return (
                "Nothing was recorded yet." if conversation is None else conversation.memory.call_tool(name, arguments)
            )

    return StructuredTool(
        name=name, description=definition["description"], args_schema=definition["parameters"], func=call_tool
    )
