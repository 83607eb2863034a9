"""A page-in as a value: its blocks with their sources, and as many of them as fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pagein.context.page_in.sources import BlockSource
from pagein.context.page_in.text import render_page_in
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View


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
