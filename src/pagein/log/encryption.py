"""Encryption at rest: bodies, blobs and digests can be read with the key only.

AES-SIV (RFC 5297), with a key derived from the user's (HKDF-SHA256). It needs no nonce, so neither the number
of entries nor a copied file that is written on weakens it. Each body is bound to its tenant, session, position,
kind and version: a row that was moved cannot be decrypted. Equal digests and blob names give equal bytes, so
that the store can compare and find them. Positions, times, kinds, names of sessions, and lengths stay in clear.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pagein.errors import ConfigurationError, LogEncrypted, LogUnreadable

if TYPE_CHECKING:
    from pagein.log.raw_rows import Row

KEY_BYTES = 32
KEY_VARIABLE = "PAGEIN_KEY"
"""The environment variable that holds the key where none is given."""

Key = bytes | str | Callable[[], bytes | str]
"""32 bytes, the same in URL-safe base64, or what gives either."""

_BODY, _TEXT = b'{"sealed":"', "e1:"
_KEY_FORM = f"a key is {KEY_BYTES} bytes, or those in URL-safe base64 (44 characters); it is not repeated here"


@dataclass(frozen=True, slots=True)
class Unencrypted:
    """The identity, for a session without a key. Every method raises LogEncrypted where the session is encrypted."""

    def decrypt_row(self, row: Row) -> Row:
        """Decrypt a stored row."""
        if row.body.startswith(_BODY):
            raise LogEncrypted(f"entry {row.position} is encrypted: {_OPEN}")
        return row

    def encrypt_row(self, row: Row) -> Row:
        """Encrypt a row for storage."""
        return row

    def decrypt_digest(self, digest: str) -> str:
        """Decrypt a stored digest."""
        if digest.startswith(_TEXT):
            raise LogEncrypted(f"this session is encrypted: {_OPEN}")
        return digest

    def encrypt_digest(self, digest: str) -> str:
        """Encrypt a digest, or the name of a blob."""
        return digest

    def decrypt_blob(self, name: str, data: bytes) -> bytes:
        """Decrypt a stored blob."""
        del name
        return data

    def encrypt_blob(self, name: str, data: bytes) -> bytes:
        """Encrypt a blob."""
        del name
        return data


_OPEN = f"open it with key=..., or with its key in the environment variable {KEY_VARIABLE}"


class Encrypted:
    """The encryption of one session. Its repr shows nothing of the key.

    Every method raises LogEncrypted where the session was written with another key, or without one.
    """

    def __init__(self, cipher: Any, tenant: str, session: str) -> None:
        self._cipher = cipher
        self._owner = [tenant.encode(), session.encode()]

    def __repr__(self) -> str:
        return "Encrypted()"

    def decrypt_row(self, row: Row) -> Row:
        """Decrypt a stored row. Raises LogUnreadable for a body that was changed, or moved from elsewhere."""
        digest = self.decrypt_digest(row.digest)
        try:
            raw = base64.b64decode(row.body.removeprefix(_BODY).removesuffix(b'"}'), validate=True)
            body = self._cipher.decrypt(raw, self._about(row))
        except (ValueError, _invalid_tag()) as error:
            raise LogUnreadable(
                f"entry {row.position} does not open: it was changed, or put there from elsewhere"
            ) from error
        return replace(row, body=body, digest=digest)

    def encrypt_row(self, row: Row) -> Row:
        """Encrypt a row for storage."""
        raw = base64.b64encode(self._cipher.encrypt(row.body, self._about(row)))
        return replace(row, body=_BODY + raw + b'"}', digest=self.encrypt_digest(row.digest))

    def decrypt_digest(self, digest: str) -> str:
        """Decrypt a stored digest."""
        if not digest.startswith(_TEXT):
            raise LogEncrypted(
                "this session was recorded without a key: open it without one, or export it and import it with one"
            )
        try:
            raw = base64.b64decode(digest.removeprefix(_TEXT), validate=True)
            return str(self._cipher.decrypt(raw, [*self._owner, b"digest"]), "ascii")
        except (ValueError, _invalid_tag()):
            raise LogEncrypted("this session was encrypted with another key. Nothing was changed.") from None

    def encrypt_digest(self, digest: str) -> str:
        """Encrypt a digest, or the name of a blob."""
        raw = self._cipher.encrypt(digest.encode(), [*self._owner, b"digest"])
        return _TEXT + base64.b64encode(raw).decode()

    def decrypt_blob(self, name: str, data: bytes) -> bytes:
        """Decrypt a stored blob. Raises LogUnreadable for a blob that was changed."""
        try:
            return bytes(self._cipher.decrypt(data, [*self._owner, name.encode()]))
        except (ValueError, _invalid_tag()) as error:
            raise LogUnreadable(f"the blob {name} does not open: it was changed") from error

    def encrypt_blob(self, name: str, data: bytes) -> bytes:
        """Encrypt a blob."""
        return bytes(self._cipher.encrypt(data, [*self._owner, name.encode()]))

    def _about(self, row: Row) -> list[bytes]:
        return [*self._owner, b"%d %d" % (row.position, row.version), row.kind.encode()]


class HiddenKey:
    """A key that no repr shows."""

    def __init__(self, key: Key) -> None:
        self._key = key

    def __call__(self) -> bytes | str:
        return self._key() if callable(self._key) else self._key

    def __repr__(self) -> str:
        return "HiddenKey()"


def hide_key(key: Key | None) -> Key | None:
    """Wrap a key so that no repr shows it."""
    return key if key is None or isinstance(key, HiddenKey) else HiddenKey(key)


Encryption = Unencrypted | Encrypted


def encryption_for(key: Key | None, tenant: str, session: str) -> Encryption:
    """The encryption of a session; the identity without a key.

    Raises ConfigurationError for an invalid key, or where the ``cryptography`` package is missing.
    """
    if key is None:
        return Unencrypted()
    raw = _key_bytes(key)
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415
    except ImportError:
        raise ConfigurationError("encryption at rest needs cryptography: pip install 'pagein[encryption]'") from None
    derived = HKDF(algorithm=SHA256(), length=64, salt=None, info=b"pagein log 1").derive(raw)
    return Encrypted(AESSIV(derived), tenant, session)


def _key_bytes(key: Key) -> bytes:
    try:
        value = key() if callable(key) else key
        raw = base64.b64decode(value.encode(), altchars=b"-_", validate=True) if isinstance(value, str) else value
    except (binascii.Error, ValueError):
        raw = b""
    if not isinstance(raw, bytes) or len(raw) != KEY_BYTES:
        raise ConfigurationError(_KEY_FORM)
    return raw


def _invalid_tag() -> type[Exception]:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra

    return InvalidTag
