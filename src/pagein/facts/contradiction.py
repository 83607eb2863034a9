"""Comparison of two facts without a model: the same, or the contrary. Pure, English, conservative.

A missed contradiction costs little: both facts stand, the newer first. A false one takes weight from a true fact. So
only a few forms count: the same subject with another value; the same words with another number, weekday or month, or
with a negation; residence and work; and reversed preferences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pagein.events.identifiers import identifiers
from pagein.facts.fact import content_key
from pagein.search.tfidf import fact_terms

MIN_SHARED_TERMS = 0.8
"""Share of the terms of two facts that both have, from which they are near-duplicates."""

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_DAY = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july|august|september|october|"
    r"november|december)\b",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b", re.IGNORECASE)
_NOT = re.compile(
    r"\b(?:not|never|no|none|without|avoids?|stop(?:ped|s)?|quit|neither|cannot|dislikes?|hates?|\w+n['\u2019]t)\b",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"\b(?:always|ever|longer|any ?more|still|now|currently|again|really|actually|also|just|only|these days|nowadays|instead|from now on|after all|start(?:ed)?|loves?|enjoys?|adores?)\b",
    re.IGNORECASE,
)
_WHOSE = r"^(?:the|my|our|their|his|her|user['\u2019]?s|the user['\u2019]?s)?\s*"
_IS = re.compile(
    _WHOSE + r"(?P<what>[^.,;:!?]{2,80}?)\s+"
    r"(?:is|are|was|were|=|became|becomes|(?:has |have )?(?:been )?(?:changed|moved|switched) to|runs? on|listens? on)\s+"
    r"(?:now\s+|called\s+|named\s+|set to\s+)?(?:(?:in|at|on|to)\s+)?(?P<value>(?:[^.;!?]|\.(?=\w)|(?<=\b[DMS][rst])\.|(?<=\bMrs)\.|(?<=\bProf)\.){1,200})",
    re.IGNORECASE,
)
_KEY = re.compile(_WHOSE + r"(?P<what>[\w .-]{2,60}?)\s*[:=]\s*(?P<value>[^;!?]{1,200})$", re.IGNORECASE)
_RENAMED = re.compile(
    r"^(?:i|we)(?:['\u2019]ve| have)? (?:just |now )?(?:renamed|moved|changed|switched|postponed|rescheduled) (?:the|our|my) (?P<what>[\w' -]{2,60}?) (?:from [^.;!?]{1,40} )?to (?P<value>[^.;!?]{1,80})",
    re.IGNORECASE,
)
_IS_MY = re.compile(
    r"^(?P<value>(?-i:[A-Z])[\w'-]+) is (?:now )?(?:my|our) (?P<what>[\w' -]{2,40}?)(?: now)?[.!]?$", re.IGNORECASE
)
_NEW = re.compile(
    r"\b(?:new|current|actual|correct)\s+(?!(?:dog|cat|pet|son|daughter|kid|child|baby|friend|brother|sister|cousin|colleague|student|client|project|book|hobby)\b)",
    re.IGNORECASE,
)
_ANOTHER = re.compile(r"\b(?:other|another|second|third|also|too)\b", re.IGNORECASE)
_CONTACT = re.compile(
    r"\b(?:(?P<mail>e-?mail)(?: address)?|(?:phone|cell|mobile|telephone)(?: phone)? number)\b", re.IGNORECASE
)
_HOLDS_MANY = frozenset({"there", "it", "this", "that", "he", "she", "they", "we", "i", "user", "one"})

_WHO = (
    r"^(?:(?:i|(?:the )?user)\b(?:['\u2019]m|['\u2019]ve)?)?\s*(?:am |is |have |has |now |just |recently |currently )*"
)
_ALONE = (
    r"(?=[.,;!]|\s*$| (?:now|again|already|still|too|any|these|nowadays|right|today|yesterday|last|this|on|since|for|to|as|and|or|but|because|so"
    r"|before|after|when|except|who|which)\b| with (?:two|three|four|no)\b| (?:with|in|at) (?:\d|(?-i:[A-Z])))"
)
"""Behind a word that says by itself what somebody is, not what something of theirs is: "a vegan", and no vegan chef."""
_NAMED = re.compile(
    r"^(?:my (?:first |full )?name(?: is|['\u2019]s)|(?:please |just )*calls? me|i go by) (?P<value>[^.,;!?]{2,40}?)[.!]?$",
    re.IGNORECASE,
)


def _forms(*forms: str) -> tuple[re.Pattern[str], ...]:
    filled = (form.replace("{who}", _WHO).replace("{alone}", _ALONE) for form in forms)
    return tuple(re.compile(form, re.IGNORECASE) for form in filled)


_SLOTS = tuple(
    (_forms(*stays), _forms(*comes), _forms(*ends), words)
    for stays, comes, ends, words in (
        (
            (r"{who}(?:we )?(?:lives?|living|resides?|based)\s+(?:in|at)\s+(?P<value>(?!(?:an?|my|our|his|her|their|one|two|three|the (?:same|old|middle|city|country\w*|suburbs?|woods|mountains))\b)[^.;!?]{2,80})",
             r"^(?:my|our) (?:new )?(?:home|place|flat|apartment|house) is (?:now )?(?:in|at)\s+(?P<value>(?-i:[A-Z\d])[^.;!?]{1,80})",
             r"{who}(?:now )?in\s+(?P<value>(?-i:[A-Z])[^.;!?]{1,60}?) (?:now|these days|nowadays)\b(?! (?:for|on|until|till|with|to|visiting)\b)"),
            (r"{who}(?:(?:moved|relocated)|we (?:just |recently )?relocated)\s+(?:from\s+[^.,;!?]{2,40}?\s+)?(?:back\s+)?to\s+(?P<value>[^.;!?]{2,80})",),
            (), "lives living resides based moved relocated home",
        ),
        (
            (r"{who}(?:works?|working|employed)\s+(?:at|for|by)\s+(?P<value>[^.;!?]{2,80})",),
            (r"{who}(?:joined(?= (?:the )?(?-i:[A-Z\d]))|started (?:work |working )?at|(?:started|got|have|landed|accepted) a (?:new )?(?:job|position|role) (?:at|with))\s+(?P<value>[^.;!?]{2,80})",),
            (r"{who}(?:quit|left|resigned from|lost|laid off from|fired from)\s+(?:my job (?:at|with|for)\s+|(?!(?:my|our|his|her|their|some|an?)\b))(?P<value>(?:(?! (?:at|with|behind|for|from)\b)[^.;!?]){2,80}?)(?: (?:last|this|in|on|after|for|because)\b[^.;!?]*)?[.!]?$",),
            "works working employed joined job",
        ),
        (
            (r"^(?:please |just )*(?:calls? me|i go by) (?P<value>[^.,;!?]{2,40}?)(?: instead| from now on| now| these days)?[.!]?$",),
            (), (), "call go by",
        ),
        (
            (r"{who}(?:been |got |getting |happily )*(?P<value>single|married|engaged|divorced|widowed|separated){alone}",),
            (), (), "single married engaged divorced widowed separated",
        ),
        (
            (r"{who}(?:been |turned |went |gone )*an? ?(?P<value>vegetarian|vegan|pescatarian|omnivore|carnivore){alone}",
             r"{who}(?:been |turned |went |gone )*(?P<value>vegetarian|vegan|pescatarian|omnivore|carnivore){alone}"),
            (), (), "vegetarian vegan pescatarian",
        ),
        (
            (r"^i (?:have|['\u2019]ve got) an? (?:\w+ )?(?P<value>girlfriend|boyfriend|partner|fianc\w+)\b",), (),
            (r"^(?:we|(?:my )?(?:[\w'-]+ )*and i) (?:just |recently |finally |have |['\u2019]ve )*(?:broke|split|broken) up\b(?P<value>)",),
            "girlfriend boyfriend partner fiancee",
        ),
        ((r"\bich (?:wohne|lebe)\b.*? in (?P<value>.+)",), (r"\bich bin\b.*? nach (?P<value>.+?) (?:um)?gezogen",), (), "wohne lebe gezogen umgezogen"),
        ((r"\bj['\u2019]habite (?:\u00e0|en|au) (?P<value>.+)",), (r"\bj['\u2019]ai (?:d\u00e9|em)m\u00e9nag\u00e9 (?:\u00e0|en|au) (?P<value>.+)",), (), "habite d\u00e9m\u00e9nag\u00e9 emm\u00e9nag\u00e9"),
        ((r"\bvivo en (?P<value>.+)",), (r"\bme (?:he mudado|mud\u00e9) a (?P<value>.+)",), (), "vivo mudado mud\u00e9"),
        ((r"\u6211.*?\u4f4f\u5728(?P<value>.+)",), (r"\u6211.*?\u642c(?:\u5230|\u53bb)\u4e86?(?P<value>.+)",), (), "\u6211\u4f4f\u5728 \u642c\u5230\u4e86"),
    )
)  # fmt: skip
"""The things that a person has one of: the forms that state it, that change it and that end it, and the words of all."""

_HAVE = r"^(?:i|we)(?:['\u2019]ve got| have| own| got| drive| ride| keep) (?:an?|the|my|our|one)? ?(?P<object>.+)$"
_DO = r"^(?:i|we) (?:\w+ly |always |still |often )?(?!(?:like|love|hate|enjoy|want|prefer|need|plan|hope)\b)(?P<object>.+)$"
_BUSY = r"^(?:i|we)(?:['\u2019]m| am|['\u2019]re| are)? (?:currently |still )?(?:writing|write|working on|doing|preparing|building|study|studying) (?P<object>.+)$"
_LATELY = r"(?:(?:have|has|['\u2019]ve|just|recently|finally|sadly) )*"
_THING = r"(?P<what>[\w' -]{2,40}?)"
_ENDS_FACT = tuple(
    (re.compile(new, re.IGNORECASE), re.compile(old, re.IGNORECASE))
    for new, old in (
        (rf"^(?:my|our) {_THING} {_LATELY}(?:died|passed away|ran away|was (?:put (?:down|to sleep)|stolen)|got stolen)\b", _HAVE),
        (rf"^(?:i|we) {_LATELY}(?:sold|gave away|got rid of|crashed) (?:my|our) (?:old )?{_THING}(?: (?:last|in|on|to|for|because|yesterday)\b.*)?[.!]?$", _HAVE),
        (rf"^(?:i|we) {_LATELY}(?:quit|stopped|gave up) (?!(?:going|doing|being|having|getting|trying) ?(?:after|when|because|[.!]?$)){_THING}(?: (?:last|in|on|for|because|after|when)\b.*)?[.!]?$", _DO),
        (rf"^(?:i|we) {_LATELY}(?:finished|completed|submitted|handed in|defended|graduated (?:in|from)) (?:my |our |the )?{_THING}(?: (?:degree|studies|diploma))?(?: (?:last|in|on|yesterday)\b.*)?[.!]?$", _BUSY),
    )
)  # fmt: skip
"""What ends something, and the form of what it ends: "My dog died" ends "I have a dog"."""

_HAVE_SEVERAL = re.compile(
    r"(?:sister|brother|sibling|son|daughter|kid|child|twin|cousin|aunt|uncle|niece|nephew|friend|grand\w+|colleague|neighbou?r|roommate|flatmate|client|student|pet|dog|cat|hobby|hobbies|language)s?",
    re.IGNORECASE,
)
"""Whom a person may have several of: two names are two of them."""

_COUNTRY = re.compile(
    r"(?:the )?(?:Germany|Austria|Switzerland|France|Italy|Spain|Portugal|England|Scotland|Wales|Ireland|Britain|UK|United (?:Kingdom|States)|US|USA|States|America|Canada|Mexico|Brazil|Argentina|Chile|Norway|Sweden|Denmark|Finland|Netherlands|Belgium|Poland|Greece|Turkey|Russia|Ukraine"
    r"|India|China|Japan|Korea|Vietnam|Thailand|Indonesia|Australia|New Zealand|Egypt|Kenya|Nigeria|Ghana|South Africa|Europe|Asia|Africa)\b",
    re.IGNORECASE,
)
"""A place that others are in: who lives in Rome lives in Italy."""

_BECOMES = re.compile(
    r"^i(?:['\u2019]m| am) (?:now )?(?:an? )(?!(?:[\w-]+ )*?(?:m[ou]m|mother|dad|father|parent|grand\w+|aunt|uncle|widow\w*|member|fan|citizen|resident|\w*owner|veg\w+)\b)"
    r"(?P<value>[^.,;!?]{2,60}?)(?: now)?[.!]?$",
    re.IGNORECASE,
)
"""What somebody's work is; two may hold, where the newer one does not say "now"."""
_ONE_AT_A_TIME = re.compile(
    r"^i (?:now |currently )?(?P<verb>work as an?|drive|ride|study|major in|report to|bank with) (?P<value>[^.,;!?]{2,60})",
    re.IGNORECASE,
)
_NOW = re.compile(r"\b(?:now|these days|nowadays|currently)\b", re.IGNORECASE)

