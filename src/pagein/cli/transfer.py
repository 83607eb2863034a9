"""``pagein export`` and ``pagein import``: move a session from one store to another."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pagein.backends.open import display_name, open_log
from pagein.cli import _output, _stores
from pagein.cli._options import AsJson, SessionName
from pagein.cli._settings import ConfiguredTenant, resolve_session
from pagein.cli._stores import StoreAddress
from pagein.facts.owners import is_reserved
from pagein.formats import FORMATS, format_named
from pagein.log.branch_log import is_branching
from pagein.memory.export import ExportResult, export_messages, export_session, import_session, read_session

ExportFormat = Annotated[str, Parameter(help=f"pagein, or plain messages: {', '.join(FORMATS)}.")]


def export(
    db: StoreAddress,
    file: Annotated[Path, Parameter(help="File to write. An existing file is replaced once all is written.")],
    /,
    *,
    session: SessionName = None,
    tenant: ConfiguredTenant = None,
    format: ExportFormat = "pagein",
    json: AsJson = False,
) -> int:
    """Write a whole session to one file.

    pagein's own format is JSON lines with everything: entries, times, images,
    hashes. pagein import verifies and restores it. The formats of plain messages
    contain the transcript: every step as it was recorded, and nothing else.
    The file is not encrypted, even if the store is.

    For example:

      pagein export run.db run.jsonl
      pagein export run.db transcript.json --format anthropic
      pagein export postgresql://localhost/agents run.jsonl --session web-app
    """
    if format != "pagein":
        format_named(format)
    session, tenant = resolve_session(None, session, tenant)
    names = _stores.list_sessions(db, tenant, is_left_out=is_branching)
    runs = tuple(run for run in names if not is_reserved(run)) or names
    name = _stores.choose_session(db, names if session in names else runs, session)
    with _stores.open_stored_log(db, name, tenant) as log:
        result = export_session(log, file) if format == "pagein" else export_messages(log, file, format)
    nouns = ("entry", "entries") if format == "pagein" else ("message", "messages")
    _print_result(result, nouns, f"{file}: {{}}", json=json)
    return 0


def import_file(
    file: Annotated[Path, Parameter(help="File that pagein export wrote.")],
    db: StoreAddress,
    /,
    *,
    session: Annotated[str | None, Parameter(help="New name of the session. Default: its name in the file.")] = None,
    tenant: Annotated[str | None, Parameter(help="New tenant. Default: the tenant in the file.")] = None,
    json: AsJson = False,
) -> int:
    """Restore a session from its file, after verifying every hash.

    A file that was changed or truncated is refused, and so is a session that has
    entries already. Nothing is written then.

    For example:

      pagein import run.jsonl other.db
      pagein import run.jsonl other.db --session copy
    """
    exported = read_session(file)
    name = exported.session if session is None else session
    log = open_log(db, session=name, tenant=exported.tenant if tenant is None else tenant)
    with contextlib.closing(log):
        result = import_session(exported, log)
    _print_result(result, ("entry", "entries"), f"{display_name(db)}: {{}} in the session {name!r}", json=json)
    return 0


def _print_result(result: ExportResult, nouns: tuple[str, str], template: str, *, json: bool) -> None:
    if json:
        _output.print_json({"entries": result.entries, "digest": result.digest})
    else:
        digest = f", last digest {result.digest}" if result.digest else ""
        _output.print_text(template.format(_output.count_of(result.entries, *nouns)) + digest)
