"""``pagein demo`` and ``pagein replay``: replay recorded runs through a memory, request by request."""

from __future__ import annotations

import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.cli import _options, _output, _stores
from pagein.cli._settings import CONFIGURED_VIEW, ViewOptions, ViewSettings
from pagein.context.compaction.registry import policy_named
from pagein.errors import ConfigurationError
from pagein.evaluation.compare import Comparison, replaying
from pagein.evaluation.compare import compare as compare_agent
from pagein.evaluation.faults import Lane, measure_run, request_points
from pagein.evaluation.requests import Scale, Wire
from pagein.evaluation.runs import Run, demo_run, number_duplicates, read_runs, replay_clock
from pagein.evaluation.strategies import PageinStrategy
from pagein.evaluation.talk import MESSAGE_TOKENS, demo_talk, evidence_share, newest_messages, play_talk
from pagein.evaluation.tally import Tally
from pagein.events.steps import SummaryStep
from pagein.formats import FormatName, format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import Options

NewDatabase = Annotated[Path | None, Parameter(help="Record the runs in this SQLite file, each in its own session.")]


@dataclass(frozen=True, slots=True)
class Player:
    """Replays runs through memories with the same settings."""

    settings: ViewSettings
    database: Path | None = None
    summarizer: Any = None
    authors: list[str] = field(default_factory=list)
    """Authors of the summaries in the final views."""
    problems: list[str] = field(default_factory=list)
    paged_in: list[int] = field(default_factory=list)
    """Tokens of the page-in of each request that has one."""

    def play(self, run: Run, session: str, tick: Callable[[], None]) -> Tally:
        """Replay one run, record it in its session, and return its tally."""
        url = ":memory:" if self.database is None else str(self.database)
        settings = self.settings
        options: Options = {**settings.options, "summarizer": self.summarizer}
        with AgentMemory.open(url, session=session, **options) as memory:
            strategy = _WaitingStrategy(memory, speaks=run.format, renders=settings.format)
            lane = Lane(strategy, Scale(settings.counter, format_named(settings.format)))
            measure_run(run, (lane,), settings.budget, settings.counter, tick)
            if not lane.tally.raised:
                items = (entry.item for entry in memory.view().entries)
                self.authors.extend(item.author for item in items if isinstance(item, SummaryStep))
            self.problems.extend(f"{session}: {problem}" for problem in memory.report().problems)
            self.paged_in.extend(strategy.paged_in)
        return lane.tally


class _WaitingStrategy(PageinStrategy):
    """Waits for background summaries between two turns, because a replay leaves no time for them."""

    def __init__(self, memory: AgentMemory, *, speaks: FormatName, renders: FormatName) -> None:
        super().__init__(memory, speaks=speaks, renders=renders)
        self.paged_in: list[int] = []

    def take(self, messages: Sequence[Wire]) -> None:
        """Record the new messages after pending summaries are written."""
        self.memory.wait()
        super().take(messages)

    def request(self) -> Sequence[Wire]:
        """Make the request, and count its page-in."""
        request = super().request()
        tokens = sum(line.tokens for line in self.memory.report().lines if line.tier == "recalled")
        if tokens:
            self.paged_in.append(tokens)
        return request


def demo(
    *,
    budget: _options.BudgetTokens = 6_000,
    db: Annotated[
        Path | None, Parameter(help="SQLite file to record the run in. Default: a new temporary file.")
    ] = None,
    talk: Annotated[bool, Parameter(negative="", help="Show a real chat instead of a coding run.")] = False,
    inspect: Annotated[bool, Parameter(negative="", help="Then show the run in a browser.")] = False,
    json: _options.AsJson = False,
) -> int:
    """Replay a real agent run with a small budget, and show that nothing is lost.

    The bundled run is an agent of the mini-swe-agent project that fixes a bug in a
    Python library. Each of its requests is made again from a view under the
    budget. The table shows how much of what each step used was still in the view,
    and whether everything that left the view can be retrieved.

    With --talk it is a chat of a person with an assistant (LongMemEval, 27,500
    tokens), and questions about what was said: the table shows how much of what
    answers each question stands in the request that asks it.

    For example:

      pagein demo
      pagein demo --talk
      pagein demo --inspect
      pagein demo --budget 4000 --db demo.db
    """
    _options.check_budget(budget)
    if talk:
        return _demo_talk(budget, json=json)
    run = demo_run()
    if db is None:
        db = Path(tempfile.mkdtemp(prefix="pagein-")) / "demo.db"
    settings = ViewSettings(budget, policy_named("ladder"), "openai", _options.resolve_counter(None))
    player = Player(settings, db)
    _check_is_new(db, (run.id,))
    with _output.progress_bar(run.id, request_points(run)) as advance:
        tally = player.play(run, run.id, advance)
    if json:
        _output.print_json(
            {"run": run.id, "budget": budget, "database": str(db), "paged_in": player.paged_in, **tally.as_dict()}
        )
    else:
        out = _output.console()
        rows = [*_demo_rows(tally, budget), ("requests with automatically inserted steps", _format_page_in(player))]
        out.print(_output.pairs_table(f"{run.id} under {budget:,} tokens", rows))
        _output.print_text(_next_commands(db, budget, tally))
    failures = _report_failures(tally)
    if inspect:
        from pagein.cli.inspector import serve_inspector  # noqa: PLC0415 - needs the extra serve

        serve_inspector(str(db), port=0, opens_browser=True)
    return failures


