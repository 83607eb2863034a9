"""What came back stands in a snapshot too: whoever opens the run next looks for nothing and counts nothing."""

import json

import pytest

from pagein import ActionStep, AgentMemory, Observation, TaskStep, ToolCall
from pagein.backends.sqlite.log import SQLiteLog
from pagein.memory._state import SNAPSHOT_MIN_ENTRIES
from pagein.memory.operations.load import write_snapshot
from pagein.memory.search_runtime import SearchRuntime
from pagein.memory.snapshots import _decode_page_in, _encode_page_in
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


@pytest.mark.slow
@pytest.mark.parametrize("turns", [SNAPSHOT_MIN_ENTRIES, 200])
def test_the_first_view_is_at_hand(path, idle, turns):
    with opened(path) as memory:
        memory.record(TaskStep("Build the shop."))
        play(memory, 0, turns)
        memory.record(TaskStep("What holds value_305?"))
        shown, expected = memory.view(), memory.to_messages()
        assert {entry.tier for entry in shown.tail} == {"recalled"}
        assert memory._runtime.state.fold.compactions
    idle()
    with opened(path) as memory:
        assert said(memory.view()) == said(shown)
        assert memory.to_messages() == expected


def test_what_the_user_said_behind_the_last_view_is_looked_for_at_close(path, idle):
    with opened(path) as memory:
        memory.record(TaskStep("Build the shop."))
        play(memory, 0, 40)
        memory.record(TaskStep("What holds value_305?"))
    idle()
    with opened(path) as memory:
        ready = memory._runtime.state.page_in.shown
        view = memory.view()
        assert ready[-1].entry in view.tail
        assert "value_305" in str(ready[-1].entry.item)


def test_the_page_ins_are_known_again(path):
    with opened(path) as memory:
        memory.record(TaskStep("Build the shop."))
        play(memory, 0, 60)
        page_in = memory._runtime.state.page_in
        assert page_in.shown
    with opened(path) as memory:
        assert memory._runtime.state.page_in.shown == page_in.shown
        assert memory._runtime.state.page_in.occasion == page_in.occasion


def test_another_budget_is_heeded(path):
    with opened(path) as memory:
        memory.record(TaskStep("Build the shop."))
        play(memory, 0, 60)
        memory.view()
    with AgentMemory.open(path, budget=BUDGET + 400) as memory:
        view = memory.view()
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
        assert memory._runtime.state.page_in.shown == ()


def test_an_undo_behind_it_leaves_it_behind(path):
    with opened(path) as memory:
        memory.record(TaskStep("Build the shop."))
        play(memory, 0, 60)
        memory._runtime.take_turn(write_snapshot)
        before = memory._runtime.log.snapshot_slot().snapshot
        memory.undo()
    log = SQLiteLog(path)
    log.keep_snapshot(before, 0)
    log.close()
    with opened(path) as memory:
        assert memory._runtime.state.fold.head > before.position
        assert memory._runtime.state.page_in.shown == ()


def test_a_tail_is_read_back_as_it_was(path):
    with opened(path) as memory:
        memory.record(TaskStep("Build the shop."))
        play(memory, 0, 60)
        memory.view()
        (page_in, *_) = memory._runtime.state.page_in.shown
        assert page_in.sources or page_in.names
        again = _decode_page_in(*json.loads(json.dumps(_encode_page_in(page_in))))
    assert again == page_in
