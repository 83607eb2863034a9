"""``format_memory_for_injection``: deer-flow's function, with what its paper promised and its code never did.

A drop-in for its ``memory.json``: the profile, the history and the facts as plain dicts. Nothing is stored here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from pagein.facts.block import SHARE, checked_tokens, fill
from pagein.facts.fact import GUARANTEED, MOST_CONTENT, Fact, key_of
from pagein.facts.ranking import Ranking, Weights
from pagein.summaries.sanitize import one_line
from pagein.tokens import TokenCounter
from pagein.tokens.encodings import Encoding

_PROFILE = (("workContext", "Work"), ("personalContext", "Personal"), ("topOfMind", "Current Focus"))
_HISTORY = (
    ("recentMonths", "Recent"),
    ("earlierContext", "Earlier"),
    ("longTermBackground", "Background"),
)


def format_memory_for_injection(
    memory_data: Mapping[str, Any],
    max_tokens: int = 2000,
    current_context: str | None = None,
    *,
    similarity_weight: float = 0.6,
    confidence_weight: float = 0.4,
    counter: TokenCounter | None = None,
) -> str:
    """Deer-flow's memory as text of at most ``max_tokens`` tokens: profile, history, then the facts that matter now.

    Facts are ranked by similarity to ``current_context`` and confidence, without a context by confidence alone;
    corrections and constraints come first, and one that does not fit is passed over. Counted exactly, in cl100k_base
    without a ``counter``. Values that are of no use (no text, a confidence that is no number) count for nothing, as in
    deer-flow. Texts are escaped as HTML is. Raises ConfigurationError for weights that do not sum to 1.
    """
    weights = Weights(similarity_weight, confidence_weight)
    checked_tokens(max_tokens, "max_tokens")
    counter = counter or Encoding("cl100k_base")
    data = memory_data if isinstance(memory_data, Mapping) else {}
    lines = _fitting(_lines(data.get("facts"), current_context or "", weights), max_tokens, counter)
    while True:
        facts = "\n".join(["Facts:", *lines]) if lines else ""
        whole = _with_profile(data, facts, max_tokens, counter)
        if counter.text(whole) <= max_tokens:
            return whole
        lines = lines[:-1]  # tokens can differ where lines meet


def _fitting(lines: list[tuple[bool, str]], max_tokens: int, counter: TokenCounter) -> list[str]:
    """The lines that fit, those that are sure of their share first; what does not fit is passed over."""
    costs = [counter.text(line) + 1 for _, line in lines]
    room = max_tokens - counter.text("Facts:\n")
    first = [index for index, (sure, _) in enumerate(lines) if sure]
    taken = [first[each] for each in fill([costs[index] for index in first], int(room * SHARE))]
    rest = [index for index in range(len(lines)) if index not in taken]
    left = room - sum(costs[index] for index in taken)
    taken += [rest[each] for each in fill([costs[index] for index in rest], left)]
    return [lines[index][1] for index in taken]


def _with_profile(data: Mapping[str, Any], facts: str, max_tokens: int, counter: TokenCounter) -> str:
    """Profile and history before the facts, where they fit beside them; a line that does not is passed over."""
    sections: list[str] = []
    for title, part, names in (("User Context", "user", _PROFILE), ("History", "history", _HISTORY)):
        lines: list[str] = []
        for line in _profile(data.get(part), names):
            section = f"{title}:\n" + "\n".join([*lines, line])
            if counter.text("\n\n".join([*sections, section, facts])) <= max_tokens:
                lines.append(line)
        if lines:
            sections.append(f"{title}:\n" + "\n".join(lines))
    return "\n\n".join(filter(None, [*sections, facts]))


def _profile(part: object, names: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for key, title in names:
        held = part.get(key) if isinstance(part, Mapping) else None
        said = held.get("summary") if isinstance(held, Mapping) else held
        if isinstance(said, str) and said.strip():
            yield f"- {title}: {_inert(said)}"


def _lines(facts: object, context: str, weights: Weights) -> list[tuple[bool, str]]:
    """A line for each fact, best first, each text once; True for those that come before all others."""
    ranking = Ranking(weights)
    lines: dict[str, tuple[bool, str]] = {}
    seen: set[str] = set()
    for number, each in enumerate(facts if isinstance(facts, list | tuple) else ()):
        content = each.get("content") if isinstance(each, Mapping) else None
        if not isinstance(content, str) or not (key := key_of(content)) or key in seen:
            continue
        seen.add(key)
        confidence = _confidence(each.get("confidence"))
        given = each.get("category")
        category = _inert(given).lower() if isinstance(given, str) and given.strip() else "context"
        fact = Fact(f"fa{number}", content.strip()[:MOST_CONTENT], confidence=confidence)
        ranking.put(fact)
        avoid = each.get("sourceError")
        avoided = f" (avoid: {_inert(avoid)})" if isinstance(avoid, str) and avoid.strip() else ""
        line = f"- [{category} | {confidence:.2f}] {_inert(content)}{avoided}"
        lines[fact.id] = (category in GUARANTEED, line)
    return [lines[each.fact.id] for each in ranking.ranked(context, now=0.0, limit=max(1, len(lines)))]


def _confidence(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return min(1.0, max(0.0, float(value)))


def _inert(text: str) -> str:
    """The text on one line, escaped first: what is cut off or joined cannot then make a tag."""
    return one_line(escape(text, quote=False), MOST_CONTENT)
