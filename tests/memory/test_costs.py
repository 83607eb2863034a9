"""The cost of a run's requests: prices, what compactions and page-ins cost and saved, the provider's usage, prefix breaks."""

import asyncio
import json

import pytest

from pagein import (
    ActionStep,
    AgentMemory,
    AsyncAgentMemory,
    CallbackRegistry,
    Observation,
    PrefixBreak,
    SystemPromptStep,
    TaskStep,
    ToolCall,
    Usage,
)
from pagein.cli import main
from pagein.tokens.prices import Prices

PRICES = Prices(minimum=0)


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


def work(memory, numbers):
    """Actions with results that name many things, a request after each."""
    for number in numbers:
        lines = "\n".join(f"{line}: value_{number}_{line} = load_{line}(limit={line * number})" for line in range(12))
        call = ToolCall(f"c{number}", "bash", json.dumps({"command": f"sed -n 1,12p src/file_{number}.py"}))
        memory.record(ActionStep(f"Look at file {number}.", (call,), (Observation(call.id, lines),)))
        memory.to_messages()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def run(clock):
    with AgentMemory.open(":memory:", budget=2_000, clock=clock, prices=PRICES) as memory:
        memory.record(SystemPromptStep("You are careful."), TaskStep("Find the value that is wrong."))
        yield memory


def test_without_a_compaction_a_run_costs_what_everything_costs(run):
    work(run, range(3))
    cost = run.cost()
    tokens = [record.tokens for record in run.requests()]
    assert (cost.requests, cost.tokens, cost.shed, cost.rewritten, cost.lines) == (3, sum(tokens), 0, 0, ())
    first, second, third = tokens
    # Three tokens of each request are its own frame, which no cache has.
    price = first + 0.1 * (first - 3) + (second - first + 3) + 0.1 * (second - 3) + (third - second + 3)
    assert cost.price == pytest.approx(price)
    assert cost.price_whole == pytest.approx(cost.price, rel=0.02)
    assert cost.written == cost.tokens - cost.cached


def test_each_compaction_says_what_left_what_was_written_again_and_what_that_saved(run):
    work(run, range(18))
    cost, records = run.cost(), run.requests()
    compactions = [line for line in cost.lines if line.kind == "compaction"]
    counts = [record.compactions for record in records]
    assert [line.request for line in compactions] == [
        record.number for before, record in zip(counts, records[1:], strict=False) if record.compactions > before
    ]
    assert len(compactions) >= 2
    first = compactions[0]
    assert first.tokens > 300
    assert first.cost == pytest.approx(0.9 * first.rewritten)
    # What left would have been read from the cache in this request and in all later ones.
    assert first.saved == pytest.approx(0.1 * first.tokens * (len(records) - first.request + 1))
    assert cost.shed == sum(line.tokens for line in compactions)


def test_a_short_run_with_a_cache_is_cheapest_whole_and_a_long_one_is_not(run):
    work(run, range(18))
    assert run.cost().net < 0
    work(run, range(18, 60))
    cost = run.cost()
    assert cost.net == cost.price_whole - cost.price > 0.2 * cost.price_whole


def test_a_pause_longer_than_the_lifetime_of_the_cache_makes_a_request_dear(run, clock):
    work(run, range(2))
    before = run.cost()
    clock.now += PRICES.lifetime
    run.record(TaskStep("Go on."))
    run.to_messages()
    cost, last = run.cost(), run.requests()[-1]
    assert cost.cached == before.cached
    assert cost.price - before.price == last.tokens


def test_a_page_in_costs_its_tokens_and_saves_a_request_where_it_was_used(clock):
    with AgentMemory.open(":memory:", budget=2_000, clock=clock, page_in=0.3, prices=PRICES) as memory:
        memory.record(TaskStep("Find the value that is wrong."))
        work(memory, range(14))
        shown = next(entry for entry in memory.view().tail if entry.tier == "recalled")
        text = str(shown.messages[0].content)
        name = next(
            word for word in text.replace("=", " ").replace("(", " ").split() if word.startswith(("value_", "src/"))
        )
        in_view = "".join(str(message) for entry in memory.view().entries for message in entry.messages)
        assert name not in in_view
        handle = f"s{shown.first}"
        (line,) = (line for line in memory.cost().lines if line.kind == "page-in" and line.handle == handle)
        assert (line.tokens, line.saved) == (shown.tokens, 0)
        memory.record(ActionStep("", (ToolCall("u", "bash", f"grep {name}"),), (Observation("u", "none"),)))
        memory.to_messages()
        (used,) = (line for line in memory.cost().lines if line.kind == "page-in" and line.handle == handle)
        assert used.saved == 1_150
        assert used.cost > line.cost >= shown.tokens


