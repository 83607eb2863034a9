"""Gemini's protocol: its addresses, its two kinds of stream, its errors, and its keys, which may stand in the address."""

import asyncio
import json
import logging
import time

import pytest
from google.genai import Client, errors

from benchmarks.faulty_provider import Fault, FaultyProvider
from pagein.models.overflow import Overflow, detect_overflow
from pagein.server import Limits, ServerApp, ServerSettings
from pagein.server.answers import new_reader
from pagein.server.events import ArraySplitter, StreamEvent
from pagein.server.wire import GEMINI, find_endpoint, find_rows, output_tokens
from pagein.testing.provider import Answer, Call, ScriptedProvider, ToolLoop, serve_app
from tests.server.sdk_agents import GEMINI_TOOL, pieces, run_gemini

pytestmark = pytest.mark.slow

MODEL = "gemini-2.5-flash"
ASK = f"/v1beta/models/{MODEL}:generateContent"
STREAM = f"/v1beta/models/{MODEL}:streamGenerateContent"
USER = {"role": "user", "parts": [{"text": "Hello there."}]}
HELLO = {"contents": [USER]}
RUN = {"x-pagein-run": "run"}


def hello(question):
    return Answer("Hello. " * 9)


def text_of(row):
    return "".join(part.get("text", "") for part in row["parts"])


def steps_of(made, run="run"):
    with made.memory(run) as memory:
        return [type(step).__name__ for step in memory.steps]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1beta/models/gemini-x:generateContent", (False, False)),
        ("/v1/models/gemini-x:streamGenerateContent", (False, True)),
        ("/models/gemini-x:countTokens", (True, False)),
        ("/v1beta1/projects/p/locations/l/publishers/google/models/gemini-x:generateContent", (False, False)),
        ("/v1beta/models/gemini-x:embedContent", None),
        ("/v1beta/models/gemini-x", None),
        ("/v1beta/messages", None),
    ],
)
def test_an_address_says_the_model_and_what_is_asked(path, expected):
    endpoint = find_endpoint(path)
    assert (endpoint and (endpoint.is_count, endpoint.is_stream)) == expected
    assert endpoint is None or (endpoint.model, endpoint.protocol) == ("gemini-x", GEMINI)


def test_the_model_in_the_address_says_what_is_left_for_the_answer(stack):
    made = stack(hello)
    limits = []
    for model in ("gemini-2.0-flash", "gemini-2.5-flash"):
        answer = made.http().post(ASK.replace(MODEL, model), json=HELLO)
        limits.append(int(answer.headers["x-pagein"].split("limit=")[1].split(";")[0]))
    assert limits[0] - limits[1] == 32_000 - 8_192, "the longest answer, and what is left for a longer one"


@pytest.mark.parametrize("base", ["", "/v1beta", "/v1"])
def test_a_base_address_is_given_with_its_version_and_without(stack, base):
    made = stack(hello)
    made.app.settings.upstreams["default"] = made.direct + base
    http = made.http()
    for path in (ASK, ASK.replace("v1beta", "v1")):
        assert http.post(path, json=HELLO).headers["x-pagein"].startswith("view; run=")
    versions = [base or "/v1beta", base or "/v1"]
    assert [
        request.path.removesuffix(f"/models/{MODEL}:generateContent") for request in made.provider.received
    ] == versions


def test_googles_two_spellings_of_a_key_are_one():
    for options, key in (("generationConfig", "maxOutputTokens"), ("generation_config", "max_output_tokens")):
        assert output_tokens(GEMINI, {options: {key: 7}}) == 7
    assert find_rows(GEMINI, {"contents": USER}) == [USER]


def test_the_async_sdk_gets_the_same(stack):
    made = stack(hello)

    async def run():
        options = {"base_url": made.url, "headers": RUN}
        async with Client(api_key="x", http_options=options).aio as client:
            whole = await client.models.generate_content(model=MODEL, contents="Hello.")
            chunks = await client.models.generate_content_stream(model=MODEL, contents="Hello, you.")
            return whole.text, "".join([chunk.text or "" async for chunk in chunks])

    assert asyncio.run(run()) == ("Hello. " * 9,) * 2
    assert made.count("answers", "recorded") == 2


