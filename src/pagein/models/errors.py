"""What can go wrong between us and a model that writes. No text of these holds a key: what a provider said is scrubbed.

* ModelError                  a model was asked and there is no answer; nothing else changed
  + ModelUnavailable          no answer now, perhaps later: network, timeout, 429, 5xx, circuit open
  + ModelTruncated            the answer broke off before its end
  + ModelEmpty                an answer without text
  + ModelOverflow             the request is longer than the window
  + ModelRefused              the provider will not answer this: key, name, parameters, content
  + ModelCancelled            we stopped waiting because we were told to
  + SpendLimit                asking might cost more than the run may spend
"""

from __future__ import annotations

from pagein.errors import PageinError
from pagein.events.steps import Usage


class ModelError(PageinError):
    """A model was asked and there is no answer. ``heals`` says whether the same ask may succeed later.

    ``usage`` is what the attempt cost, where the provider said so; ``unknown_cost`` is true when it may have cost
    and nobody knows how much.
    """

    heals = False
    unknown_cost = False

    def __init__(self, message: str, *, usage: Usage | None = None) -> None:
        self.usage = usage
        super().__init__(message)


class ModelUnavailable(ModelError):
    """No answer now, perhaps later. ``status`` is the HTTP status, 0 without one; ``retry_after`` in seconds.

    ``unknown_cost`` when the request went out and no status came back: the provider may have worked on it.
    """

    heals = True

    def __init__(self, message: str, *, status: int = 0, retry_after: float | None = None) -> None:
        self.status, self.retry_after = status, retry_after
        self.unknown_cost = status == 0
        super().__init__(message)


class CircuitOpen(ModelUnavailable):
    """The model failed too often and is left alone for ``retry_after`` seconds. Nothing was sent."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message, retry_after=retry_after)
        self.unknown_cost = False


class ModelTruncated(ModelError):
    """The answer broke off before its end, as a connection that was cut does. ``text`` is what had come."""

    heals = True
    unknown_cost = True

    def __init__(self, message: str, *, text: str = "", usage: Usage | None = None) -> None:
        self.text = text
        super().__init__(message, usage=usage)


class ModelEmpty(ModelError):
    """An answer without text. ``heals`` unless the answer's length was used up, which it would be again."""

    def __init__(self, message: str, *, finish: str = "stop", usage: Usage | None = None) -> None:
        self.finish = finish
        self.heals = finish != "length"
        self.unknown_cost = usage is None
        super().__init__(message, usage=usage)


class ModelOverflow(ModelError):
    """The request is longer than the window: send a shorter one, the same one would overflow again.

    ``window`` is the real one in tokens, where the provider said so; ``asked`` what the request had, likewise.
    """

    def __init__(
        self,
        message: str,
        *,
        window: int | None = None,
        asked: int | None = None,
        usage: Usage | None = None,
    ) -> None:
        self.window, self.asked = window, asked
        super().__init__(message, usage=usage)


class ModelRefused(ModelError):
    """The provider will not answer this ask, now or later: key, model name, parameters, quota, content.

    ``status`` is the HTTP status, 0 without one.
    """

    def __init__(self, message: str, *, status: int = 0, usage: Usage | None = None) -> None:
        self.status = status
        super().__init__(message, usage=usage)


class ModelCancelled(ModelError):
    """We stopped waiting because we were told to. The provider may still be at work."""

    unknown_cost = True


class SpendLimit(ModelError):
    """Asking might cost more than the run may spend. Nothing was sent.

    ``spent`` and ``limit`` are in ``unit``: tokens, or the money the prices are in.
    """

    def __init__(self, *, spent: float, needed: float, limit: float, unit: str) -> None:
        self.spent, self.needed, self.limit, self.unit = spent, needed, limit, unit
        super().__init__(
            f"this ask may cost {needed:.6g} {unit}; {spent:.6g} of {limit:.6g} are spent or promised. "
            "Raise the limit, or ask for less."
        )
