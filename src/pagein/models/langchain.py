"""Any LangChain chat model as a model that writes, by its public verbs ``invoke`` and ``ainvoke``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pagein.errors import Illegal
from pagein.events.steps import Usage
from pagein.formats import format_named
from pagein.models.base import Ask, Finish, Reply
from pagein.models.deadlines import awithin, within
from pagein.models.environment import whole, window_of
from pagein.models.error_mapping import verdict, weighed
from pagein.models.errors import ModelRefused

_ENDS: Mapping[str, Finish] = {
    "stop": "stop", "end_turn": "stop", "stop_sequence": "stop", "STOP": "stop",
    "length": "length", "max_tokens": "length", "MAX_TOKENS": "length", "model_context_window_exceeded": "length",
}  # fmt: skip
_WITHHELD = frozenset(
    {"content_filter", "refusal", "SAFETY", "PROHIBITED_CONTENT", "content_filtered", "guardrail_intervened"}
)


@dataclass(frozen=True, slots=True)
class LangChainModel:
    """A LangChain chat model. Its key, its endpoint and its own retries are its own: set ``max_retries=0`` on it.

    ``limit`` is what its integration calls the longest answer (``max_tokens``; ``num_predict`` for Ollama); empty says
    nothing to it. ``name`` and ``window`` are looked up where they are not given.
    """

    chat: Any
    name: str = ""
    window: int = 0
    limit: str = "max_tokens"

    def __post_init__(self) -> None:
        named = (getattr(self.chat, each, None) for each in ("model_name", "model", "model_id"))
        found = next((each for each in named if isinstance(each, str) and each), type(self.chat).__name__)
        object.__setattr__(self, "name", self.name or found)
        object.__setattr__(self, "window", window_of(self.name, self.window or None))

    def write(self, ask: Ask) -> Reply:
        """The answer. Raises ModelError, or Illegal for messages no provider would take."""
        messages, limits = self._request(ask)
        try:
            answer = within(ask.timeout, lambda: self.chat.invoke(messages, **limits), name=self.name)
            return self._reply(answer)
        except Exception as error:  # noqa: BLE001 - any provider's SDK
            fault = verdict(error, self.name)
        raise fault

    async def awrite(self, ask: Ask) -> Reply:
        """As ``write``, awaited."""
        messages, limits = self._request(ask)
        try:
            answer = await awithin(ask.timeout, self.chat.ainvoke(messages, **limits), name=self.name)
            return self._reply(answer)
        except Exception as error:  # noqa: BLE001 - any provider's SDK
            fault = verdict(error, self.name)
        raise fault

    def _request(self, ask: Ask) -> tuple[list[dict[str, Any]], dict[str, int]]:
        # LangChain reads OpenAI's spelling of messages, and each integration respells it for its provider.
        spelled = format_named("openai")
        messages = spelled.render(ask.messages)["messages"]
        problems = spelled.problems(messages)
        if problems:
            raise Illegal("openai", problems)
        return messages, {self.limit: ask.max_tokens} if self.limit else {}

    def _reply(self, answer: Any) -> Reply:
        metadata = getattr(answer, "response_metadata", None) or {}
        reason = next(
            (
                metadata[each]
                for each in ("finish_reason", "stop_reason", "done_reason")
                if metadata.get(each)
            ),
            "stop",
        )
        usage = _usage(getattr(answer, "usage_metadata", None))
        if reason in _WITHHELD:
            raise ModelRefused(f"{self.name}: the provider withheld the answer ({reason})", usage=usage)
        return weighed(_text(answer), _ENDS.get(reason, "other"), usage, model=self.name, window=self.window)


def _text(answer: Any) -> str:
    content = getattr(answer, "content", answer)
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = (
        each if isinstance(each, str) else each.get("text") for each in blocks if isinstance(each, str | dict)
    )
    return "".join(text for text in texts if isinstance(text, str))


def _usage(told: Any) -> Usage | None:
    if not isinstance(told, Mapping) or not whole(told.get("input_tokens")):
        return None
    details = told.get("input_token_details")
    cached = details.get("cache_read") if isinstance(details, Mapping) else 0
    return Usage(told["input_tokens"], whole(told.get("output_tokens")), whole(cached))
