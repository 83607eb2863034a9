"""``pagein ledger``: what was said in a run and still holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from pagein.cli import _output
from pagein.cli._options import AsJson
from pagein.cli._settings import ANY_RUN, RunOptions
from pagein.cli._stores import StoreAddress
from pagein.events.entries import Importance


def ledger(
    db: StoreAddress,
    /,
    *,
    run: RunOptions = ANY_RUN,
    pin: Annotated[str | None, Parameter(help="Confirm the entry of this handle: pin its words.")] = None,
    drop: Annotated[str | None, Parameter(help="Drop the entries of this handle: they no longer hold.")] = None,
    mark: Annotated[str | None, Parameter(help="Mark the step of this handle.")] = None,
    importance: Annotated[
        Importance,
        Parameter(help="Importance for --mark. high: stays whole. low: leaves first. normal: removes the mark."),
    ] = "high",
    json: AsJson = False,
) -> int:
    """List what was said in a run and still holds: rules, limits, decisions, values.

    They are recognised without a model. Every view shows those whose steps are out
    of it. The newest wording replaces the older one.

    For example:

      pagein ledger run.db
      pagein ledger run.db --drop s12
      pagein ledger run.db --pin s40 --json
      pagein ledger run.db --mark s7 --importance low
    """
    is_change = (pin, drop, mark) != (None, None, None)
    with run.open_memory(db, readonly=not is_change) as memory:
        if pin is not None:
            memory.pin(pin)
        if drop is not None:
            memory.unpin(drop)
        if mark is not None:
            memory.mark(mark, importance)
        entries = memory.ledger()
    if json:
        _output.print_json([asdict(entry) for entry in entries])
        return 0
    if is_change:
        done = {"pinned": pin, "dropped": drop, f"marked {importance}": mark}
        _output.print_text(", ".join(f"{what} {handle}" for what, handle in done.items() if handle is not None))
    for entry in entries:
        mark = f" (replaces {entry.replaces})" if entry.replaces else ""
        _output.print_text(f"{entry.handle:>6}  {entry.kind:<10}  {entry.text}{mark}")
    if not entries:
        _output.print_text("The ledger is empty: no rule, limit, decision or value was recognised.")
    return 0
