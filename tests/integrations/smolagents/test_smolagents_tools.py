"""The tools that an agent with our memory has besides its own."""

import pytest
import tools_play
from smolagents import memory as theirs
from smolagents_scripted import LookUp, agent_of, called, code

from pagein.integrations.smolagents import PageinMemory
from pagein.integrations.smolagents.hooks import MemoryTool

END = {"code": code("final_answer('done')"), "calls": called(("end", "final_answer", {"answer": "done"}))}


def in_order(*answers):
    """A script that gives one answer after the other, and the last for ever."""
    return lambda number, _: answers[min(number, len(answers)) - 1]


@pytest.mark.parametrize("kind", ["code", "calls"])
def test_the_agent_is_offered_every_tool_of_the_memory_and_each_works(kind):
    def turn(at, name, arguments):
        told = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        return code(f"print({name}({told}))") if kind == "code" else called((f"n{at}", name, arguments))

    turns = [turn(at, *each) for at, each in enumerate(tools_play.CALLS)]
    agent = agent_of(kind, in_order(*turns, END[kind]))
    memory = PageinMemory.attach(agent, budget=100_000)
    assert agent.run("Go, but never touch the production database.") == "done"
    told = [each.observations for each in memory.steps if isinstance(each, theirs.ActionStep)][:-1]
    if kind == "code":
        told = [each.split("logs:\n")[1].split("Last output")[0] for each in told]
    tools_play.check(told, memory.pages)
    ours = [each for each in agent.tools.values() if isinstance(each, MemoryTool)]
    tools_play.check_definitions({each.name: (each.description, set(each.inputs)) for each in ours})
    assert [each.name for each in ours] == tools_play.OFFERED
    memory.detach()
    assert not set(agent.tools) & set(tools_play.ALL)


def test_the_tools_can_be_chosen_and_one_of_the_agents_own_stays():
    class Recall(LookUp):
        name = "recall"

    agent = agent_of("calls", in_order(END["calls"]), tools=[Recall()])
    memory = PageinMemory.attach(agent, budget=8_000, tools=("recall", "pin"))
    assert sorted(agent.tools) == ["final_answer", "pin", "recall"]
    assert isinstance(agent.tools["recall"], Recall)
    assert agent.tools["pin"]("Mind the gap.").startswith("Pinned as")  # positional, as code calls it
    memory.detach()
    assert sorted(agent.tools) == ["final_answer", "recall"]
