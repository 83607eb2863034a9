"""Faults on either side of the proxy: the provider's own errors reach the client, and the log stays whole."""

import gzip
import json
import socket
import threading
import time
from contextlib import ExitStack, suppress

import anthropic
import httpx2
import openai
import pytest
import zstandard

from benchmarks.faulty_provider import Fault, FaultyProvider
from pagein.server import Limits, ServerApp, ServerSettings, run
from pagein.server.http import read_incoming, send_json
from pagein.server.proxy import Proxy
from pagein.server.runs import Runs
from pagein.testing.provider import Answer, ScriptedProvider, ToolLoop, serve_app
from pagein.testing.provider.agent import file_text
from tests.server.sdk_agents import TOOL, run_messages

pytestmark = pytest.mark.slow

ASK = {"model": "claude-opus-4-8", "max_tokens": 100}
USER = [{"role": "user", "content": "Hello there."}]


def hello(question):
    return Answer("Hello.")


def provider_with(*faults, script=hello, **options):
    return FaultyProvider(script, faults=dict(enumerate(faults)), **options)


def test_rate_limits_and_overload_reach_the_client_as_they_came(stack):
    made = stack(provider_with(Fault("rate-limit"), Fault("overloaded")))
    claude = made.claude("run")
    with pytest.raises(anthropic.RateLimitError) as limited:
        claude.messages.create(**ASK, messages=USER)
    assert limited.value.response.headers["retry-after"] == "7"
    assert limited.value.response.headers["x-ratelimit-remaining-requests"] == "0"
    with pytest.raises(anthropic.APIStatusError) as busy:
        claude.messages.create(**ASK, messages=USER)
    assert busy.value.status_code == 529
    assert claude.messages.create(**ASK, messages=USER).content[0].text == "Hello."
    with made.memory("run") as memory:
        assert [type(step).__name__ for step in memory.steps] == ["TaskStep", "ActionStep"]
        assert [request.outcome for request in memory.requests()] == ["HTTP 429", "HTTP 529", "answered"]


@pytest.mark.parametrize(("spelling", "stream"), [("anthropic", True), ("openai", False), ("bare", True)])
def test_an_overflow_is_learnt_from_and_the_client_never_sees_it(stack, spelling, stream):
    # The proxy takes the window for larger than it is.
    made = stack(ScriptedProvider(ToolLoop(12), window=4_000, spelling=spelling), window=5_500)
    history = run_messages(made.claude("run"), stream=stream)
    assert history[-1]["content"][0]["text"] == "All done."
    assert made.provider.illegal == ()
    assert made.count("overflows", "sent again") == made.provider.over >= 1
    assert made.provider.over <= (2 if spelling != "bare" else 4), "what was learnt is kept"


@pytest.mark.parametrize("window", [0, 2_000])
def test_an_overflow_as_the_first_event_of_a_stream_is_one(stack, window):
    provider = FaultyProvider(ToolLoop(8), faults={6: Fault("overflow-event", window)})
    made = stack(provider, window=8_000)
    assert run_messages(made.claude("run"), stream=True)[-1]["content"][0]["text"] == "All done."
    assert len(provider.received) == 8 + 1 + 1
    assert provider.received[7].reading.tokens < provider.received[6].reading.tokens


def test_an_overflow_that_a_gateway_answers_with_200_is_one(stack):
    sizes = []

    async def gateway(scope, receive, send):
        tokens = len((await read_incoming(scope, receive, 1 << 30)).raw) // 4
        sizes.append(tokens)
        text = f"This model's maximum context length is 3000 tokens. However, you requested {tokens} tokens."
        message = {"role": "assistant", "content": "Hello."}
        answer = {"error": {"message": text}} if tokens > 3_000 else {"choices": [{"index": 0, "message": message}]}
        await send_json(send, 200, json.dumps(answer).encode())

    made, texts = stack(hello), [file_text(number, 900) for number in range(20)]
    history = [{"role": role, "content": text} for text in texts for role in ("user", "assistant")]
    with serve_app(gateway) as url:
        made.app.settings.upstreams["default"] = url
        answer = made.http().post("/v1/chat/completions", json={"model": "gpt-4o", "messages": [*history, *USER]})
    assert answer.json()["choices"][0]["message"]["content"] == "Hello."
    assert sizes[0] > 3_000 >= sizes[-1]
    assert made.count("overflows", "sent again") == len(sizes) - 1


