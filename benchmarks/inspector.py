"""Measures of the inspector and of the table of requests: a store of many runs, and one run of many requests."""

from __future__ import annotations

import gzip
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Self

from pagein.backends.open import open_store
from pagein.events.steps import ActionStep, Observation, SystemPromptStep, TaskStep, ToolCall
from pagein.memory.host_memory import HostMemory
from pagein.testing.provider.agent import file_text
from pagein.testing.provider.app import serve_app

RUN = "long"
BUDGET, RESULT_CHARACTERS = 16_000, 900
SAMPLES = 20
"""Requests that are asked for at random, in the later half of the run."""

MAX_SECONDS, MAX_ROW_BYTES, MAX_SHARE, MAX_NODES, MAX_GZIPPED = 1.0, 2_048, 0.03, 2_000, 60_000

WARM_UP = 100
"""Requests of a run before the one that is measured: it imports what a turn needs, which made the turns dearer and the share smaller."""

Tick = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measured value, what it may be at most, and of how many it is the highest, or the median.

    ``processor`` is the processor's time in it, which other programs on a machine change less; 0 where it is no duration.
    """

    name: str
    value: float
    target: float
    unit: str
    n: int = 1
    processor: float = 0.0

    @property
    def ratio(self) -> float:
        """The value in parts of its target: at most 1 where that is met."""
        return self.value / self.target


def bench_inspector(runs: int, requests: int, tick: Tick = lambda: None) -> list[Measure]:
    """Measure a store of so many runs and a run of so many requests. Raises ImportError without the extra serve."""
    with tempfile.TemporaryDirectory() as folder:
        many, long = str(Path(folder) / "many.db"), str(Path(folder) / "long.db")
        make_runs(many, runs, tick)
        make_run(f"{long}.first", min(requests, WARM_UP))
        share = make_run(long, requests, tick)
        return [
            *_measure_first_view(many, runs),
            *_measure_views(long, requests),
            Measure("the table of requests, of a turn", share, MAX_SHARE, "share", requests),
            Measure("its bytes a request", _row_bytes(long), MAX_ROW_BYTES, "bytes", requests),
            Measure("the pages, gzipped", _page_bytes(), MAX_GZIPPED, "bytes"),
            *_measure_pages(long, requests),
        ]


class _Duration(NamedTuple):
    """Seconds by the clock, and of this process's processor time, which has the client's and the server's."""

    clock: float
    processor: float

    def measure(self, name: str, n: int = 1) -> Measure:
        """The measure of a view that takes so long."""
        return Measure(name, self.clock, MAX_SECONDS, "s", n, self.processor)

    @classmethod
    def over(cls, choose: Callable[[Iterable[float]], float], durations: Sequence[_Duration]) -> Self:
        """The highest of some, their median or their sum."""
        return cls(*(choose(values) for values in zip(*durations, strict=True)))


