"""Kill the proxy with SIGKILL, in the middle of streams too, and check what its clients were told."""

from __future__ import annotations

import json
import multiprocessing
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx2

from pagein.errors import PageinError
from pagein.events.steps import ActionStep
from pagein.memory.agent_memory import AgentMemory
from pagein.testing.provider import ScriptedProvider, ToolLoop, serve_app
from pagein.testing.provider.agent import file_text

KILLS_A_RUN = 20
"""Kills after which a new run begins: a client hands over its whole history."""

MAX_EVENTS = 80
"""Events of streams that a client reads before the kill, at most; an answer has about ten."""

KILL_DELAY = 0.004
"""Seconds between that event and the kill, at most."""

CUT = "the body is not JSON"
"""The provider's words for a request in whose middle the proxy was killed."""

WINDOW, RESULT_CHARACTERS = 6_000, 900
PATIENCE = 60.0


@dataclass(slots=True)
class ServerCrashes:
    """The result: answers that clients had whole, kills in the middle of a stream, and every broken promise."""

    kills: int = 0
    in_streams: int = 0
    acknowledged: int = 0
    requests: int = 0
    illegal: tuple[str, ...] = ()
    over: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        """True if nothing was lost, recorded twice, illegal or too long."""
        return not (self.faults or self.illegal or self.over)

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return asdict(self)


def serve_child(store: str, upstream: str, pipe: Connection) -> None:
    """Serve a store until the process is killed; its address goes through the pipe."""
    from pagein.server import ServerApp, ServerSettings  # noqa: PLC0415 - needs the extra serve

    with serve_app(ServerApp(ServerSettings(store, {"default": upstream}, window=WINDOW))) as url:
        pipe.send(url)
        signal.pause()


@dataclass(slots=True)
class StreamingAgent:
    """A client that streams and keeps its whole history; ``answers`` are the calls of answers that it had whole."""

    run: str
    history: list[Any] = field(default_factory=lambda: [{"role": "user", "content": "Read every file, one at a time."}])
    answers: list[str] = field(default_factory=list)
    is_in_stream: bool = False

    def work(self, url: str, on_event: Callable[[], None]) -> None:
        """Ask again and again, until the server is gone."""
        with httpx2.Client(base_url=url, timeout=PATIENCE) as client:
            while True:
                self._ask(client, on_event)

    def _ask(self, client: httpx2.Client, on_event: Callable[[], None]) -> None:
        tool = {"name": "read", "input_schema": {"type": "object", "properties": {"number": {"type": "integer"}}}}
        body = {
            "model": "claude-sonnet-4-6",
            "max_tokens": 400,
            "tools": [tool],
            "messages": self.history,
            "stream": True,
        }
        blocks: list[dict[str, Any]] = []
        with client.stream("POST", "/v1/messages", json=body, headers={"x-pagein-run": self.run}) as answer:
            answer.raise_for_status()
            self.is_in_stream = True
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    on_event()
                    _read_event(json.loads(line[5:]), blocks, self._acknowledge)
            self.is_in_stream = False

    def _acknowledge(self, blocks: list[dict[str, Any]]) -> None:
        self.is_in_stream = False
        self.history.append({"role": "assistant", "content": blocks})
        calls = [block for block in blocks if block["type"] == "tool_use"]
        self.answers += [call["id"] for call in calls]
        texts = [(call["id"], file_text(int(call["input"]["number"]), RESULT_CHARACTERS)) for call in calls]
        results = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in texts]
        self.history.append({"role": "user", "content": results})


def _read_event(
    event: dict[str, Any], blocks: list[dict[str, Any]], on_end: Callable[[list[dict[str, Any]]], None]
) -> None:
    match event["type"]:
        case "content_block_start":
            blocks.append({**event["content_block"], "partial": ""})
        case "content_block_delta" if event["delta"]["type"] == "text_delta":
            blocks[event["index"]]["text"] += event["delta"]["text"]
        case "content_block_delta" if event["delta"]["type"] == "input_json_delta":
            blocks[event["index"]]["partial"] += event["delta"]["partial_json"]
        case "content_block_stop":
            block = blocks[event["index"]]
            partial = block.pop("partial")
            if block["type"] == "tool_use":
                block["input"] = json.loads(partial or "{}")
        case "message_stop":
            on_end(blocks)
        case _:
            pass


def bench_server_crash(
    kills: int, *, seed: int = 0, tick: Callable[[ServerCrashes], None] = lambda _: None
) -> ServerCrashes:
    """Kill a proxy so often while an agent streams through it; check its store after each kill."""
    chance = random.Random(seed)  # noqa: S311 - when to kill
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.server_crash", "pagein.server.run", "pagein.tokens.encodings"])
    found = ServerCrashes()
    provider = ScriptedProvider(ToolLoop(10**9), window=WINDOW, pause=0.001)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, serve_app(provider) as upstream:
        store, agent = str(Path(folder) / "runs.db"), StreamingAgent("")
        for number in range(kills):
            if number % KILLS_A_RUN == 0:
                agent = StreamingAgent(f"crash-{number // KILLS_A_RUN}")
            before = len(agent.answers)
            _serve_and_kill(context, store, upstream, agent, chance)
            found.kills += 1
            found.in_streams += agent.is_in_stream
            agent.is_in_stream = False
            found.acknowledged += len(agent.answers) - before
            found.faults += (f"kill {number + 1}: {fault}" for fault in _find_faults(store, agent))
            found.requests, found.over = len(provider.received), provider.over
            found.illegal = tuple(text for text in provider.illegal if text != CUT)
            found.seconds = time.monotonic() - started
            tick(found)
    return found


def _serve_and_kill(context: Any, store: str, upstream: str, agent: StreamingAgent, chance: random.Random) -> None:
    ours, its = context.Pipe(duplex=False)
    process = context.Process(target=serve_child, args=(store, upstream, its))
    process.start()
    its.close()
    left = chance.randrange(MAX_EVENTS)
    delay = chance.uniform(0, KILL_DELAY)

    def count_event() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            threading.Timer(delay, process.kill).start()

    try:
        if not ours.poll(PATIENCE):
            raise TimeoutError("the server did not start")
        url = ours.recv()
        if left == 0:
            process.kill()
        agent.work(url, count_event)
    except (httpx2.HTTPError, EOFError):
        pass  # the kill
    finally:
        process.kill()
        process.join()
        ours.close()


def _find_faults(store: str, agent: StreamingAgent) -> Iterator[str]:
    """Every broken promise to a client, after a kill."""
    if not agent.answers:
        return
    try:
        with AgentMemory.open(store, session=agent.run, readonly=True) as memory:
            yield from (f"verify: {problem.position}: {problem.what}" for problem in memory.verify().problems)
            calls = Counter(
                call.id for step in memory.steps if isinstance(step, ActionStep) for call in step.tool_calls
            )
    except PageinError as error:
        yield f"{type(error).__name__}: {error}"
        return
    for call in agent.answers:
        if calls[call] != 1:
            yield f"{call} was acknowledged, and is recorded {calls[call]} times"
