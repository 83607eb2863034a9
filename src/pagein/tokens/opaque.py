"""Token costs of content that is kept unread: by all the JSON that is sent, with each image by its size.

A model reads names, numbers and short texts too, so the text that a person would read is too little: a tool's input of
ten thousand short rows has next to none. An image is charged by its pixels wherever it stands (in a tool's result, a
screenshot, a document), never by its base64. It is known by the place that a provider gives an image. JSON that a model
or a tool wrote (a call's input) has no such place, so what looks like an image there is text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pagein.events.steps import Image, Opaque

REASONING_KINDS = frozenset({
    "thinking", "redacted_thinking", "thinking_blocks", "reasoning", "reasoning_content", "reasoning_details", "thought",
    "reasoningContent",
})  # fmt: skip
"""The kinds of parts with a model's reasoning. Its signature is not charged where its text can be read."""

_SIGNATURE_KEYS = frozenset({
    "signature", "thoughtSignature", "thought_signature", "encrypted_content", "data", "redactedContent",
})  # fmt: skip
_WRITTEN_KEYS = frozenset({"input", "arguments", "args", "parameters", "json", "response"})
_IMAGE_TYPES = frozenset({"image", "image_url", "input_image", "computer_screenshot"})
_DATA_KEYS = ("data", "base64", "bytes", "image_url", "url")
_LINK_KEYS = ("url", "image_url", "file_id", "s3Location", "fileUri", "file_uri")
_GEMINI_KEYS = ("inlineData", "inline_data", "fileData", "file_data")

Row = dict[str, Any]


def countable_parts(part: Opaque) -> tuple[tuple[str, ...], tuple[Image, ...]]:
    """Return the texts of a part, of which the longest in tokens is its cost, and the images to charge beside it."""
    if part.kind in REASONING_KINDS and part.text:
        return (part.text, _without_signatures(part.body)), ()
    body, images = split_images(part.body)
    return (part.text, body), images


def split_images(body: str) -> tuple[str, tuple[Image, ...]]:
    """Return JSON text without its images' data, and the images. Text that is no JSON is returned as it is."""
    if "image" not in body:  # each of the places names the word, as a type or as a media type
        return body, ()
    value = _parse_json(body)
    images: list[Image] = []
    rest = _take_images(value, images)
    return (_to_json(rest), tuple(images)) if images else (body, ())


def _parse_json(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _without_signatures(body: str) -> str:
    value = _parse_json(body)
    return "" if value is None else _to_json(_without_keys(value))


def _without_keys(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_keys(item) for key, item in value.items() if key not in _SIGNATURE_KEYS}
        case list():
            return [_without_keys(item) for item in value]
        case _:
            return value


def _take_images(value: Any, images: list[Image]) -> Any:
    """Return the value without images' data; add each image to ``images``."""
    match value:
        case list():
            return [_take_images(item, images) for item in value]
        case dict():
            rest = dict(value)
            for holder, key in _image_places(rest):
                images.append(_image_in(rest, holder, key))
            return {key: item if key in _WRITTEN_KEYS else _take_images(item, images) for key, item in rest.items()}
        case _:
            return value


def _image_places(row: Row) -> Iterator[tuple[str, str]]:
    """Yield where the object has an image: the key of the object inside, "" for itself, and the key of the data.

    The key of the data is "" for an image by its address.
    """
    kind = row.get("type")
    if isinstance(kind, str) and kind in _IMAGE_TYPES:
        for holder in ("", "source", "image_url"):
            inner = row if not holder else row.get(holder)
            if isinstance(inner, dict) and (key := _data_key(inner)) is not None:
                yield holder, key
                return
    elif kind == "image_generation_call" and isinstance(row.get("result"), str):
        yield "", "result"
    for holder in _GEMINI_KEYS:
        inner = row.get(holder)
        if isinstance(inner, dict) and str(inner.get("mimeType", inner.get("mime_type"))).startswith("image/"):
            yield holder, _data_key(inner) or ""
    image = row.get("image")
    if isinstance(image, dict) and isinstance(image.get("source"), dict):
        yield "image.source", _data_key(image["source"]) or ""


def _data_key(inner: Row) -> str | None:
    """Return the key of an image's data, "" for an image by its address, None where there is neither."""
    for key in _DATA_KEYS:
        value = inner.get(key)
        is_data = key in ("data", "base64", "bytes") or str(value).startswith("data:")
        if isinstance(value, str) and is_data:
            return key
    return "" if any(inner.get(key) for key in _LINK_KEYS if not isinstance(inner.get(key), dict)) else None


def _image_in(row: Row, holder: str, key: str) -> Image:
    """Return the image at a place, and replace its data by nothing there. Its bytes stay base64: only the head is read."""
    inner = row
    for name in holder.split(".") if holder else ():
        inner[name] = dict(inner[name])
        inner = inner[name]
    detail = inner.get("detail") or row.get("detail")
    data = inner[key] if key else ""
    if key:
        inner[key] = ""
    url = data if data.startswith("data:") else f"data:image/png;base64,{data}"
    return Image(url=url if data else "image", detail=detail if isinstance(detail, str) else "")
