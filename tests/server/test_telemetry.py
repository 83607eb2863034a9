"""OpenTelemetry: spans and metrics of turns, of what leaves and comes back, of searches and summaries; of the proxy's requests."""

import asyncio
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import get_args

import pytest

pytest.importorskip("opentelemetry.sdk")
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pagein import AgentMemory, AsyncAgentMemory, Observation
from pagein.errors import ConfigurationError, ProtocolError
from pagein.server.telemetry import PROVIDERS
from pagein.server.wire import ProtocolName
from pagein.testing.provider import ToolLoop
from pagein.testing.provider.agent import file_text
from pagein.testing.scripted_writer import ScriptedModel
from tests.server.sdk_agents import run_messages

pytestmark = pytest.mark.slow

SECRET = "the colour of the door is vermilion_42"


@pytest.fixture(scope="session")  # a process takes one provider, the first; the workers do not run a module in one go
def sdk():
    spans, reader, provider = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    return spans, reader


@pytest.fixture
def spans(sdk):
    sdk[0].clear()
    return sdk[0]


def messages(number):
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "read", "arguments": f'{{"path": "f{number}.py"}}'},
    }
    result = f"{SECRET}\n{file_text(number, 1_500)}"
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": f"c{number}", "content": result}]  # fmt: skip


def run(memory, turns=8):
    memory.record_messages([{"role": "user", "content": "Read every file."}], whole=False)
    for number in range(turns):
        memory.record_messages(messages(number), whole=False)
        memory.to_messages()
    memory.record_messages(
        [{"role": "user", "content": "Which value is lookup(41), value_1_10 or value_1_11?"}], whole=False
    )
    memory.recall("handler_0")
    memory.to_messages()


def by_name(spans):
    names = {}
    for span in spans.get_finished_spans():
        names.setdefault(span.name, []).append(span)
    return names


def test_a_run_has_spans_for_turns_and_for_what_leaves_and_comes_back(sdk, spans):
    with AgentMemory.open(":memory:", session="a run", budget=2_500, telemetry="on") as memory:
        run(memory)
        view = memory.view()
    found = by_name(spans)
    assert {"pagein.turn", "pagein.compaction", "pagein.page_in", "search_memory"} <= found.keys()
    turns = {span.context.span_id: span for span in found["pagein.turn"]}
    assert {span.attributes["pagein.turn"] for span in turns.values()} == {"make_filtered_view", "make_view", "recall"}
    assert len(turns) == 11, "one for each view and search, none for what was only recorded"
    for name in ("pagein.compaction", "pagein.page_in", "search_memory"):
        for span in found[name]:
            assert span.parent.span_id in turns
            assert span.attributes["gen_ai.conversation.id"] == "a run"
    compaction = found["pagein.compaction"][0].attributes
    assert compaction["pagein.tokens"] < compaction["pagein.tokens_before"]
    assert compaction["pagein.ranges"]
    assert found["pagein.turn"][-1].attributes["pagein.tokens"] == view.tokens
    assert found["search_memory"][0].attributes["gen_ai.memory.record.count"] > 0
    assert all(
        span.instrumentation_scope.schema_url.startswith("https://opentelemetry.io/schemas/")
        for span in found["pagein.turn"]
    )
    told = "".join(span.to_json() for span in spans.get_finished_spans())
    assert "vermilion" not in told
    assert "handler_0" not in told
    data = json.loads(sdk[1].get_metrics_data().to_json())
    metered = {metric["name"] for scope in data["resource_metrics"][0]["scope_metrics"] for metric in scope["metrics"]}
    assert "pagein.events" in metered


def test_a_summary_has_a_span_from_its_begin_on(spans):
    with AgentMemory.open(":memory:", budget=8_000, summarizer=ScriptedModel(), telemetry="on") as memory:
        run(memory, 20)
        memory.compact(wait=True)
    summaries = by_name(spans)["pagein.summary"]
    assert summaries[0].attributes["pagein.steps"] > 0
    assert all(span.start_time < span.end_time for span in summaries)


def test_content_is_told_on_request_alone(spans):
    with AgentMemory.open(":memory:", budget=2_500, telemetry="content") as memory:
        run(memory)
    found = by_name(spans)
    assert found["search_memory"][0].attributes["gen_ai.retrieval.query.text"] == "handler_0"
    assert any("value_" in span.attributes["pagein.content"] for span in found["pagein.page_in"])


