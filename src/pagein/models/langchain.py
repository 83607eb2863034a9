"""Model made from any LangChain chat model, through ``invoke`` and ``ainvoke``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pagein.events.steps import Usage
from pagein.formats import format_named, validate
from pagein.models.base import SCHEMA_NAME, FinishReason, ModelRequest, ModelResponse
from pagein.models.deadlines import await_with_deadline, call_with_deadline
from pagein.models.environment import count_or_zero, resolve_window
from pagein.models.error_mapping import build_response, map_error
from pagein.models.errors import ModelRefused

_FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop", "end_turn": "stop", "stop_sequence": "stop", "STOP": "stop",
    "length": "length", "max_tokens": "length", "MAX_TOKENS": "length", "model_context_window_exceeded": "length",
}  # fmt: skip
_WITHHELD_REASONS = frozenset(
    {"content_filter", "refusal", "SAFETY", "PROHIBITED_CONTENT", "content_filtered", "guardrail_intervened"}
)


@dataclass(frozen=True, slots=True)
class LangChainModel:
    """A LangChain chat model, which brings its own key, endpoint and retries: set ``max_retries=0`` on it.

    ``limit`` is the integration's parameter for the longest answer (``max_tokens``; ``num_predict`` for Ollama); empty
    passes no limit. ``structured=True`` asks through ``with_structured_output`` where a request has a schema. ``name`` and
    ``window`` are looked up where they are not given.
    """

    chat: Any
    name: str = ""
    window: int = 0
    limit: str = "max_tokens"
    structured: bool = False

    def __post_init__(self) -> None:
        names = (getattr(self.chat, attribute, None) for attribute in ("model_name", "model", "model_id"))
        name = next((value for value in names if isinstance(value, str) and value), type(self.chat).__name__)
        object.__setattr__(self, "name", self.name or name)
        object.__setattr__(self, "window", resolve_window(self.name, self.window or None))

    def write(self, request: ModelRequest) -> ModelResponse:
        """Return the answer. Raises ModelError, or Illegal for messages no provider would accept."""
        messages, limits = self._render_request(request)
        try:
            chat, options = self._runnable(request, limits)
            answer = call_with_deadline(request.timeout, lambda: chat.invoke(messages, **options), name=self.name)
            return self._read_response(answer)
        except Exception as error:  # noqa: BLE001 - any provider's SDK
            fault = map_error(error, self.name)
        raise fault

    async def awrite(self, request: ModelRequest) -> ModelResponse:
        """Async variant of ``write``."""
        messages, limits = self._render_request(request)
        try:
            chat, options = self._runnable(request, limits)
            answer = await await_with_deadline(request.timeout, chat.ainvoke(messages, **options), name=self.name)
            return self._read_response(answer)
        except Exception as error:  # noqa: BLE001 - any provider's SDK
            fault = map_error(error, self.name)
        raise fault

    def _render_request(self, request: ModelRequest) -> tuple[list[dict[str, Any]], dict[str, int]]:
        # LangChain takes messages in OpenAI's format; each integration converts them for its provider.
        messages = format_named("openai").render(request.messages)["messages"]
        validate(messages, "openai")
        return messages, {self.limit: request.max_tokens} if self.limit else {}

    def _runnable(self, request: ModelRequest, limits: dict[str, int]) -> tuple[Any, dict[str, int]]:
        """The chat model to ask, and the options of the call: a structured output has its own."""
        if not self.structured or request.schema is None:
            return self.chat, limits
        schema = {"title": SCHEMA_NAME, **request.schema}
        return self.chat.with_structured_output(schema, include_raw=True, **limits), {}

    def _read_response(self, answer: Any) -> ModelResponse:
        parsed = None
        if isinstance(answer, dict) and "raw" in answer:
            answer, parsed = answer["raw"], answer.get("parsed")
        metadata = getattr(answer, "response_metadata", None) or {}
        reason = next(
            (metadata[key] for key in ("finish_reason", "stop_reason", "done_reason") if metadata.get(key)), "stop"
        )
        usage = _usage(getattr(answer, "usage_metadata", None))
        if reason in _WITHHELD_REASONS:
            raise ModelRefused(f"{self.name}: the provider withheld the answer ({reason})", usage=usage)
        # An integration that asks by a tool call has no text.
        text = _text(answer) or ("" if parsed is None else json.dumps(parsed))
        return build_response(text, _FINISH_REASONS.get(reason, "other"), usage, model=self.name, window=self.window)


def _text(answer: Any) -> str:
    content = getattr(answer, "content", answer)
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = (
        block if isinstance(block, str) else block.get("text") for block in blocks if isinstance(block, str | dict)
    )
    return "".join(text for text in texts if isinstance(text, str))


def _usage(reported: Any) -> Usage | None:
    if not isinstance(reported, Mapping) or not count_or_zero(reported.get("input_tokens")):
        return None
    details = reported.get("input_token_details")
    cached = details.get("cache_read") if isinstance(details, Mapping) else 0
    return Usage(reported["input_tokens"], count_or_zero(reported.get("output_tokens")), count_or_zero(cached))
