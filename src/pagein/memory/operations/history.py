"""The steps as they were recorded, read back from the log, each with every observation it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pagein.events.entries import Observed
from pagein.events.protocol import with_observations
from pagein.events.steps import ActionStep, Observation, Step
from pagein.log.base import Entry, Log, Problem, Verification
from pagein.memory._effects import Flow, Read
from pagein.memory._state import Session


def steps(session: Session, first: int = 0, last: int | None = None) -> Flow[tuple[tuple[int, Step], ...]]:
    """The steps at positions ``[first, last)``, each action with every observation it has, a late one included."""
    found, _ = yield from told(session, first, session.fold.head if last is None else last)
    return tuple(found.items())


def told(session: Session, first: int, last: int) -> Flow[tuple[dict[int, Step], dict[int, Observation]]]:
    """The steps at positions ``[first, last)``, and the observations that stand there as notes, by position."""
    stop = min(last, session.fold.head)
    entries = yield from Read(first, stop)
    found = {entry.position: entry.body for entry in entries if isinstance(entry.body, Step)}
    notes = {
        entry.position: entry.body.observation
        for entry in entries
        if isinstance(entry.body, Observed) and entry.body.late
    }
    answers = [entry.body for entry in entries if isinstance(entry.body, Observed)]
    # An observation may be far behind its action: a late one is where it came.
    behind = (at for action in found for at in session.fold.answers.get(action, ()) if at >= stop)
    for start, end in stretches(sorted(behind)):
        more = yield from Read(start, end)
        answers += [entry.body for entry in more if isinstance(entry.body, Observed)]
    by_action: dict[int, dict[int, Observation]] = {}
    for each in answers:
        by_action.setdefault(each.action, {})[each.index] = each.observation
    for action, seen in by_action.items():
        step = found.get(action)
        if isinstance(step, ActionStep):
            found[action] = with_observations(step, seen)
    return found, notes


def stretches(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Sorted positions as ranges ``[start, end)``, so that neighbours are read at once."""
    start = end = -1
    for each in positions:
        if each != end:
            if start >= 0:
                yield start, end
            start = each
        end = each + 1
    if start >= 0:
        yield start, end


def lost_since(log: Log, known: Entry | None, found: Verification) -> Problem | None:
    """What was known, as its last entry, and a log that is sound in itself no longer has."""
    if known is None:
        return None
    if found.entries <= known.position:
        return Problem(found.entries, f"{known.position + 1} entries were known, {found.entries} are there")
    now = next(iter(log.read(known.position, known.position + 1)), None)
    if now is None or now.digest != known.digest:
        return Problem(known.position, "the entry is not the one that was known: the history was replaced")
    return None
