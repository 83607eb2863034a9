"""The archive in PostgreSQL keeps the contract on a real server, and finds what the one in SQLite finds."""

import contextlib
import signal
import subprocess
import sys
import threading

import psycopg
import psycopg_pool
import pytest

from pagein import AgentMemory
from pagein.backends import SqliteArchive
from pagein.backends.postgres.log import PostgresLog
from pagein.backends.postgres.search import PostgresArchive
from pagein.backends.postgres.search_schema import TABLES, VERSION
from pagein.backends.search import archive_of
from pagein.errors import LogError, LogTooNew, LogUnreadable
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall
from pagein.search import Query
from pagein.testing.search_index_material import RUN, Counting, OpenArchive, handles, recorded
from pagein.testing.search_indexes import ArchiveTests


class TestPostgresArchive(ArchiveTests):
    @pytest.fixture
    def open_archive(self, postgres, schema) -> OpenArchive:
        return lambda **options: PostgresArchive(postgres.url, schema=schema, **options)


QUERIES = ("crane receipts", "E4711", "tests passed", "bollard", "8 May 2023", "the quay was missing")


@pytest.fixture
def using(postgres):
    """A connection behind everybody's back."""
    with psycopg.connect(postgres.url, autocommit=True) as opened:
        yield opened


@pytest.fixture
def opened(postgres, schema):
    """Opens archives in this test's schema, and closes them."""
    with contextlib.ExitStack() as stack:
        yield lambda where=postgres.url, **options: stack.enter_context(
            PostgresArchive(where, **{"schema": schema, **options})
        )


@pytest.fixture
def log(postgres, schema):
    """The run, in the same schema."""
    with contextlib.closing(PostgresLog(postgres.url, schema=schema)) as log:
        yield recorded(*RUN, log=log)


def everything(archive):
    return [archive.search(query) for query in QUERIES]


# The same as in a file


def long_run():
    """Enough that the words of a step are common, and that a session has several blocks."""
    for number in range(2_600):
        yield TaskStep(
            f"sounding {number} at berth {number % 7}, {'rising' if number % 2 else 'falling'} tide"
        )


@pytest.mark.parametrize(
    "narrowed",
    [{}, {"sessions": ("a",)}, {"role": "tool"}, {"since": 61_000.0, "until": 140_000.0}, {"limit": 40}],
)
def test_it_finds_what_the_archive_in_a_file_finds(shared, narrowed):
    ours, file = shared
    for query in ("sounding 1234", "the tide at berth 3", "rising tide", "berth", *QUERIES):
        asked = Query(query, **narrowed)
        assert ours.search(asked) == file.search(asked)
        assert dict(ours.sessions(asked)) == pytest.approx(dict(file.sessions(asked)))


@pytest.fixture(scope="module")
def shared(postgres):
    """The same two sessions in both."""
    log = recorded()
    log.append(list(long_run()), after=0, at=60_000.0)
    for number in range(40):
        call = ToolCall(f"c{number}", "look", "{}")
        seen = Observation(call.id, f"berth {number}: sounding {number}")
        log.append([ActionStep("I look.", (call,), (seen,))], after=log.head(), at=100_000.0 + number)
    with (
        postgres.schema() as schema,
        SqliteArchive() as file,
        PostgresArchive(postgres.url, schema=schema) as ours,
    ):
        for each in (ours, file):
            each.catch_up(recorded(*RUN), session="a")
            each.catch_up(log, session="b")
        yield ours, file


# Derived


def test_beside_the_log_it_leaves_the_log_as_it_was(opened, log):
    before = list(log.read())
    archive = opened()
    archive.catch_up(log)
    assert handles(archive, "E4711")[0] == "s3.0"
    archive.forget([3])
    archive.rebuild()
    assert archive.watermark() == 0
    assert list(log.read()) == before
    assert log.verify().ok


