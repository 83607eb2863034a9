"""Export and import of facts as JSON-safe values. Imports are untrusted: every value is checked, or nothing is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from pagein._common.json_values import to_json_value
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
from pagein.facts.reconcile import FactDraft

VERSION = 1
MAX_IMPORTED_FACTS = 100_000
"""Facts imported at once."""


def export_facts(facts: Iterable[Fact]) -> dict[str, Any]:
    """The facts as JSON-safe values, with the version of the format."""
    return {"pagein_facts": VERSION, "facts": [to_json_value(asdict(fact)) for fact in facts]}


def drafts_from(
    data: object, categories: tuple[str, ...], owners: Owners, scope: FactScope | None = None
) -> list[FactDraft]:
    """Read drafts from an export, a list, or deer-flow's ``memory.json``. Raises FactError naming the first invalid one."""
    listed = data.get("facts") if isinstance(data, Mapping) else data
    if isinstance(data, Mapping) and data.get("pagein_facts", VERSION) != VERSION:
        raise FactError(f"these facts were exported in shape {data['pagein_facts']!r}; this release reads {VERSION}")
    if not isinstance(listed, list | tuple):
        raise FactError('facts to import are a list, or an object with a list "facts"')
    if len(listed) > MAX_IMPORTED_FACTS:
        raise FactError(f"{len(listed):,} facts at once; {MAX_IMPORTED_FACTS:,} at most")
    checked = None if scope is None else checked_scope(scope)
    return [_draft(item, f"facts[{index}]", categories, owners, checked) for index, item in enumerate(listed)]


def _draft(item: object, where: str, categories: tuple[str, ...], owners: Owners, scope: FactScope | None) -> FactDraft:
    if not isinstance(item, Mapping):
        raise FactError(f"{where} is a {type(item).__name__}, not an object. Nothing was recorded.")
    try:
        start, end = item.get("valid_from"), item.get("valid_until")
        checked_interval(start, end)
        named = checked_scope(item["scope"]) if "scope" in item else owners.default_scope
        # A tenant's facts are shown to every user, so an import may not choose that scope.
        usual = owners.default_scope if named not in owners.scopes or named == "tenant" else named
        return FactDraft(
            checked_content(item.get("content")), checked_category(item.get("category", "context"), categories),
            checked_confidence(item.get("confidence", 1.0)), scope or usual, start, end, _sources(item),
            author=_text(item.get("author", "host")), reason="imported",
        )  # fmt: skip
    except FactError as error:
        raise FactError(f"{where}: {error}") from error


def _sources(item: Mapping[str, Any]) -> tuple[Source, ...]:
    sources = []
    listed = item.get("sources", ())
    for source in listed if isinstance(listed, list | tuple) else ():
        if not isinstance(source, Mapping):
            raise FactError(f"a source is an object with session and handle, not {source!r}")
        sources.append(Source(_text(source.get("session")), _text(source.get("handle"))))
    if not sources and isinstance(item.get("source"), str):  # deer-flow's thread id
        sources.append(Source(item["source"], ""))
    return tuple(sources)


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > 400:
        raise FactError(f"a name is text of at most 400 characters, not {str(value)[:60]!r}")
    return value
