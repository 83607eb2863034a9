"""The middleware in agents of LangChain's own making, with a model that refuses what a strict provider refuses."""

import asyncio
from importlib import metadata

import pytest
import tools_play
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ContextEditingMiddleware
from langchain_core.messages import HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_play import BUDGET, FACT, Crash, call, cost, look, looks_and_answers, scripted
from langgraph.checkpoint.memory import InMemorySaver

from pagein import AgentMemory, ConfigurationError, FormatError, OverBudget
from pagein.integrations.langchain.middleware import PageinMiddleware

pytestmark = pytest.mark.slow

GO = {"messages": [HumanMessage("Look at every page, then tell the staging password.")]}
DEEP = {"recursion_limit": 250}


def thread(name):
    return {"configurable": {"thread_id": name}, **DEEP}


def run(agent, given, config, *, is_async):
    return asyncio.run(agent.ainvoke(given, config)) if is_async else agent.invoke(given, config)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request):
    return request.param


@pytest.fixture
def made(tmp_path):
    """Agents with our middleware; each is closed at the end."""
    opened = []

    def make(model, tools=(look,), source=None, *, before=(), after=(), checkpointer=None, budget=BUDGET, **options):
        ours = PageinMiddleware(source or tmp_path / "run.db", budget=budget, **options)
        opened.append(ours)
        agent = create_agent(
            model, list(tools), middleware=[*before, ours, *after], checkpointer=checkpointer, system_prompt="Be exact."
        )
        agent.ours = ours
        return agent

    yield make
    for each in opened:
        each.close()


def test_sixty_calls_go_through_a_small_budget_and_an_early_fact_is_told(made, is_async):
    model = scripted(looks_and_answers(60))
    done = run(made(model), GO, DEEP, is_async=is_async)
    assert FACT in done["messages"][-1].content
    assert sum(isinstance(each, ToolMessage) for each in done["messages"]) >= 60
    bare = sum(cost(done["messages"][: 1 + 2 * turn]) for turn in range(61))
    assert sum(model.costs) < 0.4 * bare, f"{sum(model.costs)} of {bare} tokens"


def test_the_state_of_the_graph_is_what_it_is_without_us(made):
    with_us = made(scripted(looks_and_answers(20), limit=1_000), budget=1_000, expand=False).invoke(GO, DEEP)
    told = [each for each in with_us["messages"] if each.type != "ai" or each.tool_calls]
    bare = create_agent(scripted(looks_and_answers(20), limit=90_000), [look]).invoke(GO, DEEP)["messages"]
    assert [(each.type, each.content) for each in told][:40] == [(each.type, each.content) for each in bare][:40]


def test_everything_is_recorded_and_durable_before_its_tools_run(made):
    seen = []

    @tool
    def peek() -> str:
        """Look what is recorded."""
        seen.append(agent.ours.memory("a").steps[-1])
        return "ok"

    agent = made(scripted(lambda messages: "Done." if messages[-1].type == "tool" else call("peek", 1)), [peek])
    agent.invoke(GO, thread("a"))
    assert [each.name for each in seen[0].tool_calls] == ["peek"]
    assert seen[0].observations == ()
    memory = agent.ours.memory("a")
    assert [type(each).__name__ for each in memory.steps] == [
        "SystemPromptStep",
        "TaskStep",
        "ActionStep",
        "ActionStep",
    ]
    assert memory.verify().ok


def test_each_thread_has_a_session_of_its_own_and_goes_on_in_it(made, tmp_path):
    agent = made(scripted(lambda messages: f"{len(messages)} messages"), checkpointer=InMemorySaver())
    for name in ("a", "b", "a"):
        agent.invoke({"messages": [HumanMessage(f"To {name}")]}, thread(name))
    agent.ours.close()
    for name, tasks in (("a", 2), ("b", 1)):
        with AgentMemory.open(tmp_path / "run.db", session=name, budget=BUDGET) as memory:
            assert len(memory.steps) == 1 + 2 * tasks
    again = agent.invoke({"messages": [HumanMessage("Again")]}, thread("a"))
    assert again["messages"][-1].content == "6 messages"  # the system prompt is one of them
    with AgentMemory.open(tmp_path / "run.db", session="a#1", budget=BUDGET) as other:
        assert other.steps == ()


