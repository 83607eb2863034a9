"""Models that write summaries and facts: official SDKs behind one small protocol.

base           ModelRequest, ModelResponse, and the protocols Model and AsyncModel
errors         the error tree
registry       models by name, ``model_named("openai:gpt-4o-mini")``; ``as_model`` converts other objects
openai_chat    any endpoint with OpenAI's chat completions API
anthropic      Claude
langchain      any LangChain chat model
callables      any callable from text to text
retrying       retries, a circuit breaker and a spend limit around any model
overflow       detection of context overflow in an error, with the window it names

    model = RetryingModel(model_named("openai:gpt-4o-mini"), spending=Spending(tokens=500_000))
    model.write(ModelRequest.from_text("Summarise: ...", max_tokens=800, timeout=30)).text
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes
from pagein.models.base import AsyncModel, FinishReason, Model, ModelRequest, ModelResponse
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
from pagein.models.overflow import Overflow, detect_overflow, is_silent_overflow
from pagein.models.registry import as_model, model_named

if TYPE_CHECKING:
    from pagein.models.retrying import Breaker, RetryingModel, RetryPolicy
    from pagein.models.spending import Price, Spending

__all__ = [
    "AsyncModel",
    "Breaker",
    "CircuitOpen",
    "FinishReason",
    "Model",
    "ModelCancelled",
    "ModelEmpty",
    "ModelError",
    "ModelOverflow",
    "ModelRefused",
    "ModelRequest",
    "ModelResponse",
    "ModelTruncated",
    "ModelUnavailable",
    "Overflow",
    "Price",
    "RetryPolicy",
    "RetryingModel",
    "SpendLimit",
    "Spending",
    "as_model",
    "detect_overflow",
    "is_silent_overflow",
    "model_named",
]

# asyncio and the token counters load with these.
__getattr__ = lazy_attributes(
    __name__,
    {
        **dict.fromkeys(("Breaker", "RetryPolicy", "RetryingModel"), "pagein.models.retrying"),
        **dict.fromkeys(("Price", "Spending"), "pagein.models.spending"),
    },
)
