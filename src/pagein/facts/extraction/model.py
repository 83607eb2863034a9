"""What a model is asked about facts, and how its answer is read. What was said is quoted as data, the answer untrusted.

Accepted is one JSON object of the shape that was asked for, alone or alone in a code fence. A candidate that lacks a
label, is not sure enough, does not last, or names what nobody said is dropped; an answer of another shape is refused
whole.
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

from pagein.facts.contradiction import specifics
from pagein.facts.extraction.rules import Said
from pagein.facts.fact import Fact, FactError, checked_category, checked_confidence, checked_content
from pagein.facts.owners import Owners
from pagein.facts.reconcile import Draft
from pagein.facts.settings import Settings
from pagein.summaries.sanitize import inert, one_line
from pagein.summaries.templates import filled

if TYPE_CHECKING:
    from pagein.models import Ask, Model

ANSWER = 1_500
"""Tokens of the answer with candidates, which is no long list; and seconds to wait for it."""
PATIENCE = 60.0

MOST = 40
"""Candidates of one answer that are read."""

MOST_REPLY = 100_000
"""Characters beyond which an answer is not read."""

LONG = 6_000
"""Characters of one text that is quoted; head and tail of a longer one."""

_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\r?\n(.*?)\r?\n?```", re.DOTALL)
_SECRET = re.compile(
    r"\b(?:password|passphrase|api[ _-]?key|secret key|private key|access token)\b\s*(?:is|=|:)",
    re.IGNORECASE,
)


class Rejected(FactError):
    """A model's answer about facts that cannot be used; nothing of it was recorded."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model found: facts to state, and known facts to let go, each id with its reason."""

    drafts: tuple[Draft, ...] = ()
    removals: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    """Why candidates were dropped."""


@functools.cache
def _prompt(name: str) -> str:
    return (files("pagein.facts") / "prompts" / f"{name}.txt").read_text("utf-8").strip()


def extraction(
    said: Sequence[Said], before: Sequence[Said], known: Sequence[Fact], settings: Settings, owners: Owners
) -> Ask:
    """The ask for the facts in what was said; ``before`` is what was read already, for the sense of it."""
    from pagein.models import Ask  # noqa: PLC0415 - where a model is asked

    scopes = [each for each in owners.known if each in settings.scopes]
    values = {
        "known": _known(known),
        "said": "\n".join([*(_quoted(each, context=True) for each in before), *map(_quoted, said)]),
        "categories": ", ".join(settings.known),
        "scopes": " or ".join(f'"{each}"' for each in scopes),
    }
    return Ask.of(
        filled(_prompt("extract"), values), system=_prompt("system"), max_tokens=ANSWER, timeout=PATIENCE
    )


def read_answer(
    reply: str, said: Sequence[Said], known: Sequence[Fact], settings: Settings, owners: Owners, author: str
) -> Answer:
    """The facts in a model's answer that pass every gate. Raises Rejected for an answer of another shape."""
    data = _object(reply)
    listed, removals = data.get("facts", []), data.get("remove", [])
    if not isinstance(listed, list) or not isinstance(removals, list):
        raise Rejected("facts and remove are lists")
    if len(listed) > MOST or len(removals) > MOST:
        raise Rejected(f"more than {MOST} candidates at once")
    ids = {each.id: each for each in known}
    drafts: list[Draft] = []
    dropped: list[str] = []
    for each in listed:
        try:
            drafts.append(_gated(each, said, ids, settings, owners, author))
        except FactError as error:
            dropped.append(str(error))
    # Who may be believed that a fact is gone is the user, not an answer and not a tool.
    users = {each.source.handle for each in said if each.voice == "user"}
    gone = [
        (each["id"], one_line(str(each.get("reason", "")), 300))
        for each in removals
        if isinstance(each, dict)
        and each.get("id") in ids
        and users & set(_handles(each))
        and each.get("reason")
    ]
    return Answer(tuple(drafts), tuple(gone), tuple(dropped))


