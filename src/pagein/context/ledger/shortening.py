"""Short forms of a binding sentence, for a ledger with little room: force, value and names stay, the rest may go.

``shorten`` drops politeness, openings, reasons and asides; what is left stands as it was said. ``tighten`` drops articles
and filler words too.
"""

from __future__ import annotations

import re

MIN_CORE_CHARS = 8
"""Characters below which a shortened form says too little; the longer form is used."""

_OPENING = re.compile(  # e.g. by the way, call me Jo
    r"(?i)^(?:(?:hi|hey|hello|so|ok(?:ay)?|well|oh|ah|hm+|um+|on second thoughts?|come to think of it|yes|yeah|yep|right|alright|also|and|but|anyway|anyways|besides|plus|then|listen|look|honestly|frankly|obviously|of course|btw|fyi|please|pls|thanks|thank you|great|good|perfect|cool|nice|sure|sorry|actually|just|"
    r"by the way|for the record|for what it's worth|for context|for your information|just so (?:you know|we're clear|it's clear)|just to be (?:clear|safe)|to be (?:clear|honest|fair)|one (?:more|other|last) thing|another thing|(?:one |a )?(?:quick |small |little |important )*(?:note|reminder|heads[- ]up|thing|thing to (?:know|note|remember))|last thing|before i forget|while i(?:'m| am) at it|while we're at it|speaking of (?:which|that)|"
    r"in case (?:it helps|you wonder\w*|i forget)|i (?:think|guess|believe|mean|should (?:mention|add|say)|forgot to (?:say|mention|tell you)|just remembered|want to (?:mention|add|be clear)|need you to (?:know|remember)|'d like you to (?:know|remember))|(?:please )?(?:remember|keep in mind|bear in mind|note|be aware|don't forget|do not forget|know)|it(?:'s| is) (?:important|worth (?:noting|knowing)|crucial|essential)|important|as (?:i said|a reminder|mentioned|always|you know|we discussed)|like i said|i (?:already |just )?(?:said|told you|repeat)(?=:? (?:never|always|no|not|don't|do not|only|please)\b)|to business|you know(?=:)|team|guys|folks|everyone|everybody|(?:hi|hey|hello) there|again|in general|generally|basically|essentially|however|moreover|furthermore|additionally|finally|first of all|secondly|(?:first|second|third|next)(?=[,:])|after (?:talking|thinking|speaking|discussing)[^,]{0,60}|we talked (?:about it|it over)[^,]{0,30})"
    r"(?:[,:;!.\u2014-]+| that\b,?|(?=\s))\s*)+",
)  # fmt: skip
_WISH = re.compile(  # e.g. I want you to never call
    r"(?i)^(?:i(?:'d| would) (?:really |also |very much )?(?:like|love|want|appreciate it if)|i (?:really |also |just )?(?:want|need|expect)|it would be (?:great|nice|good) if|could|can|would|will) you (?:to |could |would |can |please |always )*(?=(?:please )?(?:not|never|always|use|keep|avoid|only|stick|make|ask|call|write|answer|reply|stop|check)\b)"
)
_REASON = re.compile(  # e.g. no calls, because he sleeps
    r"(?i)(?:[,;]? (?:because|since (?=[a-z])|as (?:we|it|he|she|they|that|this|the|my|our|i)\b(?! soon| long| well)|so (?:that|we|it|i|they|he|she|please|you|the|my)\b|given that|seeing as|seeing that|considering|due to the fact|otherwise|thanks|thank you|thx|if that makes sense|if that's ok(?:ay)?|you know|i guess|i think|i suppose|honestly|to be honest|for what it's worth|as (?:i|you|we) (?:said|know|mentioned|discussed|agreed)|which (?:is|was|means|makes|would|i|we)|that's (?:why|how|just)|it(?:'s| is) (?:too|just|really|a|such)|or (?:else|we'll|it'll|they'll|he'll|she'll))\b"
    r"| ?[\u2014\u2013] ?(?=[a-z])| - (?=[a-z])|; | \((?=[a-z]))",
)  # fmt: skip
_BARE_REASON = re.compile(  # e.g. , because he sleeps
    r"(?i)[,;]? (?:because|since|as|so that|given|seeing|considering|otherwise|thanks|thank|thx|or else|or (?:we|it|they))"
)
_FORCE = re.compile(  # e.g. unless I agree
    r"(?i)\b(?:never|not|no|nothing|nobody|none|must|mustn't|don't|cannot|can't|won't|shouldn't|always|only|unless|except|until|without|before|after|at most|at least|maximum|minimum|max|min|under|over|limit|forbidden|prohibited|allowed|required|mandatory|approval|permission|first|instead|now|exceed|above|below|strictly|exclusively|if|when|asking|checking|confirm|secret|confidential|private|surprise|allerg\w+|intoleran\w+|vegan|vegetarian|diabetic|c(?:o?e)liac|at a time)\b|\d|n't\b"
)
_NAMED = re.compile(r"(?<=[a-z,'] )[A-Z][\w'-]+|`[^`]+`|[\w-]+[_/.][\w/.-]+|\"[^\"]+\"|[$\u20ac\u00a3]")
_CONDITION = re.compile(  # e.g. when it rains
    r"(?i)^(?:if|when|whenever|for|before|after|unless|until|on|in|at|with|without|except|only|while|during|from|by|as soon as|once|every|each|starting|to|via|under|between|regarding|about|and|or|whatever|no|per)\b"
)
_CLAUSE = re.compile(r"(?i)(?:, (?:but |and |so |then |plus )?|; |\u2014 ?| - |\.\.\. ?|: |\b(?:but|so) )")
_BINDS = re.compile(  # e.g. keep it short
    r"(?i)\b(?:never|must|mustn't|do not|don't|dont|no|not|always|only|make sure|ensure|avoid|under no|keep|use|stick|ask|check|limit|cap|maximum|max|at most|no more|deadline|budget|goal|aim|objective|decided|agreed|settled|going with|go with|let's|i'll|we'll|promise|prefer|rather|hate|allergic|vegetarian|vegan|is|are|was|moved|call me|my|our|we're|i'm|forbidden|off[- ]limits|allowed|can't|cannot|won't|shouldn't|should|needs?|wants?|make it|change|switch|raise|lower)\b"
)
_STRONG = re.compile(  # e.g. don't call
    r"(?i)\b(?:never|must|mustn't|do not|don't|dont|always|only|make sure|ensure|avoid|under no|at most|no more than|forbidden|cannot|can't|won't|shouldn't|let's)\b"
)
_WISHED = re.compile(r"(?i)\w+ \w+,? please\b")
"""A wish in a few words, such as "short answers please"."""
_REFERS = re.compile(
    r"(?i)\b(?:it|its|they|them|their|that|this|these|those|he|him|his|she|her|one|ones|there|then|so)\b"
)
"""Words that refer to what was said before them."""
_FILLER = re.compile(  # e.g. really short
    r"(?i)\b(?:please|really|very|just|actually|basically|simply|quite|totally|definitely|absolutely|certainly|of course|kind of|sort of|a bit|you know|i think|i guess|i mean|also|even|ever (?=\w)|(?<!of )(?<!per )(?<!by )(?<!for )(?:the|a|an)(?! (?:day|week|month|year|night|hour|minute|person|head|piece|time|few|lot|bit|second|quarter)\b)|kindly|currently|personally|generally|to be honest|honestly)\s+(?=\S)"
)
_EXTRA = re.compile(  # e.g. no calls, please
    r"(?i)(?:[,;]? (?:please|thanks|thank you|ok(?:ay)?|alright|right|for me|by the way|btw|if possible|at all|whatsoever|in general|as well|too)|, (?:i give you my word|i promise|(?:trust|believe) me|(?:they|he|she) (?:told me|says?|said)))+[.!?]*$"
)


