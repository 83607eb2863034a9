"""What every test may lean on."""

import pytest
from hypothesis import settings

from pagein.backends.memory import InMemoryLog
from pagein.memory.agent_memory import AgentMemory

# A busy machine is no failure, and what CI tests of a commit is the same each time.
settings.register_profile("pagein", deadline=None, derandomize=True)
settings.load_profile("pagein")


@pytest.fixture
def log():
    """A log of this test alone."""
    return InMemoryLog()


@pytest.fixture
def memory(log):
    """A memory on ``log`` with room for everything."""
    with AgentMemory(log, budget=100_000, clock=lambda: 0.0) as opened:
        yield opened


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server that all tests share: started when the first of them asks."""
    from tests._support.postgres_server import PostgresServer

    with PostgresServer() as server:
        yield server


@pytest.fixture
def schema(postgres):
    """The name of a schema of this test alone."""
    with postgres.schema() as name:
        yield name
