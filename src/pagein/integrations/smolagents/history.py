"""What an agent's list says, and what the log has of it: the one is followed by the other.

A list cannot tell who changed what in it, and a step may be edited in place. So each step is remembered with where it
was recorded and with what it held then; a look at the list finds what is new, what is gone and what is another.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from PIL import Image as Pillow
from smolagents import memory as theirs

from pagein.errors import ProtocolError
from pagein.events.entries import Checkpoint, Observed
from pagein.events.protocol import with_observations
from pagein.events.steps import ActionStep, Observation, Step, SystemPromptStep, ToolCall
from pagein.integrations._editable_history import EditedMemory
from pagein.integrations.smolagents import to_steps as recording
from pagein.integrations.smolagents.from_steps import noted, restored

NOTE = "host:smolagents"
"""The name of the checkpoints that hold what our steps do not say."""

Mark = tuple[Any, ...]


def mark(step: Any) -> Mark:
    """What a step held: the same objects while nobody edits it. Cheap, since every turn looks at every step."""
    if isinstance(step, theirs.ActionStep):
        calls = step.tool_calls
        pictures = step.observations_images
        return (
            step.model_output,
            step.observations,
            step.error,
            tuple(id(each) for each in pictures) if pictures else (),
            tuple((each.name, id(each.arguments), each.id) for each in calls) if calls else (),
        )
    if isinstance(step, theirs.TaskStep):
        return (step.task, tuple(id(each) for each in step.task_images) if step.task_images else ())
    if isinstance(step, theirs.PlanningStep):
        return (step.plan,)
    return ()


@dataclass(slots=True)
class Kept:
    """A step of the list, where it is in the log (``count`` steps of ours from ``at`` on), and what it held."""

    step: Any
    at: int
    count: int
    mark: Mark
    ours: ActionStep | None = None
    """What was recorded of an action, with every answer."""

    @property
    def positions(self) -> tuple[int, ...]:
        """Where it stands; a step that says nothing is known by its note."""
        return tuple(range(self.at, self.at + max(1, self.count)))


@dataclass(slots=True)
class Acting:
    """An action whose calls run: where it is, and the answers that have come.

    The last is held until the step ends, since the pictures and the error of the step come only then.
    """

    step: Any
    at: int
    ours: ActionStep
    answers: dict[int, Observation] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


class History:
    """Keeps the log in step with an agent's list."""

    def __init__(self, pages: EditedMemory) -> None:
        self._pages = pages
        self.turn = threading.RLock()
        self._acting: dict[int, Acting] = {}
        self._system: tuple[int, Any] | None = None
        self._kept: list[Kept] = []
        self._restore()

    @property
    def steps(self) -> list[Any]:
        """The steps there are."""
        return [each.step for each in self._kept]

    @property
    def system(self) -> Any:
        """The system prompt; an empty one where none was recorded yet."""
        return theirs.SystemPromptStep("") if self._system is None else self._system[1]

    def stand(self, step: Any) -> None:
        """Record the system prompt, or another in its place. Raises ConfigurationError for what is no step."""
        (ours,) = recording.recorded(step)
        if not isinstance(ours, SystemPromptStep):
            raise ProtocolError(f"system_prompt is a SystemPromptStep, not a {type(step).__name__}")
        with self.turn:
            if self._system is None:
                at = self._pages.put((ours,), NOTE, lambda at: noted(step, (ours,), at))
            else:
                at = self._system[0]
                if step.system_prompt != self._system[1].system_prompt:
                    self._pages.edit(at, ours, NOTE, noted(step, (ours,), at))
            self._system = (at, step)

    def begin(self) -> None:
        """Leave everything behind but the system prompt."""
        with self.turn:
            if self._kept or self._acting:
                self._pages.reset()
            self._kept.clear()
            self._acting.clear()

    def follow(self, steps: Sequence[Any]) -> None:
        """Make the log say what this list says. What raises leaves log and list as they were."""
        with self.turn:
            old = self._kept
            if len(steps) == len(old) + 1 and all(k.step is s for k, s in zip(old, steps, strict=False)):
                self._add(steps[-1], steps)
                return
            self._check(steps)
            if len(steps) == len(old):
                self._replace(steps)
            common = self._common(steps)
            gone = [each for each in old if all(each is not kept for kept in common)]
            self._pages.delete([at for each in gone for at in each.positions])
            self._kept = common
            for step in steps[len(common) :]:
                self._add(step, steps)

    def look(self, steps: Sequence[Any]) -> None:
        """Record what was edited inside steps since the last look."""
        with self.turn:
            for index, each in enumerate(self._kept):
                now = mark(each.step)
                if len(now) != len(each.mark) or any(
                    a is not b and a != b for a, b in zip(now, each.mark, strict=True)
                ):
                    self._edit(index, each.step, steps)

    # An action, from its first word to its end

    def act(self, step: Any, calls: Sequence[Any]) -> None:
        """Record an action whose calls are about to run."""
        ours = ActionStep(
            recording.content_of(step.model_output),
            recording.calls_of(calls),
            usage=recording.usage_of(step.token_usage),
        )
        with self.turn:
            at = self._pages.put((ours,), NOTE, lambda at: noted(step, (ours,), at))
            self._acting[id(step)] = Acting(step, at, ours)

    def answer(self, step: Any, index: int, text: str | None, error: BaseException | None) -> None:
        """Record the answer of one call as it comes; the last is held until the step ends."""
        with self.turn:
            acting = self._acting.get(id(step))
            if acting is None or index in acting.answers:
                return
            call = acting.ours.tool_calls[index]
            many = len(acting.ours.tool_calls) > 1
            seen = recording.seen(text, error, (), call.id)
            if seen is None:
                return
            if many and error is None:
                seen = replace(seen, extra=recording.beside(f"Call id: {call.id}\n{recording.OBSERVED}"))
            if error is not None:
                acting.failures.append(str(error))
            acting.answers[index] = replace(seen, call_id=call.id, index=index)
            if len(acting.answers) < len(acting.ours.tool_calls):
                self._pages.record(acting.answers[index])

    def _end(self, acting: Acting, steps: Sequence[Any]) -> Kept:
        """The step has ended: what is still open is answered, with its pictures and its error."""
        step, calls = acting.step, acting.ours.tool_calls
        told = dict(acting.answers)
        open_now = [i for i in range(len(calls)) if i not in told]
        held = len(told) == len(calls)
        last = list(told)[-1] if held else None
        pictures = recording.new_pictures(step, _task_pictures(steps))
        is_told = step.error is None or str(step.error) in acting.failures
        if last is not None:
            told[last] = _with(told[last], None if is_told else step.error, pictures, calls[last])
        elif open_now:
            first = open_now[0]
            seen = recording.seen(
                None if acting.answers else step.observations,
                None if is_told else step.error,
                pictures,
                calls[first].id,
            )
            told[first] = replace(
                seen or Observation(calls[first].id, "", "unknown"), call_id=calls[first].id, index=first
            )
            for index in open_now[1:]:
                told[index] = Observation(calls[index].id, "", "unknown", index)
        ours = with_observations(acting.ours, told)
        fresh = [told[i] for i in ((last,) if last is not None else open_now)]
        note = noted(step, (ours,), acting.at)
        if self._pages.answered(acting.at):
            self._pages.edit(
                acting.at, ours, NOTE, note
            )  # the run went on without it, and it ended after all
        else:
            self._pages.put(fresh, NOTE, lambda _: note)
        return Kept(step, acting.at, 1, mark(step), ours)

    # The list

    def _add(self, step: Any, steps: Sequence[Any]) -> None:
        acting = self._acting.get(id(step))
        if acting is not None and acting.step is step:
            self._kept.append(self._end(acting, steps))
            del self._acting[id(step)]
            return
        ours = recording.recorded(step, _task_pictures(steps))
        at = self._pages.put(ours, NOTE, lambda at: noted(step, ours, at))
        self._kept.append(Kept(step, at, len(ours), mark(step), _action(ours)))

    def _check(self, steps: Sequence[Any]) -> None:
        """Raises ConfigurationError for what is no step, before anything is changed."""
        known = {id(each.step) for each in self._kept} | set(self._acting)
        for step in steps:
            if id(step) not in known:
                recording.recorded(step)

    def _replace(self, steps: Sequence[Any]) -> None:
        """Other steps in the place of some: edits, so that nothing behind them is recorded again."""
        here = {id(each.step) for each in self._kept}
        for index, step in enumerate(steps):
            if step is not self._kept[index].step and id(step) not in here:
                self._edit(index, step, steps)

    def _common(self, steps: Sequence[Any]) -> list[Kept]:
        """What stays where it is: the beginning of the list that is in the log in this order."""
        at, common = 0, list[Kept]()
        for step in steps:
            found = next((i for i in range(at, len(self._kept)) if self._kept[i].step is step), None)
            if found is None:
                break
            common.append(self._kept[found])
            at = found + 1
        return common

    def _edit(self, index: int, step: Any, steps: Sequence[Any]) -> None:
        kept = self._kept[index]
        ours = self._rewritten(kept, step, steps)
        if len(ours) == kept.count == 1:
            self._pages.edit(kept.at, ours[0], NOTE, noted(step, ours, kept.at))
            self._kept[index] = Kept(step, kept.at, 1, mark(step), _action(ours))
            return
        # It says more or less than before: it and what follows are recorded again, in their order.
        behind = self._kept[index:]
        self._pages.delete([at for each in behind for at in each.positions])
        del self._kept[index:]
        for each in (step, *(other.step for other in behind[1:])):
            self._add(each, steps)

    def _rewritten(self, kept: Kept, step: Any, steps: Sequence[Any]) -> tuple[Step, ...]:
        """A step that was edited, as ours. Where only its pictures or its words are others, each answer stays."""
        ours = recording.recorded(step, _task_pictures(steps))
        (new,) = ours if len(ours) == 1 else (None,)
        old = kept.ours
        if not isinstance(new, ActionStep) or old is None or step is not kept.step or len(old.tool_calls) < 2:
            return ours
        now, then = mark(step), kept.mark
        if now[1] is then[1] and now[2] is then[2] and now[3] == then[3] and now[4] == then[4]:
            return (replace(old, content=new.content),)
        return ours

    # After a crash

    def _restore(self) -> None:
        entries = self._pages.history()
        bodies: dict[int, Step] = {
            entry.position: entry.body for entry in entries if isinstance(entry.body, Step)
        }
        for entry in entries:
            if isinstance(entry.body, Observed) and not entry.body.late:
                action = bodies.get(entry.body.action)
                if isinstance(action, ActionStep):
                    seen = {entry.body.index: entry.body.observation}
                    bodies[entry.body.action] = with_observations(action, seen)
        notes: dict[int, dict[str, Any]] = {}
        for entry in entries:
            if isinstance(entry.body, Checkpoint) and entry.body.name == NOTE:
                note = json.loads(entry.body.state)
                if not self._pages.is_hidden(note["at"]):
                    notes[note["at"]] = note
        behind = {at for note in notes.values() for at in range(note["at"] + 1, note["at"] + note["count"])}
        for at in sorted({*bodies, *notes} - behind):
            note = notes.get(at, {})
            ours = tuple(bodies[each] for each in range(at, at + note.get("count", 1)) if each in bodies)
            step = restored(ours, note)
            if isinstance(step, theirs.SystemPromptStep):
                self._system = (at, step)
            else:
                self._kept.append(Kept(step, at, len(ours), mark(step), _action(ours)))


def _action(ours: Sequence[Step]) -> ActionStep | None:
    return ours[0] if len(ours) == 1 and isinstance(ours[0], ActionStep) else None


def _task_pictures(steps: Sequence[Any]) -> Sequence[Pillow.Image]:
    """The pictures of the newest task, which its actions carry again."""
    task = next((each for each in reversed(steps) if isinstance(each, theirs.TaskStep)), None)
    return (task.task_images or ()) if task is not None else ()


def _with(seen: Observation, error: Any, pictures: Sequence[Pillow.Image], call: ToolCall) -> Observation:
    """An answer with what came after it: the pictures of the step, and an error that is no call's own."""
    if error is None and not pictures:
        return seen
    more = recording.seen(None, error, pictures, call.id)
    said = recording.joined(seen.content, more.content if more is not None else "")
    return replace(seen, content=said, status="error" if error is not None else seen.status)
