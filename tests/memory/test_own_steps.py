"""Steps of a user's own classes, details of steps, and values that are no JSON."""

import json
from dataclasses import dataclass, field

import pytest
from PIL import Image as Pillow

import pagein
from pagein import (
    ActionStep,
    AgentMemory,
    ConfigurationError,
    FinalAnswerStep,
    MemoryStep,
    Observation,
    PlanningStep,
    ProtocolError,
    TaskStep,
    Timing,
    ToolCall,
    Usage,
)


@dataclass
class Thought(MemoryStep):
    """tinyAgent's action: prose of the model, and what came of it as the user's message."""

    thought: str
    observation: str
    error: str = ""

    def to_messages(self, summary_mode=False):
        rows = [] if summary_mode else [{"role": "assistant", "content": f"Thought: {self.thought}"}]
        rows.append({"role": "user", "content": f"Observation: {self.observation}"})
        if self.error:
            rows.append({"role": "user", "content": f"Error: {self.error}\nPlease try a different approach."})
        return rows


@dataclass
class Metric(MemoryStep):
    """A step for the log alone."""

    kind = "metric"
    values: object

    def to_messages(self, summary_mode=False):
        return []


@dataclass
class Look(MemoryStep):
    """A step with a call and its result, shorter in summary mode."""

    path: str
    parts: list = field(default_factory=list)

    def to_messages(self, summary_mode=False):
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": json.dumps([self.path])}}
        prose = f"looked at {self.path}" if summary_mode else f"I look at {self.path}, as it may say more."
        return [
            {"role": "assistant", "content": prose, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "it is empty"},
        ]


@dataclass(frozen=True)
class Careful(ActionStep):
    """One of ours with a field more."""

    risk: int = 0


OWN = (Thought, Metric, Look, Careful)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


@pytest.fixture
def memory(path):
    with AgentMemory.open(path, step_types=OWN) as memory:
        memory.record(TaskStep("Find the fault"))
        yield memory


def test_a_step_of_ones_own_comes_back_as_it_was(memory, path):
    own = (Thought("read it", "line 1", "no"), Metric({"a": 1}), Look("a.py", ["x"]), Careful("Hm.", risk=3))
    memory.record(*own)
    assert memory.steps[1:] == own
    with AgentMemory.open(path, step_types=OWN) as again:
        assert again.steps[1:] == own


def test_its_messages_are_what_the_model_sees_and_a_note_is_not_the_users_word(memory):
    memory.record(Thought("read it", "line 1", "no"), Metric(1), Look("a.py"))
    rows = memory.to_messages()
    assert [(row["role"], row["content"]) for row in rows[1:]] == [
        ("assistant", "Thought: read it"),
        ("user", "Observation: line 1"),
        ("user", "Error: no\nPlease try a different approach."),
        ("assistant", "I look at a.py, as it may say more."),
        ("tool", "it is empty"),
    ]
    assert [entry.tier for entry in memory.view().run].count("user") == 1


def test_summary_mode_shows_what_the_step_says_in_it(memory):
    memory.record(Thought("read it", "line 1"), Metric(1), Look("a.py"))
    contents = [row["content"] for row in memory.to_messages(summary_mode=True)]
    assert contents == ["Find the fault", "Observation: line 1", "looked at a.py", "it is empty"]


def test_a_class_that_is_not_registered_is_kept_whole_and_shown(memory, path):
    memory.record(Thought("read it", "line 1"), Metric({"deep": [1, 2]}))
    with AgentMemory.open(path) as other:
        assert other.to_messages() == memory.to_messages()
        assert not any(isinstance(step, Thought) for step in other.steps)
        assert other.get_full_steps()[1:] == [
            {"position": 1, "kind": "Thought", "thought": "read it", "observation": "line 1", "error": ""},
            {"position": 3, "kind": "metric", "values": {"deep": [1, 2]}},
        ]


@pytest.mark.parametrize("policy", ["ladder", "tiers", "rounds", "window", "mask"])
def test_steps_of_ones_own_are_compacted_and_found_again(policy):
    with AgentMemory.open(":memory:", budget=900, policy=policy, step_types=OWN) as memory:
        memory.record(TaskStep("Find the fault"))
        for number in range(30):
            memory.record(Thought(f"try {number}", f"module{number} says nothing\n" * 6, "not it" * (number % 2)))
            assert memory.view().tokens <= 900
        assert "module3" in memory.recall("module3")[0].text
        assert len(memory.steps) == 31
        assert memory.verify().ok


def test_what_a_host_hands_back_is_known_again(memory):
    memory.record(Thought("read it", "line 1"))
    rows = memory.to_messages()
    count = len(memory.steps)
    memory.record_messages([*rows, {"role": "user", "content": "Go on."}])
    assert len(memory.steps) == count + 1


def test_erasing_a_note_erases_the_data_beside_its_step(memory, path):
    memory.record(Thought("read it", "the password is hunter2"), Thought("go on", "fine"))
    memory.erase("s2")
    assert "hunter2" not in json.dumps(memory.get_full_steps())
    assert memory.get_full_steps()[-1]["observation"] == "fine"


