"""Counts over the requests of one strategy, and the rates that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pagein.evaluation.needs import Faults, Needs
from pagein.evaluation.retrieval import Retrieval

CACHED_PRICE = 0.1
"""Price of a token that a provider's cache has, where any other input token costs 1."""


@dataclass(slots=True)
class NeedCounts:
    """Counts of needs and faults: identifiers, bare and grounded, and lines."""

    identifiers: int = 0
    bare: int = 0
    grounded: int = 0
    lines: int = 0
    missing_lines: int = 0

    def count(self, needs: Needs, missing: Faults) -> None:
        """Add the needs of one step, with its faults."""
        self.identifiers += len(needs.identifiers)
        self.bare += len(needs.identifiers & missing.bare)
        self.grounded += len(needs.identifiers & missing.grounded)
        self.lines += len(needs.lines)
        self.missing_lines += len(needs.lines & missing.lines)

    def add(self, other: NeedCounts) -> None:
        """Add other counts."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def met_share(self) -> float | None:
        """The share of needs met, with identifiers grounded; None without needs."""
        total = self.identifiers + self.lines
        return 1 - (self.grounded + self.missing_lines) / total if total else None

    @property
    def met_bare_share(self) -> float | None:
        """The share of needed identifiers in the request, grounded or not; None without needs."""
        return 1 - self.bare / self.identifiers if self.identifiers else None

    def counts(self) -> dict[str, float | None]:
        """The number of needs of each kind, and the shares met."""
        return {
            "identifiers": self.identifiers,
            "lines": self.lines,
            "met_bare": self.met_bare_share,
            "met": self.met_share,
        }

    def rates(self) -> dict[str, float | None]:
        """Faults per need: bare, grounded, lines."""
        return {
            "bare": _rate(self.bare, self.identifiers),
            "grounded": _rate(self.grounded, self.identifiers),
            "lines": _rate(self.missing_lines, self.lines),
        }


_SUMS = (
    "runs", "requests", "above", "over", "orphans", "illegal", "seconds", "results", "whole_results", "tokens_without",
    "tokens", "tokens_above", "price_above",
)  # fmt: skip


@dataclass(slots=True)
class Tally:
    """All counts over the requests of one strategy; tallies of several runs add up.

    The needs of a run that raised count as not met.
    """

    runs: int = 0
    requests: int = 0
    above: int = 0
    """Requests whose history exceeded the budget."""
    over: int = 0
    orphans: int = 0
    illegal: int = 0
    raised: tuple[str, ...] = ()
    tokens_without: int = 0
    """Tokens of the whole history at each request."""
    tokens: int = 0
    tokens_above: int = 0
    price_above: float = 0.0
    """Price of the input tokens of these requests: what the request before began with counts a tenth."""
    highest: int = 0
    results: int = 0
    whole_results: int = 0
    """Results of tools that the request behind them shows whole."""
    shares: list[float] = field(default_factory=list)
    shares_above: list[float] = field(default_factory=list)
    seconds: float = 0.0
    needs: NeedCounts = field(default_factory=NeedCounts)
    far: NeedCounts = field(default_factory=NeedCounts)
    handles: tuple[str, ...] = ()
    """Handles of everything out of the view."""
    retrieval: Retrieval | None = None

    def add_request(self, history: int, tokens: int, budget: int, share: float | None, cached: float = 0.0) -> None:
        """Add a request; ``share`` of the previous request is its prefix, and ``cached`` of its own text."""
        self.requests += 1
        self.tokens_without += history
        self.tokens += tokens
        self.highest = max(self.highest, tokens)
        self.over += tokens > budget
        if share is not None:
            self.shares.append(share)
        if history > budget:
            self.above += 1
            self.tokens_above += tokens
            self.price_above += tokens * (1 - (1 - CACHED_PRICE) * cached)
            if share is not None:
                self.shares_above.append(share)

    def add_needs(self, needs: Needs, missing: Faults, far: Needs) -> None:
        """Add the needs of one step, and its faults."""
        self.needs.count(needs, missing)
        self.far.count(far, missing)

    def add(self, other: Tally, where: str = "") -> None:
        """Add another run's tally; ``where`` names the run in its errors."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.highest = max(self.highest, other.highest)
        self.raised += tuple(f"{where}: {error}" if where else error for error in other.raised)
        self.shares += other.shares
        self.shares_above += other.shares_above
        self.needs.add(other.needs)
        self.far.add(other.far)
        if other.retrieval is not None:
            self.retrieval = other.retrieval if self.retrieval is None else self.retrieval + other.retrieval

    @property
    def prefix(self) -> float | None:
        """The mean share of each request that is a prefix of the next."""
        return _mean(self.shares)

    @property
    def prefix_above(self) -> float | None:
        """The same for requests whose history exceeds the budget."""
        return _mean(self.shares_above)

    @property
    def whole_share(self) -> float | None:
        """The share of the tools' results that are shown whole when the model first reads them."""
        return _rate(self.whole_results, self.results)

    @property
    def milliseconds(self) -> float | None:
        """Milliseconds a step: recording new messages and making the request."""
        return _rate(1000 * self.seconds, self.requests)

    def as_dict(self) -> dict[str, Any]:
        """The tally as JSON-safe values."""
        return {
            "runs": self.runs,
            "requests": self.requests,
            "requests_above_budget_history": self.above,
            "needs": self.needs.counts(),
            "faults": self.needs.rates(),
            "far_needs": self.far.counts(),
            "far_faults": self.far.rates(),
            "tokens_without": self.tokens_without,
            "tokens": self.tokens,
            "tokens_a_request_above": _rate(self.tokens_above, self.above),
            "price_a_request_above": _rate(self.price_above, self.above),
            "highest": self.highest,
            "over_budget": self.over,
            "orphans": self.orphans,
            "illegal": self.illegal,
            "raised": list(self.raised),
            "prefix_kept": self.prefix,
            "prefix_kept_above": self.prefix_above,
            "results_shown_whole": self.whole_share,
            "ms_a_step": self.milliseconds,
            "retrievable": None if self.retrieval is None else self.retrieval.as_dict(),
        }


def _rate(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
