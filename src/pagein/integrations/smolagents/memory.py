"""PageinMemory: smolagents' AgentMemory, kept in our log."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, Unpack

from smolagents import memory as theirs
from smolagents.models import ChatMessage

from pagein.context.view.layout import CONTINUE
from pagein.context.view.view import View
from pagein.errors import ConfigurationError
from pagein.events.messages import Message
from pagein.integrations._editable_history import EditedMemory
from pagein.integrations._json_values import plain
from pagein.integrations._tools import Chosen, offered
from pagein.integrations.smolagents.chat_messages import Speaker
from pagein.integrations.smolagents.history import History
from pagein.integrations.smolagents.steps import Steps
from pagein.memory.options import Options

_APART = ("model_input_messages",)

_KNOWN = (
    theirs.ActionStep,
    theirs.PlanningStep,
    theirs.TaskStep,
    theirs.SystemPromptStep,
    theirs.FinalAnswerStep,
)


class PageinMemory(theirs.AgentMemory):  # type: ignore[misc] # smolagents has no types
    """An agent's memory that is recorded whole, shown within a budget, and there again after a crash.

    ``PageinMemory.attach(agent, "run.db", budget=8_000)`` is the one line. ``steps`` is live: append to it, edit a step,
    delete one; each change is an entry of the log and destroys nothing. Raises errors of ours only.
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
        """The memory of a session; what is recorded there already is restored. See ``pagein.memory.agent_memory.Options``."""
        self.pages = EditedMemory.open(url, session=session, tenant=tenant, **options)
        self.agent: Any = None
        self._history = History(self.pages)
        self._speaker = Speaker(self.pages.counter)
        self._limit = self.pages.budget.limit
        self._reserved = 0
        self._steps = Steps(self._history.steps, self._history.follow, self._history.turn)
        if system_prompt:
            self.system_prompt = theirs.SystemPromptStep(system_prompt)

    @classmethod
    def attach(
        cls,
        agent: Any,
        url: str | os.PathLike[str] = ":memory:",
        *,
        session: str = "default",
        tenant: str = "",
        expand: bool = True,
        tools: Chosen | None = None,
        managed: bool = False,
        **options: Unpack[Options],
    ) -> Self:
        """Give an agent a memory; from now on its model sees the budgeted view. What the session holds is restored.

        ``tools`` says which tools the model is offered, True or their names: recall, expand, pin, note, forget; remember
        and update with facts. ``expand=False`` offers none. ``managed`` gives each managed agent a memory of its own, in the
        session ``<session>/<its name>``. Without a budget it is the window of the agent's model less its reserves.
        Raises ConfigurationError for an agent that has a memory of ours already, LogError.
        """
        from pagein.integrations.smolagents.hooks import check_agent, hook  # noqa: PLC0415 - hooks know this class

        check_agent(agent)
        chosen = offered(expand if tools is None else tools, options)
        if "budget" not in options and isinstance(getattr(agent.model, "model_id", None), str):
            options.setdefault("model", agent.model.model_id)
        memory = cls("", url, session=session, tenant=tenant, **options)
        kept = list(agent.memory.steps)
        hook(agent, memory, chosen)
        memory.system_prompt = theirs.SystemPromptStep(agent.system_prompt)
        memory.steps.extend(kept)
        if managed:
            for name, each in agent.managed_agents.items():
                cls.attach(
                    each,
                    url,
                    session=f"{session}/{name}",
                    tenant=tenant,
                    tools=[each["name"] for each in chosen],
                    managed=True,
                    **options,
                )
        return memory

    def detach(self) -> None:
        """Give the agent a memory of smolagents again, with the steps there are. The record stays."""
        from pagein.integrations.smolagents.hooks import unhook  # noqa: PLC0415 - hooks know this class

        if self.agent is not None:
            unhook(self.agent, self)

    @property
    def system_prompt(self) -> theirs.SystemPromptStep:
        """The standing instructions. Another one replaces it in every view from now on; the old one stays recorded."""
        return self._history.system

    @system_prompt.setter
    def system_prompt(self, step: theirs.SystemPromptStep) -> None:
        """See above."""
        self._history.stand(step)

    @property
    def steps(self) -> Steps:
        """The steps, live. Assigning a list records what is new in it and takes out what is not in it."""
        return self._steps

    @steps.setter
    def steps(self, steps: Sequence[Any]) -> None:
        """See above."""
        if steps is self._steps:
            return
        with self._history.turn:
            self._history.follow(list(steps))
            self._steps.let_go()
            self._steps = Steps(steps, self._history.follow, self._history.turn)

    def reset(self) -> None:
        """Begin anew behind the system prompt. What was recorded stays in the record."""
        with self._history.turn:
            self._history.begin()
            self._steps.let_go()
            self._steps = Steps((), self._history.follow, self._history.turn)

    def get_succinct_steps(self) -> list[dict[str, Any]]:
        """The steps as JSON-safe values, without what the model was sent."""
        return [_fields(step, apart=_APART) for step in self._steps]

    def get_full_steps(self) -> list[dict[str, Any]]:
        """The steps as JSON-safe values, pictures whole as PNG; what the model was sent names them by their hash."""
        return [_fields(step) for step in self._steps]

    # What the agent asks for

    def write_memory_to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        """The view as smolagents' messages: never over budget, edits of steps included. Raises OverBudget.

        ``summary_mode`` leaves out the system prompt, plans and the model's prose, as smolagents does.
        """
        with self._history.turn:
            self._history.look(self._steps)
        limit = self._limit - self._reserved
        apart = summary_mode or self._reserved > 0
        room = limit
        while True:
            view = self.pages.shown(summary_mode=summary_mode, room=room if apart else None)
            messages, tokens = self._speaker.say(_requested(view, apart=apart))
            if tokens <= limit:
                return messages
            # What smolagents says a thing with costs more here than was counted for it.
            if apart:
                room -= tokens - limit
            else:
                self.pages.tighten(tokens - limit)

    def cost(self, messages: Sequence[ChatMessage]) -> int:
        """Tokens of messages of smolagents, as the budget counts them; pictures not included."""
        return self._speaker.cost(messages)

    def reserve(self, tokens: int) -> None:
        """Keep this much of the budget free for what the agent puts around the next requests; 0 ends it."""
        self._reserved = max(0, tokens)

    # What the hooks tell

    def acting(self, step: theirs.ActionStep, calls: Sequence[Any]) -> None:
        """The model has spoken and these calls are about to run: recorded before they do."""
        self._history.act(step, calls)

    def answered(
        self, step: theirs.ActionStep, index: int, text: str | None, error: BaseException | None
    ) -> None:
        """A call has ended: its answer is recorded as it comes, in any order."""
        self._history.answer(step, index, text, error)

    # Beyond smolagents

    def expand(self, handle: str) -> str:
        """The original behind a handle of the view, whole. Raises UnknownHandle."""
        return self.pages.expand(handle)

    def close(self) -> None:
        """Release the store; the agent's next step raises LogClosed."""
        self.pages.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        raise ConfigurationError(
            "a memory of ours is one record: attach another session to the copy of an agent"
        )


