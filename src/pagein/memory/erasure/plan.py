"""The plan of an erasure: the entries to change, on every branch and in the facts. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import unescape

from pagein._common.json_values import parse_json, strings_in
from pagein.events import steps
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
    Pin,
)
from pagein.events.handles import group_positions, observation_handle, parse_handle, step_handle
from pagein.events.own_steps import own_note
from pagein.events.steps import ActionStep
from pagein.events.tool_call_encoding import bare_tool_name
from pagein.facts.fact import MAX_CONTENT_CHARS, PROCEDURE
from pagein.log.base import Entry
from pagein.log.erasure import Cut
from pagein.memory.erasure.redact import ErasedParts, redact, redact_checkpoint, redact_compaction, redact_observations
from pagein.memory.erasure.repetitions import Repetitions, handles_in, recognizable_lines, words_in
from pagein.memory.search_runtime import OWN_TOOLS
from pagein.search.passages import CONTENT_PART, own_calls
from pagein.summaries.sanitize import one_line

Place = tuple[str, int]
"""The session that holds an entry, and its position in the run."""


@dataclass(frozen=True, slots=True)
class BranchEntries:
    """All entries of a branch; those from ``own`` on lie in its own ``session``.

    ``holder`` gives the session that holds the entry at a position.
    """

    session: str
    own: int
    entries: tuple[Entry, ...]
    holder: Callable[[int], str]

    def erased_here(self, erased: Mapping[Place, frozenset[int] | None]) -> dict[int, frozenset[int] | None]:
        """The erased places that are on this branch, by position."""
        return {
            at: parts
            for (session, at), parts in erased.items()
            if at < len(self.entries) and self.holder(at) == session
        }


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """The cuts, the changed entries by session for the search index, and the counts to report."""

    cuts: tuple[Cut, ...] = ()
    revised: Mapping[str, tuple[Entry, ...]] | None = None
    erased: Mapping[str, ErasedParts] | None = None
    """By session what was erased, as its handles count."""
    repetitions: Repetitions | None = None
    steps: int = 0
    derived: int = 0
    elsewhere: tuple[str, ...] = ()


def plan_erasure(
    lines: Sequence[BranchEntries], places: Mapping[Place, frozenset[int] | None], reason: str
) -> ErasurePlan:
    """Plan the erasure of these places and of what was derived from them; an empty plan where nothing changes."""
    erased_places = _with_linked_observations(lines, places)
    by_line = {line.session: line.erased_here(erased_places) for line in lines}
    quotes = _build_repetitions(lines, by_line)
    cuts: list[Cut] = []
    revised: dict[str, tuple[Entry, ...]] = {}
    steps = derived = 0
    changes = {line.session: dict(_own_changes(line, by_line[line.session], quotes)) for line in lines}
    if not any(changes.values()):
        return ErasurePlan()
    for line in lines:
        mine, bodies = by_line[line.session], changes[line.session]
        if not (mine or bodies):
            continue
        note = Erased(tuple(group_positions((*mine, *bodies))), reason)
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
    elsewhere = tuple(dict.fromkeys(at for line in lines for at in _elsewhere(line, by_line[line.session], quotes)))
    return ErasurePlan(tuple(cuts), revised, by_line, quotes, steps, derived, elsewhere)


def _with_linked_observations(
    lines: Iterable[BranchEntries], places: Mapping[Place, frozenset[int] | None]
) -> dict[Place, frozenset[int] | None]:
    """Add the separately recorded observations of these actions, and the results in actions of these observations."""
    linked = dict(places)
    for line in lines:
        mine = line.erased_here(places)
        for entry in line.entries:
            body = entry.body
            if not isinstance(body, Observed):
                continue
            if entry.position in mine and not body.late:
                place = line.holder(body.action), body.action
                parts = linked.get(place, frozenset())
                linked[place] = None if parts is None else parts | {body.index}
            elif entry.position in mine and body.action >= 0 and own_note(body.observation):
                linked[line.holder(body.action), body.action] = None  # its data repeat what the note says
            elif body.action in mine:
                indexes = mine[body.action]
                if indexes is None or body.index in indexes:
                    linked[line.holder(entry.position), entry.position] = None
    return linked


def _build_repetitions(lines: Sequence[BranchEntries], by_line: Mapping[str, ErasedParts]) -> Repetitions:
    erased = [text for line in lines for _, text in _texts(line, by_line[line.session], erased=True)]
    words = frozenset(word for text in erased for word in words_in(text))
    remaining = (
        text
        for line in lines
        for entry, text in _texts(line, by_line[line.session], erased=False)
        if not (isinstance(entry.body, Pin) and words.issuperset(words_in(text)))  # a pin by handle is a copy
    )
    return Repetitions(erased, (*remaining, *(name for line in lines for name in _names_that_stay(line.entries))))


def _names_that_stay(entries: Iterable[Entry]) -> Iterator[str]:
    """The names and ids of calls, and those of models: they stay in tombstones, too."""
    for entry in entries:
        if isinstance(entry.body, ActionStep):
            yield entry.body.model
            for call in entry.body.tool_calls:
                yield f"{call.name} {call.id}"


def _texts(line: BranchEntries, mine: ErasedParts, *, erased: bool) -> Iterator[tuple[Entry, str]]:
    """The texts in the branch's entries: the ``erased`` ones, or all others.

    Results of the library's own tools are left out: they repeat what other steps say.
    """
    own = {call for entry in line.entries for call in own_calls(entry, OWN_TOOLS)}
    for entry in line.entries:
        for position, part, text in entry_texts(entry):
            parts = mine.get(entry.position, frozenset())
            is_gone = parts is None or part in parts
            if is_gone == erased and (position, part) not in own:
                yield entry, text


def _own_changes(line: BranchEntries, mine: ErasedParts, repetitions: Repetitions) -> Iterator[tuple[int, Body]]:
    """The redacted bodies of the branch's own entries that change."""
    telling = _telling_results(line.entries, mine, repetitions)
    modelled = False
    for entry in line.entries:
        at, old = entry.position, entry.body
        if isinstance(old, Compaction):
            modelled = modelled or any(
                by.record and any(by.first <= position < by.last for position in mine) for by in old.replacements
            )
        new = _without(old, at, mine, repetitions, telling, modelled=modelled)
        if at >= line.own and new != old:
            yield at, new


