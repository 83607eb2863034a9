"""The methods that are replaced on an agent with a pagein memory, and the tools it gets.

Its messages come from the memory. Its calls are recorded before they run and answered as they end. Tokens are reserved
for what it puts around the view when it plans, and when it has to answer at its last step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from smolagents import CodeAgent, MultiStepAgent, Tool
from smolagents import memory as smol
from smolagents.agents import populate_template
from smolagents.models import ChatMessage, MessageRole

from pagein.errors import ConfigurationError
from pagein.integrations._tools import ToolDefinition
from pagein.integrations.smolagents.history import StepHistory

HOOKED_METHODS = (
    "write_memory_to_messages",
    "_step_stream",
    "process_tool_calls",
    "execute_tool_call",
    "_generate_planning_step",
    "provide_final_answer",
)


def check_agent(agent: Any) -> None:
    """Raise ConfigurationError for what is no agent of smolagents, and for one that has a pagein memory."""
    if not isinstance(agent, MultiStepAgent):
        raise ConfigurationError(f"attach() takes a CodeAgent or a ToolCallingAgent, not {type(agent).__name__}")
    if getattr(agent.memory, "agent", None) is agent:
        raise ConfigurationError("this agent has a memory of pagein already: agent.memory.detach() first")


def attach_memory(agent: Any, memory: Any, history: StepHistory, tools: Sequence[ToolDefinition]) -> None:
    """Make the agent use the memory, and offer its model these tools; the agent's own tool of a name stays.

    Raises ConfigurationError for a memory that another agent has.
    """
    if memory.agent is not None:
        raise ConfigurationError(
            "this memory is another agent's: give each agent its own, of one file, by session='...'"
        )
    for definition in tools:
        agent.tools.setdefault(definition["name"], MemoryTool(memory, definition))
    memory.agent = agent
    agent.memory = memory
    hooks = AgentHooks(agent, memory, history)
    agent.write_memory_to_messages = memory.write_memory_to_messages
    agent.provide_final_answer = hooks.wrap_final_answer(agent.provide_final_answer)
    agent._generate_planning_step = hooks.wrap_planning(agent._generate_planning_step)  # noqa: SLF001 - no public place
    if isinstance(agent, CodeAgent):
        agent._step_stream = hooks.wrap_code_step(agent._step_stream)  # noqa: SLF001 - no public place
    elif hasattr(agent, "process_tool_calls"):
        agent.process_tool_calls = hooks.wrap_tool_calls(agent.process_tool_calls)
        agent.execute_tool_call = hooks.wrap_execution(agent.execute_tool_call)


def detach_memory(agent: Any, memory: Any) -> None:
    """Undo ``attach_memory``; the agent gets a memory of smolagents with the current steps."""
    for name in HOOKED_METHODS:
        agent.__dict__.pop(name, None)
    for name in [name for name, tool in agent.tools.items() if isinstance(tool, MemoryTool)]:
        del agent.tools[name]
    agent.memory = smol.AgentMemory(agent.system_prompt)
    agent.memory.steps = list(memory.steps)
    memory.agent = None


class MemoryTool(Tool):  # type: ignore[misc] # smolagents has no types
    """One of the tools of ``pagein.memory.tools``, over the memory of an agent."""

    name = "memory"
    description = "A tool of the memory."
    inputs: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - as smolagents wants it
    output_type = "string"
    skip_forward_signature_validation = True  # its inputs are the definition's

    def __init__(self, memory: Any, definition: ToolDefinition) -> None:
        self._memory = memory
        self.name, self.description = definition["name"], definition["description"]
        schema = definition["parameters"]
        self.inputs = {
            name: {"description": name, **field, **({} if name in schema["required"] else {"nullable": True})}
            for name, field in schema["properties"].items()
        }
        super().__init__()

    def forward(self, *args: Any, **kwargs: Any) -> str:
        """Call the tool, and return its text for the model, errors of the model included."""
        arguments = {**dict(zip(self.inputs, args, strict=False)), **kwargs}
        return str(self._memory.pages.call_tool(self.name, arguments))

    def to_dict(self) -> dict[str, Any]:
        """Raise ConfigurationError: the tool is part of a memory, and is not saved without it."""
        raise ConfigurationError(f"{self.name} belongs to a memory: call memory.detach() before the agent is saved")


class AgentHooks:
    """Wraps the methods of one agent so that its memory records what they do."""

    def __init__(self, agent: Any, memory: Any, history: StepHistory) -> None:
        self._agent, self._memory, self._history = agent, memory, history
        self._lock = threading.Lock()
        self._running: tuple[Any, list[tuple[str, Any]]] | None = None

    # The calls of a step

    def wrap_code_step(self, stream: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the stream of a CodeAgent's step: record its one call before the code runs."""

        def step_stream(memory_step: Any) -> Generator[Any, None, None]:
            for output in stream(memory_step):
                if isinstance(output, smol.ToolCall):
                    self._history.begin_action(memory_step, (output,))
                yield output

        return step_stream

    def wrap_tool_calls(self, process: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a ToolCallingAgent's step: record its calls before they run, in the model's order, none lost."""

        def process_tool_calls(chat_message: Any, memory_step: Any) -> Generator[Any, None, None]:
            _make_ids_unique(chat_message.tool_calls, len(self._memory.steps))
            calls = [smol.ToolCall(c.function.name, c.function.arguments, c.id) for c in chat_message.tool_calls]
            if calls:
                self._history.begin_action(memory_step, calls)
            # A managed agent's calls run within one of these: each level has its own.
            before, self._running = self._running, (memory_step, [(c.name, c.arguments) for c in calls])
            try:
                yield from process(chat_message, memory_step)
            finally:
                self._running = before
                self._history.end_calls(memory_step)
                if memory_step.tool_calls is None:
                    memory_step.tool_calls = calls

        return process_tool_calls

    def wrap_execution(self, execute: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap one call of a ToolCallingAgent: record its result, or its error, when it ends."""

        def execute_tool_call(tool_name: str, arguments: Any) -> Any:
            running, index = self._claim_call(tool_name, arguments)
            try:
                result = execute(tool_name, arguments)
            except Exception as error:
                if running is not None:
                    self._history.record_answer(running, index, None, error)
                raise
            if running is not None:
                self._history.record_answer(running, index, _observation_text(result), None)
            return result

        return execute_tool_call

    def _claim_call(self, name: str, arguments: Any) -> tuple[Any, int]:
        """The running step, and the index of its first unclaimed call of this name and these arguments."""
        with self._lock:
            if self._running is None:
                return None, -1
            step, calls = self._running
            for index, (call_name, call_arguments) in enumerate(calls):
                is_same = call_arguments is arguments or (call_arguments or {}) == arguments
                if call_name == name and is_same:
                    calls[index] = ("", None)
                    return step, index
            return None, -1

    # Tokens for what stands around the view

    def wrap_planning(self, generate: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the making of a plan: reserve tokens for the prompts around the view."""

        def generate_planning_step(task: str, is_first_step: bool, step: int) -> Generator[Any, None, None]:
            prompts = self._agent.prompt_templates["planning"]
            variables = {"task": task, "tools": self._agent.tools, "managed_agents": self._agent.managed_agents}
            around = (
                populate_template(prompts["update_plan_pre_messages"], variables=variables),
                populate_template(
                    prompts["update_plan_post_messages"],
                    variables={**variables, "remaining_steps": self._agent.max_steps - step},
                ),
            )
            with self._reserve_prompts(() if is_first_step else around):
                yield from generate(task, is_first_step=is_first_step, step=step)

        return generate_planning_step

    def wrap_final_answer(self, provide: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the answer at the last step: reserve tokens for the prompts around the view."""

        def provide_final_answer(task: str, *args: Any, **kwargs: Any) -> Any:
            prompts = self._agent.prompt_templates["final_answer"]
            after = populate_template(prompts["post_messages"], variables={"task": task})
            with self._reserve_prompts((prompts["pre_messages"], after)):
                return provide(task, *args, **kwargs)

        return provide_final_answer

    @contextmanager
    def _reserve_prompts(self, prompts: Sequence[str]) -> Iterator[None]:
        messages = [
            ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": prompt}]) for prompt in prompts
        ]
        self._memory.reserve(self._memory.cost(messages))
        try:
            yield
        finally:
            self._memory.reserve(0)


def _make_ids_unique(calls: Sequence[Any], step: int) -> None:
    """Give each call an id of its own: smolagents runs only the last of those that share one."""
    used: set[str] = set()
    for index, call in enumerate(calls):
        if not call.id or call.id in used:
            call.id = f"call_{step}_{index}"
        used.add(call.id)


def _observation_text(result: Any) -> str:
    """The text of a result, as smolagents gives it to the model."""
    kind = type(result).__name__
    if kind in ("AgentImage", "AgentAudio"):
        return f"Stored '{'image.png' if kind == 'AgentImage' else 'audio.mp3'}' in memory."
    return str(result).strip()
