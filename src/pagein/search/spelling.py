"""Words of a question that nothing stored has, and the stored words that are one slip of a finger away. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_lowercase

from pagein.search.tokenizer import stem, stems

MIN_LETTERS, MAX_LETTERS = 5, 20
"""Letters of a word that may be misspelt: shorter ones have too many neighbours, longer ones are no words."""

MAX_TERMS = 10
"""Terms of a query up to which its words are looked for in other spellings: it is a question, and no text."""

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_VOWELS = "aeiouy"


def _near_letters(letter: str) -> str:
    """The letters that are struck, or heard, instead of this one: its neighbours on a keyboard, and a vowel for a vowel."""
    row = next(row for row in _ROWS if letter in row)
    at = row.index(letter)
    return f"{row[max(0, at - 1) : at]}{row[at + 1 : at + 2]}{_VOWELS if letter in _VOWELS else ''}"


_NEAR = {letter: _near_letters(letter) for letter in ascii_lowercase}


def other_spellings(word: str) -> frozenset[str]:
    """Return the terms of the words that differ by a letter that is missing, too many, or another, or by two in the wrong order.

    The first letter is right. A short word, or one with other signs than plain letters, has none.

    >>> "restaur" in other_spellings("resturant"), "friend" in other_spellings("freind"), len(other_spellings("v1.2"))
    (True, True, 0)
    """
    if not (MIN_LETTERS <= len(word) <= MAX_LETTERS and word.isascii() and word.isalpha() and word.islower()):
        return frozenset()
    return frozenset(stems(set(_spellings(word)))) - {stem(word)}


def _spellings(word: str) -> Iterator[str]:
    for at in range(1, len(word) + 1):
        head, tail = word[:at], word[at:]
        yield from (f"{head}{letter}{tail}" for letter in ascii_lowercase)
        if tail:
            yield head + tail[1:]
            yield from (f"{head}{letter}{tail[1:]}" for letter in _NEAR[tail[0]])
        if len(tail) > 1:
            yield f"{head}{tail[1]}{tail[0]}{tail[2:]}"
