"""The speaker's own sentences in a text.

A text is read at its two ends only, without what the application wrote around it and what is of others (``pasted_text``).
Every pattern here is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from pagein.context.ledger.dictated import clauses_of
from pagein.context.ledger.instructions import LIST_MARK, Leads, TextPart, parts_of, without_header
from pagein.context.ledger.pasted_text import MASK, OWN_TAGS, SENTENCE_ENDS, TITLE, own_sections

END_MAX_CHARS = 20_000
"""Characters read at each end of a text."""

SENTENCE_MAX_CHARS = 700
"""Characters of a sentence; a longer one is a paste without punctuation and is left out."""


_OPENER = re.compile(r"^\s*[\"\u201c\u00ab\u201e\u300c]")
_QUOTES = (
    re.compile(r'"[^"\n]{1,2000}"'),
    re.compile(r"\u201c[^\u201d\n]{1,2000}\u201d"),
    re.compile(r"\u201e[^\u201c\u201d\n]{1,2000}[\u201c\u201d]"),
    re.compile(r"\u00ab[^\u00bb\n]{1,2000}\u00bb"),
    re.compile(r"[\u300c\u300e][^\u300d\u300f\n]{1,2000}[\u300d\u300f]"),
    re.compile(r"(?<![\w'])'[A-Z][^'\n]{12,600}[.!?,]?'(?!\w)"),
    re.compile(r"(?<!\w)\u2018[^\u2019\n]{12,600}\u2019(?!\w)"),
)
_SAYS = re.compile(
    r"(?i)\b(?:sa(?:y|ys|id|ying)|reads?|reading|states?|goes|went|wrote|writes|told|tells|asked|replied|answered|shouted|"
    r"yelled|quote|called out|motto|slogan|lyrics?|phrase|sign|saying|title|titled|says that)\b[^\"\u201c\n]{0,25}$"
)
_CODE_SPAN = re.compile(r"`[^`\n]{1,300}`")
_ABBREVIATION = re.compile(
    r"(?i)(?:\b(?:e\.g|i\.e|etc|mr|mrs|ms|dr|prof|st|no|nr|vs|approx|ca|cf|fig|inc|ltd|co|jr|sr|dept|est|min|max|maks|máx|макс|(?-i:pr)|tel|ext|"
    r"jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|z\.b|d\.h|bzw|usw|evtl|p\.ej|art|al|a\.k\.a|aka|incl|excl|w\.r\.t|u\.s|u\.k)|"
    r"(?<![A-Za-z])[A-Z]|(?<![\w])(?:[a-z]\.)+[a-z])\.$",
)  # fmt: skip
_ORDINAL = re.compile(r"\b\d{1,2}\.$")
_DAY_AND_MONTH = re.compile(r"\b[0-3]?\d\.[01]?\d\.$")
_MONTH = re.compile(r"(?i) (?:jan|feb|m[aä]r|apr|ma[ijy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])\w*\b")
"""A month behind an ordinal, as in "am 19. Mai"."""
_CONTINUES = re.compile(r"^(?:[a-z(]|\d+(?![.)]))")
_SUPPOSES = re.compile(
    r"(?i)\W*(?:(?:and|so|now|ok(?:ay)?)[, ]+)*(?:suppose|hypothetically|what if|imagine(?! (?:that )?you(?:'re| are|\u2019re)\b)|say (?:an?|somebody|someone|you|your)\b|an? [^?]*[.!] (?:how (?:many|much|long|far|fast|old)|what(?:'s| is) the|which|who|why)\b[^?.]*\?\W*$)"
)
"""A paragraph that begins so tells what is not the case, or sets a problem: "A train must ... How long does it take?"."""
_ASKS_WHETHER = re.compile(
    r"(?i)(?:(?:so|and|but|wait|hm+)\W+)*(?:(?:is|was) (?:that|this|it) (?:really |actually |even |still |also |just )*(?:right|true|correct|accurate|legal|normal|so|a (?:law|myth|rule|thing))\b[^?]{0,60}|(?:did|do|have) I (?:get|got|understand|understood|remember) (?:that|this|it) (?:right|correctly)|really|nonsense|true(?: or false)?|how come\b[^?]{0,60}|why(?: (?:is|are|do|does) (?:that|this|it|they)\b[^?]{0,60})?|what if (?:they|he|she|some\w+|one|you)\b[^?]{0,60}|(?:can|may|could|do|should) (?:they|he|she)\b[^?]{0,60}|(?:is|was) (?:he|she|the \w+|my \w+) right\b[^?]{0,40})\?"
)
"""A question whether what was just said is so: the speaker does not say it of their own."""
_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERR(?:OR)?|FATAL|CRIT(?:ICAL)?)\b"
_CLOCK = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:[ \t]*[ap]\.?m\b\.?)?"
_IS_OWN_TAG = rf"(?=/?(?:{OWN_TAGS}|[\w -]{{0,20}}(?:instructions|rules|guidelines)|system[_-]reminder)\b)"
_HOST_MARK = re.compile(
    rf"(?i)\s*(?:\[(?!\[)(?!{_LEVEL})[^\[\]{{}}\"\n]{{1,80}}\](?![(\[:])|<(?!{_IS_OWN_TAG})(?P<tag>[\w-]{{1,40}})>[^<>\n]{{0,120}}</(?P=tag)>|<(?!{_IS_OWN_TAG})[^<>\n/!?=]{{1,60}}>(?![\s\S]{{0,2000}}</)"
    rf"|\([^()\n]{{0,40}}\b{_CLOCK}[^()\n]{{0,40}}\)|\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d\S{{0,16}}(?!\s+(?:is|was|or|and|to|until)\b))"
    rf"(?![ \t]*(?:\w+ )?{_LEVEL})(?:[ \t]*[-:\u2013\u2014])?(?![ \t]*(?:[^\W\d_][\w .'-]{{0,40}}:[ \t]|<(?!{_IS_OWN_TAG})))\s*"
)
"""What an application writes before a message: when or from whom it came. With a time and a name it is a line of a chat."""
_HOST_END = re.compile(
    rf"(?i)\s{{0,20}}(?:\[[^\[\]\n]{{0,40}}\b{_CLOCK}[^\[\]\n]{{0,20}}\]|<(?!{_IS_OWN_TAG})(?P<tag>[\w-]{{1,40}})>[^<>\n]{{0,120}}</(?P=tag)>)\s{{0,20}}\Z"
)


@dataclass(frozen=True, slots=True)
class OwnSentence:
    """A sentence of the speaker: ``text`` as it was said, ``masked`` with long quotations blanked, same length."""

    text: str
    masked: str
    before: str = ""
    """The sentence right before it in the same text, or the line that introduces its list."""
    lead: str = ""
    """What both begin with where a line governs the list: "Never: ", "When you add a test: "."""
    is_standing: bool = False
    """It stands among instructions: what it orders holds each time."""


def own_sentences(text: str, *, is_written_for_agent: bool = False) -> Iterator[OwnSentence]:
    """Yield the speaker's own sentences in order; ``is_written_for_agent`` for a system prompt."""
    clipped = _strip_host_marks(clip_middle(text))
    whole = TextPart(without_header(clipped), "instructions")
    for part in (whole,) if is_written_for_agent else parts_of(clipped):
        for title, own in own_sections(part):
            yield from _read_lines(own, Leads(title), is_standing=part.kind == "instructions")


