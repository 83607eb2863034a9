"""No command prints what a terminal obeys, or what turns the order in which text is read; --json has all of it."""

import json
import logging
import re
import shutil

import pytest

from pagein.cli import main
from pagein.cli._output import LogFormatter
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall
from pagein.memory.agent_memory import AgentMemory

EVIL = "\x1b[31mred\x1b]0;title\x07 \x9b2J \u202egnp.exe\u202c \u2066x\u2069 \r\x08 needle"
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

READING = (
    "log {db}", "log {db} --graph", "view {db} --budget 900", "view {db} --messages --budget 900", "expand {db} s0", "expand {db} s1",
    "expand {db} s1.0", "verify {db}", "ledger {db}", "recall {db} needle", "resume {db} --look", "facts {db}",
    "facts search {db} needle", "facts history {db} {fact}", "facts export {db}", "retain {db} --older-than 1d --dry-run",
    "replay {runs} --db {new}", "bench faults {runs}", "bench savings {runs}", "bench talk {runs}",
)  # fmt: skip
WRITING = (
    "checkpoint {db} name", "checkpoint {db} EVIL", "resume {db}", "export {db} {folder}/EVIL.jsonl", "erase {db} s1 --yes --reason EVIL",
    "facts add {db} EVIL", "facts correct {db} {fact} EVIL", "facts remove {db} {fact} --reason EVIL", "worker {db} --once",
)  # fmt: skip
WRONG = (
    "EVIL", "log {folder}/EVIL", "expand {db} EVIL", "recall {db} x --session EVIL", "recall {db} x --role EVIL", "import {db} {new}",
    "replay {folder}/EVIL", "export {db} {new} --format EVIL", "serve {db} --upstream EVIL", "config --config {folder}/EVIL",
    "resume {db} --name EVIL", "facts remove {db} EVIL", "bench EVIL", "run EVIL",
)  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    call = ToolCall("c1", f"bash{EVIL}", json.dumps({"command": EVIL, EVIL: 1}))
    with AgentMemory.open(folder / "run.db", budget=900) as memory:
        memory.record(
            TaskStep(f"Always use {EVIL}. {EVIL}"),
            ActionStep(EVIL, (call,)),
            Observation("c1", f"{EVIL}\n" * 80, "error"),
        )
        memory.pin(EVIL)
        memory.facts.add(EVIL)
        for number in range(6):
            memory.record(ActionStep(f"{EVIL} {number}"), TaskStep(f"{number} {EVIL} " * 9))
        memory.to_messages()
    rows = [
        {"role": "user", "content": EVIL},
        {"role": "assistant", "content": EVIL},
        {"role": "user", "content": EVIL},
    ]
    (folder / "runs.jsonl").write_text(json.dumps({"id": EVIL, "messages": rows}) + "\n")
    return folder


@pytest.mark.parametrize("line", [*READING, *WRITING, *WRONG])
def test_no_command_prints_what_a_terminal_obeys(recorded, tmp_path, capsys, line):
    db = recorded / "run.db"
    if line in WRITING:
        db = shutil.copy(db, tmp_path)
    places = {"db": db, "runs": recorded / "runs.jsonl", "new": tmp_path / "new", "folder": tmp_path, "fact": "fa0"}
    main([word.format(**places).replace("EVIL", EVIL) for word in line.split()])
    out, err = capsys.readouterr()
    assert out or err
    assert FORBIDDEN.search(out + err) is None


def test_json_has_all(recorded, capsys):
    assert main(["expand", str(recorded / "run.db"), "s0", "--json"]) == 0
    out, _ = capsys.readouterr()
    assert out.isascii()
    assert EVIL in json.loads(out)["text"]


def test_no_warning_prints_it():
    record = logging.LogRecord("pagein", logging.WARNING, "", 0, "%s", (EVIL,), None)
    assert FORBIDDEN.search(LogFormatter().format(record)) is None
