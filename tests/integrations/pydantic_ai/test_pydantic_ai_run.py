"""A pydantic-ai agent end to end: sixty calls through 4,000 tokens, a crash, a new process, a fact of the third step."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
import tools_play
from pydantic_ai import DeferredToolRequests, DeferredToolResults
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, ToolCallPart, ToolReturnPart
from pydantic_ai.usage import UsageLimits
from pydantic_ai_play import BUDGET, FACT, agent_of, call, cost, looks_and_answers, model_of, page

from pagein.errors import ConfigurationError, OverBudget
from pagein.events.steps import TaskStep, as_text
from pagein.integrations import _versions as releases
from pagein.integrations._owners import OwnedConversation
from pagein.integrations.pydantic_ai.capability import Pagein

pytestmark = pytest.mark.slow

TASK = "Read sixty pages, then say the staging password."
NO_LIMIT = UsageLimits(request_limit=None)


@pytest.fixture
def pages(tmp_path):
    made = Pagein(tmp_path / "run.db", budget=BUDGET)
    yield made
    made.close()


def run(agent, task=TASK, **settings):
    settings.setdefault("conversation_id", "ann")
    # run_sync leaves the loop it made open, and who collects it is warned in the middle of another test.
    return asyncio.run(agent.run(task, usage_limits=NO_LIMIT, **settings))


@pytest.mark.slow
def test_thirty_calls_a_crash_and_a_fact_of_the_third_step(pages, tmp_path):
    died = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "pydantic_ai_crash.py"), str(tmp_path / "run.db")],
        check=False,
        capture_output=True,
    )
    assert died.returncode == 9, died.stderr
    known = pages.history("ann")
    assert len(known) == 41  # the call that never answered is there, and that it did not
    assert known[-1].parts[0].outcome == "interrupted"
    model = model_of(looks_and_answers(30))
    done = run(agent_of(model, pages), "Go on.", message_history=known)
    assert done.output == f"I remember: {FACT}"
    assert len(model.costs) >= 11
    assert pages.memory("ann").verify().ok
    assert len(pages._conversations._conversations(OwnedConversation("ann"))) == 1


@pytest.mark.slow
def test_sixty_calls_send_a_fraction_of_what_the_bare_agent_sends(pages):
    model, bare = model_of(looks_and_answers()), model_of(looks_and_answers(), limit=10**9)
    done = run(agent_of(model, pages))
    assert done.output == f"I remember: {FACT}"
    run(agent_of(bare))
    assert sum(model.costs) <= 0.4 * sum(bare.costs)


def test_the_history_of_the_framework_stays_whole_and_ours_is_equal(pages):
    done = run(agent_of(model_of(looks_and_answers(14)), pages))
    assert cost(done.all_messages()) > BUDGET
    assert [each.parts for each in pages.history("ann")] == [each.parts for each in done.all_messages()]
    assert pages.memory("ann").view().tokens <= BUDGET


def test_the_fact_is_found_by_recall_over_what_left_and_every_request_is_known(pages):
    model = model_of(looks_and_answers(16))
    run(agent_of(model, pages))
    requests = pages.memory("ann").requests()
    assert len(requests) == len(model.costs)
    assert requests[-1].compactions
    assert [pages.memory("ann").request(each.number).problem for each in requests[::5]] == [""] * len(requests[::5])
    hits = pages.memory("ann").recall("staging password")
    assert any(FACT in hit.text for hit in hits)


def test_a_second_run_goes_on_in_the_same_session(pages):
    first = run(agent_of(model_of(looks_and_answers(6)), pages))
    model = model_of(looks_and_answers(9))
    run(agent_of(model, pages), "Three more.", message_history=first.all_messages())
    assert len(pages._conversations._conversations(OwnedConversation("ann"))) == 1
    asked = [
        part.args["number"]
        for message in pages.history("ann")
        for part in message.parts
        if part.part_kind == "tool-call" and part.tool_name == "look"
    ]
    assert asked == list(range(1, 10))


def test_a_history_that_was_edited_goes_on_in_another_session_and_the_record_stays(pages):
    first = run(agent_of(model_of(looks_and_answers(4)), pages))
    whole = first.all_messages()
    run(agent_of(model_of(lambda messages: "Fine.")), "x")  # an agent without pages writes nothing
    run(agent_of(model_of(lambda messages: "Fine."), pages), "And now?", message_history=whole[:5])
    assert [len(each.tracker) for each in pages._conversations._conversations(OwnedConversation("ann"))] == [
        len(whole),
        7,
    ]
    assert len(pages.history("ann")) == 7


def test_conversations_do_not_mix(pages):
    run(agent_of(model_of(looks_and_answers(2)), pages))
    run(agent_of(model_of(lambda messages: "Hello."), pages), "Hi", conversation_id="bob")
    assert len(pages.history("bob")) == 2
    assert len(pages.history("ann")) > 2


def test_streaming_is_the_same_run(pages):
    async def stream():
        async with agent_of(model_of(looks_and_answers(8)), pages).run_stream(
            TASK, conversation_id="ann", usage_limits=NO_LIMIT
        ) as result:
            return await result.get_output()

    assert asyncio.run(stream()) == f"I remember: {FACT}"
    assert len(pages.history("ann")) >= 18


def test_a_stream_that_breaks_off_leaves_a_conversation_that_goes_on(pages):
    async def broken():
        async with agent_of(model_of(lambda messages: "word " * 50), pages).run_stream(
            TASK, conversation_id="ann"
        ) as result:
            async for _ in result.stream_text():
                break

    asyncio.run(broken())
    done = run(agent_of(model_of(lambda messages: "Fine."), pages), "Go on.", message_history=pages.history("ann"))
    assert done.output == "Fine."
    assert pages.memory("ann").verify().ok


def test_a_request_that_was_too_long_is_made_again_smaller(pages):
    refused = ModelHTTPError(
        400, "m", {"error": {"code": "context_length_exceeded", "message": "maximum context length is 1500 tokens"}}
    )
    script, told = looks_and_answers(12), []

    def once(messages):
        if cost(messages) > 1_500:
            told.append(cost(messages))
            return refused
        return script(messages)

    done = run(agent_of(model_of(once), pages))
    assert done.output == f"I remember: {FACT}"
    assert told


def test_another_error_is_not_held_for_one(pages):
    with pytest.raises(ModelHTTPError):
        run(agent_of(model_of(lambda messages: ModelHTTPError(500, "m", "down")), pages))


def test_what_cannot_fit_is_an_error_and_changes_nothing(tmp_path):
    pages = Pagein(tmp_path / "run.db", budget=300)
    with pytest.raises(OverBudget):
        run(agent_of(model_of(looks_and_answers(1)), pages), "word " * 2_000)
    assert pages.memory("ann").verify().ok
    pages.close()


def test_a_tool_that_fails_is_told_as_one(pages):
    from pydantic_ai import ModelRetry

    def look(number: int) -> str:
        """Fail."""
        raise ModelRetry("no such page")

    def script(messages):
        answered = any(isinstance(part, ToolReturnPart) for each in messages for part in each.parts)
        return "Done." if answered else call("look", "c1", number=1)

    assert run(agent_of(model_of(script), pages, look=look)).output == "Done."
    (step,) = [step for step in pages.memory("ann").steps if getattr(step, "tool_calls", ())]
    assert step.observations[0].status == "error"


def test_as_a_history_processor_the_view_is_the_history(pages):
    model = model_of(looks_and_answers(14))
    done = run(agent_of(model, ProcessHistory(pages.process), toolsets=[pages.get_toolset()]))
    assert max(model.costs) <= BUDGET
    assert cost(done.all_messages()) < 2 * BUDGET
    assert len(pages._conversations._conversations(OwnedConversation("ann"))) == 1
    assert done.output == f"I remember: {FACT}"


@pytest.mark.parametrize("as_processor", [False, True])
def test_a_dynamic_system_prompt_changes_in_its_place(tmp_path, as_processor):
    """The framework evaluates it anew in each run: the list began with other words, and went on in another session."""
    clock, prompts, history = [0], [], None

    def time():
        return f"The time is {clock[0] // 4}."

    def weather():
        return f"The weather is {clock[0] // 7}."

    def script(messages):
        prompts.append([part.content for row in messages for part in row.parts if part.part_kind == "system-prompt"])
        return f"Answer {clock[0]}."

    def open_agent():
        pages = Pagein(tmp_path / "run.db", budget=BUDGET)
        agent = agent_of(
            model_of(script), ProcessHistory(pages.process) if as_processor else pages, system_prompt="Fixed."
        )
        agent.system_prompt(dynamic=True)(time)
        agent.system_prompt(dynamic=True)(weather)
        return pages, agent

    pages, agent = open_agent()
    for turn in range(1, 13):
        clock[0] = turn
        history = run(agent, f"Question {turn}?", message_history=history).all_messages()
        if turn == 6 and not as_processor:
            pages.close()
            pages, agent = open_agent()
            history = pages.history("ann")
    assert prompts == [["Fixed.", f"The time is {turn // 4}.", f"The weather is {turn // 7}."] for turn in range(1, 13)]
    assert len(pages._conversations._conversations(OwnedConversation("ann"))) == 1
    assert [as_text(step.content) for step in pages.memory("ann").steps if isinstance(step, TaskStep)] == [
        f"Question {turn}?" for turn in range(1, 13)
    ]
    pages.close()


def test_calls_that_a_run_ended_with_are_open_in_a_new_process(tmp_path):
    """They were answered as interrupted there, and so was a tool that had run beside them."""
    paid = []

    def script(messages):
        parts = [ToolCallPart("pay", {"euros": 5}, "c1"), ToolCallPart("look", {"number": 1}, "c2")]
        return ModelResponse(parts=parts) if len(messages) == 1 else "Done."

    def open_agent():
        pages = Pagein(tmp_path / "run.db", budget=BUDGET)
        agent = agent_of(model_of(script), pages, output_type=[str, DeferredToolRequests])

        @agent.tool_plain(requires_approval=True)
        def pay(euros: int) -> str:
            paid.append(euros)
            return "Paid."

        return pages, agent

    pages, agent = open_agent()
    assert run(agent, "Pay five.").output.approvals[0].tool_call_id == "c1"
    pages.close()
    pages, agent = open_agent()
    history = pages.history("ann")
    assert [(part.tool_call_id, part.outcome) for part in history[-1].parts] == [("c2", "success")]
    done = run(agent, None, message_history=history, deferred_tool_results=DeferredToolResults(approvals={"c1": True}))
    assert (done.output, paid) == ("Done.", [5])
    assert len(pages.history("ann")) == len(done.all_messages())
    pages.close()


def test_a_call_that_waits_alone_is_open_too(tmp_path):
    pages = Pagein(tmp_path / "run.db", budget=BUDGET)
    script = lambda messages: ModelResponse(parts=[ToolCallPart("pay", {}, "c1")])  # noqa: E731 - one line
    agent = agent_of(model_of(script), pages, output_type=[str, DeferredToolRequests])
    agent.tool_plain(lambda: "Paid.", name="pay", requires_approval=True)
    run(agent, "Pay.")
    assert [type(row).__name__ for row in pages.history("ann")] == ["ModelRequest", "ModelResponse"]
    pages.close()


def test_the_result_of_an_output_tool_is_recorded(tmp_path):
    pages = Pagein(tmp_path / "run.db", budget=BUDGET)
    script = lambda messages: ModelResponse(parts=[ToolCallPart("final_result", {"response": 7}, "c1")])  # noqa: E731
    done = run(agent_of(model_of(script), pages, output_type=int), "How many?")
    assert done.output == 7
    pages.close()
    pages = Pagein(tmp_path / "run.db", budget=BUDGET)
    assert pages.history("ann")[-1].parts[0].content == done.all_messages()[-1].parts[0].content
    pages.close()


def test_two_agents_may_share_one_conversation(pages):
    first = run(agent_of(model_of(lambda messages: "One."), pages))
    other = agent_of(model_of(lambda messages: "Two."), pages)
    run(other, "And you?", message_history=first.all_messages())
    assert [type(each).__name__ for each in pages.history("ann")] == ["ModelRequest", "ModelResponse"] * 2


def test_no_tools_are_offered_where_none_are_wanted():
    pages = Pagein(budget=BUDGET, tools=False)
    assert pages.get_toolset() is None
    pages.close()


@pytest.mark.parametrize("found", ["1.9.0", "2.61.0", "3.0.0", "unknown"])
def test_another_release_is_refused_by_name(found):
    with pytest.raises(ConfigurationError, match=rf"pydantic-ai-slim {found} .*pydantic-ai-slim>=2"):
        releases.require_release("pydantic-ai-slim", found)


def test_system_prompts_in_the_middle_reach_the_model_as_notices(pages):
    whole = [ModelRequest(parts=[SystemPromptPart(content="Be brief.")])]
    seen = []

    def script(messages):
        seen.append(messages)
        return "Fine."

    run(agent_of(model_of(script), pages), "Hi", message_history=whole)
    assert seen[0][0].parts[0].content == "Be brief."
    assert page(1)


def test_the_agent_is_offered_every_tool_of_the_memory_and_each_works(tmp_path):
    def script(messages):
        done = sum(isinstance(part, ToolReturnPart) for row in messages for part in row.parts)
        if done == len(tools_play.CALLS):
            return "Done."
        name, arguments = tools_play.CALLS[done]
        return call(name, f"call_{done}", **arguments)

    pages = Pagein(tmp_path / "run.db", budget=100_000)
    done = run(agent_of(model_of(script, limit=10**6), pages))
    told = [part.content for row in done.all_messages() for part in row.parts if isinstance(part, ToolReturnPart)]
    tools_play.check(told, pages.memory("ann"))
    tools = pages.get_toolset().tools
    found = {
        name: (each.description, set(each.function_schema.json_schema["properties"])) for name, each in tools.items()
    }
    assert list(found) == tools_play.OFFERED
    tools_play.check_definitions(found)
    pages.close()
    chosen = Pagein(budget=BUDGET, tools=("recall",), user="ann")
    assert list(chosen.get_toolset().tools) == ["recall"]
    assert Pagein(budget=BUDGET, tools=False).get_toolset() is None


@pytest.mark.parametrize(("name", "cure"), [("session", "own name"), ("timeout", "there are budget")])
def test_a_name_of_an_option_that_it_does_not_take_is_an_error_at_once(name, cure):
    with pytest.raises(ConfigurationError, match=f"unknown option {name!r}: .*{cure}"):
        Pagein(":memory:", **{name: "support"})
