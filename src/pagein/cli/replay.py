"""``pagein demo`` and ``pagein replay``: recorded runs through a memory, every request made as a host would make it."""

from __future__ import annotations

import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.backends.sqlite.log import SQLiteLog
from pagein.cli import _output as screen
from pagein.cli._options import (
    AsJson,
    BudgetTokens,
    ModelName,
    check_budget,
    counter_of,
)
from pagein.cli._settings import Budget, ConfigFile, FormatName, PolicyName, viewing
from pagein.cli._writers import WriterName, writer
from pagein.context.compaction.base import Policy
from pagein.errors import ConfigurationError
from pagein.evaluation.faults import Lane, measure_run, request_points
from pagein.evaluation.requests import Scale, Wire
from pagein.evaluation.runs import Run, demo_run, distinct, read_runs
from pagein.evaluation.strategies import Paged
from pagein.evaluation.tally import Tally
from pagein.events.steps import SummaryStep
from pagein.formats import format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import SHARE
from pagein.tokens import TokenCounter

NewDatabase = Annotated[
    Path | None, Parameter(help="Record the runs in this SQLite file, each in a session of its own.")
]


@dataclass(frozen=True, slots=True)
class Player:
    """Plays runs through memories that are all set up alike."""

    budget: int
    policy: str | Policy
    renders: str
    counter: TokenCounter
    database: Path | None = None
    summarizer: Any = None
    page_in: float = SHARE
    written: list[str] = field(default_factory=list)
    """Whose summaries stand at the end of the runs."""
    problems: list[str] = field(default_factory=list)
    paged_in: list[int] = field(default_factory=list)
    """Tokens of what came back by itself, for each request in which something did."""

    def play(self, run: Run, session: str, tick: Callable[[], None]) -> Tally:
        """The tally of one run, recorded in its session."""
        url = ":memory:" if self.database is None else str(self.database)
        with AgentMemory.open(
            url,
            session=session,
            budget=self.budget,
            policy=self.policy,
            counter=self.counter,
            summarizer=self.summarizer,
            page_in=self.page_in,
        ) as memory:
            strategy = _Waiting(memory, speaks=run.format, renders=self.renders)
            lane = Lane(strategy, Scale(self.counter, format_named(self.renders)))
            measure_run(run, (lane,), self.budget, self.counter, tick)
            if not lane.tally.raised:
                shown = (each.item for each in memory.view().entries)
                self.written.extend(each.author for each in shown if isinstance(each, SummaryStep))
            self.problems.extend(f"{session}: {each}" for each in memory.report().problems)
            self.paged_in.extend(strategy.paged_in)
        return lane.tally


class _Waiting(Paged):
    """Waits between two turns for whoever writes summaries: a recorded run leaves nobody the time."""

    def __init__(self, memory: AgentMemory, *, speaks: str, renders: str) -> None:
        super().__init__(memory, speaks=speaks, renders=renders)
        self.paged_in: list[int] = []

    def take(self, messages: Sequence[Wire]) -> None:
        """Take in what is new, once nothing is being written."""
        self.memory.settle()
        super().take(messages)

    def request(self) -> Sequence[Wire]:
        """The view; what came back by itself in it is counted."""
        made = super().request()
        tokens = sum(line.tokens for line in self.memory.report().lines if line.tier == "recalled")
        if tokens:
            self.paged_in.append(tokens)
        return made


def demo(
    *,
    budget: BudgetTokens = 6_000,
    db: Annotated[
        Path | None, Parameter(help="Record the run in this SQLite file, not in a new one.")
    ] = None,
    json: AsJson = False,
) -> int:
    """Replay a real agent run through a small budget, and see that nothing is lost.

    The run is bundled: an agent of the mini-swe-agent project mending a bug of a
    Python library. Every request it made is made again from a view under the
    budget; the table says what the view still held of what each step went on
    to use, and whether everything that left it comes back.

    For example:

      pagein demo
      pagein demo --budget 4000 --db demo.db
    """
    check_budget(budget)
    run = demo_run()
    if db is None:
        db = Path(tempfile.mkdtemp(prefix="pagein-")) / "demo.db"
    player = Player(budget, "ladder", "openai", counter_of(None), db)
    _must_be_new(db, (run.id,))
    with screen.progress(run.id, request_points(run)) as advance:
        tally = player.play(run, run.id, advance)
    if json:
        screen.show_json(
            {
                "run": run.id,
                "budget": budget,
                "database": str(db),
                "paged_in": player.paged_in,
                **tally.as_dict(),
            }
        )
    else:
        out = screen.console()
        rows = [*_facts(tally, budget), ("requests in which something came back by itself", _back(player))]
        out.print(screen.facts(f"{run.id} under {budget:,} tokens", rows))
        screen.show(_further(db, budget, tally))
    return _outcome(tally)


