"""Anthropic's cache markers: the client's come out, ours stand where a prefix will be sent again. Pure.

A marker never stands in or behind the page-in, which is another one in the next request. The API takes four.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from operator import is_not
from typing import Any

from pagein.formats.anthropic.rules import THINKING_TYPES

MARKER = "cache_control"

Json = dict[str, Any]


def find_marker(body: Mapping[str, Any]) -> Json | None:
    """The first marker in a request, None where its client asks for no cache."""
    blocks = chain((body,), *(_blocks(body.get(key)) for key in ("tools", "system", "messages")))
    return next((block[MARKER] for block in blocks if isinstance(block.get(MARKER), dict)), None)


def _blocks(rows: Any) -> Iterator[Json]:
    """Each block, and those in it."""
    for row in _dicts(rows):
        yield row
        yield from _blocks(row.get("content"))


def _dicts(rows: Any) -> list[Json]:
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


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


def place_markers(client_body: Mapping[str, Any], rows: Sequence[Any], stable_rows: Sequence[Any]) -> Json:
    """The client's request with these messages and our markers, where it set any: behind tools and system, and at the end
    of what is stable.

    ``stable_rows`` are the messages as they are without what is shown behind the run. A second marker in them stands where
    the last request ended, so that its prefix is found however many blocks came since.
    """
    marker = find_marker(client_body)
    marked = {key: value for key, value in client_body.items() if key != MARKER}
    marked |= {key: _without_markers(client_body[key]) for key in ("tools", "system") if key in client_body}
    marked["messages"] = _without_markers(list(rows))
    if marker is None:
        return marked
    if not _mark_last(marked, "system", marker):
        _mark_last(marked, "tools", marker)
    stable = marked["messages"] if stable_rows is rows else _without_markers(list(stable_rows))
    ends = _stable_ends(marked["messages"], stable)
    for row, place in ends[-2:]:
        blocks = list(marked["messages"][row]["content"])
        blocks[place] = {**blocks[place], MARKER: marker}
        marked["messages"][row] = {**marked["messages"][row], "content": blocks}
    return marked


def _mark_last(body: Json, key: str, marker: Json) -> bool:
    rows = body.get(key)
    if isinstance(rows, str) and rows and key == "system":
        rows = [{"type": "text", "text": rows}]
    if not isinstance(rows, list) or not rows or not isinstance(rows[-1], dict):
        return False
    body[key] = [*rows[:-1], {**rows[-1], MARKER: marker}]
    return True


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
