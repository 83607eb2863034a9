"""PageinMemory: smolagents' AgentMemory, kept in a log, and its live list of steps."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self, SupportsIndex, Unpack

from smolagents import memory as smol
from smolagents.models import ChatMessage

from pagein._common.json_values import to_json_value
from pagein.context.view.layout import CONTINUE
from pagein.context.view.view import View
from pagein.errors import ConfigurationError
from pagein.events.messages import Message
from pagein.integrations._editable_history import EditableHistory
from pagein.integrations._tools import ToolChoice, offered_tools
from pagein.integrations.smolagents.chat_messages import ChatMessageRenderer
from pagein.integrations.smolagents.history import StepHistory
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import Options

_REQUEST_FIELDS = ("model_input_messages",)

_KNOWN_STEP_CLASSES = (smol.ActionStep, smol.PlanningStep, smol.TaskStep, smol.SystemPromptStep, smol.FinalAnswerStep)


class LiveSteps(list[Any]):
    """An agent's steps. Each change is recorded first; one that cannot be recorded is not made."""

    def __init__(
        self, steps: Iterable[Any], record: Callable[[list[Any]], None], lock: AbstractContextManager[object]
    ) -> None:
        super().__init__(steps)
        self._record = record
        self._lock = lock

    def _change(self, change: Callable[[list[Any]], Any]) -> Any:
        # One change at a time: two that begin with the same list would each undo the other's.
        with self._lock:
            steps = list(self)
            result = change(steps)
            self._record(steps)
            super().__setitem__(slice(None), steps)
            return result

    def detach(self) -> None:
        """Become an ordinary list: later changes are not recorded."""
        self._record = lambda _: None

    def __iadd__(self, steps: Iterable[Any]) -> Self:  # type: ignore[misc] # list.__add__ gives a list
        self.extend(steps)
        return self

    def __imul__(self, times: SupportsIndex) -> Self:
        self._change(lambda steps: steps.__imul__(times))
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy is a list: two that record would record everything twice.
        return (list, (list(self),))


def _recorded(name: str) -> Callable[..., Any]:
    """The method of a list that changes it, as ``LiveSteps`` has it."""
    method = getattr(list, name)

    @functools.wraps(method)
    def change(self: LiveSteps, *args: Any, **options: Any) -> Any:
        return self._change(lambda steps: method(steps, *args, **options))

    return change


for _name in ("append", "extend", "insert", "pop", "remove", "clear", "reverse", "sort", "__setitem__", "__delitem__"):
    setattr(LiveSteps, _name, _recorded(_name))


