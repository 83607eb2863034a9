"""A model's reply, read strictly into a summary, or refused with a reason. A reply is untrusted text.

Accepted is one JSON object of the shape that was asked for, alone or alone inside a code fence. Prose around it, other
keys, cut-off text, an echo of the run and anything longer than what it stands for are refused; nothing is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, TypeVar

from pagein.errors import FormatError, PageinError
from pagein.events.handles import parse_handle
from pagein.events.identifiers import argument_text
from pagein.summaries.key_items import sentences
from pagein.summaries.renderer import entry
from pagein.summaries.sanitize import normal, one_line
from pagein.summaries.spans import Span
from pagein.summaries.summary import SECTIONS, Item, Summary, Task, from_value
from pagein.tokens import TokenCounter

Reason = Literal["empty", "truncated", "not json", "wrong shape", "echo", "longer", "unfaithful"]

MOST_REPLY = 400_000
"""Characters beyond which a reply is not read."""

MOST_ENTRIES = 300
"""Entries a field may have."""

MOST_TEXT, MOST_NOTE, MOST_ID = 2_000, 1_000, 100
"""Characters an entry's text, note and id are cut to."""

ECHO, SHINGLE, LEAST_SHINGLES = 0.7, 8, 24
"""Share of runs of that many words in free text that also stand in the span, from which a reply is an echo of it; and
how many there must be for a judgement. Rules, errors and identifiers are copied on purpose and do not count."""

_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\r?\n(.*?)\r?\n?```", re.DOTALL)
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+")

Entry = TypeVar("Entry", bound=Item)


class SummaryRejected(PageinError):
    """A model's summary that may not stand for anything. Nothing was recorded; ``reason`` and ``detail`` say why."""

    def __init__(self, reason: Reason, detail: str) -> None:
        self.reason: Reason = reason
        self.detail = detail
        super().__init__(f"the summary was refused, {reason}: {detail}")


def parsed(
    reply: str,
    span: Span,
    *,
    author: str,
    counter: TokenCounter,
    truncated: bool = False,
    first: int | None = None,
    heard: Iterable[str] = (),
) -> Summary:
    """The summary in a model's reply about ``span``; every text bounded and inert, every handle one that exists.

    ``truncated`` says that the provider stopped at its limit; ``first`` is the oldest position a handle may name (the
    span's own, or an earlier one where a previous summary was given); an entry without a handle gets the span's. A
    rule counts as one where the user or the host said it, in the span or in the texts ``heard``; else it is a
    decision of its author, or a tool's output could make rules. Raises SummaryRejected, with the reason.
    """
    text = _unfenced(reply)
    if truncated:
        raise SummaryRejected("truncated", "the model stopped at its output limit")
    try:
        summary = from_value(_json(text), author=author)
    except FormatError as error:
        raise SummaryRejected("wrong shape", str(error)) from error
    summary = _ruled(_tidied(summary, span, span.first if first is None else first), span, heard)
    if summary.is_empty:
        raise SummaryRejected("empty", "it says nothing")
    source = "\n".join(argument_text(each.text) if each.voice == "call" else each.text for each in span.said)
    share = overlap(summary, source)
    if share > ECHO:
        raise SummaryRejected("echo", f"{share:.0%} of it is copied from the run")
    size = counter.text("\n".join(entry(item) for _, item in summary.entries()))
    whole = counter.text(source)
    if size >= whole:
        raise SummaryRejected("longer", f"{size} tokens would stand for {whole}")
    return summary


def _unfenced(reply: str) -> str:
    if len(reply) > MOST_REPLY:
        raise SummaryRejected("longer", f"{len(reply):,} characters; at most {MOST_REPLY:,} are read")
    text = reply.strip().removeprefix("\ufeff").strip()
    if not text:
        raise SummaryRejected("empty", "the model answered nothing")
    if text.startswith("```"):
        found = _FENCE.fullmatch(text)
        if found is None:
            raise SummaryRejected(
                "truncated" if text.count("```") == 1 else "not json", "the code fence is not closed"
            )
        return found[1].strip()
    return text


