"""The codec: a body to a kind, a version, JSON bytes and blobs, and back. Only this package uses msgspec.

The plain form is the body's fields as JSON. A *packed* one, ``{"packed": [blob names], "body": ...}``, is used
where that will not do: large texts and images are replaced by the names of their blobs, and lone surrogates,
which JSON in UTF-8 cannot carry, are escaped. A long compaction, such as one that masks thousands of results,
is a deflated blob as a whole. The body alone decides the form, so equal bodies have equal bytes. A *tombstone*,
``{"erased": proof, "by": position, "body": rest}``, stands in place of an erased body.

To change a stored shape, raise the kind's version, and add an upcaster from the version before.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec
from msgspec import Struct

from pagein.errors import LogError, LogTooNew, LogUnreadable, ProtocolError
from pagein.events import entries, steps

if TYPE_CHECKING:
    from pagein.log.raw_rows import Row

Upcasters = Mapping[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]]
"""For a kind and a version, the pure function to the next version: the body's fields before, and after."""

UPCASTERS: Upcasters = {
    # version 2 adds a replacement's record and the fidelity, which may be absent
    ("compaction", 1): lambda before: before,
    ("compaction", 2): lambda before: before,  # version 3 may be deflated, which the spelling says
    ("compaction", 3): lambda before: before,  # version 4 adds the parts of a stub, which may be absent
    ("pin", 1): lambda before: before,  # version 2 adds the author, which may be absent
}


@dataclass(frozen=True, slots=True)
class Record:
    """A body as it is stored, and ``value``, the equal body that reading it back gives."""

    kind: str
    version: int
    body: bytes
    blobs: tuple[Blob, ...]
    value: entries.Body


class _Packed(Struct, forbid_unknown_fields=True):
    packed: tuple[str, ...]
    body: msgspec.Raw


class _Shape:
    """The stored shape of a class: a Struct with its fields. ``own`` are those whose values have shapes, too.

    For each it has the type, and the functions to the stored value and back.
    """

    def __init__(
        self,
        of: type[Any],
        own: Mapping[str, tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]] = MappingProxyType({}),
        **options: Any,
    ) -> None:
        types, names = get_type_hints(of), [field.name for field in fields(of)]
        rows: list[Any] = [
            (field.name, own[field.name][0] if field.name in own else types[field.name])
            + (() if field.default is MISSING else (field.default,))
            for field in fields(of)
        ]
        self.of = of
        self.struct = msgspec.defstruct(f"_{of.__name__}", rows, forbid_unknown_fields=True, **options)
        self.decoder = msgspec.json.Decoder(self.struct)
        # Of one name attrgetter gives the value itself.
        self._values_of = attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
        self._outs = [(names.index(name), out) for name, (_, out, _) in own.items()]
        self._backs = [(names.index(name), back) for name, (_, _, back) in own.items()]

    def out(self, value: Any) -> Any:
        """The value as it is stored."""
        return self._convert(value, self.struct, self._outs)

    def back(self, stored: Any) -> Any:
        """The value that was stored so."""
        return self._convert(stored, self.of, self._backs)

    def _convert(self, value: Any, to: type[Any], changes: Sequence[tuple[int, Callable[[Any], Any]]]) -> Any:
        if not changes:
            return to(*self._values_of(value))
        values = [*self._values_of(value)]
        for index, change in changes:
            values[index] = change(values[index])
        return to(*values)


_TEXT, _IMAGE, _OPAQUE = (
    _Shape(part, tag=part.__name__.lower(), omit_defaults=True) for part in (steps.Text, steps.Image, steps.Opaque)
)
_PARTS = {kind: shape for shape in (_TEXT, _IMAGE, _OPAQUE) for kind in (shape.of, shape.struct)}
_PART: Any = _TEXT.struct | _IMAGE.struct | _OPAQUE.struct
_CONTENT: Any = str | tuple[_PART, ...]


