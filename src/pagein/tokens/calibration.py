"""Calibration of a counter by the usage that a provider reports. A value: ``observe`` returns the next one.

A calibration is for one model and one counter. ``observe`` takes the *uncalibrated* count of a request and the input
tokens reported for it, cached ones included. ``apply`` converts a count to the provider's tokens.

The rules and their reasons:

* **Reports that are not credible are ignored.** These are no report, zero, and a ratio outside 0.4 to 8. Usage is absent
  when a provider streams, and an ``input_tokens`` without the cached ones is a small fraction.
* **Stale reports are ignored.** These repeat the number of an earlier, different request, or fit the previous request
  much better than this one. After a compaction, old usage would otherwise cause a second compaction.
* **The factor rises after two reports**, to the second highest of the last three ratios, so that one outlier changes
  nothing (with one report, a run compacted 13 times in 5 hours).
* **The factor falls after three reports**, to the highest of the last three ratios.
* **Changes below 4 % are not made**, because each change of the budget changes the prompt's prefix.
* **The factor is limited to 0.5 to 6.** CJK is up to 4.5 times off for a foreign vocabulary. No estimate is too high by
  more than a factor of 2.

An exact counter (margin 0) has no ratio to learn. Its calibration learns a constant: the tokens the provider adds to
each request, such as a hidden prompt or tools, after two and three reports in the same way. It rises by less than 4 %
too: where a provider counts each token as more, a full request would not fit a window of which 2 % are kept free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

MIN_FACTOR, MAX_FACTOR = 0.5, 6.0
CREDIBLE_RATIOS = (0.4, 8.0)
MIN_CHANGE_SHARE = 0.04
RATIOS_KEPT = 3
MAX_OVERHEAD_TOKENS, MIN_GROWTH_TOKENS = 16_384, 16
MIN_LEARNED_GROWTH = 500
"""Growth between two reports below which nothing is learned: of 60 tokens with a noise of 15 a factor of 1.28 was."""

MIN_REQUEST_TOKENS = 50
"""Reports of smaller requests are ignored: their ratio is mostly framing."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The relation of one model's reports to one counter's counts: ``factor`` and ``overhead``.

    ``exact`` is for a counter whose margin is 0. ``words`` are the last ratios (overheads of an exact counter),
    ``reports`` the last pairs of count and report.
    """

    exact: bool = False
    factor: float = 1.0
    overhead: int = 0
    words: tuple[float, ...] = ()
    reports: tuple[tuple[int, int], ...] = ()

    def observe(self, estimated: int, reported: int | None) -> Calibration:
        """Return the calibration after a report of ``reported`` input tokens for a request counted as ``estimated``.

        Never raises; an ignored report gives an equal calibration.
        """
        if not reported or reported < 0 or estimated < MIN_REQUEST_TOKENS:
            return self
        if not CREDIBLE_RATIOS[0] <= reported / estimated <= CREDIBLE_RATIOS[1]:
            return self
        observed = replace(self, reports=(*self.reports, (estimated, reported))[-8:])
        if self._is_stale(estimated, reported):
            return observed
        return (
            _with_overhead(observed, estimated, reported) if self.exact else _with_ratio(observed, reported / estimated)
        )

    def observe_growth(self, estimated: int, reported: int, *, is_named: bool) -> Calibration:
        """Return the calibration after a growth of both counts since the last report, in which a constant cancels out.

        An exact counter learns nothing from it. Where no model is named no count is exact, and the factor only rises.
        """
        if estimated * reported <= 0 or (self.exact and is_named):
            return self
        learner = replace(self, exact=False, words=()) if self.exact else self
        learned = learner.observe(abs(estimated), abs(reported))
        return learned if is_named else replace(learned, factor=max(1.0, learned.factor))

    def apply(self, estimated: int) -> int:
        """Return a count in the provider's tokens, rounded up; 0 stays 0."""
        return math.ceil(estimated * self.factor) + self.overhead if estimated > 0 else 0

    def max_count(self, limit: int) -> int:
        """Return the largest count that ``apply`` keeps within ``limit``, at least 0."""
        return max(0, int((limit - self.overhead) / self.factor))

    def _is_stale(self, estimated: int, reported: int) -> bool:
        if any(same == reported and abs(earlier - estimated) > 0.05 * earlier for earlier, same in self.reports):
            return True
        if len(self.words) < RATIOS_KEPT:  # without a learned factor the fit cannot be judged
            return False
        before = self.apply(self.reports[-1][0])
        return _log_distance(reported, before) < 0.02 and _log_distance(reported, self.apply(estimated)) > 0.2


def _with_ratio(calibration: Calibration, ratio: float) -> Calibration:
    words = (*calibration.words, ratio)[-RATIOS_KEPT:]
    factor = min(MAX_FACTOR, max(MIN_FACTOR, round(_consensus(words, calibration.factor), 3)))
    moved = abs(factor - calibration.factor) > MIN_CHANGE_SHARE * calibration.factor
    return replace(calibration, words=words, factor=factor if moved else calibration.factor)


def _with_overhead(calibration: Calibration, estimated: int, reported: int) -> Calibration:
    # Counts are upper bounds, so a report below the count means no overhead.
    words = (*calibration.words, float(max(0, reported - estimated)))[-RATIOS_KEPT:]
    overhead = min(MAX_OVERHEAD_TOKENS, int(_consensus(words, calibration.overhead)))
    grown = overhead - calibration.overhead
    moved = grown > MIN_GROWTH_TOKENS or -grown > max(MIN_GROWTH_TOKENS, MIN_CHANGE_SHARE * estimated)
    return replace(calibration, words=words, overhead=overhead if moved else calibration.overhead)


def _consensus(values: tuple[float, ...], current: float) -> float:
    """Return the second highest value if it is above ``current``, the highest of three if below, else ``current``."""
    highest = sorted(values, reverse=True)
    if len(values) >= 2 and highest[1] > current:
        return highest[1]
    if len(values) == RATIOS_KEPT and highest[0] < current:
        return highest[0]
    return current


def _log_distance(one: int, other: int) -> float:
    return abs(math.log(one / other)) if one > 0 and other > 0 else math.inf
