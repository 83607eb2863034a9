"""The index in SQLite keeps the contract: in memory, in a file of its own, and in the log's."""

import contextlib

import pytest

from pagein.backends import SqliteSearchIndex
from pagein.backends.sqlite.log import SQLiteLog
from pagein.search.index import SearchIndex
from pagein.testing.search_indexes import OpenSearchIndex, SearchIndexTests


class TestSqliteSearchIndex(SearchIndexTests):
    @pytest.fixture
    def open_index(self, tmp_path) -> OpenSearchIndex:
        return lambda **options: SqliteSearchIndex(tmp_path / "index.db", **options)


class TestSqliteSearchIndexBesideALog(SearchIndexTests):
    @pytest.fixture
    def open_index(self, tmp_path) -> OpenSearchIndex:
        with contextlib.closing(SQLiteLog(tmp_path / "run.db")):
            return lambda **options: SqliteSearchIndex(tmp_path / "run.db", **options)


def test_what_the_indexes_share_is_proven_by_each():
    assert {kind.__name__ for kind in SearchIndex.__subclasses__()} >= {"SqliteSearchIndex"}
