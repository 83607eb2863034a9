"""The commands in process: what they print, where, and with which exit code."""

import builtins
import contextlib
import importlib
import inspect
import json
import os
import re
import sqlite3
import subprocess
import sys
from itertools import pairwise

import pytest

from benchmarks.synthetic_run import opening, turns
from pagein.events.entries import Mark
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.host_memory import HostMemory

MESSAGES = [*opening(), *(message for turn in turns(12) for message in turn.messages)]


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.jsonl"
    lines = ({"id": name, "messages": MESSAGES} for name in ("first", "second"))
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(str(path), session="one", budget=2_000) as memory:
        memory.record_messages(MESSAGES, whole=False)
        memory.to_messages()
    return path


def is_one_line(err):
    return err.startswith("pagein: ") and err.count("\n") == 1 and "Traceback" not in err


def test_help_says_every_command_in_80_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run("--help")
    assert code == 0
    for name in ("demo", "replay", "log", "view", "expand", "verify", "bench"):
        assert name in out
        code, page, _ = run(name, "--help")
        assert code == 0
        assert max(map(len, page.splitlines())) <= 80
        assert name == "bench" or "For example:" in page


@pytest.mark.parametrize("module", ["pagein.cli._app", "benchmarks.__main__"])
def test_no_line_of_a_help_text_is_broken_twice(module):
    def texts_of(app):
        for command in (app[name] for name in app if not name.startswith("-")):
            if command.default_command is None:
                yield from texts_of(command)
            else:
                yield inspect.getdoc(command.default_command)

    texts = list(texts_of(importlib.import_module(module).build_app()))
    assert len(texts) > 15
    lines = [pair for text in texts for pair in pairwise(text.splitlines())]
    assert [line for line, after in lines if len(line) > 80 and after.strip() and line[0] != " "] == []


def test_a_command_loads_nothing_of_the_others():
    modules = ("asyncio", "email", "pagein.cli.inspect", "pagein.context.ledger.english", "pagein.facts.store")
    code = f"import sys; from pagein.cli import main; main(['config']); assert not {{*{modules}}} & {{*sys.modules}}"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_the_help_of_all_commands_compiles_no_patterns_of_what_people_say():
    code = "import sys; from pagein.cli import main; main(['--help']); assert 'pagein.context.ledger.english' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_the_version_is_that_of_the_package(run):
    from pagein import __version__

    assert run("--version") == (0, f"pagein {__version__}\n", "")


@pytest.mark.slow
def test_demo_ends_in_a_table_and_in_commands_that_work(run, tmp_path):
    path = tmp_path / "demo.db"
    code, out, err = run("demo", "--db", path)
    assert (code, err) == (0, "")
    for fact in ("tokens sent without pagein", "that a step used", "everything retrievable", "yes", "begins with"):
        assert fact in out
    assert "\x1b" not in out
    further = [line.split()[1:] for line in out.splitlines() if line.startswith("  pagein ")]
    assert {line[0] for line in further} == {"log", "view", "expand", "verify"}
    assert all(run(*line)[0] == 0 for line in further)


@pytest.mark.slow
def test_demo_in_json(run, tmp_path):
    code, out, _ = run("demo", "--json", "--budget", 4000, "--db", tmp_path / "d.db")
    found = json.loads(out)
    assert code == 0
    assert found["over_budget"] == 0
    assert found["highest"] <= 4_000
    assert found["retrievable"]["ok"]


@pytest.mark.slow
def test_demo_does_not_append_to_an_earlier_one(run, tmp_path):
    assert run("demo", "--db", tmp_path / "d.db")[0] == 0
    code, _, err = run("demo", "--db", tmp_path / "d.db")
    assert code == 1
    assert "recorded there already" in err
    assert is_one_line(err)


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_replay_has_one_row_a_run_and_totals(run, runs, tmp_path, form):
    path = tmp_path / "out.db"
    code, out, err = run("replay", runs, "--budget", 2000, "--format", form, "--db", path)
    assert (code, err) == (0, "")
    assert [name in out for name in ("first", "second", "all")] == [True] * 3
    assert "0 over budget, 0 with orphans, 0 illegal" in out
    assert "2 sessions" in run("log", path)[1]


