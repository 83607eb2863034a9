"""Merging of the previous summary with a new one, by code: no summary is summarized again, so nothing decays.

An item of the new summary replaces the older item about the same thing, at its place. The rest stays in order. Merging
is associative and idempotent: an item's place is that of its first occurrence, its text that of the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import TypeVar

from pagein.summaries.sanitize import normalize_text, one_line
from pagein.summaries.summary import EXTRACTIVE, Summary, SummaryItem, TaskItem

MAX_HANDLES_PER_ITEM = 8
"""Handles that an item keeps, newest last."""

ItemT = TypeVar("ItemT", bound=SummaryItem)


def merge_summaries(older: Summary, newer: Summary) -> Summary:
    """Merge two summaries: for the same identifier, task or text the newer item wins; no constraint is lost.

    A task that the newer summary lists as done is done. Only the newest next steps are kept.
    """
    return Summary(
        objective=newer.objective or older.objective,
        state=newer.state or older.state,
        constraints=_merge_items(older.constraints, newer.constraints, key=text_key, choose=_prefer_first),
        tasks=_merge_items(_close_tasks(older.tasks, newer), newer.tasks, key=task_key, choose=_prefer_newer),
        dead_ends=_merge_items(older.dead_ends, newer.dead_ends, key=text_key, choose=_prefer_newer),
        artifacts=_merge_items(older.artifacts, newer.artifacts, key=exact_key, choose=_prefer_newer),
        errors=_merge_items(older.errors, newer.errors, key=exact_key, choose=_prefer_newer),
        decisions=_merge_items(older.decisions, newer.decisions, key=text_key, choose=_prefer_newer),
        questions=_merge_items(older.questions, newer.questions, key=text_key, choose=_prefer_newer),
        done=_merge_items(older.done, newer.done, key=text_key, choose=_prefer_newer),
        next_steps=_deduplicate(newer.next_steps) or _deduplicate(older.next_steps),
        hints=_merge_items(older.hints, newer.hints, key=text_key, choose=_prefer_newer),
        not_covered=_merge_items(older.not_covered, newer.not_covered, key=text_key, choose=_prefer_newer),
    )


def merge_all(summaries: Iterable[Summary]) -> Summary:
    """Merge summaries, oldest first; none gives the empty summary."""
    return reduce(merge_summaries, summaries, Summary())


def exact_key(item: SummaryItem) -> str:
    """Key of an identifier or error: its exact text."""
    return one_line(item.text)


def text_key(item: SummaryItem) -> str:
    """Key of other items: their normalized text."""
    return normalize_text(item.text)


def task_key(task: TaskItem) -> str:
    """Key of a task: its exact id, or its normalized text without one."""
    return f"#{one_line(task.id)}" if task.id.strip() else text_key(task)


def _merge_items(
    older: tuple[ItemT, ...],
    newer: tuple[ItemT, ...],
    *,
    key: Callable[[ItemT], str],
    choose: Callable[[ItemT, ItemT], ItemT],
) -> tuple[ItemT, ...]:
    table: dict[str, ItemT] = {}
    for item in (*older, *newer):
        item_key = key(item)
        if item_key:
            older_item = table.get(item_key)
            table[item_key] = _trim_handles(item) if older_item is None else choose(older_item, item)
    return tuple(table.values())


def _deduplicate(items: tuple[SummaryItem, ...]) -> tuple[SummaryItem, ...]:
    return _merge_items(items, (), key=text_key, choose=_prefer_newer)


def _prefer_newer(old: ItemT, new: ItemT) -> ItemT:
    """Take the newer item; keep a note that only the older one has, with its author."""
    merged = replace(new, text=new.text or old.text, handles=merge_handles(old.handles, new.handles))
    return merged if new.note or not old.note else replace(merged, note=old.note, author=old.author)


def _prefer_first(old: ItemT, new: ItemT) -> ItemT:
    """Take the older item; a copy from the run wins over a model's text."""
    preferred = new if old.author != EXTRACTIVE and new.author == EXTRACTIVE else old
    return replace(preferred, handles=merge_handles(old.handles, new.handles))


def merge_handles(older: tuple[str, ...], newer: tuple[str, ...]) -> tuple[str, ...]:
    """Merge two lists of handles, each once at its newest place; keep the newest."""
    once = dict.fromkeys(reversed((*older, *newer)))
    return tuple(reversed(tuple(once)[:MAX_HANDLES_PER_ITEM]))


def _trim_handles(item: ItemT) -> ItemT:
    return replace(item, handles=merge_handles((), item.handles))


def _close_tasks(tasks: tuple[TaskItem, ...], newer: Summary) -> tuple[TaskItem, ...]:
    """Mark the older tasks as done that the newer summary lists as done."""
    finished = {text_key(task) for task in newer.done}
    return tuple(replace(task, status="done") if text_key(task) in finished else task for task in tasks)
