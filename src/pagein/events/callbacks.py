"""Callbacks by kind of step, called over the class hierarchy (smolagents' CallbackRegistry)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import UnionType
from typing import Any, get_args

from pagein.errors import ConfigurationError

Callback = Callable[..., object]


class CallbackRegistry:
    """Callbacks for kinds of steps, ours or any other's: the step's own class first, then each class it comes from.

    Within a class they are called in the order they were registered. What a callback raises is raised to the caller,
    and the callbacks behind it are not called.
    """

    def __init__(self) -> None:
        self._callbacks: dict[type, list[Callback]] = {}

    def register(self, kind: type | UnionType, callback: Callback) -> None:
        """Call ``callback`` for steps of ``kind``: a class, ``MemoryStep`` for all of ours, or a union of classes.

        Raises ConfigurationError for what is no class, or cannot be called.
        """
        kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
        if not all(isinstance(each, type) for each in kinds):
            raise ConfigurationError(f"callbacks are registered for a class of steps, not {kind!r}")
        if not callable(callback):
            raise ConfigurationError(f"a callback is called with a step, and {callback!r} cannot be called")
        for each in kinds:
            self._callbacks.setdefault(each, []).append(callback)

    def callback(self, step: object, **beside: Any) -> None:
        """Call what is registered for the step. A callback with one parameter gets the step alone, any other ``beside``."""
        for kind in type(step).__mro__:
            # A callback may register another: it is called from the next step on.
            for each in tuple(self._callbacks.get(kind, ())):
                if _takes_one(each):
                    each(step)
                else:
                    each(step, **beside)


def _takes_one(callback: Callback) -> bool:
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return True  # some of C's tell nothing of theirs
    return len(parameters) == 1 and all(each.kind is not each.VAR_POSITIONAL for each in parameters)
