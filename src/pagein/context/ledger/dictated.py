"""The clauses of a sentence that was dictated, which has no punctuation. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

DICTATED_CHARS = 120
"""Characters of a sentence from which it was dictated, if it has no punctuation."""

TOLD_CHARS, MARKED_CHARS = 700, 100
"""Characters from which a dictated text may have a mark now and then, and those that it has for each mark, at least."""

DICTATED_MAX_CHARS = 12_000
"""Characters of a dictated text at most, a quarter of an hour of speech: a longer one is a transcript of something else."""

CLAUSE_CHARS, CONDITION_CHARS = 240, 60
"""Characters of a clause above which it is cut at any joint, and those up to which a condition and what follows it are one."""

_PUNCTUATION = re.compile(r"[,;:!?]|\.\s|[\u2013\u2014()\u3000-\u303f\uff00-\uffef]")
_JOINT_WORDS = r"(?<! as) (?:(?:and|but|so|also|plus|then|oh|ok|okay|yeah|well|anyway|um+|uh+|like|please) ){1,6}"
_WHO = (
    r"(?:i|we|you|he|she|they|it|there|this|that|somebody|someone|everyone|everybody|(?:my|our|your|his|her|their) \w+)"
)
_CLAUSE_JOINTS = re.compile(
    rf"(?i){_JOINT_WORDS}(?=(?:never|always|don't|dont|do not|must|only|use|keep|send|make|put|write|call|add|run|ask|tell|answer|avoid|remember|stop|leave|book|check|no|not|i'm|im|it's|its|can you|could you"
    rf"|{_WHO} \w|(?:the|my|our|your|his|her|their|all|every|each) (?:[\w'-]+ ){{1,4}}?(?:is|are|was|has|have|had|must|should|needs?|can|can't|will|goes|starts?|costs?|says?|said)\b"
    r"|what (?:i|we) (?:want|need|mean)|(?:one|another) (?:more |other |last )?thing|the (?:main |most )?(?:thing|point|important)|before i forget|when(?:ever)? (?:i|we|you)|if (?:i|we|you)|from now on|in the|on \w+day|at the))"
    r"| (?=please (?:never|always|don't|dont|do not|only|make|keep|use|stop)\b)| (?:(?:number|bullet|point|item|rule) (?:one|two|three|four|five|six|seven|eight|nine|ten|\d+)|secondly|thirdly|lastly) "
)
"""The words between two clauses of dictated text."""
_OWN_AGAIN = re.compile(
    rf"(?i)(?:{_JOINT_WORDS}|\n\n)(?=(?:i|i'm|im|we|my|please|when you|can you|the (?:main |most )?(?:thing|point|important))\b)"
)
_ANY_JOINT = re.compile(rf"(?i){_JOINT_WORDS}| (?=because )")
_OPENS_CONDITION = re.compile(r"(?i)\b(?:if|when|whenever|unless|because|since|until|while)\b")


def is_dictated(text: str) -> bool:
    """True for words without punctuation; in a long text there is a mark now and then."""
    if not DICTATED_CHARS <= len(text) <= DICTATED_MAX_CHARS or "\x00" in text:
        return False
    if len(text) <= TOLD_CHARS:
        return _PUNCTUATION.search(text) is None and "\n" not in text
    marks = len(_PUNCTUATION.findall(text)) + text.count("\n")
    return marks <= len(text) // MARKED_CHARS and text.count(" ") > len(text) / 8


def after_report(rest: str, whole: str) -> str:
    """Return what the speaker says again of their own in the rest of a text, a clause a line; "" in one that was not dictated at length."""
    own = _OWN_AGAIN.search(rest) if len(whole) > CLAUSE_CHARS and is_dictated(whole) else None
    return "" if own is None else _CLAUSE_JOINTS.sub("\n\n", rest[own.end() :])


def clauses_of(sentence: str) -> Iterator[str]:
    """Yield a sentence, or the clauses of one that was dictated; a condition stays with what follows it.

    >>> list(clauses_of("Use tabs and never spaces."))
    ['Use tabs and never spaces.']
    >>> list(clauses_of("my sister is a great fan of all of these films as well so she has most of the books that they were made of over the years"))
    ['my sister is a great fan of all of these films as well', 'she has most of the books that they were made of over the years']
    """
    if len(sentence) < DICTATED_CHARS or not is_dictated(sentence):
        yield sentence
        return
    start = 0
    for joint in _CLAUSE_JOINTS.finditer(sentence):
        conditions = [match.start() for match in _OPENS_CONDITION.finditer(sentence, start, joint.start())]
        if not conditions or joint.start() - conditions[-1] > CONDITION_CHARS:
            yield from _shortened(sentence[start : joint.start()])
            start = joint.end()
    yield from _shortened(sentence[start:])


def _shortened(clause: str) -> Iterator[str]:
    """Yield a clause, or the parts of a long one between any of its joints."""
    return iter((clause,)) if len(clause) <= CLAUSE_CHARS else filter(None, _ANY_JOINT.split(clause))