def test_a_result_that_came_as_a_message_can_be_erased(memory):
    memory.record_messages(
        [{"role": "assistant", "content": "Action: ls"}, {"role": "user", "content": "Observation: secret.txt"}],
        whole=False,
    )
    memory.erase("s2")
    assert "secret.txt" not in json.dumps(memory.get_full_steps())
    assert memory.to_messages()[-1]["content"] == "[erased]"


def test_a_step_that_says_nothing_of_itself_is_refused_with_the_cure(memory):
    class Bare(MemoryStep):
        pass

    class Odd(MemoryStep):
        def to_messages(self, summary_mode=False):
            return ["hello"]

    with pytest.raises(NotImplementedError, match="to_messages"):
        Bare().to_messages()
    for step in (Bare(), Odd()):
        with pytest.raises(ProtocolError, match="to_messages"):
            memory.record(step)
    assert len(memory.steps) == 1


def test_two_classes_of_one_kind_and_no_class_at_all_are_refused():
    other = type("Thought", (MemoryStep,), {})
    with pytest.raises(ConfigurationError, match="Thought"):
        AgentMemory.open(":memory:", step_types=(Thought, other))
    with pytest.raises(ConfigurationError, match="subclasses of MemoryStep"):
        AgentMemory.open(":memory:", step_types=(dict,))


def test_a_class_that_does_not_take_its_data_says_what_to_write(memory):
    class Odd(MemoryStep):
        def __init__(self, one):
            self.other = one

        def to_messages(self, summary_mode=False):
            return []

    memory.record(Odd(1))
    with AgentMemory.open(":memory:", step_types=(Odd,)) as other:
        other.record(Odd(1))
        with pytest.raises(ConfigurationError, match="from_dict"):
            _ = other.steps


# Details, and values that are no JSON


def test_details_are_stored_shown_to_the_host_and_never_sent(memory):
    before = memory.view().tokens
    timing = Timing(100.0, 102.5)
    sent = [{"role": "user", "content": "Find the fault"}]
    memory.record(
        PlanningStep.of("1. look", timing=timing, token_usage=Usage(5, 2)),
        ActionStep.of("Hm.", step_number=4, timing=timing, is_final_answer=True, code_action="print(1)"),
        ActionStep.of("Yes.", model_input_messages=sent),
    )
    _, plan, action, last = memory.steps
    assert (plan.timing.duration, plan.token_usage) == (2.5, Usage(5, 2))
    assert (action.step_number, action.timing, action.is_final_answer) == (4, timing, True)
    assert (last.model_input_messages, last.step_number, last.is_final_answer) == (sent, None, False)
    assert memory.get_full_steps()[3]["model_input_messages"] == sent
    assert "model_input_messages" not in memory.get_succinct_steps()[3]
    assert memory.get_succinct_steps()[2]["timing"]["start_time"] == 100.0
    assert "print(1)" not in json.dumps(memory.to_messages())
    with AgentMemory.open(":memory:") as plain:
        plain.record(TaskStep("Find the fault"), PlanningStep("1. look"), ActionStep("Hm."), ActionStep("Yes."))
        assert plain.view().tokens == memory.view().tokens > before


def test_values_that_are_no_json_are_stored_as_values_that_are(memory):
    class Report:
        def __init__(self):
            self.score = 3

    memory.record(
        ActionStep(None, (ToolCall("a", "f", {"path": {"x"}}),)),
        Observation.of("a", "done", report=Report(), ids={1}, ratio=float("nan")),
        FinalAnswerStep({"score": 3, "of": (1, 2)}),
    )
    _, action, answer = memory.steps
    assert json.loads(action.tool_calls[0].arguments) == {"path": ["x"]}
    metadata = action.observations[0].metadata
    assert metadata == {"report": {"_type": "Report", "score": 3}, "ids": [1], "ratio": "nan"}
    assert answer.output == {"score": 3, "of": [1, 2]}
    assert memory.to_messages()[-2]["content"] == '{"score": 3, "of": [1, 2]}'


@pytest.mark.parametrize("value", [42, None, 0.5, [], (), {"a": None}, True])
def test_any_value_is_a_final_answer(memory, value):
    memory.record(FinalAnswerStep(value))
    assert memory.steps[-1].output == (list(value) if value == () else value)
    json.dumps(memory.get_full_steps())


def test_a_picture_is_stored_as_a_part(memory):
    picture = Pillow.new("RGB", (4, 3), "red")
    memory.record(
        TaskStep(["What is this?", picture]),
        ActionStep(None, (ToolCall("a", "look"),)),
        Observation("a", picture),
        FinalAnswerStep(picture),
    )
    _, task, action, answer = memory.steps
    parts = (task.content[1], action.observations[0].content[0], answer.content[0])
    assert [type(part) for part in parts] == [pagein.Image] * 3
    assert all(part.data.startswith(b"\x89PNG") for part in parts)
    assert memory.to_messages()[1]["content"][1]["type"] == "image_url"


def test_content_that_is_nothing_of_the_kind_is_one_clear_error(memory):
    with pytest.raises(ProtocolError, match="content is text, pictures or parts, not set"):
        memory.record(TaskStep({"a"}))
