"""The words that a replaced statement leaves to the newer one, which may not say what it is about: "make it 40". Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from pagein.context.ledger.evidence import own_stems
from pagein.context.ledger.items import BindingStatement, LedgerItem
from pagein.context.ledger.revisions import DECISION_STEMS, REVERSES
from pagein.context.ledger.shortening import shorten
from pagein.context.ledger.topics import CHANGE_STEMS
from pagein.context.ledger.values import VALUE_CONCEPTS, TypedValue, find_values, is_same_type, stem, subject_stems

_PART = re.compile(r"(?<!\d)(?= and )|(?= and (?!\d)|, |; )")

_PLACE = re.compile(r" (?:at|in|on|with|to|by|from) ")


def words_about(new: BindingStatement, origin: LedgerItem) -> str:
    """Return the words of the replaced statement around its value, where the new one names no subject of its own or not all its values."""
    unit, old = new.value_type[5:], origin.statement
    text = shorten(old.text).rstrip(".")
    if REVERSES.search(new.text):
        return text
    parts = _PART.split(origin.about)
    if len(parts) > 1 and any("\u2026" in part and {*new.subject} & {*subject_stems(part, ())} for part in parts):
        return origin.about
    if (part := _part_replaced(new, text)) is not None:
        return f"{text[: part.start]}\u2026{text[part.end :]}"
    if {*new.subject} - VALUE_CONCEPTS - CHANGE_STEMS - {unit, stem(unit), *subject_stems(unit, ()), f"@{unit[2:]}"}:
        return ""
    place = None if old.value else _PLACE.search(new.text)
    before, match, behind = text.partition(old.value or (place[0] if place else "\u2026"))
    about = f"{before}{match}\u2026" if place else f"{before}\u2026{behind}"
    return origin.about or (about if match and {*old.subject} - {*new.subject} - DECISION_STEMS else "")


def about_without(new: BindingStatement, old: LedgerItem) -> str | None:
    """Return what an item is about without the part that the new statement changes; None unless it changes only that.

    "Make the line length 120 (Line length is ... and indentation is 4 spaces)" stays where the indentation changes.
    """
    stems = own_stems(new) | {part for part in new.subject if part[0] == "@"}
    if not old.about or not new.value or not stems.isdisjoint(subject_stems(old.statement.text, ())):
        return None
    for part in _PART.split(old.about):
        values = [value for value in find_values(part) if is_same_type(value.type, new.value_type)]
        if len(values) == 1 and not stems.isdisjoint(subject_stems(part, ())):
            return old.about.replace(part, f"{part[: values[0].start]}\u2026{part[values[0].end :]}")
    return None


def _part_replaced(new: BindingStatement, text: str) -> TypedValue | None:
    """Return the value that a new one replaces where the older text sets one each for several things, None elsewhere."""
    parts, at = list[tuple[int, TypedValue]](), 0
    for part in _PART.split(text):
        values = [value for value in find_values(part) if is_same_type(value.type, new.value_type)]
        stems = {*subject_stems(part, tuple(values))}
        if len(values) == 1 and stems:
            start, end = values[0].start + at, values[0].end + at
            parts.append((len(stems & {*new.subject}), replace(values[0], start=start, end=end)))
        at += len(part)
    most = max((shared for shared, _ in parts), default=0)
    best = [value for shared, value in parts if shared == most]
    return best[0] if len(parts) > 1 and most and len(best) == 1 else None
