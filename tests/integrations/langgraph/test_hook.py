"""The hook before the model of a plain LangGraph."""

import asyncio

import pytest
import tools_play
from langchain_core.messages import HumanMessage
from langchain_play import BUDGET, FACT, look, looks_and_answers, scripted
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from pagein import ConfigurationError
from pagein.integrations.langgraph import PreModelHook

pytestmark = pytest.mark.slow

GO = {"messages": [HumanMessage("Look at every page, then tell the staging password.")]}
DEEP = {"recursion_limit": 250}


@pytest.fixture
def hook(tmp_path):
    made = PreModelHook(tmp_path / "run.db", budget=BUDGET)
    yield made
    made.close()


class Shown(MessagesState):
    llm_input_messages: list


def graph(model, hook, checkpointer=None):
    """The loop of create_react_agent, written out: the hook, the model, the tools."""
    builder = StateGraph(Shown)
    builder.add_node("hook", hook)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["llm_input_messages"])]})
    builder.add_node("tools", ToolNode([look, *hook.tools]))
    builder.add_edge(START, "hook")
    builder.add_edge("hook", "model")
    builder.add_conditional_edges("model", tools_condition, {"tools": "tools", "__end__": END})
    builder.add_edge("tools", "hook")
    return builder.compile(checkpointer=checkpointer)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_graph_of_nodes_stays_under_budget_and_its_state_whole(hook, is_async):
    model = scripted(looks_and_answers(40))
    agent = graph(model, hook, InMemorySaver())
    config = {"configurable": {"thread_id": "a"}, **DEEP}
    done = asyncio.run(agent.ainvoke(GO, config)) if is_async else agent.invoke(GO, config)
    assert FACT in done["messages"][-1].content
    assert len(done["messages"]) > 80
    assert len(hook.memory("a").steps) > 40


def test_a_node_of_one_s_own_asks_for_the_view_and_what_else_it_sends_is_left_room(tmp_path):
    hook = PreModelHook(tmp_path / "run.db", budget=600, reserve=200)
    model = scripted(lambda messages: "ok", limit=400)
    messages = []
    for turn in range(30):
        messages.append(HumanMessage(f"Say {turn}. " + "word " * (turn % 3)))
        messages.append(model.invoke(hook.view(messages, "a")))
    assert len(hook.memory("a").steps) == 59
    hook.close()


def test_the_react_agent_of_langgraph_takes_it(hook):
    from langgraph.prebuilt import create_react_agent

    model = scripted(looks_and_answers(20), limit=BUDGET)
    with pytest.warns(DeprecationWarning, match="create_react_agent"):
        agent = create_react_agent(model, [look, *hook.tools], pre_model_hook=hook)
    assert FACT in agent.invoke(GO, DEEP)["messages"][-1].content


def test_a_state_without_messages_is_named(hook):
    with pytest.raises(ConfigurationError, match="no list of messages"):
        hook.invoke({"task": "x"})
    with pytest.raises(ConfigurationError, match="reserve"):
        PreModelHook(":memory:", budget=BUDGET, reserve=-1)


def test_its_tools_can_be_chosen(tmp_path):
    for options, names in (({}, tools_play.OFFERED), ({"tools": "expand"}, ["expand"]), ({"tools": False}, [])):
        made = PreModelHook(tmp_path / "run.db", budget=BUDGET, **options)
        assert [each.name for each in made.tools] == names
        made.close()