def _without(
    old: Body,
    at: int,
    mine: ErasedParts,
    repetitions: Repetitions,
    telling: Mapping[int, frozenset[int]],
    *,
    modelled: bool,
) -> Body:
    if at in mine:
        indexes = mine[at]
        if indexes is None:
            return redact(old)
        return redact_observations(old, indexes) if isinstance(old, ActionStep) else old
    match old:
        case Compaction():
            return redact_compaction(
                old, {position: parts for position, parts in mine.items() if position < at}, repetitions
            )
        case Checkpoint():
            return redact_checkpoint(old, mine, repetitions, modelled=modelled)
        case FactsShown(text=text) if repetitions(text):
            return redact(old)
        case Pin(text=text) if repetitions.copied(text):
            return redact(old)
        case ActionStep() if at in telling:
            return redact_observations(old, telling[at])
        case Observed(action=action, index=index) if index in telling.get(action, ()):
            return redact(old)
        case _:
            return old


def _telling_results(
    entries: Sequence[Entry], mine: ErasedParts, repetitions: Repetitions
) -> dict[int, frozenset[int]]:
    """By action, the results of the library's own tools that repeat erased content."""
    arguments = {
        (entry.position, index): call.arguments
        for entry in entries
        if isinstance(entry.body, ActionStep)
        for index, call in enumerate(entry.body.tool_calls)
        if bare_tool_name(call.name) in OWN_TOOLS
    }
    results: dict[int, set[int]] = {}
    for entry in entries:
        for position, part, text in entry_texts(entry):
            place = position, part
            if place in arguments and (
                repetitions(text) or _names_handle(arguments[place], mine) or _points_at(text, mine)
            ):
                results.setdefault(position, set()).add(part)
    return {action: frozenset(indexes) for action, indexes in results.items()}


