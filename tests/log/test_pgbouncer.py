"""PostgreSQL behind PgBouncer in transaction mode, where each transaction may be in another session of the server."""

import threading

import psycopg
import pytest

from pagein import ActionStep, AgentMemory, ConfigurationError, Observation, TaskStep, ToolCall
from pagein.backends.postgres.connection import address_of
from tests._support.pgbouncer import pooler
from tests._support.postgres_server import PostgresServer

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server():
    with PostgresServer() as started:
        yield started


@pytest.fixture(scope="module")
def pooled(server):
    with pooler(server.url) as address:
        yield f"{address}?pooler=transaction"


def turns(memory, name, count=12):
    memory.record(TaskStep(f"I prefer pytest. Look at every part of {name}."))
    for number in range(count):
        call = ToolCall(f"c{number}", "look", "{}")
        text = "\n".join(f"{name} {number} line {line}" for line in range(40))
        memory.record(ActionStep(f"I look at {number}.", (call,), (Observation(call.id, text),)))
        memory.view()


def test_runs_of_many_threads_hold_their_promises(pooled):
    failures = []

    def run(number):
        try:
            with AgentMemory.open(pooled, session=f"run-{number}", user="ann", budget=1_500) as memory:
                turns(memory, f"house{number}")
                assert memory.recall(f"house{number} line 3")
                assert memory.verify().ok
                memory.switch(memory.fork().name)
                memory.checkpoint("done")
                memory.erase("s1")
            with AgentMemory.open(pooled, session=f"run-{number}", user="ann", budget=1_500) as memory:
                assert memory.view().tokens <= 1_500
                assert memory.verify().ok
                assert any("pytest" in fact.content for fact in memory.facts.list())
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_nothing_is_left_in_a_session_of_the_server(pooled, server):
    with AgentMemory.open(pooled, session="settings", budget=1_500, timeout=70, readonly=False) as memory:
        turns(memory, "barn", 3)
    with psycopg.connect(address_of(pooled).name, prepare_threshold=None, autocommit=True) as using:
        for _ in range(6):
            rows = using.execute(
                "SELECT current_setting('lock_timeout'), current_setting('default_transaction_read_only'),"
                " (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')"
            ).fetchone()
            assert rows == ("0", "off", 0, 0)


def test_a_read_only_memory_writes_nothing(pooled):
    with AgentMemory.open(pooled, session="read", budget=1_500) as memory:
        turns(memory, "shed", 3)
        head = memory._runtime.log.head()
    with AgentMemory.open(pooled, session="read", budget=700, readonly=True) as memory:
        memory.view()
        with pytest.raises(Exception, match="readonly"):
            memory.record(TaskStep("no"))
        assert memory._runtime.log.head() == head


def test_a_server_that_does_not_wait_for_its_disk_is_named(pooled, server):
    with psycopg.connect(server.url, autocommit=True) as using:
        using.execute("CREATE ROLE hasty LOGIN")
        using.execute("ALTER DATABASE postgres SET synchronous_commit = off")
    try:
        with pooler(server.url) as address, pytest.raises(ConfigurationError, match="synchronous_commit is off"):
            AgentMemory.open(f"{address}?pooler=transaction", session="hasty", budget=1_500)
    finally:
        with psycopg.connect(server.url, autocommit=True) as using:
            using.execute("ALTER DATABASE postgres RESET synchronous_commit")


def test_a_worker_is_told_to_go_around_the_pooler(pooled):
    from pagein.worker import WorkQueue, work

    with pytest.raises(ConfigurationError, match="the server's own address"):
        list(work(WorkQueue(pooled), once=True))


@pytest.mark.parametrize(
    ("url", "database"),
    [
        ("postgresql://ann@db.example/agents?pooler=transaction", "agents"),
        ("postgresql://ann@db.example/agents?pooler=transaction&sslmode=require", "agents"),
        ("postgresql://ann@db.example/agents?sslmode=require&pooler=transaction", "agents"),
        ("host=db.example pooler=transaction dbname=agents", "agents"),
        ("host=db.example dbname=agents pooler=transaction", "agents"),
    ],
)
def test_the_parameter_is_read_wherever_it_stands(url, database):
    address = address_of(url)
    assert address.is_pooled
    assert address.parameters["dbname"] == database
    assert "pooler" not in address.parameters
    assert address.parameters.get("sslmode", "require") == "require"
    assert not address_of(url.replace("transaction", "session")).is_pooled
    with pytest.raises(ConfigurationError, match="pooler=transaction"):
        address_of(url.replace("pooler=transaction", "pooler=statement"))
