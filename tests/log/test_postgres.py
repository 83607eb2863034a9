"""The PostgreSQL log: the contract on a real server, a server that goes away, schemas of others, secrets."""

import contextlib
import os
import threading
import time
import traceback
import uuid
from urllib.parse import quote

import psycopg
import psycopg_pool
import pytest
from hypothesis import settings

from pagein import AgentMemory
from pagein.backends.postgres import log as postgres_module
from pagein.backends.postgres.log import PostgresLog
from pagein.backends.postgres.migrations import KEY_BYTES, MIGRATIONS, key_of
from pagein.backends.sqlite.log import SQLiteLog
from pagein.errors import (
    ConfigurationError,
    Conflict,
    LogBusy,
    LogClosed,
    LogErased,
    LogError,
    LogTooNew,
    LogUncertain,
    LogUnreachable,
    LogUnreadable,
    LogUnwritable,
)
from pagein.events.entries import Pin
from pagein.events.steps import Image, TaskStep
from pagein.testing.logs import NOON, LogTests, OpenLog
from pagein.testing.strategies import ONE_OF_EACH, PICTURE


class OnServer(LogTests):
    generated = settings(max_examples=25, deadline=None, database=None)

    def stored_bytes(self, log):
        (size,) = raw(log, "SELECT (SELECT sum(octet_length(body)) FROM {0}.entries)"
                           " + (SELECT sum(octet_length(data)) FROM {0}.blobs)")  # fmt: skip
        return size

    def tamper(self, log, position):
        change = """UPDATE {0}.entries SET body = replace(body, 'content":"', 'content":" ')
            WHERE position = %s AND session = %s RETURNING position"""
        assert raw(log, change, position, log.session) == (position,)


class TestPostgresLog(OnServer):
    @pytest.fixture
    def open_log(self, postgres, schema) -> OpenLog:
        return lambda session="default", tenant="": PostgresLog(
            postgres.url, session=session, tenant=tenant, schema=schema
        )


class TestPostgresLogOnAPool(OnServer):
    generated = settings(max_examples=5, deadline=None, database=None)

    @pytest.fixture
    def open_log(self, pool, schema) -> OpenLog:
        return lambda session="default", tenant="": PostgresLog(pool, session=session, tenant=tenant, schema=schema)


def raw(log, statement, *values):
    with psycopg.connect(**log._address.parameters, autocommit=True) as using:
        cursor = using.execute(statement.format(log.schema), values)
        return cursor.fetchone() if cursor.description else None


@pytest.fixture
def pool(postgres):
    with psycopg_pool.ConnectionPool(postgres.url, min_size=1, max_size=3, open=True) as opened:
        yield opened


@pytest.fixture
def opened(postgres, schema):
    """Opens logs in this test's schema, and closes them."""
    with contextlib.ExitStack() as stack:

        def open_log(where=postgres.url, **options):
            return stack.enter_context(contextlib.closing(PostgresLog(where, **{"schema": schema, **options})))

        yield open_log


def bodies(log):
    return [entry.body for entry in log.read()]


# A connection that is lost


def cut(log):
    """The server ends this log's connection."""
    pid = log._source._connection.info.backend_pid
    assert raw(log, "SELECT pg_terminate_backend(%s, 2000)", pid) == (True,)


def test_a_lost_connection_is_opened_again(opened):
    log = opened()
    for number in range(4):
        cut(log)
        log.append([Pin(str(number))], after=number, at=NOON)
        cut(log)
        assert log.head() == number + 1
    cut(log)
    assert bodies(log) == [Pin(str(number)) for number in range(4)]
    assert log.verify().ok


@pytest.mark.parametrize("is_pooled", [False, True], ids=["one connection", "a pool"])
def test_a_statement_that_was_cut_off_is_in_nobodys_way(opened, pool, is_pooled):
    log = opened(pool) if is_pooled else opened()
    log.append([Pin("0")], after=0, at=NOON)

    def cut_off(using, _):
        using.pgconn.send_query(b"SELECT pg_sleep(1)")  # Ctrl-C comes while the driver waits for the answer
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        log._server.call(cut_off)
    log.append([Pin("1")], after=1, at=NOON)
    assert bodies(log) == [Pin("0"), Pin("1")]


class Flaky:
    """Loses the connection at the n-th insert: before the server has it, or after it has answered."""

    def __init__(self, log, *, arrives):
        self.log, self.arrives, self.cuts = log, arrives, 0
        self.whole, log._insert_part = log._insert_part, self

    def __call__(self, using, *arguments):
        if self.cuts:
            return self.whole(using, *arguments)
        self.cuts += 1
        if self.arrives:
            assert self.whole(using, *arguments)
        using.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("head", [0, 2])
