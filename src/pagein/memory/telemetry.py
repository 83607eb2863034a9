"""Spans and metrics of a run for OpenTelemetry: its turns, what leaves the view, what comes back, summaries, searches.

A turn is traced where its effects pass, so that no operation knows of it, sync or async. The application sets up the
SDK and its exporters. Names are those of the conventions for generative AI where there are any, else begin with pagein.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pagein._common.version import __version__
from pagein.context.view.view import View
from pagein.errors import ConfigurationError
from pagein.events.callbacks import PrefixBreak
from pagein.events.entries import Compaction
from pagein.events.handles import range_handle
from pagein.events.steps import as_text
from pagein.memory._effects import AnyEffect, Append, BeginJob, CollectJob, Flow, Recall

try:
    from opentelemetry import metrics, trace
except ImportError as error:  # pragma: no cover - a test hides the package
    raise ConfigurationError("telemetry needs opentelemetry-api: pip install 'pagein[otel]'") from error

if TYPE_CHECKING:
    from pagein.memory._runtime import MemoryRuntime
    from pagein.memory.options import TelemetryMode

SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
"""The schema of the names that are not pagein's own."""

NAMES: Mapping[str, str] = {
    "session": "gen_ai.conversation.id", "operation": "gen_ai.operation.name", "store": "gen_ai.memory.store.id",
    "hits": "gen_ai.memory.record.count", "query": "gen_ai.retrieval.query.text", "model": "gen_ai.request.model",
    "provider": "gen_ai.provider.name", "input": "gen_ai.usage.input_tokens", "output": "gen_ai.usage.output_tokens",
    "cache_read": "gen_ai.usage.cache_read.input_tokens", "error": "error.type",
    "cache_written": "gen_ai.usage.cache_creation.input_tokens", "first": "gen_ai.response.time_to_first_chunk",
    "turn": "pagein.turn", "branch": "pagein.branch", "tokens": "pagein.tokens", "limit": "pagein.limit",
    "before": "pagein.tokens_before", "policy": "pagein.policy", "reason": "pagein.reason", "steps": "pagein.steps",
    "cause": "pagein.cause", "kept": "pagein.kept", "rewritten": "pagein.rewritten", "content": "pagein.content", "ranges": "pagein.ranges", "entries": "pagein.entries", "outcome": "pagein.outcome",
}  # fmt: skip
"""Every attribute, by what it is called here."""

_UNTRACED = ("catch_up", "reload", "ledger", "do_nothing")
"""Operations that look whether there is anything to do."""

T = TypeVar("T")


