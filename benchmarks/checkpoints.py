"""Measure what a checkpoint tells of a run against lists that were written by reading the run before.

``checkpoint_lists.json`` names runs, how many of their messages are played, and what is open, decided, ruled out and next
then: for each item the words of which one must stand in an item of the checkpoint, separated by "|".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pagein.backends.memory import InMemoryLog
from pagein.evaluation.runs import read_runs
from pagein.memory.agent_memory import AgentMemory
from pagein.summaries.summary import SummaryItem

LISTS: Final = Path(__file__).with_name("checkpoint_lists.json")
BUDGET: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ListScore:
    """One list of one run: its items, those that the checkpoint has, and the items of the checkpoint."""

    run: str
    name: str
    written: tuple[str, ...]
    matched: tuple[str, ...]
    told: tuple[str, ...]


def bench_checkpoints(folder: Path, *, held_back: bool) -> Iterator[ListScore]:
    """Yield the score of each list; ``folder`` has the files of recorded runs."""
    for row in json.loads(LISTS.read_text(encoding="utf-8")):
        if row["held_back"] == held_back:
            run = read_runs(folder / row["file"], limit=row["run"] + 1)[-1]
            with AgentMemory(InMemoryLog(), budget=BUDGET) as memory:
                memory.record_messages(list(run.wire[: row["messages"]]), run.format, whole=False)
                told = _told(memory)
            for name, written in row["lists"].items():
                matched = tuple(item for item in written if _is_told(item, told[name]))
                yield ListScore(run.id, name, tuple(written), matched, told[name])


def _told(memory: AgentMemory) -> Mapping[str, tuple[str, ...]]:
    memory.checkpoint("measured")
    state = memory.checkpoints()[-1].state
    summary = state.summary
    objective = () if summary.objective is None else (summary.objective,)
    items: Mapping[str, tuple[SummaryItem, ...]] = {
        "open": (*objective, *state.to_do, *summary.questions),
        "decided": summary.decisions,
        "ruled_out": summary.dead_ends,
        "next": summary.next_steps,
    }
    return {name: tuple(f"{item.text} {item.note}".strip() for item in group) for name, group in items.items()}


def _is_told(item: str, told: tuple[str, ...]) -> bool:
    return any(words.casefold() in text.casefold() for words in item.split("|") for text in told)
