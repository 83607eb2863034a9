"""Exact counts, offline, over the vocabularies that splintr-rs carries in its wheel.

``o200k_base`` and ``cl100k_base`` are cross-checked against a second tokenizer in ``tests/tokens``; the open models'
vocabularies are taken as splintr ships them. What splintr leaves to its caller is done here:

* A lone surrogate, which no tokenizer takes, is counted as U+FFFD, as tiktoken does.
* ``<|endoftext|>`` and its kind are text: the tokenizer is asked for ordinary tokens only.
* A text over 262,144 characters is counted in pieces, so that memory stays flat and the interpreter, which splintr does
  not release, is held for milliseconds. Pieces end between an ASCII letter or digit and a space with an ASCII letter
  behind it, where the pre-tokenizers of all byte-level vocabularies cut too: there the sum is exact (0 of 17,336 cuts
  wrong over eleven vocabularies). Where the last 4,096 characters of a piece hold no such place it ends where it is
  full: that was measured to miscount by -4 to +5 tokens, under 0.5 % of a piece. The two vocabularies that put a
  space before every text (``llama2``, ``mistral_v1``) count one more for each piece.
* splintr keeps each unbroken run it has seen, 66,000 of them whatever their length; after a text over 65,536
  characters that cache is emptied, or a stream of blobs would stay in memory for ever.

A cache of ours before splintr was measured and left out: a chat turn takes 0.7 us, a dictionary of it 0.2.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pagein.errors import ConfigurationError
from pagein.events.steps import Image
from pagein.tokens.images import UNKNOWN, ImageRule, image_tokens

ENCODINGS = (
    "cl100k_base", "deepseek_v3", "gemma2", "gemma3", "gemma4", "glm4", "kimi_k2", "llama2", "llama3", "mistral_v1",
    "mistral_v2", "mistral_v3", "o200k_base", "olmo2", "phi4", "qwen3",
)  # fmt: skip
"""The names of the vocabularies that can be counted with."""

PIECE = 1 << 18
_LOOK_BACK = 1 << 12
_FORGET = 1 << 16
_SAFE_CUT = re.compile(r"[A-Za-z0-9](?= [A-Za-z])")


@dataclass(frozen=True, slots=True)
class Encoding:
    """A vocabulary's own count of a text. Loads nothing until the first count; safe to share between threads.

    ``margin`` is 0 unless the vocabulary stands in for a near relative. Raises ConfigurationError for an unknown name.
    """

    name: str
    images: ImageRule = UNKNOWN
    margin: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in ENCODINGS:
            raise ConfigurationError(f"no encoding {self.name!r}; there are {', '.join(ENCODINGS)}")

    def text(self, text: str) -> int:
        """Tokens of the text; exact up to 262,144 characters, and to within 0.5 % beyond."""
        if len(text) <= _FORGET:
            try:
                return len(load(self.name).encode_ordinary(text))
            except UnicodeEncodeError:
                pass
        return sum(map(len, token_ids(self.name, text)))

    def image(self, image: Image) -> int:
        """Tokens of the image by its size in pixels and the rule of ``images``."""
        return image_tokens(image, self.images)


def token_ids(name: str, text: str) -> Iterator[list[int]]:
    """The ids of the text, piece by piece. Special tokens are text, and any string is taken."""
    tokenizer = load(name)
    for piece in pieces(text):
        try:
            yield tokenizer.encode_ordinary(piece)
        except UnicodeEncodeError:
            yield tokenizer.encode_ordinary(whole(piece))
    if len(text) > _FORGET:
        with suppress(ValueError):  # the SentencePiece vocabularies keep no cache, and say so
            tokenizer.clear_cache()


@functools.cache
def load(name: str) -> Any:
    """The tokenizer, once per process: 0.01 to 0.25 s, no file and no network."""
    from splintr import Tokenizer  # noqa: PLC0415 - 0.01 s and 40 MB that a plain import must not cost

    return Tokenizer.from_pretrained(name)


def whole(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD, and each pair of them joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def pieces(text: str) -> Iterator[str]:
    """The text in pieces of at most 262,144 characters, cut where no token is parted if there is such a place."""
    start = 0
    while len(text) - start > PIECE:
        end = _cut(text, start + PIECE)
        yield text[start:end]
        start = end
    yield text[start:]


def _cut(text: str, limit: int) -> int:
    """The last safe cut in the window that ends at ``limit``, or ``limit`` itself."""
    cut = limit
    for match in _SAFE_CUT.finditer(text, limit - _LOOK_BACK, limit):
        cut = match.end()
    return cut
