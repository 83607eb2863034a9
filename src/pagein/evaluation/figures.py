"""The figures of pagein on recorded runs, and their comparison with stored ones: a figure that falls is named.

All but the ratios of CPU time are the same in every run of one release. Time is the processor's own, as a ratio to a
fixed piece of work that is done at the same time, so that a busy or a slower machine counts the same.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from pagein._common.version import __version__
from pagein.errors import ConfigurationError
from pagein.evaluation.faults import PAGEIN, bench_faults, convert_to_openai
from pagein.evaluation.planted import PlantedCounts, build_session
from pagein.evaluation.runs import Run, demo_run, read_runs, turns_of
from pagein.evaluation.talk import TalkTally, demo_talk, play_planted, play_talk
from pagein.formats import format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import PAGE_IN_SHARE
from pagein.tokens import TokenCounter
from pagein.tokens.encodings import Encoding

QUICK_RUNS = 5
"""Runs that are read of each file, where the bench is to be quick."""

TALK_BUDGET, PLANTED_SHARE, DISK_BUDGET = 4_000, 0.2, 8_000


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value, and the number of samples it is the mean, the median or the ratio of."""

    value: float
    samples: int


@dataclass(frozen=True, slots=True)
class Noise:
    """The change of a figure that is no regression: an ``absolute`` one, or a ``share`` of the stored value.

    ``measured`` says how it was measured.
    """

    measured: str
    absolute: float = 0.0
    share: float = 0.0
    is_higher_better: bool = False

    def allows(self, stored: float, now: float) -> bool:
        """True if the value did not become worse by more than the noise."""
        worse = stored - now if self.is_higher_better else now - stored
        return worse <= self.absolute + self.share * abs(stored) + 1e-9


_SAME = "two runs of one release give the same; the rest is for a choice that gains elsewhere"
_TIMES = "beside eight other jobs on two cores a run once took 1.4 times its stored time"

NOISE: Mapping[str, Noise] = {
    "identifiers missing": Noise(_SAME, absolute=0.01),
    "identifiers not grounded": Noise(_SAME, absolute=0.015),
    "lines missing": Noise(_SAME, absolute=0.02),
    "price": Noise(_SAME, share=0.02),
    "prefix kept": Noise(_SAME, absolute=0.02, is_higher_better=True),
    "evidence": Noise(_SAME, absolute=0.03, is_higher_better=True),
    "survive": Noise(_SAME, absolute=0.02, is_higher_better=True),
    "shown in an old form": Noise(_SAME, absolute=0.02),
    "disk": Noise("the same in 10 runs; versions of SQLite differ", share=0.03),
    "CPU of a run": Noise(_TIMES, share=1.0),
    "CPU of a run, page-in off": Noise(_TIMES, share=1.0),
    "CPU of opening": Noise(_TIMES, share=1.0),
}
"""By the last part of a figure's name, the change that is no regression."""


def noise_of(name: str) -> Noise:
    """The noise of a figure, by the last part of its name."""
    return NOISE[name.rpartition(": ")[2]]


def measure_figures(
    files: Sequence[Path] = (), *, is_quick: bool = True, tick: Callable[[str], object] = str
) -> dict[str, Figure]:
    """Measure every figure on the data of the package, and faults and price on further files of runs.

    ``tick`` is called with what is measured next. Raises FormatError, ConfigurationError.
    """
    counter = Encoding("o200k_base")
    budgets = (4_000, 8_000) if is_quick else (4_000, 8_000, 16_000)
    figures: dict[str, Figure] = {}
    limit = QUICK_RUNS if is_quick else None
    for name, runs in (("demo", (demo_run(),)), *((path.name, tuple(read_runs(path, limit=limit))) for path in files)):
        for budget in budgets:
            tick(f"{name}, {budget:,} tokens")
            figures |= _fault_figures(f"{name}, {budget:,}", runs, budget, counter)
    tick("talk")
    figures |= _talk_figures(counter, sessions=2 if is_quick else 12)
    tick("time and disk")
    figures |= _machine_figures(demo_run(), samples=5 if is_quick else 15)
    return figures


def _fault_figures(name: str, runs: Sequence[Run], budget: int, counter: TokenCounter) -> dict[str, Figure]:
    tally = bench_faults(runs, budget, counter, baselines=False)[PAGEIN]
    if tally.raised:
        raise ConfigurationError(f"{name}: {len(tally.raised)} runs raised, the first {tally.raised[0]}")
    rates, needs = tally.needs.rates(), tally.needs
    values: dict[str, tuple[float | None, int]] = {
        "identifiers missing": (rates["bare"], needs.identifiers),
        "identifiers not grounded": (rates["grounded"], needs.identifiers),
        "lines missing": (rates["lines"], needs.lines),
        "price": (tally.price_above / tally.above if tally.above else None, tally.above),
        "prefix kept": (tally.prefix_above, len(tally.shares_above)),
    }
    return {f"{name}: {kind}": Figure(value, count) for kind, (value, count) in values.items() if value is not None}


