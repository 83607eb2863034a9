"""The index in PostgreSQL keeps the contract on a real server, and finds what the one in SQLite finds."""

import contextlib
import signal
import subprocess
import sys
import threading

import psycopg
import psycopg_pool
import pytest

from pagein import AgentMemory
from pagein.backends import SqliteSearchIndex
from pagein.backends.base import store_of
from pagein.backends.postgres.log import PostgresLog
from pagein.backends.postgres.migrations import INDEX_TABLES, INDEX_VERSION
from pagein.backends.postgres.search import PostgresSearchIndex
from pagein.errors import LogError, LogTooNew, LogUnreadable
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall
from pagein.search import Query
from pagein.testing.search_indexes import (
    RUN,
    CountingEmbedder,
    OpenSearchIndex,
    SearchIndexTests,
    hit_handles,
    record_bodies,
)


class TestPostgresSearchIndex(SearchIndexTests):
    @pytest.fixture
    def open_index(self, postgres, schema) -> OpenSearchIndex:
        return lambda **options: PostgresSearchIndex(postgres.url, schema=schema, **options)


QUERIES = ("crane receipts", "E4711", "tests passed", "bollard", "8 May 2023", "the quay was missing")


@pytest.fixture
def using(postgres):
    """A connection behind everybody's back."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def opener(postgres, schema):
    """Opens indexes in this test's schema, and closes them."""
    with contextlib.ExitStack() as stack:
        yield lambda where=postgres.url, **options: stack.enter_context(
            PostgresSearchIndex(where, **{"schema": schema, **options})
        )


@pytest.fixture
def log(postgres, schema):
    """The run, in the same schema."""
    with contextlib.closing(PostgresLog(postgres.url, schema=schema)) as log:
        yield record_bodies(*RUN, log=log)


def everything(index):
    return [index.search(query) for query in QUERIES]


# The same as in a file


def long_run():
    """Enough that the words of a step are common, and that a session has several blocks."""
    for number in range(2_600):
        yield TaskStep(f"sounding {number} at berth {number % 7}, {'rising' if number % 2 else 'falling'} tide")


@pytest.mark.parametrize(
    "narrowed", [{}, {"sessions": ("a",)}, {"role": "tool"}, {"since": 61_000.0, "until": 140_000.0}, {"limit": 40}]
)
def test_it_finds_what_the_index_in_a_file_finds(shared, narrowed):
    ours, file = shared
    for query in ("sounding 1234", "the tide at berth 3", "rising tide", "berth", *QUERIES):
        parsed = Query(query, **narrowed)
        assert ours.search(parsed) == file.search(parsed)
        assert dict(ours.sessions(parsed)) == pytest.approx(dict(file.sessions(parsed)))


@pytest.fixture(scope="module")
def shared(postgres):
    """The same two sessions in both."""
    log = record_bodies()
    log.append(list(long_run()), after=0, at=60_000.0)
    for number in range(40):
        call = ToolCall(f"c{number}", "look", "{}")
        observation = Observation(call.id, f"berth {number}: sounding {number}")
        log.append([ActionStep("I look.", (call,), (observation,))], after=log.head(), at=100_000.0 + number)
    with (
        postgres.schema() as schema,
        SqliteSearchIndex() as file,
        PostgresSearchIndex(postgres.url, schema=schema) as ours,
    ):
        for index in (ours, file):
            index.catch_up(record_bodies(*RUN), session="a")
            index.catch_up(log, session="b")
        yield ours, file


# Derived


def test_beside_the_log_it_leaves_the_log_as_it_was(opener, log):
    before = list(log.read())
    index = opener()
    index.catch_up(log)
    assert hit_handles(index, "E4711")[0] == "s3.0"
    index.forget([3])
    index.rebuild()
    assert index.watermark() == 0
    assert list(log.read()) == before
    assert log.verify().ok


