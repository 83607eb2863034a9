"""A span for each request to a model that the proxy forwards, in the trace of its client."""

from __future__ import annotations

import time
from collections.abc import Mapping

from opentelemetry import context, metrics, propagate, trace

from pagein._common.version import __version__
from pagein.errors import PageinError
from pagein.memory.requests import read_request_usage
from pagein.memory.telemetry import SCHEMA_URL, to_attributes
from pagein.server.runs import Outcome, PreparedView, RunRequest

PROVIDERS: Mapping[str, str] = {
    "messages": "anthropic", "chat": "openai", "responses": "openai", "gemini": "gcp.gemini",
}  # fmt: skip
"""The provider that a protocol is of; what an upstream calls itself is not known."""


class ChatTelemetry:
    """Tells of the requests to models."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("pagein", __version__, schema_url=SCHEMA_URL)
        meter = metrics.get_meter("pagein", __version__, schema_url=SCHEMA_URL)
        self._durations = meter.create_histogram("gen_ai.client.operation.duration", "s", "Time of a request.")
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of a request.")

    def join_trace(self, headers: Mapping[str, str]) -> None:
        """Have all that this task does in the trace that its client began."""
        context.attach(propagate.extract(headers))

    def tell(self, request: RunRequest, prepared: PreparedView, outcome: Outcome) -> None:
        """Tell of a request that ended just now."""
        kind = {"operation": "chat", "provider": PROVIDERS[request.protocol.name], "model": request.model}
        whole, end = outcome.seconds.get("whole", 0.0), time.time_ns()
        values = {
            **kind, "session": prepared.place.lineage.session, "branch": prepared.place.lineage.branch,
            "tokens": prepared.tokens, "limit": prepared.limit, "outcome": outcome.word, "first": outcome.seconds.get("first"),
        }  # fmt: skip
        try:
            usage = None if outcome.usage is None else read_request_usage(outcome.usage)
        except PageinError:
            usage = None
        if usage is not None:
            values |= {
                "input": usage.input, "output": usage.output, "cache_read": usage.cache_read, "cache_written": usage.cache_written,
            }  # fmt: skip
            self._tokens.record(usage.input, to_attributes(kind) | {"gen_ai.token.type": "input"})
            self._tokens.record(usage.output, to_attributes(kind) | {"gen_ai.token.type": "output"})
        self._durations.record(whole, to_attributes(kind))
        start = end - int(whole * 1e9)
        span = self._tracer.start_span(
            f"chat {request.model}", kind=trace.SpanKind.CLIENT, attributes=to_attributes(values), start_time=start
        )
        if outcome.word != "answered":
            span.set_attributes(to_attributes({"error": outcome.word}))
            span.set_status(trace.StatusCode.ERROR, outcome.word)
        span.end(end)
