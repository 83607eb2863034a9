"""The archive of a log: in its own file where it has one, else in memory."""

from __future__ import annotations

from collections.abc import Collection

from pagein.archive.contract import Embedder
from pagein.archive.sqlite import SqliteArchive
from pagein.log import Log
from pagein.log.branching import BranchLog
from pagein.log.sqlite import SQLiteLog


def archive_of(
    log: Log, *, embedder: Embedder | None = None, own_tools: Collection[str] = ()
) -> SqliteArchive:
    """The index over the log's session, and over its tenant's other sessions where they are in one SQLite file.

    A log that is not in a file of ours, or may not be written to, has its index in memory, of its own session only.
    """
    session, tenant = getattr(log, "session", "default"), getattr(log, "tenant", "")
    file = (
        log.own if isinstance(log, BranchLog) else log
    )  # a branch's index lies with its own entries, under their name
    path = file.path if isinstance(file, SQLiteLog) and not file.readonly else ":memory:"
    return SqliteArchive(path, session=session, tenant=tenant, embedder=embedder, own_tools=own_tools)
