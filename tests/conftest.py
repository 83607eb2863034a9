"""Fixtures and settings of all tests."""

import gc
import math
import os
import re
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, settings

from pagein.backends.memory import InMemoryLog
from pagein.memory.agent_memory import AgentMemory

os.environ.pop("PYTHONUNBUFFERED", None)
"""Unset, as on most machines: with it, a process that forgets to flush what it prints would pass."""

EXAMPLES = {"quick": 10, "pagein": 12, "nightly": 1_000}
"""Hypothesis examples by profile: of a run without slow tests, of a whole one, and of ``PAGEIN_PROFILE=nightly``."""


def pytest_configure(config):
    """Choose a profile. Deadlines and health checks are off, so that a busy machine fails no test."""
    nightly = os.environ.get("PAGEIN_PROFILE") == "nightly"
    name = "nightly" if nightly else "quick" if is_quick(config) else "pagein"
    more = {} if nightly else {"database": None}
    settings.register_profile(
        name,
        max_examples=EXAMPLES[name],
        deadline=None,
        derandomize=not nightly,
        suppress_health_check=list(HealthCheck),
        **more,
    )
    settings.load_profile(name)


# Imports and test items are hundreds of thousands of objects that stay: the collector need not walk them again and again.
gc.set_threshold(50_000, 20, 20)


def pytest_collection_finish():
    """Leave all that collection made out of later garbage collections."""
    gc.collect()
    gc.freeze()


def is_quick(config):
    """Say if the run leaves out slow tests."""
    return "not slow" in config.option.markexpr


def pytest_xdist_auto_num_workers(config):
    """Return one worker a core, and one more where tests wait for a server or a process."""
    return (os.cpu_count() or 1) + (not is_quick(config))


def pytest_ignore_collect(collection_path, config):
    """Leave out a file of slow tests in a quick run: its imports alone are seconds."""
    if collection_path.suffix != ".py" or not is_quick(config):
        return None
    return bool(re.search("^pytestmark = pytest.mark.slow$", collection_path.read_text("utf-8"), re.MULTILINE)) or None


SERVER_FIXTURES = {"postgres", "schema"}


SAMPLE = 3
"""Parameters of a test that a quick run has, spread evenly."""


def pytest_collection_modifyitems(config, items):
    """Mark every test that starts a server, so that ``-m "not server"`` leaves them out; sample for a quick run."""
    for item in items:
        parameters = item.callspec.id.split("-") if hasattr(item, "callspec") else ()
        if SERVER_FIXTURES & set(getattr(item, "fixturenames", ())) or "server" in parameters:
            item.add_marker("server")
    if is_quick(config):
        groups = defaultdict(list)
        for item in items:
            if not item.get_closest_marker("slow"):
                groups[item.nodeid.partition("[")[0]].append(item)
        items[:] = [item for group in groups.values() for item in group[:: math.ceil(len(group) / SAMPLE)]]


@pytest.fixture
def quick(pytestconfig):
    """True in a quick run, for a test that plays fewer histories there."""
    return is_quick(pytestconfig)


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
