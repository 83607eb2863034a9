"""Fidelity of a summary: the share of a span's key items that survive in it; repair of missing ones from the source.

A key item is *in sight* if it is in the summary's text or in a pin: rules word for word, identifiers whole, a decision by
most of its words on one line, an error by the first ``ERROR_SEEN_CHARS`` characters of its line, which have its type and
the beginning of its message. An error that came several times, or was solved later, is one error. It is *reachable* if the text names its step's own handle.
Rules must be in sight; for the rest this is a measure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pagein.context.ledger.error_lines import error_key
from pagein.context.salience.lines import LineParser
from pagein.events.entries import RetentionScore
from pagein.events.handles import Handle, parse_handle
from pagein.summaries.extractive import context_line
from pagein.summaries.key_items import KINDS, KeyItem, KeyItemKind, find_key_items
from pagein.summaries.merge import merge_summaries
from pagein.summaries.renderer import render_item, render_summary
from pagein.summaries.reply_parser import SummaryRejected
from pagein.summaries.sanitize import normalize_text, one_line
from pagein.summaries.spans import Span
from pagein.summaries.summary import SectionName, Summary, SummaryItem
from pagein.tokens import TokenCounter

MIN_SCORE = 0.2
"""Weighted share in sight below which a model's summary is rejected. Low on purpose: missing items are repaired from
the source; a summary below it is about something else."""

TOKENS_PER_POINT = 8
"""Tokens of a summary for each point of weight that it should show: a short text cannot show all of a long run."""

KIND_WEIGHTS: dict[KeyItemKind, int] = {
    "constraint": 8,
    "error": 3,
    "decision": 2,
    "path": 2,
    "identifier": 1,
    "number": 1,
}
"""Weight of one key item of a kind in the score."""

ERROR_SEEN_CHARS = 80
"""Characters of an error that must be in sight, without addresses, places and times."""

DECISION_WORD_SHARE = 0.6
"""Share of a decision's words that one line must contain."""

MAX_HANDLE_WIDTH = 3
"""Positions up to which a handle in the text counts as its steps' own; a wider one only says where to search."""

_HANDLE = re.compile(r"s(?<!\ws)\d{1,15}(?:\.\d{1,9}|-s?\d{1,15})?\b")
"""Begins with its letter: a search takes a third of the time of one with ``\\b`` at the start."""

