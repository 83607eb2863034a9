"""The export format: a session as lines of JSON, with a header, its entries and blobs, and a trailer.

    {"pagein":"session","format":1,"tenant":"","session":"web-app"}
    {"blob":"s2:6e34...","data":"iVBORw0K..."}
    {"position":0,"at":1700000000.5,"kind":"task","version":1,"body":{"content":"Hi"},"digest":"s2:0b1a..."}
    {"end":true,"entries":1,"blobs":1,"digest":"s2:0b1a..."}

Bodies are written as they are stored, byte for byte, so that the digests can be derived again. A blob, in
base64, is written once, before the first entry that names it. The trailer repeats the last digest, so that a
truncated file is detected.

A whole store is a header, its sessions as they stand in files of their own, each run's with its requests behind it, and a
trailer with the hash of all lines before it.

    {"pagein":"store","format":1,"tenant":"","sessions":1}
    ...
    {"request":1,"run":"web-app","head":3,"at":1700000000.5,"body":"eyJoZWFk..."}
    {"end":true,"sessions":1,"requests":1,"digest":"9f86d081..."}
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import Struct

from pagein.errors import LogError, LogTooNew, LogUnreadable
from pagein.events.entries import (
    Body,
    Compaction,
    FactConfirmed,
    FactRemoved,
    FactStated,
    FactsUsed,
    Mark,
    Observed,
    Replacement,
    Undo,
    Unpin,
)
from pagein.events.steps import ActionStep
from pagein.log.base import Entry, LogStore, StoredLog
from pagein.log.branch_log import is_branching
from pagein.log.codec import blob_names, hash_bytes, inflated_size
from pagein.log.hash_chain import ChainVerifier, check_name, decode_row, origin
from pagein.log.raw_rows import Row
from pagein.log.requests import REQUEST_MAX_BYTES, RequestRow

Tell = Callable[[int, int], None]
"""Is told how many sessions are done, of how many."""

FORMAT = 1
"""The version of the file. The entries in it have versions of their own."""


EXPANDED_MIN_LIMIT_BYTES, EXPANDED_FACTOR = 256 * 2**20, 4
"""The most that the blobs of an import may take once its entries are open: so many bytes, and so many times their own."""


class _HeaderLine(Struct, forbid_unknown_fields=True):
    pagein: str
    format: int
    tenant: str
    session: str


class _RowLine(Struct, forbid_unknown_fields=True):
    position: int
    at: float
    kind: str
    version: int
    body: msgspec.Raw
    digest: str


class _BlobLine(Struct, forbid_unknown_fields=True):
    blob: str
    data: bytes


class _TrailerLine(Struct, forbid_unknown_fields=True):
    end: bool
    entries: int
    blobs: int
    digest: str


class _StoreLine(Struct, forbid_unknown_fields=True):
    pagein: str
    format: int
    tenant: str
    sessions: int


class _RequestLine(Struct, forbid_unknown_fields=True):
    request: int
    run: str
    head: int
    at: float
    body: bytes


class _StoreEndLine(Struct, forbid_unknown_fields=True):
    end: bool
    sessions: int
    requests: int
    digest: str


class _FileKind(Struct):
    """The fields of a first line that identify the file."""

    pagein: str = ""
    format: int = 0


_encode = msgspec.json.Encoder().encode
_LINE_TYPES: tuple[tuple[bytes, type[_RowLine | _BlobLine | _TrailerLine]], ...] = (
    (b'{"position":', _RowLine),
    (b'{"blob":', _BlobLine),
    (b'{"end":', _TrailerLine),
)


@dataclass(frozen=True, slots=True)
class ExportedSession:
    """A session that was parsed, every hash of it derived again; ``digest`` is its last."""

    tenant: str
    session: str
    rows: tuple[Row, ...]
    blobs: Mapping[str, bytes]
    digest: str


@dataclass(slots=True)
class ExportCounts:
    """The entries and requests in the lines so far, and the digest of the last entry."""

    entries: int = 0
    requests: int = 0
    digest: str = ""


def export_lines(log: StoredLog, counts: ExportCounts) -> Iterator[bytes]:
    """The log's session, line by line, up to the head at the first line. Raises what reading the log raises."""
    yield _encode_line(_HeaderLine("session", FORMAT, log.tenant, log.session))
    entries, counts.digest = 0, origin(log.tenant, log.session)
    exported: set[str] = set()
    for row in log.rows():
        for name in blob_names(row.body):
            if name not in exported:
                exported.add(name)
                yield _encode_line(_BlobLine(name, log.blob(name)))
        yield _encode_line(_RowLine(row.position, row.at, row.kind, row.version, msgspec.Raw(row.body), row.digest))
        entries, counts.digest = entries + 1, row.digest
    counts.entries += entries
    yield _encode_line(_TrailerLine(True, entries, len(exported), counts.digest))


