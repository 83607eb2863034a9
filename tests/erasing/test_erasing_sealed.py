"""Logs with a key: nothing that was said is in the file, and no other key, and no moved row, opens it."""

import base64
import contextlib
import os
import sqlite3

import pytest

from pagein import AgentMemory, ConfigurationError, LogEncrypted, LogUnreadable, TaskStep
from pagein.backends.open import open_log
from pagein.backends.sqlite.log import SQLiteLog
from pagein.events.entries import Pin
from pagein.events.steps import Image
from pagein.memory.erasure.sessions import erase_session
from pagein.memory.export import export_session, import_session
from pagein.testing.erasure import PICTURE
from pagein.testing.logs import NOON, LogTests

KEY, OTHER = bytes(range(32)), bytes(32)
SECRET = "xanthippe-4711"


class TestEncryptedLog(LogTests):
    """With a key the log keeps every promise that it keeps without."""

    @pytest.fixture
    def open_log(self, tmp_path):
        return lambda session="default", tenant="": SQLiteLog(
            tmp_path / "log.db", session=session, tenant=tenant, key=KEY
        )

    def stored_bytes(self, log):
        with contextlib.closing(sqlite3.connect(log.path)) as database:
            sizes = "SELECT coalesce(sum(length(body)), 0) FROM entries UNION ALL SELECT coalesce(sum(length(data)), 0) FROM blobs"
            return sum(size for (size,) in database.execute(sizes))

    def tamper(self, log, position):
        with contextlib.closing(sqlite3.connect(log.path)) as database, database:
            database.execute(
                """UPDATE entries SET body = substr(body, 1, 19) || iif(substr(body, 20, 1) = 'A', 'B', 'A') || substr(body, 21)
                WHERE session = ? AND position = ?""",
                (log.session, position),
            )


def on_disk(path):
    return b"".join(each.read_bytes() for each in path.parent.glob(path.name + "*"))


@pytest.mark.slow
def test_a_memory_with_a_key_says_nothing_on_disk(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, key=KEY, budget=2_000, user="alice") as memory:
        memory.record(TaskStep(f"I am {SECRET}"), TaskStep((Image(PICTURE, "image/png"),)))
        for number in range(30):
            memory.record(TaskStep(f"{SECRET} {number} " * 20))
            memory.view()
        memory.facts.add(f"Is called {SECRET}.")
        memory.fork(name=SECRET)
        memory.checkpoint(SECRET)
        assert memory.recall(SECRET)
        assert memory.verify().ok
        log = memory._runtime.log
        shown = (
            repr(vars(log))
            + repr(log)
            + repr(memory._runtime.facts.store)
            + repr(vars(memory._runtime.facts.store))
            + repr(vars(memory))
        )
        assert repr(KEY)[2:-1] not in shown
    for plain in (SECRET.encode(), b"xanthippe", PICTURE[:64]):
        assert plain not in on_disk(path)
    with AgentMemory.open(path, key=base64.urlsafe_b64encode(KEY).decode(), budget=2_000, user="alice") as memory:
        assert memory.recall(SECRET)
        assert memory.facts.list()
        memory.erase("s0")
        assert memory.verify().ok
    with AgentMemory.open(path, key=lambda: KEY, budget=2_000) as memory:
        assert memory.steps[0] == TaskStep("[erased]")


@pytest.mark.parametrize("key", [None, OTHER])
def test_without_its_key_nothing_is_read_and_nothing_changed(tmp_path, key, monkeypatch):
    path = tmp_path / "run.db"
    with contextlib.closing(SQLiteLog(path, key=KEY)) as log:
        log.append([TaskStep("one")], after=0, at=NOON)
    before = path.read_bytes()
    with pytest.raises(LogEncrypted) as refused:
        AgentMemory.open(path, key=key)
    assert KEY.hex() not in str(refused.value)
    with contextlib.closing(SQLiteLog(path, key=key)) as log:
        for use in (lambda: list(log.read()), lambda: log.append([Pin("a")], after=1, at=NOON)):
            with pytest.raises(LogEncrypted):
                use()
    assert path.read_bytes() == before


def test_a_key_for_what_was_recorded_without_is_refused(tmp_path):
    with contextlib.closing(SQLiteLog(tmp_path / "run.db")) as log:
        log.append([TaskStep("one")], after=0, at=NOON)
    with pytest.raises(LogEncrypted, match="without a key"):
        AgentMemory.open(tmp_path / "run.db", key=KEY)


