"""The messages of a request before they are parsed: split, hashed, recognised by their format. Every turn looks at all of them.

The hash of a message leaves out cache markers, the order of keys, nulls, fields of the client's own and the spelling of texts;
a text equals a list of one text. Two spellings that it does not take for one are compared again when they are parsed.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from typing import Any

from pagein.errors import FormatError
from pagein.events.normal_form import CACHE_MARKERS, without_cache_markers
from pagein.events.protocol import normal_text
from pagein.formats.base import Format, Item
from pagein.formats.parsing import part_types, request_rows, to_plain_json
from pagein.formats.registry import FORMATS, format_named

SYSTEM_ROLES = ("system", "developer")

GUESSED_FORMATS = ("openai", "anthropic", "openai-responses")
"""Formats that the shape of a message may tell; others share theirs."""

_ANTHROPIC_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result"}
    | {"web_search_tool_result", "search_result"}
)
_MARSHAL_VERSION = 2
"""The newest version without references between equal objects: bytes depend on values alone. They are never stored."""

_MARKER_HINT = b"cache"
_MARKERS = tuple(marker.encode() for marker in CACHE_MARKERS)

_RESPONSES_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})
_LANGCHAIN_ROLES = ("human", "ai", "tool", "system")
_RESPONSES_ITEMS = frozenset(
    {"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning"}
    | {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"}
    | {"computer_call", "computer_call_output", "local_shell_call", "local_shell_call_output", "item_reference"}
    | {"shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output"}
)
_BEDROCK_KEYS = frozenset({"text", "toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent"})
"""Bedrock's blocks have no type; each is an object with one of these keys."""
_SAID_KEYS = frozenset(
    {"role", "content", "parts", "name", "tool_calls", "invalid_tool_calls", "tool_call_id", "function_call", "refusal"}
    | {"audio"}
)
"""The keys of a message that are compared; clients add times, ids and notes of their own, and providers what they counted."""
_TEXTS = frozenset({"content", "text", "output", "refusal"})
_TEXT_TYPES = ("text", "input_text", "output_text")
_ARGUMENTS = frozenset({"input", "args", "response", "json", "arguments"})
"""Fields with an application's own JSON, which is not spelled anew."""
_OPENAI_PARTS = frozenset({"image_url"})
_UNREAD_FORMATS = {"tool-call": "the AI SDK", "tool-result": "the AI SDK", "toolCalls": "AG-UI", "toolCallId": "AG-UI"}
"""Types of parts, and keys of messages, of formats that are not read: in OpenAI's a call and its result would be lost."""
_OPENAI_AUDIO = "input_audio"
"""A part of both APIs of OpenAI."""


@dataclass(slots=True)
class RawRequest:
    """A request's messages in order, not parsed, and the hash of each; ``system`` is what stands beside them."""

    form: Format
    rows: Sequence[Any]
    system: Any = None
    system_key: str = "system"
    """The key under which the format has it."""
    earlier: RawRequest | None = None
    """The request before this one, whose messages mostly begin it: those that are equal are not hashed again."""
    _hashes: list[bytes] = field(default_factory=list)
    _list_hashes: list[tuple[int, bytes]] | None = None

    def hashes(self) -> list[bytes]:
        """The hash of each message."""
        if len(self._hashes) != len(self.rows):
            known = () if self.earlier is None else zip(self.earlier.rows, self.earlier.hashes(), strict=True)
            self._hashes = [
                known_hash if row == known_row else hash_row(self.form.unify_row(row))
                for row, (known_row, known_hash) in zip(self.rows, chain(known, repeat((None, b""))), strict=False)
            ]
            self.earlier = None
        return self._hashes

    def keep_copy(self) -> RawRequest:
        """A copy that no application can change, for the ``earlier`` of the next request; what equals a message of ``earlier`` is that."""
        known = chain(() if self.earlier is None else self.earlier.rows, repeat(None))
        rows = [old if row == old else deepcopy(row) for row, old in zip(self.rows, known, strict=False)]
        return RawRequest(self.form, rows, self.system, self.system_key, self.earlier)

    def referenced_ids(self, start: int = 0) -> set[str]:
        """The ids of the items that the messages from ``start`` on refer to."""
        return {id for row in islice(self.rows, start, None) if (id := _referenced_id(row))}

    def with_items(self, items: Mapping[str, Any]) -> RawRequest:
        """A copy with these items in the place of the references to their ids."""
        rows = [items.get(_referenced_id(row), row) for row in self.rows]
        return RawRequest(self.form, rows, self.system, self.system_key)

    def list_hashes(self) -> list[tuple[int, bytes]]:
        """For each message that is no system prompt: its number, and the hash of the list up to it."""
        if self._list_hashes is None:
            digest, hashes = b"", list[tuple[int, bytes]]()
            for number, (row, row_hash) in enumerate(zip(self.rows, self.hashes(), strict=True)):
                if not is_system(row):
                    digest = hashlib.blake2b(digest + row_hash, digest_size=16).digest()
                    hashes.append((number, digest))
            self._list_hashes = hashes
        return self._list_hashes

    def request_hashes(self, *, has_ending: bool) -> list[bytes]:
        """The hash of the whole list, behind that of the list without its last message if that is an ending."""
        return [digest for _, digest in self.list_hashes()[-2 if has_ending else -1 :]]

    def parse(self, start: int = 0, stop: int | None = None) -> tuple[Item, ...]:
        """Parse the messages ``[start, stop)``. Raises FormatError with the path in the whole list."""
        rows = list(islice(self.rows, start, stop))
        if not rows:
            return ()
        try:
            return self.form.parse(rows)
        except FormatError:
            if start:
                self.form.parse(list(islice(self.rows, 0, stop)))  # raises with the path that the application knows
            raise

    def parse_system(self) -> tuple[Item, ...]:
        """Parse what stands beside the messages."""
        return () if self.system is None else self.form.parse({self.system_key: self.system, "messages": []})


