"""What of a span survives in what stands for it, measured by rules; what is missing is repaired from the source.

A mention survives *in sight* where it stands in the summary's text or in a pin: rules and errors word for word,
identifiers whole, a decision by most of its words on one line. It is *reachable* where the text names its step's own
handle, or the archive holds it. Rules have to be in sight; the rest is a measure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pagein.context.salience.lines import Reader
from pagein.events.entries import Survival
from pagein.events.handles import Handle, parse_handle
from pagein.summaries.extractive import grounding
from pagein.summaries.key_items import KINDS, Kind, Mention, mentions
from pagein.summaries.merge import merged
from pagein.summaries.renderer import entry, rendered
from pagein.summaries.reply_parser import SummaryRejected
from pagein.summaries.sanitize import normal, one_line
from pagein.summaries.spans import Span
from pagein.summaries.summary import Item, Section, Summary
from pagein.tokens import TokenCounter

THRESHOLD = 0.2
"""Weighted share in sight under which a summary, as its model wrote it, is refused. Low on purpose: what is missing is
repaired from the source; a summary under it is about something else."""

ROOM = 8
"""Tokens of a summary for each point of weight it is asked to show: of a long run a short text can show but a part."""

WEIGHTS: dict[Kind, int] = {
    "constraint": 8,
    "error": 3,
    "decision": 2,
    "path": 2,
    "identifier": 1,
    "number": 1,
}
"""What one mention of a kind counts in the score."""

MOST_OF = 0.6
"""Share of a decision's words that one line must have."""

WIDEST = 3
"""Positions up to which a handle in the text is a step's own; a wider one says only where to search."""

_HANDLE = re.compile(r"s(?<!\ws)\d{1,15}(?:\.\d{1,9}|-s?\d{1,15})?\b")
"""It begins with its letter, by which a text is gone through in a third of the time that a ``\\b`` before it takes."""

