"""Policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pagein.context.compaction.base import Policy
from pagein.context.compaction.ladder import Ladder
from pagein.context.compaction.policies.clip import Clip
from pagein.context.compaction.policies.mask import Mask
from pagein.context.compaction.policies.projection import Projection
from pagein.context.compaction.policies.prune import PruneOldObservations
from pagein.context.compaction.policies.reasoning import DropReasoning
from pagein.context.compaction.policies.relevance import Relevance
from pagein.context.compaction.policies.rolling import Rolling
from pagein.context.compaction.policies.rounds import Rounds
from pagein.context.compaction.policies.short_long import ShortLong
from pagein.context.compaction.policies.tiers import Tiers
from pagein.context.compaction.policies.users import ClipUsers, FoldUsers
from pagein.context.compaction.policies.window import Window
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
