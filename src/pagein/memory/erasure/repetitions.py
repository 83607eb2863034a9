"""Detects texts that repeat erased content: a term or a line that nothing else in the run has. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pagein.events.handles import parse_handle
from pagein.search.tokenizer import terms

MIN_TERM_CHARS = 3
"""Characters of a term that tells: shorter ones are in everything."""

MIN_LINE_CHARS = 12
"""Characters from which a line is known again as a whole."""


class Repetitions:
    """A detector of terms and lines that are in the ``erased`` texts and in none of the ``remaining``.

    Exact for names, numbers and rare words, in any order and form. It misses a paraphrase in common words, so a
    model's text about erased steps is never kept because of it.
    """

    def __init__(self, erased: Iterable[str], remaining: Iterable[str]) -> None:
        erased_words, other_words = _Vocabulary(erased), _Vocabulary(remaining)
        self._terms = erased_words.terms - other_words.terms
        self._lines = erased_words.lines - other_words.lines
        self.shared_lines = erased_words.lines & other_words.lines
        """Lines that were erased and are said elsewhere too."""

    def __call__(self, text: str) -> bool:
        """True where the text repeats erased content."""
        return any(term in self._terms for term in terms(text)) or any(
            line in self._lines for line in recognizable_lines(text)
        )

    def found_in(self, value: Any) -> bool:
        """True where a text in a JSON value repeats erased content."""
        return any(map(self, strings_in(value)))

    def replace_in(self, value: Any, instead: str) -> Any:
        """Replace each text in a JSON value that repeats erased content by ``instead``."""
        match value:
            case str():
                return instead if self(value) else value
            case list():
                return [self.replace_in(item, instead) for item in value]
            case dict():
                return {key: self.replace_in(item, instead) for key, item in value.items() if not self(key)}
            case _:
                return value


class _Vocabulary:
    def __init__(self, texts: Iterable[str]) -> None:
        self.terms: set[str] = set()
        self.lines: set[str] = set()
        for text in texts:
            self.terms.update(term for term in terms(text) if len(term) >= MIN_TERM_CHARS or not term.isascii())
            self.lines.update(recognizable_lines(text))


def recognizable_lines(text: str) -> Iterator[str]:
    """The lines of a text that are long enough to be recognised."""
    return (bare for line in text.splitlines() if len(bare := line.strip()) >= MIN_LINE_CHARS)


def strings_in(value: Any) -> Iterator[str]:
    """All texts in a JSON value."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from strings_in(item)
        case dict():
            for key, item in value.items():
                yield key
                yield from strings_in(item)


def parse_json(text: str) -> Any:
    """The value of JSON text; the text itself where it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def names_position(value: Any, positions: Iterable[int]) -> bool:
    """True where a text in a JSON value is the handle of one of these positions alone."""
    numbers = set(positions)
    handles = (parse_handle(handle) for handle in strings_in(value) if len(handle) <= 24)
    return any(handle is not None and handle.last == handle.first + 1 and handle.first in numbers for handle in handles)
