"""Export of a session or a whole store: to one file that can be imported unchanged; of a session as a provider's messages, too."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pagein.backends.base import Store, stored_log
from pagein.backends.memory import InMemoryLog
from pagein.errors import LogError, LogUnreadable
from pagein.facts.owners import is_reserved
from pagein.formats import format_named
from pagein.formats.parsing import request_rows, to_plain_json
from pagein.log.base import Log
from pagein.log.export import (
    ExportCounts,
    ExportedPart,
    ExportedRequest,
    ExportedSession,
    Tell,
    export_lines,
    export_store_lines,
    parse_session,
    parse_store,
    store_of_file,
)
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.erasure.sessions import group_parts

BATCH_BYTES = 2_000_000
"""Bytes of entries that an import writes at once, at least: a disk may take 20 ms for each time."""

UNLIMITED_BUDGET = 2**53
"""A budget in tokens that no transcript reaches."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The number of exported or imported entries (or messages), and the last digest."""

    entries: int
    digest: str = ""


def export_session(log: Log, path: str | os.PathLike[str]) -> ExportResult:
    """Write the log's session to one file; the file is complete or absent, and replaces an existing one.

    The file is JSON lines (see ``pagein.log.export``); ``import_session`` verifies and restores it. Raises
    ConfigurationError for a log that does not give its rows, LogError for a file that cannot be written, and
    what reading the log raises.
    """
    counts = ExportCounts()
    replace_file(Path(path), export_lines(stored_log(log), counts))
    return ExportResult(counts.entries, counts.digest)


def export_messages(log: Log, path: str | os.PathLike[str], format: str = "openai") -> ExportResult:
    """Write the whole run as a provider's messages, in JSON: every step as it was recorded, nothing compacted.

    A late result is with its call; pins, compactions and checkpoints are left out. It cannot be imported as the
    same session: use ``export_session`` for that. Raises what reading the log raises, FormatError, LogError.
    """
    request = transcript(log, format)
    replace_file(Path(path), [_json(request), b"\n"])
    return ExportResult(len(request_rows(request)))


def transcript(log: Log, format: str = "openai") -> dict[str, Any]:
    """The whole run as a provider's messages, plain JSON: every step as it was recorded, and nothing that nobody said."""
    form = format_named(format)
    steps = AgentMemory(log, budget=UNLIMITED_BUDGET).steps
    with AgentMemory(InMemoryLog(), budget=UNLIMITED_BUDGET, format=form.name) as copy:
        if steps:
            copy.record(*steps)
        messages = [message for entry in copy.view().request_entries for message in entry.messages]
    request: dict[str, Any] = to_plain_json(form.keywords(form.render(messages)), encode_bytes=True)
    return request


def read_session(path: str | os.PathLike[str]) -> ExportedSession:
    """Read the session in a file of ``export_session``, and derive every hash again.

    Raises LogUnreadable for another, a changed or a truncated file, and LogTooNew.
    """
    with _open_file(path) as lines:
        return parse_session(lines, os.fspath(path))


def import_session(source: str | os.PathLike[str] | ExportedSession, log: Log) -> ExportResult:
    """Restore a session from its file into an empty log: every entry with its time, body and version.

    The whole file is verified before anything is written; all of it is written or nothing. Under its own name
    the session keeps its digests; under another they are derived again. Raises LogUnreadable, LogTooNew,
    Conflict for a log with entries in it, and what writing raises.
    """
    target = stored_log(log)
    target.rows(0, 0)  # raises for a log that has no rows
    session = source if isinstance(source, ExportedSession) else read_session(source)
    if head := target.head():
        raise LogError(
            f"the session {target.session!r} has {head} entries already: an import goes into an empty one. "
            "Nothing was written; import under another name."
        )
    target.import_rows(session.rows, session.blobs)
    last = next(iter(target.read(len(session.rows) - 1)), None) if session.rows else None
    return ExportResult(len(session.rows), last.digest if last else session.digest)


# A whole store


@dataclass(frozen=True, slots=True)
class StoreResult:
    """The result of an export or import: the runs, the entries of all sessions, and the requests.

    ``present`` counts the sessions that the target had already with every entry; ``skipped`` are those that it has with other
    entries, and what belongs to their runs.
    """

    runs: int = 0
    entries: int = 0
    requests: int = 0
    present: int = 0
    skipped: tuple[str, ...] = ()


def export_store(store: Store, path: str | os.PathLike[str], tell: Tell = lambda *_: None) -> StoreResult:
    """Write everything that a store has of its tenant to one file: runs, branches, checkpoints, facts, requests.

    A run that goes on meanwhile is in the file as it was at one moment. What LangGraph's saver and store keep in tables of
    their own is not in it, and the search index is built again where it is imported. Raises LogError.
    """
    names = _part_order(store.sessions())
    runs, counts = {name for name in names if not is_reserved(name)}, ExportCounts()
    replace_file(Path(path), export_store_lines(store, names, runs, counts, tell))
    return StoreResult(len(runs), counts.entries, counts.requests)


