"""What goes wrong in a run of a LangChain agent, and in a graph with our hook."""

import copy
from typing import Any, Literal

import pytest
from bad_ends_play import BUDGET, BadEnds, Breaks, Call, Host
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import StructuredTool
from langchain_play import Scripted
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolNode, tools_condition

from pagein.integrations.langchain.middleware import PageinMiddleware
from pagein.integrations.langgraph import PreModelHook

pytestmark = pytest.mark.slow

CONFIG = {"configurable": {"thread_id": "a"}, "recursion_limit": 100}


class Hologram(BaseMessage):
    """A kind of message of somebody's own."""

    type: Literal["hologram"] = "hologram"


UNKNOWN = [
    ChatMessage(role="oracle", content="a hologram of the sun"),
    HumanMessage([{"type": "text", "text": "See:"}, {"type": "hologram", "deep": [{"a": None}]}]),
    AIMessage([{"type": "hologram", "layers": 3}, {"type": "text", "text": "I see."}]),
    Hologram("a hologram of the moon"),
]


def text_of(messages):
    return "\n".join(f"{each.type}: {each.content} {getattr(each, 'tool_calls', '')}" for each in messages)


class Streaming(Scripted):
    """The scripted model, whose connection may break off in the middle of what it says."""

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        (generation,) = self._generate(messages).generations
        said = generation.message
        if isinstance(said.content, str) and said.content.startswith("BREAKS "):
            raise_after = said.content.removeprefix("BREAKS ")
            yield ChatGenerationChunk(message=AIMessageChunk(raise_after))
            raise ConnectionError("the connection is gone")
        yield ChatGenerationChunk(message=AIMessageChunk(said.content, tool_calls=said.tool_calls))


class LangChainHost(Host):
    def open(self):
        self.ours = self.source or self.made(self.path)
        self.model = Streaming(script=self.says, limit=BUDGET, asked=[], costs=[])
        self.saver, self.streaming = InMemorySaver(), False

    def made(self, path):
        return PageinMiddleware(path, budget=BUDGET, tools=False)

    def says(self, messages):
        match self.answer(text_of(messages)):
            case Breaks(said):
                if not self.streaming:
                    raise ConnectionError("the connection is gone")
                return f"BREAKS {said}"
            case Call(id, number):
                args = {"number": number}
                return AIMessage(f"I look at {number}.", tool_calls=[{"name": "look", "args": args, "id": id}])
            case said:
                return said

    def tool(self):
        async def wait(number: int) -> str:
            return await self.look(number)

        def look(number: int) -> str:
            return self.look(number)

        coroutine = wait if self.waits() else None
        return StructuredTool.from_function(look, coroutine, description="Look at a page.")

    def agent(self):
        return create_agent(self.model, [self.tool()], middleware=[self.ours], checkpointer=self.saver)

    def turn(self, words, *, stream=False):
        given, agent = {"messages": [HumanMessage(words)]}, self.agent()
        self.streaming = stream
        if stream:
            list(agent.stream(given, CONFIG, stream_mode="messages"))
            return self.values()[-1].content
        return agent.invoke(given, CONFIG)["messages"][-1].content

    async def aturn(self, words, *, stream=False):
        given, agent = {"messages": [HumanMessage(words)]}, self.agent()
        self.streaming = stream
        if stream:
            _ = [each async for each in agent.astream(given, CONFIG, stream_mode="messages")]
            return self.values()[-1].content
        return (await agent.ainvoke(given, CONFIG))["messages"][-1].content

    def values(self):
        return self.agent().get_state(CONFIG).values.get("messages", [])

    def history(self):
        return [each.model_dump() for each in self.values()]

    def put(self, messages):
        """Other messages instead of those in the state."""
        fresh = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *messages]
        self.agent().update_state(CONFIG, {"messages": fresh}, as_node="model")

    def plant(self):
        self.put([*self.values(), *copy.deepcopy(UNKNOWN)])

    def edit(self, how):
        old: list[Any] = [each.model_copy(deep=True) for each in self.values()]
        match how:
            case "removed":
                new = [old[0], *old[3:]]
            case "unanswered":
                new = [each for each in old if not (isinstance(each, ToolMessage) and "page 1" in each.content)]
            case "replaced":
                new = [old[0].model_copy(update={"content": "Look at page seven."}), *old[1:]]
            case "reordered":
                new = [*old[4:], *old[:4]]
            case "renamed":
                new = [self.renamed(each, at) for at, each in enumerate(old)]
        self.put(new)

    @staticmethod
    def renamed(message, at):
        more = {"id": f"other-{at}"}
        if isinstance(message, ToolMessage):
            more["tool_call_id"] = f"other-{message.tool_call_id}"
        if getattr(message, "tool_calls", None):
            more["tool_calls"] = [{**each, "id": f"other-{each['id']}"} for each in message.tool_calls]
        return message.model_copy(update=more)

    def take_over(self, other):
        self.saver = other.saver

    def sharing(self):
        return type(self)(self.path, is_async=self.is_async, source=self.ours)

    def memory(self):
        return self.ours.memory("a")

    def enter(self):
        self.made(self.path)

    def close(self):
        self.ours.close()


class HookHost(LangChainHost):
    """A graph of one's own with the hook before its model."""

    retries_overflow = False

    def made(self, path):
        return PreModelHook(path, budget=BUDGET, tools=False)

    def agent(self):
        class State(MessagesState):
            llm_input_messages: list

        builder = StateGraph(State)
        builder.add_node("hook", self.ours)
        builder.add_node("model", self.speak)
        builder.add_node("tools", ToolNode([self.tool()]))
        builder.add_edge(START, "hook")
        builder.add_edge("hook", "model")
        builder.add_conditional_edges("model", tools_condition, {"tools": "tools", "__end__": END})
        builder.add_edge("tools", "hook")
        return builder.compile(checkpointer=self.saver)

    def speak(self, state):
        return {"messages": [self.model.invoke(state["llm_input_messages"])]}

    def settle(self):
        self.ours.view(self.values(), "a")

    def overflowed(self, error):
        return self.ours.memory("a").handle_overflow(error) is not None


class TestLangChain(BadEnds):
    HOST = LangChainHost


class TestLangGraph(BadEnds):
    HOST = HookHost
