"""``format_memory_for_injection``: deer-flow's function, with the ranking that its paper promised.

A drop-in for its ``memory.json``: the profile, the history and the facts as plain dicts. Nothing is stored. The index of the last few
memories is kept in the process, by what they say, so that a call reads only what is new.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from operator import itemgetter
from typing import Any

from pagein._common.validation import is_number
from pagein.facts.block import GUARANTEED_SHARE, MIN_LINE_TOKENS, checked_tokens
from pagein.facts.fact import GUARANTEED, MAX_CONTENT_CHARS, content_key
from pagein.facts.ranking import Weights
from pagein.search.tfidf import TfIdf
from pagein.summaries.sanitize import one_line
from pagein.tokens import TokenCounter
from pagein.tokens.encodings import Encoding

_PROFILE = (("workContext", "Work"), ("personalContext", "Personal"), ("topOfMind", "Current Focus"))
_HISTORY = (("recentMonths", "Recent"), ("earlierContext", "Earlier"), ("longTermBackground", "Background"))

_DEFAULT_COUNTER = Encoding("cl100k_base")

MAX_INDEXES = 4
"""Memories whose index is kept."""

MAX_TEXTS = 32
"""Rendered texts kept of one memory, each for a context and a limit."""

MAX_CHANGED_SHARE = 0.5
"""Share of an index's facts that may have changed before a new one is built."""

_Row = tuple[Any, Any, Any, Any]
"""Content, category, confidence and error of a fact, as they came."""

_Section = tuple[str, tuple[str, ...]]
"""A title and its lines."""


def format_memory_for_injection(
    memory_data: Mapping[str, Any],
    max_tokens: int = 2000,
    current_context: str | None = None,
    *,
    similarity_weight: float = 0.6,
    confidence_weight: float = 0.4,
    counter: TokenCounter | None = None,
) -> str:
    """Render deer-flow's memory in at most ``max_tokens`` tokens: profile, history, then the ranked facts.

    Facts are ranked by similarity to ``current_context`` and confidence, without a context by confidence alone. Corrections
    and constraints come first; a fact that does not fit is skipped. Tokens are counted exactly, in cl100k_base without a
    ``counter``. Invalid values (no text, a confidence that is no number) are ignored, as in deer-flow. Texts are escaped as
    HTML. Raises ConfigurationError for weights that do not sum to 1.
    """
    weights = Weights(similarity_weight, confidence_weight)
    checked_tokens(max_tokens, "max_tokens")
    data = memory_data if isinstance(memory_data, Mapping) else {}
    parts = (("User Context", "user", _PROFILE), ("History", "history", _HISTORY))
    sections = tuple((title, tuple(_profile(data.get(part), names))) for title, part, names in parts)
    indexes = _kept_indexes()
    with indexes.lock:
        index = indexes.find(data.get("facts"), weights)
        index.use_counter(counter or _DEFAULT_COUNTER)
        return index.text(current_context or "", max_tokens, sections)


def _render(index: _FactIndex, context: str, max_tokens: int, sections: Sequence[_Section]) -> str:
    lines, counter = _select_lines(index, context, max_tokens), index.counter
    while True:
        facts = "\n".join(["Facts:", *lines]) if lines else ""
        whole = _with_profile(sections, facts, max_tokens, counter)
        if counter.text(whole) <= max_tokens:
            return whole
        lines = lines[:-1]  # joined lines can cost more tokens


def _select_lines(index: _FactIndex, context: str, max_tokens: int) -> list[str]:
    """The lines that fit, guaranteed ones first; those that do not fit are skipped."""
    cost = index.cost
    room = max_tokens - index.counter.text("Facts:\n")
    order = index.order(context)
    first, spent = _fill(
        (number for number in order if index.lines[number].is_sure), int(room * GUARANTEED_SHARE), cost
    )
    taken = set(first)
    rest, _ = _fill((number for number in order if number not in taken), room - spent, cost)
    return [index.lines[number].text for number in (*first, *rest)]


def _fill(numbers: Iterable[int], room: int, cost: Callable[[int, int], int]) -> tuple[list[int], int]:
    """The numbers whose lines fit, in order, and what they cost together."""
    fitting, left = [], room
    for number in numbers:
        if left < MIN_LINE_TOKENS:
            break
        price = cost(number, left)
        if price <= left:
            fitting.append(number)
            left -= price
    return fitting, room - left


def _with_profile(sections: Sequence[_Section], facts: str, max_tokens: int, counter: TokenCounter) -> str:
    """The facts, preceded by those lines of profile and history that fit beside them."""
    shown: list[str] = []
    for title, wanted in sections:
        lines: list[str] = []
        for line in wanted:
            section = f"{title}:\n" + "\n".join([*lines, line])
            if counter.text("\n\n".join([*shown, section, facts])) <= max_tokens:
                lines.append(line)
        if lines:
            shown.append(f"{title}:\n" + "\n".join(lines))
    return "\n\n".join(filter(None, [*shown, facts]))


