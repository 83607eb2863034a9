"""The seam every model that writes fills in: an ask, a reply, and one verb in two colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from pagein.errors import ConfigurationError
from pagein.events.messages import Message
from pagein.events.steps import Usage, as_text

Finish = Literal["stop", "length", "other"]
"""Why the answer ended: it was done, it was as long as it may be, or for a reason of the provider's own."""

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Ask:
    """What a model is asked: messages, at most ``max_tokens`` tokens of answer, within ``timeout`` seconds.

    Tool calls in the messages must be paired with their results; no tools are offered. ``max_tokens`` is asked of the
    provider, not enforced here: who uses an answer measures it. Raises ConfigurationError when there is nothing to
    answer or a limit is not positive, or over a day.
    """

    messages: tuple[Message, ...]
    max_tokens: int = 2_048
    timeout: float = 120.0

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or not 0 < self.timeout <= _DAY:
            raise ConfigurationError(
                f"an ask needs max_tokens above 0 and a timeout of at most a day; they are {self.max_tokens} and "
                f"{self.timeout}"
            )
        if not any(each.role == "user" and as_text(each.content).strip() for each in self.messages):
            raise ConfigurationError("an ask needs a user message with text in it")

    @staticmethod
    def of(text: str, *, system: str = "", max_tokens: int = 2_048, timeout: float = 120.0) -> Ask:
        """An ask of one user message, and instructions where there are any."""
        messages = (*([Message("system", system)] if system else []), Message("user", text))
        return Ask(messages, max_tokens, timeout)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote: text that is not blank, what it cost where the provider said so, and why it ended."""

    text: str
    usage: Usage | None = None
    finish: Finish = "stop"


class Model(Protocol):
    """A model that writes, called and waited for."""

    @property
    def name(self) -> str:
        """What it is called in summaries and reports, as ``gpt-4o-mini``."""
        ...

    @property
    def window(self) -> int:
        """Tokens of request and answer together."""
        ...

    def write(self, ask: Ask) -> Reply:
        """The answer, within the ask's timeout; or a ModelError, and nothing else changed. Keeps no state.

        Raises Illegal, and sends nothing, for messages no provider of its kind would take.
        """
        ...


class AsyncModel(Protocol):
    """A model that writes, awaited. Cancelling the task stops the wait and closes the connection."""

    @property
    def name(self) -> str:
        """What it is called in summaries and reports."""
        ...

    @property
    def window(self) -> int:
        """Tokens of request and answer together."""
        ...

    async def awrite(self, ask: Ask) -> Reply:
        """As ``Model.write``, awaited."""
        ...