_NOT_BUT = re.compile(
    r",? (?:and not|(?:it['\u2019]s )?not|rather than|instead of) (?:the |an? |in |at |on |to |with )*(?P<wrong>(?:[^,.;!?]|\.(?=\w)){2,80}?)(?=,| (?:as|like) I |$)",
    re.IGNORECASE,
)
"""What a correction says to be wrong, behind what it says."""

_FROM = re.compile(
    r"\b(?:moved|switched|changed|migrated|relocated)\s+from (?P<wrong>[^,.;!?]{2,60}?) to\b", re.IGNORECASE
)
"""What a change says to have been so before."""

_CLAUSES = re.compile(r"[,;] ?|\b(?:but|and)\b ?")
_OVER = re.compile(
    r"\bprefer(?:s|red)?\s+(?P<one>[^.,;!?]{1,80}?)\s+(?:over|to|instead of|rather than)\s+(?P<other>[^.,;!?]{1,80})",
    re.IGNORECASE,
)
_LIKES = re.compile(
    r"\b(?:prefer(?:s|red)?|likes?|loves?|favou?rs?)\s+(?P<one>[^.,;!?]{1,80}?)(?:\s+for\b.*)?$", re.IGNORECASE
)


def specifics(text: str) -> frozenset[str]:
    """The numbers, names and negation that two texts must share to say the same.

    >>> specifics("port 8080") == specifics("port 8081")
    False
    """
    denied = {"not"} if _denies(text) else set()
    return frozenset((*_NUMBER.findall(text), *identifiers(text), *denied))


