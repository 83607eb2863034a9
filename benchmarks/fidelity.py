"""A made-up run of which a fidelity measure knows all: rules, decisions, failures and names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from benchmarks.synthetic_run import SyntheticTurn, opening, turns
from pagein.evaluation.runs import Run

TURNS: Final = 420
"""Steps of the run made up here: enough for fifty compactions of any strategy at the default budget."""

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


def make_run(length: int = TURNS) -> Run:
    """Make a run with rules early and late, decisions, failures and names; the same each time."""
    first = opening()
    first[1] = {**first[1], "content": f"Fix the failing test. {_RULES[0]}"}
    messages = list(first)
    for turn in turns(length):
        messages.extend(_make_turn(turn))
        if turn.number % EVERY == EVERY - 1 and turn.number // EVERY + 1 < len(_RULES):
            messages.append({"role": "user", "content": f"One more thing. {_RULES[turn.number // EVERY + 1]}"})
    return Run("made up", tuple(messages))


def _make_turn(turn: SyntheticTurn) -> list[dict[str, Any]]:
    number = turn.number
    thought, output = turn.thought, turn.output
    if number % 7 == 3:
        what, why = _THINGS[number % len(_THINGS)], _WHYS[number % len(_WHYS)]
        thought += f" I decided to {what} in {turn.command.split()[3]}, {why}."
    if number % 9 == 5:
        output += f"\nValueError: limit {4000 + number} is beyond what src/checks/rule_{number}.py allows"
    return replace(turn, thought=thought, output=output).messages
