"""Agents with our memory: both kinds, planning, teams, pictures, callbacks, and whatever goes wrong in a run."""

import threading

import pytest
from PIL import Image
from smolagents import Tool
from smolagents import memory as theirs
from smolagents.models import ChatMessageStreamDelta, MessageRole
from smolagents.monitoring import TokenUsage
from smolagents.utils import AgentGenerationError, AgentMaxStepsError
from smolagents_scripted import LookUp, Scripted, agent_of, called, check_legal, code, said, text_of, tokens_of

from pagein import AgentMemory, ConfigurationError, OverBudget
from pagein.integrations._versions import require_release
from pagein.integrations.smolagents import PageinMemory


class Fail(Tool):
    name = "fail"
    description = "Fails."
    inputs = {"page": {"type": "integer", "description": "Any."}}  # noqa: RUF012 - as smolagents wants it
    output_type = "string"

    def forward(self, page: int) -> str:
        raise ValueError(f"page {page} is torn")


def in_order(*answers):
    """A script that gives one answer after the other, and the last for ever."""
    return lambda number, _: answers[min(number, len(answers)) - 1]


END = {"code": code("final_answer('done')"), "calls": called(("end", "final_answer", {"answer": "done"}))}


def shown(request):
    return "\n".join(map(text_of, request))


# One line, and off again


@pytest.mark.parametrize("kind", ["code", "calls"])
def test_one_line_gives_an_agent_a_memory_and_one_takes_it_away(kind):
    agent = agent_of(kind, in_order(END[kind]))
    memory = PageinMemory.attach(agent, budget=8_000)
    assert agent.memory is memory
    assert isinstance(memory, theirs.AgentMemory)
    assert "expand" in agent.tools
    assert agent.run("Go.") == "done"
    memory.detach()
    assert type(agent.memory) is theirs.AgentMemory
    assert [type(each) for each in agent.memory.steps] == [theirs.TaskStep, theirs.ActionStep]
    assert "expand" not in agent.tools
    assert agent.run("Again.") == "done"
    assert len(memory.steps) == 2, "what the agent does now is no longer recorded here"


def test_steps_an_agent_has_already_are_taken_over():
    agent = agent_of("calls", in_order(END["calls"]))
    agent.memory.steps.append(theirs.TaskStep("Earlier."))
    memory = PageinMemory.attach(agent, budget=8_000, expand=False)
    agent.run("Go.", reset=False)
    assert [each.task for each in memory.steps[:2]] == ["Earlier.", "Go."]
    assert "Earlier." in shown(agent.model.requests[0])
    assert "expand" not in agent.tools


def test_without_a_budget_it_is_the_window_of_the_agents_model():
    agent = agent_of("calls", in_order(END["calls"]))
    agent.model.model_id = "gpt-4o"
    memory = PageinMemory.attach(agent)
    assert 100_000 < memory.pages.budget.limit < 128_000


def test_a_memory_has_one_agent_and_an_agent_one_memory():
    first, second = (agent_of("calls", in_order(END["calls"])) for _ in range(2))
    memory = PageinMemory.attach(first, budget=8_000)
    with pytest.raises(ConfigurationError, match="has a memory of pagein already"):
        PageinMemory.attach(first, budget=8_000)
    with pytest.raises(ConfigurationError, match="takes a CodeAgent or a ToolCallingAgent, not str"):
        PageinMemory.attach("agent", budget=8_000)
    from pagein.integrations.smolagents.hooks import attach_memory

    with pytest.raises(ConfigurationError, match="another agent's"):
        attach_memory(second, memory, memory._history, ())
    assert "expand" not in second.tools
    assert type(second.memory) is theirs.AgentMemory


def test_two_agents_that_were_given_one_memory_by_hand_leave_it_whole():
    memory = PageinMemory("Be brief.", budget=100_000)
    agents = [agent_of("calls", in_order(called(("a", "look_up", {"page": 1})), END["calls"])) for _ in range(2)]
    for agent in agents:
        agent.memory = memory
    threads = [threading.Thread(target=agent.run, args=("Go.",), kwargs={"reset": False}) for agent in agents]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(memory.steps) == 6
    assert memory.pages.verify().ok
    reopened = type(memory.pages)(memory.pages.log()._log, budget=100_000)
    assert reopened.view() == memory.pages.view()


@pytest.mark.parametrize("version", ["1.23.9", "1.28.0", "2.0.0", "0.9", "unknown"])
def test_another_version_of_smolagents_is_refused_by_name(version):
    with pytest.raises(ConfigurationError) as told:
        require_release("smolagents", version)
    assert version in str(told.value)
    assert "smolagents>=1.24,<1.28" in str(told.value)


