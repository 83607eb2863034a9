"""Erasing, done: every log of the store that has to change in one transaction, and the index before them.

The index goes first: what is killed in between has lost something that is built again, and never keeps a word too many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pagein.errors import Conflict
from pagein.events.entries import FactStated
from pagein.log.base import Log
from pagein.log.branch_log import BranchLog
from pagein.log.erasure import Cut, ErasableLog
from pagein.memory.branches import Grove
from pagein.memory.erasure.plan import Line, Planned, facts_cut, facts_of, line_of, planned
from pagein.memory.erasure.scope import (
    Erasure,
    contents_of,
    erasable,
    fact_logs,
    run_logs,
    shown_cuts,
    stated_in,
    take_out,
)
from pagein.memory.facts_runtime import Knowledge
from pagein.memory.search_runtime import Library

if TYPE_CHECKING:
    from pagein.events.entries import FactScope

ATTEMPTS = 32
"""Times that another writer may be first."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """What one memory holds, of which something is to be erased."""

    grove: Grove
    knowledge: Knowledge
    library: Library
    now: Callable[[], float]

    @property
    def root(self) -> ErasableLog:
        """The run's own log. Raises ConfigurationError for one that cannot forget, LogUnwritable."""
        return erasable(self.grove.root)

    def erase(self, asked: dict[int, frozenset[int] | None], reason: str) -> Erasure:
        """Erase places of the current branch, everywhere. Raises Conflict after many losses, LogError."""
        self._still_facts()
        return _tried(lambda: self._erased(asked, reason))

    def erase_facts(self, scope: FactScope, position: int | None, reason: str) -> Erasure:
        """Erase one fact with those whose place it took, or (None) all of an owner's in a scope."""
        self._still_facts()
        return _tried(lambda: self._erased_facts(scope, position, reason))

    def _erased(self, asked: dict[int, frozenset[int] | None], reason: str) -> Erasure:
        lines = tuple(self._lines())
        here = next(each for each in lines if each.session == self._current())
        plan = planned(lines, {(here.holder(at), at): parts for at, parts in asked.items()}, reason)
        facts = [] if plan.quotes is None else self._facts(plan, reason)
        cuts = [*plan.cuts, *facts]
        if not cuts:
            return Erasure()
        for session, entries in (plan.revised or {}).items():
            self.library.revise(entries, session)
        self._cut(cuts)
        return Erasure(plan.steps, stated_in(facts), plan.derived, plan.elsewhere, self.root.scrub())

    def _erased_facts(self, scope: FactScope, position: int | None, reason: str) -> Erasure:
        shelf = self.knowledge.facts.shelf(scope)
        log = erasable(shelf.log)
        entries = shelf.entries()
        stated = {each.position for each in entries if isinstance(each.body, FactStated)}
        wanted = stated if position is None else line_of(entries, position)
        cut = facts_cut(log.session, entries, wanted, reason)
        if cut is None:
            return Erasure()
        cuts = [cut, *shown_cuts(self._run_logs(), contents_of(entries, cut), reason)]
        self._cut(cuts)
        return Erasure(facts=stated_in([cut]), derived=len(cuts) - 1, scrubbed=self.root.scrub())

    def erase_session(self, reason: str, trace: bool) -> Erasure:
        """Erase the whole run, every branch of it, and the facts that came of it."""
        self.knowledge.close()
        lines = tuple(self._lines())
        held = [_own(self.grove.log(each.name)) for each in self.grove.branches()]
        done = take_out(
            self.root, self.knowledge.open_log, {line.session: len(line.entries) for line in lines},
            self.library.clear, reason=reason, trace=trace, at=self.now(), held=held,
        )  # fmt: skip
        self.grove.forget()
        return done

    def _still_facts(self) -> None:
        """What is being read for facts is read to its end, so that nothing of it is written behind our back."""
        if self._has_facts:
            self.knowledge.flush()
            self.knowledge.wait(None)

    @property
    def _has_facts(self) -> bool:
        return self.knowledge._facts is not None  # noqa: SLF001 - asking for them would open them

    def _current(self) -> str:
        return _own(self.grove.log(self.grove.current)).session

    def _lines(self) -> Iterator[Line]:
        for each in self.grove.branches():
            yield line_in(self.grove.log(each.name))

    def _facts(self, plan: Planned, reason: str) -> list[Cut]:
        found = []
        for log in self._fact_logs():
            entries = tuple(log.read())
            wanted = facts_of(entries, plan.gone or {}, plan.quotes) if plan.quotes else set()
            if cut := facts_cut(log.session, entries, wanted, reason):
                found.append(cut)
        return found

    def _fact_logs(self) -> Iterator[ErasableLog]:
        if not self.root.joint:
            if self._has_facts:
                yield from (erasable(log) for log in self.knowledge.facts.logs())
            return
        yield from fact_logs(self.root, self.knowledge.open_log)

    def _run_logs(self) -> Iterator[ErasableLog]:
        if self.root.joint:
            yield from run_logs(self.root, self.knowledge.open_log)
        else:
            yield from (_own(self.grove.log(each.name)) for each in self.grove.branches())

    def _cut(self, cuts: Sequence[Cut]) -> None:
        if self.root.joint:
            self.root.erase(cuts, at=self.now())
            return
        logs = [_own(self.grove.log(each.name)) for each in self.grove.branches()]
        if self._has_facts:
            logs += map(erasable, self.knowledge.facts.logs())
        by_session = {log.session: log for log in logs}
        for cut in cuts:
            by_session[cut.session].erase((cut,), at=self.now())


def _tried(attempt: Callable[[], Erasure]) -> Erasure:
    """What the attempt gives, made again where another writer was first. Raises Conflict after many losses."""
    for _ in range(ATTEMPTS - 1):
        with suppress(Conflict):
            return attempt()
    return attempt()


def line_in(log: Log) -> Line:
    """A branch's log, read."""
    own = _own(log)
    pieces = log.pieces if isinstance(log, BranchLog) else ()

    def holder(position: int) -> str:
        return next(
            (_own(each.log).session for each in pieces if each.first <= position < each.last), own.session
        )

    return Line(own.session, pieces[-1].last if pieces else 0, tuple(log.read()), holder)


def _own(log: Log) -> ErasableLog:
    return erasable(log.own if isinstance(log, BranchLog) else log)
