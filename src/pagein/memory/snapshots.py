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
from dataclasses import astuple, dataclass, is_dataclass
from typing import Any

from pagein._common.version import __version__
from pagein.context.ledger.block import LedgerBlock
from pagein.context.page_in.block import PageIn, restore_entry
from pagein.context.view.fold_state import delta_decode, delta_encode, fold_to_state, restore_fold
from pagein.context.view.layout import CONTINUE, EARLIER, ContextBlock
from pagein.errors import FormatError, LogUnreadable
from pagein.memory._state import FoldedLog, PageInOccasion, PageInState
from pagein.memory.requests import decode_sources
from pagein.tokens import TokenCounter

VERSION = 25
"""Raised with every change to what a fold derives, or to how it is encoded."""

_FINGERPRINT_BYTES = 17
"""Bytes of a fingerprint: its kind, and the hash."""

RESTORE_ERRORS = (ValueError, KeyError, TypeError, IndexError, AttributeError, zlib.error, FormatError, LogUnreadable)
"""Errors that decoding a damaged snapshot may raise."""


@dataclass(frozen=True, slots=True)
class RestoredSnapshot:
    """The folded log and the page-ins that a snapshot had."""

    log: FoldedLog
    occasion: PageInOccasion | None
    page_ins: tuple[PageIn, ...]


def snapshot_key(counter: TokenCounter) -> str:
    """The key of the snapshots that fit: this release's, with this counter; "" for a counter that cannot be compared."""
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
    """Encode a folded log and its page-ins as the body of a snapshot."""
    from pagein.summaries.records import encode_record  # noqa: PLC0415 - loads where a snapshot is made

    value = {
        "fold": fold_to_state(log.fold),
        "heard": b64encode(b"".join(log.fingerprints)).decode(),
        "heard_at": delta_encode(log.fingerprint_positions),
        "recorded": [[record.first, encode_record(record)] for record in log.summaries],
        "ends": log.fold.counter.cached_counts((CONTINUE, EARLIER)),
        "occasion": None if page_in.occasion is None else astuple(page_in.occasion),
        "page_ins": [_encode_page_in(shown) for shown in page_in.shown],
        "blocks": [[keys, tokens, *block] for (keys, tokens), block in log.fold.learned.blocks.items()],
    }
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)


def encode_past(log: FoldedLog) -> bytes:
    """Encode a folded log as the body of a past snapshot: a request of the past needs no fingerprints."""
    return encode_snapshot(FoldedLog(log.fold), PageInState())


def decode_body(body: bytes) -> Mapping[str, Any]:
    """Decode the body of a snapshot. Raises one of ``RESTORE_ERRORS``."""
    value: Mapping[str, Any] = json.loads(zlib.decompress(body))
    return value


def restore(value: Mapping[str, Any], counter: TokenCounter, bodies: Mapping[int, object]) -> RestoredSnapshot:
    """Rebuild the state from a snapshot and the bodies at the ``required_positions`` of its fold. Raises one of ``RESTORE_ERRORS``."""
    from pagein.summaries.records import decode_record  # noqa: PLC0415 - loads where a snapshot is read

    fold = restore_fold(counter, value["fold"], bodies)
    fold.counter.add_counts(value["ends"])
    for keys, tokens, *block in value["blocks"]:
        fold.learned.blocks[tuple(map(tuple, keys)), tokens] = LedgerBlock(*block)
    data = b64decode(value["heard"])
    starts = range(0, len(data), _FINGERPRINT_BYTES)
    fingerprints = [data[at : at + _FINGERPRINT_BYTES] for at in starts]
    records = [decode_record(first, text) for first, text in value["recorded"]]
    log = FoldedLog(fold, fingerprints, list(delta_decode(value["heard_at"])), records)
    occasion = None if value["occasion"] is None else PageInOccasion(*value["occasion"])
    return RestoredSnapshot(log, occasion, tuple(_decode_page_in(*page_in) for page_in in value["page_ins"]))


def _encode_page_in(page_in: PageIn) -> list[Any]:
    entry = page_in.entry
    if not isinstance(entry.item, ContextBlock):
        raise TypeError(f"a page-in is a ContextBlock, not {entry.item!r}")
    return [entry.item.text, entry.first, entry.tokens, page_in.sources, page_in.names]


def _decode_page_in(text: str, head: int, tokens: int, sources: list[list[Any]], names: list[int]) -> PageIn:
    return PageIn(restore_entry(text, head, tokens), decode_sources(sources), tuple(names))
