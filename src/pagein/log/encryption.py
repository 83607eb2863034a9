"""Encryption at rest: what a store holds of bodies, blobs and digests can be read by whoever has the key, and by nobody else.

AES-SIV (RFC 5297), with a key derived from the user's (HKDF-SHA256). It needs no nonce, so that no number of entries and
no copy of a file that goes on twice wears it out. Each body is bound to its tenant, session, position, kind and version:
a row that was moved does not open. Equal digests and blob names give equal bytes, so that the store can compare and find
them. Positions, times, kinds, the names of sessions and how long things are stay in clear.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pagein.errors import ConfigurationError, LogSealed, LogUnreadable
from pagein.log.raw_rows import Row

KEY_BYTES = 32
VARIABLE = "PAGEIN_KEY"
"""The environment variable that holds the key where none is given."""

Key = bytes | str | Callable[[], bytes | str]
"""32 bytes, the same in URL-safe base64, or what gives either."""

_BODY, _TEXT = b'{"sealed":"', "e1:"
_HOW = f"a key is {KEY_BYTES} bytes, or those in URL-safe base64 (44 characters); it is not repeated here"


@dataclass(frozen=True, slots=True)
class Plain:
    """A session that is stored as it is. Every method raises LogSealed where it turns out to be encrypted."""

    is_sealed = False

    def row_in(self, row: Row) -> Row:
        """A row as it was written, of the row that is stored."""
        if row.body.startswith(_BODY):
            raise LogSealed(f"entry {row.position} is encrypted: {_OPEN}")
        return row

    def row_out(self, row: Row) -> Row:
        """The row to store."""
        return row

    def digest_in(self, digest: str) -> str:
        """A digest as it was derived, of the digest that is stored."""
        if digest.startswith(_TEXT):
            raise LogSealed(f"this session is encrypted: {_OPEN}")
        return digest

    def digest_out(self, digest: str) -> str:
        """The digest, or the name of a blob, to store."""
        return digest

    def blob_in(self, name: str, data: bytes) -> bytes:
        """A blob as it was written."""
        del name
        return data

    def blob_out(self, name: str, data: bytes) -> bytes:
        """The blob to store."""
        del name
        return data


_OPEN = f"open it with key=..., or with its key in the environment variable {VARIABLE}"


class Sealed:
    """A session that is encrypted. Its repr says nothing of the key.

    Every method raises LogSealed where the key is not the one it was written with, or where it was written without.
    """

    is_sealed = True

    def __init__(self, cipher: Any, tenant: str, session: str) -> None:
        self._cipher = cipher
        self._owner = [tenant.encode(), session.encode()]

    def __repr__(self) -> str:
        return "Sealed()"

    def row_in(self, row: Row) -> Row:
        """See ``Plain``. Raises LogUnreadable for a body that was changed, or moved from elsewhere."""
        digest = self.digest_in(row.digest)
        try:
            raw = base64.b64decode(row.body.removeprefix(_BODY).removesuffix(b'"}'), validate=True)
            body = self._cipher.decrypt(raw, self._about(row))
        except (ValueError, _invalid()) as error:
            raise LogUnreadable(
                f"entry {row.position} does not open: it was changed, or put there from elsewhere"
            ) from error
        return replace(row, body=body, digest=digest)

    def row_out(self, row: Row) -> Row:
        """See ``Plain``."""
        raw = base64.b64encode(self._cipher.encrypt(row.body, self._about(row)))
        return replace(row, body=_BODY + raw + b'"}', digest=self.digest_out(row.digest))

    def digest_in(self, digest: str) -> str:
        """See ``Plain``."""
        if not digest.startswith(_TEXT):
            raise LogSealed(
                "this session was recorded without a key: open it without one, or export it and import it with one"
            )
        try:
            raw = base64.b64decode(digest.removeprefix(_TEXT), validate=True)
            return str(self._cipher.decrypt(raw, [*self._owner, b"digest"]), "ascii")
        except (ValueError, _invalid()):
            raise LogSealed("this session was encrypted with another key. Nothing was changed.") from None

    def digest_out(self, digest: str) -> str:
        """See ``Plain``."""
        raw = self._cipher.encrypt(digest.encode(), [*self._owner, b"digest"])
        return _TEXT + base64.b64encode(raw).decode()

    def blob_in(self, name: str, data: bytes) -> bytes:
        """See ``Plain``. Raises LogUnreadable for a blob that was changed."""
        try:
            return bytes(self._cipher.decrypt(data, [*self._owner, name.encode()]))
        except (ValueError, _invalid()) as error:
            raise LogUnreadable(f"the blob {name} does not open: it was changed") from error

    def blob_out(self, name: str, data: bytes) -> bytes:
        """See ``Plain``."""
        return bytes(self._cipher.encrypt(data, [*self._owner, name.encode()]))

    def _about(self, row: Row) -> list[bytes]:
        return [*self._owner, b"%d %d" % (row.position, row.version), row.kind.encode()]


class Held:
    """A key that no repr shows."""

    def __init__(self, key: Key) -> None:
        self._key = key

    def __call__(self) -> bytes | str:
        return self._key() if callable(self._key) else self._key

    def __repr__(self) -> str:
        return "Held()"


def held(key: Key | None) -> Key | None:
    """The key as it may be kept: in nothing that is printed."""
    return key if key is None or isinstance(key, Held) else Held(key)


Seal = Plain | Sealed


def seal_of(key: Key | None, tenant: str, session: str) -> Seal:
    """What a session is stored by: with a key encrypted, else as it is.

    Raises ConfigurationError for what is no key, or where the ``cryptography`` package is missing.
    """
    if key is None:
        return Plain()
    raw = _checked(key)
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415
    except ImportError:
        raise ConfigurationError(
            "encryption at rest needs cryptography: pip install 'pagein[encryption]'"
        ) from None
    derived = HKDF(algorithm=SHA256(), length=64, salt=None, info=b"pagein log 1").derive(raw)
    return Sealed(AESSIV(derived), tenant, session)


def _checked(key: Key) -> bytes:
    try:
        found = key() if callable(key) else key
        raw = (
            base64.b64decode(found.encode(), altchars=b"-_", validate=True)
            if isinstance(found, str)
            else found
        )
    except (binascii.Error, ValueError):
        raw = b""
    if not isinstance(raw, bytes) or len(raw) != KEY_BYTES:
        raise ConfigurationError(_HOW)
    return raw


def _invalid() -> type[Exception]:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra

    return InvalidTag
