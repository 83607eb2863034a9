"""Settings of facts: every option with its default and its check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pagein._common.validation import ANY_SHARE, TOKENS, Constraint, check_fields
from pagein.events.entries import FactScope
from pagein.facts.block import GUARANTEED_SHARE, MAX_TOKENS
from pagein.facts.fact import CATEGORIES, GUARANTEED, checked_category
from pagein.facts.ranking import Weights
from pagein.facts.retention import Capacity

Extract = Literal["auto", "rules", "model", "off"]
"""The extractor of facts: a model if there is one, else the rules; the rules; the model; none."""

Placement = Literal["tail", "head"]
"""The place of the block: in the run, where it first mattered, or at the head, chosen at the start and at each compaction."""

_SCOPES: tuple[FactScope, ...] = ("task", "session", "project", "user")
"""Never the tenant: the words of one user would become facts of all users."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Every option of facts, checked. Raises ConfigurationError with the allowed range.

    ``extract``: see ``Extract``. ``min_confidence``: candidates below it are dropped. ``debounce``: seconds without a new
    turn before a model is asked; it is asked after four times as many in any case. ``close_wait``: seconds that closing a
    memory waits for it; the rest is read by the next process. ``tools``: read tool results too, not only the user's words
    and final answers. ``scopes``: the scopes that extraction may write; never the tenant, or one user's words would speak
    to all. ``categories``: additional ones. ``procedures``: save one with each final answer. ``placement``: see
    ``Placement``. ``max_injection_tokens``, ``guaranteed``, ``guaranteed_share``: the block. ``stale_days``: see ``Facts.stale``.
    """

    extract: Annotated[
        Extract, "Extract facts by a model, by rules, or not. auto: a model where there is one, else rules."
    ] = "auto"
    min_confidence: Annotated[float, ANY_SHARE, "Drop candidates below this confidence."] = 0.7
    debounce: Annotated[float, Constraint(most=3_600), "Seconds without a new turn before a model is called."] = 30.0
    close_wait: Annotated[float, Constraint(most=3_600), "Seconds that closing a memory waits for the extraction."] = (
        5.0
    )
    tools: Annotated[bool, "Read the results of tools too."] = False
    scopes: Annotated[
        tuple[FactScope, ...], Constraint(choices=_SCOPES), "Scopes in which extraction may state facts."
    ] = _SCOPES
    categories: Annotated[
        tuple[str, ...],
        Constraint(form="a list of short names", pattern=r"\s*\S.*"),
        "Categories in addition to the built-in ones.",
    ] = ()
    procedures: Annotated[Literal["off", "final"], "final: save a procedure with each final answer."] = "off"
    placement: Annotated[
        Placement, "tail: in the run, where facts became relevant. head: at the start of the request."
    ] = "tail"
    max_injection_tokens: Annotated[int, TOKENS, "Maximum tokens of the block."] = MAX_TOKENS
    guaranteed: Annotated[
        tuple[str, ...],
        Constraint(form="a list of categories", pattern=r"\s*\S.*"),
        "Categories shown before all others.",
    ] = GUARANTEED
    guaranteed_share: Annotated[float, ANY_SHARE, "Share of the block reserved for these categories."] = (
        GUARANTEED_SHARE
    )
    stale_days: Annotated[float, Constraint(1, 36_500), "Days after which a fact should be reviewed."] = 90.0
    weights: Weights = field(default_factory=Weights)
    capacity: Capacity = field(default_factory=Capacity)

    def __post_init__(self) -> None:
        check_fields(self)
        for category in (*self.categories, *self.guaranteed):
            checked_category(category)

    @property
    def all_categories(self) -> tuple[str, ...]:
        """The built-in and the additional categories."""
        return tuple(dict.fromkeys((*CATEGORIES, *self.categories)))
