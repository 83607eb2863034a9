"""Claude, through Anthropic's messages API or a server that speaks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pagein.events.steps import Usage
from pagein.formats import format_named, validate
from pagein.models.base import FinishReason, ModelRequest, ModelResponse
from pagein.models.environment import count_or_zero, header_names
from pagein.models.error_mapping import build_response
from pagein.models.errors import ModelRefused
from pagein.models.sdk import PartialResponse, SdkModel

_FINISH_REASONS: Mapping[str, FinishReason] = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
}  # fmt: skip


class AnthropicModel(SdkModel):
    """A Claude model. The parameters are those of SdkModel."""

    __slots__ = ()
    _SDK, _CLIENT, _KEY = "anthropic", "Anthropic", "ANTHROPIC_API_KEY"

    def _create_method(self, client: Any) -> Callable[..., Any]:
        create: Callable[..., Any] = client.messages.create
        return create

    def _maker_headers(self) -> tuple[str, ...]:
        return header_names("ANTHROPIC_CUSTOM_HEADERS")

    def _render_request(self, model_request: ModelRequest) -> dict[str, Any]:
        body = format_named("anthropic").render(model_request.messages)
        validate(body, "anthropic")
        body = {key: value for key, value in body.items() if value}
        body_fields: dict[str, Any] = {"model": self.name, "max_tokens": model_request.max_tokens, **body}
        if self.structured and model_request.schema is not None:
            body_fields["output_config"] = {"format": {"type": "json_schema", "schema": dict(model_request.schema)}}
        if self.options:  # the SDK does not know every field of every release and server
            body_fields["extra_body"] = dict(self.options)
        return {**body_fields, "stream": True} if self.stream else body_fields

    def _read_response(self, answer: Any) -> ModelResponse:
        blocks = getattr(answer, "content", None)
        if blocks is None or isinstance(answer, str):
            raise ModelRefused(f"{self.name}: the server did not answer as the messages API does")
        reason, usage = getattr(answer, "stop_reason", None), _usage(getattr(answer, "usage", None))
        self._raise_if_withheld(reason, usage)
        text = "".join(block.text for block in blocks if block.type == "text")
        return build_response(
            text, _FINISH_REASONS.get(reason or "end_turn", "other"), usage, model=self.name, window=self.window
        )

    def _add_event(self, partial: PartialResponse, event: Any) -> None:
        match event.type:
            case "message_start":
                partial.usage = _usage(event.message.usage)
            case "content_block_delta" if event.delta.type == "text_delta":
                partial.texts.append(event.delta.text)
            case "message_delta":
                if partial.usage is not None:
                    output = count_or_zero(getattr(event.usage, "output_tokens", None))
                    partial.usage = replace(partial.usage, output_tokens=output)
                self._raise_if_withheld(event.delta.stop_reason, partial.usage)
                partial.finish = _FINISH_REASONS.get(event.delta.stop_reason or "", "other")

    def _raise_if_withheld(self, reason: str | None, usage: Usage | None) -> None:
        if reason == "refusal":
            raise ModelRefused(f"{self.name} declined to answer", usage=usage)


def _usage(reported: Any) -> Usage | None:
    """Convert the usage. Anthropic counts cached and stored input tokens apart; ``Usage`` includes both."""
    if reported is None or not hasattr(reported, "input_tokens"):
        return None
    cached = count_or_zero(getattr(reported, "cache_read_input_tokens", None))
    stored = count_or_zero(getattr(reported, "cache_creation_input_tokens", None))
    total = count_or_zero(reported.input_tokens) + cached + stored
    return Usage(total, count_or_zero(getattr(reported, "output_tokens", None)), cached) if total else None
