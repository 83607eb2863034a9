"""Every command that takes a memory's file takes a server's address as well, and tells no password."""

import json

import pytest

from pagein import ActionStep, AgentMemory, TaskStep
from pagein.cli import main


@pytest.fixture
def database(postgres):
    """The address of a database of this test alone, with a run in it."""
    import psycopg

    if not postgres.mine:
        pytest.skip("PAGEIN_POSTGRES names a server whose databases are not ours to make")
    with psycopg.connect(postgres.url, autocommit=True) as using:
        using.execute("CREATE DATABASE commands")
        address = postgres.url.replace("@/postgres?", "@/commands?") + "&password=sesame"
        try:
            with AgentMemory.open(address, session="web", tenant="acme", budget=8_000) as memory:
                memory.record(TaskStep("Moor the barge."), ActionStep("The hawser is E4711."))
                memory.checkpoint("moored")
            yield address
        finally:
            using.execute("DROP DATABASE commands WITH (FORCE)")


def test_every_command_takes_an_address(database, tmp_path, capsys):
    def run(*arguments, code=0):
        assert main([arguments[0], *arguments[1:], "--tenant", "acme"]) == code
        told = capsys.readouterr()
        assert "sesame" not in told.out + told.err
        return told.out

    assert "Moor the barge." in run("log", database)
    assert run("log", database, "--graph").startswith("main *: 3 entries")
    assert "Moor the barge." in run("view", database, "--budget", "4000", "--messages")
    assert "E4711" in run("expand", database, "s1")
    assert "web: 3 entries, ok" in run("verify", database)
    assert run("recall", database, "hawser").startswith("s1 ")
    assert "the search index was rebuilt: 3 entries" in run("verify", database, "--rebuild-index")
    assert json.loads(run("recall", database, "hawser", "--json"))[0]["handle"] == "s1"
    assert "s3" in run("checkpoint", database, "and fast")
    assert "and fast" in run("resume", database, "--look")
    assert "Likes hawsers" in run("facts", "add", database, "Likes hawsers", "--user", "ann")
    assert "Likes hawsers" in run("facts", "list", database, "--user", "ann")
    assert "4 entries" in run("export", database, str(tmp_path / "run.jsonl"))
    assert "4 entries in the session 'copy'" in run(
        "import", str(tmp_path / "run.jsonl"), database, "--session", "copy"
    )
    assert "2 sessions" in run("log", database)
    for words in (("log",), ("view", "--budget", "4000"), ("verify",), ("resume", "--look"), ("expand", "s1")):
        told = run(words[0], database, *words[1:], "--json", *(() if words == ("log",) else ("--session", "web")))
        assert json.loads(told)


@pytest.mark.parametrize(
    "command",
    [
        ("log",),
        ("view", "--budget", "100"),
        ("expand", "s0"),
        ("verify",),
        ("recall", "x"),
        ("facts", "list"),
        ("checkpoint", "x"),
        ("resume",),
        ("export", "x"),
    ],
)
@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("postgresql://ann:sesame@127.0.0.1:1/db", "postgresql://ann@127.0.0.1:1/db"),
        ("postgresql://ann:sesame@[::1/db", "no address of a PostgreSQL database"),
        ("mysql://ann:sesame@127.0.0.1/db", "no log at mysql://"),
        (" postgresql://ann:sesame@127.0.0.1/db", "no address as it stands"),
    ],
)
def test_a_wrong_address_is_told_without_its_password(capsys, command, address, told):
    first = 2 if command[0] == "facts" else 1
    assert main([*command[:first], address, *command[first:]]) == 1
    said = capsys.readouterr().err
    assert told in said
    assert "sesame" not in said


def test_a_session_that_is_not_there_is_told_without_the_password(database, capsys):
    assert main(["log", database, "--tenant", "acme", "--session", "other"]) == 1
    assert main(["log", database]) == 1
    said = capsys.readouterr().err
    assert "no session 'other'; there are 'web'" in said
    assert "nothing is recorded there" in said
    assert "sesame" not in said
