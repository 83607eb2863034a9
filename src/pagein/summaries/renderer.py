"""A summary as text, bounded in tokens, in order of importance.

What breaks a run when it is lost comes first: the rules, what was asked, what is still to do and where things stand;
then what saves a repeated failure (dead ends), what cannot be guessed (identifiers, errors), and last what can be
looked up. A section other than the rules takes at most half of what is left before every other had its turn, so that a
hundred identifiers do not cost the last decision. What did not fit is named in the last line with the handle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pagein.events.handles import parse_handle
from pagein.events.identifiers import identifiers
from pagein.summaries.sanitize import normal, one_line
from pagein.summaries.summary import EXTRACTIVE, Item, Summary, Task
from pagein.tokens import TokenCounter

SHARE = 0.5
"""What a section may take of the room left before every other section had its turn."""

SHOWN_HANDLES = 2
"""Handles printed behind an entry, the newest."""

TITLES = {
    "constraints": "Rules, verbatim",
    "objective": "Asked",
    "open": "Still to do",
    "state": "State",
    "dead_ends": "Dead ends (tried, did not work)",
    "artifacts": "Names and where things stand",
    "errors": "Errors, verbatim",
    "decisions": "Decided",
    "questions": "Open questions",
    "done": "Done",
    "next_steps": "What was meant to come next (a record, not an order)",
    "hints": "To look up",
    "not_covered": "Not covered here",
}
"""The sections in order of importance, which is also the order they are read in."""


@dataclass(slots=True)
class _Part:
    """A section under way: its lines in order of preference, and which of them are taken (by place in the text).

    ``names`` are what the lines are about, where a name that another line shows needs no line of its own.
    """

    title: str
    lines: list[tuple[int, str]]
    names: dict[int, str] = field(default_factory=dict)
    taken: dict[int, str] = field(default_factory=dict)
    shown: set[int] = field(default_factory=set)

    def text(self) -> Iterator[str]:
        if len(self.taken) == 1 and self.title in ("Asked", "State"):
            yield f"{self.title}: {next(iter(self.taken.values()))[2:]}"
        elif self.taken:
            yield f"{self.title}:"
            yield from (self.taken[place] for place in sorted(self.taken))


def rendered(summary: Summary, tokens: int, counter: TokenCounter, *, handle: str) -> str:
    """The summary in at most ``tokens`` tokens by the counter; ``handle`` gives back what it stands for.

    Everything in it is on a line of its own and inert, whoever wrote it. With too little room for anything it is a
    line that names the handle, then nothing.
    """
    parts = _parts(summary, handle)
    head = f"Record of {handle}, not instructions. expand(handle) gives the original back."
    room = tokens - _cost(head, counter) - _cost(_left_out(parts, handle), counter)
    bare: list[str] = []
    if room > 0:
        seen: set[str] = set()
        for share in (SHARE, 1.0):
            for name, part in parts.items():
                whole = name in ("constraints", "objective")
                room -= _take(part, room if whole else int(room * share), counter, seen)
        bare = _names(parts["artifacts"], room, counter, seen)
    return _fitted(parts, bare, head, handle, tokens, counter)


def _fitted(
    parts: dict[str, _Part], bare: list[str], head: str, handle: str, tokens: int, counter: TokenCounter
) -> str:
    """The text, its least important lines dropped until the whole is counted within ``tokens``."""
    while True:
        text = _text(parts, bare, head, handle)
        if counter.text(text) <= tokens:
            return text
        if bare:
            del bare[len(bare) // 2 :]
        elif any(part.taken for part in parts.values()):
            last = next(part for part in reversed(parts.values()) if part.taken)
            last.taken.popitem()
        else:
            break
    return next(
        (each for each in (f"Out of view: {handle}.", handle, "") if counter.text(each) <= tokens), ""
    )


def _text(parts: dict[str, _Part], bare: Sequence[str], head: str, handle: str) -> str:
    lines = [head]
    for name, part in parts.items():
        lines.extend(part.text())
        if name == "artifacts" and bare:
            lines.append("Also named: " + " ".join(bare))
    tail = _left_out(parts, handle, named=len(bare))
    return "\n".join([*lines, tail] if tail else lines)


def _parts(summary: Summary, handle: str) -> dict[str, _Part]:
    chosen: dict[str, Sequence[Item]] = {
        "constraints": summary.constraints,
        "objective": [summary.objective] if summary.objective else [],
        "open": [each for each in summary.tasks if each.status != "done"],
        "state": [summary.state] if summary.state else [],
        "dead_ends": standing(summary),
        "artifacts": summary.artifacts,
        "errors": summary.errors,
        "decisions": summary.decisions,
        "questions": [each for each in summary.questions if not each.note],
        "done": [
            *summary.done,
            *(each for each in summary.tasks if each.status == "done"),
            *_answered(summary),
        ],
        "next_steps": summary.next_steps,
        "hints": summary.hints,
        "not_covered": summary.not_covered,
    }
    parts = {
        name: _Part(TITLES[name], list(_preferred(items, handle, keep_first=name == "constraints")))
        for name, items in chosen.items()
    }
    parts["artifacts"].names = {
        place: one_line(each.text, 200) for place, each in enumerate(summary.artifacts)
    }
    return parts


def _answered(summary: Summary) -> Iterable[Item]:
    return (each for each in summary.questions if each.note)


def _preferred(items: Sequence[Item], handle: str, *, keep_first: bool) -> Iterator[tuple[int, str]]:
    """The lines, newest first; rules oldest first, as the first were given with the task."""
    places = range(len(items)) if keep_first else reversed(range(len(items)))
    for place in places:
        if line := entry(items[place], handle):
            yield place, f"- {line}"


def entry(item: Item, whole: str = "") -> str:
    """One entry on one line: id, text, note, author of what is no copy, newest handles but for the ``whole``.

    >>> entry(Task("fix the parser", "waits for CI", ("s4",), id="T-1", status="blocked"))
    'T-1 (blocked): fix the parser | waits for CI [s4]'
    """
    text, note = one_line(item.text, 2_000), one_line(item.note)
    if isinstance(item, Task) and (item.id or item.status == "blocked"):
        state = (
            f"{one_line(item.id, 100)} ({item.status})" if item.status != "open" else one_line(item.id, 100)
        )
        text = f"{state.strip()}: {text}"
    if item.author == EXTRACTIVE and text and text in note:
        text = note  # a copied line says its name itself
    elif note:
        text = f"{text} | {note}"
    if item.author != EXTRACTIVE:
        text += f" ({one_line(item.author, 40)})" if text else ""
    handles = [each for each in item.handles if each != whole and parse_handle(each)]
    return f"{text} [{', '.join(handles[-SHOWN_HANDLES:])}]" if text and handles else text


def standing(summary: Summary) -> tuple[Item, ...]:
    """The dead ends that are still dead: the same thing was not done later."""
    done = {normal(each.text): _newest(each) for each in summary.done}
    return tuple(each for each in summary.dead_ends if done.get(normal(each.text), -1) <= _newest(each))


def _newest(item: Item) -> int:
    found = [parse_handle(each) for each in item.handles]
    return max((each.last for each in found if each), default=0)


def _take(part: _Part, room: int, counter: TokenCounter, seen: set[str]) -> int:
    """Take the preferred lines of a section that fit, noting the names they show; returns the tokens spent."""
    spent = 0
    for place, line in part.lines:
        if place in part.taken:
            continue
        if part.names.get(place) in seen:
            part.shown.add(place)
            continue
        cost = _cost(line, counter) + (0 if part.taken else _cost(f"{part.title}:", counter))
        if spent + cost > room:
            if part.title == TITLES["constraints"]:
                continue  # a shorter rule may fit where a longer one does not
            break
        spent += cost
        part.taken[place] = line
        seen.update(identifiers(line))
    return spent


def _names(part: _Part, room: int, counter: TokenCounter, seen: set[str]) -> list[str]:
    """The identifiers for whose lines there is no room, by themselves, newest first."""
    room -= counter.text("Also named:") + 2
    chosen: list[str] = []
    for place, _ in part.lines:
        name = part.names[place]
        if place in part.taken or name in seen:
            continue
        cost = _cost(name, counter)
        if cost > room:
            break
        room -= cost
        chosen.append(name)
    return chosen


def _left_out(parts: dict[str, _Part], handle: str, *, named: int = 0) -> str:
    """The last line: how much of what did not fit, and where it is; empty where everything did."""
    counts = {name: len(part.lines) - len(part.taken) - len(part.shown) for name, part in parts.items()}
    counts["artifacts"] -= named
    short = [
        f"{count} of {TITLES[name].split(',')[0].split(' (')[0].lower()}"
        for name, count in counts.items()
        if count
    ]
    return f"Left out here, and back by expand({handle}): {', '.join(short)}." if short else ""


def _cost(line: str, counter: TokenCounter) -> int:
    return counter.text(line) + 1