def test_an_append_whose_answer_is_lost_is_there_once(opened, arrives, head):
    log = opened()
    log.append([Pin(str(number)) for number in range(head)], after=0, at=NOON)
    Flaky(log, arrives=arrives)
    batch = [TaskStep((Image(PICTURE),)), Pin("same"), Pin("same")]
    entries = log.append(batch, after=head, at=NOON)
    assert entries == tuple(log.read(head))
    assert bodies(log)[head:] == batch
    log.append(batch, after=head + 3, at=NOON)
    assert log.head() == head + 6
    assert log.verify().ok


def test_another_who_wrote_the_same_meanwhile_is_not_taken_for_oneself(opened):
    log, rival = opened(), opened()
    log.append([Pin("a")], after=0, at=NOON)

    class Overtaken(Flaky):
        def __call__(self, using, *arguments):
            if not self.cuts:
                rival.append([Pin("same")], after=1, at=NOON)
            return super().__call__(using, *arguments)

    Overtaken(log, arrives=False)
    with pytest.raises(Conflict) as refused:
        log.append([Pin("same")], after=1, at=NOON)
    assert (refused.value.expected, refused.value.head) == (1, 2)
    assert bodies(log) == [Pin("a"), Pin("same")]


@pytest.mark.parametrize("arrives", [False, True])
def test_a_server_that_stays_away_leaves_the_outcome_open_and_the_memory_finds_out(opened, arrives):
    log = opened(timeout=0.2)
    memory = AgentMemory(log, budget=4_000)
    memory.record(TaskStep("first"))
    Flaky(log, arrives=arrives)
    lease, gone = log._source._connect, psycopg.OperationalError("connection refused")

    def refuse():
        raise gone

    log._source._connect = refuse
    with pytest.raises(LogUncertain, match="Either all of it was written or none"):
        memory.record(TaskStep("second"))
    with pytest.raises(LogUnreachable) as refused:
        memory.record(TaskStep("third"))
    assert not isinstance(refused.value, LogUncertain), "nothing was sent"
    log._source._connect = lease
    if arrives:
        with pytest.raises(Conflict):
            memory.record(TaskStep("third"))
    memory.record(TaskStep("third"))
    told = [step.content for step in memory.steps]
    assert told == (["first", "second", "third"] if arrives else ["first", "third"])
    assert memory.verify().ok


@pytest.mark.slow
def test_a_server_that_is_killed_and_comes_back_is_waited_for(postgres, opened):
    if not postgres.mine:
        pytest.skip("PAGEIN_POSTGRES names a server that is not ours to kill")
    log = opened(timeout=120.0)
    log.append([Pin("before")], after=0, at=NOON)
    postgres.kill()
    back = threading.Timer(0.3, postgres.restart)
    back.start()
    log.append([Pin("after")], after=1, at=NOON)
    back.join()
    assert bodies(log) == [Pin("before"), Pin("after")]
    assert log.verify().ok


def test_a_connection_that_is_lost_while_a_log_is_opened_is_opened_again(postgres, schema, monkeypatch):
    lost = []

    def prepare(using, *arguments, **options):
        if not lost:
            lost.append(using.close())
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return whole(using, *arguments, **options)

    whole = postgres_module.prepare
    monkeypatch.setattr(postgres_module, "prepare", prepare)
    with contextlib.closing(PostgresLog(postgres.url, schema=schema)) as log:
        assert log.head() == 0
    assert lost


# Who may write


def test_a_stale_tip_misleads_nobody(opened):
    log = opened()
    log.append([Pin("a"), Pin("b")], after=0, at=NOON)
    raw(log, "UPDATE {0}.entries SET digest = 's2:other' WHERE position = 1")
    with pytest.raises(LogErased, match="Nothing was written"):
        log.append([Pin("c")], after=2, at=NOON)
    assert [each.position for each in log.verify().problems] == [1]
    raw(log, "DELETE FROM {0}.entries WHERE position > 0")
    with pytest.raises(LogErased):
        log.append([Pin("d")], after=2, at=NOON)
    assert bodies(log) == [Pin("a")]


