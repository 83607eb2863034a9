"""``Facts``: the facts of a session, its user, project, task and tenant, as a memory has them in ``memory.facts``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from pagein.context.view.view import OutOfView
from pagein.errors import LogError, PageinError
from pagein.events.entries import Body, FactConfirmed, FactRemoved, FactScope, FactsUsed, Source
from pagein.events.steps import Step
from pagein.facts import procedures
from pagein.facts._comparison import FactComparison
from pagein.facts._fact_blocks import FactBlocks
from pagein.facts._fact_log import FactLog, FactLogs
from pagein.facts.block import Block
from pagein.facts.export import drafts_from, export_facts
from pagein.facts.extraction.pipeline import FactExtraction, ReadEntries
from pagein.facts.fact import (
    PROCEDURE,
    SCOPES,
    Fact,
    FactError,
    UnknownFact,
    checked_category,
    checked_confidence,
    checked_content,
    checked_interval,
    checked_scope,
    content_key,
    parse_fact_id,
)
from pagein.facts.ledger import Change, Ledger, ledger_of
from pagein.facts.owners import Owners
from pagein.facts.placement import PlacedBlock
from pagein.facts.ranking import MAX_RANKED, RankedFact, check_search
from pagein.facts.reconcile import FactDraft, build_bodies, find_same, merge_facts, removal_reason
from pagein.facts.retention import near_duplicates, stale_facts
from pagein.facts.settings import Settings
from pagein.log.base import LogStore
from pagein.tokens import TokenCounter

if TYPE_CHECKING:
    from pagein.models import Model
    from pagein.models.writer_account import WriterAccount
    from pagein.search.base import Embedder

_UNCHANGED: Any = object()


class Facts:
    """The facts that one session may see: its own, its task's, its project's, its user's and its tenant's.

    ``store`` is the run's; ``Facts.open`` opens one at an address. ``model`` finds contradictions, and extracts facts if
    ``extract`` says so; ``embedder`` finds facts that say the same in other words. ``account`` says when the
    model rests, and what it cost. Every change is appended, and durable
    before it returns. Entries of other processes are seen at the next call. Safe to share between threads. Raises FactError
    for invalid facts, and LogError.
    """

    def __init__(
        self,
        store: LogStore,
        owners: Owners,
        settings: Settings | None = None,
        *,
        model: Model | None = None,
        embedder: Embedder | None = None,
        clock: Callable[[], float] = time.time,
        account: WriterAccount | None = None,
    ) -> None:
        self.owners = owners
        self.settings = settings or Settings()
        self.model = model
        self._clock = clock
        self.account = account
        self._lock = threading.RLock()
        self._logs = FactLogs(store, owners, self.settings.weights)
        self._comparison = FactComparison(self._logs, self._lock, clock, model, embedder, account)
        self._blocks = FactBlocks(self._logs, self.settings, clock)
        self._used: dict[str, None] = {}
        self._extraction = FactExtraction(self)
        self.tasks: tuple[str, ...] = ()
        """The tasks for which a block has procedures, each described in a line; without any, those of its context."""
        self.paused = False
        """True: no facts are extracted until it is False again."""

    @classmethod
    def open(
        cls,
        url: str,
        *,
        session: str = "default",
        user: str | None = None,
        project: str | None = None,
        task: str | None = None,
        tenant: str = "",
        settings: Settings | None = None,
        model: Model | None = None,
        embedder: Embedder | None = None,
        clock: Callable[[], float] = time.time,
        **store: Any,
    ) -> Self:
        """Open the facts in a store: a path, ``:memory:`` or a server's address; ``store`` are options of ``open_store``."""
        from pagein.backends.open import open_store  # noqa: PLC0415 - a store's drivers load when one is opened

        owners = Owners(session, user, project, task, tenant)
        logs = open_store(url, tenant=tenant, **store)
        return cls(logs, owners, settings, model=model, embedder=embedder, clock=clock)

    # -- changes

    def add(
        self,
        content: str,
        *,
        category: str = "context",
        confidence: float = 1.0,
        scope: FactScope | None = None,
        valid_from: float | None = None,
        valid_until: float | None = None,
        sources: Sequence[str | Source] = (),
        author: str = "host",
        reason: str = "",
    ) -> Fact:
        """State a fact, in the user's scope by default (in the session's without a user).

        A known fact is confirmed and returned instead. A contrary older fact is replaced if the model says so; without a model
        both stay, and the newer is preferred. ``sources`` are handles of this session. Raises FactError.
        """
        draft = FactDraft(
            checked_content(content), checked_category(category, self.settings.all_categories),
            checked_confidence(confidence), self.owners.default_scope if scope is None else checked_scope(scope),
            valid_from, valid_until, self.sources(sources), author=author, reason=reason,
        )  # fmt: skip
        checked_interval(valid_from, valid_until)
        return self.state_facts([draft])[0]

    def save_procedure(self, steps: Sequence[tuple[int, Step]], task: str | None = None, author: str = "host") -> Fact:
        """State how the task of the session's steps was done, for the project or else the user; an older one is replaced.

        ``task`` describes it instead of the user's words. Raises FactError without an owner, a description, or a success.
        """
        scope: FactScope = "project" if "project" in self.owners.scopes else "user"
        self.owners.owner(scope)
        content, handles = procedures.derive_procedure(steps, task)
        key = content_key(content.partition("\n")[0])
        older = tuple(
            fact.id
            for fact in self.list(scope=scope, category=PROCEDURE, all=True)
            if fact.content != content and content_key(fact.headline) == key
        )
        confidence = 1.0 if author == "host" else procedures.UNCONFIRMED_CONFIDENCE
        draft = FactDraft(content, PROCEDURE, confidence, scope, None, None, self.sources(handles), older, author)
        return self.state_facts([draft], strict=False)[0]

    def update(
        self,
        id: str,
        content: str | None = None,
        *,
        category: str | None = None,
        confidence: float | None = None,
        valid_from: float | None = _UNCHANGED,
        valid_until: float | None = _UNCHANGED,
        sources: Sequence[str | Source] = (),
        author: str = "host",
        reason: str = "",
    ) -> Fact:
        """Replace a fact; arguments that are not given keep their value. The older fact stays in the history.

        Raises UnknownFact, FactError.
        """
        before = self.get(id)
        draft = FactDraft(
            before.content if content is None else checked_content(content),
            before.category if category is None else checked_category(category, self.settings.all_categories),
            before.confidence if confidence is None else checked_confidence(confidence),
            before.scope,
            before.valid_from if valid_from is _UNCHANGED else valid_from,
            before.valid_until if valid_until is _UNCHANGED else valid_until,
            tuple(dict.fromkeys((*before.sources, *self.sources(sources)))), (before.id,), author, reason,
        )  # fmt: skip
        checked_interval(draft.valid_from, draft.valid_until)
        return self.state_facts([draft])[0]

    def correct(self, id: str, content: str, *, reason: str = "corrected", author: str = "user") -> Fact:
        """Replace a fact by a correct one, with confidence 1. Raises UnknownFact, FactError."""
        return self.update(id, content, confidence=1.0, reason=reason, author=author)

    def remove(self, id: str, *, reason: str = "removed", author: str = "host") -> Fact:
        """Remove a fact; its content and the reason stay in the history. Raises UnknownFact."""
        if not isinstance(reason, str):
            raise FactError(f"a reason is text, not {reason!r}. Nothing was removed.")
        return self._append_for(id, lambda position: FactRemoved(position, reason, author))

    def confirm(
        self,
        id: str,
        *,
        confidence: float | None = None,
        sources: Sequence[str | Source] = (),
        author: str = "host",
        reason: str = "confirmed",
    ) -> Fact:
        """Confirm that a fact still holds, with a new confidence if given. Raises UnknownFact."""
        sure = None if confidence is None else checked_confidence(confidence)
        checked_sources = self.sources(sources)
        self._append_for(id, lambda position: FactConfirmed(position, sure, checked_sources, author, reason))
        return self.get(id)

    def import_(self, data: Any, *, scope: FactScope | None = None) -> tuple[Fact, ...]:
        """State the facts of an ``export``, of a list, or of deer-flow's ``memory.json``; each scope as a whole or not at all.

        Facts keep their scope unless ``scope`` names one; a fact whose scope has no owner here gets the default scope. Raises
        FactError naming the first invalid fact, before anything is written.
        """
        drafts = drafts_from(data, self.settings.all_categories, self.owners, scope)
        stated: list[Fact] = []
        for owner_scope in SCOPES:
            if of_scope := [draft for draft in drafts if draft.scope == owner_scope]:
                most = self.settings.capacity.max_facts
                if most and len(of_scope) > most:
                    raise FactError(f"{len(of_scope):,} facts, but max_facts is {most:,}: raise it")
                stated.extend(self.state_facts(of_scope, strict=False))
        return tuple(stated)

    # -- looks

    def get(self, id: str) -> Fact:
        """The current fact of an id. Raises UnknownFact, with the reason if it was removed."""
        with self._current():
            return self._logs.get(id)

    def list(
        self, *, scope: FactScope | None = None, category: str | None = None, all: bool = False
    ) -> tuple[Fact, ...]:
        """The facts that hold now, the narrowest scope first, each oldest first; with ``all`` also those of other times."""
        checked = None if scope is None else checked_scope(scope)
        kind = None if category is None else checked_category(category, self.settings.all_categories)
        now = self._clock()
        with self._current():
            facts = [fact for ledger in self._logs.ledgers() for fact in ledger.facts.values()]
        return tuple(
            fact
            for fact in facts
            if (checked in (None, fact.scope)) and (kind in (None, fact.category)) and (all or fact.holds(now))
        )

    def search(self, query: str, *, limit: int = 10) -> tuple[RankedFact, ...]:
        """The facts but procedures that share a term with the query, best first; each of them counts as used."""
        check_search(query, limit)
        ranked = tuple(match for match in self.rank(query, limit=MAX_RANKED) if match.similarity > 0)[:limit]
        with self._lock:
            self._used.update((match.fact.id, None) for match in ranked)
        return ranked

    def find_procedures(self, query: str, *, limit: int = procedures.MAX_SHOWN) -> tuple[RankedFact, ...]:
        """The procedures of tasks similar to the one that the query describes, best first."""
        check_search(query, limit)
        self.refresh()
        return self._logs.rank_procedures((procedures.describe_task(query),), self._clock())[:limit]

    def rank(self, context: str = "", *, limit: int = MAX_RANKED) -> tuple[RankedFact, ...]:
        """The facts but procedures that hold now, ranked for the context (see ``context_of``); at most 512."""
        with self._current():
            return self._logs.rank(context, self._clock(), limit)

    def block(self, context: str = "", *, counter: TokenCounter, max_tokens: int | None = None) -> Block:
        """The ``<memory>`` block for the context, within ``max_injection_tokens`` by the counter."""
        with self._current():
            return self._blocks.build(context, counter, max_tokens)

    def place_blocks(
        self, blocks: tuple[PlacedBlock, ...], context: str, *, position: int, counter: TokenCounter, max_tokens: int
    ) -> tuple[PlacedBlock, ...]:
        """Place the blocks of a view that has come to ``position``: ``blocks`` stays while its facts hold.

        Together they are within ``max_tokens`` and ``max_injection_tokens``. See ``placement``.
        """
        with self._current():
            return self._blocks.place(blocks, context, self.tasks, position, counter, max_tokens)

    def place_head_block(self, text: str, context: str, *, counter: TokenCounter, max_tokens: int) -> Block:
        """Place the block of a view's head, whose text is ``text`` now: unchanged while its facts hold and matter."""
        with self._current():
            return self._blocks.place_head(text, context, self.tasks, counter, max_tokens)

    @property
    def left_out(self) -> tuple[OutOfView, ...]:
        """The facts that mattered to the last request and had no room, best first, each with the reason."""
        return self._blocks.left_out

    def as_of(self, at: float) -> tuple[Fact, ...]:
        """The facts that were known at a time and valid then."""
        checked_interval(at, None)
        with self._lock:
            ledgers = [ledger_of(fact_log.entries(), until=at) for fact_log in self._logs]
        return tuple(fact for ledger in ledgers for fact in ledger.facts.values() if fact.holds(at))

    def history(self, id: str) -> tuple[Change, ...]:
        """The changes of a fact, and of those it replaced, oldest first. Raises UnknownFact."""
        scope, position = parse_fact_id(id)
        with self._current():
            changes = self._logs.of(scope).ledger.history(position) if scope in self.owners.scopes else ()
        if not changes:
            raise UnknownFact(id)
        return changes

    def audit(self) -> tuple[Change, ...]:
        """Every change of every fact this memory may see, with author and reason, oldest first."""
        with self._current():
            changes = [change for ledger in self._logs.ledgers() for change in ledger.changes()]
        return tuple(sorted(changes, key=lambda change: change.at))

    def export(self) -> dict[str, Any]:
        """Every current fact, as JSON-safe values for ``import_``."""
        return export_facts(self.list(all=True))

    # -- housekeeping

    def stale(self, days: float | None = None) -> tuple[Fact, ...]:
        """The facts to review: expired, or not stated for so many days. Nothing is removed."""
        return stale_facts(self.list(all=True), self._clock(), self.settings.stale_days if days is None else days)

    def tidy(self) -> tuple[Change, ...]:
        """Merge near-duplicates and remove expired facts; return the changes, each with its reason."""
        with self._lock:
            before = set(self.audit())
            for scope in self.owners.scopes:
                for group in near_duplicates(self.list(scope=scope), self._comparison.similar_facts):
                    self.state_facts([merge_facts(group)], strict=False)
            now = self._clock()
            for fact in self.list(all=True):
                if fact.valid_until is not None and fact.valid_until <= now:
                    self.remove(fact.id, reason="no longer valid", author="rules")
            return tuple(change for change in self.audit() if change not in before)

    # -- from a run

    def extract_due(self, read: ReadEntries, head: int) -> tuple[Fact, ...]:
        """Note that the run's log has come to ``head``, and extract facts if it is time; return them.

        ``read`` returns entries as a log's ``read``. Rules read at once; a model is asked after ``debounce`` seconds without a
        new entry. A model's failure is in ``last_error``.
        """
        return () if self.paused else self._extraction.extract_due(read, head, self._clock())

    def flush(self, read: ReadEntries, head: int) -> tuple[Fact, ...]:
        """Extract facts from all unread entries now: before a compaction, and at the end."""
        return () if self.paused else self._extraction.flush(read, head, self._clock())

    def mark_read(self) -> None:
        """Record how far this session was read for facts, so that no other process reads it again. Raises LogError."""
        self._extraction.mark_read(1)

    @property
    def uses_model(self) -> bool:
        """True if a model extracts facts, and so waits until a session is quiet."""
        return self._extraction.model is not None

    @property
    def last_error(self) -> PageinError | None:
        """The error of the last extraction; its span is read again with the next."""
        return self._extraction.error

    def close(self) -> None:
        """Record the uses of facts and what was read, and release the logs; a second call does nothing."""
        with self._lock:
            with suppress(LogError):
                self.note_uses()
                self._extraction.mark_read()
            for fact_log in self._logs:
                fact_log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _append_for(self, id: str, body: Callable[[int], Body]) -> Fact:
        scope, position = parse_fact_id(id)
        with self._lock:
            fact = self.get(id)

            def decide(ledger: Ledger) -> list[Body]:
                if position not in ledger.facts:
                    raise UnknownFact(id, removal_reason(ledger, position))
                return [body(position)]

            self.write(self._logs.of(scope), decide)
            return fact

    # -- the logs, and the one way to write to them

    def state_facts(self, drafts: Sequence[FactDraft], *extra: Body, strict: bool = True) -> tuple[Fact, ...]:
        """State drafts of one scope, and write ``extra`` after them, in one append; return the facts that stand for them.

        A fact never leaves before its replacement is stored.
        """
        fact_log = self.fact_log(drafts[0].scope)
        self.refresh()
        # A model may be asked here; the lock is not held meanwhile.
        judgements = {draft.content: self._comparison.judge(draft) for draft in drafts}

        def decide(ledger: Ledger) -> list[Body]:
            stated = build_bodies(
                drafts, ledger, fact_log.owner, judgements=judgements, capacity=self.settings.capacity,
                now=self._clock(), strict=strict,
            )  # fmt: skip
            return [*stated, *extra]

        with self._lock:
            self.write(fact_log, decide)
            facts = (find_same(draft, fact_log.ledger, judgements[draft.content]) for draft in drafts)
            return tuple(dict.fromkeys(fact for fact in facts if fact is not None))

    def write(self, fact_log: FactLog, decide: Callable[[Ledger], Sequence[Body]]) -> None:
        """Append what ``decide`` returns for the current ledger, and update the ranking. Raises what ``decide`` raises."""
        with self._lock:
            fact_log.change(decide, self._clock())
            self._logs.update_ranking(fact_log)

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Hold the lock, with what other sessions and processes wrote folded in."""
        with self._lock:
            self.refresh()
            yield

    def refresh(self) -> bool:
        """Fold in entries of other sessions and processes; return True if there were any."""
        with self._lock:
            return self._logs.refresh()

    def note_uses(self) -> None:
        """Record which facts were found by searches since the last time, if any."""
        with self._lock:
            used, self._used = [parse_fact_id(id) for id in self._used], {}
            for fact_log in self._logs:
                if positions := tuple(position for scope, position in used if scope == fact_log.scope):
                    noted = (FactsUsed(positions),)
                    self.write(fact_log, lambda _: noted)  # noqa: B023 - called at once

    def extracted_until(self) -> int:
        """The position up to which this session was read for facts."""
        with self._lock:
            fact_log = self.fact_log("session")
            fact_log.refresh()
            return fact_log.ledger.extracted.get(self.owners.session, 0)

    def sources(self, handles: Sequence[str | Source]) -> tuple[Source, ...]:
        """Handles as sources, by default of this session. Raises FactError."""
        if isinstance(handles, str) or not all(isinstance(handle, str | Source) for handle in handles):
            raise FactError(f"sources are a list of handles such as 's12', not {handles!r}")
        return tuple(
            handle if isinstance(handle, Source) else Source(self.owners.session, handle) for handle in handles
        )

    def fact_log(self, scope: FactScope) -> FactLog:
        """The log of a scope. Raises FactError if the scope has no owner here."""
        return self._logs.of(scope)
