"""The example runs, offline and with an endpoint; what goes over the wire is legal for OpenAI."""

import importlib.util

import pytest
from endpoint_play import EXAMPLES, example, with_endpoint
from smolagents.models import ChatMessage

pytestmark = pytest.mark.slow

EXAMPLE = "smolagents_report.py"


def test_it_runs_offline():
    done = example(EXAMPLE)
    assert done.returncode == 0, done.stderr
    assert "resumed with 13 steps" in done.stdout
    assert "answer: Ada Ferrante-Okafor" in done.stdout
    assert "record: sound" in done.stdout


def script():
    made = importlib.util.spec_from_file_location("smolagents_report", EXAMPLES / EXAMPLE)
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module.Script(model_id="scripted")


@pytest.mark.slow
def test_one_flag_runs_it_with_a_real_endpoint():
    play = script()

    def answer(asked):
        rows = [
            [part for part in each["content"] if part["type"] == "text"]
            if isinstance(each["content"], list)
            else [{"type": "text", "text": each["content"]}]
            for each in asked["messages"]
        ]
        (call,) = play.generate([ChatMessage("user", each) for each in rows]).tool_calls
        return {"name": call.function.name, "arguments": call.function.arguments}

    assert "answer: Ada Ferrante-Okafor" in with_endpoint(EXAMPLE, answer)
