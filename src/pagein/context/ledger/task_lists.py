"""The tasks in a call's arguments: rows with a status, and check boxes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pagein.context.ledger.error_lines import clip_line
from pagein.events.identifiers import parse_arguments

TaskState = Literal["done", "now", "open", "blocked", "dropped"]

MAX_SCANNED_CHARS = 100_000
"""Characters of a text that are searched for check boxes."""

TASK_MAX_CHARS = 300
"""Characters kept of a task."""

MIN_BOX_SHARE = 0.5
"""Share of a text's lines that are check boxes from which it is a list of tasks, and no document that has some."""

_CHECKBOX = re.compile(
    r"^[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]*)?\[(?P<mark>[ xX~>\u2713-])\][ \t]+(?P<text>\S.*)$", re.MULTILINE
)
_MAY_HAVE_TASKS = re.compile(r'"status"|\[[ xX~>\u2713-]\] |: ?\[\]')
_OLD_KEY = re.compile(r"(?i)(?:^|_)(?:old|search|find)")
_PATH_KEY = re.compile(r"(?i)path|file(?:_?name)?$")
_CONTENT_KEY = re.compile(r"(?i)content|text|str|body|patch|diff|code")
_LIST_NAME = re.compile(r"(?i)to-?_?do|task|plan|step|progress|check-?list|roadmap|backlog|notes")
"""The keys of a file's path and of its words in a call, and the names of files, tools and keys that have a list of tasks."""

_TASK_ID = re.compile(r"^(?P<id>#?\w{1,12}-?\d{1,6}|\d{1,3})[:.)]\s+")
_STATES: Mapping[str, TaskState] = {
    **dict.fromkeys(("done", "completed", "complete", "finished", "closed"), "done"),
    **dict.fromkeys(("in_progress", "in progress", "in-progress", "active", "doing", "started"), "now"),
    **dict.fromkeys(("open", "pending", "todo", "to_do", "not_started", "not started"), "open"),
    **dict.fromkeys(("cancelled", "canceled", "dropped", "deleted", "skipped"), "dropped"),
    "blocked": "blocked",
}  # fmt: skip
_BOXES: Mapping[str, TaskState] = {" ": "open", "~": "now", "-": "now", ">": "now"}
_TEXT_KEYS = ("content", "text", "title", "task", "subject", "description", "step", "name")


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task of a list: its own id or "", its words, and its state."""

    id: str
    text: str
    state: TaskState


@dataclass(frozen=True, slots=True)
class TaskList:
    """The tasks in one argument of a call; ``source`` tells the lists of a run apart: a path, or the argument's key.

    ``old`` are the tasks in the words that an edit of a file replaces; None where the list is whole.
    """

    source: str
    rows: tuple[TaskRow, ...]
    old: tuple[TaskRow, ...] | None = None

    def edit(self, rows: tuple[TaskRow, ...]) -> tuple[TaskRow, ...]:
        """Return the rows of a list as this edit leaves them."""
        texts = {row.text for row in self.old or ()}
        at = next((number for number, row in enumerate(rows) if row.text in texts), len(rows))
        return (*rows[:at], *self.rows, *(row for row in rows[at:] if row.text not in texts))


def find_task_lists(arguments: str, tool: str = "") -> tuple[TaskList, ...]:
    r"""Find the lists of tasks in the JSON arguments of a call: check boxes, and rows with a status whose key or tool says that they are tasks.

    >>> find_task_lists('{"plan": [{"step": "Write it", "status": "in_progress"}]}')[0].rows
    (TaskRow(id='', text='Write it', state='now'),)
    >>> find_task_lists(r'{"task_progress": "- [x] Read it\n- [ ] Write it"}')[0].rows[1].state
    'open'
    """
    if not _MAY_HAVE_TASKS.search(arguments):
        return ()
    fields = parse_arguments(arguments)
    path = next((value for key, value in fields.items() if _PATH_KEY.search(key) and isinstance(value, str)), "")
    if path and not _LIST_NAME.search(re.split(r"[/\\\\]", path)[-1]) and "status" not in arguments:
        fields = {key: value for key, value in fields.items() if not _CONTENT_KEY.search(key)}  # a template, a guide
    edited = [value for key, value in fields.items() if path and _OLD_KEY.search(key) and isinstance(value, str)]
    old = tuple(row for value in edited for row in find_boxes(value)) if edited else None
    lists = (
        (TaskList(path or key, tuple(_rows_of(value)), old), value == [])
        for key, value in fields.items()
        if (isinstance(value, str) and value not in edited) or _LIST_NAME.search(f"{tool} {key}")
    )
    return tuple(tasks for tasks, is_emptied in lists if tasks.rows or is_emptied)


def find_boxes(text: str) -> Iterator[TaskRow]:
    r"""Yield the check boxes of a text.

    >>> [row.state for row in find_boxes("1. [x] T1: Read\n2. [ ] Write")]
    ['done', 'open']
    """
    for box in _CHECKBOX.finditer(text[:MAX_SCANNED_CHARS]):
        words = clip_line(box["text"], TASK_MAX_CHARS)
        match = _TASK_ID.match(words)
        id, text = (match["id"], words[match.end() :]) if match else ("", words)
        yield TaskRow(id, text, _BOXES.get(box["mark"], "done"))


def read_state(value: object) -> TaskState | None:
    """Return the state that a status says; None for a word that says none."""
    return _STATES.get(value.strip().lower()) if isinstance(value, str) else None


def read_id(value: object) -> str:
    """Return the id of a task in a row; "" for a value that is none."""
    return clip_line(str(value), 100) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def read_text(row: Mapping[str, Any]) -> str:
    """Return the words of a task in a row; "" where it has none."""
    return clip_line(next((row[name] for name in _TEXT_KEYS if isinstance(row.get(name), str)), ""), TASK_MAX_CHARS)


def _rows_of(value: object) -> Iterator[TaskRow]:
    if isinstance(value, str):
        boxes = tuple(find_boxes(value)) if "[" in value else ()
        lines = sum(1 for line in value.splitlines() if line.strip()) if boxes else 0
        yield from boxes if len(boxes) >= lines * MIN_BOX_SHARE else ()
        return
    for row in value if isinstance(value, list) else ():
        state = read_state(row.get("status")) if isinstance(row, dict) else None
        if state is not None and (text := read_text(row)):
            yield TaskRow(read_id(row.get("id", "")), text, state)