def _read_lines(own: str, leads: Leads, *, is_standing: bool) -> Iterator[OwnSentence]:
    before = heading = ""
    for line, below in pairwise((*_lines(own), "")):
        if title := TITLE.match(line):
            leads = Leads(title[1])
            continue
        bare = LIST_MARK.sub("", line)
        is_item = bare != line
        above = leads.enter(line, bare)
        if _OPENER.match(bare) and not any(quote.match(bare.strip()) for quote in _QUOTES):
            continue  # a quotation over several lines
        if _SUPPOSES.match(bare):
            continue
        for sentence, follows in pairwise((*split_sentences(bare), "")):
            if _ASKS_WHETHER.match(follows):
                continue
            lead = f"{above}: " if above else ""
            if follows or not (leads.is_opened and LIST_MARK.match(below)):  # its items say it
                masked = f"{lead}{_mask_quotes(sentence)}"
                yield OwnSentence(f"{lead}{sentence}", masked, heading if is_item else before, lead, is_standing)
            before = sentence
        if not is_item:
            heading = before


def clip_middle(text: str) -> str:
    """Return both ends of a long text, parted by an empty line."""
    if len(text) <= 2 * END_MAX_CHARS:
        return text
    return f"{text[:END_MAX_CHARS]}\n\n{text[-END_MAX_CHARS:]}"


