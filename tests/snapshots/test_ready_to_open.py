"""What came back stands in a snapshot too: whoever opens the run next looks for nothing and counts nothing."""

import json

import pytest

from pagein import ActionStep, AgentMemory, Observation, TaskStep, ToolCall
from pagein.backends.sqlite.log import SQLiteLog
from pagein.context.page_in import SearchShare
from pagein.memory._state import SNAPSHOT_MIN_ENTRIES
from pagein.memory.operations.load import write_snapshot
from pagein.memory.search_runtime import SearchRuntime
from pagein.memory.snapshots import _decode_cache, _encode_cache
from pagein.tokens import encodings

BUDGET = 2_500


def play(memory, start, turns):
    for number in range(start, start + turns):
        call = ToolCall(f"c{number}", "bash", f'{{"command": "cat src/part_{number}.py"}}')
        lines = "\n".join(f"{n}: src/mod_{number}/app_{n}.py holds value_{number * 100 + n}" for n in range(12))
        memory.record(ActionStep(f"I look at part {number} of the shop.", (call,)), Observation(call.id, lines))
        memory.view()


def said(view):
    return [(each.handle, each.tier, each.why, each.tokens, each.messages) for each in view.request_entries]


def opened(path, **options):
    return AgentMemory.open(path, budget=BUDGET, synchronous="OFF", **options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


@pytest.fixture
def idle(monkeypatch):
    """Nothing may be counted, and nothing looked for."""

    def refuse(*_):
        raise AssertionError("this was at hand")

    def forbid():
        monkeypatch.setattr(encodings, "load_tokenizer", refuse)
        monkeypatch.setattr(SearchRuntime, "recall", refuse)
        monkeypatch.setattr(SearchRuntime, "_opened_index", refuse)

    yield forbid
    monkeypatch.undo()


@pytest.mark.parametrize("turns", [SNAPSHOT_MIN_ENTRIES, 200])
def test_the_first_view_is_at_hand(path, idle, turns):
    with opened(path) as memory:
        memory.record(TaskStep("Build the shop."))
        play(memory, 0, turns)
        shown, expected = memory.view(), memory.to_messages()
        assert [each.tier for each in shown.tail] == ["recalled"]
        assert memory._runtime.state.fold.compactions
    idle()
    with opened(path) as memory:
        assert said(memory.view()) == said(shown)
        assert memory.to_messages() == expected


def test_what_was_recorded_behind_the_last_view_is_made_ready_at_close(path, idle):
    with opened(path) as memory:
        memory.record(TaskStep("Build the shop."))
        play(memory, 0, 40)
        memory.record(ActionStep("That is all of shop_3 for now."))
    with opened(path) as memory:
        ready = memory._runtime.state.page_in.cache.rendered
        assert ready.head == memory._runtime.state.fold.head
        assert ready.entry is not None
        memory._runtime.state.page_in.cache = None
        anew = memory.view()
    idle()
    with opened(path) as memory:
        view = memory.view()
        assert view.head == anew.head
        assert [each.tier for each in view.request_entries][-1] == "recalled"


def test_how_much_the_archive_may_have_is_known_again(path):
    with opened(path) as memory:
        memory.record(TaskStep("Build the shop."))
        play(memory, 0, 60)
        part = memory._runtime.state.page_in.search_share
        assert part.share != SearchShare().share
    with opened(path) as memory:
        assert memory._runtime.state.page_in.search_share == part


def test_whoever_has_another_budget_looks_anew(path):
    with opened(path) as memory:
        memory.record(TaskStep("Build the shop."))
        play(memory, 0, 60)
        memory.view()
    with AgentMemory.open(path, budget=BUDGET + 400) as memory:
        view = memory.view()
        assert memory._runtime.state.page_in.cache.rendered.room > 0
        assert view.tokens <= view.limit


def test_no_view_was_asked_for_so_nothing_is_looked_up_at_close(path, idle, monkeypatch):
    with opened(path, page_in=0) as memory:
        memory.record(TaskStep("Build the shop."))
        play(memory, 0, 60)
    recorder = opened(path)
    recorder.record(TaskStep("Go on."))
    monkeypatch.setattr(SearchRuntime, "recall", lambda *_, **__: pytest.fail("nobody looks"))
    recorder.close()
    with opened(path) as memory:
        assert memory._runtime.state.page_in.cache is None


def test_an_undo_behind_it_leaves_it_behind(path):
    with opened(path) as memory:
        memory.record(TaskStep("Build the shop."))
        play(memory, 0, 60)
        memory._take_turn(write_snapshot)
        before = memory._runtime.log.snapshot_slot().snapshot
        memory.undo()
    log = SQLiteLog(path)
    log.keep_snapshot(before, 0)
    log.close()
    with opened(path) as memory:
        assert memory._runtime.state.fold.head > before.position
        assert memory._runtime.state.page_in.cache is None


def test_a_tail_is_read_back_as_it_was(path):
    with opened(path) as memory:
        memory.record(TaskStep("Build the shop."))
        play(memory, 0, 60)
        memory.view()
        tail = memory._runtime.state.page_in.cache
        assert tail.page_in.index is not None
        again = _decode_cache(json.loads(json.dumps(_encode_cache(tail))))
    assert again == tail
