"""The tools with which a model uses its memory: their definitions, and the call that runs any of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from pagein.errors import ConfigurationError, LogError, PageinError
from pagein.events.handles import step_handle
from pagein.formats import format_named
from pagein.memory._effects import Call, Flow, Recall
from pagein.memory._state import RunState
from pagein.memory.operations import pins
from pagein.memory.operations.history import asking_positions, expand

if TYPE_CHECKING:
    from pagein.search.base import Hit

RESULT_MAX_TOKENS = 2_000
"""Tokens that a tool's result may have; another call gives the rest."""

MAX_HITS = 20

_TEXT = {"type": "string"}
_TIME = {"type": "string", "description": "A date or a date and time, ISO 8601, as 2026-11-21."}


def _tool(name: str, description: str, needed: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": properties,
            "required": list(needed),
            "additionalProperties": False,
        },
    }


TOOLS: tuple[dict[str, Any], ...] = (
    _tool(
        "recall",
        "Search everything that happened in this run, also what is no longer in sight. Gives lines with handles.",
        ("query",),
        query={"type": "string", "description": "Words, names, numbers or a question."},
        limit={"type": "integer", "minimum": 1, "maximum": MAX_HITS},
        since=_TIME,
        until=_TIME,
        role={"type": "string", "enum": ["user", "assistant", "tool"]},
    ),
    _tool(
        "expand",
        "Give back the original behind a handle like s12, s12.0 or s12-s40, whole, or some of its lines.",
        ("handle",),
        handle=_TEXT,
        lines={"type": "string", "description": "First and last line, as 40-80."},
    ),
    _tool(
        "pin",
        "Keep a text in sight, word for word, for the rest of the run. The handle of something that holds confirms it.",
        ("text",),
        text=_TEXT,
    ),
    _tool("note", "Write something down for later in this run; it shows when it matters.", ("text",), text=_TEXT),
    _tool(
        "forget",
        "Let a pin or something that holds (by its handle), or a fact or note (by its id) go.",
        ("id",),
        id={"type": "string", "description": "A handle like s12, or an id like fu12."},
        reason=_TEXT,
    ),
    _tool(
        "remember",
        "Keep a lasting fact for later sessions: a preference, a rule, a correction. One sentence that stands alone.",
        ("content",),
        content=_TEXT,
        category={
            "type": "string",
            "enum": ["preference", "knowledge", "context", "behaviour", "goal", "correction", "constraint"],
        },
    ),
    _tool(
        "update",
        "Put a fact in the place of one that is no longer right.",
        ("id", "content"),
        id=_TEXT,
        content=_TEXT,
        reason=_TEXT,
    ),
)
"""The definitions: name, description, and the parameters as a JSON schema."""


def tools(form: str = "openai") -> list[dict[str, Any]]:
    """Render the tools for a provider, by the name of a format such as ``openai``.

    Gemini takes them as ``[{"function_declarations": tools}]``, Bedrock as ``{"tools": tools}``. Raises ConfigurationError for another format.
    """
    wire = format_named(form)
    return [wire.render_tool(definition) for definition in TOOLS]


def call_tool(run: RunState, name: str, arguments: str | Mapping[str, Any], now: float) -> Flow[str]:
    """Run a tool that the model called; return its text of at most ``RESULT_MAX_TOKENS`` tokens.

    A wrong call changes nothing, and its text begins with ``error:``. Raises ConfigurationError for an unknown tool,
    LogError.
    """
    function = _TOOL_FUNCTIONS.get(name)
    if function is None:
        raise ConfigurationError(f"no tool {name!r}; there are {', '.join(_TOOL_FUNCTIONS)}")
    try:
        text = yield from function(run, _parse_arguments(name, arguments), now)
    except _ToolMisuse as error:
        return f"error: {error}"
    except LogError:
        raise
    except PageinError as error:
        return f"error: {error}"
    return _cap(run, text)


class _ToolMisuse(Exception):
    pass


