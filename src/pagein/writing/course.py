"""The course of a job: what the model is asked, tile by tile, and what its answers are held against. Pure."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from pagein.errors import PageinError
from pagein.models.contract import Ask, Reply
from pagein.models.errors import ModelError, ModelOverflow
from pagein.summaries.fidelity import verified
from pagein.summaries.merging import merged_all
from pagein.summaries.parsing import parsed
from pagein.summaries.prompting import Asking, Request, map_requests, resume_message
from pagein.summaries.spans import Span
from pagein.summaries.summary import Summary
from pagein.tokens.requests import request_tokens
from pagein.view.handles import range_handle
from pagein.writing import Author, Job, Outcome, Tile, Written

SHRINKS = 3
"""Times a request that overflowed is asked again in smaller pieces; never as it was."""

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
        try:
            parts = yield from _parts(tile, job, replace(author, asking=asking), alone=shrink > 0)
            break
        except ModelOverflow as error:
            if shrink == SHRINKS:
                raise
            asking = replace(asking, window=min(error.window or asking.window, int(asking.window * 0.7)))
    found = verified(
        merged_all(parts), tile.span, REPAIRS, counter=job.counter, pins=job.pins, previous=tile.previous,
        handle=range_handle(tile.first, tile.last),
    )  # fmt: skip
    return Written(tile.first, tile.last, found.summary)


def _parts(tile: Tile, job: Job, author: Author, *, alone: bool) -> Generator[Ask, Reply, list[Summary]]:
    """One summary a piece of the tile's span, in order."""
    asking = author.asking
    behind = None if alone else _behind(tile.span, job, asking)
    requests = (behind,) if behind is not None else map_requests(tile.span, asking, tile.previous)
    parts = []
    for request in requests:
        reply = yield Ask(request.messages, asking.output, author.timeout)
        parts.append(
            parsed(
                reply.text, request.span, author=author.name, counter=job.counter, heard=job.heard,
                truncated=reply.finish == "length", first=tile.first,
            )
        )  # fmt: skip
    return parts


def _behind(span: Span, job: Job, asking: Asking) -> Request | None:
    """The request at the conversation's end, which starts with what the model's cache has; None where it has not."""
    if not job.conversation:
        return None
    messages = (*job.conversation, resume_message(span, asking))
    return Request(messages, span) if request_tokens(messages, asking.counter) <= asking.room else None
