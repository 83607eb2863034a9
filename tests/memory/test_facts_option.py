"""The option ``facts`` holds whatever a host touches, and on whichever branch it goes on."""

import pytest

from pagein import AgentMemory, ConfigurationError, TaskStep
from pagein.errors import LogClosed
from pagein.facts import Settings


def test_touching_facts_that_are_off_costs_no_later_record():
    with AgentMemory.open(":memory:", budget=8_000, facts=False) as memory:
        with pytest.raises(ConfigurationError):
            _ = memory.facts
        assert memory.record(TaskStep("Go on.")).last == 1
        assert memory.to_messages()


def test_a_switch_keeps_where_facts_are_placed():
    with AgentMemory.open(":memory:", budget=8_000, user="ann", facts=Settings(placement="head")) as memory:
        memory.record(TaskStep("Go on."))
        memory.fork(name="other")
        memory.switch("other")
        assert memory._runtime.state.facts_block.placement == "head"


def test_the_facts_of_a_closed_memory_are_closed(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", session="run", budget=4_000, user="ana") as memory:
        facts = memory.facts
        facts.add("Prefers tea")
    for use in (
        lambda: facts.add("Prefers coffee"),
        facts.list,
        lambda: facts.search("tea"),
        lambda: facts.remove("fu0"),
    ):
        with pytest.raises(LogClosed, match="open them again"):
            use()
    facts.close()
    with AgentMemory.open(tmp_path / "run.db", session="run", budget=4_000, user="ana") as memory:
        assert [fact.content for fact in memory.facts.list()] == ["Prefers tea"]
