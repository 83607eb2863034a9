"""The tools with which a model uses its memory: their definitions, and the call that runs any of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from pagein.errors import ConfigurationError, LogError, PageinError
from pagein.events.handles import step_handle
from pagein.events.quoting import escape_frames, quote
from pagein.events.tool_call_encoding import bare_tool_name
from pagein.formats import format_named
from pagein.memory._state import RunState
from pagein.memory.operations import pins
from pagein.memory.operations.compact import compact
from pagein.memory.operations.facts_block import FACTS_SHARE
from pagein.memory.operations.history import asking_positions, expand, read_texts, user_words

if TYPE_CHECKING:
    from pagein.search.base import Hit

RESULT_MAX_TOKENS = 2_000
"""Tokens that a tool's result may have; another call gives the rest."""

DEFAULT_HITS, MAX_HITS = 5, 20

QUERY_TERMS = 64

EXTRA_HITS = 5
"""Hits beyond those asked for: some are the model's own questions, or repeat."""

MAX_SEARCHED_CHARS = 4_000_000
"""Characters that a pattern is looked for in, the newest of the run: about a second."""

MAX_LINE_CHARS = 300
"""Characters of a line that matches; ``lines`` gives it whole."""

QUOTED = "(Quoted: lines that look like the memory's own begin with | , and < of its tags is &lt;.)\n"
"""What stands before an original in which something is quoted."""

_TEXT = {"type": "string"}
_TIME = {"type": "string", "description": "ISO 8601"}


def _tool(name: str, description: str, needed: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(needed), "additionalProperties": False}
    return {"name": name, "description": description, "parameters": parameters}


TOOLS: tuple[dict[str, Any], ...] = (
    _tool(
        "recall", "Search the whole run, also what is out of sight. Gives passages with handles.", ("query",),
        query={"type": "string", "description": "Words or a question."},
        limit={"type": "integer", "minimum": 1, "maximum": MAX_HITS},
        since=_TIME, until=_TIME, role={"type": "string", "enum": ["user", "assistant", "tool"]},
    ),
    _tool(
        "expand", "Original text behind a handle (s12, s12.0, s12-s40): whole, some lines, or lines that match.", (),
        handle={"type": "string", "description": "Default: the whole run, with pattern."},
        lines={"type": "string", "description": "As 40-80."},
        pattern={"type": "string", "description": "Regex, any case."}, limit={"type": "integer", "minimum": 1},
    ),
    _tool("pin", "Keep a short text in sight, verbatim; or what a handle (s12) says.", ("text",), text=_TEXT),
    _tool("note", "Write something down for later in this run; it shows when it matters.", ("text",), text=_TEXT),
    _tool("forget", "Let go of a pin (s12), fact or note (fu12).", ("id",), id=_TEXT, reason=_TEXT),
    _tool(
        "remember", "Keep a lasting fact for later sessions. One sentence that stands alone.", ("content",), content=_TEXT,
        category={"type": "string", "enum": ["preference", "knowledge", "context", "behaviour", "goal", "correction", "constraint"]},
    ),
    _tool("update", "Replace a fact that is no longer right.", ("id", "content"), id=_TEXT, content=_TEXT, reason=_TEXT),
    _tool(
        "compact", "Make room: older steps become extracts, originals stay behind handles.", (),
        focus={"type": "string", "description": "What to keep in sight."},
    ),
)  # fmt: skip
"""The definitions: name, description, and the parameters as a JSON schema."""

ASKED_FOR_TOOLS = ("compact",)
"""Tools that a model is offered only where the application names them: they break the prefix of its prompt."""


