"""``format_memory_for_injection``: deer-flow's function, with the ranking that its paper promised.

A drop-in for its ``memory.json``: the profile, the history and the facts as plain dicts. Nothing is stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from pagein.facts.block import GUARANTEED_SHARE, checked_tokens, fill
from pagein.facts.fact import GUARANTEED, MAX_CONTENT_CHARS, Fact, content_key
from pagein.facts.ranking import Ranking, Weights
from pagein.summaries.sanitize import one_line
from pagein.tokens import TokenCounter
from pagein.tokens.encodings import Encoding

_PROFILE = (("workContext", "Work"), ("personalContext", "Personal"), ("topOfMind", "Current Focus"))
_HISTORY = (("recentMonths", "Recent"), ("earlierContext", "Earlier"), ("longTermBackground", "Background"))


def format_memory_for_injection(
    memory_data: Mapping[str, Any],
    max_tokens: int = 2000,
    current_context: str | None = None,
    *,
    similarity_weight: float = 0.6,
    confidence_weight: float = 0.4,
    counter: TokenCounter | None = None,
) -> str:
    """Render deer-flow's memory in at most ``max_tokens`` tokens: profile, history, then the ranked facts.

    Facts are ranked by similarity to ``current_context`` and confidence, without a context by confidence alone. Corrections
    and constraints come first; a fact that does not fit is skipped. Tokens are counted exactly, in cl100k_base without a
    ``counter``. Invalid values (no text, a confidence that is no number) are ignored, as in deer-flow. Texts are escaped as
    HTML. Raises ConfigurationError for weights that do not sum to 1.
    """
    weights = Weights(similarity_weight, confidence_weight)
    checked_tokens(max_tokens, "max_tokens")
    counter = counter or Encoding("cl100k_base")
    data = memory_data if isinstance(memory_data, Mapping) else {}
    lines = _select_lines(_lines(data.get("facts"), current_context or "", weights), max_tokens, counter)
    while True:
        facts = "\n".join(["Facts:", *lines]) if lines else ""
        whole = _with_profile(data, facts, max_tokens, counter)
        if counter.text(whole) <= max_tokens:
            return whole
        lines = lines[:-1]  # joined lines can cost more tokens


def _select_lines(lines: list[tuple[bool, str]], max_tokens: int, counter: TokenCounter) -> list[str]:
    """The lines that fit, guaranteed ones first; those that do not fit are skipped."""
    costs = [counter.text(line) + 1 for _, line in lines]
    room = max_tokens - counter.text("Facts:\n")
    first = [index for index, (sure, _) in enumerate(lines) if sure]
    indexes = [first[place] for place in fill([costs[index] for index in first], int(room * GUARANTEED_SHARE))]
    rest = [index for index in range(len(lines)) if index not in indexes]
    rest_room = room - sum(costs[index] for index in indexes)
    indexes += [rest[place] for place in fill([costs[index] for index in rest], rest_room)]
    return [lines[index][1] for index in indexes]


def _with_profile(data: Mapping[str, Any], facts: str, max_tokens: int, counter: TokenCounter) -> str:
    """The facts, preceded by those lines of profile and history that fit beside them."""
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
        section = part.get(key) if isinstance(part, Mapping) else None
        summary = section.get("summary") if isinstance(section, Mapping) else section
        if isinstance(summary, str) and summary.strip():
            yield f"- {title}: {_escape_line(summary)}"


def _lines(facts: object, context: str, weights: Weights) -> list[tuple[bool, str]]:
    """A line for each fact, best first, without repetitions; True for guaranteed ones."""
    ranking = Ranking(weights)
    lines: dict[str, tuple[bool, str]] = {}
    keys: set[str] = set()
    for number, item in enumerate(facts if isinstance(facts, list | tuple) else ()):
        content = item.get("content") if isinstance(item, Mapping) else None
        if not isinstance(content, str) or not (key := content_key(content)) or key in keys:
            continue
        keys.add(key)
        confidence = _confidence(item.get("confidence"))
        label = item.get("category")
        category = _escape_line(label).lower() if isinstance(label, str) and label.strip() else "context"
        fact = Fact(f"fa{number}", content.strip()[:MAX_CONTENT_CHARS], confidence=confidence)
        ranking.add(fact)
        avoid = item.get("sourceError")
        avoided = f" (avoid: {_escape_line(avoid)})" if isinstance(avoid, str) and avoid.strip() else ""
        line = f"- [{category} | {confidence:.2f}] {_escape_line(content)}{avoided}"
        lines[fact.id] = (category in GUARANTEED, line)
    return [lines[match.fact.id] for match in ranking.rank(context, now=0.0, limit=max(1, len(lines)))]


def _confidence(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return min(1.0, max(0.0, float(value)))


def _escape_line(text: str) -> str:
    """The text on one line. It is escaped first, so that cutting or joining cannot make a tag."""
    return one_line(escape(text, quote=False), MAX_CONTENT_CHARS)