def test_what_another_middleware_takes_out_of_the_state_is_not_shown(made, tmp_path):
    class Forget(AgentMiddleware):
        def before_model(self, state, runtime):
            gone = [each for each in state["messages"] if "secret" in str(each.content)]
            return {"messages": [RemoveMessage(id=each.id) for each in gone]} if len(state["messages"]) > 3 else None

    model = scripted(lambda messages: call("look", len(messages), number=1) if len(messages) < 5 else "Done.")
    agent = made(model, before=[Forget()], checkpointer=InMemorySaver())
    agent.invoke({"messages": [HumanMessage("the secret is 42"), HumanMessage("Look.")]}, thread("a"))
    assert "secret" in str(model.asked[0])
    assert "secret" not in str(model.asked[-1])
    agent.ours.close()
    with AgentMemory.open(tmp_path / "run.db", session="a", budget=BUDGET) as before:
        assert "secret" in str(before.steps)  # the record keeps what was
    with AgentMemory.open(tmp_path / "run.db", session="a#1", budget=BUDGET) as now:
        assert "secret" not in str(now.steps)


def test_going_back_to_an_earlier_checkpoint_shows_that_one(made):
    agent = made(scripted(lambda messages: f"Answer {len(messages)}"), checkpointer=InMemorySaver())
    for text in ("One", "Two"):
        agent.invoke({"messages": [HumanMessage(text)]}, thread("a"))
    past = [each for each in agent.get_state_history(thread("a")) if len(each.values["messages"]) == 2]
    agent.invoke({"messages": [HumanMessage("Three")]}, past[0].config)
    said = [each.content for each in agent.get_state(thread("a")).values["messages"]]
    assert said == ["One", "Answer 2", "Three", "Answer 4"]


