"""The archive in PostgreSQL keeps the contract on a real server, and finds what the one in SQLite finds."""

import pytest

from pagein.archive.postgres import PostgresArchive
from pagein.testing.archive_material import OpenArchive
from pagein.testing.archives import ArchiveTests


class TestPostgresArchive(ArchiveTests):
    @pytest.fixture
    def open_archive(self, postgres, schema) -> OpenArchive:
        return lambda **options: PostgresArchive(postgres.url, schema=schema, **options)
