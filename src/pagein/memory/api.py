"""The verbs that need nothing but a turn: what was recorded read back, and where a run goes on. In both colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pagein.errors import LogUnreadable, LogUnwritable
from pagein.events.entries import Body, Compaction, Erased, FactsShown
from pagein.events.steps import Step
from pagein.log.base import Entry, Log
from pagein.log.branch_log import BranchLog
from pagein.log.snapshots import Shelf, SnapshotLog
from pagein.memory import checkpoints
from pagein.memory import erasure as erasing
from pagein.memory._effects import Anew, CallOff, Effect, Flow, Head, Keep, Look, Read
from pagein.memory._state import Session
from pagein.memory.branches import (
    Asked,
    Branch,
    Comparison,
    Grove,
    Moved,
    branches,
    compare,
    drop,
    fork,
    rewind,
    switch,
)
from pagein.memory.checkpoints.automatic import Marks
from pagein.memory.erasure.colours import AsyncErasing, Erase, Erasing
from pagein.memory.facts_runtime import Knowledge
from pagein.memory.operations.expand import full_step, succinct_step
from pagein.memory.operations.history import steps
from pagein.memory.search_runtime import Library

if TYPE_CHECKING:
    from pagein.memory.checkpoints import Mark, Standing
    from pagein.memory.erasure import Rooms

T = TypeVar("T")


class Branching:
    """What both colours share of branches: the memory goes on with another log, index and facts."""

    _log: Log
    _library: Library
    _knowledge: Knowledge
    _session: Session
    _known: Entry | None
    _marks: Marks
    _branches: Grove
    _clock: Callable[[], float]
    _writing: Any

    def _branched(self, effect: Effect[Any]) -> Any:
        match effect:
            case Asked(verb=verb, given=given):
                return getattr(self._branches, verb)(*given)
            case Erase():
                return effect.perform(self._rooms())
            case Read(start=start, stop=stop, log=log) if log is not None:
                return tuple(log.read(start, stop))
            case Look(log=log):
                return self._shelf(log or self._log)
            case Keep(snapshot=snapshot, dropped=dropped) if isinstance(self._log, SnapshotLog):
                return self._log.keep(snapshot, dropped)
            case Moved():
                return self._moved(effect)
            case Head():
                return self._head()
            case Anew():
                return self._begun_anew()
            case CallOff():
                return None if self._writing is None else self._writing.call_off()
            case _:
                raise TypeError(f"no flow asks for {effect!r}")

    def _rooms(self) -> Rooms:
        return erasing.Rooms(self._branches, self._knowledge, self._library, self._clock)

    def _held(self, bodies: tuple[Body, ...], after: int) -> tuple[Entry, ...]:
        """What a view records, as if it were recorded, so that a log that may not be written to can be viewed."""
        if not all(isinstance(each, Compaction | FactsShown) for each in bodies):
            raise LogUnwritable("this memory was opened with readonly=True. Nothing was written.")
        self._session.unwritten += len(bodies)
        return tuple(Entry(at, self._clock(), body, "") for at, body in enumerate(bodies, after))

    def _head(self) -> int:
        pieces = self._log.pieces if isinstance(self._log, BranchLog) else ()
        if pieces and self._branches.root.head() < pieces[0].last:
            return -1
        return self._log.head()

    def _begun_anew(self) -> bool:
        root = self._branches.root
        first = next(iter(root.read(0, 1)), None)
        if first is None or not isinstance(first.body, Erased) or not first.body.gone:
            return False
        self._branches.forget()
        self._moved(Moved(root, root.head()))
        return True

    def _shelf(self, log: Log) -> Shelf | None:
        if not isinstance(log, SnapshotLog):
            return None
        try:
            return log.shelf()
        except LogUnreadable:
            return None  # what is wrong with the file is told where it is in the way

    def _moved(self, effect: Moved) -> None:
        self._library, self._log, self._known = self._library.moved(effect.log), effect.log, None
        self._knowledge.move(effect.log)
        self._marks.seen = effect.head


class Verbs(Erasing):
    """Verbs of AgentMemory: each is a flow, and one line here."""

    _session: Session
    _clock: Callable[[], float]

    def _run(self, flow: Flow[T]) -> T:
        raise NotImplementedError

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step recorded, whole, in order, read from the log."""
        return tuple(step for _, step in self._run(steps(self._session)))

    def get_full_steps(self) -> list[dict[str, Any]]:
        """Every step as JSON-safe values, nothing left out; images as base64."""
        return [full_step(position, step) for position, step in self._run(steps(self._session))]

    def get_succinct_steps(self) -> list[dict[str, Any]]:
        """Every step as JSON-safe values, long texts cut, images named by their hash."""
        return [succinct_step(position, step) for position, step in self._run(steps(self._session))]

    def checkpoint(self, name: str, state: Any = None) -> str:
        """Write down where the run stands, under a name, durably; gives the handle of that entry.

        What was done, is to do, was ruled out, was decided and is still going on is derived from the log; ``state`` is
        kept beside it: any JSON-safe value. Of several of one name the newest counts. Raises ConfigurationError, LogError.
        """
        return self._run(checkpoints.checkpoint(self._session, name, state))

    def checkpoints(self) -> tuple[Mark, ...]:
        """The checkpoints of this run, oldest first."""
        return self._run(checkpoints.checkpoints(self._session))

    def standing(self, name: str | None = None) -> Standing:
        """Where the run stands, nothing written: what ``resume`` tells. Raises UnknownCheckpoint."""
        return self._run(checkpoints.look(self._session, name))

    def resume(self, name: str | None = None, *, fresh: bool = False) -> Standing:
        """Go on with a run that stopped: tells where it stands, and closes what was in flight as unknown.

        Nothing is run again; a result that comes after all is accepted once. With ``fresh`` the view starts anew from the
        checkpoint of that name, or from here: what came before leaves it but for the user's words and the pins, stays
        behind its handles, and comes back by ``undo``. Raises UnknownCheckpoint, LogError.
        """
        return self._run(checkpoints.resume(self._session, name, fresh=fresh))

    def fork(self, at: int | str | None = None, name: str | None = None) -> Branch:
        """A new branch from here, or from ``at``: a number of entries, a checkpoint's name or a step's handle.

        It costs the same wherever it is: nothing is copied. The run goes on where it is; ``switch`` changes that. Without
        a name it gets one. Raises ConfigurationError, UnknownCheckpoint, Conflict, LogError.
        """
        return self._run(fork(self._session, at, name, self._clock()))

    def switch(self, branch: str) -> None:
        """Go on with another branch, here and whenever the run is opened again. Raises UnknownBranch, LogError.

        View, compactions, summaries, pins and recall are that branch's alone. A summary under way is called off.
        """
        self._run(switch(self._session, branch, self._clock()))

    def branches(self) -> tuple[Branch, ...]:
        """The branches of this run, ``main`` first, then as they were forked."""
        return self._run(branches(self._session))

    def drop(self, branch: str) -> None:
        """Leave a branch for good: ``branches`` names it no more, what was recorded on it stays in the record.

        Its name stays taken. Raises UnknownBranch, ConfigurationError for the one the run goes on with, LogError.
        """
        self._run(drop(self._session, branch, self._clock()))

    def rewind(self, to: int | str) -> Branch:
        """Go on from an earlier place, as ``fork`` takes it: on a new branch, so that what came after is still there."""
        return self._run(rewind(self._session, to, self._clock()))

    def compare(self, left: str, right: str) -> Comparison:
        """What two branches have in common, and the steps that only one of them has. Raises UnknownBranch."""
        return self._run(compare(self._session, left, right))


