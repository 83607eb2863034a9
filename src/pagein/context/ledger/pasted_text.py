# ruff: noqa: RUF001 - letters of other languages
"""The text of others in a message: code, quotations, documents that were pasted, forwarded mails, logs, tables. What is left is the speaker's own.

Every pattern here is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pagein.context.ledger.dictated import after_report, is_dictated
from pagein.context.ledger.instructions import (
    LEAD_MAX_CHARS,
    LIST_MARK,
    TextPart,
    governing_title,
    without_rules_of_others,
)
from pagein.context.ledger.pattern_file import PatternFile

LONG_TEXT_CHARS = 3_000
"""Characters of own text from which a user's message is taken for a paste between its first and its last paragraph."""

LONG_TEXT_ENDS = (1_200, 1_000)
"""Characters of a long message read at its start and at its end."""

PASTED_LINES_SHARE = 0.5
"""Share of lines that look like data, code or a log, from which a paragraph is taken for a paste."""

PASTED = PatternFile("pasted_text.txt")
_find = PASTED.pattern

_FENCE = re.compile(
    r"(?ims)<!--(?:(?!<!--).)*?-->|^[ \t]*_No response_[ \t]*$|```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|\"{3}.*?\"{3}|'{3}.*?'{3}|^[ \t]*(?:\"{3}|'{3}).*\Z|(?<![^\n:：.!?]\n)^[ \t]*(?P<rule>[=*_#+]{4,}|-{5,})[ \t]*\n.*?^[ \t]*(?P=rule)[ \t]*$"
    r"|^[ \t]*[-=*#<>\[]{2,}[ \t]*(?:begin|start)\b[^\n]*\n(?:[^\n]*\n){0,400}?[ \t]*[-=*#<>\[]{2,}[ \t]*(?:end|stop)\b[^\n]*$"
)
"""Code, the words of a form, and what stands between two marks: triple quotes, two equal rules, a line of its begin and one of its end."""
OWN_TAGS = r"(?:tasks?|user|user_\w+|query|questions?|request|prompt|instructions?|rules?|requirements?|constraints?|guidelines?|input|feedback|answer|important|goal|objective)"
_OWN_TAG = re.compile(rf"(?im)^[ \t]*</?{OWN_TAGS}>[ \t]*|[ \t]*</{OWN_TAGS}>[ \t]*$")
"""A tag around the speaker's own words."""

_STAMPED = re.compile(
    r"(?im)^[ \t]*(?:\[?\d{1,4}[./-]\d{1,2}[./-]\d{2,4},?[ \t]+\d{1,2}[:.]\d\d(?:[:.]\d\d)?[ \t]*(?:[ap]\.?m\.?)?\]?|\[\d{1,2}[:.]\d\d(?:[:.]\d\d)?[ \t]*(?:[ap]\.?m\.?)?\]|\d{1,2}:\d\d(?:[ \t]*[ap]m)?(?=[ \t]*[-\u2013\u2014]))"
    r"[ \t]*(?:[-\u2013\u2014][ \t]*)?[^\W\d_][^\n:]{0,40}:[ \t]+\S"
)
"""An exported chat: a line that begins with a date and a time, or with a time in brackets, and a name."""

_TRANSCRIPT = re.compile(
    r"^[ \t]*(?P<who>[^\W\d_][\w.' -]{0,30}):[ \t]+\S[^\n]*\n+(?:(?![ \t]*(?P=who):)[ \t]*[^\W\d_][\w.' -]{0,30}:[ \t]+\S[^\n]*\n+){1,6}[ \t]*(?P=who):",
    re.MULTILINE,
)
"""A talk that was copied: lines that begin with names, of which one comes again."""


