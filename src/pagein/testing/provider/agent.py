"""An agent over plain HTTP that keeps its whole history and hands it over at each turn; it never compacts."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagein.testing.provider.app import Received, ScriptedProvider, serve_app
from pagein.testing.provider.scripts import Protocol, ToolLoop

PROTOCOLS: tuple[Protocol, ...] = ("messages", "chat", "responses", "gemini")
MODEL = {"messages": "claude-sonnet-4-6", "chat": "gpt-5", "responses": "gpt-5", "gemini": "gemini-2.5-flash"}
_PATHS = {
    "messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses",
    "gemini": f"/v1beta/models/{MODEL['gemini']}:generateContent",
}  # fmt: skip
_SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}}
_MARKER = {"cache_control": {"type": "ephemeral"}}


@dataclass(frozen=True, slots=True)
class RunMeasures:
    """A run as its provider saw it: requests, those over the window, the price, the prefix share, and seconds added."""

    requests: int
    over: int
    illegal: int
    tokens: int
    price: float
    prefix: float
    added: tuple[float, ...] = ()
    cpu: float = 0.0
    """Seconds of the proxy's processor, for everything that it did."""

    @property
    def percentiles(self) -> tuple[float, float]:
        """The median and the 95th percentile of the seconds added before the upstream."""
        ordered = sorted(self.added) or [0.0]
        return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


def measure_run(received: list[Received], window: int, added: tuple[float, ...] = (), cpu: float = 0.0) -> RunMeasures:
    """Measure the requests of a run."""
    readings = [request.reading for request in received]
    tokens = max(1, sum(reading.tokens for reading in readings))
    return RunMeasures(
        len(readings), sum(reading.tokens > window for reading in readings),
        sum(bool(request.problems) for request in received), tokens, sum(reading.price for reading in readings),
        sum(reading.shared for reading in readings) / tokens, added, cpu,
    )  # fmt: skip


def bench_protocol(protocol: Protocol, *, calls: int, size: int, window: int) -> tuple[RunMeasures, ...]:
    """Run an agent directly, through a proxy that passes everything on, and through one that makes views; measure each.

    The provider takes any length.
    """
    direct, passed, proxied = (ScriptedProvider(ToolLoop(calls)) for _ in range(3))
    with serve_app(direct) as url:
        run_agent(url, protocol, size)
    measures = [measure_run(direct.received, window)]
    for provider, mode in ((passed, "off"), (proxied, "view")):
        with serve_app(provider) as url, _proxy(url, window, mode) as (address, read_costs):
            run_agent(address, protocol, size)
            measures.append(measure_run(provider.received, window, *read_costs()))
    return tuple(measures)


@contextmanager
def _proxy(upstream: str, window: int, mode: Any) -> Iterator[tuple[str, Callable[[], tuple[Any, float]]]]:
    """Serve a proxy; gives its address, and what tells the seconds that it added and those of its threads."""
    from pagein.server import ServerApp, ServerSettings  # noqa: PLC0415 - needs the extra serve
    from pagein.server.memories import warm_up  # noqa: PLC0415

    warm_up()
    others = {*threading.enumerate()}
    with tempfile.TemporaryDirectory() as folder:
        app = ServerApp(ServerSettings(str(Path(folder) / "runs.db"), {"default": upstream}, window=window, mode=mode))
        with serve_app(app) as url:
            start = _cpu_seconds(others)
            yield url, lambda: (tuple(app.metrics.newest_added), _cpu_seconds(others) - start)


def _cpu_seconds(others: set[threading.Thread]) -> float:
    """The seconds of the processor that all threads but these had; 0 where the system does not tell."""
    threads = {*threading.enumerate()} - others if sys.platform == "linux" else set()
    return sum(time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0)) for thread in threads)


def run_agent(url: str, protocol: Protocol, size: int) -> int:
    """Run an agent to its end; return the number of its requests. Raises httpx2's errors."""
    import httpx2  # noqa: PLC0415 - an extra

    task, key = "Read every file, one at a time.", "parts" if protocol == "gemini" else "content"
    history: list[Any] = [{"role": "user", key: [{"text": task}] if protocol == "gemini" else task}]
    with httpx2.Client(base_url=url, timeout=120) as client:
        for number in range(1, 100_000):
            answer = client.post(_PATHS[protocol], json=_body(protocol, history))
            answer.raise_for_status()
            calls = _extend(protocol, history, answer.json())
            for call_id, arguments in calls:
                history.append(_result(protocol, call_id, file_text(int(arguments["number"]), size)))
            if not calls:
                return number
    raise AssertionError("unreachable")


def file_text(number: int, size: int) -> str:
    """The text of a file: lines with names of their own."""
    lines = (f"    value_{number}_{line} = lookup({number * 31 + line})\n" for line in range(size // 30 + 1))
    return (f"def handler_{number}(request):\n" + "".join(lines))[:size]


def _body(protocol: Protocol, history: list[Any]) -> dict[str, Any]:
    function = {"name": "read", "description": "Read a file."}
    match protocol:
        case "messages":
            system = [{"type": "text", "text": "You read files.", **_MARKER}]
            last = history[-1]
            blocks = (
                last["content"] if isinstance(last["content"], list) else [{"type": "text", "text": last["content"]}]
            )
            rows = [*history[:-1], {**last, "content": [*blocks[:-1], {**blocks[-1], **_MARKER}]}]
            tools = [{**function, "input_schema": _SCHEMA}]
            return {"model": MODEL[protocol], "max_tokens": 500, "system": system, "tools": tools, "messages": rows}
        case "chat":
            tools = [{"type": "function", "function": {**function, "parameters": _SCHEMA}}]
            rows = [{"role": "system", "content": "You read files."}, *history]
            return {"model": MODEL[protocol], "max_completion_tokens": 500, "tools": tools, "messages": rows}
        case "responses":
            tools = [{"type": "function", **function, "parameters": _SCHEMA}]
            return {"model": MODEL[protocol], "max_output_tokens": 500, "instructions": "You read files.", "tools": tools, "input": history}  # fmt: skip
        case "gemini":
            declared = [{"functionDeclarations": [{**function, "parameters": _SCHEMA}]}]
            instruction = {"parts": [{"text": "You read files."}]}
            return {"contents": history, "systemInstruction": instruction, "tools": declared, "generationConfig": {"maxOutputTokens": 500}}  # fmt: skip


def _extend(protocol: Protocol, history: list[Any], answer: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Put an answer into the history; return the ids and arguments of its calls."""
    match protocol:
        case "messages":
            history.append({"role": "assistant", "content": answer["content"]})
            return [(block["id"], block["input"]) for block in answer["content"] if block["type"] == "tool_use"]
        case "chat":
            message = answer["choices"][0]["message"]
            history.append(message)
            calls = message.get("tool_calls") or ()
            return [(call["id"], json.loads(call["function"]["arguments"])) for call in calls]
        case "responses":
            history += answer["output"]
            items = [item for item in answer["output"] if item["type"] == "function_call"]
            return [(item["call_id"], json.loads(item["arguments"])) for item in items]
        case "gemini":
            content = answer["candidates"][0]["content"]
            history.append(content)
            functions = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
            return [(function["name"], function["args"]) for function in functions]


def _result(protocol: Protocol, call_id: str, text: str) -> dict[str, Any]:
    match protocol:
        case "messages":
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}]}
        case "chat":
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        case "responses":
            return {"type": "function_call_output", "call_id": call_id, "output": text}
        case "gemini":  # a call of its has no id
            return {"role": "user", "parts": [{"functionResponse": {"name": call_id, "response": {"output": text}}}]}
