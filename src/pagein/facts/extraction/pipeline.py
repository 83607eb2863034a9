"""The extraction of facts from a session: once a span, when it is due, only from the user, answers and allowed tools.

The position is written behind the facts, in the same append, in every log they went to, so a crash repeats the reading
and not the facts. If a model fails nothing changes: its span is read again with the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pagein.errors import PageinError
from pagein.events.entries import REWRITTEN, Compaction, FactRemoved, FactScope, FactsExtracted, Observed, Source
from pagein.events.handles import observation_handle, step_handle
from pagein.events.protocol import ends_in_call
from pagein.events.steps import ActionStep, TaskStep, as_text
from pagein.facts.contradiction import is_corrected_by, is_near, slot_terms
from pagein.facts.extraction.candidates import RETRACTION, FactCandidate, Utterance
from pagein.facts.extraction.model import ExtractionAnswer, RejectedAnswer, extraction_request, parse_answer
from pagein.facts.fact import Fact, parse_fact_id
from pagein.facts.ranking import statement_text
from pagein.facts.reconcile import FactDraft
from pagein.log.base import Entry

if TYPE_CHECKING:
    from pagein.facts.store import Facts
    from pagein.models import Model

ReadEntries = Callable[[int, int], Iterable[Entry]]
"""Returns the run's entries ``[start, stop)``, as a log's ``read`` does."""

CONTEXT_ENTRIES = 6
"""Entries before the span that a model sees as context."""

MAX_SPAN_CHARS = 60_000
"""Characters of text in one request; the rest is read with the next."""

MAX_KNOWN_FACTS = 40
"""Known facts that a model sees."""

MIN_MARKED_ENTRIES = 200
"""Entries without a fact after which the position is recorded."""

MIN_MARKED_AT_CLOSE = 8
"""The same where a memory is closed: the next opening reads what is behind the position again, at 3 ms for an entry."""

MAX_DEBOUNCES = 4
"""Debounces after which a busy session is read in any case."""


@dataclass(slots=True)
class ReadingPace:
    """The time to read a session: ``debounce`` seconds after its last turn, at most four times as many after its first."""

    debounce: float
    first: float | None = None
    """The time of the oldest unread turn; None if there is none."""
    last: float = 0.0

    def is_due(self, now: float) -> bool:
        """True if it is time."""
        return self.first is not None and self.remaining(now) <= 0

    def remaining(self, now: float) -> float:
        """Seconds until it is time, if no turn comes meanwhile."""
        first = now if self.first is None else self.first
        return min(self.last + self.debounce, first + MAX_DEBOUNCES * self.debounce) - now

    def note_turn(self, now: float) -> None:
        """Note a turn, or a failed reading."""
        self.first = now if self.first is None else self.first
        self.last = now

    def reset(self) -> None:
        """Note that everything is read."""
        self.first = None


class FactExtraction:
    """The extraction of one ``Facts``: its pace, and the position that was read."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._head = 0
        self._read_until = 0
        """The position before which every fact is recorded."""
        self._before: tuple[int, object] = (0, None)
        """The body before the next entry to read, and that entry's position."""
        self._lock = threading.RLock()
        self._pace = ReadingPace(facts.settings.debounce)
        self.error: PageinError | None = None
        """The error of the last reading, or None."""

    @property
    def model(self) -> Model | None:
        """The model that extracts, or None for the rules."""
        facts = self._facts
        return facts.model if facts.settings.extract in ("auto", "model") else None

    @property
    def is_off(self) -> bool:
        """True if nothing is extracted."""
        extract = self._facts.settings.extract
        return extract == "off" or (extract == "model" and self._facts.model is None)

    def extract_due(self, read: ReadEntries, head: int, now: float) -> tuple[Fact, ...]:
        """Note that the run has come to ``head``; extract facts if it is time."""
        with self._lock:
            due, new = self._pace.is_due(now), head > self._head
            if new and not self.is_off:
                self._head = head
                self._pace.note_turn(now)
            return self.flush(read, self._head, now) if due or (new and self.model is None) else ()

    def flush(self, read: ReadEntries, head: int, now: float) -> tuple[Fact, ...]:
        """Extract facts from all unread entries now, and return them. A model's failure is kept in ``error``."""
        with self._lock:
            return () if self.is_off else self._flush(read, head, now)

    def mark_read(self, min_entries: int = MIN_MARKED_AT_CLOSE) -> None:
        """Record the position that was read, where it is so many entries on: the next process goes on there. Raises LogError."""
        with self._lock:
            if self._read_until - self._facts.extracted_until() >= min_entries:
                self._record_drafts((), self._read_until, "rules" if self.model is None else self.model.name)

    def _flush(self, read: ReadEntries, head: int, now: float) -> tuple[Fact, ...]:
        facts: list[Fact] = []
        self.error = None
        start = max(self._facts.extracted_until(), self._read_until)
        while start < head:
            if start and self._before[0] != start:
                self._before = start, next((entry.body for entry in read(start - 1, start)), None)
            entries = list(read(start, head))
            utterances, stop = _read_span(entries, self._facts, head, self._before[1])
            try:
                facts += self._extract_span(utterances, read, start, stop)
            except (PageinError, ValueError) as error:
                if not _is_model_error(error):
                    raise
                self.error = error if isinstance(error, PageinError) else None
                self._pace.note_turn(now)
                return tuple(facts)
            self._before = stop, next((entry.body for entry in entries if entry.position == stop - 1), None)
            start = self._read_until = stop
        self._pace.reset()
        self._head = max(self._head, head)
        return tuple(facts)

    def _extract_span(self, utterances: list[Utterance], read: ReadEntries, start: int, stop: int) -> tuple[Fact, ...]:
        model = self.model
        if model is None or not utterances:
            from pagein.facts.extraction.rules import find_candidates  # noqa: PLC0415 - its patterns compile where a text is read

            stated, drafts = list[Fact](), tuple[FactDraft, ...]()
            for part in _split_by_time(find_candidates(utterances)):
                stated += self._facts.state_facts(drafts, strict=False) if drafts else ()
                drafts = self._drafts_from(part)
            # Reading again costs little; an entry for each turn would cost more.
            if not drafts and stop - self._facts.extracted_until() < MIN_MARKED_ENTRIES:
                return ()
            return (*stated, *self._record_drafts(drafts, stop, "rules"))
        answer = self._ask_model(model, utterances, read, start)
        facts = self._record_drafts(answer.drafts, stop, model.name)
        for id, reason in answer.removals:
            self._remove(id, reason, model.name)
        return facts

    def _ask_model(
        self, model: Model, utterances: Sequence[Utterance], read: ReadEntries, start: int
    ) -> ExtractionAnswer:
        from pagein.models.writer_account import account_for  # noqa: PLC0415 - where a model is asked

        facts = self._facts
        before, _ = _read_span(list(read(max(0, start - CONTEXT_ENTRIES), start)), facts, start)
        text = "\n".join(utterance.text for utterance in utterances)
        known_facts = [utterance.fact for utterance in facts.rank(text, limit=MAX_KNOWN_FACTS)]
        with account_for(facts.account, model.name):
            reply = model.write(extraction_request(utterances, before, known_facts, facts.settings, facts.owners))
            if reply.finish == "length":
                raise RejectedAnswer("the answer was cut at its limit")
            return parse_answer(reply.text, utterances, known_facts, facts.settings, facts.owners, model.name)

    def _drafts_from(self, candidates: Sequence[FactCandidate]) -> tuple[FactDraft, ...]:
        facts = self._facts
        scope = facts.owners.default_scope
        if scope not in facts.settings.scopes:
            scope = "session"
        ledger = facts.fact_log(scope).ledger
        drafts = list[FactDraft]()
        for candidate in candidates:
            if candidate.rewritten and ledger.has_said(candidate.content, candidate.source):
                continue
            if candidate.category == RETRACTION:
                self._take_back(candidate.content)
            elif candidate.confidence >= facts.settings.min_confidence:
                drafts.append(self._draft_from(candidate, scope))
        return tuple(drafts)

    def _take_back(self, content: str) -> None:
        """Remove what says the same as the words that the user takes back; it stays in the history."""
        for match in self._facts.rank(content, limit=MAX_KNOWN_FACTS):
            if is_near(content, match.fact.content):
                self._remove(match.fact.id, "the user took it back", "rules")

    def _draft_from(self, candidate: FactCandidate, scope: FactScope) -> FactDraft:
        """A candidate as a draft; a correction supersedes the contrary facts, a new wording those of the old one."""
        draft = FactDraft(
            candidate.content, candidate.category, candidate.confidence, scope, None, None, (candidate.source,),
            author="rules", reason="the user said so",
        )  # fmt: skip
        if not candidate.corrects and not candidate.rewritten:
            return draft
        # What it replaces may have other words: "I moved to Lyon", "I live in Rome".
        likely = (
            self._facts.rank(words, limit=MAX_KNOWN_FACTS)
            for words in (candidate.content, slot_terms(candidate.content))
            if words
        )
        like = dict.fromkeys(ranked.fact for facts in likely for ranked in facts)
        older = tuple(
            fact.id
            for fact in like
            if fact.scope == scope
            and (candidate.corrects or candidate.source in fact.sources)
            and is_corrected_by(candidate.content, fact.content)
        )
        return replace(draft, supersedes=older, reason="the user corrected it")

    def _record_drafts(self, drafts: Sequence[FactDraft], stop: int, author: str) -> tuple[Fact, ...]:
        """State the drafts, the widest scope first and the session last: its watermark closes the span."""
        facts = self._facts
        session = facts.owners.session
        mark = FactsExtracted(session, stop, author)
        stated: list[Fact] = []
        for scope in reversed(facts.owners.scopes):
            mine = [draft for draft in drafts if draft.scope == scope]
            if mine and scope != "session" and facts.fact_log(scope).ledger.extracted.get(session, 0) < stop:
                stated += facts.state_facts(mine, mark, strict=False)
        own = [draft for draft in drafts if draft.scope == "session"]
        if own:
            stated += facts.state_facts(own, mark, strict=False)
        else:
            facts.write(facts.fact_log("session"), lambda book: [mark] if book.extracted.get(session, 0) < stop else [])
        return tuple(stated)

    def _remove(self, id: str, reason: str, author: str) -> None:
        scope, position = parse_fact_id(id)
        if scope == "tenant":
            return
        removal = (FactRemoved(position, reason, author),)
        fact_log = self._facts.fact_log(scope)
        self._facts.write(fact_log, lambda book: removal if position in book.facts else ())


