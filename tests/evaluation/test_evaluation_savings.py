"""What a policy saves is counted on whole requests, after so many calls; short runs are put one behind the other."""

import json

import pytest

from pagein.cli import main
from pagein.errors import ConfigurationError
from pagein.evaluation import savings
from pagein.evaluation.runs import Run
from pagein.evaluation.savings import averages, bench_missing_needs, bench_savings, join_runs
from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")


def made(calls, name="r"):
    messages = [{"role": "system", "content": "You work."}, {"role": "user", "content": f"Do {name}."}]
    for number in range(calls):
        function = {"name": "sh", "arguments": json.dumps({"command": f"cat {name}_{number}.txt"})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "Next.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"see {name}_{number + 1}.txt " * 30})
    return Run(name, tuple(messages))


def test_short_runs_are_put_one_behind_the_other_and_counted():
    (run, number), *more = join_runs([made(40, "a"), made(40, "b"), made(40, "c"), made(40, "d")], 100)
    assert (number, more) == (3, [])
    assert [each["role"] for each in run.messages].count("system") == 1


def test_what_is_saved_grows_with_the_run_and_the_limit_holds():
    found = bench_savings([made(60, "a"), made(60, "b")], COUNTER, policy="rounds")
    first, last = found
    assert (first.calls, last.calls) == (50, 100)
    assert last.within <= last.limit < last.without
    assert last.share > 0.5
    assert averages(found)[1] == pytest.approx(
        {"calls": 100, "runs": 1, "recorded_runs": 2, "limit": last.limit, "without": last.without}
        | {"within": last.within, "saved": last.share}
    )


@pytest.mark.slow
def test_what_is_missed_is_counted_beside_what_is_saved(monkeypatch):
    monkeypatch.setattr(savings, "CALLS", (20, 40))
    runs = [made(24, "a"), made(24, "b")]
    found = bench_missing_needs(runs, COUNTER, policies=("rounds", "window"))
    assert list(found) == ["rounds", "window"]
    assert all(each.runs == 1 and each.above > 8 and not each.over for each in found.values())
    assert found["rounds"].needs.identifiers > 0


@pytest.mark.slow
def test_a_limit_above_the_run_saves_nothing():
    assert [each.share for each in bench_savings([made(100)], COUNTER, limit=200_000)] == [0, 0]


def test_runs_that_are_too_short_together_are_refused():
    with pytest.raises(ConfigurationError, match="100 tool calls"):
        bench_savings([made(5)], COUNTER)


@pytest.mark.slow
def test_the_command_prints_json(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(savings, "CALLS", (20, 40))
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({"id": "r", "messages": list(made(40).messages)}) + "\n")
    assert main(["bench", "savings", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (rows,), (missed,) = told["files"].values(), told["missed"].values()
    assert [each["calls"] for each in rows] == [20, 40]
    assert list(missed) == ["rounds", "ladder"]
