"""Kill an application at random moments, again and again, and check that the log keeps its promises.

After each kill: every acknowledged entry is there with its digest; ``verify`` is clean; the view is within budget, legal
for each provider, and equal when it is opened again; every handle in it expands; no call was run twice or run without a
record; and the updated search index equals a rebuilt one.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from benchmarks.crash_child import BORN, BUDGET, READY, Acknowledged, Place, call_numbers, play
from benchmarks.crash_index import index_faults
from pagein.backends.open import is_postgres, open_log
from pagein.errors import ConfigurationError, PageinError
from pagein.events.entries import Compaction, Undo
from pagein.events.steps import ActionStep, Step
from pagein.formats import FormatName, format_named
from pagein.log.base import StoredLog
from pagein.memory.agent_memory import AgentMemory

KILLS_A_SESSION = 20
WORDS = 12
"""After how many acknowledgements a process is killed, at most: a slow machine gets as far as a quick one."""

LIFE = 0.06
"""The longest it lives behind the last of them, in seconds; and behind the death of its server."""

YOUTH = 0.04
"""The same for those that are killed while they open the log."""

SERVER_EVERY = 10
"""Of how many kills one takes the server, too, where there is one that may be killed."""

PATIENCE = 60.0


class Server(Protocol):
    """A database server that the benchmark may kill."""

    def kill(self) -> None:
        """Stop it at once."""
        ...

    def restart(self) -> None:
        """Start it again."""
        ...


@dataclass(slots=True)
class Crashes:
    """The result of the benchmark. ``faults`` are broken promises.

    ``surplus`` entries were written but not acknowledged; ``effects`` are calls that were run, ``unknown`` those in flight
    at a kill; ``highest`` is the largest view, in tokens.
    """

    kills: int = 0
    server_kills: int = 0
    acknowledged: int = 0
    surplus: int = 0
    entries: int = 0
    compactions: int = 0
    undos: int = 0
    effects: int = 0
    unknown: int = 0
    expanded: int = 0
    highest: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when no promise was broken."""
        return not self.faults

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON-safe values."""
        return asdict(self)


def bench_crash(
    url: str,
    folder: Path,
    kills: int,
    *,
    seed: int = 0,
    server: Server | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Crashes:
    """Kill an application ``kills`` times while it records into the store at ``url``; its effects are in ``folder``.

    ``server`` is killed now and then, too. Raises ConfigurationError where processes cannot be killed.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        raise ConfigurationError("bench crash needs SIGKILL and fork, which this system does not have")
    return _CrashBench(url, folder, seed, server).measure(kills, tick)


@dataclass(slots=True)
class _RunState:
    """A run through many kills: its entries so far, which may never change again."""

    place: Place
    known: dict[int, str] = field(default_factory=dict)
    effects: int = 0
    unknown: int = 0


