"""The names of the newest action: which of them are out of view, and which ones a page-in alone showed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pagein.context.salience.extract import VisibleContent
from pagein.context.salience.lines import LineParser
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.events.identifiers import argument_text, format_call, identifiers
from pagein.events.steps import ActionStep, SummaryStep, as_text

_EXTRACT_MARK = re.compile(r"^(?:[>!]|user:) ", re.MULTILINE)
"""The marks before the lines of an extract."""


class VisibleContentCache:
    """Caches the parsed content of a view's entries as long as they stay in view."""

    def __init__(self) -> None:
        self._contents: dict[int, tuple[ViewEntry, VisibleContent]] = {}
        self._named: tuple[ActionStep | None, frozenset[str]] = None, frozenset()

    def content(self, view: View) -> VisibleContent:
        """Return the visible content of a view, and drop what left it from the cache."""
        parser = view.tracker.parser
        return VisibleContent.merge([self._parse_entry(entry, parser) for entry in self._entries_of(view)])

    def hidden_names(self, names: AbstractSet[str], view: View, but: ViewEntry) -> set[str]:
        """Return those of the names that are in no entry of the view but this one."""
        hidden = set(names)
        for entry in self._entries_of(view):
            if hidden and entry is not but:
                hidden -= self.names(entry, view)
        return hidden

    def names(self, entry: ViewEntry, view: View) -> frozenset[str]:
        """Return the identifiers of an entry."""
        return self._parse_entry(entry, view.tracker.parser).names

    def names_of(self, step: ActionStep) -> frozenset[str]:
        """Return the identifiers in an action's text and arguments; those of the last action asked for are cached."""
        if self._named[0] is not step:
            texts = (as_text(step.content or ""), *(argument_text(call.arguments) for call in step.tool_calls))
            self._named = step, frozenset(name for text in texts for name in identifiers(text))
        return self._named[1]

    def _entries_of(self, view: View) -> tuple[ViewEntry, ...]:
        """Return the entries of a view, and drop those that left it from the cache."""
        entries = (*view.entries, *view.tail)
        self._contents = {id(entry): self._contents[id(entry)] for entry in entries if id(entry) in self._contents}
        return entries

    def _parse_entry(self, entry: ViewEntry, parser: LineParser) -> VisibleContent:
        cached = self._contents.get(id(entry))
        if cached is None or cached[0] is not entry:
            cached = self._contents[id(entry)] = entry, VisibleContent.parse(_texts(entry), parser)
        return cached[1]


@dataclass(frozen=True, slots=True)
class NamedFault:
    """The newest action names something that is out of view: its position, and the names; -1 and none where it does not."""

    position: int = -1
    names: frozenset[str] = frozenset()


def find_fault(view: View, cache: VisibleContentCache) -> NamedFault:
    """Find what the newest action names that is out of view.

    What it names for the first time, or what its own result has, is not out of view.
    """
    newest, step = newest_action(view)
    if newest is None or step is None:
        return NamedFault()
    hidden = cache.hidden_names(view.tracker.names_before(cache.names_of(step)), view, newest)
    if hidden:
        hidden.difference_update(name for text in result_texts(step) for name in identifiers(text))
    return NamedFault(newest.first, frozenset(hidden)) if hidden else NamedFault()


def find_used(view: View, page_ins: Sequence[ViewEntry], cache: VisibleContentCache) -> tuple[int, tuple[int, ...]]:
    """Return the position of the newest action, and of the page-ins before it that alone show something it names."""
    newest, step = newest_action(view)
    if newest is None or step is None:
        return -1, ()
    earlier = [entry for entry in page_ins if entry.first <= newest.first]
    shown = {name for entry in earlier for name in cache.names_of(step) & cache.names(entry, view)}
    alone = cache.hidden_names(shown, view, newest)
    return newest.first, tuple(entry.first for entry in earlier if alone & cache.names(entry, view))


def newest_action(view: View) -> tuple[ViewEntry, ActionStep] | tuple[None, None]:
    """Return the entry of the newest action, and the action; None twice without one."""
    actions = ((entry, entry.item) for entry in reversed(view.run) if isinstance(entry.item, ActionStep))
    return next(actions, (None, None))


def result_texts(step: ActionStep) -> list[str]:
    """Return the texts of an action's results that have come."""
    return [as_text(observation.content) for observation in step.observations if observation is not None]


def _texts(entry: ViewEntry) -> Iterator[str]:
    is_extract = isinstance(entry.item, SummaryStep)
    for message in entry.messages:
        text = as_text(message.content or "")
        yield _EXTRACT_MARK.sub("", text) if is_extract else text
        for call in message.tool_calls:
            line = format_call(call.name, call.arguments)
            # The line of a call with one argument is that argument.
            yield from (argument_text(call.arguments), *(() if line.alone else (line.text,)))
