"""Which ranges are worth writing, on what they build, and how what was written is put into a plan. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pagein.compaction import Plan
from pagein.errors import ConfigurationError, FormatError, LogUnreadable
from pagein.log import Compaction, Replacement
from pagein.summaries.merging import merged_all
from pagein.summaries.summary import EXTRACTIVE, Summary, from_json
from pagein.tokens import TokenCounter
from pagein.view import View
from pagein.view.fold import preview
from pagein.writing import Outcome

LEAST = 100
"""Tokens of text below which a summary is a line with a handle, and no model is asked for a better one."""


@dataclass(frozen=True, slots=True)
class Known:
    """What was written of a range ``[first, last)``."""

    first: int
    last: int
    summary: Summary


def wanted(plan: Plan, counter: TokenCounter) -> tuple[Replacement, ...]:
    """The summaries of a plan that a model may write better: extracts long enough to be more than a line."""
    return tuple(
        each
        for each in plan.replacements
        if each.summary is not None
        and each.author == EXTRACTIVE
        and len(each.summary) > LEAST
        and counter.text(each.summary) >= LEAST
    )


def known(compactions: Iterable[Compaction], kept: Iterable[Replacement] = ()) -> Iterator[Known]:
    """What models have written so far, newest last. A record of a later release is passed over."""
    recorded = (each for compaction in compactions for each in compaction.replacements)
    for each in (*recorded, *kept):
        if each.record:
            try:
                yield Known(each.first, each.last, from_json(each.record))
            except FormatError:
                continue


def built_on(found: Iterable[Known], first: int, last: int) -> tuple[Summary | None, int]:
    """What was written of ``[first, last)`` from its beginning on, merged, and where that ends.

    The ranges join without a gap; of two that begin together the longer one counts, of equal ones the newer.
    """
    longest: dict[int, Known] = {}
    for each in found:
        held = longest.get(each.first)
        if each.last <= last and (held is None or each.last >= held.last):
            longest[each.first] = each
    chain: list[Summary] = []
    at = first
    while at in longest and longest[at].last > at:
        chain.append(longest[at].summary)
        at = longest[at].last
    return (merged_all(chain) if chain else None), at


def adopted(view: View, outcome: Outcome, check: Callable[[View, Plan], Plan]) -> Plan | None:
    """The job's plan with what was written in place, where it still holds in this view; None where it is stale.

    Steps that came meanwhile stay. A range that was folded into a larger one since is stale.
    """
    by_range: Mapping[tuple[int, int], Replacement] = {
        (each.first, each.last): each for each in outcome.written
    }
    if not by_range:
        return None
    plan = outcome.job.plan
    replacements = tuple(by_range.get((each.first, each.last), each) for each in plan.replacements)
    authors = "+".join(dict.fromkeys(each.author for each in outcome.written))
    whole = replace(plan, replacements=replacements, reason=f"{plan.reason}; written by {authors}")
    try:
        preview(view, check(view, whole).replacements)
    except (ConfigurationError, LogUnreadable):
        return None
    return whole
