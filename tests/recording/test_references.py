"""Lists of the Responses API that name the model's items by their ids: the AI SDK sends references to what is stored."""

import pytest

from pagein import ActionStep, AgentMemory, TaskStep
from pagein.events.steps import as_text

CALL = {"type": "function_call", "call_id": "call_Zq01kQ8Lm", "name": "read", "arguments": '{"path":"f1.txt"}'}
RESULT = {"type": "function_call_output", "call_id": "call_Zq01kQ8Lm", "output": "Seven boats."}


def asks(text):
    return {"role": "user", "content": [{"type": "input_text", "text": text}]}


def says(text, number):
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}


def thinks(number):
    return {"type": "reasoning", "id": f"rs_{number}", "summary": []}


def refers(id):
    return {"type": "item_reference", "id": id}


ANSWERS = [
    [thinks(1), says("I look it up.", 1), {**CALL, "id": "fc_1", "status": "completed"}],
    [thinks(2), says("There are seven boats.", 2)],
    [thinks(3), says("They are blue.", 3)],
]
LISTS = [
    [asks("How many boats?")],
    [asks("How many boats?"), refers("rs_1"), refers("msg_1"), CALL, RESULT],
    [asks("How many boats?"), refers("rs_1"), refers("msg_1"), CALL, RESULT, refers("rs_2"), refers("msg_2"), asks("Which colour?")],
]  # fmt: skip


def open_memory(path):
    return AgentMemory.open(path, session="run", format="openai-responses")


def texts_of(memory):
    return [text for step in memory.steps if (text := as_text(step.content or "").strip())]


@pytest.mark.parametrize("reopened", [False, True], ids=["one process", "reopened"])
def test_a_reference_is_the_item_that_was_recorded(tmp_path, reopened):
    memory = open_memory(tmp_path / "run.db")
    for rows, answer in zip(LISTS, ANSWERS, strict=True):
        if reopened:
            memory.close()
            memory = open_memory(tmp_path / "run.db")
        memory.record_messages(rows)
        memory.record_messages(answer, whole=False)
    said = ["How many boats?", "I look it up.", "There are seven boats.", "Which colour?", "They are blue."]
    assert texts_of(memory) == said
    assert [branch.name for branch in memory.branches()] == ["main"]
    assert memory.repairs == ()
    request = memory.to_messages()
    assert not [row for row in request if row.get("type") == "item_reference"]
    assert [row["id"] for row in request if row.get("type") == "reasoning"] == ["rs_1", "rs_2", "rs_3"]
    memory.close()


def test_a_reference_in_what_is_new_is_the_item_too(tmp_path):
    with open_memory(tmp_path / "run.db") as memory:
        memory.record_messages([asks("How many boats?"), *ANSWERS[0], RESULT])
        memory.record_messages([refers("msg_1")], whole=False)
        assert [type(step) for step in memory.steps] == [TaskStep, ActionStep, ActionStep]
        assert texts_of(memory)[1:] == ["I look it up.", "I look it up."]


def test_a_reference_to_an_unknown_item_stays_as_it_came(tmp_path):
    with open_memory(tmp_path / "run.db") as memory:
        rows = [asks("And now?"), refers("msg_77"), asks("Go on.")]
        memory.record_messages(rows)
        memory.record_messages([says("Good.", 1)], whole=False)
        memory.record_messages([*rows, refers("msg_1"), asks("And then?")])
        assert refers("msg_77") in memory.to_messages()
        assert texts_of(memory) == ["And now?", "Go on.", "Good.", "And then?"]
        assert len(memory.branches()) == 1


def test_another_answer_behind_a_reference_is_an_edit(tmp_path):
    with open_memory(tmp_path / "run.db") as memory:
        for rows, answer in zip(LISTS, ANSWERS, strict=True):
            memory.record_messages(rows)
            memory.record_messages(answer, whole=False)
        result = memory.record_messages([*LISTS[1], asks("Count the piers instead.")])
        assert result.branch == "branch-1"
        assert texts_of(memory) == ["How many boats?", "I look it up.", "Count the piers instead."]


def call(turn):
    return {"type": "function_call", "id": f"fc_{turn}", "call_id": f"call_{turn}", "name": "read", "arguments": "{}"}


@pytest.mark.parametrize("answer", [lambda turn: [says(f"Answer {turn}.", turn)], lambda turn: [call(turn)]])
@pytest.mark.parametrize("by_id", [False, True])
def test_references_to_reasoning_that_was_not_recorded_are_no_edit(tmp_path, answer, by_id):
    rows = [asks("How many boats?")]
    with open_memory(tmp_path / "run.db") as memory:
        for turn in range(8):
            memory.record_messages(rows)
            memory.record_messages(answer(turn), whole=False)
            (item,) = answer(turn)
            following = asks(f"And pier {turn}?")
            if item["type"] == "function_call":
                following = {"type": "function_call_output", "call_id": item["call_id"], "output": f"{turn} boats."}
            rows += [refers(f"rs_{turn}"), refers(item["id"]) if by_id else item, following]
        memory.record_messages(rows)
        assert len(memory.branches()) == 1
        assert memory.repairs == ()


def test_a_list_of_thousands_of_references_is_read(tmp_path):
    with open_memory(tmp_path / "run.db") as memory:
        memory.record_messages(
            [asks("How many boats?"), *(refers(f"rs_{at}") for at in range(3_000)), says("Seven.", 1)]
        )
        assert texts_of(memory)[0] == "How many boats?"
        assert texts_of(memory)[-1].endswith("Seven.")
