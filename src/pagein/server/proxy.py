"""The proxy: one request to a model, from its client to its upstream and back.

What is new is recorded before the request is forwarded, and the answer before its last event is relayed. Where pagein
itself fails before that, the client's own request is forwarded, and counted.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx2

from pagein._common.cancellation import finish_first
from pagein.errors import OverBudget, PageinError
from pagein.formats.parsing import parse_usage
from pagein.models.environment import redact_keys
from pagein.models.overflow import detect_overflow
from pagein.server import http
from pagein.server.answers import AnswerReader, new_reader, read_whole_answer
from pagein.server.budgets import WindowTable, reserved_output
from pagein.server.cache_markers import place_markers
from pagein.server.clients import compaction_point
from pagein.server.events import ArraySplitter, EventSplitter, StreamEvent
from pagein.server.forward import describe_failure, open_upstream
from pagein.server.locks import KeyedLocks
from pagein.server.metrics import Metrics
from pagein.server.naming import RUN_HEADER, is_side_request, name_run
from pagein.server.runs import KnownBy, Outcome, PreparedView, RunRequest, Runs, name_by_content
from pagein.server.settings import ServerSettings
from pagein.server.wire import (
    MESSAGES,
    Endpoint,
    WireProtocol,
    error_body,
    find_rows,
    is_rest_asked,
    overflow_error,
    reason_to_observe,
)

if TYPE_CHECKING:
    from pagein.server.telemetry import ChatTelemetry

T = TypeVar("T")
logger = logging.getLogger("pagein.server")

OVERFLOW_ATTEMPTS = 2
"""Times that a smaller view is sent after the provider called one too long."""

PRELUDE_SECONDS = 5.0
"""Time for which the beginning of a stream is held, in which a request may turn out too long: then its client waits for a sign of life."""

OPENAI_HOST, ANTHROPIC_HOST = "api.openai.com", "api.anthropic.com"

_OVERFLOW_STATUSES = (200, 400, 413, 422)
_HELD_CODINGS = (b"accept-encoding", b"content-encoding")


class ServerBusy(Exception):
    """More requests wait for their plan than are let in."""


@dataclass(frozen=True, slots=True)
class Forwarding:
    """What is forwarded: a body, and what is said of it. ``prepared`` is None where nothing was recorded."""

    endpoint: Endpoint
    body: bytes
    note: str
    request: RunRequest | None = None
    prepared: PreparedView | None = None
    is_view: bool = False
    """True if the messages are a view in the place of the client's own."""

    @property
    def protocol(self) -> WireProtocol:
        """The protocol of the request and its answer."""
        return self.endpoint.protocol


