"""What a request costs, part by part."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagein.messages import Message
from pagein.steps import Image, Opaque, Text, ToolCall
from pagein.tokens.requests import (
    ANTHROPIC_TOOLS,
    content_tokens,
    message_tokens,
    request_tokens,
    schema_tokens,
)


@dataclass(frozen=True)
class Characters:
    """Each character is a token, each image 1000: sums can be read off."""

    name: str = "characters"
    margin: float = 0.0

    def text(self, text: str) -> int:
        return len(text)

    def image(self, image: Image) -> int:
        return 1000


COUNT = Characters()
CACHE = Opaque("anthropic", "cache_control", '{"type": "ephemeral"}')
OTHER = Opaque("openai", "fields", '{"name": "bob"}')


@pytest.mark.parametrize(
    ("message", "cost"),
    [
        (Message("user", "hello"), 4 + 5),
        (Message("assistant", None), 4 + 4),
        (Message("user", ()), 4 + 4),
        (Message("user", (Text("hello"), Text("you"))), 4 + 5 + 1 + 3 + 1),
        (Message("user", (Text("hello"), Image(b"x"))), 4 + 5 + 1 + 1000 + 1),
        (Message("assistant", None, (ToolCall("c1", "read", '{"a":1}'),)), 4 + 8 + 2 + 4 + 7),
        (Message("tool", "ok", call_id="c1"), 4 + 4 + 2),
        (Message("tool", "ok", call_id="c1", is_error=True), 4 + 4 + 2),
        (Message("assistant", (Opaque("anthropic", "thinking", '{"signature": "long"}', "hm"),)), 4 + 4 + 8),
        (Message("assistant", (Opaque("anthropic", "redacted_thinking", "{12345}"),)), 4 + 1 + 7 + 8),
        (Message("user", (Text("hello", CACHE),)), 4 + 1 + 5),
        (Message("user", (Text("hello", OTHER),)), 4 + 1 + 5 + 15),
        (Message("user", (Image(b"x", extra=OTHER),)), 4 + 1 + 1000 + 15),
        (Message("user", "hello", extra=OTHER), 4 + 5 + 15),
        (Message("user", "hello", extra=CACHE), 4 + 5),
        (Message("assistant", None, (ToolCall("c", "f", "{}", extra=OTHER),)), 4 + 8 + 1 + 1 + 2 + 15),
    ],
)
def test_a_message_costs_what_the_rule_says(message, cost):
    assert message_tokens(message, COUNT) == cost
    assert request_tokens([message, message], COUNT) == 3 + 2 * cost


def test_an_empty_request_costs_its_frame_and_no_content_costs_nothing():
    assert request_tokens([], COUNT) == 3
    assert content_tokens(None, COUNT) == 0


texts = st.text(max_size=20)
opaques = st.builds(Opaque, texts, st.sampled_from(["cache_control", "thinking", "x"]), texts, texts)
parts = st.builds(Text, texts, st.none() | opaques) | st.builds(Image, st.binary(max_size=40)) | opaques
messages = st.builds(
    Message, st.sampled_from(["system", "user", "assistant", "tool"]),
    st.none() | texts | st.lists(parts, max_size=4).map(tuple),
    st.lists(st.builds(ToolCall, texts, texts, texts), max_size=3).map(tuple), texts,
)  # fmt: skip


@given(st.lists(messages, max_size=6), messages)
@settings(max_examples=100, deadline=None, database=None)
def test_a_request_costs_the_sum_of_its_messages_and_one_more_costs_what_it_costs_alone(request, more):
    before = request_tokens(request, COUNT)
    assert before == 3 + sum(message_tokens(message, COUNT) for message in request)
    assert request_tokens([*request, more], COUNT) - before == message_tokens(more, COUNT) >= 4


OPENAI = {
    "type": "function",
    "function": {"name": "read", "parameters": {"type": "object", "properties": {}}},
}
ANTHROPIC = {"name": "read", "description": "Lies eine Datei: ä", "input_schema": {"type": "object"}}


def test_tools_cost_their_json_in_either_shape():
    assert schema_tokens([], COUNT) == schema_tokens(None, COUNT) == 0
    assert schema_tokens([OPENAI], COUNT) == 8 + len(str(OPENAI))
    assert schema_tokens((OPENAI, OPENAI), COUNT) == 2 * schema_tokens([OPENAI], COUNT)
    assert schema_tokens(OPENAI, COUNT) == schema_tokens([OPENAI], COUNT)
    assert schema_tokens([ANTHROPIC], COUNT) == 8 + len(str(ANTHROPIC)) + ANTHROPIC_TOOLS


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError


def test_what_is_no_json_is_counted_all_the_same():
    circle: dict[str, object] = {"a": 1}
    circle["self"] = circle
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for odd in (
        [circle],
        [{(1, 2): 3}],
        [object()],
        "read",
        7,
        [float("nan")],
        [b"\xff"],
        [Rude()],
        [{(1,): Rude()}],
        [deep],
    ):
        assert schema_tokens(odd, COUNT) > 8
