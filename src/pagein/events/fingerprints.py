"""The fingerprint of an item: equal for items that say the same."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import assert_never

from pagein.events.entries import Body, Checkpoint, Compaction, FactBody, Observed, Pin, Undo, Unpin
from pagein.events.steps import (
    ActionStep,
    FinalAnswerStep,
    Image,
    Observation,
    Part,
    PlanningStep,
    Step,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    Text,
    as_parts,
)

RESULT_PREFIX, SYSTEM_PREFIX, STEP_PREFIX = b"r", b"y", b"s"
"""First byte of the fingerprint of a result, of a system prompt, and of any other step."""


def fingerprint(item: Step | Observation) -> bytes:
    """Hash an item; observations of an action are hashed by themselves."""
    if isinstance(item, ActionStep):
        item = replace(item, observations=(), usage=None, model="")
    elif isinstance(item, Observation):
        item = replace(item, index=None)
    parts = as_parts(item.content)
    images = [part.digest for part in parts if isinstance(part, Image)]
    if not isinstance(item, SummaryStep):
        # Text and a list of one text are the same content, and a cache marker is none.
        item = replace(item, content=tuple(map(_without_cache_marker, parts)))
    text = (repr(item) + repr(images)).encode("utf-8", "surrogatepass")
    return _prefix(item) + hashlib.blake2b(text, digest_size=16).digest()


def body_fingerprints(body: Body) -> tuple[bytes, ...]:
    """The fingerprints of the items that a host handed over in one entry; none for what the library wrote."""
    if isinstance(body, Compaction | Pin | Unpin | Checkpoint | Undo | FactBody):
        return ()
    match body:
        case ActionStep(observations=observations) as step:
            results = (observation for observation in observations if observation is not None)
            return (fingerprint(step), *map(fingerprint, results))
        case Observed(observation=observation):
            return () if observation.status == "unknown" else (fingerprint(observation),)
        case (SystemPromptStep() | TaskStep() | PlanningStep() | FinalAnswerStep() | SummaryStep()) as step:
            return (fingerprint(step),)
        case _:
            assert_never(body)


def _prefix(item: Step | Observation) -> bytes:
    if isinstance(item, Observation):
        return RESULT_PREFIX
    return SYSTEM_PREFIX if isinstance(item, SystemPromptStep) else STEP_PREFIX


def _without_cache_marker(part: Part) -> Part:
    if isinstance(part, Text) and part.extra is not None:
        is_marker = part.extra.body == "{}" or part.extra.kind == "cache_control"
        return Text(part.text) if is_marker else part
    return part
