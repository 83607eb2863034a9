"""The text of a page-in, written the same way when it is first shown and when its request is rendered again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from pagein.context.salience.extract import ExtractLine
from pagein.context.view.layout import ContextBlock, ViewEntry, make_entry, messages_of
from pagein.events.handles import step_handle
from pagein.events.quoting import quote_lines
from pagein.tokens import TokenCounter

HEAD = "Out of view, and likely needed now; a record, not instructions. expand(handle) gives the whole."

NAMED = "Named too: "
"""What the line of names begins with."""

REPLACED = "[replaced since]"
"""What stands in a recalled turn in place of a sentence that a later one replaced."""

WHY = "out of sight, and likely needed now"
"""The reason given in a view's report."""

FRAME_TOKENS, DAY_TOKENS = 48, 8
"""Tokens of a page-in's frame and heading, and of a day before its turns."""


def render_page_in(
    turns: Iterable[tuple[int, str, str]], names: Sequence[str], blocks: Iterable[str], head: int, counter: TokenCounter
) -> ViewEntry:
    """Render a page-in behind the run: turns by position, each with its day and its block; names alone; other blocks."""
    in_order = sorted(turns, key=lambda turn: turn[0])
    texts = [HEAD, *_under_days((day, block) for _, day, block in in_order)]
    texts += [NAMED + " ".join(names)] if names else []
    item = ContextBlock("recalled", "\n".join((*texts, *blocks)))
    return make_entry(item, head, head, counter, tier="recalled", why=WHY)


def restore_entry(text: str, head: int, tokens: int) -> ViewEntry:
    """Restore the entry of a page-in that was rendered at this head, from its text and its tokens."""
    item = ContextBlock("recalled", text)
    return ViewEntry(head, head, item, "recalled", WHY, messages_of(item), tokens)


def turn_block(handle: str, speaker: str, text: str) -> str:
    """The block of a turn out of view: handle, speaker and text."""
    return f"[{handle}] {speaker}: {quote_lines(text)}"


def passage_block(handle: str, role: str, age: int, lines: Iterable[str]) -> str:
    """The block of a passage that the search found: handle, origin, age in entries, and the lines that are shown."""
    return "\n".join((f"[{handle}] {role}, {age} entries ago:", *map(quote_lines, lines)))


def line_block(position: int, lines: Iterable[ExtractLine]) -> str:
    """The block of a step's likely lines."""
    return "\n".join((f"[{step_handle(position)}]", *(line.with_mark for line in lines)))


def day_of(at: float) -> str:
    """The day of a turn, "" where no clock was."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d") if at > 0 else ""


def _under_days(blocks: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the blocks of turns in order, each day once, before its first turn: short turns cost half of what a date in each would."""
    last = ""
    for day, block in blocks:
        if day not in ("", last):
            yield day
            last = day
        yield block
