"""Key items: what in a span must survive its summary, found by deterministic rules.

Rules and decisions are sentences; errors are lines; the rest are identifiers. In texts of the user and the model, and
in short results, every identifier counts; in a long result those in lines that report a failure, and those that the run
names elsewhere too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pagein.context.ledger.error_lines import both_ends, error_key, find_errors
from pagein.context.salience.lines import LineParser, ParsedLine, is_decision
from pagein.events.identifiers import argument_text
from pagein.summaries.sanitize import normalize_text, one_line
from pagein.summaries.spans import QuotedText, Span

KeyItemKind = Literal["constraint", "error", "path", "identifier", "number", "decision"]
KINDS: tuple[KeyItemKind, ...] = get_args(KeyItemKind)
"""The kinds of key items, most important first."""

SHORT_RESULT_CHARS = 1_500
"""Characters up to which every identifier of a result counts."""

DECISION_MAX_CHARS = 300
"""Characters of a decision that must survive."""

MAX_NAMES_PER_LINE = 200
"""Maximum identifiers of one line."""

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
"""Words of a rule in English, German, French, Spanish, Italian, Portuguese, Russian, Chinese, Japanese, Korean."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^a-z\s])|(?<=[\u3002\uff01\uff1f])|\n+")
_BULLET = re.compile(r"^(?:[-*\u2022]|\d{1,3}[.)])\s+")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_FIGURE = re.compile(
    r"[$\u20ac\d](?<![\w.,/-].)(?:(?:(?<=\d)\d{0,8}|(?<=[$\u20ac])\d{1,9})(?:[.,]\d{1,9}){1,4}%?(?![\w/-])|(?<=[$\u20ac])\d{1,9}\b)"
)
"""A number with a mark in it, or an amount. It begins with its first characters, as a search takes a third of the time then."""


@dataclass(frozen=True, slots=True)
class KeyItem:
    """One thing that must survive: its text on one line, the handle it came from, and the line it stood in."""

    kind: KeyItemKind
    text: str
    handle: str
    line: str = ""


def find_key_items(span: Span, parser: LineParser | None = None) -> tuple[KeyItem, ...]:
    """Find the key items of a span, each once at its newest place, by kind and then in order.

    A ``parser`` that parsed the run before has its lines cached.
    """
    parser = parser or LineParser()
    parsed = [(quoted, parser.parse_text(_readable_text(quoted))) for quoted in span.texts]
    repeated = _repeated_names(lines for _, lines in parsed)
    newest: dict[tuple[KeyItemKind, str], KeyItem | tuple[str, ParsedLine]] = {}
    for quoted, lines in parsed:
        for item in _sentence_items(quoted):
            key = item.kind, error_key(item.text) if item.kind == "error" else normalize_text(item.text)
            # Rules keep their first wording; for the rest the newest line says most.
            if key not in newest or item.kind != "constraint":
                newest.pop(key, None)
                newest[key] = item
        for kind, name, line in _name_items(quoted, lines, repeated):
            # A run names the same thing many times: only the newest line counts.
            newest.pop((kind, name), None)
            newest[kind, name] = quoted.handle, line
    items = [_key_item(*key, source) for key, source in newest.items()]
    return tuple(item for kind in KINDS for item in items if item.kind == kind)


def _key_item(kind: KeyItemKind, text: str, source: KeyItem | tuple[str, ParsedLine]) -> KeyItem:
    if isinstance(source, KeyItem):
        return source
    handle, line = source
    return KeyItem(kind, text, handle, one_line(line.raw, 120))


def _sentence_items(quoted: QuotedText) -> Iterator[KeyItem]:
    """Rules, decisions and errors."""
    if quoted.speaker in ("user", "system"):
        for sentence in split_sentences(_FENCED.sub("\n", quoted.text)):
            if _RULE.search(sentence):
                yield KeyItem("constraint", one_line(sentence), quoted.handle)
    elif quoted.speaker in ("model", "plan", "answer"):
        for sentence in split_sentences(quoted.text):
            if is_decision(sentence):
                yield KeyItem("decision", one_line(sentence, DECISION_MAX_CHARS), quoted.handle)
    elif quoted.speaker == "result":
        for line in find_errors(quoted.text, failed=quoted.failed):
            yield KeyItem("error", one_line(line), quoted.handle)


def split_sentences(text: str) -> Iterator[str]:
    r"""Split a text into sentences, without bullets and line ends.

    >>> list(split_sentences("- Use e.g. uv. Never pip!\nDone."))
    ['Use e.g. uv.', 'Never pip!', 'Done.']
    """
    for raw in _SENTENCE.split(text):
        if sentence := _BULLET.sub("", (raw or "").strip()):
            yield sentence


def _repeated_names(texts: Iterable[Sequence[ParsedLine]]) -> frozenset[str]:
    """Identifiers that more than one text of the span names."""
    counts = Counter(name for lines in texts for name in {name for line in lines for name in line.names})
    return frozenset(name for name, times in counts.items() if times > 1)


def _name_items(
    quoted: QuotedText, lines: Iterable[ParsedLine], repeated: frozenset[str]
) -> Iterator[tuple[KeyItemKind, str, ParsedLine]]:
    """Identifiers and figures with their lines: all, or from a long result those that another text names too."""
    is_whole = quoted.speaker != "result" or len(quoted.text) <= SHORT_RESULT_CHARS
    for line in lines:
        all_names = is_whole or (quoted.failed and line.is_failure)
        for name in line.names[:MAX_NAMES_PER_LINE]:
            if all_names or name in repeated:
                kind: KeyItemKind = "path" if "/" in name else "number" if name.isdigit() else "identifier"
                yield kind, name if name.isascii() else one_line(name), line
        if all_names:
            for figure in _FIGURE.finditer(line.raw):
                yield "number", figure[0], line


def _readable_text(quoted: QuotedText) -> str:
    return both_ends(argument_text(quoted.text) if quoted.speaker == "call" else quoted.text)
