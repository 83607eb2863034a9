"""Inputs of the search index suite: a run, hostile queries, and embedders."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from pagein.backends.memory import InMemoryLog
from pagein.events import steps
from pagein.events.entries import Body, Observed, Pin
from pagein.log.base import Log
from pagein.search import Query, SearchIndex
from pagein.search.tokenizer import STOP_WORDS

OpenSearchIndex = Callable[..., SearchIndex]

RUN: tuple[Body, ...] = (
    steps.SystemPromptStep("You mend the harbour office's ledgers."),
    steps.TaskStep("The nightly export of crane receipts fails."),
    steps.PlanningStep("First the exporter, then the receipts."),
    steps.ActionStep(
        "I read the exporter.",
        (steps.ToolCall("c1", "bash", '{"command": "cat src/ledger/export_rows.py"}'),),
        (steps.Observation("c1", "def export_rows(batchSize):\n    raise ReceiptError('E4711: no quay')\n"),),
    ),
    steps.ActionStep("And its tests.", (steps.ToolCall("c2", "bash", "{}"), steps.ToolCall("c3", "bash", "{}"))),
    Observed(4, 1, steps.Observation("c3", "3 passed in test_quay.py")),
    Observed(4, 0, steps.Observation("c2", "1 failed: test_crane_totals", status="error")),
    Pin("Never touch the bollard table."),
    steps.FinalAnswerStep("The quay was missing for receipts of 8 May 2023; it is there now."),
)

HOSTILE_QUERIES = (
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


class CountingEmbedder:
    """A deterministic embedder for tests; texts that share words are near. ``texts`` lists what it embedded."""

    def __init__(self, dimension: int = 96, name: str = "counting") -> None:
        self.dimension, self.name = dimension, name
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts by the hashes of their words."""
        self.texts += texts
        return [self._of(text) for text in texts]

    def _of(self, text: str) -> list[float]:
        vector = [-0.02] * self.dimension
        for word in set(text.lower().split()) - STOP_WORDS:
            digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
            for byte in digest[:4]:
                vector[byte % self.dimension] += 1.0
        return vector


class FailingEmbedder(CountingEmbedder):
    """An embedder that raises."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise ConnectionError("the endpoint is down")


def record_bodies(*bodies: Body, session: str = "default", tenant: str = "", log: Log | None = None) -> Log:
    """Append the bodies to a new log, or to ``log``, a minute apart; return the log."""
    log = log or InMemoryLog(session=session, tenant=tenant)
    for body in bodies:
        log.append([body], after=log.head(), at=1_000.0 + 60 * log.head())
    return log


def hit_handles(index: SearchIndex, query: Query | str) -> list[str]:
    """Return the handles of the hits."""
    return [hit.handle for hit in index.search(query)]
