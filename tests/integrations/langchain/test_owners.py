"""One agent or graph for several users: nobody is shown what another said."""

import asyncio
from contextlib import closing
from dataclasses import dataclass

import owners_play
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_play import scripted
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import get_runtime

from pagein import ConfigurationError
from pagein.backends.open import open_store
from pagein.integrations import _threads
from pagein.integrations.langchain.middleware import PageinMiddleware
from pagein.integrations.langgraph import PreModelHook

pytestmark = pytest.mark.slow


def user_of(config):
    return config["configurable"]["user_id"]


def recorder():
    sent = []

    def answer(messages):
        sent.append("\n".join(str(message.content) for message in messages))
        return AIMessage("Noted.")

    return scripted(answer), lambda: sent[-1]


@pytest.mark.parametrize("owner", ["user", "project", "tenant", "task"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_users_of_an_agent_never_see_each_other_s_words(tmp_path, is_async, owner):
    model, sent = recorder()
    ours = PageinMiddleware(tmp_path / "run.db", budget=4_000, facts=True, **{owner: user_of})
    agent = create_agent(model, [], middleware=[ours])
    states = {}

    def say(user, text):
        config = {"configurable": {"user_id": user}}
        state = {"messages": [*states.get(user, []), HumanMessage(text)]}
        done = asyncio.run(agent.ainvoke(state, config)) if is_async else agent.invoke(state, config)
        states[user] = done["messages"]

    owners_play.talk(say, sent=sent)
    for user in owners_play.USERS:
        memory = ours.memory(**{owner: user})
        assert owners_play.SECRETS[user] in str(memory.steps)
        assert not any(other != user and owners_play.SECRETS[other] in str(memory.steps) for other in owners_play.USERS)
        hits = memory.recall("password", across=True)
        words = str([hit.text for hit in hits if owner == "tenant"] + memory.get_full_steps())
        assert not any(other != user and owners_play.SECRETS[other] in words for other in owners_play.USERS)
    ours.close()


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_users_of_a_graph_never_see_each_other_s_words(tmp_path, is_async):
    model, sent = recorder()
    hook = PreModelHook(tmp_path / "run.db", budget=4_000, user=user_of, tenant=lambda config: "acme")

    class Shown(MessagesState):
        llm_input_messages: list

    builder = StateGraph(Shown)
    builder.add_node("hook", hook)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["llm_input_messages"])]})
    builder.add_edge(START, "hook")
    builder.add_edge("hook", "model")
    builder.add_edge("model", END)
    graph, states = builder.compile(), {}

    def say(user, text):
        config = {"configurable": {"user_id": user}}
        state = {"messages": [*states.get(user, []), HumanMessage(text)]}
        done = asyncio.run(graph.ainvoke(state, config)) if is_async else graph.invoke(state, config)
        states[user] = done["messages"]

    owners_play.talk(say, sent=sent)
    assert hook.memory("default", user="ann", tenant="acme").verify().ok
    assert hook.memory("default", user="carl", tenant="acme") is None
    with pytest.raises(ConfigurationError, match="tenant=, user="):
        hook.memory("default", user="ann")
    hook.close()


@pytest.mark.parametrize("user", [None, "", 7, "  ", "ann\ud800"])
def test_a_call_of_nobody_is_refused(tmp_path, user):
    model, _ = recorder()
    ours = PageinMiddleware(tmp_path / "run.db", budget=4_000, user=user_of)
    agent = create_agent(model, [], middleware=[ours])
    with pytest.raises(ConfigurationError, match="user= names nobody"):
        agent.invoke({"messages": [HumanMessage("Hi")]}, {"configurable": {"user_id": user}})
    with pytest.raises(ConfigurationError, match="KeyError"):
        agent.invoke({"messages": [HumanMessage("Hi")]})
    ours.close()


