"""What outlives a run: facts, where they come from, which of them matter now, and the block that shows them.

fact        the value, its checks, its ids
book        one owner's facts as a pure fold of its log; history, audit, what was known at a time
owners      whose facts a memory sees, and in which log each scope lies
shelf       one owner's log: read up to now, written by compare-and-swap
tfidf       TF-IDF cosine that is kept, not refitted
ranking     similarity x 0.6 + confidence x 0.4
block       the ``<memory>`` block
laying      the block where it stands in a view, byte for byte while it is true
injection   ``format_memory_for_injection``, deer-flow's signature
saying      what two facts say: the same, or the contrary
merging     a draft held against what is known
keeping     capacity, staleness, near-duplicates
rules       what is taken from a run without a model
asking      what a model is asked, and how its answer is read
extraction  from what was said to facts: gates, spans, the watermark
store       ``Facts``, the object a user holds as ``memory.facts``
reading     a run read for facts beside the run, in a thread
exchange    export and import
"""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazily

if TYPE_CHECKING:
    from pagein.facts.block import Block, memory_block
    from pagein.facts.fact import CATEGORIES, Fact, FactError, UnknownFact
    from pagein.facts.injection import format_memory_for_injection
    from pagein.facts.ledger import Book, Change, book_of
    from pagein.facts.owners import Owners, is_reserved
    from pagein.facts.ranking import Ranked, Ranking, Weights, context_of

__all__ = [
    "Block",
    "Book",
    "CATEGORIES",
    "Change",
    "Fact",
    "FactError",
    "Owners",
    "Ranked",
    "Ranking",
    "UnknownFact",
    "Weights",
    "book_of",
    "context_of",
    "format_memory_for_injection",
    "is_reserved",
    "memory_block",
]

_HOMES = {
    "block": ("Block", "memory_block"),
    "ledger": ("Book", "Change", "book_of"),
    "fact": ("CATEGORIES", "Fact", "FactError", "UnknownFact"),
    "injection": ("format_memory_for_injection",),
    "owners": ("Owners", "is_reserved"),
    "ranking": ("Ranked", "Ranking", "Weights", "context_of"),
}
__getattr__ = lazily(
    __name__, {name: f"pagein.facts.{home}" for home, names in _HOMES.items() for name in names}
)