@pytest.mark.parametrize("key", ["", "short", b"", b"x" * 31, "ä" * 44, 7, lambda: None, lambda: "x"])
def test_what_is_no_key_is_refused_and_not_repeated(tmp_path, key):
    with pytest.raises(ConfigurationError) as refused:
        AgentMemory.open(tmp_path / "run.db", key=key)
    assert "not repeated" in str(refused.value)
    assert not (tmp_path / "run.db").exists()


def test_the_key_may_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PAGEIN_KEY", base64.urlsafe_b64encode(KEY).decode())
    with AgentMemory.open(tmp_path / "run.db") as memory:
        memory.record(TaskStep(SECRET))
    monkeypatch.delenv("PAGEIN_KEY")
    assert SECRET.encode() not in on_disk(tmp_path / "run.db")
    with pytest.raises(LogEncrypted):
        AgentMemory.open(tmp_path / "run.db")


def test_rows_that_were_swapped_are_found(tmp_path):
    path = tmp_path / "run.db"
    for session in ("a", "b"):
        with contextlib.closing(SQLiteLog(path, session=session, key=KEY)) as log:
            log.append([TaskStep("same"), TaskStep("same"), TaskStep(session)], after=0, at=NOON)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "UPDATE entries SET body = (SELECT body FROM entries WHERE session = 'a' AND position = 0)"
            " WHERE session = 'a' AND position = 1"
        )
        database.execute(
            "UPDATE entries SET body = (SELECT body FROM entries WHERE session = 'a' AND position = 2)"
            " WHERE session = 'b' AND position = 2"
        )
    for session, position in (("a", 1), ("b", 2)):
        with contextlib.closing(SQLiteLog(path, session=session, key=KEY)) as log:
            assert {each.position for each in log.verify().problems} == {position}
            with pytest.raises(LogUnreadable, match=str(position)):
                list(log.read())


def test_an_export_is_plain_and_goes_into_a_store_with_another_key(tmp_path):
    with contextlib.closing(SQLiteLog(tmp_path / "run.db", key=KEY)) as log:
        log.append([TaskStep(SECRET), TaskStep((Image(PICTURE, "image/png"),))], after=0, at=NOON)
        saved = export_session(log, tmp_path / "run.jsonl")
    assert SECRET in (tmp_path / "run.jsonl").read_text()
    with contextlib.closing(open_log(tmp_path / "other.db", key=OTHER)) as log:
        assert import_session(tmp_path / "run.jsonl", log) == saved
        assert log.verify().ok
    assert SECRET.encode() not in on_disk(tmp_path / "other.db")


@pytest.mark.slow
def test_what_has_no_key_costs_no_import():
    import subprocess
    import sys

    code = "import pagein.backends.sqlite.log, sys; assert not any(each.startswith('cryptography') for each in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ.copy())


def test_a_branch_of_a_log_with_a_key_has_the_key(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory(SQLiteLog(path, key=KEY), budget=2_000) as memory:
        memory.record(TaskStep("Begin."))
        memory.fork(name="other")
        memory.switch("other")
        memory.record(TaskStep(f"I am {SECRET}"))
        assert SECRET.encode() not in on_disk(path)
    with AgentMemory(SQLiteLog(path, key=KEY), budget=2_000) as memory:
        memory.switch("other")
        assert memory.steps[-1].content == f"I am {SECRET}"


@pytest.mark.parametrize("other", [OTHER, None])
@pytest.mark.parametrize("mine", [KEY, None])
def test_erasing_reaches_what_its_key_opens_and_is_not_stopped_by_what_another_key_closed(tmp_path, mine, other):
    keys, path = {"ann": mine, "bob": other}, tmp_path / "run.db"
    opened = {user: AgentMemory.open(path, session=user, user=user, key=keys[user], budget=2_000) for user in keys}
    for user, memory in opened.items():
        memory.record(TaskStep(f"I am {user} {SECRET}."), TaskStep("Hello"))
        memory.facts.add(f"{user} is called {SECRET}.")
    ann, bob = opened.values()
    assert ann.erase("s0").entries == 1
    assert ann.erase_facts("user").facts == 1
    assert SECRET not in f"{ann.steps} {ann.facts.list()}"
    assert ann.erase_session().entries
    assert SECRET in str(bob.steps)
    assert SECRET in str(bob.facts.list())
    assert bob.verify().ok
    for memory in opened.values():
        memory.close()
    if other is not None:
        with pytest.raises(LogEncrypted):  # bob's facts do not open: nothing is erased by halves
            erase_session(path, "bob", key=mine)
    assert erase_session(path, "bob", key=other).entries == 2