def test_what_a_user_prefers_comes_back_in_another_thread_of_theirs_alone(tmp_path):
    model, sent = recorder()
    ours = PageinMiddleware(tmp_path / "run.db", budget=4_000, user=user_of)
    agent = create_agent(model, [], middleware=[ours])

    def say(user, thread, text):
        agent.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"user_id": user, "thread_id": thread}})
        return sent()

    say("ann", "monday", "I prefer pytest over unittest.")
    ours.close()
    assert "pytest" in say("ann", "tuesday", "Write the tests.")
    assert "pytest" not in say("bob", "tuesday", "Write the tests.")
    ours.close()


def test_a_tool_finds_what_its_user_said_after_a_restart_and_among_more_users_than_are_kept_open(tmp_path, monkeypatch):
    model, _ = recorder()
    monkeypatch.setattr(_threads, "MAX_OPEN", 1)
    for is_restarted in (False, True):
        ours = PageinMiddleware(tmp_path / "run.db", budget=4_000, user=user_of)
        if not is_restarted:
            agent = create_agent(model, [], middleware=[ours])
            for user in owners_play.USERS:
                agent.invoke({"messages": [owners_play.SECRETS[user]]}, {"configurable": {"user_id": user}})
        recall = next(tool for tool in ours.tools if tool.name == "recall")
        for user in owners_play.USERS:
            found = recall.invoke({"query": "password"}, {"configurable": {"user_id": user}})
            assert [other for other in owners_play.USERS if owners_play.SECRETS[other] in found] == [user]
        assert (
            recall.invoke({"query": "password"}, {"configurable": {"user_id": "carl"}}) == "Nothing was recorded yet."
        )
        assert len(ours._threads._open) == 1
        ours.close()


def test_a_thread_that_a_tool_opened_goes_on_in_its_session(tmp_path):
    model, _ = recorder()
    config = {"configurable": {"user_id": "ann"}}
    ours = PageinMiddleware(tmp_path / "run.db", budget=4_000, user=user_of)
    done = create_agent(model, [], middleware=[ours]).invoke({"messages": ["One."]}, config)
    ours.close()
    ours = PageinMiddleware(tmp_path / "run.db", budget=4_000, user=user_of)
    ours.tools[0].invoke({"query": "one"}, config)
    state = {"messages": [*done["messages"], HumanMessage("Two.")]}
    create_agent(model, [], middleware=[ours]).invoke(state, config)
    assert len(ours.memory(user="ann").steps) == 4
    ours.close()
    with closing(open_store(tmp_path / "run.db")) as store:
        assert sum("ann/default" in name for name in store.sessions()) == 1


@pytest.mark.parametrize("owner", ["user", "tenant"])
def test_a_state_with_answers_to_another_user_is_refused(tmp_path, owner):
    model, sent = recorder()
    saver = InMemorySaver()

    def run(text, **settings):
        ours = PageinMiddleware(tmp_path / "run.db", budget=4_000, project=lambda config: "x", **{owner: user_of})
        agent = create_agent(model, [], middleware=[ours], checkpointer=saver)
        try:
            return agent.invoke({"messages": [text]}, {"configurable": {"thread_id": "t", **settings}})
        finally:
            ours.close()

    run(owners_play.SECRETS["ann"], user_id="ann")
    model.asked.clear()
    with pytest.raises(ConfigurationError, match="answers to another user"):
        run("Hello.", user_id="bob")
    assert not model.asked
    run("Hello again.", user_id="ann")
    assert owners_play.SECRETS["ann"] in sent()


@dataclass
class Context:
    user_id: str


def test_the_user_may_be_read_from_the_context_of_the_run(tmp_path):
    model, sent = recorder()
    ours = PageinMiddleware(tmp_path / "run.db", budget=4_000, user=lambda _: get_runtime(Context).context.user_id)
    agent, states = create_agent(model, [], middleware=[ours], context_schema=Context), {}

    def say(user, text):
        state = {"messages": [*states.get(user, []), HumanMessage(text)]}
        states[user] = agent.invoke(state, context=Context(user))["messages"]

    owners_play.talk(say, sent=sent)
    for user in owners_play.USERS:
        assert owners_play.SECRETS[user] in str(ours.memory(user=user).steps)
    ours.close()
