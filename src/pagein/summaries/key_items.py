"""What in a span must survive: found by rules, the same each time, whatever wrote the summary.

Rules and decisions are sentences; errors are lines; the rest are identifiers. Of the words of the user and the model,
and of short results, every identifier counts; of a long result those in lines that fail, and those that the run names
elsewhere too: what a tool listed and nobody took up is behind its handle.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

from pagein.context.salience.lines import Read, Reader, decides, holds
from pagein.events.identifiers import argument_text
from pagein.summaries.sanitize import normal, one_line
from pagein.summaries.spans import Said, Span

Kind = Literal["constraint", "error", "path", "identifier", "number", "decision"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of mentions, most important first."""

SHORT = 1_500
"""Characters up to which a result counts whole."""

READ = 40_000
"""Characters at each end of a text that are read for identifiers."""

ERROR = 300
"""Characters of an error that must survive."""

MOST_NAMES = 200
"""Identifiers of one line that count."""

MOST_ERRORS = 3
"""Errors taken from one result, its last ones: a traceback ends with its reason."""

_RULE = re.compile(
    r"""
      \b(?:must(?:n['\u2019]t)?|never|always|do\ not|don['\u2019]t|may\ not|shall|should\ not|shouldn['\u2019]t
         |under\ no\ circumstances|make\ sure|forbidden|prohibited|not\ allowed|only\ (?:use|ever)
         |at\ most|at\ least|no\ (?:more|less|fewer)\ than
         |niemals|immer|muss|m\u00fcssen|musst|d(?:arf|\u00fcrfen|arfst)\ (?:nicht|kein\w*)|nicht\ \w+en\b
         |jamais|toujours|doi(?:t|s|vent)|il\ faut|interdit\w*|ne\ \w+\ pas
         |nunca|jam\u00e1s|siempre|debe[ns]?|no\ debe\w*|prohibido
         |sempre|dev[eo]n?o?|n\u00e3o\ \w+|vietato
         |\u043d\u0438\u043a\u043e\u0433\u0434\u0430|\u0432\u0441\u0435\u0433\u0434\u0430|\u043d\u0435\u043b\u044c\u0437\u044f
         |\u0434\u043e\u043b\u0436\u0435?\u043d\w*|\u043e\u0431\u044f\u0437\u0430\u0442\u0435\u043b\u044c\u043d\u043e)\b
    | \u5fc5\u987b|\u5fc5\u9808|\u4e0d\u8981|\u4e0d\u5f97|\u7981\u6b62|\u52a1\u5fc5|\u52d9\u5fc5|\u6c38\u8fdc\u4e0d
    | \u7d76\u5bfe\u306b|\u3057\u3066\u306f\u3044\u3051\u306a\u3044|\u3057\u306a\u3044\u3067|\u306a\u3051\u308c\u3070\u306a\u3089\u306a\u3044
    | \ud56d\uc0c1|\uc808\ub300|\ubc18\ub4dc\uc2dc
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What a rule says in the languages it was taught: English, German, French, Spanish, Italian, Portuguese, Russian,
Chinese, Japanese, Korean."""

_FAILS = re.compile(
    r"\b(?:\w*error|\w*exception|traceback|fail(?:ed|ure)|fatal|denied|refused|no such|not found)\b",
    re.IGNORECASE,
)
_FAILING = (
    "error", "exception", "traceback", "failed", "failure", "fatal", "denied", "refused", "no such", "not found"
)  # fmt: skip
"""One of these is in every ASCII line that ``_FAILS`` finds."""

_NOISE = re.compile(
    r"\s*(?:</?[^<>]{1,40}>\s*)*|\s*(?:Traceback \(most|During handling of|The above exception|raise\b).*",
    re.IGNORECASE,
)
"""Lines that surround an error and say nothing of it."""

_NO_ERROR = re.compile(r"\b(?:0|no) (?:errors?|failures?|failed)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^a-z\s])|(?<=[\u3002\uff01\uff1f])|\n+")
_BULLET = re.compile(r"^(?:[-*\u2022]|\d{1,3}[.)])\s+")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_FIGURE = re.compile(
    r"(?<![\w.,/-])[$\u20ac]?\d{1,9}(?:[.,]\d{1,9}){1,4}%?(?![\w/-])|(?<![\w.,/-])[$\u20ac]\d{1,9}\b"
)


@dataclass(frozen=True, slots=True)
class Mention:
    """One thing that must survive: its text on one line, the handle it came from, and the line it stood in."""

    kind: Kind
    text: str
    handle: str
    line: str = ""


def mentions(span: Span, reader: Reader | None = None) -> tuple[Mention, ...]:
    """Everything in the span that must survive, each thing once at its newest place, by kind and then in order.

    A ``reader`` that read the run before reads nothing twice.
    """
    reader = reader or Reader()
    read = [(said, reader.text(_plain(said))) for said in span.said]
    shared = _shared(lines for _, lines in read)
    found: dict[tuple[Kind, str], Mention | tuple[str, Read]] = {}
    for said, lines in read:
        for each in _sentences(said):
            key = each.kind, each.text if each.kind == "error" else normal(each.text)
            # Rules keep their first words; of the rest the newest line says most.
            if key not in found or each.kind != "constraint":
                found.pop(key, None)
                found[key] = each
        for kind, name, line in _names(said, lines, shared):
            # A run names the same thing again and again: a mention is made of it once, of its newest line.
            found.pop((kind, name), None)
            found[kind, name] = said.handle, line
    whole = [_mention(*key, each) for key, each in found.items()]
    return tuple(each for kind in KINDS for each in whole if each.kind == kind)


def _mention(kind: Kind, text: str, found: Mention | tuple[str, Read]) -> Mention:
    if isinstance(found, Mention):
        return found
    handle, line = found
    return Mention(kind, text, handle, one_line(line.raw, 120))


def _sentences(said: Said) -> Iterator[Mention]:
    """Rules, decisions and errors."""
    if said.voice in ("user", "system"):
        for sentence in sentences(_FENCED.sub("\n", said.text)):
            if _RULE.search(sentence):
                yield Mention("constraint", one_line(sentence), said.handle)
    elif said.voice in ("model", "plan", "answer"):
        for sentence in sentences(said.text):
            if decides(sentence):
                yield Mention("decision", one_line(sentence, ERROR), said.handle)
    elif said.voice == "result":
        for line in error_lines(said):
            yield Mention("error", line, said.handle)


def sentences(text: str) -> Iterator[str]:
    r"""The sentences of a text, bullets and line ends taken off.

    >>> list(sentences("- Use e.g. uv. Never pip!\nDone."))
    ['Use e.g. uv.', 'Never pip!', 'Done.']
    """
    for raw in _SENTENCE.split(text):
        if sentence := _BULLET.sub("", (raw or "").strip()):
            yield sentence


def error_lines(said: Said) -> tuple[str, ...]:
    """The lines of a result that say what failed, verbatim, the last few; else a failed result's last."""
    lines = _ends(said.text).splitlines()
    failing = islice((line for line in reversed(lines) if _is_error(line, said.failed)), MOST_ERRORS)
    chosen = list(failing)[::-1]
    if said.failed and not chosen:
        chosen = [line for line in lines if not _NOISE.fullmatch(line)][-1:]
    return tuple(one_line(line, ERROR) for line in chosen)


def _is_error(line: str, failed: bool) -> bool:
    if not _fails(line) or _NO_ERROR.search(line) or _NOISE.fullmatch(line):
        return False
    # A result that succeeded may quote the word: only lines that begin with it are errors.
    return failed or _FAILS.match(line.strip().lstrip("E> ")) is not None


def _fails(line: str) -> bool:
    return holds(line, _FAILS, _FAILING)


def _shared(texts: Iterable[Sequence[Read]]) -> frozenset[str]:
    """The identifiers that more than one text of the span names."""
    seen = Counter(name for lines in texts for name in {name for line in lines for name in line.names})
    return frozenset(name for name, times in seen.items() if times > 1)


def _names(said: Said, lines: Iterable[Read], shared: frozenset[str]) -> Iterator[tuple[Kind, str, Read]]:
    """Identifiers and figures, each with its line: every one, or of a long result those that something else names too."""
    whole = said.voice != "result" or len(said.text) <= SHORT
    for line in lines:
        every = whole or (said.failed and _fails(line.raw))
        for name in line.names[:MOST_NAMES]:
            if every or name in shared:
                kind: Kind = "path" if "/" in name else "number" if name.isdigit() else "identifier"
                yield kind, name if name.isascii() else one_line(name), line
        if every:
            for figure in _FIGURE.finditer(line.raw):
                yield "number", figure[0], line


def _plain(said: Said) -> str:
    return _ends(argument_text(said.text) if said.voice == "call" else said.text)


def _ends(text: str) -> str:
    return text if len(text) <= 2 * READ else text[:READ] + "\n" + text[-READ:]
