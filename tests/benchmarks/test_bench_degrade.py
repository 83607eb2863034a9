"""Scripted agents know what they can read and no more; worlds can be solved; what is lost shows."""

import json
from dataclasses import replace

import pytest

from benchmarks.degrade.contexts import FULL, SLIDING, Full, context, default_contexts, known_contexts
from benchmarks.degrade.measure import Experiment, averages, bench_degrade, summary
from benchmarks.degrade.play import CACHED, WORLDS, WRITTEN, Meter, play_run, step_limit
from benchmarks.degrade.reader import Act, Answer, Reader, facts_of, trails_of
from pagein.context.compaction.registry import POLICIES
from pagein.context.view.layout import as_data
from pagein.errors import ConfigurationError
from pagein.evaluation.requests import Scale
from pagein.formats import format_named
from pagein.tokens.encodings import Encoding

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scale():
    return Scale(Encoding("o200k_base"), format_named("openai"))


def full(world, length, seed, scale):
    return play_run(WORLDS[world], length, seed, Full(), scale)


def requests_of(world, length, seed, scale, name=FULL, budget=1):
    """Every request of a run, and what was decided on it."""
    kind, made = WORLDS[world], []

    def decide(seen):
        decision = kind.decide(seen)
        made.append((seen, decision))
        return decision

    with context(name, budget, scale) as strategy:
        play_run(replace(kind, decide=decide), length, seed, strategy, scale)
    return made


@pytest.mark.parametrize("length", [20, 40, 120])
@pytest.mark.parametrize("world", WORLDS)
def test_every_world_is_solved_with_full_context_without_a_wrong_step(world, length, scale):
    for seed in range(8 if length < 100 else 2):
        out = full(world, length, seed, scale)
        assert out.score.success, seed
        assert (out.score.dead_ends, out.score.drift, out.score.again, out.over) == (0, 0, 0, 0)
        assert 0.8 * length <= out.steps <= 1.35 * length + 8
        assert out.kept == out.previous  # nothing is taken from a full context


@pytest.mark.parametrize("world", WORLDS)
def test_worlds_are_long_where_they_are_asked_to_be(world, scale):
    out = full(world, 200, 0, scale)
    assert out.score.success
    assert 180 <= out.steps <= 240


@pytest.mark.parametrize("world", WORLDS)
def test_a_world_is_the_same_each_time_and_another_with_another_seed(world, scale):
    kind = WORLDS[world]
    assert kind.make(40, 3).opening == kind.make(40, 3).opening
    assert kind.make(40, 3).opening != kind.make(40, 4).opening
    assert full(world, 40, 3, scale) == full(world, 40, 3, scale)


@pytest.mark.parametrize("name", [FULL, SLIDING, "ladder"])
@pytest.mark.parametrize("world", WORLDS)
def test_an_agent_decides_the_same_on_the_same_request_in_any_order(world, name, scale):
    made = requests_of(world, 40, 1, scale, name, budget=3_000)
    decide = WORLDS[world].decide
    for seen, decision in reversed(made):
        assert decide(seen) == decision


@pytest.mark.parametrize("world", WORLDS)
def test_an_agent_that_reads_nothing_knows_nothing(world, scale):
    seen = Reader(WORLDS[world].patterns).parse(())
    assert seen.facts == ()
    first = WORLDS[world].decide(seen)
    assert isinstance(first, Act)
    assert not any(any(letter.isdigit() and letter != "1" for letter in each) for each in first.arguments.values())


@pytest.mark.parametrize("world", WORLDS)
def test_what_an_agent_says_and_does_stands_in_its_request(world, scale):
    """Every name in an action was read: nothing is passed to an agent behind the request's back."""
    kind, texts = WORLDS[world], []

    class Listening(Reader):
        def parse(self, request):
            texts.append("\n".join(said.reading.text for said in request))
            return super().parse(request)

    made = []

    def decide(seen):
        decision = kind.decide(seen)
        made.append((texts[-1], decision))
        return decision

    with pytest.MonkeyPatch.context() as patch, context("ladder", 3_000, scale) as strategy:
        patch.setattr("benchmarks.degrade.play.Reader", Listening)
        play_run(replace(kind, decide=decide), 40, 0, strategy, scale)
    for text, decision in made:
        given = [decision.text] if isinstance(decision, Answer) else list(decision.arguments.values())
        names = {word.strip('.":') for each in given for word in each.split() if sum(map(str.isdigit, word)) >= 4}
        assert all(name in text or name[::-1] in text for name in names), decision


@pytest.mark.parametrize("world", WORLDS)
def test_plain_recency_loses_the_task_and_with_it_the_run(world):
    experiment = Experiment((world,), (SLIDING,), (40,), seeds=3, shares=(0.25,))
    found = bench_degrade(experiment, Encoding("o200k_base"))
    lost = averages(each for each in found if each.policy == SLIDING)
    assert lost["success"] < 1
    assert lost["dead_ends"] + lost["drift"] + lost["again"] > 0


def test_every_policy_by_name_is_measured_unless_it_is_a_mere_rung():
    assert set(POLICIES) <= set(known_contexts())
    assert {FULL, SLIDING, "masking", "ladder", "window", "mask"} <= set(default_contexts())
    assert "clip" not in default_contexts()


