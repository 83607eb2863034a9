"""Callbacks by kind of step, called over the class hierarchy (smolagents' CallbackRegistry)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, get_args

from pagein.errors import ConfigurationError

Callback = Callable[..., object]


@dataclass(frozen=True, slots=True)
class NearLimit:
    """A view came near its limit: its tokens, the limit, and their ``share``; said once until a compaction.

    ``leaving`` are the handles that the policy would let go now, ``tokens_after`` what the view would have then.
    """

    tokens: int
    limit: int
    share: float
    leaving: tuple[str, ...]
    tokens_after: int

    def __str__(self) -> str:
        gone = f"{', '.join(self.leaving[:4])}{', ...' if len(self.leaving) > 4 else ''}" or "nothing"
        return (
            f"the view has {self.tokens:,} of {self.limit:,} tokens; now {gone} would leave, "
            f"and {self.tokens_after:,} tokens would stay"
        )


BreakCause = Literal[
    "compaction", "undo", "page-in", "facts", "ledger", "system prompt", "edit", "format", "branch", "other"
]
"""The causes of a prefix break."""


@dataclass(frozen=True, slots=True)
class PrefixBreak:
    """A request does not begin with the whole request before it, so that a provider's cache has only its beginning.

    ``handle`` is the handle, or the tier, of what stood where they part, and ``why`` says more than ``cause``. ``kept``
    tokens of the request's ``tokens`` are as they were. ``rewritten`` of the rest stood in the request before, too.
    """

    cause: BreakCause
    handle: str
    why: str
    kept: int
    rewritten: int
    tokens: int

    def __str__(self) -> str:
        return (
            f"the prefix broke at {self.handle} ({self.cause}: {self.why}): {self.kept:,} of {self.tokens:,} tokens are "
            f"as they were, {self.rewritten:,} are sent again"
        )


class CallbackRegistry:
    """Callbacks by class of step, pagein's or any other: the step's own class first, then its base classes.

    ``Compaction``, ``NearLimit`` and ``PrefixBreak`` may be registered, too: they are called at the end of the call that
    made the view or the request.

    Callbacks of one class run in the order of registration. An error that a callback raises reaches the caller, and
    the remaining callbacks are not called.
    """

    def __init__(self) -> None:
        self._callbacks: dict[type, list[Callback]] = {}

    def register(self, kind: type | UnionType, callback: Callback) -> None:
        """Call ``callback`` for steps of ``kind``: a class, ``MemoryStep`` for all of pagein's, or a union of classes.

        Raises ConfigurationError where ``kind`` is no class or ``callback`` cannot be called.
        """
        kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
        if not all(isinstance(member, type) for member in kinds):
            raise ConfigurationError(f"callbacks are registered for a class of steps, not {kind!r}")
        if not callable(callback):
            raise ConfigurationError(f"a callback is called with a step, and {callback!r} cannot be called")
        if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__):
            raise ConfigurationError(
                f"a callback is called within a call of the memory, and nothing awaits {callback!r}: pass a plain function, "
                "which may begin a task of its own"
            )
        for member in kinds:
            self._callbacks.setdefault(member, []).append(callback)

    def callback(self, step: object, **beside: Any) -> None:
        """Call the callbacks registered for the step. Those with one parameter get only the step, others ``beside`` too."""
        for kind in type(step).__mro__:
            # A copy, because a callback may register another; that one is called from the next step on.
            for callback in tuple(self._callbacks.get(kind, ())):
                if _takes_step_alone(callback):
                    callback(step)
                else:
                    callback(step, **beside)


def _takes_step_alone(callback: Callback) -> bool:
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return True  # some C functions have no signature
    return len(parameters) == 1 and all(parameter.kind is not parameter.VAR_POSITIONAL for parameter in parameters)
