"""The JSON object in a model's reply: alone, in a code fence, or with prose around it. Nothing is guessed in its text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

from pagein.errors import PageinError

MAX_OBJECT_STARTS = 64
"""Places in a reply at which an object is looked for."""

_FENCE = re.compile(r"```[\w+-]*[ \t]*\r?\n(.*?)\r?\n?[ \t]*```", re.DOTALL)


class UnreadableReply(PageinError):
    """A reply without one JSON object; ``reason`` and ``detail`` say why."""

    def __init__(self, reason: Literal["empty", "longer", "truncated", "not json", "wrong shape"], detail: str) -> None:
        self.reason: Literal["empty", "longer", "truncated", "not json", "wrong shape"] = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}")


def parse_reply_object(reply: str, max_chars: int) -> dict[str, Any]:
    """Parse the JSON object of a reply. Of several the longest counts. Raises UnreadableReply.

    >>> parse_reply_object('Here it is: {"done": ["a"]} Anything else?', 1_000)
    {'done': ['a']}
    """
    if len(reply) > max_chars:
        raise UnreadableReply("longer", f"{len(reply):,} characters; at most {max_chars:,} are read")
    text = reply.strip().removeprefix("\ufeff").strip()
    if not text:
        raise UnreadableReply("empty", "the model answered nothing")
    failure: UnreadableReply | None = None
    for source in (text, *(match[1].strip() for match in _FENCE.finditer(text))):
        try:
            value = json.loads(source, **_HOOKS)
        except json.JSONDecodeError as error:
            failure = failure or UnreadableReply("not json", f"{error.msg} at character {error.pos} of {len(source)}")
        except (ValueError, RecursionError) as error:
            raise UnreadableReply("wrong shape", str(error)[:200]) from error
        else:
            if isinstance(value, dict):
                return value
            raise UnreadableReply("wrong shape", f"expected an object, not {type(value).__name__}")
    objects = sorted(_objects_in(text), key=lambda found: found[0])
    if objects:
        return objects[-1][1]
    start = text.find("{")
    if start >= 0 and is_unclosed(text[start:]):
        raise UnreadableReply("truncated", "the JSON breaks off")
    raise failure or UnreadableReply("not json", "there is no object in it")


def _objects_in(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the outermost objects that are not empty, each with its number of characters."""
    decoder = json.JSONDecoder(**_HOOKS)
    at, stop = -1, 0
    for _ in range(MAX_OBJECT_STARTS):
        at = text.find("{", max(at + 1, stop))
        if at < 0:
            return
        try:
            value, stop = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            # The rest of an object that breaks off has whole ones in it, which are not the reply.
            if is_unclosed(text[at:]):
                return
            continue
        except (ValueError, RecursionError) as error:
            raise UnreadableReply("wrong shape", str(error)[:200]) from error
        if value:
            yield stop - at, value


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        # Choosing one of the two would be a guess.
        raise UnreadableReply("wrong shape", "a key is given twice")
    return value


def _reject_constant(name: str) -> object:
    raise UnreadableReply("wrong shape", f"{name} is no JSON")


_HOOKS: dict[str, Any] = {"object_pairs_hook": _reject_duplicate_keys, "parse_constant": _reject_constant}


def is_unclosed(text: str) -> bool:
    """True if an object, a list or a string is not closed at the end."""
    depth, quoted, escaped = 0, False, False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        else:
            depth += (character in "{[") - (character in "}]")
    return quoted or depth > 0
