"""The view: the request as a value, with the cost of every token in it and the reason why it is there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pagein.context.salience.tracker import SalienceTracker
from pagein.context.tool_rules import NO_RULES, Tools
from pagein.context.view.layout import ViewEntry, lay_out, missing_ending, missing_opening
from pagein.events.entries import Importance
from pagein.events.messages import Message
from pagein.events.protocol import TEXT_ACTION
from pagein.events.steps import ActionStep, SummaryStep, TaskStep, as_text
from pagein.tokens import TokenCounter
from pagein.tokens.counter import request_tokens

if TYPE_CHECKING:
    from pagein.context.costs import RunCost
    from pagein.models.writer_account import WriterReport

IMPORTANT_SHARE = 0.3
"""Share of the limit for steps that are marked as important. The newest have it; older ones leave as others do."""

TASK_SHARE = 0.5
"""Share of the limit in which the task of a model that acts in its text stays whole."""


@dataclass(frozen=True, slots=True)
class ReportLine:
    """A row of the report: tokens of the request, their tier and the reason."""

    handle: str
    tier: str
    tokens: int
    why: str


@dataclass(frozen=True, slots=True)
class OutOfView:
    """A row of the report for something not shown as recorded: its handle, the tier that replaced it, and the reason."""

    handle: str
    tier: str
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """An account of every token of the request, and of everything out of view. ``lines`` add up to ``tokens``.

    ``problems`` are failures in the background since the memory was opened, each once. ``writers`` are the accounts of
    the models that wrote summaries and facts. ``facts_left_out`` are facts that mattered and did not fit. ``cost`` is
    the cost of the run's requests so far; None in async code until ``cost`` was awaited once.
    """

    tokens: int
    limit: int
    lines: tuple[ReportLine, ...]
    out: tuple[OutOfView, ...]
    problems: tuple[str, ...] = ()
    writers: tuple[WriterReport, ...] = field(default=(), compare=False)
    facts_left_out: tuple[OutOfView, ...] = field(default=(), compare=False)
    cost: RunCost | None = field(default=None, compare=False)

    def by_tier(self) -> dict[str, int]:
        """Return the tokens of each tier, largest first."""
        sums: dict[str, int] = {}
        for line in self.lines:
            sums[line.tier] = sums.get(line.tier, 0) + line.tokens
        return dict(sorted(sums.items(), key=lambda pair: -pair[1]))

    def __str__(self) -> str:
        from pagein.context.view.report_text import report_lines  # noqa: PLC0415 - loads where a report is printed

        return "\n".join(report_lines(self))

    def _repr_html_(self) -> str:
        from pagein.context.view.report_text import report_html  # noqa: PLC0415 - loads in a notebook

        return report_html(self)


@dataclass(frozen=True)
class View:
    """The request to the model: system prompts, ``front``, the run in order, ``tail``; its tokens and their limit.

    ``front`` has pins, late system prompts and facts that do not move any more. ``tail`` is not part of the run: the
    page-in is rendered behind the run for each request, a facts block keeps the position where it first stood. Views are
    equal when they show the same.
    """

    systems: tuple[ViewEntry, ...]
    front: tuple[ViewEntry, ...]
    run: tuple[ViewEntry, ...]
    head: int
    tokens: int
    limit: int
    counter: TokenCounter = field(compare=False, repr=False)
    tracker: SalienceTracker = field(compare=False, repr=False)
    tail: tuple[ViewEntry, ...] = ()
    whole_limit: int = field(default=0, compare=False)
    """The limit of the whole request, where ``limit`` is what the run may have of it; 0 where they are the same."""
    replaced_texts: Callable[[], Mapping[int, tuple[str, ...]]] = field(default=dict, compare=False, repr=False)
    """Gives the sentences, by position, that the ledger knows to be replaced: no extract repeats them."""
    user_tokens: int = field(default=0, compare=False)
    """Tokens of all that the user said so far, as recorded, without the newest message."""

    extract_worth: float = field(default=0.0, compare=False)
    """Expected needs met per token from which an extract shows a line or a name, by the run's prices."""

    changed_by_hand: frozenset[int] = field(default=frozenset(), compare=False)
    """Positions that the application edited or removed: nothing brings back what they said."""
    edited: frozenset[int] = field(default=frozenset(), compare=False)
    """Those of them that were edited: what holds of their new words stands in the ledger once they left the view."""
    important: frozenset[int] = field(default=frozenset(), compare=False)
    """Positions of the steps in view that are marked as important and stay whole, unless nothing else fits."""
    find_important: Callable[[Sequence[ViewEntry]], frozenset[int]] | None = field(
        default=None, compare=False, repr=False
    )
    """Finds them in the run as it would be: a step that is clipped may fit in then. None where they stay the same."""
    unimportant: frozenset[int] = field(default=frozenset(), compare=False)
    """Positions of the steps in view whose results leave first."""

    tools: Tools = field(default=NO_RULES, compare=False)
    """The rules for the results of tools."""

    @property
    def full_limit(self) -> int:
        """The limit of the whole request."""
        return self.whole_limit or self.limit

    @cached_property
    def entries(self) -> tuple[ViewEntry, ...]:
        """All recorded entries and their replacements, in prompt order."""
        return (*self.systems, *self.front, *self.run)

    @cached_property
    def request_entries(self) -> tuple[ViewEntry, ...]:
        """All entries of the request in its order, the tail's included.

        What failed and what is open stand behind the newest summary: they change where a compaction writes that anew.
        """
        run = list(self.run)
        for entry in reversed(self.tail):
            run.insert(bisect_left(run, entry.first, key=lambda other: other.first), entry)
        front = [entry for entry in self.front if not entry.follows_summaries]
        at = _end_of_summaries(run)
        run[at:at] = [entry for entry in self.front if entry.follows_summaries]
        return (*self.systems, *front, *run)

    @property
    def has_replaced_entries(self) -> bool:
        """True if a step of the run is not shown as recorded."""
        return any(entry.stubs or isinstance(entry.item, SummaryStep) for entry in self.run)

    @property
    def verbatim_positions(self) -> frozenset[int]:
        """The positions that are shown as recorded, or as the application wants them shown."""
        return self.changed_by_hand.union(
            entry.first for entry in self.entries if not entry.stubs and not isinstance(entry.item, SummaryStep)
        )

    @property
    def report(self) -> Report:
        """The report: every token by tier and reason, and what is out of view."""
        lines = [
            ReportLine(entry.handle if entry.first >= 0 else "", entry.tier, entry.tokens, entry.why)
            for entry in self.entries
        ]
        lines.extend(ReportLine("", entry.tier, entry.tokens, entry.why) for entry in self.tail)
        rest = self.tokens - sum(line.tokens for line in lines)
        lines.append(ReportLine("", "request", rest, "what every request costs beside its messages"))
        return Report(self.tokens, self.limit, tuple(lines), tuple(_out_of_view(self.entries)))

    @property
    def has_ending(self) -> bool:
        """True if the request ends with a line of the library's in the user's place."""
        entries = self.request_entries
        return bool(entries) and bool(missing_ending(entries[-1].messages))

    def messages(self) -> tuple[Message, ...]:
        """Return the request's messages, independent of a provider."""
        return lay_out(entry.messages for entry in self.request_entries)

    def with_tail(self, tail: Sequence[ViewEntry]) -> View:
        """Return the view with this tail, its tokens counted."""
        view = replace(self, tail=tuple(tail))
        return replace(view, tokens=request_cost(view.request_entries, self.counter))


