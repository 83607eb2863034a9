"""The spelling of chats and of dictated speech, as plain English. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import eq
from types import MappingProxyType

_CHAT = MappingProxyType(
    {
        "im": "I'm", "ive": "I've", "u": "you", "ur": "your", "pls": "please", "plz": "please", "n": "and", "dnt": "don't",
        "b4": "before", "sry": "sorry", "wat": "what", "wats": "what's", "hav": "have", "shud": "should", "wud": "would", "cud": "could", "ppl": "people",
        "r u": "are you", "u r": "you are", "we r": "we are", "they r": "they are", "bc": "because", "cuz": "because", "gonna": "going to",
    }
)  # fmt: skip
_CHAT_WORD = re.compile(
    rf"(?i)(?<![\w'.-])(?:{'|'.join(sorted(_CHAT, key=len, reverse=True))}|(?P<not>do|does|did|ca|wo|is|are|was|were|must|should|would|could|have|has)nt|(?P<who>you|they|that|there|what|where|who|when|how)(?P<be>re|s|ve))(?![\w'.-])"
)
_SOUNDS = frozenset(["um", "um,", "umm", "uh", "uh,", "uhh", "uhm", "erm", "hm", "hmm", "hmmm", "mm", "mmm"])
_SPOKEN = re.compile(
    r"(?i)\b(?:u[hm]+|erm+|hm+|mm+)\b,? ?|\b(?!(?:no|very|had|that|so|really|more|far|ha|again|over|bye)\b)(?P<twice>[^\W\d]{1,12}(?: [^\W\d]{1,12})?) (?=(?P=twice)\b)"
)
"""What is said while somebody thinks: a sound, and words that come twice."""


_BINDING_WORDS = "allergic allergy always answer before budget deadline definitely instead limit maximum meeting never please prefer remember should vegetarian without"


def _slips_of(word: str) -> Iterator[str]:
    """Yield what fast fingers make of a word: a letter left out, struck twice, or in the place of the next."""
    for at in range(1, len(word) - 1):
        head, letter, tail = word[:at], word[at], word[at + 1 :]
        yield from (head + tail, head + letter + letter + tail, head + tail[0] + letter + tail[1:])


_SLIPS = MappingProxyType(
    {slip: word for word in _BINDING_WORDS.split() for slip in _slips_of(word) if slip not in _BINDING_WORDS}
)
_WORD = re.compile(r"[A-Za-z]+")


def spell_out(text: str) -> str:
    """Return the text with the apostrophes, words and letters that are left out in a chat, and without what is said while somebody thinks.

    >>> spell_out("pls dont call, im busy and theyre out"), spell_out("um alwyas keep it keep it short")
    ("please don't call, I'm busy and they're out", 'always keep it short')
    """
    words = text.lower().split()
    if not _SLIPS.keys().isdisjoint(words):
        text = _WORD.sub(lambda word: _SLIPS.get(word[0].lower(), word[0]), text)
    may_be_spoken = any(map(eq, words, words[1:])) or any(map(eq, words, words[2:])) or not _SOUNDS.isdisjoint(words)
    return _CHAT_WORD.sub(
        lambda word: (
            f"{word['not']}n't"
            if word["not"]
            else f"{word['who']}'{word['be']}"
            if word["who"]
            else _CHAT[word[0].lower()]
        ),
        _SPOKEN.sub("", text) if may_be_spoken else text,
    )


_CONDITION = re.compile(
    r"(?i)\W*(?:(?:and|so|but|also|ok|okay|then|please) )*(?:if|when|whenever|once|after|before|as soon as|every time|in case) "
    r"(?:(?:I|you|we|they|he|she|it) (?!don't|do|never|always|please)\w+|[^,;:]*?(?: (?:is|are|has|have|gets?|comes?|goes?|starts?|ends?|asks?|says?|calls?|wants?|needs?|fails?|\w{3,}ed)|'s|'re)\b)[^,;:]*?"
    r"(?= (?:please )?(?:don't|do not|never|please|make sure|always (?:use|ask|lock|turn|check|call|send|keep|make|put|add|write|run|test|tell|say|sign|back up|close|bring))\b)"
)


_TAKEN_BACK = re.compile(  # e.g. no sorry in dutch
    r"(?i)\W*(?:(?:no|oh|ah) )?(?:sorry|wait|actually|nope|oh)(?: (?:no|wait|sorry|actually))* (?!for\b|until\b|till\b|to\b|with\b|at\b|before\b|after\b|an?\b)(?=\w)"
)


def part_clauses(text: str) -> str:
    """Return a sentence that has no comma with those behind a correction's first words, and between a condition and what it orders.

    >>> part_clauses("when the kids are home don't play that song"), part_clauses("no sorry in dutch")
    ("when the kids are home, don't play that song", 'no, sorry, in dutch')
    """
    if "," in text:
        return text
    if (correction := _TAKEN_BACK.match(text)) is not None:
        return f"{', '.join(correction[0].split())}, {text[correction.end() :]}"
    condition = _CONDITION.match(text)
    return text if condition is None else f"{condition[0]},{text[condition.end() :]}"
