"""What a model is sent of a session: the view of what is recorded, found again in what the SDK is about to send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pagein.context.view.view import View
from pagein.formats.openai_responses.outputs import NAME
from pagein.formats.parsing import plain
from pagein.integrations.openai_agents.items import Item, ItemMemory
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import Options

_FRAMING = 8


class Views:
    """The views of one session, and of the input that is not the session's."""

    def __init__(self, items: ItemMemory, options: Options) -> None:
        self._items = items
        self.options = options
        self._given: tuple[list[Item], int] | None = None
        self._apart: tuple[ItemMemory, list[Item]] | None = None
        self._reserved: dict[int, int] = {}
        self._shown: ItemMemory = items

    @property
    def memory(self) -> AgentMemory:
        """What the last request was a view of."""
        return self._shown

    def history(self) -> list[Item]:
        """The session's items as they came where all fit the budget and nothing is pinned, else the view of them."""
        items = self._items.items()
        if not items:
            return []
        self._shown = self._items
        view = self._items.view()
        if _is_whole(view):
            return items
        rows = self._items.to_messages(NAME)
        self._given = rows, len(items)
        return rows

    def of(self, given: Sequence[Any], instructions: str | None) -> list[Item]:
        """What is sent in place of the items given, with room for the instructions. Raises OverBudget, FormatError."""
        rows: list[Item] = list(given)
        held = self._items
        if not self._is_recorded(rows):
            rows = [plain(each, f"input[{at}]") for at, each in enumerate(given)]
            held = self._items if self._is_recorded(rows) else self._beside(rows)
        self._reserve(held, instructions)
        self._shown = held
        if _is_whole(held.view()):
            return rows  # nothing left, so what the SDK made of it goes out as it is
        return held.to_messages(NAME)

    def close(self) -> None:
        """Release the memory of what is not the session's."""
        if self._apart is not None:
            self._apart[0].close()
            self._apart = None

    def _is_recorded(self, rows: list[Item]) -> bool:
        """Whether the rows are the session's items, or what this session gave for them and what came since."""
        items = self._items.standing_items()
        if _alike(rows, items):
            return True
        if self._given is None:
            return False
        shown, count = self._given
        return _alike(rows[: len(shown)], shown) and _alike(rows[len(shown) :], items[count:])

    def _beside(self, rows: list[Item]) -> ItemMemory:
        """A memory of these rows alone, and of no others; it goes on while they do."""
        if self._apart is not None:
            memory, known = self._apart
            if len(known) <= len(rows) and _alike(rows[: len(known)], known):
                memory.put_items(rows[len(known) :])
                self._apart = memory, rows
                return memory
            self.close()
        memory = ItemMemory.open(":memory:", **self.options)
        memory.put_items(rows)
        self._apart = memory, rows
        return memory

    def _reserve(self, memory: ItemMemory, instructions: str | None) -> None:
        """Room for the longest instructions so far, which the SDK sends beside the items."""
        cost = 0 if not instructions else memory.counter.text(instructions) + _FRAMING
        before = self._reserved.get(id(memory), 0)
        if cost > before:
            memory.tighten(cost - before)
            self._reserved[id(memory)] = cost


def _is_whole(view: View) -> bool:
    """Whether all that was recorded is shown as it came, and nothing beside it."""
    return not (view.report.out or view.kept or view.tail)


def _alike(given: Sequence[Item], known: Sequence[Item]) -> bool:
    """Whether these are the same items, whatever fields the SDK gave and took on their way."""
    return len(given) == len(known) and all(
        one == other or _said(one) == _said(other) for one, other in zip(given, known, strict=True)
    )


def _said(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return item
    return {key: value for key, value in item.items() if value is not None and not key.startswith("_agents")}