def is_near(one: str, other: str) -> bool:
    """True if two facts say the same in nearly the same words.

    >>> is_near("Prefers tabs over spaces", "The user prefers tabs over spaces"), is_near("uses 3.11", "uses 3.12")
    (True, False)
    """
    first, second = _terms(one), _terms(other)
    if not first or not second or specifics(one) != specifics(other) or _is_reversed(one, other):
        return False
    return _are_like(first, second)


def is_contrary(new: str, old: str) -> bool:
    """True if the two can hardly both hold.

    >>> is_contrary("my port is 8081", "My port is 8080"), is_contrary("I never use tabs", "I use tabs")
    (True, True)
    >>> is_contrary("I moved to Oslo", "I live in Rome"), is_contrary("Prefers tabs", "Prefers spaces over tabs")
    (True, True)
    >>> is_contrary("I use tabs", "I use vim"), is_contrary("Prefers tabs", "Prefers vim")
    (False, False)
    """
    if content_key(new) == content_key(old):
        return False
    new, old = new.strip(), old.strip()
    if _is_elsewhere(new, old) or _is_reversed(new, old) or _ends(new, old):
        return True
    one, other = _find_value(new), _find_value(old)
    if one and other and (_have_forms_of_their_own(one, other) or _HAVE_SEVERAL.fullmatch(one["what"].split()[-1])):
        return _is_denied(new, old)
    if one and other and _subject_key(one["what"]) == _subject_key(other["what"]) not in _HOLDS_MANY:
        return bool(_ANOTHER.search(one["what"])) == bool(_ANOTHER.search(other["what"])) and _differ(
            one["value"], other["value"]
        )
    return _is_denied(new, old)


