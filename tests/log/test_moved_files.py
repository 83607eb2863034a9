"""A store's file that is moved, deleted or replaced while it is open; a working folder that changes; names no file can have."""

import asyncio
import os
from pathlib import Path

import pytest

from pagein import AgentMemory, AsyncAgentMemory, LogError, LogUnwritable, TaskStep
from pagein.backends.sqlite.graph_tables import GraphTables
from pagein.errors import LogUnreadable
from pagein.memory.erasure.sessions import erase_session

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows keeps an open file in its place")


def delete(path):
    for name in (path, f"{path}-wal", f"{path}-shm"):
        Path(name).unlink()


def move(path):
    path.rename(f"{path}.1")


def move_its_folder(path):
    path.parent.rename(path.parent.with_name("elsewhere"))


def replace(path):
    other = path.with_name("other.db")
    with AgentMemory.open(other, budget=4_000) as memory:
        memory.record(TaskStep("from a backup"))
    other.replace(path)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs" / "run.db"


@pytest.mark.parametrize("change", [delete, move, move_its_folder, replace])
def test_nothing_is_acknowledged_that_would_be_written_into_a_file_that_is_gone(path, change):
    memory = AgentMemory.open(path, budget=4_000, user="ann")
    memory.record(TaskStep("a"))
    change(path)
    for call in (
        lambda: memory.record(TaskStep("b")),
        lambda: memory.pin("c"),
        lambda: memory.erase("s0"),
        memory.fork,
    ):
        with pytest.raises(LogUnwritable, match=r"moved, deleted or replaced .* open it again"):
            call()
    assert change is replace or not path.exists()
    assert [step.content for step in memory.steps] == ["a"]
    assert "moved, deleted or replaced" in str(memory.verify().problems)
    memory.close()


def test_a_backup_that_is_copied_over_an_open_file_is_noticed(path):
    with AgentMemory.open(path) as memory:
        memory.record(*(TaskStep(f"{number} {'x' * 500}") for number in range(200)))
    backup = path.read_bytes()
    memory = AgentMemory.open(path)
    for number in range(400):
        memory.record(TaskStep(f"{number} {'y' * 900}"))
    with path.open("wb") as file:  # as cp does it: the file stays, and its content changes
        file.write(backup)
    for _ in range(2):
        with pytest.raises(LogUnwritable, match=r"another file was copied over this one .* copy it again"):
            memory.record(TaskStep("b"))
    assert "copied over" in str(memory.verify().problems)
    memory.close()


def test_a_file_that_became_smaller_as_another_memory_erased_is_written_on(path):
    memory = AgentMemory.open(path)
    memory.record(TaskStep("a"))
    with AgentMemory.open(path, session="other") as other:
        other.record(*(TaskStep(f"{number} {'x' * 900}") for number in range(800)))
    size = path.stat().st_size
    memory.record(TaskStep("b"))
    erase_session(path, "other")
    assert path.stat().st_size < size / 2
    memory.record(TaskStep("c"))
    assert memory.verify().ok
    memory.close()


def test_an_async_memory_and_a_graph_refuse_it_too(path):
    tables = GraphTables(path)

    async def record_twice():
        async with AsyncAgentMemory.open(path, budget=4_000) as memory:
            await memory.record(TaskStep("a"))
            move(path)
            with pytest.raises(LogUnwritable):
                await memory.record(TaskStep("b"))

    asyncio.run(record_twice())
    with pytest.raises(LogUnwritable), tables.writing():
        pass
    tables.close()


def test_a_file_that_was_moved_is_opened_in_its_new_place(path):
    memory = AgentMemory.open(path, budget=4_000)
    memory.record(TaskStep("a"))
    memory.close()
    move(path)
    with AgentMemory.open(f"{path}.1", budget=4_000) as moved:
        moved.record(TaskStep("b"))
        assert [step.content for step in moved.steps] == ["a", "b"]


def test_a_relative_path_is_of_the_folder_in_which_it_was_opened(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with AgentMemory.open("run.db", budget=4_000, user="ann") as memory:
        memory.record(TaskStep("I prefer trains to planes."))
        elsewhere = path.parent / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        assert memory.recall("trains")
        assert memory.facts.list()
        memory.fork(name="other")
        memory.switch("other")
        memory.record(TaskStep("b"))
        assert memory.erase("s0").entries == 1
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + ".db", "nul\0.db"])
def test_a_name_that_no_file_can_have_is_an_error_of_ours(tmp_path, name):
    with pytest.raises((LogUnreadable, LogUnwritable)):
        AgentMemory.open(tmp_path / name, budget=4_000)
    with pytest.raises(LogError):
        AgentMemory.open(f"{tmp_path}/{name}", budget=4_000, readonly=True)
