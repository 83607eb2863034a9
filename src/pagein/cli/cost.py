"""``pagein cost``: what the requests of a run cost, and what each compaction and page-in cost and saved."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from pagein.cli import _output
from pagein.cli._options import AsJson
from pagein.cli._settings import ANY_RUN, ConfigFile, RunOptions, option_or_setting
from pagein.cli._stores import ReadonlyStoreAddress
from pagein.context.costs import RunCost
from pagein.memory.config import load
from pagein.tokens.prices import PRICES


def cost(
    db: ReadonlyStoreAddress,
    /,
    *,
    run: RunOptions = ANY_RUN,
    prices: Annotated[
        str | None, Parameter(help=f"Prices of the provider: {', '.join(PRICES)}. Default: the configuration's.")
    ] = None,
    config: ConfigFile = None,
    json: AsJson = False,
) -> int:
    """Show what the requests of a run cost, and what was saved.

    Prices are in input tokens: a cached token costs a tenth, a token of the answer
    five or more. "With the whole history" is the price if nothing had left the
    view. A compaction saves the price of what left, and costs what had to be sent
    again uncached. A page-in costs its tokens, and saves a request if the agent
    used something that only the page-in showed.

    The usage that the provider reported is shown too, with a warning if its cache
    read clearly less than what was unchanged.

    For example:

      pagein cost run.db
      pagein cost run.db --prices anthropic
      pagein cost run.db --session web-app --json
    """
    chosen = option_or_setting(load(config), "prices", prices)
    with run.open_memory(db, file=config, readonly=True, prices=chosen) as memory:
        result = memory.cost()
    if json:
        sums = ("cached_share", "written", "net", "total")
        _output.print_json(asdict(result) | {name: getattr(result, name) for name in sums})
    else:
        _print_cost(result)
    return 0


def _print_cost(result: RunCost) -> None:
    if not result.requests:
        _output.print_text("No request of this run is known.")
        return
    _output.print_text(str(result))
    title = "compactions and page-ins; at: where the request changed; again: tokens sent again uncached"
    columns = ("what", "at", "request", "tokens", "again", "cost", "saved", "net")
    counts = (
        (line.request, line.tokens, line.rewritten, round(line.cost), round(line.saved), round(line.net))
        for line in result.lines
    )
    rows = (
        (line.kind, line.handle, *map(_output.format_count, of)) for line, of in zip(result.lines, counts, strict=True)
    )
    _output.print_table(title, *columns, rows=rows, empty="Nothing left the view yet.", text_columns=2)
