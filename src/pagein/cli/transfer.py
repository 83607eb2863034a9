"""``pagein export`` and ``pagein import``: move a session, or everything, from one store to another."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pagein.backends.open import display_name, open_log, open_store
from pagein.cli import _output, _stores
from pagein.cli._options import AsJson
from pagein.cli._settings import ANY_RUN, RunOptions, resolve_tenant
from pagein.cli._stores import StoreAddress
from pagein.errors import ConfigurationError, LogUnreadable
from pagein.facts.owners import is_reserved
from pagein.formats import FORMATS, format_named
from pagein.log.branch_log import REGISTRY, is_branching
from pagein.memory.export import (
    ExportResult,
    StoreResult,
    export_messages,
    export_session,
    export_store,
    import_session,
    import_store,
    read_session,
    tenant_of_file,
)

ExportFormat = Annotated[str, Parameter(help=f"pagein, or plain messages: {', '.join(FORMATS)}.")]


def export(
    db: StoreAddress,
    file: Annotated[Path, Parameter(help="File to write. An existing file is replaced once all is written.")],
    /,
    *,
    run: RunOptions = ANY_RUN,
    everything: Annotated[bool, Parameter("--all", help="Write every session of the store, not one.")] = False,
    format: ExportFormat = "pagein",
    json: AsJson = False,
) -> int:
    """Write one session, or with --all a whole store, to one file.

    pagein's own format is JSON lines with the entries, their times, images and
    hashes. pagein import verifies and restores it. The file is not encrypted, even
    if the store is. The formats of plain messages contain the transcript: every
    step as it was recorded, and nothing else.

    One session is its branch main. With --all the file has all runs, branches,
    checkpoints, facts and requests of the tenant. It never has other tenants, what
    LangGraph's saver and store keep, and the search index, which is built again.

    For example:

      pagein export run.db run.jsonl
      pagein export run.db store.jsonl --all
      pagein export run.db transcript.json --format anthropic
      pagein export postgresql://localhost/agents run.jsonl --session web-app
    """
    if everything:
        return _export_store(db, file, run, format, json=json)
    if format != "pagein":
        format_named(format)
    session, tenant = run.resolve()
    names = _stores.list_sessions(db, tenant, is_left_out=is_branching)
    runs = tuple(name for name in names if not is_reserved(name)) or names
    name = _stores.choose_session(db, names if session in names else runs, session)
    with _stores.open_stored_log(db, name, tenant) as log:
        result = export_session(log, file) if format == "pagein" else export_messages(log, file, format)
        has_branches = log.store.head(f"{REGISTRY}{name}") > 0
    nouns = ("entry", "entries") if format == "pagein" else ("message", "messages")
    _print_result(result, nouns, f"{file}: {{}}", json=json)
    if has_branches and not json:
        _output.print_text("The file has the branch main alone: --all writes every branch.")
    return 0


def _export_store(db: str, file: Path, run: RunOptions, format: str, *, json: bool) -> int:
    if run.session is not None or format != "pagein":
        raise ConfigurationError("--all writes every session, in pagein's own format: leave out --session and --format")
    tenant = resolve_tenant(run.tenant)
    _stores.list_sessions(db, tenant, is_left_out=lambda _: False)
    with (
        contextlib.closing(open_store(db, tenant=tenant, readonly=True)) as store,
        _output.progress_bar("export", None) as advance,
    ):
        result = export_store(store, file, advance)
    _print_store_result(result, str(file), json=json)
    return 0


def _import_store(file: Path, db: str, tenant: str, *, skip: bool, json: bool) -> int:
    with contextlib.closing(open_store(db, tenant=tenant)) as store, _output.progress_bar("import", None) as advance:
        result = import_store(file, store, skip=skip, tell=advance)
    _print_store_result(result, display_name(db), json=json)
    return 0


def _print_store_result(result: StoreResult, place: str, *, json: bool) -> None:
    if json:
        _output.print_json(asdict(result))
        return
    counts = (_output.count_of(result.runs, "run"), _output.count_of(result.entries, "entry", "entries"))
    _output.print_text(f"{place}: {', '.join(counts)}, {_output.count_of(result.requests, 'request')}")
    if result.present:
        _output.print_text(f"{_output.count_of(result.present, 'session')} there already, with every entry")
    for name in result.skipped:
        _output.print_text(f"skipped, as it or its run is there with other entries: {name}")


def import_file(
    file: Annotated[Path, Parameter(help="File that pagein export wrote.")],
    db: StoreAddress,
    /,
    *,
    session: Annotated[str | None, Parameter(help="New name of the session. Default: its name in the file.")] = None,
    tenant: Annotated[str | None, Parameter(help="New tenant. Default: the tenant in the file.")] = None,
    skip: Annotated[bool, Parameter(help="Of a whole store, leave out what is there with other entries.")] = False,
    json: AsJson = False,
) -> int:
    """Restore a session, or a whole store, from its file, after verifying every hash.

    A file that was changed or truncated is refused, and so is a session that has
    other entries already. Nothing is written then. An import of a whole store that
    was interrupted is continued by the same command. It keeps its names.

    For example:

      pagein import run.jsonl other.db
      pagein import run.jsonl other.db --session copy
      pagein import store.jsonl postgresql://localhost/agents
      pagein import store.jsonl other.db --skip
    """
    with _seekable(file) as whole:
        return _import_whole(whole, db, session, tenant, skip=skip, json=json)


@contextlib.contextmanager
def _seekable(file: Path) -> Iterator[Path]:
    """The file, or a copy of what a pipe gives: an import reads it more than once."""
    if file.is_file() or file.is_dir() or not file.exists():
        yield file
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, file.name)
        with file.open("rb") as pipe, copy.open("wb") as target:
            shutil.copyfileobj(pipe, target)
        try:
            yield copy
        except LogUnreadable as error:
            raise LogUnreadable(str(error).replace(str(copy), str(file))) from error


def _import_whole(file: Path, db: str, session: str | None, tenant: str | None, *, skip: bool, json: bool) -> int:
    if (store_tenant := tenant_of_file(file)) is not None:
        if session is not None or tenant not in (None, store_tenant):
            raise ConfigurationError(
                "a whole store keeps its names, as its branches are proven by them: leave out --session and --tenant"
            )
        return _import_store(file, db, store_tenant, skip=skip, json=json)
    if skip:
        raise ConfigurationError(f"--skip is for the file of a whole store, and {file} is one session")
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