def test_a_history_that_was_replaced_is_not_gone_on_with(opened):
    log, rival = opened(), opened()
    log.append([Pin("a"), Pin("b")], after=0, at=NOON)
    raw(log, "DELETE FROM {0}.entries WHERE position = 1")
    rival.append([Pin("another")], after=1, at=NOON)
    with pytest.raises(LogErased):
        log.append([Pin("c")], after=2, at=NOON)
    assert bodies(log) == [Pin("a"), Pin("another")]
    assert log.verify().ok


def test_a_batch_in_several_statements_is_whole_or_not_there(opened, monkeypatch):
    monkeypatch.setattr("pagein.backends.postgres.log._BYTES_AT_ONCE", 1_000)
    log, rival = opened(), opened()
    large = [TaskStep("x" * 900), *ONE_OF_EACH, TaskStep((Image(PICTURE),))]
    assert tuple(log.append(large, after=0, at=NOON)) == tuple(log.read())
    assert log.verify().ok
    rival.append([Pin("winner")], after=rival.head(), at=NOON)
    with pytest.raises(Conflict):
        log.append(large, after=len(large), at=NOON)
    assert log.head() == len(large) + 1


def test_a_writer_in_mid_append_is_waited_for_no_longer_than_the_timeout(opened):
    log = opened(timeout=0.1)
    log.append([Pin("a")], after=0, at=NOON)
    with psycopg.connect(**log._address.parameters) as rival:
        rival.execute(
            f"INSERT INTO {log.schema}.entries SELECT tenant, session, 1, at, kind, version, body, digest, batch"
            f" FROM {log.schema}.entries"
        )
        with pytest.raises(LogBusy, match="Nothing was written"):
            log.append([Pin("b")], after=1, at=NOON)
        rival.rollback()
    log.append([Pin("b")], after=1, at=NOON)
    assert log.verify().ok


def test_a_read_only_log_reads_and_writes_nothing(opened):
    with pytest.raises(LogUnreadable, match="no store of pagein"):
        opened(readonly=True)
    log = opened()
    log.append([Pin("a")], after=0, at=NOON)
    reader = opened(readonly=True)
    assert bodies(reader) == [Pin("a")]
    assert reader.store.sessions() == ("default",)
    with pytest.raises(LogUnwritable):
        reader.append([Pin("b")], after=1, at=NOON)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), reader._source.lease() as using:
        using.execute(f"DELETE FROM {log.schema}.entries")


def test_a_user_without_the_right_is_told(opened, schema, postgres):
    opened().append([Pin("a")], after=0, at=NOON)
    role = f"reader_{schema}"
    with psycopg.connect(postgres.url, autocommit=True) as using:
        using.execute(f"CREATE ROLE {role} LOGIN")
        using.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        using.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
    try:
        log = opened(postgres.url.replace("postgres@", f"{role}@"))
        assert bodies(log) == [Pin("a")]
        with pytest.raises(LogUnwritable, match="permission denied"):
            log.append([Pin("b")], after=1, at=NOON)
        with pytest.raises(LogUnwritable, match="permission denied"):
            opened(postgres.url.replace("postgres@", f"{role}@"), schema=f"{schema}x")
        log.close()
    finally:
        with psycopg.connect(postgres.url, autocommit=True) as using:
            using.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_a_forked_process_opens_its_own(opened, monkeypatch):
    log = opened()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(LogClosed, match="forked"):
        log.head()
    log.close()
    monkeypatch.undo()
    assert log.head() == 0


def test_a_pool_is_left_as_it_was(pool, schema):
    first, second = (PostgresLog(pool, session=name, schema=schema) for name in "ab")
    first.append([Pin("a")], after=0, at=NOON)
    first.close()
    with pytest.raises(LogClosed):
        first.head()
    second.append([Pin("b")], after=0, at=NOON)
    with pool.connection() as using:
        assert not using.autocommit
    pool.close()
    with pytest.raises(LogClosed):
        second.head()


def test_a_pool_without_a_free_connection_is_busy(postgres, schema):
    with psycopg_pool.ConnectionPool(postgres.url, min_size=1, max_size=1, open=True) as pool:
        pool.wait(60)
        log = PostgresLog(pool, schema=schema, timeout=0.05)
        with pool.connection(), pytest.raises(LogBusy, match="more connections"):
            log.append([Pin("a")], after=0, at=NOON)
        log.append([Pin("a")], after=0, at=NOON)


# Schemas


def test_many_who_open_a_new_schema_at_once_make_it_once(opened):
    failures, logs = [], []

    def work():
        try:
            logs.append(opened())
        except Exception as error:  # noqa: BLE001 - told to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    assert {log.head() for log in logs} == {0}
    assert raw(logs[0], "SELECT version FROM {0}.meta") == (len(MIGRATIONS),)


