"""Remember, update and forget, for the model itself: definitions, and the one call that runs any of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pagein.errors import ConfigurationError
from pagein.facts.block import line_of
from pagein.facts.fact import CATEGORIES, SCOPES, FactError
from pagein.facts.store import Facts


def _tool(name: str, description: str, needed: list[str], **properties: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "parameters": parameters}


_TEXT = {"type": "string"}
_ID = {"type": "string", "description": "The fact's id, as fu12 in the memory block."}
_CATEGORY = {"type": "string", "enum": list(CATEGORIES)}

TOOLS: tuple[dict[str, Any], ...] = (
    _tool(
        "remember",
        "Keep a lasting fact for later sessions: a preference, a rule, a correction, what is true of the project. One "
        "sentence that can be understood on its own. Not for what only matters now.",
        ["content", "category"],
        content=_TEXT,
        category=_CATEGORY,
        scope={"type": "string", "enum": [each for each in SCOPES if each != "tenant"]},
    ),
    _tool(
        "update_fact",
        "Put a fact in the place of one that is no longer right.",
        ["id", "content", "reason"],
        id=_ID,
        content=_TEXT,
        category=_CATEGORY,
        reason=_TEXT,
    ),
    _tool("forget", "Let a fact go that is no longer so.", ["id", "reason"], id=_ID, reason=_TEXT),
    _tool("search_facts", "Look for facts that are not in the memory block.", ["query"], query=_TEXT),
)
"""The definitions: name, description, and the parameters as a JSON schema."""


def call_tool(facts: Facts, name: str, arguments: str | Mapping[str, Any]) -> str:
    """Run a tool the model called, and give the text it gets back; what went wrong is told it, beginning with ``error:``.

    A model's facts are never for the whole tenant, and it lets none of the tenant's go. Raises ConfigurationError for a
    tool there is not, LogError.
    """
    run = _RUN.get(name)
    if run is None:
        raise ConfigurationError(f"no tool {name!r} of facts; there are {', '.join(_RUN)}")
    try:
        return run(facts, _given(arguments, name))
    except (FactError, ConfigurationError) as error:
        return f"error: {error}"


def _given(arguments: str | Mapping[str, Any], name: str) -> dict[str, Any]:
    try:
        given = json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
    except (ValueError, RecursionError) as error:
        raise FactError(f"the arguments are not JSON: {str(error)[:200]}") from error
    tool = next(each for each in TOOLS if each["name"] == name)
    known = tool["parameters"]["properties"]
    if not isinstance(given, dict) or not set(given) <= set(known):
        raise FactError(f"{name} takes {', '.join(known)}")
    if missing := [each for each in tool["parameters"]["required"] if each not in given]:
        raise FactError(f"{name} needs {', '.join(missing)}")
    if not all(isinstance(each, str) for each in given.values()):
        raise FactError(f"{name} takes text")
    return given


def _remember(facts: Facts, given: dict[str, Any]) -> str:
    if given.get("scope") == "tenant":
        raise FactError("a fact for everybody is stated by the host")
    return f"Kept: {line_of(facts.add(**given, author='model', confidence=0.9))}"


def _update(facts: Facts, given: dict[str, Any]) -> str:
    _not_everybodys(given)
    return f"Kept: {line_of(facts.update(given.pop('id'), **given, author='model'))}"


def _forget(facts: Facts, given: dict[str, Any]) -> str:
    _not_everybodys(given)
    return f"Forgotten: {line_of(facts.remove(given['id'], reason=given['reason'], author='model'))}"


def _search(facts: Facts, given: dict[str, Any]) -> str:
    found = facts.search(given["query"])
    return "\n".join(line_of(each.fact) for each in found) or "Nothing is known about that."


def _not_everybodys(given: dict[str, Any]) -> None:
    if given["id"].strip("[] \n").startswith("fa"):
        raise FactError("a fact for everybody is changed by the host")


_RUN: Mapping[str, Callable[[Facts, dict[str, Any]], str]] = {
    "remember": _remember,
    "update_fact": _update,
    "forget": _forget,
    "search_facts": _search,
}
