"""Search queries: for what the newest step does, and for what the user says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from pagein.context.page_in.named import newest_action, result_texts
from pagein.context.talk import is_speech
from pagein.context.view.view import View
from pagein.events.identifiers import argument_text, identifiers
from pagein.events.steps import TaskStep, as_text

if TYPE_CHECKING:
    from pagein.search.base import Hit

QUERY_MIN_TERMS = 3
"""Words of a user's message that say something, below which the exchange before it is looked for, too. Of LoCoMo's 24 questions with fewer, .69
of the evidence are among 40 hits for their own words, .06 for both in one query, .68 for two; of 450 that say nothing ("Tell me more about
this") .10, .87 and .80."""

QUERY_TEXT_MAX_CHARS, QUERY_MAX_NAMES = 600, 24
"""Characters of each text, and identifiers of the newest results, in the query."""


def build_query(view: View) -> str:
    """Build the query for a step: the newest user message, the newest action, and names in its results."""
    parts: list[str] = []
    user = next((entry.item for entry in reversed(view.run) if isinstance(entry.item, TaskStep)), None)
    if user is not None:
        parts.append(as_text(user.content)[-QUERY_TEXT_MAX_CHARS:])
    _, action = newest_action(view)
    if action is not None:
        parts.append(as_text(action.content or "")[-QUERY_TEXT_MAX_CHARS:])
        parts += [argument_text(call.arguments)[:QUERY_TEXT_MAX_CHARS] for call in action.tool_calls]
        names = (name for text in result_texts(action) for name in identifiers(text[: 20 * QUERY_TEXT_MAX_CHARS]))
        parts.append(" ".join(_first_unique(names, QUERY_MAX_NAMES)))
    return "\n".join(part for part in parts if part.strip())


def _first_unique(names: Iterable[str], limit: int) -> Iterable[str]:
    """Return the first distinct names, at most ``limit``; the rest is not read."""
    unique: dict[str, None] = {}
    for name in names:
        unique[name] = None
        if len(unique) == limit:
            break
    return unique


class Question(NamedTuple):
    """What is looked for where the user speaks: the user's words, and where they say little those with the exchange before.

    "" where they say nothing, and where they say enough.
    """

    own: str
    with_before: str = ""

    @property
    def text(self) -> str:
        """All that is looked for."""
        return self.with_before or self.own


def build_question(view: View) -> Question:
    """Build the queries for what the user says."""
    from pagein.search.tokenizer import count_telling  # noqa: PLC0415 - loads where something left

    speeches = islice((entry for entry in reversed(view.run) if is_speech(entry)), 3)
    texts = [as_text(entry.messages[0].content or "") for entry in speeches]
    if not texts:
        return Question("")
    question = _ends_of(texts[0], 4 * QUERY_TEXT_MAX_CHARS)
    telling_terms = count_telling(question, QUERY_MIN_TERMS)
    if telling_terms >= QUERY_MIN_TERMS:
        return Question(question)
    longer = "\n".join((question, *(_ends_of(text, QUERY_TEXT_MAX_CHARS) for text in texts[1:])))
    return Question(question if telling_terms else "", longer)


def _ends_of(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars // 2]}\n{text[-max_chars // 2 :]}"


def merge_hits(searches: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Merge the hits of several searches, best first: in each the best one's score is 1."""
    best: dict[tuple[str, str], Hit] = {}
    for hits in searches:
        top = max((hit.score for hit in hits), default=0.0) or 1.0
        for hit in hits:
            scaled = replace(hit, score=hit.score / top)
            if (key := (hit.handle, hit.text)) not in best or best[key].score < scaled.score:
                best[key] = scaled
    return sorted(best.values(), key=lambda hit: -hit.score)
