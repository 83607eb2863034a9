"""Results abridged by their structure: JSON, diffs, pages, tables, logs and the output of programs. Pure.

What is left out is counted where it stood. Rows and lines that differ from most of their kind, and errors, stay before others. A text of
another kind, or one that does not fit so, is for the caller to clip.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any

from pagein.context.ledger.error_lines import is_error
from pagein.context.salience.lines import is_failure

JSON_LEVELS = ((64, 1_200), (32, 600), (24, 400), (16, 300), (12, 220), (8, 160), (6, 120), (4, 80), (2, 40), (1, 20))
"""Items of a list or an object, and characters of a text, that stay: the first pair with which JSON fits."""

HUNK_LEVELS = (80, 40, 20, 10, 5, 2, 0)
"""Changed lines of a hunk that stay; its unchanged lines leave."""

PAGE_LEVELS = ((240, 64), (120, 64), (120, 16), (80, 16), (80, 6), (60, 6), (60, 3), (40, 3), (40, 1))
"""Characters of a page's line, and links in a row, that stay: the first pair with which it fits. What an agent does next
needs the number of an element and what it is; menus and footers are rows of links."""

ELEMENT_SHARE = 0.25
"""Share of the lines that are numbered elements from which on a text is a page."""

MAX_DEPTH = 16
"""Depth of JSON below which nothing is shown."""

PARSED_MAX_CHARS = 1_000_000
"""Characters above which a text is not parsed as JSON."""

TABLE_MIN_ROWS, LOG_MIN_LINES = 8, 20
"""Lines from which on a text may be a table, or a log."""

LINE_SHARE = 0.8
"""Share of the lines that look like rows, or records, of a table or a log; and of the rows with the usual value of a field."""

SCANNED_LINES = 1_000
"""Lines, or rows, at each end of a text, and items of a list, among which those that say more are looked for."""

COMPARED_CHARS = 2_000
"""Characters of a line that are compared with others."""

HEADING_MAX_LINES = 40
"""Lines above an indented one among which its heading is looked for."""

KIND_SHARE = 0.03
"""Share of a text's lines above which lines that differ in numbers alone are the usual ones."""

NOTABLE_SHARE, FIRST_SHARE = 0.5, 0.5
"""Share of the lines that stay for those that say more than others, and of the rest for the first ones."""

_JSON_START = re.compile(r"^[ \t]*[\[{]", re.MULTILINE)
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_FILE_LINE = re.compile(r"diff --git |commit [0-9a-f]{40}\b")
_RECORD = re.compile(
    r"\W{0,2}(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\w{3} [ \d]\d \d\d:\d\d|\d{9,13}\b|(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|TRACE)\b)"
)
_RULE_ROW = re.compile(r"(?=.*[-=\u2500])[\s|+:=\u2500-\u257f-]+")
_CELL_ENDS = tuple(map(re.compile, (r"\|", "\u2502", r"\t", ",", ";", r"(?<=\S) {2,}(?=\S)")))
_CODE_LIKE = _CELL_ENDS[2:5]
"""What ends a cell in tables that are never indented: indented lines with commas are code."""

_ELEMENT = re.compile(r"\s*(?:[-*] )?(?:\[\d{1,7}\]|uid=\w{1,16} )|[^\n]{0,400}\[ref=\w{1,16}\]")
_LINK = re.compile(r"[^\n]{0,24}(?:\blink\b|\boption\b|\bmenuitem\b|<a\b|<option\b)")

_DIGITS = re.compile(r"\d+")
_LETTER = re.compile(r"\w")

COUNT_LINE = re.compile(r"^\.\.\. [\d,]{1,20} (?:lines|rows) left out\n?", re.MULTILINE)
"""A line that stands for those left out."""

