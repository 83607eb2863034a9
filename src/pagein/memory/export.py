"""Export of a session: to one file that can be imported unchanged, or as a provider's messages."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagein.backends.base import stored_log
from pagein.backends.memory import InMemoryLog
from pagein.errors import LogError, LogUnreadable
from pagein.formats import format_named
from pagein.formats.parsing import request_rows, to_plain_json
from pagein.log.base import Log
from pagein.log.export import ExportedSession, export_lines, parse_session
from pagein.memory.agent_memory import AgentMemory

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
    record = stored_log(log)
    last = ExportResult(0)

    def lines() -> Iterable[bytes]:
        nonlocal last
        count = -2  # all lines but the first and the last, less the blobs
        for line in export_lines(record):
            count += not line.startswith(b'{"blob":')
            yield line
        end = json.loads(line)
        last = ExportResult(count, end["digest"])

    replace_file(Path(path), lines)
    return last


def export_messages(log: Log, path: str | os.PathLike[str], format: str = "openai") -> ExportResult:
    """Write the whole run as a provider's messages, in JSON: every step as it was recorded, nothing compacted.

    A late result is with its call; pins, compactions and checkpoints are left out. It cannot be imported as the
    same session: use ``export_session`` for that. Raises what reading the log raises, FormatError, LogError.
    """
    request = transcript(log, format)
    replace_file(Path(path), lambda: [_json(request), b"\n"])
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
    try:
        with Path(path).open("rb") as file:
            return parse_session(file, os.fspath(path))
    except OSError as error:
        raise LogUnreadable(f"{os.fspath(path)}: {error.strerror or error}") from error


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


def _json(request: dict[str, Any]) -> bytes:
    try:
        return json.dumps(request, ensure_ascii=False, indent=1).encode()
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 does not carry, and JSON's escapes do
        return json.dumps(request, indent=1).encode()


def replace_file(path: Path, content: Callable[[], Iterable[bytes]]) -> None:
    """Write to a file beside it and move that into place; after a failure the old file is there. Raises LogError."""
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    except OSError as error:
        raise LogError(f"{path}: {error.strerror or error}. Nothing was written.") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(content())
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError as error:
        raise LogError(f"{path}: {error.strerror or error}. Nothing was written.") from error
    finally:
        with contextlib.suppress(OSError):
            Path(name).unlink()