def test_rebuilt_it_is_equal_and_another_tenant_keeps_his(opened, log):
    ours, theirs = opened(embedder=Counting()), opened(tenant="theirs", embedder=Counting())
    for each in (ours, theirs):
        each.catch_up(log)
        while each.embed_pending():
            pass
    whole, other = everything(ours), everything(theirs)
    ours.rebuild()
    assert everything(ours) == [()] * len(QUERIES)
    ours.catch_up(log)
    while ours.embed_pending():
        pass
    assert everything(ours) == whole
    assert everything(theirs) == other


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE {0}.archive_about SET version = 0",
        "DELETE FROM {0}.archive_about",
        "DROP TABLE {0}.archive_passages",
        "DROP INDEX {0}.archive_words",
    ],
)
def test_an_index_that_is_old_or_in_pieces_is_built_anew_at_opening(opened, log, using, schema, damage):
    archive = opened()
    archive.catch_up(log)
    whole = everything(archive)
    using.execute(damage.format(schema))
    again = opened()
    assert again.watermark() == 0
    again.catch_up(log)
    assert everything(again) == whole
    assert log.verify().ok


@pytest.mark.parametrize("table", [each for each in TABLES if each not in ("about", "own")])
def test_an_index_that_breaks_while_open_is_built_anew_from_the_logs_it_knows(
    opened, log, using, schema, table
):
    archive = opened(embedder=Counting())
    archive.catch_up(log)
    whole = everything(archive)
    using.execute(f"DROP TABLE {schema}.archive_{table}")
    assert everything(archive) == whole
    assert log.verify().ok


def test_broken_without_a_log_to_build_it_from_it_says_so(opened, using, schema):
    archive = opened()
    archive.index(recorded(*RUN).read())
    using.execute(f"DROP TABLE {schema}.archive_passages")
    with pytest.raises(LogUnreadable, match="catch_up"):
        archive.search("crane")
    assert archive.search("crane") == ()


def test_an_index_of_a_later_release_stays_as_it_is(opened, using, schema):
    opened().catch_up(recorded(*RUN))
    using.execute(f"UPDATE {schema}.archive_about SET version = version + 1")
    with pytest.raises(LogTooNew, match="upgrade pagein"):
        opened()
    assert using.execute(f"SELECT version FROM {schema}.archive_about").fetchone() == (VERSION + 1,)
    assert using.execute(f"SELECT count(*) FROM {schema}.archive_passages").fetchone() == (10,)


# One transaction


def test_a_connection_that_is_lost_is_opened_again(opened, log, using):
    archive = opened()
    for entry in log.read():
        using.execute(
            "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE pid = %s",
            (archive._store._server._source._connection.info.backend_pid,),
        )
        assert archive.index([entry]) == 1
    assert handles(archive, "E4711")[0] == "s3.0"


KILLED = """
import os, signal, sys
from pagein.backends.postgres.search import PostgresArchive
from pagein.backends.postgres.search_tables import PostgresWriting
from pagein.backends.postgres.log import PostgresLog
done = 0
real = PostgresWriting.keep
def dying(writing, known, found):
    global done
    real(writing, known, found)
    done += 1
    if done == 4:
        os.kill(os.getpid(), signal.SIGKILL)
PostgresWriting.keep = dying
archive = PostgresArchive(sys.argv[1], schema=sys.argv[2])
for entry in PostgresLog(sys.argv[1], schema=sys.argv[2]).read():
    archive.index([entry])
"""


