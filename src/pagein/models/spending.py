"""Prices, and the spend limit of a run."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Annotated, Protocol

from pagein._common.validation import COUNT, CheckedFields, Constraint, check_arguments
from pagein.errors import ConfigurationError
from pagein.events.steps import Usage
from pagein.models.base import ModelRequest
from pagein.models.errors import SpendLimit
from pagein.tokens import TokenCounter
from pagein.tokens.counter import request_tokens
from pagein.tokens.windows import MODELS


@dataclass(frozen=True, slots=True)
class Price(CheckedFields):
    """Price of a million tokens, in any currency. Without ``cached``, cached input costs the same as other input."""

    input: Annotated[float, COUNT, "Money for a million input tokens."]
    output: Annotated[float, COUNT, "Money for a million output tokens."]
    cached: Annotated[float | None, COUNT, "Money for a million cached input tokens. Default: as other input."] = None

    def cost_of(self, usage: Usage) -> float:
        """Cost of a request with this usage."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input_tokens - usage.cached_tokens
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / 1e6


class SpendLimiter(Protocol):
    """What an attempt is charged to: a ``Spending``, or the account of a writer."""

    def reserve(self, max_usage: Usage) -> None:
        """Reserve the maximal cost. Raises SpendLimit beyond the limit."""
        ...

    def settle(self, max_usage: Usage, cost: Usage) -> None:
        """Replace the reservation by the real cost."""
        ...


class Spending(SpendLimiter):
    """A run's spend limit: at most ``tokens`` (input and output) and ``money``. Safe to share between threads.

    The maximal cost of a request is reserved before it is sent, so that concurrent requests cannot exceed the limit
    together; the real cost replaces the reservation. Without reported usage, the answer's text is counted.

    Raises ConfigurationError for a limit below 0, or money without a price.
    """

    def __init__(
        self,
        *,
        tokens: Annotated[int | None, Constraint(cap=10**12), "Maximum tokens a memory spends, in and out."] = None,
        money: Annotated[float | None, Constraint(cap=10**9), "Maximum money, in the currency of `price`."] = None,
        price: Price | None = None,
    ) -> None:
        check_arguments(Spending, {"tokens": tokens, "money": money})
        if money is not None and price is None:
            raise ConfigurationError("a limit in money needs a price: Spending(money=1.0, price=Price(0.15, 0.60))")
        self.limits: tuple[int | None, float | None] = (tokens, money)
        self._price = price or Price(0, 0)
        self._tokens, self._money = 0, 0.0
        self._reserved_tokens, self._reserved_money = 0, 0.0
        self._lock = threading.Lock()

    @property
    def tokens(self) -> int:
        """Tokens spent, without reservations."""
        return self._tokens

    @property
    def money(self) -> float:
        """Money spent, without reservations."""
        return self._money

    @property
    def tokens_left(self) -> int | None:
        """Tokens that may still be spent or reserved; None without a limit."""
        with self._lock:
            limit = self.limits[0]
            return None if limit is None else max(0, limit - self._tokens - self._reserved_tokens)

    def limit_tokens(self, tokens: int) -> None:
        """Set another limit of tokens."""
        with self._lock:
            self.limits = (tokens, self.limits[1])

    def reserve(self, max_usage: Usage, *, spare: int = 0) -> None:
        """Reserve the maximal cost of a request. Raises SpendLimit, and reserves nothing, beyond the limit.

        ``spare`` tokens must be left besides.
        """
        tokens, money = max_usage.input_tokens + max_usage.output_tokens, self._price.cost_of(max_usage)
        with self._lock:
            totals = (self._tokens + self._reserved_tokens, self._money + self._reserved_money)
            for spent, needed, limit, unit in zip(
                totals, (tokens, money), self.limits, ("tokens", "money"), strict=True
            ):
                if limit is not None and spent + needed + (spare if unit == "tokens" else 0) > limit:
                    raise SpendLimit(spent=spent, needed=needed, limit=limit, unit=unit)
            self._reserved_tokens += tokens
            self._reserved_money += money

    def settle(self, max_usage: Usage, cost: Usage) -> None:
        with self._lock:
            self._reserved_tokens -= max_usage.input_tokens + max_usage.output_tokens
            self._reserved_money -= self._price.cost_of(max_usage)
            self._tokens += cost.input_tokens + cost.output_tokens
            self._money += self._price.cost_of(cost)


def counted_usage(max_usage: Usage, answer: str, model: str, counter: TokenCounter | None = None) -> Usage:
    """Usage of an answer whose provider reported none: the request as reserved, and the answer as counted."""
    return Usage(max_usage.input_tokens, (counter or MODELS.get(model).counter).text(answer))


def max_usage_of(request: ModelRequest, model: str, counter: TokenCounter | None = None) -> Usage:
    """Maximal usage of a request: its messages as counted, and ``max_tokens`` of answer."""
    return Usage(request_tokens(request.messages, counter or MODELS.get(model).counter), request.max_tokens)
