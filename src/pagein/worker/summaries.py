"""Summaries of runs that are open elsewhere: written from the run as it is now, and appended at its head later.

A run is due from its soft mark on; the worker is given the application's budget and policy. The model is asked
about the steps that would leave the view; then the compaction is appended at the head, by compare-and-swap. If
the application recorded more meanwhile, the view is made again, and the summary is used for the ranges that
still leave. If the application compacted the run itself, or switched its branch, the summary is dropped. The
application's memory folds the compaction in before its next operation.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from pagein.errors import Conflict, PageinError
from pagein.events.entries import Compaction
from pagein.log.base import LogStore
from pagein.log.branch_log import run_of
from pagein.memory._effects import Call, Flow
from pagein.memory._state import RunState
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.host_memory import runtime_of, take_turn
from pagein.memory.operations.compact import attach_summaries, commit_plan
from pagein.memory.operations.summarize import cancel_summary, collect_summary, plan_ahead, start_summary
from pagein.memory.options import Options

RECENT_SECONDS = 86_400.0
"""Seconds since its last entry after which a run is taken to be at rest, and is not summarised."""

MODEL_POLL_SECONDS, COMMIT_ATTEMPTS = 0.1, 8
"""Seconds between two checks of the model; attempts to append where the application writes, too."""

Heads = tuple[int, ...]
"""The numbers of entries of a run and of each of its branches."""


class SummaryJobs:
    """The summaries of one tenant's runs. ``options`` are the application's, the summarizer among them.

    A run whose summary failed or saved nothing is tried again when it has new entries. Raises
    ConfigurationError, LogError.
    """

    def __init__(
        self, url: str, options: Mapping[str, Any], *, tenant: str = "", clock: Callable[[], float] = time.time
    ) -> None:
        self._url, self._tenant, self._clock = url, tenant, clock
        self._options = Options(**options, page_in=0.0, clock=clock)  # type: ignore[typeddict-item]
        self._last_heads: dict[str, Heads] = {}
        with closing(AgentMemory.open(":memory:", **self._options)):
            pass  # an invalid option raises now

    def is_due(self, store: LogStore, session: str) -> bool:
        """True where an active run is beyond its soft mark."""
        heads = _heads(store, session)
        if self._last_heads.get(session) == heads:
            return False
        with self._open_memory(session, readonly=True) as memory:
            last = next(iter(runtime_of(memory).log.read(heads[0] - 1, None)), None)
            is_due = (
                last is not None
                and self._clock() - last.at < RECENT_SECONDS
                and plan_ahead(run := runtime_of(memory).state, run.current_view()) is not None
            )
        if not is_due:
            self._last_heads[session] = heads
        return is_due

    def write_summary(self, session: str, stop: threading.Event) -> int:
        """Summarise a run; return the number of tokens saved in its view. Raises the model's error."""
        with self._open_memory(session) as memory:
            branch = runtime_of(memory).branches.current
            compaction = take_turn(memory, _write_and_commit, branch, stop)
            if not stop.is_set():
                self._last_heads[session] = _heads(runtime_of(memory).branches.root.store, session)
            if compaction is None and (problems := memory.report().problems):
                raise PageinError(problems[-1])
        return 0 if compaction is None else compaction.tokens_before - compaction.tokens_after

    def _open_memory(self, session: str, *, readonly: bool = False) -> AgentMemory:
        return AgentMemory.open(self._url, session=session, tenant=self._tenant, readonly=readonly, **self._options)


def _write_and_commit(run: RunState, branch: str, stop: threading.Event) -> Flow[Compaction | None]:
    """Write a summary and append its compaction; None where nothing was written, or it no longer fits."""
    current = run.current_view()
    plan = plan_ahead(run, current)
    if plan is None or not (yield from start_summary(run, current, plan.replacements)):
        return None
    while not (yield from collect_summary(run, MODEL_POLL_SECONDS)):
        if stop.is_set():
            yield from cancel_summary(run)
            return None
    for _ in range(COMMIT_ATTEMPTS):
        if (yield from Call(lambda runtime: runtime.branches.last_branch)) != branch:
            return None
        if not any(replacement.record for replacement in attach_summaries(run, current, plan.replacements)):
            return None
        try:
            return (yield from commit_plan(run, current, plan))[0]
        except Conflict:
            # The other entries are folded in by now; the summary is kept for its range where that still leaves.
            current = run.current_view()
            plan = plan_ahead(run, current)
            if plan is None:
                return None
    return None


def _heads(store: LogStore, session: str) -> Heads:
    names = store.sessions()
    return (store.head(session), *(store.head(name) for name in names if name != session and run_of(name) == session))