def _talk_figures(counter: TokenCounter, sessions: int) -> dict[str, Figure]:
    talk, plants = TalkTally(), PlantedCounts()
    for question, text, tokens in play_talk(demo_talk(), TALK_BUDGET, counter, {}):
        talk.add(question, text, tokens, TALK_BUDGET)
    for seed in range(sessions):
        plants += play_planted(build_session(seed), PLANTED_SHARE, counter, {})
    return {
        f"talk, {TALK_BUDGET:,}: evidence": Figure(talk.share, len(talk.shares)),
        "planted, 20 %: survive": Figure(plants.survivors / max(1, plants.items), plants.items),
        "planted, 20 %: shown in an old form": Figure(plants.stale / max(1, plants.revised), plants.revised),
    }


# -- time and disk


def _machine_figures(run: Run, samples: int) -> dict[str, Figure]:
    """Measure CPU time as ratios to the reference work, and bytes as a ratio to those of the messages."""
    run = convert_to_openai(run, format_named("openai"))
    with TemporaryDirectory(prefix="pagein-bench-") as folder:
        path = Path(folder) / "run.db"
        _play(run, str(path), PAGE_IN_SHARE)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        works: dict[str, Callable[[], object]] = {
            "CPU of a run": lambda: _play(run, ":memory:", PAGE_IN_SHARE),
            "CPU of a run, page-in off": lambda: _play(run, ":memory:", 0.0),
            "CPU of opening": lambda: _open(str(path)),
        }
        ratios = _measure_ratios(works, run.wire, samples)
    raw = len(json.dumps([dict(message) for message in run.wire], ensure_ascii=False).encode())
    figures = {f"demo, {DISK_BUDGET:,}: {name}": Figure(ratio, samples) for name, ratio in ratios.items()}
    return figures | {f"demo, {DISK_BUDGET:,}: disk": Figure(size / raw, 1)}


def _play(run: Run, url: str, page_in: float) -> None:
    """Play a run, with a request before each answer."""
    with AgentMemory.open(url, budget=DISK_BUDGET, page_in=page_in, synchronous="OFF") as memory:
        for new in turns_of(run)[:-1]:
            memory.record_messages(new, whole=False)
            memory.to_messages()


def _open(url: str) -> None:
    with AgentMemory.open(url, budget=DISK_BUDGET, readonly=True) as memory:
        memory.to_messages()


_WORD = re.compile(r"\w+")


def _do_reference(texts: Sequence[str]) -> str:
    """Do a fixed piece of work on the texts, of the kind that a memory does: words, counts, JSON, hashes."""
    digest = hashlib.sha256()
    for text in texts:
        counts = Counter(_WORD.findall(text))
        digest.update(json.dumps(sorted(counts.items())).encode())
    return digest.hexdigest()


def _measure_ratios(
    works: Mapping[str, Callable[[], object]], wire: Iterable[Mapping[str, Any]], samples: int
) -> dict[str, float]:
    """Measure each work by turns with the reference; the median of the ratios, after one round that counts for nothing."""
    texts = [json.dumps(dict(message), ensure_ascii=False) for message in wire]
    ratios: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(samples + 1):
        for name, work in works.items():
            base = _processor_seconds(lambda: _do_reference(texts))
            ratios[name].append(_processor_seconds(work) / base)
    return {name: median(values[1:]) for name, values in ratios.items()}


def _processor_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return max(1e-6, time.process_time() - start)


# -- stored figures


@dataclass(frozen=True, slots=True)
class Change:
    """A figure beside the stored one; None for one that was not measured there. ``is_regression`` beyond its noise."""

    name: str
    stored: Figure | None
    now: Figure | None

    @property
    def is_regression(self) -> bool:
        """True if the figure is worse by more than its noise, or is gone."""
        if self.stored is None:
            return False
        return self.now is None or not noise_of(self.name).allows(self.stored.value, self.now.value)


def compare_figures(stored: Mapping[str, Figure], now: Mapping[str, Figure]) -> Iterator[Change]:
    """Compare each figure with the stored one, in their order."""
    for name in dict.fromkeys((*stored, *now)):
        yield Change(name, stored.get(name), now.get(name))


def write_figures(path: Path, figures: Mapping[str, Figure], *, is_quick: bool) -> None:
    """Store figures as JSON."""
    rows = {name: {"value": round(figure.value, 6), "samples": figure.samples} for name, figure in figures.items()}
    document = {"pagein": __version__, "quick": is_quick, "figures": rows}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


def read_figures(path: Path, *, is_quick: bool) -> dict[str, Figure]:
    """Read stored figures. Raises ConfigurationError where the file has none, or those of another kind of run."""
    try:
        document = json.loads(path.read_text("utf-8"))
        figures = {
            str(name): Figure(float(row["value"]), int(row["samples"])) for name, row in document["figures"].items()
        }
        for name in figures:
            noise_of(name)
        stored_quick = bool(document["quick"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{path} has no figures of pagein bench all: {type(error).__name__}: {error}"
        ) from error
    if stored_quick != is_quick:
        cure = "add --quick" if stored_quick else "leave out --quick"
        raise ConfigurationError(f"{path} was measured {'with' if stored_quick else 'without'} --quick; {cure}")
    return figures


def as_rows(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """The changes as JSON-safe values."""
    return [asdict(change) | {"is_regression": change.is_regression} for change in changes]
