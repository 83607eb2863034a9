"""Blocks that no release knows, or that are kept unread: counted, in every later request, and never in the way of one."""

from __future__ import annotations

import json

import pytest

from pagein import AgentMemory, FormatError
from pagein.formats import validate
from pagein.tokens import Budget
from pagein.tokens.bytes import json_bytes

LONG = "zebra " * 1_500
AUDIO = {"type": "input_audio", "input_audio": {"data": "QUJD" * 400, "format": "wav"}}


def user(form, *parts, text="Look."):
    match form:
        case "gemini":
            return {"role": "user", "parts": [*parts, {"text": text}]}
        case "bedrock":
            return {"role": "user", "content": [*parts, {"text": text}]}
        case "langchain":
            return {"type": "human", "content": [*parts, {"type": "text", "text": text}]}
        case _:
            kind = "input_text" if form == "openai-responses" else "text"
            return {"role": "user", "content": [*parts, {"type": kind, "text": text}]}


BLOCKS = {
    "anthropic": {"type": "hologram", "payload": {"a": LONG}},
    "openai": {"type": "hologram", "payload": {"a": LONG}},
    "openai-responses": {"type": "hologram", "payload": {"a": LONG}},
    "gemini": {"hologram": {"a": LONG}},
    "bedrock": {"hologram": {"a": LONG}},
    "langchain": {"type": "hologram", "payload": {"a": LONG}},
}


@pytest.mark.parametrize("form", BLOCKS)
def test_a_block_that_nobody_knows_is_counted_and_sent(form):
    with AgentMemory.open(":memory:", budget=200_000, format=form) as memory:
        memory.record_messages([user(form, BLOCKS[form])], form, whole=True)
        request = memory.to_request()
        assert LONG in json.dumps(request)
        validate(request, form)
        assert memory.view().tokens > 1_400
        assert memory.repairs == ()
    with AgentMemory.open(":memory:", budget=Budget(900, bytes=6_000), format=form) as memory:
        memory.record_messages([user(form, BLOCKS[form]), user(form, text="Go on.")], form, whole=True)
        for other in BLOCKS:
            assert json_bytes(memory.to_messages(other)) <= 6_000
        assert LONG in json.dumps(memory.get_full_steps())


FILES = {
    "anthropic": [
        ({"type": "document", "title": "Plan", "source": {"type": "text", "media_type": "text/plain", "data": "Ship it."}}, "Ship it."),
        ({"type": "document", "title": "Plan", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE" * 30}}, "[document Plan]"),
        ({"type": "image", "source": {"type": "file", "file_id": "file_1"}}, "[image]"),
    ],
    "openai": [
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64," + "JVBE" * 30}}, "[file a.pdf]"),
        (AUDIO, "[input_audio]"),
    ],
    "openai-responses": [({"type": "input_file", "filename": "a.pdf", "file_data": "JVBE" * 30}, "[input_file a.pdf]")],
    "gemini": [({"fileData": {"mimeType": "application/pdf", "fileUri": "https://a.b/c", "displayName": "Plan"}}, "[fileData Plan]")],
    "bedrock": [({"document": {"format": "pdf", "name": "Plan", "source": {"bytes": "JVBE" * 30}}}, "[document Plan]")],
}  # fmt: skip


@pytest.mark.parametrize(("form", "block", "shown"), [(form, *case) for form, cases in FILES.items() for case in cases])
def test_a_file_of_the_user_is_there_in_every_other_format(form, block, shown):
    """By its words, or by its name: a model that was not told of it would answer as if there were none."""
    with AgentMemory.open(":memory:", budget=20_000, format=form) as memory:
        memory.record_messages([user(form, block)], form)
        for other in BLOCKS:
            request = memory.to_request(other)
            validate(request, other)
            assert (
                other == form
                or shown in json.dumps(request)
                or '"' + block.get("type", "-") + '"' in json.dumps(request)
            )


@pytest.mark.parametrize("form", ["openai", "openai-responses"])
@pytest.mark.parametrize("is_alone", [True, False])
def test_audio_is_a_part_of_both_apis_of_openai(form, is_alone):
    message = {"role": "user", "content": [AUDIO]} if is_alone else user(form, AUDIO)
    with AgentMemory.open(":memory:", budget=20_000, format=form) as memory:
        memory.record_messages([message], whole=True)
        assert AUDIO in memory.to_messages()[-1]["content"]


def test_an_empty_block_is_still_refused():
    with (
        AgentMemory.open(":memory:", budget=20_000, format="bedrock") as memory,
        pytest.raises(FormatError, match="none of the blocks"),
    ):
        memory.record_messages([{"role": "user", "content": [{}]}])
