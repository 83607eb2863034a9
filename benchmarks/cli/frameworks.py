"""``python -m benchmarks frameworks``: cost and savings inside agents of other frameworks."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from benchmarks.frameworks.compare import BUDGET, CALLS, FRAMEWORKS, LONG, STEPS, Cost, bench_frameworks
from pagein.cli import _output
from pagein.cli._options import AsJson

QUICK = 60


def frameworks(
    *names: Annotated[str, Parameter(help="smolagents, langchain, openai-agents or pydantic-ai. Default: all.")],
    quick: Annotated[bool, Parameter(help="Shorter runs: takes seconds, not minutes.", show_default=False)] = False,
    json: AsJson = False,
) -> int:
    """Measure the cost and savings of pagein inside agents of other frameworks.

    Each framework runs the same scripted agent, bare and with pagein. Its tool
    returns some 400 tokens, the budget is 4,000 tokens, the log is in memory.
    Times are CPU time of the process, without the model's. A turn is the median
    of the last 50 before 200 steps; the mean includes compactions. Core is the
    time of the same turns without a framework. Tokens are those of all requests
    over 60 calls. The total is of 2,000 steps: bare, in LangChain also trimmed to
    the budget by its own trim_messages, and with pagein.

    For example:

      python -m benchmarks frameworks --quick
      python -m benchmarks frameworks langchain smolagents --json
    """
    steps, long = (QUICK, 0) if quick else (STEPS, LONG)
    with _output.progress_bar("frameworks", None) as advance:
        asked = names or FRAMEWORKS
        results = tuple(
            bench_frameworks(asked, lambda what, done, of: advance(done, total=of, label=what), steps=steps, long=long)
        )
    if json:
        rows = [each.as_dict() for each in results]
        _output.print_json({"budget": BUDGET, "calls": CALLS, "steps": steps, "long": long, "rows": rows})
        return 0
    _print(results, steps, long)
    return 0


def _print(found: tuple[Cost, ...], steps: int, long: int) -> None:
    measured = [each for each in found if not each.note]
    table = _output.new_table(f"ms of CPU a turn at {steps:,} steps", "", *(each.framework for each in measured))
    rows = {
        "bare": lambda each: f"{each.turn_bare:.2f}",
        "with pagein": lambda each: f"{each.turn:.2f}",
        "more": lambda each: f"{each.turn - each.turn_bare:.2f}",
        "more, mean": lambda each: f"{each.mean - each.mean_bare:.2f}",
        "of this, core": lambda each: f"{each.core:.2f}",
        "tokens sent": lambda each: f"{each.share:.0%}",
    }
    if long:
        rows[f"s for {long:,}, bare"] = lambda each: f"{each.long_bare / 1_000:.1f}"
        rows["… trimmed by it"] = lambda each: f"{each.long_own / 1_000:.1f}" if each.long_own else ""
        rows[f"s for {long:,}"] = lambda each: f"{each.long / 1_000:.1f}"
    for what, cell in rows.items():
        _output.add_row(table, what, *map(cell, measured))
    _output.console().print(table)
    for each in found:
        if each.note:
            _output.print_error(f"{each.framework}: {each.note}")
