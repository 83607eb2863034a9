"""The model that writes summaries and facts: official SDKs behind one small protocol.

contract       an ask, a reply, ``Model`` and ``AsyncModel``
errors         what can go wrong, as a tree
named          a model by its name: ``model_named("openai:gpt-4o-mini")``; ``as_model`` for whatever a user has
openai_chat    any endpoint that speaks chat completions
anthropic      Claude
langchain      any LangChain chat model
callables      any callable from text to text
patience       retries, a circuit breaker, a spend limit, around any of them
overflow       whether an error says that the request was too long, and for which window

    model = Patient(model_named("openai:gpt-4o-mini"), spending=Spending(tokens=500_000))
    model.write(Ask.of("Summarise: ...", max_tokens=800, timeout=30)).text
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pagein.models.base import Ask, AsyncModel, Finish, Model, Reply
from pagein.models.errors import (
    CircuitOpen,
    ModelCancelled,
    ModelEmpty,
    ModelError,
    ModelOverflow,
    ModelRefused,
    ModelTruncated,
    ModelUnavailable,
    SpendLimit,
)
from pagein.models.overflow import Overflow, overflow_in, overflowed_silently
from pagein.models.registry import as_model, model_named

if TYPE_CHECKING:
    from pagein.models.retrying import Breaker, Patient, Waits
    from pagein.models.spending import Price, Spending

__all__ = [
    "Ask",
    "AsyncModel",
    "Breaker",
    "CircuitOpen",
    "Finish",
    "Model",
    "ModelCancelled",
    "ModelEmpty",
    "ModelError",
    "ModelOverflow",
    "ModelRefused",
    "ModelTruncated",
    "ModelUnavailable",
    "Overflow",
    "Patient",
    "Price",
    "Reply",
    "SpendLimit",
    "Spending",
    "Waits",
    "as_model",
    "model_named",
    "overflow_in",
    "overflowed_silently",
]


def __getattr__(name: str) -> object:
    """What asyncio and the counters come with, loaded when it is asked for."""
    if name in ("Breaker", "Patient", "Waits"):
        from pagein.models import retrying as patience  # noqa: PLC0415

        return getattr(patience, name)
    if name in ("Price", "Spending"):
        from pagein.models import spending  # noqa: PLC0415

        return getattr(spending, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
