"""Short and long term: the newest steps in three quarters of the room, a summary of the rest in one (SuperAGI)."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.context.compaction.base import Plan, plan_of
from pagein.context.compaction.episodes import folds, is_summary, legal_stop
from pagein.context.compaction.extracts import boundary, stays, summaries
from pagein.context.view.view import View
from pagein.errors import ConfigurationError
from pagein.events.handles import step_handle
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class ShortLong:
    """SuperAGI's Agent Summary: of the limit less what stays, ``short`` for the newest steps, ``long`` for a summary.

    The summary covers exactly what left the short term, and nothing happens while nothing has to leave. What leaves is
    taken down to the low mark's share of the short term, so that not every step breaks the prefix. Raises
    ConfigurationError where the shares are not shares.
    """

    short: float = 0.75
    long: float = 0.25
    name: str = "short_long"

    def __post_init__(self) -> None:
        if self.short <= 0 or self.long < 0 or self.short + self.long > 1:
            raise ConfigurationError(
                f"shares must be positive and at most 1 together, not {self.short} and {self.long}"
            )

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan that folds what the short term cannot hold, or none."""
        room = view.limit - sum(each.tokens for each in view.entries if stays(each))
        stop = legal_stop(view, boundary(view, room * self.short))
        if all(map(is_summary, folds(view, stop))):
            return None
        stop = legal_stop(view, boundary(view, room * self.short * budget.low_share))
        found = summaries(view, stop, int(room * self.long))
        return plan_of(found, self.name, f"left the short term, older than {step_handle(stop)}")
