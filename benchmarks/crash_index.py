"""Whether the index that lies beside a record after a crash is the one that the record gives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from pagein.backends.search import archive_of
from pagein.backends.sqlite.search import SqliteArchive
from pagein.log.raw_rows import RowLog
from pagein.memory.search_runtime import OWN_TOOLS
from pagein.search.index import DerivedArchive
from pagein.search.index_store import Reading, Scope
from pagein.search.passage_ids import range_of_session

MOST = 100_000
"""Passages that may hold one word."""


def index_faults(log: RowLog) -> Iterator[str]:
    """What the index beside a log, brought up to date, has otherwise than one that is made anew of its entries."""
    named: dict[str, Any] = {"session": log.session, "tenant": log.tenant, "own_tools": OWN_TOOLS}
    with closing(archive_of(log, own_tools=OWN_TOOLS)) as there, closing(SqliteArchive(**named)) as anew:
        indexed = there.watermark()
        if indexed > log.head():
            yield f"the index has {indexed} entries, the record {log.head()}"
        there.catch_up(log)
        anew.catch_up(log)
        found, expected = _held(there), _held(anew)
        for what, value in expected.items():
            if found[what] != value:
                yield f"the index has other {what} than one made anew"


def _held(archive: DerivedArchive) -> dict[str, Any]:
    """All that an index holds of its session, its passages by their place among them."""

    def read(reading: Reading) -> dict[str, Any]:
        known = reading.indexed(archive.session)
        if known is None:
            return {"entries": 0}
        first, last = range_of_session(known.key)
        scope = Scope(((first, last),), (known.key,))
        ids = sorted(reading.places(known, range(known.position)))
        texts = {id - first: (text, whole, terms) for id, text, whole, terms in reading.texts(ids)}
        words = sorted({each for *_, terms in texts.values() for each in terms.split()})
        holders = reading.holders([(each,) for each in words], scope, MOST)
        return {
            "entries": (known.position, known.digest, known.next),
            "passages": sorted(_row(each, first) for each in reading.rows(ids)),
            "texts": texts,
            "words": {
                word: sorted(id - first for id in each) for word, each in zip(words, holders, strict=True)
            },
            "totals": tuple(map(int, reading.totals(scope))),
        }

    return archive._store.read(read)  # noqa: SLF001 - past the archive, as nothing but this asks for all of it


def _row(row: Any, first: int) -> tuple[Any, ...]:
    return row.id - first, row.position, row.part, row.role, row.at, row.same
