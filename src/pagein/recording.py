"""From what a host hands over to what the log takes: admission, pure.

Typed steps are admitted strictly: what does not fit raises. Transcripts are admitted with repairs, each one named: an
unanswered call is closed as unknown, a result that answers nothing is kept as a note. Nothing is dropped and nothing is
guessed.
"""

from __future__ import annotations

import hashlib
from collections import ChainMap, Counter
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never, cast

from pagein.errors import FormatError, ProtocolError
from pagein.formats import Item
from pagein.log import Body, Checkpoint, Compaction, Entry, Observed, Pin, Undo, Unpin
from pagein.protocol import (
    Kind,
    OpenCall,
    State,
    advance,
    check_action,
    find_call,
    kind_of,
    open_calls,
    unknown,
)
from pagein.steps import (
    ActionStep,
    FinalAnswerStep,
    Image,
    Observation,
    PlanningStep,
    Step,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    as_parts,
)
from pagein.view.handles import observation_handle

ORPHAN = -1
"""The action of an observation that answers no call of this run."""

_RESULT = b"r"


@dataclass(frozen=True, slots=True)
class Admission:
    """What to append, and what had to be mended to get there."""

    bodies: tuple[Body, ...]
    repairs: tuple[str, ...] = ()


@dataclass(slots=True)
class _Draft:
    """The admission so far; positions are those the bodies will get."""

    head: int
    open: dict[tuple[int, int], OpenCall]
    abandoned: MutableMapping[str, Sequence[OpenCall]]
    bodies: list[Body] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)

    @property
    def state(self) -> State:
        return State.CALLING if self.open else State.IDLE

    def close_open(self) -> None:
        """Close every open call as unknown, the way a crash between call and result leaves it."""
        for call in list(self.open.values()):
            self.observe(call, unknown(call))
            self.repairs.append(
                f"{observation_handle(call.action, call.index)}: call {call.id!r} had no result; marked unknown"
            )

    def observe(self, call: OpenCall, seen: Observation) -> None:
        """Answer an open call."""
        advance(self.state, Kind.RESULT if len(self.open) > 1 else Kind.LAST_RESULT)
        del self.open[call.action, call.index]
        if seen.status == "unknown":
            self.abandoned[call.id] = (*self.abandoned.get(call.id, ()), call)
        self.bodies.append(Observed(call.action, call.index, seen))

    def step(self, step: Step) -> None:
        """Take in a step; what was still open is closed first."""
        kind = kind_of(step)
        if isinstance(step, ActionStep):
            check_action(step)
        if self.open:
            self.close_open()
        advance(self.state, kind)
        for call in open_calls(step, self.head + len(self.bodies)):
            self.open[call.action, call.index] = call
        self.bodies.append(step)

    def result(self, seen: Observation, *, strict: bool) -> None:
        """Take in an observation: the answer of an open call, else a late or a stray one."""
        call = find_call(seen, self.open.values())
        if call is not None:
            self.observe(call, seen)
            return
        late = find_call(seen, self.abandoned.get(seen.call_id, ()))
        if late is None and strict:
            waiting = ", ".join(repr(each.id) for each in self.open.values()) or "none"
            raise ProtocolError(f"no open call {seen.call_id!r} to observe; open calls: {waiting}")
        advance(self.state, Kind.NOTE)
        if late is None:
            self.repairs.append(f"a result for {seen.call_id!r} answers no open call; kept as a note")
            self.bodies.append(Observed(ORPHAN, 0, seen, late=True))
            return
        rest = tuple(each for each in self.abandoned[seen.call_id] if each != late)
        self.abandoned[seen.call_id] = rest
        self.bodies.append(Observed(late.action, late.index, seen, late=True))