def run(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_killed_between_rows_and_watermark_it_goes_on_where_it_was(opened, log, postgres, schema):
    killed = run(KILLED, postgres.url, schema)
    told = killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL, told
    archive = opened()
    assert archive.watermark() == 3
    assert archive.catch_up(log) == len(RUN) - 3
    with SqliteArchive() as whole:
        whole.catch_up(log)
        assert everything(archive) == everything(whole)


WORKER = """
import sys
from pagein.backends.postgres.search import PostgresArchive
from pagein.backends.postgres.log import PostgresLog
log = PostgresLog(sys.argv[1], schema=sys.argv[2], session="long")
print(PostgresArchive(sys.argv[1], schema=sys.argv[2], session="long", timeout=30).catch_up(log))
"""


def test_two_processes_index_each_entry_once(opened, postgres, schema):
    with contextlib.closing(PostgresLog(postgres.url, schema=schema, session="long")) as log:
        log.append([TaskStep(f"sounding {number} fathoms") for number in range(300)], after=0, at=1.0)
        workers = [run(WORKER, postgres.url, schema) for _ in range(2)]
        told = [each.communicate(timeout=60) for each in workers]
        assert all(out.strip().isdigit() for out, _ in told), told
        assert sum(int(out) for out, _ in told) == 300
        archive = opened(session="long")
        assert archive.watermark() == 300
        assert len(archive.search(Query("fathoms", limit=400))) == 300


def test_many_who_open_a_new_index_at_once_make_it_once(postgres):
    for _ in range(3):
        with postgres.schema() as schema:
            told = []

            def work(schema=schema, told=told):
                try:
                    with PostgresArchive(postgres.url, schema=schema, timeout=30.0) as archive:
                        told.append(archive.index(recorded(TaskStep("one")).read()))
                except Exception as error:  # noqa: BLE001 - told to the test's own thread
                    told.append(error)

            threads = [threading.Thread(target=work) for _ in range(6)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            assert sorted(told, key=str) == [0, 0, 0, 0, 0, 1]


# What a memory does with it


def test_a_memory_on_a_server_recalls_what_another_process_recorded(postgres):
    with postgres.schema() as schema:

        def opened(**options):
            return AgentMemory(PostgresLog(postgres.url, schema=schema), budget=4_000, **options)

        with opened() as memory, opened(embedder=Counting()) as other:
            memory.record(TaskStep("The anchor weighs 4711 kilos."))
            hit = other.recall("what does the anchor weigh?")[0]
            assert (hit.handle, hit.text) == ("s0", "The anchor weighs 4711 kilos.")
            assert "4711" in other.call_tool("recall", {"query": "anchor"})
            assert other.report().problems == ()


def test_on_a_pool_it_lies_with_its_log(postgres, schema, log):
    with psycopg_pool.ConnectionPool(postgres.url, min_size=1, max_size=2, open=True) as pool:
        pooled = PostgresLog(pool, schema=schema)
        with archive_of(pooled) as archive:
            archive.catch_up(pooled)
            assert handles(archive, "E4711")[0] == "s3.0"
        with pool.connection() as lent:
            assert not lent.autocommit


def test_a_read_only_log_has_its_index_in_memory(postgres, schema, log, using):
    with (
        contextlib.closing(PostgresLog(postgres.url, schema=schema, readonly=True)) as reader,
        archive_of(reader) as archive,
    ):
        archive.catch_up(reader)
        assert handles(archive, "E4711")[0] == "s3.0"
    found = using.execute("SELECT to_regclass(%s)", (f"{schema}.archive_passages",)).fetchone()
    assert found == (None,)


def test_without_pgvector_it_goes_on_by_words_and_says_so(postgres, using):
    if not postgres.mine:
        pytest.skip("PAGEIN_POSTGRES names a server whose roles and databases are not ours to make")
    using.execute("CREATE ROLE plain LOGIN")
    using.execute("CREATE DATABASE bare")
    where = postgres.url.replace("postgres@/postgres?", "{}@/bare?")
    try:
        with psycopg.connect(where.format("postgres"), autocommit=True) as there:
            there.execute("CREATE SCHEMA pagein AUTHORIZATION plain")
        with AgentMemory.open(where.format("plain"), budget=4_000, embedder=Counting()) as memory:
            memory.record(TaskStep("The anchor weighs 4711 kilos."))
            assert memory.recall("anchor")[0].handle == "s0"
            (problem,) = memory.report().problems
            assert "pgvector" in problem
            assert "CREATE EXTENSION vector" in problem
    finally:
        using.execute("DROP DATABASE bare WITH (FORCE)")
        using.execute("DROP ROLE plain")


def test_a_long_name_is_a_session_like_any_other(opened):
    archive = opened(tenant="t" * 4_000)
    for name in ("n" * 4_000, "n" * 4_001):
        archive.catch_up(recorded(TaskStep(f"the keel of {len(name)}")), session=name)
    assert {len(hit.session) for hit in archive.search("keel")} == {4_000, 4_001}


def test_closed_with_its_server_gone_it_raises_ours(postgres):
    with pytest.raises(LogError) as refused:
        PostgresArchive("postgresql://ann:sesame@127.0.0.1:1/db", timeout=0.2)
    assert "sesame" not in str(refused.value)
