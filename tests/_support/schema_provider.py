"""A scripted provider that enforces the JSON schema of a request, as real ones do with structured outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pagein.testing.provider import Answer, Received, ScriptedProvider
from pagein.testing.provider.scripts import Protocol, Question, Script

_TYPES: Mapping[str, Any] = {
    "object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool, "null": type(None),
}  # fmt: skip
_UNSUPPORTED = ("minLength", "maxLength", "minimum", "maximum", "default", "patternProperties", "oneOf", "not")


class SchemaProvider(ScriptedProvider):
    """A ScriptedProvider that refuses a schema that real ones refuse. Its script must give answers that fit."""

    def __init__(self, script: Script) -> None:
        super().__init__(_fitting(script))

    def read_request(self, protocol: Any, *about: Any, is_refused: bool = False) -> Received:
        """See ``ScriptedProvider``."""
        request = super().read_request(protocol, *about, is_refused=is_refused)
        schema = find_schema(protocol.name, request.body) if isinstance(request.body, dict) else None
        problems = () if schema is None else find_schema_problems(schema)
        return replace(request, problems=(*request.problems, *problems))


def _fitting(script: Script) -> Script:
    def answer(question: Question) -> Answer:
        reply = script(question)
        schema = None if reply.calls else find_schema(question.protocol, question.body)
        misfit = "" if schema is None else find_misfit(schema, json.loads(reply.text))
        assert not misfit, f"the script's answer does not fit the schema: {misfit}"
        return reply

    return answer


def find_schema(protocol: Protocol, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema that the answer to a request must fit; None where it may be any text."""
    match protocol:
        case "chat":
            found = (body.get("response_format") or {}).get("json_schema") or {}
        case "messages":
            found = (body.get("output_config") or {}).get("format") or {}
        case "responses":
            found = (body.get("text") or {}).get("format") or {}
        case "gemini":
            return None  # it takes any
    schema: Mapping[str, Any] | None = found.get("schema")
    return schema


def find_schema_problems(schema: Mapping[str, Any], path: str = "schema") -> Iterator[str]:
    """The faults that providers refuse in a strict schema: optional or other properties, and words that they do not enforce."""
    yield from (f"{path}: {word} is not permitted" for word in _UNSUPPORTED if word in schema)
    for number, choice in enumerate(schema.get("anyOf", ())):
        yield from find_schema_problems(choice, f"{path}.anyOf[{number}]")
    if "anyOf" not in schema and schema.get("type") not in _TYPES:
        yield f"{path}: {schema.get('type')!r} is no type"
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            yield f"{path}: additionalProperties is required to be false"
        if set(schema.get("required", ())) != set(properties):
            yield f"{path}: required is required to name every property"
        for name, part in properties.items():
            yield from find_schema_problems(part, f"{path}.{name}")
    if schema.get("type") == "array":
        yield from find_schema_problems(schema.get("items", {}), f"{path}[]")


def find_misfit(schema: Mapping[str, Any], value: Any, path: str = "answer") -> str:
    """The place of the first value that does not fit a schema; "" where all of it does."""
    if "anyOf" in schema:
        misfits = [find_misfit(choice, value, path) for choice in schema["anyOf"]]
        return "" if "" in misfits else misfits[0]
    kind: str = schema["type"]
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return path
    if "enum" in schema and value not in schema["enum"]:
        return path
    parts: list[tuple[Mapping[str, Any], Any, str]] = []
    if kind == "array":
        parts = [(schema["items"], item, f"{path}[{number}]") for number, item in enumerate(value)]
    if kind == "object":
        if set(value) != set(schema["properties"]):
            return path
        parts = [(part, value[name], f"{path}.{name}") for name, part in schema["properties"].items()]
    return next(filter(None, (find_misfit(*part) for part in parts)), "")
