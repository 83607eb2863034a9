"""The words smolagents' users know, on our own steps: dict, to_messages, callbacks, replay, truncation, metadata."""

import json

import pytest

from pagein import (
    ActionStep,
    AgentMemory,
    CallbackRegistry,
    ConfigurationError,
    FinalAnswerStep,
    Image,
    MemoryStep,
    Observation,
    Opaque,
    PlanningStep,
    Step,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    Text,
    ToolCall,
    replay,
    truncate_content,
)
from pagein.formats import validate
from pagein.log.codec import decode, encode

LOOK = ActionStep("I look.", (ToolCall("a", "look", '{"at": 1}'),), (Observation("a", "seen"),))
RUN = (
    SystemPromptStep("Be brief."),
    TaskStep((Text("See."), Image(b"png", "image/png"))),
    PlanningStep("First look."),
    LOOK,
    FinalAnswerStep("Seen."),
    TaskStep("Again."),
    ActionStep((Text("One."), Text("Two."))),
    TaskStep("Once more."),
)


def test_a_run_of_steps_says_itself_as_a_memory_with_room_says_it():
    with AgentMemory.open(":memory:", budget=100_000) as memory:
        memory.record(*RUN)
        for mode in (False, True):
            rows = [row for step in RUN for row in step.to_messages(summary_mode=mode)]
            assert flat(rows) == flat(memory.to_messages(summary_mode=mode))
        validate([row for step in RUN for row in step.to_messages()], "openai")


def flat(rows):
    """Parts that are only text, as the text they are."""
    return [{**row, "content": texts(row["content"])} for row in rows]


def texts(content):
    if isinstance(content, list) and all(part["type"] == "text" for part in content):
        return "\n".join(part["text"] for part in content)
    return content


def test_a_step_as_values_is_what_the_full_steps_of_a_memory_say():
    with AgentMemory.open(":memory:", budget=100_000) as memory:
        memory.record(*RUN)
        assert [{"position": at, **step.dict()} for at, step in enumerate(RUN)] == memory.get_full_steps()
    assert json.loads(json.dumps(LOOK.dict())) == LOOK.dict()
    assert SummaryStep("s").dict() == {"kind": "summary", "content": "s", "author": "extractive"}
    assert SummaryStep("s").to_messages() == [{"role": "user", "content": "s"}]


def test_private_content_and_open_calls_are_not_said():
    private = Opaque("anthropic", "thinking", "{}", "secret")
    step = ActionStep((private, Text("Aloud.")), (ToolCall("a", "f"), ToolCall("b", "g")), (Observation("a", "1"),))
    reply, answer = step.to_messages()
    assert (reply["content"], answer["tool_call_id"]) == ("Aloud.", "a")
    assert ActionStep((private,)).to_messages() == []


def test_every_kind_of_step_is_a_memory_step_and_stays_the_value_it_was():
    for step in RUN:
        assert isinstance(step, MemoryStep)
        assert not hasattr(step, "__dict__")
    record = encode(LOOK)
    assert decode(record.kind, record.version, record.body, lambda _: b"") == LOOK


def test_an_observation_has_a_status_a_result_and_what_the_tool_knew_beside_it():
    observation = Observation.of("a", "3 files", "error", seconds=1.5, files=["x"])
    assert (observation.status, observation.result, observation.metadata) == (
        "error",
        "3 files",
        {"seconds": 1.5, "files": ["x"]},
    )
    assert observation.dict()["content"] == "3 files"
    assert (
        Observation("a", "x").metadata == Observation("a", "x", extra=Opaque("openai", "message", "[")).metadata == {}
    )
    with AgentMemory.open(":memory:", budget=10_000) as memory:
        memory.record(TaskStep("t"), ActionStep(None, (ToolCall("a", "ls"),)), observation)
        assert memory.steps[1].observations[0].metadata["files"] == ["x"]
        assert "seconds" not in str(memory.to_messages())


# Callbacks


def test_callbacks_are_called_from_the_steps_own_class_to_the_root_in_their_order():
    called, registry = [], CallbackRegistry()
    for kind, name in ((object, "any"), (MemoryStep, "ours"), (ActionStep, "first"), (ActionStep, "second")):
        registry.register(kind, lambda step, name=name, **_: called.append(name))
    registry.register(TaskStep, lambda step: called.append("task"))
    registry.callback(LOOK, memory=None)
    assert called == ["first", "second", "ours", "any"]


def test_a_callback_of_one_parameter_gets_the_step_alone():
    got, registry = [], CallbackRegistry()

    class Methods:
        def one(self, step):
            got.append((step,))

        def more(self, step, memory):
            got.append((step, memory))

    registry.register(Step, Methods().one)
    registry.register(TaskStep | ActionStep, Methods().more)
    registry.register(ActionStep, lambda *all, **named: got.append((all, named)))
    registry.callback(LOOK, memory="m")
    assert got == [(LOOK,), (LOOK, "m"), ((LOOK,), {"memory": "m"})]


def test_a_callback_that_raises_is_heard_and_one_that_registers_another_waits_for_the_next():
    called, registry = [], CallbackRegistry()

    def first(step):
        called.append(1)
        registry.register(TaskStep, lambda step: called.append(2))

    registry.register(TaskStep, first)
    registry.callback(TaskStep("a"))
    assert called == [1]

    def raise_error(step):
        raise KeyError("mine")

    registry.register(MemoryStep, raise_error)
    with pytest.raises(KeyError, match="mine"):
        registry.callback(TaskStep("a"))
    for kind, callback in ((3, first), ("TaskStep", first), (TaskStep, None)):
        with pytest.raises(ConfigurationError):
            registry.register(kind, callback)


# Display


@pytest.mark.parametrize("length", [1, 2, 5, 40, 70, 71, 72, 100, 999, 1_000, 20_000])
def test_truncated_text_is_never_longer_and_keeps_both_ends(length):
    text = "".join(chr(0x1F300 + i % 200) if i % 7 == 0 else "x" for i in range(1_000))
    cut = truncate_content(text, length)
    assert len(cut) <= length
    assert cut[0] == text[0]
    assert (cut == text) == (length >= 1_000)
    if 100 <= length < 1_000:
        assert cut[-1] == text[-1]
        assert "1,000 characters" in cut


@pytest.mark.parametrize("length", [0, -1, True, 1.5, None])
def test_a_length_that_is_none_is_refused(length):
    with pytest.raises(ConfigurationError, match="max_length"):
        truncate_content("text", length)


def test_a_replay_tells_every_step_and_with_details_what_came_back():
    long = ActionStep("x" * 30_000, (ToolCall("a", "f", "{}"), ToolCall("b", "g")), (Observation("a", "no", "error"),))
    with AgentMemory.open(":memory:", budget=100_000) as memory:
        memory.record(*RUN)
        brief, whole = [], []
        replay(memory, brief.append)
        replay((*memory.steps, long), whole.append, detailed=True)
    assert [line for line in brief if line.startswith("── ")][3] == "── 3 action ──"
    assert "→ look" in brief
    assert not any("seen" in line for line in brief if line.startswith("←"))
    assert '→ look({"at": 1})' in whole
    assert "← ok: seen" in whole
    assert whole[-4:] == ["→ f({})", "← error: no", "→ g({})", "← (no result yet)"]
    assert max(map(len, whole)) == 20_000
