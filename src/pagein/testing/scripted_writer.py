"""Scripted model for tests: it writes a plain record of the request, at once or late.

It reads only the request, as a model does. It tests how summaries are used, not how well a model writes them.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import unescape
from typing import Any, Final

from pagein.events.identifiers import argument_text, identifiers
from pagein.events.messages import Message
from pagein.events.steps import as_text
from pagein.models.base import ModelRequest, ModelResponse
from pagein.models.errors import ModelUnavailable
from pagein.summaries.key_items import split_sentences

_STEP: Final = re.compile(
    r'<pagein-step handle="(?P<handle>[^"]+)" by="(?P<voice>\w+)"(?P<more>[^>]*)>\n(?P<text>.*?)\n</pagein-step>',
    re.DOTALL,
)
_LEFT: Final = re.compile(r"this conversation, (s\d+(?:-\d+)?),")
_FAILS: Final = re.compile(r"\b\w*(?:error|exception|failed|denied)\b", re.IGNORECASE)

MAX_ITEMS: Final = 12
"""The most items of each kind in one record."""


@dataclass(frozen=True, slots=True)
class _QuotedStep:
    handle: str
    voice: str
    text: str


def plain_record(request: ModelRequest) -> str:
    """Write the JSON summary that the request asks for, from the steps it quotes."""
    quoted_steps = tuple(_quoted_steps(request.messages))
    record: dict[str, Any] = {
        "done": [
            {"text": f"ran {_first_words(argument_text(step.text))}", "handles": [step.handle]}
            for step in quoted_steps
            if step.voice == "call"
        ][-MAX_ITEMS:],
        "errors": [
            {"text": line.strip()[:200], "handles": [step.handle]}
            for step in quoted_steps
            if step.voice == "result"
            for line in step.text.splitlines()
            if _FAILS.search(line)
        ][-3:],
        "decisions": [
            {"text": line.strip()[:200], "handles": [step.handle]}
            for step in quoted_steps
            if step.voice == "model"
            for line in split_sentences(step.text)
            if "decided" in line
        ][-MAX_ITEMS:],
        "artifacts": [{"text": name, "handles": [at]} for name, at in _newest_mentions(quoted_steps).items()][
            -MAX_ITEMS:
        ],
    }
    model_steps = [step for step in quoted_steps if step.voice == "model"]
    if model_steps:
        record["state"] = {
            "text": f"it wrote last: {_first_words(model_steps[-1].text)}",
            "handles": [model_steps[-1].handle],
        }
    return json.dumps({name: value for name, value in record.items() if value}, ensure_ascii=False)


def _first_words(text: str) -> str:
    """Return the first five words, at most 80 characters."""
    return " ".join(text.split()[:5])[:80]


def _newest_mentions(quoted_steps: tuple[_QuotedStep, ...]) -> dict[str, str]:
    """Return the identifiers in the steps with the handle of their newest mention, the newest last."""
    handles: dict[str, str] = {}
    for step in quoted_steps:
        if step.voice in ("call", "model", "result"):
            for name in identifiers(step.text[:2_000]):
                handles.pop(name, None)
                handles[name] = step.handle
    return handles


def _quoted_steps(messages: tuple[Message, ...]) -> Iterator[_QuotedStep]:
    """Yield the steps that the request quotes; without quotes, the messages before it."""
    prompt = as_text(messages[-1].content)
    steps = list(_STEP.finditer(prompt))
    for step in steps:
        yield _QuotedStep(step["handle"], step["voice"], unescape(step["text"]))
    conversation = _LEFT.search(prompt)
    if steps or conversation is None:
        return
    for message in messages[:-1]:
        voice = {"assistant": "model", "tool": "result"}.get(message.role)
        if voice is not None:
            yield _QuotedStep(conversation[1], voice, as_text(message.content))
        for call in message.tool_calls:
            yield _QuotedStep(conversation[1], "call", call.arguments)


@dataclass(slots=True)
class ScriptedModel:
    """A model that answers each request with the next of ``answers``, then with ``plain_record``.

    An answer is a text, an exception to raise, or a function of the request. With a ``gate`` it answers once the gate is
    open, and fails after ``timeout`` seconds. ``requests`` lists the requests it got.
    """

    answers: list[str | Exception | Callable[[ModelRequest], str]] = field(default_factory=list)
    gate: threading.Event | None = None
    timeout: float = 600.0
    window: int = 32_768
    name: str = "scripted"
    requests: list[ModelRequest] = field(default_factory=list)

    def write(self, request: ModelRequest) -> ModelResponse:
        """Return the next answer."""
        self.requests.append(request)
        if self.gate is not None and not self.gate.wait(min(self.timeout, request.timeout)):
            raise ModelUnavailable(f"{self.name} did not answer within {self.timeout:g} s")
        answer = self.answers.pop(0) if self.answers else plain_record
        if isinstance(answer, Exception):
            raise answer
        return ModelResponse(answer if isinstance(answer, str) else answer(request))
