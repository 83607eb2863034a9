"""Redacts bodies, and what was derived from them: the content goes; kinds, places and ids that others refer to stay. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, assert_never

from pagein._common.json_values import parse_json
from pagein.events import entries, steps
from pagein.events.entries import Checkpoint, Compaction, Replacement, Stub
from pagein.events.handles import range_handle
from pagein.memory.checkpoints.state import RESERVED_PREFIXES, CheckpointState, state_from_json, state_to_json
from pagein.memory.erasure.repetitions import Repetitions, handles_in
from pagein.summaries.summary import EXTRACTIVE

ERASED = "[erased]"
"""What stands where something was said."""


def redact(body: entries.Body) -> entries.Body:
    """Remove all content from a body; a body without content is returned equal.

    The role, the ids and names of calls and their status, the model's name and the usage stay.
    """
    match body:
        case steps.SystemPromptStep() | steps.TaskStep() | steps.PlanningStep() | steps.FinalAnswerStep():
            return replace(body, content=_redact_content(body.content), extra=None)
        case steps.SummaryStep():
            return replace(body, content=ERASED)
        case steps.ActionStep():
            calls = tuple(steps.ToolCall(call.id, call.name) for call in body.tool_calls)
            observations = tuple(
                None if observation is None else _redact_observation(observation) for observation in body.observations
            )
            content = None if body.content is None else _redact_content(body.content)
            return replace(body, content=content, tool_calls=calls, observations=observations, extra=None)
        case entries.Observed():
            return replace(body, observation=_redact_observation(body.observation))
        case entries.Pin():
            return replace(body, text=ERASED)
        case entries.Checkpoint():
            return entries.Checkpoint(ERASED)
        case entries.Compaction():
            return replace(body, replacements=tuple(map(_redact_replacement, body.replacements)))
        case entries.Unpin() | entries.Mark() | entries.Undo():
            return body
        case _:
            return _redact_fact_body(body)


def _redact_fact_body(body: entries.FactBody) -> entries.Body:
    match body:
        case entries.FactStated():
            return replace(body, content=ERASED, sources=(), reason="")
        case entries.FactRemoved():
            return replace(body, reason="")
        case entries.FactConfirmed():
            return replace(body, sources=(), reason="")
        case entries.FactsUsed() | entries.FactsExtracted() | entries.Erased():
            return body
        case entries.FactsShown():
            return entries.FactsShown("")
        case _:
            assert_never(body)


def redact_observations(step: steps.ActionStep, indexes: Collection[int]) -> steps.ActionStep:
    """Remove the content of these observations from an action."""
    observations = (
        _redact_observation(observation) if observation is not None and at in indexes else observation
        for at, observation in enumerate(step.observations)
    )
    return replace(step, observations=tuple(observations))


def _redact_observation(observation: steps.Observation) -> steps.Observation:
    # A result that came as a message stays one: it answers no call.
    extra = steps.Opaque(*steps.TEXT_OBSERVATION, "{}") if observation.is_message else None
    return steps.Observation(
        observation.call_id, _redact_content(observation.content), observation.status, observation.index, extra
    )


def _redact_content(content: steps.Content) -> steps.Content:
    return ERASED if content else content


def _redact_replacement(by: entries.Replacement) -> entries.Replacement:
    stubs = tuple(redact_stub(stub) for stub in by.stubs)
    return replace(
        by, stubs=stubs, summary=None if by.summary is None else out_of_view_line(by.first, by.last), record=""
    )


def redact_stub(stub: entries.Stub) -> entries.Stub:
    """Remove the text of a stub; arguments stay JSON."""
    if not stub.content:
        return stub
    return replace(stub, text="{}" if stub.slot == "arguments" else ERASED, parts=())


def out_of_view_line(first: int, last: int) -> str:
    """The line that stands for erased steps: their handle alone."""
    return f"Out of view: {range_handle(first, last)}."


# What the library derived from erased steps: summaries, stubs, checkpoints


_MARKS = "type role kind part_kind op at status id call_id tool_call_id name tool_name"
_FIELDS = "items first replaces loose content text output arguments args parts body blobs"
_NOTE_MARKS, _NOTE_FIELDS = frozenset(_MARKS.split()), frozenset(_FIELDS.split())
"""Of an integration's notes the fields that say no more than tombstones do, and those whose names stay."""

ErasedParts = Mapping[int, frozenset[int] | None]
"""By position what was erased there: all (None), or the results of these calls."""

_NAMED = "Also named: "
_LINE_HANDLE = re.compile(r"^\[s(\d{1,15})(?:\.\d{1,9})?\]", re.MULTILINE | re.ASCII)
"""The handle before a line of an extract, or alone above several."""


def redact_compaction(body: Compaction, erased: ErasedParts, repetitions: Repetitions) -> Compaction:
    """Redact the texts of a compaction that repeat erased content. Ranges stay, so that the log folds as before."""
    replacements = tuple(_redact_derived(replacement, erased, repetitions) for replacement in body.replacements)
    return replace(body, replacements=replacements)


