"""How items are found: their namespaces as text that sorts, and the filters of a search. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

END = "\x1f"
"""Ends every label of a namespace, so that ``("a",)`` does not begin ``("ab",)``."""


def namespace_text(namespace: Sequence[str]) -> str:
    """A namespace as text; those below it, and only those, begin with it."""
    return "".join(str(each).replace("\\", "\\\\").replace(END, "\\e") + END for each in namespace)


def namespace_of(text: str) -> tuple[str, ...]:
    """The namespace again."""
    return tuple(
        re.sub(r"\\(.)", lambda found: END if found[1] == "e" else found[1], each)
        for each in text.split(END)[:-1]
    )


def is_in(namespace: Sequence[str], kind: str, path: Sequence[str]) -> bool:
    """Whether the namespace begins (``prefix``) or ends (``suffix``) with the path; ``*`` is any one label."""
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if kind == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def passes(value: Any, wanted: Any) -> bool:
    """Whether a value is what a filter asks for: an equal one, or one that every operator of it holds for.

    What cannot be compared is not what was asked for. Raises ValueError for an operator there is not.
    """
    if not isinstance(wanted, Mapping):
        return bool(value == wanted)
    if any(str(key).startswith("$") for key in wanted):
        return all(_holds(value, str(key), each) for key, each in wanted.items())
    return isinstance(value, Mapping) and all(passes(_at(value, key), each) for key, each in wanted.items())


def _at(value: Mapping[str, Any], key: str) -> Any:
    """What stands under a key, or under one key in another: ``user.name``."""
    first, dot, rest = key.partition(".")
    inner = value.get(first)
    return _at(inner, rest) if key not in value and dot and isinstance(inner, Mapping) else value.get(key)


def _holds(value: Any, operator: str, wanted: Any) -> bool:
    if operator not in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"unknown operator {operator!r}: use $eq, $ne, $gt, $gte, $lt or $lte")
    if operator in ("$eq", "$ne"):
        return bool(value == wanted) == (operator == "$eq")
    try:
        left, right = (
            (value, wanted)
            if isinstance(value, str) and isinstance(wanted, str)
            else (float(value), float(wanted))
        )
    except (TypeError, ValueError):
        return False
    if operator in ("$gt", "$gte"):
        return left > right or (operator == "$gte" and left == right)  # type: ignore[operator]
    return left < right or (operator == "$lte" and left == right)  # type: ignore[operator]


def words_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    match value:
        case str():
            yield value
        case Mapping():
            for each in value.values():
                yield from words_in(each)
        case list() | tuple():
            for each in value:
                yield from words_in(each)
        case int() | float():
            yield str(value)


def nearness(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of two vectors; 0 where one has no length."""
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0
