"""The prices that providers charge for the tokens of a request, relative to input that no cache has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated

from pagein._common.validation import Constraint, check_fields
from pagein.errors import BudgetError, ConfigurationError

MAX_PRICE = 1_000


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a provider's tokens, where a token of input that no cache has costs 1.

    ``cached`` is the price of a token that the provider's cache has, ``written`` of one that is written to it, ``output``
    of one of the answer. A cache keeps a prefix of ``minimum`` tokens and more, for ``lifetime`` seconds since its last use.
    Without a cache ``cached`` is 1. Raises BudgetError for a value out of its range.
    """

    cached: Annotated[float, Constraint(most=1), "Price of a token that the cache has."] = 0.1
    written: Annotated[float, Constraint(most=MAX_PRICE), "Price of a token that is written to the cache."] = 1.0
    output: Annotated[float, Constraint(most=MAX_PRICE), "Price of a token of the answer."] = 5.0
    minimum: Annotated[int, Constraint(most=1_000_000), "Tokens from which on a prefix is cached."] = 1_024
    lifetime: Annotated[float, Constraint(most=604_800), "Seconds after which an unused prefix leaves the cache."] = (
        300.0
    )

    def __post_init__(self) -> None:
        check_fields(self, BudgetError)

    def cached_tokens(self, prefix: int, seconds: float = 0.0, model: str = "") -> int:
        """Return the tokens of a prefix that the cache has, so many seconds after its last use: all of them, or none.

        >>> Prices().cached_tokens(3_000), Prices().cached_tokens(3_000, seconds=600)
        (3000, 0)
        >>> Prices().cached_tokens(3_000, model="claude-opus-4-6")  # it caches 4,096 tokens and more
        0
        """
        minimum = max(self.minimum, cache_minimum(model))
        return prefix if prefix >= minimum and seconds < self.lifetime else 0

    def price(self, tokens: int, cached: int, output: int = 0) -> float:
        """Return the price of a request: its tokens, how many of them the request before began with, and its answer's.

        >>> Prices().price(8_000, 6_000)
        2600.0
        """
        cached = self.cached_tokens(cached)
        return cached * self.cached + (tokens - cached) * self.written + output * self.output


PRICES: Mapping[str, Prices] = MappingProxyType(
    {
        "default": Prices(),
        "openai": Prices(output=8.0),
        "anthropic": Prices(written=1.25),
        "gemini": Prices(output=8.0, minimum=2_048),
        "none": Prices(cached=1.0, minimum=0, lifetime=0.0),
    }
)
"""Prices by name, as the providers' price lists had them in November 2026; ``none`` is for a provider without a cache."""


CACHE_MINIMUMS: tuple[tuple[str, int], ...] = (
    (r"claude-(opus-4[-.][56]|haiku-4[-.]5)(?!\d)", 4_096),
    (r"claude-(opus-4[-.]7|mythos-preview|3[-.]5-haiku|3-haiku|haiku-3)", 2_048),
    (r"claude-(opus|fable|mythos)-5", 512),
    (r"gemini-[3-9]", 4_096),
    (r"gemini-2", 2_048),
)
"""Tokens from which on the cache of a model keeps a prefix: by what its name contains. Anthropic's
page on prompt caching (platform.claude.com/docs/en/build-with-claude/prompt-caching, and the same table in its repository
anthropics/skills, skills/claude-api/shared/prompt-caching.md) and Google's on context caching, as of November 2026."""


@lru_cache(maxsize=256)
def cache_minimum(model: str) -> int:
    """Return the tokens from which on the cache of a model keeps a prefix; 0 for one that is not in the table."""
    return next((tokens for pattern, tokens in CACHE_MINIMUMS if re.search(pattern, model)), 0)


def prices_named(prices: Prices | str) -> Prices:
    """Return the prices of this name, or these. Raises ConfigurationError for an unknown name."""
    if isinstance(prices, Prices):
        return prices
    known = PRICES.get(prices)
    if known is None:
        raise ConfigurationError(
            f"prices must be one of {', '.join(PRICES)}, or pagein.tokens.Prices(...), not {prices!r}"
        )
    return known
