"""Options that several commands share: their types, help texts and checks."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from pagein.context.compaction.registry import POLICIES
from pagein.errors import BudgetError, ConfigurationError
from pagein.memory.options import PAGE_IN_MAX_SHARE
from pagein.tokens import TokenCounter
from pagein.tokens.encodings import Encoding
from pagein.tokens.windows import counter_for

BudgetTokens = Annotated[int, Parameter(help="Maximum tokens of a request.")]
PolicyName = Annotated[str, Parameter(help=f"Compaction policy: {', '.join(POLICIES)}.")]
PageIn = Annotated[
    float, Parameter(help="Share of the budget for steps that are inserted again automatically. 0: off.")
]
ModelName = Annotated[str | None, Parameter(help="Count tokens for this model. Default: o200k_base.")]
SessionName = Annotated[
    str | None, Parameter(help="Session to use. Default: the configuration's, or the only one there is.")
]
SummarizerName = Annotated[
    str | None,
    Parameter(
        help="Model that writes summaries, such as openai:gpt-4o-mini or ollama:qwen3; scripted: a stand-in that is "
        "no model. Default: summaries are extracted by rules."
    ),
]
LimitRuns = Annotated[int | None, Parameter(help="Read only the first runs of each file.")]
AsJson = Annotated[bool, Parameter(help="Print JSON.")]


def check_budget(budget: int) -> None:
    """Raise BudgetError for a budget below 1 token."""
    if budget < 1:
        raise BudgetError(f"--budget must be 1 token or more, not {budget}")


def check_page_in(share: float) -> None:
    """Raise ConfigurationError for a share out of range."""
    if not 0 <= share <= PAGE_IN_MAX_SHARE:
        raise ConfigurationError(f"--page-in must be from 0 to {PAGE_IN_MAX_SHARE}, not {share}")


def resolve_counter(model: str | None) -> TokenCounter:
    """The token counter of a model; without one, the default of every memory."""
    return counter_for(model) if model else Encoding("o200k_base")


def resolve_summarizer(name: str | None) -> Any:
    """The model of that name, the scripted stand-in, or None. Raises ConfigurationError."""
    if name is None:
        return None
    if name == "scripted":
        from pagein.testing.scripted_writer import ScriptedModel  # noqa: PLC0415 - for this name only

        return ScriptedModel()
    from pagein.models import as_model  # noqa: PLC0415 - SDKs load where a model is used

    return as_model(name)
