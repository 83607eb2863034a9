"""Strict parsing of a model's reply, which is untrusted text, into a summary.

Accepted is one JSON object of the requested shape, alone or in a code fence. Prose around it, other keys, truncated text,
an echo of the run and a summary longer than its source are rejected; nothing is guessed.
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
from pagein.summaries.key_items import split_sentences
from pagein.summaries.renderer import render_item
from pagein.summaries.sanitize import normalize_text, one_line
from pagein.summaries.spans import Span
from pagein.summaries.summary import SECTIONS, Summary, SummaryItem, TaskItem, summary_from_dict
from pagein.tokens import TokenCounter

RejectionReason = Literal["empty", "truncated", "not json", "wrong shape", "echo", "longer", "unfaithful"]

MAX_REPLY_CHARS = 400_000
"""Maximum characters of a reply."""

MAX_ITEMS_PER_SECTION = 300
"""Maximum items of a section."""

MAX_TEXT_CHARS, MAX_NOTE_CHARS, MAX_ID_CHARS = 2_000, 1_000, 100
"""Characters to which an item's text, note and id are cut."""

ECHO_SHARE, SHINGLE_WORDS, MIN_SHINGLES = 0.7, 8, 24
"""Share of a reply's shingles (runs of so many words) in the span above which it is an echo, and the minimum number of
shingles for this test. Rules, errors and identifiers are copied on purpose and do not count."""

_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\r?\n(.*?)\r?\n?```", re.DOTALL)
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+")

ItemT = TypeVar("ItemT", bound=SummaryItem)


class SummaryRejected(PageinError):
    """A model's summary was rejected. Nothing was recorded; ``reason`` and ``detail`` say why."""

    def __init__(self, reason: RejectionReason, detail: str) -> None:
        self.reason: RejectionReason = reason
        self.detail = detail
        super().__init__(f"the summary was rejected, {reason}: {detail}")


def parse_reply(
    reply: str,
    span: Span,
    *,
    author: str,
    counter: TokenCounter,
    truncated: bool = False,
    first: int | None = None,
    trusted_texts: Iterable[str] = (),
) -> Summary:
    """Parse a model's reply about ``span``; sanitize and bound every text, and check every handle.

    ``truncated`` is true if the provider stopped at its limit. ``first`` is the oldest position that a handle may name:
    the span's own, or an earlier one with a previous summary. An item without a handle gets the span's. A rule must
    be a text of the user or the host, in the span or in ``trusted_texts``; else it becomes its author's decision, so
    that a tool's output cannot make rules. Raises SummaryRejected with the reason.
    """
    text = _strip_fence(reply)
    if truncated:
        raise SummaryRejected("truncated", "the model stopped at its output limit")
    try:
        summary = summary_from_dict(_parse_json(text), author=author)
    except FormatError as error:
        raise SummaryRejected("wrong shape", str(error)) from error
    summary = _demote_unsourced_rules(
        _sanitize_summary(summary, span, span.first if first is None else first), span, trusted_texts
    )
    if summary.is_empty:
        raise SummaryRejected("empty", "it says nothing")
    source = "\n".join(argument_text(quoted.text) if quoted.speaker == "call" else quoted.text for quoted in span.texts)
    share = overlap_share(summary, source)
    if share > ECHO_SHARE:
        raise SummaryRejected("echo", f"{share:.0%} of it is copied from the run")
    size = counter.text("\n".join(render_item(item) for _, item in summary.entries()))
    whole = counter.text(source)
    if size >= whole:
        raise SummaryRejected("longer", f"{size} tokens would stand for {whole}")
    return summary


def _strip_fence(reply: str) -> str:
    if len(reply) > MAX_REPLY_CHARS:
        raise SummaryRejected("longer", f"{len(reply):,} characters; at most {MAX_REPLY_CHARS:,} are read")
    text = reply.strip().removeprefix("\ufeff").strip()
    if not text:
        raise SummaryRejected("empty", "the model answered nothing")
    if text.startswith("```"):
        match = _FENCE.fullmatch(text)
        if match is None:
            raise SummaryRejected("truncated" if text.count("```") == 1 else "not json", "the code fence is not closed")
        return match[1].strip()
    return text


