"""Disks that are full, that turn read-only, and copies that were torn: clear errors, and nothing acknowledged is lost."""

import contextlib
import itertools
import os
import shutil
import subprocess
import sys

import pytest

from pagein import AgentMemory, Observation, OverBudget, TaskStep
from pagein.backends.postgres.log import PostgresLog
from pagein.backends.sqlite.log import SQLiteLog
from pagein.errors import LogError, LogUnreadable, LogUnwritable
from pagein.events.entries import Pin
from pagein.events.steps import ActionStep, Image, ToolCall
from pagein.memory.export import export_session
from pagein.testing.logs import NOON
from pagein.testing.strategies import PICTURE

# Files of this process may grow no further than here, as on a full disk; then there is room again.
FULL = """
import contextlib, resource, signal, sys
from pagein import AgentMemory, TaskStep
from pagein.errors import LogError, LogUnwritable
from pagein.memory.export import export_session
from pagein.backends.open import open_log

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
memory = AgentMemory.open(sys.argv[1], budget=2_000)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (800_000, most))
acknowledged = 0
refused = 0
while refused < 3:
    try:
        memory.record(TaskStep(f"{acknowledged} " + "word " * 200))
        memory.view()
        acknowledged += 1
    except LogUnwritable as error:
        assert "Nothing was written" in str(error), error
        refused += 1
        acknowledged = len(memory.steps)
assert acknowledged > 10
assert [each.content.split()[0] for each in memory.steps] == [str(n) for n in range(acknowledged)]
assert memory.verify().ok
with contextlib.closing(open_log(sys.argv[1])) as log:
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, most))
    try:
        export_session(log, sys.argv[2])
    except LogError as error:
        assert "Nothing was written" in str(error), error
    else:
        raise AssertionError("the export fitted")
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
memory.record(TaskStep("room again"))
memory.close()
print(acknowledged)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_file_that_may_grow_no_further_keeps_what_it_has(tmp_path):
    path = tmp_path / "run.db"
    (tmp_path / "run.jsonl").write_text("before")
    done = subprocess.run(
        [sys.executable, "-c", FULL, path, tmp_path / "run.jsonl"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    with AgentMemory.open(path, budget=2_000) as memory:
        assert len(memory.steps) == int(done.stdout) + 1
        assert memory.steps[-1] == TaskStep("room again")
        assert memory.verify().ok
    assert (tmp_path / "run.jsonl").read_text() == "before"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["run.db", "run.jsonl"]


@pytest.fixture
def disk(tmp_path):
    """A small disk of this test's own, as a folder and a way to mount it again with other options."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(*options):
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", folder]
        return shutil.which("mount") and subprocess.run(command, capture_output=True, check=False).returncode == 0

    if not mount("size=2m"):
        pytest.skip("only root may mount a disk, and not everywhere")
    try:
        yield folder, lambda *options: mount("remount", *options)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def acted(memory, number):
    memory.record(ActionStep(f"Look {number}", (ToolCall(f"c{number}", "ls", "{}"),)))
    memory.record(Observation(f"c{number}", f"file {number}\n" * 400))


def act_for_ever(memory):
    for number in itertools.count():
        acted(memory, number)
        memory.view()


def test_a_disk_that_is_full_and_has_room_again(disk):
    folder, remount = disk
    memory = AgentMemory.open(folder / "run.db", budget=2_000)
    memory.record(TaskStep("Fill it."))
    with pytest.raises(LogUnwritable, match="Nothing was written"):
        act_for_ever(memory)
    before = memory.steps
    assert len(before) > 10
    with contextlib.suppress(LogUnwritable, OverBudget):  # a view that needs no compaction needs no disk
        memory.view()
    with AgentMemory.open(folder / "run.db", readonly=True, budget=2_000) as reader:
        assert reader.steps == before
        assert reader.view().tokens <= 2_000
    assert remount("size=8m")
    memory.record(TaskStep("Room again."))
    assert memory.view().tokens <= 2_000
    memory.close()
    with AgentMemory.open(folder / "run.db", budget=2_000) as again:
        # Where the disk was full between a call and its result, the call is closed by what came next.
        assert again.steps[: len(before) - 1] == before[:-1]
        assert [each.content for each in again.steps[-2:]] == [before[-1].content, "Room again."]
        assert again.verify().ok


def test_a_disk_that_turns_read_only(disk):
    folder, remount = disk
    with AgentMemory.open(folder / "run.db", budget=2_000) as memory:
        memory.record(TaskStep("Go."))
        acted(memory, 0)
        before = memory.steps
    assert remount("ro")
    with pytest.raises(LogUnwritable, match="readonly=True"):
        AgentMemory.open(folder / "run.db", budget=2_000)
    with AgentMemory.open(folder / "run.db", readonly=True, budget=500) as memory:
        assert memory.steps == before
        assert memory.view().tokens <= 500
        assert memory.verify().ok
        with pytest.raises(LogUnwritable):
            memory.record(TaskStep("No."))
    assert remount("rw")
    with AgentMemory.open(folder / "run.db", budget=2_000) as memory:
        memory.record(TaskStep("Yes."))
        assert memory.steps == (*before, TaskStep("Yes."))