def is_corrected_by(correction: str, old: str) -> bool:
    """True if a correction takes the place of an older fact; what it says to be wrong need not be said again.

    >>> is_corrected_by("I live in Milan now, not Rome", "I live in Rome"), is_corrected_by("Use uv, not pip", "I use pip")
    (True, True)
    """
    match, before = _NOT_BUT.search(correction), _FROM.search(correction)
    said, wrong = correction, before["wrong"] if before else ""
    if match is not None:
        said, wrong = correction[: match.start()] + correction[match.end() :], match["wrong"]
    if any(is_contrary(clause, old) for text in (correction, said) for clause in (text, *_CLAUSES.split(text))):
        return True
    for one, other in ((_find_work(said), _find_work(old)), (_ONE_AT_A_TIME.match(said), _ONE_AT_A_TIME.match(old))):
        if one and other and _NOW.search(said) and one.groupdict().get("verb") == other.groupdict().get("verb"):
            return _differ(one["value"], other["value"])
    named = _NAMED.match(old)
    if named and wrong and _NAMED.match(said):
        return content_key(named["value"]) == content_key(wrong)
    shared = set(fact_terms(said)) & set(fact_terms(old)) or (_find_value(old) and identifiers(wrong))
    return bool(shared) and bool(wrong) and re.search(rf"\b{re.escape(wrong)}\b", old, re.IGNORECASE) is not None