def _part_out(part: object) -> Any:
    if type(part) not in _PARTS:
        raise TypeError(f"a {type(part).__name__} is no part of a content")
    return _PARTS[type(part)].out(part)


def _part_back(part: Any) -> Any:
    return _PARTS[type(part)].back(part)


def _content_out(content: Any) -> Any:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, tuple):
        raise TypeError(f"content is a {type(content).__name__}, not a str or a tuple of parts")
    return tuple(map(_part_out, content))


def _content_back(content: Any) -> Any:
    return content if content is None or isinstance(content, str) else tuple(map(_part_back, content))


def _all_of(out: Callable[[Any], Any], back: Callable[[Any], Any]) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The functions of a tuple of values, of which some may be None."""
    return (
        lambda values: tuple(None if value is None else out(value) for value in values),
        lambda values: tuple(None if value is None else back(value) for value in values),
    )


_SAID = {"content": (_CONTENT, _content_out, _content_back)}
_OBSERVATION = _Shape(steps.Observation, _SAID, omit_defaults=True)
_RESULTS = (tuple[_OBSERVATION.struct | None, ...], *_all_of(_OBSERVATION.out, _OBSERVATION.back))  # type: ignore[name-defined]
_ACTION = _Shape(
    steps.ActionStep,
    {"content": (_CONTENT | None, _content_out, _content_back), "observations": _RESULTS},
    omit_defaults=True,
)
_OBSERVED = _Shape(
    entries.Observed, {"observation": (_OBSERVATION.struct, _OBSERVATION.out, _OBSERVATION.back)}, omit_defaults=True
)
_STUB = _Shape(entries.Stub, {"parts": (tuple[_PART, ...], *_all_of(_part_out, _part_back))}, omit_defaults=True)
_STUBS = (tuple[_STUB.struct, ...], *_all_of(_STUB.out, _STUB.back))  # type: ignore[name-defined]
_REPLACEMENT = _Shape(entries.Replacement, {"stubs": _STUBS})
_REPLACEMENTS = (tuple[_REPLACEMENT.struct, ...], *_all_of(_REPLACEMENT.out, _REPLACEMENT.back))  # type: ignore[name-defined]
_COMPACTION = _Shape(entries.Compaction, {"replacements": _REPLACEMENTS})


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of body: its name and version on disk, and its shape there."""

    name: str
    version: int
    shape: _Shape

    @property
    def of(self) -> type[Any]:
        """The class of the bodies."""
        return self.shape.of


def _content_shape(step: type[Any]) -> _Shape:
    return _Shape(step, _SAID, omit_defaults=True)


KINDS: tuple[Kind, ...] = (
    Kind("system", 1, _content_shape(steps.SystemPromptStep)),
    Kind("task", 1, _content_shape(steps.TaskStep)),
    Kind("planning", 1, _content_shape(steps.PlanningStep)),
    Kind("action", 1, _ACTION),
    Kind("final_answer", 1, _content_shape(steps.FinalAnswerStep)),
    Kind("summary", 1, _Shape(steps.SummaryStep)),
    Kind("observed", 1, _OBSERVED),
    Kind("compaction", 4, _COMPACTION),
    Kind("pin", 2, _Shape(entries.Pin)),
    Kind("unpin", 1, _Shape(entries.Unpin)),
    Kind("mark", 1, _Shape(entries.Mark)),
    Kind("checkpoint", 1, _Shape(entries.Checkpoint)),
    Kind("undo", 1, _Shape(entries.Undo)),
    Kind("fact_stated", 1, _Shape(entries.FactStated)),
    Kind("fact_removed", 1, _Shape(entries.FactRemoved)),
    Kind("fact_confirmed", 1, _Shape(entries.FactConfirmed)),
    Kind("facts_used", 1, _Shape(entries.FactsUsed)),
    Kind("facts_extracted", 1, _Shape(entries.FactsExtracted)),
    Kind("facts_shown", 1, _Shape(entries.FactsShown)),
    Kind("erased", 1, _Shape(entries.Erased)),
)

