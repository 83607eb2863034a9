"""Addresses: which store each means, and what is said of the others."""

import contextlib
import sys
import traceback

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.backends.open import open_log
from pagein.backends.postgres.log import PostgresLog
from pagein.backends.sqlite.log import SQLiteLog
from pagein.errors import ConfigurationError, LogUnwritable
from pagein.events.entries import Pin


def test_memory_is_a_log_of_its_own_each_time():
    first, second = open_log(":memory:", session="a", tenant="t"), open_log(":memory:")
    assert isinstance(first, InMemoryLog)
    assert (first.session, first.tenant) == ("a", "t")
    first.append([Pin("a")], after=0, at=0.0)
    assert second.head() == 0


def test_a_path_and_its_addresses_are_one_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.db"
    for number, url in enumerate(
        (path, str(path), f"sqlite:///{path}", "run.db", "sqlite:///run.db", "SQLite:///run.db")
    ):
        with contextlib.closing(open_log(url, session="s", tenant="t")) as log:
            assert isinstance(log, SQLiteLog)
            assert log.head() == number
            log.append([Pin("a")], after=number, at=0.0)
    assert [each.name for each in tmp_path.iterdir()] == ["run.db"]


def test_options_reach_the_store(tmp_path):
    path = tmp_path / "run.db"
    with contextlib.closing(open_log(path, synchronous="NORMAL")) as log:
        assert log._database.execute("PRAGMA synchronous").fetchone() == (1,)
    with contextlib.closing(open_log(path, readonly=True)) as log, pytest.raises(LogUnwritable):
        log.append([Pin("a")], after=0, at=0.0)


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("postgresql://localhost:none/%zz", "no address"),
        ("Postgres://localhost/runs?nonsense=1", "no address"),
        ("redis://localhost", "no log at"),
        ("sqlite://run.db", "no log at"),
        ("sqlite:///", "no log at"),
        ("sqlite://", "no log at"),
        ("https://example.com/run.db", "no log at"),
        ("", "needs an address"),
    ],
)
def test_other_addresses_are_refused_with_the_cure(url, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=what):
        open_log(url)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_read_only_in_a_new_memory():
    with pytest.raises(ConfigurationError):
        open_log(":memory:", readonly=True)
    assert isinstance(open_log("sqlite:///:memory:"), InMemoryLog)


def test_no_address_that_is_refused_is_repeated():
    for url in (
        "mysql://ann:sesame@host/db",
        "postgresql://ann:sesame%zz@host/db",
        "sqlite://ann:sesame@host",
        " postgresql://ann:sesame@host/db",
        "'postgres://ann:sesame@host/db'",
        "postgresql:/ann:sesame@host/db",
        "postgresql:ann:sesame@host/db",
        "host=db.example user=ann password=sesame",
        "dbname = runs  password = sesame",
    ):
        with pytest.raises(ConfigurationError) as refused:
            open_log(url)
        assert "sesame" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("name", ["host=a.db", "user=ann/run.db", "postgres.db", "my postgresql.db", "a b=c d=e"])
def test_a_path_that_is_only_like_an_address_is_a_path(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "user=ann").mkdir()
    with contextlib.closing(open_log(name)) as log:
        assert isinstance(log, SQLiteLog)
    assert (tmp_path / name).is_file()


def test_an_address_of_a_database_opens_a_log_in_it(postgres):
    with contextlib.closing(open_log(postgres.url, session="opened", tenant="t")) as log:
        assert isinstance(log, PostgresLog)
        assert (log.session, log.tenant, log.schema) == ("opened", "t", "pagein")
        log.append([Pin("a")], after=log.head(), at=0.0)
    with contextlib.closing(open_log(postgres.url, session="opened", tenant="t", readonly=True)) as log:
        with pytest.raises(LogUnwritable):
            log.append([Pin("a")], after=log.head(), at=0.0)
        assert log.store.sessions() == ("opened",)


def test_a_missing_driver_is_named_with_the_cure(monkeypatch):
    for name in [each for each in sys.modules if each.startswith("pagein.backends.postgres.log")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'pagein\[postgres\]'"):
        open_log("postgresql://localhost/runs")