def _requested(view: View, *, apart: bool) -> tuple[Message, ...]:
    """The messages of a view; legal ends are needed only where there is a run, and no words of the agent around it."""
    whole = view.messages()
    if not view.kept and not view.run:
        return tuple(message for each in view.systems for message in each.messages)
    is_closed = whole[-1] == Message("user", CONTINUE) and view.entries[-1].messages[-1] is not whole[-1]
    return whole[:-1] if apart and is_closed else whole


def _fields(step: Any, apart: Sequence[str] = ()) -> dict[str, Any]:
    """A step's fields as JSON-safe values, under smolagents' own keys."""
    if not isinstance(step, _KNOWN):
        return {key: value for key, value in plain(step.dict()).items() if key not in apart}
    found: dict[str, Any] = {}
    for each in dataclasses.fields(step):
        if each.name in apart:
            continue
        value = getattr(step, each.name)
        match each.name:
            case "tool_calls":
                found[each.name] = [_call(call) for call in value or ()]
            case "timing" | "error" if value is not None:
                found[each.name] = plain(value.dict())
            case "model_input_messages":
                found[each.name] = None if value is None else plain(value, pictures=False)
            case _:
                found[each.name] = plain(value)
    return found


def _call(call: Any) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": plain(call.arguments)},
    }