def test_a_newer_schema_is_refused_and_stays_as_it_is(opened):
    log = opened()
    log.append([Pin("a")], after=0, at=NOON)
    raw(log, "UPDATE {0}.meta SET version = version + 1")
    for readonly in (False, True):
        with pytest.raises(LogTooNew, match="upgrade pagein"):
            opened(readonly=readonly)
    assert raw(log, "SELECT version FROM {0}.meta") == (len(MIGRATIONS) + 1,)


@pytest.mark.parametrize(
    "made", ["CREATE TABLE {0}.orders (id int)", "CREATE TABLE {0}.meta (name text)", "CREATE SEQUENCE {0}.a"]
)
def test_a_schema_of_others_is_refused_and_stays_as_it_is(opened, schema, postgres, made):
    with psycopg.connect(postgres.url, autocommit=True) as using:
        using.execute(f"CREATE SCHEMA {schema}")
        using.execute(made.format(schema))
        with pytest.raises(LogUnreadable, match="not of pagein"):
            opened()
        found = using.execute("SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(%s)", (schema,))
        assert found.fetchone() == (1,)


def test_an_empty_schema_that_somebody_made_for_it_is_used(opened, schema, postgres):
    with psycopg.connect(postgres.url, autocommit=True) as using:
        using.execute(f"CREATE SCHEMA {schema}")
    assert opened().head() == 0


@pytest.mark.parametrize("name", ["", "pg_own", "x" * 64, "a\0b", None])
def test_a_schema_that_cannot_be_one_is_refused(name):
    with pytest.raises(ConfigurationError, match="schema"):
        PostgresLog("postgresql://127.0.0.1:1/db", schema=name)


def test_tables_that_are_gone_are_named(opened):
    log = opened()
    log.append([Pin("a")], after=0, at=NOON)
    raw(log, "DROP TABLE {0}.entries")
    for use in (log.head, log.verify, lambda: log.append([Pin("b")], after=1, at=NOON)):
        with pytest.raises(LogUnreadable, match="does not exist"):
            use()


# Names


def test_long_names_are_keys_of_their_own(opened):
    near = ["n" * KEY_BYTES, "n" * (KEY_BYTES + 1), "n" * (KEY_BYTES + 2), "é" * 400, "é" * 401]
    near.append(key_of(near[1]))  # a name that is spelled like the key of another
    keys = [key_of(each) for each in near]
    assert len(set(keys)) == len(near)
    assert keys[0] == near[0]
    for number, name in enumerate(near):
        opened(session=name, tenant=name).append([Pin(str(number))], after=0, at=NOON)
    for number, name in enumerate(near):
        log = opened(session=name, tenant=name)
        assert bodies(log) == [Pin(str(number))]
        assert log.store.sessions() == (name,)
        assert log.verify().ok


def test_digests_are_those_of_a_file(opened, tmp_path):
    with contextlib.closing(SQLiteLog(tmp_path / "run.db", session="s", tenant="t")) as file:
        log = opened(session="s", tenant="t")
        for store in (file, log):
            store.append(ONE_OF_EACH, after=0, at=NOON)
        assert list(log.read()) == list(file.read())


def test_what_is_missing_is_named(opened):
    log = opened()
    log.append([TaskStep((Image(PICTURE),)), Pin("a"), Pin("b")], after=0, at=NOON)
    raw(log, "DELETE FROM {0}.entries WHERE position = 1")
    raw(log, "DELETE FROM {0}.blobs")
    assert {each.position for each in log.verify().problems} == {0, 1}
    with pytest.raises(LogUnreadable, match="blob"):
        list(log.read(0, 1))
    with pytest.raises(LogUnreadable, match="entry 1 is missing"):
        list(log.read(1))


# Addresses and secrets

SECRET = "open sesame%/@"


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("postgresql://ann:{0}@127.0.0.1:1/db", LogUnreachable),
        ("postgresql://127.0.0.1:1/db?user=ann&password={0}", LogUnreachable),
        ("postgresql://ann:{0}@no-such-host.invalid/db", LogUnreachable),
        ("postgresql://ann:{0}%zz@127.0.0.1/db", ConfigurationError),
        ("postgresql://ann:{0}@127.0.0.1/db?nonsense=1", ConfigurationError),
        ("postgresql://ann:{0}@127.0.0.1:port/db", LogUnreachable),
        ("postgresql://ann:{0}@[::1/db", ConfigurationError),
    ],
)
def test_a_wrong_address_is_told_without_its_password(address, error):
    with pytest.raises(error) as refused:
        PostgresLog(address.format(quote(SECRET, safe="")), timeout=0.2)
    assert "sesame" not in "".join(traceback.format_exception(refused.value))
    assert "sesame" not in repr(refused.value)


