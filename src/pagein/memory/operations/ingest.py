"""Ingesting transcripts: which of a host's messages are new, and which text in them is the library's own. Pure.

Nothing a host or a model said is dropped, nothing that a view added is recorded as theirs, and nothing is guessed: where
telling what is new would be a guess, a FormatError says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pagein.context.view.layout import CONTINUE, EARLIER
from pagein.errors import FormatError
from pagein.events.protocol import RESULT_PREFIX, SYSTEM_PREFIX, fingerprint
from pagein.events.steps import PROCEED, ActionStep, Observation, Part, SystemPromptStep, TaskStep, Text, as_parts
from pagein.formats import Format, Item
from pagein.formats.parsing import request_rows
from pagein.formats.rendering import CONTINUE as GO_ON

_FRAME_START = re.compile(
    r'<(?:(memory) kind="(?:summary" author="[^"]*|recalled|facts)"|(pinned)|(system-notice)|(late-result) call="[^"]*")>\n'
)
_OWN_LINES = (EARLIER, PROCEED, GO_ON)
"""Lines that a view adds in the user's place, and that no user says by chance."""


@dataclass(frozen=True, slots=True)
class LastRequest:
    """The last request given out in a format: its messages, and the head it was made at."""

    rows: tuple[Any, ...]
    head: int


@dataclass(frozen=True, slots=True)
class Transcript:
    """A host's messages and the items in them; ``parse_from`` parses again without the first messages."""

    format: str
    rows: Sequence[Any]
    items: tuple[Item, ...]
    parse_from: Callable[[int], tuple[Item, ...]]


def read_transcript(form: Format, messages: Any) -> Transcript:
    """Parse a host's messages. Raises FormatError."""
    items = form.parse(messages)
    rows = request_rows(messages)
    return Transcript(form.name, rows, items, lambda start: form.parse(rows[start:]))


def select_new(
    transcript: Transcript,
    last_request: LastRequest | None,
    recorded: Sequence[bytes],
    recorded_since: Sequence[bytes],
    *,
    whole: bool | None,
) -> tuple[Sequence[Item], tuple[str, ...]]:
    """The new items of a transcript, and a note on each text that was left out.

    A transcript that begins with the ``last_request`` is that request handed back: the items behind it are new, unless
    they were ``recorded_since``. ``recorded`` are the fingerprints of the whole run. Raises FormatError where telling
    what is new would be a guess.
    """
    if whole is None and last_request is not None and _begins_with(transcript.rows, last_request.rows):
        items, notes = strip_own_text(transcript.parse_from(len(last_request.rows)))
        following, _ = _skip_recorded(items, recorded_since)
        if following is None:
            raise _ambiguous("what follows the last request is not what was recorded since")
        return following, _note_if_none_new(transcript.items, following, notes)
    items, notes = strip_own_text(transcript.items)
    new = new_items(items, recorded, whole=whole)
    if whole is not None:
        return new, notes
    if recorded:
        known_marks = frozenset(recorded)
        if new is items and notes and any(fingerprint(item) in known_marks for item in items):
            raise _ambiguous("it is a request of this library that this memory did not give out last")
        if last_request is None and new and new is not items and _is_line(new[0], CONTINUE):
            raise _ambiguous(f"{CONTINUE!r} may be the user's, or be from a request of this library")
    return new, _note_if_none_new(items, new, notes)


def new_items(items: Sequence[Item], recorded: Sequence[bytes], *, whole: bool | None) -> Sequence[Item]:
    """The items that were not recorded yet.

    ``whole`` True: the list starts with everything recorded; False: all of it is new; None: its beginning tells, where
    a system prompt may be missing. The results of one step may stand in any order. Raises FormatError if the list
    begins like the run but then says something else.
    """
    if whole is False or not recorded or not items:
        return items
    expected = _without_leading_systems(items, recorded) if whole is None else recorded
    if whole is None and fingerprint(items[0]) != expected[0]:
        return items
    new, same = _skip_recorded(items, expected)
    # Without the system prompt, one equal message is too little to know the run by.
    is_known_run = same == len(expected) and (same > 1 or expected is recorded)
    if new is not None and (whole or is_known_run):
        return new
    known_marks = frozenset(recorded[1:])
    repeats = same == 1 and sum(fingerprint(item) in known_marks for item in items[1:]) > 1
    if whole or same > 1 or repeats or isinstance(items[0], SystemPromptStep):
        raise _ambiguous(f"item {same} is not what was recorded there ({len(recorded)} items are)")
    return items