class _CrashBench:
    def __init__(self, url: str, folder: Path, seed: int, server: Server | None) -> None:
        self._url, self._folder, self._server = url, folder, server
        self._chance = random.Random(seed)  # noqa: S311 - when to kill
        self._seed = seed
        self._context = multiprocessing.get_context("forkserver")
        preload = ["benchmarks.crash_child", "pagein.tokens.encodings"]
        self._context.set_forkserver_preload(preload + ["pagein.backends.postgres.log"] * is_postgres(url))
        self._found = Crashes()

    def measure(self, kills: int, tick: Callable[[], None]) -> Crashes:
        started = time.monotonic()
        life = self._life(0)
        for number in range(kills):
            if number % KILLS_A_SESSION == 0:
                life = self._life(number // KILLS_A_SESSION)
            told = dict(self._run_and_kill(life.place, number))
            self._found.kills += 1
            self._found.acknowledged += len(told)
            for fault in _Inspection(life, told, self._found).faults():
                self._found.faults.append(f"kill {number + 1}, {life.place.session}: {fault}")
            tick()
        self._found.seconds = time.monotonic() - started
        return self._found

    def _life(self, number: int) -> _RunState:
        name = f"crash {self._seed}-{number}"
        effects = str(self._folder / f"effects-{self._seed}-{number}.txt")
        return _RunState(Place(self._url, name, effects))

    def _run_and_kill(self, place: Place, number: int) -> Iterator[tuple[int, str]]:
        """Run the process, kill it, and yield what it acknowledged."""
        ours, its = self._context.Pipe(duplex=False)
        child = self._context.Process(target=play, args=(place, self._chance.getrandbits(32), its))
        child.start()
        its.close()
        try:
            server = self._server if number % SERVER_EVERY == SERVER_EVERY - 1 else None
            # A host that begins while there is no server is told so at once, and ends.
            early = self._chance.random() < 0.25 and server is None
            heard = list(_receive_until(ours, BORN if early else READY))
            heard += islice(_receive_until(ours), 0 if early else self._chance.randrange(WORDS))
            time.sleep(self._chance.uniform(0, YOUTH if early else LIFE))
            if server is not None:
                server.kill()
                server.restart()
                self._found.server_kills += 1
                time.sleep(self._chance.uniform(0, LIFE))
            if child.exitcode is not None:
                self._found.faults.append(f"kill {number + 1}: the process ended by itself, {child.exitcode}")
            child.kill()
            heard += _drain(ours)
        finally:
            child.kill()
            child.join()
            child.close()
            ours.close()
        for each in heard:
            if not isinstance(each, str):
                yield from each


def _receive_until(pipe: Connection, word: str = "") -> Iterator[str | Acknowledged]:
    """Yield messages up to a word; without one, all messages."""
    while pipe.poll(PATIENCE):
        try:
            heard = pipe.recv()
        except EOFError:
            return
        yield heard
        if heard == word:
            return


def _drain(pipe: Connection) -> Iterator[str | Acknowledged]:
    """Yield the messages that the killed process left in the pipe, without an unfinished one."""
    while True:
        try:
            yield pipe.recv()
        except (EOFError, OSError):
            return


@dataclass(frozen=True, slots=True)
class _Inspection:
    """An inspection of a log after a kill, as the resumed application opens it."""

    life: _RunState
    told: Mapping[int, str]
    found: Crashes

    def faults(self) -> Iterator[str]:
        """Yield every broken promise."""
        try:
            with closing(self._log()) as log:
                yield from self._of_record(log)
                yield from index_faults(log)
            with closing(self._log()) as log, AgentMemory(log, budget=BUDGET) as memory:
                yield from self._of_view(log, memory)
                yield from self._of_effects(memory.steps)
        except PageinError as error:
            yield f"{type(error).__name__}: {error}"

    def _log(self) -> Any:
        return open_log(self.life.place.url, session=self.life.place.session, timeout=60)

    def _of_record(self, log: StoredLog) -> Iterator[str]:
        digests = {row.position: row.digest for row in log.rows()}
        for position, digest in {**self.life.known, **self.told}.items():
            if digests.get(position) != digest:
                what = "was replaced" if position in digests else "is gone"
                yield f"entry {position} was acknowledged and {what}"
        for problem in log.verify().problems:
            yield f"verify: {problem.position}: {problem.what}"
        new = digests.keys() - self.life.known.keys()
        for entry in log.read(min(new, default=len(digests))):
            self.found.compactions += isinstance(entry.body, Compaction)
            self.found.undos += isinstance(entry.body, Undo)
        self.found.entries += len(new)
        self.found.surplus += len(new - self.told.keys())
        self.life.known.update(digests)

    def _of_view(self, log: StoredLog, memory: AgentMemory) -> Iterator[str]:
        view = memory.view()
        self.life.known.update((row.position, row.digest) for row in log.rows(len(self.life.known)))
        self.found.highest = max(self.found.highest, view.tokens)
        if view.tokens > BUDGET:
            yield f"the view has {view.tokens} tokens, the budget is {BUDGET}"
        requests: dict[FormatName, Any] = {}
        for form in map(format_named, ("openai", "anthropic")):
            requests[form.name] = memory.to_request(form.name)
            yield from (f"{form.name}: {problem}" for problem in form.problems(requests[form.name]))
        with AgentMemory(self._log(), budget=BUDGET) as again:
            for name, request in requests.items():
                if again.to_request(name) != request:
                    yield f"{name}: the view is another when it is opened again"
        for out in view.report.out:
            if not str(memory.expand(out.handle)):
                yield f"{out.handle} expands to nothing"
            self.found.expanded += 1

    def _of_effects(self, steps: Sequence[Step]) -> Iterator[str]:
        path = Path(self.life.place.effects)
        ran = Counter(path.read_text().split() if path.exists() else ())
        recorded = Counter(map(str, call_numbers(steps)))
        yield from (f"call {each} was run {times} times" for each, times in ran.items() if times > 1)
        yield from (f"call {each} was run and not recorded" for each in ran if each not in recorded)
        yield from (f"call {each} is recorded {times} times" for each, times in recorded.items() if times > 1)
        acted = [step for step in steps if isinstance(step, ActionStep)]
        seen = [observation for step in acted for observation in step.observations if observation is not None]
        unknown = sum(each.status == "unknown" for each in seen)
        self.found.effects += len(ran) - self.life.effects
        self.found.unknown += unknown - self.life.unknown
        self.life.effects, self.life.unknown = len(ran), unknown
