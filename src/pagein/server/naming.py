"""The name of the run that a request belongs to, as its client says it. A name narrows; content decides. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

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


def name_run(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """The name that a client gives its run; "" for one that gives none. ``headers`` have names in lower case.

    >>> name_run({"x-claude-code-session-id": "a", "x-claude-code-agent-id": "b"}, {})
    'claude-code:a:b'
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
    return _join("key", key) if isinstance(key, str) and key else ""


def _join(client: str, *names: str | None) -> str:
    return ":".join((client, *(name for name in names if name)))


def _object(text: str | None) -> Mapping[str, Any]:
    return parse_object((text or "").encode("utf-8", "surrogatepass")) or {}
