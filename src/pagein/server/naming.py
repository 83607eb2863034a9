"""The name of the run that a request belongs to, as its client says it, or as the ids of its calls tell. Content decides."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagein._common.json_values import objects_in
from pagein.facts.owners import is_reserved
from pagein.server.http import parse_object
from pagein.server.wire import WireProtocol, output_tokens

RUN_HEADER = "x-pagein-run"

NAME_MAX_CHARS = 160

_OLD_CLAUDE_USER = re.compile(r"_session_([0-9a-fA-F-]{8,64})$")
_CODEX_TURN = "x-codex-turn-metadata"
_AGENTS = ("claude-code:", "codex:", "opencode:", "session:")
_AGENT_PROGRAM = "GeminiCLI"
"""The beginning of the user agent of an agent that names no run."""
_PROBES = ("warmup", "quota")
_OWN_KEY = re.compile(r"(?i)(session|conversation|thread|chat)[-_:][0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A cache key that is of one session or conversation alone, as its UUID says; others may be a whole program's."""

MAX_CALLS = 65_536

_RANDOM_ID = re.compile(r"(?![A-Za-z]+\d+(?![A-Za-z0-9]))(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{8,}")
"""The part of an id that no two calls have. ``call_1``, ``functions.read:0`` and ``getUser1234`` may be of any run."""


def is_random_id(id: str) -> bool:
    """True for the id of a call that no other call has.

    >>> [is_random_id(id) for id in ("call_Xa81kQ02b", "functions.get_weather2:0", "call_getUser1234")]
    [True, False, False]
    """
    return _RANDOM_ID.search(id) is not None