def slot_terms(text: str) -> str:
    """Words that find facts which say the contrary in other words; "" if the same words find them.

    >>> slot_terms("I moved to Oslo")
    'lives living resides based moved relocated home'
    """
    return " ".join(words for *kinds, words in _SLOTS if any(_first_match(forms, text) for forms in kinds))


def _first_match(forms: Iterable[re.Pattern[str]], text: str) -> re.Match[str] | None:
    return next((match for form in forms if (match := form.match(text))), None)


def _find_value(text: str) -> re.Match[str] | None:
    """The statement of a subject and its value in a text."""
    return _first_match((_RENAMED, _IS_MY, _IS, _KEY), text)


def _find_work(text: str) -> re.Match[str] | None:
    """The profession that a text gives: "I'm a nurse", "I work as a nurse"."""
    return _BECOMES.match(re.sub(r"^i (?:now |currently )?work as (?=an? )", "I'm ", text, flags=re.IGNORECASE))


def _differ(one: str, other: str) -> bool:
    """True if two values differ, and neither contains the other."""
    if content_key(one) == content_key(other):
        return False
    first, second = _value_terms(one), _value_terms(other)
    if first == second:
        return _denies(one) != _denies(other)
    return not (first and second and (first <= second or second <= first))


def _is_elsewhere(new: str, old: str) -> bool:
    """True if the two give different values to what one person has one of, or the new one ends the old one."""
    if _denies(re.sub(r"\bquit\b", "", new, flags=re.IGNORECASE)) or _denies(old):
        return False
    for stays, comes, ends, _ in _SLOTS:
        before = _first_match(stays, old) or _first_match(comes, old)
        if before is None:
            continue
        if ended := _first_match(ends, new):
            return not ended["value"] or not _differ(ended["value"], before["value"])
        now = _first_match(stays, new) or _first_match(comes, new)
        if now and (now.re in stays or before.re in stays):
            is_wider = bool(_COUNTRY.match(now["value"])) != bool(_COUNTRY.match(before["value"]))
            return not is_wider and _differ(now["value"], before["value"])
    return False


_AT_TIMES = re.compile(
    r"\b(?:(?:in|over) (?:the )?(?:winter|summer|spring|autumn|fall)|during|for|until|till|while|(?:on|at) (?:the )?week\w+|half|part|sometimes)\b",
    re.IGNORECASE,
)


def lives_elsewhere(new: str, old: str) -> bool:
    """True for two places where a person lives, of which the newer one holds, unless it does so at times only.

    >>> lives_elsewhere("I live in Lyon.", "I live in Rome."), lives_elsewhere("I live in Lyon in summer.", "I live in Rome.")
    (True, False)
    """
    if _AT_TIMES.search(new):
        return False
    lives = _SLOTS[0][0][0]
    is_place = all((place := lives.match(text)) and place["value"][0].isupper() for text in (new, old))
    return is_place and _is_elsewhere(new, old)


