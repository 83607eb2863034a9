"""Recall across sessions: those that were never indexed are found, so many entries a search, never another tenant's."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from pagein import ActionStep, AgentMemory, LogUnreadable, TaskStep
from pagein.backends import SqliteArchive
from pagein.backends.sqlite.log import SQLiteLog
from pagein.log.base import Log
from pagein.memory.session_indexing import gather


def recorded(path: Path, session: str, said: str, *, tenant: str = "", steps: int = 1) -> None:
    with closing(SQLiteLog(path, session=session, tenant=tenant)) as log:
        log.append([TaskStep(f"Task of {session}"), *(ActionStep(said),) * steps], after=0, at=1.0)


def found(memory: AgentMemory, query: str) -> set[str]:
    return {hit.session for hit in memory.recall(query, across=True)}


def test_a_session_that_was_never_indexed_is_found(tmp_path):
    recorded(tmp_path / "run.db", "other", "the crane receipts are in quay_7.csv")
    with AgentMemory.open(tmp_path / "run.db", session="mine", budget=4_000) as memory:
        memory.record(TaskStep("Where are the receipts?"))
        assert not memory.recall("quay_7.csv")
        assert found(memory, "quay_7.csv") == {"other"}


def test_what_another_session_recorded_since_is_found(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", session="mine", budget=4_000) as memory:
        with AgentMemory.open(tmp_path / "run.db", session="other", budget=4_000) as other:
            other.record(TaskStep("Look for the quay."))
            assert found(memory, "quay") == {"other"}
            other.record(ActionStep("It is pier_9."))
        assert found(memory, "pier_9") == {"other"}


def test_another_tenants_session_is_not(tmp_path):
    recorded(tmp_path / "run.db", "other", "pier_9", tenant="them")
    with AgentMemory.open(tmp_path / "run.db", session="mine", tenant="us", budget=4_000) as memory:
        memory.record(TaskStep("Where?"))
        assert found(memory, "pier_9") == set()


def test_an_encrypted_store_is_searched_across_too_and_nothing_of_it_is_written_in_clear(tmp_path):
    pytest.importorskip("cryptography")
    for name in ("mine", "other"):
        with AgentMemory.open(tmp_path / "run.db", session=name, budget=4_000, key=b"k" * 32) as memory:
            memory.record(TaskStep(f"pier_9 of {name}"))
    with AgentMemory.open(tmp_path / "run.db", session="mine", budget=4_000, key=b"k" * 32) as memory:
        assert found(memory, "pier_9") == {"mine", "other"}
    assert all(b"pier_9" not in each.read_bytes() for each in tmp_path.iterdir())


def test_what_is_too_much_for_one_search_waits_and_is_told(tmp_path):
    for name in ("a", "b", "c"):
        recorded(tmp_path / "run.db", name, "pier_9", steps=4)
    with (
        closing(SQLiteLog(tmp_path / "run.db", session="a")) as log,
        SqliteArchive(tmp_path / "run.db") as archive,
    ):

        def opened(name: str) -> Log:
            return SQLiteLog(tmp_path / "run.db", session=name)

        (told,) = gather(archive, log, "abc", opened, most=7)
        assert archive.watermarks() == {"a": 5, "b": 2}
        assert "2 of 3" in told
        (told,) = gather(archive, log, "abc", opened, most=7)
        assert "1 of 3" in told
        assert gather(archive, log, "abc", opened, most=7) == ()
        assert archive.watermarks() == dict.fromkeys("abc", 5)


def test_a_session_that_cannot_be_read_stands_in_nobodys_way(tmp_path):
    for name in ("a", "b"):
        recorded(tmp_path / "run.db", name, "pier_9")

    def opened(name: str) -> Log:
        if name == "a":
            raise LogUnreadable("the page is damaged")
        return SQLiteLog(tmp_path / "run.db", session=name)

    with (
        closing(SQLiteLog(tmp_path / "run.db", session="b")) as log,
        SqliteArchive(tmp_path / "run.db") as archive,
    ):
        (told,) = gather(archive, log, "ab", opened)
        assert "1 of 2" in told
        assert "the page is damaged" in told
        assert archive.watermarks() == {"b": 2}