def test_an_undone_compaction_saves_nothing_more(run):
    work(run, range(6))
    run.compact()
    run.to_messages()
    before = [line for line in run.cost().lines if line.kind == "compaction"][-1]
    run.undo()
    for _ in range(2):
        run.record(ActionStep("Good."))
        run.to_messages()
    after = next(line for line in run.cost().lines if (line.kind, line.request) == (before.kind, before.request))
    assert after.saved == before.saved > 0


def test_the_cost_is_the_same_from_the_table_of_another_process(tmp_path, clock):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=2_000, clock=clock, prices=PRICES) as memory:
        memory.record(TaskStep("Find it."))
        memory.cost()  # from here on the account goes along
        work(memory, range(14))
        cost = memory.cost()
    with AgentMemory.open(path, readonly=True, prices=PRICES) as memory:
        assert memory.cost() == cost
        assert memory.report().cost == cost
        assert str(cost) in str(memory.report())


def test_a_run_that_is_opened_for_each_request_is_cached_as_one_that_stays_open(tmp_path, clock):
    costs = []
    for name, sizes in (("open.db", [8]), ("opened.db", [1] * 8)):
        start = 0
        for size in sizes:
            with AgentMemory.open(tmp_path / name, budget=2_000, clock=clock, prices=PRICES) as memory:
                if start == 0:
                    memory.record(TaskStep("Find it."))
                work(memory, range(start, start + size))
                start += size
                cost = memory.cost()
        costs.append((cost.requests, cost.tokens, cost.cached, cost.price))
    assert costs[0] == costs[1]
    assert costs[0][2] > 0.7 * costs[0][1]


def test_the_providers_usage_stands_beside_it_and_a_cache_that_tells_otherwise_is_warned_of(run):
    for number in range(5):
        work(run, [number])
        tokens = run.requests()[-1].tokens
        run.observe_usage(Usage(tokens + 100, 20, cached_tokens=0))
    cost = run.cost()
    assert (cost.provider.requests, cost.provider.output, cost.output) == (5, 100, 100)
    assert cost.provider.price == cost.provider.input + 5 * 100
    assert "the provider read 0 tokens from its cache in 4 requests" in cost.warning
    assert cost.warning in str(run.report())


def test_a_cache_that_reads_what_stood_is_not_warned_of(run):
    for number in range(5):
        work(run, [number])
        record = run.requests()[-1]
        run.observe_usage(Usage(record.tokens + 100, 20, cached_tokens=record.prefix))
    assert run.cost().provider.cache_read > 0
    assert run.cost().warning == ""


def test_a_late_usage_is_counted(run):
    work(run, range(4))
    before = run.cost()
    run.note_outcome("ok", number=2, usage={"prompt_tokens": 100, "completion_tokens": 10})
    after = run.cost()
    assert (before.provider.requests, after.provider.requests, after.output) == (0, 1, 10)


def test_a_filtered_request_is_paid_for_and_begins_no_line(run):
    work(run, range(4))
    before = run.cost()
    run.to_messages(keep_last_n=1)
    after = run.cost()
    assert (after.requests, after.lines) == (before.requests + 1, before.lines)


def test_async_memories_know_their_cost_once_it_was_awaited():
    async def play():
        async with await AsyncAgentMemory.open(":memory:", budget=2_000) as memory:
            await memory.record(TaskStep("Find it."))
            await memory.to_messages()
            assert memory.report().cost is None
            cost = await memory.cost()
            assert (cost.requests, memory.report().cost) == (1, cost)

    asyncio.run(play())


# When the prefix breaks


@pytest.fixture
def breaks():
    return []


@pytest.fixture
def watched(breaks):
    callbacks = CallbackRegistry()
    callbacks.register(PrefixBreak, breaks.append)
    with AgentMemory.open(":memory:", budget=2_000, callbacks=callbacks, page_in=0, user="ada") as memory:
        memory.record(SystemPromptStep("You are careful."), TaskStep("Find the value that is wrong."))
        yield memory


def test_a_run_that_only_goes_on_breaks_nothing(watched, breaks):
    work(watched, range(3))
    watched.to_messages()
    assert breaks == []