def hash_row(row: Any) -> bytes:
    """Hash a message. Raises FormatError for one that is not JSON."""
    data = _encode(row)
    if _MARKER_HINT in data and any(marker in data for marker in _MARKERS):
        data = _encode(without_cache_markers(to_plain_json(row, "messages", encode_bytes=True)))
    return hashlib.sha256(data).digest()[:16]


def _encode(row: Any) -> bytes:
    """Encode a message as bytes that are equal for equal values; bytes equal their base64. Each new message comes here."""
    plain = to_plain_json(row, "messages", encode_bytes=True)
    return marshal.dumps(_spell_row(plain) if type(plain) is dict else plain, _MARSHAL_VERSION)


def _spell_row(row: dict[str, Any]) -> dict[str, Any]:
    """The message in its normal spelling: what is said alone, a text in the place of a list of it."""
    spelled: dict[str, Any] = _spell("", row)
    if "role" in row or row.get("type") in _LANGCHAIN_ROLES:
        said = {key: value for key, value in spelled.items() if key in _SAID_KEYS}
        # Reasoning beside the words is not compared; where there are no words, it is all that was said.
        has_words = any(said[key] for key in said.keys() - {"role", "name"})
        kind = row.get("type")
        if kind in _LANGCHAIN_ROLES:
            beside = spelled.get("additional_kwargs")
            beside = beside if isinstance(beside, dict) else {}
            said = {key: beside.get(key) for key in ("tool_calls", "refusal")} | said
            said |= {"type": kind, "status": row.get("status")}
        spelled = said if has_words else spelled
    content = spelled.get("content")
    if type(content) is list and len(content) == 1 and type(content[0]) is dict:
        part = content[0]
        is_text = part.keys() == {"type", "text"} and part["type"] in _TEXT_TYPES
        spelled["content"] = part["text"] if is_text else content
    return spelled


def _spell(key: str, value: Any) -> Any:
    """A value in its normal spelling: without nulls, its keys in order, its texts as they are compared."""
    match value:
        case _ if key in _ARGUMENTS:
            return value
        case str() if key in _TEXTS:
            return normal_text(value)
        case list():
            return [_spell(key if isinstance(item, str) else "", item) for item in value]
        case dict():
            return {name: _spell(name, value[name]) for name in sorted(value) if value[name] not in (None, [])}
        case _:
            return value


def _referenced_id(row: Any) -> str:
    """The id of the item that an item of the Responses API stands for; "" for any other message."""
    id = row.get("id") if isinstance(row, dict) and row.get("type") == "item_reference" else None
    return id if isinstance(id, str) else ""


def is_system(row: Any) -> bool:
    """True for a system prompt among messages; LangChain's have a type in place of a role."""
    if type(row) is dict or isinstance(row, Mapping):
        return (row["role"] if "role" in row else row.get("type")) in SYSTEM_ROLES
    return not isinstance(row, list | tuple) and getattr(row, "type", None) in SYSTEM_ROLES


def rename_roles(request: Any, names: Mapping[str, str]) -> Any:
    """Copy a request with other names of roles, of its messages alone; the same request where ``names`` is empty."""
    if not names:
        return request
    if isinstance(request, Mapping):
        if isinstance(request.get("messages"), list | tuple):
            return {**request, "messages": rename_roles(request["messages"], names)}
        role = request.get("role")
        return {**request, "role": names[role]} if isinstance(role, str) and role in names else request
    return [rename_roles(row, names) for row in request] if isinstance(request, list | tuple) else request


