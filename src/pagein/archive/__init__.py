"""What left and how it returns: an index over every step, by words and by meaning; derived, never the truth.

contract     a query, a hit, ``Archive`` and ``Embedder``
terms        what a text is found by
passages     from an entry to what is indexed
words        how well passages match a query's terms, neighbours included
dates        the times that a query speaks of
fusion       one score from several arms; seeds and diversity
sessions     in which session it was
packing      what is shown of the hits within a budget of tokens
ids          the numbers that passages are known by
storing      what an archive asks of the database that its index lies in
derived      the verbs over any such database, and when what is found may be trusted
sqlite       the index in a SQLite file, the log's own or another: its schema, what it is asked (sqlite_tables)
embedding    how vectors are made and compared
vectors      vectors in a SQLite file, their signs in memory
embedders    who makes vectors: a small local model, an OpenAI-compatible endpoint, a callable

    with SqliteArchive("run.db") as archive:
        archive.catch_up(log)
        hits = archive.search("why did the build fail?")
        shown = pack(hits, 1_000, counter, "why did the build fail?")
"""

from typing import TYPE_CHECKING

from pagein.loading import lazily

if TYPE_CHECKING:
    from pagein.archive.contract import Archive, Embedder, Hit, Query, Role, Snippet
    from pagein.archive.packing import pack
    from pagein.archive.sqlite import SqliteArchive

__all__ = ["Archive", "Embedder", "Hit", "Query", "Role", "Snippet", "SqliteArchive", "pack"]

__getattr__ = lazily(
    __name__,
    dict.fromkeys(("Archive", "Embedder", "Hit", "Query", "Role", "Snippet"), "pagein.archive.contract")
    | {"pack": "pagein.archive.packing", "SqliteArchive": "pagein.archive.sqlite"},
)
