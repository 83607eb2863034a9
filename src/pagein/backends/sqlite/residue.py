"""The search of a SQLite file for erased words: in free pages, in the WAL, in indexes."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path

_CHUNK_BYTES = 1 << 20
_LIVE = "SELECT CAST(body AS BLOB) FROM entries UNION ALL SELECT CAST(data AS BLOB) FROM blobs"


def has_residue(database: sqlite3.Connection, path: str, words: Collection[str]) -> bool:
    """True where a file of the database has one of these words, and no entry has it.

    An entry of another session may say the same word in its own right; then nothing can be told by it.
    """
    wanted = {word.encode("utf-8", "surrogatepass").lower() for word in words}
    there = {word for name in (path, f"{path}-wal", f"{path}-journal") for word in _words_in_file(name, wanted)}
    if there:
        for (data,) in database.execute(_LIVE):
            there -= {word for word in there if word in bytes(data).lower()}
    return bool(there)


def _words_in_file(path: str, words: Collection[bytes]) -> Iterator[bytes]:
    overlap = max(map(len, words), default=0)
    with contextlib.suppress(FileNotFoundError), Path(path).open("rb") as file:
        end = b""
        while chunk := file.read(_CHUNK_BYTES):
            text = end + chunk.lower()
            yield from (word for word in words if word in text)
            end = text[-overlap:] if overlap else b""
