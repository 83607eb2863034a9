"""Recording: items are admitted to the log, appended, and folded in.

Typed steps are admitted strictly: an item that does not fit raises. Transcripts are admitted with repairs: a call without
a result is closed as unknown, and a result that answers no call is kept as a note. Every repair is named.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import cast, get_args

from pagein.context.view.layout import messages_of
from pagein.errors import Conflict, FormatError, ProtocolError
from pagein.events import protocol, steps
from pagein.events.entries import Body, Importance, Mark, Observed
from pagein.events.handles import observation_handle, step_handle
from pagein.events.messages import Message
from pagein.events.own_steps import is_own_step
from pagein.events.protocol import has_text_observation, mark_observations
from pagein.formats import Format, Item
from pagein.log.base import Entry
from pagein.memory._state import KnownList, RunState
from pagein.memory._turn import retry_if_library_wrote
from pagein.memory.operations.changed_requests import has_strange_words
from pagein.memory.operations.facts_block import save_final_procedure
from pagein.memory.operations.ingest import Edited, ListReader, NewItems, Relisting, Transcript
from pagein.memory.operations.load import catch_up
from pagein.memory.operations.pins import check_importance
from pagein.memory.operations.relist import MAX_RELISTED, forget_lists_with, note_relisting, read_changes_before

_STEPS: frozenset[type] = frozenset(get_args(steps.Step))
_STATUSES = get_args(steps.Status)

NO_ACTION = -1
"""The action of an observation that answers no call of this run."""


@dataclass(frozen=True, slots=True)
class RecordResult:
    """The recorded positions ``[first, last)``, and the repairs that made the items legal.

    ``branch`` is the name of the branch that an edited list began: the run goes on there.
    """

    first: int
    last: int
    repairs: tuple[str, ...] = ()
    branch: str | None = None


def record(
    run: RunState,
    items: Sequence[Item] | Transcript,
    *,
    strict: bool,
    whole: bool | None = False,
    usage: steps.Usage | None = None,
    importance: Importance | None = None,
) -> RecordResult:
    """Append the new items durably, all or none, then call back; learn from the provider's usage, mark the steps."""
    if not isinstance(items, Transcript) and not all(map(_is_stored_as_it_is, items)):
        from pagein.memory.operations.own_steps import to_recorded_items  # noqa: PLC0415 - loads for what is not plain

        items = to_recorded_items(items)
    outcome = _select(run, items, whole)
    branch, new_items = None, outcome.items
    if isinstance(outcome, Edited):
        run, branch = _fork_for_edit(run, outcome)
    if isinstance(items, Transcript) and any(isinstance(item, steps.TaskStep) for item in new_items):
        run.fold.show_observations()
        new_items = mark_observations(new_items, items.observations, _newest_turn(run)[1])

    def attempt() -> tuple[Admission, Sequence[Entry]]:
        fold = run.fold
        action = _text_action(run) if has_text_observation(new_items) else (NO_ACTION, 0)
        admission = admit(
            new_items,
            head=fold.head,
            open_now=fold.calls.open,
            abandoned=fold.calls.abandoned,
            strict=strict,
            action=action,
        )
        marks = () if importance is None else _marks_of(admission.bodies, fold.head, importance)
        bodies = (*admission.bodies, *marks)
        return admission, run.runtime.append(bodies, fold.head) if bodies else ()

    admission, entries = retry_if_library_wrote(run, attempt)
    first, known = run.fold.head, len(run.log.fingerprints)
    if entries:
        run.apply_entries(entries)
        if run.facts_block.is_on:
            run.runtime.extract_facts()
            save_final_procedure(run, admission.bodies)
    notes = list(outcome.notes)
    if isinstance(items, Transcript):
        notes += _note_unsent(items.request.form, admission.bodies, first)
    if isinstance(outcome, Edited):
        notes.append(f"the list was edited at {step_handle(outcome.fork_at)}: it goes on in {branch!r}")
    repairs = (*notes, *admission.repairs)
    run.transcript.repairs.extend(repairs)
    _remember(run, outcome, known, new_items, is_list=isinstance(items, Transcript))
    if usage is not None:
        run.usage.learn(usage)
    run.run_callbacks(entries)
    return RecordResult(first, first + len(admission.bodies), repairs, branch)


def _note_unsent(form: Format, bodies: Sequence[Body], first: int) -> Iterator[str]:
    """Name the provider's own parts of the new steps that no request can have as they came."""
    for position, body in enumerate(bodies, first):
        if isinstance(body, steps.TaskStep | steps.ActionStep):
            messages = messages_of(
                body, [call.id for call in body.tool_calls] if isinstance(body, steps.ActionStep) else ()
            )
            if kinds := unsent_kinds(form, body, messages):
                names = ", ".join(dict.fromkeys(kinds))
                yield f"{step_handle(position)}: its {names} is recorded, and in no request: the provider refuses it as it came"


