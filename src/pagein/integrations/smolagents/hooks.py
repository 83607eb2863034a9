"""What an agent does otherwise when it has a memory of ours: five of its methods, replaced on this one agent.

Its view comes from us; its calls are recorded before they run and answered as they end; room is kept for what it puts
around the view when it plans and when it has to answer at its last step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from smolagents import CodeAgent, MultiStepAgent
from smolagents import memory as theirs
from smolagents.agents import populate_template
from smolagents.models import ChatMessage, MessageRole

from pagein.errors import ConfigurationError
from pagein.integrations._tools import Definition
from pagein.integrations.smolagents.tools import MemoryTool

HOOKED = (
    "write_memory_to_messages",
    "_step_stream",
    "process_tool_calls",
    "execute_tool_call",
    "_generate_planning_step",
    "provide_final_answer",
)


def check_agent(agent: Any) -> None:
    """Raises ConfigurationError for what is no agent of smolagents, or has a memory of ours."""
    if not isinstance(agent, MultiStepAgent):
        raise ConfigurationError(
            f"attach() takes a CodeAgent or a ToolCallingAgent, not {type(agent).__name__}"
        )
    if getattr(agent.memory, "agent", None) is agent:
        raise ConfigurationError("this agent has a memory of pagein already: agent.memory.detach() first")


def hook(agent: Any, memory: Any, tools: Sequence[Definition]) -> None:
    """Make the agent use the memory, and offer its model these tools; one of the agent's own of that name stays.

    Raises ConfigurationError for a memory that another agent has.
    """
    if memory.agent is not None:
        raise ConfigurationError(
            "this memory is another agent's: give each agent its own, of one file, by session='...'"
        )
    for each in tools:
        agent.tools.setdefault(each["name"], MemoryTool(memory, each))
    memory.agent = agent
    agent.memory = memory
    hooks = _Hooks(agent, memory)
    agent.write_memory_to_messages = memory.write_memory_to_messages
    agent.provide_final_answer = hooks.final_answer(agent.provide_final_answer)
    agent._generate_planning_step = hooks.planning(agent._generate_planning_step)  # noqa: SLF001 - no public place
    if isinstance(agent, CodeAgent):
        agent._step_stream = hooks.code(agent._step_stream)  # noqa: SLF001 - no public place
    elif hasattr(agent, "process_tool_calls"):
        agent.process_tool_calls = hooks.calls(agent.process_tool_calls)
        agent.execute_tool_call = hooks.execution(agent.execute_tool_call)


def unhook(agent: Any, memory: Any) -> None:
    """Make the agent what it was, with a memory of smolagents that has the steps there are."""
    for name in HOOKED:
        agent.__dict__.pop(name, None)
    for name in [name for name, tool in agent.tools.items() if isinstance(tool, MemoryTool)]:
        del agent.tools[name]
    plain = theirs.AgentMemory(agent.system_prompt)
    plain.steps = list(memory.steps)
    agent.memory = plain
    memory.agent = None


class _Hooks:
    def __init__(self, agent: Any, memory: Any) -> None:
        self._agent = agent
        self._memory = memory
        self._turn = threading.Lock()
        self._running: tuple[Any, list[tuple[str, Any]]] | None = None

    # The calls of a step

    def code(self, stream: Callable[..., Any]) -> Callable[..., Any]:
        """The stream of a CodeAgent's step: its one call is recorded before the code runs."""

        def step_stream(memory_step: Any) -> Generator[Any, None, None]:
            for output in stream(memory_step):
                if isinstance(output, theirs.ToolCall):
                    self._memory.acting(memory_step, (output,))
                yield output

        return step_stream

    def calls(self, process: Callable[..., Any]) -> Callable[..., Any]:
        """The calls of a ToolCallingAgent's step: recorded before they run, in the model's order, none lost."""

        def process_tool_calls(chat_message: Any, memory_step: Any) -> Generator[Any, None, None]:
            _with_own_ids(chat_message.tool_calls, len(self._memory.steps))
            calls = [
                theirs.ToolCall(c.function.name, c.function.arguments, c.id) for c in chat_message.tool_calls
            ]
            if calls:
                self._memory.acting(memory_step, calls)
            # A managed agent's calls run within one of these: each level has its own.
            before, self._running = self._running, (memory_step, [(c.name, c.arguments) for c in calls])
            try:
                yield from process(chat_message, memory_step)
            finally:
                self._running = before
                if memory_step.tool_calls is None:
                    memory_step.tool_calls = calls

        return process_tool_calls

    def execution(self, execute: Callable[..., Any]) -> Callable[..., Any]:
        """One call of a ToolCallingAgent: its answer is recorded when it ends, its error as its own."""

        def execute_tool_call(tool_name: str, arguments: Any) -> Any:
            running, index = self._take(tool_name, arguments)
            try:
                result = execute(tool_name, arguments)
            except Exception as error:
                if running is not None:
                    self._memory.answered(running, index, None, error)
                raise
            if running is not None:
                self._memory.answered(running, index, _observation(result), None)
            return result

        return execute_tool_call

    def _take(self, name: str, arguments: Any) -> tuple[Any, int]:
        """Which call of the running step this is: the first of its name and arguments that was not taken yet."""
        with self._turn:
            if self._running is None:
                return None, -1
            step, calls = self._running
            for index, (called, given) in enumerate(calls):
                if called == name and (given is arguments or (given or {}) == arguments):
                    calls[index] = ("", None)
                    return step, index
            return None, -1

    # Room for what stands around the view

    def planning(self, generate: Callable[..., Any]) -> Callable[..., Any]:
        """A plan: room is kept for the prompts around the view."""

        def generate_planning_step(task: str, is_first_step: bool, step: int) -> Generator[Any, None, None]:
            prompts = self._agent.prompt_templates["planning"]
            named = {"task": task, "tools": self._agent.tools, "managed_agents": self._agent.managed_agents}
            around = (
                populate_template(prompts["update_plan_pre_messages"], variables=named),
                populate_template(
                    prompts["update_plan_post_messages"],
                    variables={**named, "remaining_steps": self._agent.max_steps - step},
                ),
            )
            with self._keeping(() if is_first_step else around):
                yield from generate(task, is_first_step=is_first_step, step=step)

        return generate_planning_step

    def final_answer(self, provide: Callable[..., Any]) -> Callable[..., Any]:
        """The answer at the last step: room is kept for the prompts around the view."""

        def provide_final_answer(task: str, *args: Any, **kwargs: Any) -> Any:
            prompts = self._agent.prompt_templates["final_answer"]
            after = populate_template(prompts["post_messages"], variables={"task": task})
            with self._keeping((prompts["pre_messages"], after)):
                return provide(task, *args, **kwargs)

        return provide_final_answer

    @contextmanager
    def _keeping(self, around: Sequence[str]) -> Iterator[None]:
        said = [
            ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": each}]) for each in around
        ]
        self._memory.reserve(self._memory.cost(said))
        try:
            yield
        finally:
            self._memory.reserve(0)


def _with_own_ids(calls: Sequence[Any], step: int) -> None:
    """Give each call an id of its own: smolagents runs only the last of those that share one."""
    used: set[str] = set()
    for index, call in enumerate(calls):
        if not call.id or call.id in used:
            call.id = f"call_{step}_{index}"
        used.add(call.id)


def _observation(result: Any) -> str:
    """What smolagents tells the model of a result."""
    kind = type(result).__name__
    if kind in ("AgentImage", "AgentAudio"):
        return f"Stored '{'image.png' if kind == 'AgentImage' else 'audio.mp3'}' in memory."
    return str(result).strip()
