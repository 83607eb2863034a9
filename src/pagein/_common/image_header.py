"""The size and the media type of an image, read from its first bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height in pixels, both positive."""

    width: int
    height: int


def image_size(data: bytes) -> Size | None:
    """Read the size of a PNG, JPEG, GIF, WebP or BMP from its header; None for anything else. Never raises."""
    read = _SIZE_READERS.get(image_type(data))
    width, height = (0, 0) if read is None else read(data)
    return Size(width, height) if width > 0 and height > 0 else None


def image_type(data: bytes) -> str:
    """Read the media type of an image from its first bytes; "" for bytes that are not known."""
    return next((kind for magic, at, kind in _TYPES if data[at : at + len(magic)] == magic), "")


def _big_endian(data: bytes, at: int, length: int) -> int:
    """Read an unsigned number; 0 past the end, which is no valid size."""
    return int.from_bytes(data[at : at + length], "big") if at + length <= len(data) else 0


def _little_endian(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "little") if at + length <= len(data) else 0


def _png_size(data: bytes) -> tuple[int, int]:
    # Apple's "CgBI" puts a chunk of its own before IHDR.
    start = data.find(b"IHDR", 8, 64)
    return (_big_endian(data, start + 4, 4), _big_endian(data, start + 8, 4)) if start >= 0 else (0, 0)


def _gif_size(data: bytes) -> tuple[int, int]:
    return _little_endian(data, 6, 2), _little_endian(data, 8, 2)


def _bmp_size(data: bytes) -> tuple[int, int]:
    if _little_endian(data, 14, 4) == 12:  # the header of OS/2
        return _little_endian(data, 18, 2), _little_endian(data, 20, 2)
    height = _little_endian(data, 22, 4)
    # A negative height is a bitmap that runs downwards.
    return _little_endian(data, 18, 4), min(height, 2**32 - height)


def _webp_size(data: bytes) -> tuple[int, int]:
    match data[8:16]:
        case b"WEBPVP8X":
            return 1 + _little_endian(data, 24, 3), (1 + _little_endian(data, 27, 3)) if len(data) >= 30 else 0
        case b"WEBPVP8L" if data[20:21] == b"\x2f" and len(data) >= 25:
            bits = _little_endian(data, 21, 4)
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"WEBPVP8 " if data[23:26] == b"\x9d\x01\x2a":
            return _little_endian(data, 26, 2) & 0x3FFF, _little_endian(data, 28, 2) & 0x3FFF
        case _:
            return 0, 0


_JPEG_FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG's start-of-frame markers, baseline (C0), progressive (C2) and the rare ones."""

_JPEG_BARE_MARKERS = frozenset((0x01, *range(0xD0, 0xD9)))
"""JPEG markers that have no length."""


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    while 0 <= (at := data.find(b"\xff", at)) < len(data) - 1:
        marker = data[at + 1]
        if marker in _JPEG_FRAME_MARKERS:
            return _big_endian(data, at + 7, 2), _big_endian(data, at + 5, 2)
        if marker in (0xD9, 0xDA):  # the end, or pixels, before any frame
            break
        if marker == 0xFF:  # fill
            at += 1
        else:  # skips an EXIF segment with the thumbnail inside
            at += 2 if marker in _JPEG_BARE_MARKERS else 2 + max(2, _big_endian(data, at + 2, 2))
    return 0, 0


_TYPES = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF8", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
    (b"BM", 0, "image/bmp"),
    (b"II*\0", 0, "image/tiff"),
    (b"MM\0*", 0, "image/tiff"),
    (b"ftyphei", 4, "image/heic"),
    (b"ftypmif1", 4, "image/heif"),
    (b"ftypavif", 4, "image/avif"),
)

_SIZE_READERS = {
    "image/png": _png_size, "image/jpeg": _jpeg_size, "image/gif": _gif_size, "image/webp": _webp_size,
    "image/bmp": _bmp_size,
}  # fmt: skip
