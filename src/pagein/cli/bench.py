"""``pagein bench``: measure recorded runs of your own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

from cyclopts import App, Parameter

from pagein.cli import _options, _output, serve
from pagein.context.compaction.registry import policy_named
from pagein.errors import ConfigurationError
from pagein.evaluation import figures
from pagein.evaluation.faults import bench_faults, request_points
from pagein.evaluation.fidelity import BUDGET, STRATEGIES, Setting, Survival, bench_fidelity
from pagein.evaluation.planted import PlantedCounts, build_session
from pagein.evaluation.runs import Run, read_runs
from pagein.evaluation.savings import averages, bench_missing_needs, bench_savings
from pagein.evaluation.talk import (
    PLANTED_SHARES,
    Talk,
    TalkTally,
    newest_and_bm25,
    newest_messages,
    play_planted,
    play_talk,
    read_talks,
)
from pagein.evaluation.tally import NeedCounts, Tally
from pagein.memory.options import PAGE_IN_SHARE
from pagein.summaries.key_items import KINDS
from pagein.tokens import TokenCounter

SEVERAL = Parameter(consume_multiple=True)
RunFile = Annotated[Path, Parameter(help="Recorded runs: JSON lines, a JSON list, or either gzipped.")]


def build_bench_app() -> App:
    """Build the commands under ``pagein bench``."""
    app = App(
        name="bench", help="Measure recorded runs of your own. More benchmarks, in a checkout: python -m benchmarks."
    )
    for command in (faults, savings, talk):
        app.command(command)
    app.command(all_figures, name="all")
    app.command(fidelity)
    app.command(serve.bench_serve, name="serve")
    return app


def faults(
    *files: RunFile,
    budget: _options.BudgetTokens,
    policy: _options.PolicyName = "ladder",
    page_in: _options.PageIn = PAGE_IN_SHARE,
    model: _options.ModelName = None,
    limit_runs: _options.LimitRuns = None,
    json: _options.AsJson = False,
) -> int:
    """Count the text that the model would have missed, with pagein and with baselines.

    A step needs the identifiers, and the lines of 25 characters or more, that its
    tool arguments repeat from earlier in the run. A need that the request lacks is
    a fault. Only steps whose history exceeds the budget count. An identifier is
    grounded if a line with it also has three other words of a line in which it
    occurred. Far needs are outside the most recent tokens that fit the budget.

    The baselines: head+recency keeps the opening and the newest turns that fit,
    like langchain's trim_messages; masking also hides all but the last ten results;
    clipping also cuts long results to head and tail. All three keep the opening
    messages whole at any cost; pagein clips long ones.

    New results whole is the share of the tools' results that are shown whole in the
    next request, where the model first reads them.

    The price of a request is its input tokens. A beginning that equals the previous
    request's counts a tenth, as in a provider's cache.

    Needs met is the share of far needs that the request has: first identifiers,
    then grounded identifiers and lines. --page-in 0 turns the automatic insertion
    of steps off.

    For example:

      pagein bench faults runs.jsonl.gz --budget 4000
      pagein bench faults runs.jsonl.gz --budget 4000 --page-in 0
      pagein bench faults *.jsonl.gz --budget 8000 --limit-runs 20 --json
    """
    _options.check_budget(budget)
    _options.check_page_in(page_in)
    policy_named(policy)
    counter = _options.resolve_counter(model)
    results: dict[str, dict[str, Tally]] = {}
    for name, runs in _read_files(files, limit_runs).items():
        with _output.progress_bar(Path(name).name, sum(map(request_points, runs))) as advance:
            results[name] = bench_faults(runs, budget, counter, policy=policy, page_in=page_in, tick=advance)
        if not json:
            _print_faults(Path(name).name, results[name], budget, policy)
    if json:
        rows = {
            name: {strategy: tally.as_dict() for strategy, tally in tallies.items()}
            for name, tallies in results.items()
        }
        _output.print_json(
            {"budget": budget, "policy": policy, "page_in": page_in, "counter": counter.name, "files": rows}
        )
    return 0


def _read_files(files: Sequence[Path], limit_runs: int | None) -> dict[str, tuple[Run, ...]]:
    """Read the runs of each file; raise ConfigurationError where there is none to read."""
    if not files:
        raise ConfigurationError("give at least one file of recorded runs")
    if limit_runs is not None and limit_runs < 1:
        raise ConfigurationError(f"--limit-runs must be 1 or more, not {limit_runs}")
    return {str(path): read_runs(path, limit=limit_runs) for path in files}


_ROWS: Mapping[str, Callable[[Tally], str]] = {
    "identifiers missing": lambda tally: _output.format_share(tally.needs.rates()["bare"]),
    "identifiers not grounded": lambda tally: _output.format_share(tally.needs.rates()["grounded"]),
    "lines missing": lambda tally: _output.format_share(tally.needs.rates()["lines"]),
    "far identifiers missing": lambda tally: _output.format_share(tally.far.rates()["bare"]),
    "far identifiers not grounded": lambda tally: _output.format_share(tally.far.rates()["grounded"]),
    "far lines missing": lambda tally: _output.format_share(tally.far.rates()["lines"]),
    "far identifiers met": lambda tally: _output.format_share(tally.far.met_bare_share),
    "far needs met": lambda tally: _output.format_share(tally.far.met_share),
    "price a request": lambda tally: _output.format_count(tally.as_dict()["price_a_request_above"]),
    "tokens a request": lambda tally: _output.format_count(tally.as_dict()["tokens_a_request_above"]),
    "new results whole": lambda tally: _output.format_share(tally.whole_share),
    "highest request": lambda tally: _output.format_count(tally.highest),
    "requests over budget": lambda tally: _output.format_count(tally.over),
    "orphans": lambda tally: _output.format_count(tally.orphans),
    "illegal requests": lambda tally: _output.format_count(tally.illegal),
    "runs that raised": lambda tally: _output.format_count(len(tally.raised)),
    "prefix kept, all requests": lambda tally: _output.format_share(tally.prefix),
    "prefix kept, above budget": lambda tally: _output.format_share(tally.prefix_above),
    "ms a step": lambda tally: "-" if tally.milliseconds is None else f"{tally.milliseconds:.2f}",
}


def _print_faults(file: str, tallies: Mapping[str, Tally], budget: int, policy: str) -> None:
    pagein = next(iter(tallies.values()))
    table = _output.new_table(f"{file}, {budget:,} tokens, {policy}", "faults a need", *tallies)
    for label, format_cell in _ROWS.items():
        if label in ("far identifiers missing", "price a request"):
            table.add_section()
        _output.add_row(table, label, *map(format_cell, tallies.values()))
    out = _output.console()
    out.print(table)
    needs, far = pagein.needs, pagein.far
    out.print(
        f"{_output.count_of(pagein.runs, 'run')}, {_output.count_of(pagein.requests, 'request')}, {pagein.above:,} with a history above the budget; they need "
        f"{needs.identifiers:,} identifiers and {needs.lines:,} lines, {far.identifiers:,} and {far.lines:,} far."
    )
    retrieval = pagein.retrieval
    if retrieval is not None:
        answer = "yes" if retrieval.ok else f"NO, {len(retrieval.lost):,} are lost"
        out.print(
            f"Everything retrievable: {answer} ({retrieval.items:,} recorded, {retrieval.handles:,} handles tried).\n"
        )
    for name, tally in tallies.items():
        for error in tally.raised:
            _output.print_error(f"{name}: {error}")


def all_figures(
    *files: Annotated[Path, Parameter(help="Recorded runs to measure beside the data of the package.")],
    quick: Annotated[bool, Parameter(help="Fewer samples, 5 runs of each file, 4,000 and 8,000 tokens alone.")] = False,
    against: Annotated[Path | None, Parameter(help="Compare with the figures in this file.")] = None,
    write: Annotated[Path | None, Parameter(help="Store the figures in this file.")] = None,
    json: _options.AsJson = False,
) -> int:
    """Measure everything on the data of the package, and compare it with stored figures.

    It measures faults, price and prefix of a recorded run; how much of a chat's
    evidence and of planted statements is in view; processor time, as a ratio to a
    fixed piece of work; and the store's bytes, as a ratio to the messages'.

    --against names each figure that is worse by more than its noise, or missing.
    The exit code is then 1. --quick takes some seconds. It compares only with
    files that --quick wrote.

    For example:

      pagein bench all --quick --write figures.json
      pagein bench all --quick --against figures.json
      pagein bench all runs.jsonl.gz --against figures.json --json
    """
    stored = {} if against is None else figures.read_figures(against, is_quick=quick)
    with _output.progress_bar("figures", 3 + (2 if quick else 3) * (1 + len(files))) as advance:
        measured = figures.measure_figures(files, is_quick=quick, tick=lambda _: advance())
        advance()
    if write is not None:
        figures.write_figures(write, measured, is_quick=quick)
    changes = tuple(figures.compare_figures(stored, measured))
    fallen = [change for change in changes if change.is_regression]
    if json:
        _output.print_json({"figures": figures.as_rows(changes), "regressions": [change.name for change in fallen]})
    else:
        _print_changes(changes, is_compared=against is not None)
    return 1 if fallen else 0


def _print_changes(changes: Sequence[figures.Change], *, is_compared: bool) -> None:
    table = _output.new_table("figures", "figure", "stored", "now", "noise", "n", "")
    for change in changes:
        noise, now = figures.noise_of(change.name), change.now
        limit = f"{noise.share:.0%}" if noise.share else f"{noise.absolute:g}"
        state = "WORSE" if change.is_regression and now else "GONE" if change.is_regression else ""
        samples = "-" if now is None else f"{now.samples:,}"
        _output.add_row(table, change.name, _format_figure(change.stored), _format_figure(now), limit, samples, state)
    out = _output.console()
    out.print(table)
    fallen = [change.name for change in changes if change.is_regression]
    if fallen:
        out.print(f"Worse than stored by more than the noise, or gone: {'; '.join(fallen)}.")
    elif is_compared:
        out.print("No figure is worse than stored by more than its noise.")


def _format_figure(figure: figures.Figure | None) -> str:
    if figure is None:
        return "-"
    return f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.3f}"


def savings(
    *files: RunFile,
    policy: _options.PolicyName = "rounds",
    budget: Annotated[
        int | None, Parameter(help="Limit in tokens. Default: 0.4 of the tokens of a run of 100 calls.")
    ] = None,
    model: _options.ModelName = None,
    limit_runs: _options.LimitRuns = None,
    json: _options.AsJson = False,
) -> int:
    """Count the tokens that a policy saves in a request after 50 and 100 tool calls.

    Runs with fewer calls are joined until they have 100; the table says how many.
    The default limit is 40 % of the tokens of a run of 100 calls. The second table
    has the faults, as in bench faults, of the policy and of the ladder at the same
    limit.

    For example:

      pagein bench savings runs.jsonl.gz
      pagein bench savings runs.jsonl.gz --policy ladder --json
    """
    if budget is not None:
        _options.check_budget(budget)
    policy_named(policy)
    counter = _options.resolve_counter(model)
    results, faults_by_file = {}, {}
    for file, runs in _read_files(files, limit_runs).items():
        results[file] = averages(bench_savings(runs, counter, policy=policy, limit=budget))
        tallies = bench_missing_needs(runs, counter, policies=dict.fromkeys((policy, "ladder")), limit=budget)
        faults_by_file[file] = {name: tally.needs.rates() for name, tally in tallies.items()}
    if json:
        _output.print_json({"policy": policy, "counter": counter.name, "files": results, "missed": faults_by_file})
        return 0
    for name, rows in results.items():
        columns = ("calls", "runs", "of recorded", "limit", "without", "with", "saved")
        cells = (
            (
                *(str(row[key]) for key in ("calls", "runs", "recorded_runs")),
                *(_output.format_count(row[key]) for key in ("limit", "without", "within")),
                f"{row['saved']:.0%}",
            )
            for row in rows
        )
        _output.print_table(f"{Path(name).name}, {policy}", *columns, rows=cells)
        missed = ((policy, *map(_output.format_share, of.values())) for policy, of in faults_by_file[name].items())
        title = "missing in the requests above the limit"
        _output.print_table(title, "policy", *NeedCounts().rates(), rows=missed)
    return 0


def fidelity(
    *files: RunFile,
    policies: Annotated[tuple[str, ...], SEVERAL, Parameter(help="Policies to compare.")] = STRATEGIES,
    rounds: Annotated[tuple[int, ...], SEVERAL, Parameter(help="Compactions after which to measure.")] = (1, 5, 10),
    budget: Annotated[int, Parameter(help="Maximum tokens of a request.")] = BUDGET,
    model: _options.ModelName = None,
    limit_runs: _options.LimitRuns = None,
    json: _options.AsJson = False,
) -> int:
    """Measure what a request still shows after 1, 5 and 10 compactions, by kind.

    The command searches the request for two pins, for the rules of the user and
    the application, and for the errors, decisions, paths, identifiers and numbers
    of the steps that left the view. It measures what needs no retrieval. A run
    with fewer compactions does not count.

    An error is the line of a result that says what failed, such as "TypeError:
    no"; at most three of a result. An error that came again is counted once. It
    is shown if the request has the first 80 characters of its line, without
    addresses, line numbers and times.

    For example:

      pagein bench fidelity runs.jsonl.gz
      pagein bench fidelity *.jsonl.gz --policies ladder tiers --rounds 10 --limit-runs 20 --json
    """
    check_fidelity_options(policies, rounds, budget)
    counter = _options.resolve_counter(model)
    rows, setting = {}, Setting(counter, budget, rounds=tuple(sorted(set(rounds))))
    for file, runs in _read_files(files, limit_runs).items():
        name = Path(file).name
        with _output.progress_bar(name, len(runs) * len(policies)) as advance:
            survival = bench_fidelity(runs, policies, setting, advance)
        rows[file] = fidelity_rows(survival)
        if not json:
            print_fidelity(survival, f"{name}, in sight at {budget:,} tokens")
    if json:
        _output.print_json({"budget": budget, "counter": counter.name, "files": rows})
    return 0


def fidelity_rows(survival: Survival) -> dict[str, dict[int, dict[str, Any]]]:
    """Return the counts by policy and number of compactions, for JSON."""
    return {policy: {count: counts.as_dict() for count, counts in of.items()} for policy, of in survival.items()}


def check_fidelity_options(policies: Sequence[str], rounds: Sequence[int], budget: int) -> None:
    """Raise ConfigurationError for a policy that there is not, or numbers that are too small."""
    _options.check_budget(budget)
    for policy in policies:
        policy_named(policy)
    if not rounds or min(rounds) < 1:
        raise ConfigurationError("--rounds are numbers of compactions, 1 or more")


_KINDS = ("constraint", "pin", *(kind for kind in KINDS if kind != "constraint"))
_HEADS = {"constraint": "rules", "identifier": "names", "number": "nums", "decision": "decided"}


def print_fidelity(survival: Survival, title: str) -> None:
    """Print the shares in sight, by policy and number of compactions."""
    heads = (_HEADS.get(kind, f"{kind}s") for kind in _KINDS)
    table = _output.new_table(title, "policy, times", "runs", *heads)
    for name, of in survival.items():
        for count, counts in of.items():
            shares = (_percent(counts.share(kind)) if counts.runs else "-" for kind in _KINDS)
            _output.add_row(table, f"{name} {count}", f"{counts.runs}", *shares)
        table.add_section()
    _output.console().print(table)


def _percent(value: float | None) -> str:
    """Format a share in whole percent, rounded down, so that 100 % is all."""
    return "-" if value is None else f"{int(value * 100)}%"


def talk(
    *files: Annotated[Path, Parameter(help="LoCoMo- or LongMemEval-shaped files, also gzipped. None: planted only.")],
    budget: _options.BudgetTokens = 8_000,
    policy: _options.PolicyName = "ladder",
    page_in: _options.PageIn = PAGE_IN_SHARE,
    questions: Annotated[int, Parameter(help="Questions asked of each conversation.")] = 30,
    pool: Annotated[Path | None, Parameter(help="More sessions, to fill LongMemEval's chats with.")] = None,
    length: Annotated[int, Parameter(help="Tokens of a chat that is filled from the pool.")] = 24_000,
    planted: Annotated[int, Parameter(help="Sessions with planted statements; 0 leaves them out.")] = 12,
    model: _options.ModelName = None,
    json: _options.AsJson = False,
) -> int:
    """Measure what is in view where people talk: evidence of questions, and statements that hold.

    A conversation is played, and at its end each question is asked. Evidence is
    the share of the turns with the answer that the request contains (at least 60
    % of a turn's sequences of three words). The baselines are the newest messages
    that fit, and the newest in 65 % of the budget with BM25 in the rest.

    Planted statements: twenty rules, limits, decisions and values of a session,
    some of them revised later. The session is compacted five times, to 10, 20 and
    30 % of its characters.

    For example:

      pagein bench talk
      pagein bench talk locomo.json --budget 8000 --policy tiers
      pagein bench talk longmemeval.json.gz --pool pool.json.gz --length 31000 --budget 4000 --json
    """
    _options.check_budget(budget)
    _options.check_page_in(page_in)
    policy_named(policy)
    counter = _options.resolve_counter(model)
    for name, number in (("--questions", questions), ("--length", length)):
        if number < 1:
            raise ConfigurationError(f"{name} must be 1 or more, not {number}")
    options = {"policy": policy, "page_in": page_in}
    evidence = {
        str(path): _measure_talks(path, read_talks(path, questions, pool, length, counter), budget, counter, options)
        for path in files
    }
    survival = _measure_planted(planted, counter, options)
    if json:
        rows = {name: {key: tally.as_dict() for key, tally in tallies.items()} for name, tallies in evidence.items()}
        plants = {f"{share:.0%}": asdict(tally) for share, tally in survival.items()}
        _output.print_json(
            {"budget": budget, "policy": policy, "counter": counter.name, "files": rows, "planted": plants}
        )
        return 0
    for name, tallies in evidence.items():
        _print_talks(Path(name).name, tallies, budget, policy)
    if survival:
        _print_planted(survival, planted, policy)
    return 0


def _measure_talks(
    path: Path, talks: Sequence[Talk], budget: int, counter: TokenCounter, options: Mapping[str, Any]
) -> dict[str, TalkTally]:
    tallies = {name: TalkTally() for name in ("pagein", "newest", "newest + BM25")}
    with _output.progress_bar(path.name, len(talks)) as advance:
        for conversation in talks:
            players = (
                play_talk(conversation, budget, counter, options),
                newest_messages(conversation, budget, counter),
                newest_and_bm25(conversation, budget, counter),
            )
            for tally, answers in zip(tallies.values(), players, strict=True):
                for question, text, tokens in answers:
                    tally.add(question, text, tokens, budget)
            advance()
    return tallies


def _print_talks(file: str, tallies: Mapping[str, TalkTally], budget: int, policy: str) -> None:
    table = _output.new_table(f"{file}, {budget:,} tokens, {policy}", "evidence in the request", *tallies)
    for kind in tallies["pagein"].kinds:
        _output.add_row(table, kind, *(f"{mean(tally.kinds[kind]):.3f}" for tally in tallies.values()))
    table.add_section()
    _output.add_row(table, "all", *(f"{tally.share:.3f}" for tally in tallies.values()))
    _output.add_row(table, "highest request", *(_output.format_count(tally.highest) for tally in tallies.values()))
    _output.add_row(table, "requests over budget", *(_output.format_count(tally.over) for tally in tallies.values()))
    _output.console().print(table)
    _output.console().print(f"{len(tallies['pagein'].shares):,} questions.\n")


def _measure_planted(sessions: int, counter: TokenCounter, options: Mapping[str, Any]) -> dict[float, PlantedCounts]:
    if sessions < 1:
        return {}
    tallies = dict.fromkeys(PLANTED_SHARES, PlantedCounts())
    with _output.progress_bar("planted statements", sessions * len(tallies)) as advance:
        for share in tallies:
            for seed in range(sessions):
                tallies[share] += play_planted(build_session(seed), share, counter, options)
                advance()
    return tallies


def _print_planted(tallies: Mapping[float, PlantedCounts], sessions: int, policy: str) -> None:
    shown = list(tallies.values())
    rows = (
        ("survive", *(f"{tally.survivors / max(1, tally.items):.2f}" for tally in shown)),
        ("safety rules", *(f"{tally.safety_survivors} of {tally.safety}" for tally in shown)),
        ("shown in an old form", *(f"{tally.stale} of {tally.revised}" for tally in shown)),
    )
    columns = (f"in {share:.0%}" for share in tallies)
    _output.print_table(f"planted statements, {policy}", "of the characters", *columns, rows=rows)
    _output.console().print(f"{sessions:,} sessions, {shown[0].items:,} statements.\n")
