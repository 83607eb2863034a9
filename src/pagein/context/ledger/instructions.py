"""Texts that are written for an agent, such as an AGENTS.md: how they are known, and what governs the items of their lists. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

LEAD_MAX_CHARS = 120
"""Characters of a line that presents a text, or that governs a list."""

HEADING_MAX_CHARS = 60
"""Characters of a heading that governs the lists under it."""

LIST_MARK = re.compile(r"^\s*(?:[-*\u2022\u25cf\u2013+]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+(?:\[[ xX]\]\s+)?")
"""The mark of an item of a list."""

_HEADER = re.compile(r"\s*---[ \t]*\n(?P<keys>(?:(?!---)[^\n]*\n){1,40}?)---[ \t]*(?:\n|$)")
"""The header of a Markdown file."""

_FILE_KEYS = re.compile(  # e.g. globs: *.py
    r"(?im)^(?:globs|alwaysApply|applyTo|(?:allowed-)?tools|model|argument-hint|trigger|paths)[ \t]*:"
)
_DESCRIBED = re.compile(r"(?im)^description[ \t]*:")
_PUBLISHED = re.compile(r"(?im)^(?:title|date|author|tags|layout|slug)[ \t]*:")

_FRAME = re.compile(
    r"(?is)\s*<(?P<tag>(?:user|custom|project|repository)?[ _-]?(?:instructions|rules|guidelines)|system[_-]reminder)\b[^<>\n]{0,100}>(?P<inside>.*?)</(?P=tag)>"
)
"""Tags that a program puts around the instructions at the beginning of a message."""

_KINDS = r"(?:rules|guidelines|conventions|instructions|standards|best practices|constraints|principles)"
_PRESENTS = r"(?:\b(?:translate|summari[sz]e|explain|review|rate|check|improve|fix|rewrite|proofread|shorten|compare|what|why|how|e-?mails?|mail|letter|page|website|site|article|post|blog|says?|said|wrote|sent|got|received|found|copied|pasted)\b)"
"""Words of a first line that presents somebody else's text, or asks something about it."""

_TITLE = re.compile(
    rf"(?i)\s*+(?![^\n]*{_PRESENTS})(?:[^\n]{{0,80}}(?:\b(?:AGENTS|CLAUDE|GEMINI|SKILL|CONVENTIONS|copilot-instructions)\.md\b|(?<!\w)\.(?:cursor|windsurf|cline)rules\b)[^\n]{{0,80}}"
    rf"|#{{1,3}} [^\n]{{0,60}}\b{_KINDS}\b[^\n]{{0,60}}|[^\n.!?]{{0,80}}\b{_KINDS}\b[^\n.!?]{{0,60}}:[ \t]*)(?:\n|$)"
)
"""A first line that says that instructions follow."""

_RULES = rf"(?:{_KINDS[3:-1]}|rules?|polic(?:y|ies)|conditions?|terms|requirements?|regulations?|style guide|list|(?:AGENTS|CLAUDE|CONTRIBUTING|README)\.md)"
_OF_OTHERS = re.compile(
    rf"(?i)\b(?P<owner>(?:[\w-]+ ){{0,4}}[\w-]+)['\u2019]s (?:[\w-]+ ){{0,3}}?{_RULES}\b|\b(?P<his>his|her|their) (?:[\w-]+ ){{0,3}}?{_RULES}\b|\b{_RULES} (?:of|at) (?P<place>(?:[\w-]+ ){{0,4}}[\w-]+)"
    rf"|\b(?P<past>{_RULES} (?:were|was))\b"
    rf"|^\W*(?P<subject>(?!there\b|here\b|this\b|these\b|I\b|we\b|you\b|it\b)(?:[\w'\u2019-]+ ){{1,5}}?)(?:(?:lists?|states?|requires?|insists?|demands?|warns?)$|(?:has|have|had|lists?|states?|wants?|requires?|insists?|demands?|goes|go|gave|left|sent)\b.*\b(?:{_RULES}|following|this|these)\b)"
)
"""A line that presents rules, and says whose they are."""
_SENTENCE_END = re.compile(r"[.!?]\s")
_FOREIGN = re.compile(
    r"(?i)\b(?:colleague|friend|neighbou?r|land(?:lord|lady)|hostel|hotel|motel|campsite|airbnb|resort|airline|airport|ferry|cruise|railway|taxi|restaurant|caf[e\u00e9]|pub|gym|spa|zoo|museum|church|temple|insurer|(?:job|housing) (?:ad|advert|offer|posting|listing)|advert"
    r"|employer|recruiter|competitor|rival|wife|husband|spouse|girlfriend|boyfriend|mother|mum|mom|father|dad|parents|sister|brother|aunt|uncle|cousin|grand\w+|son|daughter|roommate|flatmate|housemate|teacher|author|blogger|article|newspaper)s?\b"
    r"|\b(?:old|previous|former|last|ex|other)[ -](?:\w+ )?(?:company|firm|job|team|boss|manager|client|school|flat|office)\b"
)
"""An owner elsewhere, whose rules the speaker tells of. Rules of all others, such as a client, a ticket or a function, are the task."""
_TO_AGENT = re.compile(  # e.g. follow these rules
    r"(?i)\b(?:you|your|follow(?:s|ed)?(?! this rule)|obey|respect|stick|adhere|appl(?:y|ies)|use|keep to|observe|binding|please|by them)\b(?<!the following)"
)
_ASKS = re.compile(  # e.g. what do you make of them
    r"(?i)\W*(?:what|which|is|are|do|does|did|how|why|(?:should|can|could|would)\b(?!.*\b(?:follow|obey|respect|apply|use|adhere|observe)\b)|compare|summari[sz]e|explain|translate|review|check)\b"
)


