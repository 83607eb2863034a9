"""How facts behave: every option with its default, checked when it is given."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from pagein.errors import ConfigurationError
from pagein.events.entries import FactScope
from pagein.facts.block import MAX_TOKENS, SHARE, checked_tokens
from pagein.facts.fact import CATEGORIES, GUARANTEED, checked_category
from pagein.facts.ranking import Weights
from pagein.facts.retention import Capacity

Extract = Literal["auto", "rules", "model", "off"]
"""Who takes facts from a run: a model where there is one, else the rules; the rules; the model; nobody."""

Placement = Literal["tail", "head"]
"""Where what is known stands: in the run, where it came to matter; or at the head, chosen at the start and at each compaction."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Every option of facts, checked. Raises ConfigurationError with the allowed range.

    ``extract``: see ``Extract``. ``min_confidence``: candidates below it are dropped. ``debounce``: seconds without a
    new turn before a model is asked; at four times as many it is asked in any case. ``close_wait``: seconds for which
    closing a memory waits for it; what was not read then is read by the next. ``tools``: read what tools
    returned too, not only what the user and final answers say. ``scopes``: for whom extraction may state facts; never
    the tenant, or one user's words would speak to all. ``categories``: more of them. ``placement``: the block in the run where it
    came to matter, or at the head, chosen at the start of a run and at each compaction. ``max_injection_tokens``,
    ``guaranteed`` and ``guaranteed_share``: the block. ``stale_days``: see ``Facts.stale``.
    """

    extract: Extract = "auto"
    min_confidence: float = 0.7
    debounce: float = 30.0
    close_wait: float = 5.0
    tools: bool = False
    scopes: tuple[FactScope, ...] = ("task", "session", "project", "user")
    categories: tuple[str, ...] = ()
    placement: Placement = "tail"
    max_injection_tokens: int = MAX_TOKENS
    guaranteed: tuple[str, ...] = GUARANTEED
    guaranteed_share: float = SHARE
    stale_days: float = 90.0
    weights: Weights = field(default_factory=Weights)
    capacity: Capacity = field(default_factory=Capacity)

    def __post_init__(self) -> None:
        if self.extract not in ("auto", "rules", "model", "off"):
            raise ConfigurationError(f"extract is auto, rules, model or off, not {self.extract!r}")
        checked_tokens(self.max_injection_tokens, "max_injection_tokens")
        if self.placement not in ("tail", "head"):
            raise ConfigurationError(f"placement is tail or head, not {self.placement!r}")
        _number("min_confidence", self.min_confidence, 0, 1)
        _number("debounce", self.debounce, 0, 3_600)
        _number("close_wait", self.close_wait, 0, 3_600)
        _number("guaranteed_share", self.guaranteed_share, 0, 1)
        _number("stale_days", self.stale_days, 1, 36_500)
        if not isinstance(self.tools, bool):
            raise ConfigurationError(f"tools is True or False, not {self.tools!r}")
        unknown = set(self.scopes) - {"task", "session", "project", "user"}
        if unknown:
            raise ConfigurationError(
                f"scopes for extraction are task, session, project and user, not {', '.join(map(repr, sorted(unknown)))}"
            )
        for each in (*self.categories, *self.guaranteed):
            checked_category(each)

    @property
    def known(self) -> tuple[str, ...]:
        """Every category there is."""
        return tuple(dict.fromkeys((*CATEGORIES, *self.categories)))


def _number(name: str, value: object, least: float, most: float) -> None:
    right = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not right or not least <= value <= most:  # type: ignore[operator]
        raise ConfigurationError(f"{name} is a number from {least} to {most:,}, not {value!r}")
