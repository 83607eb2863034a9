"""A log of facts that an earlier release wrote, kept in tests/formats: read whole by this one. Never regenerated."""

import contextlib
import shutil
from pathlib import Path

from pagein.backends.sqlite.log import SQLiteLog
from pagein.events.entries import FactConfirmed, FactRemoved, FactsExtracted, FactStated, FactsUsed, Source
from pagein.facts import ledger_of
from pagein.facts.store import Facts

STORED = Path(__file__).parent.parent / "formats" / "facts-1" / "log.db"

# What it was written with, spelled out here so that no later change of a sample changes it.
BODIES = (
    FactStated("Prefers tabs.", "preference", 0.9, "user", "alice", 1.5, 2e9, (Source("web", "s1"),), (), (), "rules", "said"),
    FactStated("Prefers spaces.", "correction", 1.0, "user", "alice", None, None, (), (0,), (), "user", "corrected"),
    FactConfirmed(1, 0.95, (Source("web", "s4"),), "some-model", "said again"),
    FactsUsed((1, 0)),
    FactsExtracted("web", 16, "some-model"),
    FactStated("Caf\u00e9 \u2028 \0 \ud83d", "context", 0.5, "user", "alice", disputes=(1,)),
    FactRemoved(1, "moved on", "user"),
    FactStated("A long one. " * 3000, "context", 0.5, "user", "alice"),
)  # fmt: skip
LAST_DIGEST = "s2:7a0de24d061749dace471b33f79bda6f1b0a2d8b183764b683b2414b52ee5aa3"


def test_facts_of_version_1_are_read_whole(tmp_path):
    path = shutil.copy(STORED, tmp_path / "log.db")
    name = "pagein:facts:user:alice"
    with contextlib.closing(SQLiteLog(path, tenant="acme", session=name)) as log:
        entries = list(log.read())
        assert tuple(entry.body for entry in entries) == BODIES
        assert [entry.at for entry in entries] == [1_700_000_000.125 + number for number in range(len(BODIES))]
        assert entries[-1].digest == LAST_DIGEST
        assert log.verify().ok
        book = ledger_of(entries[:-1])
    assert [fact.id for fact in book.facts.values()] == ["fu5"]
    assert (book.extracted, book.removals[1].fact.uses) == ({"web": 16}, 1)


def test_facts_of_version_1_are_written_on(tmp_path):
    path = str(shutil.copy(STORED, tmp_path / "log.db"))
    entries = list(SQLiteLog(path, tenant="acme", session="pagein:facts:user:alice", readonly=True).read())
    assert ledger_of(entries, until=entries[0].at).facts[0].content == "Prefers tabs."
    with contextlib.closing(SQLiteLog(path, tenant="acme", session="pagein:facts:user:bob")) as log:
        log.append([BODIES[0]], after=0, at=5.0)
    with Facts.open(path, user="bob", tenant="acme", clock=lambda: 9.0) as facts:
        assert [fact.content for fact in facts.list()] == ["Prefers tabs."]
        assert facts.correct("fu0", "Prefers spaces.").supersedes == ("fu0",)
