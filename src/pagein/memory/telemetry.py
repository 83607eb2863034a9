"""Spans and metrics of a run for OpenTelemetry: its turns, what leaves the view, what comes back, summaries, searches.

A turn is traced where its effects are performed, so that no operation knows of it. The application sets up the
SDK and its exporters. Names are those of the conventions for generative AI where there are any, else begin with pagein.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pagein._common.flows import drive
from pagein._common.version import __version__
from pagein.context.view.view import View
from pagein.errors import ConfigurationError
from pagein.events.callbacks import PrefixBreak
from pagein.events.entries import Compaction
from pagein.events.handles import range_handle
from pagein.events.steps import as_text
from pagein.memory._effects import AnyEffect, Append, BeginJob, Call, CollectJob, Flow, Recall

try:
    from opentelemetry import metrics, trace
except ImportError as error:  # pragma: no cover - a test hides the package
    raise ConfigurationError("telemetry needs opentelemetry-api: pip install 'pagein[otel]'") from error

if TYPE_CHECKING:
    from opentelemetry.context import Context

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

_RECORDING = "record"
"""The operation beside every request. It has a span where it fails or changes the view: one is 4 % of a turn's processor time."""

T = TypeVar("T")


def to_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes under their names in the conventions; without those that are None."""
    return {NAMES[key]: value for key, value in values.items() if value is not None}


class TurnEvent(NamedTuple):
    """A turn, or an event within one: when it began in nanoseconds, when it ended, and the error that it ended with."""

    name: str
    values: dict[str, Any]
    start: int
    end: int
    error: BaseException | None = None


class Telemetry:
    """Traces one run. ``mode`` "content" also tells what was searched for and what came back."""

    def __init__(self, runtime: MemoryRuntime, mode: TelemetryMode) -> None:
        self._runtime, self._has_content = runtime, mode == "content"
        self._tracer = trace.get_tracer("pagein", __version__, schema_url=SCHEMA_URL)
        meter = metrics.get_meter("pagein", __version__, schema_url=SCHEMA_URL)
        self._events = meter.create_counter(
            "pagein.events", "{event}", "Compactions, page-ins, prefix breaks, summaries, searches."
        )
        self._summary_began: int | None = None

    def trace_turn(self, name: str, turn: Flow[T]) -> T:
        """Run a turn. Its span, and one for each event within it, are made when it has ended."""
        if name in _UNTRACED:
            return drive(turn, self._runtime.perform)
        start, shown, events = time.time_ns(), self._runtime.state.page_in.in_last_view, list[TurnEvent]()
        try:
            result = drive(turn, lambda effect: self._perform(effect, events))
        except BaseException as error:
            self._tell(TurnEvent("pagein.turn", {"turn": name}, start, time.time_ns(), error), events)
            raise
        values: dict[str, Any] = {"turn": name}
        if isinstance(result, View):
            values |= {"tokens": result.tokens, "limit": result.limit}
            events += self._page_ins(result, shown)
        if events or name != _RECORDING:
            self._tell(TurnEvent("pagein.turn", values, start, time.time_ns()), events)
        return result

    def _perform(self, effect: AnyEffect, events: list[TurnEvent]) -> Any:
        """Perform an effect, and note it where it is an event."""
        start = time.time_ns()
        try:
            result = self._runtime.perform(effect)
        except BaseException as error:
            events += self._effect_events(effect, None, start, error)
            raise
        if not isinstance(effect, Call):  # nearly all are, and none of them is an event
            events += self._effect_events(effect, result, start, None)
        return result

    def _effect_events(
        self, effect: AnyEffect, result: Any, start: int, error: BaseException | None
    ) -> Iterable[TurnEvent]:
        match effect:
            case Append(bodies=bodies):
                for body in bodies:
                    if isinstance(body, Compaction):
                        yield TurnEvent("pagein.compaction", _compaction_values(body), start, time.time_ns(), error)
            case Recall(query=query):
                values = {
                    "operation": "search_memory", "store": self._session, "hits": None if error else len(result),
                    "query": query.text if self._has_content else None,
                }  # fmt: skip
                yield TurnEvent("search_memory", values, start, time.time_ns(), error)
            case BeginJob():
                self._summary_began = start
            case CollectJob() if error is not None or result is not None:
                steps, problem = (0, error) if error else (len(result.records), result.problem)
                began, self._summary_began = self._summary_began or start, None
                yield TurnEvent("pagein.summary", {"steps": steps}, began, time.time_ns(), problem)
            case _:
                pass

    def _page_ins(self, view: View, shown: Sequence[Any]) -> Iterable[TurnEvent]:
        """The page-ins that a view is the first to show."""
        for page_in in self._runtime.state.page_in.in_last_view:
            if page_in not in shown and page_in.entry in view.tail:
                text = as_text(page_in.entry.messages[0].content or "") if self._has_content else None
                values = {"tokens": page_in.entry.tokens, "entries": len(page_in.sources), "content": text}
                yield TurnEvent("pagein.page_in", values, now := time.time_ns(), now)

    def tell_break(self, event: PrefixBreak) -> None:
        """Tell that a request's prefix broke, in the span that is current in the application."""
        values = {"cause": event.cause, "kept": event.kept, "rewritten": event.rewritten, "tokens": event.tokens}
        self._events.add(1, {"event": "pagein.prefix_break"})
        self._tell(TurnEvent("pagein.prefix_break", values, now := time.time_ns(), now))

    def _tell(self, event: TurnEvent, within: Iterable[TurnEvent] = (), context: Context | None = None) -> None:
        """Make the span of a turn or an event, with those of the events within it."""
        run = {"session": self._session, "branch": self._runtime.branches.current}
        attributes = to_attributes(run | event.values)
        span = self._tracer.start_span(event.name, context, attributes=attributes, start_time=event.start)
        if event.error is not None:
            # The text of an error stays out: those of drivers and models may quote what was said.
            span.set_attributes(to_attributes({"error": type(event.error).__name__}))
            span.set_status(trace.StatusCode.ERROR, type(event.error).__name__)
        for inner in within:
            self._events.add(1, {"event": inner.name})
            self._tell(inner, context=trace.set_span_in_context(span))
        span.end(event.end)

    @property
    def _session(self) -> str:
        return self._runtime.branches.root.session


def _compaction_values(body: Compaction) -> dict[str, Any]:
    ranges = [range_handle(by.first, by.last) for by in body.at_steps]
    return {
        "policy": body.policy, "reason": body.reason, "before": body.tokens_before, "tokens": body.tokens_after, "ranges": ranges,
        "steps": sum(by.last - by.first for by in body.at_steps),
    }  # fmt: skip
