"""The clauses of a sentence that was dictated, which has no punctuation. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

DICTATED_CHARS = 120
"""Characters of a sentence from which it was dictated, if it has no punctuation."""

_PUNCTUATION = re.compile(r"[,;:!?]|\.\s|[\u2013\u2014()\u3000-\u303f\uff00-\uffef]")
_CLAUSE_JOINTS = re.compile(
    r" (?:(?:and|but|so|also|plus|then|oh|ok|please) )+(?=(?:never|always|don't|dont|do not|must|only|use|keep|send|make|put|write|call|add|run|ask|tell|answer|avoid|remember|stop|leave|book|check|no|not|i'm|im|it's|its"
    r"|(?:i|we|you|he|she|they|it) \w|(?:the|my|our|your|his|her|their|all|every|each) (?:[\w'-]+ ){1,4}?(?:is|are|has|have|must|should|needs?|can|will|goes|starts?|costs?)\b))",
    re.IGNORECASE,
)
"""The words between two clauses of dictated text."""
_OPENS_CONDITION = re.compile(r"\b(?:if|when|whenever|unless|because|since|until|while)\b", re.IGNORECASE)


def clauses_of(sentence: str) -> Iterator[str]:
    """Yield a sentence, or the clauses of one that was dictated; a condition stays with what follows it.

    >>> list(clauses_of("Use tabs and never spaces."))
    ['Use tabs and never spaces.']
    """
    start = 0
    if len(sentence) >= DICTATED_CHARS and not _PUNCTUATION.search(sentence):
        for joint in _CLAUSE_JOINTS.finditer(sentence):
            if not _OPENS_CONDITION.search(sentence, start, joint.start()):
                yield sentence[start : joint.start()]
                start = joint.end()
    yield sentence[start:]
