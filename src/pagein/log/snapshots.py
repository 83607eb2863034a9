"""What was derived of a session's entries up to a position, kept in the store beside them so that opening is quick.

A snapshot is no part of the record: it may be missing, damaged, of another release or dropped at any time, and then the
entries are read from the first one. Whose it is says the digest of the last entry behind it, which covers all before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from pagein.errors import LogError

if TYPE_CHECKING:
    from pagein.log.encryption import Seal

_NAME = "snapshot"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What ``key`` says how to read, of the entries before ``position``; ``digest`` is that of the last of them."""

    position: int
    digest: str
    key: str
    body: bytes

    @property
    def check(self) -> str:
        """A hash over all of it."""
        head = f"{self.position}\n{self.digest}\n{self.key}\n".encode("utf-8", "surrogatepass")
        return hashlib.sha256(head + self.body).hexdigest()

    @property
    def row(self) -> tuple[int, str, str, bytes, str]:
        """As it lies in a store, its check last."""
        return self.position, self.digest, self.key, self.body, self.check

    @classmethod
    def of(cls, row: Sequence[Any] | None) -> Self | None:
        """The snapshot a row holds; None for one that is damaged."""
        if row is None or tuple(map(type, row)) != (int, str, str, bytes, str):
            return None
        found = cls(*row[:4])
        return found if found.check == row[4] else None


@dataclass(frozen=True, slots=True)
class Shelf:
    """The snapshot there is of a session, if any, and how often the run's were ``dropped`` so far.

    ``is_open`` is False where nothing may be kept.
    """

    snapshot: Snapshot | None
    dropped: int = 0
    is_open: bool = True


def sealed(snapshot: Snapshot, seal: Seal) -> Snapshot:
    """The snapshot to store where entries are stored by this seal."""
    return replace(
        snapshot, digest=seal.digest_out(snapshot.digest), body=seal.blob_out(_NAME, snapshot.body)
    )


def unsealed(shelf: Shelf, seal: Seal) -> Shelf:
    """What was kept, of what is stored; nothing where it does not open."""
    kept = shelf.snapshot
    if kept is None:
        return shelf
    try:
        kept = replace(kept, digest=seal.digest_in(kept.digest), body=seal.blob_in(_NAME, kept.body))
    except LogError:
        kept = None
    return replace(shelf, snapshot=kept)


@runtime_checkable
class SnapshotLog(Protocol):
    """A log whose store keeps snapshots. Every method raises a LogError, never a driver's error."""

    def shelf(self) -> Shelf:
        """The snapshot of this session, if one is there and whole."""
        ...

    def keep(self, snapshot: Snapshot, dropped: int) -> None:
        """Keep a snapshot in place of the one before; nothing is kept where they were dropped since ``dropped``."""
        ...

    def drop_snapshots(self) -> None:
        """Drop the snapshots of this run and all its branches, those too that somebody is about to keep.

        Whoever erases something from the entries calls it: a snapshot quotes them.
        """
        ...
