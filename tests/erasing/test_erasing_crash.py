"""An eraser that is killed has erased everything or nothing; and one beside writers breaks nothing of theirs."""

import contextlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from pagein import AgentMemory, PageinError, TaskStep
from pagein.backends.sqlite import connection
from pagein.backends.sqlite.log import SQLiteLog

HOST = """
import sys
from pagein import AgentMemory
with AgentMemory.open(sys.argv[1], budget=2_000) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    print("began", flush=True)
    memory.erase("s0-15")
    print("done", flush=True)
    sys.stdin.readline()
"""
SECRET = "xanthippe"


@pytest.mark.slow
def test_a_killed_eraser_leaves_all_or_nothing(tmp_path):
    outcomes = set()
    chance = random.Random(7)
    run = tmp_path / "run.db"
    with AgentMemory.open(run, budget=2_000) as memory:
        for each in range(24):
            memory.record(TaskStep(f"{SECRET} number {each} " * 20))
        memory.view()
        memory.recall(SECRET)
    for number in range(3):
        path = shutil.copy(run, tmp_path / f"{number}.db")
        host = subprocess.Popen(
            [sys.executable, "-c", HOST, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert host.stdout.readline() == "ready\n"
        host.stdin.write("go\n")
        host.stdin.flush()
        assert host.stdout.readline() == "began\n"
        time.sleep(chance.random() * 0.05)
        host.send_signal(signal.SIGKILL)
        host.communicate()
        with AgentMemory.open(path, budget=2_000) as memory:
            found = memory.verify()
            assert found.ok, found.problems
            gone = [step.content == "[erased]" for step in memory.steps[:16]]
            assert len(set(gone)) == 1, "half of it was erased"
            outcomes.add(gone[0])
            hits = memory.recall(f"{SECRET} number 3")
            assert not (gone[0] and any(hit.position < 16 for hit in hits))
            memory.erase("s0-15")
            assert all(hit.position >= 16 for hit in memory.recall(f"{SECRET} number 3", limit=100))
    assert outcomes <= {True, False}


def test_writers_beside_an_eraser_lose_nothing(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path) as memory:
        memory.record(*(TaskStep(f"{SECRET} {each}") for each in range(20)))
    written, stop = [], threading.Event()

    def write():
        with contextlib.closing(SQLiteLog(path)) as log:
            while not stop.is_set() and len(written) < 400:
                with contextlib.suppress(PageinError):
                    (entry,) = log.append([TaskStep(f"kept {len(written)}")], after=log.head(), at=1.0)
                    written.append(entry)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with AgentMemory.open(path) as memory:
            for each in range(5):
                memory.erase(f"s{each}")
    finally:
        stop.set()
        writer.join()
    with contextlib.closing(SQLiteLog(path)) as log:
        found = log.verify()
        assert (found.problems, found.erased) == ((), 5)
        there = {entry.position: entry.body for entry in log.read()}
        assert all(there[each.position] == each.body for each in written)
        assert written


GOES_ON = """
import os, subprocess, sys
from pagein import AgentMemory, TaskStep
memory = AgentMemory.open(sys.argv[1], budget=2_000)
memory.record(TaskStep("xanthippe"), TaskStep("stays"))
assert memory.erase("s0").scrubbed
other = "import sys; from pagein import *; AgentMemory.open(sys.argv[1], session='other', budget=2_000).close()"
subprocess.run([sys.executable, "-c", other, sys.argv[1]], check=True)
memory.record(TaskStep("late"))
os._exit(0)  # as if it was killed
"""


def test_what_is_recorded_after_an_erasure_outlives_a_kill_where_another_program_was_there_meanwhile(tmp_path):
    run = tmp_path / "run.db"
    subprocess.run([sys.executable, "-c", GOES_ON, str(run)], check=True)
    with AgentMemory.open(run, budget=2_000) as memory:
        assert [step.content for step in memory.steps] == ["[erased]", "stays", "late"]
        assert memory.verify().ok


def test_erasing_from_many_files_leaves_few_of_them_open(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "MAX_READERS", 2)
    for number in range(5):
        with AgentMemory.open(tmp_path / f"{number}.db", budget=2_000) as memory:
            memory.record(TaskStep("xanthippe"), TaskStep("stays"))
            assert memory.erase("s0").scrubbed
    assert len(connection._readers) <= 2


def test_a_file_that_is_searched_stays_open_while_others_are(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "MAX_READERS", 1)
    monkeypatch.setattr(connection, "_CHUNK_BYTES", 100)
    files = [tmp_path / f"{number}.db" for number in range(3)]
    for file in files:
        file.write_bytes(b"xanthippe" + b" " * 300 + b"hipparchia")
    names = [b"xanthippe", b"hipparchia"]
    search = connection._words_in_file(str(files[0]), names)
    assert next(search) == names[0]
    assert [list(connection._words_in_file(str(file), names)) for file in files] == [names] * 3
    assert list(search) == names[1:]
