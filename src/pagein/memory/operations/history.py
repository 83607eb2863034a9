"""Reading a run back: its steps, originals behind handles, search, and proof that nothing was changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

from pagein._common.json_values import parse_json
from pagein.context.compaction.base import newest_user_position
from pagein.context.view.layout import with_stubs
from pagein.context.view.view import View
from pagein.errors import ConfigurationError, UnknownHandle
from pagein.events.entries import FactsShown, Observed, Pin
from pagein.events.handles import Handle, group_positions, observation_handle, parse_handle, step_handle
from pagein.events.own_steps import as_own_step, is_own_step, own_row
from pagein.events.protocol import current_prompt, open_calls, with_observations
from pagein.events.quoting import quote_lines
from pagein.events.steps import (
    ActionStep,
    Observation,
    Step,
    SystemPromptStep,
    TaskStep,
    as_text,
    kind_name,
    plain_step,
    step_details,
)
from pagein.log.base import Entry, Log, Problem, Verification
from pagein.memory._state import RunState

if TYPE_CHECKING:
    from pagein.memory.options import RecallFilters
    from pagein.search.base import Hit

SUCCINCT_TEXT_MAX_CHARACTERS = 400
"""Characters of a text that a succinct step keeps."""

_WORD = re.compile(r"\w+")

_WORDS = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
"""All that is no end of a line."""

READ_AT_ONCE = 256
"""Entries read at once where a run is read from its end."""


def read_steps(run: RunState) -> tuple[tuple[int, Step], ...]:
    """Read every step with its position, each action with all its observations, late ones included."""
    steps, notes = read_steps_and_notes(run, 0, run.fold.head)
    own: dict[int, Step] = {at: as_own_step(note) for at, note in notes.items() if is_own_step(note)}
    return tuple(sorted((steps | own).items())) if own else tuple(steps.items())


def read_steps_and_notes(
    run: RunState, first: int, last: int, log: Log | None = None
) -> tuple[dict[int, Step], dict[int, Observation]]:
    """Read the steps at positions ``[first, last)``, and the late observations recorded there, by position."""
    stop = min(last, run.fold.head)
    entries = run.runtime.read_entries(first, stop, log)
    steps = {
        entry.position: current_prompt(entry.body)[0] if isinstance(entry.body, SystemPromptStep) else entry.body
        for entry in entries
        if isinstance(entry.body, Step)
    }
    results = [entry.body for entry in entries if isinstance(entry.body, Observed)]
    notes = {
        entry.position: entry.body.observation
        for entry in entries
        if isinstance(entry.body, Observed) and entry.body.late
    }
    # A late result may be recorded long after its action.
    later = (at for action in steps for at in run.fold.calls.answers.get(action, ()) if at >= stop)
    for start, end in group_positions(later):
        more = run.runtime.read_entries(start, end, log)
        results += [entry.body for entry in more if isinstance(entry.body, Observed)]
    by_action: dict[int, dict[int, Observation]] = {}
    for result in results:
        by_action.setdefault(result.action, {})[result.index] = result.observation
    for position, observations in by_action.items():
        step = steps.get(position)
        if isinstance(step, ActionStep):
            steps[position] = with_observations(step, observations)
    for (position, *_), rewritten in ({} if log else run.fold.changes.rewritten).items():
        if position in steps:
            steps[position] = cast(Step, with_stubs(steps[position], (rewritten.stub,)))
        elif position in notes:
            notes[position] = replace(notes[position], content=rewritten.stub.content)
    return steps, notes


# Search


def recall(run: RunState, query: str, limit: int, filters: RecallFilters, now: float) -> tuple[Hit, ...]:
    """Search what was recorded, best first. Raises ConfigurationError for an unknown filter, or a query that is no text."""
    from pagein.memory.options import RecallFilters  # noqa: PLC0415 - loads where something is looked for
    from pagein.search.base import Query  # noqa: PLC0415

    if not isinstance(query, str):
        raise ConfigurationError(f"a query is text, not {type(query).__name__}")
    unknown = filters.keys() - RecallFilters.__annotations__
    if unknown:
        raise ConfigurationError(
            f"unknown filter {min(unknown)!r}: there are {', '.join(RecallFilters.__annotations__)}"
        )
    since, until, role = filters.get("since"), filters.get("until"), filters.get("role")
    asking = frozenset(_positions_that_ask(run.current_view(), query))
    searched = Query(query, limit, since, until, role, asking=asking, now=now)
    return run.runtime.recall(searched, across=filters.get("across", False))


def _positions_that_ask(view: View, query: str) -> Iterator[int]:
    """Yield the position of the user's message if it was not answered yet and is the query itself: it answers nothing."""
    newest = next((entry for entry in reversed(view.run) if isinstance(entry.item, ActionStep | TaskStep)), None)
    if (
        newest is not None
        and isinstance(newest.item, TaskStep)
        and _words(as_text(newest.item.content)) == _words(query)
    ):
        yield newest.first


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def asking_positions(view: View, *, is_question: bool) -> Iterator[int]:
    """Yield the positions of the newest user message, and of the newest action if it still waits for results.

    While everything is in view, a message that is no question is left out: a search then says where something is.
    """
    newest = newest_user_position(view)
    if newest >= 0 and (is_question or view.has_replaced_entries):
        yield newest
    action = next((entry for entry in reversed(view.run) if isinstance(entry.item, ActionStep)), None)
    if action is not None and isinstance(action.item, ActionStep) and open_calls(action.item, action.first):
        yield action.first


