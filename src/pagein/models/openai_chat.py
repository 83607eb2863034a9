"""Any endpoint that speaks OpenAI's chat completions: OpenAI, OpenRouter, vLLM, Ollama, llama.cpp, and their like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pagein.errors import Illegal
from pagein.events.steps import Usage
from pagein.formats import format_named
from pagein.models.base import Ask, Finish, Reply
from pagein.models.environment import own_headers, whole
from pagein.models.error_mapping import refused, weighed
from pagein.models.errors import ModelRefused
from pagein.models.sdk import Draft, SdkModel

_ENDS: Mapping[str, Finish] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
}


class OpenAIModel(SdkModel):
    """A model behind chat completions, OpenAI's or another server's. What it takes is SdkModel's."""

    __slots__ = ()
    _SDK, _CLIENT, _KEY = "openai", "OpenAI", "OPENAI_API_KEY"

    def _verb(self, client: Any) -> Callable[..., Any]:
        found: Callable[..., Any] = client.chat.completions.create
        return found

    def _meant_for_the_maker(self) -> tuple[str, ...]:
        return ("OpenAI-Organization", "OpenAI-Project", *own_headers("OPENAI_CUSTOM_HEADERS"))

    def _request(self, ask: Ask) -> dict[str, Any]:
        spelled = format_named("openai")
        messages = spelled.render(ask.messages)["messages"]
        problems = spelled.problems(messages)
        if problems:
            raise Illegal("openai", problems)
        # OpenAI's newer models refuse the old name, and most other servers know only that.
        limit = "max_tokens" if self.base_url else "max_completion_tokens"
        request = {"model": self.name, "messages": messages, limit: ask.max_tokens}
        if self.options:  # the SDK knows not every field of every release and server
            request["extra_body"] = dict(self.options)
        if self.stream:
            request |= {"stream": True, "stream_options": {"include_usage": True}}
        return request

    def _reply(self, answer: Any) -> Reply:
        self._unless_error(answer)
        choices = getattr(answer, "choices", None)
        if not choices:
            raise ModelRefused(f"{self.name}: the server did not answer as chat completions do")
        message = choices[0].message
        text = getattr(message, "content", None)
        self._unless_withheld(choices[0].finish_reason, getattr(message, "refusal", None), text)
        finish = _ENDS.get(choices[0].finish_reason or "stop", "other")
        return weighed(text, finish, _usage(answer), model=self.name, window=self.window)

    def _add(self, draft: Draft, event: Any) -> None:
        self._unless_error(event)
        draft.usage = _usage(event) or draft.usage
        for choice in (getattr(event, "choices", None) or ())[:1]:
            delta = choice.delta
            draft.texts.append(getattr(delta, "content", None) or "")
            self._unless_withheld(choice.finish_reason, getattr(delta, "refusal", None), draft.text)
            if choice.finish_reason:
                draft.finish = _ENDS.get(choice.finish_reason, "other")

    def _unless_withheld(self, reason: str | None, refusal: str | None, text: str | None) -> None:
        if reason == "content_filter":
            raise ModelRefused(f"{self.name}: the provider's content filter withheld the answer")
        if refusal and not text:
            raise ModelRefused(f"{self.name} declined to answer")

    def _unless_error(self, answer: Any) -> None:
        """A failure inside a 200, as OpenRouter (``error``) and MiniMax (``base_resp``) send it."""
        error = getattr(answer, "error", None)
        if error:
            row = error if isinstance(error, dict) else {"message": str(error)}
            raise refused(self.name, _status(row.get("code")), str(row.get("message") or row))
        base = getattr(answer, "base_resp", None)
        if isinstance(base, dict) and base.get("status_code"):
            raise refused(self.name, 0, f"{base.get('status_msg')} ({base['status_code']})")


def _status(code: Any) -> int:
    value = int(code) if isinstance(code, int | str) and str(code).isdecimal() else 0
    return value if 100 <= value < 600 else 0


def _usage(answer: Any) -> Usage | None:
    told = getattr(answer, "usage", None)
    if told is None or not whole(getattr(told, "prompt_tokens", None)):
        return None
    details = getattr(told, "prompt_tokens_details", None)
    return Usage(
        told.prompt_tokens,
        whole(getattr(told, "completion_tokens", None)),
        whole(getattr(details, "cached_tokens", None)),
    )