def _parse_arguments(name: str, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
    try:
        values = json.loads(arguments or "{}") if isinstance(arguments, str) else dict(arguments)
    except (ValueError, TypeError, RecursionError) as error:
        raise _ToolMisuse(f"the arguments are not JSON: {str(error)[:200]}") from error
    schema = next(tool["parameters"] for tool in TOOLS if tool["name"] == name)
    properties = schema["properties"]
    if not isinstance(values, dict) or not set(values) <= set(properties):
        raise _ToolMisuse(f"{name} takes {', '.join(properties)}")
    values = {key: value for key, value in values.items() if value is not None}
    if missing := [key for key in schema["required"] if key not in values]:
        raise _ToolMisuse(f"{name} needs {', '.join(missing)}")
    for key, value in values.items():
        kind = int if properties[key].get("type") == "integer" else str
        if not isinstance(value, kind) or isinstance(value, bool):
            raise _ToolMisuse(f"{key} is {'a whole number' if kind is int else 'text'}, not {value!r:.100}")
        if value not in properties[key].get("enum", [value]):
            raise _ToolMisuse(f"{key} is one of {', '.join(properties[key]['enum'])}")
    return values


def _recall(run: RunState, arguments: dict[str, Any], now: float) -> Flow[str]:
    from pagein.search.base import Query  # noqa: PLC0415 - loads where something is looked for

    limit = min(MAX_HITS, max(1, arguments.get("limit", 5)))
    query = Query(
        arguments["query"],
        limit,
        _time(arguments.get("since")),
        _time(arguments.get("until")),
        arguments.get("role"),
        # The question that is asked now, and the call that asks it, match best and answer nothing.
        exclude=frozenset(asking_positions(run.current_view())),
        now=now,
    )
    hits = yield from Recall(query)
    if query.role is None:
        # A model's earlier questions match its query best, and hold no answer. So every other hit is a tool's result.
        results = yield from Recall(replace(query, role="tool"))
        mixed = chain.from_iterable(zip_longest(hits, results))
        hits = tuple({hit.handle: hit for hit in mixed if hit is not None}.values())[:limit]
    return "\n\n".join(map(_render_hit, hits)) or "Nothing in this run matches."


def _render_hit(hit: Hit) -> str:
    more = "" if hit.whole else f" (part; expand {hit.handle} for more)"
    return f"[{hit.handle}] {hit.role}{more}:\n{hit.text}"


def _time(text: str | None) -> float | None:
    if text is None:
        return None
    from datetime import datetime  # noqa: PLC0415 - loads where a time is said

    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise _ToolMisuse(f"{text!r:.60} is no date; write it as 2026-11-21") from None


def _expand(run: RunState, arguments: dict[str, Any], now: float) -> Flow[str]:
    del now
    text = str((yield from expand(run, arguments["handle"])))
    lines = text.splitlines()
    first, last = 1, len(lines)
    if "lines" in arguments:
        parts = arguments["lines"].replace(" ", "").split("-")
        if len(parts) > 2 or not all(part.isdigit() for part in parts):
            raise _ToolMisuse("lines are a first and a last line, as 40-80")
        first, last = int(parts[0]), min(len(lines), int(parts[-1]))
        if not 1 <= first <= last:
            raise _ToolMisuse(f"it has lines 1-{len(lines)}")
    fitting: list[str] = []
    room = RESULT_MAX_TOKENS - 60
    for line in lines[first - 1 : last]:
        room -= run.counter.text(line) + 1
        if room < 0 and fitting:
            break
        fitting.append(line)
    if len(fitting) == len(lines):
        return text
    end = first + len(fitting) - 1
    return "\n".join((f"(lines {first}-{end} of {len(lines)}; ask for others with lines)", *fitting))


def _pin(run: RunState, arguments: dict[str, Any], now: float) -> Flow[str]:
    del now
    if not arguments["text"].strip():
        raise _ToolMisuse("there is nothing to pin")
    return f"Pinned as {(yield from pins.pin(run, arguments['text']))}."


def _note(run: RunState, arguments: dict[str, Any], now: float) -> Flow[str]:
    del run, now
    fact = yield from Call(
        lambda runtime: runtime.use_facts().add(content=arguments["text"], scope="session", author="model")
    )
    return f"Noted as {fact.id}."


def _forget(run: RunState, arguments: dict[str, Any], now: float) -> Flow[str]:
    del now
    id = arguments["id"].strip()
    if id.startswith("s"):
        was_pinned = id in {step_handle(position) for position in run.fold.pinned}
        yield from pins.unpin(run, id)
        return f"{id} is no longer pinned." if was_pinned else f"What {id} says no longer holds."
    _check_not_shared(id)
    yield from Call(
        lambda runtime: runtime.use_facts().remove(id=id, reason=arguments.get("reason", ""), author="model")
    )
    return f"{id} is forgotten."


def _remember(run: RunState, arguments: dict[str, Any], now: float) -> Flow[str]:
    del run, now
    fact = yield from Call(
        lambda runtime: runtime.use_facts().add(**{**arguments, "author": "model", "confidence": 0.9})
    )
    return f"Remembered as {fact.id}."


def _update(run: RunState, arguments: dict[str, Any], now: float) -> Flow[str]:
    del run, now
    _check_not_shared(arguments["id"])
    fact = yield from Call(lambda runtime: runtime.use_facts().update(**{**arguments, "author": "model"}))
    return f"Remembered as {fact.id}."


def _check_not_shared(id: str) -> None:
    if id.strip("[] \n").startswith("fa"):
        raise _ToolMisuse("a fact for everybody is changed by the host")


def _cap(run: RunState, text: str) -> str:
    if run.counter.text(text) <= RESULT_MAX_TOKENS:
        return text
    size = len(text)
    while run.counter.text(text[:size]) > RESULT_MAX_TOKENS - 20:
        size = int(size * 0.8)
    return f"{text[:size]}\n[… cut: {len(text) - size} more characters]"


_TOOL_FUNCTIONS: Mapping[str, Callable[[RunState, dict[str, Any], float], Flow[str]]] = {
    "recall": _recall,
    "expand": _expand,
    "pin": _pin,
    "note": _note,
    "forget": _forget,
    "remember": _remember,
    "update": _update,
}
