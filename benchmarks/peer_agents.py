"""Agents of other libraries with their own compaction, which play recorded runs against a scripted provider.

Each is built as its documentation says, for a window of tokens. Its model repeats the run's answers and its
tools the run's results, so the requests differ by what the compaction left of the history.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pagein.evaluation.requests import Wire
from pagein.tokens import TokenCounter

MODEL, SUMMARIZER = "gpt-5", "summarizer"
"""The names of the models that answer in the run and that write a summary."""

KEPT_SHARE = 0.25
"""Share of the window that a summary leaves whole. With half of it, all three go over the window far more often."""

STEPS = 10_000
"""Requests after which an agent stops; more than any run has."""

FREE_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}


@dataclass(frozen=True, slots=True)
class Script:
    """A recorded run as an agent plays it.

    ``turns`` are the words of the user, one tuple for each time that the agent is called. ``results`` are by call id.
    """

    system: str
    turns: tuple[tuple[str, ...], ...]
    results: Mapping[str, str]
    tools: tuple[str, ...]

    @classmethod
    def of(cls, messages: Sequence[Wire]) -> Script:
        """Split the OpenAI chat messages of a run."""
        words: list[list[str]] = [[]]
        for message in messages:
            if message["role"] == "user":
                words[-1].append(str(message["content"]))
            elif words[-1]:
                words.append([])
        calls = [call for message in messages for call in message.get("tool_calls") or ()]
        return cls(
            system="\n\n".join(str(message["content"]) for message in messages if message["role"] == "system"),
            turns=tuple(tuple(turn) for turn in words if turn),
            results={m["tool_call_id"]: str(m["content"]) for m in messages if m["role"] == "tool"},
            tools=tuple(dict.fromkeys(call["function"]["name"] for call in calls)),
        )


@dataclass(slots=True)
class CpuMeter:
    """Processor time of a library's own work before each request, in seconds. deepagents' is inside the call of the model: none."""

    turns: list[float] = field(default_factory=list)

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Add the time of this thread while the context is open."""
        start = time.thread_time()
        yield
        self.turns.append(time.thread_time() - start)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a script is played: the address of the provider, a window of tokens, and a meter."""

    url: str
    window: int
    counter: TokenCounter
    meter: CpuMeter


@dataclass(frozen=True, slots=True)
class Peer:
    """A library: its distribution, and how its agent plays a script."""

    distribution: str
    play: Callable[[Script, Place], None]

    @property
    def version(self) -> str | None:
        """The version that is installed, or None."""
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None


def play_langchain(script: Script, place: Place) -> None:
    """Play with LangChain's SummarizationMiddleware: it summarises beyond the budget and keeps the newest half of it."""
    from langchain.agents.middleware import SummarizationMiddleware  # noqa: PLC0415 - an extra, and slow to import

    def count(messages: Any) -> int:
        return sum(map(place.counter.text, _texts(messages)))

    class Metered(SummarizationMiddleware):
        def before_model(self, state: Any, runtime: Any) -> Any:
            with place.meter.measure():
                return super().before_model(state, runtime)

    summarizer = _chat_model(place.url, SUMMARIZER)
    middleware = Metered(
        summarizer,
        trigger=("tokens", place.window),
        keep=("tokens", int(place.window * KEPT_SHARE)),
        token_counter=count,
    )
    _play_on_langchain(script, place.url, middleware)


def play_deepagents(script: Script, place: Place) -> None:
    """Play with deepagents' SummarizationMiddleware: beyond .85 of the budget, as it does by default; it keeps the newest half."""
    from deepagents.backends import FilesystemBackend  # noqa: PLC0415 - an extra, and slow to import
    from deepagents.middleware.summarization import SummarizationMiddleware  # noqa: PLC0415

    def count(messages: Any, **_: Any) -> int:
        return sum(map(place.counter.text, _texts(messages)))

    with tempfile.TemporaryDirectory() as folder:  # what leaves its context is written there
        middleware = SummarizationMiddleware(
            _chat_model(place.url, SUMMARIZER),
            backend=FilesystemBackend(root_dir=folder, virtual_mode=True),
            trigger=("tokens", int(place.window * 0.85)),
            keep=("tokens", int(place.window * KEPT_SHARE)),
            token_counter=count,
        )
        _play_on_langchain(script, place.url, middleware)


