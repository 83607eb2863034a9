"""Short and long term: the newest steps in three quarters of the room, a summary of the rest in one (SuperAGI)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pagein._common.validation import ANY_SHARE, POSITIVE_SHARE, check_fields
from pagein.context.compaction import episodes
from pagein.context.compaction.base import Plan, make_plan
from pagein.context.view.view import View
from pagein.errors import ConfigurationError
from pagein.events.handles import step_handle
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class ShortLong:
    """SuperAGI's Agent Summary: ``short`` of the room for the newest steps, ``long`` for a summary of the rest.

    The room is the limit less the protected entries. The summary covers exactly the steps that left the short term. These
    leave down to the low mark's share of it, so that not every step breaks the prefix. Raises ConfigurationError for
    shares that are not positive or above 1 together.
    """

    short: Annotated[float, POSITIVE_SHARE, "Share for the newest steps. With `long`: at most 1."] = 0.75
    long: Annotated[float, ANY_SHARE, "Share for the summary."] = 0.25
    name: str = "short_long"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.short + self.long > 1:
            raise ConfigurationError(f"shares are at most 1 together, not {self.short} and {self.long}")

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan a summary of the steps that exceed the short term, or None."""
        room = view.limit - episodes.protected_tokens(view)
        stop = episodes.legal_stop(view, episodes.boundary(view, room * self.short))
        if all(map(episodes.is_summary, episodes.foldable_stretches(view, stop))):
            return None
        stop = episodes.legal_stop(view, episodes.boundary(view, room * self.short * budget.low_share))
        replacements = episodes.summarize_before(view, stop, int(room * self.long))
        return make_plan(replacements, self.name, f"left the short term, older than {step_handle(stop)}")