_STANDS_FOR = re.compile(r"\.\.\. ([\d,]{1,20}) (?:(?:lines|rows) left out|items more)|([\d,]{1,20}) keys more")
_MORE_ENDS = (" left out", " more")
_SHORTENED = re.compile(r"\.\.\. ([\d,]{1,20}) characters more\Z")

Fits = Callable[[str], bool]


def abridge(text: str, fits: Fits) -> str | None:
    """Return a text abridged by its structure until it ``fits``; None if it has none, or does not fit so."""
    for abridge_as in (_abridge_json, _abridge_diff, _abridge_page):
        known, short = abridge_as(text, fits)
        if known:
            return short
    lines = text.splitlines()
    rows = [line for line in lines if line.strip()]
    if (cell_end := _find_cell_end(rows)) is not None:
        header = _count_header(rows)
        return _abridge_rows(rows, header, _notable_rows(rows, header, cell_end), "rows", fits)
    if (notable_lines := _notable_lines(lines)) is not None:
        return _abridge_rows(lines, 0, notable_lines, "lines", fits)
    return None


# JSON


def _abridge_json(text: str, fits: Fits) -> tuple[bool, str | None]:
    """Return True for JSON, with lines of another kind around it or without, and what fits of it."""
    start = _JSON_START.search(text, 0, 4_000)
    if start is None or len(text) > PARSED_MAX_CHARS:
        return False, None
    try:
        value, end = json.JSONDecoder().raw_decode(text, start.end() - 1)
    except (ValueError, RecursionError):
        return False, None
    before, after = text[: start.end() - 1], text[end:]
    if end - start.end() < LINE_SHARE * len(text.strip()):
        return False, None
    indent = 1 if "\n" in text[start.end() : end] else None
    # Half of a surrogate pair can be written as an escape alone.
    has_halves = re.search(r"\\u[dD][89a-fA-F]", text) is not None

    def write(value: Any) -> str:
        return before + json.dumps(value, ensure_ascii=has_halves, indent=indent) + after

    if (main_text := _find_main_text(value, len(text))) is not None:
        main, replace_by = main_text
        short = abridge(main, lambda form: fits(write(replace_by(form))))
        if short is not None:
            return True, write(replace_by(short))
    outliers: dict[int, list[int]] = {}
    candidates = (write(_shorten(value, items, characters, outliers)) for items, characters in JSON_LEVELS)
    return True, next(filter(fits, candidates), None)


def _find_main_text(value: Any, characters: int, depth: int = 0) -> tuple[str, Callable[[str], Any]] | None:
    """Find the text that is nearly all of a value, such as a program's output, and return it with what puts another in its place."""
    if isinstance(value, str):
        return (value, str) if len(value) > LINE_SHARE * characters else None
    few = isinstance(value, dict | list) and len(value) <= 16 and depth < 4
    for key, item in (value.items() if isinstance(value, dict) else enumerate(value)) if few else ():
        if (inner := _find_main_text(item, characters, depth + 1)) is not None:
            main, put = inner

            def replace_by(form: str, key: Any = key, put: Callable[[str], Any] = put) -> Any:
                changed = value.copy()
                changed[key] = put(form)
                return changed

            return main, replace_by
    return None


def _shorten(value: Any, items: int, characters: int, outliers: dict[int, list[int]], depth: int = 0) -> Any:
    """Shorten the texts, lists and objects in a value of JSON; what is left out is counted."""

    def inner(value: Any) -> Any:
        return _shorten(value, items, characters, outliers, depth + 1)

    match value:
        case str() if len(value) > characters + 24:
            cut = _SHORTENED.search(value)
            length = len(value) if cut is None else cut.start() + int(cut[1].replace(",", ""))
            return f"{value[:characters]}... {length - characters:,} characters more"
        case list() | dict() if depth == MAX_DEPTH and value:
            return f"... {len(value):,} items deeper"
        case list() if len(value) > items + 1:
            if id(value) not in outliers:
                outliers[id(value)] = _outliers([dict(_leaves(item)) for item in value[:SCANNED_LINES]])
            notable = outliers[id(value)][: int(items * NOTABLE_SHARE)]
            shown = {*notable, *range(items - len(notable))}
            return [inner(part) for part in _leave_out(value, shown, "items more")]
        case list():
            return list(map(inner, value))
        case dict() if len(value) > 2 * items + 1:
            rows = {key: inner(item) for key, item in list(value.items())[: 2 * items]}
            return rows | {"...": f"{_count(list(value.values())[2 * items :]):,} keys more"}
        case dict():
            return {key: inner(item) for key, item in value.items()}
        case _:
            return value


