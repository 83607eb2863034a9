"""The numbers that passages are known by: neighbours are next to each other, and a session is one range."""

from __future__ import annotations

_ORDINAL_BITS = 24

MOST_PASSAGES = (1 << _ORDINAL_BITS) - 16
"""Passages of one session. The last few stay free, so that a session's last is nobody's neighbour."""


def passage_id(session: int, ordinal: int) -> int:
    """The id of a session's passage: neighbours are next to each other, a session is one range.

    >>> passage_id(3, 5) >> 24
    3
    """
    return session << _ORDINAL_BITS | ordinal


def session_of(passage: int) -> int:
    """What leads a passage's id."""
    return passage >> _ORDINAL_BITS


def range_of_session(session: int) -> tuple[int, int]:
    """The first and the last id that a session's passages may have."""
    return passage_id(session, 0), passage_id(session + 1, 0) - 1
