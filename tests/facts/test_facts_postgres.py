"""Facts on a PostgreSQL server: the tests of the store in memory, unchanged."""

import contextlib
import threading
from types import SimpleNamespace

import pytest
from test_facts_store import *  # noqa: F403 - the tests themselves, run again over this store

from pagein import AgentMemory, TaskStep
from pagein.backends.postgres.log import PostgresLog
from pagein.facts.owners import Owners
from pagein.facts.store import Facts


class OnServer:
    """Logs by tenant and name in a schema of one test; ``logs`` opens one to look at."""

    def __init__(self, pool, schema, stack):
        self._pool, self._schema, self._stack = pool, schema, stack

    def opener(self, tenant=""):
        return SimpleNamespace(log=lambda name: self._open_log(tenant, name))

    def _open_log(self, tenant, name):
        log = PostgresLog(self._pool, session=name, tenant=tenant, schema=self._schema)
        return self._stack.enter_context(contextlib.closing(log))

    @property
    def logs(self):
        return self

    def __getitem__(self, key):
        return self._open_log(*key)


@pytest.fixture(scope="module")
def pool(postgres):
    from psycopg_pool import ConnectionPool

    with ConnectionPool(postgres.url, min_size=1, max_size=4, open=True) as opened:
        yield opened


@pytest.fixture
def store(pool, schema):
    with contextlib.ExitStack() as stack:
        yield OnServer(pool, schema, stack)


def test_another_process_sees_what_was_stated_and_no_other_tenant_does(store, clock):
    ours = Facts(store.opener("ours"), Owners("s", "ann", tenant="ours"), clock=clock)
    again = Facts(store.opener("ours"), Owners("t", "ann", tenant="ours"), clock=clock)
    theirs = Facts(store.opener("theirs"), Owners("s", "ann", tenant="theirs"), clock=clock)
    fact = ours.add("Prefers tabs")
    assert [fact.content for fact in again.list()] == ["Prefers tabs"]
    assert theirs.list() == ()
    again.correct(fact.id, "Prefers spaces")
    assert [fact.content for fact in ours.list()] == ["Prefers spaces"]


def test_writers_at_the_same_time_all_get_through_on_a_server(store, clock):
    def state(number):
        facts = Facts(store.opener(), Owners(f"s{number}", "ann"), clock=clock)
        for item in range(4):
            facts.add(f"Writer {number} keeps parcel {number * 10 + item} in shed {item}")

    threads = [threading.Thread(target=state, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Facts(store.opener(), Owners("s", "ann"), clock=clock).list()) == 16
    assert store.logs["", "pagein:facts:user:ann"].verify().ok


def test_what_one_run_says_is_known_to_the_next_on_a_server(postgres):
    import psycopg

    if not postgres.mine:
        pytest.skip("PAGEIN_POSTGRES names a server whose databases are not ours to make")
    with psycopg.connect(postgres.url, autocommit=True) as using:
        using.execute("CREATE DATABASE facts")
        address = postgres.url.replace("@/postgres?", "@/facts?")
        try:
            with AgentMemory.open(address, session="one", user="ann", budget=8_000) as memory:
                memory.record(TaskStep("I prefer pytest over unittest."))
            with AgentMemory.open(address, session="two", user="ann", budget=8_000) as memory:
                memory.record(TaskStep("Write the tests."))
                assert "pytest" in str(memory.to_messages())
                assert any("pytest" in match.fact.content for match in memory.facts.search("unittest"))
        finally:
            using.execute("DROP DATABASE facts WITH (FORCE)")
