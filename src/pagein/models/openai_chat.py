"""Any endpoint with OpenAI's chat completions API: OpenAI, OpenRouter, vLLM, Ollama, llama.cpp and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pagein.events.steps import Usage
from pagein.formats import format_named, validate
from pagein.models.base import SCHEMA_NAME, FinishReason, ModelRequest, ModelResponse
from pagein.models.environment import count_or_zero, header_names
from pagein.models.error_mapping import build_response, map_error_answer
from pagein.models.errors import ModelRefused
from pagein.models.sdk import PartialResponse, SdkModel

_FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
}


class OpenAIModel(SdkModel):
    """A model behind a chat completions API. The parameters are those of SdkModel."""

    __slots__ = ()
    _SDK, _CLIENT, _KEY = "openai", "OpenAI", "OPENAI_API_KEY"

    def _create_method(self, client: Any) -> Callable[..., Any]:
        create: Callable[..., Any] = client.chat.completions.create
        return create

    def _maker_headers(self) -> tuple[str, ...]:
        return ("OpenAI-Organization", "OpenAI-Project", *header_names("OPENAI_CUSTOM_HEADERS"))

    def _render_request(self, model_request: ModelRequest) -> dict[str, Any]:
        messages = format_named("openai").render(model_request.messages)["messages"]
        validate(messages, "openai")
        # OpenAI's newer models reject the old name; most other servers accept only that one.
        limit = "max_tokens" if self.base_url else "max_completion_tokens"
        body = {"model": self.name, "messages": messages, limit: model_request.max_tokens}
        if self.structured and model_request.schema is not None:
            schema = {"name": SCHEMA_NAME, "strict": True, "schema": dict(model_request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if self.options:  # the SDK does not know every field of every release and server
            body["extra_body"] = dict(self.options)
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body

    def _read_response(self, answer: Any) -> ModelResponse:
        self._raise_if_error(answer)
        choices = getattr(answer, "choices", None)
        if not choices:
            raise ModelRefused(f"{self.name}: the server did not answer as chat completions do")
        message = choices[0].message
        text = getattr(message, "content", None)
        self._raise_if_withheld(choices[0].finish_reason, getattr(message, "refusal", None), text)
        finish = _FINISH_REASONS.get(choices[0].finish_reason or "stop", "other")
        return build_response(text, finish, _usage(answer), model=self.name, window=self.window)

    def _add_event(self, partial: PartialResponse, event: Any) -> None:
        self._raise_if_error(event)
        partial.usage = _usage(event) or partial.usage
        for choice in (getattr(event, "choices", None) or ())[:1]:
            delta = choice.delta
            partial.texts.append(getattr(delta, "content", None) or "")
            self._raise_if_withheld(choice.finish_reason, getattr(delta, "refusal", None), partial.text)
            if choice.finish_reason:
                partial.finish = _FINISH_REASONS.get(choice.finish_reason, "other")

    def _raise_if_withheld(self, reason: str | None, refusal: str | None, text: str | None) -> None:
        if reason == "content_filter":
            raise ModelRefused(f"{self.name}: the provider's content filter withheld the answer")
        if refusal and not text:
            raise ModelRefused(f"{self.name} declined to answer")

    def _raise_if_error(self, answer: Any) -> None:
        """Raise the error in a response with status 200, as OpenRouter (``error``) and MiniMax (``base_resp``) send it."""
        error = getattr(answer, "error", None)
        if error:
            row = error if isinstance(error, dict) else {"message": str(error)}
            raise map_error_answer(self.name, _http_status(row.get("code")), str(row.get("message") or row))
        base = getattr(answer, "base_resp", None)
        if isinstance(base, dict) and base.get("status_code"):
            raise map_error_answer(self.name, 0, f"{base.get('status_msg')} ({base['status_code']})")


def _http_status(code: Any) -> int:
    value = int(code) if isinstance(code, int | str) and str(code).isdecimal() else 0
    return value if 100 <= value < 600 else 0


def _usage(answer: Any) -> Usage | None:
    reported = getattr(answer, "usage", None)
    if reported is None or not count_or_zero(getattr(reported, "prompt_tokens", None)):
        return None
    details = getattr(reported, "prompt_tokens_details", None)
    return Usage(
        reported.prompt_tokens,
        count_or_zero(getattr(reported, "completion_tokens", None)),
        count_or_zero(getattr(details, "cached_tokens", None)),
    )
