"""Anthropic's limits for the images of a whole request. Blocks are changed in place; what may not stay becomes its name."""

from __future__ import annotations

from typing import Any

from pagein.events.steps import Image
from pagein.formats import rendering
from pagein.formats.anthropic import rules
from pagein.formats.parsing import compact_json, decode_exact_base64

_BATCH = 20
"""Images that become text together, so that not every new image changes the beginning of the request."""

_LARGE_BATCH = 5
"""The same where large images limit a request to twenty."""

Block = dict[str, Any]


def limit_images(contents: list[list[Block]]) -> None:
    """Replace images that are too large for the API, and the oldest where there are more than it takes."""
    for block in rules.image_blocks(contents):
        if any(rules.image_size_problems(block)):
            _replace_by_name(block)
    images = rules.image_blocks(contents)
    batches = -(-max(0, len(images) - rules.MAX_IMAGES) // _BATCH)
    removed, images = images[: batches * _BATCH], images[batches * _BATCH :]
    sides = [rules.longest_side(block) for block in images]
    start = 0
    while len(images) - start > rules.MANY_IMAGES and max(sides[start:]) > rules.MANY_IMAGES_MAX_PIXELS:
        start += _LARGE_BATCH
    for block in (*removed, *images[:start]):
        _replace_by_name(block)


def _replace_by_name(block: Block) -> None:
    marker = {key: block[key] for key in ("cache_control",) if key in block}
    name = rendering.image_placeholder(_image(block.get("source")) or Image(url=compact_json(block)))
    block.clear()
    block.update({"type": "text", "text": name}, **marker)


def _image(source: Any) -> Image | None:
    match source:
        case {"type": "base64", "data": str(encoded)} if data := decode_exact_base64(encoded):
            return Image(data)
        case {"type": "url", "url": str(url)} if url:
            return Image(url=url)
        case _:
            return None
