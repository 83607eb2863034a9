"""The registry of policies: each policy class by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pagein.context.compaction.base import Policy
from pagein.context.compaction.ladder import Ladder
from pagein.context.compaction.policies.chat import FoldUsers
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
from pagein.context.compaction.policies.users import ClipUsers
from pagein.context.compaction.policies.window import Window
from pagein.errors import ConfigurationError

_CLASSES: tuple[Callable[[], Policy], ...] = (
    Ladder,
    Clip,
    Mask,
    DropReasoning,
    Window,
    PruneOldObservations,
    ClipUsers,
    FoldUsers,
    Projection,
    Rounds,
    ShortLong,
    Rolling,
    Tiers,
    Relevance,
)

POLICIES: Mapping[str, Callable[[], Policy]] = MappingProxyType({policy().name: policy for policy in _CLASSES})
"""Each policy class by its name. The command line, the configuration and its docs page read this table."""


def policy_named(name: str) -> Policy:
    """Return the policy of a name, with its defaults. Raises ConfigurationError for an unknown name."""
    if name not in POLICIES:
        raise ConfigurationError(f"no policy {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name]()
