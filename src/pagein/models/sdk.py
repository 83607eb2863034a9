"""Base class of the models on official SDKs.

Each request opens a client and closes it afterwards. Requests are rare, and a client kept open would belong to one
event loop, hold the key, and need closing.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pagein._common.validation import TOKENS, Constraint, check_fields
from pagein.events.steps import Usage
from pagein.models.base import FinishReason, ModelRequest, ModelResponse
from pagein.models.deadlines import await_with_deadline, call_with_deadline, run_in_thread
from pagein.models.environment import read_api_key, redact_keys, require_sdk, resolve_window
from pagein.models.error_mapping import build_response, map_error
from pagein.models.errors import ModelTruncated
from pagein.models.overflow import http_status


@dataclass(frozen=True, slots=True)
class SdkModel:
    """A model behind an official SDK. ``base_url`` selects another server than the maker's.

    The key is read from the environment at each request: the maker's variable for the maker; for another server only the
    variable named in ``key_variable``, so that no key reaches the wrong server. ``options`` are fields of each request's
    body, as ``temperature``. ``structured=True`` has the provider enforce the schema of a request. ``window`` is in tokens; 0 looks the name up. ``stream=True`` is for long answers, and for
    servers and gateways that close a silent connection.

    Raises ConfigurationError when the SDK or the key is missing.
    """

    name: str
    base_url: Annotated[
        str,
        Constraint(form="an address that begins with http:// or https://", pattern=r"https?://\S+", guarded="."),
        "Address of another server.",
    ] = ""
    window: Annotated[int, TOKENS, "Tokens of its window. 0: looked up by its name."] = 0
    key_variable: Annotated[
        str,
        Constraint(
            form="the name of an environment variable, in capitals", pattern=r"[A-Z_][A-Z0-9_]{0,99}", guarded="."
        ),
        "Environment variable that holds its key. Never the key.",
    ] = ""
    stream: Annotated[bool, "Request a stream, for servers that cut a silent connection."] = False
    options: Annotated[
        Mapping[str, Any], "Fields of each request's body, such as `temperature`. JSON in the variable."
    ] = field(default_factory=dict, hash=False, repr=False)
    structured: Annotated[bool, "Have the provider enforce the form of its answers: structured outputs."] = False

    _SDK: ClassVar[str]
    """The SDK's package, which is also the name of the extra."""
    _CLIENT: ClassVar[str]
    """The client's class; the async one has the prefix ``Async``."""
    _KEY: ClassVar[str]
    """The environment variable of the maker's key."""

    def __post_init__(self) -> None:
        check_fields(self)
        require_sdk(self._SDK, self._SDK, f"the model {self.name!r}")
        self._key()
        object.__setattr__(self, "window", resolve_window(self.name, self.window or None))

    def write(self, request: ModelRequest) -> ModelResponse:
        """Return the answer. Raises ModelError, or Illegal for messages the provider would reject."""
        body, key = self._render_request(request), self._key()

        def send() -> ModelResponse:
            with closing(client):
                answer = self._create_method(client)(**body)
                if self.stream:
                    return self._finish(PartialResponse(self.name).consume(iter(answer), self._add_event))
                return self._read_response(answer)

        try:
            client = self._open_client("", key, request)
            return call_with_deadline(request.timeout, send, name=self.name, abort=client.close)
        except Exception as error:  # noqa: BLE001 - an SDK's, its HTTP client's, or pagein's
            fault = map_error(error, self.name, (key,))
        # Raised outside the handler, so that the SDK's exception, which holds the request, is not its context.
        raise fault

    async def awrite(self, request: ModelRequest) -> ModelResponse:
        """Async variant of ``write``. Opening a client takes 25 ms, the first one a second: done in a thread."""
        body, key = self._render_request(request), self._key()

        async def send() -> ModelResponse:
            client = await run_in_thread(lambda: self._open_client("Async", key, request))
            try:
                answer = await self._create_method(client)(**body)
                if self.stream:
                    partial = await PartialResponse(self.name).aconsume(aiter(answer), self._add_event)
                    return self._finish(partial)
                return self._read_response(answer)
            finally:
                await client.close()

        try:
            return await await_with_deadline(request.timeout, send(), name=self.name)
        except Exception as error:  # noqa: BLE001 - an SDK's, its HTTP client's, or pagein's
            fault = map_error(error, self.name, (key,))
        raise fault

    def _key(self) -> str:
        variable = self.key_variable or ("" if self.base_url else self._KEY)
        return read_api_key(variable, f"the model {self.name!r}") if variable else _NO_KEY

    def _open_client(self, class_prefix: str, key: str, request: ModelRequest) -> Any:
        """Open a client. The SDK is imported here, which takes a second the first time."""
        sdk = importlib.import_module(self._SDK)
        # RetryingModel retries: the SDK would resend permanent errors, and count no cost.
        options: dict[str, Any] = {"api_key": key, "timeout": request.timeout, "max_retries": 0}
        if self.base_url:
            # Headers that the environment sets for the maker must not reach another server.
            headers = {name: sdk.Omit() for name in self._maker_headers()}
            options |= {"base_url": self.base_url, "default_headers": headers}
        return getattr(sdk, class_prefix + self._CLIENT)(**options)

    def _finish(self, partial: PartialResponse) -> ModelResponse:
        return build_response(
            partial.text, partial.finish or "other", partial.usage, model=self.name, window=self.window
        )

    def _create_method(self, client: Any) -> Callable[..., Any]:
        """The client's method that sends a request."""
        raise NotImplementedError

    def _maker_headers(self) -> tuple[str, ...]:
        """Names of the headers that the SDK takes from the environment."""
        raise NotImplementedError

    def _render_request(self, request: ModelRequest) -> dict[str, Any]:
        raise NotImplementedError

    def _read_response(self, answer: Any) -> ModelResponse:
        raise NotImplementedError

    def _add_event(self, partial: PartialResponse, event: Any) -> None:
        raise NotImplementedError


