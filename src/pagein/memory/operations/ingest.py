"""Ingesting transcripts: which of an application's messages are new, found by their lineage. Pure.

A list is known by what it says, never by its length, by a place in it, or by how a text looks. First it is compared with the
lists that were handed over before, and with the requests that were given out: their messages are hashed in a chain, and
only what is behind the longest known one is parsed. Where none is known, as after a restart, the whole list is parsed and
compared with the log. Nothing is left out in silence: what is neither new nor recorded is named in the notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from pagein.errors import FormatError
from pagein.events.entries import REWRITTEN, Compaction
from pagein.events.protocol import (
    MODEL_PREFIX,
    RESULT_PREFIX,
    SYSTEM_PREFIX,
    USER_PREFIX,
    TextObservations,
    check_observations,
    fingerprint,
    is_same_item,
)
from pagein.events.steps import ActionStep, Observation, TaskStep, as_text
from pagein.formats import Format, Item
from pagein.formats.raw_messages import RawRequest, split_request
from pagein.memory._effects import Call, Flow
from pagein.memory._state import FoldedLog, Habit, KnownList, RunState, TranscriptState
from pagein.memory.operations import lineage
from pagein.memory.operations.changed_requests import find_changed_request, without_systems
from pagein.memory.operations.client_lists import ShortenedItem, as_recorded, is_respelled
from pagein.memory.operations.listed_systems import ListedSystems, excerpt
from pagein.memory.operations.references import parse_list
from pagein.memory.operations.relist import (
    MAX_TAKEN_BACK,
    Relisted,
    find_gap,
    find_newest_place,
    find_rewriting,
    find_taken_back,
    plan_relisting,
    read_items,
)

_CERTAIN_ITEMS = 4
"""Items at the end of the chain that a list has by no chance, whatever it begins with."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The new items of a list, and what a memory remembers of the list once they are recorded.

    ``fork_at`` is set for an edited list: the number of entries that its branch keeps. ``place`` is the number of
    fingerprints of the run that the list covers, None for all.
    """

    items: Sequence[Item]
    notes: tuple[str, ...] = ()
    fork_at: int | None = None
    list_hash: bytes = b""
    place: int | None = None
    habit: Habit = "unknown"
    is_loose: bool = False
    listed: frozenset[int] = frozenset()
    """Numbers of fingerprints that were recorded as steps, and that the list has too."""
    relisting: Compaction | None = None
    """What the list changed or took back: to be recorded before the list is compared again. Nothing is selected yet."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """An application's messages, not parsed yet. ``observations`` tells which of the user's are results."""

    request: RawRequest
    observations: TextObservations = None

    @property
    def format(self) -> str:
        """The name of the messages' format."""
        return self.request.form.name


def read_transcript(form: Format, messages: Any, observations: TextObservations) -> Transcript:
    """Split an application's messages. Raises FormatError, and ConfigurationError for invalid ``observations``."""
    return Transcript(split_request(messages, form), check_observations(observations))


def select_new(
    transcript: Transcript, run: RunState, *, whole: bool | None, may_relist: bool = True
) -> Flow[Selection]:
    """Select the new items of a transcript.

    ``whole`` False: all of the list is new; True: it is the whole history; None: its lineage tells. With ``may_relist``
    False the list takes nothing back. Raises FormatError for a whole history that shares nothing with the run, and for
    messages that are not in the format's shape.
    """
    request, is_first = transcript.request, not run.log.fingerprints
    reader = _ListReader(request, run, whole, may_relist)
    if whole is False or is_first:
        items = (*request.parse_system(), *(yield from parse_list(run, request)))
        return Selection(items, list_hash=reader.list_hash if is_first else b"", habit=run.transcript.habit)
    return (yield from reader.select())


