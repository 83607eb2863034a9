"""A framework's conversations: the recorded part of its list, the names of sessions, the cost of instructions."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import eq, is_
from typing import Any, TypeVar

from pagein.tokens import TokenCounter

MAX_OVERFLOW_RETRIES = 4
"""Times that a request the provider found too long is made again, smaller each time."""

MAX_OPEN = 64
"""Conversations kept open; the one used longest ago is closed, and opened again when it goes on."""

_INSTRUCTIONS_TOKENS = 8
"""Tokens that instructions cost beside their text."""


def session_name(conversation: str, number: int) -> str:
    """Name the session of a conversation: its own name first, then ``name#1`` and so on."""
    escaped = conversation.replace("%", "%25").replace("#", "%23")
    return f"{escaped}#{number}" if number else escaped


def count_instructions(instructions: str | None, counter: TokenCounter) -> int:
    """Count the tokens of instructions that are sent beside the messages; 0 for None."""
    return 0 if instructions is None else counter.text(instructions) + _INSTRUCTIONS_TOKENS


K = TypeVar("K")
V = TypeVar("V")


class OpenConversations(OrderedDict[K, V]):
    """What is open, those used last at the end. Beyond ``MAX_OPEN`` the first that no call uses now is to be closed."""

    def __init__(self) -> None:
        super().__init__()
        self._uses = Counter[K]()
        self._uses_lock = threading.Lock()

    @contextmanager
    def using(self, key: K) -> Iterator[None]:
        """Keep what this key opens open meanwhile."""
        with self._uses_lock:
            self._uses[key] += 1
        try:
            yield
        finally:
            with self._uses_lock:
                self._uses[key] -= 1
                self._uses += Counter()  # without those that are 0

    def first_to_close(self) -> K | None:
        """The key to close before another one is opened; None where there is room, or all are in use."""
        with self._uses_lock:
            return next((key for key in self if not self._uses[key]), None) if len(self) >= MAX_OPEN else None


class HistoryTracker:
    """Finds the part of a framework's list that a conversation has recorded.

    A framework hands over its whole list each turn. It may edit the list, and put the view it was given in place of the
    messages. ``records`` are the recorded messages, as ``is_same`` compares new ones with them. ``values_of`` gives what
    stays the same object in a message that nobody edits; ``has_same_values`` compares two of these.
    """

    def __init__(
        self,
        *,
        is_same: Callable[[Any, Any], bool] = eq,
        values_of: Callable[[Any], Any] = lambda _: None,
        has_same_values: Callable[[Any, Any], bool] = is_,
    ) -> None:
        self.records: list[Any] = []
        self._is_same = is_same
        self._values_of = values_of
        self._has_same_values = has_same_values
        self._objects: list[Any] = []
        self._values: list[Any] = []
        self._view: list[Any] = []
        self._viewed = 0

    def __len__(self) -> int:
        return len(self.records)

    def has_same_objects(self, messages: Sequence[Any]) -> bool:
        """True where the messages begin with the very objects that were recorded, unedited.

        It is cheap, since every turn looks at every message.
        """
        return (
            0 < len(self.records) == len(self._objects) <= len(messages)
            and all(map(is_, self._objects, messages))
            and all(map(self._has_same_values, self._values, map(self._values_of, messages)))
        )

    def recorded_counts(self, messages: Sequence[Any]) -> Iterator[int]:
        """Numbers of leading messages that are recorded: the whole record, or the last view and what came since.

        Yields nothing for messages of another conversation.
        """
        if self._begins_with(messages, self.records):
            yield len(self.records)
        since = self.records[self._viewed :]
        if self._view and self._begins_with(messages, [*self._view, *since]):
            yield len(self._view) + len(since)

    def add(self, messages: Sequence[Any], records: Iterable[Any]) -> None:
        """Add recorded messages, and the framework's objects they came from."""
        if len(self._objects) == len(self.records):
            self._add_objects(messages)
        self.records += records

    def set_objects(self, messages: Sequence[Any]) -> None:
        """Take these as the framework's objects that the records came from."""
        self._objects.clear()
        self._values.clear()
        self._add_objects(messages)

    def set_view(self, view: Iterable[Any], count: int) -> None:
        """Remember the view that was given in place of the first ``count`` records."""
        self._view = list(view)
        self._viewed = count

    def _add_objects(self, messages: Sequence[Any]) -> None:
        self._objects += messages
        self._values += map(self._values_of, messages)

    def _begins_with(self, messages: Sequence[Any], records: Sequence[Any]) -> bool:
        return len(messages) >= len(records) and all(map(self._is_same, messages, records))
