"""The files that a run has read: the paths that its calls name them by, and the positions of these calls. Pure and bounded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pagein.events.call_files import files_of

MAX_FILES, MAX_CALLS = 512, 16
"""Files that are remembered, those named last; and calls for each, the newest."""

MAX_UNREAD_CALLS = 256
"""Calls whose files are not looked for yet, at most."""


class FileTable:
    """The files that results of the run had the text of, each by its longest path, with the positions of the calls that name it.

    Paths of which one is the end of the other are of one file, where no third one is. Calls are queued and read on the first
    question, so a run that never fills its budget pays nothing.
    """

    def __init__(self, files: Iterable[tuple[str, list[int]]] = ()) -> None:
        self._files: dict[str, list[int]] = {}
        """The positions of the calls by path, in the order in which files were named last."""
        self._by_name: dict[str, list[str]] = {}
        """The paths by their last component."""
        self._unread: list[tuple[int, str]] = []
        for path, positions in files:
            self._insert(path, positions)

    @property
    def newest(self) -> int:
        """The position of the newest call that names a file of the table, or -1."""
        self._read_calls()
        return max((positions[-1] for positions in self._files.values()), default=-1)

    def queue_call(self, position: int, arguments: str) -> None:
        """Queue a call of the action at ``position``."""
        self._unread.append((position, arguments))
        if len(self._unread) >= MAX_UNREAD_CALLS:
            self._read_calls()

    def find(self, path: str) -> str:
        """The path by which the table has a file, or "" where it has none, or several."""
        self._read_calls()
        return self._find(path)

    def positions(self, path: str) -> tuple[int, ...]:
        """The positions of the calls that name a file, oldest first."""
        self._read_calls()
        return tuple(self._files.get(path, ()))

    def forget(self, first: int, last: int) -> None:
        """Drop the calls at positions ``[first, last)``, and the files that no other call names."""
        self._read_calls()
        for path, positions in list(self._files.items()):
            self._files[path] = [position for position in positions if not first <= position < last]
            if not self._files[path]:
                self._drop(path)

    def to_state(self) -> list[Any]:
        """Return the state as JSON-safe values."""
        self._read_calls()
        return list(map(list, self._files.items()))

    def _read_calls(self) -> None:
        for position, arguments in self._unread:
            files = files_of(arguments)
            for path in files.text_paths:
                self._add(path, self._find(path), position)
            for path in files.mention_paths:
                if known := self._find(path):
                    self._add(path, known, position)
        self._unread.clear()

    def _find(self, path: str) -> str:
        if path in self._files:
            return path
        others = self._by_name.get(path.rpartition("/")[2], ())
        same = [other for other in others if other.endswith(f"/{path}") or path.endswith(f"/{other}")]
        return same[0] if len(same) == 1 else ""

    def _add(self, path: str, known: str, position: int) -> None:
        positions = self._drop(known) if known else []
        if positions[-1:] != [position]:
            positions = [*positions, position][-MAX_CALLS:]
        self._insert(max(path, known, key=len), positions)
        if len(self._files) > MAX_FILES:
            self._drop(next(iter(self._files)))

    def _insert(self, path: str, positions: list[int]) -> None:
        self._files[path] = positions
        self._by_name.setdefault(path.rpartition("/")[2], []).append(path)

    def _drop(self, path: str) -> list[int]:
        name = path.rpartition("/")[2]
        self._by_name[name].remove(path)
        if not self._by_name[name]:
            del self._by_name[name]
        return self._files.pop(path)
