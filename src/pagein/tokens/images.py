"""Token costs of images: the size in pixels, read from the first bytes, and each provider's rule.

The rules are the providers' statements of November 2026, checked against a public measurement of real usage (the data
set ``JOHNISKING/image-token-cost`` on Hugging Face, ten sizes; its figures are in ``tests/tokens/test_images.py``).
Where they differ, the higher cost is used. An image of unknown size (a URL, a damaged file) costs the most that the
rule can charge.
"""

from __future__ import annotations

import binascii
import math
from dataclasses import dataclass
from typing import Protocol

from pagein._common.image_header import Size, image_size
from pagein.events.steps import Image


class ImageRule(Protocol):
    """The image cost of one family of models. Pure, and defined for every size."""

    def tokens(self, size: Size | None, detail: str) -> int:
        """Return the tokens for an image of that size; None is an unknown size."""
        ...


def image_tokens(image: Image, rule: ImageRule) -> int:
    """Count the tokens of an image by its size in pixels and the rule. Never raises; the number of bytes does not matter."""
    return rule.tokens(image_size(image.data or _data_url_bytes(image.url)), image.detail)


@dataclass(frozen=True, slots=True)
class Tiles:
    """OpenAI's rule for gpt-4o, gpt-4.1, gpt-5 and o1/o3: a base, and a number of tokens for each 512-pixel tile.

    The image is fitted into 2048 x 2048, then its short side is reduced to 768. ``low`` costs only the base.
    """

    base: int = 85
    tile: int = 170

    def tokens(self, size: Size | None, detail: str) -> int:
        """Return the base for ``low``; ``auto`` costs as ``high``. An unknown size costs 8 tiles, the most possible."""
        if detail == "low":
            return self.base
        return self.base + self.tile * (8 if size is None else _tile_count(size))


def _tile_count(size: Size) -> int:
    scale = min(1.0, 2048 / max(size.width, size.height))
    scale = min(scale, 768 / min(size.width, size.height))
    return math.ceil(round(size.width * scale, 3) / 512) * math.ceil(round(size.height * scale, 3) / 512)


@dataclass(frozen=True, slots=True)
class Patches:
    """OpenAI's newer rule: 32-pixel patches up to a cap, times the model's multiplier.

    Over the cap the provider shrinks the image; here that costs the cap itself, at most 6 % too much. ``high`` is the
    lower cap of ``detail="high"``, ``low`` that of ``"low"``; with 0 the detail is ignored.
    """

    cap: int = 1536
    multiplier: float = 1.0
    high: int = 0
    low: int = 0

    def tokens(self, size: Size | None, detail: str) -> int:
        """Return the patches times the multiplier. An unknown size costs the cap of that detail."""
        cap = {"low": self.low, "high": self.high}.get(detail, 0) or self.cap
        patches = cap if size is None else min(cap, _grid_cells(size.width, size.height, 32))
        # Rounded before the ceiling, so that floating-point error does not turn 256 * 1.2 into 308.
        return math.ceil(round(patches * self.multiplier, 6))


@dataclass(frozen=True, slots=True)
class ClaudePatches:
    """Anthropic's rule: 28-pixel patches after the long side is reduced to ``edge``, at most ``cap``.

    This replaced width * height / 750, which is up to 20 % lower for small images. ``frame`` is the cost of the block
    itself (3 or 4 measured), ``resized`` the extra cost of an image that is too large (32 to 40 measured).
    """

    edge: int = 1568
    cap: int = 1568
    frame: int = 4
    resized: int = 40

    def tokens(self, size: Size | None, detail: str) -> int:  # noqa: ARG002 - Anthropic has no detail
        """Return the patches and the frame. An unknown size costs the cap."""
        if size is None:
            return self.cap + self.resized
        scale = min(1.0, self.edge / max(size.width, size.height))
        patches = _grid_cells(size.width * scale, size.height * scale, 28)
        if scale < 1.0 or patches > self.cap:
            return min(patches, self.cap) + self.resized
        return patches + self.frame


@dataclass(frozen=True, slots=True)
class GeminiTiles:
    """Gemini 2's rule: 258 for an image within 384 x 384, else 258 for each tile.

    A tile's side is the short side / 1.5, limited to 256 to 768 (960 x 540 is six tiles), after the image is fitted into
    3072 x 3072.
    """

    tile: int = 258

    def tokens(self, size: Size | None, detail: str) -> int:  # noqa: ARG002 - set per request, not per image
        """Return the tiles' cost. An unknown size costs 16 tiles, a square of 3072."""
        if size is None:
            return 16 * self.tile
        if max(size.width, size.height) <= 384:
            return self.tile
        scale = min(1.0, 3072 / max(size.width, size.height))
        width, height = max(1, round(size.width * scale)), max(1, round(size.height * scale))
        return self.tile * _grid_cells(width, height, min(768, max(256, int(min(width, height) / 1.5))))


@dataclass(frozen=True, slots=True)
class FlatRate:
    """One price in tokens for every image: the most the provider charges."""

    price: int

    def tokens(self, size: Size | None, detail: str) -> int:  # noqa: ARG002 - the same for all
        """Return ``price`` for any size."""
        return self.price


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
CLAUDE = ClaudePatches()
CLAUDE_HIGH = ClaudePatches(edge=2576, cap=4784)
GEMINI_2 = GeminiTiles()
GEMINI_3 = FlatRate(1120)
GROK = FlatRate(1792)
UNKNOWN = CLAUDE_HIGH
"""The rule for unknown models: the common patch rule with the highest resolution."""


def _grid_cells(width: float, height: float, side: int) -> int:
    return math.ceil(round(width / side, 6)) * math.ceil(round(height / side, 6))


def _data_url_bytes(url: str) -> bytes:
    """Decode the first bytes of a base64 ``data:`` URL; empty for any other URL."""
    head, comma, body = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return b""
    try:
        # The header is near the front; a JPEG's may lie behind 64 kB segments of EXIF and colour profile.
        return binascii.a2b_base64(body[: 1 << 20].encode("ascii", "ignore"))
    except binascii.Error:
        return b""
