"""Synthetic run of any length, deterministic for a seed, with turns of realistic size."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_NOUNS: Final = (
    "parser",
    "field",
    "query",
    "cache",
    "index",
    "token",
    "writer",
    "schema",
    "handler",
    "buffer",
    "signal",
    "worker",
)
_VERBS: Final = ("load", "build", "merge", "check", "render", "update", "resolve", "collect", "parse", "apply")


@dataclass(frozen=True, slots=True)
class SyntheticTurn:
    """One turn of an agent: its thought, its command and the output."""

    number: int
    thought: str
    command: str
    output: str

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The turn as OpenAI chat messages."""
        call_id = f"call_{self.number}"
        function = {"name": "bash", "arguments": json.dumps({"command": self.command})}
        call = {"id": call_id, "type": "function", "function": function}
        return [
            {"role": "assistant", "content": self.thought, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": self.output},
        ]


def opening() -> list[dict[str, Any]]:
    """Return the messages before the first turn: a system prompt and a task."""
    return [
        {"role": "system", "content": "You are a careful engineer. Work in small steps. " * 20},
        {"role": "user", "content": "Fix the failing test and say what was wrong. " * 20},
    ]


def turns(length: int, seed: int = 7) -> Iterator[SyntheticTurn]:
    """Yield ``length`` turns of about 350 tokens on average; one in twenty is ten times as long."""
    rng = random.Random(seed)  # noqa: S311 - made up on purpose, and the same each time
    for number in range(length):
        path = f"src/{rng.choice(_NOUNS)}s/{rng.choice(_NOUNS)}_{rng.randrange(60)}.py"
        size = rng.randrange(4, 24) * (10 if rng.random() < 0.05 else 1)
        first = rng.randrange(1, 900)
        output = "\n".join(_line(rng, number) for number in range(first, first + size))
        yield SyntheticTurn(
            number,
            f"I will look at {path}, since {rng.choice(_NOUNS)}_{rng.randrange(60)} is used there.",
            f"sed -n '1,{size}p' {path} && grep -rn {rng.choice(_VERBS)}_{rng.choice(_NOUNS)} src",
            output,
        )


def _line(rng: random.Random, number: int) -> str:
    verb, noun, other = rng.choice(_VERBS), rng.choice(_NOUNS), rng.choice(_NOUNS)
    code = f"{noun}_{rng.randrange(60)} = self.{verb}_{other}({noun}, limit={rng.randrange(5000)})"
    return f"{number}:    {code}"
