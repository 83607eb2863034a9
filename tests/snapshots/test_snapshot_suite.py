"""Every log of ours that keeps snapshots keeps them alike; and a log that is encrypted shows nothing of them."""

import contextlib
import sqlite3

import psycopg
import pytest

from pagein import AgentMemory, PlanningStep
from pagein.backends.postgres.log import PostgresLog
from pagein.backends.postgres.migrations import MIGRATIONS
from pagein.backends.sqlite.log import SQLiteLog
from pagein.errors import LogUnwritable
from pagein.events.entries import Pin
from pagein.log.snapshots import Snapshot
from pagein.memory._state import SNAPSHOT_MIN_NEW_ENTRIES
from pagein.testing.logs import NOON
from pagein.testing.machine_base import memory_state
from pagein.testing.snapshots import SnapshotTests

KEY = bytes(range(32))


class InFile(SnapshotTests):
    key = None

    @pytest.fixture
    def open_log(self, tmp_path):
        return lambda session="default", tenant="": SQLiteLog(
            tmp_path / "log.db", session=session, tenant=tenant, key=self.key
        )

    def damage(self, log):
        with contextlib.closing(sqlite3.connect(log.path)) as database, database:
            database.execute("UPDATE snapshots SET body = CAST(body || x'00' AS BLOB)")


class TestPostgresKeepsSnapshots(SnapshotTests):
    @pytest.fixture
    def open_log(self, postgres, schema):
        return lambda session="default", tenant="": PostgresLog(
            postgres.url, session=session, tenant=tenant, schema=schema
        )

    def damage(self, log):
        ask(log, "UPDATE {0}.snapshots SET body = body || '\\x00'::bytea")


class TestSQLiteKeepsSnapshots(InFile):
    pass


class TestEncryptedSQLiteKeepsSnapshots(InFile):
    key = KEY


def ask(log, statement):
    with psycopg.connect(log.where, autocommit=True) as using:
        cursor = using.execute(statement.format(log.schema))
        return cursor.fetchall() if cursor.description else None


@pytest.fixture
def on_server(postgres, schema):
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(
            contextlib.closing(PostgresLog(postgres.url, schema=schema, **options))
        )


def made(log):
    entries = log.append([Pin("a")], after=0, at=NOON)
    return Snapshot(1, entries[-1].digest, "key", b"xanthippe " * 9)


def test_on_a_server_an_encrypted_snapshot_shows_nothing(on_server):
    log = on_server(key=KEY)
    snapshot = made(log)
    log.keep_snapshot(snapshot, 0)
    [(body, digest)] = ask(log, "SELECT body, digest FROM {0}.snapshots")
    assert b"xanthippe" not in bytes(body)
    assert digest != snapshot.digest
    assert on_server().snapshot_slot().snapshot is None, "opened without the key"


def test_on_a_server_nothing_is_kept_with_readonly(on_server):
    log = on_server()
    snapshot = made(log)
    log.keep_snapshot(snapshot, 0)
    readonly = on_server(readonly=True)
    assert (readonly.snapshot_slot().snapshot, readonly.snapshot_slot().is_open) == (snapshot, False)
    for call in (lambda: readonly.keep_snapshot(snapshot, 0), readonly.drop_snapshots):
        with pytest.raises(LogUnwritable, match="readonly=True"):
            call()


def test_a_schema_of_the_first_version_is_read_as_it_stands_and_brought_over_when_it_is_written(on_server):
    log = on_server()
    snapshot = made(log)
    for table in ("snapshots", "runs"):
        ask(log, "DROP TABLE {0}." + table)
    ask(log, "UPDATE {0}.meta SET version = 1")
    old = on_server(readonly=True)
    assert [entry.body for entry in old.read()] == [Pin("a")]
    assert (old.snapshot_slot().snapshot, old.snapshot_slot().is_open) == (None, False)
    assert ask(log, "SELECT version FROM {0}.meta") == [(1,)]
    new = on_server()
    assert ask(log, "SELECT version FROM {0}.meta") == [(len(MIGRATIONS),)]
    new.keep_snapshot(snapshot, 0)
    assert new.snapshot_slot().snapshot == snapshot


def test_who_keeps_one_and_who_erases_take_turns(on_server):
    log = on_server(timeout=0.2)
    snapshot = made(log)
    with psycopg.connect(log.where) as eraser:
        eraser.execute(f"LOCK TABLE {log.schema}.entries IN SHARE ROW EXCLUSIVE MODE")
        with pytest.raises(Exception, match="lock timeout"):
            log.keep_snapshot(snapshot, 0)
    log.keep_snapshot(snapshot, 0)
    with psycopg.connect(log.where) as writer:
        writer.execute(f"LOCK TABLE {log.schema}.entries IN ROW EXCLUSIVE MODE")
        log.keep_snapshot(snapshot, 0)  # another who appends is in nobody's way
    assert log.snapshot_slot().snapshot == snapshot


def test_a_memory_on_a_server_is_opened_from_one_and_erasing_drops_it(postgres, monkeypatch):
    options = {"tenant": "snapshots", "session": "run", "budget": 1_500, "page_in": 0}
    with AgentMemory.open(postgres.url, synchronous="OFF", **options) as memory:
        for count in (2 * SNAPSHOT_MIN_NEW_ENTRIES, 40):
            plans = (PlanningStep(f"{number}. Look at src/shop_{number}.py:{number}.") for number in range(count))
            memory.record(*plans)
            memory.view()
    reads = []
    whole = PostgresLog.read
    monkeypatch.setattr(
        PostgresLog, "read", lambda self, *at: (reads.append(each) or each for each in whole(self, *at))
    )
    with AgentMemory.open(postgres.url, **options) as memory:
        assert 0 < len(reads) < SNAPSHOT_MIN_NEW_ENTRIES
        expected = memory_state(memory)
    with contextlib.closing(PostgresLog(postgres.url, tenant="snapshots", session="run")) as log:
        assert log.snapshot_slot().snapshot is not None
        log.drop_snapshots()
        with AgentMemory.open(postgres.url, **options) as memory:
            assert memory_state(memory) == expected
        assert log.snapshot_slot().snapshot is not None
        with AgentMemory.open(postgres.url, **options) as memory:
            memory.erase("s1")
        assert log.snapshot_slot().snapshot is None
