"""Check that the search index after a crash equals the one built from the log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from pagein.backends.base import store_of
from pagein.backends.sqlite.search import SqliteSearchIndex
from pagein.log.base import StoredLog
from pagein.memory.search_runtime import OWN_TOOLS
from pagein.search.index import SearchIndex
from pagein.search.index_store import IndexReader, Scope
from pagein.search.passages import range_of_session

MAX_PASSAGES_PER_WORD = 100_000
"""Passages that may hold one word."""


def index_faults(log: StoredLog) -> Iterator[str]:
    """Yield the differences between the updated index of a log and a rebuilt one."""
    named: dict[str, Any] = {"session": log.session, "tenant": log.tenant, "own_tools": OWN_TOOLS}
    with (
        closing(store_of(log).search_index(log.session, own_tools=OWN_TOOLS)) as there,
        closing(SqliteSearchIndex(**named)) as anew,
    ):
        indexed = there.watermark()
        if indexed > log.head():
            yield f"the index has {indexed} entries, the record {log.head()}"
        there.catch_up(log)
        anew.catch_up(log)
        found, expected = _index_content(there), _index_content(anew)
        for what, value in expected.items():
            if found[what] != value:
                yield f"the index has other {what} than one made anew"


def _index_content(index: SearchIndex) -> dict[str, Any]:
    """The whole content of an index for its session, passages numbered from the session's first."""

    def read_all(reader: IndexReader) -> dict[str, Any]:
        known = reader.find_session(index.session)
        if known is None:
            return {"entries": 0}
        first, last = range_of_session(known.key)
        scope = Scope(((first, last),), (known.key,))
        ids = sorted(reader.ids_at(known, range(known.position)))
        texts = {id - first: (text, whole, terms) for id, text, whole, terms in reader.texts(ids)}
        words = sorted({each for *_, terms in texts.values() for each in terms.split()})
        holders = reader.holders([(word,) for word in words], scope, MAX_PASSAGES_PER_WORD)
        return {
            "entries": (known.position, known.digest, known.next),
            "passages": sorted(_row(row, first) for row in reader.rows(ids)),
            "texts": texts,
            "words": {word: sorted(id - first for id in each) for word, each in zip(words, holders, strict=True)},
            "totals": tuple(map(int, reader.totals(scope))),
        }

    return index._store.run_read(read_all)  # noqa: SLF001 - only this check reads everything


def _row(row: Any, first: int) -> tuple[Any, ...]:
    return row.id - first, row.position, row.part, row.role, row.at, row.text_hash