def test_replay_in_json(run, runs):
    code, out, _ = run("replay", runs, "--budget", 2000, "--policy", "mask", "--json")
    found = json.loads(out)
    assert code == 0
    assert [each["id"] for each in found["runs"]] == ["first", "second"]
    assert found["totals"]["requests"] == 24


def test_replay_that_cannot_fit_says_so_and_fails(run, runs):
    code, out, err = run("replay", runs, "--budget", 20)
    assert code == 1
    assert "OverBudget" in err
    assert "raised" in out


def test_log_lists_entries_with_their_handles(run, db):
    code, out, _ = run("log", db)
    assert code == 0
    assert re.match(r"s0     \d{4}-\d\d-\d\d \d\d:\d\d +\d+ system ", out)
    assert "bash(" in out
    assert "compaction" in out
    entries = json.loads(run("log", db, "--json")[1])
    assert [each["handle"] for each in entries] == [f"s{at}" for at in range(len(entries))]


def test_log_says_when_a_step_was_and_how_many_tokens_it_has(run, tmp_path):
    db, call = tmp_path / "run.db", ToolCall("a", "read", '{"path": "x.py"}')
    with AgentMemory.open(db, clock=lambda: 1_700_000_000.0) as memory:
        memory.record(TaskStep("Go."), ActionStep("I read.", (call,)), Observation("a", "heron " * 5_000))
        memory.mark("s1", "high")
    lines = run("log", db)[1].splitlines()
    assert all(line.split()[1:3] == ["2023-11-14", "22:13"] for line in lines)
    tokens = [each["tokens"] for each in json.loads(run("log", db, "--json")[1])]
    assert [line.split()[3] for line in lines] == [str(tokens[0]), str(tokens[1]), f"{tokens[2] / 1_000:.1f}k", "mark"]
    assert tokens[2] > 5_000 > tokens[1] > tokens[0] > 1
    assert tokens[3] is None


def test_log_of_several_sessions_lists_them(run, db):
    with AgentMemory.open(str(db), session="two", budget=2_000) as memory:
        memory.record_messages(MESSAGES[:3], whole=False)
    assert "one" in run("log", db)[1]
    assert json.loads(run("log", db, "--json")[1])["sessions"][1]["session"] == "two"
    assert run("log", db, "--session", "two")[1].startswith("s0 ")
    code, _, err = run("view", db, "--budget", 2000)
    assert code == 1
    assert "2 sessions, choose one with --session: 'one', 'two'" in err
    assert is_one_line(err)
    assert run("verify", db)[1].count("ok") == 2


@pytest.mark.parametrize("budget", [1_200, 2_000, 100_000])
def test_view_accounts_for_every_token_and_writes_nothing(run, db, budget):
    before = db.read_bytes()
    code, out, _ = run("view", db, "--budget", budget, "--json")
    found = json.loads(out)
    assert code == 0
    assert sum(line["tokens"] for line in found["lines"]) == found["tokens"] <= budget
    assert sum(found["by_tier"].values()) == found["tokens"]
    assert db.read_bytes() == before


def test_view_prints_tables_or_the_request(run, db):
    assert "out of the view" in run("view", db, "--budget", 1500)[1]
    assert "── user" in run("view", db, "--budget", 1500, "--messages")[1]
    for form in ("openai", "anthropic"):
        assert run("view", db, "--budget", 1500, "--messages", "--format", form)[0] == 0
        shown = json.loads(run("view", db, "--budget", 1500, "--messages", "--json", "--format", form)[1])
        assert shown["request"]["messages"][0]["role"] in ("system", "user")


def test_expand_prints_the_original(run, db):
    code, out, _ = run("expand", db, "s2.0")
    assert code == 0
    assert out.rstrip("\n") == MESSAGES[3]["content"].rstrip("\n")