class PageinMemory(smol.AgentMemory):  # type: ignore[misc] # smolagents has no types
    """An agent's memory that is recorded whole, shown within a budget, and there again after a crash.

    ``PageinMemory.attach(agent, "run.db", budget=8_000)`` is the one line. ``steps`` is live: append to it, edit a step,
    delete one; each change is an entry of the log and destroys nothing. Raises PageinErrors only.
    """

    def __init__(
        self,
        system_prompt: str = "",
        url: str | os.PathLike[str] = ":memory:",
        *,
        session: str = "default",
        tenant: str = "",
        **options: Unpack[Options],
    ) -> None:
        """Open the memory of a session; what is recorded there is restored. See ``pagein.memory.options.Options``."""
        self._editable = EditableHistory.open(url, session=session, tenant=tenant, **options)
        self.agent: Any = None
        self._history = StepHistory(self._editable)
        self._renderer = ChatMessageRenderer(self._editable.memory.counter)
        self._limit, self._most_bytes = self.pages.budget.limit, self.pages.budget.bytes
        self._reserved = 0
        self._steps = self._live_steps(self._history.steps)
        if system_prompt:
            self._history.set_system_prompt(smol.SystemPromptStep(system_prompt))

    @classmethod
    def attach(
        cls,
        agent: Any,
        url: str | os.PathLike[str] = ":memory:",
        *,
        session: str = "default",
        tenant: str = "",
        expand: bool = True,
        tools: ToolChoice | None = None,
        managed: bool = False,
        **options: Unpack[Options],
    ) -> Self:
        """Give an agent a memory; from now on its model sees the budgeted view. What the session holds is restored.

        ``tools`` are the tools the model is offered, True or their names: recall, expand, pin, note, forget; remember and
        update with facts. ``expand=False`` offers none. ``managed`` gives each managed agent a memory of its own, in the
        session ``<session>/<its name>``. Without a budget it is the window of the agent's model less its reserves.
        Raises ConfigurationError for an agent that has a pagein memory already, LogError.
        """
        from pagein.integrations.smolagents.hooks import attach_memory, check_agent  # noqa: PLC0415 - loads with an agent

        check_agent(agent)
        definitions = offered_tools(expand if tools is None else tools, options)
        if "budget" not in options and isinstance(getattr(agent.model, "model_id", None), str):
            options.setdefault("model", agent.model.model_id)
        memory = cls("", url, session=session, tenant=tenant, **options)
        steps = list(agent.memory.steps)
        attach_memory(agent, memory, memory._history, definitions)
        memory.system_prompt = smol.SystemPromptStep(agent.system_prompt)
        memory.steps.extend(memory._history.new_steps(steps))
        if managed:
            for name, managed_agent in agent.managed_agents.items():
                cls.attach(
                    managed_agent,
                    url,
                    session=f"{session}/{name}",
                    tenant=tenant,
                    tools=[definition["name"] for definition in definitions],
                    managed=True,
                    **options,
                )
        return memory

    def detach(self) -> None:
        """Give the agent a memory of smolagents again, with the current steps. The record stays."""
        from pagein.integrations.smolagents.hooks import detach_memory  # noqa: PLC0415 - loads with an agent

        if self.agent is not None:
            detach_memory(self.agent, self)

    @property
    def pages(self) -> AgentMemory:
        """The memory of the session, to look into, pin and recall."""
        return self._editable.memory

    @property
    def system_prompt(self) -> smol.SystemPromptStep:
        """The instructions. Another one replaces them in every later view; the old ones stay recorded."""
        return self._history.system

    @system_prompt.setter
    def system_prompt(self, step: smol.SystemPromptStep) -> None:
        """See above."""
        self._history.set_system_prompt(step)

    @property
    def steps(self) -> LiveSteps:
        """The steps, live. Assigning a list records its new steps, and removes those that are not in it."""
        return self._steps

    @steps.setter
    def steps(self, steps: Sequence[Any]) -> None:
        """See above."""
        if steps is self._steps:
            return
        with self._history.lock:
            self._history.record_list(list(steps))
            self._steps.detach()
            self._steps = self._live_steps(steps)

    def reset(self) -> None:
        """Begin anew behind the system prompt. The record stays whole."""
        with self._history.lock:
            self._history.reset()
            self._steps.detach()
            self._steps = self._live_steps(())

    def get_succinct_steps(self) -> list[dict[str, Any]]:
        """The steps as JSON-safe values, without what the model was sent."""
        return [_step_fields(step, leave_out=_REQUEST_FIELDS) for step in self._steps]

    def get_full_steps(self) -> list[dict[str, Any]]:
        """The steps as JSON-safe values, pictures whole as PNG; what the model was sent names them by their hash."""
        return [_step_fields(step) for step in self._steps]

    # Called by the agent

    def write_memory_to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        """The view as smolagents' messages: never over budget, edits of steps included. Raises OverBudget.

        ``summary_mode`` leaves out the system prompt, plans and the model's prose, as smolagents does.
        """
        with self._history.lock:
            self._history.record_edits(self._steps)
        limit = self._limit - self._reserved
        is_inner = summary_mode or self._reserved > 0
        most = limit
        while True:
            max_tokens = max(1, most) if is_inner else None
            view = self._editable.memory.filtered_view(summary_mode=summary_mode, max_tokens=max_tokens)
            messages, tokens = self._renderer.to_chat_messages(_request_messages(view, is_inner=is_inner))
            if self._most_bytes is not None and (size := self._renderer.count_bytes()) > self._most_bytes:
                self._editable.reduce_budget(0, size - self._most_bytes)
                continue
            if tokens <= limit:
                self._editable.memory.note_request(view, summary_mode=summary_mode, max_tokens=max_tokens)
                return messages
            # smolagents' way to write a message costs more than was counted for it.
            if is_inner:
                most -= tokens - limit
            else:
                self._editable.reduce_budget(tokens - limit)

    def cost(self, messages: Sequence[ChatMessage]) -> int:
        """Tokens of smolagents messages, as the budget counts them; pictures not included."""
        return self._renderer.count_tokens(messages)

    def reserve(self, tokens: int) -> None:
        """Keep this much of the budget free for what the agent puts around the next requests; 0 ends it."""
        self._reserved = max(0, tokens)

    # Beyond smolagents

    def expand(self, handle: str) -> str:
        """The original behind a handle of the view, whole. Raises UnknownHandle."""
        return self.pages.expand(handle)

    def close(self) -> None:
        """Release the store; the agent's next step raises LogClosed."""
        self.pages.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        raise ConfigurationError("a pagein memory cannot be copied: attach another session to the copy of an agent")

    def _live_steps(self, steps: Iterable[Any]) -> LiveSteps:
        return LiveSteps(steps, self._history.record_list, self._history.lock)


def _request_messages(view: View, *, is_inner: bool) -> tuple[Message, ...]:
    """The messages of a view. Without a run they are its system prompts; an inner part of a request needs no last line."""
    messages = view.messages()
    if not view.front and not view.run:
        return tuple(message for entry in view.systems for message in entry.messages)
    is_closed = messages[-1] == Message("user", CONTINUE) and view.entries[-1].messages[-1] is not messages[-1]
    return messages[:-1] if is_inner and is_closed else messages


def _step_fields(step: Any, leave_out: Sequence[str] = ()) -> dict[str, Any]:
    """A step's fields as JSON-safe values, under smolagents' own keys."""
    if not isinstance(step, _KNOWN_STEP_CLASSES):
        return {key: value for key, value in to_json_value(step.dict()).items() if key not in leave_out}
    fields: dict[str, Any] = {}
    for name in (field.name for field in dataclasses.fields(step)):
        if name in leave_out:
            continue
        value = getattr(step, name)
        match name:
            case "tool_calls":
                fields[name] = [_call_fields(call) for call in value or ()]
            case "timing" | "error" if value is not None:
                fields[name] = to_json_value(value.dict())
            case "model_input_messages":
                fields[name] = None if value is None else to_json_value(value, pictures=False)
            case _:
                fields[name] = to_json_value(value)
    return fields


def _call_fields(call: Any) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": to_json_value(call.arguments)},
    }
