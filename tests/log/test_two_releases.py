"""Two releases of pagein on one store: what the later one wrote is named by the earlier one, and nothing is changed."""

import contextlib
import sqlite3

import psycopg
import pytest

from pagein import AgentMemory
from pagein.backends.postgres.log import PostgresLog
from pagein.backends.sqlite.log import SQLiteLog
from pagein.errors import LogTooNew
from pagein.events.entries import Pin
from pagein.log.codec import Record
from pagein.log.hash_chain import chain_rows, origin
from pagein.testing.logs import NOON

LATER = {
    "a kind": Record("dream", 1, b'{"of":"sheep"}', (), Pin("")),
    "a version": Record("pin", 99, b'{"text":"a","colour":"red"}', (), Pin("")),
}
SQLITE = {"later": "PRAGMA user_version = 99", "version": "PRAGMA user_version"}
POSTGRES = {"later": "UPDATE {0}.meta SET version = 99 RETURNING version", "version": "SELECT version FROM {0}.meta"}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    """Opens logs of one store, and asks its database past them."""
    with contextlib.ExitStack() as stack:
        if request.param == "sqlite":
            path = tmp_path / "run.db"

            def ask(what):
                with contextlib.closing(sqlite3.connect(path)) as database:
                    return database.execute(SQLITE[what]).fetchone()

            open_log = SQLiteLog
            where = (path, {})
        else:
            postgres, schema = (request.getfixturevalue(each) for each in ("postgres", "schema"))

            def ask(what):
                with psycopg.connect(postgres.url, autocommit=True) as using:
                    return using.execute(POSTGRES[what].format(schema)).fetchone()

            open_log = PostgresLog
            where = (postgres.url, {"schema": schema})

        yield lambda: stack.enter_context(contextlib.closing(open_log(where[0], **where[1]))), ask


@pytest.mark.parametrize("what", LATER)
def test_an_entry_of_a_later_release_is_named_and_the_others_are_read(store, what):
    open_log, _ = store
    log = open_log()
    rows = chain_rows([LATER[what]], after=0, at=NOON, previous=origin("", "default"))
    log.import_rows(rows, {})
    log.append([Pin("of this release")], after=1, at=NOON)
    with pytest.raises(LogTooNew, match="upgrade pagein"):
        list(log.read())
    assert [entry.body for entry in log.read(1)] == [Pin("of this release")]
    (problem,) = log.verify().problems
    assert (problem.position, "later release" in problem.what) == (0, True)
    with pytest.raises(LogTooNew, match="upgrade pagein"):
        AgentMemory(log, budget=1_000)
    assert log.head() == 2


def test_who_has_a_store_open_that_a_later_release_takes_over_goes_on_and_is_told_when_it_opens_again(store):
    open_log, ask = store
    log = open_log()
    log.append([Pin("a")], after=0, at=NOON)
    ask("later")
    log.append([Pin("b")], after=1, at=NOON)
    assert [entry.body for entry in log.read()] == [Pin("a"), Pin("b")]
    with pytest.raises(LogTooNew, match="version 99"):
        open_log()
    assert ask("version") == (99,)
    assert log.verify().ok
