"""verify() over a history that another hand cut short or replaced, and over a damaged file."""

import contextlib
import random
import sqlite3

import pytest

from pagein import ActionStep, AgentMemory, TaskStep
from pagein.backends.sqlite.log import SQLiteLog
from pagein.errors import LogError


def filled(path, word="word"):
    memory = AgentMemory.open(path, budget=4_000)
    for number in range(30):
        memory.record(TaskStep(f"go on {number}"), ActionStep(f"{number} " + f"{word} " * 40))
    return memory


def change(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for each in statements:
            database.execute(each)
    database.close()


@pytest.mark.parametrize("first", [0, 50, 59])
def test_rows_deleted_behind_an_open_memory_are_missed(tmp_path, first):
    path = str(tmp_path / "run.db")
    with filled(path) as memory:
        change(path, f"DELETE FROM entries WHERE position >= {first}")
        found = memory.verify()
        assert not found.ok
        assert found.problems[0].what == f"60 entries were known, {first} are there"
        assert memory.report().tokens > 0


def test_a_history_that_was_replaced_is_noticed(tmp_path):
    path, other = str(tmp_path / "run.db"), str(tmp_path / "other.db")
    filled(other, "other").close()
    with filled(path) as memory:
        change(
            path,
            "DELETE FROM entries",
            f"ATTACH '{other}' AS other",
            "INSERT INTO main.entries SELECT * FROM other.entries",
        )
        assert "replaced" in memory.verify().problems[0].what


def test_what_others_recorded_is_no_problem(tmp_path):
    path = str(tmp_path / "run.db")
    with filled(path) as memory, AgentMemory.open(path, budget=4_000) as other:
        other.record(TaskStep("more"))
        assert memory.verify().ok
        assert len(memory.steps) == 61


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_raises_errors_of_ours_only_and_is_never_called_sound_and_shorter(tmp_path, seed):
    chance, path = random.Random(seed), tmp_path / "run.db"
    filled(str(path)).close()
    data = bytearray(path.read_bytes())
    for _ in range(chance.randrange(1, 40)):
        data[chance.randrange(100, len(data))] = chance.randrange(256)
    path.write_bytes(data)
    try:
        log = SQLiteLog(path)
        try:
            if log.verify().ok:
                assert [entry.position for entry in log.read()] == list(range(60))
            log.store.sessions()
        finally:
            log.close()
        AgentMemory.open(str(path), budget=4_000).close()
    except LogError:
        pass
