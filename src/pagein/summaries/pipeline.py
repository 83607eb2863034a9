"""The steps of a summary job, range by range: requests to the model, and verification of its answers. No I/O."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace

from pagein.errors import ConfigurationError, PageinError
from pagein.events.handles import range_handle
from pagein.events.identifiers import argument_text
from pagein.models.base import ModelRequest, ModelResponse
from pagein.models.errors import ModelError, ModelOverflow
from pagein.models.writer_account import account_for, is_own_pause
from pagein.summaries.fidelity import verify_summary
from pagein.summaries.job import JobOutcome, Summarizer, SummaryJob, SummaryRange, SummaryRecord
from pagein.summaries.merge import merge_all
from pagein.summaries.renderer import render_item
from pagein.summaries.reply_parser import REPLY_SCHEMA, parse_reply, remove_invented
from pagein.summaries.requests import PromptSettings, SummaryRequest, build_requests, build_resume_message
from pagein.summaries.spans import Span
from pagein.summaries.summary import Summary
from pagein.tokens.counter import request_tokens

MAX_SHRINKS = 3
"""Times a request that overflowed is repeated in smaller pieces."""

SHRUNK_SHARE, NAMED_WINDOW_SHARE = 0.7, 0.95
"""Sizes of the next request after an overflow: share of the last one, and share of the window if the error names it."""

REPAIR_TOKENS = 400
"""Tokens of a record for repairs from the source. Rules are always restored and do not count."""

JobFlow = Generator[ModelRequest, ModelResponse, JobOutcome]
"""Flow of a job: yields requests to send, and returns the outcome."""


def run_job(job: SummaryJob, summarizer: Summarizer) -> JobFlow:
    """Run the job. A rejected range is left out; a model error ends the job. Errors are returned, not raised."""
    records: list[SummaryRecord] = []
    problem: Exception | None = None
    for part in job.ranges:
        try:
            with account_for(job.account, summarizer.name):
                records.append((yield from _summarize_range(part, job, summarizer)))
        except PageinError as error:
            # A pause only says that other errors came before it.
            problem = problem if problem is not None and is_own_pause(error) else error
            if isinstance(error, ModelError):
                break
    return JobOutcome(tuple(records), problem)


def _summarize_range(
    part: SummaryRange, job: SummaryJob, summarizer: Summarizer
) -> Generator[ModelRequest, ModelResponse, SummaryRecord]:
    settings = summarizer.settings
    overflow: ModelOverflow | None = None
    for shrinks in range(MAX_SHRINKS + 1):
        # After the conversation if it fits, else piece by piece.
        resume = _resume_request(part.span, job, settings) if shrinks == 0 else None
        try:
            requests = (resume,) if resume else build_requests(part.span, settings, part.previous)
        except ConfigurationError as error:
            raise overflow or error from None
        summaries: list[Summary] = []
        try:
            for request in requests:
                response = yield ModelRequest(
                    request.messages, summarizer.settings.output_tokens, summarizer.timeout, REPLY_SCHEMA
                )
                summaries.append(parse_reply(
                    response.text, request.span, author=summarizer.name, counter=job.counter,
                    trusted_texts=job.trusted_texts, truncated=response.finish == "length", first=part.first,
                ))  # fmt: skip
            break
        except ModelOverflow as error:
            overflow = error
            if shrinks == MAX_SHRINKS:
                raise
            settings = _shrink_settings(settings, requests[len(summaries)], error)
    verified = verify_summary(
        remove_invented(merge_all(summaries), _known_texts(part, job)), part.span, REPAIR_TOKENS, counter=job.counter, pins=job.pins, previous=part.previous,
        handle=range_handle(part.first, part.last),
    )  # fmt: skip
    return SummaryRecord(part.first, part.last, verified.summary)


def _known_texts(part: SummaryRange, job: SummaryJob) -> Iterator[str]:
    """Every text that the model may have its names and numbers from."""
    for quoted in part.span.texts:
        yield quoted.about
        yield argument_text(quoted.text) if quoted.speaker == "call" else quoted.text
    if part.previous is not None:
        yield from (render_item(item) for _, item in part.previous.entries())
    yield from (*job.trusted_texts, *job.pins, *(str(message.content) for message in job.conversation))


def _shrink_settings(settings: PromptSettings, request: SummaryRequest, error: ModelOverflow) -> PromptSettings:
    """Return settings for requests shorter than the one that overflowed, whatever the provider counted."""
    request_size = request_tokens(request.messages, settings.counter)
    window_named, requested = error.window or 0, error.requested or 0
    share = NAMED_WINDOW_SHARE * window_named / requested if 0 < window_named < requested else SHRUNK_SHARE
    window = int(request_size * share) + settings.output_tokens
    return replace(settings, window=min(window, error.window or window))


def _resume_request(span: Span, job: SummaryJob, settings: PromptSettings) -> SummaryRequest | None:
    """Build the request after the conversation, whose prefix the model has cached; None if there is none or no room."""
    if not job.conversation:
        return None
    messages = (*job.conversation, build_resume_message(span, settings))
    fits = request_tokens(messages, settings.counter) <= settings.max_request_tokens
    return SummaryRequest(messages, span) if fits else None
