"""Validation of OpenAI's chat completions, independent of rendering.

The rules are OpenAI's, read strictly: a shape that the API accepts but compatible servers refuse (an empty text part) is
a problem. A system message in mid-conversation keeps its role, which OpenAI accepts. Undocumented part types are not
checked. The limits are those of the API's own errors:

* an id of a call: "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40"
  (vercel/ai#5171, microsoft/autogen#6377). LiteLLM's ids with a thought's signature are longer: the gateway takes them
  back, and needs them whole (BerriAI/litellm#16895);
* calls of a message: "Invalid 'messages[3].tool_calls': array too long. Expected an array with maximum length 128"
  (pydantic/pydantic-ai#1105, openai/openai-dotnet#317);
* types of images: "You uploaded an unsupported image. Please make sure your image has of one the following formats:
  ['png', 'jpeg', 'gif', 'webp']" (STranslate/STranslate#277);
* the name of who speaks: "Invalid 'messages[1].name': string does not match pattern"
  (jekalmin/extended_openai_conversation#251, microsoft/autogen#4157).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pagein.errors import FormatError
from pagein.events.tool_call_encoding import GATEWAY_MARK, ID_MIN_LIMIT
from pagein.formats.parsing import is_utf8, request_fields, type_name

ROLES = ("system", "developer", "user", "assistant", "tool")
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
DETAILS = ("low", "high", "auto", "original")
NAME_MAX_CHARS = 64
ID_MAX_CHARS = ID_MIN_LIMIT
MAX_CALLS = 128
SYSTEM_ROLES = ("system", "developer")

PART_ROLES: Mapping[str, tuple[str, ...]] = {
    "text": ROLES,
    "image_url": ("user",),
    "input_audio": ("user",),
    "file": ("user",),
    "refusal": ("assistant",),
}
"""The roles that may carry each documented part type."""

_NOT_IN_SPEAKER = re.compile(r"[\s<|\\/>]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DATA_URL = re.compile(r"data:(image/[a-zA-Z0-9.+-]+)(?:;[a-zA-Z0-9._-]+=[a-zA-Z0-9._-]+)*;base64,[a-zA-Z0-9+/=_\s-]+")

Rows = list[dict[str, Any]]


def problems(request: Any) -> tuple[str, ...]:
    """Return every rule the request breaks, in order of the messages. Never raises."""
    try:
        messages = request_fields(request)["messages"]
    except FormatError as error:
        return (str(error),)
    if not messages:
        return ("messages: there is none",)
    faults = no_objects("messages", messages)
    if faults:
        return tuple(faults)
    faults += order_problems("messages", [message.get("role") for message in messages])
    faults += _pair_problems(messages)
    for index, message in enumerate(messages):
        faults += (f"messages[{index}]{fault}" for fault in _message_problems(message))
    if not is_utf8(messages):
        faults += (
            f"messages[{index}]: contains a lone surrogate, which is not UTF-8"
            for index, message in enumerate(messages)
            if not is_utf8(message)
        )
    return tuple(faults)


def no_objects(key: str, rows: list[Any]) -> list[str]:
    """Return a fault for each row of the request's ``key`` that is no object."""
    wrong = ((index, row) for index, row in enumerate(rows) if not isinstance(row, dict))
    return [f"{key}[{index}]: expected an object, not {type_name(row)}" for index, row in wrong]


def order_problems(key: str, roles: list[Any], article: str = "") -> Iterator[str]:
    """Yield where the user does not begin, behind the instructions, or where neither the user nor a tool ends."""
    first = next((index for index, role in enumerate(roles) if role not in SYSTEM_ROLES), None)
    if first is None:
        yield f"{key}: there is nothing but instructions"
        return
    last = len(roles) - 1
    if roles[first] != "user":
        yield f"{key}[{first}]: the conversation begins with {article}{roles[first]}, not {article}user"
    if roles[last] not in ("user", "tool", *SYSTEM_ROLES):
        yield f"{key}[{last}]: the request ends with {article}{roles[last]}, not {article}user or {article}tool"


@dataclass(slots=True)
class TurnCalls:
    """The calls of the current turn: each is answered exactly once, directly after the turn."""

    key: str
    used_ids: set[str] = field(default_factory=set)
    open: dict[str, tuple[int, str]] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)

    def close(self) -> Iterator[str]:
        """End the turn."""
        for call_id, (position, _) in self.open.items():
            yield f"{self.key}[{position}]: call {call_id!r} is not answered"
        self.open, self.answered = {}, set()

    def add_call(self, index: int, place: str, call_id: str, kind: str = "") -> Iterator[str]:
        """Add a call of a row; ``place`` is that of its id."""
        if call_id in self.used_ids:
            yield f"{self.key}[{index}]{place}: {call_id!r} is used twice"
            return
        self.used_ids.add(call_id)
        self.open[call_id] = (index, kind)

    def add_answer(self, index: int, call_id: str) -> Iterator[str]:
        """Add an answer."""
        if call_id in self.answered:
            yield f"{self.key}[{index}]: a second answer to call {call_id!r}"
        elif call_id not in self.open:
            yield f"{self.key}[{index}]: an answer to {call_id!r}, which is no call directly before it"
        else:
            del self.open[call_id]
            self.answered.add(call_id)


