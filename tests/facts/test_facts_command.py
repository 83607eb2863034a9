"""``pagein facts`` and ``python -m benchmarks facts``, from the outside."""

import gzip
import json

import pytest

from benchmarks.facts import CONFIDENCE, OURS, REFIT, bench_facts, bench_speed_of_facts, read_asked
from pagein import ActionStep, AgentMemory, Observation, TaskStep, ToolCall
from pagein.cli import main
from pagein.tokens.encodings import Encoding


def bench(arguments):
    from benchmarks.__main__ import main

    return main(arguments)


@pytest.fixture
def db(tmp_path):
    return str(tmp_path / "run.db")


@pytest.fixture
def run(capsys, db):
    def command(*arguments, code=0):
        capsys.readouterr()
        assert main(["facts", *arguments]) == code
        out, err = capsys.readouterr()
        return err if code else out

    return command


def test_a_fact_goes_its_way(run, db, tmp_path):
    run("add", db, "Prefers pytest", "--category", "preference", "--user", "alice", "--confidence", "0.9")
    (fact,) = json.loads(run("list", db, "--user", "alice", "--json"))
    assert (fact["content"], fact["confidence"], fact["author"]) == ("Prefers pytest", 0.9, "user")
    assert "Prefers pytest" in run(db, "list", "--user", "alice")
    run("correct", db, fact["id"], "Prefers unittest", "--user", "alice", "--reason", "moved")
    (match,) = json.loads(run("search", db, "which unittest?", "--user", "alice", "--json"))
    assert match["fact"]["content"] == "Prefers unittest"
    assert "moved" in run("history", db, match["fact"]["id"], "--user", "alice")
    exported = run("export", db, "--user", "alice")
    run("remove", db, match["fact"]["id"], "--user", "alice")
    assert "No facts" in run("list", db, "--user", "alice")
    file = tmp_path / "facts.json"
    file.write_text(exported)
    assert "Prefers unittest" in run("import", db, str(file), "--user", "bob")
    assert json.loads(run("list", db, "--user", "alice", "--json")) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("list", "{db}x"), "no such file"), (("add", "{db}", " "), "empty"), (("add", "{db}", "x y", "--confidence", "7"), "0 to 1"),
        (("remove", "{db}", "fu99", "--user", "alice"), "fu99"), (("correct", "{db}", "nonsense", "x y"), "nonsense"),
        (("import", "{db}", "{db}"), ""), (("import", "{db}", "nowhere.json"), "nowhere.json"), (("add", "{db}", "x y", "--scope", "user"), "user"),
        (("list", "{db}", "--scope", "planet"), "planet"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(run, db, arguments, expected):
    run("add", db, "Here already", "--user", "alice")
    output = run(*(argument.format(db=db) for argument in arguments), code=1)
    assert output.count("\n") == 1
    assert expected in output
    assert len(json.loads(run("list", db, "--user", "alice", "--json"))) == 1


def test_logs_of_facts_are_no_sessions_of_runs_but_are_verified(capsys, db):
    main(["facts", "add", db, "Prefers tabs", "--user", "alice"])
    capsys.readouterr()
    assert main(["log", db]) == 1
    assert "nothing is recorded" in capsys.readouterr().err
    with AgentMemory.open(db, budget=1_000) as memory:
        memory.record(TaskStep("Hello."))
    assert main(["log", db]) == 0
    assert "Hello." in capsys.readouterr().out
    assert main(["log", db, "--session", "pagein:facts:user:alice"]) == 0
    assert "stated      context: Prefers tabs" in capsys.readouterr().out
    assert main(["verify", db]) == 0
    assert "pagein:facts:user:alice: 1 entry, ok" in capsys.readouterr().out


LOCOMO = [
    {
        "sample_id": "c1",
        "conversation": {
            "speaker_a": "Ann", "speaker_b": "Bob", "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": f"D1:{at}", "text": f"I like {what} a lot these days, {at} times"}
                for at, what in enumerate(("tea", "rain", "chess", "running", "jazz", "violins", "glaciers", "bread") * 8, 1)
            ],
        },
        "qa": [{"question": "Does Ann play chess?", "answer": "yes", "evidence": ["D1:3"], "category": 4}],
    }
]  # fmt: skip