def test_a_stream_that_is_a_json_array_is_relayed_byte_for_byte_as_it_comes_and_recorded(stack):
    said = 'In a brace } or a "quote\\" {, and Ü. ' * 3
    made = stack(ScriptedProvider(lambda question: Answer(said, (Call("read", {"number": 1}),)), pause=0.01))
    http = made.http()
    direct = http.post(f"{made.direct}{STREAM}", json=HELLO)
    with http.stream("POST", STREAM, json=HELLO, headers=RUN) as answer:
        chunks = list(answer.iter_raw())
    assert len(chunks) > 2, "it is relayed piece by piece"
    plain = [b"".join(chunks), direct.content]
    assert plain[0].replace(b"r000001", b"r000000") == plain[1]
    assert len(json.loads(plain[0])) > 2
    with made.memory("run") as memory:
        step = memory.steps[-1]
    assert (step.content[0].text, step.tool_calls[0].name) == (said, "read")


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_an_array_is_split_wherever_its_bytes_are_cut(size):
    values = [{"a": 'x}"\\'}, {"b": {"c": ["{", "\\\\"]}}, {}]
    raw = b"[" + b",\r\n".join(json.dumps(value, indent=1).encode() for value in values) + b"\n]"
    splitter, events = ArraySplitter(), []
    for at in range(0, len(raw), size):
        events += splitter.feed(raw[at : at + size])
    assert [event.data for event in events] == values
    assert b"".join(event.raw for event in [*events, *splitter.end()]) == raw


def test_a_picture_in_an_array_is_scanned_once():
    splitter, started = ArraySplitter(), time.process_time()
    raw = b'[{"data":"' + b"x" * 3_000_000 + b'"}]'
    events = [event for at in range(0, len(raw), 2_048) for event in splitter.feed(raw[at : at + 2_048])]
    assert len(events) == 1
    assert time.process_time() - started < 3


def test_parts_with_a_text_that_is_none_stay_as_they_are():
    contents = [{"role": "model", "parts": [{"text": text}]} for text in (1, "a", "b", None, "c")]
    (row,) = find_rows(GEMINI, {"contents": contents})
    assert [part["text"] for part in row["parts"]] == [1, "ab", None, "c"]


def test_tokens_are_counted_of_the_view_and_nothing_is_recorded(stack):
    made = stack(ToolLoop(12), window=4_000)
    client = made.gemini("run")
    history = run_gemini(client, stream=False)
    before = steps_of(made)
    more = [*history, {"role": "user", "parts": [{"text": "And then?"}]}]
    counted = client.models.count_tokens(model=MODEL, contents=more).total_tokens
    assert 300 < counted < 4_000
    assert len(made.provider.others[-1].body["contents"]) < len(history)
    assert steps_of(made) == before


# Overflow and errors


@pytest.mark.parametrize("stream", [True, False])
def test_an_overflow_is_learnt_from_and_the_client_never_sees_it(stack, stream):
    made = stack(ScriptedProvider(ToolLoop(12), window=4_000, spelling="gemini"), window=5_500)
    assert text_of(run_gemini(made.gemini("run"), stream=stream)[-1]) == "All done."
    assert made.provider.illegal == ()
    assert 2 >= made.count("overflows", "sent again") == made.provider.over >= 1


def test_what_does_not_fit_is_the_providers_own_overflow(stack):
    made = stack(hello, window=1_000)
    with pytest.raises(errors.ClientError) as error:
        made.gemini("run").models.generate_content(model=MODEL, contents="word " * 3_000)
    assert (error.value.code, error.value.status) == (400, "INVALID_ARGUMENT")
    assert isinstance(detect_overflow(error.value.message), Overflow)
    assert made.provider.received == []


def test_errors_reach_the_client_as_they_came_and_nothing_is_recorded(stack):
    faults = dict(enumerate(map(Fault, ("rate-limit", "overloaded", "error-event", "cut", "cut"))))
    made = stack(FaultyProvider(hello, faults=faults))
    client = made.gemini("run")
    for code in (429, 503):
        with pytest.raises(errors.APIError) as error:
            client.models.generate_content(model=MODEL, contents="Hello.")
        assert error.value.code == code
    with pytest.raises(errors.APIError, match="Overloaded"):
        list(client.models.generate_content_stream(model=MODEL, contents="Hello."))
    for query in ("?alt=sse", ""):
        with pytest.raises(Exception, match=r"(?i)(peer|incomplete|closed)"):
            made.http().post(
                f"{STREAM}{query}", json={"contents": [{**USER, "parts": [{"text": "Hello."}]}]}, headers=RUN
            )
    assert client.models.generate_content(model=MODEL, contents="Hello.").text == "Hello. " * 9
    assert steps_of(made) == ["TaskStep", "ActionStep"]


def test_a_silent_upstream_is_an_error_in_googles_shape(stack):
    made = stack(FaultyProvider(hello, faults={0: Fault("silence")}), limits=Limits(event_seconds=0.2))
    with pytest.raises(errors.ServerError, match="did not answer") as error:
        made.gemini("run").models.generate_content(model=MODEL, contents="Hello.")
    assert (error.value.code, error.value.status) == (504, "DEADLINE_EXCEEDED")


