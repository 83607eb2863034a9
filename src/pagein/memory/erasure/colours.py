"""Erasing as a memory has it, in both colours: each is a flow, and one line here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pagein.events.entries import FactScope
from pagein.memory import erasure as erasing
from pagein.memory._effects import Effect, Flow
from pagein.memory._state import Session

if TYPE_CHECKING:
    from pagein.memory.erasure import Erasure, Rooms

T = TypeVar("T")


@dataclass(frozen=True)
class Erase(Effect["Erasure"]):
    """Have something erased: a verb of ``Rooms``, with what it takes."""

    verb: str
    given: tuple[Any, ...] = field(default=())

    def perform(self, rooms: Rooms) -> Erasure:
        """What the verb gives."""
        done: Erasure = getattr(rooms, self.verb)(*self.given)
        return done


class Erasing:
    """What AgentMemory can forget."""

    _session: Session

    def _run(self, flow: Flow[T]) -> T:
        raise NotImplementedError

    def erase(self, *handles: str | int, reason: str = "") -> Erasure:
        """Erase steps, results or pins by their handles, or facts by their ids, for good and wherever they were repeated.

        Positions, kinds, times, the ids and names of calls stay; where something was said stands "[erased]". It goes
        from the log, the index, the facts that came of it alone, from summaries, stubs, checkpoints and our tools'
        results, on every branch. ``reason`` is kept. What the host still holds it must drop itself. Raises
        UnknownHandle, UnknownFact, Conflict after many losses, LogError; nothing was erased then.
        """
        return self._run(erasing.erase(self._session, handles, reason))

    def erase_facts(self, scope: FactScope = "user", *, reason: str = "") -> Erasure:
        """Erase every fact of a scope's owner, with its history. They are not taken from this run again."""
        return self._run(erasing.erase_facts(self._session, scope, reason))

    def erase_session(self, *, reason: str = "", trace: bool = True) -> Erasure:
        """Erase the whole run, on every branch, with the facts that came of it alone; this memory goes on with an empty one.

        With ``trace`` one entry stays that says how many there were, when and why. Raises LogError.
        """
        return self._run(erasing.erase_session(self._session, reason, trace=trace))


class AsyncErasing:
    """What AsyncAgentMemory can forget: the same flows, awaited."""

    _session: Session

    async def _run(self, flow: Flow[T]) -> T:
        raise NotImplementedError

    async def erase(self, *handles: str | int, reason: str = "") -> Erasure:
        """See AgentMemory.erase."""
        return await self._run(erasing.erase(self._session, handles, reason))

    async def erase_facts(self, scope: FactScope = "user", *, reason: str = "") -> Erasure:
        """See AgentMemory.erase_facts."""
        return await self._run(erasing.erase_facts(self._session, scope, reason))

    async def erase_session(self, *, reason: str = "", trace: bool = True) -> Erasure:
        """See AgentMemory.erase_session."""
        return await self._run(erasing.erase_session(self._session, reason, trace=trace))
