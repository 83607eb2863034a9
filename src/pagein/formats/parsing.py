"""Foreign JSON, read without trust: every fault is a FormatError with the path of the value that is wrong.

Hosts hand over dicts, tuples and SDK objects, some of them cyclic, some with bytes inside. All of it is first made
plain (dict, list, str, int, float, bool, None), so that what reads on knows only those.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from pagein.errors import FormatError
from pagein.events.steps import Opaque

MAX_DEPTH = 128
"""Deeper than any real tool input; a value that contains itself ends here too."""

# What a person could read in content we keep unread, in the order a provider's own client shows it.
_READABLE = (
    "title", "name", "text", "thinking", "summary", "refusal", "transcript",
    "filename", "query", "url", "stdout", "stderr", "context",
)  # fmt: skip
_SEALS = ("signature", "cited_text")  # say again, or vouch for, what is read elsewhere
_LABEL = 80
_NESTED = ("content", "source", "input", "output", "file")


def plain(value: Any, path: str = "") -> Any:
    """The value as plain JSON, new throughout. Raises FormatError for what JSON cannot say, or for a cycle."""
    try:
        return _copied(value, 0)
    except _Foreign:
        return _spelled(value, path, 0)


class _Foreign(Exception):
    """There is something in the value that is not plain JSON already."""


def _copied(value: Any, depth: int) -> Any:
    """A copy of plain JSON. Every request passes here, so no path is made for an error there is not."""
    kind = type(value)
    if kind is str or value is None or kind is bool or kind is int:
        return value
    if depth <= MAX_DEPTH:
        if kind is dict:
            if all(type(key) is str for key in value):
                return {key: _copied(item, depth + 1) for key, item in value.items()}
        elif kind is list:
            return [_copied(item, depth + 1) for item in value]
    raise _Foreign


def _spelled(value: Any, path: str, depth: int) -> Any:
    """The same for any value, and with the place of what is wrong."""
    if depth > MAX_DEPTH:
        raise FormatError(f"nested deeper than {MAX_DEPTH} levels, or contains itself", path=path)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # a StrEnum member is its value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise FormatError(f"{value} is not a JSON number", path=path)
        return float(value)
    if isinstance(value, Mapping):
        return {_key(key, path): _spelled(item, f"{path}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelled(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    return _spelled(_dumped(value, path), path, depth + 1)


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise FormatError(f"a key of an object must be text, not {kind_of(key)}", path=path)
    return str.__str__(key)


def _dumped(value: Any, path: str) -> Any:
    """What an SDK's response object says; looked up on the type, so that nothing answers to any name."""
    dump = getattr(type(value), "model_dump", None)
    if not callable(dump):
        raise FormatError(f"{kind_of(value)} is not JSON", path=path)
    try:
        # The SDKs declare every field optional; a null they filled in themselves is no part of what was said.
        return dump(value, exclude_none=True)
    except Exception as error:
        raise FormatError(f"{kind_of(value)}.model_dump() failed: {error}", path=path) from error


def kind_of(value: Any) -> str:
    """The type's name as a message to a person says it."""
    return "null" if value is None else type(value).__name__


def request_fields(request: Any, names: tuple[str, ...] = ("messages",)) -> dict[str, Any]:
    """The named fields of the request as plain JSON; a list is its ``messages``, and so is one message by itself.

    Raises FormatError.
    """
    if isinstance(request, (list, tuple)):
        return {"messages": plain(request, "messages")}
    if callable(getattr(type(request), "model_dump", None)):
        request = _dumped(request, "messages")
    if not isinstance(request, Mapping):
        raise FormatError(f"expected a list of messages, not {kind_of(request)}", path="messages")
    if "messages" not in request:
        if "role" not in request and not {"type", "content"} <= request.keys():
            raise FormatError("the request has no messages", path="messages")
        return {"messages": plain([request], "messages")}
    # The rest of a host's request (tools as classes, an HTTP client) is none of our business.
    taken = {name: plain(request[name], name) for name in names if request.get(name) is not None}
    if not isinstance(taken.get("messages"), list):
        raise FormatError(f"expected a list, not {kind_of(request['messages'])}", path="messages")
    return taken


def rows_of(request: Any) -> list[Any]:
    """The messages of a request, plain, of whichever provider: the Responses API's are its ``input``, or one item.

    Instructions beside an ``input`` stand first, as a system message. Raises FormatError.
    """
    if isinstance(request, Mapping) and "messages" not in request:
        if isinstance(request.get("type"), str) and "role" not in request:
            return [plain(request, "input")]
        if "input" in request:
            return _input(request)
    found: list[Any] = request_fields(request)["messages"]
    return found


