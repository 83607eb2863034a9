"""The places that entries name in their own log: what is imported names none that is not there.

A log that the library wrote is sound. A file can be made by anybody, and its hashes with it: an index of 10**12 would fill
the memory when the run is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pagein.events.entries import (
    Body,
    Compaction,
    FactConfirmed,
    FactRemoved,
    FactStated,
    FactsUsed,
    Mark,
    Observed,
    Replacement,
    Undo,
    Unpin,
)
from pagein.events.steps import ActionStep
from pagein.log.base import Entry

MAX_CALLS = 1_000
"""Calls of an action of which nothing is known: it was erased, or is none."""


def find_wrong_reference(entries: Iterable[Entry], count: int) -> str:
    """Say what the first entry names that is not among these ``count`` entries; "" where there is none.

    >>> find_wrong_reference([Entry(0, 1.0, Undo(7), "s2:0")], 1)
    'entry 0 names entry 7 of 1'
    """
    calls: dict[int, int] = {}
    for entry in entries:
        if isinstance(entry.body, ActionStep) and entry.erased is None:
            calls[entry.position] = len(entry.body.tool_calls)
        if wrong := next(_wrong_places(entry, calls, count), ""):
            return f"entry {entry.position} {wrong}"
    return ""


def _wrong_places(entry: Entry, calls: Mapping[int, int], count: int) -> Iterator[str]:
    body = entry.body
    yield from (f"names entry {position} of {count}" for position in _positions(body) if not 0 <= position < count)
    for by in _replacements(body):
        if not 0 <= by.first < by.last <= count:
            yield f"replaces entries {by.first} to {by.last - 1} of {count}"
    for action, index in _calls(body):
        if not 0 <= index < calls.get(action, MAX_CALLS):
            yield f"names call {index} of entry {action}"


def _positions(body: Body) -> tuple[int, ...]:
    match body:
        case Observed(action=position) | Unpin(position=position) | Mark(position=position) | Undo(position=position):
            return (position,)
        case FactRemoved(fact=fact) | FactConfirmed(fact=fact):
            return (fact,)
        case FactStated(supersedes=supersedes, disputes=disputes):
            return (*supersedes, *disputes)
        case FactsUsed(facts=facts):
            return facts
        case _:
            return ()


def _calls(body: Body) -> Iterator[tuple[int, int]]:
    """Yield the calls that a body names, each by its action and its index."""
    if isinstance(body, Observed):
        yield body.action, body.index
    for by in _replacements(body):
        yield from ((by.first, stub.index) for stub in by.stubs if stub.slot in ("arguments", "observation"))


def _replacements(body: Body) -> tuple[Replacement, ...]:
    return body.replacements if isinstance(body, Compaction) else ()