def test_the_versions_in_range_are_taken():
    for version in ("1.24.0", "1.26.0", "1.27.0.dev0"):
        require_release("smolagents", version)
    require_release("smolagents")


# Calls


def test_parallel_calls_keep_their_order_and_each_its_own_answer():
    ids = ("call_10", "call_2", "call_9")
    calls = called(*((id, "look_up", {"page": page}) for page, id in enumerate(ids, 5)))
    agent = agent_of("calls", in_order(calls, END["calls"]), 8_000)
    memory = PageinMemory.attach(agent, budget=8_000)
    agent.run("Go.")
    action = next(step for step in memory.pages.steps if getattr(step, "tool_calls", ()))
    assert [call.id for call in action.tool_calls] == list(ids)
    assert [f"page {page} line 0" in seen.content for page, seen in enumerate(action.observations, 5)] == [True] * 3
    told = [text_of(each) for each in agent.model.requests[1] if each.role == MessageRole.TOOL_RESPONSE]
    assert [each.split("\n")[0] for each in told] == [f"Call id: {id}" for id in ids]


def test_calls_without_ids_of_their_own_all_run():
    calls = called(*(("", "look_up", {"page": page}) for page in (5, 6)), ("x", "look_up", {"page": 7}))
    agent = agent_of("calls", in_order(calls, END["calls"]), 8_000)
    PageinMemory.attach(agent, budget=8_000)
    agent.run("Go.")
    assert all(f"page {page} line 0" in shown(agent.model.requests[1]) for page in (5, 6, 7))


def test_a_call_that_fails_among_others_loses_only_itself():
    calls = called(("a", "look_up", {"page": 5}), ("b", "fail", {"page": 6}), ("c", "look_up", {"page": 7}))
    agent = agent_of("calls", in_order(calls, END["calls"]), 8_000, [LookUp(), Fail()])
    memory = PageinMemory.attach(agent, budget=8_000)
    assert agent.run("Go.") == "done"
    told = {text_of(m).split("\n")[0]: text_of(m) for m in agent.model.requests[1] if m.role == "tool-response"}
    assert "page 5 line 0" in told["Call id: a"]
    assert "page 6 is torn" in told["Call id: b"]
    assert "take care not to repeat" in told["Call id: b"]
    assert "page 7 line 0" in told["Call id: c"]
    assert memory.steps[1].error is not None
    assert [call.id for call in memory.steps[1].tool_calls] == ["a", "b", "c"]
    action = next(step for step in memory.pages.steps if getattr(step, "tool_calls", ()))
    assert [seen.status for seen in action.observations] == ["ok", "error", "ok"]


def test_the_same_call_twice_is_answered_twice():
    calls = called(("a", "look_up", {"page": 5}), ("b", "look_up", {"page": 5}))
    agent = agent_of("calls", in_order(calls, END["calls"]), 8_000)
    memory = PageinMemory.attach(agent, budget=8_000)
    agent.run("Go.")
    action = next(step for step in memory.pages.steps if getattr(step, "tool_calls", ()))
    assert [seen.status for seen in action.observations] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("kind", "answer", "told"),
    [
        ("code", code("1 / 0"), "ZeroDivisionError"),
        ("code", said("no code here"), "regex pattern"),
        ("calls", called(("a", "fail", {"page": 3})), "page 3 is torn"),
        ("calls", called(("a", "no_such_tool", {})), "Unknown tool no_such_tool"),
        ("calls", said("no call here"), "Error while parsing tool call"),
    ],
)
def test_what_went_wrong_is_said_once_to_the_model_and_found_again(kind, answer, told, tmp_path):
    path = tmp_path / "run.db"
    agent = agent_of(kind, in_order(answer, END[kind]), 8_000, [LookUp(), Fail()])
    with PageinMemory.attach(agent, path, budget=8_000) as memory:
        assert agent.run("Go.") == "done"
        request = shown(agent.model.requests[1])
        assert request.lower().count(told.lower()) == str(memory.steps[1].error).lower().count(told.lower()) == 1
        assert request.count("Now let's retry") == 1
        kinds = type(memory.steps[1].error)
    with PageinMemory("", path, budget=8_000) as again:
        assert type(again.steps[1].error) is kinds
        assert told.lower() in str(again.steps[1].error).lower()


def test_an_error_after_the_answer_is_said_with_it():
    refusals = iter([False, True])
    agent = agent_of("calls", in_order(END["calls"]), 8_000, final_answer_checks=[lambda *_, **__: next(refusals)])
    memory = PageinMemory.attach(agent, budget=8_000)
    assert agent.run("Go.") == "done"
    request = shown(agent.model.requests[1])
    assert "Observation:\ndone\nCall id: end\nError:\nCheck <lambda> failed" in request
    assert len(memory.steps) == 3


