"""Unread content costs what is sent of it; an image in it costs by its size, wherever it stands."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.events.messages import Message
from pagein.events.steps import Opaque, ToolCall
from pagein.formats import format_named
from pagein.testing.counters import png
from pagein.testing.formats import items_to_messages
from pagein.tokens.counter import part_tokens, request_tokens
from pagein.tokens.encodings import Encoding
from pagein.tokens.images import CLAUDE, image_size

COUNT = replace(Encoding("o200k_base"), images=CLAUDE)
PIXELS = base64.b64encode(png(1024, 768, 300_000)).decode()
DATA_URL = f"data:image/png;base64,{PIXELS}"
IMAGE_COST = CLAUDE.tokens(image_size(png(1024, 768)), "")

ANTHROPIC_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXELS}}
PICTURES = {
    "a screenshot of the Responses API": {"output": {"type": "computer_screenshot", "image_url": DATA_URL}},
    "an input image": {"type": "input_image", "image_url": DATA_URL, "detail": "high"},
    "an image of chat completions": {"type": "image_url", "image_url": {"url": DATA_URL, "detail": "high", "format": "png"}},
    "a made image": {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PIXELS},
    "an image of code": {"type": "code_interpreter_call", "outputs": [{"type": "image", "url": DATA_URL}]},
    "an image of Anthropic": ANTHROPIC_IMAGE,
    "a document with an image": {"type": "document", "source": {"type": "content", "content": [ANTHROPIC_IMAGE]}},
    "a result of MCP with an image": {"type": "mcp_tool_result", "tool_use_id": "m", "content": [ANTHROPIC_IMAGE]},
    "an image of Gemini": {"inlineData": {"mimeType": "image/png", "data": PIXELS}},
    "an image of Bedrock": {"image": {"format": "png", "source": {"bytes": PIXELS}}},
}  # fmt: skip


@pytest.mark.parametrize("row", PICTURES.values(), ids=PICTURES)
def test_an_image_inside_an_item_costs_by_its_pixels(row):
    cost = part_tokens(Opaque("x", "item", json.dumps(row)), COUNT)
    assert IMAGE_COST <= cost <= IMAGE_COST + 120


@pytest.mark.parametrize("row", PICTURES.values(), ids=PICTURES)
def test_each_image_costs(row):
    one, three = (part_tokens(Opaque("x", "item", json.dumps([row] * times)), COUNT) for times in (1, 3))
    assert three - one >= 2 * IMAGE_COST


@pytest.mark.parametrize(
    "row",
    [
        {"type": "input_image", "file_id": "file_1"},
        {"type": "image", "source": {"type": "url", "url": "https://e.org/a.png"}},
        {"type": "computer_screenshot", "image_url": "https://e.org/a.png"},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://e.org/a"}},
    ],
)
def test_an_image_by_its_address_costs_the_most_an_image_can(row):
    assert part_tokens(Opaque("x", "item", json.dumps(row)), COUNT) >= CLAUDE.tokens(None, "")


@pytest.mark.parametrize(
    "row",
    [
        {"type": "mcp_call", "output": DATA_URL},
        {"type": "mcp_tool_use", "input": ANTHROPIC_IMAGE},
        {"type": "function_call", "arguments": ANTHROPIC_IMAGE},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PIXELS}},
        {"type": "text", "image": PIXELS},
    ],
)
def test_what_only_looks_like_an_image_costs_as_text(row):
    assert part_tokens(Opaque("x", "item", json.dumps(row)), COUNT) >= COUNT.text(PIXELS)


def test_a_thought_costs_by_its_words_and_not_by_its_signature():
    body = json.dumps({"type": "thinking", "thinking": "First the logs.", "signature": "c2ln" * 5_000})
    assert part_tokens(Opaque("anthropic", "thinking", body, "First the logs."), COUNT) < 40
    hidden = json.dumps({"type": "thinking", "thinking": "First.", "signature": "x", "more": ["word"] * 5_000})
    assert part_tokens(Opaque("anthropic", "thinking", hidden, "First."), COUNT) > 5_000


# What goes out, read by someone who knows nothing of the counter

SHORT_ROWS = [{"city": f"Town {number}", "n": number} for number in range(2_000)]
BLOCKS = {
    "anthropic": [
        {"type": "mcp_tool_use", "id": "m1", "name": "f", "server_name": "s", "input": {"rows": SHORT_ROWS}},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "rain", "keys": dict.fromkeys(map(str, range(3_000)), 0)}},
        {"type": "document", "title": "T", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x" * 4_000}},
        {"type": "document", "title": "T", "source": {"type": "content", "content": [{"type": "text", "text": "a"}] * 2_000}},
    ],
    "openai": [
        {"type": "input_audio", "input_audio": {"data": "UklGRg" * 5_000, "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64," + "JVBERi0x" * 4_000}},
        {"type": "video_url", "video_url": {"url": "https://e.org/v", "frames": list(range(5_000))}},
    ],
    "openai-responses": [
        {"type": "mcp_call", "id": "m1", "server_label": "s", "name": "f", "arguments": "{}", "output": json.dumps(SHORT_ROWS)},
        {"type": "mcp_list_tools", "id": "l1", "server_label": "s", "tools": [{"name": f"t{n}", "input_schema": {}} for n in range(2_000)]},
        {"type": "web_search_call", "id": "w1", "status": "completed", "action": {"type": "search", "queries": ["rain"] * 4_000}},
    ],
}  # fmt: skip


def wire_reading(value):
    """The tokens of a rendered request's JSON, without the framing of messages and texts."""
    match value:
        case list():
            return sum(map(wire_reading, value))
        case {"role": _, "content": content}:
            return wire_reading(content)
        case {"type": "text" | "output_text" | "input_text", "text": text}:
            return COUNT.text(text)
        case str():
            return COUNT.text(value)
        case dict():
            return COUNT.text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return 0


