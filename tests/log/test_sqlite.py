"""The SQLite log: the contract, and the file itself seen and damaged through a raw connection."""

import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from pathlib import Path

import pytest

from pagein import AgentMemory
from pagein.backends.sqlite.log import SQLiteLog
from pagein.backends.sqlite.migrations import APPLICATION_ID, MIGRATIONS
from pagein.errors import ConfigurationError, Conflict, LogBusy, LogClosed, LogTooNew, LogUnreadable, LogUnwritable
from pagein.events.entries import Observed, Pin
from pagein.events.steps import Image, Observation, TaskStep, Text
from pagein.log.base import Problem
from pagein.testing.logs import NOON, LogTests, OpenLog
from pagein.testing.strategies import ONE_OF_EACH, PICTURE


@contextlib.contextmanager
def raw(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        yield database


@contextlib.contextmanager
def opened(path, **options):
    with contextlib.closing(SQLiteLog(path, **options)) as log:
        yield log


def tasks(count):
    return [TaskStep(f"task {number}") for number in range(count)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


class TestSQLiteLog(LogTests):
    @pytest.fixture
    def open_log(self, tmp_path) -> OpenLog:
        return lambda session="default", tenant="": SQLiteLog(tmp_path / "log.db", session=session, tenant=tenant)

    def stored_bytes(self, log):
        with raw(log.path) as database:
            return database.execute(
                "SELECT (SELECT sum(length(body)) FROM entries) + (SELECT sum(length(data)) FROM blobs)"
            ).fetchone()[0]

    def tamper(self, log, position):
        with raw(log.path) as database:
            database.execute(
                "UPDATE entries SET body = replace(body, 'content\":\"', 'content\":\" ') WHERE position = ? AND session = ?",
                (position, log.session),
            )


class TestSQLiteLogInMemory(LogTests):
    durable = False

    @pytest.fixture
    def open_log(self) -> OpenLog:
        return lambda session="default", tenant="": SQLiteLog(":memory:", session=session, tenant=tenant)

    def stored_bytes(self, log):
        return log._database.execute(
            "SELECT (SELECT sum(length(body)) FROM entries) + (SELECT sum(length(data)) FROM blobs)"
        ).fetchone()[0]

    def tamper(self, log, position):
        log._database.execute(
            "UPDATE entries SET body = body || ' ' WHERE position = ? AND session = ?", (position, log.session)
        )


# Ground truth: what the rows say, without the log


def test_a_row_is_readable_json_with_a_kind_and_a_version_of_ours(path):
    with opened(path, tenant="acme", session="web") as log:
        (entry,) = log.append([TaskStep("Build it")], after=0, at=NOON)
    with raw(path) as database:
        assert database.execute("SELECT * FROM entries").fetchall() == [
            ("acme", "web", 0, NOON, "task", 1, '{"content":"Build it"}', entry.digest)
        ]


def test_every_primary_key_begins_with_tenant_and_session(path):
    SQLiteLog(path).close()
    with raw(path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        assert sorted(tables) == ["blobs", "entries"]
        for table in tables:
            columns = database.execute(f"PRAGMA table_info({table})").fetchall()
            key = sorted((column[5], column[1]) for column in columns if column[5])
            assert [name for _, name in key[:2]] == ["tenant", "session"]


def test_the_file_is_ours_in_wal_mode_and_synced_fully(path):
    with opened(path) as log:
        assert log._database.execute("PRAGMA synchronous").fetchone() == (2,)
        with raw(path) as database:
            assert database.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
            assert database.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
            assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with opened(path, synchronous="normal") as log:
        assert log._database.execute("PRAGMA synchronous").fetchone() == (1,)


def test_an_image_lies_in_the_blobs_once_under_its_hash(path):
    image = Image(PICTURE, "image/png")
    with opened(path) as log:
        log.append([TaskStep((image,)), TaskStep((image, Text("again")))], after=0, at=NOON)
        log.append([Observed(0, 0, Observation("c", (image,)))], after=2, at=NOON)
    with raw(path) as database:
        assert database.execute("SELECT digest, data FROM blobs").fetchall() == [("s2:" + image.digest, PICTURE)]
        longest = database.execute("SELECT max(length(body)) FROM entries").fetchone()[0]
        assert longest < 500


def test_close_brings_the_wal_into_the_file(path):
    with opened(path) as log:
        log.append(tasks(3), after=0, at=NOON)
    assert [each.name for each in path.parent.iterdir()] == ["run.db"]


def test_sessions_lists_this_tenants_sessions(path):
    for tenant, session in (("a", "two"), ("a", "one"), ("b", "three"), ("a", "")):
        with opened(path, tenant=tenant, session=session) as log:
            log.append(tasks(3), after=0, at=NOON)
    with opened(path, tenant="a", session="empty") as log:
        assert log.store.sessions() == ("", "one", "two")
    with opened(path, tenant="none") as log:
        assert log.store.sessions() == ()


def test_head_and_opening_do_not_scan(path):
    with opened(path) as log:
        log.append(tasks(10_000), after=0, at=NOON)
    with opened(path) as log:
        assert log.head() == 10_000
        plan = log._database.execute(
            "EXPLAIN QUERY PLAN SELECT position, digest FROM entries WHERE tenant = ? AND session = ? "
            "ORDER BY position DESC LIMIT 1",
            ("", "default"),
        ).fetchall()
    assert "SEARCH" in plan[0][3]


def test_a_reading_holds_neither_the_log_nor_a_writer(path):
    with opened(path) as log, opened(path, timeout=0) as other:
        log.append(tasks(500), after=0, at=NOON)
        reading = log.read()
        next(reading)
        other.append([Pin("meanwhile")], after=500, at=NOON)
        log.append([Pin("and here")], after=501, at=NOON)
        with raw(path) as database:  # a transaction left open would keep the WAL from being emptied
            busy, _, _ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert busy == 0
        assert sum(1 for _ in reading) == 499


# Damage: verify names it, and reading never answers short


def written(path, count=5):
    with opened(path) as log:
        log.append(tasks(count), after=0, at=NOON)


def verified(path):
    with opened(path) as log:
        return log.verify()


@pytest.mark.parametrize(
    ("change", "position", "what"),
    [
        ("UPDATE entries SET body = replace(body, 'task 2', 'task x') WHERE position = 2", 2, "entry was changed"),
        ("UPDATE entries SET at = at + 1 WHERE position = 2", 2, "entry was changed"),
        ("UPDATE entries SET kind = 'planning' WHERE position = 0", 0, "entry was changed"),
        ("UPDATE entries SET digest = replace(digest, 's2:', 's2:0') WHERE position = 2", 2, "digest was changed"),
        ("UPDATE entries SET body = body || ' ' WHERE position = 4", 4, "digest does not match"),
        ("DELETE FROM entries WHERE position = 2", 2, "entry 2 is missing"),
        ("DELETE FROM entries WHERE position IN (0, 1)", 0, "entries 0 to 1 are missing"),
        ("UPDATE entries SET position = 9 WHERE position = 4", 4, "entries 4 to 8 are missing"),
    ],
)  # fmt: skip
def test_verify_names_what_was_done_to_a_row(path, change, position, what):
    written(path)
    with raw(path) as database:
        assert database.execute(change).rowcount
    (problem,) = verified(path).problems
    assert problem.position == position
    assert what in problem.what


def test_verify_names_swapped_rows_and_rows_of_another_session(path):
    written(path)
    with opened(path, session="other") as log:
        log.append(tasks(5), after=0, at=NOON)
    with raw(path) as database:
        database.execute("UPDATE entries SET position = 99 WHERE position = 1 AND session = 'default'")
        database.execute("UPDATE entries SET position = 1 WHERE position = 3 AND session = 'default'")
        database.execute("UPDATE entries SET position = 3 WHERE position = 99")
    assert {each.position for each in verified(path).problems} == {1, 2, 3, 4}
    with raw(path) as database:
        database.execute("DELETE FROM entries WHERE session = 'default'")
        database.execute("UPDATE entries SET session = 'default'")
    assert [each.position for each in verified(path).problems] == [0]


def test_verify_names_each_of_several_changes(path):
    written(path, 300)
    with raw(path) as database:
        database.execute("UPDATE entries SET body = body || ' ' WHERE position IN (10, 11, 150, 299)")
        database.execute("UPDATE entries SET digest = 's2:' WHERE position = 200")
        database.execute("DELETE FROM entries WHERE position BETWEEN 99 AND 101")
    assert [each.position for each in verified(path).problems] == [10, 11, 99, 150, 200, 299]


def test_verify_names_an_entry_that_cannot_be_decoded(path):
    written(path)
    with raw(path) as database:
        database.execute("UPDATE entries SET body = '{\"content\":' WHERE position = 1")
        database.execute("UPDATE entries SET body = CAST(x'ff00' AS TEXT) WHERE position = 2")
        database.execute("UPDATE entries SET kind = 'dream' WHERE position = 3")
        database.execute("UPDATE entries SET version = 9 WHERE position = 4")
    problems = [(each.position, each.what) for each in verified(path).problems if "decoded" in each.what]
    assert [position for position, _ in problems] == [1, 2, 3, 4]
    assert "later release" in problems[2][1]
    with opened(path) as log:
        for position, error in ((1, LogUnreadable), (2, LogUnreadable), (3, LogTooNew), (4, LogTooNew)):
            with pytest.raises(error, match=f"entry {position}"):
                list(log.read(position, position + 1))


@pytest.mark.parametrize(
    ("change", "what"),
    [("DELETE FROM blobs", "is missing"), ("UPDATE blobs SET data = CAST(data || x'00' AS BLOB)", "was changed")],
)
def test_verify_names_the_entry_whose_blob_is_gone_or_changed(path, change, what):
    with opened(path) as log:
        log.append([Pin("a"), TaskStep((Image(PICTURE),)), Pin("b")], after=0, at=NOON)
    with raw(path) as database:
        database.execute(change)
    (problem,) = verified(path).problems
    assert problem.position == 1
    assert what in problem.what


def test_reading_past_a_missing_entry_or_blob_raises(path):
    written(path, 250)
    with raw(path) as database:
        database.execute("DELETE FROM entries WHERE position IN (120, 121)")
    with opened(path) as log:
        with pytest.raises(LogUnreadable, match="entry 120 is missing"):
            list(log.read())
        with pytest.raises(LogUnreadable, match="entry 121 is missing"):
            list(log.read(121, 122))
    with opened(path, session="other") as log:
        log.append([TaskStep((Image(PICTURE),))], after=0, at=NOON)
        with raw(path) as database:
            database.execute("DELETE FROM blobs")
        with pytest.raises(LogUnreadable, match="entry 0: the blob s2:"):
            list(log.read())


def overwrite_page_of(path, text, filler=b"\xa5"):
    """Spoils the one database page that holds the text."""
    content = bytearray(path.read_bytes())
    place = content.index(text.encode()) // 4096 * 4096
    content[place : place + 4096] = filler * 4096
    path.write_bytes(content)


def test_verify_names_the_entries_on_a_damaged_page_and_checks_the_others(path):
    written(path, 1000)
    overwrite_page_of(path, "task 500")
    found = verified(path)
    assert 900 < found.entries < 1000
    problem, *whole = found.problems
    assert whole
    assert all(each.position is None for each in whole)
    assert 450 < problem.position <= 500
    assert "cannot be read" in problem.what
    assert "malformed" in problem.what
    with opened(path) as log:
        assert sum(1 for _ in log.read(0, 300)) == 300
        with pytest.raises(LogUnreadable, match="malformed"):
            list(log.read())


def test_verify_does_not_raise_where_the_last_page_or_a_blob_is_damaged(path):
    written(path, 1000)
    overwrite_page_of(path, "task 999")
    first = verified(path)
    assert not first.ok
    assert first.problems[0] == Problem(None, first.problems[0].what)
    assert first.entries > 800
    other = path.with_name("other.db")
    with opened(other) as log:
        log.append([Pin("a"), TaskStep((Image(b"unmistakable" * 10_000),))], after=0, at=NOON)
    overwrite_page_of(other, "unmistakable")
    assert {each.position for each in verified(other).problems} == {1, None}


# Files that are not ours


def everything_in(folder):
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("readonly", [False, True])
def test_a_foreign_database_is_refused_and_left_as_it_is(path, mode, readonly):
    with raw(path) as database:
        database.execute(f"PRAGMA journal_mode = {mode}")
        database.execute("CREATE TABLE entries (a)")
    before = everything_in(path.parent)
    with pytest.raises(LogUnreadable, match="not a log of pagein"):
        SQLiteLog(path, readonly=readonly)
    assert everything_in(path.parent) == before


def test_a_foreign_database_in_use_is_refused_and_its_wal_is_not_touched(path):
    with raw(path) as database:
        database.execute("PRAGMA journal_mode = wal")
        database.execute("CREATE TABLE entries (a)")
        copy = path.with_name("copy")
        copy.mkdir()
        for each in path.parent.glob("run.db*"):
            shutil.copy(each, copy / each.name)  # as a crash would leave them
    before = (copy / "run.db").read_bytes(), (copy / "run.db-wal").read_bytes()
    with pytest.raises(LogUnreadable):
        SQLiteLog(copy / "run.db")
    assert ((copy / "run.db").read_bytes(), (copy / "run.db-wal").read_bytes()) == before


@pytest.mark.parametrize("content", [b"x", b"garbage " * 1000, b"SQLite format 3\0", b"\0" * 8192])
def test_garbage_is_refused_and_left_as_it_is(path, content):
    path.write_bytes(content)
    for readonly in (False, True):
        with pytest.raises(LogUnreadable):
            SQLiteLog(path, readonly=readonly)
    assert everything_in(path.parent) == {"run.db": content}


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_log_is_refused_and_left_as_it_is(path, share):
    written(path, 500)
    content = path.read_bytes()
    content = content[: int(len(content) * share)]
    path.write_bytes(content)
    with pytest.raises(LogUnreadable), opened(path) as log:
        list(log.read())
    assert path.read_bytes() == content


def test_a_folder_or_a_missing_folder_is_refused(path):
    with pytest.raises(LogUnreadable, match=r"is a folder; name a file in it, such as .*pagein\.db"):
        SQLiteLog(path.parent)
    with pytest.raises(LogUnwritable, match=r"there is no folder .*none; create it first"):
        SQLiteLog(path.parent / "none" / "run.db")
    for missing in (path, path.parent / "none" / "run.db"):
        with pytest.raises(LogUnreadable, match="there is no such file; check the path"):
            SQLiteLog(missing, readonly=True)
    with pytest.raises(LogUnreadable):
        SQLiteLog("a\0b")
    assert everything_in(path.parent) == {}


def test_an_empty_file_becomes_a_log(path):
    path.touch()
    written(path)
    assert verified(path).ok


def test_a_path_may_hold_any_character(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a?mode=ro#b%20c.db", "file:x.db", "\u00e9 \u2028.db", "ends in :memory:"):
        written(name)
        assert Path(name).stat().st_size > 4096
        assert verified(name).ok


def test_the_log_of_a_later_release_is_refused_and_left_as_it_is(path):
    written(path)
    with raw(path) as database:
        database.execute("PRAGMA user_version = 99")
    before = everything_in(path.parent)
    for readonly in (False, True):
        with pytest.raises(LogTooNew, match="upgrade pagein"):
            SQLiteLog(path, readonly=readonly)
    assert path.read_bytes() == before["run.db"]


def test_options_that_do_not_exist_are_refused(path):
    for options in ({"synchronous": "MOST"}, {"timeout": -1}, {"session": "a\0b"}, {"tenant": "\ud800"}):
        with pytest.raises(ConfigurationError):
            SQLiteLog(path, **options)
    assert not path.exists()


# The disk and the others on it


def test_a_locked_database_is_busy_after_the_timeout_and_usable_afterwards(path):
    written(path)
    with opened(path, timeout=0.2) as log:
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            started = time.perf_counter()
            with pytest.raises(LogBusy, match="another process"):
                log.append([Pin("a")], after=5, at=NOON)
            assert 0.15 < time.perf_counter() - started < 30
            assert log.head() == 5, "a reader does not wait for a writer"
            other.execute("ROLLBACK")
        log.append([Pin("a")], after=5, at=NOON)
        assert log.verify().entries == 6


def test_the_threads_of_a_process_write_in_turn(path, monkeypatch):
    """Nobody asks SQLite while another thread of the process writes: among 120 writers some had missed every gap for 5 s."""
    one, other, late = (
        SQLiteLog(path, session=name, timeout=wait) for name, wait in zip("abc", (60, 60, 0.2), strict=True)
    )
    asked = []
    begin = SQLiteLog._begin
    monkeypatch.setattr(SQLiteLog, "_begin", lambda log, *given: asked.append(log.session) or begin(log, *given))
    writer = threading.Thread(target=lambda: other.append([Pin("x")], after=0, at=NOON))
    with one._using(writing=True) as database, one._transaction(database):
        writer.start()
        start = time.monotonic()
        with pytest.raises(LogBusy):
            late.append([Pin("x")], after=0, at=NOON)
        assert time.monotonic() - start < 30
        assert asked == ["a", "c"]  # the last one's time was over
    writer.join()
    assert (other.head(), asked) == (1, ["a", "c", "b"])
    assert late.append([Pin("x")], after=0, at=NOON)
    for log in (one, other, late):
        log.close()


def test_opening_a_new_file_that_another_process_holds_is_busy(path):
    with raw(path) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LogBusy):
            SQLiteLog(path, timeout=0.1)
    written(path)
    assert verified(path).ok


def test_opening_waits_for_a_reader_of_a_file_whose_creation_was_cut_short(path):
    written(path)
    with raw(path) as other:
        other.execute("PRAGMA journal_mode = DELETE")  # as it is before the last step of creation
    reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM entries").fetchone()
    with pytest.raises(LogBusy):
        SQLiteLog(path, timeout=0.1)
    leaving = threading.Timer(0.2, reader.close)
    leaving.start()
    with opened(path) as log:
        assert log._database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    leaving.join()


def test_opening_tries_again_where_sqlite_does_not_wait(path, monkeypatch):
    """Seen once in 150 openings of new files by six processes at a time: busy at once, whatever the timeout."""
    refusals = []

    class Refusing(sqlite3.Connection):
        def execute(self, statement, *parameters):
            if "journal_mode" in statement and len(refusals) < 2:
                refusals.append(sqlite3.OperationalError("database is locked"))
                refusals[-1].sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise refusals[-1]
            return super().execute(statement, *parameters)

    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: connect(*args, **(options | {"factory": Refusing}))
    )
    written(path)
    assert len(refusals) == 2


def test_a_full_disk_leaves_the_log_as_it_was_and_usable(path):
    with opened(path) as log:
        log.append(tasks(3), after=0, at=NOON)
        pages = log._database.execute("PRAGMA page_count").fetchone()[0]
        log._database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(LogUnwritable, match="free some space"):
            log.append([Pin("fits"), TaskStep((Image(os.urandom(100_000)),)), Pin("does not")], after=3, at=NOON)
        assert log.head() == 3
        assert [each.body for each in log.read()] == tasks(3)
        with raw(path) as database:
            assert database.execute("SELECT count(*) FROM blobs").fetchone() == (0,)
        log._database.execute("PRAGMA max_page_count = 1000000")
        log.append([Pin("room again")], after=3, at=NOON)
        assert log.verify().entries == 4


def test_a_write_that_fails_half_way_through_a_batch_leaves_nothing(path):
    with opened(path) as log:
        log.append(tasks(3), after=0, at=NOON)
        log._database.execute(
            "CREATE TEMP TRIGGER breaks BEFORE INSERT ON entries WHEN new.position = 5 "
            "BEGIN SELECT raise(ABORT, 'the disk is gone'); END"
        )
        with pytest.raises(LogUnwritable, match="the disk is gone"):
            log.append([TaskStep((Image(PICTURE),)), *tasks(4)], after=3, at=NOON)
        with raw(path) as database:
            assert database.execute("SELECT count(*) FROM entries").fetchone() == (3,)
            assert database.execute("SELECT count(*) FROM blobs").fetchone() == (0,)
        log._database.execute("DROP TRIGGER breaks")
        log.append(tasks(4), after=3, at=NOON)
        assert log.verify().entries == 7


def test_an_interrupt_in_a_write_leaves_nothing_open(path, monkeypatch):
    with opened(path) as log:

        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(log, "_in", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.append(tasks(1), after=0, at=NOON)
        monkeypatch.undo()
        assert not log._database.in_transaction
        log.append(tasks(1), after=0, at=NOON)


@pytest.fixture
def unprivileged():
    """A folder of somebody who is not root: root may write everywhere."""
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    if root:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o700)
        shutil.rmtree(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
class TestPermissions:
    def test_a_file_that_may_not_be_written_is_refused_but_can_be_read(self, unprivileged):
        path = unprivileged / "run.db"
        written(path)
        path.chmod(0o400)
        with pytest.raises(LogUnwritable, match="readonly=True"):
            SQLiteLog(path)
        assert [each.name for each in unprivileged.iterdir()] == ["run.db"]
        with opened(path, readonly=True) as log:
            assert log.verify().entries == 5
            with pytest.raises(LogUnwritable):
                log.append([Pin("a")], after=5, at=NOON)

    def test_a_folder_that_may_not_be_written_is_read_with_readonly(self, unprivileged):
        path = unprivileged / "run.db"
        written(path)
        unprivileged.chmod(0o500)
        for target in (path, unprivileged / "new.db"):
            with pytest.raises(LogUnwritable), opened(target) as log:
                log.append([Pin("a")], after=5, at=NOON)
        with opened(path, readonly=True) as log:
            assert log.verify().entries == 5

    def test_a_file_that_may_not_be_read_is_unreadable(self, unprivileged):
        path = unprivileged / "run.db"
        written(path)
        path.chmod(0)
        with pytest.raises((LogUnreadable, LogUnwritable)):
            SQLiteLog(path)


def test_readonly_reads_beside_a_writer_and_never_writes(path):
    with opened(path) as writer, opened(path, readonly=True) as reader:
        writer.append(ONE_OF_EACH, after=0, at=NOON)
        assert [each.body for each in reader.read()] == list(ONE_OF_EACH)
        with pytest.raises(LogUnwritable):
            reader.append([Pin("a")], after=len(ONE_OF_EACH), at=NOON)
        assert reader.verify().ok
        assert reader.head() == len(ONE_OF_EACH)


# Its own life


def test_a_reading_of_a_log_that_was_closed_meanwhile_says_so(path):
    log = SQLiteLog(path)
    log.append(tasks(250), after=0, at=NOON)
    reading = log.read()
    next(reading)
    log.close()
    with pytest.raises(LogClosed):
        list(reading)
    with pytest.raises(LogClosed):
        log.head()


def test_close_does_not_wait_for_others(path):
    with opened(path) as log, raw(path) as other:
        log.append(tasks(3), after=0, at=NOON)
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM entries").fetchone()
        log.append(tasks(3), after=3, at=NOON)
        started = time.perf_counter()
        log.close()
        assert time.perf_counter() - started < 30
        other.execute("ROLLBACK")
    assert verified(path).entries == 6


def test_many_threads_and_handles_make_one_chain(path):
    def write(log, name):
        for number in range(8):
            while True:
                with contextlib.suppress(Conflict):
                    log.append([Pin(f"{name}{number}")], after=log.head(), at=NOON)
                    break

    with contextlib.ExitStack() as stack:
        threads = []
        for name in "abc":
            log = stack.enter_context(opened(path))
            threads += [threading.Thread(target=write, args=(log, name + each)) for each in "xy"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert verified(path).entries == 48
    assert verified(path).ok


def test_threads_that_open_one_new_file_at_once_all_succeed(path):
    failures = []

    def open_it(name):
        try:
            with opened(path, session=name) as log:
                log.append(tasks(1), after=0, at=NOON)
        except Exception as error:  # noqa: BLE001 - told to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=open_it, args=(str(each),)) for each in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with opened(path) as log:
        assert len(log.store.sessions()) == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pytest's own threads, from Python 3.12
def test_a_forked_process_is_refused_and_the_parents_log_goes_on(path):
    with opened(path) as log:
        log.append(tasks(1), after=0, at=NOON)
        child = os.fork()
        if not child:
            outcome = 1
            with contextlib.suppress(BaseException):
                try:
                    log.append([Pin("from the child")], after=1, at=NOON)
                except LogClosed:
                    log.close()
                    with opened(path) as own:
                        own.append([Pin("by its own handle")], after=1, at=NOON)
                    outcome = 0
            os._exit(outcome)
        assert os.waitpid(child, 0)[1] == 0
        assert [each.body for each in log.read()] == [*tasks(1), Pin("by its own handle")]
        log.append([Pin("a")], after=2, at=NOON)
    assert verified(path).ok


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such rights")
def test_only_the_owner_reads_a_new_file(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=1_000) as memory:
        memory.record(TaskStep("Hello."))
        assert {file.name: oct(file.stat().st_mode & 0o777) for file in tmp_path.glob("run.db*")} == dict.fromkeys(
            (file.name for file in tmp_path.glob("run.db*")), "0o600"
        )