def test_rebuilt_it_is_equal_and_another_tenant_keeps_his(opener, log):
    ours, theirs = opener(embedder=CountingEmbedder()), opener(tenant="theirs", embedder=CountingEmbedder())
    for index in (ours, theirs):
        index.catch_up(log)
        while index.embed_pending():
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
def test_an_index_that_is_old_or_in_pieces_is_built_anew_at_opening(opener, log, using, schema, damage):
    index = opener()
    index.catch_up(log)
    whole = everything(index)
    using.execute(damage.format(schema))
    again = opener()
    assert again.watermark() == 0
    again.catch_up(log)
    assert everything(again) == whole
    assert log.verify().ok


@pytest.mark.parametrize("table", [table for table in INDEX_TABLES if table not in ("about", "own")])
def test_an_index_that_breaks_while_open_is_built_anew_from_the_logs_it_knows(opener, log, using, schema, table):
    index = opener(embedder=CountingEmbedder())
    index.catch_up(log)
    whole = everything(index)
    using.execute(f"DROP TABLE {schema}.archive_{table}")
    assert everything(index) == whole
    assert log.verify().ok


def test_broken_without_a_log_to_build_it_from_it_says_so(opener, using, schema):
    index = opener()
    index.index(record_bodies(*RUN).read())
    using.execute(f"DROP TABLE {schema}.archive_passages")
    with pytest.raises(LogUnreadable, match="catch_up"):
        index.search("crane")
    assert index.search("crane") == ()


def test_an_index_of_a_later_release_stays_as_it_is(opener, using, schema):
    opener().catch_up(record_bodies(*RUN))
    using.execute(f"UPDATE {schema}.archive_about SET version = version + 1")
    with pytest.raises(LogTooNew, match="upgrade pagein"):
        opener()
    assert using.execute(f"SELECT version FROM {schema}.archive_about").fetchone() == (INDEX_VERSION + 1,)
    assert using.execute(f"SELECT count(*) FROM {schema}.archive_passages").fetchone() == (10,)


# One transaction


def test_a_connection_that_is_lost_is_opened_again(opener, log, using):
    index = opener()
    for entry in log.read():
        using.execute(
            "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE pid = %s",
            (index._store._server._source._connection.info.backend_pid,),
        )
        assert index.index([entry]) == 1
    assert hit_handles(index, "E4711")[0] == "s3.0"


KILLED = """
import os, signal, sys
from pagein.backends.postgres.search import PostgresSearchIndex
from pagein.backends.postgres.search import PostgresIndexWriter
from pagein.backends.postgres.log import PostgresLog
done = 0
real = PostgresIndexWriter.add_passages
def dying(writer, indexed, passages):
    global done
    real(writer, indexed, passages)
    done += 1
    if done == 4:
        os.kill(os.getpid(), signal.SIGKILL)
PostgresIndexWriter.add_passages = dying
index = PostgresSearchIndex(sys.argv[1], schema=sys.argv[2])
for entry in PostgresLog(sys.argv[1], schema=sys.argv[2]).read():
    index.index([entry])
"""


