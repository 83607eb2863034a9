"""LangChain's image blocks: the standard one, its predecessor, OpenAI's and Anthropic's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pagein.events.steps import Image, Opaque
from pagein.formats import rendering
from pagein.formats.parsing import IMAGE_DATA_URL, compact_json, decode_exact_base64

IMAGE_TYPES = ("image", "image_url")
_SPELLING_KEY = "spelling"

Block = dict[str, Any]


def parse_image(row: Block) -> Image | None:
    """Parse an image block and keep its shape; None where rendering would not give back the same block."""
    images = {
        "openai": _openai(row),
        "standard": _image_from(row.get("base64"), row.get("mime_type"), row.get("url")),
        "v0": _image_from(row.get("data"), row.get("mime_type"), row.get("url")),
        "anthropic": _anthropic(row),
    }
    for spelling, image in images.items():
        if image is None:
            continue
        rest = {key: value for key, value in row.items() if key not in _KEYS_OF_SPELLING[spelling]}
        fields = rest if spelling == "openai" else {_SPELLING_KEY: spelling, **rest}
        extra = Opaque("langchain", "image", compact_json(fields), compact_json(rest)) if fields else None
        parsed_image = replace(image, extra=extra)
        if _render_image(parsed_image, image.media_type) == row:
            return parsed_image
    return None


def render_image(image: Image) -> Block:
    """Render an image in the shape it came in; others in OpenAI's, which every integration accepts."""
    return _render_image(image, rendering.sent_media_type(image))


def _render_image(image: Image, media_type: str) -> Block:
    fields = rendering.own_fields(image.extra, "langchain") or {}
    beside = {key: value for key, value in fields.items() if key != _SPELLING_KEY}
    data = rendering.image_base64(image) if image.data else ""
    match fields.get(_SPELLING_KEY):
        case "standard":
            source = {"base64": data, "mime_type": media_type} if data else {"url": image.url}
            return {**beside, "type": "image", **source}
        case "v0":
            inline = {"source_type": "base64", "data": data, "mime_type": media_type}
            source = inline if data else {"source_type": "url", "url": image.url}
            return {**beside, "type": "image", **source}
        case "anthropic":
            inline = {"type": "base64", "media_type": media_type, "data": data}
            source = inline if data else {"type": "url", "url": image.url}
            return {**beside, "type": "image", "source": source}
    media_type = media_type if media_type.startswith("image/") else "image/png"  # as in OpenAI's format
    url = image.url or f"data:{media_type};base64,{data}"
    detail = {"detail": image.detail} if image.detail else {}
    return {**beside, "type": "image_url", "image_url": {"url": url, **detail}}


_KEYS_OF_SPELLING = {
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
    inline = IMAGE_DATA_URL.fullmatch(source["url"])
    data = decode_exact_base64(inline[2]) if inline else None
    if inline and data:
        return Image(data, inline[1], detail=detail)
    return Image(url=source["url"], detail=detail) if source["url"] and not inline else None


def _anthropic(row: Block) -> Image | None:
    source = row.get("source")
    if not isinstance(source, dict):
        return None
    return _image_from(source.get("data"), source.get("media_type"), source.get("url"))


def _image_from(encoded: Any, media_type: Any, url: Any) -> Image | None:
    data = decode_exact_base64(encoded) if isinstance(encoded, str) else None
    if data and isinstance(media_type, str):
        return Image(data, media_type)
    return Image(url=url) if isinstance(url, str) and url else None