class Proxy:
    """Forwards requests to models with views in the place of their histories."""

    def __init__(
        self, settings: ServerSettings, runs: Runs, windows: WindowTable, client: httpx2.AsyncClient, metrics: Metrics
    ) -> None:
        self._settings, self._runs, self._windows, self._client = settings, runs, windows, client
        self._metrics = metrics
        self._telemetry = _open_telemetry(settings)
        self._locks = KeyedLocks()
        self._threads = ThreadPoolExecutor(settings.limits.threads, "pagein-view")
        self._waiting = 0

    # Requests to models

    async def handle(
        self, endpoint: Endpoint, tenant: str, scope: http.Scope, receive: http.Receive, send: http.Send
    ) -> None:
        """Answer one request to a model, or to count one; refuse what is too large, or more than can wait."""
        limit = self._settings.limits.body_bytes
        work = self._count if endpoint.is_count else self._handle
        try:
            incoming = await http.read_incoming(scope, receive, limit)
            await http.run_until_hangup(receive, work(endpoint, tenant, incoming, send))
        except http.ClientGone:
            self._metrics.count("hangups")
        except http.TooLarge:
            self._metrics.count("refused", "too large")
            body = error_body(endpoint.protocol, 413, f"the request is over {limit} bytes")
            await http.send_json(send, 413, body)
        except ServerBusy:
            self._metrics.count("refused", "busy")
            text = error_body(endpoint.protocol, 503, "pagein is busy; ask again")
            await http.send_json(send, 503, text, retry_after="1")

    async def _handle(self, endpoint: Endpoint, tenant: str, incoming: http.Incoming, send: http.Send) -> None:
        started = time.monotonic()
        if self._telemetry is not None:
            self._telemetry.join_trace(incoming.headers)
        try:
            with self._let_in():
                plan = await self._plan(endpoint, tenant, incoming)
        except OverBudget as error:
            self._metrics.count("requests", "over budget")
            body = overflow_error(endpoint.protocol, str(error), error.needed, error.limit)
            await http.send_json(send, 400, body, **{http.OWN_HEADER: "over-budget"})
            return
        except _Refusal as refusal:
            await http.send_json(
                send, 502, error_body(endpoint.protocol, 502, str(refusal)), **{http.OWN_HEADER: "failed"}
            )
            return
        self._metrics.observe_added(time.monotonic() - started)
        self._metrics.count("requests", plan.note.partition(";")[0])
        if plan.prepared is not None:
            self._metrics.add_request(plan.prepared.place.lineage.session, plan.prepared.tokens, is_view=plan.is_view)
        reading = asyncio.create_task(self._read_ahead(plan))
        try:
            for attempt in range(OVERFLOW_ATTEMPTS + 1):
                smaller = await self._exchange(incoming, plan, send, may_retry=attempt < OVERFLOW_ATTEMPTS)
                if smaller is None:
                    return
                plan = smaller
        finally:
            if plan.prepared is not None:
                self._runs.end_request(plan.prepared)
            await reading

    async def _read_ahead(self, plan: Forwarding) -> None:
        """Do what the next request of the run would wait for, while this one's answer is awaited. A failure is no request's."""
        request, prepared = plan.request, plan.prepared
        if request is not None and prepared is not None and prepared.limit:
            with suppress(PageinError):
                await self._in_thread(request.key, lambda: self._runs.read_ahead(request, prepared.place))

    async def _count(self, endpoint: Endpoint, tenant: str, incoming: http.Incoming, send: http.Send) -> None:
        """Ask the upstream for the tokens of a request's view; nothing is recorded."""
        plan = Forwarding(endpoint, incoming.raw, "passed")
        if self._settings.mode == "view":
            try:
                with self._let_in():
                    request = await self._in_thread(None, lambda: self._read_request(endpoint, tenant, incoming))
                    plan = plan if isinstance(request, str) else await self._plan_preview(plan, request, "count; view")
            except (ServerBusy, http.TooLarge):
                raise
            except Exception as error:  # noqa: BLE001 - the client's own is counted, whatever is wrong here
                self._metrics.count("failures", type(error).__name__)
        await self._exchange(incoming, plan, send, may_retry=False)

    async def _plan_preview(self, plan: Forwarding, request: RunRequest, note: str) -> Forwarding:
        """The plan with the view in the place of the messages, where they have another; nothing is recorded."""
        rows = await self._in_thread(request.key, lambda: self._runs.preview(request))
        if rows is None:
            return plan
        body = json.dumps({**request.body, request.protocol.rows_key: rows}, ensure_ascii=False)
        return replace(plan, body=body.encode("utf-8", "surrogatepass"), note=note, is_view=True)

    # Before forwarding

    async def _plan(self, endpoint: Endpoint, tenant: str, incoming: http.Incoming) -> Forwarding:
        """Decide what is forwarded; where pagein fails, the request as it came. Raises OverBudget, _Refusal."""
        original = Forwarding(endpoint, incoming.raw, "")
        if self._settings.mode == "off":
            return replace(original, note="off")
        try:
            request = await self._in_thread(None, lambda: self._read_request(endpoint, tenant, incoming))
            if isinstance(request, str):
                return replace(original, note=f"bypass; reason={quote(request)}")
            if request.is_side:
                plan = replace(original, note="side")
                return await self._plan_preview(plan, request, "side; view") if self._settings.mode == "view" else plan
            reason = reason_to_observe(request.protocol, request.body)
            prepared = await self._prepare(request, is_view=self._settings.mode == "view" and not reason)
            if prepared is None:
                return replace(original, note="bypass; reason=unknown%20previous%20response")
            return self._plan_view(original, request, prepared, reason if self._settings.mode == "view" else "")
        except (OverBudget, http.TooLarge):
            raise
        except Exception as error:  # noqa: BLE001 - the client's run goes on, whatever is wrong here
            return self._plan_failure(original, error)

    def _plan_failure(self, original: Forwarding, error: Exception) -> Forwarding:
        kind = type(error).__name__
        self._metrics.count("failures", kind)
        message = redact_keys(str(error))[:300] if isinstance(error, PageinError) else kind
        done = "not forwarded" if self._settings.strict else "forwarded as it came"
        logger.warning("a request is %s: %s: %s", done, kind, message)
        if self._settings.strict:
            raise _Refusal(f"pagein failed before forwarding ({kind}), and --strict forwards nothing then") from None
        return replace(original, note=f"bypass; reason={quote(kind)}")

    def _read_request(self, endpoint: Endpoint, tenant: str, incoming: http.Incoming) -> RunRequest | str:
        """The request as its run needs it, or the reason why it has none."""
        limit = self._settings.limits.body_bytes
        headers, protocol = incoming.headers, endpoint.protocol
        try:
            body = http.parse_object(http.unpack(incoming.raw, headers.get("content-encoding", ""), limit))
        except http.Unpackable:
            return "unreadable encoding"
        if body is None:
            return "no JSON object"
        rows = find_rows(protocol, body)
        if rows is None:
            return "no messages"
        name = name_run(headers, body)
        upstream = self._settings.upstream_of(incoming.path)[0]
        known_by: KnownBy = "name" if name and not name.startswith("key:") else "content"
        if known_by == "content" and (known := self._runs.name_by_calls(tenant, rows)) and name in ("", known):
            name, known_by = known, "call"
        name = name or name_by_content(protocol, rows)
        is_side = not headers.get(RUN_HEADER) and is_side_request(protocol, name, headers, body, rows)
        compacts_at = compaction_point(headers.get("user-agent", ""))
        model = str(body.get("model") or endpoint.model)
        return RunRequest(
            tenant, name, upstream, protocol, body, rows, len(incoming.raw), known_by, compacts_at, is_side, model
        )

    async def _prepare(self, request: RunRequest, *, is_view: bool) -> PreparedView | None:
        """Record the request and make its view; None for one that goes on from a response that is not known."""
        response_id = request.body.get("previous_response_id")
        if response_id:
            known = self._runs.find_response(request.tenant, str(response_id))
            if known is None or not is_view:
                return None
            named, place = replace(request, name=known[0]), known[1]
            return await self._in_thread(named.key, lambda: self._runs.prepare_behind(named, place))
        return await self._in_thread(request.key, lambda: self._runs.prepare(request, with_view=is_view))

    def _plan_view(self, original: Forwarding, request: RunRequest, prepared: PreparedView, reason: str) -> Forwarding:
        run = f"run={quote(prepared.place.lineage.session, safe=':-_.~/')}"
        run += "; continues" if prepared.is_continued else ""
        plan = replace(original, request=request, prepared=prepared)
        if self._settings.mode == "observe" or reason:
            why = f"; reason={quote(reason)}" if reason else ""
            return replace(plan, note=f"observe; {run}{why}")
        if prepared.rows is None:
            return replace(plan, note=f"view; {run}; tokens={prepared.tokens}; limit={prepared.limit}; whole")
        body = _with_view(request, prepared, self._settings.upstreams.get(request.upstream, ""))
        note = f"view; {run}; tokens={prepared.tokens}; limit={prepared.limit}"
        return replace(plan, body=body, note=note, is_view=True)

    async def plan_smaller(self, plan: Forwarding, text: str) -> Forwarding | None:
        """The plan after the provider called a request too long; None where no smaller one can be made."""
        overflow = detect_overflow(text)
        request, prepared = plan.request, plan.prepared
        if overflow is None or request is None or prepared is None or not plan.note.startswith("view"):
            return None
        counted = prepared.tokens + prepared.beside
        output = reserved_output(request.protocol, request.body, request.model, prepared.window)
        self._windows.learn(
            request.upstream, request.model, overflow, counted=counted, output=output, assumed=prepared.window
        )
        place = prepared.place
        try:
            smaller = await self._in_thread(request.key, lambda: self._runs.view_again(request, place))
        except PageinError:
            self._metrics.count("overflows", "not helped")
            return None
        if smaller.rows is None or smaller.tokens >= prepared.tokens:
            self._metrics.count("overflows", "not helped")
            return None
        self._metrics.count("overflows", "sent again")
        return self._plan_view(replace(plan, is_view=False), request, smaller, "")

    @contextmanager
    def _let_in(self) -> Iterator[None]:
        """Let a request wait for its plan. Raises ServerBusy where too many do; what was let in is ended and recorded."""
        if self._waiting >= self._settings.limits.waiting:
            raise ServerBusy
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def _in_thread(self, key: tuple[str, str] | None, function: Callable[[], T]) -> T:
        """Call a function in a thread, one at a time for one key."""
        if key is None:
            return await self._call_in_pool(function)
        async with self._locks.hold(key):
            return await self._call_in_pool(function)

    async def _call_in_pool(self, function: Callable[[], T]) -> T:
        """Call a function in a thread; a client that hangs up meanwhile does not part it from its lock."""
        context = copy_context()  # the trace of the client
        return await finish_first(asyncio.get_running_loop().run_in_executor(self._threads, context.run, function))

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    # Forwarding

    async def _exchange(
        self, incoming: http.Incoming, plan: Forwarding, send: http.Send, *, may_retry: bool
    ) -> Forwarding | None:
        """Forward a plan and relay the answer; return a smaller plan where the provider called this one too long."""
        exchange = _Exchange(self, plan, send, may_retry)
        try:
            async with self._open(incoming, plan) as response:
                return await exchange.relay(response)
        except httpx2.HTTPError as error:
            if exchange.is_started:
                raise http.StreamBroken from None
            self._metrics.count("failures", "upstream")
            status, text = describe_failure(self._settings, incoming.path, error)
            await http.send_json(send, status, error_body(plan.protocol, status, text), **{http.OWN_HEADER: plan.note})
            return None

    def is_unpacked(self, response: httpx2.Response) -> bool:
        """True where the body of an answer is read unpacked; one in a coding that was not asked for reaches the client as it is."""
        known = self._client.headers.get("accept-encoding", "").split(",")
        codings = response.headers.get("content-encoding", "identity").lower().split(",")
        return {coding.strip() for coding in codings} <= {"identity", *map(str.strip, known)}

    def _open(self, incoming: http.Incoming, plan: Forwarding) -> AbstractAsyncContextManager[httpx2.Response]:
        left_out = _HELD_CODINGS if plan.is_view else (b"accept-encoding",)
        headers = [*http.request_headers(incoming.pairs, without=left_out), (b"accept-encoding", b"identity")]
        return open_upstream(self._client, self._settings, incoming, headers=headers, content=plan.body)

    async def finish(self, plan: Forwarding, answer: Answer) -> None:
        """Record an answer, or what became of its request. What cannot be recorded is relayed all the same."""
        request, prepared = plan.request, plan.prepared
        if request is None or prepared is None:
            return
        rows = [] if is_rest_asked(request.body) else answer.rows or []
        outcome = replace(answer.outcome, usage=answer.outcome.usage if parse_usage(answer.outcome.usage) else None)
        if self._telemetry is not None:
            self._telemetry.tell(request, prepared, outcome)
        try:
            if not rows:
                self._metrics.count("answers", "none" if outcome.word != "answered" else "left to their echo")
                await self._in_thread(request.key, lambda: self._runs.note_outcome(request, prepared, outcome))
                return
            await self._in_thread(
                request.key, lambda: self._runs.record_answer(request, prepared, rows, outcome, answer.response_id)
            )
            self._metrics.count("answers", "recorded")
        except Exception as error:  # noqa: BLE001 - an answer is never lost for a failure here
            self._metrics.count("answers", "not recorded")
            self._metrics.count("failures", type(error).__name__)
            logger.warning("an answer was not recorded: %s", type(error).__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an upstream answered: its messages, None where they cannot be read, and what became of the request."""

    rows: list[Any] | None
    outcome: Outcome
    response_id: str = ""


@dataclass(slots=True)
class _Exchange:
    """One answer on its way from the upstream to the client."""

    proxy: Proxy
    plan: Forwarding
    send: http.Send
    may_retry: bool
    is_started: bool = False
    sent_at: float = 0.0
    first_at: float | None = None

    def __post_init__(self) -> None:
        self.sent_at = time.monotonic()

    def seconds(self) -> dict[str, float]:
        """The durations of the exchange, in seconds."""
        first = {} if self.first_at is None else {"first": self.first_at - self.sent_at}
        return {**first, "whole": time.monotonic() - self.sent_at}

    async def relay(self, response: httpx2.Response) -> Forwarding | None:
        """Relay the answer; return a smaller plan in its place where the request was too long."""
        is_events = response.headers.get("content-type", "").startswith("text/event-stream")
        if response.status_code == 200 and (is_events or self.plan.endpoint.is_stream):
            return await self._relay_stream(response, EventSplitter() if is_events else ArraySplitter())
        data, status = await response.aread(), response.status_code
        body = http.parse_object(data) if status == 200 else None
        rows, usage, response_id = read_whole_answer(self.plan.protocol.name, body)
        if status == 200 and (rows or not (body or {}).get("error")):  # some gateways answer 200 to all
            answer = Answer(rows, Outcome("answered", usage, self.seconds()), response_id)
            await self.proxy.finish(self.plan, answer)
        else:
            if self.may_retry and status in _OVERFLOW_STATUSES:
                text = data[:8_000].decode("utf-8", "replace")
                smaller = await self.proxy.plan_smaller(self.plan, text)
                if smaller is not None:
                    return smaller
            word = "broken" if status == 200 else f"HTTP {status}"
            await self.proxy.finish(self.plan, Answer(None, Outcome(word, None, self.seconds())))
        self.is_started = True
        await http.send_answer(self.send, status, self._pairs(response), data)
        return None

    def _pairs(self, response: httpx2.Response) -> http.Pairs:
        without = (b"content-encoding", b"content-length") if self.proxy.is_unpacked(response) else (b"content-length",)
        pairs = http.response_headers(response.headers.raw, without=without)
        return [*pairs, (http.OWN_HEADER.encode(), self.plan.note.encode("latin-1"))]

    async def _relay_stream(
        self, response: httpx2.Response, splitter: EventSplitter | ArraySplitter
    ) -> Forwarding | None:
        reader = new_reader(self.plan.protocol.name)
        relay = _StreamRelay(self, response, reader)
        async for chunk in response.aiter_bytes():
            for event in splitter.feed(chunk):
                if (smaller := await relay.add(event)) is not None:
                    return smaller
        for event in splitter.end():
            await relay.add(event)
        await relay.end()
        return None

    async def start(self, response: httpx2.Response) -> None:
        """Send the beginning of the answer, once."""
        if not self.is_started:
            self.is_started = True
            await http.start_answer(self.send, response.status_code, self._pairs(response))


@dataclass(slots=True)
class _StreamRelay:
    """The events of one stream. What comes before the model says anything is held, and so is the end until it is recorded."""

    exchange: _Exchange
    response: httpx2.Response
    reader: AnswerReader
    held: bytes = b""
    is_recorded: bool = False

    async def add(self, event: StreamEvent) -> Forwarding | None:
        """Take one event: relay it or hold it. Returns a smaller plan where it says that the request was too long."""
        exchange, reader = self.exchange, self.reader
        exchange.first_at = exchange.first_at or time.monotonic()
        reader.add(event)
        self.held += event.raw
        if reader.error and not exchange.is_started and exchange.may_retry:
            smaller = await exchange.proxy.plan_smaller(exchange.plan, reader.error)
            if smaller is not None:
                return smaller
        if reader.is_whole and not self.is_recorded:
            await self._record()
        is_prelude = not (reader.is_begun or reader.error or reader.is_whole)
        is_prelude = is_prelude and time.monotonic() - exchange.first_at < PRELUDE_SECONDS
        is_end = reader.is_ending and not reader.is_whole
        if not is_prelude and not is_end:
            await self._flush()
        return None

    async def end(self) -> None:
        """Relay what is held, and the end."""
        if not self.is_recorded:
            # Some servers end a stream of completions without a word.
            await self._record("answered" if self.reader.is_ending and not self.reader.error else "broken")
        await self._flush()
        await self.exchange.start(self.response)
        await http.send_chunk(self.exchange.send, b"", more=False)

    async def _flush(self) -> None:
        held, self.held = self.held, b""
        if held:
            await self.exchange.start(self.response)
            await http.send_chunk(self.exchange.send, held)

    async def _record(self, word: str = "answered") -> None:
        self.is_recorded = True
        reader, exchange = self.reader, self.exchange
        rows = reader.rows if word == "answered" else None
        outcome = Outcome(word, reader.usage, exchange.seconds())
        await exchange.proxy.finish(exchange.plan, Answer(rows, outcome, reader.response_id))


class _Refusal(Exception):
    """Nothing is forwarded: pagein failed, and is strict."""


def _open_telemetry(settings: ServerSettings) -> ChatTelemetry | None:
    """What tells of requests, where telemetry is on. Raises ConfigurationError without its extra."""
    if settings.options.get("telemetry", "off") == "off":
        return None
    import pagein.memory.telemetry  # noqa: F401, PLC0415 - says what is missing
    from pagein.server.telemetry import ChatTelemetry  # noqa: PLC0415 - its API is an extra

    return ChatTelemetry()


def _with_view(request: RunRequest, prepared: PreparedView, upstream: str) -> bytes:
    """The client's request with the view in the place of its messages, and what its provider's prompt cache is used by."""
    rows, host = prepared.rows or [], urlsplit(upstream).hostname
    if request.protocol is MESSAGES:
        # An agent asks again within the cache's five minutes; a person may take longer, and writing costs a quarter more.
        marker = {"type": "ephemeral"} if host == ANTHROPIC_HOST and request.body.get("tools") else None
        stable = prepared.stable_rows
        body = place_markers(
            request.body, rows, stable, ends=prepared.cache_ends, beside=prepared.beside, marker=marker
        )
    else:
        body = {key: value for key, value in request.body.items() if key != "previous_response_id"}
        body[request.protocol.rows_key] = rows
        if host == OPENAI_HOST:  # others may refuse a field that they do not know
            body.setdefault(
                "prompt_cache_key", blake2b(prepared.place.lineage.session.encode(), digest_size=16).hexdigest()
            )
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