def _profile(part: object, names: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for key, title in names:
        section = part.get(key) if isinstance(part, Mapping) else None
        summary = section.get("summary") if isinstance(section, Mapping) else section
        if isinstance(summary, str) and summary.strip():
            yield f"- {title}: {_escape_line(summary)}"


# -- the index of one memory's facts


def _columns(facts: object) -> tuple[list[Any], ...]:
    """What is read of the facts, as columns, which compare fast; each fact whole where one is of another shape."""
    items = facts if isinstance(facts, list | tuple) else ()
    try:
        columns = [list(map(itemgetter(name), items)) for name in ("content", "category", "confidence")]
        return (*columns, [item.get("sourceError") for item in items])
    except (TypeError, KeyError, AttributeError):
        return (_rows(items),)


def _rows(facts: object) -> list[_Row]:
    """What is read of each fact, as it came."""
    return [
        (item["content"], item.get("category"), item.get("confidence"), item.get("sourceError"))
        for item in (facts if isinstance(facts, list | tuple) else ())
        if isinstance(item, dict | Mapping) and "content" in item
    ]


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    is_sure: bool
    """True for a correction or a constraint."""
    words: int
    """Words of the line: no vocabulary of the encodings joins two words in one token."""


class _FactIndex:
    """The facts of one memory: their lines by number, the ranking, and the texts rendered last. Changed in place."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.columns: tuple[list[Any], ...] = ()
        self.lines: dict[int, _Line] = {}
        self._numbers: dict[Hashable, int] = {}
        self._index = TfIdf()
        self._places: list[int] = []
        self.counter: TokenCounter = _DEFAULT_COUNTER
        self._costs: dict[int, int] = {}
        self.text = functools.lru_cache(MAX_TEXTS)(functools.partial(_render, self))
        """Renders the facts for a context, a limit and sections, each of the last ones once."""

    def update(self, rows: list[_Row]) -> None:
        """Make the index that of these facts; only those that are new are read."""
        usable = _distinct_rows(rows)
        for key in [key for key in self._numbers if key not in usable]:
            self._index.drop(number := self._numbers.pop(key))
            del self.lines[number]
        free = iter(sorted(set(range(len(usable))) - set(self.lines)))
        for key, row in usable.items():
            if key not in self._numbers:
                self._add(next(free), key, row)
        self._places = [0] * (max(self.lines, default=-1) + 1)
        for place, key in enumerate(usable):
            self._places[self._numbers[key]] = place
        self.text.cache_clear()

    def _add(self, number: int, key: Hashable, row: _Row) -> None:
        content, label, confidence, avoid = row
        category = _escape_line(label).lower() if isinstance(label, str) and label.strip() else "context"
        avoided = f" (avoid: {_escape_line(avoid)})" if isinstance(avoid, str) and avoid.strip() else ""
        certainty = _confidence(confidence)
        text = f"- [{category} | {certainty:.2f}] {_escape_line(content)}{avoided}"
        self._numbers[key] = number
        self.lines[number] = _Line(text, category in GUARANTEED, text.count(" ") + 1)
        self._index.add(number, content.strip()[:MAX_CONTENT_CHARS])
        self._index.weigh(number, self.weights.similarity, self.weights.confidence * certainty)
        self._costs.pop(number, None)

    def changed_share(self, rows: list[_Row]) -> float:
        """Share of the given facts that are not in the index, judged by a few of them."""
        sample = rows[:: max(1, len(rows) // 64)]
        return sum(row not in self._numbers for row in map(_row_key, sample)) / max(1, len(sample))

    def order(self, context: str) -> list[int]:
        """The numbers of the facts, best first; among equals in the order of the memory."""
        return self._index.order(context, self._places)

    def use_counter(self, counter: TokenCounter) -> None:
        """Count with this counter from now on."""
        if counter != self.counter:
            self.counter = counter
            self._costs.clear()
            self.text.cache_clear()

    def cost(self, number: int, room: int) -> int:
        """The tokens of a line; where it has more words than ``room``, their number is enough."""
        line = self.lines[number]
        if line.words > room and isinstance(self.counter, Encoding):
            return line.words
        tokens = self._costs.get(number)
        if tokens is None:
            tokens = self._costs[number] = self.counter.text(line.text) + 1
        return tokens


def _distinct_rows(rows: list[_Row]) -> dict[Hashable, _Row]:
    """The facts that say something, each once, by what they say."""
    contents: set[str] = set()
    usable: dict[Hashable, _Row] = {}
    for row in rows:
        content = row[0]
        if not isinstance(content, str) or not (words := content_key(content)) or words in contents:
            continue
        contents.add(words)
        usable[_row_key(row)] = row
    return usable


def _row_key(row: _Row) -> Hashable:
    content, category, confidence, avoid = row
    return (
        content if isinstance(content, str) else None,
        category if isinstance(category, str) else None,
        _confidence(confidence),
        avoid if isinstance(avoid, str) else None,
    )


class _Indexes:
    """The indexes of the last few memories, one caller at a time, who has the ``lock``."""

    def __init__(self) -> None:
        self._indexes: list[_FactIndex] = []
        self.lock = threading.Lock()

    def find(self, facts: object, weights: Weights) -> _FactIndex:
        """The index of these facts, brought up to date; the most recent one is last."""
        columns = _columns(facts)
        same = [index for index in self._indexes if index.weights == weights]
        index = next((index for index in reversed(same) if index.columns == columns), None)
        if index is None:
            rows = _rows(facts)
            near = min(same, key=lambda index: index.changed_share(rows), default=None)
            if near is None or near.changed_share(rows) > MAX_CHANGED_SHARE:
                near = _FactIndex(weights)
            near.update(rows)
            near.columns = columns
            index = near
        self._indexes = [*(other for other in self._indexes if other is not index), index][-MAX_INDEXES:]
        return index


@functools.cache
def _kept_indexes() -> _Indexes:
    return _Indexes()


def _confidence(value: object) -> float:
    return min(1.0, max(0.0, float(value))) if is_number(value) and math.isfinite(value) else 0.0


def _escape_line(text: str) -> str:
    """The text on one line. It is escaped first, so that cutting or joining cannot make a tag."""
    return one_line(escape(text, quote=False), MAX_CONTENT_CHARS)
