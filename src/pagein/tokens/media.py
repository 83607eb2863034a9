"""Token costs of files that are sent as base64: by pages, words and seconds, as providers charge them.

Anthropic says 1,500 to 3,000 tokens of text for a page of a PDF, and an image of it; OpenAI sends the text and an image, too;
Gemini charges an image of at most 1,120 tokens. Of office files and plain text the model reads the words. Sound costs 10 tokens a second
at OpenAI and 32 at Gemini, film 300 there. Where no page is found, and in any other file, all that is sent counts.
"""

from __future__ import annotations

import binascii
import io
import re
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

PAGE_TEXT_TOKENS, GEMINI_PAGE_TOKENS = 3_000, 1_120
SOUND_TOKENS, FILM_TOKENS = 32, 300
"""Tokens of a second."""

SOUND_BYTES, FILM_BYTES = 2_000, 12_500
"""Bytes of a second, at least, where it is compressed: speech at 16 kbit/s, film at 100."""

MAX_INFLATED_BYTES, MAX_WORDS_BYTES = 32 * 1024 * 1024, 8 * 1024 * 1024
"""Bytes of a PDF's object streams that are read for pages, and of an office file that are read for words: more fit no window."""

_DATA_URL = re.compile(r"data:[^,]{0,200};base64,")

_SOUND = re.compile(r"SUQz|T2dnU|ZkxhQ|//[E-Pk-v]")  # ID3, OggS, fLaC, a frame of MP3 or AAC
_FILM = re.compile(r"AAAA.GZ0eX|GkXfo")  # ftyp, EBML
_WORDS = re.compile(
    r"(?:word/(?:document|footnotes|endnotes|comments|header\d*|footer\d*)|xl/(?:sharedStrings|worksheets/\w+)|ppt/(?:slides|notesSlides)/\w+)\.xml"
)
_SHARED_STRINGS = "xl/sharedStrings.xml"
_TAGS = re.compile(rb"(?:<[^<>]*>)+")
_CONTROLS = re.compile(r"[\0-\x08\x0e-\x1f]")
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_OBJECT_STREAM = re.compile(rb"/Type\s*/ObjStm\b[^>]{0,400}>>\s*stream\r?\n")


class Media(NamedTuple):
    """What a file costs: its tokens, the pages of which an image is charged beside them, and its words."""

    tokens: int = 0
    pages: int = 0
    text: str = ""


def read_media(encoded: str, *, is_gemini: bool) -> Media | None:
    """Return the cost of a file in base64, also of a data URL; None where its kind or size is not known."""
    url = _DATA_URL.match(encoded)
    data = encoded[url.end() :] if url else encoded
    data = data.replace("-", "+").replace("_", "/")  # pydantic's base64 is that of URLs
    if data.startswith("JVBERi0"):
        pages = count_pages(_decode(data))
        if is_gemini:
            return Media(pages * GEMINI_PAGE_TOKENS) if pages else None
        return Media(pages * PAGE_TEXT_TOKENS, pages) if pages else None
    if data.startswith("UklGR"):
        seconds = _wave_seconds(_decode(data[:400]), len(data) * 3 // 4)
        return None if seconds is None else Media(int(seconds * SOUND_TOKENS) + 1)
    for kind, tokens, least in ((_SOUND, SOUND_TOKENS, SOUND_BYTES), (_FILM, FILM_TOKENS, FILM_BYTES)):
        # Code that begins with a comment begins like sound.
        if kind.match(data) and (size := len(_decode(data))):
            return Media(size * tokens // least + 1)
    text = _office_words(_decode(data)) if data.startswith("UEsDB") else _plain_text(data)
    return Media(text=text) if text else None


def count_pages(document: bytes) -> int:
    """Count the pages of a PDF, also those of its object streams; 0 where none is found, as in an encrypted one.

    >>> count_pages(b"%PDF-1.4 1 0 obj <</Type /Pages /Kids [2 0 R]>> endobj 2 0 obj <</Type/Page>> endobj")
    1
    """
    return sum(len(_PAGE.findall(part)) for part in (document, *_object_streams(document)))


def _object_streams(document: bytes) -> Iterator[bytes]:
    left, end, view = MAX_INFLATED_BYTES, 0, memoryview(document)
    while left > 0 and (start := _OBJECT_STREAM.search(document, end)):
        end = document.find(b"endstream", start.end())
        end = len(document) if end < 0 else end
        try:
            part = zlib.decompressobj().decompress(view[start.end() : end], left)
        except zlib.error:  # encrypted, or not compressed
            continue
        left -= len(part)
        yield part


def _office_words(document: bytes) -> str:
    """Return the words of a Word, Excel or PowerPoint file, of a long one the first; "" for another archive."""
    import zipfile  # noqa: PLC0415 - loads for an office file

    parts, left = dict[str, bytes](), MAX_WORDS_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(document)) as archive:
            for name in filter(_WORDS.fullmatch, archive.namelist()):
                with archive.open(name) as part:
                    parts[name] = part.read(left)
                left -= len(parts[name])
                if left <= 0:
                    break
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, NotImplementedError, RuntimeError):
        return ""  # damaged, or encrypted
    words = {name: _TAGS.sub(b" ", part) for name, part in parts.items()}
    shared = parts.get(_SHARED_STRINGS)
    if shared is not None:  # a text stands there once, and in a sheet as often as it is shown
        times = sum(part.count(b't="s"') for part in parts.values()) // max(1, shared.count(b"</si>"))
        words[_SHARED_STRINGS] *= min(max(1, times), 1 + MAX_WORDS_BYTES // len(words[_SHARED_STRINGS] or b" "))
    return b"\n".join(words.values()).decode("utf-8", "replace")


def _plain_text(data: str) -> str:
    """Return the text of a file that is nothing else; "" for one that is."""
    if _CONTROLS.search(_decode(data[:400]).decode("latin-1")):
        return ""
    try:
        text = _decode(data).decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return "" if _CONTROLS.search(text) else text


def _wave_seconds(head: bytes, size: int) -> float | None:
    """Return the seconds of a WAVE file by the bytes of a second in its head; None where there are none."""
    at = head.find(b"fmt ")
    if head[8:12] != b"WAVE" or at < 0 or len(head) < at + 20:
        return None
    (bytes_a_second,) = struct.unpack_from("<I", head, at + 16)
    return size / bytes_a_second if bytes_a_second >= SOUND_BYTES else None


def _decode(data: str) -> bytes:
    try:
        return binascii.a2b_base64(data[: len(data) // 4 * 4], strict_mode=True)
    except ValueError:
        return b""
