"""Handles: short stable ids of steps, for getting back what was removed from the view.

``s12`` is the step at position 12, ``s12.1`` its second observation, ``s3-18`` the steps at positions 3 to 18.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_HANDLE = re.compile(r"\[?s(\d{1,15})(?:\.(\d{1,9})|-s?(\d{1,15}))?\]?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Handle:
    """Positions ``[first, last)``, or one ``observation`` of the step at ``first``."""

    first: int
    last: int
    observation: int | None = None

    def __str__(self) -> str:
        if self.observation is not None:
            return f"s{self.first}.{self.observation}"
        return f"s{self.first}" if self.last == self.first + 1 else f"s{self.first}-{self.last - 1}"


def group_positions(positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Group positions into ranges ``[start, end)``, in order."""
    start = end = -1
    for position in sorted({*positions}):
        if position != end:
            if start >= 0:
                yield start, end
            start = position
        end = position + 1
    if start >= 0:
        yield start, end


def step_handle(position: int) -> str:
    """Return the handle of the step at a position.

    >>> step_handle(12)
    's12'
    """
    return str(Handle(position, position + 1))


def observation_handle(position: int, index: int) -> str:
    """Return the handle of one observation of an action.

    >>> observation_handle(12, 1)
    's12.1'
    """
    return str(Handle(position, position + 1, index))


Place = tuple[int, int]
"""The position of a step, and the number of its call."""


def place_handle(place: Place) -> str:
    """Return the handle of the result at a place: that of the step for its first one.

    >>> place_handle((12, 0)), place_handle((12, 1))
    ('s12', 's12.1')
    """
    return observation_handle(*place) if place[1] else step_handle(place[0])


def range_handle(first: int, last: int) -> str:
    """Return the handle of positions ``[first, last)``.

    >>> range_handle(3, 19)
    's3-18'
    """
    return str(Handle(first, last))


def parse_handle(text: str) -> Handle | None:
    """Parse a handle, with or without brackets; None where the text is no handle.

    >>> parse_handle("[s3-18]")
    Handle(first=3, last=19, observation=None)
    """
    match = _HANDLE.fullmatch(text.strip())
    if match is None:
        return None
    first = int(match[1])
    if match[2] is not None:
        return Handle(first, first + 1, int(match[2]))
    last = first + 1 if match[3] is None else int(match[3]) + 1
    return Handle(first, last) if last > first else None
