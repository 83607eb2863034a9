"""What a line says, found out once: its bare text, what it names, what of that it tells enough about. Bounded.

A run shows the same lines again and again, as recorded, in a view, in what is measured of it; to find the names in a
line costs ten times as much as to remember it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from pagein.events.identifiers import identifiers, words

ROOM = 1_000_000
"""Characters of the lines that are remembered, about: as many again of those that were before them."""

EACH = 100
"""Characters that a line is taken to cost beside its own."""

LEARNT = 100_000
"""Characters at each end of one text that are learnt from; the middle of a longer one is in the log only."""

LINE = 240
"""Characters of a line that are kept in mind as one; a longer one is taken in pieces."""

_PART = re.compile(r"[,;.:}\])]\s*")
_FAILS = re.compile(
    r"\b(?:\w*error|\w*exception|traceback|fail(?:s|ed|ure)?|fatal|denied|refused|cannot|invalid|no such|not found)\b",
    re.IGNORECASE,
)
_FAILING = (
    "error", "exception", "traceback", "fail", "fatal", "denied", "refused", "cannot", "invalid", "no such", "not found"
)  # fmt: skip
"""One of these is in every ASCII line in which ``_FAILS`` finds anything."""

_DECIDES = re.compile(
    r"\b(?:decid(?:e|ed|ing)|cho(?:se|osing)|instead of|rather than|(?:will|'ll) (?:use|go with|keep)|going with|opt(?:ed|ing)? for)\b",
    re.IGNORECASE,
)
_DECIDING = ("decid", "cho", "instead", "rather", "ll ", "going", "opt")
"""One of these is in every ASCII line in which ``_DECIDES`` finds anything."""

_STEM = re.compile(r"([a-z]{3,5})[a-z]*")
_NUMBERED = re.compile(r"(?:[\w./-]*[:-])?\d{1,7}\s*[:|\t-]\s?|\d{1,7}\s\s+")


@dataclass(slots=True)
class Read:
    """A line as it was read: ``key`` is its bare text, ``names`` its identifiers in order, one as often as it stands.

    What costs more is found out when it is first asked for.
    """

    raw: str
    key: str
    names: tuple[str, ...]
    _grounded: frozenset[str] | None = None
    _stems: tuple[str, ...] | None = None
    _fails: bool | None = None
    _decides: bool | None = None

    @property
    def grounded(self) -> frozenset[str]:
        """The names of which the line says enough to tell what they are about."""
        if self._grounded is None:
            self._grounded = grounded(self.raw, self.names)
        return self._grounded

    @property
    def stems(self) -> tuple[str, ...]:
        """The beginnings of its words, each once."""
        if self._stems is None:
            self._stems = tuple(dict.fromkeys(stems(self.key)))
        return self._stems

    @property
    def fails(self) -> bool:
        """True where it reads like an error."""
        if self._fails is None:
            self._fails = fails(self.key)
        return self._fails

    @property
    def decides(self) -> bool:
        """True where it reads like a decision."""
        if self._decides is None:
            self._decides = decides(self.key)
        return self._decides


class Reader:
    """Reads lines and texts, and remembers those read lately."""

    def __init__(self) -> None:
        self._lines: dict[str, Read] = {}
        self._texts: dict[str, tuple[Read, ...]] = {}
        self._before: dict[str, Read] = {}
        self._left = ROOM

    def line(self, raw: str) -> Read:
        """What a line says."""
        found = self._lines.get(raw)
        if found is None:
            found = self._before.get(raw) or Read(raw, bare(raw), tuple(identifiers(raw)))
            self._spend(len(raw))
            self._lines[raw] = found
        return found

    def text(self, text: str) -> tuple[Read, ...]:
        """What each line of a text says."""
        found = self._texts.get(text)
        if found is None:
            found = tuple(map(self.line, text.splitlines()))
            self._spend(len(text))
            self._texts[text] = found
        return found

    def _spend(self, characters: int) -> None:
        self._left -= characters + EACH
        if self._left < 0:
            self._before, self._lines, self._texts, self._left = self._lines, {}, {}, ROOM


def grounded(line: str, names: Iterable[str]) -> frozenset[str]:
    """Those of the names of which the line says enough to tell what they are about."""
    return frozenset(name for name in names if grounds(line, name))


def grounds(line: str, name: str) -> bool:
    """True where a line says enough beside a name: three other words."""
    others: set[str] = set()
    for word in words(line.replace(name, " ")):
        others.add(word)
        if len(others) == 3:  # a line may be long, and have many names
            return True
    return False


def bare(line: str) -> str:
    """A line without the number or the place a viewer put before it, so that one line is one line.

    >>> bare("  12: return x"), bare("a.py:7:def f():")
    ('return x', 'def f():')
    """
    stripped = line.strip()
    found = _NUMBERED.match(stripped)
    return stripped[found.end() :].strip() if found else stripped


def fails(line: str) -> bool:
    """True where a line reads like an error.

    >>> fails("ValueError: no"), fails("It fails."), fails("terrorists")
    (True, True, False)
    """
    return holds(line, _FAILS, _FAILING)


def decides(text: str) -> bool:
    """True where a text reads like a decision.

    >>> decides("I will use the cache instead."), decides("I look for the cache.")
    (True, False)
    """
    return holds(text, _DECIDES, _DECIDING)


def holds(line: str, pattern: re.Pattern[str], parts: Iterable[str]) -> bool:
    """True where the pattern is found in the line.

    One of ``parts`` is in every ASCII line, in lower case, that has it: to look for them takes a third of its time.
    """
    if line.isascii():
        lowered = line.lower()
        for each in parts:
            if each in lowered:
                break
        else:
            return False
    return pattern.search(line) is not None


def stems(text: str) -> list[str]:
    """The beginnings of the words of three letters and more.

    >>> stems("It fails in foo_barring!")
    ['fails', 'foo', 'barri']
    """
    return _STEM.findall(text.lower()) if text.isascii() else list(map(stem, words(text)))


def stem(word: str) -> str:
    """The beginning of a word, so that its forms are one in most languages."""
    return word[:5]


def lines_of(text: str, most: int) -> Iterator[str]:
    """The lines of a text worth learning, ``most`` of them, long ones in pieces; of a very long text so many of either end."""
    ends = (text,) if len(text) <= 2 * LEARNT else (text[:LEARNT], text[-LEARNT:])
    for end in ends:
        for line in islice(end.splitlines(), most):
            yield from (line,) if len(line) <= LINE else islice(_pieces(line), most)


def _pieces(line: str) -> Iterator[str]:
    """A long line (JSON, a log, minified code) in pieces of bounded length, parted behind a mark where there is one."""
    start = 0
    while start < len(line):
        stop = start + LINE
        if stop < len(line):
            stop = max((at.end() for at in _PART.finditer(line, start + LINE // 2, stop)), default=stop)
        yield line[start:stop]
        start = stop
