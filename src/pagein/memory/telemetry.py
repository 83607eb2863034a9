"""Spans and metrics of a run for OpenTelemetry: its turns, what leaves the view, what comes back, summaries, searches.

``TracedRuntime`` traces a turn where its effects are performed, so that no operation knows of it. The application sets up the
SDK and its exporters. Names are those of the conventions for generative AI where there are any, else begin with pagein.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from pagein._common.version import __version__
from pagein.context.view.view import View
from pagein.errors import ConfigurationError
from pagein.events.callbacks import PrefixBreak
from pagein.events.entries import Body, Compaction
from pagein.events.handles import range_handle
from pagein.events.steps import as_text
from pagein.log.base import Entry, Log, StoredLog
from pagein.memory._runtime import MemoryRuntime, OpenedRun
from pagein.memory._state import RunState
from pagein.memory.options import Options

try:
    from opentelemetry import metrics, trace
except ImportError as error:  # pragma: no cover - a test hides the package
    raise ConfigurationError("telemetry needs opentelemetry-api: pip install 'pagein[otel]'") from error

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from pagein.search.base import Hit, Query
    from pagein.summaries.job import JobOutcome, SummaryJob

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

P = ParamSpec("P")
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


class TracedRuntime(MemoryRuntime):
    """A MemoryRuntime that traces its run. ``telemetry="content"`` also tells what was searched for and what came back."""

    def __init__(
        self, source: Log | OpenedRun, options: Options, wrap_log: Callable[[StoredLog], StoredLog] = lambda log: log
    ) -> None:
        super().__init__(source, options, wrap_log)
        self._has_content = options.get("telemetry") == "content"
        self._tracer = trace.get_tracer("pagein", __version__, schema_url=SCHEMA_URL)
        meter = metrics.get_meter("pagein", __version__, schema_url=SCHEMA_URL)
        self._event_counter = meter.create_counter(
            "pagein.events", "{event}", "Compactions, page-ins, prefix breaks, summaries, searches."
        )
        self._summary_began: int | None = None
        self._turn_events: list[TurnEvent] = []

    def run_turn(self, operation: Callable[Concatenate[RunState, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a turn. Its span, and one for each event within it, are made when it has ended."""
        name = operation.__name__
        if name in _UNTRACED:
            return super().run_turn(operation, *args, **kwargs)
        outer, self._turn_events = self._turn_events, []  # a callback may take a turn within one
        start, earlier, events = time.time_ns(), self.state.page_in.in_last_view, self._turn_events
        values: dict[str, Any] = {"turn": name}
        try:
            result = super().run_turn(operation, *args, **kwargs)
        except BaseException as error:
            self._tell(TurnEvent("pagein.turn", values, start, time.time_ns(), error), events)
            raise
        finally:
            self._turn_events = outer
        if isinstance(result, View):
            values |= {"tokens": result.tokens, "limit": result.limit}
            events += self._page_ins(result, earlier)
        if events or name != _RECORDING:
            self._tell(TurnEvent("pagein.turn", values, start, time.time_ns()), events)
        return result

    def append(self, bodies: tuple[Body, ...], after: int) -> tuple[Entry, ...]:
        """See ``MemoryRuntime.append``; each compaction is an event."""
        compactions = (_compaction_values(body) for body in bodies if isinstance(body, Compaction))
        with self._events("pagein.compaction", *compactions):
            return super().append(bodies, after)

    def recall(self, query: Query, *, across: bool = False) -> tuple[Hit, ...]:
        """See ``MemoryRuntime.recall``; a search is an event."""
        values: dict[str, Any] = {
            "operation": "search_memory", "store": self._session, "query": query.text if self._has_content else None,
        }  # fmt: skip
        with self._events("search_memory", values):
            hits = super().recall(query, across=across)
            values["hits"] = len(hits)
        return hits

    def begin_job(self, job: SummaryJob) -> None:
        """See ``MemoryRuntime.begin_job``."""
        self._summary_began = time.time_ns()
        super().begin_job(job)

    def collect_job(self, timeout: float | None) -> JobOutcome | None:
        """See ``MemoryRuntime.collect_job``; the end of a job is an event, which began with the job."""
        try:
            outcome = super().collect_job(timeout)
        except BaseException as error:
            self._end_summary(0, error)
            raise
        if outcome is not None:
            self._end_summary(len(outcome.records), outcome.problem)
        return outcome

    def _end_summary(self, steps: int, problem: BaseException | None) -> None:
        now = time.time_ns()
        began, self._summary_began = self._summary_began or now, None
        self._turn_events.append(TurnEvent("pagein.summary", {"steps": steps}, began, now, problem))

    @contextmanager
    def _events(self, name: str, *events: dict[str, Any]) -> Iterator[None]:
        """Note events of one name, by their values, that begin and end with a block, and with its error."""
        start, error = time.time_ns(), None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            end = time.time_ns()
            self._turn_events += (TurnEvent(name, values, start, end, error) for values in events)

    def _page_ins(self, view: View, earlier: Sequence[Any]) -> Iterable[TurnEvent]:
        """The page-ins that a view is the first to show."""
        for page_in in self.state.page_in.in_last_view:
            if page_in not in earlier and page_in.entry in view.tail:
                text = as_text(page_in.entry.messages[0].content or "") if self._has_content else None
                values = {"tokens": page_in.entry.tokens, "entries": len(page_in.sources), "content": text}
                yield TurnEvent("pagein.page_in", values, now := time.time_ns(), now)

    def note_break(self, event: PrefixBreak) -> None:
        """Tell that a request's prefix broke, in the span that is current in the application; and note it."""
        values = {"cause": event.cause, "kept": event.kept, "rewritten": event.rewritten, "tokens": event.tokens}
        self._event_counter.add(1, {"event": "pagein.prefix_break"})
        self._tell(TurnEvent("pagein.prefix_break", values, now := time.time_ns(), now))
        super().note_break(event)

    def _tell(self, event: TurnEvent, within: Iterable[TurnEvent] = (), context: Context | None = None) -> None:
        """Make the span of a turn or an event, with those of the events within it."""
        run = {"session": self._session, "branch": self.branches.current}
        attributes = to_attributes(run | event.values)
        span = self._tracer.start_span(event.name, context, attributes=attributes, start_time=event.start)
        if event.error is not None:
            # The text of an error stays out: those of drivers and models may quote what was said.
            span.set_attributes(to_attributes({"error": type(event.error).__name__}))
            span.set_status(trace.StatusCode.ERROR, type(event.error).__name__)
        for inner in within:
            self._event_counter.add(1, {"event": inner.name})
            self._tell(inner, context=trace.set_span_in_context(span))
        span.end(event.end)

    @property
    def _session(self) -> str:
        return self.branches.root.session


def _compaction_values(body: Compaction) -> dict[str, Any]:
    ranges = [range_handle(by.first, by.last) for by in body.at_steps]
    return {
        "policy": body.policy, "reason": body.reason, "before": body.tokens_before, "tokens": body.tokens_after, "ranges": ranges,
        "steps": sum(by.last - by.first for by in body.at_steps),
    }  # fmt: skip
