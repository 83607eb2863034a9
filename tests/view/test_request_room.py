"""The room that one request needs beside its view: its output, its tools, a system prompt of the host's."""

import asyncio
import json

import pytest

from pagein import AgentMemory, AsyncAgentMemory, Budget
from pagein.errors import ConfigurationError, OverBudget
from pagein.events.entries import Compaction
from pagein.events.steps import ActionStep, Observation, SystemPromptStep, TaskStep, ToolCall, Usage
from pagein.formats import FORMATS, validate
from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")


def tool_list(count=4):
    return [
        {
            "name": f"tool_{number}",
            "description": f"Do the work number {number} on a file, and say what was done.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        }
        for number in range(count)
    ]


def steps(count, words=60):
    yield SystemPromptStep("You mend code.")
    yield TaskStep("Find why the importer drops rows.")
    for number in range(count):
        text = "\n".join(f"row {number}.{line}: value_{number * 7 + line} of the table" for line in range(words // 6))
        call = ToolCall(f"c{number}", "read", json.dumps({"path": f"src/part_{number}.py"}))
        yield ActionStep(f"I look at part {number}.", (call,), (Observation(call.id, text),))


def open_memory(budget=3_000, count=30, **options):
    memory = AgentMemory.open(":memory:", budget=budget, **options)
    memory.record(*steps(count))
    return memory


def compactions(memory):
    return sum(isinstance(entry.body, Compaction) for entry in memory._runtime.log.read())


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("reserve", [0, 500, 1_700])
def test_the_request_its_tools_and_its_reserve_are_within_the_budget(form, reserve):
    with open_memory(format=form) as memory:
        definitions = [memory._runtime.format.render_tool(tool) for tool in tool_list()]
        cost = sum(map(COUNTER.text, map(json.dumps, definitions)))
        for number in range(3):
            request = memory.to_messages(reserve=reserve, tools=definitions)
            validate(request, form)
            assert memory._runtime.state.usage.last_view.tokens + cost + reserve <= 3_000
            memory.record(TaskStep(f"And then? {number}"))


def test_what_one_request_keeps_free_is_back_in_the_next_view():
    with open_memory(6_000, count=35) as memory:
        before, count = memory.view(), compactions(memory)
        narrow = memory.view(reserve=before.tokens - 1_000)
        assert narrow.tokens <= 6_000 - before.tokens + 1_000
        assert compactions(memory) == count
        assert memory.view() == before


def test_what_requests_keep_free_again_and_again_is_compacted_once():
    with open_memory(6_000, count=35, page_in=0.0) as memory:
        tools = tool_list(40)
        memory.to_request(tools=tools)
        first, count = memory.to_request(tools=tools), compactions(memory)
        assert count == 1
        memory.record(TaskStep("Go on."))
        assert memory.to_request(tools=tools)["messages"][:-1] == first["messages"][: len(first["messages"])]
        assert compactions(memory) == count


def test_an_agent_beside_requests_without_tools_compacts_once_for_its_own():
    with open_memory(6_000, count=35) as memory:
        tools, counts = tool_list(40), []
        for _ in range(4):
            memory.view(tools=tools)
            memory.view()
            counts.append(compactions(memory))
        assert counts[1:] == [1, 1, 1]


def test_tools_that_the_budget_reserves_are_not_kept_free_twice():
    tools = tool_list(4)
    budget = Budget(3_000, tools=1_000)
    with open_memory(budget) as memory:
        assert memory.view(tools=tools).limit == budget.limit
        assert memory.view(tools=[]).limit == budget.limit
        assert memory.view(tools=tool_list(40)).limit < budget.limit


def test_the_library_s_own_tools_are_counted_once_they_are_handed_over():
    with open_memory() as memory:
        before = memory.view().limit
        cost = COUNTER.text(json.dumps(memory.tools("openai")))
        assert before - memory.view().limit == pytest.approx(cost, abs=60)
        own = memory.tools("openai")
        assert memory.view(tools=own).limit == memory.view().limit
        assert memory.view(tools=[*own, *tool_list()]).limit < memory.view().limit


def test_no_room_is_an_error_that_names_it_and_changes_nothing():
    with open_memory() as memory:
        memory.view()
        head = memory._runtime.log.head()
        for reserve in (2_990, 3_000, 90_000):
            with pytest.raises(OverBudget, match=rf"besides {reserve} .* keep free \d+ less") as caught:
                memory.view(reserve=reserve)
            assert caught.value.beside == reserve
        assert memory._runtime.log.head() == head
        assert memory.view(reserve=0).limit == 3_000


@pytest.mark.parametrize("reserve", [-1, 1.5, "10", True, None])
def test_a_reserve_that_is_no_number_of_tokens_is_refused(reserve):
    with open_memory(count=1) as memory, pytest.raises(ConfigurationError, match="reserve is a number of tokens"):
        memory.view(reserve=reserve)


@pytest.mark.parametrize("tools", ["bash", 3, [print], [{"name": {1, 2}}]])
def test_tools_that_are_no_definitions_are_refused(tools):
    with open_memory(count=1) as memory, pytest.raises(ConfigurationError, match="tools is the list"):
        memory.to_request(tools=tools)


def test_another_budget_for_a_call_keeps_the_room_free_too():
    with open_memory(6_000) as memory:
        memory.to_messages(max_tokens=2_000, reserve=600)
        whole = memory.to_messages(max_tokens=2_000)
        narrow = memory.to_messages(max_tokens=2_000, reserve=600)
        assert COUNTER.text(json.dumps(narrow)) < COUNTER.text(json.dumps(whole))
        with pytest.raises(OverBudget, match="besides 2000"):
            memory.to_messages(max_tokens=2_000, reserve=2_000)


def test_tools_that_were_handed_over_explain_what_the_provider_reports():
    with open_memory(30_000, counter=Encoding("o200k_base")) as memory:
        tools = tool_list(20)
        for number in range(4):
            view = memory.view(tools=tools)
            cost = memory._runtime.request_room(0, tools).tools
            memory.record(ActionStep(f"Done {number}.", usage=Usage(view.tokens + cost)))
            memory.record(TaskStep("More."))
        assert memory.view(tools=tools).limit == view.limit


def test_an_async_memory_keeps_the_same_room():
    async def play():
        async with AsyncAgentMemory.open(":memory:", budget=3_000) as memory:
            await memory.record(*steps(30))
            return [await memory.to_request(reserve=800, tools=tool_list()) for _ in range(2)]

    with open_memory() as memory:
        assert asyncio.run(play()) == [memory.to_request(reserve=800, tools=tool_list()) for _ in range(2)]


def test_a_fork_keeps_what_is_known_of_rooms():
    with open_memory(6_000) as memory:
        memory.tools()
        limit = memory.view().limit
        memory.switch(memory.fork().name)
        assert memory.view().limit == limit
