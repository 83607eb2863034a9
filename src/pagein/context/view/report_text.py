"""A report as text for a terminal, and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pagein.context.view.view import Report

BAR_CELLS = 40
"""Characters of the bar in a terminal."""

_LETTERS = {
    "system": "S", "pin": "P", "user": "U", "whole": "=", "note": "n", "clip": "c", "mask": "m", "reasoning": "r",
    "summary": "s", "dropped": "d", "floor": "f", "facts": "F", "ledger": "L", "recalled": "R", "request": "-",
}  # fmt: skip
"""The letter of each tier in the bar: colour is not needed to read it."""

_COLOURS = {
    "system": "#5c6370", "pin": "#5c6370", "user": "#2f6fd0", "whole": "#9fb4d8", "note": "#9fb4d8",
    "clip": "#e0b04c", "mask": "#e0b04c", "reasoning": "#e0b04c", "summary": "#b8742c", "dropped": "#b8742c",
    "floor": "#b8742c", "facts": "#3f9a86", "ledger": "#3f9a86", "recalled": "#a24d9c",
}  # fmt: skip
_OTHER_COLOUR = "#c9c5bc"


def report_lines(report: Report) -> Iterator[str]:
    """The report as lines: what is used of the limit, a bar by tier, the tiers with their tokens, and what is out."""
    yield f"{report.tokens:,} of {report.limit:,} tokens ({_share(report.tokens, report.limit)})"
    tiers = report.by_tier()
    yield f"[{_bar(tiers, max(report.limit, report.tokens))}]"
    width = max((len(tier) for tier in tiers), default=0)
    for tier, tokens in tiers.items():
        yield f"  {_LETTERS.get(tier, '?')} {tier:<{width}} {tokens:>9,}  {_share(tokens, report.tokens):>6}"
    yield f"{len(report.out)} out of view" if report.out else "nothing is out of view"
    if report.cost is not None and report.cost.requests:
        yield str(report.cost)
    for problem in report.problems:
        yield f"problem: {problem}"


def _bar(tiers: dict[str, int], whole: int) -> str:
    cells, sum_so_far = "", 0
    for tier, tokens in tiers.items():
        sum_so_far += tokens
        cells += _LETTERS.get(tier, "?") * (round(BAR_CELLS * sum_so_far / max(1, whole)) - len(cells))
    return f"{cells:<{BAR_CELLS}}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.1f} %"


def report_html(report: Report) -> str:
    """The report as a fragment of HTML: a bar by tier, and a table of the same numbers."""
    tiers, whole = report.by_tier(), max(1, report.limit, report.tokens)
    parts = "".join(
        f'<span style="display:inline-block;height:100%;width:{100 * tokens / whole:.2f}%;'
        f'background:{_COLOURS.get(tier, _OTHER_COLOUR)}" title="{escape(tier)}: {tokens:,}"></span>'
        for tier, tokens in tiers.items()
    )
    rows = "".join(
        f'<tr><td style="text-align:left">{escape(tier)}</td><td>{tokens:,}</td>'
        f"<td>{_share(tokens, report.tokens)}</td></tr>"
        for tier, tokens in tiers.items()
    )
    out = f"{len(report.out)} out of view" if report.out else "nothing is out of view"
    cost = "" if report.cost is None or not report.cost.requests else f"<pre>{escape(str(report.cost))}</pre>"
    problems = "".join(f"<p>problem: {escape(problem)}</p>" for problem in report.problems)
    return (
        f"<div><b>{report.tokens:,}</b> of {report.limit:,} tokens, {out}"
        f'<div style="height:16px;max-width:640px;background:#8883;font-size:0;white-space:nowrap">{parts}</div>'
        f"<table><thead><tr><th>tier</th><th>tokens</th><th>share</th></tr></thead><tbody>{rows}</tbody></table>"
        f"{cost}{problems}</div>"
    )
