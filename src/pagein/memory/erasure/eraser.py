"""Carries out an erasure in every log: the search index first, then the logs in one transaction.

The index goes first: an erasure that is killed in between has lost an index that can be built again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from pagein._common.retry import retry_on_conflict
from pagein.events.entries import FactScope, FactStated
from pagein.facts.fact import fact_id
from pagein.facts.owners import Owners
from pagein.log.base import StoredLog
from pagein.log.branch_log import BranchLog
from pagein.log.erasure import Cut
from pagein.memory.branches import Branches
from pagein.memory.erasure.plan import (
    BranchEntries,
    ErasurePlan,
    cut_facts,
    facts_from,
    join_cuts,
    plan_erasure,
    unsourced_facts,
    with_superseded,
)
from pagein.memory.erasure.sessions import (
    Erasure,
    check_erasable,
    count_facts,
    cut_shown,
    erase_sessions,
    erased_contents,
    fact_logs,
    openable_logs,
    run_logs,
)
from pagein.memory.facts_runtime import FactsRuntime
from pagein.memory.search_runtime import SearchRuntime

ATTEMPTS = 32
"""Times that an erasure is tried while other writers come first."""


@dataclass(frozen=True, slots=True)
class Eraser:
    """The eraser of one memory: of its run with every branch, its facts and its search index."""

    branches: Branches
    facts: FactsRuntime
    search: SearchRuntime
    clock: Callable[[], float]

    @property
    def root(self) -> StoredLog:
        """The run's own log. Raises LogUnwritable where nothing may be written."""
        return check_erasable(self.branches.root)

    def erase(self, places: dict[int, frozenset[int] | None], reason: str) -> Erasure:
        """Erase places of the current branch, on every branch. Raises Conflict after ``ATTEMPTS`` losses, LogError."""
        self._finish_extraction()
        return retry_on_conflict(lambda: self._erase(places, reason), attempts=ATTEMPTS)

    def erase_facts(self, scope: FactScope, position: int | None, reason: str) -> Erasure:
        """Erase one fact with those it superseded, or (None) all of an owner's in a scope."""
        self._finish_extraction()
        return retry_on_conflict(lambda: self._erase_facts(scope, position, reason), attempts=ATTEMPTS)

    def _erase(self, places: dict[int, frozenset[int] | None], reason: str) -> Erasure:
        branches = tuple(self._read_branches())
        current = own_log(self.branches.log(self.branches.current)).session
        here = next(branch for branch in branches if branch.session == current)
        plan = plan_erasure(branches, {here.place(at): parts for at, parts in places.items()}, reason)
        fact_cuts, contents, fact_ids = ([], [], ()) if plan.repetitions is None else self._fact_cuts(plan, reason)
        if not plan.cuts and not fact_cuts:
            return Erasure()
        for session, entries in (plan.revised or {}).items():
            self.search.revise(entries, session)
        # A fact that goes was shown to other runs of its owner, too.
        shown = tuple(cut_shown(openable_logs(run_logs(self.root.store)), contents, reason)) if contents else ()
        self._erase_in_stores(join_cuts(plan.cuts, shown), fact_cuts)
        telling = () if plan.repetitions is None else plan.repetitions.telling
        scrubbed = self.root.store.scrub(telling) and not self._has_word_of(telling)
        return Erasure(plan.steps, count_facts(fact_cuts), plan.derived, (*plan.elsewhere, *fact_ids), scrubbed)

    def _has_word_of(self, words: Collection[str]) -> bool:
        """True where an entry of the run, on any branch, still has one of these words; encrypted ones are read."""
        bodies = (repr(entry.body).casefold() for branch in self._read_branches() for entry in branch.entries)
        return bool(words) and any(word in body for body in bodies for word in words)

    def _erase_facts(self, scope: FactScope, position: int | None, reason: str) -> Erasure:
        fact_log = self.facts.facts.fact_log(scope)
        session = check_erasable(fact_log.log).session
        entries = fact_log.entries()
        stated = {entry.position for entry in entries if isinstance(entry.body, FactStated)}
        positions = stated if position is None else with_superseded(entries, position)
        cut = cut_facts(session, entries, positions, reason)
        if cut is None:
            return Erasure()
        cuts = list(cut_shown(openable_logs(run_logs(self.root.store)), erased_contents(entries, cut), reason))
        self._erase_in_stores(cuts, [cut])
        return Erasure(facts=count_facts([cut]), derived=len(cuts), scrubbed=self.root.store.scrub())

    def erase_session(self, reason: str, trace: bool) -> Erasure:
        """Erase the whole run, every branch of it, and the facts that came from it alone."""
        self.facts.close()
        sizes = {branch.session: len(branch.entries) for branch in self._read_branches()}
        erasure = erase_sessions(
            self.root, self.facts.store, sizes, self.search.clear, reason=reason, trace=trace, at=self.clock()
        )
        self.branches.forget()
        return replace(erasure, scrubbed=self.root.store.scrub())

    def _finish_extraction(self) -> None:
        """Wait for facts that are being extracted, so that none is written behind the erasure."""
        if self.facts.is_open:
            self.facts.extract(flush=True)
            self.facts.wait(None)

    def _read_branches(self) -> Iterator[BranchEntries]:
        return (read_branch(self.branches.log(branch.name)) for branch in self.branches.list())

    def _fact_cuts(self, plan: ErasurePlan, reason: str) -> tuple[list[Cut], list[str], tuple[str, ...]]:
        """The cuts in the logs of facts, what the facts that they erase say, and the ids of others that say the same."""
        cuts: list[Cut] = []
        contents: list[str] = []
        known: list[str] = []
        owners = Owners(self.root.session, tenant=self.root.tenant, **self.facts.owner_names)
        scopes = {owners.log_name(scope): scope for scope in owners.scopes}
        repeats = plan.repetitions or (lambda _: False)
        for log in openable_logs(fact_logs(self.facts.store)):
            entries, scope = tuple(log.read()), scopes.get(log.session)
            positions = facts_from(entries, plan.erased or {}, repeats, is_own=scope in {"session", "task"})
            if scope is not None:
                known += [fact_id(scope, at) for at in sorted(unsourced_facts(entries, repeats) - positions)]
            if cut := cut_facts(log.session, entries, positions, reason):
                cuts.append(cut)
                contents += erased_contents(entries, cut)
        return cuts, contents, tuple(known)

    def _erase_in_stores(self, cuts: Sequence[Cut], facts: Sequence[Cut]) -> None:
        """Make the cuts in the run's sessions and in those of facts: in one transaction where they are in one store."""
        store = self.facts.store
        if store is self.root.store:
            self.root.erase((*cuts, *facts), at=self.clock())
            return
        self.root.erase(cuts, at=self.clock())
        if facts:
            store.erase(facts, at=self.clock())


def read_branch(log: StoredLog) -> BranchEntries:
    """Read a branch's log."""
    own = own_log(log)
    pieces = log.pieces if isinstance(log, BranchLog) else ()

    def holder(position: int) -> str:
        return next(
            (own_log(piece.log).session for piece in pieces if piece.first <= position < piece.last), own.session
        )

    return BranchEntries(own.session, pieces[-1].last if pieces else 0, tuple(log.read()), holder)


def own_log(log: StoredLog) -> StoredLog:
    """The log that holds a branch's own entries."""
    return log.own if isinstance(log, BranchLog) else log