def user_words(view: View) -> str:
    """The words of the newest user message; "" where there is none."""
    newest = newest_user_position(view)
    entry = next((entry for entry in reversed(view.run) if entry.first == newest), None)
    return "" if entry is None else "\n".join(as_text(message.content or "") for message in entry.messages)


# Originals


@dataclass(frozen=True, slots=True)
class ExpandedMessage:
    """One message of an original: its handle, who spoke (user, assistant, tool, system), and the text."""

    handle: str
    speaker: str
    text: str


class Expansion(str):
    """The original behind a handle as text; ``steps`` and ``notes`` are its steps and late observations, whole.

    The text of a range names the handle and the speaker of each of its ``messages`` in a line of its own; lines of theirs
    that look like such a line begin with ``| ``. Every other text is as it was recorded.
    """

    __slots__ = ("handle", "messages", "notes", "steps")
    handle: str
    messages: tuple[ExpandedMessage, ...]
    steps: tuple[Step, ...]
    notes: tuple[Observation, ...]

    @classmethod
    def of(cls, handle: str, text: str, steps: tuple[Step, ...] = (), notes: tuple[Observation, ...] = ()) -> Self:
        """An expansion of ``handle``."""
        expansion = cls(text)
        expansion.handle, expansion.steps, expansion.notes, expansion.messages = handle, steps, notes, ()
        return expansion


def expand(run: RunState, handle: str | int, log: Log | None = None) -> Expansion:
    """Read the original behind a handle, or at a position, from the run's log or another. Raises UnknownHandle."""
    parsed, head = parse_place(handle), run.fold.head
    if parsed is None or not 0 <= parsed.first < head:
        raise UnknownHandle(str(handle), head)
    steps, notes = read_steps_and_notes(run, parsed.first, parsed.last, log)
    if parsed.observation is not None:
        observation = _find_observation(steps.get(parsed.first), parsed.observation)
        if observation is None:
            raise UnknownHandle(str(handle), head)
        return Expansion.of(str(parsed), as_text(observation.content), tuple(steps.values()), (observation,))
    if not steps and not notes:
        entries = run.runtime.read_entries(parsed.first, parsed.last, log)
        if not entries:
            raise UnknownHandle(str(handle), head)
        return Expansion.of(str(parsed), "\n".join(_entry_text(entry, head) for entry in entries))
    positions = sorted((*steps, *notes))
    if parsed.last - parsed.first > 1:
        messages = tuple(message for at in positions for message in _messages_at(at, steps, notes))
        texts = [f"[{message.handle}] {message.speaker}:\n{quote_lines(message.text)}" for message in messages]
    else:
        messages, texts = (), [_text_at(at, steps, notes) for at in positions]
    expansion = Expansion.of(str(parsed), "\n\n".join(texts), tuple(steps.values()), tuple(notes.values()))
    expansion.messages = messages
    return expansion


def parse_place(handle: object) -> Handle | None:
    """The handle in a text, or of a position, which may be a text, too; None for anything else."""
    if isinstance(handle, str):
        return parse_handle(f"s{handle}" if handle.isdecimal() else handle)
    if isinstance(handle, int) and not isinstance(handle, bool):
        return Handle(handle, handle + 1)
    return None


def read_texts(run: RunState, max_chars: int, is_hidden: Callable[[str], bool]) -> tuple[tuple[int, str], ...]:
    """Read the texts of the run's steps, newest first, as ``expand`` gives them, until they have ``max_chars`` characters.

    The lines of calls of ``is_hidden`` tools, and of their results, are empty.
    """
    texts: list[tuple[int, str]] = []
    stop = run.fold.head
    while stop > 0 and max_chars > 0:
        start = max(0, stop - READ_AT_ONCE)
        steps, notes = read_steps_and_notes(run, start, stop)
        for at in sorted((*steps, *notes), reverse=True):
            text = _text_at(at, steps, notes, is_hidden)
            if max_chars > 0 and text.strip():
                texts.append((at, text))
                max_chars -= len(text)
        stop = start
    return tuple(texts)


def _text_at(
    position: int,
    steps: Mapping[int, Step],
    notes: Mapping[int, Observation],
    is_hidden: Callable[[str], bool] = lambda _: False,
) -> str:
    if position in steps:
        return "\n".join(_step_lines(steps[position], is_hidden))
    return as_text(notes[position].content)