def _count(parts: Sequence[Any]) -> int:
    """Count lines or items, among which some may stand for those that were left out before."""
    known = (_STANDS_FOR.fullmatch(part) for part in parts if isinstance(part, str) and part.endswith(_MORE_ENDS))
    return len(parts) + sum(int((match[1] or match[2]).replace(",", "")) - 1 for match in known if match)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the values in an object and in the objects in it, by their paths."""
    for key, item in value.items() if isinstance(value, dict) else ():
        if isinstance(item, dict) and len(path) < 2:
            yield from _leaves(item, (*path, key))
        elif not isinstance(item, dict | list):
            yield (*path, key), str(item)


# Diffs


def _abridge_diff(text: str, fits: Fits) -> tuple[bool, str | None]:
    """Return True for a diff, and what fits of it: all headers and some changes, or the names of its files."""
    lines = text.splitlines()
    if not any(map(_HUNK.match, lines)) or not any(line.startswith("+++ ") for line in lines):
        return False, None
    marks = list(_mark_diff(lines))
    for most in HUNK_LEVELS:
        shown = {number for number, (is_header, order) in enumerate(marks) if is_header or 0 < order <= most}
        if fits(short := _join(lines, shown, "lines")):
            return True, short
    names = [number for number, line in enumerate(lines) if _FILE_LINE.match(line)]
    names = names or [number for number, line in enumerate(lines) if line.startswith("+++ ") and marks[number][0]]

    def name_files(count: int) -> str:
        return _join(lines, {*names[: count - count // 2], *names[len(names) - count // 2 :]}, "lines")

    return True, _most_that_fits(name_files, len(names) + 1, fits)


def _mark_diff(lines: Sequence[str]) -> Iterator[tuple[bool, int]]:
    """Yield for each line if it is a header, and the number of a changed line in its hunk; 0 for an unchanged one.

    The counts of a hunk say that ``--- x`` is a line in it. Behind these it goes on to the next header, as they may be wrong.
    """
    old = new = changed = 0
    is_in_hunk = False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        is_file = _FILE_LINE.match(line) or (old <= 0 and new <= 0 and line.startswith("--- ") and after[:4] == "+++ ")
        is_in_hunk = is_in_hunk and not is_file
        hunk = _HUNK.match(line)
        if is_in_hunk and not hunk and line[:1] in (" ", "+", "-", "\\", ""):
            is_change = line[:1] in ("+", "-")
            changed += is_change
            old -= line[:1] in (" ", "-", "")
            new -= line[:1] in (" ", "+", "")
            yield False, changed * is_change
            continue
        if hunk:
            old, new, changed, is_in_hunk = int(hunk[1] or 1), int(hunk[2] or 1), 0, True
        yield True, 0


# Pages, as trees or lists of numbered elements


def _abridge_page(text: str, fits: Fits) -> tuple[bool, str | None]:
    """Return True for a page, and what fits of it: shorter lines and shorter rows of links, else its ends."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < LOG_MIN_LINES or sum(map(bool, map(_ELEMENT.match, lines))) < ELEMENT_SHARE * len(lines):
        return False, None
    rows = [
        list(numbers) for _, numbers in groupby(range(len(lines)), key=lambda number: bool(_LINK.match(lines[number])))
    ]
    form: list[str] = []
    for characters, links in PAGE_LEVELS:
        shown = {number for row in rows for number in row[: links if _LINK.match(lines[row[0]]) else None]}
        form = list(_leave_out([_cut_line(line, characters) for line in lines], shown, "lines left out"))
        if fits(whole := "\n".join(form)):
            return True, whole
    return True, _abridge_rows(form, 0, (), "lines", fits)


