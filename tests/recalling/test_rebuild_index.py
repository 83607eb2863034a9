"""``pagein verify --rebuild-index``: the index comes out of the record, and the record stays as it was."""

import json
import sqlite3

import pytest

from pagein.backends.sqlite.log import SQLiteLog
from pagein.cli import main
from pagein.events.steps import ActionStep, TaskStep
from pagein.memory.agent_memory import AgentMemory


@pytest.fixture
def db(tmp_path):
    """Two sessions in one file, both indexed."""
    path = tmp_path / "run.db"
    for name in ("one", "two"):
        with AgentMemory.open(path, session=name, budget=10_000) as memory:
            memory.record(TaskStep(f"Deploy {name}."), ActionStep(f"The gateway of {name} is quokka_{name}."))
            assert memory.recall("quokka")
    return path


def changed(path, *statements):
    """The file with something done to it behind our back."""
    database = sqlite3.connect(path)
    for each in statements:
        database.execute(each)
    database.commit()
    database.close()


def rows(path, table="archive_passages"):
    """How many rows a table of the index has."""
    database = sqlite3.connect(path)
    (found,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
    database.close()
    return found


def digests(path):
    """The record as it is."""
    return {
        name: [entry.digest for entry in SQLiteLog(path, session=name, readonly=True).read()] for name in ("one", "two")
    }


def test_an_index_that_lost_rows_is_whole_again_for_every_session(db, capsys):
    whole, record = rows(db), digests(db)
    changed(db, "DELETE FROM archive_passages")
    assert rows(db) == 0
    assert main(["verify", str(db), "--rebuild-index"]) == 0
    assert "the search index was rebuilt: " in capsys.readouterr().out
    assert rows(db) == whole
    assert digests(db) == record
    for name in ("one", "two"):
        with AgentMemory.open(db, session=name, budget=10_000) as memory:
            assert f"quokka_{name}" in memory.recall("quokka")[0].text


def test_one_session_verified_leaves_none_without_an_index(db, capsys):
    whole = rows(db)
    assert main(["verify", str(db), "--session", "one", "--rebuild-index"]) == 0
    assert "two" not in capsys.readouterr().out
    assert rows(db) == whole


def test_without_the_option_the_file_is_only_read(db):
    changed(db, "DELETE FROM archive_passages")
    assert main(["verify", str(db)]) == 0
    assert rows(db) == 0


def test_a_damaged_record_builds_no_index(db, capsys):
    changed(
        db,
        "DELETE FROM archive_passages",
        "UPDATE entries SET body = replace(body, 'gateway', 'getaway') WHERE session = 'two'",
    )
    assert main(["verify", str(db), "--rebuild-index", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["two"]["ok"] is False
    assert rows(db) == 0
