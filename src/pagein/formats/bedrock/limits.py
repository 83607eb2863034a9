"""Bedrock's limits for a whole request: cache points, images of a message, documents and their names.

Blocks are changed in place. What is too old becomes its name in text; the newest stay.
"""

from __future__ import annotations

import re
from typing import Any

from pagein.events.steps import Image
from pagein.formats import rendering
from pagein.formats.bedrock import rules
from pagein.formats.parsing import compact_json

Block = dict[str, Any]


def keep_to_limits(system: list[Block], rows: list[Block]) -> None:
    """Change the blocks of a rendered request so that it keeps to the limits."""
    _limit_cache_points(system, rows)
    for row in rows:
        images = [block for block in rules.iterate_blocks([row]) if "image" in block]
        for block in images[: max(0, len(images) - rules.MAX_IMAGES)]:
            _replace_by_text(block, rendering.image_placeholder(Image(url=compact_json(block["image"]))))
    documents = [block for block in rules.iterate_blocks(rows) if isinstance(block.get("document"), dict)]
    too_old = documents[: max(0, len(documents) - rules.MAX_DOCUMENTS)]
    for block in too_old:
        _replace_by_text(block, f"[document {block['document'].get('name', '')}]")
    _name_documents([block["document"] for block in documents[len(too_old) :]])
    for row in rows:
        if any("document" in block for block in row["content"]) and not any(
            "text" in block for block in row["content"]
        ):
            row["content"].append({"text": rendering.NO_CONTENT})


def _limit_cache_points(system: list[Block], rows: list[Block]) -> None:
    """Remove all but the last cache points, and those with nothing before them."""
    lists = [system, *(row["content"] for row in rows)]
    points = [block for blocks in lists for block in blocks if "cachePoint" in block]
    refused = points[: max(0, len(points) - rules.MAX_CACHE_POINTS)]
    for blocks in lists:
        blocks[:] = [block for block in blocks if not any(block is point for point in refused)]
        while blocks and "cachePoint" in blocks[0]:
            del blocks[0]
    for row in rows:
        if not row["content"]:
            row["content"].append({"text": rendering.NO_CONTENT})


def _replace_by_text(block: Block, text: str) -> None:
    block.clear()
    block["text"] = text


def _name_documents(documents: list[Block]) -> None:
    """Give each document a name that the API takes and that no other has; a valid one stays."""
    used: set[str] = set()
    for document in documents:
        name = document.get("name")
        if not isinstance(name, str) or not rules.DOCUMENT_NAME.fullmatch(name):
            words = re.sub(r"[^a-zA-Z0-9()\[\]-]+", " ", name if isinstance(name, str) else "")
            name = words.strip()[:180] or "Document"
        number, unused = 1, name
        while unused in used:
            number += 1
            unused = f"{name[:180]} {number}"
        used.add(unused)
        document["name"] = unused