_AFTERTHOUGHT = re.compile(
    r"(?i), (?=(?:i|we|he|she|they|it|that|everyone|everybody|someone|somebody|something)\b|the [\w ]{2,20} (?:was|were|got) \w+(?:ed|en)\b)[^,;:]{4,45}$"
)
"""What is said behind a statement without binding anybody: "Call me Jo, everyone does"."""
_ASKS = re.compile(  # e.g. the dog needs a walk
    r"(?i)\b(?:needs?|wants?|must|should|shall|ha(?:s|ve) to|uses?|gets?|prefers?|hates?|allergic|will|may|my|our|your|up to)\b|'ll\b"
)


def shorten(text: str) -> str:
    """Return the sentence without politeness, opening, reasons and asides.

    >>> shorten("Oh and by the way, please never deploy on Fridays because nobody is around to fix it.")
    'Never deploy on Fridays.'
    """
    core = _WISH.sub("", drop_opening(text))
    core = _drop_reason(core)
    core = _drop_prelude(core)
    core = _EXTRA.sub("", core).strip(" ,;:-\u2014\u2013")
    if len(core) < MIN_CORE_CHARS or len(core) > len(text):
        return text
    core = (
        core[0].upper() + core[1:]
        if core[0].islower() and not re.match(r"[\w-]*[_/.\d]", core.split(" ", 1)[0])
        else core
    )
    return core if core[-1:] in '.!?`"\u3002' else f"{core}."


