"""A scripted provider, a proxy before it, and the real SDKs' clients."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from pagein import AgentMemory
from pagein.server import Limits, ServerApp, ServerSettings
from pagein.testing.provider import ScriptedProvider, serve_app


@dataclass
class Stack:
    """A provider, the proxy before it, and where they are."""

    provider: ScriptedProvider
    app: ServerApp
    store: str
    url: str
    direct: str
    clients: list[Any] = field(default_factory=list)

    def claude(self, run="", **options):
        import anthropic

        head = {"x-pagein-run": run} if run else {}
        return self._kept(
            anthropic.Anthropic(
                base_url=self.url, api_key="sk-ant-secret", max_retries=0, default_headers=head, **options
            )
        )

    def gpt(self, run="", **options):
        import openai

        head = {"x-pagein-run": run} if run else {}
        return self._kept(
            openai.OpenAI(
                base_url=f"{self.url}/v1", api_key="sk-proj-secret", max_retries=0, default_headers=head, **options
            )
        )

    def gemini(self, run="", key="AIza-secret"):
        from google import genai

        head = {"x-pagein-run": run} if run else {}
        return self._kept(genai.Client(api_key=key, http_options={"base_url": self.url, "headers": head}))

    def http(self):
        import httpx2

        return self._kept(httpx2.Client(base_url=self.url, timeout=300))

    def _kept(self, client):
        self.clients.append(client)
        return client

    @contextmanager
    def memory(self, run, **options):
        with AgentMemory.open(self.store, session=run, readonly=True, **options) as memory:
            yield memory

    def count(self, name, label=""):
        return self.app.metrics.counts[name, label]


@pytest.fixture
def stack(tmp_path):
    """Makes a stack: ``stack(script, window=..., mode=...)``; all of them end with the test."""
    from contextlib import ExitStack

    with ExitStack() as ends:

        def make(script, *, window=None, provider_window=0, limits=None, store="", **settings):
            provider = (
                script if isinstance(script, ScriptedProvider) else ScriptedProvider(script, window=provider_window)
            )
            direct = ends.enter_context(serve_app(provider))
            path = store or str(tmp_path / "runs.db")
            app = ServerApp(
                ServerSettings(path, {"default": direct}, window=window, limits=limits or Limits(), **settings)
            )
            url = ends.enter_context(serve_app(app))
            made = Stack(provider, app, path, url, direct)
            ends.callback(lambda: [client.close() for client in made.clients])
            return made

        yield make


@pytest.fixture(scope="session")
def demo_inspector(tmp_path_factory):
    """The address that ``pagein demo --inspect`` gives, which is interrupted at the end."""
    command = [sys.executable, "-m", "pagein", "demo", "--inspect"]
    place = os.environ | {"BROWSER": "true", "TMPDIR": str(tmp_path_factory.mktemp("demo"))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=place) as process:
        lines = iter(process.stdout.readline, "")
        address = next(line for line in lines if " at http://127.0.0.1:" in line)
        yield address.partition(" at ")[2].split()[0]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
