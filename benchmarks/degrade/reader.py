"""The facts that an agent reads in a request, and its possible actions.

An agent is a pure function of the facts that its world's patterns find in the lines of the request. It knows nothing
else, and keeps nothing from one step to the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from pagein.evaluation.requests import MeasuredMessage


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a line says: of which kind, and the words in it that matter."""

    kind: str
    values: tuple[str, ...]


RECALLED = '<memory kind="recalled">'
"""How a message begins that says of itself that it came back; it stands behind the run, and is no news."""

Patterns = tuple[tuple[str, "re.Pattern[str]"], ...]
"""The kinds of facts a world has, and how its lines say them; a kind may be said in several ways."""


@dataclass(frozen=True, slots=True)
class Act:
    """A tool call, and the thought before it. ``seeks`` is what a look-up is after, where it is one."""

    thought: str
    tool: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    seeks: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The last words of a run."""

    text: str


Decision = Act | Answer


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """The facts of one request, in its order."""

    facts: tuple[Fact, ...]

    def all(self, kind: str) -> Iterator[tuple[str, ...]]:
        """The values of every fact of a kind, in order."""
        return (fact.values for fact in self.facts if fact.kind == kind)

    def last(self, kind: str) -> tuple[str, ...] | None:
        """The values of the newest fact of a kind."""
        return next((fact.values for fact in reversed(self.facts) if fact.kind == kind), None)

    def names(self, *kinds: str) -> dict[str, None]:
        """The first words of every fact of these kinds, each once, as they came first."""
        return dict.fromkeys(fact.values[0] for fact in self.facts if fact.kind in kinds)

    def table(self, kind: str) -> dict[str, tuple[str, ...]]:
        """The facts of a kind by their first word; of two with the same, the newer."""
        return {fact.values[0]: fact.values[1:] for fact in self.facts if fact.kind == kind}


Decide = Callable[[ReadFacts], Decision]
"""An agent."""


def facts_of(text: str, patterns: Patterns) -> tuple[Fact, ...]:
    """The facts in a text, in the order of its lines."""
    return tuple(
        Fact(kind, tuple(found.groups()))
        for line in text.splitlines()
        for kind, pattern in patterns
        for found in pattern.finditer(line)
    )


_HEADED = re.compile(r"^\[(s\d+(?:\.\d+)?)\]$")
_STUBBED = re.compile(r"\b(s\d+\.\d+)\b")
_EXPANDED = re.compile(r"^Behind (s\d+(?:\.\d+)?):$")


def trails_of(text: str) -> tuple[tuple[str, str], ...]:
    """The handles in a text, each with a line beside it: what a reader may guess to be behind it."""
    results = []
    handle = ""
    for line in text.splitlines():
        if headed := _HEADED.match(line):
            handle = headed[1]
        elif stubbed := _STUBBED.search(line):
            results.append((stubbed[1], line))
        elif handle:
            results.append((handle, line))
    return tuple(results)


@dataclass(slots=True)
class Reader:
    """Reads requests for one kind of world; a message that was read before is not read again."""

    patterns: Patterns
    _facts: dict[str, tuple[Fact, ...]] = field(default_factory=dict)
    _trails: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def parse(self, request: Iterable[MeasuredMessage]) -> ReadFacts:
        """All facts in a request, the oldest first: what is marked as recalled is older than what never left."""
        items = sorted(request, key=lambda said: not said.reading.text.startswith(RECALLED))
        return ReadFacts(tuple(chain.from_iterable(map(self._of, items))))

    def _of(self, said: MeasuredMessage) -> tuple[Fact, ...]:
        text = said.reading.text
        if text not in self._facts:
            self._facts[text] = facts_of(text, self.patterns)
        return self._facts[text]

    def handle(self, request: Iterable[MeasuredMessage], sought: str) -> str | None:
        """The newest handle beside which stands what is sought, and which the request does not show expanded."""
        items = tuple(request)
        expanded = {match[1] for said in items for line in said.reading.lines if (match := _EXPANDED.match(line))}
        for said in reversed(items):
            text = said.reading.text
            if text not in self._trails:
                self._trails[text] = trails_of(text)
            for handle, line in reversed(self._trails[text]):
                if sought in line and handle not in expanded:
                    return handle
        return None
