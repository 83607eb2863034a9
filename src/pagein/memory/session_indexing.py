"""The other sessions of a store, taken into the archive when all of them are to be searched: so many entries at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

from pagein.errors import PageinError
from pagein.log.base import Log
from pagein.search.index import DerivedArchive

AT_ONCE = 2_000
"""Entries that one search takes in; what is left over waits for the next."""

LOOKED_AT = 1_000
"""Sessions, known already, that are asked whether something was recorded since; of more, those new to the archive are."""


def gather(
    archive: DerivedArchive,
    log: Log,
    names: Iterable[str],
    open_log: Callable[[str], Log],
    most: int = AT_ONCE,
) -> tuple[str, ...]:
    """Take in what the named sessions hold beyond their watermarks, at most ``most`` entries; what is left, in lines.

    ``log`` is one of the store, and says how far each goes where it can; ``open_log`` opens another beside it. A session
    that cannot be read stands in nobody's way. Raises what indexing raises.
    """
    known = archive.watermarks()
    listed = tuple(names)
    fresh = [each for each in listed if each not in known]
    old = [each for each in listed if each in known]
    head_of: Callable[[str], int] | None = getattr(log, "head_of", None)
    waiting, unread = 0, list[str]()
    for name in (*fresh, *old[:LOOKED_AT]):
        start = known.get(name, 0)
        if name in known and head_of is not None and head_of(name) == start:
            continue
        if most <= 0:
            waiting += 1
            continue
        try:
            opened: Any = open_log(name)
            with closing(opened) as other:
                taken, is_whole = _take_in(archive, other, name, start, most)
        except PageinError as error:
            unread.append(f"{name!r} ({type(error).__name__}: {error})")
        else:
            most -= taken
            waiting += not is_whole
    return tuple(_left(len(listed), waiting, unread))


def _take_in(archive: DerivedArchive, log: Log, name: str, start: int, most: int) -> tuple[int, bool]:
    """The number of entries of one session that were taken in, and whether those were all."""
    if log.head() <= start + most:
        # Where the log is shorter than what was indexed, too: then it is another one, and indexed anew.
        return archive.catch_up(log, session=name), True
    return archive.index(log.read(start, start + most), session=name), False


def _left(sessions: int, waiting: int, unread: list[str]) -> Iterable[str]:
    if waiting:
        yield (
            f"recall(across=True): {waiting} of {sessions} other sessions are not wholly indexed yet, and were not "
            "wholly searched; recall again, or run pagein recall, which indexes them all"
        )
    if unread:
        yield (
            f"recall(across=True): {len(unread)} of {sessions} other sessions cannot be read, and were searched as far "
            f"as they are indexed: {', '.join(unread[:3])}"
        )
