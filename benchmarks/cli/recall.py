"""``python -m benchmarks recall`` and ``python -m benchmarks search``: how much is found again, and how fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from benchmarks.recall import locomo as locomo_bench
from benchmarks.recall import longmemeval as longmemeval_bench
from benchmarks.recall.data import Chat, haystack_of, read_locomo, read_longmemeval, read_pool
from benchmarks.recall.measures import BUDGETS
from benchmarks.recall.runs import bench_runs
from benchmarks.recall.searchers import searchers
from benchmarks.search import Measured, bench_search
from pagein.cli import _output as screen
from pagein.cli._options import (
    AsJson,
    BudgetTokens,
    LimitRuns,
    ModelName,
    PageIn,
    PolicyName,
    check_budget,
    check_page_in,
    counter_of,
)
from pagein.cli.recall import EmbedderName
from pagein.context.compaction.registry import policy_named
from pagein.errors import ConfigurationError
from pagein.evaluation.faults import request_points
from pagein.evaluation.runs import read_runs
from pagein.evaluation.tally import Tally
from pagein.memory.options import SHARE
from pagein.search.embedders import embedder_named

Systems = Annotated[
    tuple[str, ...],
    Parameter(consume_multiple=True, help="Only these: words, words and meaning, bare FTS5, newest."),
]


def locomo(
    file: Annotated[Path, Parameter(help="LoCoMo's JSON file, plain or gzipped.")],
    /,
    *,
    embedder: EmbedderName = "auto",
    systems: Systems = (),
    json: AsJson = False,
) -> int:
    """Measure how much of a question's evidence is found among a conversation's turns.

    A turn is "(date) Speaker said, "text" and shared caption". R@k is the mean
    over all questions that have evidence of the share of it among the first k
    turns; E@b the share in a context of b tokens (four characters each) of whole
    turns packed by score, what does not fit skipped; E/@b packed by score /
    tokens ** 0.3. Search is the time of one search, of the conversation's index.

    For example:

      python -m benchmarks recall locomo locomo10.json
      python -m benchmarks recall locomo locomo10.json --embedder none --json
    """
    conversations = read_locomo(file)
    questions = sum(len(locomo_bench.asked(each)) for each in conversations)
    results: dict[str, locomo_bench.Result] = {}
    for name, opened in _systems(embedder, systems).items():
        with screen.progress(name, questions) as advance:
            results[name] = locomo_bench.bench_locomo(conversations, opened, advance)
    if json:
        screen.show_json(
            {"file": str(file), "systems": {name: each.as_dict() for name, each in results.items()}}
        )
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
        Parameter(help="Sessions by id to draw distractors from; without it each question's own haystack."),
    ] = None,
    haystack: Annotated[
        str, Parameter(name="--haystack", help="Sessions in a haystack: a number, or all.")
    ] = "50",
    turns: Annotated[
        bool | None,
        Parameter(
            negative="--no-turns",
            help="Measure by turn, too; by default up to 50 sessions, where it takes minutes.",
        ),
    ] = None,
    embedder: EmbedderName = "auto",
    systems: Systems = (),
    json: AsJson = False,
) -> int:
    """Measure how many sessions and turns that hold the answer are found among distractors.

    By session, as the official protocol has it: user-side text only; questions
    with _abs, or without evidence in a user's turn, left out; all@k is 1 where
    every evidence session is among the first k, any@k where one is (never to be
    compared), NDCG@k the official gain. By turn: E@b is the share of the evidence
    turns, either's, in a context of b tokens (four characters each) of whole
    turns packed by score, E/@b by score / tokens ** 0.3. The distractors of a
    haystack are drawn by random.Random('lme-v1:' + question_id), so that they are
    the same for everyone.

    For example:

      python -m benchmarks recall longmemeval oracle.json --pool pool.json --haystack 50
      python -m benchmarks recall longmemeval longmemeval_s.json --embedder none
    """
    size = _size(haystack)
    chats = read_longmemeval(file)
    drawn = _haystack(read_pool(pool) if pool is not None else None, size)
    by_turn = turns if turns is not None else (size is not None and size <= _BY_TURN)
    questions = len(longmemeval_bench.by_session(chats)) + by_turn * len(longmemeval_bench.by_turn(chats))
    results: dict[str, longmemeval_bench.Result] = {}
    for name, opened in _systems(embedder, systems).items():
        with screen.progress(name, questions) as advance:
            results[name] = longmemeval_bench.bench_longmemeval(chats, drawn, opened, advance, turns=by_turn)
    if json:
        given = {"file": str(file), "haystack": haystack if pool is not None else "own"}
        screen.show_json(given | {"systems": {name: each.as_dict() for name, each in results.items()}})
        return 0
    _print_longmemeval(results, f"{haystack} sessions" if pool is not None else "their own haystacks")
    return 0


def runs(
    *files: Annotated[Path, Parameter(help="Recorded runs: JSON lines, a JSON list, or either gzipped.")],
    budget: BudgetTokens,
    policy: PolicyName = "ladder",
    page_in: PageIn = SHARE,
    model: ModelName = None,
    limit_runs: LimitRuns = None,
    json: AsJson = False,
) -> int:
    """Measure what comes back by itself: what recorded runs need, and miss, with it and without.

    Needs, far needs and faults as in bench faults. Of the far needs, met is the
    share that the request holds: of identifiers, and of all (identifiers
    grounded, and lines). What comes back stands behind the run and is made afresh
    each turn, so it costs prefix: the share of each request that is the beginning
    of the next, over requests whose history exceeds the budget, and over all.

    For example:

      python -m benchmarks recall runs runs.jsonl.gz --budget 4000
      python -m benchmarks recall runs runs.jsonl.gz --budget 8000 --page-in 0.1 --json
    """
    check_budget(budget)
    check_page_in(page_in)
    policy_named(policy)
    counter = counter_of(model)
    if not files:
        raise ConfigurationError("give at least one file of recorded runs")
    if limit_runs is not None and limit_runs < 1:
        raise ConfigurationError(f"--limit-runs must be 1 or more, not {limit_runs}")
    found: dict[str, dict[str, Tally]] = {}
    for path in files:
        played = read_runs(path, limit=limit_runs)
        with screen.progress(path.name, 2 * sum(map(request_points, played))) as advance:
            found[str(path)] = bench_runs(
                played, budget, counter, policy=policy, page_in=page_in, tick=advance
            )
    if json:
        tallies = {
            name: {each: tally.as_dict() for each, tally in both.items()} for name, both in found.items()
        }
        screen.show_json({"budget": budget, "policy": policy, "page_in": page_in, "files": tallies})
        return 0
    for name, both in found.items():
        made = screen.table(f"{Path(name).name}, {budget:,} tokens, {policy}", "page-in", "without", "with")
        for what, cell in _RUN_ROWS.items():
            screen.row(made, what, *map(cell, both.values()))
        screen.console().print(made)
    return 0


_RUN_ROWS: Mapping[str, Callable[[Tally], str]] = {
    "identifiers missing": lambda each: screen.rate(each.needs.rates()["bare"]),
    "identifiers not grounded": lambda each: screen.rate(each.needs.rates()["grounded"]),
    "lines missing": lambda each: screen.rate(each.needs.rates()["lines"]),
    "far needs": lambda each: screen.number(each.far.identifiers + each.far.lines),
    "far identifiers met": lambda each: screen.rate(each.far.met_bare),
    "far needs met": lambda each: screen.rate(each.far.met),
    "prefix kept, above budget": lambda each: screen.rate(each.prefix_above),
    "prefix kept, all requests": lambda each: screen.rate(each.prefix),
    "requests over budget": lambda each: screen.number(each.over),
    "ms a step": lambda each: "-" if each.milliseconds is None else f"{each.milliseconds:.2f}",
}

_BY_TURN = 50


def _print_longmemeval(results: Mapping[str, longmemeval_bench.Result], among: str) -> None:
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

    def drawn(chat: Chat) -> Mapping[str, Any]:
        return haystack_of(chat, pool, size)

    return own if pool is None else drawn


def _print(title: str, rows: Mapping[str, Mapping[str, float]], columns: Sequence[str]) -> None:
    made = screen.table(title, "", *columns)
    for name, means in rows.items():
        cells = [
            f"{means[each]:.0f}" if each == "questions" else screen.rate(means.get(each)) for each in columns
        ]
        screen.row(made, name, *cells)
    screen.console().print(made)


def _print_times(results: Mapping[str, locomo_bench.Result] | Mapping[str, longmemeval_bench.Result]) -> None:
    """By itself: beside six measures a terminal of 80 columns has no room for it."""
    made = screen.table("one search", "", "median ms", "95 % ms")
    for name, each in results.items():
        screen.row(made, name, f"{each.p50:.1f}", f"{each.p95:.1f}")
    screen.console().print(made)


def search(
    *,
    documents: Annotated[int, Parameter(help="Steps in the archive.")] = 100_000,
    sessions: Annotated[int, Parameter(help="Sessions they are spread over.")] = 1,
    queries: Annotated[int, Parameter(help="Searches measured, after as many that are not.")] = 200,
    vectors: Annotated[
        bool,
        Parameter(help="Measure pagein with vectors, too: made up, 384 numbers a step.", show_default=False),
    ] = False,
    json: AsJson = False,
) -> int:
    """Measure how long a search takes, beside plain FTS5 and tantivy.

    Steps of 12 to 45 made-up words, as frequent as words are in English; a query
    is six words of one of them. All engines are asked the same: pagein for ten
    hits with text, score and reason; bare FTS5 (Porter) and tantivy, where it is
    installed, for the ids of the ten best that hold any of the words.

    For example:

      python -m benchmarks search --documents 100000
      pip install tantivy && python -m benchmarks search --documents 1000000 --json
    """
    for option, given in (("--documents", documents), ("--sessions", sessions), ("--queries", queries)):
        if given < 1:
            raise ConfigurationError(f"{option} must be 1 or more, not {given}")
    with screen.progress("index", None) as advance:
        rows = bench_search(
            documents,
            sessions,
            queries,
            lambda what, done, of: advance(done, of=of, what=what),
            vectors=vectors,
        )
    if json:
        screen.show_json(
            {"documents": documents, "sessions": sessions, "rows": [each.as_dict() for each in rows]}
        )
        return 0
    _print_search(rows, documents)
    return 0


def _print_search(rows: Sequence[Measured], documents: int) -> None:
    made = screen.table(
        f"search among {documents:,} steps",
        "",
        "p50 ms",
        "p95 ms",
        "found",
        "index s",
        "disk MB",
        "resident MB",
    )
    for each in rows:
        if each.note:
            screen.row(made, each.name, "-", "-", "-", "-", "-", each.note)
            continue
        screen.row(
            made,
            each.name,
            f"{each.p50:.2f}",
            f"{each.p95:.2f}",
            screen.rate(each.found),
            f"{each.build:.1f}",
            f"{each.disk:.0f}",
            screen.number(each.resident),
        )
    screen.console().print(made)