_BY_TYPE = {kind.of: kind for kind in KINDS}
_BY_NAME = {kind.name: kind for kind in KINDS}
_ENCODE = msgspec.json.Encoder().encode
_DECODE_PACKED = msgspec.json.Decoder(_Packed).decode
_PACKED = b'{"packed":'

# What a value of the wrong type can set off on its way through, in msgspec (whose errors are ValueErrors) or here.
_MISFITS = (TypeError, ValueError, AttributeError, KeyError, OverflowError, RecursionError, ProtocolError)


def encode(body: entries.Body) -> Record:
    """Encode a body for storage; the result is known to read back equal.

    Raises LogError for a body of an unknown class, or with a value that would not come back as it is.
    """
    kind = _BY_TYPE.get(type(body))
    if kind is None:
        raise LogError(f"a {type(body).__name__} is no body of a log entry. Nothing was written.")
    try:
        encoded, blobs = _encode(kind.shape.out(body), holds_image=_holds_image(body))
        # Types are not checked when a step is made. A log takes nothing back, so the proof comes before the write.
        value = decode(kind.name, kind.version, encoded, blobs.__getitem__)
        same = value == body
    except (*_MISFITS, LogUnreadable) as error:
        raise LogError(f"this {kind.name} cannot be stored: {error}. Nothing was written.") from error
    if not same:
        differing = [field.name for field in fields(kind.of) if getattr(value, field.name) != getattr(body, field.name)]
        raise LogError(f"this {kind.name} would not come back as it is: {', '.join(differing)}. Nothing was written.")
    return Record(kind.name, kind.version, encoded, tuple(Blob(*item) for item in blobs.items()), value)


def decode(
    name: str,
    version: int,
    body: bytes,
    blob: Callable[[str], bytes],
    *,
    kinds: Mapping[str, Kind] = _BY_NAME,
    upcasters: Upcasters = UPCASTERS,
) -> entries.Body:
    """Decode a stored body; ``blob`` gives the bytes of a name.

    Raises LogTooNew for a kind or a version of a later release, LogUnreadable for bytes that are no such body.
    """
    kind = kinds.get(name)
    if kind is None or version > kind.version:
        raise LogTooNew(
            f"a {name!r} of version {version} was written by a later release of pagein; upgrade pagein to read it"
        )
    shape = kind.shape
    try:
        body = remaining_body(body)
        if version == kind.version and not body.startswith(_PACKED):
            return shape.back(shape.decoder.decode(body))  # type: ignore[no-any-return]
        plain = _plain_fields(body, blob)
        for older in range(version, kind.version):
            plain = upcasters[name, older](plain)
        return shape.back(msgspec.convert(plain, shape.struct))  # type: ignore[no-any-return]
    except _MISFITS as error:
        raise LogUnreadable(f"it is damaged, and no {name} of version {version} ({error!s})") from error


def blob_names(body: bytes) -> tuple[str, ...]:
    """The names of the blobs that this stored body needs. Raises LogUnreadable for bytes that are no stored body."""
    body = remaining_body(body)
    if not body.startswith(_PACKED):
        return ()
    try:
        return _DECODE_PACKED(body).packed
    except ValueError as error:
        raise LogUnreadable(f"not a packed body: {error}") from error


def _holds_image(body: Any) -> bool:
    contents: list[Any]
    match body:
        case steps.ActionStep():
            contents = [body.content, *(result.content for result in body.observations if result is not None)]
        case entries.Observed():
            contents = [body.observation.content]
        case entries.Compaction():
            contents = [stub.parts for by in body.replacements for stub in by.stubs]
        case _:
            contents = [getattr(body, "content", None)]
    return any(
        isinstance(content, tuple) and any(type(part) is steps.Image for part in content) for content in contents
    )


