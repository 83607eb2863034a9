"""What an image costs: its size in pixels, read from its first bytes, and each provider's rule. Never its byte length.

The rules as the providers state them, looked up in November 2026, and checked against a public measurement of real
usage (the data set ``JOHNISKING/image-token-cost`` on Hugging Face, ten sizes; ``tests/tokens/test_images.py`` holds
its figures). Where statement and measurement differ, the dearer one is taken. A size nobody can read (a URL, a damaged
file) costs the most that the rule can charge.
"""

from __future__ import annotations

import binascii
import math
from dataclasses import dataclass
from typing import Protocol

from pagein.events.steps import Image


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height in pixels, both positive."""

    width: int
    height: int


class ImageRule(Protocol):
    """How one family of models charges for an image. Pure and total."""

    def tokens(self, size: Size | None, detail: str) -> int:
        """Tokens for an image of that size; None is a size that is not known."""
        ...


def image_tokens(image: Image, rule: ImageRule) -> int:
    """Tokens of the image by its pixels and the rule. Never raises, and never looks at how many bytes there are."""
    return rule.tokens(image_size(image.data or _data_url(image.url)), image.detail)


@dataclass(frozen=True, slots=True)
class Tiles:
    """OpenAI's rule for gpt-4o, gpt-4.1, gpt-5 and o1/o3: a base, and a price for each 512-pixel tile.

    The image is fitted into 2048 x 2048, then its short side is brought down to 768. ``low`` costs the base alone.
    """

    base: int = 85
    tile: int = 170

    def tokens(self, size: Size | None, detail: str) -> int:
        """``low`` is the base; ``auto`` is charged as ``high``. Unknown size: 8 tiles, which is the most there can be."""
        if detail == "low":
            return self.base
        return self.base + self.tile * (8 if size is None else _tiles(size))


def _tiles(size: Size) -> int:
    scale = min(1.0, 2048 / max(size.width, size.height))
    scale = min(scale, 768 / min(size.width, size.height))
    return math.ceil(round(size.width * scale, 3) / 512) * math.ceil(round(size.height * scale, 3) / 512)


@dataclass(frozen=True, slots=True)
class Patches:
    """OpenAI's newer rule: 32-pixel patches up to a cap, times the model's multiplier.

    Over the cap the provider shrinks the image; that is charged here as the cap itself, at most 6 % too much.
    ``high``, where it is set, is the lower cap of ``detail="high"``; ``low`` that of ``"low"`` (0: detail is ignored).
    """

    cap: int = 1536
    multiplier: float = 1.0
    high: int = 0
    low: int = 0

    def tokens(self, size: Size | None, detail: str) -> int:
        """Unknown size: the cap of that detail."""
        cap = {"low": self.low, "high": self.high}.get(detail, 0) or self.cap
        patches = cap if size is None else min(cap, _grid(size.width, size.height, 32))
        # Rounded before the ceiling: 256 * 1.2 must not become 308 by the way floats are stored.
        return math.ceil(round(patches * self.multiplier, 6))


@dataclass(frozen=True, slots=True)
class Claude:
    """Anthropic's rule: 28-pixel patches after the long side is brought to ``edge``, never more than ``cap``.

    This replaced width * height / 750, which is up to 20 % under it for small images. ``frame`` is what the block
    itself costs (3 or 4 measured), ``resized`` what an image too large was measured to cost beyond it (32 to 40).
    """

    edge: int = 1568
    cap: int = 1568
    frame: int = 4
    resized: int = 40

    def tokens(self, size: Size | None, detail: str) -> int:  # noqa: ARG002 - Anthropic has no detail
        """Unknown size: the cap."""
        if size is None:
            return self.cap + self.resized
        scale = min(1.0, self.edge / max(size.width, size.height))
        patches = _grid(size.width * scale, size.height * scale, 28)
        if scale < 1.0 or patches > self.cap:
            return min(patches, self.cap) + self.resized
        return patches + self.frame


@dataclass(frozen=True, slots=True)
class GeminiTiles:
    """Gemini 2's rule: 258 for an image within 384 x 384, else 258 for each tile.

    A tile's side is the short side / 1.5, held between 256 and 768 (960 x 540 is six tiles), after the image is fitted
    into 3072 x 3072.
    """

    tile: int = 258

    def tokens(self, size: Size | None, detail: str) -> int:  # noqa: ARG002 - set per request, not per image
        """Unknown size: 16 tiles, a square of 3072."""
        if size is None:
            return 16 * self.tile
        if max(size.width, size.height) <= 384:
            return self.tile
        scale = min(1.0, 3072 / max(size.width, size.height))
        width, height = max(1, round(size.width * scale)), max(1, round(size.height * scale))
        return self.tile * _grid(width, height, min(768, max(256, int(min(width, height) / 1.5))))


@dataclass(frozen=True, slots=True)
class Flat:
    """The same for every image: the most the provider charges for one."""

    each: int

    def tokens(self, size: Size | None, detail: str) -> int:  # noqa: ARG002 - flat is flat
        """``each``, whatever the size."""
        return self.each


GPT_4O = Tiles()
GPT_4O_MINI = Tiles(base=2833, tile=5667)
GPT_5 = Tiles(base=70, tile=140)
O1_O3 = Tiles(base=75, tile=150)
MINI = Patches(multiplier=1.62)
NANO = Patches(multiplier=2.46)
O4_MINI = Patches(multiplier=1.72)
GPT_5_4 = Patches(cap=10_000, multiplier=1.2, high=2_500, low=256)
# gpt-6 was measured at 11,970 patches for 12 megapixels without detail: no cap was found, so the cap is its own.
GPT_6 = Patches(cap=16_000, multiplier=1.2, high=2_500, low=256)
CLAUDE = Claude()
CLAUDE_HIGH = Claude(edge=2576, cap=4784)
GEMINI_2 = GeminiTiles()
GEMINI_3 = Flat(1120)
GROK = Flat(1792)
UNKNOWN = CLAUDE_HIGH
"""For a model nobody has described: the patch rule with the highest resolution that is common."""


def _grid(width: float, height: float, side: int) -> int:
    return math.ceil(round(width / side, 6)) * math.ceil(round(height / side, 6))


def image_size(data: bytes) -> Size | None:
    """The pixels of a PNG, JPEG, GIF, WebP or BMP, from its header; None for anything else. Never raises."""
    for magic, at, read in _SNIFFERS:
        if data[at : at + len(magic)] == magic:
            width, height = read(data)
            return Size(width, height) if width > 0 and height > 0 else None
    return None


def _big(data: bytes, at: int, length: int) -> int:
    """An unsigned number; a slice past the end gives 0, as no image has."""
    return int.from_bytes(data[at : at + length], "big") if at + length <= len(data) else 0


def _little(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "little") if at + length <= len(data) else 0


def _png(data: bytes) -> tuple[int, int]:
    # Apple's "CgBI" puts a chunk of its own before IHDR.
    start = data.find(b"IHDR", 8, 64)
    return (_big(data, start + 4, 4), _big(data, start + 8, 4)) if start >= 0 else (0, 0)


def _gif(data: bytes) -> tuple[int, int]:
    return _little(data, 6, 2), _little(data, 8, 2)


def _bmp(data: bytes) -> tuple[int, int]:
    if _little(data, 14, 4) == 12:  # the header of OS/2
        return _little(data, 18, 2), _little(data, 20, 2)
    height = _little(data, 22, 4)
    # A negative height is a bitmap that runs downwards.
    return _little(data, 18, 4), min(height, 2**32 - height)


def _webp(data: bytes) -> tuple[int, int]:
    match data[8:16]:
        case b"WEBPVP8X":
            return 1 + _little(data, 24, 3), (1 + _little(data, 27, 3)) if len(data) >= 30 else 0
        case b"WEBPVP8L" if data[20:21] == b"\x2f" and len(data) >= 25:
            bits = _little(data, 21, 4)
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"WEBPVP8 " if data[23:26] == b"\x9d\x01\x2a":
            return _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF
        case _:
            return 0, 0


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG's start-of-frame markers, baseline (C0), progressive (C2) and the rare ones."""

