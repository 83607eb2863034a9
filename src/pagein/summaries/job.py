"""Summaries that a model writes while the run goes on: what is to be written, how it is asked for, where it stands.

What a model writes is a record of a range of steps, held against its source. A job is made from a snapshot and changes
nothing; when the view breaks its prefix anyway, the records there are stand at the head of what stands for their range,
and an extract of the range behind them. So a range that grew meanwhile loses nothing, and nobody waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pagein.events.messages import Message
    from pagein.summaries.requests import Asking
    from pagein.summaries.spans import Span
    from pagein.summaries.summary import Summary
    from pagein.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes: the model's name, what it is asked with, and ``timeout`` seconds for each request.

    ``holds_run`` says that it is the run's own model, whose cache has the conversation: it is asked at its end.
    """

    name: str
    asking: Asking
    timeout: float = 120.0
    holds_run: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What was written of the steps ``[first, last)``."""

    first: int
    last: int
    summary: Summary


@dataclass(frozen=True, slots=True)
class Tile:
    """Steps ``[first, last)`` to be written about. ``span`` is what is asked; ``previous`` was written of what is before.

    ``span`` may begin behind ``first``: what is between was written already, and is in ``previous``.
    """

    first: int
    last: int
    span: Span
    previous: Summary | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """Tiles to write. ``counter`` counts what stands in the view; ``heard`` is what the user and the host said.

    ``conversation`` is the request whose prefix the author's cache has, where it has one.
    """

    tiles: tuple[Tile, ...]
    counter: TokenCounter
    pins: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()
    conversation: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a job: what was written, and what went wrong, if something did."""

    written: tuple[Written, ...] = ()
    problem: Exception | None = None