def split_request(request: Any, form: Format) -> RawRequest:
    """Split a request in a format into its messages. Raises FormatError."""
    if isinstance(request, list | tuple):
        return RawRequest(form, request)
    if isinstance(request, Mapping) and isinstance(request.get("messages"), list | tuple):
        return RawRequest(form, request["messages"], request.get("system"))
    system = _gemini_system(request)
    return RawRequest(form, request_rows(request), system, "system" if system is None else "systemInstruction")


def _gemini_system(request: Any) -> Any:
    """Return the system instruction of a request to Gemini; None in any other."""
    if not isinstance(request, Mapping) or "contents" not in request:
        return None
    from pagein.formats.gemini.rules import system_instruction  # noqa: PLC0415 - loads for Gemini's requests

    return system_instruction(request)


def choose_format(request: Any, chosen: Format) -> Format:
    """The format of a request that names none: the memory's, unless the messages are certainly another's.

    Raises FormatError where they speak two, or one that is not read here.
    """
    if chosen.name not in GUESSED_FORMATS:
        return chosen
    signs = _certain_formats(request)
    if _OPENAI_AUDIO in signs:
        signs.remove(_OPENAI_AUDIO)
        signs |= set() if signs or chosen.name == "openai-responses" else {"openai"}
    if not signs or signs == {chosen.name}:
        return chosen
    name = next(iter(signs - FORMATS.keys()), "")
    if len(signs) > 1 and not name:
        raise FormatError(f"the messages have the marks of {' and '.join(sorted(signs))}; name one with format=")
    if name:
        raise FormatError(
            f"the messages are in the format of {name}, which is not read; convert them to one of {', '.join(FORMATS)}"
        )
    return format_named(signs.pop())


def _certain_formats(request: Any) -> set[str]:
    """The formats that something in the request belongs to, and to no other."""
    signs: set[str] = set()
    rows: Any = request
    if isinstance(request, Mapping):
        if "contents" in request and "messages" not in request:
            return {"gemini"}
        if "input" in request and "messages" not in request and "type" not in request:
            return {"openai-responses"}
        if (system := request.get("system")) is not None and "messages" in request:
            signs.add("bedrock" if _is_bedrock_content(system) else "anthropic")
        rows = request.get("messages", [request])
    for row in rows if isinstance(rows, list | tuple) else ():
        if isinstance(row, dict):
            signs |= _row_signs(row)
    return signs


def _row_signs(row: dict[str, Any]) -> set[str]:
    if type(row.get("content")) is str and row.keys() <= {"role", "content"}:
        return set()
    signs: set[str] = set()
    if "role" not in row:
        kind, output = row.get("type"), row.get("output")
        if kind is None and isinstance(row.get("candidates"), list):
            return {"gemini"}
        if kind is None and isinstance(output, dict) and "message" in output:
            return {"bedrock"}
        if kind in _LANGCHAIN_ROLES:
            return {"langchain"}
        return {"openai-responses"} if isinstance(kind, str) and kind in _RESPONSES_ITEMS else signs
    if isinstance(row.get("parts"), list) and "content" not in row:
        return {"gemini"}
    kinds = {kind for kind in part_types(row) if isinstance(kind, str)}
    own_keys = () if {"tool_calls", "tool_call_id"} & row.keys() else row.keys()
    if unread := (kinds | {*own_keys}) & _UNREAD_FORMATS.keys():
        return {_UNREAD_FORMATS[name] for name in unread}
    if row.get("tool_calls") or row["role"] in ("tool", "function"):
        signs.add("openai")
    if type(row.get("content")) is list:
        signs |= {"bedrock"} if _is_bedrock_content(row["content"]) else set()
        signs |= {"anthropic"} if not kinds.isdisjoint(_ANTHROPIC_BLOCKS) else set()
        signs |= {"openai-responses"} if not kinds.isdisjoint(_RESPONSES_PARTS) else set()
        signs |= {"openai"} if not kinds.isdisjoint(_OPENAI_PARTS) else set()
        signs |= kinds & {_OPENAI_AUDIO}
        is_anthropic_image = any(
            part.get("type") in ("image", "document") and "source" in part
            for part in row["content"]
            if isinstance(part, dict)
        )
        signs |= {"anthropic"} if is_anthropic_image else set()
    return signs


def _is_bedrock_content(content: Any) -> bool:
    """True for a list with a block that only Bedrock has."""
    blocks = content if isinstance(content, list | tuple) else ()
    return any(len(block) == 1 and block.keys() <= _BEDROCK_KEYS for block in blocks if isinstance(block, dict))