def is_of_others(lead: str) -> bool:
    """True for words that present rules of somebody else, which bind nobody here, unless they tell the agent to follow them.

    >>> is_of_others("The hostel has these house rules"), is_of_others("Our team's rules"), is_of_others("Her rules, follow them")
    (True, False, False)
    """
    lead = _SENTENCE_END.split(lead)[-1].strip()
    whose = _OF_OTHERS.search(lead) if len(lead) <= LEAD_MAX_CHARS else None
    if whose is None or (_TO_AGENT.search(lead) and not _ASKS.match(lead)):
        return False
    owner = whose["owner"] or whose["place"] or whose["subject"]
    return owner is None or _FOREIGN.search(owner) is not None


_PERSONA = re.compile(
    r"(?i)\s*(?:#[^\n]*\n\s*)?(?:you(?:'re| are) (?:an?|the|now|my)\b|(?:I want you to )?act as\b|your (?:role|job|mission) is\b)"
)
"""A beginning that says who the agent is."""

_FORCES = re.compile(
    r"(?i)\b(?:never|don['\u2019]?ts?|do not|avoid|must(?:n['\u2019]t)?|should(?:n['\u2019]t)?|shall|always|only|forbidden|prohibited|required|mandatory|not allowed|not permitted|cannot|can['\u2019]t|ensure|make sure|be sure)\b|[\u274c\U0001f6ab\u26d4]"
)
"""A line that demands or forbids what its items name."""

_NEGATES = re.compile(  # e.g. don'ts
    r"(?i)\b(?:never|don['\u2019]?ts?|do not|not to|avoid|forbidden|prohibited|must not|mustn['\u2019]t|should not|shouldn['\u2019]t|not allowed|not permitted|cannot|can['\u2019]t|banned|anti-?patterns?|off[- ]limits)\b|[\u274c\U0001f6ab\u26d4]"
)
_BOTH = re.compile(r"(?i)\bdo['\u2019]?s\b|\bdo (?:and|&|/|or)\b|\bviolat|\bbreak\b")
"""A heading over what to do, too: "Do's and don'ts", "Rules that you never violate"."""

_CONDITION = re.compile(  # e.g. When you add a test
    r"(?i)\W*(?:\d+[.)] )?(?:when(?:ever)?|if|for|before|after|while|during|once|unless|in case|every time|each time|as soon as)\b"
)
_RECURS = re.compile(r"(?i)\W*(?:\d+[.)] )?(?:when(?:ever)?|if|before|after|every time|each time)\b")
_IS_NEGATIVE = re.compile(  # e.g. Never push
    r"(?i)\W*(?:never|no|not|don['\u2019]?t|do not|avoid|without|must not|forbidden|[\u274c\U0001f6ab\u26d4])"
)
_BOLD = re.compile(r"\*\*([^*\n]+)\*\*")