def test_a_request_that_another_middleware_changes_is_kept_under_budget_too(made, is_async):
    class Injects(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            return handler(request.override(messages=[*request.messages, HumanMessage("It is Monday.")]))

        async def awrap_model_call(self, request, handler):
            return await handler(request.override(messages=[*request.messages, HumanMessage("It is Monday.")]))

    model = scripted(looks_and_answers(10), limit=2_000)
    agent = made(model, before=[Injects()], budget=2_000)
    done = run(agent, GO, DEEP, is_async=is_async)
    for asked in model.asked:  # behind it stands at most what came back by itself
        assert "It is Monday." in [each.content for each in asked[-2:]]
    assert not any("Monday" in str(each.content) for each in done["messages"])


def test_langchain_s_own_context_editing_goes_along(made):
    model = scripted(looks_and_answers(30))
    agent = made(model, before=[ContextEditingMiddleware()])
    assert FACT in agent.invoke(GO, DEEP)["messages"][-1].content


def test_instructions_that_change_each_turn_are_sent_as_they_are_and_fit(made):
    class Clock(AgentMiddleware):
        turn = 0

        def wrap_model_call(self, request, handler):
            self.turn += 1
            return handler(request.override(system_message=SystemMessage(f"Turn {self.turn}. " + "Be exact. " * 60)))

    model = scripted(looks_and_answers(20), limit=1_500)
    agent = made(model, before=[Clock()], budget=1_500)
    agent.invoke(GO, thread("a"))
    assert [asked[0].content[:7] for asked in model.asked[:3]] == ["Turn 1.", "Turn 2.", "Turn 3."]
    assert sum(each.type == "system" for asked in model.asked for each in asked) == len(model.asked)
    assert agent.ours.memory("a").system_prompt.startswith("Turn 1.")


class Overflow(Exception):
    """As Anthropic's SDK says it."""


def test_a_provider_that_finds_a_request_too_long_is_sent_a_shorter_one(made, is_async):
    sent, plays = [], looks_and_answers(20)

    def script(messages):
        size = sum(len(str(each.content)) for each in messages)
        sent.append(size)
        if size > 3_000:
            return Overflow(f"prompt is too long: {size} tokens > 3000 maximum")
        return plays(messages)

    agent = made(scripted(script))
    done = run(agent, GO, DEEP, is_async=is_async)
    assert FACT in done["messages"][-1].content
    over = [at for at, size in enumerate(sent) if size > 3_000]
    assert over
    assert all(sent[at + 1] < sent[at] for at in over)
    assert len(over) <= 3  # it is learned, not met again each turn


def test_an_overflow_that_stays_is_raised_as_the_provider_said_it(made):
    agent = made(scripted(lambda messages: Overflow("prompt is too long: 9000 tokens > 10 maximum")))
    with pytest.raises((Overflow, OverBudget)):
        agent.invoke(GO, thread("a"))
    assert len(agent.ours.memory("a").steps) == 2  # nothing the model did not say


def test_other_errors_are_the_hosts(made, is_async):
    agent = made(scripted(lambda messages: ValueError("no")))
    with pytest.raises(ValueError, match="no"):
        run(agent, GO, DEEP, is_async=is_async)


def test_words_of_the_user_that_fit_no_budget_are_an_error_and_the_state_is_whole(made):
    saver = InMemorySaver()
    agent = made(scripted(lambda messages: "Hm."), checkpointer=saver, budget=300)
    agent.invoke({"messages": [HumanMessage("Hi")]}, thread("a"))
    with pytest.raises(OverBudget):
        agent.invoke({"messages": [HumanMessage("word " * 2_000)]}, thread("a"))
    assert [each.content[:4] for each in agent.get_state(thread("a")).values["messages"]] == ["Hi", "Hm.", "word"]


def test_a_tool_that_never_answers_is_closed_for_the_model_and_left_open_in_the_state(made):
    saver = InMemorySaver()

    @tool
    def hang() -> str:
        """Never answers."""
        raise Crash

    model = scripted(
        lambda messages: "Then not." if messages[-1].type == "human" and len(messages) > 2 else call("hang", 1)
    )
    agent = made(model, [hang], checkpointer=saver)
    with pytest.raises(Crash):
        agent.invoke(GO, thread("a"))
    state = agent.get_state(thread("a")).values["messages"]
    agent.update_state(thread("a"), {"messages": [HumanMessage("Leave it.")]}, as_node="tools")
    done = agent.invoke(None, thread("a"))
    assert done["messages"][-1].content == "Then not."
    assert [each.type for each in done["messages"]] == ["human", "ai", "human", "ai"]
    assert [each.id for each in done["messages"][:2]] == [each.id for each in state]
    closed = next(each for each in model.asked[-1] if each.type == "tool")
    assert (closed.status, "may have run" in closed.content) == ("error", True)


def test_an_answer_that_the_state_never_got_is_shown_as_a_call_that_may_have_run(made, tmp_path):
    class Dies(AgentMiddleware):
        lives = 0

        def wrap_model_call(self, request, handler):
            response = handler(request)
            self.lives += 1
            if self.lives == 2:
                raise Crash
            return response

    saver, model, dies = InMemorySaver(), scripted(looks_and_answers(3)), Dies()
    first = made(model, before=[dies], checkpointer=saver)
    with pytest.raises(Crash):
        first.invoke(GO, thread("a"))
    first.ours.close()
    second = made(model, before=[dies], checkpointer=saver)  # as another process would
    done = second.invoke(None, thread("a"))
    assert FACT in done["messages"][-1].content
    asked = [each for each in model.asked[2] if each.type == "tool"]
    assert (len(asked), "may have run" in asked[-1].content) == (2, True)
    assert sum(each.type == "tool" for each in done["messages"]) == 2  # the state never heard of the other
    second.ours.close()
    third = made(model, checkpointer=saver)
    third.invoke({"messages": [HumanMessage("Say it again.")]}, thread("a"))
    with AgentMemory.open(tmp_path / "run.db", session="a#1", budget=BUDGET) as other:
        assert other.steps == ()


def test_a_stream_that_breaks_off_changes_nothing(made):
    def broken(messages):
        return (
            ConnectionError("the stream broke off")
            if len(messages) == 2 and not tries.append(1) and len(tries) == 1
            else "Done."
        )

    tries = []
    agent = made(scripted(broken), checkpointer=InMemorySaver())
    with pytest.raises(ConnectionError):
        list(agent.stream(GO, thread("a"), stream_mode="messages"))
    assert len(agent.ours.memory("a").steps) == 2
    assert agent.invoke(None, thread("a"))["messages"][-1].content == "Done."
    assert len(agent.ours.memory("a").steps) == 3


def test_an_artifact_that_is_no_json_stays_in_the_state(made):
    @tool(response_format="content_and_artifact")
    def plot():
        """Draw."""
        return "drawn", object()

    agent = made(scripted(lambda messages: "Done." if messages[-1].type == "tool" else call("plot", 1)), [plot])
    done = agent.invoke(GO, thread("a"))
    assert type(done["messages"][2].artifact) is object
    (seen,) = agent.ours.memory("a").steps[2].observations
    assert '"not recorded":"object"' in seen.extra.body


def test_two_agents_may_not_share_one_memory(made):
    with AgentMemory.open(":memory:", budget=BUDGET) as memory:
        first, second = (
            create_agent(scripted(lambda messages: "Done."), [], middleware=[PageinMiddleware(memory)])
            for _ in range(2)
        )
        first.invoke({"messages": [HumanMessage("One")]})
        with pytest.raises(FormatError, match="another agent records here"):
            second.invoke({"messages": [HumanMessage("Two")]})
        with pytest.raises(ConfigurationError, match="One memory is one conversation"):
            first.invoke({"messages": [HumanMessage("Three")]}, thread("other"))
        assert len(memory.steps) == 2


def test_two_agents_may_share_a_store_even_in_one_thread(made, tmp_path):
    first, second = (made(scripted(lambda messages: f"{len(messages)}")) for _ in range(2))
    for agent, text in ((first, "One"), (second, "Two"), (first, "Three")):
        assert agent.invoke({"messages": [HumanMessage(text)]}, thread("a"))["messages"][-1].content == "2"


def test_the_tools_are_of_the_conversation_that_speaks_also_after_a_way_back(made):
    def script(messages):
        if "Go back" not in str(messages[-1].content) and messages[-1].type == "human":
            return "Fine."
        return "Done." if messages[-1].type == "tool" else call("expand", 1, handle="s1")

    saver = InMemorySaver()
    agent = made(scripted(script), checkpointer=saver)
    agent.invoke({"messages": [HumanMessage("It began with Alpha.", id="1")]}, thread("a"))
    began = agent.get_state(thread("a")).config
    agent.update_state(thread("a"), {"messages": [HumanMessage("It began with Beta.", id="1")]})
    agent.invoke({"messages": [HumanMessage("And?")]}, thread("a"))
    done = agent.invoke({"messages": [HumanMessage("Go back.")]}, {**began, **DEEP})
    told = next(each.content for each in done["messages"] if each.type == "tool")
    assert "Alpha" in told


def test_what_is_expanded_is_the_original_and_a_wrong_handle_is_told(made):
    def script(messages):
        said = [each for each in messages if each.type == "tool"]
        handles = ["s1", "s999"]
        if len(said) < 2:
            return call("expand", len(said), handle=handles[len(said)])
        return "Done."

    done = made(scripted(script)).invoke(GO, DEEP)
    told = [each.content for each in done["messages"] if each.type == "tool"]
    assert "Look at every page" in told[0]
    assert "s999" in told[1]


def test_a_release_outside_the_range_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(metadata, "version", lambda package: "0.3.27")
    with pytest.raises(ConfigurationError, match=r"langchain 0\.3\.27 is installed.* langchain>=1\.2,<2\.0: pip"):
        PageinMiddleware(tmp_path / "run.db", budget=BUDGET)
    monkeypatch.setattr(metadata, "version", _missing)
    with pytest.raises(ConfigurationError, match=r"pip install 'pagein\[langchain\]'"):
        PageinMiddleware(tmp_path / "run.db", budget=BUDGET)


def _missing(package):
    raise metadata.PackageNotFoundError(package)


def test_misuse_is_told_before_anything_is_opened(tmp_path):
    with pytest.raises(ConfigurationError, match="unknown option 'buget'"):
        PageinMiddleware(tmp_path / "run.db", buget=4_000)
    with AgentMemory.open(":memory:", budget=BUDGET) as memory, pytest.raises(ConfigurationError, match="budget"):
        PageinMiddleware(memory, budget=9)
    assert list(tmp_path.iterdir()) == []


def test_the_model_is_offered_every_tool_of_the_memory_and_each_works(made, is_async):
    def script(messages):
        done = sum(each.type == "tool" for each in messages)
        if done == len(tools_play.CALLS):
            return "Done."
        name, arguments = tools_play.CALLS[done]
        return call(name, done, **arguments)

    agent = made(scripted(script), budget=100_000)
    done = run(agent, GO, DEEP, is_async=is_async)
    told = [each.content for each in done["messages"] if each.type == "tool"]
    tools_play.check(told, agent.ours.memory())
    found = {each.name: (each.description, set(each.args)) for each in agent.ours.tools}
    assert list(found) == tools_play.OFFERED
    tools_play.check_definitions(found)


def test_the_tools_can_be_chosen(tmp_path):
    def names(**options):
        ours = PageinMiddleware(tmp_path / "run.db", budget=BUDGET, **options)
        ours.close()
        return [each.name for each in ours.tools]

    assert names(tools=("expand", "recall")) == ["recall", "expand"]
    assert names(expand=False) == names(tools=False) == []
    assert names(user="ann") == tools_play.ALL
    assert names(facts=False) == ["recall", "expand", "pin", "forget"]
    with AgentMemory.open(":memory:", budget=BUDGET, user="ann") as memory:
        assert [each.name for each in PageinMiddleware(memory).tools] == tools_play.ALL
    with pytest.raises(ConfigurationError, match="no tool 'recal'; there are recall, expand"):
        names(tools=("recal",))