@dataclass(slots=True)
class _ListReader:
    """One list beside one run: which of the list's items are new."""

    request: RawRequest
    run: RunState
    whole: bool | None
    may_relist: bool
    hashes: list[tuple[int, bytes]] = field(init=False)
    """For each message that is no system prompt: its number, and the hash of the list up to it."""
    chain: lineage.Chain = field(init=False)
    """What the run recorded, once ``select`` compares the list with it."""
    notes: list[str] = field(default_factory=list)
    shortened: dict[ShortenedItem, str] = field(default_factory=dict)
    """Handles of what the list has shorter than recorded, and that was not said of an earlier one."""
    listed: frozenset[int] = frozenset()
    """See ``Selection.listed``."""

    def __post_init__(self) -> None:
        self.hashes = self.request.list_hashes()

    @property
    def state(self) -> TranscriptState:
        return self.run.transcript

    @property
    def log(self) -> FoldedLog:
        return self.run.log

    @property
    def list_hash(self) -> bytes:
        return self.hashes[-1][1] if self.hashes else b""

    @property
    def habit(self) -> Habit:
        return "whole" if self.whole else self.state.habit

    # By the lists and requests known in this process

    def select(self) -> Flow[Selection]:
        """Select what is behind the longest list that is known, else what the log does not have."""
        if results := self._new_results():
            return self._selection(results, habit=self.state.habit, is_loose=True)
        self.chain = lineage.Chain(self.log, self.state.unlisted)
        systems = ListedSystems.of(self.request, self.run)
        selection: Selection | None = None
        known = self._longest_known()
        added: tuple[Item, ...] = ()
        if changed := find_changed_request(self.request, self.run, 0 if known is None else known[0]):
            known, added = (changed.count, KnownList(changed.place, is_request=True)), changed.added
        if known is not None:
            count, earlier = known
            start = self.hashes[count - 1][0] + 1
            items = (*added, *(yield from parse_list(self.run, self.request, start, earlier.place)))
            selection = yield from self._select_behind(earlier, without_systems(items))
        if selection is None:
            start, items = 0, (yield from parse_list(self.run, self.request))
            listed, marks = yield from self._as_recorded(without_systems(items))
            selection = yield from self._find_relisting(listed, marks, 0)
            selection = selection or (yield from self._select_by_content(listed, marks))
        if selection.fork_at is not None and (rewriting := (yield from self._find_rewriting(selection))):
            return rewriting
        if selection.relisting is not None:
            return selection
        chosen = {id(item) for item in selection.items}
        first = next((at for at, item in enumerate(items) if id(item) in chosen), len(items))
        new, notes = systems.merge_into(selection, items, start)
        if self.shortened:
            self.state.shortened.update(self.shortened)
            handles = ", ".join(dict.fromkeys(self.shortened.values()))
            self.notes.append(
                f"the list has {handles} shorter than recorded, cleared or respelled: what was recorded stays"
            )
        return replace(
            selection,
            items=self._with_recorded_ids(items[:first], new),
            notes=(*self.notes, *notes),
            listed=self.listed,
        )

    def _new_results(self) -> Sequence[Item]:
        """The items of a list that has nothing but results of calls that wait for them: an earlier step may have equal ones."""
        open_ids = {call.id for call in self.run.fold.open.values()}
        if self.whole or len(self.request.rows) > len(open_ids):
            return ()
        items = self.request.parse()
        is_new = all(isinstance(item, Observation) and item.call_id in open_ids for item in items)
        return items if is_new else ()

    def _with_recorded_ids(self, known: Sequence[Item], new: Sequence[Item]) -> Sequence[Item]:
        """The new items, with results of recorded calls under the ids that the log has: some clients make new ids."""
        action = next((item for item in reversed(known) if isinstance(item, ActionStep)), None)
        open_ids = {call.index: call.id for call in self.run.fold.open.values()}
        if action is None or not open_ids or not any(isinstance(item, Observation) for item in new):
            return new
        ids = {call.id: open_ids[index] for index, call in enumerate(action.tool_calls) if index in open_ids}
        if not ids or set(ids.values()) & ids.keys():
            return new  # the ids are the recorded ones
        return [
            replace(item, call_id=ids.get(item.call_id, item.call_id)) if isinstance(item, Observation) else item
            for item in new
        ]

    def _longest_known(self) -> tuple[int, KnownList] | None:
        """The longest beginning of the list that was handed over or given out before, as a number of its messages."""
        is_lone = len(self.hashes) == 1
        for count in range(len(self.hashes), 0, -1):
            number, digest = self.hashes[count - 1]
            known = self.state.lists.get(digest)
            if known is None or (known.is_loose and self.habit != "whole") or (is_lone and not known.is_request):
                continue
            if known.place + known.is_request <= self.log.list_start:
                continue  # of before the view was cleared
            if is_lone and self._is_recorded(number):
                continue  # one message proves nothing: the user may say the same again
            is_last = count == len(self.hashes)
            if known.ending is not None and is_last and self.request.rows[number] is not known.ending:
                continue  # a request with nothing behind it is no request: the user said what its last line says
            return count, known
        return None

    def _is_recorded(self, number: int) -> bool:
        marks = {fingerprint(item) for item in self.request.parse(number, number + 1)}
        return not marks.isdisjoint(self.log.fingerprints)

    def _select_behind(self, known: KnownList, listed: list[Item]) -> Flow[Selection | None]:
        """Select among the items behind a known list; None where it does not tell what they are."""
        first = self.chain.place_of(known.place)
        items, marks = yield from self._as_recorded(listed, first)
        alignment = self._align(marks, first)
        at, reached = alignment.at, first + alignment.reached
        if at == len(items) and not alignment.late:
            is_end = self.chain.is_all_listed(reached)
            if self.habit == "news" and not known.is_request:
                return None
            self._note_nothing_new(items, is_end=is_end, reached=reached)
            return self._selection((), place=None if is_end or known.is_request else self.chain.numbers[reached])
        if self.chain.is_all_listed(reached):
            return self._selection([*(items[number] for number in alignment.late), *items[at:]])
        # The last line of a request may be the user's own word, which the list then has.
        if not known.is_request and (relisting := (yield from self._find_relisting(items, marks, first))):
            return relisting
        if not known.is_request and self.habit != "whole":
            return None
        return None if (yield from self._content_reach()) >= first else self._edit(items[at:], reached)

    def _content_reach(self) -> Flow[int]:
        """The number of items of the chain that the list has by content, from the beginning on."""
        items = yield from parse_list(self.run, self.request)
        _, marks = yield from self._as_recorded(without_systems(items))
        return lineage.align(marks, self.chain.marks(), self.chain.skippable()).reached

    # By content

    def _as_recorded(self, items: list[Item], first: int = 0) -> Flow[tuple[Sequence[Item], Sequence[bytes]]]:
        """The items, and their fingerprints, as they were recorded where a client joined, divided or shortened some.

        One message alone stays, unless the run is nothing but messages of the user: the user may say the words again.
        """
        is_lone = len(items) == 1 and not first and not self.whole
        if is_lone and not all(mark.startswith(USER_PREFIX) for mark in self.chain.marks()):
            return items, [fingerprint(items[0])]
        listed = yield from as_recorded(items, self.run, self.chain, first)
        self.shortened |= listed.shortened
        return listed.items, listed.marks

    def _select_by_content(self, items: Sequence[Item], marks: Sequence[bytes]) -> Flow[Selection]:
        """Select the items that the log does not have; ``marks`` are their fingerprints."""
        chain = self.chain.marks()
        if not items or not chain:
            return self._selection(items, habit=self.state.habit)
        if len(items) == 1:
            return self._select_lone(items, marks[0], chain)
        alignment = self._align(marks, 0)
        at, reached = alignment.at, alignment.reached
        if at and self.chain.is_all_listed(reached):
            new = [items[number] for number in alignment.late] + list(items[at:])
            if not new:
                self._note_nothing_new(items, is_end=True, reached=reached)
            return self._selection(new)
        if not at and (self._has_other_beginning(items, marks, chain) or (yield from self._has_all_else(items, marks))):
            return self._edit(items, 0)
        if self.habit == "news" and not self.whole:
            return self._all_new(items)
        if at == len(items):
            self._note_nothing_new(items, is_end=False, reached=reached)
            return self._selection((), place=self.chain.numbers[reached] if self.habit == "whole" else None)
        return self._select_apart(items, marks, chain, alignment)

    def _find_relisting(self, items: Sequence[Item], marks: Sequence[bytes], first: int) -> Flow[Selection | None]:
        """Find what the list has no more, or with fewer words, of what the one before it brought; None where it has all."""
        chain = self.chain.marks(first)
        alignment = lineage.align(marks, chain, self.chain.skippable(first))
        at, place = alignment.at, first + alignment.reached
        if not self.may_relist or len(items) < 2 or at == len(items) or place == len(self.chain):
            return None
        found: Sequence[Relisted] = ()
        if place >= find_newest_place(self.run, self.chain):
            is_history = self.state.newest is None
            recorded = yield from read_items(self.run, self.chain, place, place + MAX_TAKEN_BACK + 1)
            found = find_taken_back(
                items[at:], marks[at:], chain[place - first :], recorded, is_begun=place > 0, is_history=is_history
            )
        back = lineage.find_return(marks, chain, at, place - first) if place and not found else None
        gap = 0 if back is None or back.first != at else first + back.chain - place
        if back is not None and 0 < gap <= MAX_TAKEN_BACK and self._is_certain(back, marks, chain, at or first):
            recorded = yield from read_items(self.run, self.chain, place, place + gap)
            found = find_gap(recorded)
        relisting = plan_relisting(self.run, self.chain, place, found) if found else None
        return None if relisting is None else Selection((), relisting=relisting)

    def _find_rewriting(self, edit: Selection) -> Flow[Selection | None]:
        """Find what the list words anew: a message with a clock, a result that came meanwhile; None for another edit.

        The first change of the user's words is a branch. The next one that leaves all else as it was is a new wording.
        """
        if not self.may_relist:
            return None
        first, marks = self.chain.place_of(edit.place or 0), [fingerprint(item) for item in edit.items]
        rewriting = yield from find_rewriting(self.run, edit.items, marks, self.chain, first)
        if rewriting is None or (rewriting.is_of_user and not (yield from self._words_anew(edit.fork_at or 0))):
            return None
        relisting = plan_relisting(self.run, self.chain, 0, rewriting.items, REWRITTEN)
        return None if relisting is None else Selection((), relisting=relisting)

    def _words_anew(self, position: int) -> Flow[bool]:
        """True for a host that changed the user's words before: here, where the branch begins, or as new wordings elsewhere."""
        branch = yield from Call(lambda runtime: runtime.branches.current_branch)
        start, stop = map(self.log.count_fingerprints, sorted((branch.at, position)))
        is_here = all(mark.startswith(SYSTEM_PREFIX) for mark in self.log.fingerprints[start:stop])
        is_known = any(not rewritten.stub.is_of_result for rewritten in self.run.fold.rewritten.values())
        return is_known or (branch.parent is not None and is_here)

    def _select_apart(
        self, items: Sequence[Item], marks: Sequence[bytes], chain: Sequence[bytes], alignment: lineage.Alignment
    ) -> Selection:
        """Select among the items of a list that says something else than the run, from some place on or altogether."""
        at, reached = alignment.at, alignment.reached
        if at and self.state.is_untouched and not lineage.has_other_results(marks[at:], chain[reached:]):
            selection = self._select_behind_gaps(items, marks, chain, reached)
            if selection is not None:
                return selection
        back = lineage.find_return(marks, chain, at, reached)
        if back is not None and self._is_certain(back, marks, chain, at):
            return self._rejoin(items, marks, alignment, back)
        if not at:
            if self.habit == "whole" and len(marks) > 1 and _has_same_answer(marks, chain):
                return self._edit(items, 0)
            if self.whole:
                raise FormatError(
                    "the list shares nothing with this run. Hand over only what is new with whole=False, or open "
                    "another session"
                )
            return self._all_new(items)
        return self._leave(items, marks, chain, alignment)

    def _select_lone(self, items: Sequence[Item], mark: bytes, chain: Sequence[bytes]) -> Selection:
        """One message: new, unless it is all that was recorded, or the seed of a program that was started again."""
        # A result may be that of another call with the same words.
        is_other_result = isinstance(items[0], Observation) and len(chain) > 1 and not self.whole
        if not is_same_item(chain[0], mark) or is_other_result:
            if self.whole:
                raise FormatError("the list shares nothing with this run. Hand over only what is new with whole=False")
            return self._selection(items, habit=self.state.habit, is_loose=True)
        handle = self.chain.handle(0, 1)
        is_in_work = not chain[-1].startswith(MODEL_PREFIX)
        has_system = self.request.system is not None or len(self.hashes) < len(self.request.rows)
        is_seed = self.state.is_untouched and (is_in_work or has_system)
        if len(chain) == 1 or self.whole or is_seed:
            self._note_nothing_new(items, is_end=True)
            return self._selection(())
        if self.state.is_untouched:
            self.notes.append(f"{excerpt(items[0])} says the same as {handle} and was recorded again")
        return self._selection(items, habit=self.state.habit, is_loose=True)

    def _rejoin(
        self, items: Sequence[Item], marks: Sequence[bytes], alignment: lineage.Alignment, back: lineage.Return
    ) -> Selection:
        """A list that leaves the chain and comes back to it: its client compacted it, or somebody edited it."""
        unknown = items[alignment.at : back.first]
        replaced = back.chain - alignment.reached
        if unknown and len(unknown) >= replaced:
            return self._edit(items[alignment.at :], alignment.reached)
        if replaced:
            handle, known = self.chain.handle(alignment.reached, back.chain), set(self.chain.marks())
            for item in (item for item, mark in zip(unknown, marks[alignment.at :], strict=False) if mark not in known):
                self.notes.append(f"{excerpt(item)} left out: it stands in the list for {handle}, which was recorded")
            if not unknown and self.habit != "whole":
                self.notes.append(f"the list lacks {handle}, which was recorded")
        new = [items[number] for number in back.late] + list(items[back.last :])
        return self._selection(new)

    def _has_other_beginning(self, items: Sequence[Item], marks: Sequence[bytes], chain: Sequence[bytes]) -> bool:
        """True for the run's own list whose first messages alone were changed: some clients keep a clock in them."""
        pairs = zip(marks, chain, strict=False)
        is_users = (mark != other and mark[:1] == other[:1] == USER_PREFIX for mark, other in pairs)
        count = sum(takewhile(bool, is_users))
        if not 0 < count <= MAX_TAKEN_BACK:
            return False
        shared = lineage.align(marks[count:], chain[count:], self.chain.skippable(count)).reached
        if shared < len(chain) - count:
            return False
        if shared > 1:
            return True
        if not shared and not any(mark.startswith(MODEL_PREFIX) for mark in marks[count : count + 1]):
            return False
        return any(self._is_recorded_anew(place, items[place]) for place in range(count))

    def _has_all_else(self, items: Sequence[Item], marks: Sequence[bytes]) -> Flow[bool]:
        """True for the run's own list that has some messages and results in other words, its first message among them."""
        rewriting = yield from find_rewriting(self.run, items, marks, self.chain, 0)
        return rewriting is not None and rewriting.reached - len(rewriting.items) >= _CERTAIN_ITEMS - 1

    def _is_recorded_anew(self, place: int, item: Item) -> bool:
        """True for a message that is the recorded one at a place of the chain, in other words."""
        position = self.log.fingerprint_positions[self.chain.numbers[place]]
        known = next((entry.item for entry in self.run.fold.run_entries if entry.first == position), None)
        if not (isinstance(known, TaskStep) and isinstance(item, TaskStep)):
            return False
        return is_respelled(as_text(known.content), as_text(item.content))

    def _leave(
        self, items: Sequence[Item], marks: Sequence[bytes], chain: Sequence[bytes], alignment: lineage.Alignment
    ) -> Selection:
        """A list that begins like the run and then says something else."""
        at, reached = alignment.at, alignment.reached
        is_same_kind = marks[at][:1] == chain[reached][:1]
        if is_same_kind or not self.state.is_untouched:
            return self._edit(items[at:], reached)
        # After a restart: the list lacks what was recorded behind it, and goes on.
        self.notes.append(f"the list lacks {self.chain.handle(reached, len(chain))}, which was recorded")
        return self._selection(items[at:])

    def _select_behind_gaps(
        self, items: Sequence[Item], marks: Sequence[bytes], chain: Sequence[bytes], reached: int
    ) -> Selection | None:
        """Select behind a list that lacks replies and results of the run, which were lost; None for another list."""
        lost = {number for number, mark in enumerate(chain) if mark.startswith((MODEL_PREFIX, RESULT_PREFIX))}
        rest = lineage.align(marks, chain, lost | self.chain.skippable())
        if rest.at < len(items) and rest.reached < len(chain):
            return None
        self.notes.append(f"the list lacks some of {self.chain.handle(reached, len(chain))}, which was recorded")
        return self._selection([items[number] for number in rest.late] + list(items[rest.at :]))

    def _edit(self, items: Sequence[Item], reached: int) -> Selection:
        """Go on with a branch from the place where the list leaves the chain."""
        place, positions = self.chain.numbers[reached], self.log.fingerprint_positions
        # A branch from behind what a list took back would have it in view again.
        while place - 1 not in self.chain.numbers and place and positions[place - 1] in self.run.fold.removed:
            place -= 1
        fork_at = positions[place]
        return replace(self._selection(items), fork_at=fork_at, place=place)

    def _all_new(self, items: Sequence[Item]) -> Selection:
        """A list that shares nothing, or of an application that hands over what is new."""
        habit: Habit = "whole" if self.habit == "whole" else "news"
        if habit == "whole":
            self.notes.append(f"the list shares nothing with this run: all {len(items)} items were recorded behind it")
        return self._selection(items, habit=habit, is_loose=True)

    def _is_certain(self, back: lineage.Return, marks: Sequence[bytes], chain: Sequence[bytes], at: int) -> bool:
        """True if what the list and the end of the chain share is no chance: people and models say the same again."""
        length = len(chain) - back.chain
        is_certain = length > 1 or chain.count(chain[back.chain]) == 1
        if at:
            return is_certain
        if not self.whole and not marks[0].startswith(USER_PREFIX):
            # A list that a client compacted begins with the user's words; one that it cut, with what was recorded.
            is_cut = not back.first and back.last < len(marks)
            return length >= (_CERTAIN_ITEMS - 1 if is_cut else _CERTAIN_ITEMS)
        # The last words of the user, and an answer to them: no application that hands over what is new has both.
        is_answered = not back.first and any(mark.startswith(MODEL_PREFIX) for mark in marks[back.last : back.last + 1])
        return is_certain and (length > 1 or self.habit == "whole" or is_answered)

    def _align(self, marks: Sequence[bytes], first: int) -> lineage.Alignment:
        """Follow the chain from ``first`` on, and note which of the steps that were recorded beside the lists it has."""
        skippable, numbers = self.chain.skippable(first), self.chain.numbers[first:]
        alignment = lineage.align(marks, self.chain.marks(first), skippable)
        reached = {numbers[at] for at in skippable if at < alignment.reached}
        self.listed = frozenset(reached - {numbers[at] for at in alignment.skipped})
        return alignment

    def _note_nothing_new(self, items: Sequence[Item], *, is_end: bool, reached: int = 1) -> None:
        if not is_end:
            rest = self.chain.handle(reached, len(self.chain))
            self.notes.append(f"nothing in the list is new; it ends before {rest}, which was recorded")
        # With results in it a list is certainly the same one again.
        elif items and self.whole is None and not any(isinstance(item, Observation) for item in items):
            last = self.chain.handle(reached - 1, reached)
            self.notes.append(
                f"all {len(items)} items were recorded already, the last as {last}; whole=False records equal ones again"
            )

    def _selection(
        self, items: Iterable[Item], *, place: int | None = None, habit: Habit = "whole", is_loose: bool = False
    ) -> Selection:
        return Selection(tuple(items), (), None, self.list_hash, place, habit, is_loose)


def _has_same_answer(marks: Sequence[bytes], chain: Sequence[bytes]) -> bool:
    """True where the answer to the first message is that of the run, which has another first message."""
    is_asked = marks[0].startswith(USER_PREFIX) and chain[0].startswith(USER_PREFIX)
    return is_asked and marks[1].startswith(MODEL_PREFIX) and marks[1:2] == list(chain[1:2])
