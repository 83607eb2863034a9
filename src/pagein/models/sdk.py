"""What the models on official SDKs share: a client for each ask, a deadline, and errors of ours.

A client is made for each ask and closed after it. Summaries are seldom, and a client kept open would belong to one
event loop, hold its key, and need closing by somebody.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from pagein.models.contract import Finish, Reply
from pagein.models.errors import ModelTruncated
from pagein.models.overflow import status_of
from pagein.models.secrets import scrubbed
from pagein.models.verdicts import verdict
from pagein.models.waiting import awithin, threaded, within
from pagein.steps import Usage


class _Client(Protocol):
    def close(self) -> Any: ...


C = TypeVar("C", bound=_Client)


def asked(
    name: str, seconds: float, known: tuple[str, ...], opened: Callable[[], C], work: Callable[[C], Reply]
) -> Reply:
    """The reply of ``work`` on a client that is closed afterwards. Raises ModelError; ``known`` keys are scrubbed."""

    def whole() -> Reply:
        try:
            return work(client)
        finally:
            client.close()

    try:
        client = opened()
        return within(seconds, whole, name=name, abort=client.close)
    except Exception as error:  # noqa: BLE001 - an SDK's, its HTTP client's, or ours
        fault = verdict(error, name, known)
    # Raised out here, so that the SDK's exception, which holds the request, is not this one's context.
    raise fault


async def aasked(
    name: str,
    seconds: float,
    known: tuple[str, ...],
    opened: Callable[[], C],
    work: Callable[[C], Awaitable[Reply]],
) -> Reply:
    """As ``asked``, awaited. The loop goes on meanwhile: to open a client takes 25 ms, the first one a second."""

    async def whole() -> Reply:
        client = await threaded(opened)
        try:
            return await work(client)
        finally:
            await client.close()

    try:
        return await awithin(seconds, whole(), name=name)
    except Exception as error:  # noqa: BLE001 - an SDK's, its HTTP client's, or ours
        fault = verdict(error, name, known)
    raise fault


@dataclass(slots=True)
class Draft:
    """An answer as it comes in. ``finish`` is None until the provider says why it ended."""

    model: str
    texts: list[str] = field(default_factory=list)
    usage: Usage | None = None
    finish: Finish | None = None

    @property
    def text(self) -> str:
        """What has come so far."""
        return "".join(self.texts)

    def take(self, events: Iterator[Any], add: Callable[[Draft, Any], None]) -> Draft:
        """This draft with all events in it. Raises ModelTruncated when they break off within the text."""
        try:
            for event in events:
                add(self, event)
        except Exception as error:
            self._unless_broken(error)
            raise
        return self._ended()

    async def atake(self, events: AsyncIterator[Any], add: Callable[[Draft, Any], None]) -> Draft:
        """As ``take``, awaited."""
        try:
            async for event in events:
                add(self, event)
        except Exception as error:
            self._unless_broken(error)
            raise
        return self._ended()

    def _unless_broken(self, error: Exception) -> None:
        if self.text and not isinstance(error, ModelTruncated) and status_of(error) is None:
            why = scrubbed(f"{type(error).__name__}: {error}")
            raise ModelTruncated(
                f"{self.model} broke off within its answer: {why}", text=self.text, usage=self.usage
            ) from None

    def _ended(self) -> Draft:
        # A stream that ends without a reason was cut, or is how some servers tell an overflow: the text is not whole.
        if self.finish is None and self.text:
            raise ModelTruncated(
                f"{self.model} broke off within its answer", text=self.text, usage=self.usage
            )
        return self
