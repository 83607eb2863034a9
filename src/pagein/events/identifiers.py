"""What in a text names something: identifiers and lines. Pure, linear in the text, without any language's grammar."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_TOKEN = re.compile(r"[\w./~+-]{3,}")
_ASCII_TOKEN = re.compile(_TOKEN.pattern, re.ASCII)
"""The same in a text that is ASCII, where it is found in two thirds of the time."""
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
_ASCII_WORD = re.compile(_WORD.pattern, re.ASCII)

LONGEST = 200
"""Characters beyond which a token is content (base64, minified code), not a name."""

SHORTEST = 4
"""Characters below which a name says too little to be looked for."""


def identifiers(text: str) -> Iterator[str]:
    """The specific identifiers of a text in order: paths, dotted, snake and camel names, numbers of 4 digits and more.

    >>> list(identifiers("see src/app.py: Foo.bar_baz(userId=12345) in line 7."))
    ['src/app.py', 'Foo.bar_baz', 'userId', '12345']
    """
    for token in (_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text):
        # Most of a text is plain words: no name has letters of one case only, or one capital at its beginning.
        plain = token.isalpha() and (token.islower() or token.istitle() or token.isupper())
        if not plain and len(token) <= LONGEST:
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
    for found in (_ASCII_WORD if text.isascii() else _WORD).finditer(text):
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


TOLD, TOLD_ALONE = 100, 240
"""Characters of an argument that stand in the one line that tells a call, beside others and by itself."""


@dataclass(frozen=True, slots=True)
class Told:
    """A call in one line, as a reader would give it again.

    ``text`` is the line; ``alone`` the argument by itself, where there is one and it is a text; ``values`` what of the
    arguments the line shows, and ``rest`` what it does not.
    """

    text: str
    alone: str
    values: str
    rest: str


def told_call(name: str, arguments: str) -> Told:
    """A call's name with each argument's first line behind its key; what is longer is cut.

    >>> told_call("order", '{"id": "W12", "why": "late"}').text
    'order id=W12 why=late'
    >>> told_call("bash", json.dumps({"command": "cd src"}))
    Told(text='bash command=cd src', alone='cd src', values='cd src', rest='')
    """
    given = _object(arguments)
    longest = TOLD if len(given) > 1 else TOLD_ALONE
    said, shown, rest = [name], list[str](), list[str]()
    for key, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *more = text.strip().splitlines() or [""]
        shown.append(first if len(first) <= longest else f"{first[:longest]}...")
        said.append(f"{key}={shown[-1]}" if key else shown[-1])
        rest += (first[longest:], *more)
    alone = shown[0] if _is_text(given) else ""
    return Told(" ".join(said), alone, " ".join(shown), "\n".join(filter(None, rest)))


def _is_text(given: Mapping[str, object]) -> bool:
    return len(given) == 1 and isinstance(next(iter(given.values())), str)


def _object(arguments: str) -> Mapping[str, object]:
    """The arguments by their keys; what is no object stands under none."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        given = arguments
    return given if isinstance(given, Mapping) else {"": given}


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
