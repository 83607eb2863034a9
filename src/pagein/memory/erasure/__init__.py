"""Erasing, for who has a right to be forgotten: steps, sessions, an owner's facts, and what was written of them.

The record is for ever; this is the one exception. What was said goes from the log, its blobs, the index by words and by
meaning, the facts that came of it, the summaries, stubs and checkpoints that repeat it, on every branch. Tombstones stay:
positions, kinds, times, the ids and names of calls, and digests, so that ``verify`` tells what was erased from what was
broken. See docs/durability.md and ``pagein.log.erasure``.
"""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazily

if TYPE_CHECKING:
    from pagein.memory.erasure.eraser import Rooms
    from pagein.memory.erasure.scope import Erasure
    from pagein.memory.operations.erase import erase, erase_facts, erase_session

__all__ = ["Erasure", "Rooms", "erase", "erase_facts", "erase_session"]

__getattr__ = lazily(
    __name__,
    {"Erasure": "pagein.memory.erasure.scope", "Rooms": "pagein.memory.erasure.eraser"}
    | dict.fromkeys(("erase", "erase_facts", "erase_session"), "pagein.memory.operations.erase"),
)