def _cut_line(line: str, characters: int) -> str:
    """Return the line with at most so many characters behind its indentation."""
    most = characters + len(line) - len(line.lstrip())
    return line if len(line) <= most else f"{line[: most - 1]}\u2026"


# Tables, logs, the output of programs


def _find_cell_end(rows: Sequence[str]) -> re.Pattern[str] | None:
    """Return what ends a cell of a table; None if most lines have not the same number of cells, three at least."""
    if len(rows) < TABLE_MIN_ROWS:
        return None
    sample = rows[:: 1 + len(rows) // 100]
    is_indented = any(line[0].isspace() for line in rows[1:])
    for end in _CELL_ENDS:
        if is_indented and end in _CODE_LIKE:
            continue
        counts = Counter(len(end.split(line[:COMPARED_CHARS].strip())) for line in sample)
        (count, times), *_ = counts.most_common(1)
        if count >= 3 and times >= LINE_SHARE * len(sample):
            return end
    return None


def _scan(total: int, start: int = 0) -> list[int]:
    """Return the numbers from ``start`` on of the lines that are looked at: of many those at both ends."""
    return [*range(start, min(total, SCANNED_LINES)), *range(max(start, SCANNED_LINES, total - SCANNED_LINES), total)]


def _notable_rows(rows: Sequence[str], header: int, cell_end: re.Pattern[str]) -> list[int]:
    """Return the numbers of the rows that say more than others: errors, then those that differ from most."""
    numbers = _scan(len(rows), header)
    outliers = _outliers([dict(enumerate(cell_end.split(rows[number][:COMPARED_CHARS].strip()))) for number in numbers])
    errors = [number for number in numbers if is_error(rows[number])]
    rare = _find_rare(_kinds_of(rows, numbers)) or ()
    return list(dict.fromkeys((*_with_headings(rows, errors), *(numbers[row] for row in outliers), *rare)))


def _kinds_of(lines: Sequence[str], numbers: Iterable[int]) -> dict[int, str]:
    """Return lines without what is numbered in them, by their numbers."""
    return {number: " ".join(map(_kind_of, lines[number][:COMPARED_CHARS].split())) for number in numbers}


def _kind_of(word: str) -> str:
    return "0" if _DIGITS.search(word) or (len(word) > 3 and not _LETTER.search(word)) else word


def _find_rare(kinds: dict[int, str]) -> list[int] | None:
    """Return the lines that are not like many others, of each kind the first; None where most are not alike."""
    counts = Counter(kinds.values())
    usual = {kind for kind, count in counts.items() if count >= max(3, KIND_SHARE * len(kinds))}
    if sum(counts[kind] for kind in usual) < LINE_SHARE * len(kinds):
        return None
    return sorted({kind: number for number, kind in reversed(kinds.items()) if kind and kind not in usual}.values())


def _with_headings(lines: Sequence[str], numbers: Iterable[int]) -> Iterator[int]:
    """Yield the numbers of lines, before that of an indented one that of the line under which it stands, such as its file."""
    for number in numbers:
        if lines[number][:1].isspace():
            above = range(number - 1, max(-1, number - HEADING_MAX_LINES), -1)
            yield from islice((line for line in above if lines[line] and not lines[line][0].isspace()), 1)
        yield number


def _count_header(rows: Sequence[str]) -> int:
    """Count the rows of a header: the first one, or all up to the rule under it."""
    rules = [number for number, row in enumerate(rows[:6]) if _RULE_ROW.fullmatch(row)]
    return rules[-1] + 1 if rules and rules[-1] else 1


def _outliers(rows: Sequence[Mapping[Any, str]]) -> list[int]:
    """Return the numbers of the rows with another value in a field than nearly all have; those like the fewest others first."""
    if len(rows) < TABLE_MIN_ROWS:
        return []
    values: dict[Hashable, Counter[str]] = {}
    plain = [{field: _DIGITS.sub("0", value) for field, value in row.items()} for row in rows]
    for row in plain:
        for field, value in row.items():
            values.setdefault(field, Counter())[value] += 1
    usual = {field: counts.most_common(1)[0] for field, counts in values.items()}
    usual = {field: most for field, most in usual.items() if most[1] >= LINE_SHARE * len(rows)}
    others = [tuple(field for field, (value, _) in usual.items() if row.get(field) != value) for row in plain]
    alike = Counter(others)
    return sorted((number for number, fields in enumerate(others) if fields), key=lambda number: alike[others[number]])


def _notable_lines(lines: Sequence[str]) -> list[int] | None:
    """Return the numbers of the lines that say more than others; None for a text that is no log and has none.

    These are the errors, of a log each kind once, and where most lines are alike those that are not, of each kind the first; else those around an error.
    """
    if len(lines) < LOG_MIN_LINES:
        return None
    numbers = _scan(len(lines))
    kinds = _kinds_of(lines, numbers)
    is_log = sum(_RECORD.match(lines[number]) is not None for number in numbers) >= LINE_SHARE * len(numbers)
    errors: dict[str, int] = {}
    for number, kind in kinds.items():
        if is_error(lines[number]) or (is_log and is_failure(lines[number])):
            errors.setdefault(kind if is_log else lines[number], number)
    near = _find_rare(kinds)
    if near is None:
        steps = (1, -1, 2, -2, 3, -3, 4)
        near = [at + step for step in steps for at in errors.values() if 0 <= at + step < len(lines)]
    notable = list(dict.fromkeys((*_with_headings(lines, errors.values()), *near)))
    return notable if notable or is_log else None


def _abridge_rows(rows: Sequence[str], header: int, notable: Sequence[int], unit: str, fits: Fits) -> str | None:
    """Return the header and as many of the rows as fit; None if none does."""

    def form(count: int) -> str:
        return _join(rows, _choose(len(rows), header, notable, count), unit)

    return _most_that_fits(form, len(rows), fits)


def _most_that_fits(form: Callable[[int], str], most: int, fits: Fits) -> str | None:
    """Return the form of about the largest number that fits, below or at ``most``; None if none does."""
    low, high = 0, min(8, most)
    while high < most and fits(form(high)):
        low, high = high, min(most, high * 2)
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(form(middle)) else (low, middle)
    return form(low) if low else None


def _choose(total: int, header: int, notable: Sequence[int], count: int) -> set[int]:
    """Choose ``count`` rows behind the header: notable ones, then the first and the last in halves."""
    shown = set(notable[: max(1, int(count * NOTABLE_SHARE))])
    ends = max(1, count - len(shown))
    first = max(1, int(ends * FIRST_SHARE))
    return {
        *range(header),
        *shown,
        *range(header, header + first),
        *range(max(header, total - max(1, ends - first)), total),
    }


def _join(rows: Sequence[str], shown: set[int], unit: str) -> str:
    """Join the rows that are shown, with the number of those left out where they stood."""
    return "\n".join(_leave_out(rows, shown, f"{unit} left out"))


def _leave_out(parts: Sequence[Any], shown: set[int], words: str) -> Iterator[Any]:
    """Yield the parts that are shown, and in the place of each stretch of others a line with their number and these words."""
    for is_shown, numbers in groupby(range(len(parts)), key=shown.__contains__):
        stretch = [parts[number] for number in numbers]
        yield from stretch if is_shown else (f"... {_count(stretch):,} {words}",)
