"""A session as lines of JSON, for a file that holds all of it: a header, its entries and blobs, a trailer.

    {"pagein":"session","format":1,"tenant":"","session":"web-app"}
    {"blob":"s2:6e34...","data":"iVBORw0K..."}
    {"position":0,"at":1700000000.5,"kind":"task","version":1,"body":{"content":"Hi"},"digest":"s2:0b1a..."}
    {"end":true,"entries":1,"blobs":1,"digest":"s2:0b1a..."}

Bodies stand in their lines as they are stored, byte for byte, so that the digests can be derived again. A blob, in
base64, stands once, before the first entry that names it. The last digest is the trailer's: a file that lost its end
says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from pagein.errors import LogError, LogTooNew, LogUnreadable
from pagein.log.codec import blob_names
from pagein.log.hash_chain import blob_name, origin
from pagein.log.raw_rows import Row, RowLog
from pagein.log.rows import Audit, checked_name, opened

FORMAT = 1
"""The version of the file. The entries in it have versions of their own."""


class _Header(Struct, forbid_unknown_fields=True):
    pagein: str
    format: int
    tenant: str
    session: str


class _Row(Struct, forbid_unknown_fields=True):
    position: int
    at: float
    kind: str
    version: int
    body: msgspec.Raw
    digest: str


class _Blob(Struct, forbid_unknown_fields=True):
    blob: str
    data: bytes


class _Trailer(Struct, forbid_unknown_fields=True):
    end: bool
    entries: int
    blobs: int
    digest: str


class _Named(Struct):
    """Enough of a first line to say what it is."""

    pagein: str = ""
    format: int = 0


_encode = msgspec.json.Encoder().encode
_SHAPES: tuple[tuple[bytes, type[_Row | _Blob | _Trailer]], ...] = (
    (b'{"position":', _Row),
    (b'{"blob":', _Blob),
    (b'{"end":', _Trailer),
)


@dataclass(frozen=True, slots=True)
class Session:
    """A session that was read from lines, every hash of it derived again; ``digest`` is its last."""

    tenant: str
    session: str
    rows: tuple[Row, ...]
    blobs: Mapping[str, bytes]
    digest: str


def lines_of(log: RowLog) -> Iterator[bytes]:
    """The log's session, line by line, up to the head at the first of them. Raises what reading the log raises."""
    yield _line(_Header("session", FORMAT, log.tenant, log.session))
    entries, digest = 0, origin(log.tenant, log.session)
    told: set[str] = set()
    for row in log.rows():
        for name in blob_names(row.body):
            if name not in told:
                told.add(name)
                yield _line(_Blob(name, log.blob(name)))
        yield _line(_Row(row.position, row.at, row.kind, row.version, msgspec.Raw(row.body), row.digest))
        entries, digest = entries + 1, row.digest
    yield _line(_Trailer(True, entries, len(told), digest))


def session_of(lines: Iterable[bytes], name: str) -> Session:
    """The session that the lines hold; ``name`` is the file's, for what is said of it.

    Raises LogUnreadable for lines that are none of ours, were changed or cut off, and LogTooNew.
    """
    reading = _Reading(name)
    for number, line in enumerate(lines, 1):
        reading.line(number, line)
    return reading.result()


def _line(value: Struct) -> bytes:
    return _encode(value) + b"\n"


class _Reading:
    """Takes the lines of a file one after the other."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._header: _Header | None = None
        self._rows: list[Row] = []
        self._blobs: dict[str, bytes] = {}
        self._trailer: _Trailer | None = None
        self._number = 0

    def line(self, number: int, line: bytes) -> None:
        """The next line. Raises LogUnreadable, LogTooNew."""
        self._number = number
        if self._header is None:
            self._header = self._begun(line)
            return
        if self._trailer is not None:
            raise self._wrong("something stands behind the end")
        if not line.endswith(b"\n"):
            raise self._wrong("the file was cut off in the middle of this line")
        shape = next((each for start, each in _SHAPES if line.startswith(start)), None)
        if shape is None:
            raise self._wrong("this is neither an entry nor a blob nor the end")
        try:
            found = msgspec.json.decode(line, type=shape)
        except (ValueError, RecursionError) as error:
            raise self._wrong(str(error)) from error
        self._take(found)

    def result(self) -> Session:
        """What was read, proven. Raises LogUnreadable."""
        header, trailer = self._header, self._trailer
        if header is None or trailer is None:
            raise self._wrong("the file was cut off: its end is missing")
        audit = Audit(header.tenant, header.session, self._blobs.get)
        for row in self._rows:
            audit.row(row)
        if problems := audit.result().problems:
            self._check_releases()
            where = "" if problems[0].position is None else f"entry {problems[0].position}: "
            more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
            raise LogUnreadable(f"{self._name}: {where}{problems[0].what}{more}. Nothing was written.")
        last = self._rows[-1].digest if self._rows else origin(header.tenant, header.session)
        if (trailer.entries, trailer.blobs, trailer.digest) != (len(self._rows), len(self._blobs), last):
            raise self._wrong("the end tells of other entries than stand before it")
        return Session(header.tenant, header.session, tuple(self._rows), self._blobs, last)

    def _check_releases(self) -> None:
        """Raises LogTooNew where an entry is of a later release."""
        for row in self._rows:
            try:
                opened(row, self._blobs.__getitem__)
            except LogTooNew as error:
                raise LogTooNew(f"{self._name}: {error}") from error
            except LogUnreadable:
                return

    def _begun(self, line: bytes) -> _Header:
        try:
            named = msgspec.json.decode(line, type=_Named)
        except (ValueError, RecursionError):
            named = _Named()
        if named.pagein != "session":
            raise self._wrong("this is no session that pagein exported")
        if named.format > FORMAT:
            raise LogTooNew(
                f"{self._name}: the file has format {named.format}, this release of pagein knows {FORMAT}; upgrade pagein"
            )
        try:
            header = msgspec.json.decode(line, type=_Header)
            checked_name("session", header.session)
            checked_name("tenant", header.tenant)
        except (ValueError, RecursionError) as error:
            raise self._wrong(str(error)) from error
        return header

    def _take(self, found: _Row | _Blob | _Trailer) -> None:
        match found:
            case _Row():
                if found.position != len(self._rows):
                    raise self._wrong(f"entry {len(self._rows)} was due, and here is entry {found.position}")
                body = bytes(found.body)
                missing = [name for name in self._names(body) if name not in self._blobs]
                if missing:
                    raise self._wrong(f"the blob {missing[0]} does not stand before the entry that names it")
                self._rows.append(
                    Row(found.position, found.at, found.kind, found.version, body, found.digest)
                )
            case _Blob():
                if found.blob in self._blobs or blob_name(found.data) != found.blob:
                    raise self._wrong(f"the blob {found.blob} was changed, or stands twice")
                self._blobs[found.blob] = found.data
            case _Trailer():
                self._trailer = found

    def _names(self, body: bytes) -> tuple[str, ...]:
        try:
            return blob_names(body)
        except LogError as error:
            raise self._wrong(str(error)) from error

    def _wrong(self, what: str) -> LogUnreadable:
        return LogUnreadable(f"{self._name}, line {self._number}: {what}. Nothing was written.")
