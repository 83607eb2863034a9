"""``python -m benchmarks``: every benchmark, including those of ``pagein bench``, as a command."""

from __future__ import annotations

from collections.abc import Sequence

from cyclopts import App

from benchmarks.cli import clients, degrade, durability, facts, frameworks, inspector, peers, recall, speed, summaries
from pagein.cli import bench, new_app, run_app


def build_app() -> App:
    """Build the command line of the benchmarks."""
    benchmarks = new_app("python -m benchmarks", "The benchmarks of pagein: run them in a checkout of the repository.")
    for command in (
        bench.faults,
        bench.savings,
        speed.speed,
        degrade.degrade,
        summaries.fidelity,
        summaries.checkpoints,
        summaries.blocking,
        durability.crash,
        durability.load,
        recall.search,
        frameworks.frameworks,
        inspector.inspect,
        clients.clients,
        clients.wire_faults,
        peers.peers,
        facts.procedures,
    ):
        benchmarks.command(command)
    benchmarks.command(bench.all_figures, name="all")
    benchmarks.command(facts.measure, name="facts")
    benchmarks.command(durability.opening, name="open")
    benchmarks.command(durability.server_crash, name="server-crash")
    group = App(name="recall", help="Measure the evidence that a search finds.")
    group.command(recall.locomo)
    group.command(recall.longmemeval)
    group.command(recall.runs)
    benchmarks.command(group)
    return benchmarks


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one benchmark; return its exit code."""
    return run_app(build_app(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