def test_a_failure_is_told_by_its_kind(spans):
    with AgentMemory.open(":memory:", budget=400, telemetry="on") as memory:
        memory.record_messages([{"role": "user", "content": f"{SECRET} " * 400}], whole=False)
        with pytest.raises(Exception, match="tokens"):
            memory.to_messages()
    (failed,) = (span for span in spans.get_finished_spans() if not span.status.is_ok and span.status.description)
    assert failed.attributes["error.type"] == "OverBudget"
    assert "vermilion" not in failed.to_json()


def test_recording_is_told_where_it_fails_or_changes_the_view(spans):
    with AgentMemory.open(":memory:", telemetry="on") as memory:
        asked, answered = "Which port is it?", {"role": "assistant", "content": "8080."}
        memory.record_messages([{"role": "user", "content": f"<context>\n{SECRET}\n</context>\n\n{asked}"}])
        memory.record_messages([{"role": "user", "content": asked}, answered])
        with pytest.raises(ProtocolError):
            memory.record(Observation("nothing", SECRET))
    compaction, turn, failed = spans.get_finished_spans()
    assert (failed.name, failed.attributes["pagein.turn"]) == ("pagein.turn", "record")
    assert failed.attributes["error.type"] == "ProtocolError"
    assert (compaction.name, compaction.attributes["pagein.reason"]) == ("pagein.compaction", "the list")
    assert compaction.parent.span_id == turn.context.span_id
    assert turn.attributes["pagein.turn"] == "record"


def test_an_async_memory_has_the_same_spans(spans):
    with AgentMemory.open(":memory:", session="s", budget=2_500, telemetry="on") as memory:
        memory.record_messages([{"role": "user", "content": "Go."}], whole=False)
        for number in range(8):
            memory.record_messages(messages(number), whole=False)
            memory.to_messages()
    expected = [span.name for span in spans.get_finished_spans()]
    spans.clear()

    async def run_async():
        async with await AsyncAgentMemory.open(":memory:", session="s", budget=2_500, telemetry="on") as memory:
            await memory.record_messages([{"role": "user", "content": "Go."}], whole=False)
            for number in range(8):
                await memory.record_messages(messages(number), whole=False)
                await memory.to_messages()

    asyncio.run(run_async())
    assert [span.name for span in spans.get_finished_spans()] == expected


def test_a_real_receiver_gets_the_spans(spans):
    bodies = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with AgentMemory.open(":memory:", session="sent", telemetry="on") as memory:
            memory.view()
        exporter = OTLPSpanExporter(f"http://127.0.0.1:{server.server_port}/v1/traces")
        exporter.export(spans.get_finished_spans())
        exporter.shutdown()
        server.shutdown()
        thread.join()
    assert {path for path, _ in bodies} == {"/v1/traces"}
    request = ExportTraceServiceRequest.FromString(bodies[0][1])
    (scope,) = request.resource_spans[0].scope_spans
    assert (scope.scope.name, scope.spans[0].name) == ("pagein", "pagein.turn")


def test_without_the_package_there_is_one_clear_error():
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from pagein import AgentMemory\n"
        "AgentMemory.open(':memory:').close()\n"
        "AgentMemory.open(':memory:', telemetry='on')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'pagein[otel]'" in done.stderr.splitlines()[-1]
    with pytest.raises(ConfigurationError, match="telemetry is off, on, content"):
        AgentMemory.open(":memory:", telemetry="yes")


def test_a_request_through_the_proxy_is_in_the_trace_of_its_client(stack, spans):
    made = stack(ToolLoop(6), window=3_000, options={"telemetry": "on"})
    trace_id, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    body = {"model": "claude-opus-4-8", "max_tokens": 100, "messages": [{"role": "user", "content": "Go."}]}
    head = {"x-pagein-run": "a run", "x-api-key": "sk-ant-secret", "traceparent": f"00-{trace_id}-{parent}-01"}
    with made.http() as client:
        client.post("/v1/messages", json=body, headers=head).raise_for_status()
    found = by_name(spans)
    for span in (*found["chat claude-opus-4-8"], *found["pagein.turn"]):
        assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (trace_id, parent), span.name
    spans.clear()
    run_messages(made.claude("a run"), stream=True, size=800)
    found = by_name(spans)
    told = found["chat claude-opus-4-8"][-1].attributes
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.provider.name"] == "anthropic"
    assert told["gen_ai.conversation.id"].startswith("a run")
    assert told["gen_ai.usage.input_tokens"] > 0
    assert told["gen_ai.response.time_to_first_chunk"] >= 0
    assert found["pagein.compaction"]
    everything = "".join(span.to_json() for span in spans.get_finished_spans())
    assert "sk-ant-secret" not in everything


def test_each_protocol_has_a_provider():
    assert set(PROVIDERS) == set(get_args(ProtocolName))
