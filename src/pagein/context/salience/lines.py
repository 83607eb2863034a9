"""A parser of lines with a bounded cache: the text without its line number, the identifiers, the kind of the line.

A run parses the same lines many times. Parsing a line costs ten times as much as looking it up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from pagein.events.identifiers import identifiers, words
from pagein.events.quoting import unquote_lines

CACHE_MAX_CHARS = 1_000_000
"""Characters of the lines in each of the cache's two generations, about."""

CACHED_LINE_EXTRA_CHARS = 100
"""Characters added to a line's own length for its place in the cache."""

LEARNED_END_MAX_CHARS = 100_000
"""Characters read at each end of a text; the middle of a longer text is skipped."""

LINE_MAX_CHARS = 240
"""Characters of a tracked line; a longer one is split."""

_PIECE_END = re.compile(r"[,;.:}\])]\s*")
_RECORD_END = re.compile(r"\},?\s*")
_FAILURE = re.compile(
    r"(?i)\b(?:\w*error|\w*exception|traceback|fail(?:s|ed|ure)?|fatal|denied|refused|cannot|invalid|no such|not found)\b"
)
_FAILURE_PARTS = (
    "error", "exception", "traceback", "fail", "fatal", "denied", "refused", "cannot", "invalid", "no such", "not found"
)  # fmt: skip
"""One of these is in every ASCII line in which ``_FAILURE`` finds anything."""

_DECISION = re.compile(
    r"(?i)\b(?:decid(?:e|ed|ing)|cho(?:se|osing)|instead of|rather than|(?:will|'ll) (?:use|go with|keep)|going with|opt(?:ed|ing)? for)\b"
)
_DECISION_PARTS = ("decid", "cho", "instead", "rather", "ll ", "going", "opt")
"""One of these is in every ASCII line in which ``_DECISION`` finds anything."""

CONTEXT_MAX_CHARS = 2_000
"""Characters of a line in which a name's context is looked for: JSON in one line may have 100,000 names and two words."""

_STEM = re.compile(r"([a-z]{3,5})[a-z]*")
_LINE_NUMBER = re.compile(
    r"(?:[\w./-]*[:-])?\d{1,7}\s*[:|\t\u2192-]\s?|\d{1,7}\s\s+|(?:[-*]\s)?\[\d{1,7}\]\s?(?=\S)|uid=\w{1,16}\s"
)
_ELEMENT_REF = re.compile(r" \[ref=\w{1,16}\]")
"""The number of a page's element at the end of its line; others stand before it: ``[12] link``, ``uid=3_12 link``."""


NO_ERROR = re.compile(
    r"""\W*(?:[\w-]{1,30}[ _]){0,3}(?:errors?|exceptions?|failures?|failed)(?:[ _](?:output|count|found|message))?["']?\s*[:=]\s*
    (?:\W*(?:none|null|nil|false|no|0|n/a|empty)\W* | [-"'\[\](){}][-"'\[\](){},\s]*)""",
    re.IGNORECASE | re.VERBOSE,
)
"""A line by which a program says that it has no error, such as ``Error: (none)``."""


FILE_LINE = re.compile(r"\s*\d+\u2192|(?:[^\s:]*-)?\d+-\s")
"""The beginning of a file's line that a tool shows with its number: what it says did not happen now."""


@dataclass(slots=True)
class ParsedLine:
    """A parsed line: ``key`` is its text without a line number, ``names`` its identifiers in order, with repetitions.

    The rest is computed on first use.
    """

    raw: str
    key: str
    names: tuple[str, ...]
    _names_with_context: frozenset[str] | None = None
    _stems: tuple[str, ...] | None = None
    _is_failure: bool | None = None
    _is_decision: bool | None = None

    @property
    def names_with_context(self) -> frozenset[str]:
        """The names that have enough context in the line, see ``has_context``."""
        if self._names_with_context is None:
            self._names_with_context = select_with_context(self.raw, self.names)
        return self._names_with_context

    @property
    def stems(self) -> tuple[str, ...]:
        """The stems of its words, each once."""
        if self._stems is None:
            self._stems = tuple(dict.fromkeys(stems(self.key)))
        return self._stems

    @property
    def is_failure(self) -> bool:
        """True if it reads like an error."""
        if self._is_failure is None:
            self._is_failure = is_failure(self.key)
        return self._is_failure

    @property
    def is_decision(self) -> bool:
        """True if it reads like a decision."""
        if self._is_decision is None:
            self._is_decision = is_decision(self.key)
        return self._is_decision


