"""Model contract: request, response, and the sync and async ``write`` method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pagein.errors import ConfigurationError
from pagein.events.messages import Message
from pagein.events.steps import Usage, as_text

FinishReason = Literal["stop", "length", "other"]
"""Why the answer ended: complete, cut at the token limit, or another reason of the provider."""

SCHEMA_NAME = "record"
"""The name under which providers are given the schema of an answer."""

_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model: messages, at most ``max_tokens`` tokens of answer, within ``timeout`` seconds.

    Tool calls in the messages must be paired with their results; no tools are offered. The provider applies
    ``max_tokens``; it is not enforced here. ``schema`` is the JSON schema of the answer, for models that are ``structured``;
    every object in it names all its properties as required and allows no others, as the providers want it. Raises ConfigurationError without a user message with text, for a limit that
    is not positive, and for a timeout over a day.
    """

    messages: tuple[Message, ...]
    max_tokens: int = 2_048
    timeout: float = 120.0
    schema: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or not 0 < self.timeout <= _DAY_SECONDS:
            raise ConfigurationError(
                f"a request needs max_tokens above 0 and a timeout of at most a day; they are {self.max_tokens} and "
                f"{self.timeout}"
            )
        if not any(message.role == "user" and as_text(message.content).strip() for message in self.messages):
            raise ConfigurationError("a request needs a user message with text in it")

    @staticmethod
    def from_text(text: str, *, system: str = "", max_tokens: int = 2_048, timeout: float = 120.0) -> ModelRequest:
        """Build a request of one user message, after a system message if ``system`` is not empty."""
        messages = (*([Message("system", system)] if system else []), Message("user", text))
        return ModelRequest(messages, max_tokens, timeout)


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """A model's answer: text that is not blank, the usage if the provider reported it, and the finish reason."""

    text: str
    usage: Usage | None = None
    finish: FinishReason = "stop"


class Model(Protocol):
    """A synchronous model."""

    @property
    def name(self) -> str:
        """Name used in summaries and reports, as ``gpt-4o-mini``."""
        ...

    @property
    def window(self) -> int:
        """Tokens of request and answer together."""
        ...

    def write(self, request: ModelRequest) -> ModelResponse:
        """Return the answer within the request's timeout, or raise ModelError. Keeps no state.

        Raises Illegal, and sends nothing, for messages that its provider would reject.
        """
        ...


class AsyncModel(Protocol):
    """An asynchronous model. Cancelling the task stops the wait and closes the connection."""

    @property
    def name(self) -> str:
        """Name used in summaries and reports."""
        ...

    @property
    def window(self) -> int:
        """Tokens of request and answer together."""
        ...

    async def awrite(self, request: ModelRequest) -> ModelResponse:
        """Async variant of ``Model.write``."""
        ...
