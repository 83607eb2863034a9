"""The bytes of a request: never over a budget's, in every format, whatever is in it."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given

from pagein import AgentMemory, OverBudget
from pagein.errors import BudgetError, ConfigurationError
from pagein.events.messages import Message
from pagein.events.steps import ActionStep, Image, Observation, SystemPromptStep, TaskStep, Text, ToolCall
from pagein.formats import FORMATS, format_named
from pagein.testing.conversations import legal_conversations
from pagein.testing.counters import CounterTests
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.bytes import BYTES_A_UNIT, ByteCounter, json_bytes
from pagein.tokens.counter import request_tokens

WORDS = ("天地玄黄宇宙洪荒", "path/to/file.py ", "привет ", "😀👍🏽", "مرحبا ", "é́̂", '"\\\n\t', "\x00\x1f")
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(30_000)


class TestByteCounter(CounterTests):
    @pytest.fixture
    def counter(self) -> TokenCounter:
        return ByteCounter()

    def test_an_image_costs_by_its_pixels_and_not_by_its_bytes(self, counter: TokenCounter) -> None:
        # For this one it is the other way round: bytes are what it counts.
        assert counter.image(Image(PICTURE, "image/png")) >= len(PICTURE) // 3


@given(messages=legal_conversations())
def test_the_count_is_an_upper_bound_in_every_format(messages: tuple[Message, ...]) -> None:
    most = request_tokens(messages, ByteCounter()) * BYTES_A_UNIT
    for name in FORMATS:
        assert json_bytes(format_named(name).render(messages)) <= most, name


def test_the_count_of_an_ordinary_run_is_not_far_above_its_bytes() -> None:
    calls = [(f"call_{at}", '{"path": "src/a.py"}') for at in range(10)]
    pairs = [
        (Message("assistant", None, (ToolCall(id, "read", text),)), Message("tool", "x = 1\n" * 40, call_id=id))
        for id, text in calls
    ]
    messages = (Message("user", "Fix it."), *(message for pair in pairs for message in pair))
    most = request_tokens(messages, ByteCounter()) * BYTES_A_UNIT
    assert most < 1.6 * json_bytes(format_named("openai").render(messages))


@pytest.mark.parametrize(("name", "limit"), list(zip(FORMATS, [1_500, 40_000] * 3, strict=True)))
def test_no_request_has_more_bytes_than_the_budget(name: str, limit: int) -> None:
    draw = random.Random(limit)
    with AgentMemory.open(":memory:", budget=Budget(30_000, bytes=limit), format=name) as memory:
        memory.record(SystemPromptStep("You fix bugs."), TaskStep("Fix src/a.py. Never push to main."))
        for at in range(12):
            text = draw.choice(WORDS) * draw.choice((1, 20, 300))
            content = (Text(text), Image(PICTURE, "image/png")) if at % 5 == 4 else text
            call = ToolCall(f"call_{at}", "read", json.dumps({"path": text[:40]}))
            memory.record(ActionStep(None, (call,)), Observation(call.id, content))
            request = memory.to_request()
            assert json_bytes(request) <= limit
            assert memory.to_request() == request
            assert not memory.request().problem
        for request in (memory.to_messages(keep_last_n=3), memory.to_messages(max_tokens=100_000)):
            assert json_bytes(request) <= limit
            assert not memory.request().problem
        assert memory.verify().ok


def test_tools_have_their_bytes_of_the_budget() -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": "d" * 3_000, "parameters": {}}}]
    with AgentMemory.open(":memory:", budget=Budget(30_000, bytes=6_000)) as memory:
        memory.record(TaskStep("Go on."), *(ActionStep("words " * 100) for _ in range(9)), TaskStep("And now?"))
        assert json_bytes(memory.to_messages(tools=tools)) + json_bytes(tools) <= 6_000


def test_what_cannot_fit_says_so_in_bytes_and_the_run_goes_on() -> None:
    with AgentMemory.open(":memory:", budget=Budget(30_000, bytes=2_000)) as memory:
        memory.record(TaskStep("w" * 3_000))
        with pytest.raises(OverBudget, match=r"needs .* bytes, the budget is 2000"):
            memory.to_messages()
        with pytest.raises(OverBudget, match="this pin is refused"):
            memory.pin("p" * 1_990)
        assert "nothing was pinned" in memory.call_tool("pin", {"text": "p" * 500})


@pytest.mark.parametrize("bytes", [0, -1, 1.5, "many", True])
def test_a_budget_of_no_bytes_is_refused(bytes: object) -> None:
    with pytest.raises((BudgetError, ConfigurationError)):
        Budget(30_000, bytes=bytes)  # type: ignore[arg-type]


def random_text(draw: random.Random) -> str:
    words = [
        "fails",
        "TypeError:",
        "漢字",
        "return",
        "config.yaml",
        "🙂",
        "user_id",
        "4711",
        "os.path.join",
        "src/app/main.py",
    ]
    line = " ".join(draw.choices(words, k=draw.randint(1, 8)))
    return line if draw.random() < 0.5 else "\n".join(f"{n}: {line} {n * 37}" for n in range(draw.randint(5, 60)))


@pytest.mark.parametrize("seed", [15, 36, 43, 45, 62, 99])
def test_a_second_view_is_the_first_again_and_over_budget_changes_nothing(seed: int) -> None:
    draw = random.Random(seed)
    budget = Budget(draw.choice([260, 400, 700, 1_200]), bytes=draw.choice([1_500, 2_500, 4_000]))
    views = 0
    with AgentMemory.open(":memory:", budget=budget) as memory:
        memory.record(TaskStep(random_text(draw)[:60]))
        for at in range(30):
            kind = draw.random()
            if kind < 0.5:
                memory.record(draw.choice([TaskStep, ActionStep])(random_text(draw)))
            else:
                memory.record(ActionStep(None, (ToolCall(f"c{at}", "read", random_text(draw)),)))
                memory.record(Observation(f"c{at}", random_text(draw)))
            before = memory.steps, memory.report()
            try:
                view = memory.view()
            except OverBudget:
                assert (memory.steps, memory.report()) == before
                continue
            views += 1
            assert memory.view() == view
    assert views > 5


@pytest.mark.parametrize("limit", [3_000, 6_000])
@pytest.mark.parametrize("words", ["", "\u6f22\u5b57", "plain"])
def test_where_the_bytes_are_few_the_ledger_has_a_shorter_block(limit, words):
    memory = AgentMemory.open(":memory:", budget=Budget(60_000, bytes=limit))
    hidden = 0
    for number in range(80):
        memory.record(TaskStep(f"Never deploy service {number} on day {number}. {words * 20}"))
        view = memory.view()
        hidden += view.has_replaced_entries
        assert any(entry.tier == "ledger" for entry in view.request_entries) or not view.has_replaced_entries, number
        assert json_bytes(memory.to_messages()) <= limit
        assert memory.view().messages() == view.messages()
    assert hidden > 10


RULES = (
    "Never deploy on Fridays.", "Always run the linter before a commit.", "Do not touch the file src/app/main.py.",
    "The limit is 400 requests a minute.", "We decided to use PostgreSQL 16.", "Answer in French, please.",
)  # fmt: skip


@pytest.mark.parametrize("seed", [236, 240, 244, 260, 266, 267])
def test_a_second_view_is_the_first_again_where_the_ledger_has_too_few_bytes(seed: int) -> None:
    draw = random.Random(seed)
    budget = Budget(700, output=0, margin=0, bytes=draw.choice((1_500, 1_800)))
    with AgentMemory.open(":memory:", budget=budget) as memory:
        for number in range(14):
            kind = draw.random()
            if kind < 0.35:
                memory.record(TaskStep(" ".join(draw.sample(RULES, draw.randint(1, 3)))))
            elif kind < 0.6:
                memory.record(TaskStep(f"Please look at part {number} and tell me."))
            else:
                memory.record(ActionStep(None, (ToolCall(f"c{number}", "read", "{}"),)))
                rows = (f"row {row} of part {number} {draw.random()}" for row in range(draw.randint(1, 20)))
                memory.record(Observation(f"c{number}", "\n".join(rows)))
            view = memory.view()
            assert memory.view() == view
    assert view.has_replaced_entries
