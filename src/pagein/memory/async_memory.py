"""AsyncAgentMemory: the twin of AgentMemory. The verbs are the same flows; the store is reached from a thread."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from pagein._common.drive import adrive
from pagein.context.view.view import View
from pagein.events.entries import Compaction
from pagein.events.steps import Observation, Step, Usage
from pagein.formats import keywords
from pagein.log.base import Log, Verification
from pagein.memory._effects import Begin, Collect, Effect, Flow
from pagein.memory.agent_memory import Memory
from pagein.memory.api import AsyncVerbs
from pagein.memory.background.summary_writer import Task
from pagein.memory.checkpoints.automatic import begun, closing, followed
from pagein.memory.operations import load as flows
from pagein.memory.operations import view as paging
from pagein.memory.operations.expand import Expansion, expand
from pagein.memory.operations.load import Recorded
from pagein.memory.options import Narrowed, Options, checked_count
from pagein.memory.tools import call
from pagein.search.base import Hit

T = TypeVar("T")


class AsyncAgentMemory(AsyncVerbs, Memory):
    """The twin of AgentMemory for async code: the same verbs, awaited; the store is reached from a thread.

    ``async with AsyncAgentMemory.open("run.db", budget=80_000) as memory:``, or ``await`` what ``open`` gives. Tasks
    take their turns. A call cancelled before its turn changes nothing, one that has begun is done whole. ``steps`` is
    awaited too.
    """

    def __init__(self, log: Log, **options: Unpack[Options]) -> None:
        super().__init__(log, **options)
        self._turn = asyncio.Lock()
        self._loaded = False
        author = self._session.author
        self._writing: Task | None = (
            None if self._author is None or author is None else Task(self._author, author)
        )

    async def _aperform(self, effect: Effect[Any]) -> Any:
        writing = self._writing
        if isinstance(effect, Begin) and writing is not None:
            return writing.begin(effect.job)
        if isinstance(effect, Collect) and writing is not None:
            return await writing.collect(effect.timeout)
        return await asyncio.to_thread(self._perform, effect)

    async def _run(self, flow: Flow[T]) -> T:
        async with self._turn:
            self._check_open()
            # What a thread has begun to write cannot be called back: a turn that has begun is ended before its
            # cancellation is told, so that the memory never knows less than the log.
            turn = asyncio.ensure_future(self._whole(flow))
            try:
                return await asyncio.shield(turn)
            except asyncio.CancelledError:
                while not turn.done():
                    with contextlib.suppress(asyncio.CancelledError):
                        await asyncio.wait({turn})
                if not turn.cancelled():
                    turn.exception()
                raise

    async def _whole(self, flow: Flow[T]) -> T:
        if not self._loaded:
            self._knowledge.loop = asyncio.get_running_loop()
            await adrive(begun(self._marks, self._session), self._aperform)
            self._loaded = True
        return await adrive(followed(self._marks, self._session, flow), self._aperform)

    async def record(self, *items: Step | Observation) -> Recorded:
        """See AgentMemory.record."""
        return await self._run(flows.record(self._session, items, strict=True))

    async def record_messages(
        self,
        messages: Any,
        format: str | None = None,
        *,
        whole: bool | None = None,
        usage: Usage | None = None,
    ) -> Recorded:
        """See AgentMemory.record_messages."""
        given = self._handed(messages, format, usage)
        return await self._run(flows.record(self._session, given, strict=False, whole=whole, usage=usage))

    async def view(self) -> View:
        """See AgentMemory.view."""
        return await self._run(paging.view(self._session))

    async def to_messages(
        self,
        format: str | None = None,
        *,
        summary_mode: bool = False,
        keep_last_n: int | None = None,
        max_tokens: int | None = None,
    ) -> list[dict[str, Any]]:
        """See AgentMemory.to_messages."""
        view = await self._run(
            paging.shown(self._session, summary_mode, checked_count(keep_last_n), max_tokens)
        )
        messages: list[dict[str, Any]] = self._rendered(view, format)["messages"]
        return messages

    async def to_request(self, format: str | None = None) -> dict[str, Any]:
        """See AgentMemory.to_request."""
        return keywords(format or self._format.name, self._rendered(await self.view(), format))

    async def expand(self, handle: str | int) -> Expansion:
        """See AgentMemory.expand."""
        return await self._run(expand(self._session, handle))

    async def recall(self, query: str, limit: int = 10, **narrowed: Unpack[Narrowed]) -> tuple[Hit, ...]:
        """See AgentMemory.recall."""
        return await self._run(self._recalled(query, limit, narrowed))

    async def call_tool(self, name: str, arguments: str | Mapping[str, Any] = "{}") -> str:
        """See AgentMemory.call_tool."""
        return await self._run(call(self._session, name, arguments, self._clock()))

    async def pin(self, text: str) -> str:
        """See AgentMemory.pin."""
        return await self._run(self._pinned(text))

    async def unpin(self, handle: str) -> None:
        """See AgentMemory.unpin."""
        await self._run(self._unpinned(handle))

    async def compact(self, *, wait: bool = False) -> Compaction | None:
        """See AgentMemory.compact."""
        return await self._run(paging.compact(self._session, wait=wait))

    async def settle(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - as its twin has it
        """See AgentMemory.settle."""
        settled = await self._run(paging.settled(self._session, timeout))
        return settled and await asyncio.to_thread(self._knowledge.wait, timeout)

    async def undo(self) -> Compaction:
        """See AgentMemory.undo."""
        return await self._run(flows.undo(self._session))

    async def verify(self) -> Verification:
        """See AgentMemory.verify."""
        return await self._run(self._verified())

    async def close(self) -> None:
        """See AgentMemory.close."""
        async with self._turn:
            if self._loaded and not self._closed:
                await adrive(closing(self._marks, self._session), self._aperform)
            self._closed = True
            if self._writing is not None:
                await self._writing.close()
            await asyncio.to_thread(self._library.close)
            await asyncio.to_thread(self._knowledge.close)
            await asyncio.to_thread(self._branches.close)

    async def _ready(self) -> Self:
        await self._run(flows.nothing())
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self._ready().__await__()

    async def __aenter__(self) -> Self:
        return await self._ready()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
