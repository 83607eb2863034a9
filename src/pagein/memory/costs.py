"""The account of a run's requests: their price, and what each compaction and page-in cost and saved, from the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pagein.context.costs import CostLine, ProviderCost, RunCost, WriterCost
from pagein.context.worth import NEED_WORTH
from pagein.events.handles import step_handle
from pagein.tokens.prices import Prices

if TYPE_CHECKING:
    from pagein.memory.requests import RequestRecord, RequestUsage

CACHE_WARNING_SHARE = 0.5
"""Share of the tokens that stood unchanged below which a provider that read fewer from its cache is warned of. Providers
cache in blocks, and a cache may miss; their tokens are not ours, either."""

CACHE_WARNING_REQUESTS = 3
"""Requests with an unchanged prefix and a known usage from which on there is a warning."""

_BESIDE = ("recalled", "facts", "ledger", "request")
"""Tiers that are no part of the run."""


@dataclass(slots=True)
class _OpenLine:
    """A line that goes on: each request adds the price of its tokens, as a saving or as a cost.

    ``since`` and ``until`` are the prices of a token in all requests before the line began, and until it ended.
    """

    line: CostLine
    since: float
    until: float | None = None

    def close(self, now: float) -> CostLine:
        """The line as it stands."""
        price = self.line.tokens * ((now if self.until is None else self.until) - self.since)
        if self.line.kind == "compaction":
            return replace(self.line, saved=price)
        return replace(self.line, cost=self.line.cost + price)


@dataclass(slots=True)
class _CacheCheck:
    """The tokens that stood unchanged in the requests whose usage is known, and those that the provider read."""

    requests: int = 0
    expected: float = 0.0
    read: int = 0

    def warning(self) -> str:
        """Say where the provider read clearly less than what stood; "" where it did not."""
        if self.requests < CACHE_WARNING_REQUESTS or self.read >= CACHE_WARNING_SHARE * self.expected:
            return ""
        return (
            f"the provider read {self.read:,} tokens from its cache in {self.requests:,} requests in which about "
            f"{self.expected:,.0f} stood unchanged. Is its prompt cache on, as by cache_control at Anthropic, and do tools "
            f'and system prompt stay the same? For a provider without one, set prices="none"'
        )


@dataclass(slots=True)
class CostAccount:
    """The account of the requests added so far, at these prices. Adding one costs the same however long the run is."""

    prices: Prices
    _cost: RunCost = field(default_factory=RunCost)
    _last: RequestRecord | None = None
    _last_whole: RequestRecord | None = None
    """The last request without a filter."""
    _compactions: list[_OpenLine] = field(default_factory=list)
    _page_ins: list[_OpenLine] = field(default_factory=list)
    _standing: dict[int, _OpenLine] = field(default_factory=dict)
    """The page-ins of the last request, by head."""
    _left_price: float = 0.0
    """The price of a token in all requests so far, had it stayed in the run."""
    _shown_price: float = 0.0
    """The price of a token that stands in all requests so far."""
    _check: _CacheCheck = field(default_factory=_CacheCheck)

    def cost_with(self, record: RequestRecord | None) -> RunCost:
        """The cost of the requests so far and one more, which is not added."""
        if record is not None:
            account = self._copy()
            account.add(record)
            return account.cost_with(None)
        lines = [line.close(self._left_price) for line in self._compactions]
        lines += [line.close(self._shown_price) for line in self._page_ins]
        lines.sort(key=lambda line: (line.request, line.kind))
        return replace(self._cost, lines=tuple(lines), warning=self._check.warning())

    def _copy(self) -> CostAccount:
        page_ins = [replace(line) for line in self._page_ins]
        copies = {id(old): new for old, new in zip(self._page_ins, page_ins, strict=True)}
        return replace(
            self, _compactions=[replace(line) for line in self._compactions], _page_ins=page_ins,
            _standing={head: copies[id(line)] for head, line in self._standing.items()}, _check=replace(self._check),
        )  # fmt: skip

    def add(self, record: RequestRecord) -> None:
        """Add the next request."""
        seconds = 0.0 if self._last is None else max(0.0, record.at - self._last.at)
        cached = self.prices.cached_tokens(self._prefix(record), seconds, record.model)
        before = self._last_whole if _is_whole(record) else None
        before = before if before is not None and before.branch == record.branch else None
        whole = _whole_tokens(record)
        stood = 0 if before is None else min(whole, _whole_tokens(before))
        stood = self.prices.cached_tokens(stood, seconds, record.model)
        if _is_whole(record):
            self._compare(record, before, seconds)
        self._left_price += self.prices.cached if stood else self.prices.written
        self._shown_price += self.prices.cached if cached else self.prices.written
        if _is_whole(record):
            self._note_page_ins(record)
            self._last_whole = record
        output, cost = (0 if record.usage is None else record.usage.output), self._cost
        self._cost = replace(
            cost,
            requests=cost.requests + 1,
            tokens=cost.tokens + record.tokens,
            cached=cost.cached + cached,
            output=cost.output + output,
            price=cost.price + self.prices.price(record.tokens, cached, output),
            price_whole=cost.price_whole + self.prices.price(whole, stood, output),
        )
        if record.usage is not None:
            self._add_usage(record.usage, cached)
        if record.writers:
            self._add_writers(record.writers)
        self._last = record

    def _prefix(self, record: RequestRecord) -> int:
        """The tokens that a request begins with as the one before did.

        The first one after opening was compared with none. Between two compactions it begins with the whole one before.
        """
        last = self._last
        if last is None or record.prefix or record.broke:
            return record.prefix
        heads = {page_in.head for page_in in record.page_ins}
        goes_on = (last.branch, last.format, last.compactions) == (record.branch, record.format, record.compactions)
        if not goes_on or not all(map(_is_whole, (last, record))) or any(by.head not in heads for by in last.page_ins):
            return 0
        return min(record.tokens, last.tokens - last.tiers.get("request", 0))

    def _compare(self, record: RequestRecord, before: RequestRecord | None, seconds: float) -> None:
        """Begin the line of a compaction, and end those of page-ins that left, compared with the request before."""
        heads = {page_in.head for page_in in record.page_ins}
        leaving = [self._standing.pop(head) for head in list(self._standing) if head not in heads]
        for open_line in leaving:
            open_line.until = self._shown_price
        if before is None:
            return
        rewritten = record.rewritten if self.prices.cached_tokens(before.tokens, seconds, record.model) else 0
        self._cost = replace(self._cost, rewritten=self._cost.rewritten + rewritten)
        price = rewritten * (self.prices.written - self.prices.cached)
        if record.compactions > before.compactions:
            shed = max(0, _out_of_view(record) - _out_of_view(before))
            line = CostLine("compaction", record.number, record.broke, record.broke_why, shed, rewritten, price, 0.0)
            self._compactions.append(_OpenLine(line, self._left_price))
            self._cost = replace(self._cost, shed=self._cost.shed + shed)
        elif record.compactions < before.compactions and self._compactions:
            self._compactions[-1].until = self._left_price  # it was undone
        elif leaving:
            left = leaving[0]
            left.line = replace(left.line, rewritten=rewritten, cost=left.line.cost + price)

    def _note_page_ins(self, record: RequestRecord) -> None:
        """Note the page-ins that were used, and begin the lines of new ones: these cost their tokens, which no cache has yet."""
        for head in record.used:
            if head in self._standing:
                used = self._standing[head]
                used.line = replace(used.line, saved=used.line.saved + NEED_WORTH)
        new = [page_in for page_in in record.page_ins if page_in.head not in self._standing]
        tokens = record.tiers.get("recalled", 0) - sum(line.line.tokens for line in self._standing.values())
        for page_in in new:
            share = max(0, tokens) // len(new)
            handle, price = step_handle(page_in.head), share * self.prices.written
            line = CostLine("page-in", record.number, handle, page_in.why, share, 0, price, 0.0)
            self._standing[page_in.head] = _OpenLine(line, self._shown_price)
            self._page_ins.append(self._standing[page_in.head])

    def _add_usage(self, usage: RequestUsage, cached: int) -> None:
        known = self._cost.provider
        provider = ProviderCost(
            known.requests + 1,
            known.input + usage.input,
            known.output + usage.output,
            known.cache_read + usage.cache_read,
            known.cache_written + usage.cache_written,
            known.price + self._reported_price(usage),
        )
        self._cost = replace(self._cost, provider=provider)
        if cached:
            self._check.requests += 1
            self._check.expected += min(cached, usage.input)
            self._check.read += usage.cache_read

    def _add_writers(self, spent: Mapping[str, tuple[int, int]]) -> None:
        """Add what writers spent; of what they read no cache is known."""
        known = {writer.purpose: (writer.input, writer.output) for writer in self._cost.writers}
        writers = (
            WriterCost(purpose, read, wrote, read + wrote * self.prices.output)
            for purpose, (read, wrote) in sorted(add_spent(known, spent).items())
        )
        self._cost = replace(self._cost, writers=tuple(writers))

    def _reported_price(self, usage: RequestUsage) -> float:
        """The price of a reported usage. Where it says what was written to the cache, the rest is plain input."""
        rest = usage.input - usage.cache_read - usage.cache_written
        plain = 1.0 if usage.cache_written else self.prices.written
        return (
            usage.cache_read * self.prices.cached
            + usage.cache_written * self.prices.written
            + rest * plain
            + usage.output * self.prices.output
        )


def add_spent(one: Mapping[str, tuple[int, int]], other: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Add tokens read and written by purpose."""
    sums = dict(one)
    for purpose, (read, wrote) in other.items():
        before = sums.get(purpose, (0, 0))
        sums[purpose] = (before[0] + read, before[1] + wrote)
    return sums


def _is_whole(record: RequestRecord) -> bool:
    """True for a request that was not filtered."""
    return record.filter == type(record.filter)()


def _whole_tokens(record: RequestRecord) -> int:
    """The tokens of the request with everything in it, as far as they are known."""
    if not record.recorded or not _is_whole(record):
        return record.tokens
    return record.recorded + record.tiers.get("request", 0)


def _out_of_view(record: RequestRecord) -> int:
    """The tokens of the run that a request does not have."""
    return record.recorded - record.tokens + sum(record.tiers.get(tier, 0) for tier in _BESIDE)