@pytest.mark.parametrize("kind", ["code", "calls"])
def test_a_stream_that_breaks_off_leaves_the_run_whole(kind, tmp_path):
    class Streaming(Scripted):
        def generate_stream(self, messages, **kwargs):
            check_legal(messages)
            answer = self.script(len(self.requests) + 1, messages)
            self.requests.append(messages)
            yield ChatMessageStreamDelta(content="Thought: I was just ab")
            if answer is None:
                raise ConnectionError("reset by peer")
            yield ChatMessageStreamDelta(content="out to", token_usage=TokenUsage(1, 1))

    path = tmp_path / "run.db"
    model = Streaming(lambda *_: None)
    agent = agent_of(kind, model, stream_outputs=True)
    with PageinMemory.attach(agent, path, budget=8_000) as memory:
        with pytest.raises(AgentGenerationError, match="reset by peer"):
            agent.run("Go.")
        model.script = lambda *_: said("text")
        agent.run("Go on.", reset=False, max_steps=1)
        assert "Go." in shown(model.requests[1])
        steps = [type(each) for each in memory.steps]
    with PageinMemory("", path, budget=8_000) as again:
        assert [type(each) for each in again.steps] == steps


def test_a_run_that_is_left_in_the_middle_of_a_step_goes_on_with_its_call_marked(tmp_path):
    path = tmp_path / "run.db"
    agent = agent_of("calls", in_order(called(("a", "look_up", {"page": 5})), END["calls"]), 8_000)
    with PageinMemory.attach(agent, path, budget=8_000) as memory:
        stream = agent.run("Go.", stream=True)
        next(each for each in stream if isinstance(each, theirs.ToolCall))
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            stream.close()  # the reader has gone away, and smolagents says so in this way
        assert len(memory.steps) == 2
        assert agent.run("Go on.", reset=False) == "done"
        assert "It may have run" in shown(agent.model.requests[1])
    with PageinMemory("", path, budget=8_000) as again:
        assert [call.id for call in again.steps[1].tool_calls] == ["a"]


# Plans, last steps, teams, pictures, callbacks


@pytest.mark.parametrize("kind", ["code", "calls"])
def test_plans_and_the_last_answer_stay_within_the_budget_too(kind):
    def script(number, messages):
        if "facts survey" in text_of(messages[-1]).lower():
            return said("Look at every page.")
        if "was unable" in text_of(messages[0]) or "failed to do so" in text_of(messages[0]):
            return said("my best guess")
        return (
            code(f"print(look_up({number}))") if kind == "code" else called((f"c{number}", "look_up", {"page": number}))
        )

    budget = 6_000 if kind == "code" else 3_000
    agent = agent_of(kind, script, budget, planning_interval=4, max_steps=14)
    memory = PageinMemory.attach(agent, budget=budget)
    assert agent.run("Read the report.") == "my best guess"
    plans = [each for each in memory.steps if isinstance(each, theirs.PlanningStep)]
    assert len(plans) == 4
    assert isinstance(memory.steps[-1].error, AgentMaxStepsError)
    updates = [each for each in agent.model.requests if "pdated facts survey" in shown(each)]
    assert len(updates) == 3
    assert all("Look at every page" not in shown(each) for each in updates), "a new plan does not see the old"
    assert max(tokens_of(each) for each in agent.model.requests) > 0.8 * budget, "it never came near"


def test_a_budget_that_holds_nothing_is_said_and_not_passed():
    agent = agent_of("code", in_order(END["code"]))
    PageinMemory.attach(agent, budget=500)
    with pytest.raises(OverBudget, match="the budget is 500"):
        agent.run("Go.")
    assert agent.model.requests == []


def test_each_agent_of_a_team_has_a_memory_of_its_own(tmp_path):
    path = tmp_path / "run.db"
    clerk = agent_of(
        "calls",
        in_order(called(("a", "look_up", {"page": 3})), END["calls"]),
        8_000,
        name="clerk",
        description="Looks up pages.",
        provide_run_summary=True,
    )
    ask = called(("m", "clerk", {"task": "Read page 3."}))
    chief = agent_of("calls", in_order(ask, END["calls"]), 8_000, managed_agents=[clerk])
    with PageinMemory.attach(chief, path, budget=8_000, managed=True) as memory:
        assert chief.run("Have page 3 read.") == "done"
        assert isinstance(clerk.memory, PageinMemory)
        assert "summary_of_work" in shown(chief.model.requests[1])
        assert "KESTREL" in shown(chief.model.requests[1])
        assert "vault" not in shown(chief.model.requests[0])
        assert len(memory.steps) == 3
        clerk.memory.close()
    with AgentMemory.open(path, session="default/clerk", budget=8_000) as record:
        assert "KESTREL" in str(record.steps)


