"""``python -m benchmarks frameworks``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from benchmarks.frameworks.compare import BUDGET, CALLS, FRAMEWORKS, LONG, STEPS, Cost, bench_frameworks
from pagein.cli import _output as screen
from pagein.cli._options import AsJson

QUICK = 60


def frameworks(
    *names: Annotated[str, Parameter(help="smolagents, langchain, openai-agents, pydantic-ai; else all.")],
    quick: Annotated[bool, Parameter(help="Shorter runs: seconds, not minutes.", show_default=False)] = False,
    json: AsJson = False,
) -> int:
    """Measure what pagein costs and saves inside other people's agents.

    Each framework plays the same scripted agent, bare and with pagein in one
    line: its tool returns some 400 tokens, the budget is 4,000, the log is in
    memory. Times are CPU time of the process, the model's own left out. A turn is
    the median of the last 50 before 200 steps; the mean has the compactions in
    it, and beside it stands what the same turns take with no framework. Tokens
    are those of all requests over 60 calls. The total is of 2,000 steps: bare, in
    LangChain also trimmed to the budget by its own trim_messages, and with pagein.

    For example:

      python -m benchmarks frameworks --quick
      python -m benchmarks frameworks langchain smolagents --json
    """
    steps, long = (QUICK, 0) if quick else (STEPS, LONG)
    with screen.progress("frameworks", None) as advance:
        asked = names or FRAMEWORKS
        found = tuple(
            bench_frameworks(
                asked, lambda what, done, of: advance(done, of=of, what=what), steps=steps, long=long
            )
        )
    if json:
        rows = [each.as_dict() for each in found]
        screen.show_json({"budget": BUDGET, "calls": CALLS, "steps": steps, "long": long, "rows": rows})
        return 0
    _print(found, steps, long)
    return 0


def _print(found: tuple[Cost, ...], steps: int, long: int) -> None:
    measured = [each for each in found if not each.note]
    made = screen.table(f"ms of CPU a turn at {steps:,} steps", "", *(each.framework for each in measured))
    rows = {
        "bare": lambda each: f"{each.turn_bare:.2f}",
        "with pagein": lambda each: f"{each.turn:.2f}",
        "more": lambda each: f"{each.turn - each.turn_bare:.2f}",
        "more, mean": lambda each: f"{each.mean - each.mean_bare:.2f}",
        "of it core": lambda each: f"{each.core:.2f}",
        "tokens sent": lambda each: f"{each.share:.0%}",
    }
    if long:
        rows[f"s for {long:,}, bare"] = lambda each: f"{each.long_bare / 1_000:.1f}"
        rows["… trimmed by it"] = lambda each: f"{each.long_own / 1_000:.1f}" if each.long_own else ""
        rows[f"s for {long:,}"] = lambda each: f"{each.long / 1_000:.1f}"
    for what, cell in rows.items():
        screen.row(made, what, *map(cell, measured))
    screen.console().print(made)
    for each in found:
        if each.note:
            screen.complain(f"{each.framework}: {each.note}")
