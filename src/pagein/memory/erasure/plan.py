"""The plan of an erasure: the entries to change, on every branch and in the facts. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
    FactsExtracted,
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

ErasedPlaces = Mapping[Place, frozenset[int] | None]
"""By place what is erased there: all (None), or the results of these calls."""


@dataclass(frozen=True, slots=True)
class BranchEntries:
    """All entries of a branch; those from ``own_start`` on lie in its own ``session``.

    ``holder`` gives the session that holds the entry at a position.
    """

    session: str
    own_start: int
    entries: tuple[Entry, ...]
    holder: Callable[[int], str]

    def place(self, position: int) -> Place:
        """The place of a position: another branch that shares the entry gives the same."""
        return self.holder(position), position

    def erased_here(self, erased: ErasedPlaces) -> dict[int, frozenset[int] | None]:
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
    """Entries that were named, with their results."""
    derived: int = 0
    """Entries that repeated them."""
    elsewhere: tuple[str, ...] = ()
    """Handles of steps that stay, and have a line of what was erased."""


def plan_erasure(branches: Sequence[BranchEntries], places: ErasedPlaces, reason: str) -> ErasurePlan:
    """Plan the erasure of these places and of what was derived from them; an empty plan where nothing changes."""
    places = _with_linked_observations(branches, places)
    erased = {branch.session: branch.erased_here(places) for branch in branches}
    repetitions = _build_repetitions(branches, erased)
    changes = {branch.session: dict(_own_changes(branch, erased[branch.session], repetitions)) for branch in branches}
    if not any(changes.values()):
        return ErasurePlan()
    cuts: list[Cut] = []
    steps = derived = 0
    for branch in branches:
        positions, bodies = erased[branch.session], changes[branch.session]
        if not (positions or bodies):
            continue
        note = Erased(tuple(group_positions((*positions, *bodies))), reason)
        own_bodies = {at - branch.own_start: body for at, body in bodies.items()}
        cuts.append(Cut(branch.session, len(branch.entries) - branch.own_start, note, own_bodies, branch.own_start))
        steps += sum(at in positions for at in bodies)
        derived += sum(at not in positions for at in bodies)
    # Each branch has a search index of its own, and in it the entries that it shares with others.
    new_bodies = {branch.place(at): body for branch in branches for at, body in changes[branch.session].items()}
    revised = {
        branch.session: tuple(
            replace(entry, body=new_bodies[place])
            for entry in branch.entries
            if (place := branch.place(entry.position)) in new_bodies
        )
        for branch in branches
    }
    elsewhere = (
        handle for branch in branches for handle in _steps_that_repeat(branch, erased[branch.session], repetitions)
    )
    return ErasurePlan(tuple(cuts), revised, erased, repetitions, steps, derived, tuple(dict.fromkeys(elsewhere)))


def _with_linked_observations(branches: Iterable[BranchEntries], places: ErasedPlaces) -> ErasedPlaces:
    """Add the separately recorded observations of these actions, and the results in actions of these observations."""
    linked = dict(places)
    for branch in branches:
        erased = branch.erased_here(places)
        for entry in branch.entries:
            body = entry.body
            if not isinstance(body, Observed):
                continue
            if entry.position in erased and not body.late:
                place = branch.place(body.action)
                parts = linked.get(place, frozenset())
                linked[place] = None if parts is None else parts | {body.index}
            elif entry.position in erased and body.action >= 0 and own_note(body.observation):
                linked[branch.place(body.action)] = None  # its data repeat what the note says
            elif body.action in erased:
                indexes = erased[body.action]
                if indexes is None or body.index in indexes:
                    linked[branch.place(entry.position)] = None
    return linked


def _build_repetitions(branches: Sequence[BranchEntries], erased: Mapping[str, ErasedParts]) -> Repetitions:
    gone = [text for branch in branches for _, text in _texts(branch, erased[branch.session], are_erased=True)]
    words = frozenset(word for text in gone for word in words_in(text))
    remaining = (
        text
        for branch in branches
        for entry, text in _texts(branch, erased[branch.session], are_erased=False)
        if not (isinstance(entry.body, Pin) and words.issuperset(words_in(text)))  # a pin by handle is a copy
    )
    return Repetitions(gone, (*remaining, *(name for branch in branches for name in _names_that_stay(branch.entries))))


def _names_that_stay(entries: Iterable[Entry]) -> Iterator[str]:
    """The names and ids of calls, and those of models: they stay in tombstones, too."""
    for entry in entries:
        if isinstance(entry.body, ActionStep):
            yield entry.body.model
            for call in entry.body.tool_calls:
                yield f"{call.name} {call.id}"


def _texts(branch: BranchEntries, erased: ErasedParts, *, are_erased: bool) -> Iterator[tuple[Entry, str]]:
    """The texts in the branch's entries: the erased ones, or all others.

    Results of the library's own tools are left out: they repeat what other steps say.
    """
    library_calls = {call for entry in branch.entries for call in own_calls(entry, OWN_TOOLS)}
    for entry in branch.entries:
        for position, part, text in entry_texts(entry):
            parts = erased.get(entry.position, frozenset())
            is_gone = parts is None or part in parts
            if is_gone == are_erased and (position, part) not in library_calls:
                yield entry, text


def _own_changes(branch: BranchEntries, erased: ErasedParts, repetitions: Repetitions) -> Iterator[tuple[int, Body]]:
    """The redacted bodies of the branch's own entries that change."""
    repeating = _repeating_results(branch.entries, erased, repetitions)
    is_modelled = False
    for entry in branch.entries:
        at, old = entry.position, entry.body
        if isinstance(old, Compaction):
            is_modelled = is_modelled or any(
                by.record and any(by.first <= position < by.last for position in erased) for by in old.replacements
            )
        new = _without(old, at, erased, repetitions, repeating, is_modelled=is_modelled)
        if at >= branch.own_start and new != old:
            yield at, new


