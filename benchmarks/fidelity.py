"""How much of what left a run's view is still in sight, kind by kind, after one compaction and after fifty.

A run is played turn by turn. After so many compactions everything that has left by then is held against the request as
it stands: rules of the user and the host anywhere in the run so far, and errors, decisions, paths, identifiers and
numbers of the steps that left. Pins have to be word for word in the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pagein.backends.memory import InMemoryLog
from pagein.context.view.layout import Item
from pagein.context.view.view import View
from pagein.evaluation.runs import Run
from pagein.events.entries import Compaction, Survival
from pagein.events.identifiers import argument_text
from pagein.events.steps import Step, SummaryStep, SystemPromptStep, TaskStep, as_text
from pagein.log.base import Log
from pagein.memory.agent_memory import AgentMemory
from pagein.summaries.fidelity import measured
from pagein.summaries.key_items import mentions
from pagein.summaries.sanitize import one_line
from pagein.summaries.spans import span_of
from pagein.testing.synthetic_run import Turn, opening, turns
from pagein.tokens import TokenCounter

STRATEGIES: Final = ("rounds", "short_long", "rolling", "tiers", "ladder", "window")
ROUNDS: Final = (1, 3, 5, 10, 50)
"""Compactions after which a run is looked at."""

BUDGET: Final = 4_000
TURNS: Final = 420
"""Steps of the run made up here: enough for fifty compactions of any strategy at the default budget."""

PINS: Final = ("Never push to the branch release-7.", "The customer's account is ACC-20931.")

EVERY: Final = 30
"""Steps between two rules that the user of the made-up run gives."""

_RULES: Final = (
    "Never delete a file under migrations/. You must keep the public names of the package.",
    "Always run the linter before a commit.",
    "Do not use more than 3 workers.",
    "The change must work with Python 3.9.",
    "Never print the value of API_TOKEN.",
    "Don't touch vendor/lib_ssl.c.",
    "At most 120 columns a line.",
    "You must not add a dependency.",
    "Always write the test first.",
    "Never merge without my word.",
)

_THINGS: Final = (
    "cache parsed headers",
    "split the long query",
    "drop retries altogether",
    "validate every schema early",
    "keep signals synchronous",
    "rename the stale worker",
)
_WHYS: Final = (
    "since profiling showed double reads",
    "because two callers disagree",
    "as upstream guarantees order",
    "for older clients break otherwise",
    "given that locks are expensive here",
)

Tick = Callable[[], None]


@dataclass(slots=True)
class Kept:
    """What survived so many compactions, over the runs that came so far: by kind, and of the pins."""

    runs: int = 0
    kinds: dict[str, Survival] = field(default_factory=dict)
    pins: int = 0
    pins_kept: int = 0

    def add(self, found: Iterable[Survival], pins: int, pins_kept: int) -> None:
        """Add one run."""
        self.runs += 1
        self.pins += pins
        self.pins_kept += pins_kept
        for new in found:
            old = self.kinds.get(new.kind, Survival(new.kind, 0, 0, 0))
            sums = (old.total + new.total, old.in_sight + new.in_sight, old.reachable + new.reachable)
            self.kinds[new.kind] = Survival(new.kind, *sums)

    def share(self, kind: str) -> float | None:
        """The share in sight of one kind, or of the pins; None where there was nothing to lose."""
        if kind == "pin":
            return self.pins_kept / self.pins if self.pins else None
        found = self.kinds.get(kind)
        return found.share if found is not None and found.total else None

    def as_dict(self) -> dict[str, Any]:
        """The counts as JSON-safe values: by kind total, in sight, in sight or reachable."""
        kinds = {name: [each.total, each.in_sight, each.reachable] for name, each in self.kinds.items()}
        return {"runs": self.runs, "pins": [self.pins, self.pins_kept], "kinds": kinds}


@dataclass(frozen=True, slots=True)
class Setting:
    """What every strategy is given: tokens, what counts them, who writes (nobody: extracts), and when to look."""

    counter: TokenCounter
    budget: int = BUDGET
    summarizer: Any = None
    rounds: Sequence[int] = ROUNDS
    pins: Sequence[str] = PINS


def bench_fidelity(
    runs: Sequence[Run], strategies: Iterable[str], setting: Setting, tick: Tick
) -> dict[str, dict[int, Kept]]:
    """By strategy and by number of compactions, what survived over the runs that came so far."""
    found: dict[str, dict[int, Kept]] = {}
    for name in strategies:
        found[name] = {each: Kept() for each in setting.rounds}
        for run in runs:
            _play(run, name, setting, found[name])
            tick()
    return found


def _play(run: Run, policy: str, setting: Setting, into: Mapping[int, Kept]) -> None:
    options: dict[str, Any] = {"budget": setting.budget, "policy": policy, "counter": setting.counter}
    if setting.summarizer is not None:
        options["summarizer"] = setting.summarizer
    log = InMemoryLog()
    with AgentMemory(log, **options) as memory:
        for each in setting.pins:
            memory.pin(each)
        wanted, done, at = sorted(setting.rounds), 0, 0
        for new in turns_of(run):
            memory.record_messages(new, run.format, whole=False)
            view = memory.view()
            memory.settle()
            made = sum(isinstance(each.body, Compaction) for each in log.read(at))
            at, done = log.head(), done + made
            while wanted and done >= wanted[0]:
                into[wanted.pop(0)].add(*survived(memory, log, view, setting.pins))
            if not wanted:
                return


def survived(
    memory: AgentMemory, log: Log, view: View, pins: Sequence[str]
) -> tuple[tuple[Survival, ...], int, int]:
    """Of all that left the view, and of every rule, what its request still holds; pins there are, and pins kept."""
    text = "\n".join(_texts(view))
    spoken: list[tuple[int, Item]] = []
    left: list[tuple[int, Item]] = []
    out = _out_of(view)
    for entry in log.read():
        if isinstance(entry.body, TaskStep | SystemPromptStep):
            spoken.append((entry.position, entry.body))
        elif isinstance(entry.body, Step) and entry.position in out:
            left.append((entry.position, memory.expand(entry.position).steps[0]))
    found = [each for each in mentions(span_of(spoken, 0, view.head)) if each.kind == "constraint"]
    found += [each for each in mentions(span_of(left, 0, view.head)) if each.kind != "constraint"]
    kept = sum(one_line(each) in one_line(text, len(text) + 1) for each in pins)
    return measured(found, text).kinds, len(pins), kept


def _out_of(view: View) -> frozenset[int]:
    """The positions that the view does not show whole."""
    return frozenset(
        position
        for each in view.run
        if isinstance(each.item, SummaryStep) or each.stubs
        for position in range(each.first, max(each.last, each.first + 1))
    )


def _texts(view: View) -> Iterator[str]:
    for message in view.messages():
        yield as_text(message.content)
        yield from (argument_text(call.arguments) for call in message.tool_calls)


def turns_of(run: Run) -> Iterator[list[dict[str, Any]]]:
    """The run's messages as a host hands them over: what came since the last request."""
    new: list[dict[str, Any]] = []
    for each in run.wire:
        if each.get("role") == "assistant" and new:
            yield new
            new = []
        new.append(dict(each))
    if new:
        yield new


def made_up(length: int = TURNS) -> Run:
    """A run with rules given early and late, decisions, failures and names; the same each time."""
    first = opening()
    first[1] = {**first[1], "content": f"Fix the failing test. {_RULES[0]}"}
    messages = list(first)
    for turn in turns(length):
        messages.extend(_told(turn))
        if turn.number % EVERY == EVERY - 1 and turn.number // EVERY + 1 < len(_RULES):
            messages.append(
                {"role": "user", "content": f"One more thing. {_RULES[turn.number // EVERY + 1]}"}
            )
    return Run("made up", tuple(messages))


def _told(turn: Turn) -> list[dict[str, Any]]:
    number = turn.number
    thought, output = turn.thought, turn.output
    if number % 7 == 3:
        what, why = _THINGS[number % len(_THINGS)], _WHYS[number % len(_WHYS)]
        thought += f" I decided to {what} in {turn.command.split()[3]}, {why}."
    if number % 9 == 5:
        output += f"\nValueError: limit {4000 + number} is beyond what src/checks/rule_{number}.py allows"
    return replace(turn, thought=thought, output=output).messages
