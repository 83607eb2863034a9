"""The lists of tasks of a run, as its calls and the model's words leave them, and their lines for a view. Pure and bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, replace
from typing import Any, NamedTuple

from pagein.context.ledger.task_lists import (
    TaskList,
    TaskRow,
    TaskState,
    find_boxes,
    find_task_lists,
    read_id,
    read_state,
    read_text,
)
from pagein.events.entries import Slot
from pagein.events.handles import Place, place_handle
from pagein.events.identifiers import parse_arguments
from pagein.events.secrets import hide_secret
from pagein.events.steps import ToolCall
from pagein.tokens import TokenCounter

MAX_VERSIONS, MAX_SOURCES = 64, 3
"""Versions remembered of a list of tasks, and lists; beyond it the oldest is dropped."""

MAX_TASKS = 200
"""Tasks remembered of a list: its last ones."""

ONE_BY_ONE = "tasks"
"""The source of the list of tasks that calls add and change one by one."""

_CREATES = re.compile(r"(?i)(?:create|add|new)_?(?:todo|task)|(?:todo|task)_?(?:create|add|new)")
"""The name of a tool that adds one task: ``TaskCreate``, ``add_todo``."""

_UPDATES = re.compile(
    r"(?i)(?:update|set|edit|mark|complete|finish|close|delete|remove|cancel)_?(?:todo|task)"
    r"|(?:todo|task)_?(?:update|set|edit|complete|finish|close|done|delete|remove|cancel)"
)
"""The name of a tool that changes one task: ``TaskUpdate``, ``complete_todo``."""

_NAMED_STATES: tuple[tuple[re.Pattern[str], TaskState], ...] = (
    (re.compile(r"(?i)(?<!in)(?<!un)complete|finish|close|done"), "done"),
    (re.compile(r"(?i)delete|remove|cancel"), "dropped"),
)
"""What the name of such a tool makes of a task, where no status does."""

_TASK_ID_KEY = re.compile(r"(?i)(?:task|todo)?_?id")

_NEW_IDS = (
    re.compile(r"(?i)(?:\btask|\btodo|id)[\"']?[\s:=#\"']{1,5}(?P<id>[\w-]*\d[\w-]*)"),
    re.compile(r"(?P<id>[\w-]*\d[\w-]*)"),
)
"""The id of a new task in a result: the one that is called so, as in ``Task #4 created``, else the first number."""

_MARKS: Mapping[TaskState, str] = {"done": "x", "now": ">", "open": "-", "blocked": "!", "dropped": "x"}
_ORDER: tuple[TaskState, ...] = ("now", "blocked", "open", "done")


class PlanVersion(NamedTuple):
    """The tasks of a list as a call left them."""

    place: Place
    rows: tuple[TaskRow, ...]


