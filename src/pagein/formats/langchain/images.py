"""The ways LangChain spells an image: its standard block, the one before it, OpenAI's and Anthropic's."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from pagein.events.steps import Image, Opaque
from pagein.formats import rendering as writing
from pagein.formats.parsing import compact, exact_base64

KINDS = ("image", "image_url")
_DATA_URL = re.compile(r"data:(image/[a-zA-Z0-9.+-]+);base64,(.*)", re.DOTALL)
_SPELLING = "spelling"

Block = dict[str, Any]


def read(row: Block) -> Image | None:
    """The image, with how it was spelled; None where only the block itself would come back equal."""
    for spelling, reader in (
        ("openai", _openai),
        ("standard", _standard),
        ("v0", _v0),
        ("anthropic", _anthropic),
    ):
        image = reader(row)
        if image is None:
            continue
        left = {key: value for key, value in row.items() if key not in _KEYS[spelling]}
        held = left if spelling == "openai" else {_SPELLING: spelling, **left}
        extra = Opaque("langchain", "image", compact(held), compact(left)) if held else None
        found = replace(image, extra=extra)
        if block(found) == row:
            return found
    return None


def block(image: Image) -> Block:
    """The image as it was spelled; in OpenAI's spelling, which every integration reads, where it was not."""
    held = writing.own(image.extra, "langchain") or {}
    beside = {key: value for key, value in held.items() if key != _SPELLING}
    data = writing.base64_of(image) if image.data else ""
    match held.get(_SPELLING):
        case "standard":
            source = {"base64": data, "mime_type": image.media_type} if data else {"url": image.url}
            return {**beside, "type": "image", **source}
        case "v0":
            source = {"source_type": "base64", "data": data, "mime_type": image.media_type}
            return {
                **beside,
                "type": "image",
                **(source if data else {"source_type": "url", "url": image.url}),
            }
        case "anthropic":
            source = {"type": "base64", "media_type": image.media_type, "data": data}
            return {
                **beside,
                "type": "image",
                "source": source if data else {"type": "url", "url": image.url},
            }
    url = image.url or f"data:{image.media_type or 'image/png'};base64,{data}"
    detail = {"detail": image.detail} if image.detail else {}
    return {**beside, "type": "image_url", "image_url": {"url": url, **detail}}


_KEYS = {
    "openai": ("type", "image_url"),
    "standard": ("type", "base64", "mime_type", "url"),
    "v0": ("type", "source_type", "data", "mime_type", "url"),
    "anthropic": ("type", "source"),
}


def _openai(row: Block) -> Image | None:
    source = row.get("image_url")
    if not isinstance(source, dict) or not isinstance(source.get("url"), str):
        return None
    detail = source.get("detail", "")
    inline = _DATA_URL.fullmatch(source["url"])
    data = exact_base64(inline[2]) if inline else None
    if inline and data:
        return Image(data, inline[1], detail=detail)
    return Image(url=source["url"], detail=detail) if source["url"] and not inline else None


def _standard(row: Block) -> Image | None:
    return _from(row.get("base64"), row.get("mime_type"), row.get("url"))


def _v0(row: Block) -> Image | None:
    return _from(row.get("data"), row.get("mime_type"), row.get("url"))


def _anthropic(row: Block) -> Image | None:
    source = row.get("source")
    if not isinstance(source, dict):
        return None
    return _from(source.get("data"), source.get("media_type"), source.get("url"))


def _from(encoded: Any, media_type: Any, url: Any) -> Image | None:
    data = exact_base64(encoded) if isinstance(encoded, str) else None
    if data and isinstance(media_type, str):
        return Image(data, media_type)
    return Image(url=url) if isinstance(url, str) and url else None
