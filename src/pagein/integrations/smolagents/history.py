"""Keeps the log of an agent in step with its list of steps.

A list does not tell who changed what in it, and a step may be edited in place. So each step is remembered with its place
in the log and with the values it had then; a comparison with the list finds what is new, deleted or edited.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from PIL import Image as Pillow
from smolagents import memory as smol

from pagein.errors import ProtocolError
from pagein.events.entries import Checkpoint, Observed
from pagein.events.protocol import body_fingerprints, with_observations
from pagein.events.steps import ActionStep, Observation, Step, SystemPromptStep, ToolCall
from pagein.integrations._editable_history import EditableHistory
from pagein.integrations._threads import HistoryTracker
from pagein.integrations.smolagents import to_steps as convert
from pagein.integrations.smolagents.from_steps import from_steps, step_note

NOTE_CHECKPOINT = "host:smolagents"
"""Name of the checkpoints that hold the fields of a smolagents step that our steps lack."""

StepMark = tuple[Any, ...]


def step_mark(step: Any) -> StepMark:
    """The values of a step: the same objects while nobody edits it. Cheap, since every turn looks at every step."""
    if isinstance(step, smol.ActionStep):
        calls = step.tool_calls
        pictures = step.observations_images
        return (
            step.model_output,
            step.observations,
            step.error,
            tuple(id(picture) for picture in pictures) if pictures else (),
            tuple((call.name, id(call.arguments), call.id) for call in calls) if calls else (),
        )
    if isinstance(step, smol.TaskStep):
        return (step.task, tuple(id(picture) for picture in step.task_images) if step.task_images else ())
    if isinstance(step, smol.PlanningStep):
        return (step.plan,)
    return ()


@dataclass(slots=True)
class TrackedStep:
    """A step of the list, its place in the log (``count`` steps of ours from ``at`` on), and its values there."""

    step: Any
    at: int
    count: int
    mark: StepMark
    action: ActionStep | None = None
    """What was recorded of an action, with every observation."""

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions in the log; a step without content has the one of its note."""
        return tuple(range(self.at, self.at + max(1, self.count)))


@dataclass(slots=True)
class RunningAction:
    """An action whose calls run: its place, and the observations so far.

    The last one is recorded when the step ends, since its pictures and its error come only then.
    """

    step: Any
    at: int
    action: ActionStep
    observations: dict[int, Observation] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    observed: str | None = None
    """The text of the results as smolagents joined them; a callback may write another into the step."""


