"""Every log of ours can forget; and each fault of one that cannot is named by a test of the suite."""

import contextlib
import dataclasses
import sqlite3

import pytest
from psycopg import sql

from pagein.backends.memory import InMemoryStore
from pagein.backends.postgres.log import PostgresLog
from pagein.backends.sqlite.log import SQLiteLog
from pagein.testing.erasure import ErasingTests

KEY = bytes(range(32))


class TestInMemoryForgets(ErasingTests):
    @pytest.fixture
    def open_log(self):
        stores = {}

        def opened(session="default", tenant=""):
            return stores.setdefault(tenant, InMemoryStore(tenant=tenant)).log(session)

        return opened

    def stored_content(self, log):
        return b"".join(row.body for row in log._rows) + b"".join(log._blobs.values())

    def replace_body(self, log, position, body):
        log._rows[position] = dataclasses.replace(log._rows[position], body=body)


class OnDisk(ErasingTests):
    def stored_content(self, log):
        from pathlib import Path

        path = Path(log.path)
        return b"".join(each.read_bytes() for each in path.parent.glob(path.name + "*"))

    def replace_body(self, log, position, body):
        with contextlib.closing(sqlite3.connect(log.path)) as database, database:
            database.execute(
                "UPDATE entries SET body = ? WHERE session = ? AND position = ?", (body.decode(), log.session, position)
            )


class TestSQLiteForgets(OnDisk):
    @pytest.fixture
    def open_log(self, tmp_path):
        return lambda session="default", tenant="": SQLiteLog(tmp_path / "log.db", session=session, tenant=tenant)


class TestEncryptedSQLiteForgets(ErasingTests):
    raw = False

    @pytest.fixture
    def open_log(self, tmp_path):
        return lambda session="default", tenant="": SQLiteLog(
            tmp_path / "log.db", session=session, tenant=tenant, key=KEY
        )


class TestPostgresForgets(ErasingTests):
    @pytest.fixture
    def open_log(self, postgres, schema):
        return lambda session="default", tenant="": PostgresLog(
            postgres.url, session=session, tenant=tenant, schema=schema
        )

    def stored_content(self, log):
        rows = self._ask(log, "SELECT body FROM {0}.entries", fetch=True)
        blobs = self._ask(log, "SELECT data FROM {0}.blobs", fetch=True)
        return b"".join(body.encode() for (body,) in rows) + b"".join(bytes(data) for (data,) in blobs)

    def replace_body(self, log, position, body):
        self._ask(
            log,
            "UPDATE {0}.entries SET body = %s WHERE session = %s AND position = %s",
            (body.decode(), log.session, position),
        )

    def _ask(self, log, statement, values=(), *, fetch=False):
        import psycopg

        with psycopg.connect(log.where, autocommit=True) as connection:
            found = connection.execute(sql.SQL(statement).format(sql.Identifier(log.schema)), values)
            return found.fetchall() if fetch else None


class TestEncryptedPostgresForgets(ErasingTests):
    raw = False

    @pytest.fixture
    def open_log(self, postgres, schema):
        return lambda session="default", tenant="": PostgresLog(
            postgres.url, session=session, tenant=tenant, schema=schema, key=KEY
        )