def test_expand_in_json_has_the_steps_too(run, db):
    code, out, _ = run("expand", db, "s1", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["handle"] == "s1"
    assert [each["kind"] for each in found["steps"]] == ["task"]
    assert found["text"]


def test_expand_prints_what_no_encoding_can_say(run, tmp_path):
    path = tmp_path / "odd.db"
    with AgentMemory.open(str(path), budget=2_000) as memory:
        memory.record_messages([{"role": "user", "content": "a\ud83d\0b\n[red]x[/red]"}])
    assert run("expand", path, "s0") == (0, "a\\ud83db\n[red]x[/red]\n", "")
    assert run("log", path)[0] == 0
    assert run("view", path, "--budget", 500)[0] == 0


def test_verify_fails_where_the_record_was_changed(run, db):
    assert run("verify", db)[0] == 0
    with contextlib.closing(sqlite3.connect(db)) as raw, raw:
        raw.execute("UPDATE entries SET body = replace(body, 'careful', 'careless') WHERE position = 0")
    raw.close()
    code, out, _ = run("verify", db)
    assert code == 1
    assert "DAMAGED" in out
    found = json.loads(run("verify", db, "--json")[1])
    assert not found["one"]["ok"]
    assert found["one"]["problems"]


def test_bench_faults_has_pagein_beside_the_baselines(run, runs):
    code, out, _ = run("bench", "faults", runs, "--budget", 2000, "--limit-runs", 1)
    assert code == 0
    for word in ("pagein", "head+recency", "masking", "clipping", "grounded", "Everything retrievable: yes"):
        assert word in out
    assert max(map(len, out.splitlines())) <= 80 or not os.environ.get("COLUMNS")
    found = json.loads(run("bench", "faults", runs, runs, "--budget", 2000, "--json")[1])
    assert found["files"][str(runs)]["pagein"]["requests"] == 24


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["replay", "x.jsonl"],
        ["replay", "x.jsonl", "--budget", "many"],
        ["replay", "x.jsonl", "--budget", "5", "--nonsense"],
        ["view"],
        ["expand", "x.db"],
        ["bench", "nonsense"],
    ],
)
def test_usage_is_exit_code_2(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert is_one_line(err)


def test_words_that_a_command_does_not_take_are_named(run):
    code, _, err = run("log", "x.db", "main", "last week")
    assert code == 2
    assert "More words than the command takes: 'main' 'last week'. Try --help." in err


def test_a_benchmark_of_the_repository_is_told_with_its_command(run):
    code, out, err = run("bench", "degrade")
    assert (code, out) == (2, "")
    assert "run python -m benchmarks degrade in a checkout" in err
    assert is_one_line(err)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["replay", "{dir}/none.jsonl", "--budget", "5"], "No such file"),
        (["replay", "{bad}", "--budget", "5"], "bad.jsonl:1: not JSON"),
        (["replay", "{runs}", "--budget", "-5"], "must be 1 token or more, not -5"),
        (["replay", "{runs}", "--budget", "5", "--policy", "x"], "no policy 'x'"),
        (["replay", "{runs}", "--budget", "5", "--format", "x"], "unknown format 'x'"),
        (["replay", "{runs}", "--budget", "500", "--db", "{bad}"], "bad.jsonl"),
        (["bench", "faults", "--budget", "5"], "at least one file"),
        (["bench", "faults", "{runs}", "--budget", "0"], "must be 1 token"),
        (["bench", "faults", "{runs}", "--budget", "5", "--limit-runs", "0"], "--limit-runs"),
        (["log", "{dir}/none.db"], "no such file"),
        *(
            (words, "is a folder")
            for words in (
                ["log", "{dir}"],
                ["serve", "{dir}", "--upstream", "http://127.0.0.1:9"],
                ["mcp", "{dir}"],
                ["facts", "list", "{dir}"],
            )
        ),
        (["log", "{bad}"], "bad.jsonl"),
        (["log", "{db}", "--session", "x"], "no session 'x'"),
        (["view", "{db}", "--budget", "10"], "smallest view"),
        (["view", "{db}", "--budget", "-1"], "must be 1 token"),
        (["view", "{db}", "--budget", "500", "--format", "x"], "unknown format"),
        (["expand", "{db}", "s999"], "no handle 's999'"),
        (["expand", "{db}", "nonsense"], "no handle"),
        (["verify", "{bad}"], "bad.jsonl"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_1(run, tmp_path, runs, db, arguments, what):
    bad = tmp_path / "bad.jsonl"
    bad.write_text("not json, and no database\n")
    names = {"dir": tmp_path, "bad": bad, "runs": runs, "db": db}
    code, out, err = run(*(each.format(**names) for each in arguments))
    assert (code, out) == (1, "")
    assert what in err
    assert is_one_line(err)


def test_a_newer_and_a_foreign_database_are_refused(run, db, tmp_path):
    with contextlib.closing(sqlite3.connect(db)) as raw, raw:
        raw.execute("PRAGMA user_version = 999")
    raw.close()
    code, _, err = run("log", db)
    assert code == 1
    assert is_one_line(err)
    foreign = tmp_path / "foreign.db"
    with contextlib.closing(sqlite3.connect(foreign)) as raw, raw:
        raw.execute("CREATE TABLE t (x)")
    raw.close()
    before = foreign.read_bytes()
    assert run("verify", foreign)[0] == 1
    assert run("demo", "--db", foreign)[0] == 1
    assert foreign.read_bytes() == before


@pytest.mark.slow
def test_the_module_runs_and_a_closed_pipe_is_silent(db):
    command = f"{sys.executable} -m pagein log {db} | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "s", "")


def test_no_facts_says_which_users_have_some(run, tmp_path):
    db = str(tmp_path / "facts.db")
    assert run("facts", "add", db, "Prefers pytest", "--user", "alice")[0] == 0
    empty = run("facts", "list", db)[1]
    assert "facts of the user alice: --user NAME" in " ".join(empty.split())
    assert run("facts", "list", db, "--user", "alice")[1].startswith("1 fact\n")
    assert run("facts", "list", db, "--user", "alice", "--category", "goal")[1] == "No facts.\n"
    assert run("facts", "list", db, "--category", "food")[0] == 1
    assert "facts of" not in run("facts", "list", db, "--tenant", "other")[1]


def test_log_and_view_take_a_user(run, db, monkeypatch):
    with AgentMemory.open(str(db), session="one", user="alice") as memory:
        memory.facts.add("Deploys on Friday", category="constraint")
    assert run("log", db, "--user", "alice")[1].split()[3:] == ["stated", "constraint:", "Deploys", "on", "Friday"]
    code, _, err = run("log", db, "--user", "bob")
    assert code == 1
    assert "There are facts of the user alice: --user NAME." in err
    assert "Deploys on Friday" not in run("view", db, "--budget", 4000, "--messages")[1]
    assert "Deploys on Friday" in run("view", db, "--budget", 4000, "--messages", "--user", "alice")[1]
    monkeypatch.setenv("PAGEIN_USER", "alice")
    assert "Deploys on Friday" in run("view", db, "--budget", 4000, "--messages")[1]


def test_the_version_loads_no_command(tmp_path):
    code = (
        "import sys; from pagein.cli import main; main(['--version'])\n"
        "heavy = {'cyclopts', 'rich', 'msgspec', 'asyncio', 'pagein.memory.agent_memory'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True)


def test_the_tenant_of_the_environment_is_that_of_every_command(run, tmp_path, monkeypatch):
    path = tmp_path / "shared.db"
    with AgentMemory.open(str(path), tenant="acme", budget=2_000) as memory:
        memory.record_messages(MESSAGES[:2])
    assert run("log", path)[0] == 1
    monkeypatch.setenv("PAGEIN_TENANT", "acme")
    for command in (["log"], ["verify"], ["resume", "--look"], ["view", "--budget", "2000"]):
        assert run(command[0], path, *command[1:])[0] == 0, command
    assert run("log", path, "--tenant", "other")[0] == 1


def test_a_step_is_marked_from_the_command_line(run, db):
    for importance in ("low", "high", "normal"):
        assert run("ledger", db, "--mark", "s4", "--importance", importance)[0] == 0
        with HostMemory.open(str(db), session="one", budget=2_000, readonly=True) as memory:
            *_, mark = (entry.body for entry in memory.log().read() if isinstance(entry.body, Mark))
        assert mark == Mark(4, importance)
    code, _, err = run("ledger", db, "--mark", "s9999")
    assert code == 1
    assert "s9999" in err


def test_ctrl_c_in_a_command_has_the_exit_code_of_an_interrupt(run, db, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("pagein.cli._stores.list_sessions", interrupt)
    assert run("log", db)[::2] == (130, "")


def test_ctrl_c_while_the_commands_load_is_no_traceback(run, db, monkeypatch):
    def interrupt(name, *rest, __import__=builtins.__import__):
        if name == "pagein.cli._app":
            raise KeyboardInterrupt
        return __import__(name, *rest)

    monkeypatch.setattr(builtins, "__import__", interrupt)
    assert run("log", db)[0] == 130
