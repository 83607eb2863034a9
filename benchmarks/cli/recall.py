"""``python -m benchmarks recall`` and ``python -m benchmarks search``: quality and time of search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from benchmarks.recall import locomo as locomo_bench
from benchmarks.recall import longmemeval as longmemeval_bench
from benchmarks.recall.measures import BUDGETS
from benchmarks.recall.runs import bench_runs
from benchmarks.recall.searchers import searchers
from benchmarks.search import SearchCost, bench_search
from pagein.cli import _output
from pagein.cli._options import (
    AsJson,
    BudgetTokens,
    LimitRuns,
    ModelName,
    PageIn,
    PolicyName,
    check_budget,
    check_page_in,
    resolve_counter,
)
from pagein.cli.recall import EmbedderName
from pagein.context.compaction.registry import policy_named
from pagein.errors import ConfigurationError
from pagein.evaluation.conversations import Chat, haystack_of, read_locomo, read_longmemeval, read_pool
from pagein.evaluation.faults import request_points
from pagein.evaluation.runs import read_runs
from pagein.evaluation.tally import Tally
from pagein.memory.options import PAGE_IN_SHARE
from pagein.search.embedders import embedder_named

Systems = Annotated[
    tuple[str, ...],
    Parameter(consume_multiple=True, help="Measure only these: words, words and meaning, bare FTS5, newest."),
]


def locomo(
    file: Annotated[Path, Parameter(help="LoCoMo's JSON file, plain or gzipped.")],
    /,
    *,
    embedder: EmbedderName = "auto",
    systems: Systems = (),
    json: AsJson = False,
) -> int:
    """Measure the share of a question's evidence found among a conversation's turns.

    A turn is "(date) Speaker said, "text" and shared caption". R@k is the mean
    share of the evidence among the first k turns, over all questions that have
    evidence. E@b is the share in a context of b tokens (four characters each) of
    whole turns, packed by score, skipping turns that do not fit; E/@b is packed
    by score / tokens ** 0.3. Search is the time of one search in the
    conversation's index.

    For example:

      python -m benchmarks recall locomo locomo10.json
      python -m benchmarks recall locomo locomo10.json --embedder none --json
    """
    conversations = read_locomo(file)
    questions = sum(len(locomo_bench.questions_with_evidence(conversation)) for conversation in conversations)
    results: dict[str, locomo_bench.LocomoResult] = {}
    for name, opened in _systems(embedder, systems).items():
        with _output.progress_bar(name, questions) as advance:
            results[name] = locomo_bench.bench_locomo(conversations, opened, advance)
    if json:
        _output.print_json({"file": str(file), "systems": {name: each.as_dict() for name, each in results.items()}})
        return 0
    means = {name: each.means for name, each in results.items()}
    title = f"LoCoMo, {len(conversations)} conversations, {questions:,} questions, by turn"
    _print(title, means, [f"R@{k}" for k in locomo_bench.CUTS])
    _print("evidence in a context of b tokens, packed by score", means, [f"E@{b}" for b in BUDGETS])
    _print("packed by score / tokens ** 0.3", means, [f"E/@{b}" for b in BUDGETS])
    best = next(iter(results))
    kinds = results[best].kinds
    columns = ["questions", *(f"R@{k}" for k in locomo_bench.CUTS), "E@1000", "E@4000"]
    _print(f"{best}, by kind of question", kinds, columns)
    _print_times(results)
    return 0


def longmemeval(
    file: Annotated[Path, Parameter(help="LongMemEval's JSON file, plain or gzipped.")],
    /,
    *,
    pool: Annotated[
        Path | None,
        Parameter(help="Sessions by id, from which distractors are drawn. Default: each question's own haystack."),
    ] = None,
    haystack: Annotated[str, Parameter(name="--haystack", help="Sessions in a haystack: a number, or all.")] = "50",
    turns: Annotated[
        bool | None,
        Parameter(
            negative="--no-turns",
            help="Measure by turn, too. Default: only up to 50 sessions, because it takes minutes.",
        ),
    ] = None,
    embedder: EmbedderName = "auto",
    systems: Systems = (),
    json: AsJson = False,
) -> int:
    """Measure the share of sessions and turns with the answer found among distractors.

    By session, as in the official protocol: user-side text only, without
    questions with _abs or without evidence in a user's turn. all@k is 1 if every
    evidence session is among the first k, any@k if one is (do not compare them),
    NDCG@k the official gain. By turn: E@b is the share of the evidence turns, of
    user and assistant, in a context of b tokens (four characters each) of whole
    turns packed by score, E/@b by score / tokens ** 0.3. random.Random('lme-v1:'
    + question_id) draws the distractors of a haystack, so that everyone measures
    the same ones.

    For example:

      python -m benchmarks recall longmemeval oracle.json --pool pool.json --haystack 50
      python -m benchmarks recall longmemeval longmemeval_s.json --embedder none
    """
    size = _size(haystack)
    chats = read_longmemeval(file)
    draw_haystack = _haystack(read_pool(pool) if pool is not None else None, size)
    by_turn = turns if turns is not None else (size is not None and size <= _BY_TURN)
    questions = len(longmemeval_bench.by_session(chats)) + by_turn * len(longmemeval_bench.by_turn(chats))
    results: dict[str, longmemeval_bench.LongMemEvalResult] = {}
    for name, opened in _systems(embedder, systems).items():
        with _output.progress_bar(name, questions) as advance:
            results[name] = longmemeval_bench.bench_longmemeval(chats, draw_haystack, opened, advance, turns=by_turn)
    if json:
        given = {"file": str(file), "haystack": haystack if pool is not None else "own"}
        _output.print_json(given | {"systems": {name: each.as_dict() for name, each in results.items()}})
        return 0
    _print_longmemeval(results, f"{haystack} sessions" if pool is not None else "their own haystacks")
    return 0


def runs(
    *files: Annotated[Path, Parameter(help="Recorded runs: JSON lines, a JSON list, or either gzipped.")],
    budget: BudgetTokens,
    policy: PolicyName = "ladder",
    page_in: PageIn = PAGE_IN_SHARE,
    model: ModelName = None,
    limit_runs: LimitRuns = None,
    json: AsJson = False,
) -> int:
    """Measure page-in: the needs and faults of recorded runs, with it and without.

    Needs, far needs and faults are those of bench faults. Met is the share of the
    far needs that the request has: of identifiers, and of all (identifiers
    grounded, and lines). The page-in is at the end of the request and new at each
    turn, so it shortens the prefix: the share of each request that the next one
    begins with, over requests whose history exceeds the budget, and over all.

    For example:

      python -m benchmarks recall runs runs.jsonl.gz --budget 4000
      python -m benchmarks recall runs runs.jsonl.gz --budget 8000 --page-in 0.1 --json
    """
    check_budget(budget)
    check_page_in(page_in)
    policy_named(policy)
    counter = resolve_counter(model)
    if not files:
        raise ConfigurationError("give at least one file of recorded runs")
    if limit_runs is not None and limit_runs < 1:
        raise ConfigurationError(f"--limit-runs must be 1 or more, not {limit_runs}")
    results: dict[str, dict[str, Tally]] = {}
    for path in files:
        played = read_runs(path, limit=limit_runs)
        with _output.progress_bar(path.name, 2 * sum(map(request_points, played))) as advance:
            results[str(path)] = bench_runs(played, budget, counter, policy=policy, page_in=page_in, tick=advance)
    if json:
        tallies = {name: {each: tally.as_dict() for each, tally in both.items()} for name, both in results.items()}
        _output.print_json({"budget": budget, "policy": policy, "page_in": page_in, "files": tallies})
        return 0
    for name, both in results.items():
        table = _output.new_table(f"{Path(name).name}, {budget:,} tokens, {policy}", "page-in", "without", "with")
        for what, cell in _RUN_ROWS.items():
            _output.add_row(table, what, *map(cell, both.values()))
        _output.console().print(table)
    return 0


_RUN_ROWS: Mapping[str, Callable[[Tally], str]] = {
    "identifiers missing": lambda each: _output.format_share(each.needs.rates()["bare"]),
    "identifiers not grounded": lambda each: _output.format_share(each.needs.rates()["grounded"]),
    "lines missing": lambda each: _output.format_share(each.needs.rates()["lines"]),
    "far needs": lambda each: _output.format_count(each.far.identifiers + each.far.lines),
    "far identifiers met": lambda each: _output.format_share(each.far.met_bare_share),
    "far needs met": lambda each: _output.format_share(each.far.met_share),
    "prefix kept, above budget": lambda each: _output.format_share(each.prefix_above),
    "prefix kept, all requests": lambda each: _output.format_share(each.prefix),
    "requests over budget": lambda each: _output.format_count(each.over),
    "ms a step": lambda each: "-" if each.milliseconds is None else f"{each.milliseconds:.2f}",
}

_BY_TURN = 50


def _print_longmemeval(results: Mapping[str, longmemeval_bench.LongMemEvalResult], among: str) -> None:
    first = next(iter(results.values()))
    means = {name: each.sessions for name, each in results.items()}
    columns = ["all@5", "all@10", "any@5", "any@10", "NDCG@5", "NDCG@10"]
    _print(f"LongMemEval, {first.questions} questions, by session, among {among}", means, columns)
    if first.turn_questions:
        packed = {name: each.turns for name, each in results.items()}
        title = f"{first.turn_questions} questions, evidence turns in a context of b tokens, packed by score"
        _print(title, packed, [f"E@{b}" for b in BUDGETS])
        _print("packed by score / tokens ** 0.3", packed, [f"E/@{b}" for b in BUDGETS])
    _print_times(results)


def _systems(embedder: str, wanted: Sequence[str]) -> dict[str, Any]:
    every = searchers(embedder_named(embedder))
    unknown = [each for each in wanted if each not in every]
    if unknown:
        raise ConfigurationError(f"no system {unknown[0]!r}: use one of {', '.join(every)}")
    return {name: opened for name, opened in every.items() if not wanted or name in wanted}


def _size(given: str) -> int | None:
    if given == "all":
        return None
    if not given.isdecimal() or int(given) < 1:
        raise ConfigurationError(f"--haystack is a number of sessions, 1 or more, or all; not {given!r}")
    return int(given)


def _haystack(pool: Any, size: int | None) -> longmemeval_bench.Haystack:
    def own(chat: Chat) -> Mapping[str, Any]:
        return chat.haystack

    def draw(chat: Chat) -> Mapping[str, Any]:
        return haystack_of(chat, pool, size)

    return own if pool is None else draw


def _print(title: str, rows: Mapping[str, Mapping[str, float]], columns: Sequence[str]) -> None:
    table = _output.new_table(title, "", *columns)
    for name, means in rows.items():
        cells = [
            f"{means[column]:.0f}" if column == "questions" else _output.format_share(means.get(column))
            for column in columns
        ]
        _output.add_row(table, name, *cells)
    _output.console().print(table)


def _print_times(
    results: Mapping[str, locomo_bench.LocomoResult] | Mapping[str, longmemeval_bench.LongMemEvalResult],
) -> None:
    """Print the search times in a table of their own, because 80 columns have no room for more."""
    table = _output.new_table("one search", "", "median ms", "95 % ms")
    for name, each in results.items():
        _output.add_row(table, name, f"{each.p50:.1f}", f"{each.p95:.1f}")
    _output.console().print(table)


def search(
    *,
    documents: Annotated[int, Parameter(help="Number of steps.")] = 100_000,
    sessions: Annotated[int, Parameter(help="Number of sessions.")] = 1,
    queries: Annotated[int, Parameter(help="Measured searches, after as many for warming up.")] = 200,
    vectors: Annotated[
        bool, Parameter(help="Measure pagein with made-up vectors of 384 numbers, too.", show_default=False)
    ] = False,
    json: AsJson = False,
) -> int:
    """Measure the time of a search, compared with plain FTS5 and tantivy.

    Steps have 12 to 45 made-up words, with the frequencies of English words. A
    query is six words of one step. All engines get the same queries: pagein
    returns ten hits with text, score and reason; bare FTS5 (Porter) and tantivy,
    if installed, return the ids of the ten best with any of the words.

    For example:

      python -m benchmarks search --documents 100000
      pip install tantivy && python -m benchmarks search --documents 1000000 --json
    """
    for option, given in (("--documents", documents), ("--sessions", sessions), ("--queries", queries)):
        if given < 1:
            raise ConfigurationError(f"{option} must be 1 or more, not {given}")
    with _output.progress_bar("index", None) as advance:
        rows = bench_search(
            documents, sessions, queries, lambda what, done, of: advance(done, total=of, label=what), vectors=vectors
        )
    if json:
        _output.print_json({"documents": documents, "sessions": sessions, "rows": [row.as_dict() for row in rows]})
        return 0
    _print_search(rows, documents)
    return 0


def _print_search(rows: Sequence[SearchCost], documents: int) -> None:
    table = _output.new_table(
        f"search among {documents:,} steps", "", "p50 ms", "p95 ms", "found", "index s", "disk MB", "resident MB"
    )
    for row in rows:
        if row.note:
            _output.add_row(table, row.name, "-", "-", "-", "-", "-", row.note)
            continue
        _output.add_row(
            table,
            row.name,
            f"{row.p50:.2f}",
            f"{row.p95:.2f}",
            _output.format_share(row.found),
            f"{row.build:.1f}",
            f"{row.disk:.0f}",
            _output.format_count(row.resident),
        )
    _output.console().print(table)