def _pair_problems(messages: Rows) -> Iterator[str]:
    calls = TurnCalls("messages")
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            call_id = message.get("tool_call_id")
            if not isinstance(call_id, str) or not call_id:
                yield f"messages[{index}].tool_call_id: missing or empty"
            else:
                yield from calls.add_answer(index, call_id)
            continue
        yield from calls.close()
        for place, call_id in _call_ids(message):
            if not isinstance(call_id, str) or not is_short_id(call_id):
                yield f"messages[{index}].tool_calls[{place}].id: expected 1 to {ID_MAX_CHARS} characters, not {call_id!r}"
            if isinstance(call_id, str) and call_id:
                yield from calls.add_call(index, f".tool_calls[{place}].id", call_id)
    yield from calls.close()


def is_short_id(call_id: str) -> bool:
    """Return True if the API takes an id of this length, or a gateway made it."""
    return 0 < len(call_id) <= ID_MAX_CHARS or GATEWAY_MARK in call_id


def _call_ids(message: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    calls = message.get("tool_calls")
    for place, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict):
            yield place, call.get("id")


def _message_problems(message: dict[str, Any]) -> Iterator[str]:
    role = message.get("role")
    if role not in ROLES:
        yield f".role: {role!r} is no role"
        return
    content = message.get("content")
    if isinstance(content, list):
        yield from _part_problems(content, role)
    elif content is not None and not isinstance(content, str):
        yield f".content: expected text or a list, not {type_name(content)}"
    elif content is None and role != "assistant":
        yield ".content: there is none"
    name = message.get("name")
    if name is not None and not (isinstance(name, str) and name == speaker_name(name) != ""):
        yield f".name: {name!r} is not 1 to {NAME_MAX_CHARS} characters without spaces, <, >, |, / and \\"
    if role == "assistant":
        yield from _assistant_problems(message)


def speaker_name(name: object) -> str:
    """Return the name of who speaks as the API takes it."""
    return _NOT_IN_SPEAKER.sub("_", str(name))[:NAME_MAX_CHARS]


def _assistant_problems(message: dict[str, Any]) -> Iterator[str]:
    calls = message.get("tool_calls")
    if "tool_calls" in message and not (isinstance(calls, list) and calls):
        yield ".tool_calls: must be a list with at least one call, or absent"
    elif isinstance(calls, list) and len(calls) > MAX_CALLS:
        yield f".tool_calls: {len(calls)} calls, the API takes {MAX_CALLS}"
    for place, call in enumerate(calls if isinstance(calls, list) else ()):
        yield from (f".tool_calls[{place}]{fault}" for fault in _call_problems(call))
    if not any(message.get(key) for key in ("content", "tool_calls", "function_call", "refusal", "audio")):
        yield ": the assistant neither speaks, calls nor refuses"


def _call_problems(call: Any) -> Iterator[str]:
    if not isinstance(call, dict):
        yield f": expected an object, not {type_name(call)}"
        return
    kind = call.get("type")
    if kind not in ("function", "custom"):
        if not isinstance(kind, str) or not kind:
            yield ".type: missing"
        return
    named = call.get(kind)
    if not isinstance(named, dict):
        yield f".{kind}: missing"
        return
    name, key = named.get("name"), "arguments" if kind == "function" else "input"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f".{kind}.name: {name!r} is not 1 to {NAME_MAX_CHARS} of a-z, A-Z, 0-9, _ and -"
    if not isinstance(named.get(key), str):
        yield f".{kind}.{key}: expected text, not {type_name(named.get(key))}"


def _part_problems(parts: list[Any], role: str) -> Iterator[str]:
    if not parts:
        yield ".content: an empty list"
    for place, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            yield f".content[{place}]: not an object with a type"
        elif role not in PART_ROLES.get(kind, (role,)):
            yield f".content[{place}]: {kind} may not stand in a {role} message"
        elif kind in ("text", "refusal") and not (isinstance(part.get(kind), str) and part[kind]):
            yield f".content[{place}].{kind}: missing or empty"
        elif kind == "image_url":
            yield from (f".content[{place}].image_url{fault}" for fault in image_problems(part.get(kind)))


def image_problems(source: Any) -> Iterator[str]:
    """Yield every rule an ``image_url`` breaks, with the place in it."""
    if not isinstance(source, dict):
        yield f": expected an object, not {type_name(source)}"
        return
    url = source.get("url")
    if not isinstance(url, str) or not url:
        yield ".url: missing or empty"
    elif url.startswith("data:"):
        match = _DATA_URL.fullmatch(url)
        if match is None:
            yield ".url: a data URL must be data:image/...;base64,..."
        elif match[1].lower() not in IMAGE_TYPES:
            yield f".url: {match[1]!r} is none of {', '.join(IMAGE_TYPES)}"
    if source.get("detail") not in (None, *DETAILS):
        yield f".detail: {source['detail']!r} is none of {', '.join(DETAILS)}"
