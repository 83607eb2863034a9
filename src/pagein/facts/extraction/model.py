"""Extraction of facts by a model: the request, and the checks of its answer. Texts are quoted as data; the answer is untrusted.

One JSON object of the requested shape is accepted, alone or alone in a code fence. A candidate that lacks a label, is
not sure enough, does not last, or has a name that no text has, is dropped. An answer of another shape is rejected.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pagein.events.secrets import holds_secret
from pagein.facts.contradiction import specifics
from pagein.facts.extraction.rules import Utterance
from pagein.facts.fact import Fact, FactError, checked_category, checked_confidence, checked_content
from pagein.facts.owners import Owners
from pagein.facts.reconcile import FactDraft
from pagein.facts.settings import Settings
from pagein.summaries.sanitize import one_line, sanitize_text
from pagein.summaries.templates import fill_template

if TYPE_CHECKING:
    from pagein.models import Model, ModelRequest

ANSWER_MAX_TOKENS = 1_500
"""Tokens of the answer with candidates, a short list."""
ANSWER_TIMEOUT = 60.0

MAX_CANDIDATES = 40
"""Candidates of one answer."""

MAX_REPLY_CHARS = 100_000
"""Characters above which an answer is rejected."""

MAX_QUOTE_CHARS = 6_000
"""Characters quoted of one text; head and tail of a longer one."""

_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\r?\n(.*?)\r?\n?```", re.DOTALL)
_SECRET = re.compile(
    r"\b(?:password|passphrase|api[ _-]?key|secret key|private key|access token)\b\s*(?:is|=|:)", re.IGNORECASE
)


class RejectedAnswer(FactError):
    """An unusable answer of a model about facts; nothing of it was recorded."""


@dataclass(frozen=True, slots=True)
class ExtractionAnswer:
    """The result of a model: facts to state, and known facts to remove, each id with its reason."""

    drafts: tuple[FactDraft, ...] = ()
    removals: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    """The reasons why candidates were dropped."""


@functools.cache
def _prompt(name: str) -> str:
    return (files("pagein.facts") / "prompts" / f"{name}.txt").read_text("utf-8").strip()


def extraction_request(
    utterances: Sequence[Utterance],
    before: Sequence[Utterance],
    facts: Sequence[Fact],
    settings: Settings,
    owners: Owners,
) -> ModelRequest:
    """The request for the facts in these texts; ``before`` was read already, and gives context."""
    from pagein.models import ModelRequest  # noqa: PLC0415 - where a model is asked

    scopes = [scope for scope in owners.scopes if scope in settings.scopes]
    values = {
        "known": _list_facts(facts),
        "said": "\n".join([*(_quote(scope, context=True) for scope in before), *map(_quote, utterances)]),
        "categories": ", ".join(settings.all_categories),
        "scopes": " or ".join(f'"{scope}"' for scope in scopes),
    }
    return ModelRequest.from_text(
        fill_template(_prompt("extract"), values),
        system=_prompt("system"),
        max_tokens=ANSWER_MAX_TOKENS,
        timeout=ANSWER_TIMEOUT,
    )


def parse_answer(
    reply: str, utterances: Sequence[Utterance], facts: Sequence[Fact], settings: Settings, owners: Owners, author: str
) -> ExtractionAnswer:
    """The facts in a model's answer that pass every check. Raises RejectedAnswer for another shape."""
    data = _parse_object(reply)
    listed, removals = data.get("facts", []), data.get("remove", [])
    if not isinstance(listed, list) or not isinstance(removals, list):
        raise RejectedAnswer("facts and remove are lists")
    if len(listed) > MAX_CANDIDATES or len(removals) > MAX_CANDIDATES:
        raise RejectedAnswer(f"more than {MAX_CANDIDATES} candidates at once")
    ids = {fact.id: fact for fact in facts}
    drafts: list[FactDraft] = []
    dropped: list[str] = []
    for item in listed:
        try:
            drafts.append(_accept_candidate(item, utterances, ids, settings, owners, author))
        except FactError as error:
            dropped.append(str(error))
    # Only the user may remove a fact, not an answer and not a tool.
    users = {utterance.source.handle for utterance in utterances if utterance.speaker == "user"}
    accepted_removals = [
        (item["id"], one_line(str(item.get("reason", "")), 300))
        for item in removals
        if isinstance(item, dict) and item.get("id") in ids and users & set(_handles(item)) and item.get("reason")
    ]
    return ExtractionAnswer(tuple(drafts), tuple(accepted_removals), tuple(dropped))