def test_the_pictures_of_a_task_are_sent_once_and_those_of_a_step_with_it():
    def screenshot(memory_step, agent):
        memory_step.observations_images = [Image.new("RGB", (8, 8), (memory_step.step_number, 0, 0))]

    for callbacks, expected in (([], [1, 1, 1]), ([screenshot], [1, 2, 3])):
        agent = agent_of(
            "calls",
            in_order(called(("a", "look_up", {"page": 1})), called(("b", "look_up", {"page": 2})), END["calls"]),
            step_callbacks=callbacks,
        )
        PageinMemory.attach(agent, budget=8_000)
        agent.run("See.", images=[Image.new("RGB", (8, 8))])
        counts = [sum(part["type"] == "image" for m in r for part in m.content) for r in agent.model.requests]
        assert counts == expected


def test_a_callback_may_prune_what_came_before():
    def prune(memory_step, agent):
        for step in agent.memory.steps[1:-1]:
            step.observations = "(pruned)"

    answers = [called((f"c{n}", "look_up", {"page": n})) for n in range(1, 6)]
    agent = agent_of("calls", in_order(*answers, END["calls"]), 8_000, step_callbacks=[prune])
    memory = PageinMemory.attach(agent, budget=8_000)
    agent.run("Go.")
    last = shown(agent.model.requests[-1])
    assert last.count("(pruned)") == 3
    assert "page 1 line 0" not in last
    assert "page 5 line 0" in last
    assert "page 1 line 0" in str(list(memory.pages.log()._log.read()))


@pytest.mark.parametrize("kind", ["code", "calls", "parallel"])
@pytest.mark.parametrize("edited", ["(cut)", "{} (seen)"])
def test_a_callback_may_edit_the_observations_of_its_own_step(kind, edited):
    def edit(memory_step, agent):
        if memory_step.observations and "page" in memory_step.observations:
            memory_step.observations = edited.format(memory_step.observations)

    first = code("print(look_up(1))") if kind == "code" else called(("a", "look_up", {"page": 1}))
    if kind == "parallel":
        first = called(("a", "look_up", {"page": 1}), ("b", "look_up", {"page": 2}))
    agent = agent_of(
        kind if kind == "code" else "calls", in_order(first, END["code" if kind == "code" else "calls"]), 8_000
    )
    agent.step_callbacks.register(theirs.ActionStep, edit)
    PageinMemory.attach(agent, budget=8_000)
    agent.run("Go.")
    last = shown(agent.model.requests[-1])
    assert ("page 1 line 0" in last) == ("{}" in edited)
    assert edited.removeprefix("{} ") in last


def test_callbacks_of_every_kind_of_step_fire():
    fired = []
    kinds = {
        kind: (lambda step: fired.append(type(step).__name__)) for kind in (theirs.ActionStep, theirs.FinalAnswerStep)
    }
    agent = agent_of("calls", in_order(END["calls"]), step_callbacks=kinds)
    PageinMemory.attach(agent, budget=8_000)
    agent.run("Go.")
    assert fired == ["ActionStep", "FinalAnswerStep"]


def test_the_whole_result_of_a_run_is_there():
    agent = agent_of("code", in_order(code("x = 3\nprint(x)"), END["code"]), return_full_result=True)
    PageinMemory.attach(agent, budget=8_000)
    result = agent.run("Go.")
    assert (result.output, result.state, len(result.steps)) == ("done", "success", 3)
    assert result.token_usage.input_tokens == 20
    assert agent.memory.return_full_code() == "x = 3\nprint(x)\n\nfinal_answer('done')"


def test_stepping_by_hand_as_the_documentation_of_smolagents_has_it():
    from smolagents.monitoring import Timing

    agent = agent_of("code", in_order(code("print(1)"), END["code"]), 8_000)
    memory = PageinMemory.attach(agent, budget=8_000)
    agent.python_executor.send_tools({**agent.tools})
    memory.steps.append(theirs.TaskStep("Go."))
    answer = None
    for number in (1, 2):
        step = theirs.ActionStep(step_number=number, timing=Timing(0.0), observations_images=[])
        answer = agent.step(step)
        memory.steps.append(step)
    assert answer.output == "done"
    assert len(agent.model.requests) == 2
    assert "Execution logs:\n1" in shown(agent.model.requests[1])
