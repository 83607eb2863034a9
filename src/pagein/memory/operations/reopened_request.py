"""A request that was given out before the run was opened again, and is handed back now. Pure.

The view is made again from the log and rendered. What a list has of it from its beginning on is the library's, wherever
that stood. What was shown behind the view (a page-in, facts) is in no log: of the messages in that one place, those that
are a whole frame are the library's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pagein.context.view.layout import CONTINUE, lay_out, missing_ending
from pagein.context.view.view import View, ViewEntry
from pagein.formats import Format
from pagein.formats.raw_messages import RawRequest, hash_row, is_system

_FRAME = re.compile(r'<memory kind="(?:recalled|facts)">\n.*\n</memory>', re.DOTALL)
"""A block that a view shows behind the run."""


@dataclass(frozen=True, slots=True)
class HandedBackView:
    """The part of a list that is a view: it shows the run up to ``head``. ``rows`` are the messages behind it."""

    head: int
    rows: tuple[Any, ...]
    notes: tuple[str, ...]


def match_view(request: RawRequest, view: View) -> HandedBackView | None:
    """Find the longest beginning of the view that the list begins with; None where the list has no replaced step of it."""
    entries = view.request_entries
    rows = [row for row in request.rows if not is_system(row)]
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high + 1) // 2
        if _rest_behind(request.form, entries[:middle], rows) is None:
            high = middle - 1
        else:
            low = middle
    shown = entries[:low]
    rest = _rest_behind(request.form, shown, rows)
    if rest is None or all(_is_as_recorded(entry) for entry in shown):
        return None
    notes: list[str] = []
    rest = _without_tail(rest, notes, has_ending=bool(missing_ending(shown[-1].messages)))
    head = view.head if low == len(entries) else entries[low].first
    return HandedBackView(head, tuple(rest), tuple(notes))


def _is_as_recorded(entry: ViewEntry) -> bool:
    return entry.tier in ("system", "user", "whole") and not entry.stubs


def _rest_behind(form: Format, entries: Sequence[ViewEntry], rows: Sequence[Any]) -> list[Any] | None:
    """The messages behind these entries as they are rendered; None where the list does not begin with them."""
    if not entries:
        return list(rows)
    messages = lay_out(entry.messages for entry in entries)
    ending = missing_ending(entries[-1].messages)
    rendered = [row for row in form.render(messages[: len(messages) - len(ending)])["messages"] if not is_system(row)]
    if len(rendered) > len(rows) or not rendered:
        return None
    last = len(rendered) - 1
    if any(hash_row(row) != hash_row(other) for row, other in zip(rendered[:last], rows[:last], strict=True)):
        return None
    if hash_row(rendered[last]) == hash_row(rows[last]):
        return list(rows[last + 1 :])
    # A format may put what follows into the same message.
    content, shown = rows[last].get("content"), rendered[last].get("content")
    if not isinstance(content, list) or not isinstance(shown, list) or content[: len(shown)] != shown:
        return None
    return [{**rows[last], "content": content[len(shown) :]}, *rows[last + 1 :]]


def _without_tail(rows: list[Any], notes: list[str], *, has_ending: bool) -> list[Any]:
    """The messages without what was shown behind the run."""
    rest = list(rows)
    while rest and isinstance(rest[0], dict) and rest[0].get("role") == "user":
        content = rest[0].get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        kept = [part for part in parts if not _is_tail(part, notes, has_ending=has_ending)]
        if kept:
            rest[0] = {**rest[0], "content": kept if len(kept) < len(parts) else content}
            break
        rest.pop(0)
    return rest


def _is_tail(part: Any, notes: list[str], *, has_ending: bool) -> bool:
    text = part.get("text") if isinstance(part, dict) else None
    if not isinstance(text, str) or not (_FRAME.fullmatch(text) or (has_ending and text == CONTINUE)):
        return False
    notes.append(f"{text.splitlines()[0]!r} left out: it stands where a request given out before the restart had it")
    return True