def name_run(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """The name that a client gives its run; "" for one that gives none. ``headers`` have names in lower case.

    >>> name_run({"x-claude-code-session-id": "a", "x-claude-code-agent-id": "b"}, {})
    'claude-code:a:b'
    >>> name_run({}, {"prompt_cache_key": "chat_2024-support"})
    'key:chat_2024-support'
    """
    name = headers.get(RUN_HEADER, "").strip() or _by_headers(headers) or _by_body(body)
    return clean_name(name)


def clean_name(name: str) -> str:
    """The name as one of a session: one line of at most 160 characters, and none that is reserved."""
    plain = "".join(character if character.isprintable() else "?" for character in name).strip()
    if not plain:
        return ""
    if is_reserved(plain):
        plain = f"run {plain}"
    if len(plain) <= NAME_MAX_CHARS:
        return plain
    digest = hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{plain[: NAME_MAX_CHARS - 17]}-{digest}"


def is_side_request(
    protocol: WireProtocol, name: str, headers: Mapping[str, str], body: Mapping[str, Any], rows: Sequence[Any]
) -> bool:
    """True for a request beside its run, of which nothing is handed over again: it has one token for the answer, or an agent
    asks without tools of its own, or only to warm up, and hands over nothing that a model said, or asks Gemini for JSON.
    """
    if body.get("previous_response_id"):
        return False
    is_agent = name.startswith(_AGENTS) or headers.get("user-agent", "").startswith(_AGENT_PROGRAM)
    is_first = all(isinstance(row, Mapping) and row.get("role") in ("user", "system", "developer") for row in rows)
    is_plain = not _has_tools(body) or (is_first and _last_text(rows) in _PROBES)
    options = body.get("generationConfig")
    is_for_json = isinstance(options, Mapping) and options.get("responseMimeType") == "application/json"
    return output_tokens(protocol, body) == 1 or (is_agent and is_plain and (is_first or is_for_json))


def _has_tools(body: Mapping[str, Any]) -> bool:
    """True for a request with tools of its client's: to search the web, agents ask with the provider's search alone."""
    tools = body.get("tools")
    is_search = isinstance(tools, list) and all(isinstance(tool, Mapping) and _is_search(tool) for tool in tools)
    return bool(body.get("functions") or (tools and not is_search))


def _is_search(tool: Mapping[str, Any]) -> bool:
    return str(tool.get("type")).startswith("web_search") or tool.keys() <= {"googleSearch", "urlContext"}


def _last_text(rows: Sequence[Any]) -> str:
    content = rows[-1].get("content", rows[-1].get("parts"))
    block = content[-1] if isinstance(content, list) and content else content
    return str(block.get("text") if isinstance(block, Mapping) else block).strip().lower()


def _by_headers(headers: Mapping[str, str]) -> str:
    if session := headers.get("x-claude-code-session-id"):
        return _join("claude-code", session, headers.get("x-claude-code-agent-id"))
    turn = _object(headers.get(_CODEX_TURN))
    thread = headers.get("thread-id") or headers.get("conversation_id") or turn.get("thread_id")
    session = headers.get("session-id") or headers.get("session_id") or turn.get("session_id")
    if turn or thread or session:
        agent = turn.get("agent_name")
        names = (str(session or ""), str(thread or "") if thread != session else "", str(agent or ""))
        return _join("codex", *names)
    for key, client in (
        ("x-session-id", "session"),
        ("x-opencode-session", "opencode"),
        ("x-session-affinity", "session"),
        ("x-litellm-session-id", "litellm"),
    ):
        if headers.get(key):
            return _join(client, headers[key])
    return ""


def _by_body(body: Mapping[str, Any]) -> str:
    conversation = body.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    if isinstance(conversation, str) and conversation:
        return _join("conversation", conversation)
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    if isinstance(user, str):
        session = _object(user).get("session_id")
        match = _OLD_CLAUDE_USER.search(user)
        if session or match:
            return _join("claude-code", str(session or (match.group(1) if match else "")))
    key = body.get("prompt_cache_key")
    if not isinstance(key, str) or not key:
        return ""
    own = _OWN_KEY.fullmatch(key)
    return _join("key" if own is None else "session" if own[1].lower() == "session" else "conversation", key)


def _join(client: str, *names: str | None) -> str:
    return ":".join((client, *(name for name in names if name)))


def _object(text: str | None) -> Mapping[str, Any]:
    return parse_object((text or "").encode("utf-8", "surrogatepass")) or {}


# Names by calls


@dataclass(slots=True)
class KnownCalls:
    """The names of runs by the ids of their newest calls. An id that two runs made tells of neither."""

    _runs: OrderedDict[tuple[str, str], tuple[str, str]] = field(default_factory=OrderedDict)
    """The name and the session; empty for an id of two."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, tenant: str, name: str, session: str, rows: Sequence[Any]) -> None:
        """Remember the calls of an answer in a run, no others: two clients may have the same example of a call in their lists."""
        with self._lock:
            for call_id in call_ids(rows):
                if self._runs.setdefault((tenant, call_id), (name, session)) != (name, session):
                    self._runs[tenant, call_id] = "", ""
                self._runs.move_to_end((tenant, call_id))
                if len(self._runs) > MAX_CALLS:
                    self._runs.popitem(last=False)

    def find_name(self, tenant: str, rows: Sequence[Any]) -> str:
        """Return the name of the run that has the newest known call of a list; "" where none is known."""
        with self._lock:
            runs = (self._runs.get((tenant, call_id), ("", "")) for call_id in call_ids(rows))
            return next((name for name, _ in runs if name), "")


def call_ids(rows: Sequence[Any]) -> Iterator[str]:
    """Yield the ids of the calls in messages of any protocol, the newest first; only those that no two calls have.

    >>> list(call_ids([{"role": "assistant", "tool_calls": [{"id": "call_Xa81kQ02b"}, {"id": "call_2"}]}]))
    ['call_Xa81kQ02b']
    >>> list(call_ids([{"role": "model", "parts": [{"functionCall": {"id": "a81kQ02b"}}, {"function_call": {"id": "b81kQ02b"}}]}]))
    ['a81kQ02b', 'b81kQ02b']
    """
    for row in reversed(rows):
        if not isinstance(row, dict):
            continue
        ids = [call.get("id") for call in objects_in(row.get("tool_calls"))]
        ids += [block.get("id") for block in objects_in(row.get("content")) if block.get("type") == "tool_use"]
        named = [part.get(key) for part in objects_in(row.get("parts")) for key in ("functionCall", "function_call")]
        ids += [call.get("id") for call in objects_in(named)]
        ids += [row.get("call_id")] if str(row.get("type")).endswith("_call") else []
        yield from (call_id for call_id in ids if isinstance(call_id, str) and is_random_id(call_id))