@pytest.mark.slow
def test_the_measure_on_a_conversation(tmp_path, capsys):
    pytest.importorskip("sklearn")
    file = tmp_path / "locomo.json.gz"
    file.write_bytes(gzip.compress(json.dumps(LOCOMO).encode()))
    (question,) = read_asked(file)
    assert (len(question.facts), len(question.questions)) == (64, 1)
    shares = bench_facts([question], Encoding("o200k_base"))
    assert (shares.mean(OURS, 500), shares.mean(REFIT, 500)) == (1.0, 1.0)
    assert shares.mean(CONFIDENCE, 500) in (0.0, 1.0)
    assert shares.apart < 1e-12
    assert bench(["facts", str(file), "--no-speed", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["files"]["locomo.json.gz"]["shares"]["pagein"]["500"] == 1.0
    assert bench(["facts", str(file), "--no-speed", "--no-refit"]) == 0
    assert "pagein" in capsys.readouterr().out


@pytest.mark.slow
def test_the_speed_is_measured_beside_a_refit():
    pytest.importorskip("sklearn")
    (speed,) = bench_speed_of_facts([600], repeat=3)
    assert speed.facts == 600
    assert min(speed.ours, speed.after_one_more, speed.refit) > 0 <= speed.processor
    assert speed.times > 0


def test_a_file_of_neither_kind_is_refused(tmp_path, capsys):
    file = tmp_path / "x.json"
    file.write_text('[{"a": 1}]')
    assert bench(["facts", str(file), "--no-speed"]) == 1
    assert "LongMemEval" in capsys.readouterr().err


def test_what_facts_cost_of_the_prefix_is_measured(tmp_path, capsys):
    runs = [
        {
            "id": f"run {number}",
            "messages": [
                {"role": "system", "content": "You help."},
                *(
                    {
                        "role": role,
                        "content": f"The {colour} box number {number}{at} holds what I need for part {at} of it.",
                    }
                    for at, colour in enumerate(("red", "blue", "green", "black"))
                    for role in ("user", "assistant")
                ),
            ],
        }
        for number in range(3)
    ]
    file = tmp_path / "runs.jsonl"
    file.write_text("\n".join(map(json.dumps, runs)))
    played = ["facts", "--no-speed", "--runs", str(file), "--budget", "2000", "--known"]
    command = [*played, "6"]
    assert bench([*command, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["prefix"]["runs.jsonl"]
    assert list(rows) == ["off", "tail", "head"]
    assert {row["requests"] for row in rows.values()} == {12}
    assert {row["over_budget"] for row in rows.values()} == {0}
    assert min(rows["off"]["prefix_kept"], rows["head"]["prefix_kept"]) > 0.99
    assert rows["tail"]["prefix_kept"] > 0.9
    assert bench(command) == 0
    assert "prefix kept" in capsys.readouterr().out
    assert bench([*played, "600"]) == 1
    assert "600 facts are wanted" in capsys.readouterr().err


@pytest.fixture
def runs(tmp_path):
    """Recorded runs of two groups, of which the last asks for nothing that was done."""
    file = tmp_path / "runs.jsonl"

    def recorded(id, task, command):
        arguments = json.dumps({"command": command})
        call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": arguments}}
        said = [{"role": "user", "content": task}, {"role": "assistant", "content": None, "tool_calls": [call]}]
        return {"id": id, "messages": [*said, {"role": "tool", "tool_call_id": "c", "content": "ok"}]}

    rows = [recorded(f"shop-{at}", f"Deploy the shop to server {at}", f"make deploy-{at}") for at in range(4)]
    rows += [recorded(f"cook-{at}", f"Write a recipe of soup {at}", f"echo soup > {at}.md") for at in range(4)]
    rows.append({"id": "talk-1", "messages": [{"role": "user", "content": "Hello there, my friend"}]})
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def test_a_bench_of_procedures_says_how_often_one_of_the_group_is_found(runs, capsys):
    assert bench(["procedures", str(runs), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["runs"], row["with a procedure"], row["first"], row["right of shown"]) == (9, 8, 1.0, 1.0)
    assert 0.2 < row["by chance"] < 0.8
    assert bench(["procedures", str(runs), "--saved", "6", "--show", "1"]) == 0
    assert "1. bash: make deploy-0" in capsys.readouterr().out


def test_procedures_are_listed_by_category_and_found_by_a_search(run, db):
    with AgentMemory.open(db, user="alice") as memory:
        call = ToolCall("c", "bash", '{"command": "make deploy"}')
        memory.record(TaskStep("Deploy the shop"), ActionStep("", (call,), (Observation("c", "ok"),)))
        memory.save_procedure()
        memory.facts.add("Deploys on Monday")
    (fact,) = json.loads(run("list", db, "--user", "alice", "--category", "procedure", "--json"))
    assert fact["content"] == "Deploy the shop\n1. bash: make deploy"
    matches = json.loads(run("search", db, "deploy the shop", "--user", "alice", "--json"))
    assert [match["fact"]["category"] for match in matches] == ["procedure", "context"]
    assert len(json.loads(run("search", db, "deploy the shop", "--user", "alice", "--limit", "1", "--json"))) == 1