def tighten(text: str) -> str:
    """Return a shortened sentence without articles, filler words and an afterthought.

    >>> tighten("The deadline of my report is really a Friday.")
    'Deadline of my report is Friday.'
    """
    parts = re.split(r"(`[^`]*`|\"[^\"]*\")", _drop_afterthought(text))
    core = "".join(part if number % 2 else _FILLER.sub("", part) for number, part in enumerate(parts)).strip()
    core = core.rstrip(".!")
    if len(core) < MIN_CORE_CHARS:
        return text
    core = core[0].upper() + core[1:] if text[:1].isupper() else core
    return core + "."


def _drop_afterthought(text: str) -> str:
    bare = text.rstrip(".!?")
    thought = _AFTERTHOUGHT.search(bare)
    if thought is None or len(bare[: thought.start()].split()) < 3 or not _BINDS.search(bare[: thought.start()]):
        return text
    says_more = any(pattern.search(thought[0]) for pattern in (_FORCE, _NAMED, _ASKS))
    return text if says_more else f"{bare[: thought.start()]}."


def drop_opening(text: str) -> str:
    """Return the sentence without greetings, politeness and phrases such as "by the way"."""
    core = _OPENING.sub("", text)
    return core if len(core) >= MIN_CORE_CHARS and _says_as_much(text[: len(text) - len(core)]) else text


def _says_as_much(dropped: str) -> bool:
    """True where the dropped words have no number and no name; force in an opening is filler ("but", "first")."""
    return not re.search(r"\d|`|\b(?:never|must|always|only|not)\b", dropped, re.IGNORECASE)


def _drop_reason(text: str) -> str:
    """Cut the sentence before the first reason or aside behind which nothing binds."""
    for reason in _REASON.finditer(text):
        before, rest = text[: reason.start()], text[reason.start() :]
        if len(before) < MIN_CORE_CHARS + 4 or not _BINDS.search(before):
            continue
        has_value = re.search(r"\d", rest) and not re.search(r"\d", before)
        if _BARE_REASON.match(rest) and (not has_value or _STRONG.search(before)):
            return before
        if not _FORCE.search(rest[2:]) and not _NAMED.search(rest) and not has_value:
            return before
    return text


def _drop_prelude(text: str) -> str:
    """Drop clauses before the first one that binds, unless one of them is a condition or has a value or a name."""
    starts = [0, *(match.end() for match in _CLAUSE.finditer(text))]
    binds = _STRONG if _STRONG.search(text) else _BINDS
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(text)
        if not binds.search(text[start:end]):
            continue
        before = text[:start]
        if text[start:].lower().startswith("not "):
            return text  # what comes instead stands before it
        if _REFERS.search(text[start:]) or before.rstrip().endswith(":"):
            return text
        if any(pattern.search(before) for pattern in (_FORCE, _NAMED, _WISHED)):
            return text
        if _CONDITION.match(before) or len(text) - start < 18:
            return text
        return text[start:]
    return text