def test_a_wrong_database_is_told(postgres):
    with pytest.raises(LogUnreachable, match="nobody-made-this"):
        PostgresLog(postgres.url.replace("/postgres?", "/nobody-made-this?"))


def test_no_repr_holds_the_password(opened, postgres):
    if not postgres.mine:
        pytest.skip("PAGEIN_POSTGRES names a server that may ask for another password")
    log = opened(postgres.url + "&password=sesame")
    log.append([Pin("a")], after=0, at=NOON)
    raw(log, "ALTER TABLE {0}.entries ADD CHECK (kind <> 'pin') NOT VALID")
    with pytest.raises(LogError) as refused:
        log.append([Pin("sesame")], after=1, at=NOON)
    shown = (repr(log), str(log), log.path, repr(log._address), repr(log._source), str(refused.value))
    assert [each for each in shown if "sesame" in each] == []


@pytest.mark.parametrize("option", [{"synchronous": "never"}, {"timeout": -1}, {"timeout": True}, {"session": "\0"}])
def test_an_option_that_is_none_is_refused(option):
    with pytest.raises(ConfigurationError):
        PostgresLog("postgresql://127.0.0.1:1/db", **option)


# Connections


def test_a_memory_uses_one_connection_whatever_it_opens(postgres):
    name = f"one-{uuid.uuid4().hex[:8]}"

    def count():
        with psycopg.connect(postgres.url, autocommit=True) as using:
            return using.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", [name]).fetchone()

    url = f"{postgres.url}&application_name={name}"
    with AgentMemory.open(url, tenant=name, budget=4_000, user="ann") as memory:
        memory.record(TaskStep("I prefer trains to planes."))
        memory.to_messages()
        assert memory.recall("trains")
        assert memory.facts.list()
        memory.fork(name="other")
        memory.switch("other")
        memory.record(TaskStep("Plan the trip."))
        assert count() == (1,)
    assert count() == (0,)


def test_a_log_that_is_closed_leaves_the_others_of_its_store_open(opened):
    first = opened()
    second = first.store.log("second")
    first.close()
    with pytest.raises(LogClosed):
        first.head()
    second.append([Pin("a")], after=0, at=NOON)
    second.close()
    second.close()
    again = first.store.log("second")
    assert bodies(again) == [Pin("a")]
    again.close()


@pytest.fixture
def role(postgres):
    """A user who may have one connection at a time."""
    name = f"limited_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres.url, autocommit=True) as using:
        using.execute(f"CREATE ROLE {name} LOGIN SUPERUSER CONNECTION LIMIT 1".encode())
        using.execute(f"ALTER ROLE {name} NOSUPERUSER".encode())
        using.execute(f"GRANT CREATE ON DATABASE postgres TO {name}".encode())
        yield postgres.url.replace("postgres@", f"{name}@")
        using.execute(f"DROP OWNED BY {name} CASCADE".encode())
        using.execute(f"DROP ROLE {name}".encode())


def test_a_server_without_a_free_connection_is_busy_and_is_waited_for(opened, role):
    first = opened(role)
    with pytest.raises(LogBusy, match="max_connections"):
        opened(role, timeout=0.1)
    threading.Timer(0.3, first.close).start()
    assert opened(role, timeout=20).head() == 0


def test_a_session_that_the_server_ended_as_idle_in_a_transaction_is_opened_again(postgres, opened):
    log = opened(f"{postgres.url}&options=-c%20idle_in_transaction_session_timeout%3D50")
    log.append([Pin("a")], after=0, at=NOON)
    calls = []

    def read_slowly(using, is_repeated):
        calls.append(is_repeated)
        with using.transaction():
            using.execute("SELECT 1")
            time.sleep(0 if is_repeated else 0.3)
            return using.execute("SELECT 2").fetchone()

    assert log._call(read_slowly) == (2,)
    assert calls == [False, True]


def test_synchronous_reaches_the_server(opened):
    for synchronous, expected in (("FULL", "on"), ("normal", "off"), ("OFF", "off")):
        with opened(synchronous=synchronous)._source.lease() as using:
            assert using.execute("SHOW synchronous_commit").fetchone() == (expected,)
