"""``python -m benchmarks speed``: the cost of a turn, an append, a count, an import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from benchmarks.speed import Row, bench_speed
from pagein.cli import _output as screen
from pagein.cli._options import AsJson


def speed(
    *,
    quick: Annotated[
        bool, Parameter(help="Shorter runs, fewer samples: seconds, not minutes.", show_default=False)
    ] = False,
    json: AsJson = False,
) -> int:
    """Measure what it costs: a turn as a run grows, an append, a count, an import, memory.

    Everything is made up here and measured here, each against something measured
    beside it. A turn is a record and a request, of the last 50 before each length
    in steps; the mean has the compactions in it, the median mostly not. langchain
    (trim_messages, counting exactly and approximately) and smolagents (memory to
    messages) are measured where they are installed.

    For example:

      python -m benchmarks speed --quick
      pip install 'pagein[bench]' && python -m benchmarks speed
    """
    with screen.progress("turns", None) as advance:
        rows = tuple(bench_speed(lambda what, done, of: advance(done, of=of, what=what), quick=quick))
    if json:
        screen.show_json({"quick": quick, "rows": [each.as_dict() for each in rows]})
        return 0
    show_rows("speed", rows)
    return 0


def show_rows(name: str, rows: Sequence[Row]) -> None:
    """Print measurements as a table."""
    made = screen.table(name, "what", "cost", "ratio", "to", "n")
    for each in rows:
        screen.row(made, *_speed_cells(each))
    screen.console().print(made)
    for note in dict.fromkeys(each.note for each in rows if each.note and each.value is not None):
        screen.console().print(note)


def _speed_cells(each: Row) -> tuple[str, ...]:
    if each.value is None:
        return each.what, "-", "-", each.note, "-"
    ratio = "-" if each.ratio is None else f"{each.ratio:,.2f}"
    return each.what, f"{each.value:,.2f} {each.unit}", ratio, each.against, f"{each.samples}"
