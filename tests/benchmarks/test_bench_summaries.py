"""bench fidelity and bench blocking: what they count, what they print in 80 columns, what they refuse."""

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.blocking import DECENT, NOBODY, SLOW, bench_blocking
from benchmarks.fidelity import make_run
from pagein.cli import main as pagein
from pagein.context.compaction.base import Plan
from pagein.context.compaction.registry import policy_named
from pagein.evaluation.fidelity import Setting, bench_fidelity
from pagein.evaluation.runs import demo_run
from pagein.testing.scripted_writer import ScriptedModel
from pagein.tokens.encodings import Encoding

pytestmark = pytest.mark.slow

COUNTER = Encoding("o200k_base")


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def command(*arguments):
        code = main([*map(str, arguments)])
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.mark.parametrize("author", [None, "scripted"])
def test_rules_and_pins_are_whole_after_every_round(author):
    model = None if author is None else ScriptedModel()
    found = bench_fidelity(
        (make_run(60),), ("tiers", "rounds", "ladder"), Setting(COUNTER, 2_500, model, (1, 5)), lambda: None
    )
    for of in found.values():
        for count, kept in of.items():
            assert kept.runs == 1, f"the run ended before {count} compactions"
            assert kept.share("constraint") == kept.share("pin") == 1.0
            assert 0 < kept.share("identifier") <= 1
    assert model is None or model.requests


def test_a_strategy_that_loses_is_seen_to_lose(monkeypatch):
    class Blank:
        """Folds as another does, and says nothing of what left."""

        name = "blank"

        def __call__(self, view, budget):
            from dataclasses import replace

            plan = policy_named("ladder")(view, budget)
            if plan is None:
                return None
            blank = (replace(each, summary="gone") if each.summary else each for each in plan.replacements)
            return Plan(tuple(blank), self.name, plan.reason)

    runs, setting = (make_run(60),), Setting(COUNTER, 2_500, None, (5,))
    kept = bench_fidelity(runs, ("ladder",), setting, lambda: None)["ladder"][5]
    monkeypatch.setattr("pagein.context.compaction.registry.policy_named", lambda name: Blank())
    lost = bench_fidelity(runs, ("ladder",), setting, lambda: None)["ladder"][5]
    assert lost.share("identifier") < kept.share("identifier") / 2
    assert lost.share("constraint") == 1.0


def test_the_table_of_fidelity_reads_in_80_columns(run):
    code, out, err = run("fidelity", "--policies", "rolling", "short_long", "--rounds", 1, 3, "--budget", 2_500)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    for word in ("short_long 3", "rolling 1", "rules", "pins", "decided", "100%"):
        assert word in out
    code, out, _ = run("fidelity", "--policies", "rolling", "--rounds", 2, "--json", "--model", "scripted")
    kinds = json.loads(out)["policies"]["rolling"]["2"]["kinds"]
    assert kinds["constraint"][0] == kinds["constraint"][1] > 0


@pytest.fixture(scope="module")
def blocking():
    return bench_blocking((demo_run(),), (8_000,), "tiers", COUNTER, lambda: None)


def test_a_slow_writer_adds_nothing_to_a_turn_and_a_decent_one_keeps_the_prefix(blocking):
    found = blocking[8_000]
    assert found[SLOW].at_work > 10
    assert found[SLOW].asked
    assert found[NOBODY].asked == found[NOBODY].at_work == 0
    assert found[DECENT].prefix > 0.7
    assert len({len(each.seconds) for each in found.values()}) == 1
    # A turn that waited would take as long as the writer does.
    assert found[SLOW].at(1.0) < 5_000


def test_the_table_of_blocking_reads_in_80_columns(run, blocking, monkeypatch):
    monkeypatch.setattr("benchmarks.cli.summaries.bench_blocking", lambda *of, **options: blocking)
    code, out, _ = run("blocking", "--budgets", 8_000)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    for word in ("nobody", "slow", "decent", "p95", "added", "kept", "at work"):
        assert word in out
    assert json.loads(run("blocking", "--budgets", 8_000, "--json")[1])["budgets"]["8000"]["slow"]["at_work"]


@pytest.mark.parametrize("name", ["fidelity", "blocking"])
def test_help_says_how_it_is_used(run, name):
    code, out, _ = run(name, "--help")
    assert code == 0
    assert "For example:" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    "arguments",
    [("--model", "nobody"), ("--rounds", "0"), ("--policies", "best"), ("--budget", "0"), ("nothing.jsonl",)],
)
def test_what_is_no_use_is_one_line(run, arguments):
    code, out, err = run("fidelity", *arguments)
    assert code == 1
    assert out == ""
    assert err.startswith("pagein: ")
    assert err.count("\n") == 1


def test_replay_takes_a_summarizer(capsys, tmp_path):
    file = tmp_path / "run.json"
    file.write_text(json.dumps(list(make_run(40).messages)))
    assert pagein(["replay", str(file), "--budget", "2500", "--policy", "tiers", "--summarizer", "scripted"]) == 0
    out = capsys.readouterr().out
    assert "by scripted" in out
    assert "0 over budget, 0 with orphans, 0 illegal; 0 raised" in out
