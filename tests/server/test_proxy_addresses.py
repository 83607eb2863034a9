"""Addresses: what is served wherever a provider has it, and that no request leads elsewhere than to its upstream."""

import socket
import threading
from contextlib import ExitStack, contextmanager

import httpx2
import pytest

from pagein.server import ServerApp, ServerSettings, proxy
from pagein.server.settings import hash_key
from pagein.testing.provider import serve_app

ASK = {"messages": [{"role": "user", "content": "Hello there."}], "input": "Hello there."}
EVENTS = (
    b'data: {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
)


class Upstream:
    """An upstream that notes the addresses that it is asked for, and answers 204."""

    def __init__(self):
        self.targets, self.headers = [], []

    async def __call__(self, scope, receive, send):
        query = scope["query_string"]
        self.targets.append((scope["raw_path"] + (b"?" + query if query else b"")).decode())
        self.headers.append(dict(scope["headers"]))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@contextmanager
def serve(folder, upstream, base="", **options):
    """An address of a proxy before an upstream with this path; its app."""
    with ExitStack() as ends:
        address = ends.enter_context(serve_app(upstream)) if callable(upstream) else upstream
        app = ServerApp(ServerSettings(str(folder / "runs.db"), {"default": f"{address}{base}"}, **options))
        yield ends.enter_context(serve_app(app)), app


@pytest.mark.parametrize(
    ("base", "path", "target"),
    [
        ("", "/v1//chat/completions", "/v1/chat/completions"),
        ("", "//v1/messages", "/v1/messages"),
        ("/v1/", "//v1/messages", "/v1/messages"),
        ("/api/openai", "/v1/chat/completions", "/api/openai/v1/chat/completions"),
        ("/api/paas/v4", "/v1/chat/completions", "/api/paas/v4/chat/completions"),
        ("/v1beta/openai", "/chat/completions", "/v1beta/openai/chat/completions"),
        ("/m\u00fcnchen/a%20b", "/v1/chat/completions", "/m%C3%BCnchen/a%20b/v1/chat/completions"),
        ("", "/api/v1/chat/completions", "/api/v1/chat/completions"),
        ("", "/anthropic/v1/messages", "/anthropic/v1/messages"),
        ("", "/openai/responses?api-version=preview", "/openai/responses?api-version=preview"),
        ("/openai", "/deployments/a/chat/completions?api-version=1", "/openai/deployments/a/chat/completions?api-version=1"),
    ],
)  # fmt: skip
def test_an_address_is_known_wherever_a_provider_has_it(tmp_path, base, path, target):
    upstream = Upstream()
    with serve(tmp_path, upstream, base) as (url, _):
        answer = httpx2.post(f"{url}{path}", json=ASK)
    assert answer.headers["x-pagein"].startswith("view; ")
    assert upstream.targets == [target]


@pytest.mark.parametrize(
    "path", ["/v1/threads/t/messages", "/v1/chat/completions/c", "/v1/messages/batches", "/files/a//b"]
)
def test_other_addresses_are_passed_as_they_are_spelled(tmp_path, path):
    upstream = Upstream()
    with serve(tmp_path, upstream) as (url, _):
        assert httpx2.post(f"{url}{path}", json=ASK).headers["x-pagein"] == "passed"
    assert upstream.targets == [path]


def test_a_host_that_is_called_as_a_version_is_none():
    for base in ("http://v1", "https://v2beta", "http://v1/openai"):
        assert ServerSettings("runs.db", {"default": base}).upstream_of("/v1/messages") == ("default", base, "/v1/messages")  # fmt: skip


def test_a_deployment_is_the_model_where_the_body_names_none(tmp_path):
    with serve(tmp_path, Upstream()) as (url, _):
        notes = [
            httpx2.post(f"{url}/openai/deployments/gpt-4o/chat/completions", json=body).headers["x-pagein"]
            for body in (ASK, {**ASK, "model": "gpt-4o"}, {**ASK, "model": "gpt-5"})
        ]
    limits = [note.split("limit=")[1].split(";")[0] for note in notes]
    assert limits[0] == limits[1] != limits[2]