class TaskPlans:
    """The newest lists of tasks of one run with their versions. The same calls give the same."""

    def __init__(self) -> None:
        self._plans: dict[str, list[PlanVersion]] = {}
        """By source, the versions of a list of tasks, oldest first; the source with the newest one last."""

    def learn(self, place: Place, call: ToolCall, result: str) -> None:
        """Fold a call that succeeded: whole lists in its arguments, or one task that it adds or changes."""
        for tasks in find_task_lists(call.arguments, call.name):
            self._add_version(place, tasks)
        if _CREATES.search(call.name):
            self._create_task(place, call, result)
        elif _UPDATES.search(call.name):
            self._update_task(place, call)

    def learn_text(self, position: int, text: str) -> None:
        """Fold the check boxes in a text of the model; one alone is no list."""
        rows = tuple(find_boxes(text)) if "[" in text else ()
        if len(rows) > 1:
            self._add_version((position, 0), TaskList("", rows))

    def learn_edited(self, place: Place, call: ToolCall) -> None:
        """Fold the lists of tasks in arguments that were changed by hand, in the place of the old ones."""
        for tasks in find_task_lists(call.arguments, call.name):
            self._add_version(place, tasks)
            self._plans.get(tasks.source, []).sort(key=lambda version: version.place)

    def has_step(self, position: int) -> bool:
        """True where a step made a list of tasks."""
        return any(version.place[0] == position for versions in self._plans.values() for version in versions)

    def remove_step(self, position: int) -> None:
        """Drop the versions that a step made."""
        for source, versions in list(self._plans.items()):
            self._plans[source] = [version for version in versions if version.place[0] != position]
            if not self._plans[source]:
                del self._plans[source]

    def remove_slot(self, place: Place, slot: Slot) -> None:
        """Drop the versions that stand in the model's words, or in the arguments of a call."""
        for source, versions in list(self._plans.items()):
            if slot == ("arguments" if source else "content"):
                self._plans[source] = [version for version in versions if version.place != place]

    def find_hidden(self, hides_words: Callable[[int], bool]) -> tuple[PlanVersion, ...]:
        """Return of each list the newest version of the steps whose words are hidden, unless that is empty."""
        plans = list[PlanVersion]()
        for versions in self._plans.values():
            newest = next((version for version in reversed(versions) if hides_words(version.place[0])), None)
            if newest is not None and newest.rows:
                plans.append(newest)
        return tuple(sorted(plans, key=lambda plan: plan.place))

    def to_state(self) -> dict[str, Any]:
        """Return the plans as JSON-safe values."""
        return {
            source: [[*version.place, *map(astuple, version.rows)] for version in versions]
            for source, versions in self._plans.items()
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> TaskPlans:
        """Restore the plans from ``to_state``."""
        plans = cls()
        for source, versions in state.items():
            plans._plans[source] = [
                PlanVersion((position, index), tuple(TaskRow(*row) for row in rows))
                for position, index, *rows in versions
            ]
        return plans

    def _add_version(self, place: Place, tasks: TaskList) -> None:
        versions = self._plans.get(tasks.source, [])
        if not versions and (tasks.old is not None or not tasks.rows):
            return  # a part of a list that was never seen, or none
        whole = tasks.rows if tasks.old is None else tasks.edit(versions[-1].rows)
        rows = (replace(row, text=hide_secret(row.text)) for row in whole[-MAX_TASKS:])
        self._plans.pop(tasks.source, None)
        version = PlanVersion(place, tuple(rows))
        self._plans[tasks.source] = [*versions[1 - MAX_VERSIONS :], version]
        while len(self._plans) > MAX_SOURCES:
            del self._plans[next(iter(self._plans))]

    def _create_task(self, place: Place, call: ToolCall, result: str) -> None:
        fields, rows = parse_arguments(call.arguments), self._single_tasks()
        named = (id for name, id in _ids_of(fields) if id and _TASK_ID_KEY.fullmatch(name))
        in_result = (match["id"] for pattern in _NEW_IDS if (match := pattern.search(result)))
        id = next(named, "") or next(in_result, str(len(rows) + 1))
        self._set_task(place, id, fields, read_state(fields.get("status")))

    def _update_task(self, place: Place, call: ToolCall) -> None:
        fields, rows = parse_arguments(call.arguments), self._single_tasks()
        id = next((id for _, id in _ids_of(fields) if id in rows), "")
        by_name = (state for name, state in _NAMED_STATES if name.search(call.name))
        self._set_task(place, id, fields, read_state(fields.get("status")) or next(by_name, None))

    def _single_tasks(self) -> dict[str, TaskRow]:
        """Return by id the tasks that were added one by one."""
        versions = self._plans.get(ONE_BY_ONE, [])
        return {row.id: row for row in versions[-1].rows} if versions else {}

    def _set_task(self, place: Place, id: str, fields: Mapping[str, Any], state: TaskState | None) -> None:
        """Add or change one task; what a call does not say of it stays. One without an id or words is none."""
        rows = self._single_tasks()
        old = rows.get(id, TaskRow(id, "", "open"))
        text = read_text(fields) or old.text
        if id and text:
            rows[id] = TaskRow(id, text, state or old.state)
            self._add_version(place, TaskList(ONE_BY_ONE, tuple(rows.values())))


def _ids_of(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the arguments whose name ends with "id", and what they say."""
    return ((name, read_id(value).lstrip("#")) for name, value in fields.items() if name.lower().endswith("id"))


def render_plan(plan: PlanVersion, tokens: int, counter: TokenCounter) -> str:
    """Return the text of a list that fits the tokens; "" if not even its heading does.

    Of a list without room for all, the tasks that are done leave first, then the last of those that are open.
    """
    rows = [row for row in plan.rows if row.state != "dropped"]
    done_count = sum(row.state == "done" for row in rows)
    head = f"[{place_handle(plan.place)}] tasks, {done_count} of {len(rows)} done"
    tokens_left = tokens - counter.text(head) - 2
    if tokens_left < 0:
        return ""
    visible: set[int] = set()
    for state in _ORDER if done_count < len(rows) else ():
        numbers = [number for number, row in enumerate(rows) if row.state == state]
        for number in reversed(numbers) if state == "done" else numbers:
            cost = counter.text(_render_task(rows[number])) + 1
            if cost > tokens_left:
                tokens_left = 0  # what matters less does not take the place of what matters more
                break
            tokens_left -= cost
            visible.add(number)
    lines = (_render_task(rows[number]) for number in sorted(visible))
    return "\n".join((f"{head}:" if visible else f"{head}.", *lines))


def _render_task(row: TaskRow) -> str:
    return f"{_MARKS[row.state]} {f'{row.id}: ' if row.id else ''}{row.text}"
