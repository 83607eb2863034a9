"""From what a host hands over to what the log takes: admission, pure.

Typed steps are admitted strictly: what does not fit raises. Transcripts are admitted with repairs, each one named: an
unanswered call is closed as unknown, a result that answers nothing is kept as a note. Nothing a host or a model said is
dropped, nothing that the view added is recorded as theirs, and nothing is guessed.
"""

from __future__ import annotations

import hashlib
import re
from collections import ChainMap, Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never, cast

from pagein.context.view.layout import CONTINUE, EARLIER
from pagein.errors import FormatError, ProtocolError
from pagein.events.entries import Body, Checkpoint, Compaction, FactBody, Observed, Pin, Undo, Unpin
from pagein.events.handles import observation_handle
from pagein.events.protocol import (
    Kind,
    OpenCall,
    State,
    advance,
    check_action,
    check_item,
    find_call,
    kind_of,
    open_calls,
    unknown,
)
from pagein.events.steps import (
    PROCEED,
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
from pagein.formats import Format, Item
from pagein.formats.parsing import rows_of
from pagein.formats.rendering import CONTINUE as GO_ON
from pagein.log.base import Entry

ORPHAN = -1
"""The action of an observation that answers no call of this run."""

_RESULT, _SYSTEM, _SAID = b"r", b"y", b"s"

_HEAD = re.compile(
    r'<(?:(memory) kind="(?:summary" author="[^"]*|recalled|facts)"|(pinned)|(system-notice)|(late-result) call="[^"]*")>\n'
)
_LINES = (EARLIER, PROCEED, GO_ON)
"""What the view says in the user's place, and no user says by chance."""


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
        check_item(item)
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
    parts = as_parts(item.content)
    images = [part.digest for part in parts if isinstance(part, Image)]
    if not isinstance(item, SummaryStep):
        # One provider's text is another's list of one text, and a cache marker is no part of what is said.
        item = replace(item, content=tuple(map(_bare, parts)))
    said = (repr(item) + repr(images)).encode("utf-8", "surrogatepass")
    kind = (
        _RESULT if isinstance(item, Observation) else _SYSTEM if isinstance(item, SystemPromptStep) else _SAID
    )
    return kind + hashlib.blake2b(said, digest_size=16).digest()


def _bare(part: Part) -> Part:
    if isinstance(part, Text) and part.extra is not None:
        is_spelling = part.extra.body == "{}" or part.extra.kind == "cache_control"
        return Text(part.text) if is_spelling else part
    return part


def heard_in(entry: Entry) -> tuple[bytes, ...]:
    """The fingerprints of what a host said in one entry; none for what the library wrote."""
    if isinstance(entry.body, Compaction | Pin | Unpin | Checkpoint | Undo | FactBody):
        return ()
    match entry.body:
        case ActionStep(observations=seen) as step:
            return (fingerprint(step), *(fingerprint(each) for each in seen if each is not None))
        case Observed(observation=seen):
            return () if seen.status == "unknown" else (fingerprint(seen),)
        case (SystemPromptStep() | TaskStep() | PlanningStep() | FinalAnswerStep() | SummaryStep()) as step:
            return (fingerprint(step),)
        case _:
            assert_never(entry.body)


def new_items(items: Sequence[Item], heard: Sequence[bytes], *, whole: bool | None) -> Sequence[Item]:
    """The items that were not recorded yet.

    ``whole`` True: the list starts with everything recorded; False: all of it is new; None: told by its beginning,
    where a system prompt may be missing. The results of one step may stand in any order. Raises FormatError where the
    list begins like the run but then says something else, since telling what is new would be a guess.
    """
    if whole is False or not heard or not items:
        return items
    behind = _behind_systems(items, heard) if whole is None else heard
    if whole is None and fingerprint(items[0]) != behind[0]:
        return items
    fresh, same = _beyond(items, behind)
    # One equal message behind a system prompt that is not there says too little.
    if fresh is not None and (whole or (same == len(behind) and (same > 1 or behind is heard))):
        return fresh
    known = frozenset(heard[1:])
    again = same == 1 and sum(fingerprint(each) in known for each in items[1:]) > 1
    if whole or same > 1 or again or isinstance(items[0], SystemPromptStep):
        raise _unclear(f"item {same} is not what was recorded there ({len(heard)} items are)")
    return items


def _behind_systems(items: Sequence[Item], heard: Sequence[bytes]) -> Sequence[bytes]:
    """What was heard behind the first system prompts, for a list without them: Anthropic's keeps them apart."""
    if isinstance(items[0], SystemPromptStep):
        return heard
    start = next((at for at, each in enumerate(heard) if not each.startswith(_SYSTEM)), 0)
    return heard[start:] if start else heard


def _unclear(why: str) -> FormatError:
    return FormatError(
        f"the list begins like this run, but {why}. "
        "Hand over only what is new with whole=False, or open another session"
    )


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


@dataclass(frozen=True, slots=True)
class Rendered:
    """The request that was given out last in a format: its messages, and the head it was made at."""

    rows: tuple[Any, ...]
    head: int


@dataclass(frozen=True, slots=True)
class Handed:
    """A transcript as a host hands it over; ``rest`` gives the items behind its first messages."""

    format: str
    rows: Sequence[Any]
    items: tuple[Item, ...]
    rest: Callable[[int], tuple[Item, ...]]


def handed(form: Format, messages: Any) -> Handed:
    """The transcript read in its format. Raises FormatError."""
    items = form.parse(messages)
    rows = rows_of(messages)
    return Handed(form.name, rows, items, lambda start: form.parse(rows[start:]))


def _begins_with(rows: Sequence[Any], shown: Sequence[Any]) -> bool:
    """Whether the messages shown stand at the beginning, wherever a host has put its cache markers."""
    return len(rows) >= len(shown) and all(
        _unmarked(row) == _unmarked(each) for row, each in zip(rows, shown, strict=False)
    )


def _unmarked(value: Any) -> Any:
    match value:
        case dict():
            return {key: _unmarked(item) for key, item in value.items() if key != "cache_control"}
        case list():
            return [_unmarked(item) for item in value]
        case _:
            return value


def unheard(
    given: Handed,
    shown: Rendered | None,
    heard: Sequence[bytes],
    since: Sequence[bytes],
    *,
    whole: bool | None,
) -> tuple[Sequence[Item], tuple[str, ...]]:
    """The items of a transcript that are new, and what was left out of it.

    A list that begins with the request ``shown`` last is that request handed back: new is what follows it and was not
    recorded ``since``. Raises FormatError where telling what is new would be a guess.
    """
    if whole is None and shown is not None and _begins_with(given.rows, shown.rows):
        items, repairs = without_ours(given.rest(len(shown.rows)))
        found, _ = _beyond(items, since)
        if found is None:
            raise _unclear("what follows the last request is not what was recorded since")
        return found, _with_none_new(given.items, found, repairs)
    items, repairs = without_ours(given.items)
    fresh = new_items(items, heard, whole=whole)
    if whole is None and heard:
        known = frozenset(heard)
        if fresh is items and repairs and any(fingerprint(each) in known for each in items):
            raise _unclear("it is a request of this library that this memory did not give out last")
        if shown is None and fresh and fresh is not items and is_line(fresh[0], CONTINUE):
            raise _unclear(f"{CONTINUE!r} may be the user's, or be from a request of this library")
    return fresh, _with_none_new(items, fresh, repairs) if whole is None else repairs


def _with_none_new(items: Sequence[Item], fresh: Sequence[Item], repairs: tuple[str, ...]) -> tuple[str, ...]:
    # The ids of results prove that a list is the same one, handed over again.
    if fresh or not items or any(isinstance(each, Observation) for each in items):
        return repairs
    return (*repairs, f"all {len(items)} items were recorded already; whole=False records equal ones again")


def without_ours(items: Sequence[Item]) -> tuple[Sequence[Item], tuple[str, ...]]:
    """The items without what the view put in the user's place, and what was left out; the same where there is none."""
    kept: list[Item] = []
    left: list[str] = []
    for item in items:
        if not isinstance(item, TaskStep):
            kept.append(item)
            continue
        parts = as_parts(item.content)
        said = tuple(_foreign(parts, left))
        if len(said) == len(parts):
            kept.append(item)
        elif said:
            kept.append(replace(item, content=said))
    if not left:
        return items, ()
    # Beside frames of ours this line is the one that closes a request.
    spoken = [
        each
        for at, each in enumerate(kept)
        if not (at and isinstance(kept[at - 1], ActionStep) and is_line(each, CONTINUE))
    ]
    left += [f"{CONTINUE!r} left out: it was this library's"] * (len(kept) - len(spoken))
    return spoken, tuple(left)


def is_line(item: Item, line: str) -> bool:
    """True where the user's message is this line and nothing else."""
    return isinstance(item, TaskStep) and [
        part.text if isinstance(part, Text) else "" for part in as_parts(item.content)
    ] == [line]


def _foreign(parts: Sequence[Part], left: list[str]) -> Iterator[Part]:
    """The parts that are no frame of ours; what a frame with images holds stands between two parts of its own."""
    end = ""
    for part in parts:
        text = part.text if isinstance(part, Text) else ""
        if end:
            end = "" if text == end else end
            continue
        head = _HEAD.match(text)
        tail = f"\n</{head[head.lastindex or 0]}>" if head else ""
        if head and (text.endswith(tail) or head.end() == len(text)):
            end = "" if text.endswith(tail) else tail
            left.append(f"{head[0].strip()} left out: it was this library's, not the user's")
        elif text in _LINES:
            left.append(f"{text!r} left out: it was this library's, not the user's")
        else:
            yield part