def _part_order(names: Sequence[str]) -> list[str]:
    """The sessions, each run behind its branches and its own facts: where a run is there, so is all of it."""
    parts = group_parts(names)
    runs = [name for name in names if not is_reserved(name)]
    of_runs = [name for run in runs for name in (*parts.get(run, ()), run)]
    return [*(name for name in names if name not in {*of_runs}), *of_runs]


def tenant_of_file(path: str | os.PathLike[str]) -> str | None:
    """The tenant of a file of ``export_store``; None for another file. Raises LogUnreadable, LogTooNew."""
    header = _header(path)
    return None if header is None else header[0]


def _header(path: str | os.PathLike[str]) -> tuple[str, int] | None:
    with _open_file(path) as lines:
        return store_of_file(next(lines, b""), os.fspath(path))


def import_store(
    path: str | os.PathLike[str], store: Store, *, skip: bool = False, tell: Tell = lambda *_: None
) -> StoreResult:
    """Restore everything in a file of ``export_store``; the store has its tenant.

    The whole file is verified before anything is written. What is there already with the same entries stays, so an import
    that was interrupted is called again. With ``skip`` a run that is there with other entries stays as it is, without it
    LogError is raised. Raises LogUnreadable, LogTooNew, and what writing raises.
    """
    sizes: dict[str, tuple[int, str]] = {}
    total = 2 * (_header(path) or ("", 0))[1]
    for part in _read_parts(path):
        if isinstance(part, ExportedSession):
            sizes[part.session] = len(part.rows), part.digest
            tell(len(sizes), total)
    heads = {name: store.head(name) for name in sizes}
    others = [name for name, known in sizes.items() if heads[name] and not _has(store, name, *known)]
    if others and not skip:
        raise LogError(
            f"{', '.join(map(repr, others[:8]))}{f' and {len(others) - 8} more' * (len(others) > 8)}: there already, with "
            "other entries. Nothing was written; skip them (skip=True, --skip), or import into an empty store."
        )
    groups = ({run, *parts} for run, parts in group_parts(sizes).items())
    skipped = {*others}.union(*(group for group in groups if not group.isdisjoint(others)))
    result = StoreResult(present=sum(map(bool, heads.values())) - len(others), skipped=tuple(sorted(skipped)))
    done = len(sizes)
    for batch in _batches(_read_parts(path)):
        sessions = [part for part in batch if isinstance(part, ExportedSession)]
        new = [part for part in sessions if part.session not in skipped and not heads[part.session]]
        store.import_sessions({part.session: (part.rows, part.blobs) for part in new})
        runs = result.runs + sum(not is_reserved(part.session) for part in new)
        result = replace(result, runs=runs, entries=result.entries + sum(len(part.rows) for part in new))
        for part in batch:
            if isinstance(part, ExportedSession):
                tell(done := done + 1, total)
                continue
            table = store.request_table(part.run)
            # A run that went on here has requests of its own.
            is_wanted = part.run not in skipped and heads[part.run] in (0, sizes[part.run][0])
            if is_wanted and table.last() < part.row.number:
                table.add(part.row.head, part.row.at, part.row.body)
                result = replace(result, requests=result.requests + 1)
    return result


def _batches(parts: Iterable[ExportedPart]) -> Iterator[list[ExportedPart]]:
    """Yield the parts of a file in lists of some megabytes, which are written at once."""
    batch, size = list[ExportedPart](), 0
    for part in parts:
        batch.append(part)
        bodies = (part.row.body,) if isinstance(part, ExportedRequest) else (row.body for row in part.rows)
        blobs = () if isinstance(part, ExportedRequest) else part.blobs.values()
        size += sum(map(len, (*bodies, *blobs)))
        if size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _has(store: Store, name: str, count: int, digest: str) -> bool:
    """True where a session begins with so many entries, of which the last has this digest."""
    with closing(store.log(name)) as log:
        return log.head() >= count and all(entry.digest == digest for entry in log.read(count - 1, count))


def _read_parts(path: str | os.PathLike[str]) -> Iterator[ExportedPart]:
    with _open_file(path) as lines:
        yield from parse_store(lines, os.fspath(path))


@contextlib.contextmanager
def _open_file(path: str | os.PathLike[str]) -> Iterator[Iterator[bytes]]:
    """The lines of a file. Raises LogUnreadable where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        raise LogUnreadable(f"{os.fspath(path)}: {error.strerror or error}") from error


def _json(request: dict[str, Any]) -> bytes:
    try:
        return json.dumps(request, ensure_ascii=False, indent=1).encode()
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 does not carry, and JSON's escapes do
        return json.dumps(request, indent=1).encode()


def replace_file(path: Path, content: Iterable[bytes]) -> None:
    """Write to a file beside it and move that into place; after a failure the old file is there. Raises LogError.

    A device or a pipe is written itself, and a link stays one.
    """
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as device:
                device.writelines(content)
            return
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    except OSError as error:
        raise LogError(f"{path}: {error.strerror or error}. Nothing was written.") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError as error:
        raise LogError(f"{path}: {error.strerror or error}. Nothing was written.") from error
    finally:
        with contextlib.suppress(OSError):
            Path(name).unlink()
