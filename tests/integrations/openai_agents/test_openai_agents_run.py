"""An agent of the SDK end to end: sixty calls through 4,000 tokens, a crash, a new process, a fact of the third step."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
import tools_play
from agents import Runner
from agents.run import CallModelData, ModelInputData
from openai_agents_play import BUDGET, FACT, Model, agent_of, cost, function_call, look, looks_and_answers, page, run

from pagein.errors import ConfigurationError, OverBudget
from pagein.formats import validate
from pagein.integrations.openai_agents.session import PageinSession

pytestmark = pytest.mark.slow

TASK = "Read sixty pages, then say the staging password."


@pytest.mark.slow
def test_thirty_calls_a_crash_and_a_fact_of_the_third_step(tmp_path):
    died = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "openai_agents_crash.py"), str(tmp_path / "run.db")],
        check=False,
        capture_output=True,
    )
    assert died.returncode == 9, died.stderr
    with_crash = PageinSession("ann", tmp_path / "run.db", budget=BUDGET)
    known = asyncio.run(with_crash.get_items(-1))
    assert len([each for each in known if each.get("type") == "function_call_output"]) == 19
    model = Model(looks_and_answers(30))
    done = run(agent_of(model, look, *with_crash.tools()), "Go on.", with_crash)
    assert done.final_output == f"I remember: {FACT}"
    assert len(model.costs) >= 12
    assert max(model.costs) <= BUDGET
    assert with_crash.memory.verify().ok
    with_crash.close()


@pytest.mark.slow
def test_sixty_calls_send_a_fraction_of_what_the_bare_agent_sends(tmp_path):
    session = PageinSession("ann", tmp_path / "run.db", budget=BUDGET)
    model = Model(looks_and_answers())
    assert run(agent_of(model, look, *session.tools()), TASK, session).final_output.endswith(FACT)
    session.close()
    bare = Model(looks_and_answers(), limit=10**9)
    asyncio.run(Runner.run(agent_of(bare), TASK, max_turns=200))
    assert sum(model.costs) <= 0.4 * sum(bare.costs)


def test_history_over_the_budget_is_given_as_its_view_even_without_the_filter(tmp_path):
    session = PageinSession("ann", tmp_path / "run.db", budget=1_000)

    async def talk():
        for number in range(12):
            await session.add_items([{"role": "user", "content": page(number)}])
            await session.add_items([{"role": "assistant", "content": f"I read {number}."}])
        return await session.get_items(), await session.get_items(-1)

    shown, whole = asyncio.run(talk())
    assert len(whole) == 24
    assert cost(shown) <= 1_000
    validate([*shown, {"role": "user", "content": "And?"}], "openai-responses")
    session.close()


def test_the_filter_finds_the_view_it_gave_and_shows_no_step_twice(tmp_path):
    session = PageinSession("ann", tmp_path / "run.db", budget=BUDGET)
    run(agent_of(Model(looks_and_answers(16)), look, *session.tools()), TASK, session)
    model = Model(looks_and_answers(18, done=16))
    run(agent_of(model, look, *session.tools()), "Two more.", session)
    assert session._views._foreign is None
    numbers = [
        json.loads(each["arguments"]).get("number")
        for each in asyncio.run(session.get_items(-1))
        if each.get("type") == "function_call"
    ]
    looked = [each for each in numbers if each]
    assert len(looked) == len(set(looked))
    session.close()


def test_streaming_is_the_same_run(tmp_path):
    session = PageinSession("ann", tmp_path / "run.db", budget=BUDGET)
    model = Model(looks_and_answers(16))

    async def stream():
        result = Runner.run_streamed(
            agent_of(model, look, *session.tools()),
            TASK,
            session=session,
            run_config=session.run_config(),
            max_turns=99,
        )
        async for _ in result.stream_events():
            pass
        return result.final_output

    assert asyncio.run(stream()).endswith(FACT)
    assert max(model.costs) <= BUDGET
    session.close()


def test_a_stream_that_breaks_off_leaves_a_session_that_goes_on(tmp_path):
    session = PageinSession("ann", tmp_path / "run.db", budget=BUDGET)
    agent = agent_of(Model(looks_and_answers(8)), look, *session.tools())

    async def broken():
        result = Runner.run_streamed(agent, TASK, session=session, run_config=session.run_config(), max_turns=99)
        async for event in result.stream_events():
            if event.type == "run_item_stream_event" and event.item.type == "tool_call_output_item":
                result.cancel()
                break

    asyncio.run(broken())
    assert run(agent, "Go on.", session).final_output.endswith(FACT)
    session.close()


def test_input_that_is_not_the_sessions_is_held_to_the_budget_apart(tmp_path):
    session = PageinSession("ann", tmp_path / "run.db", budget=1_500)
    foreign = [{"role": "user", "content": "Read."}]
    for number in range(10):
        foreign.append({"type": "function_call", "call_id": f"c{number}", "name": "look", "arguments": "{}"})
        foreign.append({"type": "function_call_output", "call_id": f"c{number}", "output": page(number)})

    async def shown(items):
        data = CallModelData(ModelInputData(items, "Be brief."), None, None)
        return (await session.filter(data)).input

    rows = asyncio.run(shown(foreign))
    validate(rows, "openai-responses")
    assert cost(rows, "Be brief.") <= 1_500
    assert asyncio.run(session.get_items()) == []
    again = asyncio.run(shown([*foreign, {"role": "user", "content": "And?"}]))
    assert {"role": "user", "content": "And?"} in again
    session.close()


def test_what_cannot_fit_is_an_error_and_changes_nothing():
    session = PageinSession("ann", budget=300)
    with pytest.raises(OverBudget):
        run(agent_of(Model(looks_and_answers(1))), "word " * 2_000, session)
    assert session.memory.verify().ok
    session.close()


def test_a_tool_that_fails_and_a_call_of_a_kind_nobody_knows(tmp_path):
    from agents import function_tool

    @function_tool
    def breaks(number: int) -> str:
        """Break."""
        raise ValueError("no such page")

    def script(items):
        outputs = [each for each in items if each.get("type") == "function_call_output"]
        return "Done." if outputs else [function_call("breaks", {"number": 1}, call_id="c")]

    session = PageinSession("ann", tmp_path / "run.db", budget=BUDGET)
    assert run(agent_of(Model(script), breaks), "Go.", session).final_output == "Done."
    odd = {"type": "hologram", "id": "h_1", "deep": [{"a": None}]}
    asyncio.run(session.add_items([odd]))
    assert asyncio.run(session.get_items(1)) == [odd]
    session.close()


def test_two_filters_are_refused():
    session = PageinSession("ann", budget=BUDGET)
    with pytest.raises(ConfigurationError, match=r"call session\.filter in it"):
        session.run_config(call_model_input_filter=lambda data: data.model_data)
    session.close()


def test_the_agent_is_offered_every_tool_of_the_memory_and_each_works(tmp_path):
    def script(items):
        done = sum(each.get("type") == "function_call_output" for each in items)
        if done == len(tools_play.CALLS):
            return "Done."
        name, arguments = tools_play.CALLS[done]
        return [function_call(name, arguments, call_id=f"call_{done}")]

    session = PageinSession("ann", tmp_path / "run.db", budget=100_000)
    tools = session.tools()
    assert run(agent_of(Model(script, limit=10**6), *tools), TASK, session).final_output == "Done."
    told = [each["output"] for each in asyncio.run(session.get_items(-1)) if "output" in each]
    tools_play.check(told, session.memory)
    found = {each.name: (each.description, set(each.params_json_schema["properties"])) for each in tools}
    assert list(found) == tools_play.OFFERED
    tools_play.check_definitions(found)
    assert [each.name for each in session.tools(("expand",))] == ["expand"]
    assert session.tools(choice=False) == []
    session.close()


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": []},
        {"role": "user", "content": "half \ud83d"},
        {"type": "function_call_output", "call_id": "lost", "output": "42"},
    ],
    ids=["empty", "surrogate", "stray"],
)
def test_items_that_the_provider_would_refuse_stay_and_are_sent_as_a_view(tmp_path, item):
    session = PageinSession("ann", tmp_path / "run.db", budget=BUDGET)
    asyncio.run(session.add_items([{"role": "user", "content": "Hello."}, item]))
    model = Model(lambda items: "Done.")  # it refuses what is not legal
    assert run(agent_of(model), "Go on.", session).final_output == "Done."
    assert asyncio.run(session.get_items(-1))[1] == item
    session.close()
