"""What many calls share is shown once in an extract: a series, such as parts 1 to 295 of a file, and arguments. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from os.path import commonprefix

from pagein.context.salience.tracker import TrackedLine

SERIES_MIN_CALLS = 3
"""Calls from which on a series is one line."""

ENDING_MIN_CALLS = 4
"""Calls of a tool from which on the arguments with which all of them end stand at the newest one alone."""

_ARGUMENT = re.compile(r" [\w.-]+=")

_NUMBER = re.compile(r"(?<![\w.-])(?:0|[1-9]\d{0,8})(?![\w.])", re.ASCII)
"""A number that stands alone: one in a name is part of an identifier, which stays as it is."""


@dataclass(frozen=True, slots=True)
class Series:
    """Calls with evenly spaced numbers: the line that stands for them, and the keys of theirs."""

    line: TrackedLine
    keys: tuple[str, ...]


def find_series(lines: Mapping[str, TrackedLine]) -> Iterator[Series]:
    """Yield the series among the lines of calls; each line is in one at most, of those it fits into the largest first."""
    groups: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for key, line in lines.items():
        if line.is_action:
            for number in _NUMBER.finditer(line.text):
                groups[line.text[: number.start()], line.text[number.end() :]][int(number[0])] = key
    taken = set[str]()
    large = (group for group in groups.items() if len(group[1]) >= SERIES_MIN_CALLS)
    for (head, tail), keys in sorted(large, key=lambda group: -len(group[1])):
        free = {number: key for number, key in keys.items() if key not in taken}
        for numbers in _evenly_spaced(sorted(free)):
            members = tuple(free[number] for number in numbers)
            taken.update(members)
            yield Series(_merge([lines[key] for key in members], head + _range_text(numbers) + tail), members)


def _evenly_spaced(numbers: list[int]) -> Iterator[list[int]]:
    """Yield the longest runs of numbers, in order, that differ by the smallest difference among these."""
    if len(numbers) < SERIES_MIN_CALLS:
        return
    step = min(after - before for before, after in pairwise(numbers))
    runs = [numbers[:1]]
    for before, after in pairwise(numbers):
        if after - before != step:
            runs.append([])
        runs[-1].append(after)
    yield from (run for run in runs if len(run) >= SERIES_MIN_CALLS)


def _range_text(numbers: list[int]) -> str:
    """Return the numbers as a range: ``1..295``, or ``0..2900 by 100``."""
    step = numbers[1] - numbers[0]
    return f"{numbers[0]}..{numbers[-1]}" + (f" by {step}" if step > 1 else "")


def _merge(members: list[TrackedLine], text: str) -> TrackedLine:
    """Return the line of a series: the newest call's, with the text of all and the identifiers that all have."""
    newest = max(members, key=lambda line: line.order)
    shared = frozenset(newest.names).intersection(*(line.names for line in members))
    names = tuple(name for name in newest.names if name in shared)
    return replace(newest, text=text, names=names, _names_with_context=None)


def cut_endings(lines: Mapping[str, TrackedLine], tools: Collection[str]) -> Iterator[tuple[str, TrackedLine]]:
    """Yield the lines of calls, by their keys, without the arguments with which all calls of their tool end.

    A working folder or a time limit is the same in each. The newest call is not among these: it says them for all.
    """
    calls: dict[str, list[tuple[int, str, TrackedLine]]] = defaultdict(list)
    for key, line in lines.items():
        if line.is_action and (tool := line.text.partition(" ")[0]) in tools and key.startswith(tool):
            calls[tool].append((line.order, key, line))
    for rows in calls.values():
        ending = _shared_ending(line.text for _, _, line in rows) if len(rows) >= ENDING_MIN_CALLS else ""
        for _, key, line in sorted(rows)[:-1] if ending else ():
            text = line.text.removesuffix(ending)
            names = tuple(name for name in line.names if name in text)
            yield key, replace(line, text=text, names=names, _names_with_context=None)


def _shared_ending(texts: Iterable[str]) -> str:
    ending = commonprefix([text[::-1] for text in texts])[::-1]  # noqa: RUF071 - character by character is right
    argument = _ARGUMENT.search(ending)
    return ending[argument.start() :] if argument else ""