def replay(
    file: Annotated[Path, Parameter(help="Recorded runs: JSON lines, a JSON list, or either gzipped.")],
    /,
    *,
    view: ViewOptions = CONFIGURED_VIEW,
    summarizer: _options.SummarizerName = None,
    db: NewDatabase = None,
    json: _options.AsJson = False,
) -> int:
    """Replay every run of a file with a budget: one row a run, then the totals.

    A run is {"id": ..., "messages": [...]} or a list of messages, in the format of
    OpenAI chat or Anthropic, which is detected. A step needs the identifiers and
    lines that it uses and that the run had shown before. Needs met is the share of
    them that the request still contained. Exit code 1 if a request was over budget
    or illegal, or anything could not be retrieved. With a summarizer, each turn
    waits until all summaries are written. pagein.toml sets the defaults, but not
    the summarizer.

    For example:

      pagein replay runs.jsonl.gz --budget 8000
      pagein replay run.json --budget 4000 --format anthropic --db run.db
      pagein replay run.json --budget 4000 --policy tiers --summarizer ollama:qwen3
    """
    settings = view.settings()
    runs = read_runs(file)
    sessions = number_duplicates(run.id for run in runs)
    if db is not None:
        _check_is_new(db, sessions)
    total = Tally()
    rows: list[tuple[str, Tally]] = []
    player = Player(settings, db, _options.resolve_summarizer(summarizer))
    with _output.progress_bar(file.name, sum(map(request_points, runs))) as advance:
        for run, session in zip(runs, sessions, strict=True):
            tally = player.play(run, session, advance)
            total.add(tally, run.where)
            rows.append((session, tally))
    if json:
        runs_json = [{"id": name, **tally.as_dict()} for name, tally in rows]
        result = {"file": str(file), "budget": settings.budget, "runs": runs_json, "totals": total.as_dict()}
        if summarizer is not None:
            result |= {"written_by": dict(Counter(player.authors)), "problems": player.problems}
        _output.print_json(result)
    else:
        _print_rows(rows, total, f"{file.name} under {settings.budget:,} tokens, {settings.policy.name}")
        if summarizer is not None:
            _print_summaries(player)
    return _report_failures(total)


def compare(
    file: Annotated[Path, Parameter(help="Recorded runs: JSON lines, a JSON list, or either gzipped.")],
    /,
    *,
    view: ViewOptions = CONFIGURED_VIEW,
    limit_runs: _options.LimitRuns = None,
    json: _options.AsJson = False,
) -> int:
    """Play each run of a file twice, with its whole history and with a view of it.

    The actions are the recorded ones. The price of a request is in tokens; a
    beginning that equals the previous request's is cached and costs a tenth.
    Drift is how much less the last third of the actions names the task than the
    first third. pagein.evaluation.compare plays an agent of your own.

    For example:

      pagein compare runs.jsonl.gz --budget 8000 --limit-runs 5
    """
    settings = view.settings()
    rows: dict[str, Comparison] = {}
    runs = read_runs(file, limit=limit_runs)
    with _output.progress_bar(file.name, len(runs)) as advance:
        for run, name in zip(runs, number_duplicates(run.id for run in runs), strict=True):
            options: Options = {**settings.options, "clock": replay_clock()}
            with compare_agent(replaying(run, settings.format), **options) as rows[name]:
                advance()
    if json:
        both = {name: {"whole": asdict(row.whole), "view": asdict(row.view)} for name, row in rows.items()}
        _output.print_json({"budget": settings.budget, "runs": both})
        return 0
    title = f"{file.name}, whole and under {settings.budget:,} tokens, {settings.policy.name}"
    columns = ("run", "steps", "tokens", "with", "price", "with", "repeated", "drift")
    _output.print_table(title, *columns, rows=(_comparison_cells(name, row) for name, row in rows.items()))
    return 0


def _comparison_cells(name: str, row: Comparison) -> tuple[str, ...]:
    sums = (row.whole.tokens, row.view.tokens, row.whole.price, row.view.price)
    tokens = (_output.format_short(round(number)) for number in sums)
    return (name, str(row.view.steps), *tokens, str(row.view.repeated), f"{row.view.drift:+.2f}")


def _print_summaries(player: Player) -> None:
    authors = ", ".join(f"{count} by {name}" for name, count in Counter(player.authors).items()) or "none"
    _output.print_text(f"Summaries in the final views: {authors}. Problems: {len(player.problems)}.")
    for problem in player.problems[:3]:
        _output.print_error(problem)


