"""What a provider's reports teach about a counter. A value: ``observe`` returns the next one.

One calibration is for one model and one counter. ``observe`` is handed the *uncalibrated* count of a request and the
input tokens that were reported for it, cached ones included; ``apply`` then says what a count is likely to be in the
provider's tokens.

The rule, and what each part of it is for:

* **Not credible, not learned.** No report, zero, or a ratio outside 0.4 to 8 says nothing: usage is absent when a
  provider streams, and an ``input_tokens`` that leaves out what the cache served is a small fraction.
* **Stale, not learned.** The very number of an earlier, different request; or one that fits the request before much
  better than this one. After a compaction the old usage would else cause a second compaction.
* **Up on the second word.** The factor rises to the second highest of the last three ratios: two reports agree, so one
  wild one changes nothing (a corrector that believed one report compacted 13 times in 5 hours).
* **Down on the third.** It falls only to the highest of the last three: three reports agree that less is enough.
* **Still, unless it matters.** A move of less than 4 % is not made: a budget that breathes breaks the prompt's prefix.
* **Wide, but with a floor.** The factor may be 0.5 to 6: CJK is up to 4.5 times off for a foreign vocabulary, and a
  clamp that cannot reach the truth never corrects. Below 0.5 no estimate of ours can be wrong, so it never goes there.

An exact counter (margin 0) has no ratio to learn. It learns a constant instead: the tokens the provider adds to each
request, a hidden prompt or tools, by the same two and three words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

FLOOR, CEILING = 0.5, 6.0
CREDIBLE = (0.4, 8.0)
BAND = 0.04
WORDS = 3
MOST_OVERHEAD = 16_384
SMALL = 50
"""Requests of fewer tokens teach nothing: their ratio is mostly framing."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How one model's reports relate to one counter's counts. ``factor`` is 1.0 and ``overhead`` 0 until two agree.

    ``exact`` is for a counter whose margin is 0. The other fields are what was seen last.
    """

    exact: bool = False
    factor: float = 1.0
    overhead: int = 0
    words: tuple[float, ...] = ()
    reports: tuple[tuple[int, int], ...] = ()

    def observe(self, estimated: int, reported: int | None) -> Calibration:
        """The calibration after one more report: ``reported`` input tokens for a request counted as ``estimated``.

        Never raises; a report that says nothing gives an equal calibration.
        """
        if not reported or reported < 0 or estimated < SMALL:
            return self
        if not CREDIBLE[0] <= reported / estimated <= CREDIBLE[1]:
            return self
        seen = replace(self, reports=(*self.reports, (estimated, reported))[-8:])
        if self._stale(estimated, reported):
            return seen
        return (
            _with_overhead(seen, estimated, reported)
            if self.exact
            else _with_ratio(seen, reported / estimated)
        )

    def apply(self, estimated: int) -> int:
        """The count in the provider's tokens, rounded up; nothing stays nothing."""
        return math.ceil(estimated * self.factor) + self.overhead if estimated > 0 else 0

    def room(self, limit: int) -> int:
        """The largest count that ``apply`` keeps within ``limit``; never under 0. The inverse of ``apply``."""
        return max(0, int((limit - self.overhead) / self.factor))

    def _stale(self, estimated: int, reported: int) -> bool:
        for earlier, same in self.reports:
            if same == reported and abs(earlier - estimated) > 0.05 * earlier:
                return True
        if len(self.words) < WORDS:  # the factor is not learned yet, so nothing can be said to fit
            return False
        before = self.apply(self.reports[-1][0])
        return _off(reported, before) < 0.02 and _off(reported, self.apply(estimated)) > 0.2


def _with_ratio(seen: Calibration, ratio: float) -> Calibration:
    words = (*seen.words, ratio)[-WORDS:]
    factor = min(CEILING, max(FLOOR, round(_agreed(words, seen.factor), 3)))
    moved = abs(factor - seen.factor) > BAND * seen.factor
    return replace(seen, words=words, factor=factor if moved else seen.factor)


def _with_overhead(seen: Calibration, estimated: int, reported: int) -> Calibration:
    # Counts are upper bounds, so a report below the count is no overhead at all.
    words = (*seen.words, float(max(0, reported - estimated)))[-WORDS:]
    overhead = min(MOST_OVERHEAD, int(_agreed(words, seen.overhead)))
    moved = abs(overhead - seen.overhead) > max(16, BAND * estimated)
    return replace(seen, words=words, overhead=overhead if moved else seen.overhead)


def _agreed(words: tuple[float, ...], now: float) -> float:
    """Where the last words meet: up to the second highest, down to the highest of a full house, else where it is."""
    highest = sorted(words, reverse=True)
    if len(words) >= 2 and highest[1] > now:
        return highest[1]
    if len(words) == WORDS and highest[0] < now:
        return highest[0]
    return now


def _off(one: int, other: int) -> float:
    return abs(math.log(one / other)) if one > 0 and other > 0 else math.inf
