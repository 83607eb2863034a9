"""Accounts of the models that write for a memory: what they cost, what was taken of it, and when they rest.

A writer answers no user. So it may cost a share of the run's own tokens, and one whose answers are of no use is not
asked for a while.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil

from pagein.events.steps import Usage
from pagein.models.errors import CircuitOpen, ModelCancelled, ModelUnavailable, SpendLimit
from pagein.models.spending import Spending, SpendLimiter

MAX_REFUSALS = 3
"""Answers of no use in a row after which a writer rests."""

FIRST_REST_SECONDS, REST_FACTOR, MAX_REST_SECONDS = 60.0, 4.0, 86_400.0
"""Seconds of the first rest; how much longer the rest after a further refusal is; seconds of the longest one."""


class WriterResting(ModelUnavailable):
    """The writer's answers were of no use; it is asked again in ``retry_after`` seconds. Nothing was sent."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message, retry_after=retry_after)
        self.unknown_cost = False


MIN_RUN_TOKENS = 4_000
"""Tokens that a shorter run counts as: what one request for the facts of a few messages may cost."""


@dataclass(frozen=True, slots=True)
class WriterReport:
    """What one writer did since the memory was opened. ``purpose`` is ``summaries``, ``facts`` or ``ratings``.

    ``asked`` counts requests, each attempt of them; ``taken`` and ``refused`` count answers to whole pieces of work.
    ``tokens`` are those of the requests and answers, in and out, as reported by the provider, else as counted.
    ``saved`` are the tokens of the steps for which a summary of this writer stands in the view, less the summary's.
    ``resting`` are the seconds until it is asked again.
    """

    purpose: str
    asked: int
    taken: int
    refused: int
    tokens: int
    saved: int
    resting: float = 0.0

    @property
    def net(self) -> int:
        """Tokens saved less tokens spent."""
        return self.saved - self.tokens


class WriterAccount(SpendLimiter):
    """The account of one writer; it limits a ``RetryingModel`` as a ``Spending`` does. Safe to share between threads."""

    def __init__(self, purpose: str, spending: Spending, clock: Callable[[], float]) -> None:
        self.purpose = purpose
        self._spending, self._clock = spending, clock
        self._asked = self._taken = self._refused = self._tokens = 0
        self._spent = (0, 0)
        self._in_a_row, self._rest_until = 0, 0.0
        self._overrun = 0
        """Tokens by which an answer was longer than it was asked to be: not every server keeps the limit."""
        self._lock = threading.Lock()

    @property
    def resting_seconds(self) -> float:
        """Seconds until the writer may be asked; 0 where it may be asked now."""
        with self._lock:
            return max(0.0, self._rest_until - self._clock())

    def rest_of(self, name: str) -> WriterResting | None:
        """The error of asking the writer now, while it rests; else None."""
        if (seconds := self.resting_seconds) <= 0:
            return None
        text = f"{self._in_a_row} answers of {name} in a row were of no use; it rests for {ceil(seconds):,} s"
        return WriterResting(text, retry_after=seconds)

    def reserve(self, max_usage: Usage) -> None:
        """Reserve the maximal cost of an attempt. Raises SpendLimit beyond what all writers may spend."""
        self._spending.reserve(max_usage, spare=self._overrun)
        with self._lock:
            self._asked += 1

    def settle(self, max_usage: Usage, cost: Usage) -> None:
        self._spending.settle(max_usage, cost)
        with self._lock:
            self._tokens += cost.input_tokens + cost.output_tokens
            self._spent = (self._spent[0] + cost.input_tokens, self._spent[1] + cost.output_tokens)
            self._overrun = max(self._overrun, cost.output_tokens - max_usage.output_tokens)

    def take_spent(self) -> tuple[int, int]:
        """Return the tokens of requests and of answers since this was asked last."""
        with self._lock:
            spent, self._spent = self._spent, (0, 0)
        return spent

    def note_taken(self) -> None:
        """Note that an answer was of use."""
        with self._lock:
            self._taken += 1
            self._in_a_row, self._rest_until = 0, 0.0

    def note_failure(self, error: Exception) -> None:
        """Note that a piece of work ended with an error; after three in a row the writer rests, longer with each more.

        A wait that was cancelled, and a request that was never sent, are nobody's fault.
        """
        if isinstance(error, ModelCancelled | SpendLimit | CircuitOpen | WriterResting):
            return
        with self._lock:
            self._refused += 1
            self._in_a_row += 1
            if self._in_a_row >= MAX_REFUSALS:
                rest = FIRST_REST_SECONDS * REST_FACTOR ** min(self._in_a_row - MAX_REFUSALS, 32)
                self._rest_until = self._clock() + min(rest, MAX_REST_SECONDS)

    def report(self, saved: int = 0) -> WriterReport:
        """The account as it stands, with the tokens that the writer's texts save."""
        resting = self.resting_seconds
        with self._lock:
            return WriterReport(self.purpose, self._asked, self._taken, self._refused, self._tokens, saved, resting)


class WriterAccounts:
    """The accounts of a memory's writers, which share one limit: ``share`` of the run's own tokens, None for no limit."""

    def __init__(self, share: float | None, clock: Callable[[], float]) -> None:
        self.share = share
        self._spending = Spending(tokens=None if share is None else 0)
        self.summaries = WriterAccount("summaries", self._spending, clock)
        self.facts = WriterAccount("facts", self._spending, clock)

    def allow(self, run_tokens: int) -> None:
        """Set the limit for a run that recorded so many tokens."""
        if self.share is not None:
            self._spending.limit_tokens(int(max(run_tokens, MIN_RUN_TOKENS) * self.share))

    @property
    def tokens_left(self) -> int | None:
        """Tokens that the writers may still spend; None without a limit."""
        return self._spending.tokens_left

    def reports(self, saved: int) -> tuple[WriterReport, ...]:
        """The reports of the writers that were asked; ``saved`` are the tokens that summaries save in the view."""
        reports = (self.summaries.report(saved), self.facts.report())
        return tuple(report for report in reports if report.asked or report.refused)


@contextmanager
def account_for(account: WriterAccount | None, name: str) -> Iterator[None]:
    """Note in the account how the work within ends. Raises WriterResting, before it, while the writer rests."""
    if account is None:
        yield
        return
    if (rest := account.rest_of(name)) is not None:
        raise rest
    try:
        yield
    except Exception as error:
        account.note_failure(error)
        raise
    account.note_taken()


def is_own_pause(error: Exception) -> bool:
    """True for an error that only says that a writer is not asked now, which was reported when its pause began."""
    return isinstance(error, CircuitOpen | WriterResting | SpendLimit)