def test_an_error_behind_the_first_events_is_relayed_and_nothing_is_recorded(stack):
    made = stack(provider_with(Fault("error-event"), Fault("cut")))
    claude = made.claude("run")
    with (
        pytest.raises(anthropic.APIStatusError, match="Overloaded"),
        claude.messages.stream(**ASK, messages=USER) as stream,
    ):
        stream.get_final_message()
    with pytest.raises(httpx2.RemoteProtocolError), claude.messages.stream(**ASK, messages=USER) as stream:
        stream.get_final_message()
    assert claude.messages.create(**ASK, messages=USER).content[0].text == "Hello."
    with made.memory("run") as memory:
        assert len(memory.steps) == 2


def test_an_answer_that_is_no_json_is_relayed_as_it_came(stack):
    made = stack(provider_with(Fault("bad-json"), Fault("bare-500")))
    http = made.http()
    first = http.post("/v1/messages", json={**ASK, "messages": USER}, headers={"x-pagein-run": "run"})
    assert (first.status_code, first.content) == (200, b'{"id": "msg_1", "content": [')
    second = http.post("/v1/messages", json={**ASK, "messages": USER}, headers={"x-pagein-run": "run"})
    assert (second.status_code, second.text) == (500, "Internal Server Error")


@pytest.mark.parametrize(("coding", "expected"), [("gzip", None), ("br", "br")])
def test_an_answer_in_a_coding_that_was_not_asked_for_can_be_read(stack, coding, expected):
    packed = b"\x0b\x02\x80hello\x03" if coding == "br" else gzip.compress(b"hello")

    async def upstream(scope, receive, send):
        assert scope["type"] == "http"
        head = [(b"content-type", b"text/plain"), (b"content-encoding", coding.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": packed})

    with serve_app(upstream) as url:
        made = stack(provider_with())
        made.app.settings.upstreams["default"] = url
        with made.http().stream("POST", "/v1/messages", json={**ASK, "messages": USER}) as answer:
            assert answer.headers.get("content-encoding") == expected
            assert b"".join(answer.iter_raw()) == (packed if expected else b"hello")


def wait_until(condition):
    until = time.monotonic() + 300
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)


def test_a_client_that_hangs_up_ends_the_upstream_request(stack):
    made = stack(provider_with(Fault("silence")))
    body = json.dumps({**ASK, "messages": USER})
    host, port = made.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as client:
        head = f"POST /v1/messages HTTP/1.1\r\nhost: {host}\r\nx-api-key: sk-ant-secret\r\nx-pagein-run: run\r\n"
        client.sendall(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
        wait_until(lambda: made.provider.received)
    wait_until(lambda: made.provider.hangups and made.count("hangups"))
    assert made.provider.hangups == 1
    assert made.claude("run").messages.create(**ASK, messages=USER).content[0].text == "Hello."


def test_an_upstream_that_is_silent_or_away_is_an_error_in_the_providers_shape(stack):
    made = stack(provider_with(Fault("silence")), limits=Limits(event_seconds=0.2))
    with pytest.raises(openai.APIStatusError) as error:
        made.gpt("run").chat.completions.create(model="gpt-4o", messages=USER)
    assert error.value.status_code == 504
    assert "did not answer (ReadTimeout): check its address" in error.value.body["message"]


BROKEN = pytest.mark.parametrize(
    ("owner", "name"), [(Runs, "prepare"), (Proxy, "_read_request"), (Proxy, "_plan_view")]
)
"""Our own part that fails before anything is forwarded."""


@BROKEN
def test_a_failure_of_ours_lets_the_original_through_and_is_counted(stack, monkeypatch, owner, name):
    made = stack(hello)
    monkeypatch.setattr(owner, name, lambda *_, **__: 1 / 0)
    sent = json.dumps({**ASK, "messages": USER, "unknown": [1]}, indent=3).encode()
    answer = made.http().post("/v1/messages", content=sent, headers={"content-type": "application/json"})
    assert answer.status_code == 200
    assert answer.headers["x-pagein"] == "bypass; reason=ZeroDivisionError"
    assert made.provider.received[0].body["unknown"] == [1]
    assert made.count("failures", "ZeroDivisionError") == 1


@pytest.mark.parametrize(("owner", "name"), [(Runs, "preview"), (Proxy, "_read_request")])
def test_a_failure_of_ours_has_the_clients_own_request_counted(stack, monkeypatch, owner, name):
    made = stack(hello)
    monkeypatch.setattr(owner, name, lambda *_, **__: 1 / 0)
    answer = made.claude("run").messages.count_tokens(model=ASK["model"], messages=USER)
    assert answer.input_tokens > 0
    assert made.count("failures", "ZeroDivisionError") == 1


@BROKEN
def test_strict_forwards_nothing_where_pagein_fails(stack, monkeypatch, caplog, owner, name):
    made = stack(hello, strict=True)
    monkeypatch.setattr(owner, name, lambda *_, **__: 1 / 0)
    with pytest.raises(anthropic.InternalServerError) as error:
        made.claude("run").messages.create(**ASK, messages=USER)
    assert error.value.status_code == 502
    assert made.provider.received == []
    assert [record.getMessage() for record in caplog.records] == [
        "a request is not forwarded: ZeroDivisionError: ZeroDivisionError"
    ]


def test_an_answer_that_cannot_be_recorded_is_relayed_and_its_echo_recorded(stack, monkeypatch):
    made = stack(hello)
    claude = made.claude("run")
    with monkeypatch.context() as broken:
        broken.setattr(Runs, "record_answer", lambda *_, **__: 1 / 0)
        with claude.messages.stream(**ASK, messages=USER) as stream:
            assert stream.get_final_message().content[0].text == "Hello."
    assert made.count("answers", "not recorded") == 1
    more = [*USER, {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "And?"}]
    claude.messages.create(**ASK, messages=more)
    with made.memory("run") as memory:
        assert [type(step).__name__ for step in memory.steps] == ["TaskStep", "ActionStep", "TaskStep", "ActionStep"]


def test_what_must_stay_and_does_not_fit_is_the_providers_own_overflow(stack):
    made = stack(hello, window=1_000)
    long = [{"role": "user", "content": "word " * 3_000}]
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: [0-9]+ tokens"):
        made.claude("run").messages.create(**ASK, messages=long)
    with pytest.raises(openai.BadRequestError) as error:
        made.gpt("other").chat.completions.create(model="gpt-4o", messages=long)
    assert error.value.code == "context_length_exceeded"
    assert made.provider.received == []


# Bodies


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_packed_body_is_read(stack, encoding):
    made = stack(hello)
    body = json.dumps({**ASK, "messages": USER}).encode()
    packed = gzip.compress(body) if encoding == "gzip" else zstandard.compress(body)
    head = {"content-encoding": encoding, "content-type": "application/json", "x-pagein-run": "packed"}
    answer = made.http().post("/v1/messages", content=packed, headers=head)
    assert answer.headers["x-pagein"].startswith("view; run=packed")


def test_what_cannot_be_read_goes_out_as_it_came(stack):
    made = stack(hello)
    http = made.http()
    head = {"content-encoding": "gzip", "content-type": "application/json"}
    for content, headers in ((b"no gzip", head), (b'{"model": ', {}), (b"[1]", {}), (b'{"model": "x"}', {})):
        answer = http.post("/v1/messages", content=content, headers=headers)
        assert answer.headers["x-pagein"].startswith("bypass; reason=")
        assert answer.status_code == 400, "the provider's own answer"
    assert len(made.provider.received) == 4


def test_a_body_over_the_limit_is_refused_as_it_comes_and_unpacked(stack):
    made = stack(hello, limits=Limits(body_bytes=10_000))
    http = made.http()
    body = json.dumps({**ASK, "messages": [{"role": "user", "content": "x" * 20_000}]}).encode()
    assert http.post("/v1/messages", content=body).status_code == 413
    packed = http.post("/v1/messages", content=gzip.compress(body), headers={"content-encoding": "gzip"})
    assert packed.status_code == 413
    assert made.provider.received == []


def test_other_addresses_pass_byte_for_byte(stack):
    made = stack(FaultyProvider(hello))
    http = made.http()
    data = bytes(range(256)) * 500
    answer = http.post("/echo", content=data)
    assert (answer.content, answer.headers["x-scripted"], answer.headers["x-pagein"]) == (data, "echo", "passed")
    direct = http.post(f"{made.direct}/echo", content=data)
    assert [answer.headers.get_list(name) for name in ("date", "server")] == [
        direct.headers.get_list(name) for name in ("date", "server")
    ]
    assert http.get("/v1/models").json()["data"][0]["id"] == "scripted"
    assert http.get("/v1/nothing").status_code == 404
    assert made.claude().models.list().data


class Listener:
    """An upstream that notes what comes, and answers 204."""

    def __init__(self):
        self.paths, self.headers = [], []

    async def __call__(self, scope, receive, send):
        self.paths.append(scope["raw_path"] + b"?" + scope["query_string"])
        self.headers.append(dict(scope["headers"]))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def test_an_address_is_passed_as_it_was_spelled_and_no_expectation_that_was_met(tmp_path):
    listener = Listener()
    with serve_app(listener) as upstream:
        app = ServerApp(ServerSettings(str(tmp_path / "runs.db"), {"default": upstream}))
        with serve_app(app) as url, httpx2.Client() as http:
            http.delete(f"{url}/v1/files/a%2Fb%20c?x=%20&x=2&empty=", headers={"expect": "100-continue"})
            http.post(f"{url}/v1/messages", json={**ASK, "messages": USER}, headers={"expect": "100-continue"})
    assert listener.paths == [b"/v1/files/a%2Fb%20c?x=%20&x=2&empty=", b"/v1/messages?"]
    assert not any(b"expect" in headers for headers in listener.headers)


def test_a_websocket_is_refused_with_the_status_that_says_so(stack):
    made = stack(hello)
    head = {"upgrade": "websocket", "connection": "upgrade", "sec-websocket-version": "13"}
    answer = made.http().get("/v1/responses", headers={**head, "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="})
    assert answer.status_code == 426
    assert "use HTTP" in answer.json()["error"]["message"]
    assert made.provider.received == []
    assert made.count("refused", "websocket") == 1


def test_an_unknown_field_reaches_the_provider_in_a_view_too(stack):
    made = stack(ToolLoop(10), window=3_000)
    history = run_messages(made.claude("run"), stream=False)
    made.claude("run").messages.create(
        **ASK,
        tools=[TOOL],
        messages=[*history, {"role": "user", "content": "Go on."}],
        extra_body={"new_field": {"a": 1}},
    )
    last = made.provider.received[-1]
    assert last.body["new_field"] == {"a": 1}
    assert len(last.body["messages"]) < len(history)


# Who may ask


def test_a_page_of_another_site_may_not_ask(stack):
    made = stack(hello)
    http = made.http()
    for head in (
        {"host": "evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
    ):
        assert http.post("/v1/messages", json={**ASK, "messages": USER}, headers=head).status_code == 403
    own = {"origin": made.url}
    assert http.post("/v1/messages", json={**ASK, "messages": USER}, headers=own).status_code == 200


PAGE = "https://chat.example.org"


def test_a_page_of_an_origin_that_was_named_may_ask_for_models_alone(stack):
    from pagein.server.settings import hash_key

    made = stack(hello, origins=(PAGE,), keys={hash_key("pk-1"): ""})
    http = made.http()
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "content-type,x-api-key"}
    preflight = http.options("/v1/messages", headers={"origin": PAGE, **asks})
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == PAGE
    assert preflight.headers["access-control-allow-headers"] == "content-type,x-api-key"
    body, head = {**ASK, "messages": USER}, {"origin": PAGE, "x-pagein-key": "pk-1"}
    answer = http.post("/v1/messages", json=body, headers=head)
    assert answer.status_code == 200
    assert (answer.headers["access-control-allow-origin"], answer.headers["vary"]) == (PAGE, "origin")
    assert "origin" not in made.provider.received[-1].headers
    refused = http.post("/v1/messages", json=body, headers={"origin": PAGE})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, PAGE)
    for path in ("/inspect/api/runs", "/mcp"):
        assert http.get(path, headers=head).status_code == 403
        assert "access-control-allow-origin" not in http.options(path, headers={"origin": PAGE, **asks}).headers
    for origin in ("https://evil.example", "https://chat.example.org.evil.example", "http://chat.example.org"):
        assert http.options("/v1/messages", headers={"origin": origin, **asks}).status_code in (401, 403)
        assert http.post("/v1/messages", json=body, headers={**head, "origin": origin}).status_code == 403


def test_headers_of_one_connection_stay_there(stack):
    made = stack(hello)
    head = {"connection": "keep-alive, X-Hop", "x-hop": "secret", "x-end": "goes on"}
    assert made.http().post("/v1/messages", json={**ASK, "messages": USER}, headers=head).status_code == 200
    assert "x-hop" not in made.provider.received[0].headers
    assert made.provider.received[0].headers["x-end"] == "goes on"


def test_proxy_keys_name_a_tenant_and_no_key_is_refused(stack):
    from pagein.server.settings import hash_key

    made = stack(hello, keys={hash_key("pk-1"): "acme"})
    http = made.http()
    ask = {"json": {**ASK, "messages": USER}}
    assert http.post("/v1/messages", **ask).status_code == 401
    assert http.post("/v1/messages", **ask, headers={"x-pagein-key": "pk-1"}).status_code == 200
    assert "x-pagein-key" not in made.provider.received[0].headers


def test_with_a_secret_each_credential_is_a_tenant_of_its_own(stack):
    made = stack(hello, tenant_secret="s3cret")
    for key in ("sk-1", "sk-2", "sk-1"):
        with anthropic.Anthropic(base_url=made.url, api_key=key, default_headers={"x-pagein-run": "run"}) as claude:
            claude.messages.create(**ASK, messages=USER)
    with made.memory("run") as shared:
        assert shared.steps == ()
    assert made.http().get("/inspect").status_code == 404, "passed on: nobody's runs are shown"
    assert made.http().post("/mcp", json={}).status_code == 404


def test_no_credential_is_in_the_store_the_log_or_the_metrics(stack, tmp_path, caplog):
    made = stack(ToolLoop(6), window=3_000)
    run_messages(made.claude("run"), stream=True)
    made.gpt("other").responses.create(model="gpt-4o", input="Hello")
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"handler_1" in stored
    for secret in (b"sk-ant-secret", b"sk-proj-secret"):
        assert secret not in stored
        assert secret.decode() not in caplog.text + made.app.metrics.render()
    assert "sk-ant-secret" in str(made.provider.received[0].headers)


def test_health_and_metrics(stack):
    made = stack(hello)
    http = made.http()
    made.claude("run").messages.create(**ASK, messages=USER)
    assert (http.get("/livez").status_code, http.get("/readyz").status_code) == (200, 200)
    text = http.get("/metrics").text
    assert 'pagein_requests_total{kind="view"} 1' in text
    assert 'pagein_added_seconds_bucket{le="+Inf"} 1' in text


def test_the_inspector_shows_what_the_proxy_sent(stack):
    made = stack(ToolLoop(6), window=3_000)
    run_messages(made.claude("run"), stream=True)
    http = made.http()
    assert http.get("/inspect").status_code == 200
    runs = http.get("/inspect/api/runs").json()
    assert "run" in json.dumps(runs)
    requests = json.dumps(http.get("/inspect/api/runs/run/requests").json())
    assert requests.count('"answered"') == 7
    assert made.provider.others == [], "nothing of it reaches the provider"


def test_many_streams_at_once_each_get_their_own(stack):
    made = stack(ScriptedProvider(lambda question: Answer(f"echo {question.last_text}"), pause=0.005))
    texts = {}

    def ask(number):
        claude = made.claude(f"run {number}")
        with claude.messages.stream(**ASK, messages=[{"role": "user", "content": f"number {number}."}]) as stream:
            texts[number] = stream.get_final_message().content[0].text

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    [thread.start() for thread in threads]
    [thread.join(300) for thread in threads]
    assert all(f"number {number}." in texts[number] for number in range(12))


def test_more_requests_than_can_wait_are_refused_before_they_are_let_in(stack, monkeypatch):
    made, may_go_on, prepare = stack(hello, limits=Limits(waiting=1)), threading.Event(), Runs.prepare
    monkeypatch.setattr(Runs, "prepare", lambda *args, **how: may_go_on.wait(300) and prepare(*args, **how))
    answers, ask = [], {"json": {**ASK, "messages": USER}}
    first = threading.Thread(target=lambda: answers.append(made.http().post("/v1/messages", **ask)))
    first.start()
    wait_until(lambda: made.app._parts.proxy._waiting)
    refused = made.http().post("/v1/messages", **ask)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    may_go_on.set()
    first.join(300)
    assert answers[0].status_code == 200


def test_what_was_let_in_is_recorded_however_many_wait(stack, monkeypatch):
    made = stack(hello, limits=Limits(waiting=1))
    monkeypatch.setattr(Runs, "read_ahead", lambda *_: time.sleep(0.3))  # the answer comes meanwhile
    made.claude("run").messages.create(**ASK, messages=USER)
    assert made.count("answers", "recorded") == 1


def test_an_answer_is_recorded_where_the_table_of_requests_is_busy(stack, monkeypatch):
    from pagein.errors import LogBusy
    from pagein.server.memories import ServerMemory

    def busy(*_, **__):
        raise LogBusy("another process holds the database")

    made = stack(hello)
    monkeypatch.setattr(ServerMemory, "note_outcome", busy)
    made.claude("run").messages.create(**ASK, messages=USER)
    assert made.count("answers", "recorded") == 1
    with made.memory("run") as memory:
        assert len(memory.steps) == 2


def test_a_server_that_ends_closes_the_connection_of_a_client_that_reads_nothing(monkeypatch):
    monkeypatch.setattr(run, "_THREAD_DRAIN_SECONDS", 0)
    sending = threading.Event()

    async def answer(scope, receive, send):
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            sending.set()
            await send({"type": "http.response.body", "body": bytes(50_000_000)})

    with ExitStack() as ends:
        server = ends.enter_context(ExitStack())
        url = server.enter_context(run.serve_in_thread(answer))
        client = ends.enter_context(socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=60))
        client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert sending.wait(60)
        server.close()
        received = 0
        with suppress(ConnectionResetError):
            while part := client.recv(1_000_000):
                received += len(part)
        assert 0 < received < 50_000_000


