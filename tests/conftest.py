"""Fixtures and settings of all tests."""

import os

import pytest
from hypothesis import settings

from pagein.backends.memory import InMemoryLog
from pagein.memory.agent_memory import AgentMemory

# No deadline, so that a busy machine fails no test; the same examples in every run.
settings.register_profile("pagein", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("nightly", deadline=None, max_examples=1_000)
settings.load_profile("nightly" if os.environ.get("PAGEIN_PROFILE") == "nightly" else "pagein")


def pytest_xdist_auto_num_workers(config):
    """Return one worker more than there are cores: many tests wait for a server or a process."""
    return (os.cpu_count() or 1) + 1


SERVER_FIXTURES = {"postgres", "schema"}


def pytest_collection_modifyitems(items):
    """Mark every test that starts a server, so that ``-m "not server"`` leaves them out."""
    for item in items:
        if SERVER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("server")


@pytest.fixture
def log():
    """A new log."""
    return InMemoryLog()


@pytest.fixture
def memory(log):
    """A memory on ``log`` with a large budget."""
    with AgentMemory(log, budget=100_000, clock=lambda: 0.0) as memory:
        yield memory


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server that all tests share, started at first use."""
    from tests._support.postgres_server import PostgresServer

    with PostgresServer() as server:
        yield server


@pytest.fixture
def schema(postgres):
    """The name of a new schema."""
    with postgres.schema() as name:
        yield name
