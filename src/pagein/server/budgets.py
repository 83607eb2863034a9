"""Budgets of requests: the window of a model, less what the request has beside its messages and leaves for the answer."""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagein.models.overflow import Overflow
from pagein.server.wire import WireProtocol, output_tokens
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.budget import RequestRoom
from pagein.tokens.windows import MODELS

REFUSED_SHARE = 0.75
"""Share of the tokens of a refused request that the next one may have, where the provider names no window."""

NAMED_WINDOW_SHARE = 0.98
"""Share of the window that a provider named that the next request may have."""

OUTPUT_MAX_SHARE, OUTPUT_SHARE = 0.5, 0.25
"""A request that leaves more than the first share of its window for the answer leaves the second: clients ask for the
most that a model can write, whatever window it has."""

PICTURE_TOKENS = 3_000
"""Tokens that a picture counts for: about twice what most models charge for the largest. Where a model charges more and
refuses the request, it gets a view."""

_PICTURE = re.compile(r'"(?:data:image/[\w.+-]+;base64,)?(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR)[A-Za-z0-9+/=]*"')
"""A picture in JSON: base64 that begins as PNG, JPEG, GIF or WebP does."""

MIN_VIEW_TOKENS = 256
MAX_COUNTS = 1_024


@dataclass(slots=True)
class WindowTable:
    """The windows of models: the one that was set for all, those that providers named, else those of the table."""

    fixed: int | None = None
    learnt: dict[tuple[str, str], int] = field(default_factory=dict)
    """By upstream and model, in tokens as they are counted here."""

    def window(self, upstream: str, model: str) -> int:
        """The window of a model of an upstream."""
        window = self.fixed or MODELS.get(model).window
        return min(window, self.learnt.get((upstream, model), window))

    def learn(self, upstream: str, model: str, overflow: Overflow, *, counted: int, output: int, assumed: int) -> int:
        """Learn from an overflow of a request of ``counted`` tokens, and return the new window.

        ``output`` are the tokens that the budget leaves for the answer; ``assumed`` is the window that the request was made for.
        """
        window = self.window(upstream, model)
        if overflow.window is not None:
            window = min(window, overflow.window)
        if overflow.window is not None and overflow.requested and overflow.requested > overflow.window:
            # The provider counts otherwise: what it takes, in tokens as they are counted here.
            taken = int(counted * overflow.window / overflow.requested * NAMED_WINDOW_SHARE)
            window = min(window, taken + output)
        elif assumed <= window:  # else another refusal has made the window smaller since
            window = int(min(counted, window - output) * REFUSED_SHARE) + output
        self.learnt[upstream, model] = max(1, window)
        return self.learnt[upstream, model]


@dataclass(slots=True)
class BesideCounts:
    """Counts of what stands beside the messages, most of which is the same in every request of a run."""

    _counts: OrderedDict[tuple[int, str], int] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, protocol: WireProtocol, body: Mapping[str, Any], counter: TokenCounter) -> int:
        """Count the tokens of the request beside its messages."""
        return sum(
            self._count(json.dumps(body[key], ensure_ascii=False), counter) for key in protocol.beside if body.get(key)
        )

    def _count(self, text: str, counter: TokenCounter) -> int:
        key = (hash(text), counter.name)
        with self._lock:
            count = self._counts.get(key)
        if count is None:
            count = counter.text(text)
            with self._lock:
                self._counts[key] = count
                if len(self._counts) > MAX_COUNTS:
                    self._counts.popitem(last=False)
        return count


def count_rows(rows: Sequence[Any], counter: TokenCounter) -> int:
    """Count the tokens of messages as they are sent: their JSON, and so many for each picture in it."""
    text, pictures = _PICTURE.subn('""', json.dumps(rows, ensure_ascii=False))
    return counter.text(text) + pictures * PICTURE_TOKENS


def reserved_output(protocol: WireProtocol, body: Mapping[str, Any], model: str, window: int) -> int:
    """The tokens that a request leaves for its answer."""
    output = output_tokens(protocol, body) or min(MODELS.get(model).reserve, int(window * OUTPUT_SHARE))
    return output if output <= window * OUTPUT_MAX_SHARE else int(window * OUTPUT_SHARE)


def request_room(
    protocol: WireProtocol, body: Mapping[str, Any], model: str, window: int, beside: int, *, kept_free: int = 0
) -> RequestRoom:
    """The tokens that a request needs beside its messages: what the model reads with them, and the answer.

    At least ``kept_free`` tokens of the window stay free.
    """
    output = max(reserved_output(protocol, body, model, window), kept_free)
    return RequestRoom(max(0, min(output, window - beside - MIN_VIEW_TOKENS)), beside)


def window_budget(window: int, counter: TokenCounter) -> Budget:
    """The budget of all requests to a window."""
    return Budget(window, margin=0.05 if counter.margin > 0.02 else 0.02)
