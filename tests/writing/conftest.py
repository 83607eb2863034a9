"""Hosts in both colours, servers that fail as they are told, and what the library logged."""

import logging
import os
import ssl

import pytest
from writing_runs import Host, Listening

from pagein.testing.models import SECRET
from tests._support.faulty_server import FaultServer


@pytest.fixture(params=["sync", "async"])
def colour(request):
    return request.param


@pytest.fixture
def host(colour):
    """Opens memories of the colour; they are closed with the test."""
    opened = []

    def build(where=":memory:", **options):
        opened.append(Host(colour, where, **options))
        return opened[-1]

    yield build
    for each in opened:
        each.end()


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    """One key of this test alone, and no proxy between a model and its server."""
    for name in list(os.environ):
        if name.upper().endswith(("_API_KEY", "_AUTH_TOKEN", "_BASE_URL", "_PROXY")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEST_MODEL_KEY", SECRET)
    # Each client reads every certificate authority, 25 ms each time, and nothing here speaks TLS.
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *args, **kwargs: None)


@pytest.fixture
def served():
    """Starts servers that react as they are told; they end with the test."""
    running = []

    def start(*script, then):
        running.append(FaultServer(*script, then=then).__enter__())
        return running[-1]

    yield start
    for server in running:
        server.__exit__(None, None, None)


@pytest.fixture
def heard():
    """What the library logs."""
    listening = Listening()
    log = logging.getLogger("pagein")
    listening.addFilter(lambda record: record.name != "pagein.view")  # every run here comes near its limit
    log.addHandler(listening)
    yield listening.said
    log.removeHandler(listening)
