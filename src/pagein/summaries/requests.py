"""Requests for a summary: the run quoted as data, in pieces that fit the summarizer's window.

The pieces cover everything that leaves, in order. The instructions are the system message; the quoted texts are in the
user message, inside frames that they cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape

from pagein.context.compaction.clips import head_of
from pagein.errors import ConfigurationError
from pagein.events.handles import range_handle
from pagein.events.messages import Message
from pagein.summaries.renderer import render_summary
from pagein.summaries.sanitize import sanitize_text
from pagein.summaries.spans import QuotedText, Span
from pagein.summaries.summary import Summary
from pagein.summaries.templates import Prompts, fill_template
from pagein.tokens import TokenCounter
from pagein.tokens.counter import request_tokens

PREVIOUS_SHARE = 0.3
"""Share of the tokens for the run that the previous record may use in the prompt; code merges all of it."""

PIECE_TOLERANCE = 1.1
"""Length of the longest piece as a multiple of the mean, so that undivided texts fit into the same number of pieces."""

MIN_RUN_TOKENS = 64
"""Tokens that the window must leave for the run beside the prompt."""

WORDS_PER_TOKEN = 0.6
"""English words for each token of JSON. The prompt's limit of words is a request; the renderer enforces its own."""

NO_PREVIOUS = "(nothing yet)"

_UNSAFE_CHARS = re.compile(r"[^\w.: /-]+")


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """Settings of the requests: prompts, counter, and tokens of the window and of the answer."""

    prompts: Prompts
    counter: TokenCounter
    window: int
    output_tokens: int = 2_000

    @property
    def max_request_tokens(self) -> int:
        """Maximum tokens of a request."""
        return self.window - self.output_tokens


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """The messages of one request, and the piece of the span it is about."""

    messages: tuple[Message, ...]
    span: Span


def build_requests(span: Span, settings: PromptSettings, previous: Summary | None = None) -> tuple[SummaryRequest, ...]:
    """Build the requests whose merged answers summarize the span: one if it fits the window, else one for each piece.

    Each has at most ``settings.max_request_tokens`` tokens. Raises ConfigurationError if the window leaves no room for
    the run.
    """
    previous_text = NO_PREVIOUS
    if previous is not None and not previous.is_empty:
        max_tokens = int(_tokens_for_run(settings, NO_PREVIOUS) * PREVIOUS_SHARE)
        previous_text = (
            render_summary(previous, max_tokens, settings.counter, handle=range_handle(0, max(1, span.first)))
            or NO_PREVIOUS
        )
    pieces = _split_evenly(span, _tokens_for_run(settings, previous_text), settings.counter)
    requests = []
    for number, piece in enumerate(pieces, 1):
        run, part, parts = "\n".join(map(_render_quote, piece.texts)), str(number), str(len(pieces))
        messages = _render_messages(settings, "summarise", run, piece.handle, previous_text, part, parts)
        requests.append(SummaryRequest(messages, piece))
    return tuple(requests)


def _split_evenly(span: Span, tokens: int, counter: TokenCounter) -> tuple[Span, ...]:
    """Split into as few pieces as possible, of similar length: a record of a short last piece would not be shorter."""
    pieces = split_span(span, tokens, counter)
    if len(pieces) < 2:
        return pieces
    total = sum(_quote_tokens(quoted, counter) for piece in pieces for quoted in piece.texts)
    even = split_span(span, min(tokens, int(total / len(pieces) * PIECE_TOLERANCE)), counter)
    return even if len(even) == len(pieces) else pieces


def build_resume_message(span: Span, settings: PromptSettings) -> Message:
    """Build the user message that asks for the record of the span after the conversation itself.

    For the run's own model, which has the conversation in its cache.
    """
    return _render_messages(settings, "resume", "", span.handle)[-1]


def _render_messages(
    settings: PromptSettings, name: str, run: str, handle: str, previous: str = "", part: str = "1", parts: str = "1"
) -> tuple[Message, ...]:
    words = str(max(50, int(settings.output_tokens * WORDS_PER_TOKEN)))
    values = {
        "shape": fill_template(settings.prompts.shape, {"words": words}),
        "words": words,
        "previous": previous,
        "handle": handle,
        "part": part,
        "parts": parts,
        "run": run,
    }
    text: str = getattr(settings.prompts, name)
    return Message("system", settings.prompts.system), Message("user", fill_template(text, values))


