"""Parsing of a model's reply, which is untrusted text, into a summary: tolerant of its form, strict about its content.

The form: prose and code fences around the JSON object are cut off, other keys ignored, items that cannot be read left out.
The content: a truncated reply, an echo of the run and a summary longer than its source are rejected; nothing is guessed.
Items with names or numbers that the run does not have are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args

from pagein.errors import PageinError
from pagein.events.handles import parse_handle
from pagein.events.identifiers import argument_text, identifiers
from pagein.summaries.key_items import split_sentences
from pagein.summaries.renderer import render_item
from pagein.summaries.reply_json import UnreadableReply, parse_reply_object
from pagein.summaries.sanitize import normalize_text, one_line
from pagein.summaries.spans import Span
from pagein.summaries.summary import SECTIONS, SINGLE, Summary, SummaryItem, TaskItem, TaskStatus
from pagein.tokens import TokenCounter


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


_TEXT = {"type": "string"}
_FIELDS: Mapping[str, Any] = {"text": _TEXT, "note": _TEXT, "handles": {"type": "array", "items": _TEXT}}
_ENTRY = _object(**_FIELDS)
_TASK = _object(id=_TEXT, status={"type": "string", "enum": [*get_args(TaskStatus)]}, **_FIELDS)
_ENTRY_OR_NOTHING = {"anyOf": [_ENTRY, {"type": "null"}]}

REPLY_SCHEMA: Mapping[str, Any] = _object(
    objective=_ENTRY_OR_NOTHING,
    state=_ENTRY_OR_NOTHING,
    **{name: {"type": "array", "items": _TASK if name == "tasks" else _ENTRY} for name in SECTIONS},
)
"""The schema; ``summaries/prompts/shape.txt`` says the same in words."""


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

_NUMBER = re.compile(r"(?<![\w.])v?(\d{3,}|\d+(?:[.:]\d+)+)(?!\w)")
"""A number of three digits and more, a decimal, a version, a time of day."""
_DIGIT_COMMA = re.compile(r"(?<=\d),(?=\d)")

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
    if truncated:
        raise SummaryRejected("truncated", "the model stopped at its output limit")
    start = span.first if first is None else first
    said = _parse_shape(reply, author).map_items(lambda items: _sanitize_items(items, span, start))
    summary = _demote_unsourced_rules(said, span, trusted_texts)
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


def remove_invented(summary: Summary, known: Iterable[str]) -> Summary:
    """Remove each item with a name or a number that no known text has, and each such note. A number under 100 counts as said.

    Raises SummaryRejected if nothing is left.
    """
    known_text = _DIGIT_COMMA.sub("", "\n".join(known)).casefold()

    def find_unknown(text: str) -> list[str]:
        text = _DIGIT_COMMA.sub("", text)
        return [name for name in (*identifiers(text), *_NUMBER.findall(text)) if not _is_known(name, known_text)]

    def keep(item: ItemT) -> ItemT | None:
        names = find_unknown(item.text) + (find_unknown(item.id) if isinstance(item, TaskItem) else [])
        removed.extend(names)
        return None if names else replace(item, note="") if find_unknown(item.note) else item

    removed: list[str] = []
    kept = summary.map_items(lambda items: filter(None, map(keep, items)))
    if kept.is_empty:
        raise SummaryRejected("unfaithful", f"the run does not have {', '.join(removed[:5])}")
    return kept


def _is_known(name: str, known_text: str) -> bool:
    """True if the text has the name, or of a path each part that is no plain word."""
    parts = name.casefold().split("/") if "/" in name else [name.casefold()]
    return name.casefold() in known_text or (
        len(parts) > 1 and all(part.isalpha() or part in known_text for part in parts)
    )


def _parse_shape(reply: str, author: str) -> Summary:
    try:
        summary, dropped = read_summary(parse_reply_object(reply, MAX_REPLY_CHARS), author)
    except UnreadableReply as error:
        raise SummaryRejected(error.reason, error.detail) from error
    if summary.is_empty and dropped:
        raise SummaryRejected("wrong shape", f"nothing in it could be read: {', '.join(dropped[:5])}")
    return summary


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


def _sanitize_items(items: tuple[ItemT, ...], span: Span, first: int) -> Iterator[ItemT]:
    """Sanitize and bound every text, check every handle, and leave empty items out."""
    if len(items) > MAX_ITEMS_PER_SECTION:
        raise SummaryRejected("longer", f"{len(items)} items in one section; at most {MAX_ITEMS_PER_SECTION} are read")
    tidy = (_sanitize_item(item, span, first) for item in items)
    return (item for item in tidy if item.text or (isinstance(item, TaskItem) and item.id))


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


_STATUS: Mapping[str, TaskStatus] = MappingProxyType(
    {
        **{status: status for status in get_args(TaskStatus)},
        **dict.fromkeys(("todo", "to do", "pending", "in progress", "ongoing", "not started", "started"), "open"),
        **dict.fromkeys(("complete", "completed", "finished", "closed", "resolved"), "done"),
        **dict.fromkeys(("waiting", "stuck"), "blocked"),
    }
)
"""Words for a task's status, in lower case."""

_GAPS = re.compile(r"[\s_-]+")


def read_summary(value: Mapping[str, Any], author: str) -> tuple[Summary, tuple[str, ...]]:
    """Read a summary from a model's JSON, as far as it can be read; return it with the paths of what was left out.

    Unknown keys are ignored. One item in place of a list is a list; a list in place of a text is joined.

    >>> summary, dropped = read_summary({"State": ["red", "slow"], "done": "all", "mood": 1, "errors": [{}]}, "m")
    >>> summary.state.text, summary.done[0].text, dropped
    ('red; slow', 'all', ('errors[0]',))
    """
    fields: dict[str, Any] = {}
    dropped: list[str] = []
    for key, content in value.items():
        name = _GAPS.sub("_", key.strip().casefold())
        if content is None or name in fields or name not in (*SINGLE, *SECTIONS):
            continue
        if name in SINGLE:
            item = _read_item(content, name, author)
            if item is not None:
                fields[name] = item
            elif content:
                dropped.append(name)
            continue
        rows = content if isinstance(content, list) else [content]
        items = [_read_item(row, name, author) for row in rows]
        dropped += [f"{name}[{index}]" for index, item in enumerate(items) if item is None]
        if readable := tuple(item for item in items if item is not None):
            fields[name] = readable
    return Summary(**fields), tuple(dropped)


def _read_item(value: object, section: str, author: str) -> SummaryItem | None:
    """An item; None where there is no text in it, or a task's status is none."""
    fields = value if isinstance(value, dict) else {"text": value}
    text, note = _as_text(fields.get("text")), _as_text(fields.get("note")) or ""
    id = _as_text(fields.get("id")) or "" if section == "tasks" else ""
    if text is None and not id:
        return None
    item = SummaryItem(text or "", note, tuple(_handles(fields.get("handles"))), author)
    if section != "tasks":
        return item
    status = _STATUS.get(_GAPS.sub(" ", str(fields.get("status") or "open").strip().casefold()))
    return None if status is None else TaskItem(item.text, note, item.handles, author, id, status)


def _as_text(value: object) -> str | None:
    """A text, a number, or a list of them as one text; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and value:
        texts = [text for item in value if (text := _as_text(item)) is not None]
        return "; ".join(texts) if len(texts) == len(value) else None
    return None


def _handles(value: object) -> Iterator[str]:
    for handle in value if isinstance(value, list) else [value]:
        if isinstance(handle, str):
            yield from re.split(r"[,\s]+", handle.strip("[] "))
