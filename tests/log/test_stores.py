"""Every store keeps the contract of stores, and the suite finds a store that does not."""

import contextlib

import pytest

from pagein.backends.base import SingleLogStore, store_of
from pagein.backends.memory import InMemoryLog, InMemoryStore
from pagein.backends.open import open_store
from pagein.backends.postgres.log import PostgresStore
from pagein.backends.sqlite.log import SQLiteLog, SQLiteStore
from pagein.errors import ConfigurationError
from pagein.events.steps import TaskStep
from pagein.testing.stores import StoreTests

KEY = bytes(range(32))


class TestInMemoryStore(StoreTests):
    durable = False

    @pytest.fixture
    def open_store(self):
        return lambda tenant="", readonly=False: InMemoryStore(tenant=tenant)


class TestSQLiteStore(StoreTests):
    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda tenant="", readonly=False: SQLiteStore(tmp_path / "run.db", tenant=tenant, readonly=readonly)


class TestEncryptedSQLiteStore(StoreTests):
    encrypted = True

    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda tenant="", readonly=False: SQLiteStore(
            tmp_path / "run.db", tenant=tenant, readonly=readonly, key=KEY
        )


class TestPostgresStore(StoreTests):
    @pytest.fixture
    def open_store(self, postgres, schema):
        return lambda tenant="", readonly=False: PostgresStore(
            postgres.url, tenant=tenant, readonly=readonly, schema=schema
        )


class Forgetful(InMemoryStore):
    """Each log it opens is of entries of its own."""

    def log(self, session="default"):
        return InMemoryLog(session=session, tenant=self.tenant)


class Sharing(InMemoryStore):
    """Every tenant has the same sessions."""

    shared = {}  # noqa: RUF012 - the fault

    def __init__(self, *, tenant=""):
        super().__init__(tenant=tenant)
        self._sessions = self.shared


class Unlisted(InMemoryStore):
    """Lists sessions that have no entry."""

    def sessions(self):
        return tuple(sorted(self._sessions))


class Partly(InMemoryStore):
    """Erases one session after the other."""

    def erase(self, cuts, *, at):
        for cut in cuts:
            super().erase([cut], at=at)


BROKEN = {
    Forgetful: "test_a_session_opened_twice_is_one_session",
    Sharing: "test_tenants_are_apart",
    Unlisted: "test_sessions_with_an_entry_are_listed_sorted",
    Partly: "test_several_sessions_are_erased_together_or_not_at_all",
}


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_store_fails_the_test_that_names_its_fault(kind):
    def attempt(store):
        test = getattr(StoreTests(), BROKEN[kind])
        if kind is Sharing:
            test(lambda tenant="", readonly=False: store(tenant=tenant))
        else:
            test(store())

    attempt(InMemoryStore)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        attempt(kind)


class Plain:
    """A log with the five methods of ``Log``, and nothing else."""

    def __init__(self):
        log = InMemoryLog()
        self.head, self.append, self.read = log.head, log.append, log.read
        self.verify, self.close = log.verify, log.close


def test_a_log_of_five_methods_has_a_store_that_holds_it_alone():
    log = Plain()
    store = store_of(log)
    assert isinstance(store, SingleLogStore)
    assert (store.tenant, store.readonly, store.encrypted, store.sessions()) == ("", False, False, ())
    store.log().append([TaskStep("pier_9")], after=0, at=0)
    assert (log.head(), store.head("default")) == (1, 1)
    with store.search_index() as index:
        index.catch_up(log)
        assert [hit.text for hit in index.search("pier_9")] == ["pier_9"]
    with pytest.raises(ConfigurationError, match="a Plain does not open session 'other'"):
        store.log("other")
    with pytest.raises(ConfigurationError, match="a Plain cannot erase"):
        store.erase((), at=0)


def test_an_address_is_opened_as_its_store(tmp_path):
    path = tmp_path / "run.db"
    assert isinstance(open_store(":memory:"), InMemoryStore)
    with contextlib.closing(open_store(path, tenant="acme")) as store:
        assert isinstance(store, SQLiteStore)
        assert not path.exists(), "nothing is made before a log is opened"
        store.log().close()
        assert path.exists()


def test_a_log_that_is_opened_by_itself_has_its_store(tmp_path):
    with contextlib.closing(SQLiteLog(tmp_path / "run.db", session="one", tenant="acme")) as log:
        log.append([TaskStep("a")], after=0, at=0)
        with contextlib.closing(log.store.log("two")) as other:
            other.append([TaskStep("b")], after=0, at=0)
        assert (log.store.tenant, log.store.sessions()) == ("acme", ("one", "two"))
