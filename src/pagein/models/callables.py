"""Model made from a sync or async callable from text to text."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pagein.events.steps import as_text
from pagein.models.base import ModelRequest, ModelResponse
from pagein.models.deadlines import await_with_deadline, call_with_deadline, run_in_thread
from pagein.models.error_mapping import build_response, map_error
from pagein.models.errors import ModelRefused

TextFunction = Callable[[str], str] | Callable[[str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class CallableModel:
    """A callable ``str -> str`` or ``str -> Awaitable[str]`` as a model. Its exceptions become ModelError.

    The callable does not receive ``max_tokens``. ``write`` runs an awaitable in an event loop of its own. ``window`` is
    in tokens.
    """

    call: TextFunction
    name: str = "callable"
    window: int = 32_768

    def write(self, request: ModelRequest) -> ModelResponse:
        """Call the callable with the request's text. Raises ModelError."""
        try:
            return self._build_response(
                call_with_deadline(request.timeout, lambda: self._call(request_text(request)), name=self.name)
            )
        except Exception as error:  # noqa: BLE001 - a user's code may raise anything
            fault = map_error(error, self.name)
        raise fault

    async def awrite(self, request: ModelRequest) -> ModelResponse:
        """Async variant of ``write``; a sync callable runs in a thread."""
        try:
            return self._build_response(
                await await_with_deadline(request.timeout, self._acall(request_text(request)), name=self.name)
            )
        except Exception as error:  # noqa: BLE001 - a user's code may raise anything
            fault = map_error(error, self.name)
        raise fault

    def _call(self, prompt: str) -> object:
        value = self.call(prompt)
        return asyncio.run(_wait_for(value)) if inspect.isawaitable(value) else value

    async def _acall(self, prompt: str) -> object:
        call = self.call
        is_async = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)
        value: object = call(prompt) if is_async else await run_in_thread(lambda: call(prompt))
        return await value if inspect.isawaitable(value) else value

    def _build_response(self, value: object) -> ModelResponse:
        if value is not None and not isinstance(value, str):
            raise ModelRefused(f"{self.name} returned {type(value).__name__}, not text")
        return build_response(value, "stop", None, model=self.name, window=self.window)


def request_text(request: ModelRequest) -> str:
    r"""The request as one text: the messages, with a prefix for the role where it is a model or a tool.

    >>> request_text(ModelRequest.from_text("Write.", system="You summarise."))
    'You summarise.\n\nWrite.'
    """
    prefixes = {"assistant": "Assistant: ", "tool": "Tool: "}
    texts = []
    for message in request.messages:
        calls = "".join(f"\n[calls {call.name} {call.arguments}]" for call in message.tool_calls)
        texts.append(f"{prefixes.get(message.role, '')}{as_text(message.content)}{calls}")
    return "\n\n".join(text for text in texts if text.strip())


async def _wait_for(value: Awaitable[object]) -> object:
    return await value
