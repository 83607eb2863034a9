"""The file of a search index: damaged, foreign, of another release, killed while writing, shared with other processes."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from pagein.backends import SqliteSearchIndex
from pagein.backends.sqlite import search as sqlite_tables
from pagein.backends.sqlite.log import SQLiteLog
from pagein.backends.sqlite.migrations import INDEX_TABLES
from pagein.errors import LogBusy, LogError, LogUnreadable
from pagein.events.steps import TaskStep
from pagein.search import Query
from pagein.search import passages as ids
from pagein.testing.search_indexes import RUN, CountingEmbedder, hit_handles, record_bodies


@contextlib.contextmanager
def raw(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0.2)) as database:
        yield database


@pytest.fixture
def path(tmp_path):
    """A log's file, with the run in it."""
    path = tmp_path / "run.db"
    with contextlib.closing(SQLiteLog(path)) as log:
        record_bodies(*RUN, log=log)
    return path


@pytest.fixture
def log(path):
    with contextlib.closing(SQLiteLog(path)) as log:
        yield log


def entries_of(path):
    with raw(path) as database:
        return database.execute("SELECT * FROM entries ORDER BY position").fetchall()


def everything(index):
    """The hits of every query of a few."""
    return [index.search(query) for query in ("crane receipts", "E4711", "tests passed", "bollard", "8 May 2023")]


# Derived


def test_an_index_beside_the_log_leaves_the_log_as_it_was(path, log):
    before = entries_of(path)
    with SqliteSearchIndex(path) as index:
        index.catch_up(log)
        assert hit_handles(index, "E4711")[0] == "s3.0"
        index.forget([3])
        index.rebuild()
    assert entries_of(path) == before
    assert log.verify().ok
    record_bodies(TaskStep("and on it goes"), log=log)


def test_rebuilt_it_is_equal_to_one_that_grew(path, log):
    with SqliteSearchIndex(path) as index:
        index.catch_up(log)
        grown = everything(index)
        index.rebuild()
        assert index.watermark() == 0
        index.catch_up(log)
        assert everything(index) == grown
    with SqliteSearchIndex() as in_memory:
        in_memory.catch_up(log)
        assert everything(in_memory) == grown


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE archive_about SET value = '0' WHERE name = 'version'",
        "DELETE FROM archive_about",
        "DROP TABLE archive_passages",
        "DROP TABLE archive_words",
        "DROP TABLE archive_about; CREATE TABLE archive_about (something TEXT)",
        "DROP TABLE archive_words; CREATE TABLE archive_words (terms TEXT)",
        "DROP TABLE archive_sizes; CREATE VIEW archive_sizes AS SELECT 1",
        *(f"DROP TABLE {name}" for name in INDEX_TABLES if name not in ("archive_passages", "archive_words")),
    ],
)
def test_an_index_that_is_old_foreign_or_in_pieces_is_built_anew_at_opening(path, log, damage):
    with SqliteSearchIndex(path) as index:
        index.catch_up(log)
        whole = everything(index)
    with raw(path) as database:
        database.executescript(damage)
    with SqliteSearchIndex(path) as index:
        assert index.watermark() == 0
        index.catch_up(log)
        assert everything(index) == whole
    assert log.verify().ok


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE archive_passages",
        "DROP TABLE archive_words",
        "DROP TABLE archive_sessions",
        "DELETE FROM archive_words_data",
        "UPDATE archive_words_data SET block = x'00ff00ff00ff'",
        "DROP TABLE archive_words_data",
    ],
)
def test_an_index_that_breaks_while_open_is_built_anew_from_the_logs_it_knows(path, log, damage):
    with SqliteSearchIndex(path) as index:
        index.catch_up(log)
        whole = everything(index)
        with raw(path) as database:
            database.executescript(damage)
        index.catch_up(log)
        hits = everything(index)
        if hits != whole:  # emptied without a trace: to build it anew is the user's to ask
            assert damage.startswith("DELETE")
            index.rebuild()
            index.catch_up(log)
            hits = everything(index)
        assert hits == whole
    assert log.verify().ok