def tools(form: str = "openai", names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Render the tools of these names for a provider, by the name of a format; by default all but ``ASKED_FOR_TOOLS``.

    Gemini takes them as ``[{"function_declarations": tools}]``, Bedrock as ``{"tools": tools}``. Raises
    ConfigurationError for another format or name.
    """
    wire = format_named(form)
    return [wire.render_tool(definition) for definition in choose_tools(names)]


def choose_tools(names: Sequence[str] | None) -> tuple[Mapping[str, Any], ...]:
    """The definitions of these names in a fixed order, or of all tools but ``ASKED_FOR_TOOLS``. Raises ConfigurationError."""
    known = [definition["name"] for definition in TOOLS]
    if names is None:
        names = [name for name in known if name not in ASKED_FOR_TOOLS]
    wanted = [names] if isinstance(names, str) else list(names)
    if unknown := [name for name in wanted if name not in known]:
        raise ConfigurationError(f"no tool {unknown[0]!r}; there are {', '.join(known)}")
    return tuple(definition for definition in TOOLS if definition["name"] in wanted)


def call_tool(run: RunState, name: str, arguments: str | Mapping[str, Any], now: float) -> str:
    """Run a tool that the model called; return its text of at most ``RESULT_MAX_TOKENS`` tokens.

    A wrong call, one of an unknown tool too, changes nothing, and its text begins with ``error:``. Raises LogError.
    """
    function = _TOOL_FUNCTIONS.get(name) if isinstance(name, str) else None
    if function is None:
        return f"error: no tool {name!r:.100}; there are {', '.join(_TOOL_FUNCTIONS)}"
    try:
        text = function(run, _parse_arguments(name, arguments), now)
    except LogError:
        raise
    except (_ToolMisuse, PageinError) as error:
        text = f"error: {error!s:.1000}"
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


def _recall(run: RunState, arguments: dict[str, Any], now: float) -> str:
    hits = _search(
        run,
        arguments["query"],
        min(MAX_HITS, max(1, arguments.get("limit", DEFAULT_HITS))),
        now,
        since=_time(arguments.get("since")),
        until=_time(arguments.get("until")),
        role=arguments.get("role"),
    )
    return "\n\n".join(map(_render_hit, hits)) or "Nothing in this run matches."


def _search(run: RunState, text: str, limit: int, now: float, **filters: Any) -> list[Hit]:
    """Search for a model: the best passage of each text first, and never the question that is asked now."""
    from pagein.search.base import Query  # noqa: PLC0415 - loads where something is looked for

    view = run.current_view()
    newest = user_words(view)
    is_question = _is_question(newest) or _repeats(newest, text)
    asking = asking_positions(view, is_question=is_question)
    query = Query(text, min(MAX_HITS, limit + EXTRA_HITS), asking=frozenset(asking), now=now, **filters)
    hits = run.runtime.recall(query)
    # A model's earlier questions match its query best, and hold no answer. So every other hit is a tool's result.
    results = run.runtime.recall(replace(query, role="tool")) if query.role is None else ()
    again = (hit for hit in hits if hit.role == "user" and is_question and hit.text == newest)
    left_out = {hit.handle for hit in again}
    found = [hit for hit in _best_passages(hits, results) if hit.handle not in left_out]
    # A question that was asked before comes last; other words of the user that equal the query may be its answer.
    found.sort(key=lambda hit: hit.role == "user" and _is_question(hit.text) and _repeats(hit.text, text))
    return found[:limit]


def _best_passages(hits: Sequence[Hit], results: Sequence[Hit]) -> Iterator[Hit]:
    """Yield the best passage of each text, a tool's by the search among tools' alone; then the others."""
    best: dict[str, Hit] = {}
    for hit in (*results, *hits):
        best.setdefault(hit.handle, hit)
    mixed = [hit for hit in chain.from_iterable(zip_longest(hits, results)) if hit is not None]
    yield from (best[handle] for handle in dict.fromkeys(hit.handle for hit in mixed))
    others = {(hit.handle, hit.text): hit for hit in mixed if hit.text != best[hit.handle].text}
    yield from others.values()


def _repeats(words: str, query: str) -> bool:
    """True if the user's words say nothing that the query does not say."""
    from pagein.search.tokenizer import query_terms  # noqa: PLC0415 - loads where something is looked for

    return set(query_terms(words, QUERY_TERMS)) <= set(query_terms(query, QUERY_TERMS))


def _is_question(words: str) -> bool:
    """True if the words end with a question mark of some script."""
    return words.rstrip(" \n\"')\u2019\u201d\u300d\u00bb").endswith(("?", "\uff1f", "\u061f", "\u037e"))


def _render_hit(hit: Hit) -> str:
    more = "" if hit.whole else f" (part; expand {hit.handle} for more)"
    return f"[{hit.handle}] {hit.role}{more}:\n{quote(hit.text)}"


def _time(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise _ToolMisuse(f"{text!r:.60} is no date; write it as 2026-11-21") from None


def _expand(run: RunState, arguments: dict[str, Any], _: float) -> str:
    handle = arguments.get("handle")
    first, last = _line_range(arguments.get("lines"))
    if "pattern" in arguments:
        limit = max(1, arguments.get("limit", RESULT_MAX_TOKENS))
        return _find_lines(run, handle, arguments["pattern"], first, last, limit)
    if handle is None:
        raise _ToolMisuse("expand needs a handle, or a pattern to look for in the whole run")
    original = expand(run, handle)
    text = escape_frames(original) if original.messages else quote(original)
    raw = [message.text for message in original.messages] or [str(original)]
    notice = QUOTED if any(quote(text) != text for text in raw) else ""
    lines = text.splitlines()
    if first > max(1, len(lines)):
        raise _ToolMisuse(f"it has lines 1-{len(lines)}")
    fitting: list[str] = []
    room = RESULT_MAX_TOKENS - 60
    for line in lines[first - 1 : last]:
        room -= run.counter.text(line) + 1
        if room < 0 and fitting:
            break
        fitting.append(line)
    if len(fitting) == len(lines):
        return f"{notice}{text}"
    end = first + len(fitting) - 1
    return notice + "\n".join((f"(lines {first}-{end} of {len(lines)}; ask for others with lines)", *fitting))


def _line_range(text: str | None) -> tuple[int, int | None]:
    """The first and the last line of a range as 40-80, 40, or none."""
    if text is None:
        return 1, None
    parts = text.replace(" ", "").split("-")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise _ToolMisuse("lines are a first and a last line, as 40-80")
    first, last = int(parts[0]), int(parts[-1])
    if not 1 <= first <= last:
        raise _ToolMisuse("lines begin at 1, and end behind their first")
    return first, last


def _find_lines(run: RunState, handle: str | None, text: str, first: int, last: int | None, limit: int) -> str:
    """Find the lines that match a pattern, newest step first, each with its handle and its number in that step."""
    from pagein._common.line_pattern import BadPattern, LinePattern  # noqa: PLC0415 - loads where a pattern is given

    rest: list[str] = []
    if handle is None:
        texts = read_texts(run, MAX_SEARCHED_CHARS, lambda name: bare_tool_name(name) in _TOOL_FUNCTIONS)
        places = [(step_handle(position), text) for position, text in texts]
        if sum(len(text) for _, text in texts) >= MAX_SEARCHED_CHARS:
            rest = [f"(searched back to {places[-1][0]}; what is older is searched with the handle s0-{places[-1][0]})"]
    else:
        original = expand(run, handle)
        messages = [(message.handle, message.text) for message in original.messages]
        places = messages or [(original.handle, str(original))]
    matching: list[str] = []
    room, more = RESULT_MAX_TOKENS - 60, 0
    try:
        pattern = LinePattern(text)
        for place, number, line in _numbered_lines(places, first, last):
            end = pattern.match_end(line)
            if end is None:
                continue
            shown = f"{place}:{number}: {escape_frames(_clip_around(line, end))}"
            room -= run.counter.text(shown) + 1
            if room < 0 or len(matching) == limit:
                more += 1
            else:
                matching.append(shown)
    except BadPattern as error:
        raise _ToolMisuse(f"the pattern {text!r:.80}: {error}") from None
    rest = [*([f"({more} more lines match)"] if more else []), *rest]
    return "\n".join((*(matching or [f"No line matches {text!r:.80}."]), *rest))


def _numbered_lines(places: Iterable[tuple[str, str]], first: int, last: int | None) -> Iterator[tuple[str, int, str]]:
    for place, text in places:
        for number, line in enumerate(text.splitlines()[first - 1 : last], first):
            yield place, number, line


def _clip_around(line: str, end: int) -> str:
    """The part of a long line around the end of a match."""
    start = max(0, min(end - MAX_LINE_CHARS // 2, len(line) - MAX_LINE_CHARS))
    part = line[start : start + MAX_LINE_CHARS]
    return f"{'…' * bool(start)}{part}{'…' * (start + len(part) < len(line))}"


def _compact(run: RunState, arguments: dict[str, Any], now: float) -> str:
    compaction = compact(run)
    saved = 0 if compaction is None else compaction.tokens_before - compaction.tokens_after
    text = "Nothing gets shorter." if compaction is None else f"{saved} tokens shorter."
    if not arguments.get("focus", "").strip():
        return text
    # What is asked for stands in the result, which is the newest of the run: so it is what leaves last.
    hits = _search(run, arguments["focus"], DEFAULT_HITS, now)
    return "\n\n".join((text, *map(_render_hit, hits)))


def _pin(run: RunState, arguments: dict[str, Any], _: float) -> str:
    if not arguments["text"].strip():
        raise _ToolMisuse("there is nothing to pin")
    handle = arguments["text"].strip()
    position = pins.step_position(run, handle)
    if position is not None and not pins.entries_at(run, handle):
        if position not in run.current_view().verbatim_positions:
            raise _ToolMisuse(f"{handle} is out of view or shortened: expand it, and pin what matters of it")
        pins.mark(run, handle, "high")
        return f"{handle} stays in sight while there is space."
    return f"Pinned as {pins.pin_for_model(run, arguments['text'])}."


def _check_fact(run: RunState, text: str) -> None:
    """Refuse a text that no view has room for: facts and notes have a share of the budget."""
    most, tokens = int(run.usage.limit() * FACTS_SHARE), run.counter.text(text)
    if tokens > most:
        raise _ToolMisuse(f"it has {tokens} tokens, and all notes and facts may have {most}; write the gist")


def _check_lasting_fact(run: RunState, text: str) -> None:
    """Refuse a secret, too: a later session would show it."""
    from pagein.events.secrets import holds_secret  # noqa: PLC0415 - loads where a fact is kept

    _check_fact(run, text)
    if holds_secret(text):
        raise _ToolMisuse("it holds a secret, and secrets are not kept; say where it is stored instead")


def _note(run: RunState, arguments: dict[str, Any], _: float) -> str:
    _check_fact(run, arguments["text"])
    fact = run.runtime.use_facts().add(content=arguments["text"], scope="session", author="model")
    return f"Noted as {fact.id}."


def _forget(run: RunState, arguments: dict[str, Any], _: float) -> str:
    id = arguments["id"].strip()
    if id.startswith("s"):
        position = pins.step_position(run, id)
        if position is not None and run.fold.marks.get(position) == "high":
            pins.mark(run, id, "normal")
            return f"{id} may leave."
        if pins.is_application_pin(run, id):
            # Any text that a model reads may ask it to forget a rule.
            raise _ToolMisuse(f"{id} was pinned by the application, and only it takes a pin of its own away")
        was_pinned = id in {step_handle(position) for position in run.fold.pinned}
        pins.unpin(run, id)
        return f"{id} is no longer pinned." if was_pinned else f"What {id} says no longer holds."
    _check_not_shared(id)
    run.runtime.use_facts().remove(id=id, reason=arguments.get("reason", ""), author="model")
    return f"{id} is forgotten."


def _remember(run: RunState, arguments: dict[str, Any], _: float) -> str:
    _check_lasting_fact(run, arguments["content"])
    fact = run.runtime.use_facts().add(**{**arguments, "author": "model", "confidence": 0.9})
    return f"Remembered as {fact.id}."


def _update(run: RunState, arguments: dict[str, Any], _: float) -> str:
    _check_lasting_fact(run, arguments["content"])
    _check_not_shared(arguments["id"])
    fact = run.runtime.use_facts().update(**{**arguments, "author": "model"})
    return f"Remembered as {fact.id}."


def _check_not_shared(id: str) -> None:
    if id.strip("[] \n").startswith("fa"):
        raise _ToolMisuse("a fact for everybody is changed by the application only")


def _cap(run: RunState, text: str) -> str:
    if run.counter.text(text) <= RESULT_MAX_TOKENS:
        return text
    size = len(text)
    while run.counter.text(text[:size]) > RESULT_MAX_TOKENS - 20:
        size = int(size * 0.8)
    return f"{text[:size]}\n[… cut: {len(text) - size} more characters]"


_TOOL_FUNCTIONS: Mapping[str, Callable[[RunState, dict[str, Any], float], str]] = {
    "recall": _recall, "expand": _expand, "pin": _pin, "note": _note, "forget": _forget, "remember": _remember,
    "update": _update, "compact": _compact,
}  # fmt: skip