class AsyncVerbs(AsyncErasing):
    """Verbs of AsyncAgentMemory: the same flows, awaited."""

    _session: Session
    _clock: Callable[[], float]

    async def _run(self, flow: Flow[T]) -> T:
        raise NotImplementedError

    @property
    async def steps(self) -> tuple[Step, ...]:
        """See AgentMemory.steps."""
        return tuple(step for _, step in await self._run(steps(self._session)))

    async def get_full_steps(self) -> list[dict[str, Any]]:
        """See AgentMemory.get_full_steps."""
        return [full_step(position, step) for position, step in await self._run(steps(self._session))]

    async def get_succinct_steps(self) -> list[dict[str, Any]]:
        """See AgentMemory.get_succinct_steps."""
        return [succinct_step(position, step) for position, step in await self._run(steps(self._session))]

    async def checkpoint(self, name: str, state: Any = None) -> str:
        """See AgentMemory.checkpoint."""
        return await self._run(checkpoints.checkpoint(self._session, name, state))

    async def checkpoints(self) -> tuple[Mark, ...]:
        """See AgentMemory.checkpoints."""
        return await self._run(checkpoints.checkpoints(self._session))

    async def standing(self, name: str | None = None) -> Standing:
        """See AgentMemory.standing."""
        return await self._run(checkpoints.look(self._session, name))

    async def resume(self, name: str | None = None, *, fresh: bool = False) -> Standing:
        """See AgentMemory.resume."""
        return await self._run(checkpoints.resume(self._session, name, fresh=fresh))

    async def fork(self, at: int | str | None = None, name: str | None = None) -> Branch:
        """See AgentMemory.fork."""
        return await self._run(fork(self._session, at, name, self._clock()))

    async def switch(self, branch: str) -> None:
        """See AgentMemory.switch."""
        await self._run(switch(self._session, branch, self._clock()))

    async def branches(self) -> tuple[Branch, ...]:
        """See AgentMemory.branches."""
        return await self._run(branches(self._session))

    async def drop(self, branch: str) -> None:
        """See AgentMemory.drop."""
        await self._run(drop(self._session, branch, self._clock()))

    async def rewind(self, to: int | str) -> Branch:
        """See AgentMemory.rewind."""
        return await self._run(rewind(self._session, to, self._clock()))

    async def compare(self, left: str, right: str) -> Comparison:
        """See AgentMemory.compare."""
        return await self._run(compare(self._session, left, right))
