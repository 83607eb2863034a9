"""Token budgets of a view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pagein._common.validation import POSITIVE_SHARE, POSITIVE_TOKENS, TOKENS, Constraint, check_fields, is_whole_number
from pagein.errors import BudgetError


@dataclass(frozen=True, slots=True)
class RequestRoom:
    """Tokens that one request needs beside its view. ``tools`` is None where the application did not hand its tools over.

    ``tool_bytes`` are the bytes of the tools' JSON.
    """

    reserve: int = 0
    tools: int | None = None
    tool_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens the view may use: the model's window less reserves for its output, the tools and a margin.

    ``Budget(80_000)`` is 80,000 tokens of rendered messages. ``high`` and ``low`` are shares of the limit: a view above
    the high mark is compacted to the low mark, so that the prompt's prefix changes seldom. A lower ``low`` costs less and
    forgets more. Its default depends on the size and the policy, see ``low_share``. Above ``soft``, by default half way between the two, a model begins to write
    the summary of the steps that will be removed at the high mark. ``bytes`` limits the JSON of the messages and of the
    tools beside them: images have many bytes and few tokens. The count is an upper bound in every format.

    Raises BudgetError when nothing is left for the view.
    """

    window: Annotated[int, POSITIVE_TOKENS, "Tokens of the model's window."]
    output: Annotated[int, TOKENS, "Tokens reserved for the answer."] = 0
    tools: Annotated[int, TOKENS, "Tokens reserved for the tools' schemas."] = 0
    margin: Annotated[float, Constraint(most=1, cap=0.99), "Share reserved because token counts are estimates."] = 0.0
    high: Annotated[float, POSITIVE_SHARE, "Share of the limit above which a view is compacted."] = 1.0
    low: Annotated[
        float | None, POSITIVE_SHARE, "Share of the limit to compact down to. Default: depends on the limit."
    ] = None
    soft: Annotated[
        float | None,
        POSITIVE_SHARE,
        "Share above which a model begins its summary. Default: half way from low to high.",
    ] = None
    bytes: Annotated[
        int | None,
        POSITIVE_TOKENS,
        "Bytes of the messages and tools as JSON, as providers limit them too. Default: any number.",
    ] = None

    def __post_init__(self) -> None:
        check_fields(self, BudgetError)
        if not 0 < self.low_share <= self.high <= 1:
            raise BudgetError(f"marks must be 0 < low <= high <= 1; they are low={self.low}, high={self.high}")
        if not 0 < self.soft_share <= self.high:
            raise BudgetError(f"the soft mark must be 0 < soft <= high; it is {self.soft}, high={self.high}")
        if self.limit <= 0:
            raise BudgetError(
                f"a budget must leave tokens for the view; window {self.window} less output {self.output}, tools "
                f"{self.tools} and a margin of {self.margin:.0%} leaves {self.limit}"
            )

    @property
    def limit(self) -> int:
        """The most tokens of the rendered messages; never exceeded."""
        return int((self.window - self.output - self.tools) * (1 - self.margin))

    @property
    def low_share(self) -> float:
        """The low mark as a share of the limit: ``low``, or a default by the limit's size.

        A small view needs every token (measured on coding runs at 4,000 tokens: marks above .92 keep less than .80 of
        the prefix, marks below .85 miss more needs). In a large view a changed prefix costs more.
        """
        if self.low is not None:
            return self.low
        return min(self.high, 1 - min(0.3, 0.11 + max(0, self.limit) / 400_000))

    @property
    def soft_share(self) -> float:
        """The soft mark as a share of the limit: ``soft``, or half way between the low and the high mark."""
        return (self.low_share + self.high) / 2 if self.soft is None else self.soft


def as_budget(value: Any, name: str = "budget") -> Budget:
    """A budget, or the budget of so many tokens. Raises BudgetError that calls the option by its ``name``."""
    if isinstance(value, Budget):
        return value
    if not is_whole_number(value) or value < 1:
        raise BudgetError(f"{name} is a whole number of tokens, 1 or more, not {value!r}")
    return Budget(value)
