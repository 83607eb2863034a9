"""From what was said to facts: once a span, when it is time, only from those who may say it.

How far a session was read is written behind the facts that were found, in the same append, in every log they went to;
so a crash in between repeats the reading and not the facts. A model that fails changes nothing: its span stays to be
read, and is read with the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pagein.errors import PageinError
from pagein.events.entries import FactRemoved, FactScope, FactsExtracted, Observed, Source
from pagein.events.handles import observation_handle, step_handle
from pagein.events.steps import ActionStep, TaskStep, as_text
from pagein.facts.contradiction import is_contrary
from pagein.facts.extraction.model import Answer, Rejected, extraction, read_answer
from pagein.facts.extraction.rules import Candidate, Said, candidates
from pagein.facts.fact import Fact, parsed_id
from pagein.facts.ranking import said_in
from pagein.facts.reconcile import Draft
from pagein.facts.shelves import Shelves
from pagein.log.base import Entry

if TYPE_CHECKING:
    from pagein.models import Model

Read = Callable[[int, int], Iterable[Entry]]
"""Gives the run's entries ``[start, stop)``, as a log's ``read`` does."""

CONTEXT = 6
"""Entries before the span that a model is shown to understand it."""

SPAN = 60_000
"""Characters of what was said that one ask holds; what is beyond is read with the next."""

KNOWN = 40
"""Known facts that a model is shown."""

WORTH_A_MARK = 200
"""Entries without a fact after which the log says that they were read."""

PATIENCE = 4
"""Debounces after which a busy session is read in any case."""


@dataclass(slots=True)
class Pace:
    """When a session is to be read: ``debounce`` seconds after its last turn, and four times as many after its first."""

    debounce: float
    first: float | None = None
    """When the oldest turn that was not read came; None where there is none."""
    last: float = 0.0

    def is_due(self, now: float) -> bool:
        """Whether it is time."""
        return self.first is not None and self.left(now) <= 0

    def left(self, now: float) -> float:
        """Seconds until it is time, if no turn comes meanwhile."""
        first = now if self.first is None else self.first
        return min(self.last + self.debounce, first + PATIENCE * self.debounce) - now

    def hear(self, now: float) -> None:
        """Note a turn, or a reading that failed."""
        self.first = now if self.first is None else self.first
        self.last = now

    def rest(self) -> None:
        """Note that everything is read."""
        self.first = None


class Extraction:
    """When a session is read for facts, and how far it was. One for each ``Facts``."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves
        self._head = 0
        self._seen = 0
        """The position before which nothing was said that is not written down."""
        self._turn = threading.Lock()
        self._pace = Pace(shelves.settings.debounce)
        self.failed: PageinError | None = None
        """What the last reading failed with; None where it did not."""

    @property
    def model(self) -> Model | None:
        """The model that reads, or None where the rules do."""
        shelves = self._shelves
        return shelves.model if shelves.settings.extract in ("auto", "model") else None

    @property
    def is_off(self) -> bool:
        """True where nobody reads."""
        extract = self._shelves.settings.extract
        return extract == "off" or (extract == "model" and self._shelves.model is None)

    def attend(self, read: Read, head: int, now: float) -> tuple[Fact, ...]:
        """Note that the run has come to ``head``; read it where it is time."""
        with self._turn:
            return self._attend(read, head, now)

    def flush(self, read: Read, head: int, now: float) -> tuple[Fact, ...]:
        """Read now whatever was not read; gives the facts that came of it. A model's failure is kept, not raised."""
        with self._turn:
            return self._flush(read, head, now)

    def _attend(self, read: Read, head: int, now: float) -> tuple[Fact, ...]:
        if self.is_off:
            return ()
        due, new = self._pace.is_due(now), head > self._head
        if new:
            self._head = head
            self._pace.hear(now)
        return self._flush(read, self._head, now) if due or (new and self.model is None) else ()

    def _flush(self, read: Read, head: int, now: float) -> tuple[Fact, ...]:
        if self.is_off:
            return ()
        found: list[Fact] = []
        self.failed = None
        start = max(self._shelves.upto(), self._seen)
        while start < head:
            entries = list(read(start, head))
            said, stop = _span(entries, self._shelves, head)
            try:
                found += self._take(said, read, start, stop)
            except (PageinError, ValueError) as error:
                if not _is_the_models(error):
                    raise
                self.failed = error if isinstance(error, PageinError) else None
                self._pace.hear(now)
                return tuple(found)
            start = self._seen = stop
        self._pace.rest()
        self._head = max(self._head, head)
        return tuple(found)

    def _take(self, said: list[Said], read: Read, start: int, stop: int) -> tuple[Fact, ...]:
        model = self.model
        if model is None or not said:
            drafts = self._by_rules(said)
            # To read again what gave nothing costs little; a line in the log for each turn would cost more.
            if not drafts and stop - self._shelves.upto() < WORTH_A_MARK:
                return ()
            return self._written(drafts, stop, "rules")
        answer = self._asked(model, said, read, start)
        found = self._written(answer.drafts, stop, model.name)
        for id, reason in answer.removals:
            self._remove(id, reason, model.name)
        return found

    def _asked(self, model: Model, said: Sequence[Said], read: Read, start: int) -> Answer:
        shelves = self._shelves
        before, _ = _span(list(read(max(0, start - CONTEXT), start)), shelves, start)
        text = "\n".join(each.text for each in said)
        known = [each.fact for each in shelves.near(text, KNOWN)]
        reply = model.write(extraction(said, before, known, shelves.settings, shelves.owners))
        if reply.finish == "length":
            raise Rejected("the answer was cut at its limit")
        return read_answer(reply.text, said, known, shelves.settings, shelves.owners, model.name)

    def _by_rules(self, said: Sequence[Said]) -> tuple[Draft, ...]:
        shelves = self._shelves
        scope = shelves.owners.usual
        if scope not in shelves.settings.scopes:
            scope = "session"
        return tuple(
            self._corrected(each, scope)
            for each in candidates(said)
            if each.confidence >= shelves.settings.min_confidence
        )

    def _corrected(self, found: Candidate, scope: FactScope) -> Draft:
        """A candidate as a draft; what the user corrects takes the place of the fact that said otherwise."""
        draft = Draft(
            found.content, found.category, found.confidence, scope, None, None, (found.source,),
            author="rules", reason="the user said so",
        )  # fmt: skip
        if not found.corrects:
            return draft
        like = (each.fact for each in self._shelves.near(found.content, KNOWN))
        older = tuple(
            each.id for each in like if each.scope == scope and is_contrary(found.content, each.content)
        )
        return replace(draft, supersedes=older, reason="the user corrected it")

    def _written(self, drafts: Sequence[Draft], stop: int, author: str) -> tuple[Fact, ...]:
        """State the drafts, the widest scope first and the session last: its watermark closes the span."""
        shelves = self._shelves
        session = shelves.owners.session
        mark = FactsExtracted(session, stop, author)
        found: list[Fact] = []
        for scope in reversed(shelves.owners.known):
            mine = [each for each in drafts if each.scope == scope]
            if mine and scope != "session" and shelves.shelf(scope).book.extracted.get(session, 0) < stop:
                found += shelves.state(mine, mark, strict=False)
        own = [each for each in drafts if each.scope == "session"]
        if own:
            found += shelves.state(own, mark, strict=False)
        else:
            shelves.write(
                shelves.shelf("session"), lambda book: [mark] if book.extracted.get(session, 0) < stop else []
            )
        return tuple(found)

    def _remove(self, id: str, reason: str, author: str) -> None:
        scope, position = parsed_id(id)
        if scope == "tenant":
            return
        gone = (FactRemoved(position, reason, author),)
        shelf = self._shelves.shelf(scope)
        self._shelves.write(shelf, lambda book: gone if position in book.facts else ())


