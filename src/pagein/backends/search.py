"""The archive of a log: beside it in its file or on its server, else in memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pagein._common.lazy import is_of
from pagein.backends.sqlite.log import SQLiteLog
from pagein.backends.sqlite.search import SqliteArchive
from pagein.log.base import Log
from pagein.log.branch_log import BranchLog
from pagein.search.base import Embedder
from pagein.search.index import DerivedArchive


def archive_of(
    log: Log, *, embedder: Embedder | None = None, own_tools: Collection[str] = ()
) -> DerivedArchive:
    """The index over the log's session, and over its tenant's other sessions where they are in one store of ours.

    A log that is in no store of ours, may not be written to, or is encrypted has its index in memory, of its own
    session only: an index is made of what was said, in clear.
    """
    options: dict[str, Any] = {
        "session": getattr(log, "session", "default"),
        "tenant": getattr(log, "tenant", ""),
        "embedder": embedder,
        "own_tools": own_tools,
    }
    # A branch's index lies with its own entries, under their name.
    file = log.own if isinstance(log, BranchLog) else log
    if getattr(file, "readonly", False) or getattr(file, "is_sealed", False):
        return SqliteArchive(**options)
    if isinstance(file, SQLiteLog):
        return SqliteArchive(file.path, **options)
    if is_of(file, "pagein.backends.postgres.log", "PostgresLog"):
        from pagein.backends.postgres.search import PostgresArchive  # noqa: PLC0415 - its driver is an extra

        server: Any = file
        return PostgresArchive(server.where, schema=server.schema, timeout=server.timeout, **options)
    return SqliteArchive(**options)