def replay(*answers):
    """An upstream that gives these answers, one after another."""
    left = [json.dumps(answer).encode() for answer in answers]

    async def upstream(scope, receive, send):
        assert scope["type"] == "http"
        body = left.pop(0)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": body})

    return upstream


def piece(text, finish="STOP", **more):
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": finish, **more}]}


def test_an_answer_in_two_requests_is_left_to_its_echo(stack):
    made = stack(hello)
    first, rest = piece("Once upon ", "CONTINUATION", continuationToken="dG9r"), piece("a time.")
    with serve_app(replay(first, rest, piece("Yes."))) as url:
        made.app.settings.upstreams["default"] = url
        http = made.http()
        for token in ({}, {"continuationToken": "dG9r"}):
            http.post(ASK, json={**HELLO, **token}, headers=RUN)
            assert steps_of(made) == ["TaskStep"]
        whole = {"role": "model", "parts": [{"text": "Once upon a time."}]}
        http.post(ASK, json={"contents": [USER, whole, USER]}, headers=RUN)
    assert steps_of(made) == ["TaskStep", "ActionStep"] * 2


def test_a_prompt_that_is_blocked_and_several_candidates_are_no_answer(stack):
    made = stack(hello)
    several = {"candidates": [*piece("One.")["candidates"], *piece("Two.", index=1)["candidates"]]}
    with serve_app(replay({"promptFeedback": {"blockReason": "SAFETY"}}, several)) as url:
        made.app.settings.upstreams["default"] = url
        for _ in range(2):
            assert made.http().post(ASK, json=HELLO, headers=RUN).status_code == 200
    assert steps_of(made) == ["TaskStep"]
    assert made.count("answers", "left to their echo") == 2


def test_a_stream_ends_with_a_reason_or_where_the_prompt_was_blocked():
    for last in ({"promptFeedback": {"blockReason": "SAFETY"}}, piece("", "STOP")):
        reader = new_reader("gemini")
        reader.add(StreamEvent(b"", {**piece("", None), "promptFeedback": {"safetyRatings": []}}))
        assert not reader.is_ending
        reader.add(StreamEvent(b"", last))
        assert reader.is_ending
        assert reader.rows is None


# What is said


@pytest.mark.parametrize("model", [MODEL, "gemini-3-pro-preview"])
def test_thoughts_that_the_client_drops_are_no_edit(stack, model):
    loop = ToolLoop(6)

    def thinking(question):
        answer = loop(question)
        return Answer(answer.text, answer.calls, "I think of it. " * 4)

    made = stack(thinking, window=3_000)
    run_gemini(made.gemini("run"), stream=True, model=model)
    assert steps_of(made) == ["TaskStep", *["ActionStep"] * 7]
    with made.memory("run") as memory:
        assert [branch.name for branch in memory.branches()] == ["main"]
    assert made.provider.illegal == ()
    calls = [
        part for row in made.provider.received[-1].body["contents"] for part in row["parts"] if "functionCall" in part
    ]
    assert all("thoughtSignature" in part for part in calls) == (model != MODEL), "Gemini 3 refuses a call without it"


def test_a_request_with_a_cache_of_the_users_own_is_recorded_and_goes_out_unchanged(stack):
    made = stack(hello, window=1_000)
    long = {"contents": [{"role": "user", "parts": [{"text": "word " * 3_000}]}], "cachedContent": "cachedContents/1"}
    answer = made.http().post(ASK, json=long, headers=RUN)
    assert answer.headers["x-pagein"] == "observe; run=run; reason=the%20provider%20has%20the%20beginning"
    assert made.provider.received[0].body == long


def test_unknown_fields_reach_the_provider_in_a_view_too_and_other_addresses_pass(stack):
    made = stack(ToolLoop(10), window=3_000)
    history = run_gemini(made.gemini("run"), stream=False)
    body = {"contents": [*history, USER], "tools": [GEMINI_TOOL], "newField": {"a": 1}}
    made.http().post(f"{STREAM}?alt=sse&x=%20", json=body, headers=RUN)
    last = made.provider.received[-1]
    assert last.body["newField"] == {"a": 1}
    assert len(last.body["contents"]) < len(history)
    passed = made.http().post(f"/v1beta/models/{MODEL}:embedContent", json={})
    assert passed.headers["x-pagein"] == "passed"