def ask_for(url, target):
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(
            f"GET {target} HTTP/1.1\r\nhost: {host}\r\nx-api-key: sk-secret\r\nconnection: close\r\n\r\n".encode()
        )
        return client.makefile("rb").readline().split()[1]


def test_no_address_leads_a_request_to_another_server(tmp_path):
    upstream, other = Upstream(), Upstream()
    with serve_app(other) as elsewhere, serve(tmp_path, upstream, "/api") as (url, _):
        host = elsewhere.removeprefix("http://")
        assert ask_for(url, f"@{host}/keys") == b"204"
        assert ask_for(url, f"{elsewhere}/keys") == b"204"
        assert ask_for(url, "*") == b"204"
        assert ask_for(url, "/v1/../../admin") == ask_for(url, "/v1/%2e%2e/admin") == b"403"
        assert ask_for(url, f"/v1/{'x' * 60_000}") == b"204"
    assert other.targets == []
    assert upstream.targets[:3] == [f"/api/@{host}/keys", f"/api/{elsewhere}/keys", "/api/*"]


def test_a_client_that_knows_no_coding_is_asked_for_in_none(tmp_path):
    upstream = Upstream()
    with serve(tmp_path, upstream) as (url, _):
        ask_for(url, "/v1/models")
        httpx2.get(f"{url}/v1/models", headers={"accept-encoding": "br"})
    assert [headers[b"accept-encoding"] for headers in upstream.headers] == [b"identity", b"br"]


def test_azures_keys_are_credentials_too(tmp_path):
    with serve(tmp_path, Upstream(), tenant_secret="s3cret") as (url, app):
        for key in ("one", "two", "one"):
            httpx2.post(f"{url}/openai/v1/responses", json=ASK, headers={"api-key": key, "x-pagein-run": "run"})
        assert len({tenant for tenant, _ in app._parts.proxy._runs._names}) == 2


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models"])
def test_the_address_of_an_upstream_is_for_its_operator(tmp_path, caplog, path):
    closed = "http://127.0.0.1:9"
    with serve(tmp_path, closed) as (url, _):
        answer = httpx2.post(f"{url}{path}", json=ASK)
        assert (answer.status_code, closed in answer.json()["error"]["message"]) == (502, True)
    caplog.clear()
    with serve(tmp_path, closed, host="192.0.2.1", keys={hash_key("k"): "acme"}) as (url, _):
        answer = httpx2.post(f"{url}{path}", json=ASK, headers={"x-pagein-key": "k"})
        assert answer.status_code == 502
        assert answer.json()["error"]["message"].startswith("the upstream 'default' did not answer (ConnectError)")
    (line,) = (record.getMessage() for record in caplog.records if record.name == "pagein.server")
    assert line.startswith(f"the upstream default ({closed}) did not answer: ConnectError ")
    assert "onnection" in line, "why it failed: a certificate, a name, a port"


def test_an_answer_that_cannot_be_unpacked_is_the_upstreams_failure(tmp_path):
    async def upstream(scope, receive, send):
        head = [(b"content-type", b"application/json"), (b"content-encoding", b"gzip")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": b"no gzip"})

    with serve(tmp_path, upstream) as (url, _):
        assert httpx2.post(f"{url}/v1/chat/completions", json=ASK).status_code == 502


def test_a_stream_that_says_only_that_it_lives_reaches_its_client(tmp_path, monkeypatch):
    monkeypatch.setattr(proxy, "PRELUDE_SECONDS", 0.0)
    has_reached = threading.Event()

    async def upstream(scope, receive, send):
        import asyncio

        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b": PROCESSING\n\n", "more_body": True})
        await asyncio.to_thread(has_reached.wait, 30)
        await send({"type": "http.response.body", "body": EVENTS})

    with (
        serve(tmp_path, upstream) as (url, _),
        httpx2.stream("POST", f"{url}/v1/chat/completions", json={**ASK, "stream": True}, timeout=10) as answer,
    ):
        chunks = answer.iter_raw()
        assert next(chunks) == b": PROCESSING\n\n"
        has_reached.set()
        assert b"".join(chunks) == EVENTS
