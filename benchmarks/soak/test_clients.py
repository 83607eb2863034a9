"""Real agents, unmodified, through the proxy: more calls than the window holds, nothing over, no compaction of their own."""

import os
from pathlib import Path

import pytest

from benchmarks.clients import WINDOWS, NotInstalled, install, run_client
from pagein.server.clients import Client

CALLS = int(os.environ.get("PAGEIN_CLIENT_CALLS", "60"))
"""A window of 45,000 or 30,000 tokens holds some 5 to 12 of them beside the clients' own tools."""


@pytest.fixture(scope="module")
def packages() -> Path:
    try:
        return install()
    except NotInstalled as error:
        pytest.skip(f"THE CLIENTS WERE NOT RUN: {error}")


@pytest.mark.parametrize("client", list(WINDOWS))
def test_a_client_reads_more_than_its_window_holds(packages: Path, client: Client) -> None:
    run = run_client(client, packages, calls=CALLS, window=WINDOWS[client], proxied=True)
    assert run.exit_code == 0, run.end
    assert run.calls == CALLS
    assert "All done." in run.end
    assert (run.measures.over, run.measures.illegal, run.compactions, run.failures) == (0, 0, 0, 0)
    assert len(run.runs) <= 2, "one run, and one for a title"
    assert run.measures.prefix > 0.75
