"""Results abridged by their structure: JSON, diffs, tables and logs. Pure.

What is left out is counted where it stood. A text of another kind, or one that does not fit so, is for the caller to clip.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from pagein.context.salience.lines import is_failure

JSON_LEVELS = ((32, 600), (16, 300), (8, 160), (4, 80), (2, 40), (1, 20))
"""Items of a list or an object, and characters of a text, that stay: the first pair with which JSON fits."""

HUNK_LEVELS = (80, 40, 20, 10, 5, 2, 0)
"""Changed lines of a hunk that stay; its unchanged lines leave."""

MAX_DEPTH = 16
"""Depth of JSON below which nothing is shown."""

PARSED_MAX_CHARS = 1_000_000
"""Characters above which a text is not parsed as JSON."""

TABLE_MIN_ROWS, LOG_MIN_LINES = 8, 20
"""Lines from which on a text may be a table, or a log."""

LINE_SHARE = 0.8
"""Share of the lines that look like rows, or records, of a table or a log."""

ERROR_SHARE, FIRST_SHARE = 0.4, 0.5
"""Share of a log's tokens for its errors, and of the rest for its first lines."""

_HUNK = re.compile(r"@@ .*@@")
_FILE_LINE = re.compile(
    r"(?:diff --git|index|new file|deleted file|similarity|rename|old mode|new mode|Binary files|--- |\+\+\+ )"
)
_RECORD = re.compile(
    r"\W{0,2}(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\w{3} [ \d]\d \d\d:\d\d|\d{9,13}\b|(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|TRACE)\b)"
)
_RULE_ROW = re.compile(r"[\s|+:=-]+")
_DIGITS = re.compile(r"\d+")

Fits = Callable[[str], bool]


def abridge(text: str, fits: Fits) -> str | None:
    """Return a text abridged by its structure until it ``fits``; None if it has none, or does not fit so."""
    forms = (_json_forms, _diff_forms, _table_forms, _log_forms)
    for forms_of in forms:
        candidates = forms_of(text)
        if candidates is not None:
            return next(filter(fits, candidates), None)
    return None


def _json_forms(text: str) -> Iterator[str] | None:
    if text.lstrip()[:1] not in ("{", "[") or len(text) > PARSED_MAX_CHARS:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    indent = 1 if "\n" in text.strip() else None
    # Half of a surrogate pair can be written as an escape alone.
    has_halves = re.search(r"\\u[dD][89a-fA-F]", text) is not None
    return (
        json.dumps(_shorten(value, items, characters), ensure_ascii=has_halves, indent=indent)
        for items, characters in JSON_LEVELS
    )


def _shorten(value: Any, items: int, characters: int, depth: int = 0) -> Any:
    """Shorten the texts, lists and objects in a value of JSON; what is left out is counted."""
    match value:
        case str() if len(value) > characters + 24:
            return f"{value[:characters]}... {len(value) - characters:,} characters more"
        case list() | dict() if depth == MAX_DEPTH and value:
            return f"... {len(value):,} items deeper"
        case list() if len(value) > items + 1:
            more = [f"... {len(value) - items:,} items more"]
            return [*(_shorten(item, items, characters, depth + 1) for item in value[:items]), *more]
        case list():
            return [_shorten(item, items, characters, depth + 1) for item in value]
        case dict() if len(value) > 2 * items + 1:
            shown = {
                key: _shorten(item, items, characters, depth + 1) for key, item in list(value.items())[: 2 * items]
            }
            return shown | {"...": f"{len(value) - 2 * items:,} keys more"}
        case dict():
            return {key: _shorten(item, items, characters, depth + 1) for key, item in value.items()}
        case _:
            return value


def _diff_forms(text: str) -> Iterator[str] | None:
    lines = text.splitlines()
    if not any(map(_HUNK.match, lines)) or not any(line.startswith("+++ ") for line in lines):
        return None
    return ("\n".join(_shorten_diff(lines, most)) for most in HUNK_LEVELS)


def _shorten_diff(lines: Sequence[str], most: int) -> Iterator[str]:
    """Yield headers of files and hunks, and of each hunk ``most`` changed lines at most."""
    changed = left_out = 0
    for line in lines:
        is_header = _HUNK.match(line) or _FILE_LINE.match(line)
        if is_header and left_out:
            yield _left_out_line(left_out)
        if is_header:
            changed = left_out = 0
        changed += line.startswith(("+", "-")) and not is_header
        if is_header or (line.startswith(("+", "-")) and changed <= most):
            yield line
        else:
            left_out += 1
    if left_out:
        yield _left_out_line(left_out)


def _left_out_line(count: int) -> str:
    return f"... {count:,} lines left out"


def _table_forms(text: str) -> Iterator[str] | None:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < TABLE_MIN_ROWS or not _has_columns(lines):
        return None
    header = 2 if _RULE_ROW.fullmatch(lines[1]) else 1
    counts = (len(lines) // 2**halvings for halvings in range(1, 12))
    return ("\n".join(_ends_of(lines, header, count)) for count in counts if count)


def _has_columns(lines: Sequence[str]) -> bool:
    """True if most lines have as many separators as the first one, two at least, and none is indented as code is."""
    if any(line[0].isspace() for line in lines[1:]):
        return False
    for separator in ("|", "\t", ",", ";"):
        count = lines[0].count(separator)
        if count >= 2 and sum(line.count(separator) == count for line in lines) >= LINE_SHARE * len(lines):
            return True
    return False


def _ends_of(rows: Sequence[str], header: int, count: int) -> Iterator[str]:
    """Yield the header, and ``count`` rows of the others in halves, the first and the last ones."""
    first = header + (count + 1) // 2
    last = max(first, len(rows) - count // 2)
    yield from rows[:first]
    if last > first:
        yield f"... {last - first:,} rows left out"
    yield from rows[last:]


def _log_forms(text: str) -> Iterator[str] | None:
    lines = text.splitlines()
    records = sum(_RECORD.match(line) is not None for line in lines)
    if len(lines) < LOG_MIN_LINES or records < LINE_SHARE * len(lines):
        return None
    counts = (len(lines) // 2**halvings for halvings in range(1, 12))
    return ("\n".join(_shorten_log(lines, count)) for count in counts if count)


def _shorten_log(lines: Sequence[str], count: int) -> Iterator[str]:
    """Yield the first, the last and the distinct error lines of a log, ``count`` at most."""
    errors: dict[str, int] = {}
    for number, line in enumerate(lines):
        if is_failure(line):
            errors.setdefault(_DIGITS.sub("0", line), number)
    shown = set(list(errors.values())[: max(1, int(count * ERROR_SHARE))])
    first = max(1, int((count - len(shown)) * FIRST_SHARE))
    shown.update(range(first))
    shown.update(range(len(lines) - max(1, count - len(shown)), len(lines)))
    for is_shown, numbers in groupby(range(len(lines)), key=shown.__contains__):
        stretch = list(numbers)
        if is_shown:
            yield from (lines[number] for number in stretch)
        else:
            yield _left_out_line(len(stretch))