_LABEL = re.compile(r"\W*\w+(?: [\w'-]+){0,2}:\s*", re.ASCII)
_ASKS_FOR_THOUGHTS = re.compile(r"(?i)\s*thoughts")
"""Asked of a few words, it asks what the agent thinks of a rule of the speaker's own."""
_STAMP = re.compile(  # e.g. Ana replied 3 hours ago
    r"(?im)^(?=[^\n]{3,90}$)(?![^\n]*[^\W\d_]{3,}[.!?]$)(?:[^\n]*(?:\b\d{1,2}[:.]\d\d\b|\b\d+ ?(?:h|hrs?|hours?|min|minutes?|d|days?|w|weeks?|mo|months?|y|years?)\b(?: ago)?|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w* \d{1,2}\b)[^\n]*)$"
)
_STAMP_MARK = re.compile(
    r"(?i)[@·•—✓]|\S {2,}\S|<[^<>\s]+@[^<>\s]+>|\[\d|\d\]|\bago\b|\b(?:commented|asked|answered|edited|posted|replied|added a comment|reviewed|opened|tweeted)\b|-->"
)
"""What a line with a time has where a platform wrote it over somebody's words, or under them."""
_PAGE_MARK = re.compile(
    r"(?im)\A---\n(?:[\w-]+:[^\n]*\n){1,30}---\n|^page \d+(?: of \d+)?[ \t]*$|^WEBVTT\b|^\d+:\d\d[\d:.,]* --> |^by [A-Z][\w.'-]+ [A-Z][\w.'-]+[ \t]*$|^BEGIN:V[A-Z]+$|^act (?:\d|[IVX]+)\b[^\n]{0,20}\bscene\b|^(?-i:INT|EXT)\. "
)
"""What begins a document alone: its header, the number of a page, an author's line."""
_CSV_WORDS = re.compile(r"(?i), (?:and|or|but|the|a|i|we|you|my)\b")
_SECTION = re.compile(r"(?im)^(?=#{1,6} )|^[ \t]*</?[a-z][\w-]{1,40}>[ \t]*$|^-{3,}[ \t]*$")
"""Where a section of a text for agents begins: a heading, a tag of its own, a rule."""
TITLE = re.compile(r"#{1,6} +([^\n]+)")
_DEEPEST = 6
_QUOTED_LINES = re.compile(
    r"\b(?:said|says|wrote|writes|replied|answered|told \w+)\b[^\"\u201c\n]{0,25}[\"\u201c](?=[^\"\u201d\n]{0,2000}\n)[^\"\u201d]{1,4000}[\"\u201d]"
)
"""What somebody said, over several lines."""
SENTENCE_ENDS = re.compile(
    r"[.!?\u2026]+[\"'\u201d\u2019)\]]*(?=\s|$)|[\u3002\uff01\uff1f\u0964\u061f]+[\u300d\u300f\u201d]?"
)
MASK = "\x00"


def own_sections(part: TextPart) -> Iterator[tuple[str, str]]:
    """Yield headings of a text, "" without one, with what is the speaker's own under each.

    Where the text is written for an agent, what a line presents ends with its section, and the sections in that.
    """
    if part.kind != "instructions":
        own = strip_foreign_text(part.text, is_talk=part.kind == "talk")
        is_long = part.kind == "talk" and len(own) > LONG_TEXT_CHARS and not is_dictated(part.text)
        yield "", _ends_of(own) if is_long else own
        return
    plain = _strip_tagged(_FENCE.sub("\n\n\x01\n\n", part.text.replace("\r\n", "\n")))
    outer = _DEEPEST
    for section in _SECTION.split(plain):
        title = TITLE.match(section)
        if title is not None and title[0].index(" ") > outer:
            continue  # a section of the text that was presented
        text = section[title.end() :] if title else section
        is_source = title is not None and _find("SOURCE_TITLE").fullmatch(title[1].strip(" :*"))
        own = "" if is_source else strip_foreign_text(text, is_talk=False)
        last = own.rpartition("\n")[2]
        is_open = last.endswith((":", "\uff1a")) and not text.partition(last)[2].lstrip().startswith("\x01")
        presents = is_source or is_open or _find("INTRODUCED").search(text)
        outer = title[0].index(" ") if title and presents else _DEEPEST
        yield (title[1] if title else ""), own


def strip_foreign_text(text: str, *, is_talk: bool = True) -> str:
    r"""Remove code blocks, quotations, tagged sources, forwarded mails, introduced texts, data, logs and tables.

    In talk, rules of somebody else go, too; in a text for an agent "The parser has these rules:" presents its own.

    >>> strip_foreign_text("Use tabs.\n> Never use tabs.\n\nHere is the mail:\nNever pay by card.")
    'Use tabs.'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace(MASK, " ")
    text = _QUOTED_LINES.sub("", _OWN_TAG.sub("", text))
    text = without_rules_of_others(text) if is_talk else text
    text = _strip_tagged(_FENCE.sub("\n\n\x01\n\n", text))
    for pasted in (_find("FORWARDED"), _find("CHAT"), _STAMPED, _TRANSCRIPT, _find("DIALOGUE"), _PAGE_MARK):
        if (start := pasted.search(text)) is not None:
            text = text[: start.start()]
    if (stamp := next((line for line in _STAMP.finditer(text) if _STAMP_MARK.search(line[0])), None)) is not None:
        text = text[: text.rfind("\n\n", 0, stamp.start()) + 1]
    if (letter := _find("SALUTATION").search(text)) is not None and _find("CLOSE").search(text, letter.end()):
        text = text[: letter.start()]
    if (letter := _find("LETTER").search(text)) is not None and letter[0].strip() != text.strip():
        text = f"{text[: letter.start()]}\n\n{text[letter.end() :]}"
    paragraphs = re.split(r"\n(?:[ \t]*\n)+", text)
    reactions = [paragraph for paragraph in paragraphs if _find("REACTION").fullmatch(paragraph)]
    if reactions and not (len(text) <= LEAD_MAX_CHARS and _ASKS_FOR_THOUGHTS.match(reactions[0])):
        return ""
    own = [block for block in map(_strip_lines, _before_texts(paragraphs)) if block]
    return "\n\n".join(_before_introductions(own))


def _strip_tagged(text: str) -> str:
    """Remove what stands between the tags of a source, such as ``<document>``; a tag without an end is plain text."""
    lower, parts, start, unclosed = text.lower(), [], 0, set()
    for tag in _find("SOURCE_OPENS").finditer(text):
        name = tag[1].lower()
        if tag.start() < start or name in unclosed:
            continue
        end = lower.find(f"</{name}>", tag.end())
        if end < 0:
            unclosed.add(name)
            continue
        parts.append(text[start : tag.start()])
        start = end + len(name) + 3
    return "\n\n".join((*parts, text[start:]))


def _before_texts(paragraphs: list[str]) -> Iterator[str]:
    """Yield paragraphs up to a line that presents a text: with a colon and nothing of one's own, or a question about a text."""
    for number, paragraph in enumerate(paragraphs):
        lines = paragraph.split("\n")
        follows = "".join(paragraphs[number + 1 : number + 2])
        for at, line in enumerate(lines):
            rest = "\n".join(lines[at + 1 :]) or follows
            is_lead = (
                line.rstrip().endswith((":", "：")) and not LIST_MARK.match(rest) and not _find("OWN_LEAD").search(line)
            )
            is_lead = is_lead and not (_LABEL.fullmatch(line) and not _find("PRESENTING").search(line))
            is_question = at == len(lines) - 1 and _find("ASKED_OF_TEXT").search(line)
            if (is_lead or is_question) and rest and not rest.startswith("\x01") and len(line) <= LEAD_MAX_CHARS:
                yield "\n".join(lines[: at + 1])
                return
        yield paragraph