def _names_handle(arguments: str, mine: ErasedParts) -> bool:
    handles = handles_in(parse_json(arguments, arguments))
    return any(handle.first <= at < handle.last for handle in handles for at in mine)


def _points_at(text: str, mine: ErasedParts) -> bool:
    # Each hit that recall tells begins with its handle.
    return any(f"[{step_handle(at)}]" in text or f"[{step_handle(at)}." in text for at in mine)


def _elsewhere(line: BranchEntries, mine: ErasedParts, repetitions: Repetitions) -> Iterator[str]:
    own = {call for entry in line.entries for call in own_calls(entry, OWN_TOOLS)}
    for entry in line.entries:
        for position, part, text in entry_texts(entry) if entry.position not in mine else ():
            lines = () if (position, part) in own else recognizable_lines(text)
            if not repetitions.shared_lines.isdisjoint(lines):
                yield step_handle(position) if part == CONTENT_PART else observation_handle(position, part)


# Facts


def redact_facts(entries: Sequence[Entry], is_gone: Callable[[int], bool]) -> dict[int, Body]:
    """The bodies that replace erased facts in their log, with the later entries about them."""
    bodies: dict[int, Body] = {}
    for entry in entries:
        if isinstance(body := entry.body, FactStated | FactRemoved | FactConfirmed):
            fact = entry.position if isinstance(body, FactStated) else body.fact
            if is_gone(fact) and (new := redact(body)) != body:
                bodies[entry.position] = new
    return bodies


def facts_from(
    entries: Sequence[Entry], erased: Mapping[str, ErasedParts], quotes: Callable[[str], bool], *, is_own: bool = False
) -> set[int]:
    """The facts that came from erased steps only, or that repeat only their content; procedures with any such step.

    ``is_own`` where the facts are the run's alone: a model's notes that repeat it name no step.
    """
    sources: dict[int, list[bool]] = {}
    contents: dict[int, str] = {}
    notes = unsourced_facts(entries, quotes, written=True) if is_own else set()
    for entry in entries:
        match entry.body:
            case FactStated(content=content, category=category, sources=handles):
                contents[entry.position] = content
                are_gone = [_is_gone(source.session, source.handle, erased) for source in handles]
                sources[entry.position] = [True] if category == PROCEDURE and any(are_gone) else are_gone
            case FactConfirmed(fact=fact, sources=handles) if fact in sources:
                sources[fact] += [_is_gone(source.session, source.handle, erased) for source in handles]
            case _:
                pass
    return notes | {at for at, are_gone in sources.items() if any(are_gone) and (all(are_gone) or quotes(contents[at]))}


def unsourced_facts(entries: Sequence[Entry], quotes: Callable[[str], bool], *, written: bool = False) -> set[int]:
    """The facts that name no step and repeat erased content; with ``written`` those that a model wrote down."""
    facts = ((entry.position, entry.body) for entry in entries if isinstance(entry.body, FactStated))
    loose = ((at, fact) for at, fact in facts if not fact.sources and (fact.author == "model" or not written))
    return {at for at, fact in loose if quotes(fact.content)}


def _is_gone(session: str, handle: str, erased: Mapping[str, ErasedParts]) -> bool:
    named, mine = parse_handle(handle), erased.get(session, {})
    if named is None:
        return False
    if named.observation is None:
        return all(at in mine for at in range(named.first, min(named.last, named.first + 10_000)))
    parts = mine.get(named.first, frozenset())
    return parts is None or named.observation in parts


def cut_facts(session: str, entries: Sequence[Entry], facts: set[int], reason: str) -> Cut | None:
    """The cut that erases these facts in their log; None where nothing changes."""
    bodies = redact_facts(entries, facts.__contains__)
    return Cut(session, len(entries), Erased(tuple(group_positions(bodies)), reason), bodies) if bodies else None


