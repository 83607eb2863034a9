"""Ingesting transcripts: what of an application's list is new. ``ListReader.decide`` is the table of decisions. It writes nothing.

A list is known by what it says, never by its length, by a place in it, or by how a text looks. First it is compared with the
lists that were handed over before, and with the requests that were given out: their messages are hashed in a chain, and
only what is behind the longest known one is parsed. Where none is known, as after a restart, the whole list is parsed and
compared with the log. Nothing is left out in silence: what is neither new nor recorded is named in the notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from pagein.errors import FormatError
from pagein.events.entries import REWRITTEN, Compaction
from pagein.events.protocol import (
    MODEL_PREFIX,
    RESULT_PREFIX,
    SYSTEM_PREFIX,
    USER_PREFIX,
    TextObservations,
    fingerprint,
    is_same_item,
)
from pagein.events.steps import ActionStep, Observation, TaskStep, as_text
from pagein.formats import Item
from pagein.formats.raw_messages import RawRequest
from pagein.memory._state import Habit, KnownList, RunState
from pagein.memory.operations.changed_requests import find_changed_request, without_systems
from pagein.memory.operations.client_lists import ShortenedItem, as_recorded, is_respelled
from pagein.memory.operations.lineage import Alignment, Chain, Marks, Return, align, find_return, has_other_results
from pagein.memory.operations.listed_systems import ListedSystems, excerpt
from pagein.memory.operations.references import parse_list
from pagein.memory.operations.relist import (
    MAX_TAKEN_BACK,
    find_gap,
    find_newest_place,
    find_rewriting,
    find_taken_back,
    plan_relisting,
)

_CERTAIN_ITEMS = 4
"""Items at the end of the chain that a list has by no chance, whatever it begins with."""


@dataclass(frozen=True, slots=True)
class NewItems:
    """An outcome: these items are new, none where the list says what was recorded; and what is remembered of the list.

    The list covers the first ``covers`` fingerprints of the run, None for all. ``listed`` are the numbers of those that
    were recorded as steps, and that the list has too.
    """

    items: Sequence[Item]
    notes: tuple[str, ...] = ()
    covers: int | None = None
    habit: Habit = "unknown"
    is_loose: bool = False
    list_hash: bytes = b""
    listed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Edited(NewItems):
    """An outcome: the list says something else than the run. The items are new on a branch that keeps ``fork_at`` entries."""

    fork_at: int = 0


@dataclass(frozen=True, slots=True)
class Relisting:
    """An outcome: the list changed or took back something before its new items. That is recorded; then it is read again."""

    compaction: Compaction


Outcome = NewItems | Edited | Relisting


@dataclass(frozen=True, slots=True)
class Transcript:
    """An application's messages, not parsed yet. ``observations`` tells which of the user's are results."""

    request: RawRequest
    observations: TextObservations = None


@dataclass(frozen=True, slots=True)
class _AlignedList:
    """The items of a list, as they were recorded, beside the chain from the place ``first`` on."""

    items: Sequence[Item]
    marks: Marks
    chain: Marks
    alignment: Alignment
    first: int

    @property
    def at(self) -> int:
        """The number of items that both begin with."""
        return self.alignment.at

    @property
    def place(self) -> int:
        """The place in the whole chain behind what both begin with."""
        return self.first + self.alignment.reached

    @property
    def new(self) -> list[Item]:
        """The items that are new where the list has all of the chain."""
        return [*(self.items[index] for index in self.alignment.late), *self.items[self.at :]]

    def find_return(self) -> Return | None:
        """Find where the list comes back to the chain."""
        return find_return(self.marks, self.chain, self.at, self.alignment.reached)


class ListReader:
    """One list beside one run. ``whole`` False: all of it is new; True: it is the whole history; None: its lineage tells."""

    chain: Chain
    may_relist: bool
    listed: frozenset[int]
    """See ``NewItems.listed``."""
    shortened: dict[ShortenedItem, str]
    """Handles of what the list has shorter than recorded, and that was not said of an earlier one."""

    def __init__(self, request: RawRequest, run: RunState, whole: bool | None) -> None:
        self.request, self.run, self.whole = request, run, whole
        self.habit: Habit = "whole" if whole else run.transcript.habit
        self.hashes = request.list_hashes()
        self.list_hash = self.hashes[-1][1] if self.hashes else b""
        self.notes: list[str] = []
        self._parsed: dict[int, tuple[Item, ...]] = {}

    # The table of decisions

    def decide(self, *, may_relist: bool) -> Outcome:
        """Decide what of the list is new: by the lists and requests known in this process, else by content.

        With ``may_relist`` False the list takes nothing back. Raises FormatError for a whole history that shares nothing
        with the run, and for messages that are not in the format's shape.
        """
        self.may_relist, self.notes, self.shortened, self.listed = may_relist, [], {}, frozenset()
        if self.whole is False or not self.run.log.fingerprints:
            items = (*self.request.parse_system(), *self._parse())
            list_hash = b"" if self.run.log.fingerprints else self.list_hash
            return NewItems(items, habit=self.run.transcript.habit, list_hash=list_hash)
        if results := self._new_results():
            return self._new(results, habit=self.run.transcript.habit, is_loose=True)
        self.chain, outcome = Chain(self.run), None
        systems = ListedSystems(self.request, self.run)
        count, known = self._longest_known()
        added: tuple[Item, ...] = ()
        if changed := find_changed_request(self.request, self.run, count):
            count, known, added = changed
        if known is not None:
            start = self.hashes[count - 1][0] + 1
            items = (*added, *self._parse(start, known.covers))
            outcome = self._decide_behind(known, without_systems(items))
        if outcome is None:
            start, items = 0, self._parse()
            outcome = self._decide_by_content(without_systems(items))
        if isinstance(outcome, Edited):
            outcome = self._find_rewriting(outcome) or outcome
        return outcome if isinstance(outcome, Relisting) else self._complete(outcome, systems, items, start)

    def _decide_behind(self, known: KnownList, listed: list[Item]) -> Outcome | None:
        """Decide about the items behind a known list; None where it does not tell what they are."""
        beside = self._compare(listed, self.chain.place_of(known.covers))
        self._note_listed(beside)
        is_end = self.chain.is_all_listed(beside.place)
        if not beside.new:
            if self.habit == "news" and not known.is_request:
                return None
            self._note_nothing_new(beside, is_end=is_end)
            return self._new((), covers=None if is_end or known.is_request else self.chain.numbers[beside.place])
        if is_end:
            return self._new(beside.new)
        # The last line of a request may be the user's own word, which the list then has.
        if not known.is_request and (relisting := self._find_relisting(beside)):
            return relisting
        if not known.is_request and self.habit != "whole":
            return None
        by_content = self._compare(without_systems(self._parse()), 0)
        return None if by_content.place >= beside.first else self._edit(beside.items[beside.at :], beside.place)

    def _decide_by_content(self, listed: list[Item]) -> Outcome:  # noqa: C901 - the rows of the table
        """Decide about a whole list by what it says."""
        beside = self._compare(listed, 0)
        if relisting := self._find_relisting(beside):
            return relisting
        if not beside.items or not beside.chain:  # nothing to compare
            return self._new(beside.items, habit=self.run.transcript.habit)
        if len(beside.items) == 1:
            return self._decide_lone(beside)
        self._note_listed(beside)
        if beside.at and self.chain.is_all_listed(beside.place):  # all of the run, and what follows it
            if not beside.new:
                self._note_nothing_new(beside, is_end=True)
            return self._new(beside.new)
        if not beside.at and (self._has_other_beginning(beside) or self._has_all_else(beside)):
            return self._edit(beside.items, 0)
        if self.habit == "news" and not self.whole:  # its host hands over what is new
            return self._all_new(beside.items)
        if beside.at == len(beside.items):  # the beginning of the run, and no more
            self._note_nothing_new(beside, is_end=False)
            return self._new((), covers=self.chain.numbers[beside.place] if self.habit == "whole" else None)
        if (behind_gaps := self._select_behind_gaps(beside)) is not None:
            return behind_gaps
        if (back := beside.find_return()) is not None and self._is_certain(back, beside):
            return self._rejoin(beside, back)
        if beside.at:
            return self._leave(beside)
        # Behind here it does not begin as the run does.
        if self.habit == "whole" and _has_same_answer(beside):
            return self._edit(beside.items, 0)
        if self.whole:
            raise FormatError(
                "the list shares nothing with this run. Hand over only what is new with whole=False, or open "
                "another session"
            )
        return self._all_new(beside.items)

    def _decide_lone(self, beside: _AlignedList) -> Outcome:
        """One message: new, unless it is all that was recorded, or the seed of a program that was started again."""
        (item,), chain, is_untouched = beside.items, beside.chain, self.run.transcript.is_untouched
        # A result may be that of another call with the same words.
        is_other_result = isinstance(item, Observation) and len(chain) > 1 and not self.whole
        if not is_same_item(chain[0], beside.marks[0]) or is_other_result:
            if self.whole:
                raise FormatError("the list shares nothing with this run. Hand over only what is new with whole=False")
            return self._new(beside.items, habit=self.run.transcript.habit, is_loose=True)
        is_in_work = not chain[-1].startswith(MODEL_PREFIX)
        has_system = self.request.system is not None or len(self.hashes) < len(self.request.rows)
        is_seed = is_untouched and (is_in_work or has_system)
        if len(chain) == 1 or self.whole or is_seed:
            self._note_nothing_new(beside, is_end=True)
            return self._new(())
        if is_untouched:
            self.notes.append(f"{excerpt(item)} says the same as {self.chain.handle(0, 1)} and was recorded again")
        return self._new(beside.items, habit=self.run.transcript.habit, is_loose=True)

    # The outcomes

    def _new(
        self, items: Iterable[Item], *, covers: int | None = None, habit: Habit = "whole", is_loose: bool = False
    ) -> NewItems:
        return NewItems(tuple(items), (), covers, habit, is_loose, self.list_hash)

    def _all_new(self, items: Sequence[Item]) -> NewItems:
        """A list that shares nothing, or of an application that hands over what is new."""
        habit: Habit = "whole" if self.habit == "whole" else "news"
        if habit == "whole":
            self.notes.append(f"the list shares nothing with this run: all {len(items)} items were recorded behind it")
        return self._new(items, habit=habit, is_loose=True)

    def _edit(self, items: Sequence[Item], place: int) -> Edited:
        """Go on with a branch from the place where the list leaves the chain."""
        number, positions = self.chain.numbers[place], self.run.log.fingerprint_positions
        # A branch from behind what a list took back would have it in view again.
        while (
            number - 1 not in self.chain.numbers and number and positions[number - 1] in self.run.fold.changes.removed
        ):
            number -= 1
        return Edited(tuple(items), (), number, "whole", False, self.list_hash, fork_at=positions[number])

    def _leave(self, beside: _AlignedList) -> NewItems:
        """A list that begins like the run and then says something else."""
        items, listed, recorded = beside.items[beside.at :], beside.marks[beside.at], beside.chain[beside.place]
        if listed[:1] == recorded[:1] or not self.run.transcript.is_untouched:
            return self._edit(items, beside.place)
        # After a restart: the list lacks what was recorded behind it, and goes on.
        self.notes.append(f"the list lacks {self.chain.handle(beside.place, len(self.chain))}, which was recorded")
        return self._new(items)

    def _select_behind_gaps(self, beside: _AlignedList) -> NewItems | None:
        """Select behind a list that lacks replies and results of the run, which were lost; None for another list."""
        marks, chain, place = beside.marks, beside.chain, beside.place
        is_restart = beside.at and self.run.transcript.is_untouched
        if not is_restart or has_other_results(marks[beside.at :], chain[place:]):
            return None
        lost = {place for place, mark in enumerate(chain) if mark.startswith((MODEL_PREFIX, RESULT_PREFIX))}
        rest = replace(beside, alignment=align(marks, chain, lost | self.chain.skippable()))
        if rest.at < len(rest.items) and rest.place < len(chain):
            return None
        self.notes.append(f"the list lacks some of {self.chain.handle(place, len(chain))}, which was recorded")
        return self._new(rest.new)

    def _rejoin(self, beside: _AlignedList, back: Return) -> NewItems:
        """A list that leaves the chain and comes back to it: its client compacted it, or somebody edited it."""
        items, at, place = beside.items, beside.at, beside.place
        unknown, replaced = items[at : back.first], back.chain - place
        if unknown and len(unknown) >= replaced:
            return self._edit(items[at:], place)
        if replaced:
            handle, known = self.chain.handle(place, back.chain), set(beside.chain)
            for item in (item for item, mark in zip(unknown, beside.marks[at:], strict=False) if mark not in known):
                self.notes.append(f"{excerpt(item)} left out: it stands in the list for {handle}, which was recorded")
            if not unknown and self.habit != "whole":
                self.notes.append(f"the list lacks {handle}, which was recorded")
        return self._new([*(items[index] for index in back.late), *items[back.last :]])

    def _find_relisting(self, beside: _AlignedList) -> Relisting | None:
        """Find what the list has no more, or with fewer words, of what the one before it brought; None where it has all."""
        items, at, place = beside.items, beside.at, beside.place
        if not self.may_relist or len(items) < 2 or at == len(items) or place == len(self.chain):
            return None
        recorded = self.chain.read_items(place, place + MAX_TAKEN_BACK + 1)
        relisted = find_taken_back(
            items[at:], beside.marks[at:], beside.chain[beside.alignment.reached :], recorded, is_begun=place > 0,
            is_history=self.run.transcript.newest is None, is_newest=place >= find_newest_place(self.chain),
        )  # fmt: skip
        back = beside.find_return() if place and not relisted else None
        gap = 0 if back is None or back.first != at else beside.first + back.chain - place
        if back is not None and 0 < gap <= MAX_TAKEN_BACK and self._is_certain(back, beside):
            relisted = find_gap(self.chain.read_items(place, place + gap))
        compaction = plan_relisting(self.chain, place, relisted) if relisted else None
        return None if compaction is None else Relisting(compaction)

    def _find_rewriting(self, edit: Edited) -> Relisting | None:
        """Find what the list words anew: a message with a clock, a result that came meanwhile; None for another edit.

        The first change of the user's words is a branch. The next one that leaves all else as it was is a new wording.
        """
        if not self.may_relist:
            return None
        marks = [fingerprint(item) for item in edit.items]
        rewriting = find_rewriting(edit.items, marks, self.chain, self.chain.place_of(edit.covers or 0))
        if rewriting is None or (rewriting.is_of_user and not self._words_anew(edit.fork_at)):
            return None
        compaction = plan_relisting(self.chain, 0, rewriting.items, REWRITTEN)
        return None if compaction is None else Relisting(compaction)

    def _complete(self, outcome: NewItems, systems: ListedSystems, items: Sequence[Item], start: int) -> NewItems:
        """The outcome with the list's new system prompts, the ids that were recorded, and all notes.

        ``items`` are those of the list from the message ``start`` on.
        """
        chosen = {id(item) for item in outcome.items}
        first = next((at for at, item in enumerate(items) if id(item) in chosen), len(items))
        is_whole = outcome.habit == "whole" and not outcome.is_loose
        new, notes = systems.merge_into(outcome.items, items, start, is_whole=is_whole)
        if self.shortened:
            self.run.transcript.shortened.update(self.shortened)
            handles = ", ".join(dict.fromkeys(self.shortened.values()))
            self.notes.append(
                f"the list has {handles} shorter than recorded, cleared or respelled: what was recorded stays"
            )
        new = self._with_recorded_ids(items[:first], new)
        return replace(outcome, items=new, notes=(*self.notes, *notes), listed=self.listed)

    # What the table asks

    def _parse(self, start: int = 0, covers: int = 0) -> tuple[Item, ...]:
        """Parse the messages from ``start`` on, once for all decisions."""
        if start not in self._parsed:
            self._parsed[start] = parse_list(self.run, self.request, start, covers)
        return self._parsed[start]

    def _new_results(self) -> Sequence[Item]:
        """The items of a list that has nothing but results of calls that wait for them: an earlier step may have equal ones."""
        open_ids = {call.id for call in self.run.fold.calls.open.values()}
        if self.whole or len(self.request.rows) > len(open_ids):
            return ()
        items = self.request.parse()
        is_new = all(isinstance(item, Observation) and item.call_id in open_ids for item in items)
        return items if is_new else ()

    def _with_recorded_ids(self, known: Sequence[Item], new: Sequence[Item]) -> Sequence[Item]:
        """The new items, with results of recorded calls under the ids that the log has: some clients make new ids."""
        action = next((item for item in reversed(known) if isinstance(item, ActionStep)), None)
        open_ids = {call.index: call.id for call in self.run.fold.calls.open.values()}
        if action is None or not open_ids or not any(isinstance(item, Observation) for item in new):
            return new
        ids = {call.id: open_ids[index] for index, call in enumerate(action.tool_calls) if index in open_ids}
        if not ids or not {call.id for call in action.tool_calls}.isdisjoint(open_ids.values()):
            return new  # the ids are the recorded ones, of which a list may have two steps as one
        return [
            replace(item, call_id=ids.get(item.call_id, item.call_id)) if isinstance(item, Observation) else item
            for item in new
        ]

    def _longest_known(self) -> tuple[int, KnownList | None]:
        """The longest beginning of the list that was handed over or given out before, as a number of its messages."""
        is_lone, transcript = len(self.hashes) == 1, self.run.transcript
        for count in range(len(self.hashes), 0, -1):
            row, digest = self.hashes[count - 1]
            known = transcript.lists.get(digest)
            if known is None or (known.is_loose and self.habit != "whole") or (is_lone and not known.is_request):
                continue
            if known.covers + known.is_request <= self.run.log.list_start:
                continue  # of before the view was cleared
            if is_lone and any(
                fingerprint(item) in self.run.log.fingerprints for item in self.request.parse(row, row + 1)
            ):
                continue  # one message proves nothing: the user may say the same again
            is_last = count == len(self.hashes)
            if known.ending is not None and is_last and self.request.rows[row] is not known.ending:
                continue  # a request with nothing behind it is no request: the user said what its last line says
            return count, known
        return 0, None

    def _compare(self, items: list[Item], first: int) -> _AlignedList:
        """Compare the items with the chain from a place on, as they were recorded where a client joined, divided or shortened some.

        One message alone stays, unless the run is nothing but messages of the user: the user may say the words again.
        """
        listed: Sequence[Item] = items
        is_lone = len(items) == 1 and not first and not self.whole
        if is_lone and not all(mark.startswith(USER_PREFIX) for mark in self.chain.marks()):
            marks = [fingerprint(items[0])]
        else:
            listed, marks, shortened = as_recorded(items, self.chain, first)
            self.shortened |= shortened
        chain = self.chain.marks(first)
        return _AlignedList(listed, marks, chain, align(marks, chain, self.chain.skippable(first)), first)

    def _note_listed(self, beside: _AlignedList) -> None:
        """Note which of the steps that were recorded beside the lists this one has."""
        numbers, alignment = self.chain.numbers[beside.first :], beside.alignment
        reached = {numbers[at] for at in self.chain.skippable(beside.first) if at < alignment.reached}
        self.listed = frozenset(reached - {numbers[at] for at in alignment.skipped})

    def _note_nothing_new(self, beside: _AlignedList, *, is_end: bool) -> None:
        items, place = beside.items, beside.place
        if not is_end:
            rest = self.chain.handle(place, len(self.chain))
            self.notes.append(f"nothing in the list is new; it ends before {rest}, which was recorded")
        # With results in it a list is certainly the same one again.
        elif items and self.whole is None and not any(isinstance(item, Observation) for item in items):
            last = self.chain.handle(place - 1, place)
            self.notes.append(
                f"all {len(items)} items were recorded already, the last as {last}; whole=False records equal ones again"
            )

    def _words_anew(self, position: int) -> bool:
        """True for a host that changed the user's words before: here, where the branch begins, or as new wordings elsewhere."""
        branch = self.run.runtime.branches.current_branch
        start, stop = map(self.run.log.count_fingerprints, sorted((branch.at, position)))
        is_here = all(mark.startswith(SYSTEM_PREFIX) for mark in self.run.log.fingerprints[start:stop])
        is_known = any(not rewritten.stub.is_of_result for rewritten in self.run.fold.changes.rewritten.values())
        return is_known or (branch.parent is not None and is_here)

    def _has_other_beginning(self, beside: _AlignedList) -> bool:
        """True for the run's own list whose first messages alone were changed: some clients keep a clock in them."""
        marks, chain = beside.marks, beside.chain
        is_users = (mark != other and mark[:1] == other[:1] == USER_PREFIX for mark, other in zip(marks, chain))  # noqa: B905
        count = sum(takewhile(bool, is_users))
        if not 0 < count <= MAX_TAKEN_BACK:
            return False
        shared = align(marks[count:], chain[count:], self.chain.skippable(count)).reached
        if shared < len(chain) - count:
            return False
        if shared > 1:
            return True
        if not shared and not any(mark.startswith(MODEL_PREFIX) for mark in marks[count : count + 1]):
            return False
        return any(self._is_recorded_anew(place, beside.items[place]) for place in range(count))

    def _has_all_else(self, beside: _AlignedList) -> bool:
        """True for the run's own list that has some messages and results in other words, its first message among them."""
        rewriting = find_rewriting(beside.items, beside.marks, self.chain, 0)
        return rewriting is not None and rewriting.reached - len(rewriting.items) >= _CERTAIN_ITEMS - 1

    def _is_recorded_anew(self, place: int, item: Item) -> bool:
        """True for a message that is the recorded one at a place of the chain, in other words."""
        position = self.chain.position(place)
        known = next((entry.item for entry in self.run.fold.body.run if entry.first == position), None)
        if not (isinstance(known, TaskStep) and isinstance(item, TaskStep)):
            return False
        return is_respelled(as_text(known.content), as_text(item.content))

    def _is_certain(self, back: Return, beside: _AlignedList) -> bool:
        """True if what the list and the end of the chain share is no chance: people and models say the same again."""
        marks, chain = beside.marks, beside.chain
        length = len(chain) - back.chain
        is_certain = length > 1 or chain.count(chain[back.chain]) == 1
        if beside.at or beside.first:
            return is_certain
        if not self.whole and not marks[0].startswith(USER_PREFIX):
            # A list that a client compacted begins with the user's words; one that it cut, with what was recorded.
            is_cut = not back.first and back.last < len(marks)
            return length >= (_CERTAIN_ITEMS - 1 if is_cut else _CERTAIN_ITEMS)
        # The last words of the user, and an answer to them: no application that hands over what is new has both.
        is_answered = not back.first and any(mark.startswith(MODEL_PREFIX) for mark in marks[back.last : back.last + 1])
        return is_certain and (length > 1 or self.habit == "whole" or is_answered)


def _has_same_answer(beside: _AlignedList) -> bool:
    """True where the answer to the first message is that of the run, which has another first message."""
    (asked, *listed), (first, *recorded) = beside.marks[:2], beside.chain[:2]
    is_asked = asked.startswith(USER_PREFIX) and first.startswith(USER_PREFIX)
    return is_asked and listed == recorded and listed[0].startswith(MODEL_PREFIX)
