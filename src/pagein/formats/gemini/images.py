"""Gemini's images: inline data, and files by their address."""

from __future__ import annotations

import base64
from typing import Any

from pagein.events.steps import Image, Opaque
from pagein.formats import rendering
from pagein.formats.gemini import rules
from pagein.formats.parsing import Fields, decode_exact_base64, opaque_extra

_TYPE_OF_SUFFIX = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "webp": "image/webp", "heic": "image/heic",
    "heif": "image/heif",
}  # fmt: skip
_URL_ALPHABET = "_base64url"
"""The note on data that was written with ``-`` and ``_``, as google-genai's JSON is."""

Row = dict[str, Any]


def parse_image(part: Fields, *, in_response: bool) -> Image | None:
    """Parse a part with an image; None where rendering would not give back the same part, or there is no image."""
    rest = part.rest()
    kind = "responsePart" if in_response else "image"
    blob, file = rest.pop("inlineData", None), rest.pop("fileData", None)
    image: Image | None = None
    if isinstance(blob, dict) and file is None:
        image, alphabet = _inline_image(blob)
        rest |= alphabet
    elif isinstance(file, dict) and blob is None and file.keys() == {"mimeType", "fileUri"}:
        image = _file_image(file)
    if image is None:
        return None
    extra = opaque_extra("gemini", kind, rest)
    if extra is None and in_response:
        extra = Opaque("gemini", kind, "{}")
    return Image(image.data, image.media_type, image.url, extra=extra)


def _inline_image(blob: Row) -> tuple[Image | None, Row]:
    media_type, data = blob.get("mimeType"), blob.get("data")
    if blob.keys() != {"mimeType", "data"} or not (isinstance(data, str) and str(media_type).startswith("image/")):
        return None, {}
    content = decode_exact_base64(data)
    if content is not None:
        return Image(content, str(media_type)), {}
    content = decode_exact_base64(data.translate(str.maketrans("-_", "+/")))
    return (None if content is None else Image(content, str(media_type))), {_URL_ALPHABET: 1}


def _file_image(file: Row) -> Image | None:
    media_type, url = file["mimeType"], file["fileUri"]
    if media_type not in rules.IMAGE_TYPES or not isinstance(url, str) or not _is_address(url):
        return None
    return Image(media_type="" if media_type == _type_by_suffix(url) else media_type, url=url)


def render_image(image: Image) -> Row | None:
    """Render an image; None if the API refuses it."""
    own = rendering.own_fields(image.extra, "gemini") or {}
    beside = {key: value for key, value in own.items() if key != _URL_ALPHABET}
    if image.url:
        media_type = image.media_type or _type_by_suffix(image.url)
        is_taken = _is_address(image.url) and media_type in rules.IMAGE_TYPES
        return {**beside, "fileData": {"mimeType": media_type, "fileUri": image.url}} if is_taken else None
    media_type = rendering.sent_media_type(image)
    if media_type not in rules.IMAGE_TYPES:
        return None
    encode = base64.urlsafe_b64encode if _URL_ALPHABET in own else base64.b64encode
    data = encode(image.data).decode("ascii")
    return {**beside, "inlineData": {"mimeType": media_type, "data": data}}


def _is_address(url: str) -> bool:
    return url.startswith(("https://", "gs://"))


def _type_by_suffix(url: str) -> str:
    """Return the media type that an address ends with, by default JPEG: the API asks for one."""
    path = url.partition("?")[0].partition("#")[0]
    return _TYPE_OF_SUFFIX.get(path.rpartition(".")[2].lower(), "image/jpeg")
