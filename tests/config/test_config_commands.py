"""Commands read the configuration that holds where they are run: options over the environment over the file."""

import json

import pytest

from pagein import ActionStep, AgentMemory, Observation, TaskStep, ToolCall
from pagein.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a database, in which commands are run."""
    monkeypatch.chdir(tmp_path)
    with AgentMemory.open("run.db", budget=20_000, tenant="acme") as memory:
        memory.record(TaskStep("Count the files."))
        for at in range(30):
            call = ToolCall(f"c{at}", "ls", "{}")
            memory.record(ActionStep("Look.", (call,), (Observation(call.id, "a file\n" * 40),)))
    return tmp_path


@pytest.fixture
def run(capsys):
    def command(*arguments, code=0):
        capsys.readouterr()
        assert main([str(each) for each in arguments]) == code
        out, err = capsys.readouterr()
        return err if code else out

    return command


def test_view_is_as_the_file_says_and_the_command_line_says_more(here, run, monkeypatch):
    (here / "pagein.toml").write_text('budget = 1_500\npolicy = "window"\ntenant = "acme"\n')
    found = json.loads(run("view", "run.db", "--json"))
    assert found["limit"] == 1_500
    assert "window" in str(found["out"])
    monkeypatch.setenv("PAGEIN_BUDGET_WINDOW", "1700")
    assert json.loads(run("view", "run.db", "--json"))["limit"] == 1_700
    found = json.loads(run("view", "run.db", "--budget", 1_200, "--policy", "mask", "--json"))
    assert found["limit"] == 1_200
    assert "window" not in str(found["out"])
    assert "nothing is recorded" in run("view", "run.db", "--budget", 900, "--tenant", "other", code=1)


def test_a_file_may_be_named(here, run):
    (here / "other.toml").write_text('budget = 1_300\ntenant = "acme"\nformat = "anthropic"\n')
    found = json.loads(run("view", "run.db", "--config", "other.toml", "--messages", "--json"))
    assert found["limit"] == 1_300
    assert found["request"]["messages"][0]["role"] == "user"
    assert "--budget" in run("view", "run.db", "--tenant", "acme", code=2)  # which was not only found


@pytest.mark.parametrize(
    "command", [("view", "run.db"), ("recall", "run.db", "files"), ("facts", "list", "run.db"), ("replay", "x.json")]
)
def test_a_mistake_in_the_file_is_one_line_with_the_key_and_its_range(here, run, command):
    (here / "pagein.toml").write_text("page_in = 2\n")
    said = run(*command, code=1)
    assert said.count("\n") == 1
    assert "pagein.toml" in said
    assert "page_in is a number from 0 to 0.5" in said


def test_without_a_budget_it_is_said_where_one_belongs(here, run):
    assert "--budget, or budget in pagein.toml" in run("view", "run.db", "--tenant", "acme", code=2)


def test_facts_are_those_of_the_user_that_the_file_names(here, run, monkeypatch):
    (here / "pagein.toml").write_text('user = "alice"\nfacts.categories = ["recipe"]\n')
    run("facts", "add", "facts.db", "Bread needs salt", "--category", "recipe")
    run("facts", "add", "facts.db", "Prefers tea", "--user", "bob")
    assert "Bread needs salt" in run("facts", "list", "facts.db")
    assert "Prefers tea" not in run("facts", "list", "facts.db")
    assert "Prefers tea" in run("facts", "list", "facts.db", "--user", "bob")
    monkeypatch.setenv("PAGEIN_USER", "bob")
    assert "Prefers tea" in run("facts", "list", "facts.db")
    monkeypatch.setenv("PAGEIN_TENANT", "other")
    assert "No facts" in run("facts", "list", "facts.db")


def test_recall_looks_where_the_file_says(here, run):
    (here / "pagein.toml").write_text('tenant = "acme"\n')
    assert "Count the files" in run("recall", "run.db", "count files")
    assert "nothing is recorded" in run("recall", "run.db", "count files", "--tenant", "other", code=1)


def test_replay_is_as_the_file_says(here, run):
    (here / "pagein.toml").write_text('budget = 2_000\npolicy = "mask"\npage_in = 0\n')
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Ho"},
        {"role": "user", "content": "Go"},
    ]
    (here / "run.json").write_text(
        json.dumps([{"id": "one", "messages": [*messages, {"role": "assistant", "content": "Gone"}]}])
    )
    assert "under 2,000 tokens, mask" in run("replay", "run.json")
    assert json.loads(run("replay", "run.json", "--budget", 900, "--json"))["budget"] == 900
