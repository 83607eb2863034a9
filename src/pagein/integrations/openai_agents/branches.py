"""The branches of a session, under the names of the SDK's own ``AdvancedSQLiteSession``, over the branches of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from pagein.errors import ConfigurationError
from pagein.integrations.openai_agents.items import Item, ItemMemory
from pagein.memory.branches import MAIN

T = TypeVar("T")

_PREVIEW = 100
"""Characters of a turn's words in a list of turns."""


class Branching:
    """Verbs of a session for its branches: each forks, switches or reads, and none copies or destroys anything.

    A turn is a message of the user with what follows it; turns count from 1. Raises ConfigurationError for a turn or a
    name there cannot be, UnknownBranch, LogError.
    """

    _items: ItemMemory

    async def create_branch_from_turn(self, turn_number: int, branch_name: str | None = None) -> str:
        """A new branch with everything before that turn of the current one, on which the session goes on; its name."""
        return await outcome(self._forked, turn_number, branch_name)

    async def create_branch_from_content(self, search_term: str, branch_name: str | None = None) -> str:
        """The same from the first turn in which the user said this."""
        found = await self.find_turns_by_content(search_term)
        if not found:
            raise ConfigurationError(f"no turn of the user's has {search_term!r}")
        return await self.create_branch_from_turn(found[0]["turn"], branch_name)

    async def switch_to_branch(self, branch_id: str) -> None:
        """Go on with another branch, here and whenever the session is opened again."""
        await outcome(self._items.switch, branch_id)

    async def delete_branch(self, branch_id: str, force: bool = False) -> None:
        """Leave a branch for good; its name stays taken, the record keeps it. ``force`` leaves the current one too."""
        await outcome(self._dropped, branch_id, force)

    async def list_branches(self) -> list[dict[str, Any]]:
        """Each branch: its id, how many items and turns it has, whether it is the current one, when it was begun."""
        return await outcome(self._listed)

    async def get_conversation_turns(self, branch_id: str | None = None) -> list[dict[str, Any]]:
        """The user's turns of a branch, of the current one without a name: number, words, when they were written."""
        return [each for each, _ in await outcome(lambda: list(self._turns(branch_id)))]

    async def find_turns_by_content(
        self, search_term: str, branch_id: str | None = None
    ) -> list[dict[str, Any]]:
        """The turns in which the user said this, in upper or lower case."""
        turns = await self.get_conversation_turns(branch_id)
        wanted = search_term.lower()
        return [each for each in turns if wanted in str(each["full_content"]).lower()]

    def _forked(self, turn: int, name: str | None) -> str:
        before = next((at for each, at in self._turns(None) if each["turn"] == turn), None)
        if before is None:
            raise ConfigurationError(f"this branch has no turn {turn!r}; turns are numbered from 1")
        return self._items.fork_at(before, name)

    def _dropped(self, name: str, force: bool) -> None:
        is_current = any(each.name == name and each.is_current for each in self._items.branches())
        if force and is_current and name != MAIN:
            self._items.switch(MAIN)
        self._items.drop(name)

    def _listed(self) -> list[dict[str, Any]]:
        found = []
        for branch in self._items.branches():
            items = self._items.items_on(branch.name)
            found.append(
                {
                    "branch_id": branch.name,
                    "message_count": len(items),
                    "user_turns": sum(is_turn(item) for item, _ in items),
                    "is_current": branch.is_current,
                    "created_at": _said(items[0][1]) if items else None,
                }
            )
        return found

    def _turns(self, branch: str | None) -> Iterator[tuple[dict[str, Any], int]]:
        """Each turn, and how many items stand before it."""
        number = 0
        for at, (item, time) in enumerate(self._items.items_on(branch)):
            if is_turn(item):
                number += 1
                content = item.get("content", "")
                told = {"turn": number, "content": str(content)[:_PREVIEW], "full_content": content}
                yield {**told, "timestamp": _said(time), "can_branch": True}, at


def is_turn(item: Item) -> bool:
    """Whether a turn begins with the item: the user speaks."""
    return item.get("role") == "user"


def newest(items: Sequence[Item], limit: int) -> list[Item]:
    """The newest ``limit`` items, oldest first; all for a negative one."""
    return list(items if limit < 0 else items[len(items) - limit if limit < len(items) else 0 :])


def _said(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


async def outcome(work: Callable[..., T], *arguments: Any) -> T:
    """The work's result, done in a thread. Cancelled, it is still waited for: a write is never left half known."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()