def _without_leading_systems(items: Sequence[Item], recorded: Sequence[bytes]) -> Sequence[bytes]:
    """The run without its first system prompts, for a list without them: Anthropic's requests keep them apart."""
    if isinstance(items[0], SystemPromptStep):
        return recorded
    start = next((at for at, mark in enumerate(recorded) if not mark.startswith(SYSTEM_PREFIX)), 0)
    return recorded[start:] if start else recorded


def _skip_recorded(items: Sequence[Item], recorded: Sequence[bytes]) -> tuple[list[Item] | None, int]:
    """The items behind those recorded, or None if the list says something else; and how many items agree."""
    at = same = 0
    while same < len(recorded) and at < len(items):
        results = _results_from(recorded, same)
        if not results:
            if fingerprint(items[at]) != recorded[same]:
                return None, same
            at, same = at + 1, same + 1
            continue
        # Parallel results are recorded as they come; a provider's list has them in the order of the calls.
        missing, new = Counter(results), list[Item]()
        while at < len(items) and isinstance(items[at], Observation):
            mark = fingerprint(items[at])
            if missing[mark] > 0:
                missing[mark] -= 1
            else:
                new.append(items[at])
            at += 1
        is_last = same + len(results) == len(recorded)
        if (new and not is_last) or (missing.total() and at < len(items)):
            return None, same
        same += len(results) - missing.total()
        if new or missing.total():
            return [*new, *items[at:]], same
    return list(items[at:]), same


def _results_from(recorded: Sequence[bytes], start: int) -> list[bytes]:
    """The fingerprints of results that follow one another from ``start`` on."""
    end = start
    while end < len(recorded) and recorded[end].startswith(RESULT_PREFIX):
        end += 1
    return list(recorded[start:end])


def _ambiguous(reason: str) -> FormatError:
    return FormatError(
        f"the list begins like this run, but {reason}. "
        "Hand over only what is new with whole=False, or open another session"
    )


def _begins_with(rows: Sequence[Any], request: Sequence[Any]) -> bool:
    """True if the messages begin with the request, wherever a host has put its cache markers."""
    return len(rows) >= len(request) and all(
        _without_cache_control(row) == _without_cache_control(other) for row, other in zip(rows, request, strict=False)
    )


def _without_cache_control(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_cache_control(item) for key, item in value.items() if key != "cache_control"}
        case list():
            return [_without_cache_control(item) for item in value]
        case _:
            return value


def _note_if_none_new(items: Sequence[Item], new: Sequence[Item], notes: tuple[str, ...]) -> tuple[str, ...]:
    # With results in it a list is certainly the same one again: their ids prove it.
    if new or not items or any(isinstance(item, Observation) for item in items):
        return notes
    return (*notes, f"all {len(items)} items were recorded already; whole=False records equal ones again")


# The library's own text


def strip_own_text(items: Sequence[Item]) -> tuple[Sequence[Item], tuple[str, ...]]:
    """The items without text that a view added in the user's place, and a note on each; the same items if there is none."""
    stripped: list[Item] = []
    notes: list[str] = []
    for item in items:
        if not isinstance(item, TaskStep):
            stripped.append(item)
            continue
        parts = as_parts(item.content)
        host_parts = tuple(_host_parts(parts, notes))
        if len(host_parts) == len(parts):
            stripped.append(item)
        elif host_parts:
            stripped.append(replace(item, content=host_parts))
    if not notes:
        return items, ()
    # In a request of the library this line, behind an action, is the one that closes the request.
    without_ending = [
        item
        for at, item in enumerate(stripped)
        if not (at and isinstance(stripped[at - 1], ActionStep) and _is_line(item, CONTINUE))
    ]
    endings = len(stripped) - len(without_ending)
    notes += [f"{CONTINUE!r} left out: it was this library's"] * endings
    return without_ending, tuple(notes)


def _is_line(item: Item, line: str) -> bool:
    """True if the item is a message of the user with this line and nothing else."""
    return isinstance(item, TaskStep) and [
        part.text if isinstance(part, Text) else "" for part in as_parts(item.content)
    ] == [line]


def _host_parts(parts: Sequence[Part], notes: list[str]) -> Iterator[Part]:
    """The parts outside the library's frames. A frame with images begins and ends in text parts of its own."""
    frame_end = ""
    for part in parts:
        text = part.text if isinstance(part, Text) else ""
        if frame_end:
            frame_end = "" if text == frame_end else frame_end
            continue
        start = _FRAME_START.match(text)
        end = f"\n</{start[start.lastindex or 0]}>" if start else ""
        if start and (text.endswith(end) or start.end() == len(text)):
            frame_end = "" if text.endswith(end) else end
            notes.append(f"{start[0].strip()} left out: it was this library's, not the user's")
        elif text in _OWN_LINES:
            notes.append(f"{text!r} left out: it was this library's, not the user's")
        else:
            yield part
