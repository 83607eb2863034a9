"""``pagein bench fidelity``: what a request still shows of a recorded run, on the command line."""

import json

import pytest

from pagein.cli import main


def write_run(path, turns=40):
    """Write a run of which two results fail, one of them twice."""
    messages = [{"role": "user", "content": "Mend the crane. Never touch the winch."}]
    for number in range(turns):
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "bash", "arguments": f'{{"command": "ls {number}"}}'},
        }
        output = (
            "KeyError: 'harbour'"
            if number in (1, 3)
            else "Error: no crane"
            if number == 5
            else "All is well here. " * 40
        )
        messages.append({"role": "assistant", "content": "On.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": output})
    path.write_text(json.dumps(messages))
    return str(path)


def test_errors_of_a_recorded_run_are_counted_once_and_are_in_sight(tmp_path, capsys):
    file = write_run(tmp_path / "run.json")
    options = ("--budget", "1500", "--policies", "tiers", "window", "--rounds", "3", "--json")
    assert main(["bench", "fidelity", file, *options]) == 0
    policies = json.loads(capsys.readouterr().out)["files"][file]
    for policy in ("tiers", "window"):
        counts = policies[policy]["3"]
        assert counts["runs"] == 1
        assert counts["kinds"]["error"][:2] == [2, 2]
        assert counts["pins"] == [2, 2]


def test_the_table_reads_in_80_columns(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert (
        main(
            [
                "bench",
                "fidelity",
                write_run(tmp_path / "run.json"),
                "--budget",
                "1500",
                "--policies",
                "rolling",
                "--rounds",
                "2",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "errors" in out
    assert "rolling 2" in out


@pytest.mark.parametrize("options", [("--rounds", "0"), ("--policies", "best"), ("--budget", "0")])
def test_what_is_no_use_is_one_line(tmp_path, capsys, options):
    assert main(["bench", "fidelity", write_run(tmp_path / "run.json"), *options]) == 1
    assert capsys.readouterr().err.startswith("pagein: ")


def test_without_a_file_it_says_so(capsys):
    assert main(["bench", "fidelity"]) == 1
    assert "at least one file" in capsys.readouterr().err
