"""The verbs that need nothing but a turn: what was recorded read back, and where a run goes on. In both colours."""

from __future__ import annotations

from typing import Any, TypeVar

from pagein.checkpoints.making import checkpoints
from pagein.checkpoints.state import Mark
from pagein.checkpoints.verbs import Standing, checkpoint, look, resume
from pagein.effects import Flow
from pagein.expansion import full_step, succinct_step
from pagein.history import steps
from pagein.session import Session
from pagein.steps import Step

T = TypeVar("T")


class Verbs:
    """Verbs of AgentMemory: each is a flow, and one line here."""

    _session: Session

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
        return self._run(checkpoint(self._session, name, state))

    def checkpoints(self) -> tuple[Mark, ...]:
        """The checkpoints of this run, oldest first."""
        return self._run(checkpoints(self._session))

    def standing(self, name: str | None = None) -> Standing:
        """Where the run stands, nothing written: what ``resume`` tells. Raises UnknownCheckpoint."""
        return self._run(look(self._session, name))

    def resume(self, name: str | None = None, *, fresh: bool = False) -> Standing:
        """Go on with a run that stopped: tells where it stands, and closes what was in flight as unknown.

        Nothing is run again; a result that comes after all is accepted once. With ``fresh`` the view starts anew from the
        checkpoint of that name, or from here: what came before leaves it but for the user's words and the pins, stays
        behind its handles, and comes back by ``undo``. Raises UnknownCheckpoint, LogError.
        """
        return self._run(resume(self._session, name, fresh=fresh))


class AsyncVerbs:
    """Verbs of AsyncAgentMemory: the same flows, awaited."""

    _session: Session

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
        return await self._run(checkpoint(self._session, name, state))

    async def checkpoints(self) -> tuple[Mark, ...]:
        """See AgentMemory.checkpoints."""
        return await self._run(checkpoints(self._session))

    async def standing(self, name: str | None = None) -> Standing:
        """See AgentMemory.standing."""
        return await self._run(look(self._session, name))

    async def resume(self, name: str | None = None, *, fresh: bool = False) -> Standing:
        """See AgentMemory.resume."""
        return await self._run(resume(self._session, name, fresh=fresh))