def _parse_json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        if text.startswith("{") and _is_unclosed(text):
            raise SummaryRejected("truncated", "the JSON breaks off") from error
        raise SummaryRejected("not json", f"{error.msg} at character {error.pos} of {len(text)}") from error
    except (ValueError, RecursionError) as error:
        raise SummaryRejected("wrong shape", str(error)[:200]) from error


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        # Choosing one of the two would be a guess.
        raise SummaryRejected("wrong shape", "a key is given twice")
    return value


def _reject_constant(name: str) -> object:
    raise SummaryRejected("wrong shape", f"{name} is no JSON")


def _is_unclosed(text: str) -> bool:
    """True if an object, a list or a string is not closed at the end."""
    depth, quoted, escaped = 0, False, False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        else:
            depth += (character in "{[") - (character in "}]")
    return quoted or depth > 0


def _sanitize_summary(summary: Summary, span: Span, first: int) -> Summary:
    """Sanitize and bound every text, check every handle, and remove empty items."""
    fields = {name: _sanitize_items(getattr(summary, name), span, first) for name in SECTIONS}
    single = {
        name: next(iter(_sanitize_items((item,), span, first)), None)
        for name in ("objective", "state")
        if (item := getattr(summary, name)) is not None
    }
    return replace(summary, **fields, **single)  # type: ignore[arg-type]  # each field keeps its own type


def _demote_unsourced_rules(summary: Summary, span: Span, trusted_texts: Iterable[str]) -> Summary:
    """Keep only the rules of the user or the host; turn the others into their author's decisions."""
    texts = [quoted.text for quoted in span.texts if quoted.speaker in ("user", "system")]
    # Whole sentences: "never touch the database" contains "touch the database".
    trusted_sentences = {
        normalize_text(sentence)
        for text in (*texts, *trusted_texts)
        for part in text.splitlines()
        for sentence in (part, *split_sentences(part))
    }
    rules = tuple(
        rule
        for rule in summary.constraints
        if normalize_text(rule.text) in trusted_sentences
        or all(normalize_text(one) in trusted_sentences for one in split_sentences(rule.text))
    )
    others = tuple(rule for rule in summary.constraints if rule not in rules)
    return replace(summary, constraints=rules, decisions=(*summary.decisions, *others))


def _sanitize_items(items: Iterable[ItemT], span: Span, first: int) -> tuple[ItemT, ...]:
    entries = tuple(items)
    if len(entries) > MAX_ITEMS_PER_SECTION:
        raise SummaryRejected(
            "longer", f"{len(entries)} items in one section; at most {MAX_ITEMS_PER_SECTION} are read"
        )
    tidy = (_sanitize_item(item, span, first) for item in entries)
    return tuple(item for item in tidy if item.text or (isinstance(item, TaskItem) and item.id))


def _sanitize_item(item: ItemT, span: Span, first: int) -> ItemT:
    parsed = (parse_handle(handle) for handle in item.handles)
    valid = (
        handle for handle in parsed if handle and min(first, span.first) <= handle.first and handle.last <= span.last
    )
    handles = tuple(dict.fromkeys(map(str, valid))) or (span.handle,)
    tidy = replace(
        item, text=one_line(item.text, MAX_TEXT_CHARS), note=one_line(item.note, MAX_NOTE_CHARS), handles=handles
    )
    return replace(tidy, id=one_line(tidy.id, MAX_ID_CHARS)) if isinstance(tidy, TaskItem) else tidy


def overlap_share(summary: Summary, source: str) -> float:
    """Share of the summary's free text that is copied from the source; 0 if there is too little text."""
    copied_on_purpose = {"constraints", "errors", "artifacts"}
    shingles = {
        shingle
        for section, item in summary.entries()
        if section not in copied_on_purpose
        for text in (item.text, item.note)
        for shingle in _shingles(text)
    }
    if len(shingles) < MIN_SHINGLES:
        return 0.0
    source_shingles = frozenset(_shingles(source))
    return sum(value in source_shingles for value in shingles) / len(shingles)


def _shingles(text: str) -> Iterable[int]:
    words = _WORD.findall(text.casefold())
    return (hash(tuple(words[at : at + SHINGLE_WORDS])) for at in range(len(words) - SHINGLE_WORDS + 1))
