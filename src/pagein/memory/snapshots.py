"""Snapshots of a folded log, so that the next opening need not fold it from its first entry. Pure.

A snapshot holds what was derived: counts, ids, salience, replacements. Entries that stand in the view as recorded are
named by their position, and read from the log. A snapshot that does not fit, after another release, with another counter
or a changed byte, is made again from the log.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any

from pagein.context.ledger.block import LedgerBlock
from pagein.context.page_in import NameIndex, PageIn, SearchShare, restore_entry
from pagein.context.page_in_sources import BlockKind, BlockSource
from pagein.context.view.fold import Fold, delta_decode, delta_encode
from pagein.context.view.layout import CONTINUE, EARLIER, ContextBlock
from pagein.context.view.view import ViewEntry
from pagein.errors import FormatError, LogUnreadable
from pagein.memory._state import FoldedLog, PageInCache, PageInState, RenderedPageIn
from pagein.tokens import TokenCounter

VERSION = 6
"""Raised with every change to what a fold derives, or to how it is encoded."""

_FINGERPRINT_BYTES = 17
"""Bytes of a fingerprint: its kind, and the hash."""

RESTORE_ERRORS = (ValueError, KeyError, TypeError, IndexError, AttributeError, zlib.error, FormatError, LogUnreadable)
"""Errors that decoding a damaged snapshot may raise."""


@dataclass(frozen=True, slots=True)
class RestoredSnapshot:
    """The folded log and the last page-in that a snapshot held."""

    log: FoldedLog
    cache: PageInCache | None
    search_share: SearchShare


def snapshot_key(counter: TokenCounter) -> str:
    """The key of the snapshots that fit: this release's, with this counter; "" for a counter that cannot be compared."""
    from pagein._common.version import __version__  # noqa: PLC0415

    rule = counter_key(counter)
    return f"{VERSION} {__version__} {rule}" if rule else ""


def counter_key(counter: TokenCounter) -> str:
    """The key of a counter: equal for counters that count alike; "" for one that cannot be compared."""
    kind = type(counter)
    if not kind.__module__.startswith("pagein.tokens.") or not is_dataclass(counter):
        return ""  # a user's counter may change under the same name
    settings = repr(counter)
    if " at 0x" in settings:
        return ""
    return hashlib.sha256(f"{kind.__qualname__}\n{settings}".encode()).hexdigest()[:16]


def encode_snapshot(log: FoldedLog, page_in: PageInState) -> bytes:
    """Encode a folded log and its last page-in as the body of a snapshot."""
    from pagein.summaries.records import encode_record  # noqa: PLC0415 - loads where a snapshot is made

    value = {
        "fold": log.fold.to_state(),
        "heard": b64encode(b"".join(log.fingerprints)).decode(),
        "heard_at": delta_encode(log.fingerprint_positions),
        "recorded": [[record.first, encode_record(record)] for record in log.summaries],
        "ends": log.fold.counter.cached_counts((CONTINUE, EARLIER)),
        "part": [page_in.search_share.share, sorted(page_in.search_share.showed), page_in.search_share.actions],
        "tail": None if page_in.cache is None else _encode_cache(page_in.cache),
        "blocks": [[keys, tokens, *block] for (keys, tokens), block in log.fold.ledger_blocks.items()],
    }
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)


def decode_body(body: bytes) -> Mapping[str, Any]:
    """Decode the body of a snapshot. Raises one of ``RESTORE_ERRORS``."""
    value: Mapping[str, Any] = json.loads(zlib.decompress(body))
    return value


def needed_positions(value: Mapping[str, Any]) -> frozenset[int]:
    """The positions of the entries that ``restore`` needs. Raises one of ``RESTORE_ERRORS``."""
    return Fold.required_positions(value["fold"])


def restore(value: Mapping[str, Any], counter: TokenCounter, bodies: Mapping[int, object]) -> RestoredSnapshot:
    """Rebuild the state from a snapshot and the entries it needs. Raises one of ``RESTORE_ERRORS``."""
    from pagein.summaries.records import decode_record  # noqa: PLC0415 - loads where a snapshot is read

    fold = Fold.from_state(counter, value["fold"], bodies)
    fold.counter.add_counts(value["ends"])
    for keys, tokens, *block in value["blocks"]:
        fold.ledger_blocks[tuple((position, number) for position, number in keys), tokens] = LedgerBlock(*block)
    data = b64decode(value["heard"])
    starts = range(0, len(data), _FINGERPRINT_BYTES)
    fingerprints = [data[at : at + _FINGERPRINT_BYTES] for at in starts]
    records = [decode_record(first, text) for first, text in value["recorded"]]
    log = FoldedLog(fold, fingerprints, list(delta_decode(value["heard_at"])), records)
    share, showed, actions = value["part"]
    cache = None if value["tail"] is None else _decode_cache(value["tail"])
    return RestoredSnapshot(log, cache, SearchShare(share, frozenset(showed), actions))


def _encode_cache(cache: PageInCache) -> dict[str, Any]:
    page_in, rendered = cache.page_in, cache.rendered
    index, entry = page_in.index, None if rendered is None else rendered.entry
    return {
        "at": [cache.head, cache.compactions],
        "paged": [
            page_in.blocks,
            page_in.costs,
            sorted(page_in.new_names),
            page_in.names_tokens,
            page_in.turns,
            page_in.sources,
        ],
        "index": None if index is None else [dict(index.chances), index.beside, index.numbers],
        "stood": None if rendered is None else [rendered.head, rendered.room],
        "shown": None if entry is None else [_block_text(entry), entry.tokens],
    }


def _block_text(entry: ViewEntry) -> str:
    if not isinstance(entry.item, ContextBlock):
        raise TypeError(f"a page-in is a ContextBlock, not {entry.item!r}")
    return entry.item.text


def _decode_cache(value: Mapping[str, Any]) -> PageInCache:
    blocks, costs, new_names, names_tokens, turns, sources = value["paged"]
    index, place, entry = value["index"], value["stood"], value["shown"]
    if index is not None:
        index = NameIndex(index[0], tuple(map(tuple, index[1])), tuple(index[2]))
    rendered = None
    if place is not None:
        head, room = place
        rendered = RenderedPageIn(head, room, None if entry is None else restore_entry(entry[0], head, entry[1]))
    page_in = PageIn(
        tuple(blocks), tuple(costs), frozenset(new_names), index, names_tokens, tuple(turns),
        tuple(_decode_source(*source) for source in sources),
    )  # fmt: skip
    head, compactions = value["at"]
    return PageInCache(head, compactions, page_in, rendered)


def _decode_source(kind: BlockKind, position: int, part: int, lines: list[int] | None, of: int) -> BlockSource:
    return BlockSource(kind, position, part, None if lines is None else tuple(lines), of)
