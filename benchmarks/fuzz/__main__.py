"""Fuzzers: random runs against an oracle.

``hosting`` hands talks over in every way a host may do it. ``erasing`` erases steps, and searches all that is left.
``formats`` renders histories, and checks the requests against the SDKs' own types and a second tokenizer.

``python -m benchmarks.fuzz hosting --seed 1 --count 100`` prints a summary, and exits with 1 if a run failed. A run is
known by its seed alone, so a failure is played again with ``--seed N --count 1``.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.fuzz.erased_runs import ErasedRun, play_erased_run
from benchmarks.fuzz.hosting import WAYS, Talk, play_talk
from benchmarks.fuzz.rendered_requests import RandomHistory, play_random_history
from pagein.formats import FormatName

FuzzedRun = Talk | ErasedRun | RandomHistory
"""A run of a fuzzer; ``way`` groups the summary."""

Run = TypeVar("Run", Talk, ErasedRun, RandomHistory)

PROGRESS_SECONDS = 60
"""Between two lines of progress."""


@dataclass(slots=True)
class FuzzReport:
    """The runs that were played, by their way, and those that failed."""

    played: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, run: FuzzedRun, failure: str) -> None:
        """Count a run; ``failure`` is empty for one that passed."""
        self.played[run.way] += 1
        if failure:
            self.failed[run.way] += 1
            self.failures.append(f"seed {run.seed}, {run.way}, {run.format}: {failure}")

    def lines(self, examples: int) -> list[str]:
        """The summary, and the first failures."""
        ways = [f"  {way:<12} {self.played[way]:>5} runs {self.failed[way]:>5} failed" for way in sorted(self.played)]
        total = f"{self.played.total()} runs, {self.failed.total()} failed"
        return [total, *ways, *self.failures[:examples]]


def fuzz_hosting(seed: int, count: int, ways: Sequence[str] = WAYS, formats: Sequence[FormatName] = ()) -> FuzzReport:
    """Play ``count`` talks, from ``seed`` on."""
    return _fuzz((Talk.from_seed(number, ways, formats) for number in range(seed, seed + count)), play_talk)


def fuzz_erasing(seed: int, count: int) -> FuzzReport:
    """Play and erase ``count`` runs, from ``seed`` on."""
    return _fuzz(map(ErasedRun.from_seed, range(seed, seed + count)), play_erased_run)


def fuzz_formats(seed: int, count: int) -> FuzzReport:
    """Render and check ``count`` histories, from ``seed`` on."""
    return _fuzz(map(RandomHistory.from_seed, range(seed, seed + count)), play_random_history)


def _fuzz(runs: Iterable[Run], play: Callable[[Run], None]) -> FuzzReport:
    """Play the runs; print a line a minute on stderr, with what was played so far."""
    report, printed = FuzzReport(), time.monotonic()
    for run in runs:
        report.add(run, _play(play, run))
        if time.monotonic() - printed >= PROGRESS_SECONDS:
            printed = time.monotonic()
            sys.stderr.write(f"{report.played.total()} runs, {report.failed.total()} failed\n")
    return report


def _play(play: Callable[[Run], None], run: Run) -> str:
    """Play a run; return what went wrong in one line, or nothing."""
    try:
        play(run)
    except AssertionError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - any error is a failure of the run
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({place.filename.rpartition('/')[2]}:{place.lineno})"
    return ""


FUZZERS: dict[str, Callable[[int, int], FuzzReport]] = {
    "hosting": fuzz_hosting,
    "erasing": fuzz_erasing,
    "formats": fuzz_formats,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a fuzzer of the command line; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("fuzzer", choices=sorted(FUZZERS))
    parser.add_argument("--seed", type=int, default=1, help="number of the first run")
    parser.add_argument("--count", type=int, default=300, help="number of runs")
    parser.add_argument("--examples", type=int, default=10, help="failures to print")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    report = FUZZERS[options.fuzzer](options.seed, options.count)
    lines = [*report.lines(options.examples), f"{time.perf_counter() - start:.0f} s", ""]
    sys.stdout.write("\n".join(lines))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
