"""Ingesting transcripts: which of a host's messages are new, told by their lineage. Pure.

A list is known by what it says, never by its length, by a place in it, or by how a text looks. First it is compared with the
lists that were handed over before, and with the requests that were given out: their messages are hashed in a chain, and
only what is behind the longest known one is parsed. Where none is known, as after a restart, the whole list is parsed and
compared with the log. Nothing is left out in silence: what is neither new nor recorded is named in the notes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from pagein.errors import FormatError
from pagein.events.handles import range_handle, step_handle
from pagein.events.protocol import MODEL_PREFIX, SYSTEM_PREFIX, as_current_prompt, fingerprint
from pagein.events.steps import Observation, SystemPromptStep, as_text
from pagein.formats import Format, Item
from pagein.formats.raw_messages import RawRequest, is_system, split_request
from pagein.memory._state import FoldedLog, Habit, KnownList, RunState, TranscriptState
from pagein.memory.operations.lineage import Alignment, Return, align, find_return
from pagein.memory.operations.reopened_request import match_view
from pagein.memory.operations.text_protocol import TextObservations, check_observations

_EXCERPT_CHARS = 60


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


@dataclass(frozen=True, slots=True)
class Transcript:
    """A host's messages, not parsed yet. ``observations`` tells which of the user's are results."""

    request: RawRequest
    observations: TextObservations = None

    @property
    def format(self) -> str:
        """The name of the messages' format."""
        return self.request.form.name


def read_transcript(form: Format, messages: Any, observations: TextObservations) -> Transcript:
    """Split a host's messages. Raises FormatError, and ConfigurationError for ``observations`` that tell none."""
    return Transcript(split_request(messages, form), check_observations(observations))


def select_new(transcript: Transcript, run: RunState, *, whole: bool | None) -> Selection:
    """Select the new items of a transcript.

    ``whole`` False: all of the list is new; True: it is the whole history; None: its lineage tells. Raises FormatError
    for a whole history that shares nothing with the run, and for messages that are not in the format's shape.
    """
    request, is_first = transcript.request, not run.log.fingerprints
    reader = _ListReader(request, run, whole)
    if whole is False or is_first:
        items = (*request.parse_system(), *request.parse())
        return Selection(items, list_hash=reader.list_hash if is_first else b"", habit=run.transcript.habit)
    return reader.select()