def _messages_at(
    position: int, steps: Mapping[int, Step], notes: Mapping[int, Observation]
) -> Iterator[ExpandedMessage]:
    handle, step = step_handle(position), steps.get(position)
    match step:
        case None:
            yield ExpandedMessage(handle, "tool", as_text(notes[position].content))
        case ActionStep():
            calls = (f"{call.name}({call.arguments})" for call in step.tool_calls)
            lines = (line for line in (as_text(step.content), *calls) if line)
            yield ExpandedMessage(handle, "assistant", "\n".join(lines))
            for index, observation in enumerate(step.observations):
                if observation is not None:
                    text = as_text(observation.content)
                    yield ExpandedMessage(observation_handle(position, index), "tool", text)
        case _:
            speaker = {SystemPromptStep: "system", TaskStep: "user"}.get(type(step), "assistant")
            yield ExpandedMessage(handle, speaker, as_text(step.content))


def _find_observation(step: Step | None, index: int) -> Observation | None:
    if isinstance(step, ActionStep) and index < len(step.observations):
        return step.observations[index]
    return None


def _entry_text(entry: Entry, head: int) -> str:
    match entry.body:
        case Pin(text=text) | FactsShown(text=text):
            return text
        case Observed(observation=observation):
            return as_text(observation.content)
        case _:
            raise UnknownHandle(str(entry.position), head)


def _step_lines(step: Step, is_hidden: Callable[[str], bool]) -> Iterator[str]:
    text = as_text(step.content)
    if text:
        yield text
    if isinstance(step, ActionStep):
        for index, call in enumerate(step.tool_calls):
            observation = step.observations[index] if index < len(step.observations) else None
            texts = [f"{call.name}({call.arguments})"]
            texts += [] if observation is None else [as_text(observation.content)]
            yield from (_WORDS.sub("", text) for text in texts) if is_hidden(call.name) else texts


def full_steps(steps: Iterable[tuple[int, Step]]) -> list[dict[str, Any]]:
    """The steps as JSON-safe values, whole."""
    return [{"position": position} | (own_row(step) or plain_step(step)) for position, step in steps]


def succinct_steps(steps: Iterable[tuple[int, Step]]) -> list[dict[str, Any]]:
    """The steps as JSON-safe values: long texts cut, images by their hash, without provider content."""
    return [_succinct_step(position, step) for position, step in steps]


def _succinct_step(position: int, step: Step) -> dict[str, Any]:
    kind = (own_row(step) or {"kind": kind_name(step)})["kind"]
    values: dict[str, Any] = {"position": position, "kind": kind, "text": _shorten(as_text(step.content))}
    values |= {name: value for name, value in step_details(step).items() if name != "model_input_messages"}
    if isinstance(step, ActionStep):
        values["tool_calls"] = [{"name": call.name, "arguments": _shorten(call.arguments)} for call in step.tool_calls]
        values["observations"] = [
            None if result is None else {"status": result.status, "text": _shorten(result.result)}
            for result in step.observations
        ]
    return values


PYTHON_TOOL = "python_interpreter"
"""Name of the call in which smolagents' CodeAgent runs its code."""


def full_code(steps: Iterable[tuple[int, Step]]) -> str:
    """Join the code that the steps ran: their ``code_action``, or the arguments of a Python call."""
    return "\n\n".join(code for _, step in steps if isinstance(step, ActionStep) for code in _codes(step))


def _codes(step: ActionStep) -> Iterator[str]:
    if step.code_action:
        yield step.code_action
        return
    for call in step.tool_calls:
        if call.name == PYTHON_TOOL:
            arguments = parse_json(call.arguments, call.arguments)
            code = arguments.get("code") if isinstance(arguments, dict) else arguments
            if isinstance(code, str) and code:
                yield code


def _shorten(text: str) -> str:
    limit = SUCCINCT_TEXT_MAX_CHARACTERS
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


# Proof


def verify(run: RunState) -> Verification:
    """Derive every hash of the log again; fold a sound log anew, so that the view is of what was proven."""
    from pagein.memory.operations.load import reload  # noqa: PLC0415 - which reads history itself

    verification = run.runtime.verify_log()
    if verification.ok:
        reload(run)
    return verification


def find_lost_entry(log: Log, last_known: Entry | None, verification: Verification) -> Problem | None:
    """The problem of a log that is sound, but no longer has the last entry that was known."""
    if last_known is None:
        return None
    if verification.entries <= last_known.position:
        return Problem(
            verification.entries, f"{last_known.position + 1} entries were known, {verification.entries} are there"
        )
    entry = next(iter(log.read(last_known.position, last_known.position + 1)), None)
    if entry is None or entry.digest != last_known.digest:
        return Problem(last_known.position, "the entry is not the one that was known: the history was replaced")
    return None
