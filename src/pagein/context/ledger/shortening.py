"""Short forms of a binding sentence, for a ledger with little room: force, value and names stay, the rest may go.

``shorten`` drops politeness, openings, reasons and asides; what is left stands as it was said. ``tighten`` drops articles
and filler words too.
"""

from __future__ import annotations

import re

from pagein.context.ledger import english

MIN_CORE_CHARS = 8
"""Characters below which a shortened form says too little; the longer form is used."""


def shorten(text: str) -> str:
    """Return the sentence without politeness, opening, reasons and asides.

    >>> shorten("Oh and by the way, please never deploy on Fridays because nobody is around to fix it.")
    'Never deploy on Fridays.'
    """
    core = english.I_WANT_YOU_TO.sub("", drop_opening(text))
    core = _drop_reason(core)
    core = _drop_prelude(core)
    core = english.EXTRA.sub("", core).strip(" ,;:-\u2014\u2013")
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
    core = "".join(part if number % 2 else english.FILLER.sub("", part) for number, part in enumerate(parts)).strip()
    core = core.rstrip(".!")
    if len(core) < MIN_CORE_CHARS:
        return text
    core = core[0].upper() + core[1:] if text[:1].isupper() else core
    return core + "."


def _drop_afterthought(text: str) -> str:
    bare = text.rstrip(".!?")
    thought = english.AFTERTHOUGHT.search(bare)
    if thought is None or len(bare[: thought.start()].split()) < 3 or not english.BINDS.search(bare[: thought.start()]):
        return text
    says_more = any(pattern.search(thought[0]) for pattern in (english.FORCE, english.NAMED, english.MAY_MATTER))
    return text if says_more else f"{bare[: thought.start()]}."


def drop_opening(text: str) -> str:
    """Return the sentence without greetings, politeness and phrases such as "by the way"."""
    core = english.OPENING.sub("", text)
    return core if len(core) >= MIN_CORE_CHARS and _says_as_much(text[: len(text) - len(core)]) else text


def _says_as_much(dropped: str) -> bool:
    """True where the dropped words have no number and no name; force in an opening is filler ("but", "first")."""
    return not re.search(r"\d|`|\b(?:never|must|always|only|not)\b", dropped, re.IGNORECASE)


def _drop_reason(text: str) -> str:
    """Cut the sentence before the first reason or aside behind which nothing binds."""
    for reason in english.REASON.finditer(text):
        before, rest = text[: reason.start()], text[reason.start() :]
        if len(before) < MIN_CORE_CHARS + 4 or not english.BINDS.search(before):
            continue
        has_value = re.search(r"\d", rest) and not re.search(r"\d", before)
        if english.BARE_REASON.match(rest) and (not has_value or english.BINDS_STRONGLY.search(before)):
            return before
        if not english.FORCE.search(rest[2:]) and not english.NAMED.search(rest) and not has_value:
            return before
    return text


def _drop_prelude(text: str) -> str:
    """Drop clauses before the first one that binds, unless one of them is a condition or has a value or a name."""
    starts = [0, *(match.end() for match in english.NEXT_CLAUSE.finditer(text))]
    binds = english.BINDS_STRONGLY if english.BINDS_STRONGLY.search(text) else english.BINDS
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(text)
        if not binds.search(text[start:end]):
            continue
        before = text[:start]
        if text[start:].lower().startswith("not "):
            return text  # what comes instead stands before it
        if english.REFERS_BACK.search(text[start:]) or before.rstrip().endswith(":"):
            return text
        if any(pattern.search(before) for pattern in (english.FORCE, english.NAMED, english.SHORT_WISH)):
            return text
        if english.CONDITION.match(before) or len(text) - start < 18:
            return text
        return text[start:]
    return text
