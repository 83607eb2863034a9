"""Encoding of tool calls for providers: ids, names and arguments that a provider would refuse are rewritten.

A failed result is marked in its text for the providers whose requests have no field for it.

``formats`` sends these encodings and ``tokens`` counts them, so they are defined below both.
"""

from __future__ import annotations

import json
import math
import re
from hashlib import blake2b
from typing import Any

UNPARSED_KEY = "_unparsed_arguments"
"""The key that wraps arguments that are no JSON object, for providers that take only objects."""

NAME_LIMITS = (64, 128)
"""The longest tool name in characters: OpenAI's limit, and Anthropic's."""

FAILURE_PREFIX = "Error: "
"""The prefix of a failed result, for providers whose requests have no field for the failure (both APIs of OpenAI)."""

ID_MIN_LIMIT = 40
"""The longest id of a call that every provider takes: OpenAI's limit for chat completions."""

GATEWAY_MARK = "__thought__"
"""What LiteLLM puts between an id and the signature of a thought of Gemini's; its ids are long and must stay whole."""

MAX_ARGUMENT_DEPTH = 120
"""Deeper arguments are sent as text. Within a request this must stay below ``formats.parsing.MAX_DEPTH``."""

_EXACT_MAX_CHARS = 1024
"""Up to this length every encoding of arguments is counted by itself, even where they differ only in spaces."""

_REWRITTEN_PREFIX = "pagein-"
_READABLE_MAX_CHARS = 8
_DIGEST_BYTES = 12
_SAFE = re.compile(r"[a-zA-Z0-9_-]+")
_REWRITTEN = re.compile(r"pagein-[a-zA-Z0-9_-]{0,8}-[0-9a-f]{24}")
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_REPORTS_FAILURE = re.compile(
    r"\W*(?:\w*(?:error|exception)\b|fail(?:ed|ure)?\b|traceback\b|fatal\b|no result was recorded\b)", re.IGNORECASE
)
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


ASKING_TOOLS = ("recall", "expand", "compact")
"""The memory's own tools whose calls say nothing about the run."""

_SERVED = re.compile(r".*pagein.*[^a-z]([a-z]+)", re.IGNORECASE | re.DOTALL)


def bare_tool_name(name: str) -> str:
    """The name of a tool of pagein's MCP server without what the client puts before it; any other name unchanged.

    >>> bare_tool_name("mcp__pagein__recall"), bare_tool_name("web_recall")
    ('recall', 'web_recall')
    """
    match = _SERVED.fullmatch(name)
    return match[1].lower() if match else name


def wire_id(call_id: str, max_chars: int | None = None) -> str:
    """Return the id in characters every provider accepts: equal for equal ids, different for different ones.

    A valid id of at most ``max_chars`` is unchanged, and so is a rewritten one that is handed back. A rewritten one has at
    most 40 characters, the least that a provider takes: a readable part and 96 bits of a hash. Two texts with one hash of
    32 bits are found in a second, with one of 96 bits not by a search of years.

    >>> wire_id("toolu_01A"), wire_id("functions.run-it:0")
    ('toolu_01A', 'pagein-function-609f1fc4a889da5dde5e49a9')
    """
    is_short = max_chars is None or len(call_id) <= max_chars
    looks_rewritten = call_id.startswith(_REWRITTEN_PREFIX) and not _REWRITTEN.fullmatch(call_id)
    if is_short and _SAFE.fullmatch(call_id) and not looks_rewritten:
        return call_id
    digest = blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{_REWRITTEN_PREFIX}{_UNSAFE.sub('_', call_id)[:_READABLE_MAX_CHARS]}-{digest}"


def reports_failure(text: str) -> bool:
    """Return True if the text of a result begins with the words of a failure.

    >>> reports_failure("ValueError: no such file"), reports_failure("Exit code 1")
    (True, False)
    """
    return _REPORTS_FAILURE.match(text) is not None


def wire_name(name: str, limit: int) -> str:
    """Return the tool's name in characters every provider accepts. Models invent names, and one would block every request."""
    return _UNSAFE.sub("_", name)[:limit] or "_"


def wire_names(name: str) -> tuple[str, ...]:
    """Return the encoded names of a tool, one for each limit; none where the name is valid as it is."""
    if len(name) <= NAME_LIMITS[0] and _SAFE.fullmatch(name):
        return ()
    return tuple(wire_name(name, limit) for limit in NAME_LIMITS)


def parse_arguments(arguments: str) -> dict[str, Any]:
    """Parse arguments to a JSON object. Empty arguments give {}; arguments that are no object are wrapped under a key.

    >>> parse_arguments('{"path": "a.py"}'), parse_arguments(""), parse_arguments("{oops")
    ({'path': 'a.py'}, {}, {'_unparsed_arguments': '{oops'})
    """
    if not arguments.strip():
        return {}
    try:
        value = _DECODER.decode(arguments)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and not _is_deep(arguments):
        return value
    return {UNPARSED_KEY: arguments}


def argument_texts(arguments: str) -> tuple[str, ...]:
    """Return the texts to count for these arguments: as they are, and as the JSON object that some providers get.

    Where long ones differ only in spaces after separators, only the one with spaces is returned.
    """
    value = parse_arguments(arguments)
    spaced = json.dumps(value, ensure_ascii=False)
    if spaced == arguments:
        return (arguments,)
    if len(arguments) > _EXACT_MAX_CHARS and UNPARSED_KEY not in value:
        # An extra space never joins two tokens, so the spaced text is the upper bound. Counting it alone saves time.
        compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if compact == arguments:
            return (spaced,)
    return arguments, spaced


def _reject_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _parse_finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} cannot be written as JSON")
    return value


_DECODER = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_parse_finite)


def _is_deep(arguments: str) -> bool:
    """Return True if valid JSON is nested deeper than ``MAX_ARGUMENT_DEPTH``."""
    if arguments.count("{") + arguments.count("[") <= MAX_ARGUMENT_DEPTH:
        return False
    depth = 0
    for bracket in _BRACKET.finditer(arguments):
        if bracket[0] in "[{":
            depth += 1
            if depth > MAX_ARGUMENT_DEPTH:
                return True
        elif bracket[0] in "]}":
            depth -= 1
    return False
