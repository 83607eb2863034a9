"""The counts of a server, in the text format of Prometheus; and its summary of each run."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field

_HELP = {
    "requests": "Requests to models, by what was done with them.",
    "failures": "Failures of pagein itself, by kind.",
    "answers": "Answers, recorded or not.",
    "overflows": "Requests that the provider called too long, by whether a smaller view was sent.",
    "hangups": "Clients that hung up before the answer was whole.",
    "view_tokens": "Tokens of the messages in the views that were sent.",
    "passed": "Requests to other addresses.",
    "refused": "Requests that were refused, by reason.",
}
BUCKETS = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56)
MAX_RUNS = 1_000


@dataclass(slots=True)
class RunTotals:
    """The requests of one run: their number, how many were views that something left, and their tokens."""

    requests: int = 0
    views: int = 0
    tokens: int = 0


@dataclass(slots=True)
class Metrics:
    """Counters of one server. They are changed in the event loop alone."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    added_seconds: float = 0.0
    newest_added: deque[float] = field(default_factory=lambda: deque(maxlen=10_000))
    runs: OrderedDict[str, RunTotals] = field(default_factory=OrderedDict)

    def count(self, name: str, label: str = "", amount: int = 1) -> None:
        """Add to a counter."""
        self.counts[name, label] += amount

    def observe_added(self, seconds: float) -> None:
        """Note the time that a request took here before it was forwarded."""
        self.added_seconds += seconds
        self.newest_added.append(seconds)
        self.buckets[bisect_left(BUCKETS, seconds)] += 1

    def add_request(self, run: str, tokens: int, *, is_view: bool) -> None:
        """Note a request of a run."""
        totals = self.runs.setdefault(run, RunTotals())
        self.runs.move_to_end(run)
        totals.requests += 1
        totals.views += is_view
        totals.tokens += tokens
        self.count("view_tokens", amount=tokens)
        if len(self.runs) > MAX_RUNS:
            self.runs.popitem(last=False)

    def render(self) -> str:
        """The metrics as Prometheus reads them."""
        lines: list[str] = []
        for name, text in _HELP.items():
            lines += [f"# HELP pagein_{name}_total {text}", f"# TYPE pagein_{name}_total counter"]
            rows = sorted((label, count) for (counted, label), count in self.counts.items() if counted == name)
            for label, count in rows or [("", 0)]:
                lines.append(f"pagein_{name}_total{_label(label)} {count}")
        lines += [
            "# HELP pagein_added_seconds Time before a request is forwarded.",
            "# TYPE pagein_added_seconds histogram",
        ]
        total = 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self.buckets, strict=True):
            total += count
            lines.append(f'pagein_added_seconds_bucket{{le="{bound}"}} {total}')
        lines += [f"pagein_added_seconds_sum {self.added_seconds:.6f}", f"pagein_added_seconds_count {total}", ""]
        return "\n".join(lines)


def _label(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'{{kind="{escaped}"}}' if value else ""
