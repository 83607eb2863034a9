"""What has to change, in which logs, so that nothing of some steps is left in a run, on any of its branches. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import unescape

from pagein.events.entries import (
    Body,
    Checkpoint,
    Compaction,
    Erased,
    FactConfirmed,
    FactRemoved,
    FactsShown,
    FactStated,
    Observed,
)
from pagein.events.handles import parse_handle, step_handle
from pagein.events.steps import ActionStep
from pagein.log.base import Entry
from pagein.log.erasure import Cut
from pagein.memory.erasure.derived import Gone, recovered, unmarked
from pagein.memory.erasure.redact import emptied, unobserved
from pagein.memory.erasure.repetitions import Quotes, lines_of, parsed, strings
from pagein.memory.search_runtime import OWN_TOOLS
from pagein.search.passages import passages

Place = tuple[str, int]
"""The session that holds an entry, and its position in the run."""


@dataclass(frozen=True, slots=True)
class Line:
    """A branch as it is read: all its entries, of which those from ``own`` on lie in its own ``session``.

    ``holder`` says which session holds the entry at a position.
    """

    session: str
    own: int
    entries: tuple[Entry, ...]
    holder: Callable[[int], str]

    def places(self, gone: Mapping[Place, frozenset[int] | None]) -> dict[int, frozenset[int] | None]:
        """What of these is to be seen on this branch, by position."""
        return {
            at: parts
            for (session, at), parts in gone.items()
            if at < len(self.entries) and self.holder(at) == session
        }


@dataclass(frozen=True, slots=True)
class Planned:
    """The cuts; by session, as an archive knows it, the entries that change as they are to stand; and what is told of it."""

    cuts: tuple[Cut, ...] = ()
    revised: Mapping[str, tuple[Entry, ...]] | None = None
    gone: Mapping[str, Gone] | None = None
    """By session what was erased, as its handles count."""
    quotes: Quotes | None = None
    steps: int = 0
    derived: int = 0
    elsewhere: tuple[str, ...] = ()


def planned(lines: Sequence[Line], asked: Mapping[Place, frozenset[int] | None], reason: str) -> Planned:
    """What it takes to erase these places and what was written of them; nothing where that was done already."""
    gone = _closed(lines, asked)
    by_line = {line.session: line.places(gone) for line in lines}
    erased = [text for line in lines for text in _texts(line, by_line[line.session], gone=True)]
    kept = [text for line in lines for text in _texts(line, by_line[line.session], gone=False)]
    quotes = Quotes(erased, kept)
    cuts: list[Cut] = []
    revised: dict[str, tuple[Entry, ...]] = {}
    steps = derived = 0
    changes = {line.session: dict(_changed(line, by_line[line.session], quotes)) for line in lines}
    if not any(changes.values()):
        return Planned()
    for line in lines:
        mine, bodies = by_line[line.session], changes[line.session]
        if not (mine or bodies):
            continue
        note = Erased(_spans((*mine, *bodies)), reason)
        local = {at - line.own: body for at, body in bodies.items()}
        cuts.append(Cut(line.session, len(line.entries) - line.own, note, local, line.own))
        steps += sum(at in mine for at in bodies)
        derived += sum(at not in mine for at in bodies)
    whole = {(line.holder(at), at): body for line in lines for at, body in changes[line.session].items()}
    for line in lines:
        changed = (
            replace(entry, body=whole[place])
            for entry in line.entries
            if (place := (line.holder(entry.position), entry.position)) in whole
        )
        revised[line.session] = tuple(changed)
    elsewhere = tuple(
        dict.fromkeys(at for line in lines for at in _elsewhere(line, by_line[line.session], quotes))
    )
    return Planned(tuple(cuts), revised, by_line, quotes, steps, derived, elsewhere)


def _closed(
    lines: Iterable[Line], asked: Mapping[Place, frozenset[int] | None]
) -> dict[Place, frozenset[int] | None]:
    """What was asked for, with the observations of those actions that were recorded after them, and the other way round."""
    gone = dict(asked)
    for line in lines:
        mine = line.places(asked)
        for entry in line.entries:
            body = entry.body
            if isinstance(body, Observed) and entry.position in mine and not body.late:
                place = line.holder(body.action), body.action
                parts = gone.get(place, frozenset())
                gone[place] = None if parts is None else parts | {body.index}
            elif isinstance(body, Observed) and body.action in mine:
                indexes = mine[body.action]
                if indexes is None or body.index in indexes:
                    gone[line.holder(entry.position), entry.position] = None
    return gone


def _texts(line: Line, mine: Gone, *, gone: bool) -> Iterator[str]:
    """What was said in the branch's entries: of what is ``gone``, or of all else."""
    own = set(_own_calls(line.entries))
    for entry in line.entries:
        at = entry.position
        parts = mine.get(at, frozenset())
        for each in passages(entry, own):
            is_gone = parts is None or (each.position == at and each.part in parts)
            if is_gone == gone:
                yield each.text


