"""Values of a summary job, which a model works on while the run goes on.

A model writes a record of a range of steps, which is verified against its source. A job works on a snapshot and changes
nothing. When the view's prefix changes anyway, the finished records are placed at the head of their range's summary,
with an extract of the range behind them. So a range that grew meanwhile loses nothing, and no turn waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pagein.events.messages import Message
    from pagein.models.writer_account import WriterAccount
    from pagein.summaries.requests import PromptSettings
    from pagein.summaries.spans import Span
    from pagein.summaries.summary import Summary
    from pagein.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class Summarizer:
    """A model that writes summaries: its name, prompt settings, and ``timeout`` seconds for each request.

    ``holds_run`` is true for the run's own model: its cache has the conversation, so the request is appended to it.
    ``is_direct`` is true where a summary is written from all its steps as long as they fit into one request.
    """

    name: str
    settings: PromptSettings
    timeout: float = 120.0
    holds_run: bool = False
    is_direct: bool = False


@dataclass(frozen=True, slots=True)
class SummaryRecord:
    """The summary that a model wrote of the steps ``[first, last)``."""

    first: int
    last: int
    summary: Summary


@dataclass(frozen=True, slots=True)
class SummaryRange:
    """Steps ``[first, last)`` to summarize: ``previous`` covers the steps before ``span``.

    ``span`` may begin after ``first``: the steps between are already in ``previous``.
    """

    first: int
    last: int
    span: Span
    previous: Summary | None = None


@dataclass(frozen=True, slots=True)
class SummaryJob:
    """Ranges to summarize. ``counter`` is the view's; ``trusted_texts`` are those of the user and the host.

    ``conversation`` is the request that the summarizer has in its cache; empty without one. ``account`` notes what is taken.
    """

    ranges: tuple[SummaryRange, ...]
    counter: TokenCounter
    pins: tuple[str, ...] = ()
    trusted_texts: tuple[str, ...] = ()
    conversation: tuple[Message, ...] = ()
    account: WriterAccount | None = None


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """Result of a job: the records, and the error if there was one."""

    records: tuple[SummaryRecord, ...] = ()
    problem: Exception | None = None
