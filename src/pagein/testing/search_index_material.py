"""What the suite of archives is made of: a run, queries that mean ill, embedders, and how to record and search."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.errors import LogError
from pagein.events.entries import Body, Observed, Pin
from pagein.events.steps import (
    ActionStep,
    FinalAnswerStep,
    Observation,
    PlanningStep,
    SystemPromptStep,
    TaskStep,
    ToolCall,
)
from pagein.log.base import Log
from pagein.search import Archive, Query
from pagein.search.tokenizer import STOP_WORDS

OpenArchive = Callable[..., Archive]

RUN: tuple[Body, ...] = (
    SystemPromptStep("You mend the harbour office's ledgers."),
    TaskStep("The nightly export of crane receipts fails."),
    PlanningStep("First the exporter, then the receipts."),
    ActionStep(
        "I read the exporter.",
        (ToolCall("c1", "bash", '{"command": "cat src/ledger/export_rows.py"}'),),
        (Observation("c1", "def export_rows(batchSize):\n    raise ReceiptError('E4711: no quay')\n"),),
    ),
    ActionStep("And its tests.", (ToolCall("c2", "bash", "{}"), ToolCall("c3", "bash", "{}"))),
    Observed(4, 1, Observation("c3", "3 passed in test_quay.py")),
    Observed(4, 0, Observation("c2", "1 failed: test_crane_totals", status="error")),
    Pin("Never touch the bollard table."),
    FinalAnswerStep("The quay was missing for receipts of 8 May 2023; it is there now."),
)

HOSTILE = (
    "",
    " ",
    "\0",
    'crane" OR "receipts',
    "crane NEAR(receipts) AND NOT *",
    "terms:crane ^crane -crane +crane {crane}",
    "crane'; DROP TABLE archive_passages; --",
    "%s %d {0} \\",
    "\ud83d crane",
    "=user =tool",
    "( [ ] ) \" ' ` * ^ ~ : ; , . ? !",
    "\u202ecrane\u202c",
)


class Counting:
    """An embedder for tests: the same text, the same vector; texts that share words are near."""

    def __init__(self, dimension: int = 96, name: str = "counting") -> None:
        self.dimension, self.name = dimension, name
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Words by their hash, counted."""
        self.texts += texts
        return [self._of(text) for text in texts]

    def _of(self, text: str) -> list[float]:
        vector = [-0.02] * self.dimension
        for word in set(text.lower().split()) - STOP_WORDS:
            digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
            for byte in digest[:4]:
                vector[byte % self.dimension] += 1.0
        return vector


class Failing(Counting):
    """An embedder that raises."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise ConnectionError("the endpoint is down")


def recorded(*bodies: Body, session: str = "default", tenant: str = "", log: Log | None = None) -> Log:
    """A log that holds these, a minute apart; or one that goes on."""
    log = log or InMemoryLog(session=session, tenant=tenant)
    for body in bodies:
        log.append([body], after=log.head(), at=1_000.0 + 60 * log.head())
    return log


def handles(archive: Archive, query: Query | str) -> list[str]:
    """The handles of the hits."""
    return [hit.handle for hit in archive.search(query)]


class ArchiveFixtures:
    """The fixtures that every part of the suite leans on."""

    @pytest.fixture
    def open_archive(self) -> OpenArchive:
        raise NotImplementedError("give the suite a fixture that opens an archive")

    @pytest.fixture
    def opened(self, open_archive: OpenArchive) -> Iterator[OpenArchive]:
        """Opens archives, and closes them after the test."""
        every: list[Archive] = []

        def open_one(**options: object) -> Archive:
            every.append(open_archive(**options))
            return every[-1]

        yield open_one
        for each in every:
            with suppress(LogError):
                each.close()

    @pytest.fixture
    def archive(self, opened: OpenArchive) -> Archive:
        """One that holds the run."""
        archive = opened()
        archive.catch_up(recorded(*RUN))
        return archive
