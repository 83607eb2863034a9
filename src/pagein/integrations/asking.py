"""What a model in somebody else's loop asks a memory, and how it is answered in words."""

from __future__ import annotations

from pagein.errors import UnknownHandle
from pagein.memory import AgentMemory

EXPAND = "Gives back in full what an earlier part of this run says, by the handle that stands for it, as s12 or s3-18."
RECALL = (
    "Searches everything said and found earlier in this run, what is out of sight included. Ask with names and words "
    "that stand in what you look for. Each hit has a handle, which the tool expand gives back in full."
)

HITS, EXCERPT = 5, 400
"""How many hits a model is told, and how many characters of each."""


def expanded(memory: AgentMemory, handle: str) -> str:
    """The original behind a handle; of a handle there is not, what is wrong with it."""
    try:
        return str(memory.expand(handle))
    except UnknownHandle as error:
        return str(error)


def recalled(memory: AgentMemory, query: str) -> str:
    """The best hits, each with its handle: what tools returned, and where none of it matches, what anyone said."""
    # A model's earlier questions match its question best, and hold no answer.
    hits = memory.recall(query, limit=HITS, role="tool") or memory.recall(query, limit=HITS)
    if not hits:
        return "Nothing recorded matches. Try other names or words."
    return "\n\n".join(f"[{hit.handle}] {hit.text[:EXCERPT]}" for hit in hits)
