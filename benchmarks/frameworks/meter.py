"""Measure each request of a run, without the cost of measuring."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from pagein.tokens.encodings import Encoding

LAST = 50
"""How many of a run's last turns its time a turn is the median of."""


@dataclass(slots=True)
class Meter:
    """A run's requests: the CPU seconds of the process before each, and where they are counted the tokens of each."""

    counts: bool = False
    marks: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    _own: float = 0.0
    _counter: Encoding = field(default_factory=lambda: Encoding("o200k_base"))

    @contextmanager
    def request(self, texts: Callable[[], Iterable[str]]) -> Iterator[int]:
        """Within it the model answers, unmeasured; gives the number of the request, from 0. ``texts`` is all it says."""
        begun = time.process_time()
        self.marks.append(begun - self._own)
        if self.counts:
            self.tokens.append(sum(self._counter.text(text) + 4 for text in texts()))
        try:
            yield len(self.marks) - 1
        finally:
            self._own += time.process_time() - begun

    @property
    def turn(self) -> float:
        """Milliseconds of CPU a turn, the median of the last."""
        return 1_000 * median(after - before for before, after in pairwise(self.marks[-LAST - 1 :]))

    @property
    def total(self) -> float:
        """Milliseconds of CPU from the first request to the last."""
        return 1_000 * (self.marks[-1] - self.marks[0])


TASK = "Read every page of the report, then say who signed page 3."


def page(number: int) -> str:
    """The result of every agent's tool: some 400 tokens."""
    return "\n".join(f"page {number} line {line}: value {(number * 7919 + line) % 1000}" for line in range(30))