def play_harness(script: Script, place: Place) -> None:
    """Play with TieredCompaction of pydantic-ai-harness: it clears old results, then summarises all but the newest half."""
    from pydantic_ai import Agent, RunContext, Tool  # noqa: PLC0415 - an extra, and slow to import
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415
    from pydantic_ai.usage import UsageLimits  # noqa: PLC0415
    from pydantic_ai_harness.compaction import ClearToolResults, SummarizingCompaction, TieredCompaction  # noqa: PLC0415

    class Metered(TieredCompaction[None]):  # type: ignore[misc, unused-ignore]
        async def before_model_request(self, *arguments: Any, **named: Any) -> Any:
            with place.meter.measure():
                return await super().before_model_request(*arguments, **named)

    provider = OpenAIProvider(base_url=f"{place.url}/v1", api_key="none")
    summarizer = OpenAIChatModel(SUMMARIZER, provider=provider)
    tiers = [
        ClearToolResults(max_tokens=1),
        SummarizingCompaction(
            model=summarizer, max_messages=1, keep_tokens=int(place.window * KEPT_SHARE), tokenizer=place.counter.text
        ),
    ]

    def run_tool(context: RunContext[None], **_: Any) -> str:
        return script.results.get(context.tool_call_id or "", "")

    agent = Agent(
        OpenAIChatModel(MODEL, provider=provider),
        instructions=script.system,
        tools=[Tool.from_schema(run_tool, name, name, FREE_SCHEMA, takes_ctx=True) for name in script.tools],
        capabilities=[Metered(tiers=tiers, target_tokens=place.window, tokenizer=place.counter.text)],
    )

    async def play() -> None:
        history = None
        for turn in script.turns:
            answer = await agent.run(list(turn), message_history=history, usage_limits=UsageLimits(request_limit=None))
            history = answer.all_messages()

    asyncio.run(play())


PEERS: Mapping[str, Peer] = {
    "pydantic-ai-harness": Peer("pydantic-ai-harness", play_harness),
    "LangChain": Peer("langchain", play_langchain),
    "deepagents": Peer("deepagents", play_deepagents),
}
"""The libraries by name."""


def _play_on_langchain(script: Script, url: str, middleware: Any) -> None:
    from langchain.agents import create_agent  # noqa: PLC0415 - an extra, and slow to import
    from langchain.agents.middleware import wrap_tool_call  # noqa: PLC0415
    from langchain_core.messages import HumanMessage, ToolMessage  # noqa: PLC0415
    from langchain_core.runnables import RunnableConfig  # noqa: PLC0415
    from langchain_core.tools import StructuredTool  # noqa: PLC0415
    from langgraph.checkpoint.memory import InMemorySaver  # noqa: PLC0415

    @wrap_tool_call
    def repeat_result(request: Any, handler: Any) -> ToolMessage:
        del handler
        call_id = request.tool_call["id"]
        return ToolMessage(script.results.get(call_id, ""), tool_call_id=call_id, name=request.tool_call["name"])

    agent = create_agent(
        _chat_model(url, MODEL),
        [
            StructuredTool.from_function(lambda **_: "", name=name, description=name, args_schema=FREE_SCHEMA)
            for name in script.tools
        ],
        system_prompt=script.system,
        middleware=[middleware, repeat_result],
        checkpointer=InMemorySaver(),
    )
    config: RunnableConfig = {"configurable": {"thread_id": "run"}, "recursion_limit": STEPS}
    for turn in script.turns:
        agent.invoke({"messages": [HumanMessage(text) for text in turn]}, config)


def _chat_model(url: str, name: str) -> Any:
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - an extra, and slow to import

    return ChatOpenAI(model=name, base_url=f"{url}/v1", api_key=lambda: "none", use_responses_api=False)


def _texts(messages: Any) -> Iterator[str]:
    """The texts of LangChain messages, with the arguments of their calls."""
    for message in messages:
        yield str(message.content)
        yield from (str(call["args"]) for call in getattr(message, "tool_calls", ()))