def _is_the_models(error: Exception) -> bool:
    from pagein.models import ModelError  # noqa: PLC0415 - where one was asked

    return isinstance(error, ModelError | Rejected)


def _span(entries: Sequence[Entry], shelves: Shelves, head: int) -> tuple[list[Said], int]:
    """What was said in the entries, up to as much as one reading holds; and the position behind it."""
    said: list[Said] = []
    size = 0
    for entry in entries:
        if size > SPAN:
            return said, entry.position
        for each in _said(entry, shelves.owners.session, tools=shelves.settings.tools):
            said.append(each)
            size += min(len(each.text), 6_000)
    return said, head


def _said(entry: Entry, session: str, *, tools: bool) -> Iterable[Said]:
    body = entry.body
    handle = step_handle(entry.position)
    if text := said_in(body):
        yield Said("user" if isinstance(body, TaskStep) else "answer", text, Source(session, handle))
    if not tools:
        return
    if isinstance(body, ActionStep):
        for index, seen in enumerate(body.observations):
            if seen is not None and (text := as_text(seen.content).strip()):
                yield Said("tool", text, Source(session, observation_handle(entry.position, index)))
    elif isinstance(body, Observed) and (text := as_text(body.observation.content).strip()):
        yield Said("tool", text, Source(session, handle))