def admit(
    items: Sequence[Item],
    *,
    head: int,
    open_now: Mapping[tuple[int, int], OpenCall],
    abandoned: Mapping[str, Sequence[OpenCall]],
    strict: bool,
) -> Admission:
    """What the log takes for these items, all or nothing.

    Raises ProtocolError: for a summary; for observations beside the wrong call; and, when ``strict``, for an
    observation that answers no open call.
    """
    # A long run may have given up many calls: only what changes is copied.
    draft = _Draft(head, dict(open_now), ChainMap({}, cast(dict[str, Sequence[OpenCall]], abandoned)))
    for item in items:
        if isinstance(item, Observation):
            draft.result(item, strict=strict)
        else:
            draft.step(item)
    return Admission(tuple(draft.bodies), tuple(draft.repairs))


def fingerprint(item: Item) -> bytes:
    """Equal for equal items, whatever became of them: observations of an action count for themselves."""
    if isinstance(item, ActionStep):
        item = replace(item, observations=(), usage=None, model="")
    elif isinstance(item, Observation):
        item = replace(item, index=None)
    images = [part.digest for part in as_parts(item.content) if isinstance(part, Image)]
    said = (repr(item) + repr(images)).encode("utf-8", "surrogatepass")
    kind = _RESULT if isinstance(item, Observation) else b"s"
    return kind + hashlib.blake2b(said, digest_size=16).digest()


def heard_in(entry: Entry) -> tuple[bytes, ...]:
    """The fingerprints of what a host said in one entry; none for what the library wrote."""
    match entry.body:
        case ActionStep(observations=seen) as step:
            return (fingerprint(step), *(fingerprint(each) for each in seen if each is not None))
        case Observed(observation=seen):
            return () if seen.status == "unknown" else (fingerprint(seen),)
        case (SystemPromptStep() | TaskStep() | PlanningStep() | FinalAnswerStep() | SummaryStep()) as step:
            return (fingerprint(step),)
        case Compaction() | Pin() | Unpin() | Checkpoint() | Undo():
            return ()
        case _:
            assert_never(entry.body)


def new_items(items: Sequence[Item], heard: Sequence[bytes], *, whole: bool | None) -> Sequence[Item]:
    """The items that were not recorded yet.

    ``whole`` True: the list starts with everything recorded; False: all of it is new; None: told by its beginning.
    The results of one step may stand in any order. Raises FormatError where the list begins like the run but then says
    something else, since telling what is new would be a guess.
    """
    if whole is False or not heard or not items:
        return items
    if whole is None and fingerprint(items[0]) != heard[0]:
        return items
    fresh, same = _beyond(items, heard)
    if fresh is not None and (same == len(heard) or whole):
        return fresh
    if whole or same > 1 or isinstance(items[0], SystemPromptStep):
        raise FormatError(
            f"the list begins like this run, but item {same} is not what was recorded there "
            f"({len(heard)} items are). Hand over only what is new with whole=False, or open another session"
        )
    return items


def _beyond(items: Sequence[Item], heard: Sequence[bytes]) -> tuple[list[Item] | None, int]:
    """What a list says beyond what was heard, or None where it says something else; and how many items agree."""
    at = same = 0
    while same < len(heard) and at < len(items):
        known = _results(heard, same)
        if not known:
            if fingerprint(items[at]) != heard[same]:
                return None, same
            at, same = at + 1, same + 1
            continue
        # Parallel results are recorded as they come; a provider's list has them in the order of the calls.
        waiting, fresh = Counter(known), list[Item]()
        while at < len(items) and isinstance(items[at], Observation):
            mark = fingerprint(items[at])
            if waiting[mark] > 0:
                waiting[mark] -= 1
            else:
                fresh.append(items[at])
            at += 1
        is_last = same + len(known) == len(heard)
        if (fresh and not is_last) or (waiting.total() and at < len(items)):
            return None, same
        same += len(known) - waiting.total()
        if fresh or waiting.total():
            return [*fresh, *items[at:]], same
    return list(items[at:]), same


def _results(heard: Sequence[bytes], start: int) -> list[bytes]:
    """The results that follow one another from ``start`` on."""
    end = start
    while end < len(heard) and heard[end].startswith(_RESULT):
        end += 1
    return list(heard[start:end])
