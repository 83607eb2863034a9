"""Erasure, for the right to be forgotten: of steps, sessions, an owner's facts, and what was derived from them.

This is the one exception to a record that is never changed. The content is removed from the log, its blobs, the
search index, and the facts, summaries, stubs and checkpoints that repeat it, on every branch. Tombstones stay:
positions, kinds, times, the ids and names of calls, and digests, so that ``verify`` tells erased entries from
damaged ones. See docs/erasing.md and ``pagein.log.erasure``.
"""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes

if TYPE_CHECKING:
    from pagein.memory.erasure.eraser import Eraser
    from pagein.memory.erasure.sessions import Erasure
    from pagein.memory.operations.erase import erase, erase_facts, erase_session

__all__ = ["Erasure", "Eraser", "erase", "erase_facts", "erase_session"]

__getattr__ = lazy_attributes(
    __name__,
    {"Erasure": "pagein.memory.erasure.sessions", "Eraser": "pagein.memory.erasure.eraser"}
    | dict.fromkeys(("erase", "erase_facts", "erase_session"), "pagein.memory.operations.erase"),
)
