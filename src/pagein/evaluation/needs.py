"""What a recorded run needs next, and whether a request holds it: the fault metric, pure and without a model.

A *need* of a step is a specific identifier or a verbatim line of its tool-call arguments that occurred earlier in the
run. A need that the rendered request lacks is a *fault*. An identifier that is there is *grounded* where a line that
holds it also holds three other words of one line in which it occurred: a bare list of names grounds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pagein.events.identifiers import argument_text, identifiers, words
from pagein.events.steps import ActionStep, as_text
from pagein.formats import Item

SHORTEST_LINE: Final = 25
"""Characters below which a line says too little to be needed verbatim."""

COMPANY: Final = 3
"""Other words that ground an identifier; all of them, where its line has fewer."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a model reads in one message: its text, and the lines of it."""

    text: str
    arguments: str
    """The strings in the arguments of its calls, which are part of the text too."""
    lines: frozenset[str]

    @classmethod
    def of(cls, items: Iterable[Item]) -> Reading:
        """The reading of what one message says."""
        held = tuple(items)
        arguments = "\n".join(
            argument_text(call.arguments)
            for item in held
            if isinstance(item, ActionStep)
            for call in item.tool_calls
        )
        said = "\n".join(as_text(item.content) for item in held)
        text = f"{said}\n{arguments}" if arguments else said
        return cls(text, arguments, stripped(text))


def stripped(text: str) -> frozenset[str]:
    """The lines of a text without the space around them."""
    return frozenset(line.strip() for line in text.splitlines())


@dataclass(frozen=True, slots=True)
class Needs:
    """What one step took from earlier in the run; or what of it a request lacks, looked at in one way."""

    identifiers: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Faults:
    """The needs that a request does not hold. ``grounded`` are the identifiers that are not grounded in it."""

    bare: frozenset[str] = frozenset()
    grounded: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()

    @classmethod
    def all_of(cls, needs: Needs) -> Faults:
        """What an empty request lacks."""
        return cls(needs.identifiers, needs.identifiers, needs.lines)


@dataclass(slots=True)
class History:
    """The run so far: which identifiers and lines occurred, and in which words' company."""

    texts: list[str] = field(default_factory=list)
    names: list[frozenset[str]] = field(default_factory=list)
    """The identifiers of each text."""
    lines: set[str] = field(default_factory=set)
    company: dict[str, set[frozenset[str]]] = field(default_factory=dict)
    _named: dict[str, frozenset[str]] = field(default_factory=dict)
    _others: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    def add(self, reading: Reading) -> None:
        """Take in one message."""
        self.texts.append(reading.text)
        self.names.append(frozenset[str]().union(*map(self.named, reading.lines)))
        for line in reading.lines - self.lines:
            self.lines.add(line)
            for name in self.named(line):
                self.company.setdefault(name, set()).add(self.others(line, name))

    def needs(self, reading: Reading) -> Needs:
        """What a message's calls take from the history."""
        if not reading.arguments:
            return Needs()
        names = frozenset(identifiers(reading.arguments)) & self.company.keys()
        lines = (line for line in stripped(reading.arguments) if len(line) >= SHORTEST_LINE)
        return Needs(names, frozenset(line for line in lines if self.holds(line)))

    def holds(self, line: str) -> bool:
        """True where a line occurred, by itself or inside a longer one."""
        return line in self.lines or any(line in text for text in self.texts)

    def outside(self, needs: Needs, first: int) -> Needs:
        """The needs that the messages from the ``first`` one on do not hold."""
        seen = frozenset[str]().union(*self.names[first:])
        window = self.texts[first:]
        return Needs(
            needs.identifiers - seen,
            frozenset(line for line in needs.lines if not any(line in text for text in window)),
        )

    def named(self, line: str) -> frozenset[str]:
        """The identifiers of a line."""
        found = self._named.get(line)
        if found is None:
            found = self._named[line] = frozenset(identifiers(line))
        return found

    def others(self, line: str, name: str) -> frozenset[str]:
        """The words of a line that are not words of the identifier."""
        found = self._others.get((line, name))
        if found is None:
            found = self._others[line, name] = frozenset(words(line.replace(name, " ")))
        return found


def faults(needs: Needs, request: Sequence[Reading], history: History) -> Faults:
    """Which needs a request lacks, the history being the run before it."""
    bare, ungrounded = set[str](), set[str]()
    for name in needs.identifiers:
        holding = [reading for reading in request if name in reading.text]
        if not holding:
            bare.add(name)
        elif not any(_grounds(reading, name, history) for reading in reversed(holding)):
            ungrounded.add(name)
    lines = (line for line in needs.lines if not any(line in reading.text for reading in request))
    return Faults(frozenset(bare), frozenset(bare | ungrounded), frozenset(lines))


def _grounds(reading: Reading, name: str, history: History) -> bool:
    shown = [line for line in reading.lines if name in line]
    # A line of the run grounds every identifier it has; most are found so, without a look at any words.
    if any(line in history.lines and name in history.named(line) for line in shown):
        return True
    company = history.company[name]
    for line in shown:
        here = history.others(line, name)
        if any(len(here & there) >= min(COMPANY, len(there)) for there in company):
            return True
    return False
