"""A list that begins in other words than the run: the run's own list, or what an application hands over as news."""

import pytest

from pagein import AgentMemory
from pagein.events.steps import as_text


def user(text):
    return {"role": "user", "content": text}


def model(text):
    return {"role": "assistant", "content": text}


def clock(hour):
    return user(f"It is {hour} o'clock. Count the boats at the pier.")


CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
}


def result(text):
    return {"role": "tool", "tool_call_id": "c1", "content": text}


def branches_and_texts(*lists):
    """The branches of a run that was handed these lists, and what its steps say."""
    with AgentMemory.open(":memory:", budget=100_000) as memory:
        for messages in lists:
            memory.record_messages(messages)
        return len(memory.branches()), [as_text(step.content or "") for step in memory.steps]


@pytest.mark.parametrize(
    "lists",
    [
        ([clock(1), model("OK.")], [user("Sing a song."), model("OK.")]),  # another question, the same answer
        ([clock(1)], [clock(2), user("Now.")]),
        ([clock(1), model("OK.")], [user("Sing."), model("La.")], [clock(2), model("OK.")]),
    ],
)
def test_what_is_new_is_no_new_wording_of_the_run(lists):
    said = [message["content"] for messages in lists for message in messages]
    assert branches_and_texts(*lists) == (1, said)


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (
            ([clock(1), CALL], [result("3 boats")], [model("Three."), user("And at the quay?")]),
            [clock(2), CALL, result("4 boats"), model("Three."), user("And at the quay?"), model("None.")],
        ),
        (
            ([clock(1)], [model("Three."), user("And at the quay?")]),
            [user("Sum up."), model("Three."), user("And at the quay?"), model("None.")],
        ),
        (
            ([clock(1), user("Be brief."), model("Three.")],),
            [clock(2), user("Use few words."), model("Three."), user("Why?")],
        ),
    ],
)
def test_the_runs_own_list_with_another_beginning_is_one_branch(pieces, whole):
    said = [message["content"] or "" for message in whole if message["role"] != "tool"]
    assert branches_and_texts(*pieces, whole) == (2, said)


def test_the_first_change_of_the_users_words_is_a_branch_whatever_was_changed_before():
    run = [clock(1), CALL, result("3 boats"), model("Three."), user("Why?"), model("Tide.")]
    other_result = [*run[:2], result("4 boats"), *run[3:]]
    with AgentMemory.open(":memory:", budget=100_000) as memory:
        memory.record_messages(run)
        memory.record_messages([*other_result, user("Thanks.")])
        assert len(memory.branches()) == 1
        memory.record_messages([clock(2), *other_result[1:], user("Thanks.")])
        assert len(memory.branches()) == 2


def test_a_change_elsewhere_than_where_the_branch_begins_is_another_branch():
    run = [clock(1), model("Three."), user("Why?"), model("Tide."), user("When?"), model("Noon.")]
    later = [*run[:4], user("Where?"), model("Here.")]
    with AgentMemory.open(":memory:", budget=100_000) as memory:
        for messages in (run, later, [clock(2), *later[1:], user("Thanks.")]):
            memory.record_messages(messages)
        assert len(memory.branches()) == 3
