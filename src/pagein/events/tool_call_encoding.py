"""What a call is spelled as where a provider does not take it as it is: ids, names, arguments.

``tokens`` counts what ``formats`` sends, so what both must agree on stands below both.
"""

from __future__ import annotations

import json
import math
import re
from hashlib import blake2b
from typing import Any

UNPARSED = "_unparsed_arguments"
"""The key under which arguments that are no JSON object reach a provider that takes only objects."""

NAME_LIMITS = (64, 128)
"""How long a tool's name may be: OpenAI's limit, and Anthropic's."""

DEEPEST = 120
"""Levels of arguments that are sent as an object: within a request they must stay above the depth that is read."""

_SEPARATE = 1024
"""Characters up to which every spelling of arguments is counted by itself, however alike."""

_ESCAPED = "pagein-"
_READABLE = 40
_SAFE = re.compile(r"[a-zA-Z0-9_-]+")
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def wire_id(call_id: str) -> str:
    """The id in the letters every provider takes, a usual one as it is; equal for equal ids, else different.

    One that must be spelled anew has at most 64 characters: what can be read of it, and a hash that tells it from others.

    >>> wire_id("toolu_01A"), wire_id("functions.run-it:0")
    ('toolu_01A', 'pagein-functions_run-it_0-33bcc244')
    """
    if _SAFE.fullmatch(call_id) and not call_id.startswith(_ESCAPED):
        return call_id
    digest = blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{_ESCAPED}{_UNSAFE.sub('_', call_id)[:_READABLE]}-{digest}"


def wire_name(name: str, limit: int) -> str:
    """The tool's name in the letters every provider takes: models invent names, and one would block every request."""
    return _UNSAFE.sub("_", name)[:limit] or "_"


def wire_names(name: str) -> tuple[str, ...]:
    """The name as the providers spell it, where that is not as it is."""
    if len(name) <= NAME_LIMITS[0] and _SAFE.fullmatch(name):
        return ()
    return tuple(wire_name(name, limit) for limit in NAME_LIMITS)


def parsed(arguments: str) -> dict[str, Any]:
    """The arguments as a JSON object. No arguments are the empty one; what is no object is wrapped, always alike.

    >>> parsed('{"path": "a.py"}'), parsed(""), parsed("{oops")
    ({'path': 'a.py'}, {}, {'_unparsed_arguments': '{oops'})
    """
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and not _is_deep(arguments):
        return value
    return {UNPARSED: arguments}


def spellings(arguments: str) -> tuple[str, ...]:
    """The texts to count for these arguments: as they are, and as the object that some providers take instead.

    Of long ones that differ only in spaces behind the separators it is the one that has them.
    """
    value = parsed(arguments)
    spaced = json.dumps(value, ensure_ascii=False)
    if spaced == arguments:
        return (arguments,)
    if len(arguments) > _SEPARATE and UNPARSED not in value:
        # A space more never joins two tokens. Counting is what costs here, so it is done once.
        compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if compact == arguments:
            return (spaced,)
    return arguments, spaced


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is no number that JSON can say again")
    return value


def _is_deep(arguments: str) -> bool:
    """Whether the value, which is JSON, is nested deeper than is sent; looked at only where it could be."""
    if arguments.count("{") + arguments.count("[") <= DEEPEST:
        return False
    depth = 0
    for found in _BRACKET.finditer(arguments):
        if found[0] in "[{":
            depth += 1
            if depth > DEEPEST:
                return True
        elif found[0] in "]}":
            depth -= 1
    return False