class StepHistory:
    """The steps of an agent, recorded in an editable history."""

    def __init__(self, history: EditableHistory) -> None:
        self._history = history
        self.lock = threading.RLock()
        self._running: dict[int, RunningAction] = {}
        self._system: tuple[int, Any] | None = None
        self._tracker = HistoryTracker(is_same=_is_same_step)
        self._restore()

    @property
    def _tracked(self) -> list[TrackedStep]:
        return self._tracker.records

    @property
    def steps(self) -> list[Any]:
        """The current steps."""
        return [tracked.step for tracked in self._tracked]

    @property
    def system(self) -> Any:
        """The system prompt; an empty one where none was recorded yet."""
        return smol.SystemPromptStep("") if self._system is None else self._system[1]

    def set_system_prompt(self, step: Any) -> None:
        """Record the system prompt, or replace the recorded one. Raises ConfigurationError for what is no step."""
        (system,) = convert.to_steps(step)
        if not isinstance(system, SystemPromptStep):
            raise ProtocolError(f"system_prompt is a SystemPromptStep, not a {type(step).__name__}")
        with self.lock:
            if self._system is None:
                at = self._record(step, (system,))
            else:
                at = self._system[0]
                if step.system_prompt != self._system[1].system_prompt:
                    self._history.replace(at, system, NOTE_CHECKPOINT, step_note(step, (system,), at))
            self._system = (at, step)

    def reset(self) -> None:
        """Begin anew behind the system prompt."""
        with self.lock:
            if self._tracked or self._running:
                self._history.reset()
            self._tracked.clear()
            self._running.clear()

    def new_steps(self, steps: Sequence[Any]) -> Sequence[Any]:
        """The steps of another list of this history, such as one that its framework kept, that are not recorded."""
        with self.lock:
            if len(steps) < len(self._tracked) and all(map(_is_same_step, steps, self._tracked)):
                return ()
            return steps[next(self._tracker.recorded_counts(steps), 0) :]

    def record_list(self, steps: Sequence[Any]) -> None:
        """Record what is new, deleted or replaced in the list. What raises leaves log and list as they were."""
        with self.lock:
            old, count = self._tracked, next(self._tracker.recorded_counts(steps), None)
            self._check_steps(steps if count is None else steps[count:])
            self._adopt_copies(steps)
            if count is not None:
                for step in steps[count:]:
                    self._add(step, steps)
                return
            if len(steps) == len(old):
                self._record_replacements(steps)
            common = self._common_prefix(steps)
            deleted = [tracked for tracked in old if all(tracked is not other for other in common)]
            self._history.delete([at for tracked in deleted for at in tracked.positions])
            self._tracked[:] = common
            for step in steps[len(common) :]:
                self._add(step, steps)

    def record_edits(self, steps: Sequence[Any]) -> None:
        """Record what was edited inside steps since they were recorded."""
        with self.lock:
            for index, tracked in enumerate(self._tracked):
                mark = step_mark(tracked.step)
                if len(mark) != len(tracked.mark) or any(
                    a is not b and a != b for a, b in zip(mark, tracked.mark, strict=True)
                ):
                    self._edit(index, tracked.step, steps)

    # An action, from its calls to its end

    def begin_action(self, step: Any, calls: Sequence[Any]) -> None:
        """Record an action whose calls are about to run."""
        action = ActionStep(
            convert.model_content(step.model_output),
            convert.tool_calls(calls),
            usage=convert.token_usage(step.token_usage),
        )
        with self.lock:
            at = self._record(step, (action,))
            self._running[id(step)] = RunningAction(step, at, action)

    def record_answer(self, step: Any, index: int, text: str | None, error: BaseException | None) -> None:
        """Record the result of one call as it comes; the last one is recorded when the step ends."""
        with self.lock:
            running = self._running.get(id(step))
            if running is None or index in running.observations:
                return
            call = running.action.tool_calls[index]
            observation = convert.make_observation(text, error, (), call.id)
            if observation is None:
                return
            if error is not None:
                running.failures.append(str(error))
            elif len(running.action.tool_calls) > 1:
                prefix = f"Call id: {call.id}\n{convert.OBSERVATION_PREFIX}"
                observation = replace(observation, extra=convert.observation_extra(prefix))
            running.observations[index] = replace(observation, call_id=call.id, index=index)
            if len(running.observations) < len(running.action.tool_calls):
                self._history.memory.record(running.observations[index])

    def end_calls(self, step: Any) -> None:
        """Note that the calls of a step have ended: callbacks come next."""
        with self.lock:
            if (running := self._running.get(id(step))) is not None:
                running.observed = step.observations

    def _end_action(self, running: RunningAction, steps: Sequence[Any]) -> TrackedStep:
        """Answer the calls of a step that has ended, with its pictures and its error."""
        step, calls = running.step, running.action.tool_calls
        results = dict(running.observations)
        open_calls = [i for i in range(len(calls)) if i not in results]
        last = list(results)[-1] if len(results) == len(calls) else None
        pictures = convert.new_pictures(step, _task_pictures(steps))
        is_recorded = step.error is None or str(step.error) in running.failures
        error = None if is_recorded else step.error
        mark = step_mark(step)
        if last is not None:
            if step.observations != running.observed and len(calls) == 1 and step.error is None:  # by a callback
                results[last] = replace(results[last], content=step.observations or "")
            elif step.observations != running.observed:
                mark = (mark[0], running.observed, *mark[2:])  # to be recorded as an edit
            results[last] = _extend_observation(results[last], error, pictures, calls[last])
        elif open_calls:
            first = open_calls[0]
            text = None if running.observations else step.observations
            observation = convert.make_observation(text, error, pictures, calls[first].id)
            results[first] = replace(
                observation or Observation(calls[first].id, "", "unknown"), call_id=calls[first].id, index=first
            )
            for index in open_calls[1:]:
                results[index] = Observation(calls[index].id, "", "unknown", index)
        action = with_observations(running.action, results)
        note = step_note(step, (action,), running.at)
        if self._history.has_open_calls(running.at):
            fresh = [results[i] for i in ((last,) if last is not None else open_calls)]
            self._history.record(fresh, NOTE_CHECKPOINT, lambda _: note)
        else:  # the run went on without it, and it ended after all
            self._history.replace(running.at, action, NOTE_CHECKPOINT, note)
        return TrackedStep(step, running.at, 1, mark, action)

    # The list

    def _record(self, step: Any, own_steps: Sequence[Step]) -> int:
        return self._history.record(own_steps, NOTE_CHECKPOINT, lambda at: step_note(step, own_steps, at))

    def _add(self, step: Any, steps: Sequence[Any]) -> None:
        running = self._running.get(id(step))
        if running is not None and running.step is step:
            self._tracked.append(self._end_action(running, steps))
            del self._running[id(step)]
            return
        own_steps = convert.to_steps(step, _task_pictures(steps))
        at = self._record(step, own_steps)
        self._tracked.append(TrackedStep(step, at, len(own_steps), step_mark(step), _only_action(own_steps)))

    def _check_steps(self, steps: Sequence[Any]) -> None:
        """Raise ConfigurationError for what is no step, before anything is changed."""
        recorded = {id(tracked.step) for tracked in self._tracked} | set(self._running)
        for step in steps:
            if id(step) not in recorded:
                convert.to_steps(step)

    def _adopt_copies(self, steps: Sequence[Any]) -> None:
        """Track the list's own objects in the place of steps that say the same, such as a copy of the list has."""
        listed, own = ({id(step) for step in part} for part in (steps, self.steps))
        if own <= listed:
            return
        copies: dict[tuple[Any, ...], list[Any]] = {}
        for step in reversed(steps):
            if id(step) not in own:
                copies.setdefault(_spelling(step), []).append(step)
        for index, tracked in enumerate(self._tracked):
            if copies and id(tracked.step) not in listed and (same := copies.get(_spelling(tracked.step))):
                step = same.pop()
                self._tracked[index] = replace(tracked, step=step, mark=step_mark(step))

    def _record_replacements(self, steps: Sequence[Any]) -> None:
        """Record other steps in the place of some as edits, so that nothing behind them is recorded again."""
        listed = {id(tracked.step) for tracked in self._tracked}
        for index, step in enumerate(steps):
            if step is not self._tracked[index].step and id(step) not in listed:
                self._edit(index, step, steps)

    def _common_prefix(self, steps: Sequence[Any]) -> list[TrackedStep]:
        """The beginning of the list that is in the log in this order."""
        at, common = 0, list[TrackedStep]()
        for step in steps:
            index = next((i for i in range(at, len(self._tracked)) if self._tracked[i].step is step), None)
            if index is None:
                break
            common.append(self._tracked[index])
            at = index + 1
        return common

    def _edit(self, index: int, step: Any, steps: Sequence[Any]) -> None:
        tracked = self._tracked[index]
        own_steps = self._rewrite(tracked, step, steps)
        if len(own_steps) == tracked.count == 1:
            note = step_note(step, own_steps, tracked.at)
            self._history.replace(tracked.at, own_steps[0], NOTE_CHECKPOINT, note)
            self._tracked[index] = TrackedStep(step, tracked.at, 1, step_mark(step), _only_action(own_steps))
            return
        # It has more or fewer steps than before: it and what follows are recorded again, in their order.
        behind = self._tracked[index:]
        self._history.delete([at for later in behind for at in later.positions])
        del self._tracked[index:]
        for other in (step, *(later.step for later in behind[1:])):
            self._add(other, steps)

    def _rewrite(self, tracked: TrackedStep, step: Any, steps: Sequence[Any]) -> tuple[Step, ...]:
        """Convert an edited step. Where only its pictures or its text changed, every observation stays."""
        own_steps = convert.to_steps(step, _task_pictures(steps))
        (new,) = own_steps if len(own_steps) == 1 else (None,)
        old = tracked.action
        is_parallel = old is not None and len(old.tool_calls) >= 2
        if not isinstance(new, ActionStep) or old is None or step is not tracked.step or not is_parallel:
            return own_steps
        now, then = step_mark(step), tracked.mark
        if now[1] is then[1] and now[2] is then[2] and now[3] == then[3] and now[4] == then[4]:
            return (replace(old, content=new.content),)
        return own_steps

    # After a crash

    def _restore(self) -> None:
        entries = self._history.entries()
        bodies: dict[int, Step] = {entry.position: entry.body for entry in entries if isinstance(entry.body, Step)}
        for entry in entries:
            match entry.body:
                case Observed(action=at, index=index, observation=observation, late=False):
                    if isinstance(action := bodies.get(at), ActionStep):
                        bodies[at] = with_observations(action, {index: observation})
        notes: dict[int, dict[str, Any]] = {}
        for entry in entries:
            if isinstance(entry.body, Checkpoint) and entry.body.name == NOTE_CHECKPOINT:
                note = json.loads(entry.body.state)
                if not self._history.is_hidden(note["at"]):
                    notes[note["at"]] = note
        continued = {at for note in notes.values() for at in range(note["at"] + 1, note["at"] + note["count"])}
        for at in sorted({*bodies, *notes} - continued):
            note = notes.get(at, {})
            positions = range(at, at + note.get("count", 1))
            own_steps = tuple(bodies[position] for position in positions if position in bodies)
            step = from_steps(own_steps, note)
            if isinstance(step, smol.SystemPromptStep):
                self._system = (at, step)
            else:
                self._tracked.append(TrackedStep(step, at, len(own_steps), step_mark(step), _only_action(own_steps)))


