"""The fault metric: what a step of a recorded run needs, and whether the request has it.

A *need* of a step is a specific identifier or a verbatim line of its tool-call arguments that occurred earlier in the
run. A need that the rendered request lacks is a *fault*. An identifier in the request is *grounded* where a line with
it also has three other words of one line in which it occurred: a list of names grounds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from pagein.events.identifiers import argument_text, identifiers, words
from pagein.events.steps import ActionStep, as_text
from pagein.formats import Item

MIN_LINE_CHARACTERS: Final = 25
"""Minimum length of a line that counts as a need."""

GROUNDING_WORDS: Final = 3
"""Other words that ground an identifier; all of them if its line has fewer."""


@dataclass(frozen=True, slots=True)
class MessageText:
    """The text of one message, and its lines."""

    text: str
    arguments: str
    """The strings in the arguments of its tool calls; the text contains them too."""
    lines: frozenset[str]

    @classmethod
    def from_items(cls, items: Iterable[Item]) -> MessageText:
        """The text of the items of one message."""
        contents = tuple(items)
        arguments = "\n".join(
            argument_text(call.arguments)
            for item in contents
            if isinstance(item, ActionStep)
            for call in item.tool_calls
        )
        spoken_text = "\n".join(as_text(item.content) for item in contents)
        text = f"{spoken_text}\n{arguments}" if arguments else spoken_text
        return cls(text, arguments, stripped_lines(text))


def stripped_lines(text: str) -> frozenset[str]:
    """The lines of a text, stripped of surrounding white space."""
    return frozenset(line.strip() for line in text.splitlines())


@dataclass(frozen=True, slots=True)
class Needs:
    """The identifiers and lines that a step takes from earlier in the run."""

    identifiers: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Faults:
    """The needs that a request lacks. ``grounded``: the identifiers that are not grounded in it."""

    bare: frozenset[str] = frozenset()
    grounded: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()

    @classmethod
    def all_of(cls, needs: Needs) -> Faults:
        """The faults of an empty request."""
        return cls(needs.identifiers, needs.identifiers, needs.lines)


@dataclass(slots=True)
class History:
    """The run so far: its identifiers and lines, and the words beside each identifier."""

    texts: list[str] = field(default_factory=list)
    names: list[frozenset[str]] = field(default_factory=list)
    """The identifiers of each text."""
    lines: set[str] = field(default_factory=set)
    company: dict[str, set[frozenset[str]]] = field(default_factory=dict)

    def add(self, reading: MessageText) -> None:
        """Add one message."""
        self.texts.append(reading.text)
        self.names.append(frozenset[str]().union(*map(_identifiers_of, reading.lines)))
        for line in reading.lines - self.lines:
            self.lines.add(line)
            for name in _identifiers_of(line):
                self.company.setdefault(name, set()).add(_words_beside(line, name))

    def needs(self, reading: MessageText) -> Needs:
        """The needs of a message's tool calls."""
        if not reading.arguments:
            return Needs()
        names = frozenset(identifiers(reading.arguments)) & self.company.keys()
        lines = (line for line in stripped_lines(reading.arguments) if len(line) >= MIN_LINE_CHARACTERS)
        return Needs(names, frozenset(line for line in lines if self.has_line(line)))

    def has_line(self, line: str) -> bool:
        """True where a line occurred, alone or inside a longer one."""
        return line in self.lines or any(line in text for text in self.texts)

    def outside(self, needs: Needs, first: int) -> Needs:
        """The needs that the messages from ``first`` on do not have."""
        identifiers_in_window = frozenset[str]().union(*self.names[first:])
        window = self.texts[first:]
        return Needs(
            needs.identifiers - identifiers_in_window,
            frozenset(line for line in needs.lines if not any(line in text for text in window)),
        )


@lru_cache(maxsize=100_000)
def _identifiers_of(line: str) -> frozenset[str]:
    return frozenset(identifiers(line))


@lru_cache(maxsize=100_000)
def _words_beside(line: str, name: str) -> frozenset[str]:
    return frozenset(words(line.replace(name, " ")))


def find_faults(needs: Needs, request: Sequence[MessageText], history: History) -> Faults:
    """The needs that a request lacks, given the run before it."""
    bare, ungrounded = set[str](), set[str]()
    for name in needs.identifiers:
        containing = [reading for reading in request if name in reading.text]
        if not containing:
            bare.add(name)
        elif not any(_is_grounded(reading, name, history) for reading in reversed(containing)):
            ungrounded.add(name)
    lines = (line for line in needs.lines if not any(line in reading.text for reading in request))
    return Faults(frozenset(bare), frozenset(bare | ungrounded), frozenset(lines))


def _is_grounded(reading: MessageText, name: str, history: History) -> bool:
    lines = [line for line in reading.lines if name in line]
    # A line of the run grounds all its identifiers. This decides most cases without comparing words.
    if any(line in history.lines and name in _identifiers_of(line) for line in lines):
        return True
    company = history.company[name]
    for line in lines:
        words_here = _words_beside(line, name)
        if any(len(words_here & words_there) >= min(GROUNDING_WORDS, len(words_there)) for words_there in company):
            return True
    return False