_NO_KEY = "none"
"""Placeholder for servers without keys: the SDKs require a key."""


@dataclass(slots=True)
class PartialResponse:
    """A streamed answer being received. ``finish`` is None until the provider sends the finish reason."""

    model: str
    texts: list[str] = field(default_factory=list)
    usage: Usage | None = None
    finish: FinishReason | None = None

    @property
    def text(self) -> str:
        """The text received so far."""
        return "".join(self.texts)

    def consume(self, events: Iterator[Any], add: Callable[[PartialResponse, Any], None]) -> PartialResponse:
        """Add all events; return self. Raises ModelTruncated if the stream ends within the text."""
        with self._truncation():
            for event in events:
                add(self, event)
        return self._check_complete()

    async def aconsume(
        self, events: AsyncIterator[Any], add: Callable[[PartialResponse, Any], None]
    ) -> PartialResponse:
        """Async variant of ``consume``."""
        with self._truncation():
            async for event in events:
                add(self, event)
        return self._check_complete()

    @contextmanager
    def _truncation(self) -> Iterator[None]:
        """Raise ModelTruncated in place of an error that comes within the text."""
        try:
            yield
        except Exception as error:
            if not self.text or isinstance(error, ModelTruncated) or http_status(error) is not None:
                raise
            reason = redact_keys(f"{type(error).__name__}: {error}")
            raise ModelTruncated(
                f"{self.model} broke off within its answer: {reason}", text=self.text, usage=self.usage
            ) from None

    def _check_complete(self) -> PartialResponse:
        # A stream without a finish reason was cut, or overflowed on some servers: the text is incomplete.
        if self.finish is None and self.text:
            raise ModelTruncated(f"{self.model} broke off within its answer", text=self.text, usage=self.usage)
        return self
