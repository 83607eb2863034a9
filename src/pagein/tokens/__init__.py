"""What it costs: token counters, budgets, windows, and what a provider's reports teach.

images       what an image costs: its pixels, and each provider's rule
encodings    exact counts, offline
estimates    estimates with a stated margin, where no vocabulary is public
remembering  what was counted lately is not counted again
requests     what a message, a request and the tools cost
windows      which model has which window and counter; ``counter_for``, ``budget_for``
calibration  what reported usage teaches
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pagein.errors import BudgetError
from pagein.events.steps import Image


class TokenCounter(Protocol):
    """What text and images cost for one model, in tokens.

    Never raises, never touches the network, takes time linear in the text, and gives the same count each time.
    """

    @property
    def name(self) -> str:
        """The encoding or the rule, as ``o200k_base`` or ``claude estimate``."""
        ...

    @property
    def margin(self) -> float:
        """0 for an exact counter; else the stated relative error of the estimate, as 0.1."""
        ...

    def text(self, text: str) -> int:
        """Tokens of the text; whatever looks like a special token is text."""
        ...

    def image(self, image: Image) -> int:
        """Tokens of the image by its size in pixels and the provider's rule; never by its bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens the view may use: the model's window less what is reserved for its output, the tools and a margin.

    ``Budget(80_000)`` is 80,000 tokens of rendered messages. ``high`` and ``low`` are shares of the limit: a view
    above the high mark is compacted down to the low mark, so that the prompt's prefix breaks seldom; without ``low``
    the marks are near in a small window and far apart in a large one, see ``low_share``. Above ``soft``, without it
    half way between the two, a model begins to write what will leave at the high mark.

    Raises BudgetError when nothing is left for the view.
    """

    window: int
    output: int = 0
    tools: int = 0
    margin: float = 0.0
    high: float = 1.0
    low: float | None = None
    soft: float | None = None

    def __post_init__(self) -> None:
        self._check_types()
        if not 0 < self.low_share <= self.high <= 1:
            raise BudgetError(
                f"marks must be 0 < low <= high <= 1; they are low={self.low}, high={self.high}"
            )
        if not 0 < self.soft_share <= self.high:
            raise BudgetError(f"the soft mark must be 0 < soft <= high; it is {self.soft}, high={self.high}")
        if not 0 <= self.margin < 1 or self.output < 0 or self.tools < 0:
            raise BudgetError(f"reserves may not be negative, and the margin must be under 1: {self}")
        if self.limit <= 0:
            raise BudgetError(
                f"a budget must leave tokens for the view; window {self.window} less output {self.output}, tools "
                f"{self.tools} and a margin of {self.margin:.0%} leaves {self.limit}"
            )

    def _check_types(self) -> None:
        whole = {"window": self.window, "output": self.output, "tools": self.tools}
        shares = {"margin": self.margin, "high": self.high, "low": 1 if self.low is None else self.low}
        shares["soft"] = 1 if self.soft is None else self.soft
        for name, value in (whole | shares).items():
            kinds = int if name in whole else int | float
            # True is 1 to Python, and a budget of one token to nobody.
            if isinstance(value, bool) or not isinstance(value, kinds):
                what = "a whole number of tokens" if name in whole else "a share from 0 to 1"
                raise BudgetError(f"the {name} of a budget is {what}, not {value!r}")

    @property
    def limit(self) -> int:
        """Tokens of the rendered messages, never exceeded."""
        return int((self.window - self.output - self.tools) * (1 - self.margin))

    @property
    def low_share(self) -> float:
        """The low mark as a share of the limit: ``low``, or by the limit's size.

        A small view needs every token (measured on coding runs at 4,000: marks above .92 keep less than .80 of
        the prefix, marks below .85 miss more needs); in a large one each break of the prefix is dear.
        """
        if self.low is not None:
            return self.low
        return min(self.high, 1 - min(0.3, 0.11 + max(0, self.limit) / 400_000))

    @property
    def soft_share(self) -> float:
        """The soft mark as a share of the limit: ``soft``, or half way from the low mark to the high one."""
        return (self.low_share + self.high) / 2 if self.soft is None else self.soft