def _json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        if text.startswith("{") and _is_open(text):
            raise SummaryRejected("truncated", "the JSON breaks off") from error
        raise SummaryRejected("not json", f"{error.msg} at character {error.pos} of {len(text)}") from error
    except (ValueError, RecursionError) as error:
        raise SummaryRejected("wrong shape", str(error)[:200]) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        # Which of the two would be meant is a guess.
        raise SummaryRejected("wrong shape", "a key is given twice")
    return found


def _no_constant(name: str) -> object:
    raise SummaryRejected("wrong shape", f"{name} is no JSON")


def _is_open(text: str) -> bool:
    """True where an object, a list or a string is not closed at the end."""
    depth, quoted, escaped = 0, False, False
    for each in text:
        if quoted:
            quoted = escaped or each != '"'
            escaped = each == "\\" and not escaped
        elif each == '"':
            quoted = True
        else:
            depth += (each in "{[") - (each in "}]")
    return quoted or depth > 0


def _tidied(summary: Summary, span: Span, first: int) -> Summary:
    """Every text inert and bounded, every handle checked, empty entries gone."""
    fields = {name: _kept(getattr(summary, name), span, first) for name in SECTIONS}
    one = {
        name: next(iter(_kept((held,), span, first)), None)
        for name in ("objective", "state")
        if (held := getattr(summary, name)) is not None
    }
    return replace(summary, **fields, **one)  # type: ignore[arg-type]  # each field keeps its own type


def _ruled(summary: Summary, span: Span, heard: Iterable[str]) -> Summary:
    """The summary with those rules only that the user or the host gave; the others are its author's decisions."""
    voices = [each.text for each in span.said if each.voice in ("user", "system")]
    # Whole sentences: "touch the database" also stands in "never touch the database".
    said = {
        normal(each)
        for text in (*voices, *heard)
        for part in text.splitlines()
        for each in (part, *sentences(part))
    }
    given = tuple(
        each
        for each in summary.constraints
        if normal(each.text) in said or all(normal(one) in said for one in sentences(each.text))
    )
    others = tuple(each for each in summary.constraints if each not in given)
    return replace(summary, constraints=given, decisions=(*summary.decisions, *others))


def _kept(items: Iterable[Entry], span: Span, first: int) -> tuple[Entry, ...]:
    held = tuple(items)
    if len(held) > MOST_ENTRIES:
        raise SummaryRejected("longer", f"{len(held)} entries in one field; at most {MOST_ENTRIES} are read")
    tidy = (_inert(each, span, first) for each in held)
    return tuple(each for each in tidy if each.text or (isinstance(each, Task) and each.id))


def _inert(item: Entry, span: Span, first: int) -> Entry:
    named = (parse_handle(each) for each in item.handles)
    known = (
        each for each in named if each and min(first, span.first) <= each.first and each.last <= span.last
    )
    handles = tuple(dict.fromkeys(map(str, known))) or (span.handle,)
    tidy = replace(
        item, text=one_line(item.text, MOST_TEXT), note=one_line(item.note, MOST_NOTE), handles=handles
    )
    return replace(tidy, id=one_line(tidy.id, MOST_ID)) if isinstance(tidy, Task) else tidy


def overlap(summary: Summary, source: str) -> float:
    """The share of the summary's free text that stands word for word in the source; 0 where there is too little."""
    copied_on_purpose = {"constraints", "errors", "artifacts"}
    said = {
        shingle
        for section, item in summary.entries()
        if section not in copied_on_purpose
        for text in (item.text, item.note)
        for shingle in _shingles(text)
    }
    if len(said) < LEAST_SHINGLES:
        return 0.0
    known = frozenset(_shingles(source))
    return sum(each in known for each in said) / len(said)


def _shingles(text: str) -> Iterable[int]:
    words = _WORD.findall(text.casefold())
    return (hash(tuple(words[at : at + SHINGLE])) for at in range(len(words) - SHINGLE + 1))
