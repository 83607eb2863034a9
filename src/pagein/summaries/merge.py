"""Merging of the previous summary with a new one, by code: no summary is summarized again, so nothing decays.

An item of the new summary replaces the older item about the same thing, at its place. The rest stays in order. Merging
is associative and idempotent: an item's place is that of its first occurrence, its text that of the last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import TypeVar

from pagein.summaries.sanitize import normalize_text, one_line
from pagein.summaries.summary import EXTRACTIVE, SECTIONS, SectionName, Summary, SummaryItem, TaskItem

MAX_HANDLES_PER_ITEM = 8
"""Handles that an item keeps, newest last."""

ItemT = TypeVar("ItemT", bound=SummaryItem)


def merge_summaries(older: Summary, newer: Summary) -> Summary:
    """Merge two summaries: for the same identifier, task or text the newer item wins; no constraint is lost.

    A task that the newer summary lists as done is done. Only the newest next steps are kept.
    """
    older = replace(older, tasks=_close_tasks(older.tasks, newer))
    merged = {name: _merge_items(name, (*older.items_in(name), *newer.items_in(name))) for name in SECTIONS}
    merged["next_steps"] = _merge_items("next_steps", newer.next_steps) or _merge_items("next_steps", older.next_steps)
    return Summary(newer.objective or older.objective, newer.state or older.state, **merged)


def merge_all(summaries: Iterable[Summary]) -> Summary:
    """Merge summaries, oldest first; none gives the empty summary."""
    return reduce(merge_summaries, summaries, Summary())


def _key(section: SectionName, item: SummaryItem) -> str:
    """What tells an item from others: the exact text of a name or an error, a task's id, else the normalized text."""
    if section in ("artifacts", "errors"):
        return one_line(item.text)
    if isinstance(item, TaskItem) and item.id.strip():
        return f"#{one_line(item.id)}"
    return normalize_text(item.text)


def _merge_items(section: SectionName, items: Iterable[ItemT]) -> tuple[ItemT, ...]:
    choose = _prefer_first if section == "constraints" else _prefer_newer
    table: dict[str, ItemT] = {}
    for item in items:
        if key := _key(section, item):
            older = table.get(key)
            alone = replace(item, handles=merge_handles((), item.handles))
            table[key] = alone if older is None else choose(older, item)
    return tuple(table.values())


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


def _close_tasks(tasks: tuple[TaskItem, ...], newer: Summary) -> tuple[TaskItem, ...]:
    """Mark the older tasks as done that the newer summary lists as done."""
    finished = {normalize_text(task.text) for task in newer.done}
    return tuple(replace(task, status="done") if normalize_text(task.text) in finished else task for task in tasks)
