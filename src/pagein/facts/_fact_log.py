"""The logs of the owners' facts, the ledgers folded from them, and the ranking over all. Written by compare-and-swap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from pagein._common.retry import retry_on_conflict
from pagein.errors import Conflict, LogClosed, LogErased
from pagein.events.entries import Body, FactScope
from pagein.facts.fact import PROCEDURE, Fact, UnknownFact, fact_id, parse_fact_id
from pagein.facts.ledger import Ledger
from pagein.facts.owners import Owners
from pagein.facts.procedures import rank_procedures
from pagein.facts.ranking import RankedFact, Ranking, Weights
from pagein.facts.reconcile import removal_reason
from pagein.log.base import Entry, LogStore, StoredLog

MAX_ATTEMPTS = 16
"""Conflicts with other writers in a row before a change is given up."""


class FactLog:
    """The facts of one owner. Of two writers one wins; the other reads what was written, and decides again."""

    def __init__(self, scope: FactScope, owner: str, store: LogStore, session: str) -> None:
        self.scope = scope
        self.owner = owner
        self.ledger = Ledger()
        self._store, self._session = store, session
        self._log: StoredLog | None = None
        self._is_closed = False

    @property
    def log(self) -> StoredLog:
        """The log, opened when it is first needed. Raises LogClosed once the facts were closed."""
        if self._is_closed:
            raise LogClosed("these facts were closed; open them again to go on")
        if self._log is None:
            self._log = self._store.log(self._session)
        return self._log

    def refresh(self) -> bool:
        """Fold in the entries of other writers; return True if there were any."""
        return self._apply_entries(self.log.read(self.ledger.head))

    def change(self, decide: Callable[[Ledger], Sequence[Body]], at: float) -> tuple[Entry, ...]:
        """Append what ``decide`` returns for the current ledger, all or nothing; retry after a conflict.

        Raises what ``decide`` raises, Conflict after sixteen attempts, and LogError; nothing is written then.
        """

        def attempt() -> tuple[Entry, ...]:
            self.refresh()
            bodies = tuple(decide(self.ledger))
            if not bodies:
                return ()
            try:
                entries = self.log.append(bodies, after=self.ledger.head, at=at)
            except LogErased:
                self._reset_ledger()
                raise
            self._apply_entries(entries)
            return entries

        return retry_on_conflict(attempt, attempts=MAX_ATTEMPTS, errors=(Conflict, LogErased))

    def entries(self) -> tuple[Entry, ...]:
        """Every entry, oldest first."""
        return tuple(self.log.read())

    def close(self) -> None:
        """Release the log; a second call does nothing."""
        log, self._log, self._is_closed = self._log, None, True
        if log is not None:
            log.close()

    def _reset_ledger(self) -> None:
        """Start over with an empty ledger, after the log was erased whole."""
        ledger, self.ledger = self.ledger, Ledger()
        self.ledger.touched = {*ledger.touched, *ledger.facts, *ledger.removals}

    def _apply_entries(self, entries: Iterable[Entry]) -> bool:
        new = tuple(entries)
        if new:
            # An empty one until all are in: where Ctrl-C cuts this off, the log is folded again from its first entry.
            ledger, self.ledger = self.ledger, Ledger()
            for entry in new:
                ledger.apply(entry)
            self.ledger = ledger
        return bool(new)


class FactLogs:
    """The fact logs of all owners that a session has, and the ranking of their facts. Its caller holds a lock."""

    def __init__(self, store: LogStore, owners: Owners, weights: Weights) -> None:
        self.owners = owners
        self._logs = {
            scope: FactLog(scope, owners.owner(scope), store, owners.log_name(scope)) for scope in owners.scopes
        }
        self._ranking, self._is_ranked = Ranking(weights), True
        self._procedures: dict[str, Fact] = {}

    def __iter__(self) -> Iterator[FactLog]:
        return iter(self._logs.values())

    def ledgers(self) -> Iterator[Ledger]:
        """Yield the ledger of each owner, the narrowest scope first."""
        return (fact_log.ledger for fact_log in self)

    def of(self, scope: FactScope) -> FactLog:
        """Return the log of a scope. Raises FactError if the scope has no owner here."""
        if scope not in self._logs:
            self.owners.owner(scope)
        return self._logs[scope]

    def get(self, id: str) -> Fact:
        """Return the current fact of an id. Raises UnknownFact, with the reason if it was removed."""
        scope, position = parse_fact_id(id)
        if scope not in self._logs:
            raise UnknownFact(id, f"no {scope} is known here")
        ledger = self._logs[scope].ledger
        if position not in ledger.facts:
            raise UnknownFact(id, removal_reason(ledger, position))
        return ledger.facts[position]

    def find(self, id: str, now: float) -> Fact | None:
        """Return the fact of an id if it holds now."""
        try:
            fact = self.get(id)
        except UnknownFact:
            return None
        return fact if fact.holds(now) else None

    def refresh(self) -> bool:
        """Fold in the entries of other writers; return True if there were any."""
        changes = [fact_log.refresh() for fact_log in self]
        for fact_log in self:
            self.update_ranking(fact_log)
        return any(changes)

    def update_ranking(self, fact_log: FactLog) -> None:
        """Bring the ranking up to date with a log's ledger."""
        if not self._is_ranked:  # an update was cut off
            self._ranking = Ranking(self._ranking.weights)
            for each in self:
                each.ledger.touched |= each.ledger.facts.keys()
        ledger = fact_log.ledger
        self._is_ranked = not ledger.touched
        for position in ledger.touched:
            fact, id = ledger.facts.get(position), fact_id(fact_log.scope, position)
            self._procedures.pop(id, None)
            if fact is None:
                self._ranking.drop(id)
            elif fact.category == PROCEDURE:
                self._procedures[id] = fact
            else:
                self._ranking.add(fact)
        ledger.touched.clear()
        self._is_ranked = True

    def rank(self, context: str, now: float, limit: int) -> tuple[RankedFact, ...]:
        """Rank the facts but procedures that hold now for a context, best first."""
        return tuple(self._ranking.rank(context, now=now, limit=limit))

    def rank_procedures(self, tasks: Sequence[str], now: float) -> tuple[RankedFact, ...]:
        """Rank the procedures that hold now by their likeness to the tasks, best first."""
        return rank_procedures([fact for fact in self._procedures.values() if fact.holds(now)], tasks)
