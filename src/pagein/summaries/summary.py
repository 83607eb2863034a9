"""The structured summary. Any field may be empty.

A ``SummaryItem`` states one thing, with its author and the handles of its source steps. The meaning of its ``note``
depends on the section: the reason (decisions, dead ends), the kind or state (artifacts), the cure (errors), the answer
(questions). Nothing in a summary is an instruction: a next step records an intention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pagein.errors import FormatError
from pagein.summaries.sanitize import one_line

EXTRACTIVE = "extractive"
"""Author of the items that code copied from the run."""

TaskStatus = Literal["open", "blocked", "done"]
SectionName = Literal[
    "constraints", "tasks", "dead_ends", "artifacts", "errors", "decisions", "questions", "done", "next_steps", "hints",
    "not_covered",
]  # fmt: skip
SECTIONS: tuple[SectionName, ...] = get_args(SectionName)
"""The fields with many items, most important first."""

SINGLE = ("objective", "state")
"""The fields with one item."""


@dataclass(frozen=True, slots=True)
class SummaryItem:
    """One item: its text, a note, the handles of its source steps, and its author.

    ``author`` is ``extractive`` or a model's name.
    """

    text: str
    note: str = ""
    handles: tuple[str, ...] = ()
    author: str = EXTRACTIVE


@dataclass(frozen=True, slots=True)
class TaskItem(SummaryItem):
    """A task, under the exact id that the run gives it (empty without one)."""

    id: str = ""
    status: TaskStatus = "open"


@dataclass(frozen=True, slots=True)
class Summary:
    """Structured summary of older steps. Constraints, errors and artifacts are verbatim."""

    objective: SummaryItem | None = None
    state: SummaryItem | None = None
    constraints: tuple[SummaryItem, ...] = ()
    tasks: tuple[TaskItem, ...] = ()
    dead_ends: tuple[SummaryItem, ...] = ()
    artifacts: tuple[SummaryItem, ...] = ()
    errors: tuple[SummaryItem, ...] = ()
    decisions: tuple[SummaryItem, ...] = ()
    questions: tuple[SummaryItem, ...] = ()
    done: tuple[SummaryItem, ...] = ()
    next_steps: tuple[SummaryItem, ...] = ()
    hints: tuple[SummaryItem, ...] = ()
    not_covered: tuple[SummaryItem, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True without any item."""
        return next(self.entries(), None) is None

    @property
    def author(self) -> str:
        """The authors in order of appearance, joined by ``+``; ``extractive`` if there are no items."""
        return "+".join(dict.fromkeys(one_line(item.author, 60) for _, item in self.entries())) or EXTRACTIVE

    def entries(self) -> Iterator[tuple[str, SummaryItem]]:
        """Yield every item with the name of its field, in the order of the fields."""
        for name in (*SINGLE, *SECTIONS):
            for item in self.items_in(name):
                yield name, item

    def items_in(self, name: str) -> tuple[Any, ...]:
        """The items of a field."""
        value = getattr(self, name)
        return value if isinstance(value, tuple) else () if value is None else (value,)

    def map_items(self, change: Callable[[tuple[Any, ...]], Iterable[Any]]) -> Summary:
        """The summary with the items of each field changed; a field with one item takes the first."""
        changed = {name: tuple(change(self.items_in(name))) for name in (*SECTIONS, *SINGLE)}
        single = {name: next(iter(changed[name]), None) for name in SINGLE}
        return Summary(**changed | single)  # type: ignore[arg-type]  # mypy does not see which key has which type


def summary_to_dict(summary: Summary) -> dict[str, Any]:
    """Convert the summary to JSON values, without empty fields."""
    value: dict[str, Any] = {}
    for name in (*SINGLE, *SECTIONS):
        if rows := list(map(_item_to_dict, summary.items_in(name))):
            value[name] = rows[0] if name in SINGLE else rows
    return value


def _item_to_dict(item: SummaryItem) -> dict[str, Any]:
    value: dict[str, Any] = {"text": item.text}
    if isinstance(item, TaskItem):
        value |= {"id": item.id, "status": item.status}
    if item.note:
        value["note"] = item.note
    if item.handles:
        value["handles"] = list(item.handles)
    if item.author != EXTRACTIVE:
        value["author"] = item.author
    return value


def summary_from_dict(value: object) -> Summary:
    """Convert JSON values to a summary. Raises FormatError, with the path, for another shape."""
    fields = _check_fields(value, {*SINGLE, *SECTIONS}, "")
    lists = {}
    for section in SECTIONS:
        values = fields.get(section) or []
        if not isinstance(values, list):
            raise FormatError("expected a list", path=section)
        lists[section] = tuple(_item_from_dict(row, f"{section}[{index}]", section) for index, row in enumerate(values))
    one = {name: _item_from_dict(fields[name], name, name) if fields.get(name) else None for name in SINGLE}
    return Summary(**one, **lists)  # type: ignore[arg-type]  # mypy does not see which key has which type


def _check_fields(value: object, allowed: set[str], path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise FormatError(f"expected an object, not {type(value).__name__}", path=path)
    unknown = sorted(set(value) - allowed)
    if unknown:
        raise FormatError(f"unknown: {', '.join(unknown)[:80]}", path=path)
    return value


def _item_from_dict(value: object, path: str, section: str) -> SummaryItem:
    of_tasks = {"id", "status"} if section == "tasks" else set()
    fields = _check_fields(value, {"text", "note", "handles", "author"} | of_tasks, path)
    handles = fields.get("handles") or []
    if not isinstance(handles, list) or not all(isinstance(handle, str) for handle in handles):
        raise FormatError("expected a list of strings", path=f"{path}.handles")
    text, note = _string_field(fields, "text", path), _string_field(fields, "note", path)
    by = _string_field(fields, "author", path) or EXTRACTIVE
    if section != "tasks":
        return SummaryItem(text, note, tuple(handles), by)
    status = fields.get("status", "open")
    if status not in get_args(TaskStatus):
        raise FormatError("expected open, blocked or done", path=f"{path}.status")
    return TaskItem(text, note, tuple(handles), by, _string_field(fields, "id", path), status)


def _string_field(fields: Mapping[str, Any], name: str, path: str) -> str:
    value = fields.get(name)
    if value is None and name != "text":
        return ""
    if not isinstance(value, str):
        raise FormatError("expected a string", path=f"{path}.{name}")
    return value
