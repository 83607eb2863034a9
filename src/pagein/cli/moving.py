"""``pagein export`` and ``pagein import``: a session out of its store and into another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pagein.cli import screen
from pagein.cli.options import AsJson, SessionName
from pagein.errors import ConfigurationError, LogUnreadable
from pagein.exporting import Exported, export_messages, export_session, import_session, read_session
from pagein.formats import format_named
from pagein.log.branching import is_branching
from pagein.log.opening import is_postgres, open_log
from pagein.log.rows import RowLog

Store = Annotated[str, Parameter(help="The SQLite file of a memory, or the address of one: postgresql://...")]
TenantName = Annotated[str, Parameter(help="Whose session, where the store is shared.")]


def export(
    db: Store,
    file: Annotated[
        Path, Parameter(help="What to write; a file that is there is replaced, when all is written.")
    ],
    /,
    *,
    session: SessionName = None,
    tenant: TenantName = "",
    format: Annotated[str, Parameter(help="pagein, or plain messages: openai or anthropic.")] = "pagein",
    json: AsJson = False,
) -> int:
    """Write a session to one file, whole.

    In pagein's own format, lines of JSON, nothing is left out: entries, times,
    images, hashes. pagein import proves it and restores it. As plain messages it
    is the transcript: every step as it was recorded, nothing compacted.

    For example:

      pagein export run.db run.jsonl
      pagein export run.db transcript.json --format anthropic
      pagein export postgresql://localhost/agents run.jsonl --session web-app
    """
    if format != "pagein":
        format_named(format)
    with _opened(db, session, tenant) as log:
        done = export_session(log, file) if format == "pagein" else export_messages(log, file, format)
    _tell(done, f"{file}: {{}} {'entries' if format == 'pagein' else 'messages'}", json=json)
    return 0


def restore(
    file: Annotated[Path, Parameter(help="What pagein export has written.")],
    db: Store,
    /,
    *,
    session: Annotated[str | None, Parameter(help="Another name for it than it had.")] = None,
    tenant: Annotated[str | None, Parameter(help="Another tenant's than it was.")] = None,
    json: AsJson = False,
) -> int:
    """Restore a session from its file, every hash derived again first.

    A file that was changed or cut off is refused, and nothing is written; nor is
    it into a session that has entries already.

    For example:

      pagein import run.jsonl other.db
      pagein import run.jsonl other.db --session copy
    """
    read = read_session(file)
    name = read.session if session is None else session
    log = open_log(db, session=name, tenant=read.tenant if tenant is None else tenant)
    with contextlib.closing(log):
        done = import_session(read, log)
    _tell(done, f"{_where(db)}: {{}} entries in the session {name!r}", json=json)
    return 0


def _tell(done: Exported, said: str, *, json: bool) -> None:
    if json:
        screen.show_json({"entries": done.entries, "digest": done.digest})
    else:
        digest = f", the last digest {done.digest}" if done.digest else ""
        screen.show(said.format(f"{done.entries:,}") + digest)


@contextlib.contextmanager
def _opened(db: str, session: str | None, tenant: str) -> Iterator[RowLog]:
    """The session that is meant, to be read. Raises ConfigurationError where that is none, or unclear."""
    with contextlib.closing(open_log(db, tenant=tenant, readonly=True)) as log:
        sessions = tuple(each for each in getattr(log, "sessions", tuple)() if not is_branching(each))
    if session is None and len(sessions) != 1:
        if not sessions:
            raise ConfigurationError(f"{_where(db)}: nothing is recorded there")
        raise ConfigurationError(f"{_where(db)}: say which session with --session: {listed(sessions)}")
    if session is not None and session not in sessions:
        raise ConfigurationError(f"{_where(db)}: no session {session!r}; there are {listed(sessions)}")
    name = sessions[0] if session is None else session
    with contextlib.closing(open_log(db, session=name, tenant=tenant, readonly=True)) as log:
        if not isinstance(log, RowLog):
            raise LogUnreadable(f"{_where(db)}: this store does not give its rows")
        yield log


def listed(sessions: tuple[str, ...]) -> str:
    """The names, the first few of them."""
    more = f" and {len(sessions) - 8} more" if len(sessions) > 8 else ""
    return ", ".join(map(repr, sessions[:8])) + more


def _where(db: str) -> str:
    """The store's name, without a password."""
    return "the database" if is_postgres(db) else db
