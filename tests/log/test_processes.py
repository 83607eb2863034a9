"""Processes that are killed, and processes that race: what was acknowledged stays, and each position has one winner."""

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pagein.backends.sqlite.log import SQLiteLog
from pagein.events.entries import Pin
from pagein.events.steps import Image, TaskStep, Text
from pagein.testing.machine import LOCAL, chosen_profile

# Batch after batch, each told on stdout once append() has returned. What stands at a position depends on it alone.
WRITER = """
import sys
from pagein.backends.sqlite.log import SQLiteLog
from test_processes import batch_at

log = SQLiteLog(sys.argv[1])
head = log.head()
while True:
    head += len(log.append(batch_at(head), after=head, at=float(head)))
    print(head, flush=True)
"""

# Two of these try for each position once, without trying again.
RACER = """
import sys
from pagein.errors import Conflict
from pagein.events.entries import Pin
from pagein.backends.sqlite.log import SQLiteLog

log = SQLiteLog(sys.argv[1], timeout=20)
print("ready", flush=True)
sys.stdin.readline()
for position in range(int(sys.argv[3])):
    while log.head() < position:
        pass
    try:
        log.append([Pin(sys.argv[2])] , after=position, at=0.0)
    except Conflict as refused:
        assert (refused.expected, refused.head > position) == (position, True)
        print("lost", position)
    else:
        print("won", position)
"""


def body_at(position):
    if position % 5 == 3:
        return TaskStep((Text(f"look {position}"), Image(bytes([position % 7]) * 50_000, "image/png")))
    return TaskStep(f"entry {position}")


def batch_at(head):
    return [body_at(position) for position in range(head, head + 1 + head % 4)]


def heads():
    """Every head at which no batch is half written."""
    head = 0
    while True:
        yield head
        head += 1 + head % 4


@contextlib.contextmanager
def child(script, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    with subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def killed_writer(path, delay, *, wait):
    """Runs a writer, kills it, and gives the last head that it was told was durable."""
    with child(WRITER, path) as writer:
        acknowledged = int(writer.stdout.readline()) if wait else 0
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        told, _ = writer.communicate()
    lines = [line for line in told.splitlines(keepends=True) if line.endswith("\n")]
    return int(lines[-1]) if lines else acknowledged


def check_killed_writers(path, rounds, seed):
    chance = random.Random(seed)
    acknowledged = 0
    for number in range(rounds):
        wait = number % 4 != 1
        # Some die while they open the file; the start of Python itself takes most of that time.
        delay = chance.uniform(0, 0.1) if wait else chance.uniform(0.05, 0.4)
        acknowledged = max(acknowledged, killed_writer(path, delay, wait=wait))
        with contextlib.closing(SQLiteLog(path)) as log:
            head = log.head()
            assert head >= acknowledged, "what was acknowledged is gone"
            assert head in {each for each, _ in zip(heads(), range(head + 1), strict=False)}, "half a batch"
            checked = log.verify()
            assert (checked.problems, checked.entries) == ((), head)
            assert all(entry.body == body_at(entry.position) for entry in log.read())
    assert acknowledged > 0
    with contextlib.closing(SQLiteLog(path)) as log:
        assert log._database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


needs_kill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")


@pytest.mark.slow
@needs_kill
def test_a_killed_writer_leaves_what_it_acknowledged(tmp_path):
    check_killed_writers(tmp_path / "run.db", 4 if chosen_profile() is LOCAL else 50, seed=1)


def killed_at(statement, path):
    """Forks a process that opens the log and appends two batches, killed before its n-th statement; its status."""
    process = os.fork()
    if process:
        return os.waitpid(process, 0)[1]
    left = statement

    class Doomed(sqlite3.Connection):
        def execute(self, *arguments):
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().execute(*arguments)

    connect = sqlite3.connect
    sqlite3.connect = lambda *arguments, **options: connect(*arguments, **(options | {"factory": Doomed}))
    try:
        log = SQLiteLog(path)
        for _ in range(2):
            log.append([body_at(3), *map(body_at, range(3))], after=log.head(), at=0.0)
        log.close()
    except BaseException:  # noqa: BLE001 - the parent is told by the status
        os._exit(1)
    os._exit(0)


OTHER_SQLITE = """
import os, signal, sqlite3, sys, threading, time
from pagein.backends.sqlite.log import SQLiteLog

def use_sqlite():
    while True:
        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE numbers (number)")
        database.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in range(500)])
        database.close()

logs = [SQLiteLog(f"{sys.argv[1]}/{number}.db") for number in range(5)]
for _ in range(3):
    threading.Thread(target=use_sqlite, daemon=True).start()
for _ in range(150):
    child = os.fork()
    if child == 0:
        os._exit(0)
    until = time.monotonic() + 60
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            print("a child waits", flush=True)
            os._exit(1)
        time.sleep(0.001)
print("all ended", flush=True)
os._exit(0)
"""


@needs_kill
def test_a_child_that_opens_nothing_ends_whatever_threads_of_the_parent_do_in_sqlite(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", OTHER_SQLITE, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout == "all ended\n"


@pytest.mark.slow
@needs_kill
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork beside pytest's own threads, from Python 3.12
def test_killed_before_any_statement_it_leaves_whole_batches(tmp_path):
    statements, heads_seen = 0, set()
    while True:
        statements += 1
        path = tmp_path / f"{statements}.db"
        status = killed_at(statements, path)
        with contextlib.closing(SQLiteLog(path)) as log:
            heads_seen.add(log.head())
            assert log.verify().ok
            log.append([Pin("after the crash")], after=log.head(), at=0.0)
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
    assert statements > 20
    assert heads_seen == {0, 4, 8}


def test_of_two_processes_one_wins_each_position(tmp_path):
    path, count = tmp_path / "run.db", 40
    with child(RACER, path, "left", count) as left, child(RACER, path, "right", count) as right:
        racers = {"left": left, "right": right}
        for racer in racers.values():
            assert racer.stdout.readline() == "ready\n"
        for racer in racers.values():
            racer.stdin.write("go\n")
            racer.stdin.flush()
        told = {name: racer.communicate()[0].splitlines() for name, racer in racers.items()}
        assert [racer.returncode for racer in racers.values()] == [0, 0]
    results = {name: {int(line.split()[1]): line.split()[0] for line in lines} for name, lines in told.items()}
    with contextlib.closing(SQLiteLog(path)) as log:
        assert log.head() == count
        for entry in log.read():
            winners = [name for name, result in results.items() if result[entry.position] == "won"]
            assert [entry.body] == [Pin(name) for name in winners]
        assert log.verify().ok
