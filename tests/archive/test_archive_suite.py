"""The archive in SQLite keeps the contract: in memory, in a file of its own, and in the log's."""

import contextlib

import pytest

from pagein.archive import SqliteArchive
from pagein.archive.derived import DerivedArchive
from pagein.log.sqlite import SQLiteLog
from pagein.testing.archive_material import OpenArchive
from pagein.testing.archives import ArchiveTests


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
