"""What in a text names something: identifiers and lines. Pure, linear in the text, without any language's grammar."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

_TOKEN = re.compile(r"[\w./~+-]{3,}")
_SPLIT = re.compile(r"[~+-]+")
_PATH = re.compile(r"/\w|\w/")
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")
_NAME = re.compile(
    r"""
      _*[^\W_][^\W_]*_\w+          # snake
    | _+[^\W\d_]\w*                # private
    | [^\W\d_]\w*?[a-z0-9][A-Z]\w*  # camel
    | [A-Z][A-Z0-9]+[a-z]\w*       # camel that begins with an acronym
    | \d{3,}                       # numbers
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"[^\W\d_]{3,}")

LONGEST = 200
"""Characters beyond which a token is content (base64, minified code), not a name."""

SHORTEST = 4
"""Characters below which a name says too little to be looked for."""


def identifiers(text: str) -> Iterator[str]:
    """The specific identifiers of a text in order: paths, dotted, snake and camel names, numbers of 4 digits and more.

    >>> list(identifiers("see src/app.py: Foo.bar_baz(userId=12345) in line 7."))
    ['src/app.py', 'Foo.bar_baz', 'userId', '12345']
    """
    for found in _TOKEN.finditer(text):
        token = found[0]
        if len(token) <= LONGEST:
            yield from _names(token)


def _names(token: str) -> Iterator[str]:
    if "/" in token and _PATH.search(token):
        path = token.rstrip(".-+~")
        if len(path) >= SHORTEST:
            yield path
        return
    for piece in _SPLIT.split(token):
        if len(piece) < SHORTEST:
            continue
        dotted = _DOTTED.fullmatch(piece.strip("."))
        if dotted and len(dotted[0]) >= SHORTEST:
            yield dotted[0]
            continue
        for name in piece.split("."):
            if len(name) >= SHORTEST and _NAME.fullmatch(name):
                yield name


def words(text: str) -> Iterator[str]:
    """The words of three letters and more, in lower case.

    >>> list(words("It fails in foo_bar!"))
    ['fails', 'foo', 'bar']
    """
    for found in _WORD.finditer(text):
        yield found[0].lower()


def argument_text(arguments: str) -> str:
    """The strings in JSON arguments, one behind the other, escapes undone; what is not JSON stays as it is.

    >>> argument_text('{"path": "a.py", "n": 3}').splitlines()
    ['a.py', '3']
    """
    try:
        return "\n".join(_leaves(json.loads(arguments)))
    except (ValueError, RecursionError):
        return arguments


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