TextKind = Literal["instructions", "persona", "talk"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text: instructions, whose orders hold each time; what begins with a persona, and is long; or plain talk."""

    text: str
    kind: TextKind


def parts_of(text: str) -> Iterator[TextPart]:
    r"""Yield what is written for an agent in a user's message, and the rest.

    >>> [(part.text, part.kind) for part in parts_of("<rules>\nUse tabs.\n</rules>\nFix the test.")]
    [('\nUse tabs.\n', 'instructions'), ('\nFix the test.', 'talk')]
    """
    while (frame := _FRAME.match(text)) is not None:
        yield TextPart(frame["inside"], "instructions")
        text = text[frame.end() :]
    header = _HEADER.match(text)
    if header is not None and _is_instruction_header(header["keys"]):
        yield TextPart(text[header.end() :], "instructions")
    elif text.strip():
        yield TextPart(text, "instructions" if _is_titled(text) else "persona" if _PERSONA.match(text) else "talk")


def without_rules_of_others(text: str) -> str:
    """Return a text without the lines that present rules of somebody else, and what these present: a list, a paragraph, or all that follows."""
    lines, own, is_theirs, is_paragraph = text.split("\n"), list[str](), False, False
    for number, line in enumerate(lines):
        is_paragraph = is_paragraph and bool(line.strip())
        is_theirs = is_theirs and (not line.strip() or bool(LIST_MARK.match(line)))
        if is_theirs or is_paragraph:
            continue
        lead, mark, rest = line.partition(":" if ":" in line else "?")
        if not mark or (mark == "?" and rest.strip()) or not is_of_others(lead):
            own.append(line)
            continue
        below = next(filter(str.strip, lines[number + 1 : number + 3]), "")
        if not rest.strip() and mark == ":" and not LIST_MARK.match(below):
            if not "".join(lines[number + 1 : number + 2]).strip():
                break
            is_paragraph = True
        is_theirs = not rest.strip()
        if mark == "?" and not LIST_MARK.match(below):
            own.append(line)
    return "\n".join(own)


def _is_titled(text: str) -> bool:
    title = _TITLE.match(text)
    return title is not None and not is_of_others(title[0].strip(" \n:#"))


def without_header(text: str) -> str:
    """Return a text without the header of a Markdown file."""
    header = _HEADER.match(text)
    return text[header.end() :] if header else text


def _is_instruction_header(keys: str) -> bool:
    """True for the header of a file for agents: it says what it applies to, or describes itself and was not published."""
    return bool(_FILE_KEYS.search(keys) or (_DESCRIBED.search(keys) and not _PUBLISHED.search(keys)))


class Leads:
    """The lines that govern the items below them, outermost first, as the lines of a section are read in order."""

    def __init__(self, title: str = "") -> None:
        self.is_opened = False
        """True where the line that was read last governs items."""
        self._title = governing_title(title)
        self._open: list[tuple[int, str]] = []

    def enter(self, line: str, bare: str) -> str:
        """Read the next line, ``bare`` without its list mark; return the line that governs it, "" for none."""
        lead = governing_line(bare)
        self.is_opened = bool(lead)
        if bare == line:
            if (bold := _BOLD.fullmatch(line.strip())) is not None and not lead:
                self._title = governing_title(bold[1])
                self.is_opened = bool(self._title)
            self._open = [(-1, lead)] if lead else []
            return ""
        indent = len(line) - len(line.lstrip())
        self._open = [(depth, lead) for depth, lead in self._open if depth < indent]
        above = self._open[-1][1] if self._open else "" if _IS_NEGATIVE.match(bare) else self._title
        if lead:
            self._open.append((indent, lead))
        return above


def governing_line(line: str) -> str:
    """Return the end of a line that says when the items below it hold, or demands or forbids them; "" for any other.

    >>> governing_line("Three things. You must **never**:"), governing_line("Three things:")
    ('You must never', '')
    """
    core = " ".join(line.replace("**", "").replace("__", "").split()).rsplit(". ", 1)[-1]
    if not core.endswith((":", "\uff1a")) or len(core) > LEAD_MAX_CHARS:
        return ""
    return core[:-1].rstrip() if _FORCES.search(core) or _CONDITION.match(core) else ""


def governing_title(title: str) -> str:
    """Return a heading that says when what is under it holds, or forbids it; "" for any other."""
    core = title.strip(" :#*")
    is_governing = _CONDITION.match(core) or (_NEGATES.search(core) and not _BOTH.search(core))
    return core if is_governing and len(core) <= HEADING_MAX_CHARS else ""


def forces(lead: str) -> bool:
    """True for a line that demands or forbids what its items name."""
    return bool(_FORCES.search(lead) or _NEGATES.search(lead))


def recurs(lead: str) -> bool:
    """True for a line that says when its items are due, each time."""
    return bool(_RECURS.match(lead))


def negates(lead: str) -> bool:
    """True for a line that forbids what its items name."""
    return bool(_NEGATES.search(lead))
