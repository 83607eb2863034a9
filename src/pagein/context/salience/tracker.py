"""A bounded record of the identifiers and lines that a run uses: where, how often, how recently.

Extracts and page-ins are selected from it. Learning a step costs its length; a selection costs at most the pool, however
long the run is.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Self, TypeVar

from pagein.context.salience.files import FileTable
from pagein.context.salience.lines import LineParser, ParsedLine, lines_of, select_with_context, strip_line_number
from pagein.context.salience.model import (
    QUOTE_MIN_CHARS,
    Source,
    UseCounts,
    line_base,
    line_chance,
    name_base,
    name_chance,
    result_line_worth,
)
from pagein.context.view.layout import Item
from pagein.events.entries import Observed
from pagein.events.identifiers import format_call, identifiers
from pagein.events.protocol import split_text_action
from pagein.events.steps import ActionStep, Content, Image, Observation, TaskStep, as_parts, as_text

POOL_SIZE = 400
"""Identifiers, and lines, that stay tracked when the pool is halved; it is halved at twice as many."""

MAX_OLD_ACTIONS = 1_000
"""Newest action lines kept beside the pool: in a long run they say what was tried already."""

MAX_PENDING_TEXTS = 256
"""Texts recorded and not learned from yet, at most."""

MAX_COUNTED_WORDS = 20_000
"""Stems that are counted; above it the counts are halved and single ones dropped."""

LINE_MIN_CHARS = 4
"""Characters below which a line is not tracked."""

FOCUS_LOG_ODDS = 1.0
"""Added to the log-odds of a line for each name, up to two, that it shares with the query, and to those of the other
names in such a line. 2 was no better than 0."""


@dataclass(slots=True)
class TrackedName:
    """An identifier and its use. The fields are a row of the stored state, in this order."""

    use: UseCounts = field(default_factory=UseCounts)
    base: float = 0.0
    task_overlap: float = 0.0
    result_lines: int = 0


@dataclass(slots=True)
class TrackedLine:
    """A line and its use, its text and position where it was last seen. The fields are a row of the stored state, in order.

    ``is_request`` marks a user's line, ``is_action`` the line that names a call. ``is_failure`` reads like an error, or is
    from a failed result. ``is_decision`` reads like a decision of the model.
    """

    use: UseCounts = field(default_factory=UseCounts)
    base: float = 0.0
    text: str = ""
    position: int = 0
    order: int = 0
    names: tuple[str, ...] = ()
    is_action: bool = False
    is_failure: bool = False
    is_request: bool = False
    is_decision: bool = False
    task_overlap: float = 0.0
    result_lines: int = 1
    source: Source = "said"
    _names_with_context: frozenset[str] | None = None

    @property
    def names_with_context(self) -> frozenset[str]:
        """The identifiers that have context in the line; computed on first use."""
        if self._names_with_context is None:
            self._names_with_context = select_with_context(self.text, self.names)
        return self._names_with_context


@dataclass(frozen=True, slots=True)
class _PendingText:
    """A recorded text that was not learned from yet."""

    turn: int
    position: int
    text: str
    source: Source
    failed: bool = False
    call: str = ""
    in_text: bool = False
    """A reply without calls, or a result that came as a message."""


class SalienceTracker:
    """Tracks the identifiers and lines of a run, each with its use.

    Recorded texts are queued and learned from on the first read, so a run that never fills its budget pays nothing.
    """

    def __init__(self) -> None:
        self.turn = 0
        self.order = 0
        self.parser = LineParser()
        self.files = FileTable()
        self._names: dict[str, TrackedName] = {}
        self._lines: dict[str, TrackedLine] = {}
        self._old_actions: dict[str, TrackedLine] = {}
        """Action lines that were dropped from the pool."""
        self._changed_names: dict[str, TrackedName] = {}
        self._changed_lines: dict[str, TrackedLine] = {}
        """Names and lines whose base is out of date."""
        self._name_chances: dict[str, float] | None = None
        self._line_worths: dict[str, float] | None = None
        """Results until more is learned: extracts are mostly made several at a time."""
        self._pending: list[_PendingText] = []
        self.max_pending = MAX_PENDING_TEXTS
        self._texts_since_read = 0
        """Texts since the last read, including those learned ahead."""
        self.tools: set[str] = set()
        """The names of the tools that were called; "" stands for actions in text."""
        self._task_stems: set[str] = set()
        self._stem_counts: dict[str, int] = {}

    @property
    def names(self) -> dict[str, TrackedName]:
        """The tracked identifiers, with their use."""
        self._learn_pending()
        return self._names

    @property
    def lines(self) -> dict[str, TrackedLine]:
        """The tracked lines by their text without line numbers, with their use."""
        self._learn_pending()
        return self._lines

    @property
    def old_actions(self) -> dict[str, TrackedLine]:
        """Action lines dropped from the pool, newest first."""
        self._learn_pending()
        return self._old_actions

    def learn_step(self, position: int, item: Item) -> None:
        """Queue the texts of a step: the user's message, or the model's text, calls and results."""
        match item:
            case TaskStep(content=content):
                self._queue_text(position, _words_of(content), "task")
            case ActionStep(content=content, tool_calls=calls, observations=observations):
                self.turn += 1
                self._queue_text(position, _words_of(content), "said", in_text=not calls)
                for call in calls:
                    self._queue_text(position, call.arguments, "arguments", call=call.name)
                    self.files.queue_call(position, call.arguments)
                for observation in observations:
                    if observation is not None:
                        self.learn_observation(position, observation)
            case Observed(observation=late):
                self._queue_text(position, _words_of(late.content), "observation", in_text=late.is_message)

    def learn_observation(self, position: int, observation: Observation) -> None:
        """Queue the text of a result of the action at ``position``."""
        self._queue_text(position, _words_of(observation.content), "observation", failed=observation.status == "error")

    def _queue_text(
        self, position: int, text: str, source: Source, *, failed: bool = False, call: str = "", in_text: bool = False
    ) -> None:
        self._pending.append(_PendingText(self.turn, position, text, source, failed, call, in_text))
        self._texts_since_read += 1
        if self._texts_since_read >= self.max_pending:
            self._learn_pending()

    def forget(self, first: int, last: int) -> None:
        """Drop the lines last seen at positions ``[first, last)``, the names that no other line has, and the calls' files."""
        self._learn_pending()
        gone: dict[str, TrackedLine] = {}
        for table in (self._lines, self._old_actions):
            gone |= {key: line for key, line in table.items() if first <= line.position < last}
        for key in gone:
            self._lines.pop(key, None)
            self._old_actions.pop(key, None)
        staying = {name for line in (*self._lines.values(), *self._old_actions.values()) for name in line.names}
        for name in {name for line in gone.values() for name in line.names} - staying:
            self._names.pop(name, None)
        self.files.forget(first, last)
        self._name_chances = self._line_worths = None

    def learn_ahead(self, texts: int) -> None:
        """Learn from at most this many of the queued texts of earlier turns."""
        count = 0
        for pending in self._pending[:texts]:
            if pending.turn == self.turn:
                break
            self._learn_text(pending)
            count += 1
        del self._pending[:count]

    def names_before(self, names: Iterable[str]) -> set[str]:
        """Return those of the identifiers that were used before the newest turn; the newest turn's texts stay queued."""
        self.learn_ahead(MAX_PENDING_TEXTS)
        rows = ((name, self._names.get(name)) for name in names)
        return {name for name, row in rows if row is not None and (row.use.last < self.turn or row.use.turns > 1)}

    def _learn_pending(self) -> None:
        if not self._texts_since_read:
            return
        for pending in self._pending:
            self._learn_text(pending)
        self._update_bases()
        self._pending.clear()
        self._texts_since_read, self._name_chances, self._line_worths = 0, None, None

    def _learn_text(self, pending: _PendingText) -> None:
        """Learn from a text, then drop what is too much, judged at the text's own turn: the time of a read changes nothing."""
        for part in self._split_action(pending) if pending.in_text else (pending,):
            self._add_text(part)
        turn = pending.turn
        if len(self._names) <= 2 * POOL_SIZE and len(self._lines) <= 2 * POOL_SIZE:
            return
        self._update_bases()
        if len(self._names) > 2 * POOL_SIZE:
            chances = {key: name_chance(name.base, name.use, turn) for key, name in self._names.items()}
            self._names = _keep_likeliest(self._names, chances)
        if len(self._lines) > 2 * POOL_SIZE:
            self._trim_lines(turn)

    def _split_action(self, pending: _PendingText) -> Iterator[_PendingText]:
        """Yield the prose of a reply and its action as a call without a name, once a result has come as a message."""
        if pending.source == "said" and "" in self.tools:
            prose, action = split_text_action(pending.text)
            yield replace(pending, text=prose)
            if action:
                yield replace(pending, text=action, source="arguments")
            return
        if pending.source == "observation":
            self.tools.add("")
        yield pending

    def _trim_lines(self, turn: int) -> None:
        """Keep the likelier half of the lines, and the newest action lines of the rest beside the pool."""
        scores = {
            key: line_chance(line.base, line.use, turn)
            + result_line_worth(line.task_overlap, line.result_lines, turn - line.use.last)
            for key, line in self._lines.items()
        }
        lines = _keep_likeliest(self._lines, scores)
        actions = self._old_actions | {
            key: line for key, line in self._lines.items() if line.is_action and key not in lines
        }
        newest = heapq.nlargest(MAX_OLD_ACTIONS, actions, key=lambda key: actions[key].order)
        self._lines, self._old_actions = lines, {key: actions[key] for key in newest}

    def _add_text(self, pending: _PendingText) -> None:
        text = self._add_call(pending) if pending.source == "arguments" else pending.text
        parsed = map(self.parser.parse_line, lines_of(text, POOL_SIZE))
        lines = [parsed_line for parsed_line in parsed if len(parsed_line.key) >= LINE_MIN_CHARS]
        is_observation, is_request = pending.source == "observation", pending.source == "task"
        for parsed_line in lines:
            line = self._add_line(parsed_line, parsed_line.raw.strip(), pending, len(lines))
            line.is_action, line.is_request = False, is_request
            line.is_failure = is_observation and (pending.failed or parsed_line.is_failure)
            line.is_decision = pending.source == "said" and parsed_line.is_decision

    def _add_call(self, pending: _PendingText) -> str:
        """Add the line that names a call; return the rest of its arguments."""
        call_line = format_call(pending.call, pending.text)
        self.tools.add(pending.call)
        # With a single tool in the run, its name says nothing.
        text = call_line.alone if call_line.alone and len(self.tools) == 1 else call_line.text
        key = strip_line_number(call_line.brief)
        if len(key) >= LINE_MIN_CHARS:
            # Not cached by the parser: most calls come once.
            names = tuple(identifiers(call_line.values or text))
            line = self._add_line(ParsedLine(text, key, names), text, pending, 1)
            line.is_action, line.is_request, line.is_failure, line.is_decision = True, False, False, False
        return call_line.rest

    def _add_line(self, parsed_line: ParsedLine, text: str, pending: _PendingText, result_lines: int) -> TrackedLine:
        line = self._lines.get(parsed_line.key)
        if line is None:
            line = self._lines[parsed_line.key] = self._old_actions.pop(parsed_line.key, TrackedLine())
        self._changed_lines[parsed_line.key] = line
        line.use.count(pending.turn, pending.source)
        if line.text != text:
            line.text, line.names = text, tuple(dict.fromkeys(parsed_line.names))
            line._names_with_context = None  # noqa: SLF001
        self.order += 1
        line.position, line.order, line.result_lines = pending.position, self.order, result_lines
        line.source = pending.source
        is_observation = pending.source == "observation"
        if is_observation:
            line.task_overlap = self._task_overlap(parsed_line.stems)
        elif pending.source == "task":
            self._task_stems.update(parsed_line.stems)
        for key in line.names:
            name = self._names.get(key)
            if name is None:
                name = self._names[key] = TrackedName()
            self._changed_names[key] = name
            name.use.count(pending.turn, pending.source)
            if is_observation:
                name.task_overlap = max(name.task_overlap, line.task_overlap)
                name.result_lines = min(name.result_lines or result_lines, result_lines)
        return line

    def _update_bases(self) -> None:
        """Recompute the bases of changed names and lines, once for all their occurrences."""
        for key, name in self._changed_names.items():
            name.base = name_base(key, name.use, name.task_overlap, name.result_lines)
        for line in self._changed_lines.values():
            line.base = line_base(line.text, line.use, line.source, line.result_lines)
        self._changed_names.clear()
        self._changed_lines.clear()

    def _task_overlap(self, stems: tuple[str, ...]) -> float:
        """Return the share, from 0 to 1, of the line's uncommon stems that are in the user's words."""
        counts, shared, whole = self._stem_counts, 0.0, 3.0
        if len(counts) > MAX_COUNTED_WORDS:
            self._stem_counts = counts = {word: count // 2 for word, count in counts.items() if count > 1}
        for word in stems:
            count = counts[word] = counts.get(word, 0) + 1
            rare = max(0.0, math.log((2 + self.order) / (1 + count)))
            whole += rare
            if word in self._task_stems:
                shared += rare
        return shared / whole

    def name_chance(self, key: str) -> float:
        """Return the chance that a tracked identifier is needed soon."""
        name = self.names[key]
        return name_chance(name.base, name.use, self.turn)

    def name_chances(self) -> dict[str, float]:
        """Return the chance of each tracked identifier to be needed soon."""
        self._learn_pending()
        if self._name_chances is None:
            names = self._names.items()
            self._name_chances = {key: name_chance(name.base, name.use, self.turn) for key, name in names}
        return self._name_chances

    def line_worths(self) -> dict[str, float]:
        """Return the worth of each tracked line beside its names: its quote chance, and its worth as a result."""
        self._learn_pending()
        if self._line_worths is None:
            lines = self._lines.items()
            self._line_worths = {key: self.quote_chance(line) + self.result_worth(line) for key, line in lines}
        return self._line_worths

    def focus_on(self, names: frozenset[str]) -> tuple[dict[str, float], dict[str, float]]:
        """Return chances and worths in which lines with these names, and the names beside them, are likelier."""
        lines = {key: line for key, line in self.lines.items() if not names.isdisjoint(line.names)}
        chances, worths = dict(self.name_chances()), dict(self.line_worths())
        for key in {name for line in lines.values() for name in line.names} & chances.keys():
            chances[key] = raise_chance(chances[key], FOCUS_LOG_ODDS)
        for key, line in lines.items():
            log_odds = FOCUS_LOG_ODDS * min(2, sum(name in names for name in line.names))
            worths[key] = raise_chance(self.quote_chance(line), log_odds) + self.result_worth(line)
        return chances, worths

    def quote_chance(self, line: TrackedLine) -> float:
        """Return the chance that a tracked line is quoted soon; 0 for a short one."""
        return line_chance(line.base, line.use, self.turn) if len(line.text) >= QUOTE_MIN_CHARS else 0.0

    def result_worth(self, line: TrackedLine) -> float:
        """Return the worth of a tracked line as part of a result, beside its names."""
        return result_line_worth(line.task_overlap, line.result_lines, self.turn - line.use.last)

    def to_state(self) -> dict[str, Any]:
        """Return the state as JSON-safe values, after learning from all queued texts."""
        self._learn_pending()
        return {
            "turn": self.turn,
            "order": self.order,
            "names": _state_rows(self._names),
            "lines": _state_rows(self._lines),
            "deeds": _state_rows(self._old_actions),
            "files": self.files.to_state(),
            "tools": sorted(self.tools),
            "task": sorted(self._task_stems),
            "common": self._stem_counts,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Restore a tracker from its state. Raises ValueError, KeyError or TypeError for an invalid state."""
        tracker = cls()
        tracker.turn, tracker.order = state["turn"], state["order"]
        for key, *values in state["names"]:
            tracker._names[key] = TrackedName(UseCounts(*values[:_USE_FIELDS]), *values[_USE_FIELDS:])
        for kind, table in (("lines", tracker._lines), ("deeds", tracker._old_actions)):
            for key, *values in state[kind]:
                line = table[key] = TrackedLine(UseCounts(*values[:_USE_FIELDS]), *values[_USE_FIELDS:])
                line.names = tuple(line.names)
        tracker.files = FileTable((path, positions) for path, positions in state["files"])
        tracker.tools, tracker._task_stems = set(state["tools"]), set(state["task"])
        tracker._stem_counts = dict(state["common"])
        return tracker


_USE_FIELDS = len(fields(UseCounts))
_STORED = {
    kind: attrgetter(*(one.name for one in fields(kind) if one.name not in ("use", "_names_with_context")))
    for kind in (UseCounts, TrackedName, TrackedLine)
}
"""Reads the stored fields of each class, in the order of its constructor."""


def _state_rows(table: Mapping[str, TrackedName | TrackedLine]) -> list[list[Any]]:
    return [[key, *_STORED[UseCounts](row.use), *_STORED[type(row)](row)] for key, row in table.items()]


def _words_of(content: Content | None) -> str:
    """Return the readable text of content without its images: the name of one says nothing that is needed."""
    if content is None or isinstance(content, str):
        return content or ""
    return as_text(tuple(part for part in as_parts(content) if not isinstance(part, Image)))


T = TypeVar("T")


def _keep_likeliest(table: dict[str, T], chances: dict[str, float]) -> dict[str, T]:
    """Keep the likeliest rows of a table up to the size of the pool, in its order."""
    likeliest = set(sorted(chances, key=lambda key: -chances[key])[:POOL_SIZE])
    return {key: value for key, value in table.items() if key in likeliest}


def raise_chance(chance: float, log_odds: float) -> float:
    """Return the chance with its log-odds raised by this much."""
    if not log_odds or chance >= 1:
        return chance
    odds = chance / (1 - chance) * math.exp(log_odds)
    return odds / (1 + odds)
