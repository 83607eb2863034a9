"""Whether a text tells what was erased: by a word or a line that nothing else in the run has. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pagein.events.handles import parse_handle
from pagein.search.tokenizer import terms

SHORTEST = 3
"""Characters of a term that tells: shorter ones are in everything."""

LINE = 12
"""Characters from which a line is known again as a whole."""


class Quotes:
    """Knows again what was said in ``erased`` and nowhere in ``kept``.

    Exact for names, numbers and rare words, in any order and any form of them; a paraphrase in common words it does
    not know, so what a model wrote about erased steps is never kept by it.
    """

    def __init__(self, erased: Iterable[str], kept: Iterable[str]) -> None:
        gone, left = _Said(erased), _Said(kept)
        self._terms = gone.terms - left.terms
        self._lines = gone.lines - left.lines
        self.both = gone.lines & left.lines
        """Lines that were erased and are said elsewhere too."""

    def __call__(self, text: str) -> bool:
        """True where the text tells of it."""
        return any(each in self._terms for each in terms(text)) or any(
            line in self._lines for line in lines_of(text)
        )

    def within(self, value: Any) -> bool:
        """True where a text in a JSON value tells of it."""
        return any(map(self, strings(value)))

    def without(self, value: Any, instead: str) -> Any:
        """The JSON value with ``instead`` for each text that tells of it."""
        match value:
            case str():
                return instead if self(value) else value
            case list():
                return [self.without(each, instead) for each in value]
            case dict():
                return {key: self.without(each, instead) for key, each in value.items() if not self(key)}
            case _:
                return value


class _Said:
    def __init__(self, texts: Iterable[str]) -> None:
        self.terms: set[str] = set()
        self.lines: set[str] = set()
        for text in texts:
            self.terms.update(each for each in terms(text) if len(each) >= SHORTEST or not each.isascii())
            self.lines.update(lines_of(text))


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text that can be known again."""
    return (bare for line in text.splitlines() if len(bare := line.strip()) >= LINE)


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from strings(each)
        case dict():
            for key, each in value.items():
                yield key
                yield from strings(each)


def parsed(text: str) -> Any:
    """The value of JSON text; the text itself where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def names(value: Any, positions: Iterable[int]) -> bool:
    """True where a text in a JSON value is the handle of one of these positions, alone."""
    wanted = set(positions)
    found = (parse_handle(each) for each in strings(value) if len(each) <= 24)
    return any(each is not None and each.last == each.first + 1 and each.first in wanted for each in found)
