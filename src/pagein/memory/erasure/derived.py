"""What the library itself wrote of steps that were erased, without them: summaries, stubs, checkpoints, its tools' results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pagein.events.entries import Checkpoint, Compaction, Replacement, Stub
from pagein.events.handles import parse_handle, range_handle
from pagein.memory.checkpoints.state import OURS, State, as_json, as_state
from pagein.memory.erasure.redact import ERASED, out_of_view, unsaid
from pagein.memory.erasure.repetitions import Quotes, names, parsed
from pagein.summaries.summary import EXTRACTIVE

Gone = Mapping[int, frozenset[int] | None]
"""By position what was erased there: all (None), or the results of these calls."""

_NAMED = "Also named: "


def recovered(body: Compaction, gone: Gone, quotes: Quotes) -> Compaction:
    """The compaction with texts in which nothing of it is left. Ranges stay, so that the log folds as it did."""
    replacements = tuple(_without(each, gone, quotes) for each in body.replacements)
    return replace(body, replacements=replacements)


def _without(by: Replacement, gone: Gone, quotes: Quotes) -> Replacement:
    covered = [at for at in gone if by.first <= at < by.last]
    stubs = tuple(unsaid(each) if _is_of(each, by, gone) or quotes(each.text) else each for each in by.stubs)
    by = replace(by, stubs=stubs)
    tells = by.summary is not None and (quotes(by.summary) or quotes.within(parsed(by.record)))
    if by.summary is None or not (covered or tells):
        return by
    if by.author != EXTRACTIVE or by.record:
        # A model's words may tell of it in others: none of them stay.
        return replace(by, summary=out_of_view(by.first, by.last), author=EXTRACTIVE, record="")
    return replace(by, summary=trimmed(by.summary, by.first, by.last, gone, quotes))


def _is_of(stub: Stub, by: Replacement, gone: Gone) -> bool:
    if by.first not in gone:
        return False
    indexes = gone[by.first]
    return indexes is None or (stub.slot == "observation" and stub.index in indexes)


def trimmed(text: str, first: int, last: int, gone: Gone, quotes: Quotes) -> str:
    """An extract without the lines of what was erased; what is no extract becomes a line with the handle."""
    short, (head, *rest) = out_of_view(first, last), text.splitlines() or [""]
    handle = range_handle(first, last)
    if not rest and head.endswith((handle, f"{handle}.")):
        return text  # it says no more than the handle
    if not head.startswith(short.removesuffix(".")):
        return short
    kept = list(_kept(rest, gone, quotes))
    return "\n".join((head, *kept)) if kept else short


def _kept(lines: list[str], gone: Gone, quotes: Quotes) -> Iterator[str]:
    held, is_gone = "", False
    for line in lines:
        of = parse_handle(line) if line.startswith("[s") else None
        if of is not None:
            held, is_gone = line, of.first in gone
        elif line.startswith(_NAMED):
            named = [each for each in line.removeprefix(_NAMED).split() if not quotes(each)]
            if named:
                yield _NAMED + " ".join(named)
        elif not is_gone and not quotes(line):
            if held:
                yield held
                held = ""
            yield line


def unmarked(body: Checkpoint, gone: Gone, quotes: Quotes, *, modelled: bool) -> Checkpoint:
    """The checkpoint without what its state says of it.

    A state that tells of it, or that a model's words about it went into (``modelled``), is made anew by the next
    checkpoint; what the host kept with it stays, but for texts that tell of it.
    """
    value = parsed(body.state)
    if body.name.startswith(OURS):
        return (
            replace(body, state=json.dumps(quotes.without(value, ERASED), ensure_ascii=False))
            if quotes.within(value)
            else body
        )
    if not (modelled or quotes.within(value) or names(value, gone)):
        return body
    host = as_state(body.state).host
    kept = json.dumps(quotes.without(json.loads(host), ERASED), ensure_ascii=False) if host else ""
    return Checkpoint(ERASED if quotes(body.name) else body.name, as_json(State(host=kept)))
