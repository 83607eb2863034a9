"""What every command shares: narrow terminals, the tenant of the environment, closed pipes, and words that are missing."""

import json
import subprocess
import sys
from subprocess import PIPE

import pytest

from pagein import ActionStep, AgentMemory, Image, Observation, SystemPromptStep, TaskStep, Text, ToolCall
from pagein.formats import FORMATS

PICTURE = Image(b"\x89PNG\r\n\x1a\n" + bytes(400), "image/png")
NAME = "a-session-whose-name-is-longer-than-a-narrow-terminal"


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "runs.db"
    with AgentMemory.open(path, session=NAME, user="alice", budget=2_000) as memory:
        memory.facts.add("Deploys with the command make deploy-everything-to-staging", category="knowledge")
        memory.record(SystemPromptStep("You look."), TaskStep("What is on the screen? Never touch the database."))
        for number in range(12):
            call = ToolCall(f"c{number}", "screenshot", "{}")
            memory.record(ActionStep("I look.", (call,)), Observation(call.id, (Text("a line\n" * 90), PICTURE)))
            memory.to_messages()
    with AgentMemory.open(path, session="another", budget=2_000) as memory:
        memory.record(TaskStep("Hello."))
    with AgentMemory.open(path, session="hers", tenant="acme", budget=2_000, clock=lambda: 1e9) as memory:
        memory.record(TaskStep("Never pay twice."))
        memory.to_messages()
    return path


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize(
    "command", ["view", "cost", "config", "facts list", "facts history"], ids=lambda command: command.replace(" ", "-")
)
def test_a_narrow_terminal_has_each_name_and_number_whole(run, db, monkeypatch, command, width):
    arguments = (
        [] if command == "config" else [db, "--user", "alice"] if "facts" in command else [db, "--session", NAME]
    )

    def words_at(columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        code, out, _ = run(*command.split(), *arguments)
        assert code == 0
        return {word.rstrip(";:") for word in out.split()} - {"-"}

    wide, narrow = words_at(200), words_at(width)
    assert {word for word in wide - narrow if "─" not in word} == set()
    assert "…" not in "".join(narrow)


@pytest.mark.parametrize(
    "command",
    [
        "log", "view", "cost", "expand s0", "verify", "ledger", "recall pay", "checkpoint it", "resume --look", "worker --once",
        "export out.jsonl", "erase s0 --yes", "retain --older-than 1d --dry-run", "inspect --export out.html", "watch --most 1",
    ],
)  # fmt: skip
def test_every_command_takes_the_tenant_of_the_environment(run, db, monkeypatch, tmp_path, command):
    name, *others = command.split()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAGEIN_TENANT", "acme")
    code, out, _ = run(name, db, *others)
    assert (code, "0 sessions" in out) == (0, False)  # without a tenant there are two sessions, and none is named


@pytest.mark.parametrize("form", FORMATS)
def test_view_prints_the_messages_of_every_format(run, db, form):
    options = ("--session", NAME, "--budget", 20_000, "--format", form, "--messages")
    code, out, _ = run("view", db, *options)
    assert code == 0
    for words in ("You look.", "What is on the screen?", "screenshot", "a line"):
        assert words in out
    assert "AAAAAAAA" * 30 not in out
    assert json.loads(run("view", db, *options, "--json")[1])["request"]


def test_an_option_that_changes_no_sent_request_is_refused(run, db):
    code, out, err = run("view", db, "--session", NAME, "--format", "gemini", "--user", "alice")
    assert (code, out) == (1, "")
    assert "--user, --format" in err
    assert "add --budget" in err


def test_a_missing_word_is_named_with_an_example(run):
    assert run("export", "run.db") == (
        2, "", "pagein: export needs FILE. For example: pagein export run.db run.jsonl. Try --help.\n"
    )  # fmt: skip


def test_what_was_changed_in_the_ledger_is_said(run, db):
    code, out, _ = run("ledger", db, "--session", NAME, "--pin", "s1", "--mark", "s2")
    assert code == 0
    assert out.startswith("pinned s1, marked high s2\n")
    code, _, err = run("ledger", db, "--session", NAME, "--mark", "s3")
    assert code == 1
    assert "a result is marked with its step" in err


@pytest.mark.slow
@pytest.mark.parametrize("command", ["view", "log", "--help"])
def test_a_closed_pipe_ends_every_command_with_the_same_code(db, command):
    words = (
        [command]
        if command == "--help"
        else [command, str(db), "--session", NAME, *(["--json"] if command == "log" else [])]
    )
    with subprocess.Popen([sys.executable, "-m", "pagein", *words], stdout=PIPE, stderr=PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_a_session_in_place_of_recorded_messages_names_the_export_that_is_read(run, db, tmp_path):
    assert run("export", db, tmp_path / "run.jsonl", "--session", NAME)[0] == 0
    code, _, err = run("replay", tmp_path / "run.jsonl", "--budget", 2_000)
    assert code == 1
    assert "pagein export --format openai" in err
    assert run("export", db, tmp_path / "run.json", "--session", NAME, "--format", "openai")[0] == 0
    assert run("replay", tmp_path / "run.json", "--budget", 2_000)[0] == 0


def test_an_erasure_blames_no_other_process_for_words_that_stay(run, tmp_path):
    with AgentMemory.open(tmp_path / "r.db", budget=4_000) as memory:
        memory.record(TaskStep("Deploy quarterly-report-generator to atlas."), ActionStep("I look."))
        memory.record(TaskStep("Deploy quarterly-report-generator to atlas."))
    code, out, _ = run("erase", tmp_path / "r.db", "s0", "--yes")
    assert code == 0
    assert "the same lines stay in s2" in out
    assert "another program" not in out
    code, out, _ = run("worker", tmp_path / "r.db", "--once")
    assert "1 entries" not in out


def test_view_of_a_store_without_its_key_asks_for_the_key(run, tmp_path):
    with AgentMemory.open(tmp_path / "sealed.db", budget=4_000, key=bytes(32)) as memory:
        memory.record(TaskStep("My name is Xanthippe."))
        memory.to_messages()
    code, _, err = run("view", tmp_path / "sealed.db")
    assert code == 1
    assert "PAGEIN_KEY" in err
