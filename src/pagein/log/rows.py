"""Rows as every store keeps them: sealed into a chain of digests, opened into entries, and audited."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pagein.errors import ConfigurationError, LogError, LogUnreadable
from pagein.events.entries import Erased
from pagein.log.base import Entry, Problem, Verification
from pagein.log.codec import Record, blob_names, decode
from pagein.log.hash_chain import blob_name, link, origin
from pagein.log.raw_rows import Row
from pagein.log.tombstones import as_tombstone, is_proven, is_tombstone


def checked_name(what: str, name: str) -> str:
    """The name of a session or tenant, unchanged. Raises ConfigurationError for one that cannot be a key."""
    if not isinstance(name, str) or "\0" in name or not _is_utf8(name):
        raise ConfigurationError(f"the {what} must be text without NUL or lone surrogates, not {name!r}")
    return name


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def checked_time(at: float) -> float:
    """The time as a float. Raises LogError for one that is no number of seconds."""
    if not isinstance(at, int | float) or not math.isfinite(at):
        raise LogError(
            f"the time of an entry is in seconds since the epoch, not {at!r}. Nothing was written."
        )
    return float(at)


def seal(records: Sequence[Record], *, after: int, at: float, previous: str) -> tuple[Row, ...]:
    """The records as rows at positions ``after`` and on, each digest covering the one before it."""
    rows = []
    for position, record in enumerate(records, after):
        previous = link(
            previous, position=position, at=at, kind=record.kind, version=record.version, body=record.body
        )
        rows.append(Row(position, at, record.kind, record.version, record.body, previous))
    return tuple(rows)


def relinked(rows: Iterable[Row], previous: str) -> tuple[Row, ...]:
    """The same entries as another session's: each digest derived anew behind ``previous``.

    What was left of an erased entry is an entry like any other there: no digest of the old one is taken along.
    """
    found = []
    for row in rows:
        kept = as_tombstone(row.body)
        if kept is not None and not is_proven(row, previous):
            row = replace(row, body=kept.body)  # noqa: PLW2901 - the same row from here on
            kept = None
        previous = row.digest if kept is not None else _derived(previous, row)
        found.append(replace(row, digest=previous))
    return tuple(found)


def written(rows: Iterable[Row], records: Iterable[Record]) -> tuple[Entry, ...]:
    """The entries that reading these rows gives, without reading them."""
    return tuple(
        Entry(row.position, row.at, record.value, row.digest)
        for row, record in zip(rows, records, strict=True)
    )


def opened(row: Row, blob: Callable[[str], bytes]) -> Entry:
    """The entry a row holds. Raises LogUnreadable or LogTooNew, naming its position."""
    try:
        body = decode(row.kind, row.version, row.body, blob)
    except LogError as error:
        raise type(error)(f"entry {row.position}: {error}") from error
    left = as_tombstone(row.body)
    return Entry(row.position, row.at, body, row.digest, None if left is None else left.by)


def _derived(previous: str, row: Row) -> str:
    return link(previous, position=row.position, at=row.at, kind=row.kind, version=row.version, body=row.body)


def _proven(previous: str, row: Row) -> str:
    """The digest of an erased row, where its tombstone proves it; "" where it does not."""
    try:
        return row.digest if is_proven(row, previous) else ""
    except LogUnreadable:
        return ""


class Audit:
    """Looks at a log's rows in order of position, and keeps what is wrong with them.

    ``blob`` gives the bytes of a name, or None where there are none.
    """

    def __init__(self, tenant: str, session: str, blob: Callable[[str], bytes | None]) -> None:
        self._blob = blob
        self._entries = 0
        self._next = 0
        # What the next row's digest may have been derived from: as stored, then as derived; empty after a gap.
        self._previous: tuple[str, ...] = (origin(tenant, session),)
        self._suspect: int | None = None  # the problem that the next row's digest will tell more about
        self._unread: tuple[int, int] | None = None  # the last run of rows that the store could not give
        self._problems: list[Problem] = []
        self._tombstones: list[tuple[int, int]] = []  # where one stands, and which entry is to say so
        self._notes: dict[int, Erased] = {}

    def row(self, row: Row) -> None:
        """Derive this row's hashes again, and try to decode it."""
        self._expect(row.position)
        self._entries += 1
        self._next = row.position + 1
        self._check_digest(row)
        self._check_body(row)

    def unreadable(self, position: int, why: str) -> None:
        """The store failed to give this row."""
        self._expect(position)
        self._next = position + 1
        self._previous, self._suspect = (), None
        if self._unread and self._unread[1] == position:
            first = self._unread[0]
            self._problems[-1] = Problem(first, f"entries {first} to {position} cannot be read: {why}")
        else:
            first = position
            self._problems.append(Problem(position, f"the entry cannot be read: {why}"))
        self._unread = (first, position + 1)

    def whole(self, what: str) -> None:
        """Something is wrong with the log as a whole."""
        self._problems.append(Problem(None, what))

    def result(self) -> Verification:
        """What was found so far."""
        unsaid = (at for at, by in self._tombstones if not self._is_said(at, by))
        problems = (Problem(at, "the entry was replaced: no entry says that it was erased") for at in unsaid)
        gone = sum(note.gone for note in self._notes.values())
        return Verification(self._entries, (*self._problems, *problems), len(self._tombstones) + gone)

    def _is_said(self, position: int, by: int) -> bool:
        # A branch's bodies speak of positions that are further on than its own rows, all by the same number.
        return any(note.covers(position + by - at) for at, note in self._notes.items() if by >= at > position)

    def _expect(self, position: int) -> None:
        if position == self._next:
            return
        missing = (
            f"entry {self._next} is"
            if position == self._next + 1
            else f"entries {self._next} to {position - 1} are"
        )
        self._problems.append(Problem(self._next, f"{missing} missing"))
        self._previous, self._suspect = (), None

    def _check_digest(self, row: Row) -> None:
        erased = is_tombstone(row.body)
        derived = tuple(_proven(each, row) if erased else _derived(each, row) for each in self._previous)
        if row.digest in derived or not derived:
            self._settle(by_stored=not derived or row.digest == derived[0])
            self._previous, self._suspect = (row.digest,), None
            return
        # Either the row or its digest was changed; the next row was chained to the true digest, and will tell.
        self._suspect = len(self._problems)
        self._previous = (row.digest,) if erased else (row.digest, derived[0])
        self._problems.append(
            Problem(row.position, "the digest does not match: the entry or its digest was changed")
        )

    def _settle(self, *, by_stored: bool) -> None:
        if self._suspect is None:
            return
        position = self._problems[self._suspect].position
        what = (
            "the entry was changed: its digest is of other content" if by_stored else "the digest was changed"
        )
        self._problems[self._suspect] = Problem(position, what)

    def _check_body(self, row: Row) -> None:
        blobs: dict[str, bytes] = {}
        try:
            faults = [fault for name in blob_names(row.body) if (fault := self._blob_fault(name, blobs))]
            if not faults:
                body = decode(row.kind, row.version, row.body, blobs.__getitem__)
                if isinstance(body, Erased):
                    self._notes[row.position] = body
            if (left := as_tombstone(row.body)) is not None:
                self._tombstones.append((row.position, left.by))
        except LogError as error:
            faults = [f"the entry cannot be decoded: {error}"]
        self._problems += (Problem(row.position, fault) for fault in faults)

    def _blob_fault(self, name: str, blobs: dict[str, bytes]) -> str:
        """What is wrong with a blob, or "" with its bytes added to ``blobs``."""
        try:
            data = self._blob(name)
        except LogUnreadable as error:
            return f"the blob {name} cannot be read: {error}"
        if data is None:
            return f"the blob {name} is missing"
        if blob_name(data) != name:
            return f"the blob {name} was changed"
        blobs[name] = data
        return ""
