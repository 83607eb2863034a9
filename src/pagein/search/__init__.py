"""Search over recorded steps.

An index by words and by vectors is derived from the log, and rebuilt at need:

    with SqliteSearchIndex("run.db") as index:
        index.catch_up(log)
        hits = index.search("why did the build fail?")
        snippets = pack(hits, 1_000, counter, "why did the build fail?")
"""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes

if TYPE_CHECKING:
    from pagein.search.base import Embedder, Hit, Query, Role, Snippet
    from pagein.search.index import SearchIndex
    from pagein.search.snippets import pack

__all__ = ["Embedder", "Hit", "Query", "Role", "SearchIndex", "Snippet", "pack"]

__getattr__ = lazy_attributes(
    __name__,
    dict.fromkeys(("Embedder", "Hit", "Query", "Role", "Snippet"), "pagein.search.base")
    | {"SearchIndex": "pagein.search.index", "pack": "pagein.search.snippets"},
)