def test_a_compaction_breaks_the_prefix_once_and_an_undo_again(watched, breaks):
    work(watched, range(12))
    compactions = [record for record in watched.requests() if record.broke]
    assert [event.cause for event in breaks] == ["compaction"] * len(compactions)
    event, record = breaks[0], compactions[0]
    assert (event.handle, event.kept, event.tokens) == (record.broke, record.prefix, record.tokens)
    assert 0 < event.rewritten == record.rewritten < record.tokens - record.prefix
    watched.compact()
    watched.to_messages()
    watched.undo()
    watched.to_messages()
    assert [event.cause for event in breaks[-2:]] == ["compaction", "undo"]


def test_an_edit_a_system_prompt_a_format_and_a_branch_are_named(watched, breaks):
    work(watched, range(2))
    watched.edit("s2", ActionStep("Look elsewhere.", (ToolCall("c0", "bash", "ls"),), (Observation("c0", "none"),)))
    watched.to_messages()
    watched.to_messages("anthropic")
    watched.fork(at=2, name="other")
    watched.switch("other")
    watched.record(ActionStep("On another way."), TaskStep("Go on."))
    watched.to_messages("anthropic")
    assert [event.cause for event in breaks] == ["edit", "format", "branch"]
    assert "handle" not in str(breaks[0])
    assert str(breaks[0]).startswith(f"the prefix broke at s2 (edit: {breaks[0].why}):")


def test_a_changed_system_prompt_is_named(watched, breaks):
    messages = [{"role": "system", "content": "You are careful."}, {"role": "user", "content": "Find it."}]
    with AgentMemory.open(":memory:", callbacks=watched._runtime.state.callbacks) as memory:
        memory.record_messages(messages)
        memory.to_messages()
        changed = [
            {"role": "system", "content": "You are quick."},
            *messages[1:],
            {"role": "assistant", "content": "Yes."},
        ]
        memory.record_messages([*changed, {"role": "user", "content": "Go on."}])
        memory.to_messages()
    assert [event.cause for event in breaks] == ["system prompt"]


def test_a_page_in_that_leaves_is_named():
    breaks, callbacks = [], CallbackRegistry()
    callbacks.register(PrefixBreak, breaks.append)
    with AgentMemory.open(":memory:", budget=2_000, callbacks=callbacks, page_in=0.3) as memory:
        memory.record(TaskStep("Find the value that is wrong."))
        work(memory, range(14))
        assert any(entry.tier == "recalled" for entry in memory.view().tail)
        memory._runtime.state.page_in.shown = ()
        memory.to_messages()
    assert (breaks[-1].cause, breaks[-1].handle) == ("page-in", "recalled")


# On the command line


def test_pagein_cost(tmp_path, capsys, clock):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=2_000, clock=clock) as memory:
        memory.record(TaskStep("Find it."))
        work(memory, range(14))
        expected = memory.cost()
    assert main(["cost", str(path)]) == 0
    out = capsys.readouterr().out
    assert str(expected) in out
    assert "compaction   s1" in out
    assert main(["cost", str(path), "--prices", "none", "--json"]) == 0
    uncached = json.loads(capsys.readouterr().out)
    assert (uncached["cached"], uncached["price"]) == (0, expected.tokens)
    assert uncached["net"] > expected.net
    assert main(["cost", str(path), "--prices", "free"]) == 1
    assert "prices must be one of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "minimum"),
    [("", 1_024), ("gpt-5", 1_024), ("claude-sonnet-4-5-20250929", 1_024), ("us.anthropic.claude-opus-4-6-v1:0", 4_096),
     ("claude-haiku-4-5", 4_096), ("claude-3-5-haiku-latest", 2_048), ("models/gemini-3.1-pro-preview", 4_096)],
)  # fmt: skip
def test_a_prefix_shorter_than_the_models_cache_keeps_is_not_cached(model, minimum):
    assert Prices().cached_tokens(minimum - 1, model=model) == 0
    assert Prices().cached_tokens(minimum, model=model) == minimum
    assert Prices(minimum=9_000).cached_tokens(8_999, model=model) == 0


def test_the_account_heeds_the_model_of_each_request(clock):
    shares = []
    for model in ("gpt-5", "claude-opus-4-6"):
        with AgentMemory.open(":memory:", budget=3_000, clock=clock, model=model) as memory:
            memory.record(SystemPromptStep("word " * 1_200), TaskStep("Go on."))
            work(memory, range(3))
            shares.append(memory.cost().cached)
    assert shares[0] > 1_024 > shares[1] == 0
