"""Two processes: a correction made in the first shapes the second, by Python and by the command line."""

import json
import subprocess
import sys

import pytest

from pagein import AgentMemory, FinalAnswerStep, TaskStep
from pagein.cli import main

SECOND = """
import json, sys
from pagein import AgentMemory, TaskStep
with AgentMemory.open(sys.argv[1], session="tuesday", user="alice", budget=4_000) as memory:
    memory.record(TaskStep("Please run the tests."))
    print(json.dumps(memory.to_messages()))
"""


def ask(db, session, user):
    with AgentMemory.open(db, session=session, user=user, budget=4_000) as memory:
        memory.record(TaskStep("Please run the tests."))
        return memory.to_messages()


@pytest.mark.slow
def test_a_correction_in_the_first_process_shapes_the_second(tmp_path, capsys):
    def facts(command, *arguments):
        assert main(["facts", command, db, *arguments, "--user", "alice"]) == 0
        return capsys.readouterr().out

    db = str(tmp_path / "run.db")
    with AgentMemory.open(db, session="monday", user="alice", budget=4_000) as memory:
        memory.record(TaskStep("My test command is make check. Never push to main."))
        memory.view()
        memory.record(FinalAnswerStep("Noted."), TaskStep("No, my test command is just test."))
    second = subprocess.run([sys.executable, "-c", SECOND, db], capture_output=True, text=True, check=True, timeout=300)
    messages = json.loads(second.stdout)
    assert "My test command is just test" in messages[-1]["content"]
    assert "make check" not in str(messages)
    assert messages[-1]["content"].index("Never push to main") > 0
    corrected = next(fact for fact in json.loads(facts("list", "--json")) if fact["category"] == "correction")
    facts("correct", corrected["id"], "The test command is nox")
    messages = ask(db, "wednesday", "alice")
    assert "The test command is nox" in messages[-1]["content"]
    assert "just test" not in str(messages)
    assert len(ask(db, "tuesday too", "bob")) == 1
    assert [change["what"] for change in json.loads(facts("history", "--json"))].count("superseded") == 2