@dataclass(frozen=True, slots=True)
class ExportedRequest:
    """A row of the table of requests of a run."""

    run: str
    row: RequestRow


ExportedPart = ExportedSession | ExportedRequest


def export_store_lines(
    store: LogStore, names: Sequence[str], runs: Collection[str], counts: ExportCounts, tell: Tell
) -> Iterator[bytes]:
    """The sessions of these names, in their order, and behind each of ``runs`` its requests. Raises what reading raises."""
    digest = hashlib.sha256()
    for line in _part_lines(store, names, runs, counts, tell):
        digest.update(line)
        yield line
    yield _encode_line(_StoreEndLine(True, len(names), counts.requests, digest.hexdigest()))


def _part_lines(
    store: LogStore, names: Sequence[str], runs: Collection[str], counts: ExportCounts, tell: Tell
) -> Iterator[bytes]:
    yield _encode_line(_StoreLine("store", FORMAT, store.tenant, len(names)))
    for number, name in enumerate(names, 1):
        with closing(store.log(name)) as log:
            yield from export_lines(log, counts)
        tell(number, len(names))
        for row in store.request_table(name).rows() if name in runs else ():
            counts.requests += 1
            yield _encode_line(_RequestLine(row.number, name, row.head, row.at, row.body))


def store_of_file(first_line: bytes, name: str) -> tuple[str, int] | None:
    """The tenant of a file of a whole store, and how many sessions it has; None for another file. Raises LogTooNew."""
    if _file_kind(first_line, name) != "store":
        return None
    try:
        header = msgspec.json.decode(first_line, type=_StoreLine)
        return check_name("tenant", header.tenant), header.sessions
    except (ValueError, RecursionError) as error:
        raise LogUnreadable(f"{name}, line 1: {error}. Nothing was written.") from error


def parse_store(lines: Iterable[bytes], name: str) -> Iterator[ExportedPart]:
    """Parse and verify the parts of a store in these lines, one after the other; only the end proves the file whole.

    Raises LogUnreadable for lines of another format, changed or truncated ones, and LogTooNew.
    """
    reading, number = _StoreReader(name), 0
    for number, line in enumerate(lines, 1):
        part = reading.add_line(number, line)
        if part is not None:
            yield part
    if not reading.is_complete:
        raise _line_error(name, number, "the file was cut off: its end is missing")


_REQUEST = b'{"request":'


def parse_session(lines: Iterable[bytes], name: str) -> ExportedSession:
    """Parse and verify the session in these lines; ``name`` is the file's, for error messages.

    Raises LogUnreadable for lines of another format, changed or truncated ones, and LogTooNew.
    """
    reading = _SessionReader(name)
    for number, line in enumerate(lines, 1):
        reading.add_line(number, line)
    return reading.result()


def _encode_line(value: Struct) -> bytes:
    return _encode(value) + b"\n"


def _file_kind(line: bytes, name: str) -> str:
    """The kind of a file, by its first line; "" for none of pagein. Raises LogTooNew."""
    try:
        named = msgspec.json.decode(line, type=_FileKind)
    except (ValueError, RecursionError):
        return ""
    if named.pagein and named.format > FORMAT:
        raise LogTooNew(
            f"{name}: the file has format {named.format}, this release of pagein knows {FORMAT}; upgrade pagein"
        )
    return named.pagein


_LineT = TypeVar("_LineT", bound=Struct)


def _decode(line: bytes, shape: type[_LineT], name: str, number: int) -> _LineT:
    if not line.endswith(b"\n"):
        raise _line_error(name, number, "the file was cut off in the middle of this line")
    try:
        return msgspec.json.decode(line, type=shape)
    except (ValueError, RecursionError) as error:
        raise _line_error(name, number, str(error)) from error


def _line_error(name: str, number: int, what: str) -> LogUnreadable:
    return LogUnreadable(f"{name}, line {number}: {what}. Nothing was written.")


