"""clear_view: everything said so far leaves the view at once, and nothing is lost."""

import pytest

from pagein import ActionStep, AgentMemory, Budget, Observation, TaskStep, ToolCall
from pagein.errors import FormatError

RULE = "Always use pytest, never unittest."
PEOPLE = ("Ada", "Grace", "Barbara", *(f"Guest{number}" for number in range(13)))
"""So many that a snapshot is kept of the run."""

SYSTEM = {"role": "system", "content": "Be kind."}


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def talk(*turns):
    rows = [SYSTEM, user(f"Hello. {RULE}"), assistant("Noted.")]
    for turn in turns:
        rows += [user(f"The badge number of {turn} is {len(turn)}4711, on every door. " + "And so on. " * 20), assistant("I noted that.")]  # fmt: skip
    return rows


@pytest.fixture
def memory(tmp_path):
    with AgentMemory.open(str(tmp_path / "run.db"), session="run", budget=Budget(2_000)) as memory:
        memory.record_messages(talk(*PEOPLE))
        memory.pin("The customer is Acme.")
        yield memory


def texts(memory):
    return "\n".join(str(row["content"]) for row in memory.to_messages())


def test_what_was_said_is_out_of_the_view_and_all_of_it_within_reach(memory):
    before = memory.to_messages()
    compaction = memory.clear_view()
    assert (compaction.policy, compaction.tokens_after < compaction.tokens_before) == ("clear", True)
    assert "I noted that." not in texts(memory)
    assert all(text in texts(memory) for text in ("Be kind.", "The customer is Acme.", RULE, "Out of view: s1-"))
    assert "Ada" in str(memory.expand("s3"))
    assert memory.recall("badge number of Grace")[0].handle == "s5"
    memory.record(TaskStep("What is the badge number of Grace, for every door?"))
    assert "The badge number of Grace is 54711" in texts(memory), "the user's words brought it back"
    assert memory.view().user_tokens == 0, "a policy clips the user's earlier words by what stands in the view"
    assert memory.verify().ok
    assert memory.undo() == compaction
    assert [row for row in memory.to_messages() if row in before] == before


def test_a_view_that_is_clear_or_nearly_empty_stays_as_it_is(memory, tmp_path):
    memory.clear_view()
    assert memory.clear_view() is None
    with AgentMemory.open(str(tmp_path / "run.db"), session="other") as other:
        assert other.clear_view() is None
        other.record(TaskStep("Hi."))
        assert other.clear_view() is None
        assert len(other.to_messages()) == 1


def test_a_call_that_waits_for_its_result_stays(memory):
    memory.record(ActionStep("I look.", (ToolCall("c1", "read", "{}"),)))
    memory.clear_view()
    assert "I noted that." not in texts(memory)
    assert "I look." in texts(memory)
    memory.record(Observation("c1", "found it"))
    assert "found it" in texts(memory)


@pytest.mark.parametrize("reopened", [False, True])
def test_the_next_whole_list_begins_anew_whatever_it_shares_with_what_was_before(memory, tmp_path, reopened):
    memory.clear_view()
    new = [SYSTEM, user(f"Hello. {RULE}"), user("A summary: three badges were noted."), assistant("I go on.")]
    first = memory.record_messages(new[:3])
    assert first.last - first.first == 2
    if reopened:
        memory.close()
        memory = AgentMemory.open(str(tmp_path / "run.db"), session="run", budget=Budget(2_000))
    second = memory.record_messages(new)
    assert (second.first, second.last, second.branch) == (first.last, first.last + 1, None)
    again = memory.record_messages(new)
    assert again.first == again.last
    edited = memory.record_messages([*new[:2], user("Another summary."), assistant("I go on.")])
    assert edited.branch is not None
    assert [step.content for step in memory.steps][-3:] == [f"Hello. {RULE}", "Another summary.", "I go on."]
    assert "Out of view: s1-" in texts(memory)
    memory.close()


def test_after_an_undo_the_list_of_before_is_the_runs_again(memory):
    rows = talk(*PEOPLE)
    memory.clear_view()
    memory.undo()
    with pytest.raises(FormatError):
        memory.record_messages([user("Something else.")], whole=True)
    result = memory.record_messages([*rows, user("On.")], whole=True)
    assert result.last - result.first == 1


def test_a_list_of_before_that_comes_again_is_recorded_behind_the_line_that_stands_for_it(memory):
    memory.clear_view()
    rows = talk(*PEOPLE)
    result = memory.record_messages(rows)
    assert result.last - result.first == len(rows) - 1, "all but the system prompt, which is still there"
