"""The previous summary and a new one, by code: nothing is summarised again, so nothing decays.

An entry of the new summary replaces the older one that is about the same thing, where that stood. The rest stays, in
order. Merging is associative, and merging a summary with itself changes nothing; both hold because an entry's
place is where its thing was first named and its words are those said last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import TypeVar

from pagein.summaries.sanitize import normal, one_line
from pagein.summaries.summary import EXTRACTIVE, Item, Summary, Task

MOST_HANDLES = 8
"""Handles an entry keeps, newest last."""

Entry = TypeVar("Entry", bound=Item)


def merged(older: Summary, newer: Summary) -> Summary:
    """Both summaries as one: same identifier, task or text, the newer's words; no constraint is ever lost.

    A task that the newer names as done is done. Next steps are the newest only: an old intention is no record of now.
    """
    return Summary(
        objective=newer.objective or older.objective,
        state=newer.state or older.state,
        constraints=_union(older.constraints, newer.constraints, key=same_text, choose=_first_words),
        tasks=_union(_closed(older.tasks, newer), newer.tasks, key=task_key, choose=_later),
        dead_ends=_union(older.dead_ends, newer.dead_ends, key=same_text, choose=_later),
        artifacts=_union(older.artifacts, newer.artifacts, key=exact, choose=_later),
        errors=_union(older.errors, newer.errors, key=exact, choose=_later),
        decisions=_union(older.decisions, newer.decisions, key=same_text, choose=_later),
        questions=_union(older.questions, newer.questions, key=same_text, choose=_later),
        done=_union(older.done, newer.done, key=same_text, choose=_later),
        next_steps=_one_each(newer.next_steps) or _one_each(older.next_steps),
        hints=_union(older.hints, newer.hints, key=same_text, choose=_later),
        not_covered=_union(older.not_covered, newer.not_covered, key=same_text, choose=_later),
    )


def merged_all(summaries: Iterable[Summary]) -> Summary:
    """All of them as one, oldest first; none gives the empty summary."""
    return reduce(merged, summaries, Summary())


def exact(item: Item) -> str:
    """Identifiers and errors are the same where they are letter for letter the same."""
    return one_line(item.text)


def same_text(item: Item) -> str:
    """Other entries are the same where they read the same."""
    return normal(item.text)


def task_key(task: Task) -> str:
    """A task is the same by its exact id, or by its text where it has none."""
    return f"#{one_line(task.id)}" if task.id.strip() else same_text(task)


def _union(
    older: tuple[Entry, ...],
    newer: tuple[Entry, ...],
    *,
    key: Callable[[Entry], str],
    choose: Callable[[Entry, Entry], Entry],
) -> tuple[Entry, ...]:
    table: dict[str, Entry] = {}
    for each in (*older, *newer):
        name = key(each)
        if name:
            old = table.get(name)
            table[name] = _bounded(each) if old is None else choose(old, each)
    return tuple(table.values())


def _one_each(items: tuple[Item, ...]) -> tuple[Item, ...]:
    return _union(items, (), key=same_text, choose=_later)


def _later(old: Entry, new: Entry) -> Entry:
    """The newer words; a note that only the older has is kept, and with it its author."""
    both = replace(new, text=new.text or old.text, handles=joined(old.handles, new.handles))
    return both if new.note or not old.note else replace(both, note=old.note, author=old.author)


def _first_words(old: Entry, new: Entry) -> Entry:
    """A rule's words are those it was first given in; a copy from the run goes before a model's."""
    chosen = new if old.author != EXTRACTIVE and new.author == EXTRACTIVE else old
    return replace(chosen, handles=joined(old.handles, new.handles))


def joined(older: tuple[str, ...], newer: tuple[str, ...]) -> tuple[str, ...]:
    """Both lists of handles, each once at its newest place, the newest few kept."""
    once = dict.fromkeys(reversed((*older, *newer)))
    return tuple(reversed(tuple(once)[:MOST_HANDLES]))


def _bounded(item: Entry) -> Entry:
    return replace(item, handles=joined((), item.handles))


def _closed(tasks: tuple[Task, ...], newer: Summary) -> tuple[Task, ...]:
    """The older tasks, those done that the newer summary says were done; what it says of a task itself goes before."""
    finished = {same_text(each) for each in newer.done}
    return tuple(replace(each, status="done") if same_text(each) in finished else each for each in tasks)
