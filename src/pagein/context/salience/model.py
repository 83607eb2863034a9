"""How likely an identifier or a line is needed within the next few turns, from how the run used it so far.

Two logistic models, fitted on the even half of 339 recorded runs (mini-swe-agent at 4,000 and 8,000 tokens, SWE-agent
on Java at 8,000, tau-bench at 4,000): at each compaction every identifier (85,000 of them) and every line of 25
characters and more (97,000) that was not in sight, and whether the next four to eight actions named it. On them the
area under the curve is .92 and .91. What counts is how lately it was seen and how often the agent wrote it itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Source = Literal["task", "said", "arguments", "observation"]

QUOTED = 25
"""Characters below which a line is no quotation."""

_NEVER = 3.0
"""What stands for the age of something the agent never wrote itself."""

TOLD = 0.5
"""What a line is worth of its own that is the whole of a result, and speaks of nothing but the task."""

LASTS = 0.3
"""By which power of its age a line of a result loses of that: what was found early is needed late."""

_LOG = tuple(math.log1p(age) for age in range(4096))


def _log(age: int) -> float:
    return _LOG[age] if age < len(_LOG) else math.log1p(age)


@dataclass(slots=True)
class Use:
    """How one identifier or line was used so far; turns count actions, and -1 is never."""

    last: int = -1
    last_argued: int = -1
    turns: int = 0
    argued: int = 0
    said: bool = False
    observed: bool = False

    def see(self, turn: int, source: Source) -> None:
        """Take in one occurrence."""
        if self.last != turn:
            self.turns += 1
            self.last = turn
        match source:
            case "arguments":
                if self.last_argued != turn:
                    self.argued += 1
                    self.last_argued = turn
            case "said":
                self.said = True
            case "observation":
                self.observed = True
            case _:
                pass


def name_base(name: str, use: Use, near: float = 0.0, among: int = 1) -> float:
    """The part of an identifier's log-odds that does not change as time goes by.

    ``near`` is how near to the task the nearest line was in which it stood, from 0 to 1; ``among`` how many lines the
    shortest result had in which it stood: of few lines each says more. Fitted with the rest as given; decision 10.
    """
    seen = 1.5 + 1.25 * near - 0.45 * _log(among - 1) if use.observed else 0.0
    return (
        seen
        - 2.77
        + 0.75 * (use.argued > 0)
        + 1.19 * _log(use.argued)
        - 0.2 * _log(use.turns)
        - 0.6 * ("/" in name)
        - 1.3 * name.isdigit()
        + 0.96 * use.said
        - 0.75 * use.observed
    )


def name_chance(base: float, use: Use, turn: int) -> float:
    """How likely an identifier of this base is needed soon."""
    return 1 / (1 + math.exp(0.78 * _log(turn - use.last) - base))


def line_base(text: str, use: Use, source: Source) -> float:
    """The part of a line's log-odds that does not change as time goes by."""
    return (
        -1.2
        + 0.8 * (use.argued > 0)
        + 1.62 * _log(use.argued)
        + 0.05 * _log(use.turns)
        - 0.33 * use.observed
        + 1.2 * (use.last == use.last_argued)
        - 1.08 * math.log1p(len(text))
        + 0.4 * use.said
        + 1.4 * (source == "said")
    )


def line_chance(base: float, use: Use, turn: int) -> float:
    """How likely a line of this base is quoted soon."""
    argued = _log(turn - use.last_argued) if use.last_argued >= 0 else _NEVER
    return 1 / (1 + math.exp(_log(turn - use.last) - 0.5 * argued - base))


def telling(near: float, among: int, age: int) -> float:
    """What a line of a result is worth beside its names: a result tells one thing, in one of ``among`` lines.

    Not fitted, as recorded needs are names and quotations: the least with which agents that know only what they can
    read come through (``python -m benchmarks degrade``), at next to no cost in recorded needs.
    """
    return TOLD * near**2 / max(1, among) * (1 + age) ** -LASTS if near else 0.0
