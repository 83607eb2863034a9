"""A store with more sessions than one process may open files: every command works, and the file is checked once."""

import contextlib
import os
import shlex
import subprocess
import sys

import pytest

from pagein.backends.sqlite.log import SQLiteLog
from pagein.cli import _output, main
from pagein.events.steps import TaskStep

SESSIONS, FILES = 90, 64


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "runs.db"
    for number in range(SESSIONS):
        with contextlib.closing(SQLiteLog(path, session=f"run {number}", synchronous="OFF")) as log:
            log.append([TaskStep(f"Paint crane {number}.")], after=0, at=1.0)
    return path


@pytest.mark.skipif(os.name != "posix", reason="needs a limit of open files")
def test_every_command_opens_few_files_at_once(db):
    db = str(db)
    commands = (
        ["log", db], ["verify", db, "--rebuild-index"], ["recall", db, "crane"], ["worker", db, "--once"],
        ["retain", db, "--older-than", "1d", "--yes"],
    )  # fmt: skip
    code = f"import sys; from pagein.cli import main; sys.exit(max(main(words) for words in {commands!r}))"
    limited = ["sh", "-c", f"ulimit -n {FILES}; exec {shlex.join([sys.executable, '-c', code])}"]
    done = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_file_is_checked_once_for_all_its_sessions(db, monkeypatch, capsys):
    checks, check = [], SQLiteLog.find_file_problems
    monkeypatch.setattr(SQLiteLog, "find_file_problems", lambda log: checks.append(log) or check(log))
    assert main(["verify", str(db)]) == 0
    assert capsys.readouterr().out.count("1 entry, ok") == SESSIONS
    assert len(checks) == 1


@pytest.mark.parametrize(
    ("words", "label", "total"),
    [
        ("recall DB crane --session 'run 1'", "index", SESSIONS * 8),
        ("verify DB --rebuild-index", "index", SESSIONS * 8),
        ("retain DB --older-than 1d --yes", "erase", SESSIONS),
        ("export DB FILE --all", "export", SESSIONS),
    ],
)
def test_a_command_that_takes_long_says_how_far_it_is(tmp_path, monkeypatch, words, label, total):
    path, bars = tmp_path / "runs.db", {}
    for number in range(SESSIONS):
        with contextlib.closing(SQLiteLog(path, session=f"run {number}", synchronous="OFF")) as log:
            log.append([TaskStep(f"Paint crane {at}.") for at in range(8)], after=0, at=1.0)

    @contextlib.contextmanager
    def bar(label, total):
        state = bars.setdefault(label, [0, total])

        def advance(position=None, total=None, *, label=None):
            state[:] = [state[0] + 1 if position is None else position, total or state[1]]

        yield advance

    monkeypatch.setattr(_output, "progress_bar", bar)
    assert main(shlex.split(words.replace("DB", str(path)).replace("FILE", str(tmp_path / "out.jsonl")))) == 0
    assert bars[label] == [total, total]


@pytest.mark.skipif(os.name != "posix", reason="closes a descriptor in a shell")
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&- <&-"])
def test_a_command_runs_where_its_streams_are_closed(db, closed):
    command = shlex.join([sys.executable, "-m", "pagein", "log", str(db)])
    done = subprocess.run(["sh", "-c", f"{command} {closed}"], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_sessions_whose_names_show_nothing_are_in_quotes(tmp_path, capsys):
    names = ("", " ", "\n", "\u202e", "web app")
    for name in names:
        with contextlib.closing(SQLiteLog(tmp_path / "runs.db", session=name, synchronous="OFF")) as log:
            log.append([TaskStep("Go.")], after=0, at=1.0)
    assert main(["log", str(tmp_path / "runs.db")]) == 0
    out = capsys.readouterr().out
    assert all(repr(name) in out for name in names[:-1])
    assert "'web app'" not in out