_BARE = frozenset((0x01, *range(0xD0, 0xD9)))
"""JPEG markers that have no length."""


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while 0 <= (at := data.find(b"\xff", at)) < len(data) - 1:
        marker = data[at + 1]
        if marker in _FRAMES:
            return _big(data, at + 7, 2), _big(data, at + 5, 2)
        if marker in (0xD9, 0xDA):  # the end, or pixels, before any frame
            break
        if marker == 0xFF:  # fill
            at += 1
        else:  # an EXIF segment is stepped over whole, and with it the thumbnail inside
            at += 2 if marker in _BARE else 2 + max(2, _big(data, at + 2, 2))
    return 0, 0


_SNIFFERS = (
    (b"\x89PNG\r\n\x1a\n", 0, _png),
    (b"\xff\xd8\xff", 0, _jpeg),
    (b"GIF8", 0, _gif),
    (b"WEBP", 8, _webp),
    (b"BM", 0, _bmp),
)


def _data_url(url: str) -> bytes:
    """The bytes inside a base64 ``data:`` URL; nothing for any other URL."""
    head, comma, body = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return b""
    try:
        # The header is near the front; a JPEG's may lie behind 64 kB segments of EXIF and colour profile.
        return binascii.a2b_base64(body[: 1 << 20].encode("ascii", "ignore"))
    except binascii.Error:
        return b""
