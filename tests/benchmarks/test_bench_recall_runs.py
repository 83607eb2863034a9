"""Far needs with what comes back by itself and without it: two columns of the same runs."""

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.recall.runs import bench_runs
from benchmarks.synthetic_run import opening, turns
from pagein.evaluation.runs import Run
from pagein.tokens.encodings import Encoding

pytestmark = pytest.mark.slow

MESSAGES = (*opening(), *(message for turn in turns(30) for message in turn.messages))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({"id": "made-up", "messages": MESSAGES}) + "\n")
    return path


def test_both_columns_have_the_same_needs_and_only_one_pays_with_its_prefix():
    ticks = []
    found = bench_runs([Run("made-up", MESSAGES)], 2_000, Encoding("o200k_base"), tick=lambda: ticks.append(1))
    without, within = found["without"], found["with"]
    assert len(ticks) == without.requests + within.requests == 60
    assert without.far.counts()["identifiers"] == within.far.counts()["identifiers"] > 0
    assert within.tokens > without.tokens
    assert within.prefix < without.prefix
    assert within.far.bare <= without.far.bare


def test_the_command_shows_both_columns(file, capsys):
    assert main(["recall", "runs", str(file), "--budget", "2000"]) == 0
    out = capsys.readouterr().out
    assert "far identifiers met" in out
    assert "without" in out
    assert main(["recall", "runs", str(file), "--budget", "2000", "--page-in", "0", "--json"]) == 0
    (both,) = json.loads(capsys.readouterr().out)["files"].values()
    for each in both.values():
        each.pop("ms_a_step")
    assert both["without"] == both["with"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--budget", "2000", "--page-in", "0.9"], "--page-in"),
        (["--budget", "2000", "--page-in", "nan"], "--page-in"),
        (["--budget", "0"], "--budget"),
        (["--budget", "2000", "--limit-runs", "0"], "--limit-runs"),
    ],
)
def test_a_bad_option_is_named(file, arguments, told, capsys):
    assert main(["recall", "runs", str(file), *arguments]) == 1
    assert told in capsys.readouterr().err
