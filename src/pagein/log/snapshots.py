"""Snapshots: state derived from a session's entries up to a position, stored beside them for quick opening.

A snapshot is no part of the record: it may be missing, damaged, of another release or dropped at any time. Then
all entries are read. The digest of its last entry, which covers all before, tells which entries it was made of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from pagein.errors import LogError

if TYPE_CHECKING:
    from pagein.log.encryption import Encryption

_NAME = "snapshot"

PAST_PREFIX = "pagein:past:"
"""What the key of a past snapshot begins with, instead of its session; its position, a colon and its session follow."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state before ``position``; ``digest`` is that of the last entry in it, ``key`` the format of ``body``."""

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
        """The columns of a stored snapshot, its check last."""
        return self.position, self.digest, self.key, self.body, self.check

    def past_key(self, session_key: str) -> str:
        """The key under which it stays beside the later ones of its session."""
        return f"{PAST_PREFIX}{self.position}:{session_key}"

    @classmethod
    def of(cls, row: Sequence[Any] | None) -> Self | None:
        """The snapshot of a stored row; None for a damaged one."""
        if row is None or tuple(map(type, row)) != (int, str, str, bytes, str):
            return None
        snapshot = cls(*row[:4])
        return snapshot if snapshot.check == row[4] else None


@dataclass(frozen=True, slots=True)
class SnapshotSlot:
    """The snapshot of a session, if any, and how often the run's snapshots were ``dropped`` so far.

    ``is_open`` is False where nothing may be kept.
    """

    snapshot: Snapshot | None
    dropped: int = 0
    is_open: bool = True


def encrypt_snapshot(snapshot: Snapshot, encryption: Encryption) -> Snapshot:
    """Encrypt a snapshot as the entries are encrypted."""
    return replace(
        snapshot, digest=encryption.encrypt_digest(snapshot.digest), body=encryption.encrypt_blob(_NAME, snapshot.body)
    )


def decrypt_slot(slot: SnapshotSlot, encryption: Encryption) -> SnapshotSlot:
    """Decrypt the snapshot in a slot; the slot is empty where that fails."""
    snapshot = slot.snapshot
    if snapshot is None:
        return slot
    try:
        snapshot = replace(
            snapshot,
            digest=encryption.decrypt_digest(snapshot.digest),
            body=encryption.decrypt_blob(_NAME, snapshot.body),
        )
    except LogError:
        snapshot = None
    return replace(slot, snapshot=snapshot)