def test_broken_without_a_log_to_build_it_from_it_says_so(path):
    with SqliteSearchIndex(path) as index:
        index.index(record_bodies(*RUN).read())
        with raw(path) as database:
            database.execute("DROP TABLE archive_passages")
        with pytest.raises(LogUnreadable, match="catch_up"):
            index.search("crane")
        assert index.search("crane") == ()


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0 but no more" * 100])
def test_a_file_that_is_not_ours_stays_as_it_is(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(LogUnreadable):
        SqliteSearchIndex(path)
    assert path.read_bytes() == content


def test_another_database_stays_as_it_is(tmp_path):
    path = tmp_path / "other.db"
    with raw(path) as database:
        database.execute("CREATE TABLE archive_words (mine TEXT)")
    before = path.read_bytes()
    with pytest.raises(LogUnreadable, match="not a log of pagein"):
        SqliteSearchIndex(path)
    assert path.read_bytes() == before


# One transaction


def test_rows_and_watermark_come_together_or_not_at_all(path, log, monkeypatch):
    with SqliteSearchIndex(path) as index:
        index.index(list(log.read())[:2])
        before = everything(index)
        monkeypatch.setattr(
            sqlite_tables,
            "_MOVE",
            "UPDATE archive_sessions SET position = ?, digest = ?, next = abs(-9223372036854775807 - min(1, ?)) WHERE tenant = ? AND session = ?",
        )
        with pytest.raises(LogError):
            index.index(log.read())  # the sum overflows
        monkeypatch.undo()
        assert index.watermark() == 2
        assert everything(index) == before


KILLED = """
import os, signal, sys
from pagein.backends import SqliteSearchIndex
from pagein.backends.sqlite import search as sqlite_tables
from pagein.backends.sqlite.log import SQLiteLog
at = int(sys.argv[2])
done = 0
real = sqlite_tables.SqliteIndexWriter.add_passages
def dying(writer, indexed, passages):
    global done
    real(writer, indexed, passages)
    done += 1
    if done == at:
        os.kill(os.getpid(), signal.SIGKILL)
sqlite_tables.SqliteIndexWriter.add_passages = dying
index = SqliteSearchIndex(sys.argv[1])
for entry in SQLiteLog(sys.argv[1]).read():
    index.index([entry])
"""


@pytest.mark.parametrize("at", [1, 4])
def test_killed_between_rows_and_watermark_it_goes_on_where_it_was(path, log, at):
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, path, str(at)], capture_output=True, check=False, timeout=300
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with SqliteSearchIndex(path) as index, SqliteSearchIndex() as whole:
        assert index.watermark() == at - 1
        assert index.catch_up(log) == len(RUN) - at + 1
        whole.catch_up(log)
        assert everything(index) == everything(whole)


# Several processes

WORKER = """
import sys
from pagein.backends import SqliteSearchIndex
from pagein.backends.sqlite.log import SQLiteLog
index = SqliteSearchIndex(sys.argv[1], timeout=30)
log = SQLiteLog(sys.argv[1], session="long")
print(index.catch_up(log, session="long"))
"""


def test_two_processes_index_each_entry_once(tmp_path):
    path = tmp_path / "run.db"
    with contextlib.closing(SQLiteLog(path, session="long")) as log:
        log.append([TaskStep(f"sounding {number} fathoms") for number in range(300)], after=0, at=1.0)
        workers = [
            subprocess.Popen([sys.executable, "-c", WORKER, path], stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]
        counts = [int(worker.communicate(timeout=300)[0]) for worker in workers]
        assert sum(counts) == 300
        with SqliteSearchIndex(path, session="long") as index, SqliteSearchIndex(session="long") as whole:
            whole.catch_up(log)
            query = Query("sounding 250 fathoms", limit=50)
            assert index.search(query) == whole.search(query)


def test_a_file_that_is_held_is_busy_and_read_on(path, log):
    with SqliteSearchIndex(path, timeout=0.05) as index:
        index.index(list(log.read())[:4])
        with raw(path) as database:
            database.execute("BEGIN IMMEDIATE")
            with pytest.raises(LogBusy):
                index.catch_up(log)
            assert hit_handles(index, "E4711")[0] == "s3.0", "a writer is in nobody's way who searches"
            database.execute("ROLLBACK")
        assert index.catch_up(log) == len(RUN) - 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_opens_its_own(path):
    with SqliteSearchIndex(path) as index:
        child = os.fork()
        if child == 0:
            try:
                index.search("crane")
            except LogError:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# Size


def test_ids_of_a_tenant_and_of_a_session_are_ranges_that_do_not_meet():
    first, last = sqlite_tables.tenant_range(3)
    session = sqlite_tables.session_key(3, 7)
    low, high = ids.range_of_session(session)
    assert first < low < high < last
    assert sqlite_tables.tenant_range(4)[0] == last + 1
    assert sqlite_tables.tenant_range(sqlite_tables.MAX_TENANTS - 1)[1] < 2**63
    assert ids.session_of(ids.passage_id(session, ids.MAX_PASSAGES)) == session


def test_vectors_are_on_disk_and_only_signs_in_memory(tmp_path):
    with SqliteSearchIndex(tmp_path / "a.db", embedder=CountingEmbedder(64)) as index:
        index.catch_up(record_bodies(*[TaskStep(f"berth {number}") for number in range(50)]))
        assert index.embed_pending(40) == 10
        index.search("berth 7")
        assert index._store.vectors._signs.nbytes == 40 * 8
        with raw(tmp_path / "a.db") as database:
            assert database.execute("SELECT sum(length(vector)) FROM archive_vectors").fetchone() == (40 * 128,)


def test_a_hit_shows_half_a_character_as_requests_do():
    with SqliteSearchIndex() as index:
        index.catch_up(record_bodies(TaskStep("the marigold \ud800 stands \ud83d\ude00 here")))
        assert index.search("marigold")[0].text == "the marigold \ufffd stands \U0001f600 here"


def test_numpy_is_loaded_with_the_first_embedder_only(tmp_path):
    code = textwrap.dedent(
        """
        import sys
        from pagein.backends import SqliteSearchIndex
        from pagein.backends.memory import InMemoryLog
        from pagein.events.steps import TaskStep
        log = InMemoryLog()
        log.append([TaskStep("mooring lines")], after=0, at=1.0)
        with SqliteSearchIndex() as index:
            index.catch_up(log)
            assert index.search("moored")
        assert not {"numpy", "onnxruntime", "openai", "rich"} & sys.modules.keys()
        """
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, cwd=tmp_path)