def _encode(shaped: Any, *, holds_image: bool) -> tuple[bytes, dict[str, bytes]]:
    """The stored bytes, and the blobs they name."""
    is_compaction = type(shaped) is _COMPACTION.struct
    if not holds_image:
        try:
            encoded = _ENCODE(shaped)
        except UnicodeEncodeError:
            pass  # a lone surrogate
        else:
            # A text is never shorter in JSON than in UTF-8: in so few bytes there is none that must leave.
            if len(encoded) <= (INLINE_COMPACTION_MAX_BYTES if is_compaction else INLINE_TEXT_MAX_BYTES):
                return encoded, {}
    blobs: dict[str, bytes] = {}
    plain = msgspec.to_builtins(shaped, builtin_types=(bytes,))
    body = pack(plain, blobs)
    if is_compaction and INLINE_COMPACTION_MAX_BYTES < len(encoded := _ENCODE(body)) <= INFLATED_MAX_BYTES:
        body = deflate(encoded, blobs)
    elif body == plain:
        return _ENCODE(shaped), {}
    return _ENCODE({"packed": tuple(blobs), "body": body}), blobs


def _plain_fields(body: bytes, blob: Callable[[str], bytes]) -> dict[str, Any]:
    """The body's fields as built-in values, with blobs and escapes put back; the value upcasters work on."""
    if not body.startswith(_PACKED):
        return msgspec.json.decode(body)  # type: ignore[no-any-return]
    value = msgspec.json.decode(_DECODE_PACKED(body).body)
    if (whole := inflate(value, blob)) is not None:
        value = msgspec.json.decode(whole)
    return unpack(value, blob)  # type: ignore[no-any-return]


# The bytes of a body: blobs under their hashes, values that JSON cannot carry, and tombstones


_ALGORITHM = "s2:"  # SHA-256; a later algorithm gets another prefix, so that both can live in one log

INLINE_TEXT_MAX_BYTES = 32 * 1024
"""The most a text may take, in bytes of UTF-8, and stay in its body."""

INLINE_IMAGE_MAX_BYTES = 1024
"""The most an image may take, in bytes, and stay in its body."""

INLINE_COMPACTION_MAX_BYTES = 4 * 1024
"""The most a compaction may take as JSON, in bytes, and stay in its row: what is longer says one thing many times."""

INFLATED_MAX_BYTES = 64 * 2**20
"""The most bytes that a deflated body is inflated to: who made a file by hand cannot fill the memory with it."""


