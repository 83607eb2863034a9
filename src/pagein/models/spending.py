"""What a run may spend on models that write, and the account of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from pagein.errors import ConfigurationError
from pagein.events.steps import Usage
from pagein.models.base import Ask
from pagein.models.errors import SpendLimit
from pagein.tokens import TokenCounter
from pagein.tokens.requests import request_tokens
from pagein.tokens.windows import MODELS


@dataclass(frozen=True, slots=True)
class Price:
    """Money for a million tokens, in any one currency. Without ``cached``, cached input costs as other input."""

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        """What a request with that usage costs."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input_tokens - usage.cached_tokens
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / 1e6


class Spending:
    """One run's account: at most ``tokens`` (input and output), at most ``money``. Safe to share between threads.

    What an ask may cost at most is promised before it is sent, so that asks at the same time cannot pass the limit
    together; what it did cost takes the promise's place. A usage that is not reported is taken at the promise.

    Raises ConfigurationError for a limit below 0, or money without a price.
    """

    def __init__(
        self, *, tokens: int | None = None, money: float | None = None, price: Price | None = None
    ) -> None:
        if (tokens is not None and tokens < 0) or (money is not None and not money >= 0):
            raise ConfigurationError(f"a spend limit is 0 or more; it is tokens={tokens}, money={money}")
        if money is not None and price is None:
            raise ConfigurationError(
                "a limit in money needs a price: Spending(money=1.0, price=Price(0.15, 0.60))"
            )
        self.limits = (tokens, money)
        self._price = price or Price(0, 0)
        self._tokens, self._money = 0, 0.0
        self._promised_tokens, self._promised_money = 0, 0.0
        self._lock = threading.Lock()

    @property
    def tokens(self) -> int:
        """Tokens spent, without what is only promised."""
        return self._tokens

    @property
    def money(self) -> float:
        """Money spent, without what is only promised."""
        return self._money

    def promise(self, most: Usage) -> None:
        """Sets aside what an ask may cost at most. Raises SpendLimit, and sets nothing aside, when it is too much."""
        tokens, money = most.input_tokens + most.output_tokens, self._price.of(most)
        with self._lock:
            taken = (self._tokens + self._promised_tokens, self._money + self._promised_money)
            for spent, needed, limit, unit in zip(
                taken, (tokens, money), self.limits, ("tokens", "money"), strict=True
            ):
                if limit is not None and spent + needed > limit:
                    raise SpendLimit(spent=spent, needed=needed, limit=limit, unit=unit)
            self._promised_tokens += tokens
            self._promised_money += money

    def settle(self, most: Usage, cost: Usage) -> None:
        """Puts what an ask did cost in the place of its promise."""
        with self._lock:
            self._promised_tokens -= most.input_tokens + most.output_tokens
            self._promised_money -= self._price.of(most)
            self._tokens += cost.input_tokens + cost.output_tokens
            self._money += self._price.of(cost)


def most_of(ask: Ask, model: str, counter: TokenCounter | None = None) -> Usage:
    """What an ask may cost at most: its request as counted, and the whole of its answer."""
    return Usage(request_tokens(ask.messages, counter or MODELS.get(model).counter), ask.max_tokens)