def _strip_host_marks(text: str) -> str:
    """Remove what the application wrote around the words. Where other lines begin so, too, the text is a log or a chat."""
    mark = _HOST_MARK.match(text)
    start = mark.end() if mark else 0
    behind = (_HOST_MARK.match(line) for line in text[start:].split("\n"))
    if mark and any(other is not None and _mark_kind(other) == _mark_kind(mark) for other in behind):
        return text
    return _HOST_END.sub("", text[start:])


def _mark_kind(mark: re.Match[str]) -> tuple[bool, str]:
    return any(map(str.isdigit, mark[0])), mark[0].lstrip()[0]


def split_sentences(line: str) -> Iterator[str]:
    """Yield the sentences of one line, with white space normalised.

    >>> list(split_sentences("Use v2.1, e.g. for tests. Never `rm. x`! Ok"))
    ['Use v2.1, e.g. for tests.', 'Never `rm. x`!', 'Ok']
    """
    shape = _CODE_SPAN.sub(lambda span: "x" * len(span[0]), line)
    for quote in _QUOTES[:5]:
        shape = quote.sub(lambda span: span[0][0] + "x" * (len(span[0]) - 2) + span[0][-1], shape)
    start = 0
    for end in SENTENCE_ENDS.finditer(shape):
        if end[0] == "." and not _ends_sentence(shape, end.end()):
            continue
        yield from _clean(line[start : end.end()])
        start = end.end()
    yield from _clean(line[start:])


def _ends_sentence(shape: str, end: int) -> bool:
    """True for a full stop before ``end`` that belongs to no ordinal, date or abbreviation."""
    tail = shape[max(0, end - 12) : end]
    if _ORDINAL.search(tail) and _MONTH.match(shape, end):
        return False
    if shape[end + 1 : end + 2].islower() and _DAY_AND_MONTH.search(tail):
        return False
    rest = shape[end : end + 2].strip()
    return not _ABBREVIATION.search(tail) or not (
        rest[:1].islower() or rest[:1].isdigit() or not _is_closed_abbreviation(tail)
    )


def _is_closed_abbreviation(text: str) -> bool:
    """True for an abbreviation that often ends a sentence, such as ``etc.`` and ``p.m.``"""
    return text.lower().endswith(("etc.", "p.m.", "a.m.", "max.", "min.", "inc.", "ltd.", "co.", "sat.", "sun.", "no."))


def _clean(sentence: str) -> Iterator[str]:
    for clause in clauses_of(" ".join(sentence.split()).strip("*_ ")):
        if 2 <= len(clause) <= SENTENCE_MAX_CHARS and "\x01" not in clause:
            yield clause.replace("**", "").replace("__", "")


def _lines(text: str) -> Iterator[str]:
    """Yield lines; a sentence wrapped over lines is joined again."""
    joined = ""
    for line in text.split("\n"):
        wraps = (
            len(joined) >= 40 and joined.rstrip()[-1:] not in ".!?:;\u3002" and _CONTINUES.match(line.strip() or "A")
        )
        if wraps and len(joined) < SENTENCE_MAX_CHARS:
            joined = f"{joined.rstrip()} {line.strip()}"
            continue
        if joined.strip():
            yield joined
        joined = line
    if joined.strip():
        yield joined


def _mask_quotes(sentence: str) -> str:
    """Blank quotations of four words and more, and shorter ones that somebody or something says."""

    def blank(span: re.Match[str]) -> str:
        inner = span[0][1:-1]
        is_long = len(inner.split()) >= 4 or (len(inner) >= 12 and not inner.isascii() and " " not in inner)
        if is_long or _SAYS.search(sentence[max(0, span.start() - 60) : span.start()]):
            return span[0][0] + MASK * len(inner) + span[0][-1]
        return span[0]

    for quote in _QUOTES:
        sentence = quote.sub(blank, sentence)
    if sentence.count('"') == 1:  # a quotation that goes on beyond the sentence
        at = sentence.index('"')
        inside = sentence[:at] if not sentence[:at].endswith((" ", "(", "")) and at else sentence[at:]
        sentence = sentence.replace(inside, MASK * len(inside)) if len(inside.split()) >= 4 else sentence
    return sentence