def _redact_derived(by: Replacement, erased: ErasedParts, repetitions: Repetitions) -> Replacement:
    is_model = by.author != EXTRACTIVE or bool(by.record)
    # A model is asked with its record of what was before: its words may tell of that, too.
    covered = any(at < by.last and (is_model or by.first <= at) for at in erased)
    stubs = tuple(
        redact_stub(stub) if _is_of(stub, by, erased) or repetitions(stub.text) else stub for stub in by.stubs
    )
    by = replace(by, stubs=stubs)
    tells = by.summary is not None and (
        repetitions(by.summary) or repetitions.found_in(parse_json(by.record, by.record))
    )
    if by.summary is None or not (covered or tells or _lines_of(by.summary, erased)):
        return by
    if is_model:
        # A model's words may tell of it in others: none of them stay.
        return replace(by, summary=out_of_view_line(by.first, by.last), author=EXTRACTIVE, record="")
    return replace(by, summary=trim_extract(by.summary, by.first, by.last, erased, repetitions))


def _is_of(stub: Stub, by: Replacement, erased: ErasedParts) -> bool:
    if by.first not in erased:
        return False
    indexes = erased[by.first]
    return indexes is None or (stub.slot == "observation" and stub.index in indexes)


def trim_extract(text: str, first: int, last: int, erased: ErasedParts, repetitions: Repetitions) -> str:
    """Remove the lines of erased content from an extract; any other text becomes a line with the handle."""
    short, (head, *rest) = out_of_view_line(first, last), text.splitlines() or [""]
    handle = range_handle(first, last)
    if not rest and head.endswith((handle, f"{handle}.")):
        return text  # it says no more than the handle
    if not head.startswith(short.removesuffix(".")):
        return short
    lines = list(_kept_lines(rest, erased, repetitions))
    return "\n".join((head, *lines)) if lines else short


def _lines_of(text: str, erased: ErasedParts) -> bool:
    """True where an extract has lines of an erased step, of whatever range."""
    return any(int(match[1]) in erased for match in _LINE_HANDLE.finditer(text))


def _kept_lines(lines: list[str], erased: ErasedParts, repetitions: Repetitions) -> Iterator[str]:
    head, is_gone = "", False
    for line in lines:
        of = _LINE_HANDLE.match(line)
        if of is not None and of.end() == len(line):
            head, is_gone = line, int(of[1]) in erased
        elif line.startswith(_NAMED):
            named = [name for name in line.removeprefix(_NAMED).split() if not repetitions(name)]
            if named:
                yield _NAMED + " ".join(named)
        elif not (is_gone or (of is not None and int(of[1]) in erased) or repetitions(line)):
            if head:
                yield head
                head = ""
            yield line


def redact_checkpoint(body: Checkpoint, erased: ErasedParts, repetitions: Repetitions, *, modelled: bool) -> Checkpoint:
    """Redact the state of a checkpoint.

    A state that repeats erased content, or that a model's words about it went into (``modelled``), is dropped,
    and derived again by the next checkpoint. The application's own state stays, but for texts that repeat
    erased content.
    """
    value = parse_json(body.state, body.state)
    if body.name.startswith(RESERVED_PREFIXES):
        if isinstance(value, dict) and (of := _erased_places(value, erased)):
            return replace(body, state=json.dumps(of))
        if not repetitions.found_in(value):
            return body
        return replace(body, state=json.dumps(_redact_note(value, repetitions), ensure_ascii=False))
    if not (
        modelled
        or repetitions.found_in(value)
        or any(at.last == at.first + 1 and at.first in erased for at in handles_in(value))
    ):
        return body
    host = state_from_json(body.state).host
    host_text = json.dumps(repetitions.replace_in(json.loads(host), ERASED), ensure_ascii=False) if host else ""
    return Checkpoint(ERASED if repetitions(body.name) else body.name, state_to_json(CheckpointState(host=host_text)))


def _erased_places(note: dict[str, Any], erased: ErasedParts) -> dict[str, Any]:
    """What is left of a note about erased steps alone; empty for any other note."""
    at = note.get("at")
    if isinstance(at, list) and note.get("op") == "edit" and not erased.keys().isdisjoint(at):
        return {"op": "edit", "at": []}  # the tombstone is read in the place of what was edited
    if isinstance(at, int) and erased.get(at, ()) is None:
        return {key: note[key] for key in ("at", "count", "kind") if key in note}
    return {}


def _redact_note(value: Any, repetitions: Repetitions) -> Any:
    """Redact the texts of an integration's note; what it needs to be read again stays."""
    match value:
        case list():
            return [_redact_note(item, repetitions) for item in value]
        case {"json": str(body), "version": _}:  # a step that was edited
            return {**value, "json": json.dumps(_redact_note(parse_json(body, body), repetitions), ensure_ascii=False)}
        case dict():
            return {
                key: field if key in _NOTE_MARKS else _redact_note(field, repetitions)
                for key, field in value.items()
                if key in _NOTE_MARKS or key in _NOTE_FIELDS or not repetitions(key)
            }
        case _:
            return repetitions.replace_in(value, ERASED)
