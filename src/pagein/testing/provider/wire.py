"""The four protocols of the scripted provider: whole answers, events of a stream, errors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pagein.testing.provider.prompt_cache import Reading
from pagein.testing.provider.scripts import Answer, Call, Protocol

Json = dict[str, Any]
PIECE_CHARS = 24

GOOGLE_STATUSES = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a stream. ``name`` is "" where the protocol names none; ``data`` is JSON or ``[DONE]``."""

    name: str
    data: Json | str

    def encode(self) -> bytes:
        """The event as it stands in the stream."""
        data = self.data if isinstance(self.data, str) else json.dumps(self.data)
        return (f"event: {self.name}\n" if self.name else "").encode() + f"data: {data}\n\n".encode()


def whole_answer(protocol: Protocol, model: str, number: int, answer: Answer, reading: Reading) -> Json:
    """The answer to a request that is not streamed."""
    match protocol:
        case "messages":
            return _message(model, number, answer, reading)
        case "chat":
            return _completion(model, number, answer, reading)
        case "responses":
            return _response(model, number, answer, reading, "completed")
        case "gemini":
            return _content(model, number, answer, reading)


def answer_events(
    protocol: Protocol, model: str, number: int, answer: Answer, reading: Reading, *, with_usage: bool
) -> Iterator[Event]:
    """Yield the events of a streamed answer. ``with_usage`` is for chat completions, whose stream has none by default."""
    match protocol:
        case "messages":
            yield from _message_events(model, number, answer, reading)
        case "chat":
            yield from _chunk_events(model, number, answer, reading, with_usage=with_usage)
        case "responses":
            yield from _response_events(model, number, answer, reading)
        case "gemini":
            yield from _content_events(model, number, answer, reading)


def error_body(protocol: Protocol, status: int, kind: str, message: str, code: str = "") -> Json:
    """An error in the protocol's shape."""
    if protocol == "messages":
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}
    if protocol == "gemini":
        return {"error": {"code": status, "message": message, "status": GOOGLE_STATUSES.get(status, "INTERNAL")}}
    return {"error": {"message": message, "type": kind, "param": None, "code": code or str(status)}}


def _random_part(number: int, at: int, call: Call) -> str:
    """The part of a call's id that no other call has, as providers make it: the same for the same call of a script."""
    said = repr((number, at, call.name, sorted(call.arguments.items())))
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


# -- Anthropic's messages


def _blocks(number: int, answer: Answer) -> list[Json]:
    blocks: list[Json] = []
    if answer.thinking:
        blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": f"sig{number}"})
    if answer.text or not answer.calls:
        blocks.append({"type": "text", "text": answer.text or "."})
    for at, call in enumerate(answer.calls):
        id = call.id or f"toolu_{_random_part(number, at, call)}"
        blocks.append({"type": "tool_use", "id": id, "name": call.name, "input": dict(call.arguments)})
    return blocks


def _message_usage(answer: Answer, reading: Reading) -> Json:
    return {
        "input_tokens": reading.tokens - reading.cached - reading.written,
        "cache_creation_input_tokens": reading.written,
        "cache_read_input_tokens": reading.cached,
        "output_tokens": _output_tokens(answer),
    }


def _output_tokens(answer: Answer) -> int:
    return 8 + (len(answer.text) + len(answer.thinking) + sum(len(json.dumps(dict(c.arguments))) for c in answer.calls)) // 4  # fmt: skip


def _message(model: str, number: int, answer: Answer, reading: Reading) -> Json:
    return {
        "id": f"msg_{number:06}", "type": "message", "role": "assistant", "model": model,
        "content": _blocks(number, answer), "stop_reason": "tool_use" if answer.calls else "end_turn",
        "stop_sequence": None, "usage": _message_usage(answer, reading),
    }  # fmt: skip


def _message_events(model: str, number: int, answer: Answer, reading: Reading) -> Iterator[Event]:
    whole = _message(model, number, answer, reading)
    usage = {**whole["usage"], "output_tokens": 1}
    yield _typed_event(
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None, "usage": usage}}
    )
    yield _typed_event({"type": "ping"})
    for index, block in enumerate(whole["content"]):
        yield from _block_events(index, block)
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _typed_event(
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": whole["usage"]["output_tokens"]}}
    )
    yield _typed_event({"type": "message_stop"})