def start_python(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_killed_between_rows_and_watermark_it_goes_on_where_it_was(opener, log, postgres, schema):
    killed = start_python(KILLED, postgres.url, schema)
    output = killed.communicate(timeout=300)
    assert killed.returncode == -signal.SIGKILL, output
    index = opener()
    assert index.watermark() == 3
    assert index.catch_up(log) == len(RUN) - 3
    with SqliteSearchIndex() as whole:
        whole.catch_up(log)
        assert everything(index) == everything(whole)


WORKER = """
import sys
from pagein.backends.postgres.search import PostgresSearchIndex
from pagein.backends.postgres.log import PostgresLog
log = PostgresLog(sys.argv[1], schema=sys.argv[2], session="long")
print(PostgresSearchIndex(sys.argv[1], schema=sys.argv[2], session="long", timeout=30).catch_up(log))
"""


def test_two_processes_index_each_entry_once(opener, postgres, schema):
    with contextlib.closing(PostgresLog(postgres.url, schema=schema, session="long")) as log:
        log.append([TaskStep(f"sounding {number} fathoms") for number in range(300)], after=0, at=1.0)
        workers = [start_python(WORKER, postgres.url, schema) for _ in range(2)]
        outputs = [worker.communicate(timeout=300) for worker in workers]
        assert all(out.strip().isdigit() for out, _ in outputs), outputs
        assert sum(int(out) for out, _ in outputs) == 300
        index = opener(session="long")
        assert index.watermark() == 300
        assert len(index.search(Query("fathoms", limit=400))) == 300


def test_many_who_open_a_new_index_at_once_make_it_once(postgres):
    for _ in range(3):
        with postgres.schema() as schema:
            results = []

            def work(schema=schema, results=results):
                try:
                    with PostgresSearchIndex(postgres.url, schema=schema, timeout=30.0) as index:
                        results.append(index.index(record_bodies(TaskStep("one")).read()))
                except Exception as error:  # noqa: BLE001 - collected for the test
                    results.append(error)

            threads = [threading.Thread(target=work) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(results, key=str) == [0, 0, 0, 0, 0, 1]


# What a memory does with it


def test_a_memory_on_a_server_recalls_what_another_process_recorded(postgres):
    with postgres.schema() as schema:

        def opener(**options):
            return AgentMemory(PostgresLog(postgres.url, schema=schema), budget=4_000, **options)

        with opener() as memory, opener(embedder=CountingEmbedder()) as other:
            memory.record(TaskStep("The anchor weighs 4711 kilos."))
            hit = other.recall("what does the anchor weigh?")[0]
            assert (hit.handle, hit.text) == ("s0", "The anchor weighs 4711 kilos.")
            assert "4711" in other.call_tool("recall", {"query": "anchor"})
            assert other.report().problems == ()


def test_on_a_pool_it_lies_with_its_log(postgres, schema, log):
    with psycopg_pool.ConnectionPool(postgres.url, min_size=1, max_size=2, open=True) as pool:
        pooled = PostgresLog(pool, schema=schema)
        with store_of(pooled).search_index(pooled.session) as index:
            index.catch_up(pooled)
            assert hit_handles(index, "E4711")[0] == "s3.0"
        with pool.connection() as lent:
            assert not lent.autocommit


def test_a_read_only_log_has_its_index_in_memory(postgres, schema, log, using):
    with (
        contextlib.closing(PostgresLog(postgres.url, schema=schema, readonly=True)) as reader,
        store_of(reader).search_index(reader.session) as index,
    ):
        index.catch_up(reader)
        assert hit_handles(index, "E4711")[0] == "s3.0"
    table = using.execute("SELECT to_regclass(%s)", (f"{schema}.archive_passages",)).fetchone()
    assert table == (None,)


def test_without_pgvector_it_goes_on_by_words_and_says_so(postgres, using):
    if not postgres.mine:
        pytest.skip("PAGEIN_POSTGRES names a server whose roles and databases are not ours to make")
    using.execute("CREATE ROLE plain LOGIN")
    using.execute("CREATE DATABASE bare")
    where = postgres.url.replace("postgres@/postgres?", "{}@/bare?")
    try:
        with psycopg.connect(where.format("postgres"), autocommit=True) as there:
            there.execute("CREATE SCHEMA pagein AUTHORIZATION plain")
        with AgentMemory.open(where.format("plain"), budget=4_000, embedder=CountingEmbedder()) as memory:
            memory.record(TaskStep("The anchor weighs 4711 kilos."))
            assert memory.recall("anchor")[0].handle == "s0"
            (problem,) = memory.report().problems
            assert "pgvector" in problem
            assert "CREATE EXTENSION vector" in problem
    finally:
        using.execute("DROP DATABASE bare WITH (FORCE)")
        using.execute("DROP ROLE plain")


def test_a_long_name_is_a_session_like_any_other(opener):
    index = opener(tenant="t" * 4_000)
    for name in ("n" * 4_000, "n" * 4_001):
        index.catch_up(record_bodies(TaskStep(f"the keel of {len(name)}")), session=name)
    assert {len(hit.session) for hit in index.search("keel")} == {4_000, 4_001}


def test_closed_with_its_server_gone_it_raises_ours(postgres):
    with pytest.raises(LogError) as refused:
        PostgresSearchIndex("postgresql://ann:sesame@127.0.0.1:1/db", timeout=0.2)
    assert "sesame" not in str(refused.value)
