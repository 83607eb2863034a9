"""Anthropic's cache markers: the client's come out, ours stand where a prefix will be sent again. Pure.

A marker never stands in or behind the page-in, which is another one in the next request, nor where the prefix is too
short for the model's cache. The API takes four.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from operator import is_not
from typing import Any

from pagein._common.json_values import objects_in
from pagein._common.sequences import count_same
from pagein.formats.anthropic.rules import THINKING_TYPES
from pagein.tokens.prices import PRICES, cache_minimum

MARKER = "cache_control"

TOKEN_BYTES = 2
"""Bytes of a message that count as a token: English has four, Chinese three, code with many numbers two and a half. A
marker too many costs nothing, one too few does."""

Json = dict[str, Any]


def find_marker(body: Mapping[str, Any]) -> Json | None:
    """The first marker in a request, None where its client asks for no cache."""
    blocks = chain((body,), *(_blocks(body.get(key)) for key in ("tools", "system", "messages")))
    return next((block[MARKER] for block in blocks if isinstance(block.get(MARKER), dict)), None)


def _blocks(rows: Any) -> Iterator[Json]:
    """Each block, and those in it."""
    for row in objects_in(rows):
        yield row
        yield from _blocks(row.get("content"))


def _without_markers(rows: Any) -> Any:
    """Tools, blocks or messages without markers; what a tool's arguments are called is left alone."""
    return [_without_marker(row) if isinstance(row, dict) else row for row in rows] if isinstance(rows, list) else rows


def _without_marker(block: Json) -> Json:
    """A block without markers, the same where it has none."""
    content = block.get("content")
    bare = _without_markers(content)
    if isinstance(content, list) and any(map(is_not, bare, content)):
        block = {**block, "content": bare}
    return {key: value for key, value in block.items() if key != MARKER} if MARKER in block else block


@dataclass(slots=True)
class SentRows:
    """The stable messages of a run's last request, without markers, and how many of them a compaction had left."""

    rows: Sequence[Any] = ()
    compacted: int = 0

    def find_ends(self, stable_rows: Sequence[Any]) -> tuple[int, ...]:
        """Return the numbers of first messages that a cache has or will be asked for, and remember these messages.

        A request that goes on begins with the last one. One with a compaction begins with what stood before it, and the
        next compaction will leave what this one did.
        """
        before, self.rows = self.rows, _without_markers(list(stable_rows))
        kept = count_same(before, self.rows)
        if kept < len(before) - 1:
            self.compacted = _shown_again(before[kept:], self.rows)
        return (self.compacted, kept)


def _shown_again(before: Sequence[Any], rows: Sequence[Any]) -> int:
    """The place from which on messages are those that ended the request before; the last one where none is."""
    end = next((at for at in range(len(rows), 0, -1) if rows[at - 1] == before[-1]), len(rows))
    return end - count_same(rows[:end][::-1], before[::-1])


def place_markers(
    client_body: Mapping[str, Any], rows: Sequence[Any], stable_rows: Sequence[Any], *,
    ends: Sequence[int] = (), beside: int = 0, marker: Json | None = None,
) -> Json:  # fmt: skip
    """The client's request with these messages and our markers, where it set any or there is a ``marker``: behind tools
    and system, and at the end of what is stable.

    ``stable_rows`` are the messages without markers and without what is shown behind the run. ``ends`` are further numbers
    of them (``SentRows``): a prefix is found within twenty blocks before a marker. ``beside`` are tokens of tools and system.
    """
    marker = find_marker(client_body) or marker
    marked = {key: value for key, value in client_body.items() if key != MARKER}
    marked |= {key: _without_markers(client_body[key]) for key in ("tools", "system") if key in client_body}
    marked["messages"] = _without_markers(list(rows))
    if marker is None:
        return marked
    minimum = cache_minimum(str(client_body.get("model"))) or PRICES["anthropic"].minimum
    if beside >= minimum and not _mark_last(marked, "system", marker):
        _mark_last(marked, "tools", marker)
    short = _count_short(marked["messages"], minimum - beside)
    places = [end for end in _stable_ends(marked["messages"], stable_rows) if end[0] >= short]
    chosen = {next((end for end in reversed(places) if end[0] < most), None) for most in (*ends, len(rows))}
    for row, place in filter(None, chosen):
        blocks = list(marked["messages"][row]["content"])
        blocks[place] = {**blocks[place], MARKER: marker}
        marked["messages"][row] = {**marked["messages"][row], "content": blocks}
    return marked


def _count_short(rows: Sequence[Any], tokens: int) -> int:
    """Count the first messages that together are shorter than so many tokens."""
    sizes = (len(json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass")) for row in rows)
    return next((at for at, size in enumerate(accumulate(sizes)) if size >= tokens * TOKEN_BYTES), len(rows))


def _mark_last(body: Json, key: str, marker: Json) -> bool:
    rows = body.get(key)
    if isinstance(rows, str) and rows and key == "system":
        rows = [{"type": "text", "text": rows}]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return False
    last = next((at for at in range(len(rows) - 1, -1, -1) if not _is_deferred(rows[at])), None)
    if last is not None:
        body[key] = [*rows[:last], {**rows[last], MARKER: marker}, *rows[last + 1 :]]
    return last is not None


def _is_deferred(tool: Json) -> bool:
    """True for a tool that is loaded when the model looks for it: it is in no prefix, and the API refuses a marker on it."""
    defaults = tool.get("default_config")
    return any(config.get("defer_loading") is True for config in objects_in([tool, defaults]))


def _stable_ends(rows: Sequence[Any], stable_rows: Sequence[Any]) -> list[tuple[int, int]]:
    """For each message of the user that is whole in both, the last block that may be marked: row and place."""
    ends: list[tuple[int, int]] = []
    for number, (row, stable) in enumerate(zip(rows, stable_rows, strict=False)):
        blocks, others = row.get("content"), stable.get("content")
        if row.get("role") != stable.get("role") or not isinstance(blocks, list) or not isinstance(others, list):
            break
        pairs = () if blocks is others else enumerate(zip(blocks, others, strict=False))
        shared = next((at for at, (one, other) in pairs if one != other), None)
        length = min(len(blocks), len(others)) if shared is None else shared
        place = next((at for at in range(length - 1, -1, -1) if _may_be_marked(blocks[at])), None)
        if place is not None and row.get("role") == "user":
            ends.append((number, place))
        if length < len(others):
            break
    return [end for end, _ in pairwise([*ends, (-1, -1)])]


def _may_be_marked(block: Any) -> bool:
    if not isinstance(block, dict) or block.get("type") in THINKING_TYPES:
        return False
    return block.get("type") != "text" or bool(block.get("text"))
