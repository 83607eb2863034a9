"""The ledger's block in a view: the statements that hold and whose steps are not shown as recorded. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pagein.context.compaction.base import newest_user_position
from pagein.context.compaction.episodes import protected_positions
from pagein.context.view.fold import make_entry
from pagein.context.view.layout import ContextBlock, messages_of
from pagein.context.view.view import View, ViewEntry, request_cost
from pagein.events.entries import Pin

if TYPE_CHECKING:
    from pagein.context.ledger.run_ledger import RunLedger

LEDGER_SHARE, LEDGER_SMALL_SHARE, LEDGER_SMALL_TOKENS = 0.25, 0.7, 1_000
"""Share of the limit for the ledger; where the limit is small up to the second share, but not above these tokens."""

HEAD = "What holds, said in steps that are out of view. The newest wording counts; expand(handle) gives the step."

WHY = "it was said, and still holds"
"""The reason given in a view's report."""

NO_POSITION = -1
"""The position of the block's entry, which is no step."""


MAX_BLOCKS = 4
"""Rendered blocks that are remembered: the one in view, and those that compactions are planned with."""

BlockKey = tuple[tuple[tuple[int, int], ...], int]
"""The places of a block's items, and the tokens that it may have."""


class LedgerBlock(NamedTuple):
    """A rendered block, and its tokens in a request."""

    text: str
    tokens: int


Blocks = dict[BlockKey, LedgerBlock]
"""The last rendered blocks."""


def ledger_room(limit: int) -> int:
    """Return the most tokens that the ledger may have of a limit.

    >>> ledger_room(8_000), ledger_room(400)
    (2000, 280)
    """
    return max(int(limit * LEDGER_SHARE), min(int(limit * LEDGER_SMALL_SHARE), LEDGER_SMALL_TOKENS))


def reserve_tokens(view: View, ledger: RunLedger, blocks: Blocks) -> int:
    """Return the tokens to leave for the block after a compaction of this view, with all that may leave it."""
    staying = protected_positions(view) & view.verbatim_positions
    entry = build_block(view, ledger, blocks, lambda position: position not in staying, ledger_room(view.limit))
    return 0 if entry is None else entry.tokens


def with_ledger(view: View, ledger: RunLedger, blocks: Blocks) -> View:
    """Return the view with the block of what holds and is not shown, behind the pins; the same view if nothing is."""
    shown = view.verbatim_positions
    # The size depends on the limit alone, so that the block stays the same while the run grows.
    for room in (ledger_room(view.limit), ledger_room(view.limit) // 4):
        entry = build_block(view, ledger, blocks, lambda position: position not in shown, room)
        if entry is not None and entry.tokens <= view.limit - view.tokens:
            front = (*view.front, entry)
            return replace(view, front=front, tokens=request_cost((*view.systems, *front, *view.run), view.counter))
    return view


def build_block(
    view: View, ledger: RunLedger, blocks: Blocks, is_hidden: Callable[[int], bool], tokens: int
) -> ViewEntry | None:
    """Build the entry of the block in at most ``tokens`` tokens; None if it would be empty."""
    due = _due_items(view, ledger, is_hidden)
    if not due:
        return None
    key = (due, tokens)
    block = blocks.get(key)
    if block is None:
        block = blocks[key] = _render_block(view, ledger, frozenset(due), tokens)
        while len(blocks) > MAX_BLOCKS:
            del blocks[next(iter(blocks))]
    if not block.text:
        return None
    item = ContextBlock("ledger", block.text)
    return ViewEntry(NO_POSITION, NO_POSITION, item, "ledger", WHY, messages_of(item), block.tokens)


def _render_block(view: View, ledger: RunLedger, due: frozenset[tuple[int, int]], tokens: int) -> LedgerBlock:
    from pagein.context.ledger.run_ledger import render  # noqa: PLC0415 - its patterns load where it shows

    frame = _count(f"{HEAD}\n", view)
    lines = ledger.select({position for position, _ in due}.__contains__, tokens - frame, view.counter)
    text = f"{HEAD}\n{render(lines)}" if lines else ""
    return LedgerBlock(text, _count(text, view) if text else 0)


def _count(text: str, view: View) -> int:
    return make_entry(ContextBlock("ledger", text), 0, 0, view.counter, tier="ledger", why=WHY).tokens


def _due_items(view: View, ledger: RunLedger, is_hidden: Callable[[int], bool]) -> tuple[tuple[int, int], ...]:
    """Return the places of the statements whose step is hidden, and which no pin says word for word."""
    pinned = "\n".join(entry.item.text for entry in view.entries if isinstance(entry.item, Pin))
    newest = newest_user_position(view)
    return tuple(
        key
        for key, item in ledger.items.items()
        if item.position != newest and is_hidden(item.position) and item.statement.text not in pinned
    )