@pytest.mark.parametrize(("name", "block"), [(name, block) for name, blocks in BLOCKS.items() for block in blocks])
def test_an_unread_block_costs_all_it_sends(name, block):
    form = format_named(name)
    model = block["type"].endswith(("_use", "_call", "_tools"))
    if name == "openai-responses":
        rows = [{"role": "user", "content": "Go."}, block, {"role": "assistant", "content": "So."}]
    else:
        rows = [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [block, {"type": "text", "text": "So."}]},
        ]
    if not model:
        rows = [{"role": "user", "content": [block, {"type": "text", "text": "Read."}]}]
    messages = items_to_messages(form.parse(rows))
    sent = wire_reading(form.render(messages)["messages"])
    assert sent > 4_000
    assert sent <= request_tokens(messages, COUNT) <= 1.1 * sent


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=100),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=12), inner, max_size=6),
    max_leaves=40,
)


@given(
    value=json_values,
    times=st.sampled_from((1, 50)),
    place=st.sampled_from(("input", "content", "text", "title", "action")),
)
def test_no_unread_block_costs_less_than_it_sends(value, times, place):
    for name, kind in (("anthropic", "mcp_tool_use"), ("openai-responses", "mcp_call")):
        row = {"type": kind, "id": "a", place: [value] * times}
        form = format_named(name)
        rows = [{"role": "assistant", "content": [row]}] if name == "anthropic" else [row]
        messages = items_to_messages(form.parse([{"role": "user", "content": "Go."}, *rows]))
        assert wire_reading(form.render(messages)["messages"]) <= request_tokens(messages, COUNT)


def test_a_screenshot_of_the_responses_api_costs_an_image():
    form = format_named("openai-responses")
    call = {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "c1",
        "action": {"type": "screenshot"},
        "pending_safety_checks": [],
        "status": "completed",
    }
    shot = {
        "type": "computer_call_output",
        "call_id": "c1",
        "output": {"type": "computer_screenshot", "image_url": DATA_URL},
    }
    messages = items_to_messages(form.parse([{"role": "user", "content": "Go."}, call, shot]))
    assert form.render(messages)["messages"][2] == shot
    assert request_tokens(messages, COUNT) < IMAGE_COST + 300


def test_calls_with_long_ids_are_counted_at_what_is_sent():
    calls = [ToolCall("\u00e9" * 41 + str(number), "f") for number in range(50)]
    messages = [Message("user", "Go."), Message("assistant", None, tuple(calls))]
    request = format_named("openai").render(messages)["messages"][1]["tool_calls"]
    assert sum(COUNT.text(row["id"]) for row in request) <= request_tokens(messages, COUNT)
