"""Files that earlier releases wrote, kept in tests/formats: read whole by this one. Never regenerated, never edited."""

import contextlib
import shutil
from pathlib import Path

import pytest

from pagein.backends.sqlite.log import SQLiteLog
from pagein.backends.sqlite.migrations import MIGRATIONS
from pagein.events.entries import Checkpoint, Compaction, Observed, Pin, Replacement, RetentionScore, Stub, Undo, Unpin
from pagein.events.steps import (
    ActionStep,
    FinalAnswerStep,
    Image,
    Observation,
    Opaque,
    PlanningStep,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    Text,
    ToolCall,
    Usage,
)
from pagein.log.codec import blob_names

FORMATS = Path(__file__).parent.parent / "formats"

EXTRA = Opaque("anthropic", "cache_control", '{"type":"ephemeral"}', "seen")
PICTURE = bytes(range(256)) * 8

# What v1/log.db was written with, and v2/log.db is the same in the second schema, spelled out here so that no later change of a sample changes it.
V1 = (
    SystemPromptStep("Answer briefly."),
    TaskStep((Text("What is this?", EXTRA), Image(PICTURE, "image/png", "", "low"), Image(b"\x89PNG", "image/png"))),
    TaskStep((Image(url="https://example.com/a.png"), Text("e\u0301 \u2028 \0 \ud83d \ufffe"))),
    PlanningStep("1. Look.", EXTRA),
    ActionStep(
        (Opaque("anthropic", "thinking", '{"signature":"x"}', "Hm."), Text("I look.")),
        (ToolCall("c1", "read", '{"path": "a', 1, EXTRA), ToolCall("c2", "list")),
        (Observation("c1", (Text("no such file"),), "error", 0, EXTRA), None),
        "some-model",
        Usage(1200, 30, 1000),
        EXTRA,
    ),
    ActionStep(None),
    ActionStep(""),
    ActionStep(()),
    Observed(4, 1, Observation("c2", (Image(PICTURE),), "unknown", 1), True),
    SummaryStep("Looked at two files.", "some-model"),
    Compaction(
        (Replacement(1, 4, (), "They asked.", "some-model"), Replacement(4, 5, (Stub("observation", 1, "[...]", "mask"),))),
        "tiers", "over the high mark", 9000, 4000,
    ),
    Pin("Never touch production."),
    Unpin(11),
    Checkpoint("tests pass", '{"done": ["a"]}'),
    Undo(10),
    Pin("A large text. " * 3000),
    FinalAnswerStep("A cat."),
)  # fmt: skip
V1_LAST_DIGEST = "s2:17ff0f6b928fa6df8c9e25b6d533af0569e4da7a1983848527f2ef059f95b1fb"


@pytest.fixture
def stored(tmp_path):
    """A copy: opening a database leaves files beside it."""

    def copy(name):
        return shutil.copy(FORMATS / name, tmp_path / "log.db")

    return copy


@pytest.mark.parametrize("name", ["v1", "v2"])
@pytest.mark.parametrize("readonly", [True, False])
def test_a_log_of_an_earlier_version_is_read_whole(stored, readonly, name):
    with contextlib.closing(
        SQLiteLog(stored(f"{name}/log.db"), tenant="acme", session="web", readonly=readonly)
    ) as log:
        assert log.store.sessions() == ("other", "web")
        entries = list(log.read())
        assert tuple(entry.body for entry in entries) == V1
        assert [entry.at for entry in entries] == [1_700_000_000.125 + each for each in range(len(V1))]
        assert entries[-1].digest == V1_LAST_DIGEST
        assert (log.verify().problems, log.verify().entries) == ((), len(V1))


@pytest.mark.parametrize("name", ["v1", "v2"])
def test_a_log_of_an_earlier_version_is_written_on(stored, name):
    path = stored(f"{name}/log.db")
    with contextlib.closing(SQLiteLog(path, tenant="acme", session="web")) as log:
        log.append([Pin("by a later release")], after=len(V1), at=1.0)
    with contextlib.closing(SQLiteLog(path, tenant="acme", session="web")) as log:
        assert [entry.body for entry in log.read(len(V1) - 1)] == [V1[-1], Pin("by a later release")]
        assert log.verify().ok


def test_every_version_of_the_schema_has_a_stored_file():
    assert sorted(each.name for each in FORMATS.glob("v*")) == [f"v{each + 1}" for each in range(len(MIGRATIONS))]


# What compaction-2/log.db and compaction-3/log.db were written with: version 2 has it in its row, version 3 deflated.
LONG = Compaction(
    tuple(
        Replacement(2 * n, 2 * n + 1, (Stub("observation", 0, f"[{n} characters masked: s{2 * n}.0] caf\u00e9 {n}", "mask"),))
        for n in range(60)
    ),
    "ladder", "over the high mark", 9000, 4000, (RetentionScore("path", 3, 2, 3),),
)  # fmt: skip
SHORT = Compaction((Replacement(1, 4, (), "They asked.", "some-model", '{"done": []}'),), "tiers", "", 90, 40)


@pytest.mark.parametrize(
    ("name", "version", "blobs", "digest"),
    [
        ("compaction-2", 2, 0, "s2:6d513404c74f3c0b39760ae293ddffd3342751074b87822bb90412072f173fef"),
        ("compaction-3", 3, 1, "s2:d487c9691ec6cf46c59639a9b40b1c2b3410a6081f89122950f8c410620040b5"),
    ],
)
def test_a_compaction_of_every_version_is_read(stored, name, version, blobs, digest):
    with contextlib.closing(SQLiteLog(stored(f"{name}/log.db"), session="web")) as log:
        rows, entries = list(log.rows()), list(log.read())
        assert [row.version for row in rows] == [version, version]
        assert len(blob_names(rows[0].body)) == blobs
        assert [entry.body for entry in entries] == [LONG, SHORT]
        assert entries[-1].digest == digest
        assert log.verify().ok