def _tokens_for_run(settings: PromptSettings, previous: str) -> int:
    """Tokens that a request leaves for the run, with the longest handle and numbers."""
    empty = _render_messages(settings, "summarise", "", "s" + "9" * 9 + "-" + "9" * 9, previous, "9999", "9999")
    tokens_left = settings.max_request_tokens - request_tokens(empty, settings.counter) - 8
    if tokens_left < MIN_RUN_TOKENS:
        raise ConfigurationError(
            f"a window of {settings.window} tokens less {settings.output_tokens} for the answer leaves {tokens_left} for the run beside "
            f"the prompt; the summarizer needs {MIN_RUN_TOKENS} at least"
        )
    return tokens_left


def split_span(span: Span, tokens: int, counter: TokenCounter) -> tuple[Span, ...]:
    """Split the span into pieces of at most ``tokens`` tokens when quoted; long texts are split too.

    The texts of the pieces, joined again, are those of the span.
    """
    pieces: list[list[QuotedText]] = [[]]
    tokens_left = tokens
    for quoted in span.texts:
        for part in _split_text(quoted, tokens, counter):
            cost = _quote_tokens(part, counter)
            if cost > tokens_left and pieces[-1]:
                pieces.append([])
                tokens_left = tokens
            pieces[-1].append(part)
            tokens_left -= cost
    if not pieces[0]:
        return (Span(span.first, span.last),)
    # The pieces cover the span without a gap; a text that was split is in both of its pieces' ranges.
    starts = [span.first, *(_position(piece[0], span) for piece in pieces[1:]), span.last]
    ends = (max(end, _position(piece[-1], span) + 1) for piece, end in zip(pieces, starts[1:], strict=True))
    return tuple(
        Span(first, min(end, span.last), tuple(piece)) for first, end, piece in zip(starts, ends, pieces, strict=False)
    )


def _split_text(quoted: QuotedText, tokens: int, counter: TokenCounter) -> Iterator[QuotedText]:
    """Yield the text undivided if it fits into a piece, else in parts cut at line ends where possible."""
    if _quote_tokens(quoted, counter) <= tokens:
        yield quoted
        return
    rest = quoted
    while rest.text:
        size = _fitting_chars(rest, tokens, counter)
        yield replace(rest, text=rest.text[:size])
        rest = replace(rest, text=rest.text[size:], offset=rest.offset + size)


def _fitting_chars(quoted: QuotedText, tokens: int, counter: TokenCounter) -> int:
    """Number of characters that fit when quoted, at least one."""
    frame = _quote_tokens(replace(quoted, text=""), counter)
    size = len(head_of(quoted.text, tokens - frame, counter))
    while size > 1 and _quote_tokens(replace(quoted, text=quoted.text[:size]), counter) > tokens:
        size = int(size * 0.85)  # escaping makes some texts longer
    if size < 1:
        raise ConfigurationError(f"{tokens} tokens are too few to quote {quoted.handle}")
    return size


def _position(quoted: QuotedText, span: Span) -> int:
    digits = re.match(r"s(\d+)", quoted.handle)
    return int(digits[1]) if digits else span.first


def _render_quote(quoted: QuotedText) -> str:
    """Render one text inside a frame that it cannot close."""
    about = (
        f' of="{escape(_UNSAFE_CHARS.sub(" ", sanitize_text(quoted.about))[:80])}"'
        if quoted.speaker == "result" and quoted.about
        else ""
    )
    tool = (
        f' tool="{escape(_UNSAFE_CHARS.sub(" ", quoted.about.split(":")[0])[:60])}"' if quoted.speaker == "call" else ""
    )
    failed = ' failed="yes"' if quoted.failed else ""
    more = ' continued="yes"' if quoted.offset else ""
    head = f'<pagein-step handle="{quoted.handle}" by="{quoted.speaker}"{tool}{about}{failed}{more}>'
    return f"{head}\n{sanitize_text(quoted.text)}\n</pagein-step>"


def _quote_tokens(quoted: QuotedText, counter: TokenCounter) -> int:
    return counter.text(_render_quote(quoted)) + 1
