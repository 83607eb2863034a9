"""Conformance suite for stores: a subclass of ``StoreTests`` with one fixture.

    class TestMyStore(StoreTests):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda tenant="", readonly=False: MyStore(tmp_path / "store", tenant=tenant, readonly=readonly)

The logs that the store opens have a suite of their own: ``LogTests``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import ClassVar, Protocol

import pytest

from pagein.backends.base import Store, store_of
from pagein.errors import Conflict, LogUnwritable
from pagein.events.entries import Erased, Pin
from pagein.events.steps import TaskStep
from pagein.log.base import StoredLog
from pagein.log.erasure import Cut, Removal
from pagein.memory.agent_memory import AgentMemory
from pagein.testing._threads import require

NOW = 1_700_000_000.0


class StoreOpener(Protocol):
    """Opens the store at one address; each call opens it again."""

    def __call__(self, tenant: str = "", *, readonly: bool = False) -> Store: ...


class StoreTests:
    """The contract of ``pagein.backends.base.Store``: subclass it, and give the fixture ``open_store``."""

    encrypted: ClassVar[bool] = False
    """True where the fixture opens the store with a key."""

    durable: ClassVar[bool] = True
    """False for a store that ends with its object: each call of the fixture gives an empty one."""

    @pytest.fixture
    def open_store(self) -> StoreOpener:
        """Open the store; a subclass overrides this fixture."""
        raise NotImplementedError("a subclass of StoreTests gives the fixture open_store")

    @pytest.fixture
    def store(self, open_store: StoreOpener) -> Iterator[Store]:
        with closing(open_store()) as store:
            yield store

    def test_it_declares_what_it_is(self, open_store: StoreOpener) -> None:
        with closing(open_store("acme")) as store:
            flags = (store.tenant, store.readonly, store.encrypted, store.is_durable)
            assert flags == ("acme", False, self.encrypted, self.durable)

    def test_a_log_knows_its_session_tenant_and_store(self, open_store: StoreOpener) -> None:
        with closing(open_store("acme")) as store, closing(store.log("web")) as log:
            assert (log.session, log.tenant, log.readonly, log.store) == ("web", "acme", False, store)
            assert store_of(log) is store

    def test_sessions_with_an_entry_are_listed_sorted(self, store: Store) -> None:
        assert store.sessions() == ()
        with ExitStack() as logs:
            for name in ("web", "api", "opened only"):
                log = logs.enter_context(closing(store.log(name)))
                if name != "opened only":
                    _append(log, "a")
            assert store.sessions() == ("api", "web")
        assert store.sessions() == ("api", "web"), "after its logs were closed"

    def test_the_head_of_a_session_is_read_without_its_log(self, store: Store) -> None:
        with closing(store.log("web")) as log:
            _append(log, "a", "b")
            assert (store.head("web"), store.head("other")) == (2, 0)
        assert store.head("web") == 2

    def test_a_session_opened_twice_is_one_session(self, store: Store) -> None:
        with closing(store.log("web")) as one, closing(store.log("web")) as other:
            _append(one, "a")
            assert list(other.read()) == list(one.read())
            _append(other, "b")
            with pytest.raises(Conflict):
                one.append([Pin("c")], after=1, at=NOW)
            assert one.head() == other.head() == 2
        with closing(store.log("web")) as again:
            assert [entry.body for entry in again.read()] == [TaskStep("a"), TaskStep("b")]

    def test_what_was_written_is_there_in_another_store_object(self, open_store: StoreOpener) -> None:
        require(self, "durable")
        with closing(open_store()) as store, closing(store.log("web")) as log:
            _append(log, "a")
        with closing(open_store()) as store, closing(store.log("web")) as log:
            assert ([entry.body for entry in log.read()], store.sessions()) == ([TaskStep("a")], ("web",))

    def test_the_facts_of_a_memory_on_a_log_are_in_the_store(self, store: Store) -> None:
        with AgentMemory(store.log("monday"), budget=4_000, user="ann") as memory:
            memory.record(TaskStep("I prefer trains to planes."))
            memory.to_messages()
        with AgentMemory(store.log("friday"), budget=4_000, user="ann") as memory:
            assert [fact.content for fact in memory.facts.list()] == ["I prefer trains to planes"]

    def test_logs_are_verified_together_as_one_by_one(self, store: Store) -> None:
        alone = {}
        for name in ("web", "api"):
            with closing(store.log(name)) as log:
                _append(log, *name)
                alone[name] = log.verify()
        assert dict(store.verify(("web", "api"))) == alone
        assert [result.entries for result in alone.values()] == [3, 3]

    def test_requests_are_numbered_read_and_replaced(self, store: Store) -> None:
        table = store.request_table("web")
        assert (table.last(), list(table.rows())) == (0, [])
        assert [table.add(head, NOW, b"%d" % head) for head in (3, 5, 8)] == [1, 2, 3]
        table.replace(2, b"new")
        table.replace(9, b"none")
        again = store.request_table("web")
        assert [tuple(row) for row in again.rows()] == [(1, 3, NOW, b"3"), (2, 5, NOW, b"new"), (3, 8, NOW, b"8")]
        assert [row.number for row in again.rows(1, 1)] == [2]
        assert (again.last(), list(store.request_table("other").rows())) == (3, [])

    def test_a_run_that_was_erased_whole_leaves_no_requests(self, store: Store) -> None:
        for name in ("web", "api"):
            with closing(store.log(name)) as log:
                _append(log, "a")
            store.request_table(name).add(1, NOW, b"a")
        store.erase([Removal("web", "asked for")], at=NOW)
        assert [len(store.request_table(name).rows()) for name in ("web", "api")] == [0, 1]

    def test_tenants_are_apart(self, open_store: StoreOpener) -> None:
        with closing(open_store("a")) as one, closing(open_store("b")) as other:
            with closing(one.log("web")) as log:
                _append(log, "a")
            assert (one.sessions(), one.head("web")) == (("web",), 1)
            assert (other.sessions(), other.head("web")) == ((), 0)
            with closing(other.log("web")) as log:
                assert list(log.read()) == []

    def test_readonly_reads_and_refuses_to_write(self, open_store: StoreOpener) -> None:
        require(self, "durable")
        with closing(open_store()) as store, closing(store.log()) as log:
            _append(log, "a")
        with closing(open_store(readonly=True)) as store, closing(store.log()) as log:
            assert (store.readonly, log.readonly, len(list(log.read()))) == (True, True, 1)
            with pytest.raises(LogUnwritable):
                log.append([Pin("b")], after=1, at=NOW)
            with pytest.raises(LogUnwritable):
                store.erase([Removal("default")], at=NOW)
            with closing(store.search_index()) as index:
                index.catch_up(log)
                assert [hit.text for hit in index.search("a")] == ["a"]

    def test_the_search_index_finds_what_was_appended(self, store: Store) -> None:
        with closing(store.log("web")) as log, closing(store.search_index("web")) as index:
            _append(log, "the crane is on pier_9")
            assert index.catch_up(log) == 1
            assert [hit.text for hit in index.search("pier_9")] == ["the crane is on pier_9"]

    def test_several_sessions_are_erased_together_or_not_at_all(self, store: Store) -> None:
        with closing(store.log("a")) as one, closing(store.log("b")) as other:
            for log in (one, other):
                _append(log, "xanthippe", "stays")
            with pytest.raises(Conflict):
                store.erase([_make_cut("a", 2), _make_cut("b", 7)], at=NOW)
            assert one.head() == other.head() == 2, "nothing was erased"
            store.erase([_make_cut("a", 2), _make_cut("b", 2)], at=NOW)
            for log in (one, other):
                bodies = [entry.body for entry in log.read()]
                assert bodies == [TaskStep("[erased]"), TaskStep("stays"), Erased(((0, 1),), "asked for")]
                assert (log.verify().problems, log.verify().erased) == ((), 1)
        assert store.scrub() in (True, False)

    def test_a_session_erased_without_a_trace_is_not_listed(self, store: Store) -> None:
        with closing(store.log("web")) as log:
            _append(log, "a")
        store.erase([Removal("web", trace=False)], at=NOW)
        assert (store.sessions(), store.head("web")) == ((), 0)

    def test_close_is_idempotent(self, store: Store) -> None:
        assert store.head("web") == 0
        store.close()
        store.close()


def _append(log: StoredLog, *texts: str) -> None:
    log.append([TaskStep(text) for text in texts], after=log.head(), at=NOW)


def _make_cut(session: str, after: int) -> Cut:
    return Cut(session, after, Erased(((0, 1),), "asked for"), {0: TaskStep("[erased]")})