def superseded_line(entries: Sequence[Entry], position: int) -> set[int]:
    """A fact with those it superseded, one after the other."""
    stated = {entry.position: entry.body for entry in entries if isinstance(entry.body, FactStated)}
    line: set[int] = set()
    rest = [position]
    while rest:
        at = rest.pop()
        if at in stated and at not in line:
            line.add(at)
            rest.extend(stated[at].supersedes)
    return line


def cut_shown_facts(session: str, entries: Sequence[Entry], contents: Sequence[str], reason: str) -> Cut | None:
    """The cut that erases facts from the blocks that a run's view showed; None where they are in none."""
    # A block has each fact in one line, but a procedure: of that its first line is whole.
    lines = [unescape(one_line(content.partition("\n")[0], MAX_CONTENT_CHARS)) for content in contents]
    bodies: dict[int, Body] = {
        entry.position: redact(entry.body)
        for entry in entries
        if isinstance(entry.body, FactsShown) and any(line in unescape(entry.body.text) for line in lines)
    }
    return Cut(session, len(entries), Erased(tuple(group_positions(bodies)), reason), bodies) if bodies else None


def join_cuts(cuts: Iterable[Cut], shown: Iterable[Cut]) -> tuple[Cut, ...]:
    """The cuts of steps with those of blocks of facts, one for each session."""
    joined = {cut.session: cut for cut in cuts}
    for cut in shown:
        if (own := joined.get(cut.session)) is not None:
            bodies = {**cut.bodies, **own.bodies}
            positions = (at + own.offset for at in cut.bodies)
            before = (at for first, last in own.note.spans for at in range(first, last))
            note = replace(own.note, spans=tuple(group_positions((*before, *positions))))
            cut = replace(own, bodies=bodies, note=note)  # noqa: PLW2901
        joined[cut.session] = cut
    return tuple(joined.values())


# Every text in an entry, also what no search looks at: keys of arguments, metadata, provider content


def entry_texts(entry: Entry) -> Iterator[tuple[int, int, str]]:
    """The texts of an entry with the position and the part that they are erased by; none of entries about the record."""
    at, body = entry.position, entry.body
    if isinstance(body, steps.ActionStep):
        for index, observation in enumerate(body.observations):
            yield from ((at, index, text) for text in _observation_texts(observation))
    if isinstance(body, Observed) and not body.late:
        yield from ((body.action, body.index, text) for text in _observation_texts(body.observation))
    else:
        yield from ((at, CONTENT_PART, text) for text in _own_texts(body))


def _own_texts(body: Body) -> Iterator[str]:
    match body:
        case steps.ActionStep():
            yield from (*_content_texts(body.content), *_call_texts(body), *_extra_texts(body.extra))
        case Observed():
            yield from _observation_texts(body.observation)
        case Pin():
            yield body.text
        case steps.SummaryStep():
            yield body.content
        case steps.SystemPromptStep() | steps.TaskStep() | steps.PlanningStep() | steps.FinalAnswerStep():
            yield from (*_content_texts(body.content), *_extra_texts(body.extra))


def _call_texts(step: steps.ActionStep) -> Iterator[str]:
    for call in step.tool_calls:
        yield from _json_texts(call.arguments)
        yield from _extra_texts(call.extra)


def _observation_texts(observation: steps.Observation | None) -> Iterator[str]:
    if observation is not None:
        yield from _content_texts(observation.content)
        yield from _extra_texts(observation.extra)


def _content_texts(content: steps.Content | None) -> Iterator[str]:
    for part in steps.as_parts(content):
        match part:
            case steps.Text(text=text, extra=extra):
                yield text
                yield from _extra_texts(extra)
            case steps.Image(url=url, extra=extra):
                yield f"[image {url or part.digest[:12]}]"
                yield from _extra_texts(extra)
            case steps.Opaque():
                yield from _extra_texts(part)


def _extra_texts(extra: steps.Opaque | None) -> Iterator[str]:
    if extra is not None:
        yield extra.text
        yield from _json_texts(extra.body)


def _json_texts(text: str) -> Iterator[str]:
    """JSON text as it is written, for escapes are copied too, and what it says, with its keys."""
    yield text
    value = parse_json(text, text)
    if value != text:
        yield "\n".join(strings_in(value))
