"""The course of a job: what the model is asked, tile by tile, and what its answers are held against. Pure."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from pagein.errors import PageinError
from pagein.events.handles import range_handle
from pagein.models.base import Ask, Reply
from pagein.models.errors import ModelError, ModelOverflow
from pagein.summaries.fidelity import verified
from pagein.summaries.job import Author, Job, Outcome, Tile, Written
from pagein.summaries.merge import merged_all
from pagein.summaries.reply_parser import parsed
from pagein.summaries.requests import Asking, Request, map_requests, resume_message
from pagein.summaries.spans import Span
from pagein.summaries.summary import Summary
from pagein.tokens.requests import request_tokens

SHRINKS = 3
"""Times a request that overflowed is asked again in smaller pieces; never as it was."""

SHRUNK, KEPT = 0.7, 0.95
"""Shares of a request that overflowed which the next one may have; of what its provider said it holds, where it did."""

REPAIRS = 400
"""Tokens of the record for what the model left out, beside rules, which are all put back."""

Course = Generator[Ask, Reply, Outcome]
"""A job on its way: asks to send, and in the end what came of it."""


def write(job: Job, author: Author) -> Course:
    """What comes of the job. A tile that is refused is left out; an error of the model ends the job, never raises."""
    written: list[Written] = []
    problem: Exception | None = None
    for tile in job.tiles:
        try:
            written.append((yield from _tile(tile, job, author)))
        except PageinError as error:
            problem = error
            if isinstance(error, ModelError):
                break
    return Outcome(tuple(written), problem)


def _tile(tile: Tile, job: Job, author: Author) -> Generator[Ask, Reply, Written]:
    asking = author.asking
    for shrink in range(SHRINKS + 1):
        requests = _requests(tile, job, asking, alone=shrink > 0)
        parts: list[Summary] = []
        try:
            for request in requests:
                part = yield from _part(request, tile, job, author)
                parts.append(part)
            break
        except ModelOverflow as error:
            if shrink == SHRINKS:
                raise
            asking = _smaller(asking, requests[len(parts)], error)
    found = verified(
        merged_all(parts), tile.span, REPAIRS, counter=job.counter, pins=job.pins, previous=tile.previous,
        handle=range_handle(tile.first, tile.last),
    )  # fmt: skip
    return Written(tile.first, tile.last, found.summary)


def _requests(tile: Tile, job: Job, asking: Asking, *, alone: bool) -> tuple[Request, ...]:
    """What is asked about the tile's span: at the conversation's end where that fits, else piece by piece."""
    behind = None if alone else _behind(tile.span, job, asking)
    return map_requests(tile.span, asking, tile.previous) if behind is None else (behind,)


def _part(request: Request, tile: Tile, job: Job, author: Author) -> Generator[Ask, Reply, Summary]:
    reply = yield Ask(request.messages, author.asking.output, author.timeout)
    return parsed(
        reply.text, request.span, author=author.name, counter=job.counter, heard=job.heard,
        truncated=reply.finish == "length", first=tile.first,
    )  # fmt: skip


def _smaller(asking: Asking, request: Request, error: ModelOverflow) -> Asking:
    """Asking in requests that are shorter than the one that overflowed, however long its provider counted it."""
    sent = request_tokens(request.messages, asking.counter)
    holds, asked = error.window or 0, error.asked or 0
    share = KEPT * holds / asked if 0 < holds < asked else SHRUNK
    window = int(sent * share) + asking.output
    return replace(asking, window=min(window, error.window or window))


def _behind(span: Span, job: Job, asking: Asking) -> Request | None:
    """The request at the conversation's end, which starts with what the model's cache has; None where it has not."""
    if not job.conversation:
        return None
    messages = (*job.conversation, resume_message(span, asking))
    return Request(messages, span) if request_tokens(messages, asking.counter) <= asking.room else None
