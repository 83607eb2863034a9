"""Summaries that a model writes while the run goes on: what is to be written, how it is asked for, how it is taken in.

A job is made from a snapshot and changes nothing. What it gave is put in place of the extract when the view breaks its
prefix anyway, where the range still stands; what no longer does is kept as a record that the next job builds on.
"""

from __future__ import annotations

from dataclasses import dataclass

from pagein.compaction import Plan
from pagein.log import Replacement, Survival
from pagein.messages import Message
from pagein.summaries.prompting import Asking
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
class Tile:
    """A range ``[first, last)`` to be written in at most ``tokens`` tokens.

    ``span`` is what is asked about; ``previous`` stands for what of the range comes before it and was written already.
    """

    first: int
    last: int
    tokens: int
    span: Span
    previous: Summary | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A plan, and the tiles of it that a model is to write. ``counter`` counts what stands in the view.

    ``conversation`` is the request whose prefix the author's cache has, where it has one.
    """

    plan: Plan
    tiles: tuple[Tile, ...]
    counter: TokenCounter
    pins: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()
    conversation: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a job: the ranges that were written, what survives in their texts, and what went wrong, if it did."""

    job: Job
    written: tuple[Replacement, ...] = ()
    fidelity: tuple[Survival, ...] = ()
    problem: Exception | None = None
