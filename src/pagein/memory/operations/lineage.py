"""The lineage of a list: how far it says what the run has recorded, by content alone. Nothing is written here.

A chain is the fingerprints of the items that were handed over, in the order of the log, system prompts aside. The results of
one step may stand in any order. A *place* counts the items of the chain, a *number* the fingerprints of the run, a
*position* the entries of the log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from pagein.events.entries import IN_TEXT, Observed
from pagein.events.handles import range_handle, step_handle
from pagein.events.protocol import RESULT_PREFIX, SYSTEM_PREFIX, handed_items, is_same_item
from pagein.events.steps import TaskStep
from pagein.formats import Item
from pagein.log.base import Entry
from pagein.memory._state import RunState

Marks = Sequence[bytes]


class Chain:
    """The chain of a run since its view was cleared. ``numbers`` has the number at each place."""

    def __init__(self, run: RunState) -> None:
        self.run, self._log, self._unlisted = run, run.log, run.transcript.unlisted
        marks = islice(enumerate(run.log.fingerprints), run.log.list_start, None)
        self.numbers = [number for number, mark in marks if not mark.startswith(SYSTEM_PREFIX)]
        self._items: dict[int, Item] = {}
        """Recorded items that were read, by number."""

    def __len__(self) -> int:
        return len(self.numbers)

    def place_of(self, number: int) -> int:
        """Return the place of the first item with this number or a later one."""
        return bisect_left(self.numbers, number)

    def position(self, place: int) -> int:
        """Return the position of the item at a place."""
        return self._log.fingerprint_positions[self.numbers[place]]

    def mark(self, place: int) -> bytes:
        """Return the fingerprint at a place."""
        return self._log.fingerprints[self.numbers[place]]

    def marks(self, first: int = 0) -> list[bytes]:
        """Return the fingerprints from a place on."""
        return [self._log.fingerprints[number] for number in self.numbers[first:]]

    def results_end(self, place: int) -> int:
        """Return the end of the results that follow one another from a place on."""
        return place + results_end(self.marks(place), 0)

    def skippable(self, first: int = 0) -> set[int]:
        """Return the items that a list need not have, counted from the place ``first`` on."""
        numbers = enumerate(self.numbers[first:]) if self._unlisted else ()
        return {at for at, number in numbers if number in self._unlisted}

    def is_all_listed(self, reached: int) -> bool:
        """True for a list that has the chain up to this place and lacks nothing behind it."""
        return all(number in self._unlisted for number in self.numbers[reached:])

    def handle(self, first: int, last: int) -> str:
        """Return the handle of the entries at the places ``[first, last)``."""
        start, stop = self.position(first), self.position(last - 1) + 1
        return step_handle(start) if stop - start == 1 else range_handle(start, stop)

    def read_items(self, first: int, stop: int, ahead: int = 0) -> list[Item]:
        """Read the items at the places ``[first, stop)``, and keep them with those of at least ``ahead`` entries."""
        numbers = self.numbers[first:stop]
        for number in numbers:
            if number not in self._items:
                start, end = self._log.fingerprint_positions[number], self._log.fingerprint_positions[numbers[-1]] + 1
                entries = self.run.runtime.read_entries(start, max(end, min(start + ahead, self.run.fold.head)))
                items = [item for entry in entries for item in listed_items(self.run, entry)]
                self._items.update(enumerate(items, self._log.count_fingerprints(start)))
        return [self._items[number] for number in numbers]


def listed_items(run: RunState, entry: Entry) -> tuple[Item, ...]:
    """Return the items of an entry as the application's newest list has them."""
    match entry.body:
        case Observed(late=late, action=action, index=index, observation=result):
            place = (entry.position, "content", IN_TEXT) if late else (action, "observation", index)
            rewritten = run.fold.changes.rewritten.get(place)
            return handed_items(entry.body) if rewritten is None else (replace(result, content=rewritten.stub.content),)
        case TaskStep() as task if rewritten := run.fold.changes.rewritten.get((entry.position, "content", 0)):
            return (replace(task, content=rewritten.stub.content),)
    return handed_items(entry.body)


