"""Token costs of content that is kept unread: by all the JSON that is sent, with each image and file by its size.

A model reads names, numbers and short texts too, so the text that a person would read is too little: a tool's input of
ten thousand short rows has next to none. An image is charged by its pixels wherever it stands (in a tool's result, a
screenshot, a document), never by its base64. It is known by the place that a provider gives an image. JSON that a model
or a tool wrote (a call's input) has no such place, so what looks like an image there is text. A file is charged by its
pages, words or seconds where they can be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from pagein.events.protocol import REASONING_KINDS
from pagein.events.steps import Image, Opaque
from pagein.tokens.media import Media, read_media

_SIGNATURE_KEYS = frozenset({
    "signature", "thoughtSignature", "thought_signature", "encrypted_content", "data", "redactedContent",
})  # fmt: skip
_WRITTEN_KEYS = frozenset({"input", "arguments", "args", "parameters", "json", "response"})
_IMAGE_TYPES = frozenset({"image", "image_url", "input_image", "computer_screenshot"})
_DATA_KEYS = ("data", "base64", "bytes", "image_url", "url")
_LINK_KEYS = ("url", "image_url", "file_id", "s3Location", "fileUri", "file_uri")
_GEMINI_KEYS = ("inlineData", "inline_data", "fileData", "file_data")

_FILE_KEYS = ("data", "base64", "bytes", "file_data")
MIN_FILE_CHARS = 2_000
"""Characters below which a part is no file that costs less than it says."""

PAGE_IMAGE = Image(url="data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAABNgAAAbaCAYAAAA=")
"""The head of an image of a page of A4 in 150 dots per inch."""

Row = dict[str, Any]


class Countable(NamedTuple):
    """What a part costs: the longest of the texts in tokens, the images, and so many tokens for its files."""

    texts: tuple[str, ...]
    images: tuple[Image, ...] = ()
    file_tokens: int = 0


def countable_parts(part: Opaque) -> Countable:
    """Return what a part costs."""
    if part.kind in REASONING_KINDS and part.text:  # its signature is not charged where its text can be read
        return Countable((part.text, _without_signatures(part.body)))
    rest = countable_json(part.body)
    return rest._replace(texts=(part.text, *rest.texts))


def countable_json(body: str) -> Countable:
    """Return what JSON text costs: itself without the data of its images and files, and these. Text that is no JSON stays as it is."""
    # Each of an image's places names the word, as a type or as a media type.
    if "image" not in body and len(body) < MIN_FILE_CHARS:
        return Countable((body,))
    value = _parse_json(body)
    images, files = list[Image](), list[Media]()
    rest = _take_media(value, images, files)
    images += [PAGE_IMAGE] * sum(media.pages for media in files)
    is_changed = images or files
    return Countable((_to_json(rest) if is_changed else body,), tuple(images), sum(media.tokens for media in files))


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


def _take_media(value: Any, images: list[Image], files: list[Media]) -> Any:
    """Return the value without the data of images and files; add each of them to ``images`` or ``files``."""
    match value:
        case list():
            return [_take_media(item, images, files) for item in value]
        case dict():
            rest = dict(value)
            for holder, key in _image_places(rest):
                images.append(_image_in(rest, holder, key))
            files += _take_files(rest)
            return {
                key: item if key in _WRITTEN_KEYS else _take_media(item, images, files) for key, item in rest.items()
            }
        case _:
            return value


def _take_files(row: Row) -> Iterator[Media]:
    """Yield the files of an object whose cost is known, and have their words in the place of their data."""
    is_gemini = "type" not in row and ("mimeType" in row or "mime_type" in row)
    for key in _FILE_KEYS:
        data = row.get(key)
        if (
            isinstance(data, str)
            and len(data) >= MIN_FILE_CHARS // 2
            and (media := read_media(data, is_gemini=is_gemini))
        ):
            row[key] = media.text
            yield media


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
