"""The archive in SQLite keeps the contract: in memory, in a file of its own, and in the log's."""

import contextlib

import pytest

from pagein.backends import SqliteArchive
from pagein.backends.sqlite.log import SQLiteLog
from pagein.search.index import DerivedArchive
from pagein.testing.search_index_material import OpenArchive
from pagein.testing.search_indexes import ArchiveTests


class TestSqliteArchive(ArchiveTests):
    @pytest.fixture
    def open_archive(self, tmp_path) -> OpenArchive:
        return lambda **options: SqliteArchive(tmp_path / "index.db", **options)


class TestSqliteArchiveBesideALog(ArchiveTests):
    @pytest.fixture
    def open_archive(self, tmp_path) -> OpenArchive:
        with contextlib.closing(SQLiteLog(tmp_path / "run.db")):
            return lambda **options: SqliteArchive(tmp_path / "run.db", **options)


def test_what_the_archives_share_is_proven_by_each():
    assert {each.__name__ for each in DerivedArchive.__subclasses__()} >= {"SqliteArchive"}