def test_an_experiment_says_how_many_runs_it_has_and_ticks_for_each():
    ticks = []
    experiment = Experiment(("desk",), ("ladder", "masking"), (20,), seeds=2, shares=(0.5, 0.25))
    found = bench_degrade(experiment, Encoding("o200k_base"), ticks.append)
    assert len(found) == len(ticks) == experiment.plays == 10
    rows = summary(found)
    assert {(each["policy"], each["budget_share"]) for each in rows} == {
        (FULL, 1.0), ("ladder", 0.5), ("ladder", 0.25), ("masking", 0.5), ("masking", 0.25),
    }  # fmt: skip
    whole = next(each for each in rows if each["policy"] == FULL and each["world"] == "all" and each["length"] is None)
    assert (whole["success"], whole["steps"], whole["cost"], whole["prefix"]) == (1, 1, 1, 1)
    json.dumps(rows, allow_nan=False)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"worlds": ("moon",)}, "moon"),
        ({"policies": ("best",)}, "best"),
        ({"lengths": (5,)}, "5"),
        ({"shares": (0.0,)}, "0.0"),
        ({"shares": (1.5,)}, "1.5"),
        ({"seeds": 0}, "0"),
    ],
)
def test_what_cannot_be_played_is_named(wrong, word):
    with pytest.raises(ConfigurationError, match=word):
        Experiment(**wrong)


def test_a_run_that_cannot_go_on_under_its_budget_has_failed(scale):
    with context("ladder", 40, scale) as strategy:
        out = play_run(WORLDS["desk"], 20, 0, strategy, scale)
    assert (out.over, out.steps, out.score.success) == (1, 0, False)


def test_a_run_ends_at_its_step_limit(scale):
    with context(SLIDING, 700, scale) as strategy:
        out = play_run(WORLDS["hunt"], 20, 0, strategy, scale)
    assert out.steps == step_limit(20) == 60


def test_a_cached_token_costs_a_tenth_and_a_written_one_a_quarter_more(scale):
    said = scale.measure_request([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}])
    meter = Meter()
    meter.take(said[:1])
    meter.take(said)
    assert meter.kept == said[0].tokens
    assert meter.previous < meter.tokens
    out = full("desk", 20, 0, scale)
    assert out.cost_cached == pytest.approx(CACHED * out.kept + WRITTEN * (out.tokens - out.kept))


@pytest.mark.parametrize("world", WORLDS)
def test_paging_at_a_quarter_wins_what_full_context_wins(world):
    experiment = Experiment((world,), ("ladder",), (40,), seeds=1, shares=(0.25,))
    found = bench_degrade(experiment, Encoding("o200k_base"))
    assert {each.policy: each.outcome.score.success for each in found} == {FULL: True, "ladder": True}


def test_what_came_back_is_read_as_older_than_what_never_left(scale):
    reader = Reader(WORLDS["search"].patterns)
    shown = ("Record 7 of 9.", as_data("memory", "[s2]\nRecord 2 of 9.", kind="recalled"))
    for order in (shown, shown[::-1]):
        seen = reader.parse(scale.measure_request({"role": "user", "content": text} for text in order))
        assert list(seen.all("place")) == [("2", "9"), ("7", "9")]


def test_who_sees_none_but_the_ruled_out_asks_for_the_list(scale):
    kind = WORLDS["hunt"]
    shown = "the failing case is case-1\nsuspect core/x_1.c, changed\nThe test still fails without core/x_1.c."
    seen = Reader(kind.patterns).parse(scale.measure_request([{"role": "user", "content": shown}]))
    assert kind.decide(seen).arguments == {"command": "suspects"}


# Handles


def test_a_handle_is_found_by_what_stands_beside_it():
    text = "Out of view: s2..s9.\n[s4]\n> cat a.txt\nLocker X1-22 opens with 5\n[900 characters masked: s7.0] of Y2-33"
    assert ("s4", "Locker X1-22 opens with 5") in trails_of(text)
    assert ("s7.0", "[900 characters masked: s7.0] of Y2-33") in trails_of(text)


def test_agents_expand_only_when_they_are_let_and_it_costs_a_step():
    asked = Experiment(("desk",), ("ladder",), (40,), seeds=1, shares=(0.25,))
    let = replace(asked, expand=True)
    none = [each.outcome.expanded for each in bench_degrade(asked, Encoding("o200k_base"))]
    some = [each.outcome for each in bench_degrade(let, Encoding("o200k_base")) if each.policy == "ladder"]
    assert set(none) == {0}
    assert sum(each.expanded for each in some) > 0
    assert all(each.expanded < each.steps for each in some)


def test_a_fact_is_read_from_its_line_wherever_that_stands():
    patterns = WORLDS["hunt"].patterns
    found = facts_of(
        "<memory>\n[s9]\n> probe core/x_1.c\nThe test still fails without core/y_2.c.\n</memory>", patterns
    )
    assert [(each.kind, each.values) for each in found] == [("out", ("core/x_1.c",)), ("out", ("core/y_2.c",))]
