"""The options that several commands share: their types, and what ``--help`` says of them."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from pagein.context.compaction.registry import POLICIES
from pagein.errors import BudgetError, ConfigurationError
from pagein.memory.options import MOST_SHARE
from pagein.tokens import TokenCounter
from pagein.tokens.encodings import Encoding
from pagein.tokens.windows import counter_for

BudgetTokens = Annotated[int, Parameter(help="Tokens a request may have.")]
PolicyName = Annotated[str, Parameter(help=f"What leaves, by a policy's name: {', '.join(POLICIES)}.")]
PageIn = Annotated[
    float, Parameter(help="Share of the budget for what left the view and comes back by itself; 0 for none.")
]
FormatName = Annotated[str, Parameter(help="How requests are spelled: openai or anthropic.")]
ModelName = Annotated[
    str | None, Parameter(help="Count tokens for this model; without it exactly, in o200k_base.")
]
SessionName = Annotated[
    str | None, Parameter(help="The session to look at; may be left out where there is one.")
]
LimitRuns = Annotated[int | None, Parameter(help="Read only the first runs of each file.")]
AsJson = Annotated[bool, Parameter(help="Print JSON.", show_default=False)]


def check_budget(budget: int) -> None:
    """Raises BudgetError for a budget that cannot be one."""
    if budget < 1:
        raise BudgetError(f"--budget must be 1 token or more, not {budget}")


def check_page_in(share: float) -> None:
    """Raises ConfigurationError for a share of the budget that cannot be one."""
    if not 0 <= share <= MOST_SHARE:
        raise ConfigurationError(f"--page-in must be from 0 to {MOST_SHARE}, not {share}")


def counter_of(model: str | None) -> TokenCounter:
    """The counter for a model; without one, the default of every memory."""
    return counter_for(model) if model else Encoding("o200k_base")
