"""bench peers: the agents of other libraries play recorded runs, and what their provider received is measured."""

import json
from importlib.metadata import PackageNotFoundError

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import peer_agents
from benchmarks.peer_agents import CpuMeter, Peer, Script
from benchmarks.peer_faults import play_run, sample_lines
from pagein.cli._options import resolve_counter
from pagein.evaluation.runs import demo_run

pytestmark = pytest.mark.slow


def test_an_agent_of_langchain_plays_the_run_and_summarises(capsys):
    assert benchmarks.main(["peers", "--only", "LangChain", "--budget", "6000", "--json"]) == 0
    libraries = json.loads(capsys.readouterr().out)["libraries"]
    pagein, langchain = libraries.values()
    assert list(libraries)[1].startswith("LangChain ")
    assert langchain["requests"] == pagein["requests"] > 30
    assert langchain["raised"] == pagein["raised"] == []
    assert langchain["illegal"] == 0
    assert langchain["summaries"] > 0 == pagein["summaries"]
    assert langchain["faults"]["bare"] > pagein["faults"]["bare"]
    assert langchain["cpu_ms_a_request"]["mean"] > 0


def test_a_library_that_is_not_installed_is_named_with_the_cure(capsys, monkeypatch):
    def find_no_version(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(peer_agents, "version", find_no_version)
    assert benchmarks.main(["peers", "--only", "deepagents"]) != 0
    error = capsys.readouterr().err
    assert "deepagents" in error
    assert "pip install 'pagein[bench,serve]'" in error


def test_an_agent_that_fails_is_told_with_what_it_had_sent():
    def ask_nothing(script, place):
        raise RuntimeError(f"no {script.tools[0]} in {place.window}")

    model, problem = play_run(demo_run(), Peer("none", ask_nothing), 4_000, CpuMeter(), resolve_counter(None))
    assert (model.requests, problem) == ([], "RuntimeError: no bash in 4000")


def test_a_run_with_many_turns_of_the_user_is_split_at_them():
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    script = Script.of(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello."},
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "A cat."},
            {"role": "assistant", "content": "A cat."},
            {"role": "user", "content": "Thanks."},
        ]
    )
    assert script == Script("Be brief.", (("Hello.", "Look."), ("Thanks.",)), {"call_1": "A cat."}, ("look",))


def test_a_summary_has_lines_from_all_of_a_text_within_its_size():
    text = "\\n".join(f"Line {number:04} of a long conversation." for number in range(2_000))
    summary = sample_lines(text)
    assert 2_500 < len(summary) <= 3_000
    assert summary.startswith("Line 0000")
    assert int(summary.splitlines()[-1][5:9]) > 1_900
