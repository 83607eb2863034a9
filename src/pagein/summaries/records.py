"""What was written so far, what it stands for together, and how it stands in the view. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pagein.context.compaction.extracts import summary_of, visible_from
from pagein.context.view.view import View
from pagein.errors import FormatError
from pagein.events.entries import Compaction, Replacement
from pagein.events.handles import range_handle
from pagein.events.steps import SummaryStep
from pagein.summaries.job import Written
from pagein.summaries.merge import merged_all
from pagein.summaries.renderer import rendered
from pagein.summaries.summary import as_value, from_value
from pagein.tokens import TokenCounter

LEAST = 100
"""Tokens of text below which a summary is a line with a handle, and no model is asked for a better one."""

SMALLEST = 300
"""Tokens of steps below which no model is asked about them: a record in words of its own would be as long."""

HEAD = 0.5
"""Share of what stands for a range that a model's record of it may have; an extract has the rest. Not measured: no model
that writes well was at hand. An extract keeps the names a run needs next, a record says what they are about."""


def recorded(written: Written) -> str:
    """What was written as it is kept in a compaction, with the position it reaches to."""
    kept = {"last": written.last, "summary": as_value(written.summary)}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def read_record(first: int, record: str) -> Written:
    """What was written from ``first`` on, as a compaction keeps it.

    Raises FormatError, ValueError, KeyError or TypeError for what a later release wrote otherwise.
    """
    value = json.loads(record)
    return Written(first, int(value["last"]), from_value(value["summary"]))


def known(compactions: Iterable[Compaction], kept: Iterable[Written] = ()) -> Iterator[Written]:
    """What models have written so far, newest last. What a later release wrote otherwise is passed over."""
    for compaction in compactions:
        for each in compaction.replacements:
            if each.record:
                try:
                    yield read_record(each.first, each.record)
                except (FormatError, ValueError, KeyError, TypeError):
                    continue
    yield from kept


def chain(found: Iterable[Written], first: int, last: int) -> tuple[Written, ...]:
    """What was written of ``[first, last)`` from its beginning on, oldest first, without a gap; () where nothing was.

    Of two that begin together the longer one counts, of equal ones the newer.
    """
    longest: dict[int, Written] = {}
    for each in found:
        held = longest.get(each.first)
        if each.last <= last and (held is None or each.last >= held.last):
            longest[each.first] = each
    links: list[Written] = []
    at = first
    while at in longest and longest[at].last > at:
        links.append(longest[at])
        at = longest[at].last
    return tuple(links)


def joined(links: Sequence[Written]) -> Written:
    """A chain as one, merged by code."""
    return Written(links[0].first, links[-1].last, merged_all(each.summary for each in links))


def is_long(text: str | None, counter: TokenCounter) -> bool:
    """True for an extract that is more than a line with a handle."""
    return text is not None and len(text) > LEAST and counter.text(text) >= LEAST


def tiles(view: View, replacements: Iterable[Replacement] = ()) -> Iterator[Replacement]:
    """What stands, or will stand, for ranges of the run, oldest first: a plan's summaries, and those it leaves alone."""
    new = [each for each in replacements if each.summary is not None]
    standing = (
        Replacement(each.first, each.last, summary=each.item.content, author=each.item.author)
        for each in view.run
        if isinstance(each.item, SummaryStep)
        and not any(by.first <= each.first < by.last or by.first < each.last <= by.last for by in new)
    )
    found = sorted((*new, *standing), key=lambda each: each.first)
    return (each for each in found if is_long(each.summary, view.counter))


def composed(view: View, by: Replacement, written: Written, author: str, *, newest: bool) -> Replacement:
    """The replacement with a model's record at its head and an extract behind it, no longer than it was.

    ``newest`` makes it an extract of the whole run, else of its own range.
    """
    tokens = view.counter.text(by.summary or "")
    head = rendered(
        written.summary,
        int(tokens * HEAD),
        view.counter,
        handle=range_handle(written.first, written.last),
    )
    held = tuple(each for each in view.run if by.first <= each.first < by.last)
    left = tokens - view.counter.text(head) - 2
    visible = (*visible_from(view, by.last), head)
    extract = summary_of(view, held, left, visible, own=not newest).summary
    text = f"{head}\n{extract}"
    if not head or view.counter.text(text) > tokens:
        return by
    return replace(by, summary=text, author=author, record=recorded(written))
