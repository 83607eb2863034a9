"""A LangGraph agent reads two dozen papers through a small window, stops half way, resumes, and answers from paper 3.

    python examples/langgraph_research.py                                       offline, with a scripted model
    python examples/langgraph_research.py --endpoint http://localhost:8000/v1   any server that speaks OpenAI's protocol

The agent of many a tutorial: a graph that reasons, with a summary in place of old messages and an archive beside it.
Here the graph has no node for any of that. Its state keeps every message; the model gets a view of it within budget,
with the task word for word, the end of the run whole, what is older as the lines most likely to be needed, and the
tool ``expand``, which gives anything back. Checkpoints lie in the same file, so that a new process goes on.

With an endpoint the model is named by --model, and the key is read from OPENAI_API_KEY. Needs pagein[langgraph], and
with an endpoint langchain-openai.
"""

import argparse
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from pagein.integrations.langgraph import PageinSaver, PreModelHook

PAPERS, BUDGET = 24, 3_000
TASK = (
    f"Read papers 1 to {PAPERS} with read_paper, one call each. Then say which equation of paper 3 defines the joint "
    "value of a team, and name one difference between multi-agent and single-agent reinforcement learning."
)
RULES = SystemMessage("You are a careful researcher. Read everything before you answer.")
CONFIG = {"configurable": {"thread_id": "research"}, "recursion_limit": 150}


@tool
def read_paper(number: int) -> str:
    """One paper, whole."""
    lines = [f"Paper {number}, section {at}: results vary with seed {number * 31 + at}." for at in range(1, 21)]
    if number == 3:
        lines.insert(9, "Equation 7 defines the joint value Q_tot, which factors over the agents of a team.")
    return "\n".join(lines)


def graph(model: BaseChatModel, hook: PreModelHook, saver: PageinSaver) -> CompiledStateGraph:
    """Reason, use tools, reason again. What the model sees is the hook's affair, what was said the state's."""
    tools = [read_paper, *hook.tools]
    bound = model.bind_tools(tools)

    def reason(state: MessagesState) -> dict[str, list[BaseMessage]]:
        return {"messages": [bound.invoke([RULES, *hook.view(state["messages"])])]}

    builder = StateGraph(MessagesState)
    builder.add_node("reason", reason)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "reason")
    builder.add_conditional_edges("reason", tools_condition)
    builder.add_edge("tools", "reason")
    return builder.compile(checkpointer=saver)


class Interrupted(Exception):
    """Someone pulled the plug."""


class Scripted(BaseChatModel):
    """Reads paper after paper, then answers from what it sees, or expands what it does not see."""

    stop_at: int = 0
    last: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> "Scripted":  # noqa: ARG002
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:  # noqa: ARG002
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        read = [int(each) for seen in messages for each in re.findall(r"Paper (\d+), section 20", str(seen.content))]
        self.last = max(self.last, *read, 0)
        if self.stop_at and self.last >= self.stop_at:
            raise Interrupted
        if self.last < PAPERS:
            return _call("read_paper", f"paper_{self.last + 1}", number=self.last + 1)
        found = next(
            (re.search(r"Equation \d+", str(seen.content)) for seen in messages if "Q_tot" in str(seen.content)), None
        )
        if found:
            return AIMessage(f"{found[0]}. With many agents the world is not stationary for any of them.")
        return _call("expand", "expand_1", handle="s5")


def _call(name: str, call_id: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


def chat(options: argparse.Namespace, stop_at: int) -> BaseChatModel:
    """The model that was asked for."""
    if not options.endpoint:
        return Scripted(stop_at=stop_at)
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - only with an endpoint

    return ChatOpenAI(base_url=options.endpoint, model=options.model, max_retries=2)


def main() -> None:
    """Run, stop, go on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", default="", help="a server that speaks OpenAI's protocol; without it no network")
    parser.add_argument("--model", default="gpt-4o-mini")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        for stop_at in (0,) if options.endpoint else (PAPERS // 2, 0):
            hook = PreModelHook(path, budget=BUDGET, reserve=50)
            with PageinSaver(path) as saver:
                agent = graph(chat(options, stop_at), hook, saver)
                state = agent.get_state(CONFIG).values
                try:
                    done = agent.invoke(None if state else {"messages": [HumanMessage(TASK)]}, CONFIG)
                except Interrupted:
                    print(f"interrupted with {len(agent.get_state(CONFIG).values['messages'])} messages; resuming")
                    continue
                finally:
                    memory = hook.memory("research")
                    view = memory.view() if memory else None
                    hook.close()
        print(
            f"{len(done['messages'])} messages in the state, {view.tokens if view else 0} of {BUDGET} tokens in the view"
        )
        print(done["messages"][-1].content)


if __name__ == "__main__":
    main()
