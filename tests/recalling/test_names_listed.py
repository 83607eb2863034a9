"""Names by themselves have most of a page-in, each once; a window that the user's words fill leaves room for the newest step."""

import json

from pagein.backends.memory import InMemoryLog
from pagein.context.compaction.floor import CLIP_TOKENS
from pagein.context.page_in.likely import _drop_contained_names
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall
from pagein.memory.agent_memory import AgentMemory


def acted(memory, number, output):
    """One action with its result."""
    call = ToolCall(f"c{number}", "bash", json.dumps({"command": f"cat src/part_{number}.py"}))
    memory.record(ActionStep(f"I look at part {number}.", (call,)))
    memory.record(Observation(call.id, output))


def output(number):
    """Lines with two names each, none twice."""
    return "\n".join(f"load_{number}_{n}(reader_{number}_{n}) once the tide has turned" for n in range(14))


def text(shown):
    return "\n".join(str(message.content) for each in shown for message in each.messages)


def test_names_have_most_of_what_comes_back():
    with AgentMemory(InMemoryLog(), budget=2_500) as memory:
        memory.record(TaskStep("Find what loads the tides."))
        shares = []
        for number in range(25):
            acted(memory, number, output(number))
            view = memory.view()
            tail = text(view.tail)
            if tail.count("\n") > 2:
                named = next((line for line in tail.splitlines() if line.startswith("Named too: ")), "")
                shares.append(view.counter.text(named) / view.counter.text(tail))
    assert len(shares) > 5
    assert sum(shares) / len(shares) > 0.4


def test_a_name_that_is_part_of_a_likelier_one_is_not_listed():
    assert _drop_contained_names(["app/models.py", "models.py", "self.model", "model", "odel"]) == [
        "app/models.py",
        "self.model",
        "odel",
    ]


def test_two_names_beside_each_other_are_not_one_of_both():
    assert _drop_contained_names(["order", "by", "order.by"]) == ["order", "by", "order.by"]


def test_where_the_users_words_fill_the_window_the_newest_step_is_not_cut_to_nothing():
    with AgentMemory(InMemoryLog(), budget=2_000, page_in=0) as memory:
        memory.record(TaskStep(" ".join(f"word_{n} of the task" for n in range(280))))
        for number in range(6):
            acted(memory, number, output(number))
            view = memory.view()
    free = view.limit - sum(each.tokens for each in view.entries if each.tier in ("system", "user"))
    assert 150 < free < view.limit * 0.2
    assert view.run[-1].tokens > max(CLIP_TOKENS[1] * 1.2, free * 0.25)
