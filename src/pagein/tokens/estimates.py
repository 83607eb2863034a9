"""Estimates for models whose tokenizer is not public: Claude, Gemini, Grok, and unknown models.

Each estimate states a margin and is biased upwards: a view that is a little too small costs a recall, one that is too
large costs the request.

**Claude.** Anthropic publishes no tokenizer for Claude 3 and later, and from Opus 4.7 on a text has about 30 % more
tokens, so there are two generations. The text is counted with o200k_base, and each of its tokens is weighed by what it is
made of: ``base + per_char * length``. The weights are fitted to the counts of ``ctok`` 1.3.0, a reconstruction of both
vocabularies, with under-counts punished six-fold. Decision 0002 has the figures.

**Gemini.** Google's own SDK counts Gemini 2.0 to 3 offline with Gemma 3's vocabulary; for later models that is an
assumption, hence the margin. Gemma 4's, used here, gives the same counts ten times as fast.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from pagein.events.steps import Image
from pagein.tokens.encodings import Encoding, load_tokenizer, token_ids
from pagein.tokens.images import CLAUDE, CLAUDE_HIGH, GEMINI_2, GEMINI_3, GROK, UNKNOWN, ImageRule, image_tokens

TokenClass = Literal[
    "word", "inner", "capitals", "digits", "mixed", "marks", "spaces", "lines",
    "latin", "eastern", "semitic", "indic", "southeast", "hangul", "han", "symbols", "emoji", "other", "bytes",
]  # fmt: skip
"""The class of a token. ``word`` has a space before it, ``inner`` has none; ``marks`` are ASCII punctuation."""

Rates = Mapping[TokenClass, tuple[float, float]]
"""The weight of an o200k token by its class: a base, and an amount per character."""

UPWARD_BIAS = 1.06
"""The factor by which every weight is raised, so that the estimate errs upwards."""

_OLD: Rates = MappingProxyType({
    "word": (0.99, 0.012), "inner": (1.23, 0.055), "capitals": (1.47, 0.0), "digits": (0.59, 0.137),
    "mixed": (1.42, 0.082), "marks": (1.12, 0.005), "spaces": (1.07, 0.056), "lines": (1.40, 0.0),
    "latin": (0.40, 0.522), "eastern": (1.48, 0.059), "semitic": (0.89, 0.516), "indic": (2.80, 0.0),
    "southeast": (1.09, 0.496), "hangul": (1.10, 0.498), "han": (0.71, 0.493), "symbols": (1.59, 0.125),
    "emoji": (2.90, 0.20), "other": (2.14, 0.0), "bytes": (1.18, 0.0),
})  # fmt: skip
_NEW: Rates = MappingProxyType({
    "word": (0.98, 0.118), "inner": (1.09, 0.245), "capitals": (1.29, 0.571), "digits": (0.31, 0.257),
    "mixed": (1.62, 0.154), "marks": (1.21, 0.150), "spaces": (0.88, 0.056), "lines": (1.74, 0.0),
    "latin": (0.10, 0.713), "eastern": (1.40, 0.078), "semitic": (0.89, 0.496), "indic": (2.74, 0.0),
    "southeast": (1.00, 0.499), "hangul": (1.21, 0.400), "han": (0.61, 0.540), "symbols": (1.36, 0.371),
    "emoji": (2.90, 0.20), "other": (2.11, 0.0), "bytes": (1.18, 0.0),
})  # fmt: skip
# An unknown model may have a vocabulary of 32,000 tokens: one per digit, and one per character of other scripts.
_ANY: Rates = MappingProxyType({
    **_OLD,
    "word": (1.05, 0.03), "inner": (1.25, 0.12), "digits": (0.0, 1.0), "latin": (0.40, 0.70), "eastern": (1.60, 0.40),
    "semitic": (1.0, 0.9), "indic": (2.80, 1.0), "southeast": (1.40, 1.0), "hangul": (1.30, 1.0), "han": (0.80, 0.80),
    "symbols": (2.0, 0.5), "emoji": (3.5, 0.5), "other": (2.20, 1.6), "bytes": (1.3, 0.0),
})  # fmt: skip

_SCRIPTS: tuple[tuple[int, TokenClass], ...] = (
    (0x0000, "latin"), (0x0250, "other"), (0x0370, "eastern"), (0x0530, "other"), (0x0590, "semitic"),
    (0x0900, "indic"), (0x0E00, "southeast"), (0x10A0, "other"), (0x1100, "hangul"), (0x1200, "other"),
    (0x1780, "southeast"), (0x1800, "other"), (0x1E00, "latin"), (0x1F00, "eastern"), (0x2000, "symbols"),
    (0x2600, "emoji"), (0x27C0, "symbols"), (0x2E80, "han"), (0xA000, "other"), (0xAC00, "hangul"), (0xD7B0, "other"),
    (0xF900, "han"), (0xFB00, "other"), (0xFF00, "han"), (0xFFF0, "other"), (0x1F000, "emoji"),
)  # fmt: skip
_STARTS = tuple(start for start, _ in _SCRIPTS)


@dataclass(frozen=True, slots=True)
class WeightedCounter:
    """A counter that weighs each o200k token by its class. Errs upwards.

    ``margin`` is the stated relative error. The source of the rates is in the module's docstring.
    """

    name: str
    generation: Literal["old", "new", "any"]
    images: ImageRule
    margin: float = 0.25

    def text(self, text: str) -> int:
        """Estimate the tokens of a text; special tokens count as text."""
        weigh = _token_weights(self.generation)
        return -(-sum(sum(map(weigh, ids)) for ids in token_ids("o200k_base", text)) // 1000)

    def image(self, image: Image) -> int:
        """Count the tokens of an image by its size in pixels and the rule in ``images``."""
        return image_tokens(image, self.images)


@dataclass(frozen=True, slots=True)
class ScaledCounter:
    """A counter that multiplies another vocabulary's count by a factor. ``margin`` is the stated relative error."""

    name: str
    encoding: Encoding
    factor: float
    margin: float

    def text(self, text: str) -> int:
        """Estimate the tokens of a text; special tokens count as text."""
        return math.ceil(self.encoding.text(text) * self.factor)

    def image(self, image: Image) -> int:
        """Count the tokens of an image by its size in pixels and the rule of the encoding."""
        return self.encoding.image(image)


