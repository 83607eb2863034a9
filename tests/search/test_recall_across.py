"""Recall across sessions: those that were never indexed are found, so many entries a search, never another tenant's."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from pagein import ActionStep, AgentMemory, LogUnreadable, TaskStep
from pagein.backends import SqliteSearchIndex
from pagein.backends.open import open_store
from pagein.backends.sqlite.log import SQLiteLog, SQLiteStore
from pagein.memory.search_runtime import index_sessions


def record_run(path: Path, session: str, text: str, *, tenant: str = "", steps: int = 1) -> None:
    with closing(SQLiteLog(path, session=session, tenant=tenant)) as log:
        log.append([TaskStep(f"Task of {session}"), *(ActionStep(text),) * steps], after=0, at=1.0)


def sessions_found(memory: AgentMemory, query: str) -> set[str]:
    return {hit.session for hit in memory.recall(query, across=True)}


def test_a_session_that_was_never_indexed_is_found(tmp_path):
    record_run(tmp_path / "run.db", "other", "the crane receipts are in quay_7.csv")
    with AgentMemory.open(tmp_path / "run.db", session="mine", budget=4_000) as memory:
        memory.record(TaskStep("Where are the receipts?"))
        assert not memory.recall("quay_7.csv")
        assert sessions_found(memory, "quay_7.csv") == {"other"}


def test_what_another_session_recorded_since_is_found(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", session="mine", budget=4_000) as memory:
        with AgentMemory.open(tmp_path / "run.db", session="other", budget=4_000) as other:
            other.record(TaskStep("Look for the quay."))
            assert sessions_found(memory, "quay") == {"other"}
            other.record(ActionStep("It is pier_9."))
        assert sessions_found(memory, "pier_9") == {"other"}


def test_another_tenants_session_is_not(tmp_path):
    record_run(tmp_path / "run.db", "other", "pier_9", tenant="them")
    with AgentMemory.open(tmp_path / "run.db", session="mine", tenant="us", budget=4_000) as memory:
        memory.record(TaskStep("Where?"))
        assert sessions_found(memory, "pier_9") == set()


def test_an_encrypted_store_is_searched_across_too_and_nothing_of_it_is_written_in_clear(tmp_path):
    pytest.importorskip("cryptography")
    for name in ("mine", "other"):
        with AgentMemory.open(tmp_path / "run.db", session=name, budget=4_000, key=b"k" * 32) as memory:
            memory.record(TaskStep(f"pier_9 of {name}"))
    with AgentMemory.open(tmp_path / "run.db", session="mine", budget=4_000, key=b"k" * 32) as memory:
        assert sessions_found(memory, "pier_9") == {"mine", "other"}
    assert all(b"pier_9" not in path.read_bytes() for path in tmp_path.iterdir())


def test_what_is_too_much_for_one_search_waits_and_is_told(tmp_path):
    for name in ("a", "b", "c"):
        record_run(tmp_path / "run.db", name, "pier_9", steps=4)
    with closing(open_store(tmp_path / "run.db")) as store, SqliteSearchIndex(tmp_path / "run.db") as index:
        (problem,) = index_sessions(index, store, "abc", max_entries=7)
        assert index.watermarks() == {"a": 5, "b": 2}
        assert "2 of 3" in problem
        (problem,) = index_sessions(index, store, "abc", max_entries=7)
        assert "1 of 3" in problem
        assert index_sessions(index, store, "abc", max_entries=7) == ()
        assert index.watermarks() == dict.fromkeys("abc", 5)


def test_a_session_that_cannot_be_read_stands_in_nobodys_way(tmp_path):
    for name in ("a", "b"):
        record_run(tmp_path / "run.db", name, "pier_9")

    class Damaged(SQLiteStore):
        def log(self, session: str = "default") -> SQLiteLog:
            if session == "a":
                raise LogUnreadable("the page is damaged")
            return super().log(session)

    with closing(Damaged(tmp_path / "run.db")) as store, SqliteSearchIndex(tmp_path / "run.db") as index:
        (problem,) = index_sessions(index, store, "ab")
        assert "1 of 2" in problem
        assert "the page is damaged" in problem
        assert index.watermarks() == {"b": 2}
