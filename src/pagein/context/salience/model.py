"""Two logistic models: the chance that an identifier or a line is needed in the next few turns, from its use so far.

They are fitted on the even half of 339 recorded runs (mini-swe-agent at 4,000 and 8,000 tokens, SWE-agent on Java at
8,000, for identifiers also tau-bench at 4,000): what was not in the request, and whether the next four to eight actions
named it. What counts is how lately it was seen, how often the agent wrote it itself, and for a line the length of the
text that it is from: an agent writes a script again line by line. Decision 0053 has the figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Source = Literal["task", "said", "arguments", "observation"]

QUOTE_MIN_CHARS = 25
"""Characters below which a line is too short to count as quoted."""

RESULT_LINE_WORTH = 0.5
"""Worth of a line that is the whole of a result and has only words of the task."""

RESULT_LINE_DECAY = 0.3
"""Exponent by which that worth falls with age in turns: early results are needed late."""

_LOG_TABLE = tuple(math.log1p(age) for age in range(4096))


def _log(age: int) -> float:
    return _LOG_TABLE[age] if age < len(_LOG_TABLE) else math.log1p(age)


@dataclass(slots=True)
class UseCounts:
    """The uses of an identifier or line so far. A turn is the number of an action; -1 stands for never.

    ``argued`` counts the calls with it in their arguments. The fields are stored by their order.
    """

    last: int = -1
    last_argued: int = -1
    turns: int = 0
    argued: int = 0
    in_prose: bool = False
    observed: bool = False

    def count(self, turn: int, source: Source) -> None:
        """Count one occurrence."""
        if self.last != turn:
            self.turns += 1
            self.last = turn
        match source:
            case "arguments":
                if self.last_argued != turn:
                    self.argued += 1
                    self.last_argued = turn
            case "said":
                self.in_prose = True
            case "observation":
                self.observed = True


def name_base(name: str, use: UseCounts, task_overlap: float = 0.0, result_lines: int = 1) -> float:
    """Return the part of an identifier's log-odds that does not change with time.

    ``task_overlap`` is the largest overlap, from 0 to 1, of a line that has it with the user's words. ``result_lines``
    is the number of lines of the shortest result that has it: a line of a short result says more. Fitted with the rest
    as given; decision 0010.
    """
    observed_weight = 1.5 + 1.25 * task_overlap - 0.45 * _log(result_lines - 1) if use.observed else 0.0
    return (
        observed_weight
        - 2.77
        + 0.75 * (use.argued > 0)
        + 1.19 * _log(use.argued)
        - 0.2 * _log(use.turns)
        - 0.6 * ("/" in name)
        - 1.3 * name.isdigit()
        + 0.96 * use.in_prose
        - 0.75 * use.observed
    )


def name_chance(base: float, use: UseCounts, turn: int) -> float:
    """Return the chance that an identifier with this base is needed soon."""
    return 1 / (1 + math.exp(0.78 * _log(turn - use.last) - base))


def line_base(text: str, use: UseCounts, source: Source, text_lines: int) -> float:
    """Return the part of a line's log-odds that does not change with time.

    ``text_lines`` is the number of lines of the text in which it was last seen. Decision 0053.
    """
    return (
        -4.4
        + 2.1 * _log(use.argued)
        + 1.85 * (use.last == use.last_argued)
        - 0.9 * math.log1p(len(text))
        + 1.4 * use.in_prose
        + 1.2 * (source == "said")
        + 0.39 * _log(text_lines)
    )


def line_chance(base: float, use: UseCounts, turn: int) -> float:
    """Return the chance that a line with this base is quoted soon."""
    return 1 / (1 + math.exp(0.43 * _log(turn - use.last) - base))


def result_line_worth(task_overlap: float, result_lines: int, age: int) -> float:
    """Return the worth of a result's line beside its names: a result says one thing, in one of ``result_lines`` lines.

    Not fitted, as recorded needs are names and quotations. It is the least with which agents that know only what is in
    view finish their task (``python -m benchmarks degrade``), at almost no cost in recorded needs.
    """
    if not task_overlap:
        return 0.0
    worth: float = RESULT_LINE_WORTH * task_overlap**2 / max(1, result_lines) * (1 + age) ** -RESULT_LINE_DECAY
    return worth
