"""Fixtures for tests of models: no API keys of the machine, and servers with scripted outcomes."""

import os
import ssl

import pytest

from pagein.testing.models import DOWN, EMPTY, HANG, LEAK, OVERFLOW, REFUSED, SECRET
from tests._support.faulty_server import ECHO, FaultServer, Reaction, failure

REACTIONS = {
    DOWN: failure(503, "The server is overloaded or not ready yet."),
    HANG: Reaction(delay=60),
    EMPTY: Reaction(""),
    OVERFLOW: failure(400, "prompt is too long: 9000 tokens > 8192 maximum"),
    REFUSED: failure(400, "temperature: expected at most 1"),
    LEAK: failure(401, f"Incorrect API key provided: {SECRET}. Header was 'Authorization: Bearer {SECRET}'."),
    "echo": Reaction(ECHO),
}


def reaction(outcome):
    """A server's reaction for an outcome of the suite; a reaction is returned unchanged."""
    if isinstance(outcome, Reaction):
        return outcome
    return REACTIONS.get(outcome) or Reaction(outcome)


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    """Keys of this test alone, and no proxy between it and its server."""
    for name in list(os.environ):
        if name.upper().endswith(("_API_KEY", "_AUTH_TOKEN", "_BASE_URL", "_PROXY")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEST_MODEL_KEY", SECRET)
    # Each client reads every certificate authority, 25 ms each time, and nothing here speaks TLS.
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *args, **kwargs: None)


@pytest.fixture
def start_server():
    """Start servers with scripted reactions; they stop with the test."""
    running = []

    def start(*outcomes):
        server = FaultServer(*map(reaction, outcomes)).__enter__()
        running.append(server)
        return server

    yield start
    for server in running:
        server.__exit__(None, None, None)
