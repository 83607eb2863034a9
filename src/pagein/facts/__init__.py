"""Long-term memory: facts, their extraction and reconciliation, their ranking, and the block in the prompt.

fact           the value, its checks, its ids
ledger         one owner's facts, folded from its log: history, audit, earlier states
owners         the scopes a memory sees, and the log of each
store          ``Facts``, the object a user has as ``memory.facts``
ranking        similarity x 0.6 + confidence x 0.4
block          the ``<memory>`` block
placement      the blocks of a view, stable byte for byte while their facts hold
injection      ``format_memory_for_injection``, with deer-flow's signature
contradiction  facts that say the same, or the contrary, by rules
reconcile      drafts compared with known facts, and the entries they become
retention      capacity, staleness, near-duplicates
extraction     facts from a run, by rules or by a model
export         export and import
"""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes

if TYPE_CHECKING:
    from pagein.facts.block import Block, memory_block
    from pagein.facts.fact import CATEGORIES, Fact, FactError, UnknownFact
    from pagein.facts.injection import format_memory_for_injection
    from pagein.facts.ledger import Change, Ledger, ledger_of
    from pagein.facts.owners import Owners, is_reserved
    from pagein.facts.ranking import RankedFact, Ranking, Weights, context_of
    from pagein.facts.settings import Settings
    from pagein.facts.store import Facts

__all__ = [
    "CATEGORIES",
    "Block",
    "Change",
    "Fact",
    "FactError",
    "Facts",
    "Ledger",
    "Owners",
    "RankedFact",
    "Ranking",
    "Settings",
    "UnknownFact",
    "Weights",
    "context_of",
    "format_memory_for_injection",
    "is_reserved",
    "ledger_of",
    "memory_block",
]

_MODULES = {
    "block": ("Block", "memory_block"),
    "fact": ("CATEGORIES", "Fact", "FactError", "UnknownFact"),
    "injection": ("format_memory_for_injection",),
    "ledger": ("Change", "Ledger", "ledger_of"),
    "owners": ("Owners", "is_reserved"),
    "ranking": ("RankedFact", "Ranking", "Weights", "context_of"),
    "settings": ("Settings",),
    "store": ("Facts",),
}
__getattr__ = lazy_attributes(
    __name__, {name: f"pagein.facts.{module}" for module, names in _MODULES.items() for name in names}
)
