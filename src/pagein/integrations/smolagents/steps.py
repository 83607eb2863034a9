"""The live list: what a user or an agent does to it is recorded before it is done, and it is the list it looks like."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Self, SupportsIndex


class Steps(list[Any]):
    """An agent's steps. Every change is recorded first, and what raises there changes nothing."""

    def __init__(
        self, steps: Iterable[Any], record: Callable[[list[Any]], None], turn: AbstractContextManager[object]
    ) -> None:
        super().__init__(steps)
        self._record = record
        self._turn = turn

    def _change(self, change: Callable[[list[Any]], Any]) -> Any:
        # One change at a time: two that begin with the same list would each undo the other's.
        with self._turn:
            new = list(self)
            given = change(new)
            self._record(new)
            super().__setitem__(slice(None), new)
            return given

    def let_go(self) -> None:
        """From now on an ordinary list: what is done to it is recorded nowhere."""
        self._record = _nowhere

    def append(self, step: Any) -> None:
        """Record a step, and add it."""
        self._change(lambda new: new.append(step))

    def extend(self, steps: Iterable[Any]) -> None:
        """Record steps, and add them."""
        self._change(lambda new: new.extend(steps))

    def insert(self, index: SupportsIndex, step: Any) -> None:
        """Record a step, and what follows it again, in this order."""
        self._change(lambda new: new.insert(index, step))

    def pop(self, index: SupportsIndex = -1) -> Any:
        """Take a step out of the history; it stays in the record."""
        return self._change(lambda new: new.pop(index))

    def remove(self, step: Any) -> None:
        """Take a step out of the history; it stays in the record."""
        self._change(lambda new: new.remove(step))

    def clear(self) -> None:
        """Take every step out of the history; they stay in the record."""
        self._change(list.clear)

    def reverse(self) -> None:
        """Record the steps in this order."""
        self._change(list.reverse)

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        """Record the steps in this order."""
        self._change(lambda new: new.sort(key=key, reverse=reverse))

    def __setitem__(self, index: Any, steps: Any) -> None:
        self._change(lambda new: new.__setitem__(index, steps))

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        self._change(lambda new: new.__delitem__(index))

    def __iadd__(self, steps: Iterable[Any]) -> Self:  # type: ignore[misc] # list.__add__ gives a list
        self.extend(steps)
        return self

    def __imul__(self, times: SupportsIndex) -> Self:
        self._change(lambda new: new.__imul__(times))
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy is a list: two that record would record everything twice.
        return (list, (list(self),))


def _nowhere(steps: list[Any]) -> None:
    del steps