def _own_calls(entries: Iterable[Entry]) -> Iterator[tuple[int, int]]:
    for entry in entries:
        if isinstance(entry.body, ActionStep):
            for index, call in enumerate(entry.body.tool_calls):
                if call.name in OWN_TOOLS:
                    yield entry.position, index


def _changed(line: Line, mine: Gone, quotes: Quotes) -> Iterator[tuple[int, Body]]:
    """The branch's own entries that change, as they are to be."""
    told = _told(line.entries, mine, quotes)
    modelled = False
    for entry in line.entries:
        at, old = entry.position, entry.body
        if isinstance(old, Compaction):
            modelled = modelled or any(
                by.record and any(by.first <= each < by.last for each in mine) for by in old.replacements
            )
        new = _new(old, at, mine, quotes, told, modelled=modelled)
        if at >= line.own and new != old:
            yield at, new


def _new(
    old: Body, at: int, mine: Gone, quotes: Quotes, told: Mapping[int, frozenset[int]], *, modelled: bool
) -> Body:
    if at in mine:
        indexes = mine[at]
        if indexes is None:
            return emptied(old)
        return unobserved(old, indexes) if isinstance(old, ActionStep) else old
    match old:
        case Compaction():
            return recovered(old, {each: parts for each, parts in mine.items() if each < at}, quotes)
        case Checkpoint():
            return unmarked(old, mine, quotes, modelled=modelled)
        case FactsShown(text=text) if quotes(text):
            return emptied(old)
        case ActionStep() if at in told:
            return unobserved(old, told[at])
        case Observed(action=action, index=index) if index in told.get(action, ()):
            return emptied(old)
        case _:
            return old


def _told(entries: Sequence[Entry], mine: Gone, quotes: Quotes) -> dict[int, frozenset[int]]:
    """By action, the results of our own tools that tell of what is gone: they repeat what was recorded."""
    asked = {
        (entry.position, index): call.arguments
        for entry in entries
        if isinstance(entry.body, ActionStep)
        for index, call in enumerate(entry.body.tool_calls)
        if call.name in OWN_TOOLS
    }
    found: dict[int, set[int]] = {}
    for entry in entries:
        for each in passages(entry):
            place = each.position, each.part
            if place in asked and (
                quotes(each.text) or _asks(asked[place], mine) or _points(each.text, mine)
            ):
                found.setdefault(each.position, set()).add(each.part)
    return {action: frozenset(indexes) for action, indexes in found.items()}


def _asks(arguments: str, mine: Gone) -> bool:
    handles = (parse_handle(each) for each in strings(parsed(arguments)) if len(each) <= 24)
    return any(each is not None and any(each.first <= at < each.last for at in mine) for each in handles)


