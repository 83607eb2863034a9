"""The branches of a session, under the names of the SDK's own ``AdvancedSQLiteSession``."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

from pagein._common.cancellation import finish_first
from pagein.errors import ConfigurationError
from pagein.integrations._item_history import HostItem, ItemHistory
from pagein.memory.branches import MAIN

T = TypeVar("T")

_PREVIEW_CHARS = 100
"""Characters of a turn's text in a list of turns."""


class SessionBranches:
    """The methods of a session for its branches: each forks, switches or reads; none copies or destroys anything.

    A turn is a message of the user with what follows it; turns count from 1. Raises ConfigurationError for a turn that is
    not there and for a bad name, UnknownBranch, LogError.
    """

    @property
    @abstractmethod
    def _history(self) -> ItemHistory:
        """The items of the session."""

    async def create_branch_from_turn(self, turn_number: int, branch_name: str | None = None) -> str:
        """Fork a branch with everything before that turn of the current one, switch to it, and return its name."""
        return await run_in_thread(self._fork_turn, turn_number, branch_name)

    async def create_branch_from_content(self, search_term: str, branch_name: str | None = None) -> str:
        """As ``create_branch_from_turn``, from the first turn of the user that has the text."""
        turns = await self.find_turns_by_content(search_term)
        if not turns:
            raise ConfigurationError(f"no turn of the user's has {search_term!r}")
        return await self.create_branch_from_turn(turns[0]["turn"], branch_name)

    async def switch_to_branch(self, branch_id: str) -> None:
        """Go on with another branch, here and whenever the session is opened again."""
        await run_in_thread(self._history.switch, branch_id)

    async def delete_branch(self, branch_id: str, force: bool = False) -> None:
        """Drop a branch; its name stays taken, the record keeps it. ``force`` drops the current one too."""
        await run_in_thread(self._drop_branch, branch_id, force)

    async def list_branches(self) -> list[dict[str, Any]]:
        """Each branch: its id, how many items and turns it has, whether it is the current one, its first time."""
        return await run_in_thread(self._branch_rows)

    async def get_conversation_turns(self, branch_id: str | None = None) -> list[dict[str, Any]]:
        """The user's turns of a branch, by default the current one: number, text, time."""
        return [turn for turn, _ in await run_in_thread(lambda: list(self._turns(branch_id)))]

    async def find_turns_by_content(self, search_term: str, branch_id: str | None = None) -> list[dict[str, Any]]:
        """The turns of the user that have the text, in upper or lower case."""
        turns = await self.get_conversation_turns(branch_id)
        term = search_term.lower()
        return [turn for turn in turns if term in str(turn["full_content"]).lower()]

    def _fork_turn(self, number: int, name: str | None) -> str:
        count = next((at for turn, at in self._turns(None) if turn["turn"] == number), None)
        if count is None:
            raise ConfigurationError(f"this branch has no turn {number!r}; turns are numbered from 1")
        return self._history.fork_at(count, name)

    def _drop_branch(self, name: str, force: bool) -> None:
        memory = self._history.memory
        is_current = any(branch.name == name and branch.is_current for branch in memory.branches())
        if force and is_current and name != MAIN:
            self._history.switch(MAIN)
        memory.drop(name)

    def _branch_rows(self) -> list[dict[str, Any]]:
        rows = []
        for branch in self._history.memory.branches():
            items = self._history.items_on(branch.name)
            rows.append(
                {
                    "branch_id": branch.name,
                    "message_count": len(items),
                    "user_turns": sum(is_turn(item) for item, _ in items),
                    "is_current": branch.is_current,
                    "created_at": _time_text(items[0][1]) if items else None,
                }
            )
        return rows

    def _turns(self, branch: str | None) -> Iterator[tuple[dict[str, Any], int]]:
        """Each turn, and the number of items before it."""
        number = 0
        for at, (item, time) in enumerate(self._history.items_on(branch)):
            if is_turn(item):
                number += 1
                content = item.get("content", "")
                turn = {"turn": number, "content": str(content)[:_PREVIEW_CHARS], "full_content": content}
                yield {**turn, "timestamp": _time_text(time), "can_branch": True}, at


def is_turn(item: HostItem) -> bool:
    """True where a turn begins with the item: it is a message of the user."""
    return item.get("role") == "user"


def _time_text(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


async def run_in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Run the work in a thread, and return its result. A cancelled call waits for it too: no write is left half done."""
    return await finish_first(asyncio.ensure_future(asyncio.to_thread(work, *arguments)))
