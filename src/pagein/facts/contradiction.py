"""What two facts say of the same thing, told without a model: the same, or the contrary. Pure, English, with care.

A contradiction that is not seen costs little: both stand, the newer first. One that is seen where there is none takes
weight from what is true. So only a few forms count: the same thing said to be something else, the same words with
another number, weekday or month, or with a not; where somebody lives and works; and what is preferred over what.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pagein.events.identifiers import identifiers
from pagein.facts.fact import key_of
from pagein.search.tfidf import fact_terms

NEAR = 0.8
"""Share of the terms of two facts that both have, from which they are near-duplicates."""

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_DAY = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july|august|september|october|"
    r"november|december)\b",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:not|never|no|none|without|avoids?|stop(?:ped|s)?|quit|neither|cannot|dislikes?|hates?|\w+n['\u2019]t)\b",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"\b(?:always|ever|longer|any ?more|still|now|currently|again|really|actually|also|just|only)\b",
    re.IGNORECASE,
)
_WHOSE = r"^(?:the|my|our|their|his|her|user['\u2019]?s|the user['\u2019]?s)?\s*"
_IS = re.compile(
    _WHOSE + r"(?P<what>[^.,;:!?]{2,80}?)\s+"
    r"(?:is|are|was|were|=|became|becomes|(?:has |have )?(?:been )?(?:changed|moved|switched) to|runs? on|listens? on)\s+"
    r"(?:now\s+|called\s+|named\s+|set to\s+)?(?:(?:in|at|on|to)\s+)?(?P<value>(?:[^.;!?]|\.(?=\w)){1,200})",
    re.IGNORECASE,
)
_KEY = re.compile(_WHOSE + r"(?P<what>[\w .-]{2,60}?)\s*[:=]\s*(?P<value>[^;!?]{1,200})$", re.IGNORECASE)
_HOLDS_MANY = frozenset({"there", "it", "this", "that", "he", "she", "they", "we", "i", "user", "one"})

_WHO = r"^(?:(?:i|(?:the )?user)\b(?:['\u2019]m|['\u2019]ve)?)?\s*(?:am |is |have |has |now |just |recently |currently )*"
_STAYS = re.compile(
    _WHO + r"(?:lives?|living|resides?|based)\s+(?:in|at)\s+(?P<value>[^.;!?]{2,80})", re.IGNORECASE
)
_MOVES = re.compile(_WHO + r"(?:moved|relocated)\s+(?:back\s+)?to\s+(?P<value>[^.;!?]{2,80})", re.IGNORECASE)
_WORKS = re.compile(
    _WHO + r"(?:works?|working|employed)\s+(?:at|for|by)\s+(?P<value>[^.;!?]{2,80})", re.IGNORECASE
)
_JOINS = re.compile(_WHO + r"joined\s+(?P<value>[^.;!?]{2,80})", re.IGNORECASE)
_SLOTS = (
    (_STAYS, _MOVES, "lives living resides based moved relocated"),
    (_WORKS, _JOINS, "works working employed joined"),
)
"""Where one lives and works: how it is said to be so, how it is said to have become so, and the words of both."""

_OVER = re.compile(
    r"\bprefer(?:s|red)?\s+(?P<one>[^.,;!?]{1,80}?)\s+(?:over|to|instead of|rather than)\s+(?P<other>[^.,;!?]{1,80})",
    re.IGNORECASE,
)
_LIKES = re.compile(
    r"\b(?:prefer(?:s|red)?|likes?|loves?|favou?rs?)\s+(?P<one>[^.,;!?]{1,80}?)(?:\s+for\b.*)?$",
    re.IGNORECASE,
)


def specifics(text: str) -> frozenset[str]:
    """What two texts that say the same must share: numbers, names, and whether it is said that it is not so.

    >>> specifics("port 8080") == specifics("port 8081")
    False
    """
    denied = {"not"} if len(_NOT.findall(text)) % 2 else set()
    return frozenset((*_NUMBER.findall(text), *identifiers(text), *denied))


def is_near(one: str, other: str) -> bool:
    """Whether two facts say the same in nearly the same words.

    >>> is_near("Prefers tabs over spaces", "The user prefers tabs over spaces"), is_near("uses 3.11", "uses 3.12")
    (True, False)
    """
    first, second = _terms(one), _terms(other)
    if not first or not second or specifics(one) != specifics(other) or _is_reversed(one, other):
        return False
    return _are_like(first, second)


def is_contrary(new: str, old: str) -> bool:
    """Whether the two can hardly both hold.

    >>> is_contrary("my port is 8081", "My port is 8080"), is_contrary("I never use tabs", "I use tabs")
    (True, True)
    >>> is_contrary("I moved to Oslo", "I live in Rome"), is_contrary("Prefers tabs", "Prefers spaces over tabs")
    (True, True)
    >>> is_contrary("I use tabs", "I use vim"), is_contrary("Prefers tabs", "Prefers vim")
    (False, False)
    """
    if key_of(new) == key_of(old):
        return False
    new, old = new.strip(), old.strip()
    if _is_elsewhere(new, old) or _is_reversed(new, old):
        return True
    for form in (_IS, _KEY):
        one, other = form.match(new), form.match(old)
        if one and other and (what := _what(one["what"])) == _what(other["what"]) and what not in _HOLDS_MANY:
            return _differ(one["value"], other["value"])
    return _is_denied(new, old)


def others_by(text: str) -> str:
    """Words by which facts are found that say the contrary in other words; "" where the same words will do.

    >>> others_by("I moved to Oslo")
    'lives living resides based moved relocated'
    """
    return " ".join(words for stays, comes, words in _SLOTS if stays.match(text) or comes.match(text))


def _differ(one: str, other: str) -> bool:
    """Whether two values of one thing are two: neither says what the other does, and more."""
    if key_of(one) == key_of(other):
        return False
    if _said(one) == _said(other):
        return bool(len(_NOT.findall(one)) % 2 != len(_NOT.findall(other)) % 2)
    first, second = _said(one), _said(other)
    return not (first and second and (first <= second or second <= first))


def _is_elsewhere(new: str, old: str) -> bool:
    """Whether somebody lives, or works, at two places: one of them is where they are, the other where they went."""
    for stays, comes, _ in _SLOTS:
        one, other = stays.match(new) or comes.match(new), stays.match(old) or comes.match(old)
        if one and other and (one.re is stays or other.re is stays) and not _denies(new) and not _denies(old):
            return _differ(one["value"], other["value"])
    return False


def _is_reversed(new: str, old: str) -> bool:
    """Whether one prefers what the other puts behind."""
    if _denies(new) or _denies(old):
        return False
    one, other = _OVER.search(new), _OVER.search(old)
    if one and other:
        return _said(one["one"]) == _said(other["other"]) and _said(one["other"]) == _said(other["one"])
    whole, plain = (one, _LIKES.search(old)) if one else (other, _LIKES.search(new))
    return bool(whole and plain) and _said(plain["one"]) == _said(whole["other"]) != frozenset()  # type: ignore[index]


def _is_denied(new: str, old: str) -> bool:
    """Whether the same words stand with another number, weekday or month at their end, or with a not."""
    first, second = _bare(new), _bare(old)
    if not first or not second or not _are_like(first, second):
        return False
    figures, others = list(_figures(new)), list(_figures(old))
    if _denies(new) != _denies(old):
        return figures == others or not figures or not others
    # Those before the last say of what it is: of chapter 1, of version 2.
    return bool(figures) and len(figures) == len(others) and figures[:-1] == others[:-1] and figures != others


def _denies(text: str) -> bool:
    return len(_NOT.findall(text)) % 2 == 1


def _figures(text: str) -> Iterator[str]:
    found = sorted((*_NUMBER.finditer(text), *_DAY.finditer(text)), key=lambda each: each.start())
    return (each[0].lower().removesuffix("s") for each in found)


def _are_like(first: set[str], second: set[str]) -> bool:
    return len(first & second) >= NEAR * len(first | second)


def _terms(text: str) -> set[str]:
    return set(fact_terms(text)) - {"user"}


def _said(text: str) -> frozenset[str]:
    """What a value says: its terms and its figures, or the text itself where it has none."""
    return frozenset((*_terms(_FILLER.sub(" ", text)), *_figures(text))) or frozenset({key_of(text)})


def _what(text: str) -> str:
    """What something is said of, its numbers too: room 5 is not room 6."""
    return " ".join((*fact_terms(text), *_NUMBER.findall(text))) or text.strip().lower()


def _bare(text: str) -> set[str]:
    """The terms without figures, without what denies and without what only stresses."""
    plain = _NOT.sub(" ", text)
    for each in (_NUMBER, _DAY, _FILLER):
        plain = each.sub(" ", plain)
    return _terms(plain) - {"do"}
