"""The structured summary: a value, not a blob. Pure; any field may be empty.

An ``Item`` says one thing, whose words it is by, and which steps it came from. What its ``note`` holds depends on
where it stands: why (decisions, dead ends), what it is or its state (artifacts), the cure (errors), the answer
(questions). Nothing in a summary is an order: a next step is a record of what somebody meant to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pagein.errors import FormatError
from pagein.summaries.sanitize import one_line

EXTRACTIVE = "extractive"
"""The author of what was copied from the run by code."""

VERSION = 1

Status = Literal["open", "blocked", "done"]
Section = Literal[
    "constraints", "tasks", "dead_ends", "artifacts", "errors", "decisions", "questions", "done", "next_steps", "hints",
    "not_covered",
]  # fmt: skip
SECTIONS: tuple[Section, ...] = get_args(Section)
"""The fields that hold many entries, most important first."""


@dataclass(frozen=True, slots=True)
class Item:
    """One entry: its text, what is noted beside it, the handles of the steps it came from, and who wrote it.

    ``author`` is ``extractive`` or a model's name.
    """

    text: str
    note: str = ""
    handles: tuple[str, ...] = ()
    author: str = EXTRACTIVE


@dataclass(frozen=True, slots=True)
class Task(Item):
    """Something to do, under the exact id the run gives it (empty where it gives none)."""

    id: str = ""
    status: Status = "open"


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands for older steps, field by field. Constraints, errors and artifacts are verbatim."""

    objective: Item | None = None
    state: Item | None = None
    constraints: tuple[Item, ...] = ()
    tasks: tuple[Task, ...] = ()
    dead_ends: tuple[Item, ...] = ()
    artifacts: tuple[Item, ...] = ()
    errors: tuple[Item, ...] = ()
    decisions: tuple[Item, ...] = ()
    questions: tuple[Item, ...] = ()
    done: tuple[Item, ...] = ()
    next_steps: tuple[Item, ...] = ()
    hints: tuple[Item, ...] = ()
    not_covered: tuple[Item, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True where nothing is said."""
        return next(self.entries(), None) is None

    @property
    def author(self) -> str:
        """Who wrote it: the authors in order of appearance, joined by ``+``; ``extractive`` where nobody did."""
        return "+".join(dict.fromkeys(one_line(item.author, 60) for _, item in self.entries())) or EXTRACTIVE

    def entries(self) -> Iterator[tuple[str, Item]]:
        """Every entry with the name of its field, in the order of the fields."""
        if self.objective is not None:
            yield "objective", self.objective
        if self.state is not None:
            yield "state", self.state
        for section in SECTIONS:
            for each in self.section(section):
                yield section, each

    def section(self, name: Section) -> tuple[Item, ...]:
        """The entries of a field that holds many."""
        found: tuple[Item, ...] = getattr(self, name)
        return found


def to_json(summary: Summary) -> str:
    """The summary as one line of JSON, versioned; equal summaries give equal text."""
    return json.dumps(
        {"version": VERSION, **as_value(summary)}, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )


def from_json(text: str) -> Summary:
    """The summary that ``to_json`` wrote. Raises FormatError, naming the place, for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"no summary: {error}") from error
    if not isinstance(value, dict) or value.get("version") != VERSION:
        raise FormatError(f"no summary of version {VERSION}; a later release may have written it")
    return from_value({key: each for key, each in value.items() if key != "version"})


def as_value(summary: Summary) -> dict[str, Any]:
    """The summary as JSON values, what is empty left out."""
    value: dict[str, Any] = {}
    for name in ("objective", "state"):
        one: Item | None = getattr(summary, name)
        if one is not None:
            value[name] = _item_value(one)
    for section in SECTIONS:
        if entries := summary.section(section):
            value[section] = [_item_value(each) for each in entries]
    return value


def _item_value(item: Item) -> dict[str, Any]:
    value: dict[str, Any] = {"text": item.text}
    if isinstance(item, Task):
        value |= {"id": item.id, "status": item.status}
    if item.note:
        value["note"] = item.note
    if item.handles:
        value["handles"] = list(item.handles)
    if item.author != EXTRACTIVE:
        value["author"] = item.author
    return value


def from_value(value: object, *, author: str | None = None) -> Summary:
    """The summary in JSON values. Raises FormatError, naming the place, where the shape is another.

    With ``author``, everything is by that author and may not claim another; an entry may then be a plain string.
    """
    fields = _fields(value, {"objective", "state", *SECTIONS}, "")
    lists = {}
    for section in SECTIONS:
        given = fields.get(section) or []
        if not isinstance(given, list):
            raise FormatError("a list is wanted", path=section)
        lists[section] = tuple(
            _item(each, f"{section}[{index}]", section, author) for index, each in enumerate(given)
        )
    one = {
        name: _item(fields[name], name, name, author) if fields.get(name) else None
        for name in ("objective", "state")
    }
    return Summary(**one, **lists)  # type: ignore[arg-type]  # mypy does not see which key has which type


def _fields(value: object, known: set[str], path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise FormatError(f"an object is wanted, not {type(value).__name__}", path=path)
    unknown = sorted(set(value) - known)
    if unknown:
        raise FormatError(f"unknown: {', '.join(unknown)[:80]}", path=path)
    return value


def _item(value: object, path: str, section: str, author: str | None) -> Item:
    if isinstance(value, str) and author is not None:
        value = {"text": value}
    known = {"text", "note", "handles"} | ({"author"} if author is None else set())
    fields = _fields(value, known | ({"id", "status"} if section == "tasks" else set()), path)
    handles = fields.get("handles") or []
    if not isinstance(handles, list) or not all(isinstance(each, str) for each in handles):
        raise FormatError("a list of strings is wanted", path=f"{path}.handles")
    text, note = _text(fields, "text", path), _text(fields, "note", path)
    by = author if author is not None else _text(fields, "author", path) or EXTRACTIVE
    if section != "tasks":
        return Item(text, note, tuple(handles), by)
    status = fields.get("status", "open")
    if status not in get_args(Status):
        raise FormatError("open, blocked or done is wanted", path=f"{path}.status")
    return Task(text, note, tuple(handles), by, _text(fields, "id", path), status)


def _text(fields: Mapping[str, Any], name: str, path: str) -> str:
    value = fields.get(name)
    if value is None and name != "text":
        return ""
    if not isinstance(value, str):
        raise FormatError("a string is wanted", path=f"{path}.{name}")
    return value
