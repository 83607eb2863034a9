"""The log and the store in PostgreSQL: many sessions, processes and machines; durable before ``append`` returns."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, Unpack

from pagein.backends.base import Store
from pagein.backends.database_store import DatabaseStore, RowLogBase, StoreOptions
from pagein.errors import ConfigurationError, Conflict, LogUnwritable
from pagein.events.entries import Body
from pagein.log import hash_chain
from pagein.log.base import Entry, Verification
from pagein.log.codec import blob_names, encode
from pagein.log.erasure import Cut, Removal, make_cut, remove_session
from pagein.log.raw_rows import Row, Tip
from pagein.log.snapshots import Snapshot, SnapshotSlot, decrypt_slot, encrypt_snapshot
from pagein.search.base import Embedder
from pagein.search.index import SearchIndex

try:
    import psycopg

    from pagein.backends.postgres.connection import Connection, Pool, RetryingConnection, Source, for_schema, source_of
    from pagein.backends.postgres.migrations import SNAPSHOTS, checked_schema, key_of, prepare
    from pagein.backends.postgres.requests import PostgresRequests, forget_requests
    from pagein.backends.postgres.snapshots import PostgresSnapshots
    from pagein.backends.postgres.statements import (
        BATCH,
        ONE,
        ROWS_AT_ONCE,
        SESSIONS,
        PostgresRows,
        append_statement,
        lock_entries,
    )
except ImportError as error:
    raise ConfigurationError("logs in PostgreSQL need psycopg: pip install 'pagein[postgres]'") from error

T = TypeVar("T")

_BYTES_AT_ONCE = 16 * 2**20


@dataclass(frozen=True, slots=True)
class _Batch:
    """The rows of one append after position ``after``; ``chained`` makes them once the digest before is known.

    ``name`` identifies the rows that this append wrote.
    """

    after: int
    count: int
    chained: Callable[[str], tuple[Row, ...]]
    blobs: Mapping[str, bytes]
    name: uuid.UUID


class PostgresLog(RowLogBase):
    """A StoredLog in a PostgreSQL database; ``append`` returns after the server has it on disk.

    ``where`` is an address, for a connection of this log and its store, or a psycopg ``ConnectionPool``, which many
    logs share and its owner closes. A store opens its logs with itself: all of them, and its search index, use one connection. ``timeout`` is how long, in seconds, to wait for a lock, for a connection,
    and for a server that is gone. ``synchronous`` is as for SQLite: with ``NORMAL`` or ``OFF`` a crash of the
    server may lose the last appends, never their order or part of one; a pool's owner sets
    ``synchronous_commit``. ``schema`` is the PostgreSQL schema of the tables, created where it is missing.
    Threads may share one log; a forked process opens its own.

    With a ``key`` bodies, blobs and digests are encrypted; see ``pagein.log.encryption``.

    After a connection lost during an append, the log connects again and checks: the append is there once, or it
    raises. No message and no repr holds a password.

    Raises LogUnreachable, LogUnreadable for a foreign schema, LogTooNew, LogBusy, LogUnwritable, and
    ConfigurationError for an invalid address or option.
    """

    page_rows = ROWS_AT_ONCE

    def __init__(
        self,
        where: str | Pool | PostgresStore,
        *,
        session: str = "default",
        schema: str = "pagein",
        **options: Unpack[StoreOptions],
    ) -> None:
        self.store = where if isinstance(where, PostgresStore) else PostgresStore(where, schema=schema, **options)
        self.is_open = True
        self.tenant, self.readonly, self.schema = self.store.tenant, self.store.readonly, self.store.schema
        self.session, self.where = hash_chain.check_name("session", session), self.store.where
        self._encryption = self.store.encryption(session)
        self._owner = (self.tenant, self.session)
        self._key = {"tenant": key_of(self.tenant), "session": key_of(session)}
        self._tip: Tip | None = None
        self._source = self.store.source
        self._address = self._source.address
        self._server = RetryingConnection(self._source, timeout=self.store.timeout)
        self.path = self._server.path
        try:
            version = self._call(
                lambda using, _: prepare(using, self.schema, self.path, readonly=self.readonly),
                writing=not self.readonly,
            )
        except BaseException:
            self.close()
            raise
        self._keeps_snapshots = version >= SNAPSHOTS
        self.store.borrow(self)

    def __repr__(self) -> str:
        return f"PostgresLog({self.path!r}, session={self.session!r}, tenant={self.tenant!r})"

    def head(self) -> int:
        return self._head_of(self.session)

    def _head_of(self, session: str) -> int:
        return self._call(lambda using, _: self._rows(using, session).stored_tip().head)

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        """Append all bodies durably at positions ``after`` and on, or none; ``at`` in seconds since the epoch.

        Raises Conflict when the head is no longer ``after``, LogError for a body that could not be read back,
        LogBusy, LogUnwritable, LogUnreachable; nothing is written then, and the log stays usable. Raises
        LogUncertain where the server was lost during the append and did not come back within the timeout.
        """
        records = [encode(body) for body in bodies]
        at = hash_chain.check_time(at)
        blobs = {blob.name: blob.data for record in records for blob in record.blobs}
        rows = self._append(
            after,
            len(records),
            lambda previous: hash_chain.chain_rows(records, after=after, at=at, previous=previous),
            blobs,
        )
        return hash_chain.make_entries(rows, records)

    def import_rows(self, rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
        """See ``StoredLog``."""
        self._append(0, len(rows), lambda previous: hash_chain.rechain_rows(rows, previous), blobs)

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        """See ``StoredLog``; any session of the tenant may be named. Meanwhile other writers wait, and readers do not."""
        self._refuse_readonly()
        at = hash_chain.check_time(at)
        self._call(lambda using, _: self._erase(using, cuts, at), writing=True)
        self._tip = None

    def _erase(self, using: Connection, cuts: Sequence[Cut | Removal], at: float) -> None:
        with using.transaction():
            lock_entries(using, self.schema)
            snapshots = PostgresSnapshots(using, self.schema)
            for cut in cuts:
                traced = isinstance(cut, Cut) or cut.trace
                snapshots.drop_snapshots((self.tenant, cut.session), trace=traced)
                rows = self._rows(using, cut.session)
                if isinstance(cut, Cut):
                    make_cut(rows, cut, at)
                else:
                    remove_session(rows, cut, at)
                    rows.forget()
                    forget_requests(using, self.schema, self.tenant, cut.session)

    def verify(self) -> Verification:
        """Derive every hash again, and report each fault with its position; rows that cannot be read are reported too."""
        audit = hash_chain.ChainVerifier(self.tenant, self.session, self._find_blob)
        self._verify_rows(audit, self.head())
        return audit.result()

    def _sessions(self) -> tuple[str, ...]:
        names = self._call(lambda using, _: self._rows(using).fetch(SESSIONS))
        return tuple(sorted(name for (name,) in names))

    def snapshot_slot(self, before: int | None = None) -> SnapshotSlot:
        """See ``StoredLog``."""
        if not self._keeps_snapshots:
            return SnapshotSlot(None, is_open=False)
        slot = self._call(lambda using, _: PostgresSnapshots(using, self.schema).read_slot(self._owner, before))
        return replace(decrypt_slot(slot, self._encryption), is_open=not self.readonly)

    def keep_snapshot(self, snapshot: Snapshot, dropped: int, *, is_past: bool = False) -> None:
        """See ``StoredLog``. Raises LogErased for a session that was erased."""
        self._refuse_readonly()
        self._call(
            lambda using, _: self._keep(using, encrypt_snapshot(snapshot, self._encryption), dropped, is_past=is_past),
            writing=True,
        )

    def _keep(self, using: Connection, snapshot: Snapshot, dropped: int, *, is_past: bool) -> None:
        with using.transaction():
            snapshots = PostgresSnapshots(using, self.schema)
            snapshots.lock()
            if hash_chain.may_keep_snapshot(self._tip, self._rows(using).tip()):
                snapshots.keep_snapshot(self._owner, snapshot, dropped, is_past=is_past)

    def drop_snapshots(self) -> None:
        """See ``StoredLog``; durable before it returns."""
        self._refuse_readonly()
        self._call(lambda using, _: self._drop_snapshots(using), writing=True)

    def _drop_snapshots(self, using: Connection) -> None:
        with using.transaction():
            lock_entries(using, self.schema)
            PostgresSnapshots(using, self.schema).drop_snapshots(self._owner)

    def close(self) -> None:
        """Close the connection; a second call does nothing. A pool stays open."""
        self.is_open = False
        self._server.close()

    # Asking the server

    def _call(self, work: Callable[[Connection, bool], T], *, writing: bool = False) -> T:
        return self._server.call(work, writing=writing)

    def _rows(self, using: Connection, session: str | None = None) -> PostgresRows:
        """The rows of this session, or of another."""
        if session is None or session == self.session:
            return PostgresRows(using, self.schema, self.tenant, self.session, self._encryption)
        return PostgresRows(using, self.schema, self.tenant, session, self.store.encryption(session))

    # Writing

    def _append(
        self, after: int, count: int, chained: Callable[[str], tuple[Row, ...]], blobs: Mapping[str, bytes]
    ) -> tuple[Row, ...]:
        self._refuse_readonly()
        batch = _Batch(after, count, chained, blobs, uuid.uuid4())
        return self._call(lambda using, again: self._append_batch(using, batch, again=again), writing=True)

    def _refuse_readonly(self) -> None:
        if self.readonly:
            raise LogUnwritable(f"{self.path}: this log was opened with readonly=True. Nothing was written.")

    def _append_batch(self, using: Connection, batch: _Batch, *, again: bool) -> tuple[Row, ...]:
        """Write the batch; return its rows, or those of the call before where its answer was lost (``again``)."""
        # What this log knows of the tip saves a look. It cannot mislead: the statement compares it with what is there.
        last = self._tip
        tip = last if last and last.head == batch.after and batch.count else self._rows(using).tip()
        for _ in range(2):
            rows = batch.chained(tip.digest)
            if tip.head == batch.after and self._insert(using, batch, rows, tip.digest):
                self._tip = Tip(rows[-1].position + 1, rows[-1].digest) if rows else tip
                return rows
            tip = self._rows(using).tip()
            hash_chain.refuse_erased(last, tip, batch.after)
            self._tip = None
            if again and (own := self._written_by(using, batch)):
                return own
            if tip.head != batch.after:
                break
        raise Conflict(batch.after, tip.head)

    def _insert(self, using: Connection, batch: _Batch, rows: Sequence[Row], previous: str) -> bool:
        """Insert all rows behind ``previous``, or none; True where they were inserted."""
        parts = list(_parts(rows, batch.blobs))
        try:
            if len(parts) < 2:
                return all(self._insert_part(using, batch, part, previous) for part in parts)
            with using.transaction():
                for part in parts:
                    if not self._insert_part(using, batch, part, previous):
                        raise psycopg.Rollback
                    previous = part[-1].digest
                return True
        except psycopg.errors.UniqueViolation:
            pass  # another writer holds the position
        return False

    def _insert_part(self, using: Connection, batch: _Batch, rows: Sequence[Row], previous: str) -> bool:
        encryption = self._encryption
        blobs = {
            encryption.encrypt_digest(name): encryption.encrypt_blob(name, batch.blobs[name])
            for row in rows
            for name in blob_names(row.body)
        }
        rows = [encryption.encrypt_row(row) for row in rows]
        first = rows[0]
        values: dict[str, Any] = {
            **self._key,
            "after": first.position,
            "previous": encryption.encrypt_digest(previous),
            "batch": batch.name,
        }
        if len(rows) == 1 and first.position and not blobs:
            statement = for_schema(ONE, self.schema)
            values |= {
                "at": first.at, "kind": first.kind, "number": first.version, "body": first.body.decode(),
                "digest": first.digest,
            }  # fmt: skip
        else:
            statement = append_statement(self.schema, first=first.position == 0, blobs=bool(blobs))
            values |= {
                "times": [row.at for row in rows],
                "kinds": [row.kind for row in rows], "versions": [row.version for row in rows],
                "bodies": [row.body.decode() for row in rows], "digests": [row.digest for row in rows],
                "names": list(blobs), "data": list(blobs.values()),
                "tenant_name": self.tenant, "session_name": self.session,
            }  # fmt: skip
        with using.cursor() as cursor:
            return cursor.execute(statement, values).rowcount == len(rows)

    def _written_by(self, using: Connection, batch: _Batch) -> tuple[Row, ...]:
        """The rows that this batch has written already: all or none."""
        rows = self._rows(using).fetch(BATCH, after=batch.after, batch=batch.name)
        return tuple(self._encryption.decrypt_row(Row(*row)) for row in rows)

    # Reading

    def _page(self, start: int, stop: int) -> list[Row]:
        rows = self._call(lambda using, _: self._rows(using).read_stored(start, stop))
        return [self._encryption.decrypt_row(row) for row in rows]

    def _find_blob(self, name: str) -> bytes | None:
        return self._call(lambda using, _: self._rows(using).blob(name))


def _parts(rows: Sequence[Row], blobs: Mapping[str, bytes]) -> Iterator[list[Row]]:
    """Split rows into parts of moderate size for one statement each."""
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


class PostgresStore(DatabaseStore[PostgresLog], Store):
    """The Store in a PostgreSQL schema; see ``PostgresLog`` for the options. What it opens shares a connection, or a pool.

    ``scrub`` does nothing: the server's VACUUM and its backups deal with deleted rows.
    """

    is_durable = True

    def __init__(self, where: str | Pool, *, schema: str = "pagein", **options: Unpack[StoreOptions]) -> None:
        super().__init__(**options)
        self.where, self.schema = where, checked_schema(schema)

    @functools.cached_property
    def source(self) -> Source:
        """The connection, or the pool, of all that is opened here. Raises ConfigurationError for an invalid address."""
        return source_of(self.where, timeout=self.timeout, synchronous=self.synchronous, readonly=self.readonly)

    def __repr__(self) -> str:
        return f"PostgresStore(tenant={self.tenant!r}, schema={self.schema!r})"

    def _open(self, session: str) -> PostgresLog:
        return PostgresLog(self, session=session)

    def sessions(self) -> tuple[str, ...]:
        return self._any_log()._sessions()  # noqa: SLF001 - its own log

    def head(self, session: str) -> int:
        return self._any_log()._head_of(session)  # noqa: SLF001

    def search_index(
        self, session: str = "default", *, embedder: Embedder | None = None, own_tools: Collection[str] = ()
    ) -> SearchIndex:
        """The index in tables beside the log's; in memory where the store is readonly or encrypted."""
        if self.readonly or self.encrypted:
            return super().search_index(session, embedder=embedder, own_tools=own_tools)
        from pagein.backends.postgres.search import PostgresSearchIndex  # noqa: PLC0415 - loads where a search is made

        return PostgresSearchIndex(
            self.source, session=session, tenant=self.tenant, embedder=embedder, own_tools=own_tools,
            timeout=self.timeout, schema=self.schema,
        )  # fmt: skip

    def request_table(self, run: str) -> PostgresRequests:
        return PostgresRequests(self._call_any, self.schema, self.tenant, run, self.encryption(run))

    def _call_any(self, work: Callable[[Connection, bool], T], *, writing: bool = False) -> T:
        return self._any_log()._call(work, writing=writing)  # noqa: SLF001 - its own log
