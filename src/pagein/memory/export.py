"""A session that leaves its store: as one file that comes back unchanged, or as a provider's plain messages."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagein.backends.memory import InMemoryLog
from pagein.errors import ConfigurationError, LogError, LogUnreadable
from pagein.formats import format_named
from pagein.log.base import Log
from pagein.log.export import Session, lines_of, session_of
from pagein.log.raw_rows import RowLog
from pagein.memory.agent_memory import AgentMemory

ROOMY = 2**53
"""A budget in tokens that no transcript reaches."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written to a file: how many entries or, of plain messages, how many of those; the last digest."""

    entries: int
    digest: str = ""


def export_session(log: Log, path: str | os.PathLike[str]) -> Exported:
    """Write the log's session to one file, whole; it is there complete or not at all, and replaces what was there.

    Readers of JSON lines can read it (see ``pagein.log.export``), and ``import_session`` proves and restores it. Raises
    ConfigurationError for a log that does not give its rows, LogError for a file that cannot be written, and what
    reading the log raises.
    """
    record = _rows_of(log)
    last = Exported(0)

    def lines() -> Iterable[bytes]:
        nonlocal last
        count = -2  # all lines but the first and the last, less the blobs
        for line in lines_of(record):
            count += not line.startswith(b'{"blob":')
            yield line
        end = json.loads(line)
        last = Exported(count, end["digest"])

    _replaced(Path(path), lines)
    return last


def export_messages(log: Log, path: str | os.PathLike[str], format: str = "openai") -> Exported:
    """Write the whole run as a provider's request, in JSON: every step as it was recorded, nothing compacted.

    A late result stands with its call; pins, compactions and checkpoints are not part of it. It does not come back
    as the same session: use ``export_session`` for that. Raises what reading the log raises, FormatError, LogError.
    """
    request = transcript(log, format)
    _replaced(Path(path), lambda: [_json(request), b"\n"])
    return Exported(len(request["messages"]))


def transcript(log: Log, format: str = "openai") -> dict[str, Any]:
    """The whole run as a provider's request: every step as it was recorded, nothing compacted."""
    form = format_named(format)
    steps = AgentMemory(log, budget=ROOMY).steps
    with AgentMemory(InMemoryLog(), budget=ROOMY, format=form.name) as copy:
        if steps:
            copy.record(*steps)
        return copy.to_request()


def read_session(path: str | os.PathLike[str]) -> Session:
    """The session in a file that ``export_session`` wrote, every hash derived again.

    Raises LogUnreadable for a file that is none, was changed or cut off, and LogTooNew.
    """
    try:
        with Path(path).open("rb") as file:
            return session_of(file, os.fspath(path))
    except OSError as error:
        raise LogUnreadable(f"{os.fspath(path)}: {error.strerror or error}") from error


def import_session(source: str | os.PathLike[str] | Session, log: Log) -> Exported:
    """Restore a session from its file into a log that is empty: every entry with its time, body and version.

    All of the file is proven before anything is written, and all of it is written or nothing. Under the name of the
    session it was, the digests are the same; under another they are derived anew. Raises LogUnreadable, LogTooNew,
    Conflict for a log with entries in it, and what writing raises.
    """
    target = _rows_of(log)
    session = source if isinstance(source, Session) else read_session(source)
    if head := target.head():
        raise LogError(
            f"the session {target.session!r} has {head} entries already: an import goes into an empty one. "
            "Nothing was written; import under another name."
        )
    target.adopt(session.rows, session.blobs)
    last = next(iter(target.read(len(session.rows) - 1)), None) if session.rows else None
    return Exported(len(session.rows), last.digest if last else session.digest)


def _json(request: dict[str, Any]) -> bytes:
    try:
        return json.dumps(request, ensure_ascii=False, indent=1).encode()
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 does not carry, and JSON's escapes do
        return json.dumps(request, indent=1).encode()


def _rows_of(log: Log) -> RowLog:
    if isinstance(log, RowLog):
        return log
    raise ConfigurationError(
        f"a {type(log).__name__} does not give its rows: moving a session takes a pagein.log.raw_rows.RowLog"
    )


def _replaced(path: Path, content: Callable[[], Iterable[bytes]]) -> None:
    """Writes beside the file and puts it in its place at once; what fails leaves what was there."""
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