# Copies


@pytest.fixture
def alive(tmp_path):
    """A log that is being written: its file, the file beside it, and what it holds."""
    path = tmp_path / "run.db"
    with contextlib.closing(SQLiteLog(path)) as log:
        log.append([Pin("0"), TaskStep((Image(PICTURE),))], after=0, at=NOON)
        log._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        log._database.execute("PRAGMA wal_autocheckpoint = 0")
        for number in range(2, 12, 2):
            log.append([Pin(str(number)), TaskStep("x" * 3_000)], after=number, at=NOON)
        yield path, list(log.read())


def copied(path, folder, wal):
    folder.mkdir()
    copy = folder / "run.db"
    shutil.copy(path, copy)
    (folder / "run.db-wal").write_bytes(wal)
    return copy


def test_a_copy_whose_wal_was_torn_holds_whole_batches(alive, tmp_path):
    path, entries = alive
    wal = (tmp_path / "run.db-wal").read_bytes()
    heads = set()
    for number, size in enumerate([0, 1, 31, 32, *range(33, len(wal), 1_371), len(wal)]):
        copy = copied(path, tmp_path / f"copy{number}", wal[:size])
        with contextlib.closing(SQLiteLog(copy)) as log:
            head = log.head()
            assert head % 2 == 0, "half a batch"
            assert list(log.read()) == entries[:head]
            assert log.verify().ok
            log.append([Pin("on")], after=head, at=NOON)
        heads.add(head)
    assert {2, len(entries)} < heads
    assert head == len(entries)


def test_a_copy_of_the_file_alone_lacks_the_newest_and_is_sound(alive, tmp_path):
    path, entries = alive
    with contextlib.closing(SQLiteLog(copied(path, tmp_path / "copy", b""))) as log:
        assert list(log.read()) == entries[:2]
        assert log.verify().ok


def test_a_wal_of_garbage_or_of_another_file_is_not_taken_in(alive, tmp_path):
    path, entries = alive
    wal = bytearray((tmp_path / "run.db-wal").read_bytes())
    wal[len(wal) // 2] ^= 1
    for number, torn in enumerate((bytes(wal), os.urandom(len(wal)), bytes(len(wal)))):
        with contextlib.closing(SQLiteLog(copied(path, tmp_path / f"copy{number}", torn))) as log:
            assert list(log.read()) == entries[: log.head()]
            assert log.head() < len(entries)
            assert log.verify().ok


def test_a_copy_of_which_half_is_missing_is_refused_or_told_and_the_original_is_whole(alive, tmp_path):
    path, entries = alive
    for share in (0.1, 0.5, 0.9):
        copy = copied(path, tmp_path / f"copy{share}", b"")
        os.truncate(copy, int(path.stat().st_size * share))
        with contextlib.suppress(LogUnreadable), contextlib.closing(SQLiteLog(copy)) as log:
            assert not log.verify().ok, share
    with contextlib.closing(SQLiteLog(path)) as log:
        assert list(log.read()) == entries


def test_a_server_whose_disk_is_full_is_told_and_used_on(postgres, schema):
    with contextlib.closing(PostgresLog(postgres.url, schema=schema)) as log:
        log.append([Pin("a")], after=0, at=NOON)
        with log._source.lease() as using:
            using.execute(f"""CREATE FUNCTION {schema}.no_room() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$""")
            using.execute(f"""CREATE TRIGGER no_room BEFORE INSERT ON {schema}.entries FOR EACH ROW
                WHEN (new.position = 2) EXECUTE FUNCTION {schema}.no_room()""")
        with pytest.raises(LogUnwritable, match=r"could not extend file.*Nothing was written"):
            log.append([TaskStep((Image(PICTURE),)), Pin("c")], after=1, at=NOON)
        with log._source.lease() as using:
            assert using.execute(f"SELECT count(*) FROM {schema}.blobs").fetchone() == (0,)
            using.execute(f"DROP TRIGGER no_room ON {schema}.entries")
        log.append([TaskStep((Image(PICTURE),)), Pin("c")], after=1, at=NOON)
        assert log.verify().entries == 3


def test_a_server_that_turns_read_only_is_told_and_used_on(postgres, schema):
    with contextlib.closing(PostgresLog(postgres.url, schema=schema)) as log:
        log.append([Pin("a")], after=0, at=NOON)
        with log._source.lease() as using:
            using.execute("SET default_transaction_read_only = on")  # as a server that became a standby
        with pytest.raises(LogUnwritable, match=r"read-only transaction.*Nothing was written"):
            log.append([Pin("b")], after=1, at=NOON)
        assert [entry.body for entry in log.read()] == [Pin("a")]
        with log._source.lease() as using:
            using.execute("SET default_transaction_read_only = off")
        log.append([Pin("b")], after=1, at=NOON)
        assert log.verify().entries == 2


def test_an_export_into_a_folder_that_is_gone_says_so(alive, tmp_path):
    path, _ = alive
    with contextlib.closing(SQLiteLog(path, readonly=True)) as log, pytest.raises(LogError, match="No such file"):
        export_session(log, tmp_path / "gone" / "run.jsonl")
