"""An agent with its whole history and with a view: what each way came to."""

import json
from dataclasses import asdict, replace

import pytest

from pagein import ActionStep, Observation, TaskStep, ToolCall
from pagein.cli import main
from pagein.errors import ConfigurationError
from pagein.evaluation.compare import compare, replaying
from pagein.evaluation.runs import demo_run, replay_clock
from pagein.tokens.prices import Prices

LONG = "\n".join(f"line {number} of the output has value_{number}" for number in range(40))


def forgetful(memory):
    """An agent that reads the file of the task again whenever its result is out of view."""
    memory.record(TaskStep("Mend parse_header in core.py."))
    for number in range(12):
        lost = "the secret is 4711" not in str(memory.to_messages())
        path, seen = ("core.py", "the secret is 4711") if lost else (f"other_{number}.py", LONG)
        text = "parse_header in core.py" if number < 4 else "the weather"
        call = ToolCall(f"c{number}", "read", json.dumps({"path": path}))
        memory.record(ActionStep(text, (call,), (Observation(call.id, seen),)))


def test_it_plays_the_agent_twice_and_counts_what_it_did():
    with compare(forgetful, budget=900, policy="window", page_in=0) as comparison:
        whole, view = comparison.whole, comparison.view
        assert (whole.steps, whole.requests, whole.repeated) == (12, 12, 0)
        assert (view.steps, view.requests) == (12, 12)
        assert view.repeated > 0, "with a window of 900 tokens it forgot, and read again"
        assert view.highest <= 900 < whole.highest
        assert whole.tokens == sum(request.tokens for request in comparison.whole_memory.requests())
        assert whole.drift > 0.3, "it spoke of the task, then of the weather"


def test_the_price_is_of_these_prices():
    with compare(forgetful, budget=50_000, prices="none") as comparison:
        assert comparison.whole.price == comparison.whole.tokens
        assert comparison.whole == comparison.view, "where nothing leaves, both ways are the same"
    with compare(forgetful, budget=50_000, prices=Prices(cached=0.5, minimum=0)) as half:
        assert comparison.whole.tokens / 2 < half.whole.price < comparison.whole.tokens
    with pytest.raises(ConfigurationError), compare(forgetful, prices="cheap"):
        pass


def test_an_error_of_the_agent_is_raised_and_nothing_stays_open():
    def broken(memory):
        memory.record(TaskStep("Go."))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), compare(broken, budget=900):
        pass


@pytest.mark.slow
def test_the_command_compares_recorded_runs(tmp_path, capsys):
    run = replace(demo_run(), messages=demo_run().messages[:32])
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"id": "one", "messages": list(run.wire)}))
    with compare(replaying(run), budget=4_000, clock=replay_clock()) as comparison:
        pass
    assert main(["compare", str(path), "--budget", "4000", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["runs"]["one"] == {"whole": asdict(comparison.whole), "view": asdict(comparison.view)}
    row = out["runs"]["one"]
    assert row["whole"]["steps"] == row["view"]["steps"] == sum(m["role"] == "assistant" for m in run.wire)
    assert row["view"]["highest"] <= 4_000 < row["whole"]["highest"]
    assert row["view"]["price"] < row["whole"]["price"]
    assert main(["compare", str(path), "--budget", "4000"]) == 0
    assert "one" in capsys.readouterr().out