def replay(
    file: Annotated[Path, Parameter(help="Recorded runs: JSON lines, a JSON list, or either gzipped.")],
    /,
    *,
    budget: Budget = None,
    policy: PolicyName = None,
    format: FormatName = None,
    model: ModelName = None,
    summarizer: WriterName = None,
    db: NewDatabase = None,
    config: ConfigFile = None,
    json: AsJson = False,
) -> int:
    """Replay every run of a file through a budget: one row a run, then the totals.

    A run is {"id": ..., "messages": [...]} or a bare list of messages, OpenAI chat
    or Anthropic, told by their shape. Needs met are the identifiers and lines a
    step used that the run had shown before and the request still held. Exit code
    1 where a request was over budget or illegal, or anything did not come back.
    With a summarizer each turn begins when nothing is being written. What is not
    said is what pagein.toml says, but for the summarizer.

    For example:

      pagein replay runs.jsonl.gz --budget 8000
      pagein replay run.json --budget 4000 --format anthropic --db run.db
      pagein replay run.json --budget 4000 --policy tiers --summarizer ollama:qwen3
    """
    how = viewing(config, budget=budget, policy=policy, format=format, model=model)
    runs = read_runs(file)
    sessions = distinct(run.id for run in runs)
    if db is not None:
        _must_be_new(db, sessions)
    total = Tally()
    rows: list[tuple[str, Tally]] = []
    with writer(summarizer) as author, screen.progress(file.name, sum(map(request_points, runs))) as advance:
        player = Player(how.budget, how.policy, how.format, how.counter, db, author, how.page_in)
        for run, session in zip(runs, sessions, strict=True):
            tally = player.play(run, session, advance)
            total.add(tally, run.where)
            rows.append((session, tally))
    if json:
        played = [{"id": name, **tally.as_dict()} for name, tally in rows]
        told = {"file": str(file), "budget": how.budget, "runs": played, "totals": total.as_dict()}
        if summarizer is not None:
            told |= {"written_by": dict(Counter(player.written)), "problems": player.problems}
        screen.show_json(told)
    else:
        _print_rows(rows, total, f"{file.name} under {how.budget:,} tokens, {how.name}")
        if summarizer is not None:
            _print_written(player)
    return _outcome(total)


def _print_written(player: Player) -> None:
    by = ", ".join(f"{count} by {name}" for name, count in Counter(player.written).items()) or "none"
    screen.show(f"Summaries that stand at the end: {by}. Runs with problems told: {len(player.problems)}.")
    for each in player.problems[:3]:
        screen.complain(each)


def _must_be_new(db: Path, sessions: Sequence[str]) -> None:
    """Raises ConfigurationError where a run would be appended to one that is recorded already."""
    if not db.exists():
        return
    with _reading(db) as log:
        taken = sorted(set(log.sessions()) & set(sessions))
    if taken:
        raise ConfigurationError(f"{db}: session {taken[0]!r} is recorded there already; give another file")


@contextmanager
def _reading(db: Path) -> Iterator[SQLiteLog]:
    log = SQLiteLog(db, readonly=True)
    try:
        yield log
    finally:
        log.close()


def _outcome(tally: Tally) -> int:
    kept = tally.retrieval is None or tally.retrieval.ok
    for each in tally.raised:
        screen.complain(each)
    return 0 if kept and not (tally.over or tally.illegal or tally.orphans or tally.raised) else 1


def _retrievable(tally: Tally) -> str:
    kept = tally.retrieval
    if kept is None:
        return "-"
    return "yes" if kept.ok else f"NO: {len(kept.lost)} lost"


def _facts(tally: Tally, budget: int) -> Iterator[tuple[str, str]]:
    kept = tally.retrieval
    yield "requests", f"{tally.requests:,}"
    yield "of them with a history above the budget", f"{tally.above:,}"
    yield "tokens sent without pagein", f"{tally.tokens_without:,}"
    yield "tokens sent with pagein", f"{tally.tokens:,}"
    yield "highest request, against the budget", f"{tally.highest:,} of {budget:,}"
    yield "requests over budget, orphaned or illegal", f"{tally.over + tally.orphans + tally.illegal}"
    yield "share of each request that is the next one's prefix", screen.percent(tally.prefix)
    yield "needs met above the budget", screen.percent(tally.needs.met)
    yield (
        "what was recorded, and handles out of the view",
        f"{kept.said:,} and {kept.handles:,}" if kept else "-",
    )
    yield "everything retrievable, equal to the original", _retrievable(tally)


def _back(player: Player) -> str:
    count = len(player.paged_in)
    return f"{count}, {sum(player.paged_in) // count:,} tokens each" if count else "0"


def _further(db: Path, budget: int, tally: Tally) -> str:
    where = shlex.quote(str(db))
    handle = tally.handles[0] if tally.handles else "s2"
    return (
        "\nLook further:\n"
        f"  pagein log {where}\n"
        f"  pagein view {where} --budget {budget}\n"
        f"  pagein expand {where} {handle}\n"
        f"  pagein verify {where}"
    )


def _print_rows(rows: Sequence[tuple[str, Tally]], total: Tally, title: str) -> None:
    made = screen.table(title, "run", "reqs", "without", "with", "highest", "prefix", "met", "back")
    for name, tally in (*rows, ("all", total)):
        if tally is total:
            made.add_section()
        screen.row(made, name, *_cells(tally))
    out = screen.console()
    out.print(made)
    _print_failures(total, out.print)


def _cells(tally: Tally) -> tuple[str, ...]:
    return (
        screen.number(tally.requests),
        screen.short(tally.tokens_without),
        screen.short(tally.tokens),
        screen.number(tally.highest),
        screen.percent(tally.prefix),
        screen.percent(tally.needs.met),
        "raised" if tally.raised else _retrievable(tally),
    )


def _print_failures(total: Tally, put: Callable[[Any], object]) -> None:
    bad = {"over budget": total.over, "with orphans": total.orphans, "illegal": total.illegal}
    put(", ".join(f"{count} {what}" for what, count in bad.items()) + f"; {len(total.raised)} raised")
