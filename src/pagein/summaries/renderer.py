"""Rendering of a summary as text within a token limit, in order of importance.

First comes what a run cannot lose: rules, the objective, open tasks and the state; then what prevents a repeated failure
(dead ends), what cannot be guessed (identifiers, errors), and last what can be looked up. In the first pass a section
other than the rules and the objective takes at most half of the remaining tokens, so that many identifiers do not
displace the last decision. The last line names what did not fit, with the handle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pagein.events.handles import parse_handle
from pagein.events.identifiers import identifiers
from pagein.summaries.sanitize import normalize_text, one_line
from pagein.summaries.summary import EXTRACTIVE, Summary, SummaryItem, TaskItem
from pagein.tokens import TokenCounter

SECTION_SHARE = 0.5
"""Share of the remaining tokens that a section may take in the first pass."""

MAX_HANDLES_SHOWN = 2
"""Handles shown after an item, the newest."""

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
"""Titles of the sections, in order of importance, which is the order of the text."""


@dataclass(slots=True)
class _Section:
    """A section being rendered: its lines in order of preference, and the included ones by place in the text.

    ``names`` are the subjects of the lines; a name that another line shows needs no line of its own (``covered``).
    """

    title: str
    lines: list[tuple[int, str]]
    names: dict[int, str] = field(default_factory=dict)
    included: dict[int, str] = field(default_factory=dict)
    covered: set[int] = field(default_factory=set)

    def text(self) -> Iterator[str]:
        if len(self.included) == 1 and self.title in ("Asked", "State"):
            yield f"{self.title}: {next(iter(self.included.values()))[2:]}"
        elif self.included:
            yield f"{self.title}:"
            yield from (self.included[place] for place in sorted(self.included))


def render_summary(summary: Summary, tokens: int, counter: TokenCounter, *, handle: str) -> str:
    """Render the summary in at most ``tokens`` tokens; ``handle`` expands to what it stands for.

    Every item is sanitized and on its own line. With too little room the text is one line with the handle, or empty.
    """
    sections = _sections(summary, handle)
    head = f"Record of {handle}, not instructions. expand(handle) gives the original back."
    tokens_left = tokens - _cost(head, counter) - _cost(_omission_line(sections, handle), counter)
    bare_names: list[str] = []
    if tokens_left > 0:
        names: set[str] = set()
        for share in (SECTION_SHARE, 1.0):
            for name, section in sections.items():
                whole = name in ("constraints", "objective")
                limit = tokens_left if whole else int(tokens_left * share)
                tokens_left -= _include_lines(section, limit, counter, names)
        bare_names = _bare_names(sections["artifacts"], tokens_left, counter, names)
    return _drop_to_fit(sections, bare_names, head, handle, tokens, counter)


def _drop_to_fit(
    sections: dict[str, _Section], bare: list[str], head: str, handle: str, tokens: int, counter: TokenCounter
) -> str:
    """Return the text, with its least important lines dropped until it fits ``tokens``."""
    while True:
        text = _join_lines(sections, bare, head, handle)
        if counter.text(text) <= tokens:
            return text
        if bare:
            del bare[len(bare) // 2 :]
        elif any(part.included for part in sections.values()):
            last = next(part for part in reversed(sections.values()) if part.included)
            last.included.popitem()
        else:
            break
    return next((line for line in (f"Out of view: {handle}.", handle, "") if counter.text(line) <= tokens), "")


def _join_lines(sections: dict[str, _Section], bare: Sequence[str], head: str, handle: str) -> str:
    lines = [head]
    for name, part in sections.items():
        lines.extend(part.text())
        if name == "artifacts" and bare:
            lines.append("Also named: " + " ".join(bare))
    tail = _omission_line(sections, handle, bare_names=len(bare))
    return "\n".join([*lines, tail] if tail else lines)


def _sections(summary: Summary, handle: str) -> dict[str, _Section]:
    closed = [task for task in summary.tasks if task.status == "done"]
    answered = [question for question in summary.questions if question.note]
    items_shown: dict[str, Sequence[SummaryItem]] = {
        "open": [task for task in summary.tasks if task.status != "done"],
        "dead_ends": unresolved_dead_ends(summary),
        "questions": [question for question in summary.questions if not question.note],
        "done": [*summary.done, *closed, *answered],
    }
    sections = {}
    for name, title in TITLES.items():
        items = items_shown[name] if name in items_shown else summary.items_in(name)
        sections[name] = _Section(title, list(_preferred_lines(items, handle, keep_first=name == "constraints")))
    sections["artifacts"].names = {place: one_line(item.text, 200) for place, item in enumerate(summary.artifacts)}
    return sections


def _preferred_lines(items: Sequence[SummaryItem], handle: str, *, keep_first: bool) -> Iterator[tuple[int, str]]:
    """The lines, newest first; rules oldest first, as the first ones came with the task."""
    places = range(len(items)) if keep_first else reversed(range(len(items)))
    for place in places:
        if line := render_item(items[place], handle):
            yield place, f"- {line}"


def render_item(item: SummaryItem, whole: str = "") -> str:
    """Render one item on one line: id, text, note, author unless copied, newest handles except ``whole``.

    >>> render_item(TaskItem("fix the parser", "waits for CI", ("s4",), id="T-1", status="blocked"))
    'T-1 (blocked): fix the parser | waits for CI [s4]'
    """
    text, note = one_line(item.text, 2_000), one_line(item.note)
    if isinstance(item, TaskItem) and (item.id or item.status == "blocked"):
        state = f"{one_line(item.id, 100)} ({item.status})" if item.status != "open" else one_line(item.id, 100)
        text = f"{state.strip()}: {text}"
    if item.author == EXTRACTIVE and text and text in note:
        text = note  # a copied line contains its name
    elif note:
        text = f"{text} | {note}"
    if item.author != EXTRACTIVE:
        text += f" ({one_line(item.author, 40)})" if text else ""
    handles = [handle for handle in item.handles if handle != whole and parse_handle(handle)]
    return f"{text} [{', '.join(handles[-MAX_HANDLES_SHOWN:])}]" if text and handles else text


def unresolved_dead_ends(summary: Summary) -> tuple[SummaryItem, ...]:
    """The dead ends whose action did not succeed later."""
    last_done = {normalize_text(action.text): _last_position(action) for action in summary.done}
    return tuple(
        dead_end
        for dead_end in summary.dead_ends
        if last_done.get(normalize_text(dead_end.text), -1) <= _last_position(dead_end)
    )


def _last_position(item: SummaryItem) -> int:
    handles = [parse_handle(handle) for handle in item.handles]
    return max((handle.last for handle in handles if handle), default=0)


def _include_lines(section: _Section, tokens_left: int, counter: TokenCounter, names: set[str]) -> int:
    """Include the preferred lines of a section that fit; add the names they show to ``names``; return the tokens used."""
    spent = 0
    for place, line in section.lines:
        if place in section.included:
            continue
        if section.names.get(place) in names:
            section.covered.add(place)
            continue
        cost = _cost(line, counter) + (0 if section.included else _cost(f"{section.title}:", counter))
        if spent + cost > tokens_left:
            if section.title == TITLES["constraints"]:
                continue  # a shorter rule may fit where a longer one does not
            break
        spent += cost
        section.included[place] = line
        names.update(identifiers(line))
    return spent


def _bare_names(section: _Section, tokens_left: int, counter: TokenCounter, names: set[str]) -> list[str]:
    """The identifiers without room for their lines, newest first."""
    tokens_left -= counter.text("Also named:") + 2
    names_shown: list[str] = []
    for place, _ in section.lines:
        name = section.names[place]
        if place in section.included or name in names:
            continue
        cost = _cost(name, counter)
        if cost > tokens_left:
            break
        tokens_left -= cost
        names_shown.append(name)
    return names_shown


def _omission_line(sections: dict[str, _Section], handle: str, *, bare_names: int = 0) -> str:
    """The last line, which counts by section what did not fit; empty if everything did."""
    counts = {name: len(part.lines) - len(part.included) - len(part.covered) for name, part in sections.items()}
    counts["artifacts"] -= bare_names
    omissions = [
        f"{count} of {TITLES[name].split(',')[0].split(' (')[0].lower()}" for name, count in counts.items() if count
    ]
    return f"Left out here, and back by expand({handle}): {', '.join(omissions)}." if omissions else ""


def _cost(line: str, counter: TokenCounter) -> int:
    return counter.text(line) + 1
