"""Edits by hand, reset, replay and the code of a run."""

import asyncio
import json

import pytest

from pagein import (
    ActionStep,
    AgentMemory,
    AsyncAgentMemory,
    NothingToUndo,
    Observation,
    ProtocolError,
    SystemPromptStep,
    TaskStep,
    ToolCall,
    UnknownHandle,
)
from pagein.formats import validate

RUN = (
    SystemPromptStep("Be brief."),
    TaskStep("Find the fault"),
    ActionStep(
        "I look.", (ToolCall("a", "look", '{"at": 1}'), ToolCall("b", "look")), (Observation("a", "zebra"), None)
    ),
    Observation("b", "nothing"),
    ActionStep("It is the zebra."),
    TaskStep("And now?"),
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


@pytest.fixture
def memory(path):
    with AgentMemory.open(path) as memory:
        memory.record(*RUN)
        yield memory


def shown(memory):
    request = memory.to_messages()
    assert validate(request, "openai") in ((), [], None)
    return json.dumps(request)


def test_an_edit_shows_other_words_is_kept_and_undone(memory, path):
    before = shown(memory)
    memory.edit("s2.0", "a horse")
    memory.edit("s4", "It is the horse.")
    memory.edit("s1", TaskStep("Find the animal"))
    assert "zebra" not in shown(memory)
    for word in ("a horse", "It is the horse.", "Find the animal", "nothing"):
        assert word in shown(memory)
    with AgentMemory.open(path) as again:
        assert shown(again) == shown(memory)
    assert "zebra" in str(memory.expand("s2").steps)
    for _ in range(3):
        memory.undo()
    assert shown(memory) == before
    assert memory.verify().ok
    with pytest.raises(NothingToUndo):
        memory.undo()


def test_a_whole_action_is_edited_slot_by_slot(memory):
    old = memory.steps[2]
    calls = (ToolCall("a", "look", '{"at": 2}'), old.tool_calls[1])
    results = (Observation("a", "a horse"), old.observations[1])
    memory.edit("s2", ActionStep("I see.", calls, results))
    row = memory.to_messages()[2]
    assert (row["content"], row["tool_calls"][0]["function"]["arguments"]) == ("I see.", '{"at": 2}')
    assert "zebra" not in json.dumps(memory.to_messages()[:4])


def test_a_removed_step_leaves_with_its_results_and_is_not_searched(memory, path):
    memory.remove("s2")
    text = shown(memory)
    assert "look" not in text.replace("I look", "look") or "tool" not in text
    assert not any("nothing" in hit.text for hit in memory.recall("nothing"))
    assert str(memory.expand("s2").steps)
    memory.close()
    with AgentMemory.open(path) as again:
        assert shown(again) == text
        assert not any("nothing" in hit.text for hit in again.recall("nothing"))
        again.undo()
        assert any("nothing" in hit.text for hit in again.recall("nothing"))


@pytest.mark.parametrize(
    ("handle", "change", "reason"),
    [
        ("s2.0", None, "the result of a call"),
        ("s5", None, "newest message"),
        ("s0", None, "recorded anew"),
        ("s1-2", None, "one step"),
        ("s2", ActionStep("I look."), "ids and names of the calls"),
        ("s1", ActionStep("No."), "stays one"),
        ("s4", "It is the zebra.", "says that already"),
        ("s2.0", TaskStep("x"), "edited with an Observation"),
    ],
)
def test_what_would_make_a_request_illegal_is_refused_and_records_nothing(memory, handle, change, reason):
    before, count = shown(memory), memory.verify().entries
    with pytest.raises(ProtocolError, match=reason):
        memory.remove(handle) if change is None else memory.edit(handle, change)
    assert (shown(memory), memory.verify().entries) == (before, count)


def test_a_call_without_its_result_stays(memory):
    memory.record(ActionStep(None, (ToolCall("c", "look"),)))
    handle = f"s{memory.verify().entries - 1}"
    with pytest.raises(ProtocolError, match="record the result first"):
        memory.remove(handle)
    with pytest.raises(ProtocolError, match="no result yet"):
        memory.edit(f"{handle}.0", "x")
    with pytest.raises(UnknownHandle):
        memory.remove("s999")


def test_what_left_the_view_is_not_edited():
    with AgentMemory.open(":memory:", budget=700, policy="window") as memory:
        memory.record(TaskStep("Count"))
        for number in range(60):
            memory.record(ActionStep(f"I count {number} " * 6))
            memory.view()
        with pytest.raises(ProtocolError, match="left the view"):
            memory.edit("s1", "x")
        newest = f"s{max(entry.first for entry in memory.view().run)}"
        memory.edit(newest, "short")
        for number in range(60):
            memory.record(ActionStep(f"I count on {number} " * 6))
            assert memory.view().tokens <= 700
        assert memory.verify().ok


def test_reset_keeps_the_system_prompt_and_the_run_on_its_branch(memory):
    branch = memory.reset()
    assert memory.steps == RUN[:1]
    memory.record(TaskStep("Something else"))
    assert "fault" not in shown(memory)
    assert not memory.recall("zebra")
    assert branch.name != "main"
    memory.switch("main")
    assert len(memory.steps) == 5


def test_replay_and_the_code_of_a_run():
    with AgentMemory.open(":memory:") as memory:
        memory.record(
            TaskStep("Count"),
            ActionStep.of("I count.", code_action="n = 1"),
            ActionStep(None, (ToolCall("a", "python_interpreter", '{"code": "n += 1"}'),)),
            Observation("a", "2"),
            ActionStep(None, (ToolCall("b", "python_interpreter", json.dumps("print(n)")),)),
            Observation("b", "2"),
            ActionStep(None, (ToolCall("c", "search", '{"code": "no"}'),)),
        )
        assert memory.return_full_code() == "n = 1\n\nn += 1\n\nprint(n)"
        brief, detailed = [], []
        memory.replay(write=brief.append)
        memory.replay(detailed=True, write=detailed.append)
        assert "I count." in brief
        assert len(brief) < len(detailed)


def test_the_async_memory_does_the_same():
    async def play():
        async with AsyncAgentMemory.open(":memory:") as memory:
            await memory.record(*RUN)
            await memory.edit("s4", "It is the horse.")
            await memory.remove("s2")
            rows = json.dumps(await memory.to_messages())
            await memory.reset()
            lines = []
            await memory.replay(write=lines.append)
            return rows, lines, await memory.return_full_code()

    rows, lines, code = asyncio.run(play())
    assert "zebra" not in rows
    assert lines == ["── 0 system ──", "Be brief."]
    assert code == ""