class _TimedMemory(HostMemory):
    """A memory that takes the processor time of its table of requests."""

    seconds = 0.0

    def take_times(self) -> None:
        """Time what notes a request and what writes it, from now on."""
        requests = self._runtime.requests
        for name in ("note", "write"):
            setattr(requests, name, self._measure(getattr(requests, name)))

    def _measure(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            started = time.process_time()
            try:
                return function(*args)
            finally:
                self.seconds += time.process_time() - started

        return call


def make_runs(store: str, runs: int, tick: Tick = lambda: None) -> None:
    """Make a store of runs, each with one request."""
    for number in range(runs):
        with HostMemory.open(store, session=f"run-{number:05}", budget=4_000, synchronous="OFF") as memory:
            memory.record(TaskStep(f"Look at file {number}."))
            memory.to_messages()
        tick()


def make_run(store: str, requests: int, tick: Tick = lambda: None) -> float:
    """Make a run of an agent that reads a file between two requests; return the share of its processor time for their table."""
    with _TimedMemory.open(store, session=RUN, budget=BUDGET, synchronous="OFF") as memory:
        memory.record(SystemPromptStep("You read files."), TaskStep("Read every file, one at a time."))
        memory.take_times()
        started = time.process_time()
        for number in range(requests):
            memory.to_messages()
            id = f"c{number}"
            memory.record(ActionStep(f"Now file {number}.", (ToolCall(id, "read", f'{{"number": {number % 997}}}'),)))
            memory.record(Observation(id, file_text(number % 997, RESULT_CHARACTERS)))
            tick()
        return memory.seconds / (time.process_time() - started)


def _measure_first_view(store: str, runs: int) -> Iterator[Measure]:
    with _client(store) as ask:
        durations = [ask(address) for address in ("", *(f"/static/{name}" for name in _page_files()), "/api/runs")]
    yield _Duration.over(sum, durations).measure(f"first view of {runs:,} runs")


def _measure_views(store: str, requests: int) -> Iterator[Measure]:
    """Each view as the first one of a new inspector, then some at random."""
    path, late = f"/api/runs/{RUN}", max(1, requests - 3)
    addresses = {
        "timeline, cost": f"{path}/requests",
        "what was asked again": f"{path}/asked",
        "a late request, out of view, budget": f"{path}/requests/{late}",
        "changes to a late request": f"{path}/requests/{late}/diff/{max(1, late - 1)}",
        "an early step": f"{path}/steps/s2",
        "search": f"/api/search?q=handler_7&run={RUN}",
    }
    for name, address in addresses.items():
        with _client(store) as ask:
            yield ask(address).measure(f"{name}, first")
    chance = random.Random(0)  # noqa: S311 - which requests are asked for
    with _client(store) as ask:
        for address in addresses.values():
            ask(address)
        for name, address in addresses.items():
            yield _Duration.over(median, [ask(address) for _ in range(3)]).measure(f"{name}, later", 3)
        numbers = [chance.randint(max(2, requests // 2), requests) for _ in range(SAMPLES)]
        durations = [ask(f"{path}/requests/{number}") for number in numbers]
        yield _Duration.over(median, durations).measure("any late request, median", SAMPLES)
        yield _Duration.over(max, durations).measure("any late request, highest", SAMPLES)
        durations = [ask(f"{path}/requests/{number}/diff/{number - 1}") for number in numbers]
        yield _Duration.over(max, durations).measure("any changes, highest", SAMPLES)


@contextmanager
def _client(store: str) -> Iterator[Callable[[str], _Duration]]:
    """Give a function that asks a new inspector for an address and returns the time until the answer was whole."""
    import httpx2  # noqa: PLC0415 - an extra

    from pagein.server.inspector import InspectorApp, InspectorSettings  # noqa: PLC0415 - an extra

    with (
        closing(InspectorApp(InspectorSettings(store))) as app,
        serve_app(app) as url,
        httpx2.Client(base_url=f"{url}/inspect", timeout=600) as client,
    ):

        def ask(address: str) -> _Duration:
            started, worked = time.perf_counter(), time.process_time()
            answer = client.get(address)
            answer.raise_for_status()
            return _Duration(time.perf_counter() - started, time.process_time() - worked)

        yield ask


def _row_bytes(store: str) -> float:
    with closing(open_store(store, readonly=True)) as opened:
        rows = opened.request_table(RUN).rows(0)
        return max(len(row.body) for row in rows)


def _page_files() -> Sequence[str]:
    static = files("pagein.server.inspector") / "static"
    own = (entry.name for entry in static.iterdir() if entry.name.endswith((".js", ".css", ".svg")))
    return [*own, *(f"vendor/{name}.js" for name in ("preact", "hooks", "htm"))]


def _page_bytes() -> int:
    static = files("pagein.server.inspector") / "static"
    return sum(len(gzip.compress((static / name).read_bytes())) for name in (*_page_files(), "index.html"))


def _measure_pages(store: str, requests: int) -> Iterator[Measure]:
    """Seconds and nodes of the pages in Chromium; nothing where Playwright or Chromium is not there."""
    import shutil  # noqa: PLC0415

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        sync_playwright = import_module("playwright.sync_api").sync_playwright  # a user may have it
    except ImportError:
        return
    if chromium is None:
        return
    from pagein.server.inspector import InspectorApp, InspectorSettings  # noqa: PLC0415 - an extra

    views = ("", f"/run/{RUN}", f"/run/{RUN}/request/{requests}", f"/run/{RUN}/cost", f"/run/{RUN}/budget/{requests}",
             f"/run/{RUN}/diff/{requests - 1}/{requests}", f"/run/{RUN}/out/{requests}", f"/run/{RUN}/step/s2")  # fmt: skip
    seconds, nodes = [], []
    with closing(InspectorApp(InspectorSettings(store))) as app, serve_app(app) as url, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1600, "height": 900})
        for view in views:
            started = time.perf_counter()
            page.goto(f"{url}/inspect{view}")
            page.locator("main h1").wait_for()
            page.get_by_text("Reading …").first.wait_for(state="detached")
            seconds.append(time.perf_counter() - started)
            nodes.append(page.locator("*").count())
        browser.close()
    yield Measure("a page in Chromium, highest", max(seconds), MAX_SECONDS, "s", len(views))
    yield Measure("its nodes, highest", max(nodes), MAX_NODES, "nodes", len(views))
