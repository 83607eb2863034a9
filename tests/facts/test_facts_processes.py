"""Two processes: a correction made in the first shapes the second, by Python and by the command line."""

import json
import subprocess
import sys

FIRST = """
import sys
from pagein import AgentMemory, FinalAnswerStep, TaskStep
with AgentMemory.open(sys.argv[1], session="monday", user="alice", budget=4_000) as memory:
    memory.record(TaskStep("My test command is make check. Never push to main."))
    memory.view()
    memory.record(FinalAnswerStep("Noted."), TaskStep("No, my test command is just test."))
"""
SECOND = """
import json, sys
from pagein import AgentMemory, TaskStep
with AgentMemory.open(sys.argv[1], session=sys.argv[2], user=sys.argv[3], budget=4_000) as memory:
    memory.record(TaskStep("Please run the tests."))
    print(json.dumps(memory.to_messages()))
"""


def python(*arguments):
    process = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=120)
    return process.stdout


def test_a_correction_in_the_first_process_shapes_the_second(tmp_path):
    db = str(tmp_path / "run.db")
    python("-c", FIRST, db)
    messages = json.loads(python("-c", SECOND, db, "tuesday", "alice"))
    assert "My test command is just test" in messages[-1]["content"]
    assert "make check" not in str(messages)
    assert messages[-1]["content"].index("Never push to main") > 0
    facts = json.loads(python("-m", "pagein", "facts", "list", db, "--user", "alice", "--json"))
    corrected = next(match for match in facts if match["category"] == "correction")
    python("-m", "pagein", "facts", "correct", db, corrected["id"], "The test command is nox", "--user", "alice")
    messages = json.loads(python("-c", SECOND, db, "wednesday", "alice"))
    assert "The test command is nox" in messages[-1]["content"]
    assert "just test" not in str(messages)
    assert len(json.loads(python("-c", SECOND, db, "tuesday too", "bob"))) == 1
    history = python("-m", "pagein", "facts", "history", db, "--user", "alice", "--json")
    assert [change["what"] for change in json.loads(history)].count("superseded") == 2
