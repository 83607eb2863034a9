"""Claude, through Anthropic's messages API or a server that speaks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pagein.errors import Illegal
from pagein.events.steps import Usage
from pagein.formats import format_named
from pagein.models.base import Ask, Finish, Reply
from pagein.models.environment import own_headers, whole
from pagein.models.error_mapping import weighed
from pagein.models.errors import ModelRefused
from pagein.models.sdk import Draft, SdkModel

_ENDS: Mapping[str, Finish] = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
}  # fmt: skip


class AnthropicModel(SdkModel):
    """A Claude model. What it takes is SdkModel's."""

    __slots__ = ()
    _SDK, _CLIENT, _KEY = "anthropic", "Anthropic", "ANTHROPIC_API_KEY"

    def _verb(self, client: Any) -> Callable[..., Any]:
        found: Callable[..., Any] = client.messages.create
        return found

    def _meant_for_the_maker(self) -> tuple[str, ...]:
        return own_headers("ANTHROPIC_CUSTOM_HEADERS")

    def _request(self, ask: Ask) -> dict[str, Any]:
        spelled = format_named("anthropic")
        body = spelled.render(ask.messages)
        problems = spelled.problems(body)
        if problems:
            raise Illegal("anthropic", problems)
        body = {key: value for key, value in body.items() if value}
        request = {"model": self.name, "max_tokens": ask.max_tokens, **body}
        if self.options:  # the SDK knows not every field of every release and server
            request["extra_body"] = dict(self.options)
        return {**request, "stream": True} if self.stream else request

    def _reply(self, answer: Any) -> Reply:
        blocks = getattr(answer, "content", None)
        if blocks is None or isinstance(answer, str):
            raise ModelRefused(f"{self.name}: the server did not answer as the messages API does")
        reason, usage = getattr(answer, "stop_reason", None), _usage(getattr(answer, "usage", None))
        self._unless_withheld(reason, usage)
        text = "".join(block.text for block in blocks if block.type == "text")
        return weighed(
            text, _ENDS.get(reason or "end_turn", "other"), usage, model=self.name, window=self.window
        )

    def _add(self, draft: Draft, event: Any) -> None:
        match event.type:
            case "message_start":
                draft.usage = _usage(event.message.usage)
            case "content_block_delta" if event.delta.type == "text_delta":
                draft.texts.append(event.delta.text)
            case "message_delta":
                draft.usage = _grown(draft.usage, event.usage)
                self._unless_withheld(event.delta.stop_reason, draft.usage)
                draft.finish = _ENDS.get(event.delta.stop_reason or "", "other")

    def _unless_withheld(self, reason: str | None, usage: Usage | None) -> None:
        if reason == "refusal":
            raise ModelRefused(f"{self.name} declined to answer", usage=usage)


def _usage(told: Any) -> Usage | None:
    """Anthropic counts what its cache served, and what it stored, beside the input; ours includes both."""
    if told is None or not hasattr(told, "input_tokens"):
        return None
    cached = whole(getattr(told, "cache_read_input_tokens", None))
    stored = whole(getattr(told, "cache_creation_input_tokens", None))
    total = whole(told.input_tokens) + cached + stored
    return Usage(total, whole(getattr(told, "output_tokens", None)), cached) if total else None


def _grown(usage: Usage | None, told: Any) -> Usage | None:
    output = whole(getattr(told, "output_tokens", None))
    return Usage(usage.input_tokens, output, usage.cached_tokens) if usage else None
