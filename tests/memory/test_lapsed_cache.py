"""A compaction that will soon be due is made where the provider's cache has lapsed: it costs nothing there."""

import json

import pytest

from pagein import ActionStep, AgentMemory, Budget, Compaction, Observation, TaskStep, ToolCall
from pagein.testing.promises import check_replay

LIFETIME = 300.0


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def fill(memory, share):
    """Actions, with a request after each, until the view has this share of its limit."""
    number = 0
    while memory.view().tokens < share * memory.view().limit:
        lines = "\n".join(f"{line}: value_{number}_{line} = load_{line}()" for line in range(6))
        call = ToolCall(f"c{number}", "bash", json.dumps({"command": f"sed -n 1,6p src/file_{number}.py"}))
        memory.record(ActionStep(f"Look at file {number}.", (call,), (Observation(call.id, lines),)))
        memory.to_messages()
        number += 1


def open_run(clock, path=":memory:", **options):
    return AgentMemory.open(path, budget=4_000, clock=clock, **options)


def compactions(memory):
    return [entry.body for entry in memory._runtime.log.read() if isinstance(entry.body, Compaction)]


@pytest.fixture
def run(clock):
    with open_run(clock) as memory:
        memory.record(TaskStep("Find the value that is wrong."))
        fill(memory, 0.85)
        assert compactions(memory) == []
        yield memory


def test_a_view_that_is_nearly_full_is_compacted_after_a_pause(run, clock):
    clock.now += LIFETIME
    run.record(TaskStep("Go on."))
    before = run.report().tokens
    view = run.view()
    (compaction,) = compactions(run)
    assert compaction.reason.endswith("; the cache had lapsed")
    assert view.tokens < 0.75 * before
    # It costs nothing: the line of the compaction says so, too.
    run.to_messages()
    (line,) = (line for line in run.cost().lines if line.kind == "compaction")
    assert (line.rewritten, line.cost) == (0, 0.0)
    assert line.saved == line.tokens > 0


def test_two_views_in_a_row_are_the_same_and_the_log_folds_to_them(run, clock):
    clock.now += LIFETIME
    view = run.view()
    assert run.view() == view
    assert len(compactions(run)) == 1
    entries = list(run._runtime.log.read())
    check_replay(entries, view, run._runtime.state.counter)


def test_before_the_lifetime_is_over_nothing_leaves(run, clock):
    clock.now += LIFETIME - 1
    run.record(TaskStep("Go on."))
    run.view()
    assert compactions(run) == []


def test_after_a_request_the_lifetime_begins_again(run, clock):
    clock.now += LIFETIME - 1
    run.to_messages()
    clock.now += LIFETIME - 1
    run.view()
    assert compactions(run) == []


def test_an_answer_says_that_there_was_a_request(run, clock):
    clock.now += 10 * LIFETIME
    run.record(ActionStep("I was asked without to_messages."))
    run.view()
    assert compactions(run) == []


def test_a_view_with_much_space_left_is_not_compacted(clock):
    with open_run(clock) as memory:
        memory.record(TaskStep("Find the value that is wrong."))
        fill(memory, 0.6)
        clock.now += LIFETIME
        memory.view()
        assert compactions(memory) == []


@pytest.mark.parametrize(("share", "is_worth_it"), [(0.65, False), (0.75, False), (0.85, True), (0.95, True)])
def test_it_pays_only_where_it_frees_more_than_is_left(share, is_worth_it, clock):
    with AgentMemory.open(":memory:", budget=Budget(4_000, low=0.7), clock=clock, page_in=0) as memory:
        memory.record(TaskStep("Find the value that is wrong."))
        fill(memory, share)
        tokens = memory.view().tokens
        clock.now += LIFETIME
        left, freed = memory.view().limit - tokens, tokens - memory.view().tokens
        assert bool(freed) == is_worth_it
        assert freed == 0 or freed > left


def test_without_a_cache_there_is_none_that_lapses(clock):
    with open_run(clock, prices="none") as memory:
        memory.record(TaskStep("Find the value that is wrong."))
        fill(memory, 0.85)
        clock.now += LIFETIME
        memory.view()
        assert compactions(memory) == []


def test_the_pause_may_lie_between_two_processes(tmp_path, clock):
    path = tmp_path / "run.db"
    with open_run(clock, path) as memory:
        memory.record(TaskStep("Find the value that is wrong."))
        fill(memory, 0.85)
    clock.now += LIFETIME
    with open_run(clock, path, readonly=True) as memory:
        memory.view()
        assert memory.report().tokens > 0.8 * 4_000
    with open_run(clock, path) as memory:
        memory.view()
        assert len(compactions(memory)) == 1
