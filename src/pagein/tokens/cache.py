"""A counter that remembers what it counted lately: a turn counts the same texts several times, and so does the next one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pagein.events.steps import Image
from pagein.tokens import TokenCounter

ROOM = 500_000
"""Characters of the texts that are remembered, about; as many again of those that were before them."""

LONGEST = 65_536
"""Characters of a text beyond which it is not remembered: it would push out all the others."""

EACH = 100
"""Characters that a text is taken to cost beside its own."""


class Remembering:
    """Counts as ``counter`` does, and remembers the counts of texts. For one memory: threads may share it.

    A count of a line takes a tenth of the time when it is remembered; of a whole summary, a hundredth.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._now: dict[str, int] = {}
        self._before: dict[str, int] = {}
        self._left = ROOM

    @property
    def name(self) -> str:
        """The counter's."""
        return self._counter.name

    @property
    def margin(self) -> float:
        """The counter's."""
        return self._counter.margin

    def text(self, text: str) -> int:
        """Tokens of the text, as the counter counts them."""
        found = self._now.get(text)
        if found is None:
            found = self._before.get(text)
            if found is None:
                found = self._counter.text(text)
            if len(text) <= LONGEST:
                self._keep(text, found)
        return found

    def image(self, image: Image) -> int:
        """Tokens of the image, as the counter counts them."""
        return self._counter.image(image)

    def known(self, texts: Iterable[str]) -> dict[str, int]:
        """Those of the texts that were counted lately, with their tokens."""
        found = {each: self._now.get(each, self._before.get(each)) for each in texts}
        return {text: tokens for text, tokens in found.items() if tokens is not None}

    def learn(self, counts: Mapping[str, int]) -> None:
        """Take in what the same counter counted before."""
        for text, tokens in counts.items():
            self._keep(text, tokens)

    def _keep(self, text: str, tokens: int) -> None:
        self._left -= len(text) + EACH
        if self._left < 0:
            self._now, self._before, self._left = {}, self._now, ROOM
        self._now[text] = tokens
