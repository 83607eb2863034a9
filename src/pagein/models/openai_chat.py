"""Any endpoint that speaks OpenAI's chat completions: OpenAI, OpenRouter, vLLM, Ollama, llama.cpp, and their like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pagein.errors import Illegal
from pagein.formats import format_named
from pagein.models.contract import Ask, Finish, Reply
from pagein.models.environment import key_of, own_headers, require, whole, window_of
from pagein.models.errors import ModelRefused
from pagein.models.sdk import Draft, aasked, asked
from pagein.models.verdicts import refused, weighed
from pagein.steps import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

_ENDS: Mapping[str, Finish] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
}
_NO_KEY = "none"
"""Servers without keys take any; the SDK wants one."""


@dataclass(frozen=True, slots=True)
class OpenAIModel:
    """A model behind chat completions. ``base_url`` names another server than OpenAI's.

    The key is read from the environment at each ask: ``OPENAI_API_KEY`` for OpenAI, for another server only from the
    variable named in ``key_variable``, so that no key goes where it does not belong. ``options`` are fields of
    each request's body, as ``temperature``. ``window`` in tokens; 0 looks the name up.
    ``stream=True`` for servers and gateways that cut a silent connection.

    Raises ConfigurationError when the SDK or the key is missing.
    """

    name: str
    base_url: str = ""
    window: int = 0
    key_variable: str = ""
    stream: bool = False
    options: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        require("openai", "openai", f"the model {self.name!r}")
        self._key()
        object.__setattr__(self, "window", window_of(self.name, self.window or None))

    def write(self, ask: Ask) -> Reply:
        """The answer. Raises ModelError, or Illegal for messages chat completions would refuse."""
        request, key = self._request(ask), self._key()

        def opened() -> OpenAI:
            from openai import OpenAI  # noqa: PLC0415 - takes most of a second

            return OpenAI(**self._door(key, ask))

        def work(client: OpenAI) -> Reply:
            answer = client.chat.completions.create(**request)
            if self.stream:
                return self._drafted(Draft(self.name).take(iter(answer), self._add))
            return self._reply(answer)

        return asked(self.name, ask.timeout, (key,), opened, work)

    async def awrite(self, ask: Ask) -> Reply:
        """As ``write``, awaited."""
        request, key = self._request(ask), self._key()

        def opened() -> AsyncOpenAI:
            from openai import AsyncOpenAI  # noqa: PLC0415 - takes most of a second

            return AsyncOpenAI(**self._door(key, ask))

        async def work(client: AsyncOpenAI) -> Reply:
            answer = await client.chat.completions.create(**request)
            if self.stream:
                return self._drafted(await Draft(self.name).atake(aiter(answer), self._add))
            return self._reply(answer)

        return await aasked(self.name, ask.timeout, (key,), opened, work)

    def _key(self) -> str:
        variable = self.key_variable or ("" if self.base_url else "OPENAI_API_KEY")
        return key_of(variable, f"the model {self.name!r}") if variable else _NO_KEY

    def _door(self, key: str, ask: Ask) -> dict[str, Any]:
        # Retries are patience's: the SDK's own would resend what cannot heal, and count no cost.
        door = {"api_key": key, "timeout": ask.timeout, "max_retries": 0}
        if not self.base_url:
            return door
        from openai import Omit  # noqa: PLC0415 - takes most of a second

        # What the environment holds for OpenAI is nobody else's.
        meant_for_openai = ("OpenAI-Organization", "OpenAI-Project", *own_headers("OPENAI_CUSTOM_HEADERS"))
        headers = {name: Omit() for name in meant_for_openai}
        return {**door, "base_url": self.base_url, "default_headers": headers}

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

    def _drafted(self, draft: Draft) -> Reply:
        return weighed(draft.text, draft.finish or "other", draft.usage, model=self.name, window=self.window)

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
