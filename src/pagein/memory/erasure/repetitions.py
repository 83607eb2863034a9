"""Detects texts that repeat erased content: a term or a line that nothing else in the run has. No I/O."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pagein._common.json_values import strings_in
from pagein.events.handles import Handle, parse_handle
from pagein.search.tokenizer import terms

MIN_TERM_CHARS = 3
"""Characters of a term that tells: shorter ones are in everything."""

MIN_LINE_CHARS = 12
"""Characters from which a line is known again as a whole."""


PIECE_MIN_CHARS = 4
"""Characters from which a piece of a word tells; 2 in scripts that write words with few."""

TELLING_MIN_BYTES, TELLING_MAX = 8, 32
"""Bytes of a word that no file has by chance, and the number of words that it is searched for."""

PHRASE_WORDS = 4
"""Words in a row that are known again, however the line around them was clipped or joined."""

LIBRARY_WORDS = """
Out of view, but for the user's words and what else is shown. Also named: user: characters left out lines expand for more
the result of this call was left out of view arguments thinking content observation handle record summary earlier erased
objective state constraints tasks dead ends artifacts errors decisions questions done hints gave nothing image
"""
"""Words that the library itself puts into extracts, stubs and summaries: nobody said them."""

_WORD = re.compile(r"\w+")


class Repetitions:
    """A detector of texts that repeat what was said in the ``erased`` texts and in none of the ``remaining``.

    It knows terms, lines, pieces of words (a clip ends anywhere) and phrases of a few words. Exact for names, numbers
    and rare words, in any order and form. It misses a paraphrase in common words, so a model's text about erased steps
    is never kept because of it.
    """

    def __init__(self, erased: Iterable[str], remaining: Iterable[str]) -> None:
        erased_words, other_words = _Vocabulary(erased), _Vocabulary((*remaining, LIBRARY_WORDS))
        self._terms = erased_words.terms - other_words.terms
        self._lines = erased_words.lines - other_words.lines
        self._phrases = erased_words.phrases - other_words.phrases
        self._erased, self._remaining = erased_words, other_words
        self._pieces: dict[str, bool] = {}
        long = (word for word in erased_words.words - other_words.words if len(word.encode()) >= TELLING_MIN_BYTES)
        self.telling = tuple(sorted(long, key=lambda word: (-len(word), word))[:TELLING_MAX])
        """The longest words that only the erased texts have: what a file is searched for."""
        self.shared_lines = erased_words.lines & other_words.lines
        """Lines that were erased and are said elsewhere too."""

    def __call__(self, text: str) -> bool:
        """True where the text repeats erased content."""
        if any(term in self._terms for term in terms(text)):
            return True
        if any(line in self._lines for line in recognizable_lines(text)):
            return True
        words = words_in(text)
        return any(map(self._is_piece, words)) or not self._phrases.isdisjoint(_phrases(words))

    def is_copy(self, text: str) -> bool:
        """True where the text repeats erased content and has no word of its own."""
        return self(text) and self._erased.words.issuperset(words_in(text))

    def _is_piece(self, word: str) -> bool:
        """True for a piece of an erased word, and of no other."""
        if word in self._remaining.words or len(word) < (PIECE_MIN_CHARS if word.isascii() else 2):
            return False
        known = self._pieces.get(word)
        if known is None:
            known = self._pieces[word] = word in self._erased.joined and word not in self._remaining.joined
        return known

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
        self.phrases: set[tuple[str, ...]] = set()
        said: list[str] = []
        for text in texts:
            self.terms.update(term for term in terms(text) if len(term) >= MIN_TERM_CHARS or not term.isascii())
            self.lines.update(recognizable_lines(text))
            words = words_in(text)
            self.phrases.update(_phrases(words))
            said += words
        self.words = frozenset(said)
        self.joined = " ".join(dict.fromkeys(said))


def words_in(text: str) -> list[str]:
    """The words of a text as they are compared, in any spelling of the same letters."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode())
    return _WORD.findall(plain.casefold())


def _phrases(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(PHRASE_WORDS)), strict=False)


def recognizable_lines(text: str) -> Iterator[str]:
    """The lines of a text that are long enough to be recognised."""
    return (bare for line in text.splitlines() if len(bare := line.strip()) >= MIN_LINE_CHARS)


def handles_in(value: Any) -> Iterator[Handle]:
    """The handles among the texts in a JSON value."""
    return filter(None, (parse_handle(text) for text in strings_in(value) if len(text) <= 24))
