"""Records that models wrote: their encoding, chains of them, and their place in the view. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pagein.context.compaction.episodes import summarize_stretch, visible_texts
from pagein.context.view.view import View
from pagein.errors import FormatError
from pagein.events.entries import Compaction, Replacement
from pagein.events.handles import range_handle
from pagein.events.steps import SummaryStep
from pagein.summaries.job import SummaryRecord
from pagein.summaries.merge import merge_all
from pagein.summaries.renderer import render_summary
from pagein.summaries.summary import summary_from_dict, summary_to_dict
from pagein.tokens import TokenCounter

LONG_SUMMARY_MIN_TOKENS = 100
"""Tokens from which a summary is more than a line with a handle, so that a model may improve it."""

MIN_SOURCE_TOKENS = 300
"""Tokens of source steps from which a model is asked: its record of fewer would be as long as they are."""

RECORD_SHARE = 0.5
"""Share of a range's summary for the model's record; an extract has the rest. Not measured: no good model was available.
An extract keeps the names that a run needs next; a record says what they are about."""


def encode_record(record: SummaryRecord) -> str:
    """Encode a record as JSON for a compaction, which stores its first position itself."""
    value = {"last": record.last, "summary": summary_to_dict(record.summary)}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def decode_record(first: int, record: str) -> SummaryRecord:
    """Decode a compaction's record that begins at ``first``.

    Raises FormatError, ValueError, KeyError or TypeError for another format, such as a later release's.
    """
    value = json.loads(record)
    return SummaryRecord(first, int(value["last"]), summary_from_dict(value["summary"]))


def iter_records(compactions: Iterable[Compaction]) -> Iterator[SummaryRecord]:
    """Yield all records, newest last. Records in another format, such as a later release's, are skipped."""
    for compaction in compactions:
        for replacement in compaction.replacements:
            if replacement.record:
                try:
                    yield decode_record(replacement.first, replacement.record)
                except (FormatError, ValueError, KeyError, TypeError):
                    continue


def chain_records(records: Iterable[SummaryRecord], first: int, last: int) -> tuple[SummaryRecord, ...]:
    """Return records that cover ``[first, last)`` from its beginning without a gap, oldest first; may be empty.

    Of two that begin together the longer one counts, of equal ones the newer.
    """
    longest: dict[int, SummaryRecord] = {}
    for record in records:
        longest_here = longest.get(record.first)
        if record.last <= last and (longest_here is None or record.last >= longest_here.last):
            longest[record.first] = record
    links: list[SummaryRecord] = []
    position = first
    while position in longest and longest[position].last > position:
        links.append(longest[position])
        position = longest[position].last
    return tuple(links)


def merge_records(links: Sequence[SummaryRecord]) -> SummaryRecord:
    """Merge a chain into one record, by code."""
    return SummaryRecord(links[0].first, links[-1].last, merge_all(record.summary for record in links))


def is_long_summary(text: str | None, counter: TokenCounter) -> bool:
    """True for a summary that is more than a line with a handle."""
    return text is not None and len(text) > LONG_SUMMARY_MIN_TOKENS and counter.text(text) >= LONG_SUMMARY_MIN_TOKENS


def long_summaries(view: View, replacements: Iterable[Replacement] = ()) -> Iterator[Replacement]:
    """Return the summaries that a model may improve, oldest first: those of a plan, and those the plan leaves in place."""
    new = [replacement for replacement in replacements if replacement.summary is not None]
    existing = (
        Replacement(entry.first, entry.last, summary=entry.item.content, author=entry.item.author)
        for entry in view.run
        if isinstance(entry.item, SummaryStep)
        and not any(by.first <= entry.first < by.last or by.first < entry.last <= by.last for by in new)
    )
    ordered = sorted((*new, *existing), key=lambda replacement: replacement.first)
    return (replacement for replacement in ordered if is_long_summary(replacement.summary, view.counter))


def compose_replacement(
    view: View, replacement: Replacement, record: SummaryRecord, author: str, *, is_newest: bool
) -> Replacement:
    """Put a model's record before an extract in the replacement's summary, which gets no longer.

    ``is_newest`` extracts from the whole run, else only from the replacement's range.
    """
    tokens = view.counter.text(replacement.summary or "")
    head = render_summary(
        record.summary, int(tokens * RECORD_SHARE), view.counter, handle=range_handle(record.first, record.last)
    )
    entries = tuple(entry for entry in view.run if replacement.first <= entry.first < replacement.last)
    tokens_left = tokens - view.counter.text(head) - 2
    visible = (*visible_texts(view, replacement.last), head)
    extract = summarize_stretch(view, entries, tokens_left, visible, own=not is_newest).summary
    text = f"{head}\n{extract}"
    if not head or view.counter.text(text) > tokens:
        return replacement
    return replace(replacement, summary=text, author=author, record=encode_record(record))
