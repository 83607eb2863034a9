"""Search in what was recorded: an index over every step, by words and by meaning. It is derived, and can be rebuilt.

with SqliteArchive("run.db") as archive:
    archive.catch_up(log)
    hits = archive.search("why did the build fail?")
    shown = pack(hits, 1_000, counter, "why did the build fail?")
"""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazily

if TYPE_CHECKING:
    from pagein.search.base import Archive, Embedder, Hit, Query, Role, Snippet
    from pagein.search.snippets import pack

__all__ = ["Archive", "Embedder", "Hit", "Query", "Role", "Snippet", "pack"]

__getattr__ = lazily(
    __name__,
    dict.fromkeys(("Archive", "Embedder", "Hit", "Query", "Role", "Snippet"), "pagein.search.base")
    | {"pack": "pagein.search.snippets"},
)