def _block_events(index: int, block: Json) -> Iterator[Event]:
    deltas: list[Json] = []
    match block["type"]:
        case "text":
            start = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        case "thinking":
            start = {**block, "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case _:
            start = {**block, "input": {}}
            pieces = _pieces(json.dumps(block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    yield _typed_event({"type": "content_block_start", "index": index, "content_block": start})
    for delta in deltas:
        yield _typed_event({"type": "content_block_delta", "index": index, "delta": delta})
    yield _typed_event({"type": "content_block_stop", "index": index})


def _typed_event(data: Json) -> Event:
    return Event(data["type"], data)


# -- Chat completions


def _chat_calls(number: int, answer: Answer) -> list[Json]:
    return [
        {
            "id": call.id or f"call_{_random_part(number, at, call)}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
        }
        for at, call in enumerate(answer.calls)
    ]


def _chat_usage(answer: Answer, reading: Reading) -> Json:
    written = _output_tokens(answer)
    return {
        "prompt_tokens": reading.tokens, "completion_tokens": written, "total_tokens": reading.tokens + written,
        "prompt_tokens_details": {"cached_tokens": reading.cached},
    }  # fmt: skip


def _completion(model: str, number: int, answer: Answer, reading: Reading) -> Json:
    message: Json = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = _chat_calls(number, answer)
    finish = "tool_calls" if answer.calls else "stop"
    return {
        "id": f"chatcmpl-{number:06}", "object": "chat.completion", "created": 1_700_000_000, "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": _chat_usage(answer, reading),
    }  # fmt: skip


def _chunk_events(model: str, number: int, answer: Answer, reading: Reading, *, with_usage: bool) -> Iterator[Event]:
    base: Json = {
        "id": f"chatcmpl-{number:06}", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": model,
    }  # fmt: skip

    def chunk(delta: Json, finish: str | None = None) -> Event:
        return Event("", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(answer.text):
        yield chunk({"content": piece})
    for index, call in enumerate(_chat_calls(number, answer)):
        function = call["function"]
        yield chunk({"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]})
        for piece in _pieces(function["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if answer.calls else "stop")
    if with_usage:
        yield Event("", {**base, "choices": [], "usage": _chat_usage(answer, reading)})
    yield Event("", "[DONE]")


# -- Responses


def _output_items(number: int, answer: Answer) -> list[Json]:
    items: list[Json] = []
    if answer.thinking:
        thought = {"type": "summary_text", "text": answer.thinking}
        items.append({"id": f"rs_{number:06}", "type": "reasoning", "summary": [thought]})
    if answer.text or not answer.calls:
        part = {"type": "output_text", "text": answer.text or ".", "annotations": [], "logprobs": []}
        item = {"id": f"msg_{number:06}", "type": "message", "role": "assistant", "status": "completed"}
        items.append({**item, "content": [part]})
    for at, call in enumerate(answer.calls):
        items.append({
            "id": f"fc_{number:06}_{at}", "type": "function_call", "call_id": call.id or f"call_{_random_part(number, at, call)}",
            "name": call.name, "arguments": json.dumps(dict(call.arguments)), "status": "completed",
        })  # fmt: skip
    return items


def _response(model: str, number: int, answer: Answer, reading: Reading, status: str) -> Json:
    written = _output_tokens(answer)
    usage = {
        "input_tokens": reading.tokens, "input_tokens_details": {"cached_tokens": reading.cached},
        "output_tokens": written, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reading.tokens + written,
    }  # fmt: skip
    is_over = status == "completed"
    return {
        "id": f"resp_{number:06}", "object": "response", "created_at": 1_700_000_000, "status": status, "model": model,
        "output": _output_items(number, answer) if is_over else [], "usage": usage if is_over else None, "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True,
        "tool_choice": "auto", "tools": [], "temperature": 1.0, "top_p": 1.0,
    }  # fmt: skip


def _response_events(model: str, number: int, answer: Answer, reading: Reading) -> Iterator[Event]:
    rows: list[Json] = [
        {"type": "response.created", "response": _response(model, number, answer, reading, "in_progress")},
        {"type": "response.in_progress", "response": _response(model, number, answer, reading, "in_progress")},
    ]
    for index, item in enumerate(_output_items(number, answer)):
        rows += _item_events(index, item)
    rows.append({"type": "response.completed", "response": _response(model, number, answer, reading, "completed")})
    for sequence, row in enumerate(rows):
        yield _typed_event({**row, "sequence_number": sequence})


def _item_events(index: int, item: Json) -> Iterator[Json]:
    place = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "reasoning":
        text, at = item["summary"][0]["text"], {**place, "summary_index": 0}
        part = {"type": "summary_text", "text": text}
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "summary": []}}
        yield {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}}
        for piece in _pieces(text):
            yield {"type": "response.reasoning_summary_text.delta", **at, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **at, "text": text}
        yield {"type": "response.reasoning_summary_part.done", **at, "part": part}
    elif item["type"] == "message":
        part = item["content"][0]
        at = {**place, "content_index": 0}
        empty = {**item, "content": [], "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
        for piece in _pieces(part["text"]):
            yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}
    else:
        empty = {**item, "arguments": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        for piece in _pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", **place, **done}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


# -- Gemini's contents


def _content_parts(model: str, number: int, answer: Answer) -> list[Json]:
    """The parts of an answer; from Gemini 3 on a call has an id, and the first one a signature."""
    is_signed = model.startswith("gemini-3")
    parts: list[Json] = [{"text": answer.thinking, "thought": True}] if answer.thinking else []
    if answer.text or not answer.calls:
        parts.append({"text": answer.text or "."})
    for at, call in enumerate(answer.calls):
        id = call.id or (_random_part(number, at, call)[:8] if is_signed else "")
        function = {**({"id": id} if id else {}), "name": call.name, "args": dict(call.arguments)}
        signature = {"thoughtSignature": f"c2ln{number:04}"} if is_signed and not at else {}
        parts.append({"functionCall": function, **signature})
    return parts


def _content_response(model: str, number: int, parts: list[Json], finish: Json, usage: Json) -> Json:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **finish}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": f"r{number:06}"}


def _content(model: str, number: int, answer: Answer, reading: Reading) -> Json:
    written = _output_tokens(answer)
    usage = {
        "promptTokenCount": reading.tokens,
        "candidatesTokenCount": written,
        "totalTokenCount": reading.tokens + written,
    }
    usage |= {"cachedContentTokenCount": reading.cached} if reading.cached else {}
    return _content_response(model, number, _content_parts(model, number, answer), {"finishReason": "STOP"}, usage)


def _content_events(model: str, number: int, answer: Answer, reading: Reading) -> Iterator[Event]:
    whole = _content(model, number, answer, reading)
    early = {key: whole["usageMetadata"][key] for key in ("promptTokenCount",)}
    for part in whole["candidates"][0]["content"]["parts"]:
        for piece in [{**part, "text": text} for text in _pieces(part["text"])] if "text" in part else [part]:
            yield Event("", _content_response(model, number, [piece], {}, early))
    end = _content_response(model, number, [{"text": ""}], {"finishReason": "STOP"}, whole["usageMetadata"])
    yield Event("", end)


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]