ODD_ANSWERS = {
    "/v1/messages": ({"type": "content_block_delta", "index": [], "delta": 5}, {"type": "message_start", "message": 5}),
    "/v1/messages?without=order": (
        *({"type": "content_block_start", "index": index, "content_block": {}} for index in (0, "x")),
        {"type": "message_delta", "usage": 5},
        {"type": "message_stop"},
    ),
    "/v1/chat/completions": (
        {"choices": 5},
        {"choices": [{"delta": 5}]},
        {"choices": [{"delta": {"tool_calls": [5]}}]},
    ),
    "/v1/responses": (
        {"type": "response.completed", "response": {"status": [], "output": [5]}},
        {"type": {}, "item": 5},
    ),
    "/v1beta/models/m:streamGenerateContent": ({"candidates": 5}, {"candidates": [{"content": {"parts": [5, None]}}]}),
}


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
@pytest.mark.parametrize("path", ODD_ANSWERS)
def test_an_answer_of_another_shape_reaches_the_client_as_it_came(stack, path, kind):
    values = [*ODD_ANSWERS[path], {"error": []}, {"usage": {}, "usageMetadata": {}}]
    frames = [json.dumps(value).encode() for value in values]
    bodies = [b"".join(b"data: %s\n\n" % frame for frame in frames)] if kind.startswith("text") else frames
    sent = iter(bodies)

    async def upstream(scope, receive, send):
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind.encode())]})
        await send({"type": "http.response.body", "body": next(sent)})

    made = stack(hello)
    contents = [{"role": "user", "parts": [{"text": "Hello there."}]}]
    ask = {"contents": contents} if "models" in path else {**ASK, "messages": USER, "input": USER}
    with serve_app(upstream) as url:
        made.app.settings.upstreams["default"] = url
        for body in bodies:
            answer = made.http().post(path, json=ask)
            assert (answer.status_code, answer.content) == (200, body)


def test_an_answer_whose_usage_says_nothing_is_recorded(stack):
    async def upstream(scope, receive, send):
        assert scope["type"] == "http"
        message = {"choices": [{"message": {"role": "assistant", "content": "Hello."}}], "usage": {}}
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": json.dumps(message).encode()})

    made = stack(hello)
    with serve_app(upstream) as url:
        made.app.settings.upstreams["default"] = url
        made.http().post(
            "/v1/chat/completions", json={"model": "gpt-5", "messages": USER}, headers={"x-pagein-run": "run"}
        )
    with made.memory("run") as memory:
        assert [type(step).__name__ for step in memory.steps] == ["TaskStep", "ActionStep"]
        assert [request.outcome for request in memory.requests()] == ["answered"]
