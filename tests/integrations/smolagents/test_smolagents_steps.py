"""The live list: whatever is done to it, the log says the same, the record keeps all, and a new process finds it."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from smolagents import memory as theirs
from smolagents.models import ChatMessage, MessageRole
from smolagents.monitoring import Timing, TokenUsage
from smolagents.utils import AgentExecutionError, AgentMaxStepsError
from smolagents_scripted import agent_of, check_legal, text_of

from pagein import AgentMemory, ConfigurationError, TaskStep, UnknownHandle
from pagein.integrations.smolagents import PageinMemory
from pagein.integrations.smolagents.from_steps import _error


def action(number, observed="seen", **fields):
    given = {
        "model_output": f"Thought {number}",
        "tool_calls": [theirs.ToolCall("look", {"n": number}, f"call_{number}")],
        "observations": f"{observed} {number}",
    } | fields
    return theirs.ActionStep(step_number=number, timing=Timing(1.0, 2.0), **given)


def memory_of(*steps, **options):
    memory = PageinMemory("Be brief.", budget=20_000, **options)
    memory.steps.extend(steps)
    return memory


def said(memory, **mode):
    messages = memory.write_memory_to_messages(**mode)
    return cleaned(messages)


def cleaned(messages):
    """Roles and words; neighbours of one role are one message, as smolagents makes them before it sends."""
    found = []
    for each in messages:
        if found and found[-1][0] == each.role.value:
            found[-1] = (each.role.value, f"{found[-1][1]}\n{text_of(each)}")
        else:
            found.append((each.role.value, text_of(each)))
    return found


def bare(memory, summary_mode=False):
    """What smolagents makes of the same steps."""
    whole = [*memory.system_prompt.to_messages(summary_mode)]
    for step in memory.steps:
        whole += step.to_messages(summary_mode)
    return cleaned(whole)


EVERY_KIND = (
    theirs.TaskStep("Do it."),
    theirs.PlanningStep(
        [], ChatMessage(MessageRole.ASSISTANT, "p"), "First this, then that.", Timing(0.0, 1.0), TokenUsage(3, 4)
    ),
    action(1),
    action(2, model_output=None, code_action="x = 1"),
    action(3, observations=None, error=_error({"type": "AgentExecutionError", "message": "it broke"})),
    action(4, error=_error({"type": "AgentExecutionError", "message": "half"}), token_usage=TokenUsage(7, 8)),
    action(5, tool_calls=None, observations=None, error=_error({"type": "AgentParsingError", "message": "no blob"})),
    action(6, tool_calls=None),
    action(7, is_final_answer=True, action_output={"a": [1, 2.5, None, "7"]}),
)


@pytest.mark.parametrize("summary_mode", [False, True])
def test_while_all_fits_the_model_sees_what_smolagents_would_show_it(summary_mode):
    memory = memory_of(*EVERY_KIND)
    assert said(memory, summary_mode=summary_mode) == bare(memory, summary_mode)
    check_legal(memory.write_memory_to_messages())


def test_another_process_finds_every_step_as_it_was(tmp_path):
    path = tmp_path / "run.db"
    with memory_of(*EVERY_KIND, url=path) as memory:
        before, shown = memory.get_succinct_steps(), said(memory)
    with PageinMemory("", path, budget=20_000) as again:
        after = again.get_succinct_steps()
        # What a model's SDK gave beside the words is not kept, and the words are in model_output.
        for each in (*before, *after):
            each.pop("model_output_message", None)
        assert after == before
        assert said(again) == shown
        assert again.system_prompt.system_prompt == "Be brief."
        assert type(again.steps[5].error) is AgentExecutionError
        assert [type(each) for each in again.steps] == [type(each) for each in EVERY_KIND]


def test_a_step_edited_in_place_is_another_from_the_next_request_on_and_the_old_one_is_kept(tmp_path):
    path = tmp_path / "run.db"
    with memory_of(theirs.TaskStep("Do it."), action(1), action(2), url=path) as memory:
        memory.write_memory_to_messages()
        memory.steps[1].observations = "REDACTED"
        memory.steps[2].error = _error({"type": "AgentExecutionError", "message": "wrong"})
        assert said(memory) == bare(memory)
        assert "seen 1" not in str(said(memory))
        assert "wrong" in str(said(memory))
    with PageinMemory("", path, budget=20_000) as again:
        assert again.steps[1].observations == "REDACTED"
    with AgentMemory.open(path, budget=20_000) as record:
        assert "seen 1" in str(record.steps)


def test_deleting_replacing_and_inserting_are_what_they_are_in_a_list(tmp_path):
    path = tmp_path / "run.db"
    steps = [theirs.TaskStep("Do it."), *(action(n) for n in range(1, 8))]
    with memory_of(*steps, url=path) as memory:
        del memory.steps[2:4]
        memory.steps[1] = action(11)
        memory.steps.insert(3, action(12))
        memory.steps.pop()
        memory.steps += [action(13)]
        memory.steps.remove(memory.steps[2])
        assert [getattr(each, "step_number", 0) for each in memory.steps] == [0, 11, 12, 5, 6, 13]
        assert said(memory) == bare(memory)
        mine = list(memory.steps)
        memory.steps = mine[:2]
        assert memory.steps == mine[:2]
        assert said(memory) == bare(memory)
    with PageinMemory("", path, budget=20_000) as again:
        assert [getattr(each, "step_number", 0) for each in again.steps] == [0, 11]
    with AgentMemory.open(path, budget=20_000) as record:
        whole = str(list(record._runtime.log.read()))
        assert all(f"seen {n}" in whole for n in (1, 2, 3, 4, 5, 6, 7, 11, 12, 13))


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["append", "pop", "edit", "insert", "replace", "reverse", "task", "reset", "look"]),
        st.integers(0, 7),
    ),
    max_size=12,
)


def make(memory, move, where, number):
    """One change, as a user may make it."""
    steps = memory.steps
    at = where % len(steps) if len(steps) else 0
    match move:
        case "append":
            steps.append(action(number, "word " * 60))
        case "task":
            steps.append(theirs.TaskStep(f"Also {number}."))
        case "pop" if steps:
            steps.pop(at)
        case "edit" if steps and isinstance(steps[at], theirs.ActionStep):
            steps[at].observations = None if where == 7 else f"edited {number}"
        case "insert":
            steps.insert(at, action(number))
        case "replace" if steps:
            steps[at] = action(number)
        case "reverse":
            steps.reverse()
        case "reset":
            memory.reset()
        case "look":
            memory.write_memory_to_messages()


@given(MOVES)
def test_after_any_changes_log_list_and_a_new_look_at_the_log_say_the_same(moves):
    memory = memory_of(theirs.TaskStep("Do it."))
    log = memory.pages.log()._log
    for number, (move, where) in enumerate(moves, 1):
        make(memory, move, where, number)
    if calls_answered(memory):
        assert said(memory) == bare(memory)
    reopened = type(memory.pages)(log, budget=20_000)
    assert reopened.view() == memory.pages.view()
    assert reopened.verify().ok


def calls_answered(memory):
    """False where a call was left without any answer: then we say so, and smolagents leaves it open."""
    return all(
        not isinstance(each, theirs.ActionStep) or each.observations is not None for each in memory.steps
    ) and isinstance(next(iter(memory.steps), theirs.TaskStep("")), theirs.TaskStep)


def test_under_pressure_an_edit_of_what_has_left_the_view_changes_what_stands_for_it():
    memory = PageinMemory("Be brief.", budget=1_500)
    memory.steps.append(theirs.TaskStep("Do it."))
    for number in range(40):
        memory.steps.append(action(number, "needle haystack " * 20))
        memory.write_memory_to_messages()
    assert memory.pages.view().report.out
    memory.steps[3].observations = "gone by choice"
    del memory.steps[2]
    messages = memory.write_memory_to_messages()
    check_legal(messages)
    assert memory.cost(messages) <= 1_500
    handle = next(f"s{e.position}" for e in memory.pages.log().read() if "gone by choice" in str(e.body))
    assert "gone by choice" in memory.expand(handle)


@pytest.mark.parametrize("way", ["edit", "delete", "reset"])
def test_what_was_taken_out_comes_back_by_no_search_and_no_handle(way):
    memory = PageinMemory("Be brief.", budget=1_500)
    memory.steps.append(theirs.TaskStep("Find the zanzibar code."))
    for number in range(30):
        found = "The zanzibar code is QX-99172.\n" if number == 2 else ""
        memory.steps.append(action(number, f"{found}needle haystack " * 20))
        memory.write_memory_to_messages()
    assert any("QX-99172" in hit.text for hit in memory.pages.recall("zanzibar code"))
    handle = next(f"s{e.position}" for e in memory.pages.log().read() if "QX-99172" in str(e.body))
    if way == "edit":
        memory.steps[3].observations = "(gone)"
    elif way == "delete":
        del memory.steps[3]
    else:
        memory.reset()
        memory.steps.append(theirs.TaskStep("Say the zanzibar code."))
    assert "QX-99172" not in str(memory.write_memory_to_messages())
    assert not any("QX-99172" in hit.text for hit in memory.pages.recall("zanzibar code"))
    try:
        assert "QX-99172" not in memory.expand(handle)
    except UnknownHandle:
        assert way != "edit"
    assert "QX-99172" in str(list(memory.pages.log()._log.read()))


def test_what_is_no_step_is_refused_and_nothing_changes():
    memory = memory_of(theirs.TaskStep("Do it."), action(1))
    before, head = list(memory.steps), memory.pages.view().head
    for change in (
        lambda: memory.steps.append({"role": "user"}),
        lambda: memory.steps.__setitem__(0, "text"),
        lambda: memory.steps.__iadd__([action(2), None]),
        lambda: setattr(memory, "steps", [1]),
    ):
        with pytest.raises(ConfigurationError, match="takes the steps of smolagents"):
            change()
    assert list(memory.steps) == before
    assert memory.pages.view().head == head


def test_a_kind_we_do_not_know_says_what_it_says_and_comes_back(tmp_path):
    class Aside(theirs.MemoryStep):
        def __init__(self, text):
            self.text = text

        def dict(self):
            return {"text": self.text}

        def to_messages(self, summary_mode=False):
            return [
                ChatMessage(MessageRole.USER, [{"type": "text", "text": f"Aside: {self.text}"}]),
                ChatMessage(MessageRole.ASSISTANT, [{"type": "text", "text": "Noted."}]),
            ]

    path = tmp_path / "run.db"
    with memory_of(theirs.TaskStep("Do it."), Aside("mind the gap"), action(1), url=path) as memory:
        assert said(memory) == bare(memory)
        assert memory.get_full_steps()[1] == {"text": "mind the gap"}
    with PageinMemory("", path, budget=20_000) as again:
        assert said(again) == bare(again)
        assert again.steps[1].kind == "Aside"


def test_a_step_that_says_nothing_is_kept_and_not_shown(tmp_path):
    path = tmp_path / "run.db"
    empty = theirs.ActionStep(step_number=1, timing=Timing(0.0))
    with memory_of(theirs.TaskStep("Do it."), empty, theirs.MemoryStep(), url=path) as memory:
        assert said(memory) == [("system", "Be brief."), ("user", "New task:\nDo it.")]
        empty.model_output = "After all."
        assert ("assistant", "After all.") in said(memory)
        assert [type(each) for each in memory.steps] == [theirs.TaskStep, theirs.ActionStep, theirs.MemoryStep]
    with PageinMemory("", path, budget=20_000) as again:
        assert again.steps[1].model_output == "After all."


def test_pictures_are_whole_in_the_full_steps_and_after_a_crash(tmp_path):
    picture = Image.new("RGB", (3, 2), (10, 20, 30))
    shot = Image.new("CMYK", (4, 4))
    path = tmp_path / "run.db"
    with memory_of(
        theirs.TaskStep("See.", [picture]), action(1, observations_images=[picture, shot]), url=path
    ) as memory:
        told = json.loads(json.dumps(memory.get_full_steps()))
        assert told[0]["task_images"][0]["media_type"] == "image/png"
        messages = memory.write_memory_to_messages()
        shown = [part["image"].size for each in messages for part in each.content if part["type"] == "image"]
        assert shown == [(3, 2), (4, 4)], "the task's picture is shown once"
    with PageinMemory("", path, budget=20_000) as again:
        restored = again.steps[0].task_images[0]
        assert (restored.size, restored.mode, restored.getpixel((0, 0))) == ((3, 2), "RGB", (10, 20, 30))
        assert [each.size for each in again.steps[1].observations_images] == [(4, 4)]
        again.steps[1].observations_images = None
        shown = [part for each in again.write_memory_to_messages() for part in each.content if part["type"] == "image"]
        assert len(shown) == 1


def test_text_that_looks_like_json_stays_text():
    memory = memory_of(action(1, tool_calls=[theirs.ToolCall("write", {"body": '{"a": 1}'}, "c")], action_output="[1]"))
    (step,) = memory.get_full_steps()
    assert step["tool_calls"][0]["function"]["arguments"] == {"body": '{"a": 1}'}
    assert step["action_output"] == "[1]"


def test_a_copy_of_the_list_is_a_list_and_a_copy_of_the_memory_is_refused():
    memory = memory_of(theirs.TaskStep("Do it."))
    for each in (copy.copy(memory.steps), copy.deepcopy(memory.steps), memory.steps[:]):
        each.append(1)
        assert type(each) is list
    assert len(memory.steps) == 1
    with pytest.raises(ConfigurationError, match="attach another session"):
        copy.deepcopy(memory)


def head(memory):
    return memory.pages._runtime.state.fold.head


def test_a_list_that_its_host_kept_is_not_recorded_again(tmp_path):
    path = tmp_path / "run.db"
    kept = [copy.copy(step) for step in EVERY_KIND]
    with PageinMemory("Be brief.", path, budget=20_000) as memory:
        memory.steps.extend(EVERY_KIND)
        shown = said(memory)
        before = head(memory)
    for count, more in ((len(kept), 0), (1, 0), (len(kept), 1)):
        agent = agent_of("code", lambda number, messages: None)
        agent.memory.steps = [*kept[:count], *[theirs.TaskStep("And now?")] * more]
        agent.prompt_templates["system_prompt"] = "Be brief."
        with PageinMemory.attach(agent, path, budget=20_000) as memory:
            assert len(memory.steps) == len(kept) + more
            assert said(memory)[: len(shown) - 1] == shown[:-1]
            assert bare(memory) == said(memory)
            if not more:
                assert head(memory) == before


@pytest.mark.parametrize("change", ["none", "one more", "one edited", "one less", "in another order"])
def test_a_list_of_copies_is_the_list(change):
    memory = memory_of(theirs.TaskStep("Look."), action(1), action(2), action(3))
    before = head(memory)
    steps = copy.deepcopy(list(memory.steps))
    match change:
        case "one more":
            steps.append(action(4))
        case "one edited":
            steps[2].observations = "other"
        case "one less":
            del steps[2]
        case "in another order":
            steps[1], steps[2] = steps[2], steps[1]
    memory.steps = steps
    assert list(map(id, memory.steps)) == list(map(id, steps))
    assert said(memory) == bare(memory)
    assert head(memory) - before <= {"none": 0, "in another order": 8}.get(change, 3)


def test_a_run_that_smolagents_never_held_can_be_taken_up(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=20_000) as record:
        record.record_messages(
            [
                {"role": "user", "content": "Add."},
                {
                    "role": "assistant",
                    "content": "So.",
                    "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"x": 1}'}}
                    ],
                },
                {"role": "tool", "tool_call_id": "a", "content": "2"},
            ]
        )
        assert isinstance(record.steps[0], TaskStep)
    with PageinMemory("Be brief.", path, budget=20_000) as memory:
        task, step = memory.steps
        assert (task.task, step.model_output, step.observations) == ("Add.", "So.", "2")
        assert step.tool_calls == [theirs.ToolCall("add", {"x": 1}, "a")]
        check_legal(memory.write_memory_to_messages())


def test_replay_and_the_whole_code_work_as_they_did(capsys):
    from smolagents.monitoring import AgentLogger, LogLevel

    memory = memory_of(*EVERY_KIND, action(8, code_action="y = 2"))
    memory.replay(AgentLogger(level=LogLevel.INFO), detailed=True)
    told = capsys.readouterr().out
    assert "Do it." in told
    assert "Thought 1" in told
    assert memory.return_full_code() == "x = 1\n\ny = 2"
    assert type(_error({"type": "AgentMaxStepsError", "message": "m"})) is AgentMaxStepsError