def to_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes under their names in the conventions; without those that are None."""
    return {NAMES[key]: value for key, value in values.items() if value is not None}


class Telemetry:
    """Traces one run. ``mode`` "content" also tells what was searched for and what came back."""

    def __init__(self, runtime: MemoryRuntime, mode: TelemetryMode) -> None:
        self._runtime, self._has_content = runtime, mode == "content"
        self._tracer = trace.get_tracer("pagein", __version__, schema_url=SCHEMA_URL)
        meter = metrics.get_meter("pagein", __version__, schema_url=SCHEMA_URL)
        self._turns = meter.create_histogram("pagein.turn.duration", "s", "Time of a turn of a memory.")
        self._tokens = meter.create_histogram("pagein.view.tokens", "{token}", "Tokens of a view.")
        self._events = meter.create_counter(
            "pagein.events", "{event}", "Compactions, page-ins, prefix breaks, summaries, searches."
        )
        self._summary_began: int | None = None

    def trace_turn(self, name: str, turn: Flow[T]) -> Flow[T]:
        """Run a turn within a span, with a span for each effect that is reported."""
        if name in _UNTRACED:
            return (yield from turn)
        began = time.perf_counter()
        shown = self._runtime.state.page_in.in_last_view
        span = self._tracer.start_span("pagein.turn", attributes=self._run_values() | to_attributes({"turn": name}))
        context = trace.set_span_in_context(span)
        try:
            result = yield from self._follow(turn, context)
        except BaseException as error:
            _fail(span, error)
            raise
        else:
            if isinstance(result, View):
                self._tell_view(result, span, context, shown)
            return result
        finally:
            span.end()
            self._turns.record(time.perf_counter() - began, to_attributes({"turn": name}))

    def _follow(self, turn: Flow[T], context: Any) -> Flow[T]:
        try:
            effect = next(turn)
            while True:
                start = time.time_ns()
                try:
                    result = yield effect
                except BaseException as error:  # noqa: BLE001 - it belongs inside the turn
                    self._tell_effect(effect, error, start, context)
                    effect = turn.throw(error)
                else:
                    self._tell_effect(effect, result, start, context)
                    effect = turn.send(result)
        except StopIteration as end:
            return cast(T, end.value)
        finally:
            turn.close()

    def _tell_effect(self, effect: AnyEffect, result: Any, start: int, context: Any) -> None:
        match effect:
            case Append(bodies=bodies):
                for body in bodies:
                    if isinstance(body, Compaction):
                        self._emit("pagein.compaction", _compaction_values(body), start, context, result)
            case Recall(query=query):
                hits = None if isinstance(result, BaseException) else len(result)
                values = {"operation": "search_memory", "store": self._session, "hits": hits}
                text = query.text if self._has_content else None
                self._emit("search_memory", values | {"query": text}, start, context, result)
            case BeginJob():
                self._summary_began = start
            case CollectJob() if result is not None:
                problem = result if isinstance(result, BaseException) else result.problem
                steps = 0 if isinstance(result, BaseException) else len(result.records)
                began, self._summary_began = self._summary_began or start, None
                self._emit("pagein.summary", {"steps": steps}, began, context, problem)
            case _:
                pass

    def _tell_view(self, view: View, span: trace.Span, context: Any, shown: Sequence[Any]) -> None:
        span.set_attributes(
            to_attributes({"tokens": view.tokens, "limit": view.limit, "entries": len(view.request_entries)})
        )
        self._tokens.record(view.tokens)
        for page_in in self._runtime.state.page_in.in_last_view:
            if page_in not in shown and page_in.entry in view.tail:
                text = as_text(page_in.entry.messages[0].content or "") if self._has_content else None
                values = {"tokens": page_in.entry.tokens, "entries": len(page_in.sources), "content": text}
                self._emit("pagein.page_in", values, time.time_ns(), context, None)

    def tell_break(self, event: PrefixBreak) -> None:
        """Tell that a request's prefix broke, in the span that is current in the application."""
        values = {"cause": event.cause, "kept": event.kept, "rewritten": event.rewritten, "tokens": event.tokens}
        self._emit("pagein.prefix_break", values, time.time_ns(), None, None)

    def _emit(self, name: str, values: Mapping[str, Any], start: int, context: Any, result: Any) -> None:
        span = self._tracer.start_span(
            name, context, attributes=self._run_values() | to_attributes(values), start_time=start
        )
        if isinstance(result, BaseException):
            _fail(span, result)
        span.end()
        self._events.add(1, {"event": name})

    @property
    def _session(self) -> str:
        return self._runtime.branches.root.session

    def _run_values(self) -> dict[str, Any]:
        return to_attributes({"session": self._session, "branch": self._runtime.branches.current})


def _compaction_values(body: Compaction) -> dict[str, Any]:
    ranges = [range_handle(by.first, by.last) for by in body.at_steps]
    return {
        "policy": body.policy, "reason": body.reason, "before": body.tokens_before, "tokens": body.tokens_after, "ranges": ranges,
        "steps": sum(by.last - by.first for by in body.at_steps),
    }  # fmt: skip


def _fail(span: trace.Span, error: BaseException) -> None:
    """Mark a span as failed. Its text stays out: errors of drivers and models may quote what was said."""
    span.set_attributes(to_attributes({"error": type(error).__name__}))
    span.set_status(trace.StatusCode.ERROR, type(error).__name__)
