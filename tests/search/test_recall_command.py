"""``pagein recall``: the file's index is brought up to date, and what is found is printed."""

import contextlib
import json
import os
import sqlite3

import pytest

from pagein.backends.sqlite.log import SQLiteLog
from pagein.cli import main
from pagein.events.steps import TaskStep
from pagein.testing.search_indexes import RUN, record_bodies


@pytest.fixture
def db(tmp_path):
    """A file with two sessions."""
    path = tmp_path / "run.db"
    with contextlib.closing(SQLiteLog(path, session="one")) as log:
        record_bodies(*RUN, log=log)
    with contextlib.closing(SQLiteLog(path, session="two")) as log:
        record_bodies(TaskStep("The crane is painted."), log=log)
    return path


def recall_json(capsys, *arguments):
    assert main(["recall", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_hits_are_shown_with_their_scores_and_why(db, capsys):
    assert main(["recall", str(db), "E4711"]) == 0
    printed = capsys.readouterr().out
    assert "one s3.0" in printed
    assert "words 1.00" in printed
    assert "words: e4711, 4711" in printed
    assert "ReceiptError" in printed


def test_options_say_where_to_look(db, capsys):
    assert {hit["session"] for hit in recall_json(capsys, db, "crane")} == {"one", "two"}
    assert [hit["handle"] for hit in recall_json(capsys, db, "crane", "--session", "two")] == ["s0"]
    assert len(recall_json(capsys, db, "crane", "--limit", 2)) == 2
    assert {hit["role"] for hit in recall_json(capsys, db, "crane quay", "--role", "tool")} == {"tool"}
    assert recall_json(capsys, db, "crane", "--since", "2020-01-01") == []
    assert recall_json(capsys, db, "crane", "--until", "1970-01-01")
    assert recall_json(capsys, db, "crane", "--until", "1970-01-01T00:00") == []


def test_what_was_recorded_since_is_found(db, capsys):
    assert recall_json(capsys, db, "sextant") == []
    with contextlib.closing(SQLiteLog(db, session="two")) as log:
        record_bodies(TaskStep("Where is the sextant?"), log=log)
    assert recall_json(capsys, db, "sextant")[0]["handle"] == "s1"


def test_nothing_found_says_so(db, capsys):
    assert main(["recall", str(db), "zeppelin"]) == 0
    assert capsys.readouterr().out == "No hits.\n"


def test_a_file_that_is_held_by_a_writer_is_searched_all_the_same(db, capsys, monkeypatch):
    from pagein.backends import SqliteSearchIndex

    real = SqliteSearchIndex.__init__
    monkeypatch.setattr(SqliteSearchIndex, "__init__", lambda self, *a, **o: real(self, *a, **{**o, "timeout": 0.05}))
    with contextlib.closing(sqlite3.connect(db, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        assert recall_json(capsys, db, "E4711")[0]["handle"] == "s3.0"


@pytest.mark.parametrize(
    "arguments",
    [
        ["{db}", "crane", "--role", "cook"],
        ["{db}", "crane", "--since", "whenever"],
        ["{db}", "crane", "--limit", "0"],
        ["{db}", "crane", "--session", "three"],
        ["{db}", "crane", "--embedder", "cook"],
        ["missing.db", "crane"],
        [os.sep, "crane"],
    ],
)
def test_what_cannot_be_is_one_line(db, capsys, arguments):
    assert main(["recall", *(argument.format(db=db) for argument in arguments)]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("pagein: ")
    assert printed.err.count("\n") == 1