def _split_by_time(candidates: Iterable[FactCandidate]) -> Iterator[list[FactCandidate]]:
    """Yield candidates in parts, each to be stated before the next is compared: what changes something follows what it changes."""
    part = list[FactCandidate]()
    for candidate in candidates:
        replaces = candidate.corrects or candidate.rewritten or candidate.category == RETRACTION
        if part and (replaces or candidate.source != part[-1].source):
            yield part
            part = []
        part.append(candidate)
    if part:
        yield part


def _is_model_error(error: Exception) -> bool:
    from pagein.models import ModelError  # noqa: PLC0415 - where one was asked

    return isinstance(error, ModelError | RejectedAnswer)


def _read_span(entries: Sequence[Entry], facts: Facts, head: int, before: object = None) -> tuple[list[Utterance], int]:
    """The texts of the entries, as many as one request takes; and the position behind them.

    A message of the user behind a call in text is a result, and no statement of the user's; ``before`` stands before the first.
    """
    utterances: list[Utterance] = []
    size = 0
    for entry in entries:
        if size > MAX_SPAN_CHARS:
            return utterances, entry.position
        is_result = isinstance(entry.body, TaskStep) and ends_in_call(before)
        before = entry.body
        if is_result:
            continue
        for utterance in _utterances_in(entry, facts.owners.session, tools=facts.settings.tools):
            utterances.append(utterance)
            size += min(len(utterance.text), 6_000)
    return utterances, head


def _utterances_in(entry: Entry, session: str, *, tools: bool) -> Iterable[Utterance]:
    body = entry.body
    handle = step_handle(entry.position)
    if text := statement_text(body):
        yield Utterance("user" if isinstance(body, TaskStep) else "answer", text, Source(session, handle))
    if isinstance(body, Compaction) and body.policy == REWRITTEN:
        for by in body.replacements:
            source = Source(session, step_handle(by.first))
            words = (stub.text for stub in by.stubs if not stub.is_of_result)
            yield from (Utterance("user", text, source, rewritten=True) for text in words)
    if not tools:
        return
    if isinstance(body, ActionStep):
        for index, observation in enumerate(body.observations):
            if observation is not None and (text := as_text(observation.content).strip()):
                yield Utterance("tool", text, Source(session, observation_handle(entry.position, index)))
    elif isinstance(body, Observed) and (text := as_text(body.observation.content).strip()):
        yield Utterance("tool", text, Source(session, handle))