def _end_of_summaries(run: Sequence[ViewEntry]) -> int:
    """Return the index behind the newest summary; without one, that of the first entry with a stub."""
    summaries = (at + 1 for at, entry in enumerate(run) if isinstance(entry.item, SummaryStep) and entry.item.content)
    stubbed = (at for at, entry in enumerate(run) if entry.stubs)
    return max(summaries, default=0) or next(stubbed, 0)


def _out_of_view(entries: Iterable[ViewEntry]) -> Iterable[OutOfView]:
    for entry in entries:
        if entry.tier in ("summary", "floor"):
            yield OutOfView(entry.handle, entry.tier, entry.why)
        for stub in entry.stubs:
            handle = f"{entry.handle}.{stub.index}" if stub.slot == "observation" else entry.handle
            yield OutOfView(handle, stub.tier, f"{stub.slot}: {entry.why}")


def request_cost(entries: Sequence[ViewEntry], counter: TokenCounter) -> int:
    """Count the tokens of a request with these entries, including the messages inserted at its ends."""
    entries = [entry for entry in entries if entry.messages]
    first = next((entry.messages for entry in entries if entry.tier != "system"), ())
    ends = (*missing_opening(first), *missing_ending(entries[-1].messages if entries else ()))
    return request_tokens(ends, counter) + sum(entry.tokens for entry in entries)


def important_positions(
    marks: Mapping[int, Importance], tools: Tools, limit: int, task: frozenset[int], run: Sequence[ViewEntry]
) -> frozenset[int]:
    """The positions of the ``task`` and of the important steps of a run, newest first, as many as fit in.

    Those that are marked come first, then those that a tool's rule keeps.
    """
    positions, tokens_left = set(task), int(limit * IMPORTANT_SHARE)
    marked = {position for position, importance in marks.items() if importance == "high"}
    candidates = [entry for entry in reversed(run if marked or tools.keep else ()) if entry.tier != "summary"]
    unmarked = (entry for entry in candidates if entry.first not in marks)
    by_rule = (entry for entry in unmarked if any(map(tools.keeps, getattr(entry.item, "tool_calls", ()))))
    for entry in (*(entry for entry in candidates if entry.first in marked), *by_rule):
        if entry.tokens <= tokens_left:
            tokens_left -= entry.tokens
            positions.add(entry.first)
    return frozenset(positions)


def text_agent_task(run: Sequence[ViewEntry], user_tokens: int, limit: int) -> frozenset[int]:
    """The position of the task, where the model acts in its text: results that look like the user's words would push it out.

    Empty while the user's words are within their share: all of them stay then.
    """
    if user_tokens <= limit * TASK_SHARE:
        return frozenset()
    task = next((entry for entry in run if entry.tier != "pin"), None)
    if task is None or not isinstance(task.item, TaskStep) or task.tokens > limit * TASK_SHARE:
        return frozenset()
    items = (entry.item for entry in run)
    replies = [item for item in items if isinstance(item, ActionStep) and not item.tool_calls]
    acting = sum(TEXT_ACTION.search(as_text(reply.content)) is not None for reply in replies)
    return frozenset({task.first}) if acting * 2 > len(replies) else frozenset()
