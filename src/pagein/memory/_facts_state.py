"""The state of the facts in a view: whether they are shown, where, and those that are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pagein.context.view.layout import ViewEntry

if TYPE_CHECKING:
    from pagein.facts.placement import PlacedBlock
    from pagein.facts.settings import Placement


@dataclass(frozen=True, slots=True)
class ShownFacts:
    """The facts as blocks and as entries of the view; they stand there until the next compaction."""

    compactions: int = -1
    blocks: tuple[PlacedBlock, ...] = ()
    entries: tuple[ViewEntry, ...] = ()


@dataclass(slots=True)
class FactsBlockState:
    """``is_on`` where facts are extracted and shown; their place in the view, None for none; the option ``procedures``."""

    is_on: bool = False
    placement: Placement | None = "tail"
    saves_procedures: bool = False
    current: ShownFacts = ShownFacts()
