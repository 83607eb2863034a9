"""Identifiers, words and tool calls as text. Pure, linear in the text, and independent of any language's grammar."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pagein._common.json_values import parse_json

_TOKEN = re.compile(r"[\w./~+-]{3,}")
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9_./~+-]{3,}")
"""The same pattern for ASCII texts, where it takes half the time."""
_PROSE = re.compile(r"(?:^|(?<=[A-Za-z0-9_]))[\u0e00-\u0e7f\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af]+(?=[A-Za-z0-9_]|$)")
"""Prose of a script without spaces, around a name; in a name, such as ``data/\u62a5\u544a.csv``, it has other neighbours."""
_TAG_END = re.compile(r"</[A-Za-z][\w:.-]*\s*>|/>")
"""The end of an element of HTML or XML, which is no path."""
_SPLIT = re.compile(r"[~+-]+")
_PATH = re.compile(r"/\w|\w/")
_FRACTION = re.compile(r"[\d./~+-]+")
"""A date or a fraction, which is no path."""
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")
_NAME = re.compile(
    r"""
      _*[^\W_][^\W_]*_\w+          # snake
    | _+[^\W\d_]\w*                # private
    | [^\W\d_]\w*?[a-z0-9][A-Z]\w*  # camel
    | [A-Z][A-Z0-9]+[a-z]\w*       # camel that begins with an acronym
    | \d{3,} | [^\W\d_]{1,4}\d{4,}  # numbers, and codes that end in one
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"[^\W\d_]{3,}")
_ASCII_WORD = re.compile(r"[A-Za-z]{3,}")

IDENTIFIER_MAX_CHARS = 200
"""A longer token is content (base64, minified code), not an identifier."""

IDENTIFIER_MIN_CHARS = 4
"""A shorter token is too unspecific to search for."""


def identifiers(text: str) -> list[str]:
    """The identifiers of a text in order: paths, dotted, snake and camel names, numbers of 4 digits and more, also
    behind a few letters.

    >>> identifiers("see src/app.py: Foo.bar_baz(userId=12345) in line 7.")
    ['src/app.py', 'Foo.bar_baz', 'userId', '12345']
    >>> identifiers("Order #W2378156 of 2024/05/12 is 10/11 done.")
    ['W2378156']
    >>> identifiers("<a Wiki/> <td>docs/a.md</td>")
    ['docs/a.md']
    """
    names: list[str] = []
    if "</" in text or "/>" in text:
        text = _TAG_END.sub(" ", text)
    for token in (_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text):
        # Skip plain words early: no identifier is all lower case, all upper case, or capitalised.
        plain = token.isalpha() and (token.islower() or token.istitle() or token.isupper())
        if not plain and len(token) <= IDENTIFIER_MAX_CHARS:
            names += _names_in_token(token)
    return names


@functools.lru_cache(maxsize=16_384)
def _names_in_token(token: str) -> tuple[str, ...]:
    return tuple(name for part in ([token] if token.isascii() else _PROSE.split(token)) for name in _split_token(part))


def _split_token(token: str) -> Iterator[str]:
    if "/" in token and _PATH.search(token) and not _FRACTION.fullmatch(token):
        path = token.rstrip(".-+~")
        if len(path) >= IDENTIFIER_MIN_CHARS:
            yield path
        return
    for piece in _SPLIT.split(token):
        if len(piece) < IDENTIFIER_MIN_CHARS:
            continue
        dotted = _DOTTED.fullmatch(piece.strip("."))
        if dotted and len(dotted[0]) >= IDENTIFIER_MIN_CHARS:
            yield dotted[0]
            continue
        for name in piece.split("."):
            if len(name) >= IDENTIFIER_MIN_CHARS and _NAME.fullmatch(name):
                yield name


def words(text: str) -> Iterator[str]:
    """Yield the words of three letters and more, in lower case.

    >>> list(words("It fails in foo_bar!"))
    ['fails', 'foo', 'bar']
    """
    for match in (_ASCII_WORD if text.isascii() else _WORD).finditer(text):
        yield match[0].lower()


def argument_text(arguments: str) -> str:
    """Join the scalar values in JSON arguments by newlines, unescaped. Arguments that are not JSON stay unchanged.

    >>> argument_text('{"path": "a.py", "n": 3}').splitlines()
    ['a.py', '3']
    """
    try:
        return "\n".join(_scalar_texts(json.loads(arguments)))
    except (ValueError, RecursionError):
        return arguments


ARGUMENT_MAX_CHARS, LONE_ARGUMENT_MAX_CHARS = 100, 240
"""The characters of an argument that ``format_call`` shows: of several arguments, and of a lone one."""


@dataclass(frozen=True, slots=True)
class CallLine:
    """A tool call as one line.

    ``text`` is the line; ``alone`` the value of the only argument, where that is text; ``values`` the part of the
    arguments that the line shows, and ``rest`` the part it leaves out.
    """

    text: str
    alone: str
    values: str
    rest: str

    @property
    def brief(self) -> str:
        """The argument alone where there is one, else the whole line."""
        return self.alone or self.text


def format_call(name: str, arguments: str) -> CallLine:
    """Format a call as its name and the first line of each argument after its key; long values are cut.

    >>> format_call("order", '{"id": "W12", "why": "late"}').text
    'order id=W12 why=late'
    >>> format_call("bash", json.dumps({"command": "cd src"}))
    CallLine(text='bash command=cd src', alone='cd src', values='cd src', rest='')
    """
    fields = parse_arguments(arguments)
    longest = ARGUMENT_MAX_CHARS if len(fields) > 1 else LONE_ARGUMENT_MAX_CHARS
    pieces, values, rest = [name], list[str](), list[str]()
    for key, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *more = text.strip().splitlines() or [""]
        values.append(first if len(first) <= longest else f"{first[:longest]}...")
        pieces.append(f"{key}={values[-1]}" if key else values[-1])
        rest += (first[longest:], *more)
    alone = values[0] if len(fields) == 1 and isinstance(next(iter(fields.values())), str) else ""
    return CallLine(" ".join(pieces), alone, " ".join(values), "\n".join(filter(None, rest)))


def parse_arguments(arguments: str) -> Mapping[str, object]:
    """Parse the JSON arguments of a call to a mapping. A value that is no object is returned under the key ""."""
    value = parse_json(arguments, arguments)
    return value if isinstance(value, Mapping) else {"": value}


def _scalar_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _scalar_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _scalar_texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