@functools.cache
def _token_weights(generation: Literal["old", "new", "any"]) -> Callable[[int], int]:
    """Return a cached function from an o200k token to its weight in thousandths. There are 200,000 tokens."""
    rates = {"old": _OLD, "new": _NEW, "any": _ANY}[generation]

    @functools.cache
    def weigh(token: int) -> int:
        kind, length = classify_token(load_tokenizer("o200k_base").decode_token_bytes(token))
        base, per_char = rates[kind]
        return round(1000 * UPWARD_BIAS * (base + per_char * length))

    return weigh


def classify_token(token: bytes) -> tuple[TokenClass, int]:
    """Return a token's class, and the number of characters that count towards its weight.

    >>> classify_token(b" hello"), classify_token("你好".encode()), classify_token("你".encode()[:2])
    (('word', 5), ('han', 2), ('bytes', 1))
    """
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return "bytes", 1
    core = text.strip()
    if not core:
        return ("lines", 1) if "\n" in text else ("spaces", len(text))
    for char in core:
        if not char.isascii():
            return _SCRIPTS[bisect_right(_STARTS, ord(char)) - 1][1], len(core)
    return _ascii_class(text, core), len(core)


def _ascii_class(text: str, core: str) -> TokenClass:
    if core.isdigit():
        return "digits"
    if core.isalpha():
        if len(core) > 1 and core.isupper():
            return "capitals"
        return "inner" if text[0] == core[0] else "word"
    return "mixed" if any(char.isalnum() for char in core) else "marks"


CLAUDE_3 = WeightedCounter("claude estimate, before 4.7", "old", CLAUDE)
CLAUDE_4_7 = WeightedCounter("claude estimate, from 4.7", "new", CLAUDE_HIGH)
GEMINI_2_ESTIMATE = ScaledCounter("gemini estimate", Encoding("gemma4", GEMINI_2), 1.05, 0.10)
GEMINI_3_ESTIMATE = ScaledCounter("gemini estimate", Encoding("gemma4", GEMINI_3), 1.05, 0.10)
GROK_ESTIMATE = ScaledCounter("grok estimate", Encoding("o200k_base", GROK), 1.15, 0.25)
ANY_ESTIMATE = WeightedCounter("estimate for any model", "any", UNKNOWN, 0.35)