def _is_same_step(step: Any, tracked: TrackedStep) -> bool:
    """True for the step itself, and for another one that says the same."""
    return step is tracked.step or (type(step) is type(tracked.step) and _spelling(step) == _spelling(tracked.step))


def _spelling(step: Any) -> tuple[Any, ...]:
    """The type of a step, and its fingerprints in the log."""
    return (type(step), *map(body_fingerprints, convert.to_steps(step)))


def _only_action(steps: Sequence[Step]) -> ActionStep | None:
    return steps[0] if len(steps) == 1 and isinstance(steps[0], ActionStep) else None


def _task_pictures(steps: Sequence[Any]) -> Sequence[Pillow.Image]:
    """The pictures of the newest task, which its actions carry again."""
    task = next((step for step in reversed(steps) if isinstance(step, smol.TaskStep)), None)
    return (task.task_images or ()) if task is not None else ()


def _extend_observation(
    observation: Observation, error: Any, pictures: Sequence[Pillow.Image], call: ToolCall
) -> Observation:
    """Add to an observation what came after it: the pictures of the step, and an error that is of no call."""
    if error is None and not pictures:
        return observation
    more = convert.make_observation(None, error, pictures, call.id)
    content = convert.join_contents(observation.content, more.content if more is not None else "")
    return replace(observation, content=content, status="error" if error is not None else observation.status)
