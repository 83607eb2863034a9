"""The hash chain of a session's rows: each digest covers its row and the digest before it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from pagein._common.surrogates import is_utf8
from pagein.errors import ConfigurationError, LogErased, LogError, LogUnreadable
from pagein.events.entries import Erased
from pagein.log.base import Entry, Problem, Verification
from pagein.log.codec import Record, blob_names, decode, hash_bytes, is_proven, is_tombstone, parse_tombstone
from pagein.log.encryption import Encryption
from pagein.log.raw_rows import Row, Tip


def origin(tenant: str, session: str) -> str:
    """The digest before a session's first entry, so that a log cannot be passed off as another session's."""
    owner = tenant.encode()
    # The length keeps ("a", "bc") and ("ab", "c") apart.
    return hash_bytes(b"%d\n%b%b" % (len(owner), owner, session.encode()))


def link(previous: str, *, position: int, at: float, kind: str, version: int, body: bytes) -> str:
    """The digest of an entry: the hash over the previous digest and all that is stored of this entry."""
    # No field before the body can hold a newline, so two different entries never spell the same bytes.
    head = f"{previous}\n{position}\n{at.hex()}\n{kind}\n{version}\n".encode()
    return hash_bytes(head + body)


def check_name(what: str, name: str) -> str:
    """The name of a session or tenant, unchanged. Raises ConfigurationError for a name that cannot be a key."""
    if not isinstance(name, str) or "\0" in name or not is_utf8(name):
        raise ConfigurationError(f"the {what} must be text without NUL or lone surrogates, not {name!r}")
    return name


def check_time(at: float) -> float:
    """The time as a float. Raises LogError for a value that is no number of seconds."""
    if not isinstance(at, int | float) or not math.isfinite(at):
        raise LogError(f"the time of an entry is in seconds since the epoch, not {at!r}. Nothing was written.")
    return float(at)


def chain_rows(records: Sequence[Record], *, after: int, at: float, previous: str) -> tuple[Row, ...]:
    """Make rows of records at positions ``after`` and on, each digest covering the one before it."""
    rows = []
    for position, record in enumerate(records, after):
        previous = link(previous, position=position, at=at, kind=record.kind, version=record.version, body=record.body)
        rows.append(Row(position, at, record.kind, record.version, record.body, previous))
    return tuple(rows)


def rechain_rows(rows: Iterable[Row], previous: str) -> tuple[Row, ...]:
    """Derive the digests of these rows again behind ``previous``, as another session's.

    An erased entry becomes an ordinary one there: no digest of the original body is taken along.
    """
    chained = []
    for row in rows:
        tombstone = parse_tombstone(row.body)
        if tombstone is not None and not is_proven(row, previous):
            row = replace(row, body=tombstone.body)  # noqa: PLW2901 - the same row from here on
            tombstone = None
        previous = row.digest if tombstone is not None else _derive_digest(previous, row)
        chained.append(replace(row, digest=previous))
    return tuple(chained)


def make_entries(rows: Iterable[Row], records: Iterable[Record]) -> tuple[Entry, ...]:
    """Make the entries that reading these rows would give."""
    return tuple(
        Entry(row.position, row.at, record.value, row.digest) for row, record in zip(rows, records, strict=True)
    )


def decode_row(row: Row, blob: Callable[[str], bytes]) -> Entry:
    """Decode a row to its entry. Raises LogUnreadable or LogTooNew, naming its position."""
    try:
        body = decode(row.kind, row.version, row.body, blob)
    except LogError as error:
        raise type(error)(f"entry {row.position}: {error}") from error
    tombstone = parse_tombstone(row.body)
    return Entry(row.position, row.at, body, row.digest, None if tombstone is None else tombstone.by)


def _derive_digest(previous: str, row: Row) -> str:
    return link(previous, position=row.position, at=row.at, kind=row.kind, version=row.version, body=row.body)


def _proven_digest(previous: str, row: Row) -> str:
    """The digest of an erased row whose tombstone proves it; "" otherwise."""
    try:
        return row.digest if is_proven(row, previous) else ""
    except LogUnreadable:
        return ""


class SessionRows(ABC):
    """The rows of one session, within a transaction that excludes every other writer; ``encryption`` encrypts what is stored."""

    key: tuple[str, str]
    """The tenant and the session."""
    encryption: Encryption

    @abstractmethod
    def stored_tip(self) -> Tip:
        """The tip, its digest as it is stored; "" where there is no entry. Reads the last entry; counts nothing."""

    @abstractmethod
    def read_stored(self, start: int, stop: int) -> Sequence[Row]:
        """The rows ``[start, stop)`` as they are stored, at most a few hundred."""

    @abstractmethod
    def add(self, rows: Sequence[Row], blobs: Iterable[tuple[str, bytes]]) -> None:
        """Write rows, and the blobs they name."""

    @abstractmethod
    def replace(self, row: Row) -> None:
        """Replace the body of a row; its digest stays."""

    @abstractmethod
    def drop_blobs(self, names: Iterable[str]) -> None:
        """Delete blobs."""

    @abstractmethod
    def clear(self) -> None:
        """Delete every row and every blob of the session."""

    def tip(self) -> Tip:
        """The head, and the digest that the next row is chained to. Raises LogEncrypted."""
        head, digest = self.stored_tip()
        return Tip(head, self.encryption.decrypt_digest(digest) if head else origin(*self.key))

    def read_range(self, start: int, stop: int) -> Iterator[Row]:
        """The rows ``[start, stop)``, some hundred at a time."""
        while rows := self.read_stored(start, stop):
            yield from map(self.encryption.decrypt_row, rows)
            start = rows[-1].position + 1


class ChainVerifier:
    """A verifier that takes a log's rows in order of position, and collects their faults.

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

    def add_row(self, row: Row) -> None:
        """Derive this row's hashes again, and try to decode it."""
        self._expect(row.position)
        self._entries += 1
        self._next = row.position + 1
        self._check_digest(row)
        self._check_body(row)

    def add_unreadable(self, position: int, why: str) -> None:
        """Note that the store failed to read this row."""
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

    def add_problem(self, what: str) -> None:
        """Note a fault of the log as a whole."""
        self._problems.append(Problem(None, what))

    def result(self) -> Verification:
        """The verification of the rows so far."""
        unsaid = (at for at, by in self._tombstones if not self._is_recorded(at, by))
        problems = (Problem(at, "the entry was replaced: no entry says that it was erased") for at in unsaid)
        erased = sum(note.gone for note in self._notes.values())
        return Verification(self._entries, (*self._problems, *problems), len(self._tombstones) + erased)

    def _is_recorded(self, position: int, by: int) -> bool:
        # A branch's bodies speak of positions that are further on than its own rows, all by the same number.
        return any(note.covers(position + by - at) for at, note in self._notes.items() if by >= at > position)

    def _expect(self, position: int) -> None:
        if position == self._next:
            return
        missing = (
            f"entry {self._next} is" if position == self._next + 1 else f"entries {self._next} to {position - 1} are"
        )
        self._problems.append(Problem(self._next, f"{missing} missing"))
        self._previous, self._suspect = (), None

    def _check_digest(self, row: Row) -> None:
        erased = is_tombstone(row.body)
        derived = tuple(
            _proven_digest(previous, row) if erased else _derive_digest(previous, row) for previous in self._previous
        )
        if row.digest in derived or not derived:
            self._refine_problem(by_stored=not derived or row.digest == derived[0])
            self._previous, self._suspect = (row.digest,), None
            return
        # Either the row or its digest was changed; the next row was chained to the true digest, and will tell.
        self._suspect = len(self._problems)
        self._previous = (row.digest,) if erased else (row.digest, derived[0])
        self._problems.append(Problem(row.position, "the digest does not match: the entry or its digest was changed"))

    def _refine_problem(self, *, by_stored: bool) -> None:
        if self._suspect is None:
            return
        position = self._problems[self._suspect].position
        what = "the entry was changed: its digest is of other content" if by_stored else "the digest was changed"
        self._problems[self._suspect] = Problem(position, what)

    def _check_body(self, row: Row) -> None:
        blobs: dict[str, bytes] = {}
        try:
            faults = [fault for name in blob_names(row.body) if (fault := self._blob_fault(name, blobs))]
            if not faults:
                body = decode(row.kind, row.version, row.body, blobs.__getitem__)
                if isinstance(body, Erased):
                    self._notes[row.position] = body
            if (tombstone := parse_tombstone(row.body)) is not None:
                self._tombstones.append((row.position, tombstone.by))
        except LogError as error:
            faults = [f"the entry cannot be decoded: {error}"]
        self._problems += (Problem(row.position, fault) for fault in faults)

    def _blob_fault(self, name: str, blobs: dict[str, bytes]) -> str:
        """The fault of a blob, or "" with its bytes added to ``blobs``."""
        try:
            data = self._blob(name)
        except LogUnreadable as error:
            return f"the blob {name} cannot be read: {error}"
        if data is None:
            return f"the blob {name} is missing"
        if hash_bytes(data) != name:
            return f"the blob {name} was changed"
        blobs[name] = data
        return ""


def later_tip(tip: Tip | None, head: int, digest: str) -> Tip:
    """The tip known after the session was read up to ``head``."""
    return Tip(head, digest) if tip is None or head > tip.head else tip


def refuse_erased(last: Tip | None, tip: Tip, after: int) -> None:
    """Raise LogErased where the entries behind which a writer would append, its ``last`` tip, are gone.

    A session that was erased and has begun again may have as many entries as before: the digest tells them
    apart.
    """
    if last is None or last.head != after or tip.head > after:
        return
    if tip.head < after or tip.digest != last.digest:
        raise LogErased(
            f"this session had {after} entries when this log last looked, and they are not there any more: it was "
            "erased, or its store replaced. Nothing was written; open it again."
        )


def may_keep_snapshot(last: Tip | None, tip: Tip) -> bool:
    """True where a session that ends at ``tip`` may keep a snapshot. Raises LogErased as ``refuse_erased`` does.

    Not for a branch without own entries: nothing would show that it was erased.
    """
    refuse_erased(last, tip, tip.head if last is None else last.head)
    return tip.head > 0
