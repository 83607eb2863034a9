"""Faults over the wire: recorded runs are handed over to the proxy as an agent does, and its requests are measured.

The provider refuses every request, so nothing but the run itself is recorded; what it received is what a model would have read.
The library has the budget that the proxy gives the messages.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.faulty_provider import Fault, FaultyProvider
from pagein.evaluation.faults import measure_strategies
from pagein.evaluation.requests import Scale, Wire
from pagein.evaluation.runs import Run
from pagein.evaluation.strategies import PageinStrategy, Strategy
from pagein.evaluation.tally import Tally
from pagein.memory.agent_memory import AgentMemory
from pagein.server import ServerApp, ServerSettings
from pagein.testing.provider import Answer, ScriptedProvider, serve_app
from pagein.tokens.windows import MODELS

MODEL = "gpt-5"
LIBRARY, PROXY = "library", "proxy"


@dataclass(slots=True)
class WireStrategy:
    """Hands the whole list of a run to the proxy; the request is what the provider received."""

    client: httpx2.Client
    provider: ScriptedProvider
    run: str
    limit: int = 0
    """Tokens that the proxy gave the messages of the last request."""
    _history: list[Wire] = field(default_factory=list)

    def take(self, messages: Sequence[Wire]) -> None:
        """Add messages to the list."""
        self._history.extend(messages)

    def request(self) -> Sequence[Wire]:
        """Hand the list over, and return what the provider received. Raises ValueError where that is none of ours."""
        body = {"model": MODEL, "max_completion_tokens": 1, "messages": self._history}
        answer = self.client.post("/v1/chat/completions", json=body, headers={"x-pagein-run": self.run})
        done = dict(part.partition("=")[::2] for part in answer.headers["x-pagein"].split("; "))
        if "view" not in done:
            raise ValueError(f"the proxy says {answer.headers['x-pagein']!r}")
        self.limit = int(done["limit"])
        rows: list[Any] = self.provider.received[-1].body["messages"]
        self.provider.received.clear()
        return rows


def bench_wire_faults(runs: Iterable[Run], budget: int, tick: Callable[[], None] = lambda: None) -> dict[str, Tally]:
    """Measure the library and the proxy over all runs, at the same budget; return tallies by name."""
    numbers = count()
    with _proxy(_window_for(budget)) as (client, provider):

        def make_strategies(run: Run, memory: AgentMemory, scale: Scale) -> dict[str, Strategy]:
            del run, scale
            wire = WireStrategy(client, provider, f"run {next(numbers)}")
            return {LIBRARY: PageinStrategy(memory), PROXY: wire}

        return measure_strategies(runs, budget, MODELS.get(MODEL).counter, make_strategies, tick)


def _window_for(budget: int) -> int:
    """The window with which the proxy gives the messages of these requests that many tokens."""
    with _proxy(2 * budget) as (client, provider):
        probe = WireStrategy(client, provider, "probe")
        probe.take([{"role": "user", "content": "Hello."}])
        probe.request()
    # The margin is a share of the window.
    return next(window for window in range(budget, 2 * budget) if window * probe.limit >= 2 * budget * budget)


@contextmanager
def _proxy(window: int) -> Iterator[tuple[httpx2.Client, ScriptedProvider]]:
    provider = FaultyProvider(lambda _: Answer(""), faults={0: Fault("rate-limit")})  # what it received is cleared
    with tempfile.TemporaryDirectory() as folder, serve_app(provider) as upstream:
        app = ServerApp(ServerSettings(str(Path(folder) / "runs.db"), {"default": upstream}, window=window))
        with serve_app(app) as url, httpx2.Client(base_url=url, timeout=300) as client:
            yield client, provider
