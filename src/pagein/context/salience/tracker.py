"""What a run uses: which identifiers and which lines, where, how often, how lately. Learnt step by step, bounded.

A projection chooses from it what stays in sight when steps leave. Learning costs what is new; choosing costs at most
the pool, whatever the length of the run.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypeVar

from pagein.context.salience.lines import Read, Reader, bare, grounded, lines_of
from pagein.context.salience.model import (
    QUOTED,
    Source,
    Use,
    line_base,
    line_chance,
    name_base,
    name_chance,
    telling,
)
from pagein.context.view.layout import Item
from pagein.events.entries import Observed
from pagein.events.identifiers import identifiers, told_call
from pagein.events.steps import ActionStep, Observation, TaskStep, as_text

POOL = 400
"""Identifiers, and lines, that are kept in mind; at twice as many the least promising leave."""

DEEDS = 1_000
"""Lines of what was done that are kept beside the pool, the newest: of a long run they say what not to do again."""

MOST_HEARD = 256
"""Texts that wait to be learnt from, at most."""

MOST_WORDS = 20_000
"""Words whose number of occurrences is kept; of more, those that came once leave."""

SHORTEST = 4
"""Characters below which a line says nothing."""


@dataclass(slots=True)
class Name:
    """An identifier: its use, and what ``need`` makes of it."""

    use: Use = field(default_factory=Use)
    base: float = 0.0
    near: float = 0.0
    among: int = 0


@dataclass(slots=True)
class Line:
    """A line: its use, its text as last seen, where in the run that was, and its identifiers.

    ``asks`` is the user's; ``leads`` is the first line of a call's arguments, which says what was done; ``fails`` reads like an error, or came
    in a result that was one; ``decides`` reads like a decision of the model's.
    """

    use: Use = field(default_factory=Use)
    base: float = 0.0
    text: str = ""
    position: int = 0
    order: int = 0
    names: tuple[str, ...] = ()
    leads: bool = False
    fails: bool = False
    asks: bool = False
    decides: bool = False
    near: float = 0.0
    among: int = 1
    source: Source = "said"
    _grounded: frozenset[str] | None = None

    @property
    def grounded(self) -> frozenset[str]:
        """The identifiers of which the line says enough to tell what they are about; found out when first asked."""
        if self._grounded is None:
            self._grounded = grounded(self.text, self.names)
        return self._grounded


@dataclass(frozen=True, slots=True)
class _Heard:
    """A text that was recorded and not learnt from yet."""

    turn: int
    position: int
    text: str
    source: Source
    failed: bool = False
    call: str = ""


class Memo:
    """The identifiers and lines of a run, each with its use.

    What is recorded is only noted down, and learnt from when somebody asks: a run that never fills its budget never
    pays for it.
    """

    def __init__(self) -> None:
        self.turn = 0
        self.order = 0
        self.reader = Reader()
        self._names: dict[str, Name] = {}
        self._lines: dict[str, Line] = {}
        self._deeds: dict[str, Line] = {}
        """What was done, of the lines that the pool let go."""
        self._seen_names: dict[str, Name] = {}
        self._seen_lines: dict[str, Line] = {}
        """What was seen since its base was last made out."""
        self._likely: tuple[int, dict[str, float]] | None = None
        self._worths: tuple[tuple[int, float], dict[str, float]] | None = None
        """What was made out in this turn: an extract is seldom made alone."""
        self._heard: list[_Heard] = []
        self._noted = 0
        """Texts since somebody last asked, those that were learnt ahead too."""
        self._tools: set[str] = set()
        self._task: set[str] = set()
        self._common: dict[str, int] = {}

    @property
    def names(self) -> dict[str, Name]:
        """Every identifier kept in mind, with its use."""
        self._catch_up()
        return self._names

    @property
    def lines(self) -> dict[str, Line]:
        """Every line kept in mind under its bare text, with its use."""
        self._catch_up()
        return self._lines

    @property
    def deeds(self) -> dict[str, Line]:
        """What was done, where it is no longer among the lines kept in mind; the newest first."""
        self._catch_up()
        return self._deeds

    def learn_step(self, position: int, item: Item) -> None:
        """Take in a step: the user's words, or what the model said and asked for."""
        match item:
            case TaskStep(content=content):
                self._learn(position, as_text(content), "task")
            case ActionStep(content=content, tool_calls=calls, observations=seen):
                self.turn += 1
                self._learn(position, as_text(content), "said")
                for call in calls:
                    self._learn(position, call.arguments, "arguments", call=call.name)
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

    def _learn(
        self, position: int, text: str, source: Source, *, failed: bool = False, call: str = ""
    ) -> None:
        self._heard.append(_Heard(self.turn, position, text, source, failed, call))
        self._noted += 1
        if self._noted >= MOST_HEARD:
            self._catch_up()

    def learn_ahead(self, texts: int) -> None:
        """Take in at most so many of the texts that wait."""
        for heard in self._heard[:texts]:
            self._learn_from(heard)
        del self._heard[:texts]

    def _catch_up(self) -> None:
        if not self._noted:
            return
        for heard in self._heard:
            self._learn_from(heard)
        self._make_out()
        self._heard.clear()
        self._noted, self._likely, self._worths = 0, None, None

    def _learn_from(self, heard: _Heard) -> None:
        """Take a text in, and let go what is then too much.

        As of the turn it was heard in, not of now: what is kept in mind may not depend on who asked, and when.
        """
        self._take_in(heard)
        turn = heard.turn
        if len(self._names) <= 2 * POOL and len(self._lines) <= 2 * POOL:
            return
        self._make_out()
        if len(self._names) > 2 * POOL:
            chances = {key: name_chance(each.base, each.use, turn) for key, each in self._names.items()}
            self._names = _promising(self._names, chances)
        if len(self._lines) > 2 * POOL:
            self._let_go(turn)

    def _let_go(self, turn: int) -> None:
        """Keep the likelier half of the lines; of the rest what was done stays aside, the newest of it."""
        odds = {key: _keeps(each, turn) for key, each in self._lines.items()}
        lines = _promising(self._lines, odds)
        aside = self._deeds | {
            key: each for key, each in self._lines.items() if each.leads and key not in lines
        }
        stay = heapq.nlargest(DEEDS, aside, key=lambda key: aside[key].order)
        self._lines, self._deeds = lines, {key: aside[key] for key in stay}

    def _take_in(self, heard: _Heard) -> None:
        text = self._take_call(heard) if heard.source == "arguments" else heard.text
        read = self.reader.line
        lines = [each for each in map(read, lines_of(text, POOL)) if len(each.key) >= SHORTEST]
        observed, asks = heard.source == "observation", heard.source == "task"
        for each in lines:
            line = self._see_line(each, each.raw.strip(), heard, len(lines))
            line.leads, line.asks = False, asks
            line.fails = observed and (heard.failed or each.fails)
            line.decides = heard.source == "said" and each.decides

    def _take_call(self, heard: _Heard) -> str:
        """Take in the line that tells a call; what of its arguments is left to take in."""
        told = told_call(heard.call, heard.text)
        self._tools.add(heard.call)
        # While a run knows one tool, to name it each time says nothing.
        text = told.alone if told.alone and len(self._tools) == 1 else told.text
        key = bare(told.alone or told.text)
        if len(key) >= SHORTEST:
            # Not remembered: a call is told once.
            names = tuple(identifiers(told.values or text))
            line = self._see_line(Read(text, key, names), text, heard, 1)
            line.leads, line.asks, line.fails, line.decides = True, False, False, False
        return told.rest

    def _see_line(self, read: Read, text: str, heard: _Heard, among: int) -> Line:
        line = self._lines.get(read.key)
        if line is None:
            line = self._lines[read.key] = self._deeds.pop(read.key) if read.key in self._deeds else Line()
        self._seen_lines[read.key] = line
        line.use.see(heard.turn, heard.source)
        if line.text != text:
            line.text, line.names, line._grounded = text, tuple(dict.fromkeys(read.names)), None  # noqa: SLF001
        self.order += 1
        line.position, line.order, line.among = heard.position, self.order, among
        line.source = heard.source
        observed = heard.source == "observation"
        if observed:
            line.near = self._nearness(read.stems)
        elif heard.source == "task":
            self._task.update(read.stems)
        for each in line.names:
            name = self._names.get(each)
            if name is None:
                name = self._names[each] = Name()
            self._seen_names[each] = name
            name.use.see(heard.turn, heard.source)
            if observed:
                name.near = max(name.near, line.near)
                name.among = min(name.among or among, among)
        return line

    def _make_out(self) -> None:
        """Make out the bases of what was seen, once for as often as it was."""
        for key, name in self._seen_names.items():
            name.base = name_base(key, name.use, name.near, name.among)
        for line in self._seen_lines.values():
            line.base = line_base(line.text, line.use, line.source)
        self._seen_names.clear()
        self._seen_lines.clear()

    def _nearness(self, stems: tuple[str, ...]) -> float:
        """How much of what is uncommon in a line the user spoke of too, from 0 to 1."""
        common, shared, whole = self._common, 0.0, 3.0
        if len(common) > MOST_WORDS:
            self._common = common = {word: count // 2 for word, count in common.items() if count > 1}
        for word in stems:
            count = common[word] = common.get(word, 0) + 1
            rare = max(0.0, math.log((2 + self.order) / (1 + count)))
            whole += rare
            if word in self._task:
                shared += rare
        return shared / whole

    def name_chance(self, key: str) -> float:
        """How likely an identifier kept in mind is needed soon."""
        name = self.names[key]
        return name_chance(name.base, name.use, self.turn)

    def name_chances(self) -> dict[str, float]:
        """How likely each identifier kept in mind is needed soon."""
        self._catch_up()
        if self._likely is None or self._likely[0] != self.turn:
            self._likely = self.turn, self._chances()
        return self._likely[1]

    def worths(self, share: float) -> dict[str, float]:
        """What each line kept in mind is worth beside its names: ``share`` of its chance, and what it tells."""
        self._catch_up()
        if self._worths is None or self._worths[0] != (self.turn, share):
            self._worths = (self.turn, share), self._weighed(share)
        return self._worths[1]

    def _weighed(self, share: float) -> dict[str, float]:
        """All of them in one pass: this is done for hundreds of lines a turn."""
        worths: dict[str, float] = {}
        turn = self.turn
        for key, line in self._lines.items():
            use = line.use
            worth = share * line_chance(line.base, use, turn) if len(line.text) >= QUOTED else 0.0
            worths[key] = worth + telling(line.near, line.among, turn - use.last) if line.near else worth
        return worths

    def _chances(self) -> dict[str, float]:
        return {key: name_chance(each.base, each.use, self.turn) for key, each in self._names.items()}

    def quoted(self, line: Line) -> float:
        """How likely a line kept in mind is quoted soon; a short one is no quotation."""
        return line_chance(line.base, line.use, self.turn) if len(line.text) >= QUOTED else 0.0

    def told(self, line: Line) -> float:
        """What a line kept in mind is worth as what a result told, beside its names."""
        return telling(line.near, line.among, self.turn - line.use.last)

    def kept(self) -> dict[str, Any]:
        """All of it as JSON-safe values; nothing waits to be learnt from after it."""
        self._catch_up()
        return {
            "turn": self.turn,
            "order": self.order,
            "names": [[key, *_values(each.use), *_values(each)] for key, each in self._names.items()],
            "lines": [[key, *_values(each.use), *_values(each)] for key, each in self._lines.items()],
            "deeds": [[key, *_values(each.use), *_values(each)] for key, each in self._deeds.items()],
            "tools": sorted(self._tools),
            "task": sorted(self._task),
            "common": self._common,
        }

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Self:
        """The memo that was kept. Raises ValueError, KeyError or TypeError for what is none."""
        memo = cls()
        memo.turn, memo.order = kept["turn"], kept["order"]
        for key, *values in kept["names"]:
            memo._names[key] = Name(Use(*values[: len(_USE)]), *values[len(_USE) :])
        for kind, table in (("lines", memo._lines), ("deeds", memo._deeds)):
            for key, *values in kept[kind]:
                line = table[key] = Line(Use(*values[: len(_USE)]), *values[len(_USE) :])
                line.names = tuple(line.names)
        memo._tools, memo._task = set(kept["tools"]), set(kept["task"])
        memo._common = dict(kept["common"])
        return memo


_USE, _NAME, _LINE = (
    tuple(each.name for each in fields(kind) if each.name not in ("use", "_grounded"))
    for kind in (Use, Name, Line)
)
"""What is kept of each, in the order in which it is made of it."""


def _values(of: Use | Name | Line) -> list[Any]:
    """All of it but what it is made of, and what is found out when it is asked for."""
    names = _USE if isinstance(of, Use) else _NAME if isinstance(of, Name) else _LINE
    return [getattr(of, name) for name in names]


def _keeps(line: Line, turn: int) -> float:
    """By what a line stays in mind, or leaves."""
    return line_chance(line.base, line.use, turn) + telling(line.near, line.among, turn - line.use.last)


T = TypeVar("T")


def _promising(table: dict[str, T], chances: dict[str, float]) -> dict[str, T]:
    """The likelier half of a table that is twice the pool, in its order."""
    kept = set(sorted(chances, key=lambda key: -chances[key])[:POOL])
    return {key: value for key, value in table.items() if key in kept}
