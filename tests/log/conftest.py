"""The server that the tests of logs in PostgreSQL share: started once, when the first of them asks."""

import pytest

from pagein.testing.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def postgres():
    with PostgresServer() as server:
        yield server


@pytest.fixture
def schema(postgres):
    with postgres.schema() as name:
        yield name
