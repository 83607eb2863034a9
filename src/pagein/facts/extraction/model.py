"""Extraction of facts by a model: the request, and the checks of its answer. Texts are quoted as data; the answer is untrusted.

Prose and code fences around the JSON object are cut off. A candidate that lacks a label, is
not sure enough, does not last, or has a name that no text has, is dropped. An answer of another shape is rejected.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pagein.events.secrets import holds_secret
from pagein.facts.contradiction import specifics
from pagein.facts.extraction.candidates import Utterance
from pagein.facts.fact import PROCEDURE, Fact, FactError, checked_category, checked_confidence, checked_content
from pagein.facts.owners import Owners
from pagein.facts.reconcile import FactDraft
from pagein.facts.settings import Settings
from pagein.summaries.reply_json import UnreadableReply, parse_reply_object
from pagein.summaries.sanitize import one_line, sanitize_text
from pagein.summaries.templates import fill_template

if TYPE_CHECKING:
    from pagein.models import Model, ModelRequest
    from pagein.models.writer_account import WriterAccount

ANSWER_MAX_TOKENS = 1_500
"""Tokens of the answer with candidates, a short list."""
ANSWER_TIMEOUT = 60.0

MAX_CANDIDATES = 40
"""Candidates of one answer."""

MAX_REPLY_CHARS = 100_000
"""Characters above which an answer is rejected."""

MAX_QUOTE_CHARS = 6_000
"""Characters quoted of one text; head and tail of a longer one."""


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
    content = checked_content(_join_texts(item.get("content")))
    if holds_secret(content):
        raise FactError("it holds a secret")
    confidence = checked_confidence(_as_number(item.get("confidence")))
    if confidence < settings.min_confidence:
        raise FactError(f"confidence {confidence} is below {settings.min_confidence}")
    category = checked_category(item.get("category"), settings.all_categories)
    if category == PROCEDURE:
        raise FactError("a procedure comes from the steps of a run")
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


def _join_texts(value: Any) -> Any:
    return " ".join(value) if isinstance(value, list) and all(isinstance(text, str) for text in value) else value


def _as_number(value: Any) -> Any:
    """The number that a text says, such as 0.9 in quotes; anything else as it is."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _check_grounded(content: str, utterances: Iterable[Utterance], facts: Iterable[Fact]) -> None:
    """Raise FactError if the content has a number or a name that no text has."""
    source_text = "\n".join(
        [*(utterance.text for utterance in utterances), *(fact.content for fact in facts)]
    ).casefold()
    invented = [name for name in specifics(content) - {"not"} if name.casefold() not in source_text]
    if invented:
        raise FactError(f"no text says {', '.join(sorted(invented)[:3])}")


def _handles(item: dict[str, Any]) -> list[str]:
    handles = item.get("handles")
    return [handle for handle in (handles if isinstance(handles, list) else [handles]) if isinstance(handle, str)]


def find_contradicted(
    model: Model, draft: FactDraft, facts: Sequence[Fact], account: WriterAccount | None = None
) -> tuple[str, ...] | None:
    """The ids of the known facts that contradict the draft, by a model; None if it gives no answer, or rests."""
    from pagein.models import ModelError, ModelRequest  # noqa: PLC0415 - where a model is asked
    from pagein.models.writer_account import account_for  # noqa: PLC0415

    values = {"new": one_line(draft.content, MAX_QUOTE_CHARS), "known": _list_facts(facts)}
    ask = ModelRequest.from_text(
        fill_template(_prompt("contradict"), values), system=_prompt("system"), max_tokens=300, timeout=ANSWER_TIMEOUT
    )
    try:
        with account_for(account, model.name):
            listed = _parse_object(model.write(ask).text).get("contradicted")
            if not isinstance(listed, list):
                raise RejectedAnswer("contradicted is a list")
    except (ModelError, RejectedAnswer):
        return None
    return tuple(fact.id for fact in facts if fact.id in listed)


def _parse_object(reply: str) -> dict[str, Any]:
    try:
        return parse_reply_object(reply, MAX_REPLY_CHARS)
    except UnreadableReply as error:
        raise RejectedAnswer(str(error)) from error


def _list_facts(facts: Sequence[Fact]) -> str:
    lines = (f"[{fact.id}] {fact.scope}, {fact.category}: {one_line(fact.content, 500)}" for fact in facts)
    return "\n".join(lines) or "(nothing yet)"


def _quote(utterance: Utterance, *, context: bool = False) -> str:
    text = utterance.text
    if len(text) > MAX_QUOTE_CHARS:
        text = f"{text[: MAX_QUOTE_CHARS // 2]}\n[...]\n{text[-MAX_QUOTE_CHARS // 2 :]}"
    context_mark = ' context="yes"' if context else ""
    return f'<pagein-step handle="{escape(utterance.source.handle)}" by="{utterance.speaker}"{context_mark}>\n{sanitize_text(text)}\n</pagein-step>'