def _check_is_new(db: Path, sessions: Sequence[str]) -> None:
    """Raise ConfigurationError where a session of a run exists already."""
    if not db.exists():
        return
    with _stores.open_stored_log(str(db)) as log:
        existing = sorted(set(log.store.sessions()) & set(sessions))
    if existing:
        raise ConfigurationError(f"{db}: session {existing[0]!r} is recorded there already; use another file")


def _report_failures(tally: Tally) -> int:
    """Print the errors of a tally; return the exit code."""
    is_complete = tally.retrieval is None or tally.retrieval.ok
    for error in tally.raised:
        _output.print_error(error)
    return 0 if is_complete and not (tally.over or tally.illegal or tally.orphans or tally.raised) else 1


def _format_retrieval(tally: Tally) -> str:
    retrieval = tally.retrieval
    if retrieval is None:
        return "-"
    return "yes" if retrieval.ok else f"NO: {len(retrieval.lost)} lost"


def _demo_talk(budget: int, *, json: bool) -> int:
    """Play the bundled chat, and show what answers its questions, beside the newest messages."""
    counter, conversation = _options.resolve_counter(None), demo_talk()
    whole = sum(counter.text(message["content"]) + MESSAGE_TOKENS for message in conversation.messages)
    with _output.progress_bar(conversation.id, len(conversation.questions)) as advance:
        answers = []
        for answer in play_talk(conversation, budget, counter, {}):
            answers.append(answer)
            advance()
    newest = {question.id: text for question, text, _ in newest_messages(conversation, budget, counter)}
    shares = [(question, evidence_share(text, question.evidence), tokens) for question, text, tokens in answers]
    if json:
        rows = [{"question": question.text, "evidence": share, "tokens": tokens} for question, share, tokens in shares]
        _output.print_json({"talk": conversation.id, "budget": budget, "tokens": whole, "questions": rows})
        return 0
    plain = [evidence_share(newest[question.id], question.evidence) for question, *_ in shares]
    cells = (
        (question.text, f"{share:.0%}", f"{other:.0%}", _output.format_count(tokens))
        for (question, share, tokens), other in zip(shares, plain, strict=True)
    )
    title = f"a chat of {whole:,} tokens, a budget of {budget:,}: the share of an answer in a request"
    _output.print_table(title, "question", "pagein", "newest", "tokens", rows=cells)
    return 0


def _demo_rows(tally: Tally, budget: int) -> Iterator[tuple[str, str]]:
    retrieval = tally.retrieval
    yield "requests", f"{tally.requests:,}"
    yield "of these, with a history above the budget", f"{tally.above:,}"
    yield "tokens sent without pagein", f"{tally.tokens_without:,}"
    yield "tokens sent with pagein", f"{tally.tokens:,}"
    yield "largest request, and the budget", f"{tally.highest:,} of {budget:,}"
    yield "requests over budget, orphaned or illegal", f"{tally.over + tally.orphans + tally.illegal}"
    yield "share of a request that the next one begins with", _output.format_percent(tally.prefix)
    yield "names and lines that a step used, in its request", _output.format_percent(tally.needs.met_share)
    yield (
        "entries recorded, and handles out of the view",
        f"{retrieval.items:,} and {retrieval.handles:,}" if retrieval else "-",
    )
    yield "everything retrievable, equal to the original", _format_retrieval(tally)


def _format_page_in(player: Player) -> str:
    count = len(player.paged_in)
    return f"{count}, {sum(player.paged_in) // count:,} tokens each" if count else "0"


def _next_commands(db: Path, budget: int, tally: Tally) -> str:
    where = shlex.quote(str(db))
    handle = tally.handles[0] if tally.handles else "s2"
    return (
        "\nNext:\n"
        f"  pagein log {where}\n"
        f"  pagein view {where} --budget {budget}\n"
        f"  pagein expand {where} {handle}\n"
        f"  pagein verify {where}\n"
        f"In a browser, after pip install 'pagein[serve]': pagein inspect {where}"
    )


def _print_rows(rows: Sequence[tuple[str, Tally]], total: Tally, title: str) -> None:
    table = _output.new_table(title, "run", "reqs", "without", "with", "highest", "prefix", "met", "back")
    for name, tally in (*rows, ("all", total)):
        if tally is total:
            table.add_section()
        _output.add_row(table, name, *_cells(tally))
    out = _output.console()
    out.print(table)
    out.print(
        "without, with: tokens of all requests without and with pagein. highest: the largest request. prefix: the share that the "
        "next request begins with. met: the share of needs. back: everything can be retrieved."
    )
    counts = {"over budget": total.over, "with orphans": total.orphans, "illegal": total.illegal}
    failures = ", ".join(f"{count} {failure}" for failure, count in counts.items())
    out.print(f"{failures}; {len(total.raised)} raised")


def _cells(tally: Tally) -> tuple[str, ...]:
    return (
        _output.format_count(tally.requests),
        _output.format_short(tally.tokens_without),
        _output.format_short(tally.tokens),
        _output.format_count(tally.highest),
        _output.format_percent(tally.prefix),
        _output.format_percent(tally.needs.met_share),
        "raised" if tally.raised else _format_retrieval(tally),
    )
