"""Long-term memory: facts, their extraction and reconciliation, procedures, ranking, and the block in the prompt."""

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