def _points(text: str, mine: Gone) -> bool:
    # Each hit that recall tells begins with its handle.
    return any(f"[{step_handle(at)}]" in text or f"[{step_handle(at)}." in text for at in mine)


def _elsewhere(line: Line, mine: Gone, quotes: Quotes) -> Iterator[str]:
    own = set(_own_calls(line.entries))
    for entry in line.entries:
        if entry.position not in mine:
            for each in passages(entry, own):
                if not quotes.both.isdisjoint(lines_of(each.text)):
                    yield each.handle


def _spans(positions: Iterable[int]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for at in sorted(set(positions)):
        if found and found[-1][1] == at:
            found[-1] = (found[-1][0], at + 1)
        else:
            found.append((at, at + 1))
    return tuple(found)


# Facts


def emptied_facts(entries: Sequence[Entry], is_gone: Callable[[int], bool]) -> dict[int, Body]:
    """What is to stand in a log of facts where some of them are erased, with what was said of them later."""
    bodies: dict[int, Body] = {}
    for entry in entries:
        body = entry.body
        match body:
            case FactStated():
                erased = is_gone(entry.position)
            case FactRemoved(fact=fact) | FactConfirmed(fact=fact):
                erased = is_gone(fact)
            case _:
                continue
        if erased and (new := emptied(body)) != body:
            bodies[entry.position] = new
    return bodies


def facts_of(entries: Sequence[Entry], gone: Mapping[str, Gone], quotes: Callable[[str], bool]) -> set[int]:
    """The facts that came from erased steps only, or that say what only those said."""
    sources: dict[int, list[bool]] = {}
    contents: dict[int, str] = {}
    for entry in entries:
        match entry.body:
            case FactStated(content=content, sources=found):
                contents[entry.position] = content
                sources[entry.position] = [_is_gone(each.session, each.handle, gone) for each in found]
            case FactConfirmed(fact=fact, sources=found) if fact in sources:
                sources[fact] += [_is_gone(each.session, each.handle, gone) for each in found]
            case _:
                pass
    return {at for at, found in sources.items() if any(found) and (all(found) or quotes(contents[at]))}


def _is_gone(session: str, handle: str, gone: Mapping[str, Gone]) -> bool:
    named, mine = parse_handle(handle), gone.get(session, {})
    if named is None:
        return False
    if named.observation is None:
        return all(at in mine for at in range(named.first, min(named.last, named.first + 10_000)))
    return named.first in mine and _holds(mine[named.first], named.observation)


def _holds(parts: frozenset[int] | None, index: int) -> bool:
    return parts is None or index in parts


def facts_cut(session: str, entries: Sequence[Entry], facts: set[int], reason: str) -> Cut | None:
    """The cut that erases these facts in their log; None where that was done already."""
    bodies = emptied_facts(entries, facts.__contains__)
    return Cut(session, len(entries), Erased(_spans(bodies), reason), bodies) if bodies else None


def line_of(entries: Sequence[Entry], position: int) -> set[int]:
    """A fact with those whose place it took, one after the other."""
    stated = {entry.position: entry.body for entry in entries if isinstance(entry.body, FactStated)}
    found: set[int] = set()
    rest = [position]
    while rest:
        at = rest.pop()
        if at in stated and at not in found:
            found.add(at)
            rest.extend(stated[at].supersedes)
    return found


def unshown(session: str, entries: Sequence[Entry], contents: Sequence[str], reason: str) -> Cut | None:
    """The cut that takes facts out of what a run's view was shown of them; None where they are in none of it."""
    bodies: dict[int, Body] = {
        entry.position: emptied(entry.body)
        for entry in entries
        if isinstance(entry.body, FactsShown) and _shows(unescape(entry.body.text), contents)
    }
    return Cut(session, len(entries), Erased(_spans(bodies), reason), bodies) if bodies else None


def _shows(text: str, contents: Sequence[str]) -> bool:
    return any(each in text for each in contents)
