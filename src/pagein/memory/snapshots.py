"""What is held of a log, written down so that it need not be folded again from its first entry, and read back. Pure.

A snapshot holds what was derived: counts, ids, what is kept in mind, what stands for what left. What is shown as it was
recorded is named by its position and read from the log. It is made again from the log wherever it does not fit: another
release, another counter, a byte that changed.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from pagein.context.page_in import Index, PageIn, Part, aside
from pagein.context.view.fold import Fold, steps_of, sums_of
from pagein.context.view.layout import CONTINUE, EARLIER, Aside
from pagein.context.view.view import Shown
from pagein.errors import FormatError, LogUnreadable
from pagein.memory._state import Held, Stood, Tail
from pagein.tokens import TokenCounter

VERSION = 4
"""Raised with every change to what a fold derives, or to how it is written down."""

EVERY, OF_ALL = 256, 64
"""Entries behind a snapshot after which the next one is made: so many, or one in so many of all where that is more. A
snapshot is as long as the run, so all that are ever written come to at most ``OF_ALL`` times the last one."""

SHORT = 32
"""Entries of a run from which on one is made at close, where anything is behind the last: it takes 0.03 s after
10,000 steps, and where the next opening has nothing to count it loads no vocabulary, which takes 0.12 s and 40 MB."""

_MARK = 17
"""Bytes of a fingerprint: its kind, and the hash."""

MISFITS = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    zlib.error,
    FormatError,
    LogUnreadable,
)
"""What reading a snapshot that is none may raise."""


def key_of(counter: TokenCounter) -> str:
    """Which snapshots can be read here: this release's, counted alike. "" where that cannot be told of the counter."""
    from pagein._common.version import __version__  # noqa: PLC0415

    kind = type(counter)
    if not kind.__module__.startswith("pagein.tokens.") or not is_dataclass(counter):
        return ""  # somebody's own counter may count otherwise tomorrow, under the same name
    told = repr(counter)
    if " at 0x" in told:
        return ""
    rule = hashlib.sha256(f"{kind.__qualname__}\n{told}".encode()).hexdigest()[:16]
    return f"{VERSION} {__version__} {rule}"


def is_due(head: int, kept: int | None, *, closing: bool) -> bool:
    """Whether a snapshot at ``head`` is worth its bytes where there is one at ``kept``; never where none may be kept."""
    if kept is None or head < SHORT:
        return False
    return head - kept >= (1 if closing else max(EVERY, head // OF_ALL))


def packed(held: Held) -> bytes:
    """All that is held, as the body of a snapshot."""
    from pagein.summaries.records import recorded  # noqa: PLC0415 - loads where a snapshot is made

    value = {
        "fold": held.fold.kept(),
        "heard": b64encode(b"".join(held.heard)).decode(),
        "heard_at": steps_of(held.heard_at),
        "recorded": [[each.first, recorded(each)] for each in held.recorded],
        "ends": held.fold.counter.known((CONTINUE, EARLIER)),
        "part": [held.part.share, sorted(held.part.showed), held.part.actions],
        "tail": None if held.tail is None else _tail(held.tail),
    }
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)


def unpacked(body: bytes) -> Mapping[str, Any]:
    """What a snapshot's body says. Raises one of ``MISFITS``."""
    value: Mapping[str, Any] = json.loads(zlib.decompress(body))
    return value


def needed(value: Mapping[str, Any]) -> frozenset[int]:
    """The positions whose entries ``restored`` needs. Raises one of ``MISFITS``."""
    return Fold.needed(value["fold"])


def restored(value: Mapping[str, Any], counter: TokenCounter, bodies: Mapping[int, object]) -> Held:
    """What was held, from what a snapshot says and the entries it needs. Raises one of ``MISFITS``."""
    from pagein.summaries.records import read_record  # noqa: PLC0415 - loads where a snapshot is read

    fold = Fold.of(counter, value["fold"], bodies)
    fold.counter.learn(value["ends"])
    heard = b64decode(value["heard"])
    marks = [heard[at : at + _MARK] for at in range(0, len(heard), _MARK)]
    records = [read_record(first, text) for first, text in value["recorded"]]
    share, showed, actions = value["part"]
    tail = None if value["tail"] is None else _tail_of(value["tail"])
    part = Part(share, frozenset(showed), actions)
    return Held(fold, marks, list(sums_of(value["heard_at"])), records, tail=tail, part=part)


def _text(shown: Shown) -> str:
    if not isinstance(shown.item, Aside):
        raise TypeError(f"what came back is no aside: {shown.item!r}")
    return shown.item.text


def _tail(tail: Tail) -> dict[str, Any]:
    paged, stood = tail.paged, tail.stood
    index, shown = paged.index, None if stood is None else stood.shown
    return {
        "at": [tail.head, tail.compactions],
        "paged": [paged.blocks, paged.costs, sorted(paged.new), paged.names],
        "index": None if index is None else [dict(index.chances), index.beside],
        "stood": None if stood is None else [stood.head, stood.room],
        "shown": None if shown is None else [_text(shown), shown.tokens],
    }


def _tail_of(value: Mapping[str, Any]) -> Tail:
    blocks, costs, new, names = value["paged"]
    index, stood, shown = value["index"], value["stood"], value["shown"]
    if index is not None:
        index = Index(index[0], tuple(map(tuple, index[1])))
    if stood is not None:
        head, room = stood
        stood = Stood(head, room, None if shown is None else aside(shown[0], head, shown[1]))
    paged = PageIn(tuple(blocks), tuple(costs), frozenset(new), index, names)
    head, compactions = value["at"]
    return Tail(head, compactions, paged, stood)
