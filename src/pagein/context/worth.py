"""The worth of tokens in a view, at a provider's prices: from which expected use on they are shown, and when to compact."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from pagein.context.compaction.base import Plan
from pagein.context.view.body import preview
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.tokens.prices import Prices

NEED_WORTH = 1_150
"""Tokens, at the price of input, that it costs to miss a need: the agent looks it up with a request of its own."""

KEPT_REQUESTS = 4
"""Requests, beside the first, that show a page-in or an extract until the next compaction, in the middle."""

EXTRACT_SHARE, SMALL_LIMIT = 0.5, 4_000
"""Worth of a token from which on an extract shows it, relative to one in a page-in, in a view of at most so many tokens:
it is also needed later than the chances look ahead. In a larger view an extract stands for more requests, any of which
may need it: there the share falls with the square root of the limit. Decisions 0046 and 0052 have the figures."""


def page_in_worth(prices: Prices) -> float:
    """Return the expected needs met per token from which a page-in shows a line or a name, at these prices."""
    return (1 + KEPT_REQUESTS * prices.cached) / NEED_WORTH


def extract_worth(prices: Prices, limit: int) -> float:
    """Return the expected needs met per token from which an extract shows a line or a name, in a view of ``limit`` tokens."""
    return EXTRACT_SHARE * sqrt(min(1.0, SMALL_LIMIT / limit)) * page_in_worth(prices)


def pays_sooner(view: View, plan: Plan, page_ins: Sequence[ViewEntry]) -> bool:
    """True if the plan pays now, where the page-ins have no space any more, and not when the run alone is too large.

    If the page-ins leave instead, what stands behind them is written anew, and the compaction comes a little later: by
    as much of its cost as they are of the tokens that it frees.
    """
    after = preview(view, plan.replacements)
    freed = view.tokens - after.tokens
    behind = sum(entry.tokens for entry in view.run if entry.first >= page_ins[0].first)
    written = sum(entry.tokens for entry in after.run if entry.first >= plan.replacements[0].first)
    return freed > 0 and behind * freed > written * sum(entry.tokens for entry in page_ins)


def pays_where_lapsed(view: View, plan: Plan) -> bool:
    """True if the plan pays now that the cache has lapsed: it is due soon, and costs nothing now.

    The request is written anew in any case, so a compaction saves what it frees at once, and what the next one would
    write again. It comes earlier by what the view still lacks to its limit: where that is less than it frees, it pays.
    """
    freed = view.tokens - preview(view, plan.replacements).tokens
    return freed > view.limit - view.tokens