def _ends(new: str, old: str) -> bool:
    """True for something that ended: what somebody had, did or was busy with."""
    for ending, form in _ENDS_FACT:
        if (ended := ending.match(new)) and (before := form.match(old)):
            return _terms(ended["what"]) <= _terms(" ".join(before["object"].split()[:4])) and bool(
                _terms(ended["what"])
            )
    return False


def _have_forms_of_their_own(one: re.Match[str], other: re.Match[str]) -> bool:
    """True where one says what a thing is, and the other where or whence: "is a Toyota" and "is blue"."""
    forms = [
        re.search(r"\b(?:an?|from|in|on|at|to)\b(?=\s*$)|^an? |^from ", text, re.IGNORECASE)
        for text in map(_value_frame, (one, other))
    ]
    kinds = {form[0].strip().lower() if form else "" for form in forms}
    kinds = {"a" if kind == "an" else kind for kind in kinds}
    return (
        len(kinds) > 1
        and bool(kinds & {"a", "from"} or {"in", "on"} <= kinds)
        and not any(_DAY.search(match["value"]) for match in (one, other))
    )


def _value_frame(match: re.Match[str]) -> str:
    """Return what stands right before a value, and its first word."""
    before = match.string[max(0, match.start("value") - 5) : match.start("value")]
    first = match["value"].split()[0].lower()
    return first + " " if first in ("a", "an", "from") else before


def _is_reversed(new: str, old: str) -> bool:
    """True if one prefers what the other puts second."""
    if _denies(new) or _denies(old):
        return False
    one, other = _OVER.search(new), _OVER.search(old)
    if one and other:
        pairs = ((one["one"], other["other"]), (one["other"], other["one"]))
        return all(_value_terms(left) == _value_terms(right) for left, right in pairs)
    whole, plain = (one, _LIKES.search(old)) if one else (other, _LIKES.search(new))
    return bool(whole and plain) and _value_terms(plain["one"]) == _value_terms(whole["other"]) != frozenset()  # type: ignore[index]


def _is_denied(new: str, old: str) -> bool:
    """True for the same words with another number, weekday or month at the end, or with a negation."""
    first, second = _bare_terms(new), _bare_terms(old)
    if not first or not second or not _are_like(first, second):
        return False
    figures, others = list(_figures(new)), list(_figures(old))
    if _denies(new) != _denies(old):
        return figures == others or not figures or not others
    # Figures before the last belong to the subject: chapter 1, version 2.
    return bool(figures) and len(figures) == len(others) and figures[:-1] == others[:-1] and figures != others


def _denies(text: str) -> bool:
    return len(_NOT.findall(text)) % 2 == 1


def _figures(text: str) -> Iterator[str]:
    matches = sorted(
        (*_NUMBER.finditer(text), *_COUNT.finditer(text), *_DAY.finditer(text)), key=lambda match: match.start()
    )
    return (match[0].lower().removesuffix("s") for match in matches)


def _are_like(first: set[str], second: set[str]) -> bool:
    return len(first & second) >= MIN_SHARED_TERMS * len(first | second)


def _terms(text: str) -> set[str]:
    return set(fact_terms(text)) - {"user"}


def _value_terms(text: str) -> frozenset[str]:
    """The terms and figures of a value, or its text if it has none."""
    return frozenset((*_terms(_FILLER.sub(" ", text)), *_figures(text))) or frozenset({content_key(text)})


def _subject_key(text: str) -> str:
    """The subject of a statement, with its numbers: room 5 is not room 6."""
    plain = _CONTACT.sub(lambda contact: "email" if contact["mail"] else "number", _NEW.sub("", text))
    return " ".join((*fact_terms(plain), *_NUMBER.findall(plain))) or text.strip().lower()


def _bare_terms(text: str) -> set[str]:
    """The terms without figures, negations and words of emphasis."""
    plain = _NOT.sub(" ", text)
    for pattern in (_NUMBER, _COUNT, _DAY, _FILLER):
        plain = pattern.sub(" ", plain)
    return _terms(plain) - {"do"}
