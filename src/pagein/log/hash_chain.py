"""Hashes of what is stored: each entry's covers the one before it, each blob's is its name."""

from __future__ import annotations

import hashlib

_ALGORITHM = "s2:"  # SHA-256; a later algorithm gets another prefix, so that both can live in one log


def blob_name(data: bytes) -> str:
    """The name under which these bytes are stored once: the algorithm's prefix and their hash, hexadecimal."""
    return _ALGORITHM + hashlib.sha256(data).hexdigest()


def origin(tenant: str, session: str) -> str:
    """What stands before a session's first entry, so that a log cannot be passed off as another session's."""
    owner = tenant.encode()
    # The length keeps ("a", "bc") and ("ab", "c") apart.
    return _ALGORITHM + hashlib.sha256(b"%d\n%b%b" % (len(owner), owner, session.encode())).hexdigest()


def link(previous: str, *, position: int, at: float, kind: str, version: int, body: bytes) -> str:
    """The digest of an entry: the hash over the previous digest and all that is stored of this one."""
    # No field before the body can hold a newline, so two different entries never spell the same bytes.
    head = f"{previous}\n{position}\n{at.hex()}\n{kind}\n{version}\n".encode()
    return _ALGORITHM + hashlib.sha256(head + body).hexdigest()


def proof(row: str, *, by: int, body: bytes) -> str:
    """What shows that ``body`` is what was left of an entry; ``row`` says all else of it, its first digest included."""
    return _ALGORITHM + hashlib.sha256(f"erased\n{row}\n{by}\n".encode() + body).hexdigest()
