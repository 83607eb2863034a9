"""Scripts of a provider: the answer to each request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Protocol = Literal["messages", "chat", "responses", "gemini"]

COMPACTION_PROMPTS = (
    "create a detailed summary of the conversation",  # Claude Code
    "detailed summary of our conversation so far",
    "CONTEXT CHECKPOINT COMPACTION",  # Codex
    "Provide a detailed prompt for continuing our conversation",
    "context summarization agent",  # opencode
    "summarizes internal chat history",  # Qwen Code
    "Summarize this session for continuation",  # Cline
    "context summarization assistant",  # pi
    "summarizes a conversation when its context window is about to overflow",  # Qwen Code since 0.24
    "generate the updated <state_snapshot>",  # Gemini CLI
)
"""Words of the prompts with which agents have a model compact their history."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool: its name, its arguments as a mapping, and its id; "" for one that the provider makes."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the model: text, calls, and signed thinking where the protocol has it."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A request as a script reads it: its protocol, its body, and the names of the tools in it."""

    protocol: Protocol
    body: Mapping[str, Any]
    tools: tuple[str, ...]

    @property
    def rows(self) -> Any:
        """The messages as they came; a text alone in the Responses API."""
        return next((self.body[key] for key in ("messages", "input", "contents") if key in self.body), "")

    @property
    def text(self) -> str:
        """All of the messages, as JSON."""
        return json.dumps(self.rows, ensure_ascii=False)

    @property
    def last_text(self) -> str:
        """The last message, as JSON."""
        rows = self.rows
        return json.dumps(rows[-1] if isinstance(rows, list) and rows else rows, ensure_ascii=False)

    @property
    def is_compaction(self) -> bool:
        """True if the client has the model compact its history."""
        rows = self.rows
        ends = [*rows[:1], *rows[-2:]] if isinstance(rows, list) else rows
        text = json.dumps([self.body.get("instructions"), self.body.get("system"), ends])
        return any(prompt in text for prompt in COMPACTION_PROMPTS)


Script = Callable[[Question], Answer]


@dataclass(slots=True)
class ToolLoop:
    """An agent's run: one call of a tool an answer, ``calls`` times, then ``end``.

    It counts its own answers, so it does not depend on how much of the history a request shows. ``tool`` is the name of
    the tool, by default the first in the request; ``arguments`` makes the arguments of a call from its number. Requests
    without tools, as for a title, are answered by ``aside``, and those that ask for a summary by ``summary``. Where one of
    Gemini's has a schema, the answer is the plainest that fits.
    """

    calls: int
    tool: str = ""
    arguments: Callable[[int], Mapping[str, Any]] = lambda number: {"number": number}
    end: str = "All done."
    aside: str = "A title"
    summary: str = "A summary."
    made: int = 0
    text: Callable[[int], str] = lambda number: f"Now step {number}."

    def __call__(self, question: Question) -> Answer:
        """Answer one request."""
        if question.is_compaction:
            return Answer(self.summary)
        name = self.tool or (question.tools[0] if question.tools else "")
        if name not in question.tools:
            schema = (question.body.get("generationConfig") or {}).get("responseJsonSchema")
            return Answer(json.dumps(_plainest_value(schema)) if schema else self.aside)
        if self.made >= self.calls:
            return Answer(self.end)
        self.made += 1
        return Answer(self.text(self.made), (Call(name, self.arguments(self.made)),))


def _plainest_value(schema: Mapping[str, Any]) -> Any:
    match str(schema.get("type")).lower():
        case "object":
            return {name: _plainest_value(part) for name, part in schema.get("properties", {}).items()}
        case "string":
            return schema.get("enum", ["none"])[0]
        case "boolean":
            return False
        case "array":
            return []
        case _:
            return schema.get("minimum", 0)
