"""Policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pagein.compaction import Policy
from pagein.compaction.clip import Clip
from pagein.compaction.ladder import Ladder
from pagein.compaction.mask import Mask
from pagein.compaction.projection import Projection
from pagein.compaction.prune import PruneOldObservations
from pagein.compaction.reasoning import DropReasoning
from pagein.compaction.relevance import Relevance
from pagein.compaction.rolling import Rolling
from pagein.compaction.rounds import Rounds
from pagein.compaction.short_long import ShortLong
from pagein.compaction.tiers import Tiers
from pagein.compaction.users import ClipUsers, FoldUsers
from pagein.compaction.window import Window
from pagein.errors import ConfigurationError

POLICIES: Mapping[str, Callable[[], Policy]] = MappingProxyType(
    {
        "ladder": Ladder,
        "clip": Clip,
        "mask": Mask,
        "reasoning": DropReasoning,
        "window": Window,
        "prune": PruneOldObservations,
        "users": ClipUsers,
        "chat": FoldUsers,
        "projection": Projection,
        "rounds": Rounds,
        "short_long": ShortLong,
        "rolling": Rolling,
        "tiers": Tiers,
        "relevance": Relevance,
    }
)
"""Each policy under its name, with its defaults. The floor stands behind every one of them."""


def policy_named(name: str) -> Policy:
    """The policy of that name. Raises ConfigurationError, which lists the names there are."""
    if name not in POLICIES:
        raise ConfigurationError(f"no policy {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name]()
