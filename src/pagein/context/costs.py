"""The cost of a run's requests at the prices of a provider, and what each compaction and page-in cost and saved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class CostLine:
    """The cost of one compaction or page-in so far, and what it saved; both in tokens at the price of input.

    ``request`` is the number of the first request that had it. ``tokens`` left the view with a compaction, or stand in
    the page-in. ``rewritten`` are the tokens behind the break that the provider's cache had. A page-in saves
    ``worth.NEED_WORTH`` for each action that named something which it alone showed.
    """

    kind: Literal["compaction", "page-in"]
    request: int
    handle: str
    why: str
    tokens: int
    rewritten: int
    cost: float
    saved: float

    @property
    def net(self) -> float:
        """The saving less the cost."""
        return self.saved - self.cost


@dataclass(frozen=True, slots=True)
class ProviderCost:
    """The usage that a provider reported for the ``requests`` of which it is known, in its tokens, and its price."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_written: int = 0
    price: float = 0.0

    @property
    def cached_share(self) -> float:
        """The share of the input that was read from the cache."""
        return self.cache_read / self.input if self.input else 0.0


@dataclass(frozen=True, slots=True)
class WriterCost:
    """The tokens that a model read and wrote for a ``purpose``: ``summaries``, ``facts`` or ``ratings``; and their price."""

    purpose: str
    input: int
    output: int
    price: float


@dataclass(frozen=True, slots=True)
class RunCost:
    """The cost of a run's requests, by the price model: prices are tokens at the price of input.

    Of the ``tokens``, ``cached`` stood at the beginning of the request before, and the cache still had them; the rest was
    written. ``output`` is what was answered, as far as the usage is known. ``price_whole`` is the price of the same
    requests with everything in them. ``writers`` are the models that summarise, extract and rate; ``total`` is the price with
    theirs, as if no cache had what they read. ``shed`` tokens left the view with compactions; ``rewritten`` tokens were in the
    cache and were sent anew, because the prefix broke before them. ``warning`` says where the provider's cache tells
    otherwise.
    """

    requests: int = 0
    tokens: int = 0
    cached: int = 0
    output: int = 0
    price: float = 0.0
    price_whole: float = 0.0
    shed: int = 0
    rewritten: int = 0
    lines: tuple[CostLine, ...] = ()
    provider: ProviderCost = ProviderCost()
    warning: str = ""
    writers: tuple[WriterCost, ...] = ()

    @property
    def total(self) -> float:
        """The price of the requests and of what writers read and wrote."""
        return self.price + sum(writer.price for writer in self.writers)

    @property
    def written(self) -> int:
        """The tokens that the cache did not have."""
        return self.tokens - self.cached

    @property
    def cached_share(self) -> float:
        """The share of the tokens that the cache had."""
        return self.cached / self.tokens if self.tokens else 0.0

    @property
    def net(self) -> float:
        """The total saved against the same requests with everything in them, for which no model writes."""
        return self.price_whole - self.total

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        count = f"{self.requests:,} request{'' if self.requests == 1 else 's'}"
        yield (
            f"{count}: {self.tokens:,} tokens, {self.cached_share:.0%} cached; price {self.price:,.0f}, "
            f"or {self.price_whole:,.0f} with the whole history"
        )
        for writer in self.writers:
            yield f"{writer.purpose}: {writer.input:,} tokens read, {writer.output:,} written; price {writer.price:,.0f}"
        if self.writers:
            yield f"total price {self.total:,.0f}"
        yield f"{self.shed:,} tokens left the view, {self.rewritten:,} were sent again uncached; net saving {self.net:+,.0f}"
        if self.provider.requests:
            used = self.provider
            yield (
                f"the provider, of {used.requests:,}: {used.input:,} tokens, {used.cached_share:.0%} cached, "
                f"{used.output:,} of output; price {used.price:,.0f}"
            )
        if self.warning:
            yield f"warning: {self.warning}"
