"""The block of a page-in: what it is made of, as much of it as fits, and its text.

The text is written by the same functions when it is first shown and when its request is rendered again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pagein.context.page_in.sources import BlockSource
from pagein.context.salience.extract import ExtractLine
from pagein.context.view.layout import ContextBlock, ViewEntry, make_entry, messages_of
from pagein.context.view.view import View
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


@dataclass(frozen=True, slots=True)
class SourcedBlock:
    """A block of a page-in: its text, where it is from, and the day of a turn."""

    text: str
    source: BlockSource
    day: str = ""


@dataclass(frozen=True, slots=True)
class PageIn:
    """A page-in as it was first shown: its ``entry``, the sources of its blocks, and the numbers of its names.

    A name's number is its place in the tracker at the entry's position.
    """

    entry: ViewEntry
    sources: tuple[BlockSource, ...] = ()
    names: tuple[int, ...] = ()

    @property
    def turns(self) -> frozenset[int]:
        """The positions of its turns."""
        return frozenset(source.position for source in self.sources if source.kind in ("turn", "recent"))

    @property
    def is_of_files(self) -> bool:
        """True if it has lines of files that the run works on."""
        return any(source.kind == "file" for source in self.sources)

    @property
    def has_newest_turns(self) -> bool:
        """True if it has the newest turns that left, which stay the same until the next compaction."""
        return any(source.kind == "recent" for source in self.sources)


def build_page_in(
    view: View,
    tokens: int,
    turns: Sequence[SourcedBlock],
    names: Sequence[str] = (),
    blocks: Sequence[SourcedBlock] = (),
) -> PageIn | None:
    """Build the page-in behind the run of as much as fits the tokens; None where nothing does.

    Of what does not fit the last blocks leave first, then the last names, a fifth at a time, then the last turns.
    """
    while turns or names or blocks:
        rows = ((turn.source.position, turn.day, turn.text) for turn in turns)
        entry = render_page_in(rows, names, (block.text for block in blocks), view.head, view.counter)
        if entry.tokens <= tokens:
            numbers = {name: number for number, name in enumerate(view.tracker.names)} if names else {}
            sources = tuple(block.source for block in (*turns, *blocks))
            return PageIn(entry, sources, tuple(numbers[name] for name in names))
        if blocks:
            blocks = blocks[:-1]
        elif names:
            names = names[: len(names) * 4 // 5]
        else:
            turns = turns[:-1]
    return None


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