class _SessionReader:
    """A parser that takes the lines of a file one after the other."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._header: _HeaderLine | None = None
        self._rows: list[Row] = []
        self._blobs: dict[str, bytes] = {}
        self._trailer: _TrailerLine | None = None
        self._number = 0
        self._sizes: dict[str, int] = {}
        self._expanded = 0

    def add_line(self, number: int, line: bytes) -> None:
        """Parse the next line. Raises LogUnreadable, LogTooNew."""
        self._number = number
        if self._header is None:
            self._header = self._parse_header(line)
            return
        if self._trailer is not None:
            raise self._error("something stands behind the end")
        shape = next((kind for start, kind in _LINE_TYPES if line.startswith(start)), None)
        if shape is None:
            raise self._error("this is neither an entry nor a blob nor the end")
        self._take(_decode(line, shape, self._name, number))

    @property
    def is_complete(self) -> bool:
        """True behind the last line of the session."""
        return self._trailer is not None

    def result(self) -> ExportedSession:
        """The session, verified. Raises LogUnreadable."""
        header, trailer = self._header, self._trailer
        if header is None or trailer is None:
            raise self._error("the file was cut off: its end is missing")
        audit = ChainVerifier(header.tenant, header.session, self._blobs.get)
        for row in self._rows:
            audit.add_row(row)
        if problems := audit.result().problems:
            self._check_releases()
            where = "" if problems[0].position is None else f"entry {problems[0].position}: "
            more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
            raise LogUnreadable(f"{self._name}: {where}{problems[0].what}{more}. Nothing was written.")
        last = self._rows[-1].digest if self._rows else origin(header.tenant, header.session)
        if (trailer.entries, trailer.blobs, trailer.digest) != (len(self._rows), len(self._blobs), last):
            raise self._error("the end tells of other entries than stand before it")
        self._check_references(header.session)
        return ExportedSession(header.tenant, header.session, tuple(self._rows), self._blobs, last)

    def _check_references(self, session: str) -> None:
        """Raise LogUnreadable for an entry that names what is not there; a branch's names places of its parents too."""
        if is_branching(session):
            return
        entries = (decode_row(row, self._blobs.__getitem__) for row in self._rows)
        if wrong := find_wrong_reference(entries, len(self._rows)):
            raise LogUnreadable(f"{self._name}: {wrong}. Nothing was written.")

    def _check_releases(self) -> None:
        """Raises LogTooNew where an entry is of a later release."""
        for row in self._rows:
            try:
                decode_row(row, self._blobs.__getitem__)
            except LogTooNew as error:
                raise LogTooNew(f"{self._name}: {error}") from error
            except LogUnreadable:
                return

    def _parse_header(self, line: bytes) -> _HeaderLine:
        if _file_kind(line, self._name) != "session":
            raise self._error("this is no session that pagein exported")
        try:
            header = msgspec.json.decode(line, type=_HeaderLine)
            check_name("session", header.session)
            check_name("tenant", header.tenant)
        except (ValueError, RecursionError) as error:
            raise self._error(str(error)) from error
        return header

    def _take(self, value: _RowLine | _BlobLine | _TrailerLine) -> None:
        match value:
            case _RowLine():
                if value.position != len(self._rows):
                    raise self._error(f"entry {len(self._rows)} was due, and here is entry {value.position}")
                body = bytes(value.body)
                names = self._names(body)
                missing = [name for name in names if name not in self._blobs]
                if missing:
                    raise self._error(f"the blob {missing[0]} does not stand before the entry that names it")
                self._count_expanded(body, names)
                self._rows.append(Row(value.position, value.at, value.kind, value.version, body, value.digest))
            case _BlobLine():
                if value.blob in self._blobs or hash_bytes(value.data) != value.blob:
                    raise self._error(f"the blob {value.blob} was changed, or stands twice")
                self._blobs[value.blob] = value.data
            case _TrailerLine():
                self._trailer = value

    def _names(self, body: bytes) -> tuple[str, ...]:
        try:
            return blob_names(body)
        except LogError as error:
            raise self._error(str(error)) from error

    def _count_expanded(self, body: bytes, names: tuple[str, ...]) -> None:
        """Add up the bytes that the entries take once they are open. Raises LogUnreadable for a file made to fill memory."""
        for name in names:
            data = self._blobs[name]
            if name not in self._sizes:
                self._sizes[name] = inflated_size(data) if b'"$deflated"' in body else len(data)
            self._expanded += self._sizes[name] * max(1, body.count(name.encode()))
        if self._expanded > EXPANDED_MIN_LIMIT_BYTES + EXPANDED_FACTOR * sum(map(len, self._blobs.values())):
            raise self._error(
                f"its entries take more than {self._expanded >> 20} MB once they are open, and its blobs "
                f"{sum(map(len, self._blobs.values())) >> 20} MB: a blob is named again and again, or expands too far"
            )

    def _error(self, what: str) -> LogUnreadable:
        return _line_error(self._name, self._number, what)


