"""What was counted over the requests of one strategy, and the rates that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pagein.evaluation.needs import Faults, Needs
from pagein.evaluation.retrieval import Retrieval


@dataclass(slots=True)
class Missed:
    """Needs, and how many of them were faults: identifiers bare and grounded, and lines."""

    identifiers: int = 0
    bare: int = 0
    grounded: int = 0
    lines: int = 0
    lines_missed: int = 0

    def count(self, needs: Needs, lacking: Faults) -> None:
        """Add the needs of one step, of which those in ``lacking`` were not met."""
        self.identifiers += len(needs.identifiers)
        self.bare += len(needs.identifiers & lacking.bare)
        self.grounded += len(needs.identifiers & lacking.grounded)
        self.lines += len(needs.lines)
        self.lines_missed += len(needs.lines & lacking.lines)

    def add(self, other: Missed) -> None:
        """Add what was counted elsewhere."""
        self.identifiers += other.identifiers
        self.bare += other.bare
        self.grounded += other.grounded
        self.lines += other.lines
        self.lines_missed += other.lines_missed

    @property
    def met(self) -> float | None:
        """The share of all needs that were met, identifiers grounded; None where there were no needs."""
        total = self.identifiers + self.lines
        return 1 - (self.grounded + self.lines_missed) / total if total else None

    @property
    def met_bare(self) -> float | None:
        """The share of the identifiers needed that were there, grounded or not; None where none was needed."""
        return 1 - self.bare / self.identifiers if self.identifiers else None

    def counts(self) -> dict[str, float | None]:
        """How many needs there were of each kind, and which share of all was met."""
        return {
            "identifiers": self.identifiers,
            "lines": self.lines,
            "met_bare": self.met_bare,
            "met": self.met,
        }

    def rates(self) -> dict[str, float | None]:
        """Faults a need: bare, grounded, lines."""
        return {
            "bare": _rate(self.bare, self.identifiers),
            "grounded": _rate(self.grounded, self.identifiers),
            "lines": _rate(self.lines_missed, self.lines),
        }


@dataclass(slots=True)
class Tally:
    """Everything counted over the requests of one strategy; tallies of several runs add up.

    Of a run that raised the needs still count, and are not met.
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
    """The history of each request, all of it."""
    tokens: int = 0
    tokens_above: int = 0
    highest: int = 0
    shares: list[float] = field(default_factory=list)
    shares_above: list[float] = field(default_factory=list)
    seconds: float = 0.0
    needs: Missed = field(default_factory=Missed)
    far: Missed = field(default_factory=Missed)
    handles: tuple[str, ...] = ()
    """Under which something left the view."""
    retrieval: Retrieval | None = None

    def requested(self, history: int, tokens: int, budget: int, share: float | None) -> None:
        """Add a request of so many tokens; ``share`` of the one before is its prefix."""
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
            if share is not None:
                self.shares_above.append(share)

    def needed(self, needs: Needs, lacking: Faults, far: Needs) -> None:
        """Add what one step needed, and what of it was missing."""
        self.needs.count(needs, lacking)
        self.far.count(far, lacking)

    def add(self, other: Tally, where: str = "") -> None:
        """Add another run's tally; ``where`` says which, should it have raised."""
        for name in ("runs", "requests", "above", "over", "orphans", "illegal", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("tokens_without", "tokens", "tokens_above"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.highest = max(self.highest, other.highest)
        self.raised += tuple(f"{where}: {each}" if where else each for each in other.raised)
        self.shares += other.shares
        self.shares_above += other.shares_above
        self.needs.add(other.needs)
        self.far.add(other.far)
        if other.retrieval is not None:
            self.retrieval = other.retrieval if self.retrieval is None else self.retrieval + other.retrieval

    @property
    def prefix(self) -> float | None:
        """The share of each request that is a prefix of the next, on average."""
        return _mean(self.shares)

    @property
    def prefix_above(self) -> float | None:
        """The same for requests whose history exceeds the budget."""
        return _mean(self.shares_above)

    @property
    def milliseconds(self) -> float | None:
        """Milliseconds a step took: what is new taken in, and the request made."""
        return _rate(1000 * self.seconds, self.requests)

    def as_dict(self) -> dict[str, Any]:
        """The tally as JSON-safe values."""
        kept = self.retrieval
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
            "highest": self.highest,
            "over_budget": self.over,
            "orphans": self.orphans,
            "illegal": self.illegal,
            "raised": list(self.raised),
            "prefix_kept": self.prefix,
            "prefix_kept_above": self.prefix_above,
            "ms_a_step": self.milliseconds,
            "retrievable": None
            if kept is None
            else {"ok": kept.ok, "said": kept.said, "handles": kept.handles, "lost": list(kept.lost)},
        }


def _rate(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