def _before_introductions(paragraphs: list[str]) -> Iterator[str]:
    """Yield paragraphs without what an introduction such as "here is the mail:" presents.

    An introduction that ends its line presents all that follows, unless a code block or a quotation follows, which is
    gone already. One with a colon within a line presents the rest of its paragraph, one without ("the page says that")
    its own sentence.
    """
    for number, paragraph in enumerate(paragraphs):
        follows = paragraphs[number + 1] if number + 1 < len(paragraphs) else ""
        rest = paragraph
        while (intro := _find("INTRODUCED").search(rest)) is not None:
            own = rest[: intro.start()].rstrip()
            cut = max(own.rfind(". "), own.rfind("! "), own.rfind("? "), own.rfind("\n"))
            if own[: cut + 1].strip():
                yield own[: cut + 1]
            is_open = intro[0].rstrip()[-1:] in ":\uff1a.?!"
            rest = rest[intro.end() :]
            if rest.strip()[:1] in ('"', "\u201c", "\u00ab", "\u201e", "\u2018", "'"):
                rest = _after_quotation(rest.lstrip()) or ""
            elif not is_open:
                ending = SENTENCE_ENDS.search(rest)
                rest = rest[ending.end() :] if ending else after_report(rest, paragraph)
            elif not rest.split("\n")[0].strip() and (rest.strip() or not follows.startswith(("\x01", '"', "\u201c"))):
                return
            else:
                rest = ""
        if rest.strip():
            yield rest


def _after_quotation(text: str) -> str | None:
    """Return what follows the quotation a text begins with; None where it is not closed."""
    closing = {'"': '"', "\u201c": "\u201d", "\u00ab": "\u00bb", "\u201e": "\u201c", "\u2018": "\u2019", "'": "'"}[
        text[0]
    ]
    end = text.find(closing, 1)
    return text[end + 1 :] if end > 0 else None


def _strip_lines(paragraph: str) -> str:
    """Return a paragraph without quoted lines and indented code; empty where it looks like data, code or a log."""
    lines = [line for line in paragraph.split("\n") if line.strip()]
    lines = [
        line
        for line in lines
        if not line.lstrip().startswith(">") and (not line.startswith(("    ", "\t")) or LIST_MARK.match(line))
    ]
    if not lines:
        return ""
    own = [
        line
        for line in lines
        if not _find("DATA_LINE").match(line)
        or _is_prose_list(line)
        or _find("OWN_LEAD").fullmatch(line.strip(" :"))
        or _is_title(line)
    ]
    return "\n".join(own) if len(own) > len(lines) * (1 - PASTED_LINES_SHARE) else ""


def _is_title(line: str) -> bool:
    """True for a Markdown heading; of one mark, which begins comments, too, only where it governs what is under it."""
    title = TITLE.match(line)
    return title is not None and (line.startswith("##") or bool(governing_title(title[1])))


def _is_prose_list(line: str) -> bool:
    """True for a sentence with many commas, which is no row of data."""
    is_row = line.lstrip()[:1] in "{}[]<|" or line.rstrip().endswith((";", "{", "}"))
    return not is_row and "\t" not in line and line.count(" ") >= 6 and bool(_CSV_WORDS.search(line))


def _ends_of(text: str) -> str:
    """Return the first and the last paragraphs of a long text."""
    head, tail = LONG_TEXT_ENDS
    first = text[:head].rpartition("\n")[0] or text[:head].rpartition(". ")[0]
    last = text[-tail:].partition("\n")[2] or text[-tail:].partition(". ")[2]
    return f"{first}\n\n{last}"
