"""The ladder: a compaction frees enough, so that the prompt's prefix breaks seldom."""

import pytest

from pagein import ActionStep, AgentMemory, Observation, Opaque, TaskStep, ToolCall
from pagein.context.worth import extract_worth
from pagein.tokens.prices import Prices

REQUESTS = 80


def play(budget, *, thinking="", actions_a_turn=REQUESTS):
    """Play an agent that reads a file before each request; return the records of its requests."""
    with AgentMemory.open(":memory:", budget=budget, page_in=0) as memory:
        for number in range(REQUESTS):
            if number % actions_a_turn == 0:
                memory.record(TaskStep(f"Do part {number} of the work."))
            memory.to_messages()
            lines = "\n".join(f"    value_{number}_{line} = lookup({number * 31 + line})" for line in range(90))
            call = ToolCall(f"c{number}", "read", f'{{"number": {number}}}')
            thoughts = (Opaque("anthropic", "thinking", "{}", thinking.replace("#", str(number))),) if thinking else ""
            memory.record(ActionStep(thoughts, (call,)))
            memory.record(Observation(call.id, lines))
        return memory.requests()


def share_written_anew(records):
    return sum(record.rewritten for record in records) / sum(record.tokens for record in records)


@pytest.mark.parametrize("budget", [16_000, 30_000])
def test_a_run_of_equal_steps_writes_little_of_its_requests_anew(budget):
    """Stubs for all but ten results freed a sixth of 30,000 tokens, and 18,000 were written anew, at every fourth request."""
    records = play(budget)
    assert 0 < sum(record.broke != "" for record in records) <= REQUESTS / 8
    assert share_written_anew(records) < 0.05


@pytest.mark.parametrize("budget", [16_000, 30_000])
def test_thoughts_that_leave_and_free_little_take_other_steps_along(budget):
    records = play(budget, thinking="I wonder about value # and what it means. " * 80, actions_a_turn=5)
    assert 0 < sum(record.broke != "" for record in records) <= REQUESTS / 6
    assert share_written_anew(records) < 0.05


def test_an_extract_of_a_larger_view_shows_what_is_worth_less():
    worths = [extract_worth(Prices(), limit) for limit in (2_000, 4_000, 16_000, 64_000)]
    assert worths[0] == worths[1] == 2 * worths[2] == 4 * worths[3]
