"""What a run uses: which identifiers and which lines, where, how often, how lately. Learnt step by step, bounded.

A projection chooses from it what stays in sight when steps leave. Learning costs what is new; choosing costs at most
the pool, whatever the length of the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from pagein.lexing import argument_text, identifiers
from pagein.log import Observed
from pagein.steps import ActionStep, Observation, TaskStep, as_text
from pagein.view.layout import Item

Source = Literal["task", "said", "arguments", "observation"]

POOL = 2_000
"""Identifiers, and lines, that are kept in mind; at twice as many the least promising leave."""

LEARNT = 100_000
"""Characters at each end of one text that are learnt from; the middle of a longer one is in the log only."""

LINE = 400
"""Characters of a line that are kept in mind."""

HOMES = 3
"""Lines remembered for one identifier, the latest ones."""

_FAILS = re.compile(
    r"\b(?:\w*error|\w*exception|traceback|fail(?:s|ed|ure)?|fatal|denied|refused|cannot|invalid|no such|not found)\b",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?:[\w./-]*[:-])?\d{1,7}\s*[:|\t-]\s?|\d{1,7}\s\s+")


@dataclass(slots=True)
class Use:
    """How one identifier or line was used so far; ``turn`` counts actions."""

    last: int = -1
    last_argued: int = -1
    turns: int = 0
    argued: int = 0
    sources: frozenset[Source] = frozenset()

    def see(self, turn: int, source: Source) -> None:
        """Take in one occurrence."""
        if self.last != turn:
            self.turns += 1
            self.last = turn
        if source == "arguments" and self.last_argued != turn:
            self.argued += 1
            self.last_argued = turn
        if source not in self.sources:
            self.sources |= {source}


@dataclass(slots=True)
class Name:
    """An identifier: its use, and the keys of the latest lines it stood in."""

    use: Use = field(default_factory=Use)
    homes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Line:
    """A line: its use, its text as last seen, where in the run that was, and its identifiers."""

    use: Use = field(default_factory=Use)
    text: str = ""
    position: int = 0
    order: int = 0
    source: Source = "observation"
    names: tuple[str, ...] = ()
    leads: bool = False
    """The first line of a call's arguments: what was done."""
    fails: bool = False
    """Reads like an error, or came in a result that was one."""


def bare(line: str) -> str:
    """A line without the number or the place a viewer put before it, so that one line is one line.

    >>> bare("  12: return x"), bare("a.py:7:def f():")
    ('return x', 'def f():')
    """
    stripped = line.strip()
    found = _NUMBERED.match(stripped)
    return stripped[found.end() :].strip() if found else stripped


class Memo:
    """The identifiers and lines of a run, each with its use."""

    def __init__(self) -> None:
        self.turn = 0
        self.order = 0
        self.names: dict[str, Name] = {}
        self.lines: dict[str, Line] = {}

    def learn_step(self, position: int, item: Item) -> None:
        """Take in a step: the user's words, or what the model said and asked for."""
        match item:
            case TaskStep(content=content):
                self._learn(position, as_text(content), "task")
            case ActionStep(content=content, tool_calls=calls, observations=seen):
                self.turn += 1
                self._learn(position, as_text(content), "said")
                for call in calls:
                    self._learn(position, argument_text(call.arguments), "arguments")
                for index, each in enumerate(seen):
                    if each is not None:
                        self.learn_observation(position, index, each)
            case Observed(observation=seen_late):
                self._learn(position, as_text(seen_late.content), "observation")
            case _:
                pass

    def learn_observation(self, position: int, index: int, seen: Observation) -> None:
        """Take in the answer to call ``index`` of the action at ``position``."""
        del index
        self._learn(position, as_text(seen.content), "observation", failed=seen.status == "error")

    def _learn(self, position: int, text: str, source: Source, *, failed: bool = False) -> None:
        leads = source == "arguments"
        for raw in _lines(text):
            key = bare(raw)
            if len(key) < 4:
                continue
            self.order += 1
            line = self.lines.get(key)
            if line is None:
                line = self.lines[key] = Line()
            line.use.see(self.turn, source)
            line.text, line.position, line.order, line.source = raw.strip(), position, self.order, source
            line.leads, leads = leads, False
            line.fails = source == "observation" and (failed or _FAILS.search(line.text) is not None)
            line.names = tuple(dict.fromkeys(identifiers(line.text)))
            for each in line.names:
                name = self.names.get(each)
                if name is None:
                    name = self.names[each] = Name()
                name.use.see(self.turn, source)
                if key not in name.homes:
                    name.homes.append(key)
                    del name.homes[:-HOMES]
        _shed(self.names)
        _shed(self.lines)


def _shed(table: dict[str, Name] | dict[str, Line]) -> None:
    """Let the least promising half of a table go once it is twice the pool."""
    if len(table) <= 2 * POOL:
        return

    def promise(key: str) -> tuple[bool, int, int]:
        use = table[key].use
        return use.argued > 0, use.last, use.turns

    for key in sorted(table, key=promise)[: len(table) - POOL]:
        del table[key]


def _lines(text: str) -> Iterator[str]:
    """The lines of a text worth learning, each cut to a bounded length; of a very long text its two ends."""
    ends = (text,) if len(text) <= 2 * LEARNT else (text[:LEARNT], text[-LEARNT:])
    for end in ends:
        for line in islice(end.splitlines(), POOL):
            yield line[:LINE] if len(line) > LINE else line
