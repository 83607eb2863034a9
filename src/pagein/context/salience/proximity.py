"""What is near to some names is likelier needed: a memo read as it is when the run is about these. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pagein.context.salience.tracker import Line, Memo

NEAR = 1.0
"""What is added to the log-odds of a line for each name, up to two, that it shares with what the run is about now, and to
those of a name that shares such a line. 2 was no better than 0."""


class _Near(Memo):
    """A memo in which what is near to some names is likelier: ``lines`` that have one of them, and what else these name."""

    def __init__(self, memo: Memo, about: frozenset[str], lines: Mapping[str, Line]) -> None:
        vars(self).update(vars(memo))
        self._likely = self._worths = None
        self._memo, self._about, self._about_it = memo, about, lines
        self._related = frozenset(name for line in lines.values() for name in line.names)

    def name_chance(self, key: str) -> float:
        """How likely an identifier is needed now."""
        return likelier(super().name_chance(key), NEAR * (key in self._related))

    def _chances(self) -> dict[str, float]:
        chances = dict(self._memo.name_chances())
        for key in self._related & chances.keys():
            chances[key] = likelier(chances[key], NEAR)
        return chances

    def _weighed(self, share: float) -> dict[str, float]:
        near = {key: share * self.quoted(line) + self.told(line) for key, line in self._about_it.items()}
        return self._memo.worths(share) | near

    def quoted(self, line: Line) -> float:
        """How likely a line is quoted now."""
        chance, about = super().quoted(line), self._about
        return likelier(chance, NEAR * min(2, sum(name in about for name in line.names)))


def near(memo: Memo, about: frozenset[str]) -> Memo:
    """The memo as it is when the run is about these names; it learns nothing, and changes nothing."""
    # To ask for the lines learns what was heard, so that the copy has nothing to learn.
    return _Near(
        memo, about, {key: line for key, line in memo.lines.items() if not about.isdisjoint(line.names)}
    )


def likelier(chance: float, by: float) -> float:
    """A chance whose log-odds are so much higher."""
    if not by or chance >= 1:
        return chance
    odds = chance / (1 - chance) * math.exp(by)
    return odds / (1 + odds)
