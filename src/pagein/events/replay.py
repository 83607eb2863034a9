"""Replay of a run as text lines, with long texts cut in the middle. For display only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from pagein.errors import ConfigurationError
from pagein.events.steps import ActionStep, Step, as_text, kind_name

DETAILED_MAX_CHARS = 20_000
"""The characters shown of a text in a detailed replay; smolagents' number."""

BRIEF_MAX_CHARS = 500
"""The characters shown of a text in a replay without details."""


class StepSource(Protocol):
    """An object with steps, such as a memory."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step, in order."""
        ...


def truncate_content(text: str, max_length: int = DETAILED_MAX_CHARS) -> str:
    """Cut a text to ``max_length`` characters: its head and tail, and a notice between them.

    Raises ConfigurationError for a length below 1.
    """
    if isinstance(max_length, bool) or not isinstance(max_length, int) or max_length < 1:
        raise ConfigurationError(f"max_length is a number of characters from 1 on, not {max_length!r}")
    if len(text) <= max_length:
        return text
    notice = f"\n..._{len(text):,} characters, cut to {max_length:,} for display_...\n"
    room = max_length - len(notice)
    if room < 2:
        return text[:max_length]
    return f"{text[: room - room // 2]}{notice}{text[len(text) - room // 2 :]}"


def replay(run: StepSource | Iterable[Step], write: Callable[[str], object], *, detailed: bool = False) -> None:
    """Pass the lines of a run, step by step, to ``write``, such as ``print``.

    Long texts are cut to 500 characters. With ``detailed`` the limit is 20,000, and results and arguments are shown too.
    """
    steps: Iterable[Step] = run if isinstance(run, Iterable) else run.steps
    for number, step in enumerate(steps):
        for line in _step_lines(number, step, detailed=detailed):
            write(line)


def _step_lines(number: int, step: Step, *, detailed: bool) -> Iterator[str]:
    length = DETAILED_MAX_CHARS if detailed else BRIEF_MAX_CHARS
    yield f"── {number} {kind_name(step)} ──"
    if text := as_text(step.content):
        yield truncate_content(text, length)
    if not isinstance(step, ActionStep):
        return
    for index, call in enumerate(step.tool_calls):
        yield f"→ {call.name}({truncate_content(call.arguments, length)})" if detailed else f"→ {call.name}"
        observation = step.observations[index] if index < len(step.observations) else None
        if observation is None:
            yield "← (no result yet)"
        elif detailed or observation.status != "ok":
            yield f"← {observation.status}: {truncate_content(observation.result, length)}"
