"""A model without a model: it writes a plain record of what it is asked about, in time or late.

It reads the request alone, as a model does. How well a real one writes is not measured with it; that what is written
gets to where it belongs, and costs what it costs, is.
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
from pagein.models.base import Ask, Reply
from pagein.models.errors import ModelUnavailable
from pagein.summaries.key_items import sentences

_STEP: Final = re.compile(
    r'<pagein-step handle="(?P<handle>[^"]+)" by="(?P<voice>\w+)"(?P<more>[^>]*)>\n(?P<text>.*?)\n</pagein-step>',
    re.DOTALL,
)
_LEFT: Final = re.compile(r"this conversation, (s\d+(?:-\d+)?),")
_FAILS: Final = re.compile(r"\b\w*(?:error|exception|failed|denied)\b", re.IGNORECASE)

MOST: Final = 12
"""Entries of a kind in one record."""


@dataclass(frozen=True, slots=True)
class _Heard:
    handle: str
    voice: str
    text: str


def plain_record(ask: Ask) -> str:
    """The JSON a summariser is asked for: what was run, what failed, what was named, and where things stand."""
    heard = tuple(_heard(ask.messages))
    record: dict[str, Any] = {
        "done": [
            {"text": f"ran {_few(argument_text(each.text))}", "handles": [each.handle]}
            for each in heard
            if each.voice == "call"
        ][-MOST:],
        "errors": [
            {"text": line.strip()[:200], "handles": [each.handle]}
            for each in heard
            if each.voice == "result"
            for line in each.text.splitlines()
            if _FAILS.search(line)
        ][-3:],
        "decisions": [
            {"text": line.strip()[:200], "handles": [each.handle]}
            for each in heard
            if each.voice == "model"
            for line in sentences(each.text)
            if "decided" in line
        ][-MOST:],
        "artifacts": [{"text": name, "handles": [at]} for name, at in _named(heard).items()][-MOST:],
    }
    spoken = [each for each in heard if each.voice == "model"]
    if spoken:
        record["state"] = {"text": f"it wrote last: {_few(spoken[-1].text)}", "handles": [spoken[-1].handle]}
    return json.dumps({name: value for name, value in record.items() if value}, ensure_ascii=False)


def _few(text: str) -> str:
    """The first words, few enough that the record is no echo."""
    return " ".join(text.split()[:5])[:80]


def _named(heard: tuple[_Heard, ...]) -> dict[str, str]:
    """The names in what was said and called, each with where it was named last; last the newest."""
    found: dict[str, str] = {}
    for each in heard:
        if each.voice in ("call", "model", "result"):
            for name in identifiers(each.text[:2_000]):
                found.pop(name, None)
                found[name] = each.handle
    return found


def _heard(messages: tuple[Message, ...]) -> Iterator[_Heard]:
    """What the request quotes; where it quotes nothing, the conversation it stands behind."""
    asked = as_text(messages[-1].content)
    steps = list(_STEP.finditer(asked))
    for each in steps:
        yield _Heard(each["handle"], each["voice"], unescape(each["text"]))
    left = _LEFT.search(asked)
    if steps or left is None:
        return
    for message in messages[:-1]:
        voice = {"assistant": "model", "tool": "result"}.get(message.role)
        if voice is not None:
            yield _Heard(left[1], voice, as_text(message.content))
        for call in message.tool_calls:
            yield _Heard(left[1], "call", call.arguments)


@dataclass(slots=True)
class Scripted:
    """A model that answers each ask with the next of ``answers``, then with ``plain_record``.

    An answer is a text, an exception to raise, or a callable that is given the ask. With a ``gate`` it is at work until
    the gate is opened, or ``late`` seconds have passed. What it was asked is in ``asked``.
    """

    answers: list[str | Exception | Callable[[Ask], str]] = field(default_factory=list)
    gate: threading.Event | None = None
    late: float = 30.0
    window: int = 32_768
    name: str = "scripted"
    asked: list[Ask] = field(default_factory=list)

    def write(self, ask: Ask) -> Reply:
        """The next answer."""
        self.asked.append(ask)
        if self.gate is not None and not self.gate.wait(min(self.late, ask.timeout)):
            raise ModelUnavailable(f"{self.name} did not answer within {self.late:g} s")
        answer = self.answers.pop(0) if self.answers else plain_record
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer if isinstance(answer, str) else answer(ask))