def _without(
    old: Body,
    at: int,
    erased: ErasedParts,
    repetitions: Repetitions,
    repeating: Mapping[int, frozenset[int]],
    *,
    is_modelled: bool,
) -> Body:
    if at in erased:
        indexes = erased[at]
        if indexes is None:
            return redact(old)
        return redact_observations(old, indexes) if isinstance(old, ActionStep) else old
    match old:
        case Compaction():
            return redact_compaction(
                old, {position: parts for position, parts in erased.items() if position < at}, repetitions
            )
        case Checkpoint():
            return redact_checkpoint(old, erased, repetitions, modelled=is_modelled)
        case FactsShown(text=text) if repetitions(text):
            return redact(old)
        case Pin(text=text) if repetitions.is_copy(text):
            return redact(old)
        case ActionStep() if at in repeating:
            return redact_observations(old, repeating[at])
        case Observed(action=action, index=index) if index in repeating.get(action, ()):
            return redact(old)
        case _:
            return old


def _repeating_results(
    entries: Sequence[Entry], erased: ErasedParts, repetitions: Repetitions
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
                repetitions(text) or _names_handle(arguments[place], erased) or _points_at(text, erased)
            ):
                results.setdefault(position, set()).add(part)
    return {action: frozenset(indexes) for action, indexes in results.items()}


def _names_handle(arguments: str, erased: ErasedParts) -> bool:
    handles = handles_in(parse_json(arguments, arguments))
    return any(handle.first <= at < handle.last for handle in handles for at in erased)


def _points_at(text: str, erased: ErasedParts) -> bool:
    # Each hit that recall tells begins with its handle.
    return any(f"[{step_handle(at)}]" in text or f"[{step_handle(at)}." in text for at in erased)


def _steps_that_repeat(branch: BranchEntries, erased: ErasedParts, repetitions: Repetitions) -> Iterator[str]:
    """The handles of steps that stay, and say a line of what was erased in their own right."""
    library_calls = {call for entry in branch.entries for call in own_calls(entry, OWN_TOOLS)}
    for entry in branch.entries:
        for position, part, text in entry_texts(entry) if entry.position not in erased else ():
            lines = () if (position, part) in library_calls else recognizable_lines(text)
            if not repetitions.shared_lines.isdisjoint(lines):
                yield step_handle(position) if part == CONTENT_PART else observation_handle(position, part)


# Facts


def facts_from(
    entries: Sequence[Entry], erased: Mapping[str, ErasedParts], repeats: Callable[[str], bool], *, is_own: bool = False
) -> set[int]:
    """The facts that came from erased steps only, or that repeat only their content; procedures with any such step.

    ``is_own`` where the facts are the run's alone: a model's notes that repeat it name no step.
    """
    sources: dict[int, list[bool]] = {}
    contents: dict[int, str] = {}
    notes = unsourced_facts(entries, repeats, written=True) if is_own else set()
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
    return notes | {
        at for at, are_gone in sources.items() if any(are_gone) and (all(are_gone) or repeats(contents[at]))
    }


def unsourced_facts(entries: Sequence[Entry], repeats: Callable[[str], bool], *, written: bool = False) -> set[int]:
    """The facts that name no step and repeat erased content; with ``written`` those that a model wrote down."""
    facts = ((entry.position, entry.body) for entry in entries if isinstance(entry.body, FactStated))
    loose = ((at, fact) for at, fact in facts if not fact.sources and (fact.author == "model" or not written))
    return {at for at, fact in loose if repeats(fact.content)}


def _is_gone(session: str, handle: str, erased: Mapping[str, ErasedParts]) -> bool:
    named, parts_here = parse_handle(handle), erased.get(session, {})
    if named is None:
        return False
    if named.observation is None:
        return all(at in parts_here for at in range(named.first, min(named.last, named.first + 10_000)))
    parts = parts_here.get(named.first, frozenset())
    return parts is None or named.observation in parts


def cut_facts(
    session: str, entries: Sequence[Entry], facts: set[int], reason: str, gone: Collection[str] = ()
) -> Cut | None:
    """The cut that erases these facts in their log, with the later entries about them; None where nothing changes.

    It also takes back how far the ``gone`` sessions were read: another run may have that name.
    """
    bodies: dict[int, Body] = {}
    for entry in entries:
        if isinstance(body := entry.body, FactStated | FactRemoved | FactConfirmed):
            fact = entry.position if isinstance(body, FactStated) else body.fact
            if fact in facts and (new := redact(body)) != body:
                bodies[entry.position] = new
        elif isinstance(body, FactsExtracted) and body.session in gone:
            bodies[entry.position] = FactsExtracted("", 0, body.author)
    return Cut(session, len(entries), Erased(tuple(group_positions(bodies)), reason), bodies) if bodies else None


def with_superseded(entries: Sequence[Entry], position: int) -> set[int]:
    """The positions of a fact and of those that it superseded, one after the other."""
    stated = {entry.position: entry.body for entry in entries if isinstance(entry.body, FactStated)}
    facts: set[int] = set()
    rest = [position]
    while rest:
        at = rest.pop()
        if at in stated and at not in facts:
            facts.add(at)
            rest.extend(stated[at].supersedes)
    return facts


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