def _marks_of(bodies: Sequence[Body], head: int, importance: Importance) -> Iterator[Mark]:
    """Yield the marks of these steps, and of the actions whose results came, which begin at ``head``."""
    check_importance(importance)
    for position, body in enumerate(bodies, head):
        if not isinstance(body, Observed) or body.late:
            yield Mark(position, importance)
        elif body.observation.status != "unknown":
            yield Mark(body.action, importance)


def _is_stored_as_it_is(item: object) -> bool:
    """True for a step of ours or an observation whose content and arguments are of the types that are stored."""
    if isinstance(item, steps.ActionStep):
        has_plain_words = item.content is None or steps.is_content(item.content)
        results = all(result is None or _is_stored_as_it_is(result) for result in item.observations)
        calls = all(isinstance(call.arguments, str) for call in item.tool_calls)
        return type(item) is steps.ActionStep and has_plain_words and results and calls
    if isinstance(item, steps.Observation):
        return steps.is_content(item.content) and item.status in _STATUSES
    if type(item) in _STEPS:
        return steps.is_content(item.content)  # type: ignore[attr-defined] # all of them have it
    return not isinstance(item, steps.MemoryStep)


def _select(run: RunState, items: Sequence[Item] | Transcript, whole: bool | None) -> NewItems:
    """The items to record, behind what a list changed or took back of those before; typed steps are all new."""
    if not isinstance(items, Transcript):
        return NewItems(items)
    if run.log.fingerprints and not run.transcript.knows_requests:
        records = run.runtime.requests.remember_recent()
        if records and has_strange_words(items, run):
            from pagein.memory.operations.requests import remember_rendered  # noqa: PLC0415 - loads where it is needed

            remember_rendered(run, records)
    reader, notes = ListReader(items.request, run, whole), tuple[str, ...]()
    while isinstance(outcome := reader.decide(may_relist=len(notes) < MAX_RELISTED), Relisting):
        run.append(outcome.compaction)
        forget_lists_with(run, outcome.compaction)
        notes += note_relisting(outcome.compaction)
    return replace(outcome, notes=(*notes, *outcome.notes))


def _newest_turn(run: RunState) -> tuple[int, protocol.Turn]:
    """The position of the newest action in view, if it acts in text, and the turn that it began."""
    entries = run.fold.body.run
    backwards = range(len(entries) - 1, -1, -1)
    acted = tuple(islice((at for at in backwards if isinstance(entries[at].item, steps.ActionStep)), 2))
    turn = protocol.Turn()
    for entry in entries[acted[-1] :] if acted else ():
        turn = turn.after(entry.item.observation if isinstance(entry.item, Observed) else entry.item)
    is_text = turn.action is not None and not turn.action.tool_calls
    return entries[acted[0]].first if is_text else NO_ACTION, turn


def _text_action(run: RunState) -> tuple[int, int]:
    """The position of the last action, and the number of results that it has, if it acts in text."""
    position, _ = _newest_turn(run)
    return position, len(run.fold.calls.answers.get(position, ()))


def _fork_for_edit(run: RunState, edit: Edited) -> tuple[RunState, str]:
    """Go on with a branch that has the run up to where the list was edited; return its state and name.

    Raises Conflict where another process wrote since: what it wrote may be what the list has.
    """
    from pagein.memory.operations.branch import fork, switch  # noqa: PLC0415 - loads where a list was edited

    head, expected = run.runtime.head(), run.fold.head - run.log.unwritten
    if head != expected:
        catch_up(run)
        raise Conflict(expected, head)
    transcript = run.transcript.for_fork(edit.covers or 0)
    changes = read_changes_before(run, edit.fork_at)
    now = run.runtime.clock()
    branch = fork(run, edit.fork_at, None, now)
    switch(run, branch.name, now)
    state = run.runtime.state
    state.transcript = transcript
    if changes:
        state.append(*changes)
    return state, branch.name


def _remember(run: RunState, outcome: NewItems, known: int, new_items: Sequence[Item], *, is_list: bool) -> None:
    """Remember the list that was handed over, or that the items behind the first ``known`` fingerprints were none of a list."""
    transcript, count = run.transcript, len(run.log.fingerprints)
    transcript.is_untouched = False
    kinds = {type(item) for item in new_items} - {steps.SystemPromptStep}
    if steps.TaskStep in kinds:
        transcript.newest = known if known or len(kinds) == 1 else None
    if not is_list:
        transcript.unlisted.update(range(known, count))
        return
    transcript.habit = outcome.habit
    transcript.unlisted -= outcome.listed
    if outcome.list_hash:
        covers = count if outcome.covers is None or isinstance(outcome, Edited) else outcome.covers
        transcript.remember(outcome.list_hash, KnownList(covers, is_loose=outcome.is_loose))


# Admission


@dataclass(frozen=True, slots=True)
class Admission:
    """The bodies to append, and the repairs that made them legal."""

    bodies: tuple[Body, ...]
    repairs: tuple[str, ...] = ()


