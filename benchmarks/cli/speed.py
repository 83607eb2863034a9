"""``python -m benchmarks speed``: the cost of a turn, an append, a count, an import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from benchmarks.speed import Row, bench_speed
from pagein.cli import _output
from pagein.cli._options import AsJson


def speed(
    *,
    quick: Annotated[
        bool, Parameter(help="Shorter runs, fewer samples: takes seconds, not minutes.", show_default=False)
    ] = False,
    json: AsJson = False,
) -> int:
    """Measure the cost of a turn as a run grows, an append, a count, an import, and memory.

    Everything is measured here on a made-up run, relative to something measured
    at the same time. A turn is a record and a request, of the last 50 before each
    length in steps. The mean includes compactions, the median mostly does not.
    langchain (trim_messages, counting exactly and approximately) and smolagents
    (memory to messages) are measured if installed, and telemetry with
    OpenTelemetry.

    For example:

      python -m benchmarks speed --quick
      pip install 'pagein[bench]' && python -m benchmarks speed
    """
    with _output.progress_bar("turns", None) as advance:
        rows = tuple(bench_speed(lambda what, done, of: advance(done, total=of, label=what), quick=quick))
    if json:
        _output.print_json({"quick": quick, "rows": [row.as_dict() for row in rows]})
        return 0
    show_rows("speed", rows)
    return 0


def show_rows(name: str, rows: Sequence[Row]) -> None:
    """Print measurements as a table."""
    table = _output.new_table(name, "what", "cost", "ratio", "to", "n")
    for row in rows:
        _output.add_row(table, *_speed_cells(row))
    _output.console().print(table)
    for note in dict.fromkeys(row.note for row in rows if row.note and row.value is not None):
        _output.console().print(note)


def _speed_cells(each: Row) -> tuple[str, ...]:
    if each.value is None:
        return each.what, "-", "-", each.note, "-"
    ratio = "-" if each.ratio is None else f"{each.ratio:,.2f}"
    return each.what, f"{each.value:,.2f} {each.unit}", ratio, each.against, f"{each.samples}"