@dataclass(slots=True)
class _ListReader:
    """One list beside one run."""

    request: RawRequest
    run: RunState
    whole: bool | None
    hashes: list[tuple[int, bytes]] = field(default_factory=list)
    """For each message that is no system prompt: its number, and the hash of the list up to it."""
    places: list[int] = field(default_factory=list)
    """Of the run's fingerprints, the numbers of those that are no system prompts'."""
    notes: list[str] = field(default_factory=list)
    listed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.hashes = list(list_hashes(self.request))

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

    def select(self) -> Selection:
        """Select what is behind the longest list that is known, else what the log does not have."""
        fingerprints = self.log.fingerprints
        self.places = [number for number, mark in enumerate(fingerprints) if not mark.startswith(SYSTEM_PREFIX)]
        systems = self._new_systems()
        known = self._longest_known()
        if known is not None:
            count, earlier = known
            start = self.hashes[count - 1][0] + 1 if count else 0
            selection = self._select_behind(earlier, self.request.parse(start))
            if selection is not None:
                return self._with_systems(selection, systems)
        items = [item for item in self.request.parse() if not isinstance(item, SystemPromptStep)]
        return self._with_systems(self._select_by_content(items), systems)

    def _longest_known(self) -> tuple[int, KnownList] | None:
        """The longest beginning of the list that was handed over or given out before, as a number of its messages."""
        is_lone = len(self.hashes) == 1
        for count in range(len(self.hashes), 0, -1):
            number, digest = self.hashes[count - 1]
            known = self.state.lists.get(digest)
            if known is None or (known.is_loose and self.habit != "whole") or (is_lone and not known.is_request):
                continue
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

    def _select_behind(self, known: KnownList, items: Sequence[Item]) -> Selection | None:
        """Select among the items behind a known list; None where it does not tell what they are."""
        items = [item for item in items if not isinstance(item, SystemPromptStep)]
        first = bisect_left(self.places, known.place)
        marks = [fingerprint(item) for item in items]
        alignment = self._align(marks, first)
        at, reached = alignment.at, first + alignment.reached
        if at == len(items) and not alignment.late:
            is_end = reached == len(self.places) or self._lacks_nothing(reached)
            if self.habit == "news" and not known.is_request:
                return None
            self._note_nothing_new(items, is_end=is_end, reached=reached)
            return self._selection((), place=None if is_end or known.is_request else self.places[reached])
        if reached == len(self.places) or self._lacks_nothing(reached):
            return self._selection([items[number] for number in alignment.late] + items[at:])
        if not known.is_request and self.habit != "whole":
            return None
        return None if self._content_reach() >= first else self._edit(items[at:], reached)

    def _content_reach(self) -> int:
        """The number of items of the chain that the list has by content, from the beginning on."""
        items = [item for item in self.request.parse() if not isinstance(item, SystemPromptStep)]
        return align([fingerprint(item) for item in items], self._chain(0), self._skippable(0)).reached

    # By content

    def _select_by_content(self, items: Sequence[Item]) -> Selection:
        """Select the items that the log does not have."""
        chain = self._chain(0)
        if not items or not chain:
            return self._selection(items, habit=self.state.habit)
        marks = [fingerprint(item) for item in items]
        if len(items) == 1:
            return self._select_lone(items, marks[0], chain)
        alignment = self._align(marks, 0)
        at, reached = alignment.at, alignment.reached
        if at and (reached == len(chain) or self._lacks_nothing(reached)):
            new = [items[number] for number in alignment.late] + list(items[at:])
            self._note_nothing_new(items, is_end=True, reached=reached) if not new else None
            return self._selection(new)
        if self.habit == "news" and not self.whole:
            return self._all_new(items)
        if at == len(items):
            self._note_nothing_new(items, is_end=False, reached=reached)
            return self._selection((), place=self.places[reached] if self.habit == "whole" else None)
        selection = self._select_behind_view() if self.habit == "unknown" else None
        if selection is not None:
            return selection
        back = find_return(marks, chain, at, reached)
        if back is not None and self._is_certain(back, chain, at):
            return self._rejoin(items, alignment, back)
        if not at:
            if self.whole:
                raise FormatError(
                    "the list shares nothing with this run. Hand over only what is new with whole=False, or open "
                    "another session"
                )
            return self._all_new(items)
        return self._leave(items, marks, chain, alignment)

    def _select_lone(self, items: Sequence[Item], mark: bytes, chain: Sequence[bytes]) -> Selection:
        """One message: new, unless it is all that was recorded, or the seed of a program that was started again."""
        if mark != chain[0] or isinstance(items[0], Observation):
            if self.whole:
                raise FormatError("the list shares nothing with this run. Hand over only what is new with whole=False")
            return self._selection(items, habit=self.state.habit, is_loose=True)
        handle = self._handle(0)
        is_in_work = not chain[-1].startswith(MODEL_PREFIX)
        has_system = self.request.system is not None or len(self.hashes) < len(self.request.rows)
        is_seed = self.state.is_untouched and (is_in_work or has_system)
        if len(chain) == 1 or self.whole or is_seed:
            self._note_nothing_new(items, is_end=True)
            return self._selection(())
        if self.state.is_untouched:
            self.notes.append(f"{_excerpt(items[0])} says the same as {handle} and was recorded again")
        return self._selection(items, habit=self.state.habit, is_loose=True)

    def _select_behind_view(self) -> Selection | None:
        """Select what is behind a request that was given out before the run was opened again; None for another list."""
        view = match_view(self.request, self.run.current_view())
        if view is None:
            return None
        self.notes += view.notes
        place = self.log.count_fingerprints(view.head)
        return self._select_behind(KnownList(place, is_request=True), self.request.form.parse(list(view.rows)))

    def _rejoin(self, items: Sequence[Item], alignment: Alignment, back: Return) -> Selection:
        """A list that leaves the chain and comes back to it: its client compacted it, or somebody edited it."""
        unknown = items[alignment.at : back.first]
        replaced = back.chain - alignment.reached
        if unknown and len(unknown) >= replaced:
            return self._edit(items[alignment.at :], alignment.reached)
        if replaced:
            handle = self._range(alignment.reached, back.chain)
            for item in unknown:
                self.notes.append(f"{_excerpt(item)} left out: it stands in the list for {handle}, which was recorded")
            if not unknown and self.habit != "whole":
                self.notes.append(f"the list lacks {handle}, which was recorded")
        new = [items[number] for number in back.late] + list(items[back.last :])
        return self._selection(new)

    def _leave(
        self, items: Sequence[Item], marks: Sequence[bytes], chain: Sequence[bytes], alignment: Alignment
    ) -> Selection:
        """A list that begins like the run and then says something else."""
        at, reached = alignment.at, alignment.reached
        is_same_kind = marks[at][:1] == chain[reached][:1]
        if self.habit == "whole" or is_same_kind:
            return self._edit(items[at:], reached)
        # After a restart: the list lacks what was recorded behind it, and goes on.
        self.notes.append(
            f"the list lacks {self._range(reached, len(chain))}; what it has behind was recorded after that"
        )
        return self._selection(items[at:])

    def _edit(self, items: Sequence[Item], reached: int) -> Selection:
        """Go on with a branch from the place where the list leaves the chain."""
        place = self.places[reached]
        fork_at = self.log.fingerprint_positions[place]
        return replace(self._selection(items), fork_at=fork_at, place=place)

    def _all_new(self, items: Sequence[Item]) -> Selection:
        """A list that shares nothing, or of a host that hands over what is new."""
        habit: Habit = "whole" if self.habit == "whole" else "news"
        if habit == "whole":
            self.notes.append(f"the list shares nothing with this run: all {len(items)} items were recorded behind it")
        return self._selection(items, habit=habit, is_loose=True)

    def _is_certain(self, back: Return, chain: Sequence[bytes], at: int) -> bool:
        """True if what the list and the end of the chain share is no chance."""
        length = len(chain) - back.chain
        if at or length > 1:
            return True
        item = chain[back.chain]
        return self.habit == "whole" and (item.startswith(MODEL_PREFIX) or chain.count(item) == 1)

    # System prompts stand outside the chain

    def _new_systems(self) -> list[tuple[SystemPromptStep, bool]]:
        """The system prompts that were not recorded, and whether each stands before every other message."""
        hashes, marks = self.request.hashes(), self.state.system_marks
        beside = (item for item in self.request.parse_system() if isinstance(item, SystemPromptStep))
        prompts: list[tuple[bytes, SystemPromptStep | None, int]] = [(fingerprint(item), item, -1) for item in beside]
        for number, row in enumerate(self.request.rows):
            if is_system(row):
                if hashes[number] not in marks:
                    marks[hashes[number]] = fingerprint(self.request.parse(number, number + 1)[0])
                prompts.append((marks[hashes[number]], None, number))
        unknown = Counter(mark for mark, _, _ in prompts)
        unknown -= (
            Counter(mark for mark in self.log.fingerprints if mark.startswith(SYSTEM_PREFIX)) if unknown else Counter()
        )
        first = self.hashes[0][0] if self.hashes else len(hashes)
        new: list[tuple[SystemPromptStep, bool]] = []
        for mark, item, number in reversed(prompts):
            if unknown[mark] > 0:
                unknown[mark] -= 1
                step = item or self.request.parse(number, number + 1)[0]
                if isinstance(step, SystemPromptStep):
                    new.append((step, number < first))
        return new[::-1]

    def _with_systems(self, selection: Selection, systems: Sequence[tuple[SystemPromptStep, bool]]) -> Selection:
        """Put new system prompts before the new items; one at the beginning takes the place of those no longer there."""
        items: list[Item] = []
        for step, is_leading in systems:
            replaced = self.run.fold.system_positions if is_leading else ()
            if replaced:
                handles = ", ".join(map(step_handle, replaced))
                self.notes.append(f"the system prompt was changed: {_excerpt(step)} stands in the place of {handles}")
            items.append(as_current_prompt(step, replaced) if replaced else step)
        return replace(
            selection, items=[*items, *selection.items], notes=tuple(self.notes), listed=frozenset(self.listed)
        )

    # Chain, handles, notes

    def _chain(self, first: int) -> list[bytes]:
        return [self.log.fingerprints[place] for place in self.places[first:]]

    def _align(self, marks: Sequence[bytes], first: int) -> Alignment:
        """Follow the chain from ``first`` on, and note which of the steps that were recorded beside the lists it has."""
        skippable = self._skippable(first)
        alignment = align(marks, self._chain(first), skippable)
        self.listed = {self.places[first + at] for at in skippable if at < alignment.reached}
        self.listed -= {self.places[first + at] for at in alignment.skipped}
        return alignment

    def _skippable(self, first: int) -> set[int]:
        """Of the chain from ``first`` on, what was recorded as steps: a host's list need not have it."""
        unlisted = self.state.unlisted
        if not unlisted:
            return set()
        return {number for number, place in enumerate(self.places[first:]) if place in unlisted}

    def _lacks_nothing(self, reached: int) -> bool:
        return all(place in self.state.unlisted for place in self.places[reached:])

    def _handle(self, number: int) -> str:
        return step_handle(self.log.fingerprint_positions[self.places[number]])

    def _range(self, first: int, last: int) -> str:
        positions = self.log.fingerprint_positions
        start, stop = positions[self.places[first]], positions[self.places[last - 1]] + 1
        return step_handle(start) if stop - start == 1 else range_handle(start, stop)

    def _note_nothing_new(self, items: Sequence[Item], *, is_end: bool, reached: int = 1) -> None:
        if not is_end:
            rest = self._range(reached, len(self.places))
            self.notes.append(f"nothing in the list is new; it ends before {rest}, which was recorded")
        # With results in it a list is certainly the same one again.
        elif items and not any(isinstance(item, Observation) for item in items):
            last = self._range(reached - 1, reached)
            self.notes.append(
                f"all {len(items)} items were recorded already, the last as {last}; whole=False records equal ones again"
            )

    def _selection(
        self, items: Iterable[Item], *, place: int | None = None, habit: Habit = "whole", is_loose: bool = False
    ) -> Selection:
        return Selection(tuple(items), (), None, self.list_hash, place, habit, is_loose)


def _excerpt(item: Item) -> str:
    text = " ".join(as_text(item.content).split())
    return repr(text if len(text) <= _EXCERPT_CHARS else text[:_EXCERPT_CHARS] + "...")


def list_hashes(request: RawRequest) -> Iterable[tuple[int, bytes]]:
    """Yield the number of each message that is no system prompt, and the hash of the list up to it."""
    digest = request.form.name.encode()
    for number, (row, row_hash) in enumerate(zip(request.rows, request.hashes(), strict=True)):
        if not is_system(row):
            digest = blake2b(digest + row_hash, digest_size=16).digest()
            yield number, digest


def remember_request(
    state: TranscriptState, form: Format, rows: Sequence[Any], place: int, *, has_ending: bool
) -> None:
    """Remember a request that was given out: what comes behind it is new, and nothing in it is."""
    hashes = [digest for _, digest in list_hashes(RawRequest(form, rows))]
    if not hashes:
        return
    if has_ending and len(hashes) > 1:
        state.remember(hashes[-2], KnownList(place, is_request=True))
    state.remember(hashes[-1], KnownList(place, is_request=True, ending=rows[-1] if has_ending else None))
