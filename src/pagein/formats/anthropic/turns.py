"""What the messages API wants of blocks among each other: roles that alternate, thinking first, results behind calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pagein.formats import rendering as writing
from pagein.formats.anthropic import rules as anthropic_rules
from pagein.formats.parsing import kept

Block = dict[str, Any]


def append(turns: list[dict[str, Any]], role: str, blocks: list[Block]) -> None:
    """Adds the blocks to the turn of their role, a new one where they may not stand in the last."""
    last = turns[-1] if turns and turns[-1]["role"] == role else None
    if last and role == "assistant" and _parts_turns(last["content"], blocks):
        # Thinking must open its turn and may not be moved, so the turn before it ends here.
        turns.append({"role": "user", "content": [{"type": "text", "text": writing.CONTINUE}]})
        last = None
    if last:
        last["content"] += blocks
    else:
        turns.append({"role": role, "content": blocks})


def _parts_turns(before: list[Block], blocks: list[Block]) -> bool:
    late = anthropic_rules.late_thought([block["type"] for block in (*before, *blocks)])
    return late is not None or (_thinks(blocks) and not _thinks(before))


def _thinks(blocks: list[Block]) -> bool:
    return any(block["type"] in anthropic_rules.THINKING for block in blocks)


def in_order(blocks: list[Block]) -> list[Block]:
    """The blocks; without thinking where a host put it behind text or a call, as it may neither stand there nor move."""
    if anthropic_rules.late_thought([block["type"] for block in blocks]) is None:
        return blocks
    return [block for block in blocks if block["type"] not in anthropic_rules.THINKING]


def with_calls(blocks: Iterable[Block], used: set[str]) -> Iterator[Block]:
    """The blocks; of a result whose call to the provider's own tool is not before it, what can be read."""
    for block in blocks:
        kind = block["type"]
        if kind in anthropic_rules.SERVER_USES:
            used.add(str(block.get("id")))
        if not kind.endswith("_tool_result") or str(block.get("tool_use_id")) in used:
            yield block
        elif (text := kept("anthropic", kind, block).text).strip():
            yield {"type": "text", "text": text}


def limit_markers(blocks: list[Block], limit: int) -> None:
    """Takes ``cache_control`` off all but the last ``limit`` blocks that carry one."""
    marked = [block for block in anthropic_rules.with_inner(blocks) if block.get("cache_control") is not None]
    for block in marked[: max(0, len(marked) - limit)]:
        del block["cache_control"]
