"""Claude, through Anthropic's messages API or a server that speaks it."""

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
from pagein.models.verdicts import weighed
from pagein.steps import Usage

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

_ENDS: Mapping[str, Finish] = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AnthropicModel:
    """A Claude model. ``base_url`` names another server; its key comes from ``key_variable``, or is none.

    The key is read from the environment at each ask. ``options`` are fields of each request's body, as
    ``temperature``. ``window`` in tokens; 0 looks the name up. ``stream=True`` for long answers behind gateways.

    Raises ConfigurationError when the SDK or the key is missing.
    """

    name: str
    base_url: str = ""
    window: int = 0
    key_variable: str = ""
    stream: bool = False
    options: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        require("anthropic", "anthropic", f"the model {self.name!r}")
        self._key()
        object.__setattr__(self, "window", window_of(self.name, self.window or None))

    def write(self, ask: Ask) -> Reply:
        """The answer. Raises ModelError, or Illegal for messages the messages API would refuse."""
        request, key = self._request(ask), self._key()

        def opened() -> Anthropic:
            from anthropic import Anthropic  # noqa: PLC0415 - takes a second

            return Anthropic(**self._door(key, ask))

        def work(client: Anthropic) -> Reply:
            answer = client.messages.create(**request)
            if self.stream:
                return self._drafted(Draft(self.name).take(iter(answer), self._add))
            return self._reply(answer)

        return asked(self.name, ask.timeout, (key,), opened, work)

    async def awrite(self, ask: Ask) -> Reply:
        """As ``write``, awaited."""
        request, key = self._request(ask), self._key()

        def opened() -> AsyncAnthropic:
            from anthropic import AsyncAnthropic  # noqa: PLC0415 - takes a second

            return AsyncAnthropic(**self._door(key, ask))

        async def work(client: AsyncAnthropic) -> Reply:
            answer = await client.messages.create(**request)
            if self.stream:
                return self._drafted(await Draft(self.name).atake(aiter(answer), self._add))
            return self._reply(answer)

        return await aasked(self.name, ask.timeout, (key,), opened, work)

    def _key(self) -> str:
        variable = self.key_variable or ("" if self.base_url else "ANTHROPIC_API_KEY")
        return key_of(variable, f"the model {self.name!r}") if variable else "none"

    def _door(self, key: str, ask: Ask) -> dict[str, Any]:
        door = {"api_key": key, "timeout": ask.timeout, "max_retries": 0}
        if not self.base_url:
            return door
        from anthropic import Omit  # noqa: PLC0415 - takes a second

        # What the environment holds for Anthropic is nobody else's.
        headers = {name: Omit() for name in own_headers("ANTHROPIC_CUSTOM_HEADERS")}
        return {**door, "base_url": self.base_url, "default_headers": headers}

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

    def _drafted(self, draft: Draft) -> Reply:
        return weighed(draft.text, draft.finish or "other", draft.usage, model=self.name, window=self.window)

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
