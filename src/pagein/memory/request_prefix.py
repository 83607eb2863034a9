"""The prefix that two requests of a run share, and why it ends where it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Literal

from pagein.context.view.layout import ContextBlock
from pagein.events.entries import EDIT, REMOVAL

if TYPE_CHECKING:
    from pagein.context.view.layout import ViewEntry
    from pagein.events.callbacks import BreakCause
    from pagein.memory.requests import RequestRecord


_TOKENS = attrgetter("tokens")


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """The tokens that two requests begin with alike, what differs behind them, and the tokens of the run written again there.

    ``cause`` is "" where the later request only goes on.
    """

    tokens: int = 0
    cause: BreakCause | Literal[""] = ""
    broke: str = ""
    why: str = ""
    rewritten: int = 0


def compare_prefix(
    before: Sequence[ViewEntry], now: Sequence[ViewEntry], last: RequestRecord, compactions: int
) -> SharedPrefix:
    """Compare a request's entries with those of the one before; ``compactions`` are in effect now."""
    is_same = [*map(is_, before, now), False]  # nearly all are the same objects
    alike = is_same.index(False)
    while alike < len(is_same) - 1 and before[alike].messages == now[alike].messages:
        alike += 1
    tokens = sum(map(_TOKENS, now[:alike]))
    if alike == len(before):
        return SharedPrefix(tokens)
    cause, handle, why = _difference(before[alike], now[alike] if alike < len(now) else None)
    if compactions > last.compactions and cause in ("compaction", "page-in", "ledger", "facts"):
        cause, why = "compaction", why if cause == "compaction" else f"{why}, with a compaction"
    elif compactions < last.compactions:
        cause, why = "undo", "a compaction was undone"
    # What is new behind the break would have been written without it.
    rewritten = sum(entry.tokens for entry in now[alike:] if entry.first < last.head)
    return SharedPrefix(tokens, cause, handle, why, rewritten)


def _difference(old: ViewEntry, new: ViewEntry | None) -> tuple[BreakCause, str, str]:
    """Name the cause and what stands first where two requests part, and say why."""
    if isinstance(old.item, ContextBlock):
        if old.tier == "recalled":
            return "page-in", old.tier, "a page-in left"
        return _block_cause(old), old.tier, f"{old.tier} changed"
    if new is None:
        return "other", old.handle, "the request is shorter"
    if old.tier == "system":
        return "system prompt", old.handle, "the system prompt changed"
    if isinstance(new.item, ContextBlock):
        return _block_cause(new), old.handle, f"{new.tier} came before it"
    if (new.first, new.last) != (old.first, old.last) or new.stubs != old.stubs:
        is_by_hand = new.why.startswith((f"{EDIT}:", f"{REMOVAL}:"))
        return "edit" if is_by_hand else "compaction", old.handle, new.why
    return "other", old.handle, "its content changed"


def _block_cause(entry: ViewEntry) -> BreakCause:
    return "facts" if entry.tier == "facts" else "ledger" if entry.tier == "ledger" else "page-in"
