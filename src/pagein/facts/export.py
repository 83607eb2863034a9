"""Facts as JSON-safe values and back. What comes in was written by others: each value is checked, or nothing is taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from pagein.events.entries import FactScope, Source
from pagein.facts.fact import (
    Fact,
    FactError,
    checked_category,
    checked_confidence,
    checked_content,
    checked_interval,
    checked_scope,
)
from pagein.facts.owners import Owners
from pagein.facts.reconcile import Draft

VERSION = 1
MOST = 100_000
"""Facts that are read at once."""


def exported(facts: Iterable[Fact]) -> dict[str, Any]:
    """The facts as JSON-safe values, with the version of this shape."""
    return {"pagein_facts": VERSION, "facts": [_plain(each) for each in facts]}


def _plain(fact: Fact) -> dict[str, Any]:
    plain = asdict(fact)
    for name in ("sources", "supersedes", "disputes"):
        plain[name] = list(plain[name])
    return plain


def drafts_from(
    data: object, known: tuple[str, ...], owners: Owners, scope: FactScope | None = None
) -> list[Draft]:
    """The facts of an export, of a list, or of deer-flow's ``memory.json`` as drafts. Raises FactError naming the first that is none."""
    listed = data.get("facts") if isinstance(data, Mapping) else data
    if isinstance(data, Mapping) and data.get("pagein_facts", VERSION) != VERSION:
        raise FactError(
            f"these facts were exported in shape {data['pagein_facts']!r}; this release reads {VERSION}"
        )
    if not isinstance(listed, list | tuple):
        raise FactError('facts to import are a list, or an object with a list "facts"')
    if len(listed) > MOST:
        raise FactError(f"{len(listed):,} facts at once; {MOST:,} at most")
    wanted = None if scope is None else checked_scope(scope)
    return [_draft(each, f"facts[{index}]", known, owners, wanted) for index, each in enumerate(listed)]


def _draft(
    given: object, where: str, known: tuple[str, ...], owners: Owners, scope: FactScope | None
) -> Draft:
    if not isinstance(given, Mapping):
        raise FactError(f"{where} is a {type(given).__name__}, not an object. Nothing was recorded.")
    try:
        start, end = given.get("valid_from"), given.get("valid_until")
        checked_interval(start, end)
        named = checked_scope(given["scope"]) if "scope" in given else owners.usual
        # A tenant's facts speak to every user: an imported file does not decide that.
        usual = owners.usual if named not in owners.known or named == "tenant" else named
        return Draft(
            checked_content(given.get("content")),
            checked_category(given.get("category", "context"), known),
            checked_confidence(given.get("confidence", 1.0)),
            scope or usual,
            start,
            end,
            _sources(given),
            author=_text(given.get("author", "host")),
            reason="imported",
        )
    except FactError as error:
        raise FactError(f"{where}: {error}") from error


def _sources(given: Mapping[str, Any]) -> tuple[Source, ...]:
    found = []
    listed = given.get("sources", ())
    for each in listed if isinstance(listed, list | tuple) else ():
        if not isinstance(each, Mapping):
            raise FactError(f"a source is an object with session and handle, not {each!r}")
        found.append(Source(_text(each.get("session")), _text(each.get("handle"))))
    if not found and isinstance(given.get("source"), str):  # deer-flow's thread id
        found.append(Source(given["source"], ""))
    return tuple(found)


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > 400:
        raise FactError(f"a name is text of at most 400 characters, not {str(value)[:60]!r}")
    return value
