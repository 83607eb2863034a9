"""Procedures of recorded runs: how often a new task finds one of its own group, what one costs, and how two look.

The group of a run is its id up to the last hyphen: the repository of a SWE-bench instance, the task of a tau-bench trial.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagein import AgentMemory
from pagein.evaluation.runs import Run, read_runs
from pagein.facts import FactError
from pagein.facts.procedures import describe_task, rank_procedures
from pagein.tokens.encodings import Encoding

_COMMAND = re.compile(r"(?:^|\n)(?:```)?bash\n(.*?)\n```\s*$", re.DOTALL)
"""A command that some recordings have in the text, where its text is in the call."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A run with its procedure: its group, the fact, and its task in a line."""

    group: str
    fact: Any
    task: str


@dataclass(frozen=True, slots=True)
class Found:
    """How often a task found a procedure of its group first: ``queries`` are those for which one was saved.

    ``chance`` is the share of its group among the saved ones, ``shown`` how often the first is similar enough to be shown, and
    ``right`` how many of these are of the group. ``by_group`` is the mean over groups.
    """

    queries: int
    first: float
    chance: float
    by_group: float
    shown: float
    right: float


def read_procedures(paths: Sequence[Path]) -> tuple[list[Saved], list[Run]]:
    """The runs of files that have a procedure, and those that have none."""
    saved, without = [], []
    for run in (run for path in paths for run in read_runs(path)):
        with AgentMemory.open(":memory:", user="user", budget=10_000_000) as memory:
            memory.record_messages([_mended(message) for message in run.wire], run.format)
            try:
                fact = memory.save_procedure()
            except FactError:
                without.append(run)
                continue
            group = run.id.rpartition("-")[0] or run.id
            saved.append(Saved(group, fact, describe_task(fact.headline)))
    return saved, without


def measure_finding(saved: Sequence[Saved], count: int, seeds: int = 10) -> Found:
    """Save the procedures of ``count`` runs drawn at random, and look for one with the task of each other run."""
    firsts: dict[str, list[bool]] = defaultdict(list)
    chances, shown = [], []
    for seed in range(seeds):
        drawn = random.Random(seed).sample(list(saved), len(saved))  # noqa: S311 - a draw that can be repeated
        known, asking = drawn[:count], drawn[count:]
        groups = {id(item.fact): item.group for item in known}
        for item in asking:
            share = sum(group == item.group for group in groups.values()) / len(groups)
            if share:
                ranked = rank_procedures([other.fact for other in known], (item.task,))
                is_right = bool(ranked) and groups[id(ranked[0].fact)] == item.group
                firsts[item.group].append(is_right)
                chances.append(share)
                shown += [is_right] * bool(ranked)
    queries = len(chances)
    means = [sum(rights) / len(rights) for rights in firsts.values()]
    return Found(
        queries, sum(sum(rights) for rights in firsts.values()) / queries, sum(chances) / queries,
        sum(means) / len(means), len(shown) / queries, sum(shown) / len(shown),
    )  # fmt: skip


def count_tokens(saved: Sequence[Saved]) -> list[int]:
    """The tokens of the procedures, sorted."""
    return sorted(map(Encoding("o200k_base").text, (item.fact.content for item in saved)))


def _mended(message: Any) -> Any:
    """The message with the command of its text in its call, where a recording has them the other way round."""
    calls, command = message.get("tool_calls"), _COMMAND.search(str(message.get("content") or ""))
    if not calls or len(calls) != 1 or command is None:
        return message
    function = {**calls[0]["function"], "arguments": json.dumps({"command": command[1]})}
    return {**message, "tool_calls": [{**calls[0], "function": function}]}