class LineParser:
    """Parses lines and texts, and caches the recent ones."""

    def __init__(self) -> None:
        self._lines: dict[str, ParsedLine] = {}
        self._texts: dict[str, tuple[ParsedLine, ...]] = {}
        self._older_lines: dict[str, ParsedLine] = {}
        self._chars_left = CACHE_MAX_CHARS

    def parse_line(self, raw: str) -> ParsedLine:
        """Parse a line, or look it up."""
        parsed = self._lines.get(raw)
        if parsed is None:
            parsed = self._older_lines.get(raw) or ParsedLine(raw, strip_line_number(raw), tuple(identifiers(raw)))
            self._spend(len(raw))
            self._lines[raw] = parsed
        return parsed

    def parse_text(self, text: str) -> tuple[ParsedLine, ...]:
        """Parse each line of a text, or look the text up."""
        parsed = self._texts.get(text)
        if parsed is None:
            parsed = tuple(map(self.parse_line, text.splitlines()))
            self._spend(len(text))
            self._texts[text] = parsed
        return parsed

    def _spend(self, characters: int) -> None:
        self._chars_left -= characters + CACHED_LINE_EXTRA_CHARS
        if self._chars_left < 0:
            self._older_lines, self._lines, self._texts = self._lines, {}, {}
            self._chars_left = CACHE_MAX_CHARS


def select_with_context(line: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that have context in the line."""
    return frozenset(name for name in set(names) if has_context(line, name))


def has_context(line: str, name: str) -> bool:
    """True if the line has at least three other words beside the name; of a long line only its beginning is read."""
    others: set[str] = set()
    for word in words(line[:CONTEXT_MAX_CHARS].replace(name, " ")):
        others.add(word)
        if len(others) == 3:  # a line may be long and have many names
            return True
    return False


def strip_line_number(line: str) -> str:
    """Strip what a viewer put before a line, its number or location, the number of a page's element, or the mark of a
    quoted line, so that equal lines compare equal.

    >>> strip_line_number("  12: return x"), strip_line_number("a.py:7:def f():")
    ('return x', 'def f():')
    >>> strip_line_number("[1402] link 'Home'"), strip_line_number('- link "Home" [ref=e12]:')
    ("link 'Home'", '- link "Home":')
    """
    stripped = unquote_lines(line.strip())
    if " [ref=" in stripped:
        stripped = _ELEMENT_REF.sub("", stripped)
    match = _LINE_NUMBER.match(stripped)
    return stripped[match.end() :].strip() if match else stripped


def is_failure(line: str) -> bool:
    r"""True if a line reads like an error.

    >>> is_failure("ValueError: no"), is_failure("It fails."), is_failure("Error: (none)"), is_failure("terrorists")
    (True, True, False, False)
    >>> is_failure("  605\u2192\t\treturn fmt.Errorf(...)"), is_failure("a_test.go-70- t.Fatalf(failed)")
    (False, False)
    """
    if not matches_pattern(line, _FAILURE, _FAILURE_PARTS):
        return False
    return NO_ERROR.fullmatch(line.strip()) is None and FILE_LINE.match(line) is None


def is_decision(text: str) -> bool:
    """True if a text reads like a decision.

    >>> is_decision("I will use the cache instead."), is_decision("I look for the cache.")
    (True, False)
    """
    return matches_pattern(text, _DECISION, _DECISION_PARTS)


def matches_pattern(line: str, pattern: re.Pattern[str], parts: Iterable[str]) -> bool:
    """True if the pattern is found in the line.

    Every ASCII line that matches has one of ``parts`` in lower case; looking for these takes a third of the time.
    """
    if line.isascii() and not has_part(line, parts):
        return False
    return pattern.search(line) is not None


def has_part(text: str, parts: Iterable[str]) -> bool:
    """True if one of the parts, which are in lower case, is in the text. Four times as fast as ``any``."""
    lowered = text.lower()
    for part in parts:  # noqa: SIM110 - see above
        if part in lowered:
            return True
    return False


def stems(text: str) -> list[str]:
    """Return the stems of the words of three letters and more.

    >>> stems("It fails in foo_barring!")
    ['fails', 'foo', 'barri']
    """
    return _STEM.findall(text.lower()) if text.isascii() else list(map(stem, words(text)))


def stem(word: str) -> str:
    """Return the first five characters of a word, which its forms share in most languages."""
    return word[:5]


def lines_of(text: str, max_lines: int) -> Iterator[str]:
    """Yield ``max_lines`` lines of a text, long ones in pieces; of a very long text as many of either end."""
    is_short = len(text) <= 2 * LEARNED_END_MAX_CHARS
    ends = (text,) if is_short else (text[:LEARNED_END_MAX_CHARS], text[-LEARNED_END_MAX_CHARS:])
    for end in ends:
        for line in islice(end.splitlines(), max_lines):
            yield from (line,) if len(line) <= LINE_MAX_CHARS else islice(_pieces(line), max_lines)


def _pieces(line: str) -> Iterator[str]:
    """Split a long line (JSON, a log, minified code) into pieces of bounded length, behind punctuation if there is any."""
    start = 0
    while start < len(line):
        stop = start + LINE_MAX_CHARS
        if stop < len(line):
            ends = [at.end() for at in _RECORD_END.finditer(line, start, stop)]
            ends = ends or [at.end() for at in _PIECE_END.finditer(line, start + LINE_MAX_CHARS // 2, stop)]
            stop = max(ends, default=stop)
        yield line[start:stop]
        start = stop