@dataclass(frozen=True, slots=True)
class Alignment:
    """A list beside a chain: its first ``at`` items are the first ``reached`` of the chain.

    ``late`` are new results among those items, of a step whose other results were recorded. ``skipped`` are the places of the
    chain that the list does not have.
    """

    at: int
    reached: int
    late: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Return:
    """A place where a list that left the chain comes back to it: items ``[first, last)`` are the chain from ``chain`` on.

    Behind ``last`` nothing more of the list is in the chain, and of the chain nothing more in the list.
    """

    first: int
    last: int
    chain: int
    late: tuple[int, ...] = ()


def align(marks: Marks, chain: Marks, skippable: Collection[int] = ()) -> Alignment:
    """Follow the chain from its beginning for as long as the list says the same.

    ``skippable`` are places in the chain that an application's list need not have.
    """
    at = reached = 0
    skipped: list[int] = []
    while reached < len(chain) and at < len(marks):
        end = results_end(chain, reached)
        if end == reached:
            if is_same_item(chain[reached], marks[at]):
                at, reached = at + 1, reached + 1
            elif reached in skippable:
                skipped.append(reached)
                reached += 1
            else:
                break
            continue
        stop = results_end(marks, at)
        optional = [chain[place] for place in range(reached, end) if place in skippable]
        missing, new = _match_results(chain[reached:end], optional, marks[at:stop])
        if (missing and (new or stop < len(marks))) or (new and end < len(chain)):
            break  # other results
        late = tuple(at + index for index in new)
        at, reached = stop, end - (0 if new else missing)
        if new or missing:
            return Alignment(at, reached, late, tuple(skipped))
    return Alignment(at, reached, skipped=tuple(skipped))


def has_other_results(marks: Marks, chain: Marks) -> bool:
    """True where the results that both begin with differ on both sides."""
    missing, new = _match_results(chain[: results_end(chain, 0)], (), marks[: results_end(marks, 0)])
    return missing > 0 and bool(new)


def find_return(marks: Marks, chain: Marks, at: int, reached: int) -> Return | None:
    """Find the longest end of the chain, behind ``reached``, that stands in the list, behind ``at``; the first of equals."""
    tail = len(chain)
    while tail > reached and chain[tail - 1].startswith(RESULT_PREFIX):
        tail -= 1
    if tail <= reached:
        return None
    ordered_marks, ordered_chain = _with_results_sorted(marks), _with_results_sorted(chain)
    best: Return | None = None
    for end in range(at + 1, len(marks) + 1):
        length = 0
        longest = min(end - at, tail - reached)
        while length < longest and is_same_item(ordered_chain[tail - 1 - length], ordered_marks[end - 1 - length]):
            length += 1
        if not length or (best is not None and length <= best.last - best.first):
            continue
        rest = align(marks[end:], chain[tail:])
        if tail + rest.reached == len(chain) or end + rest.at == len(marks):
            late = tuple(end + index for index in rest.late)
            best = Return(end - length, end + rest.at, tail - length, late)
    return best


def first_tasks(items: Iterable[object]) -> list[TaskStep]:
    """Return the messages of the user that the items begin with."""
    return [item for item in takewhile(lambda item: isinstance(item, TaskStep), items) if isinstance(item, TaskStep)]


def results_end(marks: Marks, start: int) -> int:
    """Return the end of the results that follow one another from ``start`` on."""
    end = start
    while end < len(marks) and marks[end].startswith(RESULT_PREFIX):
        end += 1
    return end


def _match_results(recorded: Marks, optional: Marks, marks: Marks) -> tuple[int, list[int]]:
    """The number of recorded results that a list of results lacks and should have, and its own that were not recorded."""
    waiting = Counter(recorded)
    unknown: list[int] = []
    for index, mark in enumerate(marks):
        if waiting[mark] > 0:
            waiting[mark] -= 1
        else:
            unknown.append(index)
    erased = sum(count for mark, count in waiting.items() if is_same_item(mark, RESULT_PREFIX))
    missing = (waiting - Counter(optional)).total()
    return max(0, missing - min(erased, len(unknown))), unknown[erased:]


def _with_results_sorted(marks: Marks) -> list[bytes]:
    """The marks with the results of each step in one order."""
    ordered = list(marks)
    start = 0
    while start < len(ordered):
        end = results_end(ordered, start)
        if end > start:
            ordered[start:end] = sorted(ordered[start:end])
        start = max(end, start + 1)
    return ordered