_WORDS = re.compile(r"\w{3,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Fidelity:
    """What survived by kind, and every mention that is not in sight."""

    kinds: tuple[Survival, ...]
    missing: tuple[Mention, ...] = ()

    def of(self, kind: Kind) -> Survival:
        """What survived of one kind."""
        return next(each for each in self.kinds if each.kind == kind)

    @property
    def score(self) -> float:
        """The share in sight over all kinds, by ``WEIGHTS``; 1 where there was nothing to lose."""
        total = sum(WEIGHTS[kind] * self.of(kind).total for kind in KINDS)
        return sum(WEIGHTS[kind] * self.of(kind).in_sight for kind in KINDS) / total if total else 1.0

    def held_against(self, tokens: int) -> float:
        """The weight in sight as a share of what a text of so many tokens could show; at most 1."""
        total = sum(WEIGHTS[kind] * self.of(kind).total for kind in KINDS)
        possible = min(total, max(1, tokens // ROOM))
        return min(1.0, self.score * total / possible) if total else 1.0

    def as_dict(self) -> dict[str, list[int]]:
        """By kind: total, in sight, in sight or reachable; for JSON."""
        return {each.kind: [each.total, each.in_sight, each.reachable] for each in self.kinds}


def measured(
    found: Iterable[Mention],
    text: str,
    *,
    pins: Iterable[str] = (),
    archive: Iterable[str] = (),
    reader: Reader | None = None,
) -> Fidelity:
    """What of the mentions survives in ``text``, the pins, and by handle; ``archive`` are the handles it holds.

    Deterministic, and linear in the text for each mention. A ``reader`` that read the run before reads nothing twice.
    """
    held = tuple(found)
    sight = _Sight((text, *pins), reader or Reader())
    named = [parsed for each in _HANDLE.findall(text) if (parsed := parse_handle(each))]
    own = [each for each in named if each.last - each.first <= WIDEST]
    own += [parsed for each in archive if (parsed := parse_handle(each))]
    missing = tuple(each for each in held if not sight.shows(each))
    total, lost = Counter(each.kind for each in held), Counter(each.kind for each in missing)
    back = {handle for handle in {each.handle for each in missing} if _is_reached(handle, own)}
    reached = Counter(each.kind for each in missing if each.handle in back)
    return Fidelity(
        tuple(
            Survival(kind, total[kind], total[kind] - lost[kind], total[kind] - lost[kind] + reached[kind])
            for kind in KINDS
        ),
        missing,
    )


class _Sight:
    """The texts that are in sight; what only some kinds of mentions are looked for in is made where one is."""

    def __init__(self, texts: Iterable[str], reader: Reader) -> None:
        self._lines = [one_line(line, 20_000) for text in texts for line in text.splitlines()]
        self._reader = reader
        self.text = " \n ".join(self._lines)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(name for line in self._lines for name in self._reader.line(line).names)

    @cached_property
    def folded(self) -> str:
        return self.text.casefold()

    @cached_property
    def lines(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(_words(line)) for line in self._lines)

    def shows(self, each: Mention) -> bool:
        match each.kind:
            case "constraint" | "error":
                return normal(each.text) in self.folded
            case "decision":
                words = frozenset(_words(each.text))
                return any(len(words & line) >= MOST_OF * len(words) for line in self.lines)
            case _:
                return each.text in self.names or _stands(each.text, self.text)


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.casefold())


def _stands(name: str, text: str) -> bool:
    """True where the name stands in the text, whole: not as a piece of a longer one."""
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
        if not (_inner(before) or _inner(after)):
            return True
        at = text.find(name, at + 1)
    return False


def _inner(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_reached(handle: str, by: Sequence[Handle]) -> bool:
    wanted = parse_handle(handle)
    return wanted is not None and any(
        held.first <= wanted.first
        and wanted.last <= held.last
        and held.observation in (None, wanted.observation)
        for held in by
    )


def repaired(
    summary: Summary, span: Span, report: Fidelity, tokens: int, *, counter: TokenCounter
) -> Summary:
    """The summary with what is missing added from the source: every rule, and the rest in at most ``tokens`` tokens.

    The most important kinds come first, within one the newest; what does not fit is listed as not covered, by kind and
    with the span's handle.
    """
    added: dict[Section, list[Item]] = {}
    short: dict[Kind, int] = {}
    for kind in KINDS:
        lost = [each for each in report.missing if each.kind == kind]
        for each in reversed(lost):
            section, item = _copied(each)
            cost = counter.text(entry(item)) + 2
            if kind != "constraint" and cost > tokens:
                short[kind] = short.get(kind, 0) + 1
                continue
            tokens -= cost if kind != "constraint" else 0
            added.setdefault(section, []).append(item)
    rest = [Item(f"{count} of the run's {kind}s", handles=(span.handle,)) for kind, count in short.items()]
    copies = {section: tuple(reversed(items)) for section, items in added.items()}
    # The copies are the older side: what the summary itself says of the same thing goes before.
    joined = merged(Summary(**copies), summary)  # type: ignore[arg-type]  # no copy is a task
    return replace(joined, not_covered=(*joined.not_covered, *rest)) if rest else joined


def _copied(each: Mention) -> tuple[Section, Item]:
    match each.kind:
        case "constraint":
            return "constraints", Item(each.text, handles=(each.handle,))
        case "error":
            return "errors", Item(each.text, handles=(each.handle,))
        case "decision":
            return "decisions", Item(each.text, handles=(each.handle,))
        case _:
            return "artifacts", Item(each.text, grounding(each), (each.handle,))


def accepted(report: Fidelity, tokens: int, threshold: float = THRESHOLD) -> None:
    """Nothing, where a text of ``tokens`` tokens reaches the threshold. Raises SummaryRejected, naming what is missing."""
    share = report.held_against(tokens)
    if share < threshold:
        lost = ", ".join(each.text[:60] for each in report.missing[:5])
        raise SummaryRejected(
            "unfaithful",
            f"it shows {share:.0%} of what its {tokens} tokens could, {threshold:.0%} is wanted; missing: {lost}",
        )


@dataclass(frozen=True, slots=True)
class Verified:
    """A summary that was held against its source: as repaired, as text, and what survives in that text."""

    summary: Summary
    text: str
    before: Fidelity
    after: Fidelity


def verified(
    summary: Summary,
    span: Span,
    tokens: int,
    *,
    counter: TokenCounter,
    pins: Iterable[str] = (),
    threshold: float | None = THRESHOLD,
    previous: Summary | None = None,
    handle: str = "",
) -> Verified:
    """The new summary of ``span`` measured, refused or repaired, merged behind ``previous``, and rendered.

    ``handle`` is of all the text stands for (the span's, where there is no previous summary). ``threshold`` None
    refuses nothing, as for an extractive summary. Raises SummaryRejected under the threshold.
    """
    held, found = tuple(pins), mentions(span)
    written = "\n".join(entry(item) for _, item in summary.entries())
    before = measured(found, written, pins=held)
    if threshold is not None:
        accepted(before, counter.text(written), threshold)
    whole = repaired(summary, span, before, tokens, counter=counter)
    whole = merged(previous, whole) if previous is not None else whole
    text = rendered(whole, tokens, counter, handle=handle or span.handle)
    return Verified(whole, text, before, measured(found, text, pins=held))