def hash_bytes(data: bytes) -> str:
    """Hash bytes: the algorithm's prefix and the hash in hexadecimal. A blob is stored once, under this name."""
    return _ALGORITHM + hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes stored once under the hash of themselves."""

    name: str
    data: bytes


# In a packed body U+FFFE, which no text should hold, and four hexadecimal digits stand for one code unit that UTF-8
# does not carry, and for U+FFFE. JSON's own escapes will not do: two lone surrogates in a row would be read as a pair.
_UNSPEAKABLE = re.compile("[\ud800-\udfff\ufffe]")
_ESCAPED = re.compile("\ufffe([0-9a-f]{4})")


def pack(value: Any, blobs: dict[str, bytes]) -> Any:
    """Replace large values by their names, add them to ``blobs``, and escape texts."""
    match value:
        case str():
            raw = value.encode("utf-8", "surrogatepass") if len(value) > INLINE_TEXT_MAX_BYTES // 4 else b""
            if len(raw) > INLINE_TEXT_MAX_BYTES:
                return {"$text": _store_blob(raw, blobs)}
            return _UNSPEAKABLE.sub(lambda match: f"\ufffe{ord(match[0]):04x}", value)
        case bytes():
            return {"$bytes": _store_blob(value, blobs)} if len(value) > INLINE_IMAGE_MAX_BYTES else value
        case dict():
            return {key: pack(item, blobs) for key, item in value.items()}
        case list() | tuple():
            return type(value)(pack(item, blobs) for item in value)
        case _:
            return value


def _store_blob(data: bytes, blobs: dict[str, bytes]) -> str:
    name = hash_bytes(data)
    blobs[name] = data
    return name


def unpack(value: Any, blob: Callable[[str], bytes]) -> Any:
    """Reverse ``pack``, byte for byte; ``blob`` gives the bytes of a name."""
    match value:
        case str():
            return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), value)
        case {"$text": name}:
            return blob(name).decode("utf-8", "surrogatepass")
        case {"$bytes": name}:
            return blob(name)
        case dict():
            return {key: unpack(item, blob) for key, item in value.items()}
        case list():
            return [unpack(item, blob) for item in value]
        case _:
            return value


def deflate(body: bytes, blobs: dict[str, bytes]) -> dict[str, str]:
    """Replace a whole JSON body by its name; it is deflated and added to ``blobs``."""
    return {"$deflated": _store_blob(zlib.compress(body, 6), blobs)}


def inflate(value: object, blob: Callable[[str], bytes]) -> bytes | None:
    """Reverse ``deflate``; None for any other value. Raises ValueError for a body that is damaged or too long."""
    if not isinstance(value, dict) or [*value] != ["$deflated"]:
        return None
    reading = zlib.decompressobj()
    try:
        body = reading.decompress(blob(value["$deflated"]), INFLATED_MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"a deflated body is damaged: {error}") from error
    if not reading.eof:
        raise ValueError("a deflated body is cut off, or longer than any that is written")
    return body


def inflated_size(data: bytes) -> int:
    """The bytes that a deflated body has once it is inflated, at most one more than are ever inflated; nothing is kept."""
    reading, size, rest = zlib.decompressobj(), 0, data
    try:
        while rest and size <= INFLATED_MAX_BYTES:
            size += len(reading.decompress(rest, 1 << 20))
            rest = reading.unconsumed_tail
    except zlib.error:
        return len(data)
    return size


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The rest of an erased body, with a ``proof`` of its place in the chain; ``by`` is the Erased entry's position."""

    proof: str
    by: int
    body: bytes


class _TombstoneJson(Struct, forbid_unknown_fields=True):
    erased: str
    by: int
    body: msgspec.Raw


_DECODE_TOMBSTONE = msgspec.json.Decoder(_TombstoneJson).decode
_ERASED = b'{"erased":'


def is_tombstone(body: bytes) -> bool:
    """True for a stored body that is a tombstone, sound or not."""
    return body.startswith(_ERASED)


def parse_tombstone(body: bytes) -> Tombstone | None:
    """Parse a tombstone; None for every other body. Raises LogUnreadable for a damaged one."""
    if not is_tombstone(body):
        return None
    try:
        stored = _DECODE_TOMBSTONE(body)
    except ValueError as error:
        raise LogUnreadable(f"not a tombstone: {error}") from error
    return Tombstone(stored.erased, stored.by, bytes(stored.body))


def remaining_body(body: bytes) -> bytes:
    """The body itself, or what a tombstone left of it. Raises LogUnreadable."""
    tombstone = parse_tombstone(body)
    return body if tombstone is None else tombstone.body


def make_tombstone(row: Row, previous: str, by: int, body: bytes) -> bytes:
    """Make the tombstone of a row that is chained to the digest ``previous``; ``body`` is what was left."""
    return _ENCODE(_TombstoneJson(_proof(row, previous, by, body), by, msgspec.Raw(body)))


def is_proven(row: Row, previous: str) -> bool:
    """True where the tombstone of a row behind that digest carries its proof. Raises LogUnreadable."""
    tombstone = parse_tombstone(row.body)
    return tombstone is not None and tombstone.proof == _proof(row, previous, tombstone.by, tombstone.body)


def _proof(row: Row, previous: str, by: int, body: bytes) -> str:
    # No field can hold a newline, so no two rows spell the same.
    head = f"{previous}\n{row.digest}\n{row.position}\n{row.at.hex()}\n{row.kind}\n{row.version}"
    return hash_bytes(f"erased\n{head}\n{by}\n".encode() + body)