CHECKS = {
    "a loop": {"contents": [{"role": "model", "parts": [{"text": "Now step 1."}]}, USER], "generationConfig": {"responseMimeType": "application/json"}},
    "a summary of a page": HELLO,
    "a search": {**HELLO, "tools": [{"googleSearch": {}}]},
    "a page": {**HELLO, "tools": [{"urlContext": {}}]},
}  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
def test_what_gemini_cli_asks_beside_its_run_is_no_part_of_it(stack, check):
    made = stack(hello)
    agent = {"user-agent": "GeminiCLI/0.61.0/gemini-2.5-pro (linux; x64; terminal)"}
    body = CHECKS[check]
    assert made.http().post(ASK, json=body, headers=agent).headers["x-pagein"] == "side"
    assert made.provider.received[0].body == body
    with_tools = {**body, "contents": [USER], "tools": [GEMINI_TOOL]}
    assert made.http().post(ASK, json=with_tools, headers=agent).headers["x-pagein"].startswith("view; run=run-")
    assert made.http().post(ASK, json=HELLO).headers["x-pagein"].startswith("view; run=run-"), "a chat of a program"


def test_a_side_request_to_another_model_leaves_the_memory_of_its_run_open(stack):
    made = stack(ToolLoop(3))
    client = made.gemini("")
    client._api_client._http_options.headers["x-session-id"] = "one"
    history = run_gemini(client, stream=True)
    pool = made.app._parts.proxy._runs._pool._open
    (before,) = (memory for memory, _ in pool.values())
    body = {**CHECKS["a loop"], "contents": [*history, USER]}
    answer = made.http().post(ASK.replace(MODEL, "gemini-3-flash"), json=body, headers={"x-session-id": "one"})
    assert answer.headers["x-pagein"] == "side"
    assert [memory for memory, _ in pool.values()] == [before]


# Keys


def test_no_key_is_in_the_store_the_log_or_the_metrics(stack, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    made = stack(ToolLoop(6), window=3_000)
    run_gemini(made.gemini("run", key="AIza-in-the-header"), stream=True)
    caplog.clear()  # the client is in this process, and logs its own address
    with_key = [(ASK, HELLO), (f"/v1beta/models/{MODEL}", {}), (STREAM, {"contents": 1})]
    for path, body in with_key:
        ask_elsewhere(f"{made.url}{path}?key=AIza-in-the-address", body)
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"handler_1" in stored
    for key in ("AIza-in-the-header", "AIza-in-the-address"):
        assert key.encode() not in stored
        assert key not in caplog.text + made.app.metrics.render()
    assert "HTTP Request: POST" in caplog.text, "what forwards tells of its requests"


def ask_elsewhere(url, body):
    """Ask from a client that logs nothing."""
    import urllib.error
    import urllib.request

    head = {"content-type": "application/json"}
    try:
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), head))
    except urllib.error.HTTPError as error:
        error.close()


def test_a_query_reaches_the_upstream_as_it_was_spelled(tmp_path):
    targets = []

    async def upstream(scope, receive, send):
        targets.append(scope["raw_path"] + b"?" + scope["query_string"])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    with serve_app(upstream) as direct:
        app = ServerApp(ServerSettings(str(tmp_path / "runs.db"), {"default": f"{direct}/base"}))
        with serve_app(app) as url:
            ask_elsewhere(f"{url}{STREAM}?alt=sse&key=a%2Fb&x=%20", HELLO)
    assert targets == [f"/base{STREAM}?alt=sse&key=a%2Fb&x=%20".encode()]


def test_with_a_secret_each_key_is_a_tenant_of_its_own_wherever_it_stands(stack):
    made = stack(hello, tenant_secret="s3cret")
    http = made.http()
    for key in ("one", "two"):
        http.post(ASK, json=HELLO, headers={**RUN, "x-goog-api-key": key})
        http.post(
            f"{ASK}?key={key}",
            json={"contents": [USER, *[{"role": "model", "parts": [{"text": "Hello. " * 9}]}, USER]]},
            headers=RUN,
        )
    assert len({tenant for tenant, _ in made.app._parts.proxy._runs._names}) == 2
    with made.memory("run") as shared:
        assert shared.steps == ()


def test_pieces_of_a_stream_are_what_the_client_makes_of_them(stack):
    made = stack(lambda question: Answer("Hello. " * 9, (Call("read", {"number": 1}),), "Hm. " * 9))
    chunks = made.gemini("run").models.generate_content_stream(model="gemini-3-pro-preview", contents="Hello.")
    parts = pieces(chunks)
    assert len(parts) > 4
    with made.memory("run") as memory:
        step = memory.steps[-1]
        usage = memory.requests()[-1].usage
    reading = made.provider.received[-1].reading
    assert (usage.input, usage.cache_read) == (reading.tokens, reading.cached)
    assert [part.text for part in step.content] == ["Hm. " * 9, "Hello. " * 9]
    assert step.tool_calls[0].id == parts[-2].function_call.id