def _input(request: Mapping[str, Any]) -> list[Any]:
    given = request["input"]
    rows = [{"role": "user", "content": given}] if isinstance(given, str) else plain(given, "input")
    if not isinstance(rows, list):
        raise FormatError(f"expected text or a list, not {kind_of(rows)}", path="input")
    told = plain(request.get("instructions"), "instructions")
    return [{"role": "system", "content": told}, *rows] if isinstance(told, str) and told else rows


class Fields:
    """One JSON object being read. What is taken is gone; what is left is the provider's own, and is kept."""

    __slots__ = ("_left", "path")

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise FormatError(f"expected an object, not {kind_of(value)}", path=path)
        self.path = path
        self._left = dict(value)

    def take(self, key: str) -> Any:
        """The value, or None where there is none."""
        return self._left.pop(key, None)

    def text(self, key: str) -> str:
        """A text that must be there."""
        value = self.take(key)
        if not isinstance(value, str):
            raise self.fault(key, f"expected text, not {kind_of(value)}")
        return value

    def text_or_empty(self, key: str) -> str:
        """A text; absent and null are the empty one, as some servers send no ids."""
        return "" if self._left.get(key) is None else self.text(key)

    def rows(self, key: str) -> list[tuple[Any, str]]:
        """The items of a list, each with its path; absent and null are the empty list."""
        value = self.take(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fault(key, f"expected a list, not {kind_of(value)}")
        return [(item, f"{self.at(key)}[{index}]") for index, item in enumerate(value)]

    def fields(self, key: str) -> Fields:
        """An object that must be there."""
        return Fields(self.take(key), self.at(key))

    def left(self) -> dict[str, Any]:
        """What was not taken; null means absent in both APIs, so nulls are no fields."""
        return {key: value for key, value in self._left.items() if value is not None}

    def fault(self, key: str, message: str) -> FormatError:
        """The error to raise for a field that is wrong."""
        return FormatError(message, path=self.at(key))

    def refuse(self, faults: Iterable[str], cure: str) -> None:
        """Returns when the provider's rules found no fault in the object. Raises FormatError with the first of them."""
        for fault in faults:
            inner, _, words = fault.partition(": ")
            raise FormatError(f"{words}; {cure}", path=f"{self.path}{inner}")

    def at(self, key: str) -> str:
        """The path of a field; those of the request itself have no prefix."""
        return f"{self.path}.{key}" if self.path else key


def is_utf8(value: Any) -> bool:
    """Whether the value's JSON encodes to UTF-8: a lone surrogate does not."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def compact(value: Any) -> str:
    """JSON text that always encodes to UTF-8, keys in the order they came."""
    # A lone surrogate is spelled as an escape: so it reads back equal.
    return json.dumps(value, ensure_ascii=not is_utf8(value), separators=(",", ":"))


def kept(provider: str, kind: str, value: Any) -> Opaque:
    """Provider content as an unread part, with what a person could read in it where that is all there is.

    A part counts by its text, and by its body only without one: the title of a document must not stand for its pages.
    """
    return Opaque(provider, kind, compact(value), "" if _encoded(value) else readable(value))


def extra(provider: str, kind: str, left: dict[str, Any]) -> Opaque | None:
    """The fields that stood beside what we understand; None where there were none."""
    kind = (
        "cache_control" if left.keys() == {"cache_control"} else kind
    )  # no model sees it, so nobody counts it
    return Opaque(provider, kind, compact(left)) if left else None


def _encoded(value: Any, key: str = "") -> bool:
    """Whether the value holds more than ids, kinds and what ``readable`` reads: files, ciphers, code to run."""
    match value:
        case str():
            return len(value) > _LABEL and key not in (*_READABLE, *_NESTED, *_SEALS)
        case list():
            return any(_encoded(item, key) for item in value)
        case dict():
            spoken = "data" if value.get("type") == "text" else ""
            return any(_encoded(item, name) for name, item in value.items() if name != spoken)
        case _:
            return False


def readable(value: Any) -> str:
    """What a person could read in a provider's content: titles, text, thinking; never what is encoded.

    >>> readable({"type": "document", "title": "Plan", "source": {"type": "text", "data": "Ship."}}).splitlines()
    ['Plan', 'Ship.']
    """
    match value:
        case str():
            return value
        case list():
            lines = [readable(item) for item in value]
        case dict():
            lines = [value[key] for key in _READABLE if isinstance(value.get(key), str)]
            if value.get("type") == "text" and isinstance(value.get("data"), str):
                lines.append(value["data"])
            lines += [readable(value[key]) for key in _NESTED if value.get(key)]
        case _:
            return ""
    return "\n".join(line for line in lines if line)


def exact_base64(data: str) -> bytes | None:
    """The bytes, or None where encoding them again would not give back the same text."""
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return content if content and base64.b64encode(content).decode("ascii") == data else None
