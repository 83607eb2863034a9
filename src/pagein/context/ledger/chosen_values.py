"""The choice of the one value that a sentence sets. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from pagein.context.ledger import english
from pagein.context.ledger.shortening import drop_opening
from pagein.context.ledger.values import TypedValue, find_option


def shift(value: TypedValue, by: int) -> TypedValue:
    """Return the value at a place that is later in the text."""
    return replace(value, start=value.start + by, end=value.end + by)


def choose_value(masked: str, values: tuple[TypedValue, ...]) -> TypedValue | None:
    """Return the value that the sentence sets: the new one of two, a typed one rather than a name, one after a verb."""
    start, end = 0, len(masked)
    if (replaced := english.find_old_and_new(masked)) is not None:
        start, end = replaced[1]
    elif (retracted := english.TAKES_BACK.match(masked)) is not None:
        start = retracted.end()
    elif (repaired := english.REPAIRS.search(masked)) is not None and _is_repaired(masked, values, repaired):
        start = repaired.end()
    lift = english.LIFTS.search(masked) or english.TAKES_OVER.search(masked)
    inside = [value for value in values if start <= value.start < end]
    if lift is not None and any(value.end <= lift.start() for value in inside):
        inside = [value for value in inside if value.end <= lift.start()][-1:]
    option = find_option(masked[start:end])
    if option is not None:
        option = shift(option, start)
    ranked = sorted(
        inside,
        key=lambda value: (
            ("day", "number", "name").index(value.type) // 2 + 1 if value.type in ("day", "number", "name") else 0,
            not english.SETS_VALUE.search(masked[max(0, value.start - 30) : value.start]),
            not _is_set(masked, value),
            value.start,
        ),
    )
    best = ranked[0] if ranked else None
    if option is None or best is None or best.type != "name":
        return best or option
    return best if _is_set(masked, best) and not _is_set(masked, option) else option


def _is_repaired(masked: str, values: tuple[TypedValue, ...], repair: re.Match[str]) -> bool:
    """True where a value stands on either side of what takes the first one back."""
    before, after = masked[: repair.start()], masked[repair.end() :]
    if find_option(before) and find_option(after):
        return True
    return any(value.end <= repair.start() for value in values) and any(value.start >= repair.end() for value in values)


def _is_set(masked: str, value: TypedValue) -> bool:
    """True for a value behind a word such as "is", "to" or "use"."""
    return bool(english.BEFORE_VALUE.search(masked[max(0, value.start - 30) : value.start]))


def find_free_value(masked: str) -> TypedValue | None:
    """Return the few words that "the topic is coral reefs" and "topic: coral reefs" set; None without them."""
    core = drop_opening(masked)
    deadline = english.DEADLINE.search(core)
    match = deadline or english.FREE_VALUE.search(core)
    if match is None or english.PASSING.match(match["value"]):
        return None
    kind = "date" if match is deadline or english.DATED.search(match[0]) else "text"
    dropped = len(masked) - len(core)
    return TypedValue(match["value"].strip(), kind, *(dropped + end for end in match.span("value")))
