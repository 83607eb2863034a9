"""The command: what it prints in 80 columns, what it draws, and what it says where it cannot."""

import importlib.util
import json

import pytest

from benchmarks.__main__ import main
from benchmarks.degrade.measure import Experiment, bench_degrade
from benchmarks.degrade.plot import check_plot, write_plot
from pagein.errors import ConfigurationError
from pagein.tokens.encodings import Encoding

pytestmark = pytest.mark.slow

SMALL = ("--worlds", "desk", "--policies", "ladder", "masking", "--lengths", "20", "--seeds", "1")


@pytest.fixture
def run(capsys):
    def command(*arguments):
        code = main(["degrade", *map(str, arguments)])
        out, err = capsys.readouterr()
        return code, out, err

    return command


def test_the_tables_read_in_80_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(*SMALL)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    for word in ("full context", "ladder", "masking", "won", "dead", "drift", "cached", "kept", "0.25", "0.125"):
        assert word in out


def test_every_default_name_stands_on_one_line(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("--worlds", "desk", "--lengths", "20", "--seeds", "1", "--budget-share", "0.5")
    for name in ("sliding window", "head+recency", "projection", "short_long"):
        assert out.count(name) == 2, "folded in a table"


def test_help_says_how_it_is_used(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run("--help")
    assert code == 0
    assert "For example:" in out
    assert max(map(len, out.splitlines())) <= 80


def test_json_has_every_figure(run):
    code, out, _ = run(*SMALL, "--json")
    rows = json.loads(out)["rows"]
    assert code == 0
    assert {"success", "steps", "dead_ends", "drift", "tokens", "cost", "cost_cached", "prefix"} <= set(rows[0])


@pytest.mark.parametrize(
    ("given", "word"), [(("--worlds", "moon"), "moon"), (("--policies", "best"), "best"), (("--seeds", "0"), "0")]
)
def test_what_cannot_be_played_is_one_line(run, given, word):
    code, out, err = run(*given)
    assert (code, out) == (1, "")
    assert err.startswith("pagein: ")
    assert err.count("\n") == 1
    assert word in err


def test_without_matplotlib_the_cure_is_named_before_anything_is_played(run, monkeypatch, tmp_path):
    real = importlib.util.find_spec
    monkeypatch.setattr("benchmarks.degrade.plot.find_spec", lambda name: None if name == "matplotlib" else real(name))
    code, out, err = run("--plot", tmp_path / "a.png")
    assert (code, out) == (1, "")
    assert "pip install 'pagein[plot]'" in err
    assert err.count("\n") == 1


def test_a_picture_goes_into_a_folder_that_is_there_and_a_file_of_a_known_kind(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.degrade.plot.find_spec", lambda _: object())
    with pytest.raises(ConfigurationError, match="folder"):
        check_plot(tmp_path / "none" / "a.png")
    with pytest.raises(ConfigurationError, match=r"\.png"):
        check_plot(tmp_path / "a.txt")


def test_the_picture_is_written(tmp_path):
    pytest.importorskip("matplotlib")
    played = bench_degrade(Experiment(("desk",), ("ladder", "masking"), (20,), seeds=1), Encoding("o200k_base"))
    write_plot(played, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