class _StoreReader:
    """A parser of the file of a store, line after line."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._digest = hashlib.sha256()
        self._session: _SessionReader | None = None
        self._run, self._sessions, self._requests = "", 0, 0
        self.is_complete = False

    def add_line(self, number: int, line: bytes) -> ExportedPart | None:
        """Parse the next line; return what ends with it. Raises LogUnreadable, LogTooNew."""
        if self.is_complete:
            raise _line_error(self._name, number, "something stands behind the end")
        if number > 1 and self._session is None and line.startswith(b'{"end":'):
            self._end(number, _decode(line, _StoreEndLine, self._name, number))
            return None
        self._digest.update(line)
        if number == 1:
            if store_of_file(line, self._name) is None:
                raise _line_error(self._name, number, "this is no store that pagein exported")
            return None
        if self._session is None and line.startswith(_REQUEST):
            return self._request(number, _decode(line, _RequestLine, self._name, number))
        self._session = self._session or _SessionReader(self._name)
        self._session.add_line(number, line)
        if not self._session.is_complete:
            return None
        session, self._session = self._session.result(), None
        self._run, self._sessions = session.session, self._sessions + 1
        return session

    def _request(self, number: int, row: _RequestLine) -> ExportedRequest:
        if row.run != self._run or len(row.body) > REQUEST_MAX_BYTES:
            raise _line_error(self._name, number, "this is no request of the run before it")
        self._requests += 1
        return ExportedRequest(row.run, RequestRow(row.request, row.head, row.at, row.body))

    def _end(self, number: int, end: _StoreEndLine) -> None:
        known = (self._sessions, self._requests, self._digest.hexdigest())
        if (end.sessions, end.requests, end.digest) != known:
            raise _line_error(self._name, number, "the end tells of other lines than stand before it")
        self.is_complete = True


# References. A log that the library wrote is sound. A file can be made by anybody, and its hashes with it: an index of
# 10**12 would fill the memory when the run is opened.

MAX_CALLS = 1_000
"""Calls of an action of which nothing is known: it was erased, or is none."""


def find_wrong_reference(entries: Iterable[Entry], count: int) -> str:
    """Say what the first entry names that is not among these ``count`` entries; "" where there is none.

    >>> find_wrong_reference([Entry(0, 1.0, Undo(7), "s2:0")], 1)
    'entry 0 names entry 7 of 1'
    """
    calls: dict[int, int] = {}
    for entry in entries:
        if isinstance(entry.body, ActionStep) and entry.erased is None:
            calls[entry.position] = len(entry.body.tool_calls)
        if wrong := next(_wrong_places(entry, calls, count), ""):
            return f"entry {entry.position} {wrong}"
    return ""


def _wrong_places(entry: Entry, calls: Mapping[int, int], count: int) -> Iterator[str]:
    body = entry.body
    yield from (f"names entry {position} of {count}" for position in _positions(body) if not 0 <= position < count)
    for by in _replacements(body):
        if not 0 <= by.first < by.last <= count:
            yield f"replaces entries {by.first} to {by.last - 1} of {count}"
    for action, index in _calls(body):
        if not 0 <= index < calls.get(action, MAX_CALLS):
            yield f"names call {index} of entry {action}"


def _positions(body: Body) -> tuple[int, ...]:
    match body:
        case Observed(action=position) | Unpin(position=position) | Mark(position=position) | Undo(position=position):
            return (position,)
        case FactRemoved(fact=fact) | FactConfirmed(fact=fact):
            return (fact,)
        case FactStated(supersedes=supersedes, disputes=disputes):
            return (*supersedes, *disputes)
        case FactsUsed(facts=facts):
            return facts
        case _:
            return ()


def _calls(body: Body) -> Iterator[tuple[int, int]]:
    """Yield the calls that a body names, each by its action and its index."""
    if isinstance(body, Observed):
        yield body.action, body.index
    for by in _replacements(body):
        yield from ((by.first, stub.index) for stub in by.stubs if stub.slot in ("arguments", "observation"))


def _replacements(body: Body) -> tuple[Replacement, ...]:
    return body.replacements if isinstance(body, Compaction) else ()
