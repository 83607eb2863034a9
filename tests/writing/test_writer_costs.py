"""What the models beside a run cost is part of what the run costs, also for who looks at it later."""

import pytest
from writing_runs import GOOD, Host, turn

from pagein import AgentMemory
from pagein.models import ModelResponse
from pagein.tokens.prices import Prices

PRICES = Prices(output=7.0)


class Clerk:
    """A model that answers each request alike."""

    name, window = "clerk", 32_768

    def __init__(self, answer):
        self.answer = answer

    def write(self, request):
        return ModelResponse(self.answer)


def play(memory, turns=30):
    for number in range(turns):
        memory.record(turn(number))
        memory.to_messages()
        memory.wait()


@pytest.mark.parametrize("answer", [GOOD, "I'm sorry, but I can't help with that."])
@pytest.mark.parametrize("colour", ["sync", "async"])
def test_the_total_has_what_writers_spent_whoever_asks(colour, answer, tmp_path):
    data = pytest.importorskip("pagein.server.inspector.data", reason="SKIPPED: the inspector needs the extra serve")
    path = tmp_path / "runs.db"
    host = Host(colour, path, session="fix", summarizer=Clerk(answer), user="ana", prices=PRICES)
    host.record_messages([{"role": "user", "content": f"I live in Rome, at number {number}."} for number in range(3)])
    host.memory._runtime.facts.extract(flush=True)
    host.wait()
    play(host)
    cost, reports = host.cost(), host.report().writers
    assert {writer.purpose: writer.input + writer.output for writer in cost.writers} == {
        by.purpose: by.tokens for by in reports
    }
    assert {writer.purpose for writer in cost.writers} == {"facts", "summaries"}
    assert all(writer.price == writer.input + 7 * writer.output for writer in cost.writers)
    assert cost.total == cost.price + sum(writer.price for writer in cost.writers) > cost.price
    assert cost.net == cost.price_whole - cost.total
    assert f"total price {cost.total:,.0f}" in str(cost)
    host.end()
    with AgentMemory.open(path, session="fix", readonly=True, prices=PRICES) as memory:
        assert memory.cost() == cost
    with AgentMemory.open(path, session="fix", readonly=True) as memory:
        plain = memory.cost()
    inspected = data.InspectorData(str(path))
    for _ in range(2):
        shown = inspected.cost("fix")["cost"]
        assert (shown["total"], shown["price"]) == (plain.total, plain.price)
        assert [by["purpose"] for by in shown["writers"]] == ["facts", "summaries"]
    inspected.close()


def test_what_a_writer_spends_behind_the_last_request_is_in_the_total_too(tmp_path):
    with AgentMemory.open(
        tmp_path / "runs.db", summarizer=Clerk(GOOD), budget=1_500, policy="rolling", spend=None
    ) as memory:
        play(memory)
        before = memory.cost()
        memory.record(*map(turn, range(30, 42)))
        memory.compact(wait=True)
        (report,) = memory.report().writers
        assert sum(by.input + by.output for by in memory.cost().writers) == report.tokens
        assert memory.cost().total > before.total
        assert memory.cost().requests == before.requests
