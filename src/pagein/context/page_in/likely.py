"""Likely needs of a step that are out of view: passages that the search finds, and lines and names of the run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from pagein.context.page_in.block import FRAME_TOKENS, PageIn, SourcedBlock, build_page_in, line_block, passage_block
from pagein.context.page_in.limits import PAGE_IN_MIN_TOKENS
from pagein.context.page_in.named import VisibleContentCache
from pagein.context.page_in.sources import WHOLE_PART, BlockSource, passage_source
from pagein.context.salience.extract import VisibleContent, select_lines
from pagein.context.salience.lines import strip_line_number
from pagein.context.view.view import View
from pagein.events.identifiers import identifiers
from pagein.events.quoting import unquote_lines

if TYPE_CHECKING:
    from pagein.search.base import Hit

MAX_HITS = 16
"""Search results considered for a page-in."""

SEARCH_SHARE = 0.5
"""Share of a page-in for search results, where the user speaks in a run that is no talk."""

NAME_WORTH = 0.95
"""Worth of a name alone in a page-in, relative to one in a line: with .7 more names are missing, .014 against .011 at 4,000
tokens (30 mini-swe-agent runs), and the lines are as many."""

BLOCK_LINE_MIN_CHARS = 8
"""Characters of the longest line in a block of search results, at least."""

_NAME_SEPARATORS = re.compile(r"[/:-]+")
"""Separators within a name, treated like a dot."""


def build_likely(
    view: View,
    tokens: int,
    query: str,
    cache: VisibleContentCache,
    *,
    worth: float,
    turns: Sequence[SourcedBlock] = (),
    hits: Sequence[Hit] = (),
) -> PageIn | None:
    """Build the page-in in at most ``tokens``, of turns that were chosen, search hits, and likely lines and names.

    A line or a name is shown where the needs it meets are expected to be ``worth`` its tokens. None where nothing is.
    """
    visible = cache.content(view)
    passages = _passage_blocks(view, hits, int(tokens * SEARCH_SHARE), query, set(visible.lines))
    texts = [block.text for block in (*turns, *passages)]
    visible = VisibleContent.merge((visible, VisibleContent.parse(texts, view.tracker.parser)))
    tokens_left = tokens - FRAME_TOKENS - sum(view.counter.text(text) + 1 for text in texts)
    lines, names = _likely_lines(view, visible, tokens_left, query, worth)
    return build_page_in(view, tokens, turns, names, (*passages, *lines))


def _likely_lines(
    view: View, visible: VisibleContent, tokens: int, query: str, worth: float
) -> tuple[list[SourcedBlock], Sequence[str]]:
    """Return the lines that are out of view and worth their tokens, newest first, and the names alone."""
    if tokens < PAGE_IN_MIN_TOKENS // 2:
        return [], ()
    extract = select_lines(
        view.tracker, tokens, view.counter,
        visible=visible, worth=worth, alone=NAME_WORTH, reserves=False, focus=frozenset(identifiers(query)),
    )  # fmt: skip
    groups = [(position, list(group)) for position, group in groupby(extract.lines, key=lambda line: line.position)]
    blocks = [
        SourcedBlock(
            line_block(position, lines), BlockSource("lines", position, WHOLE_PART, tuple(line.order for line in lines))
        )
        for position, lines in reversed(groups)
    ]
    visible_parts = _delimit_name(". .".join(visible.names))
    names = (name for name in extract.names if _delimit_name(name) not in visible_parts)
    return blocks, _drop_contained_names(names)


def _drop_contained_names(names: Iterable[str]) -> list[str]:
    """Drop the names that are part of a likelier one, as ``models.py`` of ``app/models.py``."""
    listed, listed_parts = list[str](), ""
    for name in names:
        if (part := _delimit_name(name)) not in listed_parts:
            listed.append(name)
            listed_parts += f" {part}"
    return listed


def _delimit_name(name: str) -> str:
    return f".{_NAME_SEPARATORS.sub('.', name)}."


def _passage_blocks(
    view: View, hits: Sequence[Hit], tokens: int, query: str, visible_lines: set[str]
) -> list[SourcedBlock]:
    """Return the passages of search hits, without visible lines; those in which too little is left are left out."""
    if not hits:
        return []
    from pagein.search.snippets import GAP, pack  # noqa: PLC0415 - loads where something left

    blocks: list[SourcedBlock] = []
    for snippet in pack(hits, tokens, view.counter, query):
        hit, hidden = snippet.hit, list(_hidden_lines(snippet.text, visible_lines))
        if any(len(strip_line_number(line)) >= BLOCK_LINE_MIN_CHARS and line != GAP for line in hidden):
            visible_lines.update(map(strip_line_number, hidden))
            text = passage_block(snippet.handle, hit.role, view.head - hit.position, hidden)
            blocks.append(SourcedBlock(text, passage_source(hit, unquote_lines(text.partition("\n")[2]))))
    return blocks


def _hidden_lines(text: str, visible_lines: set[str]) -> Iterator[str]:
    for line in text.splitlines():
        key = strip_line_number(line)
        # The index has a call as "tool: arguments", a view has its arguments.
        if not key or (key not in visible_lines and strip_line_number(key.partition(": ")[2]) not in visible_lines):
            yield line