def _gated(
    given: Any, said: Sequence[Said], known: dict[str, Fact], settings: Settings, owners: Owners, author: str
) -> Draft:
    """A candidate as a draft. Raises FactError, with the gate it did not pass."""
    if not isinstance(given, dict):
        raise FactError("a candidate is an object")
    content = checked_content(given.get("content"))
    confidence = checked_confidence(given.get("confidence"))
    if confidence < settings.min_confidence:
        raise FactError(f"confidence {confidence} is below {settings.min_confidence}")
    category = checked_category(given.get("category"), settings.known)
    scope = given.get("scope")
    if scope not in settings.scopes or scope not in owners.known:
        raise FactError(f"scope {scope!r} is none that extraction may state facts for")
    if given.get("durability") != "durable" and scope not in ("task", "session"):
        raise FactError("it does not last, and would outlive the session")
    by_handle = {each.source.handle: each.source for each in said}
    sources = tuple(by_handle[each] for each in _handles(given) if each in by_handle)
    if not sources:
        raise FactError("it names no step that was read")
    _grounded(content, said, known.values())
    older = given.get("supersedes", [])
    replaced = tuple(
        each
        for each in (older if isinstance(older, list) else [])
        if each in known and known[each].scope == scope
    )
    return Draft(content, category, confidence, scope, None, None, sources, replaced, author, "extracted")


def _grounded(content: str, said: Iterable[Said], known: Iterable[Fact]) -> None:
    """Raises FactError where the content has a number or a name that nobody said, or a secret."""
    if _SECRET.search(content):
        raise FactError("secrets are not kept")
    heard = "\n".join([*(each.text for each in said), *(each.content for each in known)]).casefold()
    invented = [each for each in specifics(content) - {"not"} if each.casefold() not in heard]
    if invented:
        raise FactError(f"nobody said {', '.join(sorted(invented)[:3])}")


def _handles(given: dict[str, Any]) -> list[str]:
    found = given.get("handles")
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def contradicted(model: Model, draft: Draft, known: Sequence[Fact]) -> tuple[str, ...] | None:
    """The ids of the known facts that cannot hold with the draft, as a model sees it; None where it cannot say."""
    from pagein.models import Ask, ModelError  # noqa: PLC0415 - where a model is asked

    told = {"new": one_line(draft.content, LONG), "known": _known(known)}
    ask = Ask.of(
        filled(_prompt("contradict"), told), system=_prompt("system"), max_tokens=300, timeout=PATIENCE
    )
    try:
        listed = _object(model.write(ask).text).get("contradicted")
    except (ModelError, Rejected):
        return None
    if not isinstance(listed, list):
        return None
    return tuple(each.id for each in known if each.id in listed)


def _object(reply: str) -> dict[str, Any]:
    if len(reply) > MOST_REPLY:
        raise Rejected(f"{len(reply):,} characters; at most {MOST_REPLY:,} are read")
    text = reply.strip().removeprefix("\ufeff").strip()
    fenced = _FENCE.fullmatch(text)
    try:
        data = json.loads(fenced[1] if fenced else text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Rejected(f"not JSON: {str(error)[:200]}") from error
    if not isinstance(data, dict):
        raise Rejected("not one JSON object")
    return data


def _no_constant(name: str) -> object:
    raise Rejected(f"{name} is no JSON")


def _known(facts: Sequence[Fact]) -> str:
    lines = (f"[{each.id}] {each.scope}, {each.category}: {one_line(each.content, 500)}" for each in facts)
    return "\n".join(lines) or "(nothing yet)"


def _quoted(said: Said, *, context: bool = False) -> str:
    text = said.text
    if len(text) > LONG:
        text = f"{text[: LONG // 2]}\n[...]\n{text[-LONG // 2 :]}"
    read = ' context="yes"' if context else ""
    return f'<pagein-step handle="{escape(said.source.handle)}" by="{said.voice}"{read}>\n{inert(text)}\n</pagein-step>'
