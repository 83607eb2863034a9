"""What pagein costs inside other people's agents, measured: the shape of it, never its size in time."""

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.frameworks.compare import FRAMEWORKS, bench_frameworks
from benchmarks.frameworks.meter import Meter
from pagein.errors import ConfigurationError

pytestmark = pytest.mark.slow


def nothing(what, done, of):
    pass


@pytest.mark.slow
def test_every_framework_sends_less_than_its_whole_history(monkeypatch):
    monkeypatch.setattr("benchmarks.frameworks.compare.CALLS", 20)  # over sixty calls: each integration's own test
    rows = list(bench_frameworks(FRAMEWORKS, nothing, steps=5, long=0))
    assert [each.framework for each in rows] == list(FRAMEWORKS)
    for each in rows:
        assert not each.note
        assert 0 < each.share <= 0.7, f"{each.framework}: {each.share:.2f}"
        assert each.turn_bare > 0
        assert each.mean > 0
        assert each.long == 0


def test_one_that_is_not_installed_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "benchmarks.frameworks.smolagents", None)
    (row,) = bench_frameworks(("smolagents",), nothing, steps=2, long=0)
    assert row.note == "pip install 'pagein[smolagents]'"
    with pytest.raises(ConfigurationError, match="no framework 'autogen'; there are smolagents, langchain"):
        list(bench_frameworks(("autogen",), nothing, steps=2, long=0))


def test_the_command_prints_a_table_and_json(capsys, monkeypatch):
    monkeypatch.setattr("benchmarks.cli.frameworks.QUICK", 3)
    monkeypatch.setattr("benchmarks.frameworks.compare.CALLS", 3)
    assert main(["frameworks", "langchain", "--quick", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"][0]["framework"] == "langchain"
    assert told["rows"][0]["tokens"] >= told["rows"][0]["tokens_bare"] > 0  # of three calls nothing leaves
    assert main(["frameworks", "langchain", "--quick"]) == 0
    assert "with pagein" in capsys.readouterr().out
    assert main(["frameworks", "autogen"]) == 1


def test_a_meter_leaves_out_what_happens_within_a_request():
    meter = Meter(counts=True)
    for number in range(3):
        with meter.request(lambda: ["two words"]) as at:
            assert at == number
            sum(range(300_000))
    assert meter.tokens == [6, 6, 6]
    assert len(meter.marks) == 3
    assert meter.marks == sorted(meter.marks)
