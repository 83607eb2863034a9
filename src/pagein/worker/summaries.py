"""Summaries of runs that others have open: written on what a run is now, and landed behind what it is by then.

A run is due from its soft mark on, as its host's budget and policy have it, which the worker is told. The model is asked
about what would leave; then the compaction is appended at the head, by compare-and-swap. Where the host went on
meanwhile, the view is made again and what was written stands for the ranges that still leave; where the host compacted
itself, or went to another branch, it is dropped. A host folds it in before its next verb.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from pagein.context.view.view import View
from pagein.errors import Conflict, PageinError
from pagein.events.entries import Compaction
from pagein.log.base import Log
from pagein.log.branch_log import run_of
from pagein.memory._effects import Flow
from pagein.memory._state import Session
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.branches import Asked
from pagein.memory.operations.view import ahead, begun, commit, settled, thrown_away, with_records
from pagein.memory.options import Options

RECENT = 86_400.0
"""Seconds since its last entry after which a run is taken to be at rest: nobody waits for a summary of it."""

LOOK, ATTEMPTS = 0.1, 8
"""Seconds between two looks at whether the model is done; times that the host may be first."""

Stand = tuple[int, ...]
"""How many entries a run and each of its branches had."""


class Summarising:
    """Summaries of one tenant's runs. ``options`` are those of the hosts: budget, policy, counter, and the summarizer.

    A run whose summary came to nothing is not looked at again before it goes on. Raises ConfigurationError, LogError.
    """

    def __init__(
        self,
        url: str,
        options: Mapping[str, Any],
        *,
        tenant: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._url, self._tenant, self._clock = url, tenant, clock
        self._options = Options(**options, page_in=0.0, clock=clock)  # type: ignore[typeddict-item]
        self._looked: dict[str, Stand] = {}
        with closing(AgentMemory.open(":memory:", **self._options)):
            pass  # an option that cannot be one is told now

    def is_due(self, log: Log, session: str) -> bool:
        """Whether a run is beyond its soft mark, and is gone on with. ``log`` is any of the store."""
        stand = _stand(log, session)
        if self._looked.get(session) == stand:
            return False
        with self._opened(session, readonly=True) as memory:
            last = next(iter(memory._log.read(stand[0] - 1, None)), None)  # noqa: SLF001 - one house
            wanted = (
                last is not None
                and self._clock() - last.at < RECENT
                and ahead(memory._session, _view(memory._session)) is not None  # noqa: SLF001
            )
        if not wanted:
            self._looked[session] = stand
        return wanted

    def summarise(self, session: str, stop: threading.Event) -> int:
        """Write of a run, and land it: how many tokens its view got smaller by. Raises what the model failed with."""
        with self._opened(session) as memory:
            branch = memory._branches.current  # noqa: SLF001
            made = memory._run(_summarised(memory._session, branch, stop))  # noqa: SLF001
            if not stop.is_set():
                self._looked[session] = _stand(memory._branches.root, session)  # noqa: SLF001
            if made is None and (problems := memory.report().problems):
                raise PageinError(problems[-1])
        return 0 if made is None else made.tokens_before - made.tokens_after

    def _opened(self, session: str, *, readonly: bool = False) -> AgentMemory:
        return AgentMemory.open(
            self._url, session=session, tenant=self._tenant, readonly=readonly, **self._options
        )


def _summarised(session: Session, branch: str, stop: threading.Event) -> Flow[Compaction | None]:
    """The compaction that was landed; None where nothing was written, or it fits no more."""
    current = _view(session)
    plan = ahead(session, current)
    if plan is None or not (yield from begun(session, current, plan.replacements)):
        return None
    while not (yield from settled(session, LOOK)):
        if stop.is_set():
            yield from thrown_away(session)
            return None
    for _ in range(ATTEMPTS):
        if (yield from Asked("last")) != branch:
            return None
        if not any(each.record for each in with_records(session, current, plan.replacements)):
            return None
        try:
            return (yield from commit(session, current, plan))[0]
        except Conflict:
            # What came meanwhile is folded in; what was written is a record of its range, wherever that ends now.
            current = _view(session)
            plan = ahead(session, current)
            if plan is None:
                return None
    return None


def _view(session: Session) -> View:
    return session.fold.view(session.limit(session.budget))


def _stand(log: Log, session: str) -> Stand:
    head_of: Callable[[str], int] = log.head_of  # type: ignore[attr-defined] # those of a store have it
    names: tuple[str, ...] = log.sessions()  # type: ignore[attr-defined]
    return (
        head_of(session),
        *(head_of(each) for each in names if each != session and run_of(each) == session),
    )
