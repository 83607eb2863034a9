"""``pagein bench all``: figures on the data of the package, stored and compared; the stored ones of this repository hold."""

import json
from pathlib import Path

import pytest

from pagein.cli import bench, main
from pagein.errors import ConfigurationError
from pagein.evaluation.figures import (
    NOISE,
    Figure,
    compare_figures,
    measure_figures,
    noise_of,
    read_figures,
    write_figures,
)

pytestmark = pytest.mark.slow

STORED = Path(__file__).parents[2] / "benchmarks" / "figures.json"

FIGURES = {
    "demo, 4,000: lines missing": Figure(0.05, 218),
    "demo, 4,000: price": Figure(1_000.0, 32),
    "demo, 4,000: prefix kept": Figure(0.8, 32),
    "demo, 8,000: CPU of a run": Figure(30.0, 5),
}


@pytest.fixture
def measured(monkeypatch):
    """What ``pagein bench all`` measures: these figures, which a test may change."""
    figures = dict(FIGURES)
    monkeypatch.setattr(bench.figures, "measure_figures", lambda files, *, is_quick, tick: figures)
    return figures


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "figures.json"
    write_figures(path, FIGURES, is_quick=True)
    return path


def test_no_figure_is_worse_than_the_stored_ones_of_this_repository():
    """If a change means to move a figure: ``pagein bench all --quick --write benchmarks/figures.json``, and say so."""
    stored, figures = read_figures(STORED, is_quick=True), measure_figures()
    fallen = [change for change in compare_figures(stored, figures) if change.is_regression]
    assert fallen == []
    assert stored.keys() == figures.keys()
    assert {name.rpartition(": ")[2] for name in figures} == NOISE.keys()
    assert all(figure.samples > 0 for figure in figures.values())


def test_every_noise_says_how_it_was_measured():
    assert all(noise.measured and (noise.absolute > 0) != (noise.share > 0) for noise in NOISE.values())


def test_equal_figures_are_no_regression(measured, stored, capsys):
    assert main(["bench", "all", "--quick", "--against", str(stored)]) == 0
    out = capsys.readouterr().out
    assert "No figure is worse than stored" in out
    assert "WORSE" not in out


@pytest.mark.parametrize(
    ("name", "within", "beyond"),
    [
        ("demo, 4,000: lines missing", 0.069, 0.071),
        ("demo, 4,000: price", 1_019.0, 1_021.0),
        ("demo, 4,000: prefix kept", 0.781, 0.779),
        ("demo, 8,000: CPU of a run", 59.0, 61.0),
    ],
)
def test_a_figure_beyond_its_noise_fails_and_is_named(name, within, beyond, measured, stored, capsys):
    measured[name] = Figure(within, 1)
    assert main(["bench", "all", "--quick", "--against", str(stored)]) == 0
    measured[name] = Figure(beyond, 1)
    capsys.readouterr()
    assert main(["bench", "all", "--quick", "--against", str(stored)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "WORSE" in out
    assert f"or gone: {name}." in out
    assert main(["bench", "all", "--quick", "--against", str(stored), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["regressions"] == [name]


def test_a_better_figure_is_no_regression(measured, stored):
    measured |= {"demo, 4,000: price": Figure(1.0, 1), "demo, 4,000: prefix kept": Figure(1.0, 1)}
    assert main(["bench", "all", "--quick", "--against", str(stored)]) == 0


def test_a_figure_that_is_gone_fails_and_a_new_one_does_not(measured, stored, capsys):
    measured["demo, 16,000: price"] = Figure(1.0, 1)
    assert main(["bench", "all", "--quick", "--against", str(stored)]) == 0
    del measured["demo, 4,000: price"]
    assert main(["bench", "all", "--quick", "--against", str(stored)]) == 1
    assert "GONE" in capsys.readouterr().out


def test_what_is_written_is_read_again(measured, tmp_path):
    path = tmp_path / "new.json"
    assert main(["bench", "all", "--quick", "--write", str(path)]) == 0
    assert read_figures(path, is_quick=True) == FIGURES


@pytest.mark.parametrize(
    "text", ["", "[]", '{"figures": {"x": 1}}', '{"quick": true, "figures": {"x": {"value": 1, "samples": 1}}}']
)
def test_a_file_without_figures_is_refused(text, tmp_path):
    path = tmp_path / "figures.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="has no figures of pagein bench all"):
        read_figures(path, is_quick=True)


def test_figures_of_a_quick_run_are_compared_with_a_quick_run(measured, stored, capsys):
    assert main(["bench", "all", "--against", str(stored)]) == 1
    assert "was measured with --quick; add --quick" in capsys.readouterr().err


def test_runs_of_ones_own_have_faults_and_price(tmp_path, monkeypatch):
    monkeypatch.setattr("pagein.evaluation.figures._talk_figures", lambda counter, sessions: {})
    monkeypatch.setattr("pagein.evaluation.figures._machine_figures", lambda run, samples: {})
    path = tmp_path / "mine.jsonl"
    lines = "\n".join(f"value_{line} = load_{line}()" for line in range(400))
    messages = [{"role": "user", "content": "Find it."}]
    for number in range(4):
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "sh", "arguments": '{"c": "grep value_7"}'},
        }
        messages.append({"role": "assistant", "content": "Look.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": lines})
    path.write_text(json.dumps({"id": "mine", "messages": messages}) + "\n")
    ticks = []
    figures = measure_figures([path], tick=ticks.append)
    assert figures["mine.jsonl, 4,000: price"].samples == 2
    assert noise_of("mine.jsonl, 4,000: price").share == 0.02
    assert ticks == [
        "demo, 4,000 tokens",
        "demo, 8,000 tokens",
        "mine.jsonl, 4,000 tokens",
        "mine.jsonl, 8,000 tokens",
        "talk",
        "time and disk",
    ]