_WORDS = re.compile(r"\w{3,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Fidelity:
    """Retention scores by kind, and every key item that is not in sight."""

    scores: tuple[RetentionScore, ...]
    missing: tuple[KeyItem, ...] = ()

    def score_of(self, kind: KeyItemKind) -> RetentionScore:
        """Retention score of one kind."""
        return next(score for score in self.scores if score.kind == kind)

    @property
    def score(self) -> float:
        """Share in sight over all kinds, by ``KIND_WEIGHTS``; 1 without key items."""
        return self._share_of(self._weigh("total"))

    def score_for_length(self, tokens: int) -> float:
        """Weight in sight as a share of what a text of ``tokens`` tokens could show; at most 1."""
        return self._share_of(min(self._weigh("total"), max(1, tokens // TOKENS_PER_POINT)))

    def _share_of(self, weight: int) -> float:
        return min(1.0, self._weigh("in_sight") / weight) if weight else 1.0

    def _weigh(self, count: str) -> int:
        return sum(weight * getattr(self.score_of(kind), count) for kind, weight in KIND_WEIGHTS.items())


def measure_fidelity(
    key_items: Iterable[KeyItem], text: str, *, pins: Iterable[str] = (), parser: LineParser | None = None
) -> Fidelity:
    """Measure which key items survive in ``text`` and the pins.

    Deterministic, and linear in the text for each item. A ``parser`` that parsed the run before has its lines cached.
    """
    items = tuple(key_items)
    visible = _VisibleText((text, *pins), parser or LineParser())
    handles = [parsed for name in _HANDLE.findall(text) if (parsed := parse_handle(name))]
    step_handles = [handle for handle in handles if handle.last - handle.first <= MAX_HANDLE_WIDTH]
    missing = tuple(item for item in items if not visible.shows(item))
    reachable = {name for name in {item.handle for item in missing} if _is_reachable(name, step_handles)}
    total = Counter(item.kind for item in items)
    in_sight = total - Counter(item.kind for item in missing)
    recoverable = Counter(item.kind for item in missing if item.handle in reachable)
    scores = (RetentionScore(kind, total[kind], in_sight[kind], in_sight[kind] + recoverable[kind]) for kind in KINDS)
    return Fidelity(tuple(scores), missing)


class _VisibleText:
    """The texts that are in sight, in the forms that the kinds of key items are searched in, built on demand."""

    def __init__(self, texts: Iterable[str], parser: LineParser) -> None:
        self._lines = [one_line(line, 20_000) for text in texts for line in text.splitlines()]
        self._parser = parser
        self.text = " \n ".join(self._lines)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(name for line in self._lines for name in self._parser.parse_line(line).names)

    @cached_property
    def casefold_text(self) -> str:
        return self.text.casefold()

    @cached_property
    def errors(self) -> str:
        return error_key(self.text)

    @cached_property
    def line_words(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(_words(line)) for line in self._lines)

    def shows(self, item: KeyItem) -> bool:
        match item.kind:
            case "constraint":
                return normalize_text(item.text) in self.casefold_text
            case "error":
                return error_key(item.text)[:ERROR_SEEN_CHARS] in self.errors
            case "decision":
                words = frozenset(_words(item.text))
                return any(len(words & line) >= DECISION_WORD_SHARE * len(words) for line in self.line_words)
            case _:
                return item.text in self.names or _contains_name(item.text, self.text)


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.casefold())


def _contains_name(name: str, text: str) -> bool:
    """True if the text contains the name as a whole, not as a part of a longer one."""
    return name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _is_reachable(handle: str, handles: Sequence[Handle]) -> bool:
    target = parse_handle(handle)
    return target is not None and any(
        handle_range.first <= target.first
        and target.last <= handle_range.last
        and handle_range.observation in (None, target.observation)
        for handle_range in handles
    )


_SECTIONS: dict[KeyItemKind, SectionName] = {
    "constraint": "constraints", "error": "errors", "decision": "decisions",
}  # fmt: skip
"""The sections of what is copied as it was said; names go to the artifacts, with their lines."""


def repair_summary(summary: Summary, span: Span, report: Fidelity, tokens: int, *, counter: TokenCounter) -> Summary:
    """Add missing key items from the source: every rule, and others in at most ``tokens`` tokens.

    The most important kinds come first, within a kind the newest. Items without room are counted by kind under
    ``not_covered``, with the span's handle.
    """
    added: dict[SectionName, list[SummaryItem]] = {}
    omitted: dict[KeyItemKind, int] = {}
    for kind in KINDS:
        missing = [key_item for key_item in report.missing if key_item.kind == kind]
        for key_item in reversed(missing):
            section = _SECTIONS.get(kind, "artifacts")
            item = SummaryItem(key_item.text, "" if kind in _SECTIONS else context_line(key_item), (key_item.handle,))
            cost = counter.text(render_item(item)) + 2
            if kind != "constraint" and cost > tokens:
                omitted[kind] = omitted.get(kind, 0) + 1
                continue
            tokens -= cost if kind != "constraint" else 0
            added.setdefault(section, []).append(item)
    notes = [SummaryItem(f"{count} of the run's {kind}s", handles=(span.handle,)) for kind, count in omitted.items()]
    copies = {section: tuple(reversed(items)) for section, items in added.items()}
    # The copies are the older side: the summary's own text on the same thing wins.
    repaired = merge_summaries(Summary(**copies), summary)  # type: ignore[arg-type]  # no copy is a task
    return replace(repaired, not_covered=(*repaired.not_covered, *notes)) if notes else repaired


def check_fidelity(report: Fidelity, tokens: int, threshold: float = MIN_SCORE) -> None:
    """Raise SummaryRejected, naming missing items, if a text of ``tokens`` tokens is below the threshold."""
    share = report.score_for_length(tokens)
    if share < threshold:
        missing = ", ".join(item.text[:60] for item in report.missing[:5])
        raise SummaryRejected(
            "unfaithful",
            f"it shows {share:.0%} of what its {tokens} tokens could, {threshold:.0%} is required; missing: {missing}",
        )


@dataclass(frozen=True, slots=True)
class VerifiedSummary:
    """A verified summary: repaired, rendered, and its fidelity before and after."""

    summary: Summary
    text: str
    before: Fidelity
    after: Fidelity


def verify_summary(
    summary: Summary,
    span: Span,
    tokens: int,
    *,
    counter: TokenCounter,
    pins: Iterable[str] = (),
    threshold: float | None = MIN_SCORE,
    previous: Summary | None = None,
    handle: str = "",
) -> VerifiedSummary:
    """Measure a new summary of ``span``, reject or repair it, merge it with ``previous``, and render it.

    ``handle`` covers all that the text stands for (default: the span). ``threshold`` None rejects nothing, as for an
    extractive summary. Raises SummaryRejected below the threshold.
    """
    pin_texts, key_items = tuple(pins), find_key_items(span)
    summary_text = "\n".join(render_item(item) for _, item in summary.entries())
    before = measure_fidelity(key_items, summary_text, pins=pin_texts)
    if threshold is not None:
        check_fidelity(before, counter.text(summary_text), threshold)
    repaired = repair_summary(summary, span, before, tokens, counter=counter)
    repaired = merge_summaries(previous, repaired) if previous is not None else repaired
    text = render_summary(repaired, tokens, counter, handle=handle or span.handle)
    return VerifiedSummary(repaired, text, before, measure_fidelity(key_items, text, pins=pin_texts))
