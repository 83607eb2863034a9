"""An agent that loops 26 calls through 4,000 tokens, is killed, resumes, and answers from what it saw at step 3."""

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from endpoint_play import EXAMPLES, example, reads_and_answers, with_endpoint
from langchain_play import BUDGET, FACT

from tests._support.scripts import run_script

pytestmark = pytest.mark.slow

LIFE = Path(__file__).parent / "langgraph_crash.py"


@pytest.mark.parametrize(("how", "calls", "stop_at"), [("sync", 26, 18), ("async", 22, 15)])
def test_killed_it_answers_from_what_it_saw_in_its_first_life(tmp_path, how, calls, stop_at):
    path = tmp_path / "run.db"
    died = subprocess.run(
        [sys.executable, LIFE, path, str(stop_at), how, str(calls)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert died.returncode == 9, died.stderr
    done = run_script(LIFE, str(path), "0", how, str(calls))  # this process knows nothing of the other
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert FACT in told["answer"]
    assert told["results"] >= calls
    assert told["most"] <= BUDGET
    assert told["verified"]
    assert told["requests"] < calls - stop_at + 5  # only what was not done
    with contextlib.closing(sqlite3.connect(path)) as database:
        sessions = database.execute("SELECT DISTINCT session FROM entries").fetchall()
    assert sessions == [("report",)]  # what it said before it died is part of the one conversation


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("langgraph_*.py")))
def test_an_example_runs_offline(name, tmp_path):
    run = example(name, folder=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "Equation 7" in run.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_one_flag_runs_the_example_with_a_real_endpoint():
    answer = reads_and_answers("papers 1 to 12", "Q_tot, the joint value of a team")
    assert "It is Equation 7." in with_endpoint("langgraph_research.py", answer)
