"""The normal spelling of a message: equal for two spellings of the same words. Pure.

Clients move cache markers from message to message, make new ids, order keys anew, and write a lone text as a list of one.
None of it is part of what is said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pagein._common.json_values import parse_json

CACHE_MARKERS = ("cache_control", "prompt_cache_breakpoint", "cachePoint")
"""Fields, at any depth, that mark the end of a cached prefix."""

_RESPELLED_KEYS = frozenset(
    {"id", "type", "status", "index", "object", "created", "created_at", "model", "usage", "logprobs", "finish_reason"}
    | {"stop_reason", "stop_sequence", "stop_details", "container", "_thought", "_base64url"}
)
"""Fields that a provider or its client fills in anew: they come and go between a response and the next request."""

_THINKING = re.compile(
    r"(?:<(?:think|thinking|thought|reasoning)>|\A(?=[^<]*</think)).*?(?:(?P<end></(?:think|thinking|thought|reasoning)>)|\Z)"
    r"|<details type=\"reasoning\"[^<>]{0,200}>.*?(?:(?P<close></details>)|\Z)",
    re.DOTALL | re.IGNORECASE,
)
"""A model's reasoning in the text of its answer. Some servers' templates open it themselves, so only its end is in the text.

What has no end is matched to the end of the text, once: a model may write ``<think>`` over and over.
"""


def without_thinking_text(text: str) -> str:
    """Return a model's text without the reasoning in it, which clients take out of older answers; all of it where that is all."""
    rest = _THINKING.sub(lambda match: "" if match.lastgroup else match[0], text) if "</" in text else text
    return rest if rest.strip() else text


def without_cache_markers(value: Any) -> Any:
    """Copy a value without cache markers at any depth; an object that was nothing else leaves its list."""
    if isinstance(value, Mapping):
        return {key: without_cache_markers(item) for key, item in value.items() if key not in CACHE_MARKERS}
    if isinstance(value, list | tuple):
        items = [without_cache_markers(item) for item in value]
        return [item for item, before in zip(items, value, strict=True) if item != {} or before == {}]
    return value


def normal_fields(text: str) -> str:
    """Spell a JSON object of a provider's other fields normally; "" where nothing in it is said."""
    try:
        value = _without_respelled(without_cache_markers(json.loads(text)))
    except (ValueError, RecursionError):
        return text
    return "" if value in ({}, []) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def speaker_name(text: str) -> str:
    """Return the name in the other fields of a message; "" where there is none."""
    fields = parse_json(text)
    return str(fields.get("name") or "") if isinstance(fields, dict) else ""


def normal_arguments(text: str) -> str:
    """Spell a tool's arguments normally: equal for JSON with other spaces or another order of keys."""
    try:
        return json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _without_respelled(value: Any) -> Any:
    if isinstance(value, dict):
        fields = {key: _without_respelled(item) for key, item in value.items() if key not in _RESPELLED_KEYS}
        return {key: item for key, item in fields.items() if item is not None and item not in ({}, [], "")}
    return [_without_respelled(item) for item in value] if isinstance(value, list) else value
