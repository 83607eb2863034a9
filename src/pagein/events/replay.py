"""A run for a person to read: replayed line by line, long texts cut in the middle. For display only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from pagein.errors import ConfigurationError
from pagein.events.steps import ActionStep, Step, as_text, kind_name

LENGTH = 20_000
"""Characters of a text that are shown, as smolagents shows them."""

BRIEF = 500
"""Characters of a text that a replay without details shows."""


class Run(Protocol):
    """What has steps: a memory."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step, in order."""
        ...


def truncate_content(text: str, max_length: int = LENGTH) -> str:
    """The text, or its head and its tail with a line between that says how much is left out.

    The result is never longer than ``max_length`` characters. Raises ConfigurationError for a length below 1.
    """
    if isinstance(max_length, bool) or not isinstance(max_length, int) or max_length < 1:
        raise ConfigurationError(f"max_length is a number of characters from 1 on, not {max_length!r}")
    if len(text) <= max_length:
        return text
    told = f"\n..._{len(text):,} characters, cut to {max_length:,} for display_...\n"
    room = max_length - len(told)
    if room < 2:
        return text[:max_length]
    return f"{text[: room - room // 2]}{told}{text[len(text) - room // 2 :]}"


def replay(run: Run | Iterable[Step], write: Callable[[str], object], *, detailed: bool = False) -> None:
    """Tell a run, step by step, a line or more at a time to ``write``, as ``print``.

    Long texts are cut to 500 characters, or with ``detailed`` to 20,000, and results and arguments are told too.
    """
    steps: Iterable[Step] = run if isinstance(run, Iterable) else run.steps
    for number, step in enumerate(steps):
        for line in _told(number, step, detailed=detailed):
            write(line)


def _told(number: int, step: Step, *, detailed: bool) -> Iterator[str]:
    length = LENGTH if detailed else BRIEF
    yield f"── {number} {kind_name(step)} ──"
    if text := as_text(step.content):
        yield truncate_content(text, length)
    if not isinstance(step, ActionStep):
        return
    for index, call in enumerate(step.tool_calls):
        yield f"→ {call.name}({truncate_content(call.arguments, length)})" if detailed else f"→ {call.name}"
        seen = step.observations[index] if index < len(step.observations) else None
        if seen is None:
            yield "← (no result yet)"
        elif detailed or seen.status != "ok":
            yield f"← {seen.status}: {truncate_content(seen.result, length)}"