def _accept_candidate(
    item: Any, utterances: Sequence[Utterance], facts: dict[str, Fact], settings: Settings, owners: Owners, author: str
) -> FactDraft:
    """A candidate as a draft. Raises FactError naming the check that failed."""
    if not isinstance(item, dict):
        raise FactError("a candidate is an object")
    content = checked_content(item.get("content"))
    if holds_secret(content):
        raise FactError("it holds a secret")
    confidence = checked_confidence(item.get("confidence"))
    if confidence < settings.min_confidence:
        raise FactError(f"confidence {confidence} is below {settings.min_confidence}")
    category = checked_category(item.get("category"), settings.all_categories)
    scope = item.get("scope")
    if scope not in settings.scopes or scope not in owners.scopes:
        raise FactError(f"scope {scope!r} is not allowed for extraction")
    if item.get("durability") != "durable" and scope not in ("task", "session"):
        raise FactError("it is not durable, and its scope outlives the session")
    by_handle = {handle.source.handle: handle.source for handle in utterances}
    sources = tuple(by_handle[handle] for handle in _handles(item) if handle in by_handle)
    if not sources:
        raise FactError("it names no step of the span")
    _check_grounded(content, utterances, facts.values())
    older = item.get("supersedes", [])
    replaced = tuple(
        handle
        for handle in (older if isinstance(older, list) else [])
        if handle in facts and facts[handle].scope == scope
    )
    return FactDraft(content, category, confidence, scope, None, None, sources, replaced, author, "extracted")


def _check_grounded(content: str, utterances: Iterable[Utterance], facts: Iterable[Fact]) -> None:
    """Raise FactError if the content has a secret, or a number or name that no text has."""
    if _SECRET.search(content):
        raise FactError("secrets are not kept")
    source_text = "\n".join(
        [*(utterance.text for utterance in utterances), *(fact.content for fact in facts)]
    ).casefold()
    invented = [name for name in specifics(content) - {"not"} if name.casefold() not in source_text]
    if invented:
        raise FactError(f"no text says {', '.join(sorted(invented)[:3])}")


def _handles(item: dict[str, Any]) -> list[str]:
    handles = item.get("handles")
    return [handle for handle in handles if isinstance(handle, str)] if isinstance(handles, list) else []


def find_contradicted(model: Model, draft: FactDraft, facts: Sequence[Fact]) -> tuple[str, ...] | None:
    """The ids of the known facts that contradict the draft, by a model; None if it gives no answer."""
    from pagein.models import ModelError, ModelRequest  # noqa: PLC0415 - where a model is asked

    values = {"new": one_line(draft.content, MAX_QUOTE_CHARS), "known": _list_facts(facts)}
    ask = ModelRequest.from_text(
        fill_template(_prompt("contradict"), values), system=_prompt("system"), max_tokens=300, timeout=ANSWER_TIMEOUT
    )
    try:
        listed = _parse_object(model.write(ask).text).get("contradicted")
    except (ModelError, RejectedAnswer):
        return None
    if not isinstance(listed, list):
        return None
    return tuple(fact.id for fact in facts if fact.id in listed)


def _parse_object(reply: str) -> dict[str, Any]:
    if len(reply) > MAX_REPLY_CHARS:
        raise RejectedAnswer(f"{len(reply):,} characters; at most {MAX_REPLY_CHARS:,} are read")
    text = reply.strip().removeprefix("\ufeff").strip()
    fenced = _FENCE.fullmatch(text)
    try:
        data = json.loads(fenced[1] if fenced else text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RejectedAnswer(f"not JSON: {str(error)[:200]}") from error
    if not isinstance(data, dict):
        raise RejectedAnswer("not one JSON object")
    return data


def _no_constant(name: str) -> object:
    raise RejectedAnswer(f"{name} is no JSON")


def _list_facts(facts: Sequence[Fact]) -> str:
    lines = (f"[{fact.id}] {fact.scope}, {fact.category}: {one_line(fact.content, 500)}" for fact in facts)
    return "\n".join(lines) or "(nothing yet)"


def _quote(utterance: Utterance, *, context: bool = False) -> str:
    text = utterance.text
    if len(text) > MAX_QUOTE_CHARS:
        text = f"{text[: MAX_QUOTE_CHARS // 2]}\n[...]\n{text[-MAX_QUOTE_CHARS // 2 :]}"
    context_mark = ' context="yes"' if context else ""
    return f'<pagein-step handle="{escape(utterance.source.handle)}" by="{utterance.speaker}"{context_mark}>\n{sanitize_text(text)}\n</pagein-step>'
