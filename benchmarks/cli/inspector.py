"""``python -m benchmarks inspect``: the views of the inspector, and the table of requests."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from benchmarks.inspector import bench_inspector
from pagein.cli import _output
from pagein.cli._options import AsJson
from pagein.errors import ConfigurationError


def inspect(
    *,
    runs: Annotated[int, Parameter(help="Runs of the first store.")] = 1_000,
    requests: Annotated[int, Parameter(help="Requests of the run in the second store.")] = 10_000,
    json: AsJson = False,
) -> int:
    """Measure the inspector on a store of many runs and on a long run, and the table of requests.

    Two stores are made, which takes some minutes. A view is measured over HTTP,
    as the first one of a new inspector and later, by the clock and in processor
    time. Ratios are of the first to the target: 1 or less meets it. With
    Playwright and Chromium the pages are measured too.

    For example:

      python -m benchmarks inspect --requests 1000
      python -m benchmarks inspect --json
    """
    if runs < 1 or requests < 10:
        raise ConfigurationError("--runs must be 1 or more, and --requests 10 or more")
    try:
        with _output.progress_bar("runs and requests", runs + requests) as advance:
            measures = bench_inspector(runs, requests, advance)
    except ImportError as error:
        raise ConfigurationError(f"this bench needs {error.name}: pip install 'pagein[serve]'") from None
    if json:
        _output.print_json([asdict(measure) | {"ratio": measure.ratio} for measure in measures])
        return 0
    table = _output.new_table(
        f"{runs:,} runs; {requests:,} requests", "", "measured", "processor", "target", "ratio", "n"
    )
    for measure in measures:
        value, processor, target = map(_format_measure, (measure.value, measure.processor, measure.target))
        _output.add_row(
            table, f"{measure.name}, {measure.unit}", value, processor if measure.processor else "", target,
            f"{measure.ratio:.2f}", f"{measure.n:,}",
        )  # fmt: skip
    _output.console().print(table)
    return 0


def _format_measure(value: float) -> str:
    return f"{value:,.3f}" if value < 10 else f"{value:,.0f}"
