"""Exact counts, offline, with the vocabularies in the wheel of splintr-rs.

``o200k_base`` and ``cl100k_base`` are cross-checked against a second tokenizer in ``tests/tokens``; the open models'
vocabularies are used as splintr ships them. splintr leaves the following to its caller:

* A lone surrogate, which no tokenizer accepts, is counted as U+FFFD, as tiktoken does.
* Special tokens such as ``<|endoftext|>`` are counted as text.
* A text over 262,144 characters is counted in pieces, so that memory stays flat and the interpreter lock, which splintr
  does not release, is held for milliseconds. Pieces end between an ASCII letter or digit and a space before an ASCII
  letter, where the pre-tokenizers of all byte-level vocabularies cut too. There the sum is exact (0 of 17,336 cuts wrong
  over eleven vocabularies). A piece without such a place in its last 4,096 characters is cut at its full length; the
  measured error is -4 to +5 tokens, under 0.5 % of a piece. The two vocabularies that put a
  space before every text (``llama2``, ``mistral_v1``) count one more for each piece.
* splintr caches 66,000 unbroken runs of text, whatever their length. After a text over 65,536 characters that cache is
  emptied, so that large blobs do not stay in memory.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pagein._common.surrogates import replace_surrogates
from pagein.errors import ConfigurationError
from pagein.events.steps import Image
from pagein.tokens.images import UNKNOWN, ImageRule, image_tokens

ENCODINGS = (
    "cl100k_base", "deepseek_v3", "gemma2", "gemma3", "gemma4", "glm4", "kimi_k2", "llama2", "llama3", "mistral_v1",
    "mistral_v2", "mistral_v3", "o200k_base", "olmo2", "phi4", "qwen3",
)  # fmt: skip
"""The names of the available vocabularies."""

PIECE_MAX_CHARS = 1 << 18
_CUT_WINDOW_CHARS = 1 << 12
_CACHED_MAX_CHARS = 1 << 16
_SAFE_CUT = re.compile(r"[A-Za-z0-9](?= [A-Za-z])")


@dataclass(frozen=True, slots=True)
class Encoding:
    """A counter with one vocabulary. Loads nothing until the first count; threads may share it.

    ``margin`` is 0 unless the vocabulary stands in for a similar one. Raises ConfigurationError for an unknown name.
    """

    name: str
    images: ImageRule = UNKNOWN
    margin: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in ENCODINGS:
            raise ConfigurationError(f"no encoding {self.name!r}; there are {', '.join(ENCODINGS)}")

    def text(self, text: str) -> int:
        """Count the tokens of a text: exact up to 262,144 characters, to within 0.5 % beyond."""
        if len(text) <= _CACHED_MAX_CHARS:
            try:
                return len(load_tokenizer(self.name).encode_ordinary(text))
            except UnicodeEncodeError:
                pass
        return sum(map(len, token_ids(self.name, text)))

    def image(self, image: Image) -> int:
        """Count the tokens of an image by its size in pixels and the rule in ``images``."""
        return image_tokens(image, self.images)


def token_ids(name: str, text: str) -> Iterator[list[int]]:
    """Yield the token ids of a text, piece by piece. Special tokens are text; any string is valid."""
    tokenizer = load_tokenizer(name)
    for piece in split_pieces(text):
        try:
            yield tokenizer.encode_ordinary(piece)
        except UnicodeEncodeError:
            yield tokenizer.encode_ordinary(replace_surrogates(piece))
    if len(text) > _CACHED_MAX_CHARS:
        with suppress(ValueError):  # the SentencePiece vocabularies have no cache
            tokenizer.clear_cache()


@functools.cache
def load_tokenizer(name: str) -> Any:
    """Load a tokenizer, once per process: 0.01 to 0.25 s, no file and no network."""
    from splintr import Tokenizer  # noqa: PLC0415 - 0.01 s and 40 MB that a plain import must not cost

    return Tokenizer.from_pretrained(name)


def split_pieces(text: str) -> Iterator[str]:
    """Split a text into pieces of at most 262,144 characters, between tokens where possible."""
    start = 0
    while len(text) - start > PIECE_MAX_CHARS:
        limit = start + PIECE_MAX_CHARS
        cuts = _SAFE_CUT.finditer(text, limit - _CUT_WINDOW_CHARS, limit)
        end = max((cut.end() for cut in cuts), default=limit)
        yield text[start:end]
        start = end
    yield text[start:]
