"""``pagein export`` and ``pagein import``: a session out of its store and into another."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pagein.backends.open import open_log
from pagein.cli import _output as screen
from pagein.cli import _stores as stores
from pagein.cli._options import AsJson, SessionName
from pagein.cli._stores import Store, TenantName
from pagein.facts.owners import is_reserved
from pagein.formats import format_named
from pagein.log.branch_log import is_branching
from pagein.memory.export import Exported, export_messages, export_session, import_session, read_session


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
    names = stores.sessions(db, tenant, is_left_out=is_branching)
    runs = tuple(each for each in names if not is_reserved(each)) or names
    name = stores.chosen(db, names if session in names else runs, session)
    with stores.opened(db, name, tenant) as log:
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
    _tell(done, f"{stores.where(db)}: {{}} entries in the session {name!r}", json=json)
    return 0


def _tell(done: Exported, said: str, *, json: bool) -> None:
    if json:
        screen.show_json({"entries": done.entries, "digest": done.digest})
    else:
        digest = f", the last digest {done.digest}" if done.digest else ""
        screen.show(said.format(f"{done.entries:,}") + digest)
