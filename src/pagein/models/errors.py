"""Errors of model calls. Keys are redacted from provider messages.

* ModelError                  a request to a model failed; nothing else changed
  + ModelUnavailable          no answer now, perhaps later: network, timeout, 429, 5xx, circuit open
  + ModelTruncated            the answer is incomplete
  + ModelEmpty                an answer without text
  + ModelOverflow             the request is longer than the window
  + ModelRefused              the provider rejects the request: key, name, parameters, content
  + ModelCancelled            the wait was cancelled
  + SpendLimit                the request might cost more than the run may spend
"""

from __future__ import annotations

from pagein.errors import PageinError
from pagein.events.steps import Usage


class ModelError(PageinError):
    """A request to a model failed. ``retryable`` is true if the same request may succeed later.

    ``usage`` is the attempt's cost, where the provider reported it; ``unknown_cost`` is true when the attempt may have
    cost an unknown amount.
    """

    retryable = False
    unknown_cost = False

    def __init__(self, message: str, *, usage: Usage | None = None) -> None:
        self.usage = usage
        super().__init__(message)


class ModelUnavailable(ModelError):
    """No answer now, perhaps later. ``status`` is the HTTP status, 0 without one; ``retry_after`` in seconds.

    ``unknown_cost`` without a status: the provider may have processed the request.
    """

    retryable = True

    def __init__(self, message: str, *, status: int = 0, retry_after: float | None = None) -> None:
        self.status, self.retry_after = status, retry_after
        self.unknown_cost = status == 0
        super().__init__(message)


class CircuitOpen(ModelUnavailable):
    """The model failed too often; the breaker stays open for ``retry_after`` seconds. Nothing was sent."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message, retry_after=retry_after)
        self.unknown_cost = False


class ModelTruncated(ModelError):
    """The answer is incomplete, as after a lost connection. ``text`` is the received part."""

    retryable = True
    unknown_cost = True

    def __init__(self, message: str, *, text: str = "", usage: Usage | None = None) -> None:
        self.text = text
        super().__init__(message, usage=usage)


class ModelEmpty(ModelError):
    """An answer without text. Retryable unless the finish reason is ``length``."""

    def __init__(self, message: str, *, finish: str = "stop", usage: Usage | None = None) -> None:
        self.finish = finish
        self.retryable = finish != "length"
        self.unknown_cost = usage is None
        super().__init__(message, usage=usage)


class ModelOverflow(ModelError):
    """The request is longer than the window. Send a shorter one: the same one would overflow again.

    ``window`` is the real window and ``requested`` the request's length, in tokens, where the provider reported them.
    """

    def __init__(
        self, message: str, *, window: int | None = None, requested: int | None = None, usage: Usage | None = None
    ) -> None:
        self.window, self.requested = window, requested
        super().__init__(message, usage=usage)


class ModelRefused(ModelError):
    """The provider rejects the request, now and later: key, model name, parameters, quota, content.

    ``status`` is the HTTP status, 0 without one.
    """

    def __init__(self, message: str, *, status: int = 0, usage: Usage | None = None) -> None:
        self.status = status
        super().__init__(message, usage=usage)


class ModelCancelled(ModelError):
    """The wait was cancelled. The provider may still be working."""

    unknown_cost = True


class SpendLimit(ModelError):
    """The request might cost more than the run may spend. Nothing was sent.

    ``spent`` and ``limit`` are in ``unit``: tokens, or the money the prices are in.
    """

    def __init__(self, *, spent: float, needed: float, limit: float, unit: str) -> None:
        self.spent, self.needed, self.limit, self.unit = spent, needed, limit, unit
        super().__init__(
            f"this request may cost {needed:.6g} {unit}; {spent:.6g} of {limit:.6g} are spent or reserved. "
            "Raise the limit, or ask for less."
        )
