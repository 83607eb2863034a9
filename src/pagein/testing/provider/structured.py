"""Structured outputs: the schema that a request asks for, the providers' rules for it, and the answers that fit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pagein.testing.provider.scripts import Protocol

_TYPES: Mapping[str, Any] = {
    "object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool, "null": type(None),
}  # fmt: skip
_UNSUPPORTED = ("minLength", "maxLength", "minimum", "maximum", "default", "patternProperties", "oneOf", "not")


def find_schema(protocol: Protocol, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema that the answer to a request must fit; None where it may be any text."""
    match protocol:
        case "chat":
            found = (body.get("response_format") or {}).get("json_schema") or {}
        case "messages":
            found = (body.get("output_config") or {}).get("format") or {}
        case "responses":
            found = (body.get("text") or {}).get("format") or {}
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