def admit(
    items: Sequence[Item],
    *,
    head: int,
    open_now: Mapping[tuple[int, int], protocol.OpenCall],
    abandoned: Mapping[str, Sequence[protocol.OpenCall]],
    strict: bool,
    action: tuple[int, int] = (NO_ACTION, 0),
) -> Admission:
    """Turn items into bodies for the log, all or none. Pure. ``action`` is the last action, and its number of results.

    Raises ProtocolError for a summary, for observations beside the wrong call and, when ``strict``, for an observation
    that answers no open call.
    """
    # A long run may have abandoned many calls: only those that change are copied.
    draft = _AdmissionDraft(
        head, dict(open_now), ChainMap({}, cast(dict[str, Sequence[protocol.OpenCall]], abandoned)), *action
    )
    for item in items:
        protocol.check_item(item)
        if isinstance(item, steps.Observation):
            draft.add_observation(item, strict=strict)
        else:
            draft.add_step(item)
    return Admission(tuple(draft.bodies), tuple(draft.repairs))


@dataclass(slots=True)
class _AdmissionDraft:
    """The admission so far. ``open`` and ``abandoned`` are the calls without a result, as after these bodies."""

    head: int
    open: dict[tuple[int, int], protocol.OpenCall]
    abandoned: MutableMapping[str, Sequence[protocol.OpenCall]]
    action: int = NO_ACTION
    results: int = 0
    """The last action, and the number of results in text that it has."""
    bodies: list[Body] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)

    def add_step(self, step: steps.Step) -> None:
        """Add a step; calls that are still open are closed first, but not by a system prompt that was changed."""
        if isinstance(step, steps.SystemPromptStep) and protocol.current_prompt(step)[1] is not None:
            self.bodies.append(step)
            return
        if isinstance(step, steps.ActionStep):
            protocol.check_action(step)
            position = self.head + len(self.bodies) + len(self.open)
            self.action, self.results = NO_ACTION if step.tool_calls else position, 0
        self.close_open_calls()
        for call in protocol.open_calls(step, self.head + len(self.bodies)):
            self.open[call.action, call.index] = call
        self.bodies.append(step)

    def add_observation(self, observation: steps.Observation, *, strict: bool) -> None:
        """Add an observation: the result of an open call, or a late one of an abandoned call, or a note."""
        if observation.is_message:
            if is_own_step(observation):  # a step, and no result of the action before it
                self.action, self.results = NO_ACTION, 0
            self.bodies.append(Observed(self.action, self.results, observation, late=True))
            self.results += 1
            return
        call = protocol.find_call(observation, self.open.values())
        if call is not None:
            self.answer(call, observation)
            return
        late_call = protocol.find_call(observation, self.abandoned.get(observation.call_id, ()))
        if late_call is None and strict:
            open_ids = ", ".join(repr(call.id) for call in self.open.values()) or "none"
            raise ProtocolError(
                f"no open call {observation.call_id!r} to observe; open calls: {open_ids}. Record the action with this "
                "call first. A call takes one result, by its id."
            )
        if late_call is None:
            self.repairs.append(f"a result for {observation.call_id!r} answers no open call; kept as a note")
            self.bodies.append(Observed(NO_ACTION, 0, observation, late=True))
            return
        self.abandoned[observation.call_id] = tuple(
            call for call in self.abandoned[observation.call_id] if call != late_call
        )
        self.bodies.append(Observed(late_call.action, late_call.index, observation, late=True))

    def answer(self, call: protocol.OpenCall, observation: steps.Observation) -> None:
        """Answer an open call; one answered as unknown is abandoned, and may get a late result."""
        del self.open[call.action, call.index]
        if observation.status == "unknown":
            self.abandoned[call.id] = (*self.abandoned.get(call.id, ()), call)
        self.bodies.append(Observed(call.action, call.index, observation))

    def close_open_calls(self) -> None:
        """Close every open call as unknown: whether it ran is not known."""
        for call in list(self.open.values()):
            self.answer(call, protocol.unknown_observation(call))
            self.repairs.append(
                f"{observation_handle(call.action, call.index)}: call {call.id!r} had no result; marked unknown"
            )


def unsent_kinds(form: Format, item: Item, messages: Sequence[Message]) -> list[str]:
    """Return the kinds of the format's own parts in an item that its requests lack; ``messages`` stand for the item."""
    kinds = _own_kinds(form, item)
    if not kinds:
        return []
    opening = () if messages[0].role == "user" else (Message("user", "?"),)
    try:
        sent = form.parse(form.render((*opening, *messages)))
    except FormatError:
        return sorted(kinds)
    return sorted((kinds - sum((_own_kinds(form, other) for other in sent), Counter())).elements())


def _own_kinds(form: Format, item: Item) -> Counter[str]:
    results = item.observations if isinstance(item, steps.ActionStep) else ()
    contents = (item.content, *(result.content for result in results if result is not None))
    parts = (part for content in contents for part in steps.as_parts(content))
    return Counter(part.kind for part in parts if isinstance(part, steps.Opaque) and part.provider == form.name)
