"""The extractive digest: which lines of what leaves stay in sight, chosen by need covered per token.

A line is worth the chance that its identifiers, or the line itself, are needed soon and are not in sight already;
lines are taken greedily by worth a token, each identifier's chance counted once (weighted coverage; the greedy choice
is within 1 - 1/e of the best, Nemhauser 1978).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pagein.lexing import identifiers, words
from pagein.tokens import TokenCounter
from pagein.view.memo import Line, Memo, Name, Use, bare

NAME_WEIGHTS = (-2.0, -0.9, -0.6, 1.2, 0.6, 0.2, 0.3, -0.3, 0.2, 0.0)
LINE_WEIGHTS = (-4.0, -0.9, -0.6, 1.2, 0.5, 0.3, 0.2, 0.0)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A line that stays in sight, and the position of the step it came from."""

    position: int
    order: int
    text: str
    source: str


def chance(weights: Sequence[float], features: Sequence[float]) -> float:
    """A logistic model's probability."""
    return 1 / (1 + math.exp(-sum(w * f for w, f in zip(weights, features, strict=True))))


def _age(turn: int, last: int) -> float:
    return math.log1p(turn - last) if last >= 0 else 3.0


def name_chance(name: str, use: Use, turn: int) -> float:
    """How likely an identifier is needed within the next few turns."""
    return chance(
        NAME_WEIGHTS,
        (
            1.0,
            _age(turn, use.last),
            _age(turn, use.last_argued),
            float(use.last_argued >= 0),
            math.log1p(use.argued),
            math.log1p(use.turns),
            float("/" in name),
            float(name.isdigit()),
            float("said" in use.sources),
            float("task" in use.sources),
        ),
    )


def line_chance(line: Line, turn: int) -> float:
    """How likely a line is quoted within the next few turns."""
    use = line.use
    if len(line.text) < 25:
        return 0.0
    return chance(
        LINE_WEIGHTS,
        (
            1.0,
            _age(turn, use.last),
            _age(turn, use.last_argued),
            float(use.last_argued >= 0),
            math.log1p(use.argued),
            math.log1p(use.turns),
            float("observation" in use.sources),
            float(use.last == use.last_argued),
        ),
    )


def grounds(line: str, name: str) -> bool:
    """True where a line says enough beside a name: three other words, or all it has."""
    return len(set(words(line.replace(name, " ")))) >= 3


def in_sight(texts: Iterable[str]) -> tuple[set[str], set[str]]:
    """The lines and the grounded identifiers that the texts show already."""
    lines: set[str] = set()
    names: set[str] = set()
    for text in texts:
        for raw in text.splitlines():
            lines.add(bare(raw))
            names.update(each for each in identifiers(raw) if grounds(raw, each))
    return lines, names


def choose(
    memo: Memo,
    tokens: int,
    counter: TokenCounter,
    *,
    visible: Iterable[str],
    stop: int,
    line_weight: float = 1.0,
) -> list[Chosen]:
    """Lines recorded before ``stop`` that are worth keeping in sight, of at most ``tokens`` tokens, in order."""
    seen_lines, seen_names = in_sight(visible)
    worth = {
        name: name_chance(name, each.use, memo.turn)
        for name, each in memo.names.items()
        if name not in seen_names
    }
    heap: list[tuple[float, int, str]] = []
    for key, line in memo.lines.items():
        if line.position < stop and key not in seen_lines:
            gain = _gain(line, worth, memo.turn, line_weight)
            if gain > 0:
                heap.append((-gain / _cost(line), line.order, key))
    heapq.heapify(heap)
    return sorted(
        _greedy(heap, memo, worth, tokens, counter, line_weight), key=lambda each: (each.position, each.order)
    )


def _gain(line: Line, worth: dict[str, float], turn: int, line_weight: float) -> float:
    return sum(worth.get(name, 0.0) for name in line.names) + line_weight * line_chance(line, turn)


def _cost(line: Line) -> float:
    return 4 + len(line.text) / 3.5


def _greedy(
    heap: list[tuple[float, int, str]],
    memo: Memo,
    worth: dict[str, float],
    tokens: int,
    counter: TokenCounter,
    line_weight: float,
) -> Iterable[Chosen]:
    left = tokens
    while heap and left > 8:
        rate, order, key = heapq.heappop(heap)
        line = memo.lines[key]
        now = -_gain(line, worth, memo.turn, line_weight) / _cost(line)
        if now > rate * 0.999:
            # Another line covered part of what this one was worth; it waits its new turn.
            if now < 0:
                heapq.heappush(heap, (now, order, key))
            continue
        cost = counter.text(line.text) + 4
        if cost > left:
            continue
        left -= cost
        for name in line.names:
            worth.pop(name, None)
        yield Chosen(line.position, line.order, line.text, line.source)
