"""A log in PostgreSQL: many sessions, many processes, many machines; durable before ``append`` returns."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from pagein.errors import (
    ConfigurationError,
    Conflict,
    LogUnreadable,
    LogUnwritable,
)
from pagein.events.entries import Body
from pagein.log.base import Entry, Verification
from pagein.log.codec import blob_names, encode
from pagein.log.encryption import Key, held, seal_of
from pagein.log.erasure import Cut, Removal, cut_out, further, is_worth_keeping, refuse_erased, take_out
from pagein.log.hash_chain import origin
from pagein.log.paged_log import ByRows, checked_waits, whole_pages
from pagein.log.raw_rows import Row, Tip
from pagein.log.rows import Audit, checked_name, checked_time, relinked, seal, written
from pagein.log.snapshots import Shelf, Snapshot, sealed, unsealed

try:
    import psycopg
    from psycopg.rows import tuple_row

    from pagein.backends.postgres.connection import Connection, Pool
    from pagein.backends.postgres.migrations import SNAPSHOTS, checked_schema, key_of, prepare
    from pagein.backends.postgres.retry import Asking, source_of
    from pagein.backends.postgres.rows import PostgresRows, lock
    from pagein.backends.postgres.snapshots import PostgresSnapshots
    from pagein.backends.postgres.statements import Statements
except ImportError as error:
    raise ConfigurationError("logs in PostgreSQL need psycopg: pip install 'pagein[postgres]'") from error

T = TypeVar("T")

_ROWS_AT_ONCE = 250
_BYTES_AT_ONCE = 16 * 2**20


@dataclass(frozen=True, slots=True)
class _Batch:
    """What one append writes behind position ``after``, once it is known which digest its rows are ``chained`` to.

    ``name`` tells its rows from any other's, whatever is in them.
    """

    after: int
    count: int
    chained: Callable[[str], tuple[Row, ...]]
    blobs: Mapping[str, bytes]
    name: uuid.UUID


class PostgresLog(ByRows):
    """A Log in a PostgreSQL database; ``append`` returns after the server has it on disk.

    ``where`` is an address, for a connection of this log's own, or a psycopg ``ConnectionPool``, which many logs
    share and its owner closes. ``timeout`` is how long, in seconds, to wait for a lock, for a connection, and for a
    server that went away. ``synchronous`` is as for SQLite: with ``NORMAL`` or ``OFF`` a crash of the server may take
    the last appends, never the order or the whole; a pool's owner sets ``synchronous_commit`` himself. ``schema`` is
    the PostgreSQL schema that holds the tables, made where it is missing. Threads may share one log; a forked
    process opens its own.

    With a ``key`` bodies, blobs and digests are encrypted; see ``pagein.log.encryption``.

    A connection lost in the middle of an append is opened again and the append settled: it is there once, or it
    raises. No message and no repr holds a password.

    Raises LogUnreachable, LogUnreadable for a schema that is not ours, LogTooNew, LogBusy, LogUnwritable, and
    ConfigurationError for an address or an option that is none.
    """

    joint = True
    """It reaches every session of its tenant in the schema."""

    def __init__(
        self,
        where: str | Pool,
        *,
        session: str = "default",
        tenant: str = "",
        timeout: float = 5.0,
        synchronous: str = "FULL",
        readonly: bool = False,
        schema: str = "pagein",
        key: Key | None = None,
    ) -> None:
        synchronous = checked_waits(timeout, synchronous)
        self.readonly = readonly
        self.session = checked_name("session", session)
        self.tenant = checked_name("tenant", tenant)
        self.schema = checked_schema(schema)
        self.where, self.timeout, self._synchronous = where, timeout, synchronous
        self._secret, self._seal = held(key), seal_of(key, tenant, session)
        self._owner = (self.tenant, self.session)
        self._key = {"tenant": key_of(tenant), "session": key_of(session)}
        self._statements = Statements(self.schema)
        self._tip: Tip | None = None
        self._source = source_of(where, timeout=timeout, synchronous=synchronous, readonly=readonly)
        self._address = self._source.address
        self._server = Asking(self._source, timeout=timeout)
        try:
            version = self._ask(
                lambda using, _: prepare(using, self.schema, self.path, readonly=readonly),
                writing=not readonly,
            )
        except BaseException:
            self.close()
            raise
        self._keeps_snapshots = version >= SNAPSHOTS

    @property
    def path(self) -> str:
        """Where this log is, without the password."""
        return self._server.path

    def __repr__(self) -> str:
        return f"PostgresLog({self.path!r}, session={self.session!r}, tenant={self.tenant!r})"

    def beside(self, session: str) -> Self:
        """Another session of the same schema, opened as this one is, with its key."""
        own: Any = {"timeout": self.timeout, "synchronous": self._synchronous, "readonly": self.readonly}
        own |= {"tenant": self.tenant, "schema": self.schema, "key": self._secret}
        return type(self)(self.where, session=session, **own)

    def head(self) -> int:
        """The number of entries, which is the next position; a look at the last one, not a count."""
        return self.head_of(self.session)

    def head_of(self, session: str) -> int:
        """The number of entries of another session beside this one, without opening it."""
        whose = {"session": key_of(session)}
        found = self._ask(lambda using, _: self._fetch(using, self._statements.tip, whose))
        return int(found[0][0]) + 1 if found else 0

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        """All bodies durably at positions ``after`` and on, or none; ``at`` in seconds since the epoch.

        Raises Conflict when the head is no longer ``after``, LogError for a body that could not be read back, LogBusy,
        LogUnwritable, LogUnreachable; nothing is written then, and the log may be used on. Raises LogUncertain where
        the server went away in the middle and did not come back within the timeout.
        """
        records = [encode(body) for body in bodies]
        at = checked_time(at)
        blobs = {blob.name: blob.data for record in records for blob in record.blobs}
        rows = self._append(
            after,
            len(records),
            lambda previous: seal(records, after=after, at=at, previous=previous),
            blobs,
        )
        return written(rows, records)

    def adopt(self, rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
        """See ``pagein.log.raw_rows.RowLog.adopt``."""
        self._append(0, len(rows), lambda previous: relinked(rows, previous), blobs)

    @property
    def is_sealed(self) -> bool:
        """Whether bodies, blobs and digests are encrypted."""
        return self._seal.is_sealed

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        """Make all cuts, in whatever sessions of the tenant, in one transaction. See ``pagein.log.erasure``.

        Meanwhile other writers wait, and readers do not.
        """
        self._refuse_readonly()
        at = checked_time(at)
        self._ask(lambda using, _: self._erase(using, cuts, at), writing=True)
        self._tip = None

    def scrub(self) -> bool:
        """Nothing: what a server does with rows that are gone is its VACUUM's, and its backups', to do."""
        return True

    def _erase(self, using: Connection, cuts: Sequence[Cut | Removal], at: float) -> None:
        with using.transaction():
            lock(using, self.schema)
            snapshots = PostgresSnapshots(using, self.schema)
            for each in cuts:
                traced = isinstance(each, Cut) or each.trace
                snapshots.drop((self.tenant, each.session), trace=traced)
                sealed = seal_of(self._secret, self.tenant, each.session)
                rows = PostgresRows(using, self.schema, self.tenant, each.session, sealed)
                if isinstance(each, Cut):
                    cut_out(rows, each, at)
                else:
                    take_out(rows, each, at)
                    rows.forget()

    def verify(self) -> Verification:
        """Derive every hash again, and say what is wrong and where; what the server cannot read hides itself only."""
        audit = Audit(self.tenant, self.session, self._find_blob)
        head, position = self.head(), 0
        while position < head:
            try:
                rows = self._rows(position, head)
            except LogUnreadable:
                self._one_by_one(audit, position, min(position + _ROWS_AT_ONCE, head))
                position += _ROWS_AT_ONCE
                continue
            if not rows:
                break
            for row in rows:
                audit.row(row)
            position = rows[-1].position + 1
        return audit.result()

    def sessions(self) -> tuple[str, ...]:
        """The names of this tenant's sessions in the schema that have an entry, sorted."""
        names = self._ask(lambda using, _: self._fetch(using, self._statements.sessions, {}))
        return tuple(sorted(name for (name,) in names))

    def shelf(self) -> Shelf:
        """The snapshot of this session, if one is there and whole."""
        if not self._keeps_snapshots:
            return Shelf(None, is_open=False)
        found = self._ask(lambda using, _: PostgresSnapshots(using, self.schema).shelf(self._owner))
        return replace(unsealed(found, self._seal), is_open=not self.readonly)

    def keep(self, snapshot: Snapshot, dropped: int) -> None:
        """See ``pagein.log.snapshots.SnapshotLog``. Raises LogErased for a session that is not there any more."""
        self._refuse_readonly()
        self._ask(lambda using, _: self._keep(using, sealed(snapshot, self._seal), dropped), writing=True)

    def _keep(self, using: Connection, snapshot: Snapshot, dropped: int) -> None:
        with using.transaction():
            snapshots = PostgresSnapshots(using, self.schema)
            snapshots.lock()
            if is_worth_keeping(self._tip, self._look(using)):
                snapshots.keep(self._owner, snapshot, dropped)

    def drop_snapshots(self) -> None:
        """See ``pagein.log.snapshots.SnapshotLog``; durable before it returns."""
        self._refuse_readonly()
        self._ask(lambda using, _: self._drop_snapshots(using), writing=True)

    def _drop_snapshots(self, using: Connection) -> None:
        with using.transaction():
            lock(using, self.schema)
            PostgresSnapshots(using, self.schema).drop(self._owner)

    def close(self) -> None:
        """Let go of the connection; a second call does nothing. A pool stays open."""
        self._server.close()

    # Asking the server

    def _ask(self, work: Callable[[Connection, bool], T], *, writing: bool = False) -> T:
        return self._server.ask(work, writing=writing)

    def _fetch(self, using: Connection, statement: Any, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with using.cursor(binary=True, row_factory=tuple_row) as cursor:
            return cursor.execute(statement, {**self._key, **values}).fetchall()

    def _look(self, using: Connection) -> Tip:
        found = self._fetch(using, self._statements.tip, {})
        if not found:
            return Tip(0, origin(self.tenant, self.session))
        return Tip(found[0][0] + 1, self._seal.digest_in(found[0][1]))

    # Writing

    def _append(
        self, after: int, count: int, chained: Callable[[str], tuple[Row, ...]], blobs: Mapping[str, bytes]
    ) -> tuple[Row, ...]:
        self._refuse_readonly()
        batch = _Batch(after, count, chained, blobs, uuid.uuid4())
        return self._ask(lambda using, again: self._write(using, batch, again=again), writing=True)

    def _refuse_readonly(self) -> None:
        if self.readonly:
            raise LogUnwritable(f"{self.path}: this log was opened with readonly=True. Nothing was written.")

    def _write(self, using: Connection, batch: _Batch, *, again: bool) -> tuple[Row, ...]:
        """The rows, written by this call or, ``again``, by the call before whose answer was lost."""
        # What this log knows of the tip saves a look. It cannot mislead: the statement compares it with what is there.
        known = self._tip
        tip = known if known and known.head == batch.after and batch.count else self._look(using)
        for _ in range(2):
            rows = batch.chained(tip.digest)
            if tip.head == batch.after and self._insert(using, batch, rows, tip.digest):
                self._tip = Tip(rows[-1].position + 1, rows[-1].digest) if rows else tip
                return rows
            tip = self._look(using)
            refuse_erased(known, tip, batch.after)
            self._tip = None
            if again and (own := self._own(using, batch)):
                return own
            if tip.head != batch.after:
                break
        raise Conflict(batch.after, tip.head)

    def _insert(self, using: Connection, batch: _Batch, rows: Sequence[Row], previous: str) -> bool:
        """Whether all rows were written behind ``previous``; if not, none was."""
        parts = list(_parts(rows, batch.blobs))
        try:
            if len(parts) < 2:
                return all(self._insert_part(using, batch, each, previous) for each in parts)
            with using.transaction():
                for each in parts:
                    if not self._insert_part(using, batch, each, previous):
                        raise psycopg.Rollback
                    previous = each[-1].digest
                return True
        except psycopg.errors.UniqueViolation:
            pass  # another writer holds the position
        return False

    def _insert_part(self, using: Connection, batch: _Batch, rows: Sequence[Row], previous: str) -> bool:
        sealed = self._seal
        blobs = {
            sealed.digest_out(name): sealed.blob_out(name, batch.blobs[name])
            for row in rows
            for name in blob_names(row.body)
        }
        rows = [sealed.row_out(row) for row in rows]
        first = rows[0]
        values: dict[str, Any] = {
            **self._key,
            "after": first.position,
            "previous": sealed.digest_out(previous),
            "batch": batch.name,
        }
        if len(rows) == 1 and first.position and not blobs:
            statement = self._statements.one
            values |= {
                "at": first.at, "kind": first.kind, "number": first.version, "body": first.body.decode(),
                "digest": first.digest,
            }  # fmt: skip
        else:
            statement = self._statements.append(first=first.position == 0, blobs=bool(blobs))
            values |= {
                "times": [row.at for row in rows],
                "kinds": [row.kind for row in rows], "versions": [row.version for row in rows],
                "bodies": [row.body.decode() for row in rows], "digests": [row.digest for row in rows],
                "names": list(blobs), "data": list(blobs.values()),
                "tenant_name": self.tenant, "session_name": self.session,
            }  # fmt: skip
        with using.cursor() as cursor:
            return cursor.execute(statement, values).rowcount == len(rows)

    def _own(self, using: Connection, batch: _Batch) -> tuple[Row, ...]:
        """The rows that this batch has written already; none, or all."""
        found = self._fetch(using, self._statements.batch, {"after": batch.after, "batch": batch.name})
        return tuple(self._seal.row_in(Row(*each)) for each in found)

    # Reading

    def _whole_rows(self, start: int, stop: int) -> Iterator[Row]:
        for rows in whole_pages(self._rows, start, stop, self.path):
            yield from rows
            self._tip = further(self._tip, rows[-1].position + 1, rows[-1].digest)

    def _rows(self, start: int, stop: int) -> list[Row]:
        """The first rows of ``[start, stop)``, some hundred at most."""
        limits = {"start": start, "stop": stop, "limit": _ROWS_AT_ONCE}
        found = self._ask(lambda using, _: self._fetch(using, self._statements.read, limits))
        return [self._seal.row_in(Row(*each)) for each in found]

    def _one_by_one(self, audit: Audit, start: int, stop: int) -> None:
        for position in range(start, stop):
            try:
                rows = self._rows(position, position + 1)
            except LogUnreadable as error:
                audit.unreadable(position, str(error))
            else:
                for row in rows:
                    audit.row(row)

    def _find_blob(self, name: str) -> bytes | None:
        asked = {"name": self._seal.digest_out(name)}
        found = self._ask(lambda using, _: self._fetch(using, self._statements.blob, asked))
        return self._seal.blob_in(name, found[0][0]) if found else None


def _parts(rows: Sequence[Row], blobs: Mapping[str, bytes]) -> Iterator[list[Row]]:
    """The rows in parts that one statement carries without effort, each with its blobs."""
    part: list[Row] = []
    size = 0
    for row in rows:
        weight = len(row.body) + sum(len(blobs[name]) for name in blob_names(row.body))
        if part and size + weight > _BYTES_AT_ONCE:
            yield part
            part, size = [], 0
        part.append(row)
        size += weight
    if part:
        yield part
