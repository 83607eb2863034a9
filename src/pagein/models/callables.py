"""Any callable that takes text and returns text, at once or awaited, as a model that writes."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pagein.events.steps import as_text
from pagein.models.base import Ask, Reply
from pagein.models.deadlines import awithin, threaded, within
from pagein.models.error_mapping import verdict, weighed
from pagein.models.errors import ModelRefused

Writing = Callable[[str], str] | Callable[[str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class CallableModel:
    """A callable ``str -> str``, or one that returns an awaitable of it. Whatever it raises is a ModelError.

    It is not told ``max_tokens``. An awaitable is run in an event loop of its own by ``write``. ``window`` in tokens.
    """

    call: Writing
    name: str = "callable"
    window: int = 32_768

    def write(self, ask: Ask) -> Reply:
        """What the callable makes of the ask's text. Raises ModelError."""
        try:
            return self._reply(within(ask.timeout, lambda: self._called(as_prompt(ask)), name=self.name))
        except Exception as error:  # noqa: BLE001 - anyone's code
            fault = verdict(error, self.name)
        raise fault

    async def awrite(self, ask: Ask) -> Reply:
        """As ``write``; a callable that does not return an awaitable is called in a thread."""
        try:
            return self._reply(await awithin(ask.timeout, self._awaited(as_prompt(ask)), name=self.name))
        except Exception as error:  # noqa: BLE001 - anyone's code
            fault = verdict(error, self.name)
        raise fault

    def _called(self, prompt: str) -> object:
        value = self.call(prompt)
        return asyncio.run(_finish(value)) if inspect.isawaitable(value) else value

    async def _awaited(self, prompt: str) -> object:
        call = self.call
        is_async = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)
        value: object = call(prompt) if is_async else await threaded(lambda: call(prompt))
        return await value if inspect.isawaitable(value) else value

    def _reply(self, value: object) -> Reply:
        if value is not None and not isinstance(value, str):
            raise ModelRefused(f"{self.name} returned {type(value).__name__}, not text")
        return weighed(value, "stop", None, model=self.name, window=self.window)


def as_prompt(ask: Ask) -> str:
    r"""The ask as one text: the messages' texts, with who spoke where a model or a tool did.

    >>> as_prompt(Ask.of("Write.", system="You summarise."))
    'You summarise.\n\nWrite.'
    """
    spoken = {"assistant": "Assistant: ", "tool": "Tool: "}
    texts = []
    for message in ask.messages:
        calls = "".join(f"\n[calls {call.name} {call.arguments}]" for call in message.tool_calls)
        texts.append(f"{spoken.get(message.role, '')}{as_text(message.content)}{calls}")
    return "\n\n".join(text for text in texts if text.strip())


async def _finish(value: Awaitable[object]) -> object:
    return await value
