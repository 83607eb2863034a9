"""What the models on official SDKs share: a client for each ask, a deadline, and errors of ours.

A client is made for each ask and closed after it. Summaries are seldom, and a client kept open would belong to one
event loop, hold its key, and need closing by somebody.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

from pagein.events.steps import Usage
from pagein.models.base import Ask, Finish, Reply
from pagein.models.deadlines import awithin, threaded, within
from pagein.models.environment import key_of, require, window_of
from pagein.models.error_mapping import verdict, weighed
from pagein.models.errors import ModelTruncated
from pagein.models.overflow import status_of
from pagein.models.secrets import scrubbed


class _Client(Protocol):
    def close(self) -> Any: ...


C = TypeVar("C", bound=_Client)


@dataclass(frozen=True, slots=True)
class SdkModel:
    """A model behind an official SDK. ``base_url`` names another server than its maker's.

    The key is read from the environment at each ask: the maker's own for the maker, for another server only from the
    variable named in ``key_variable``, so that no key goes where it does not belong. ``options`` are fields of each
    request's body, as ``temperature``. ``window`` in tokens; 0 looks the name up. ``stream=True`` for long answers, and
    for servers and gateways that cut a silent connection.

    Raises ConfigurationError when the SDK or the key is missing.
    """

    name: str
    base_url: str = ""
    window: int = 0
    key_variable: str = ""
    stream: bool = False
    options: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    _SDK: ClassVar[str]
    """The SDK's package, which is the name of our extra too."""
    _CLIENT: ClassVar[str]
    """Its client's class; the one for async code has ``Async`` before it."""
    _KEY: ClassVar[str]
    """The variable that holds the maker's key."""

    def __post_init__(self) -> None:
        require(self._SDK, self._SDK, f"the model {self.name!r}")
        self._key()
        object.__setattr__(self, "window", window_of(self.name, self.window or None))

    def write(self, ask: Ask) -> Reply:
        """The answer. Raises ModelError, or Illegal for messages the provider would refuse."""
        request, key = self._request(ask), self._key()

        def work(client: Any) -> Reply:
            answer = self._verb(client)(**request)
            if self.stream:
                return self._drafted(Draft(self.name).take(iter(answer), self._add))
            return self._reply(answer)

        return asked(self.name, ask.timeout, (key,), lambda: self._opened("", key, ask), work)

    async def awrite(self, ask: Ask) -> Reply:
        """As ``write``, awaited."""
        request, key = self._request(ask), self._key()

        async def work(client: Any) -> Reply:
            answer = await self._verb(client)(**request)
            if self.stream:
                return self._drafted(await Draft(self.name).atake(aiter(answer), self._add))
            return self._reply(answer)

        return await aasked(self.name, ask.timeout, (key,), lambda: self._opened("Async", key, ask), work)

    def _key(self) -> str:
        variable = self.key_variable or ("" if self.base_url else self._KEY)
        return key_of(variable, f"the model {self.name!r}") if variable else _NO_KEY

    def _opened(self, colour: str, key: str, ask: Ask) -> Any:
        """A client; the SDK is imported here, which takes a second the first time."""
        sdk = importlib.import_module(self._SDK)
        # Retries are patience's: the SDK's own would resend what cannot heal, and count no cost.
        door: dict[str, Any] = {"api_key": key, "timeout": ask.timeout, "max_retries": 0}
        if self.base_url:
            # What the environment holds for the maker is nobody else's.
            headers = {name: sdk.Omit() for name in self._meant_for_the_maker()}
            door |= {"base_url": self.base_url, "default_headers": headers}
        return getattr(sdk, colour + self._CLIENT)(**door)

    def _drafted(self, draft: Draft) -> Reply:
        return weighed(draft.text, draft.finish or "other", draft.usage, model=self.name, window=self.window)

    def _verb(self, client: Any) -> Callable[..., Any]:
        """What of the client takes a request."""
        raise NotImplementedError

    def _meant_for_the_maker(self) -> tuple[str, ...]:
        """The headers that the environment adds."""
        raise NotImplementedError

    def _request(self, ask: Ask) -> dict[str, Any]:
        raise NotImplementedError

    def _reply(self, answer: Any) -> Reply:
        raise NotImplementedError

    def _add(self, draft: Draft, event: Any) -> None:
        raise NotImplementedError


_NO_KEY = "none"
"""Servers without keys take any; the SDKs want one."""


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
