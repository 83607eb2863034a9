"""The views of a session, in place of the items that the SDK is about to send."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from pagein.context.view.view import View
from pagein.errors import Illegal
from pagein.formats import validate
from pagein.formats.parsing import to_plain_json
from pagein.integrations._item_history import RESPONSES_FORMAT, HostItem, ItemHistory
from pagein.integrations._threads import HistoryTracker
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import Options
from pagein.tokens.bytes import json_bytes


class SessionViews:
    """The views of one session, and of input that is not the session's. Calls from several threads are serialized."""

    def __init__(self, history: ItemHistory, options: Options) -> None:
        self._history = history
        self.options = options
        self._tracker = HistoryTracker(is_same=_is_same)
        self._foreign: tuple[ItemHistory, list[HostItem]] | None = None
        self._shown: ItemHistory = history
        self._lock = threading.RLock()

    @property
    def memory(self) -> AgentMemory:
        """The memory that the last request was a view of."""
        return self._shown.memory

    def all_items(self) -> list[HostItem]:
        """The session's items as they came where all fit the budget and nothing is pinned, else the view of them."""
        with self._lock:
            items = self._history.items()
            if not items:
                return []
            self._shown = self._history
            if _is_whole(self._history.memory.view()) and _has_room(self._history, items):
                return items
            rows = self._history.memory.to_messages(RESPONSES_FORMAT)
            self._tracker.set_view(rows, len(items))
            return rows

    def fit(self, items: Sequence[Any], instructions: str | None) -> list[HostItem]:
        """The items to send in place of these, with room for the instructions. Raises OverBudget, FormatError."""
        with self._lock:
            rows: list[HostItem] = list(items)
            history = self._history
            if not self._is_recorded(rows):
                rows = [to_plain_json(item, f"input[{at}]") for at, item in enumerate(items)]
                history = self._history if self._is_recorded(rows) else self._record_foreign(rows)
            history.reserve_instructions(instructions)
            self._shown = history
            view = history.memory.view()
            if _is_whole(view) and _has_room(history, rows) and _is_legal(rows):
                history.memory.note_request(view)
                return rows  # all of it is shown, so what the SDK made of it goes out as it is
            return history.memory.to_messages(RESPONSES_FORMAT)

    def close(self) -> None:
        """Release the memory of input that is not the session's."""
        with self._lock:
            if self._foreign is not None:
                self._foreign[0].close()
                self._foreign = None

    def _is_recorded(self, rows: list[HostItem]) -> bool:
        """True where the rows are the session's items, or the view given for them and what came since."""
        self._tracker.records = self._history.current_items()
        return len(rows) in self._tracker.recorded_counts(rows)

    def _record_foreign(self, rows: list[HostItem]) -> ItemHistory:
        """A history of these rows alone; it is kept while later input begins with them."""
        if self._foreign is not None:
            history, recorded = self._foreign
            if len(recorded) <= len(rows) and all(map(_is_same, rows, recorded)):
                history.append(rows[len(recorded) :])
                self._foreign = history, rows
                return history
            self.close()
        history = ItemHistory.open(":memory:", **self.options)
        history.append(rows)
        self._foreign = history, rows
        return history


def _is_whole(view: View) -> bool:
    """True where everything recorded is shown as it came, with nothing added."""
    return not (view.report.out or view.front or view.tail)


def _has_room(history: ItemHistory, rows: list[HostItem]) -> bool:
    """True where the rows as they are have no more bytes than the budget allows."""
    most = history.memory.budget.bytes
    return most is None or json_bytes(rows) <= most


def _is_legal(rows: list[HostItem]) -> bool:
    """True where the provider takes the rows as they are; a view of others is made legal."""
    try:
        validate(rows, RESPONSES_FORMAT)
    except Illegal:
        return False
    return True


def _is_same(item: HostItem, other: HostItem) -> bool:
    """True for equal items, whatever fields the SDK added and removed on their way."""
    return bool(item == other or _sent_fields(item) == _sent_fields(other))


def _sent_fields(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return item
    return {key: value for key, value in item.items() if value is not None and not key.startswith("_agents")}
