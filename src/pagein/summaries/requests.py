"""The requests a model answers with a summary: the run quoted as data, in pieces that fit the summariser's window.

Everything that leaves is in one of the pieces, in order, never only the newest part. The instructions are the system
message; what others wrote stands in the user's message, inside frames it cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from pagein.context.compaction.policies.clip import head_of
from pagein.errors import ConfigurationError
from pagein.events.handles import range_handle
from pagein.events.messages import Message
from pagein.summaries.renderer import rendered
from pagein.summaries.sanitize import inert
from pagein.summaries.spans import Said, Span
from pagein.summaries.summary import Summary
from pagein.summaries.templates import Prompts, filled
from pagein.tokens import TokenCounter
from pagein.tokens.requests import request_tokens

PREVIOUS = 0.3
"""Share of the summariser's room that the previous record may take; by code it is merged whole."""

EVEN = 1.1
"""Times the mean by which a piece may be longer, so that whole texts fit into as many pieces."""

LEAST_ROOM = 64
"""Tokens of a run under which a window is too small to summarise anything with."""

WORDS_A_TOKEN = 0.6
"""Words of English to a token of JSON; the limit told to the model is a wish, the renderer's is kept."""

NONE = "(nothing yet)"

_POSITION = re.compile(r"[^\w.: /-]+")


@dataclass(frozen=True, slots=True)
class Asking:
    """What a summariser is asked with: its prompts and counter, its ``window``, and tokens for its answer, ``output``."""

    prompts: Prompts
    counter: TokenCounter
    window: int
    output: int = 2_000

    @property
    def room(self) -> int:
        """Tokens a request may have."""
        return self.window - self.output


@dataclass(frozen=True, slots=True)
class Request:
    """One request, and the piece of the span it is about."""

    messages: tuple[Message, ...]
    span: Span


def map_requests(span: Span, asking: Asking, previous: Summary | None = None) -> tuple[Request, ...]:
    """The requests whose answers, merged, stand for the span: one where it fits the window, else one a piece.

    Each is within ``asking.room``, and the pieces together are the span. Raises ConfigurationError where the window
    leaves no room for a run.
    """
    told = NONE
    if previous is not None and not previous.is_empty:
        most = int(_room(asking, NONE) * PREVIOUS)
        told = rendered(previous, most, asking.counter, handle=range_handle(0, max(1, span.first))) or NONE
    pieces = _even_pieces(span, _room(asking, told), asking.counter)
    total = str(len(pieces))
    return tuple(
        Request(_asked(asking, "summarise", _quoted(piece), piece.handle, told, str(number), total), piece)
        for number, piece in enumerate(pieces, 1)
    )


def _even_pieces(span: Span, room: int, counter: TokenCounter) -> tuple[Span, ...]:
    """As few pieces as the room allows, of about one length: of a short last piece no record is shorter than it."""
    pieces = pieces_of(span, room, counter)
    if len(pieces) < 2:
        return pieces
    whole = sum(_cost(each, counter) for piece in pieces for each in piece.said)
    even = pieces_of(span, min(room, int(whole / len(pieces) * EVEN)), counter)
    return even if len(even) == len(pieces) else pieces


def reduce_requests(parts: Sequence[tuple[Span, Summary]], asking: Asking) -> tuple[Request, ...]:
    """The requests that make one record of several, oldest first; ask again with the answers until there is one.

    Each is within ``asking.room`` and joins two parts at least, so that it ends. A part too long for its place is cut
    by importance; merging by code (``merged_all``) needs no model and cuts nothing.
    """
    room = _room(asking, "", name="reduce")
    groups: list[list[tuple[Span, str]]] = []
    left = 0
    for span, summary in parts:
        text = rendered(summary, room // 2 - LEAST_ROOM // 2, asking.counter, handle=span.handle)
        block = _frame(Said(span.handle, "summary", text))
        cost = asking.counter.text(block) + 1
        if not groups or (cost > left and len(groups[-1]) > 1):
            groups.append([])
            left = room
        groups[-1].append((span, block))
        left -= cost
    return tuple(_reduction(group, asking) for group in groups)


def _reduction(group: Sequence[tuple[Span, str]], asking: Asking) -> Request:
    spans = [span for span, _ in group]
    whole = Span(spans[0].first, spans[-1].last, tuple(each for span in spans for each in span.said))
    run = "\n".join(block for _, block in group)
    return Request(_asked(asking, "reduce", run, whole.handle), whole)


def resume_message(span: Span, asking: Asking) -> Message:
    """The user's message that asks, behind the conversation itself, for the record of the span.

    For the model that holds the conversation: the request then starts with what its cache has.
    """
    return _asked(asking, "resume", "", span.handle)[-1]


def _asked(
    asking: Asking, name: str, run: str, handle: str, previous: str = "", part: str = "1", parts: str = "1"
) -> tuple[Message, ...]:
    words = str(max(50, int(asking.output * WORDS_A_TOKEN)))
    values = {
        "shape": filled(asking.prompts.shape, {"words": words}),
        "words": words,
        "previous": previous,
        "handle": handle,
        "part": part,
        "parts": parts,
        "run": run,
    }
    text: str = getattr(asking.prompts, name)
    return Message("system", asking.prompts.system), Message("user", filled(text, values))


def _room(asking: Asking, previous: str, *, name: str = "summarise") -> int:
    """Tokens that the request leaves for the run, the widest handle and number assumed."""
    empty = _asked(asking, name, "", "s" + "9" * 9 + "-" + "9" * 9, previous, "9999", "9999")
    room = asking.room - request_tokens(empty, asking.counter) - 8
    if room < LEAST_ROOM:
        raise ConfigurationError(
            f"a window of {asking.window} tokens less {asking.output} for the answer leaves {room} for the run beside "
            f"the prompt; the summariser needs {LEAST_ROOM} at least"
        )
    return room


def pieces_of(span: Span, tokens: int, counter: TokenCounter) -> tuple[Span, ...]:
    """The span in pieces that cost at most ``tokens`` when quoted; a text too long for one is split, nothing is lost.

    Joined again, the texts of the pieces are those of the span.
    """
    pieces: list[list[Said]] = [[]]
    left = tokens
    for said in span.said:
        for each in _split(said, left, tokens, counter):
            cost = _cost(each, counter)
            if cost > left and pieces[-1]:
                pieces.append([])
                left = tokens
            pieces[-1].append(each)
            left -= cost
    return tuple(_piece(span, number, pieces) for number in range(len(pieces)))


def _split(said: Said, left: int, tokens: int, counter: TokenCounter) -> Iterator[Said]:
    """The text in pieces: whole where it fits into what is left or into a new piece, else cut as lines allow."""
    if _cost(said, counter) <= max(left, tokens):
        yield said
        return
    rest = said
    while rest.text:
        size = _fits(rest, tokens, counter)
        yield replace(rest, text=rest.text[:size])
        rest = replace(rest, text=rest.text[size:], offset=rest.offset + size)


def _fits(said: Said, tokens: int, counter: TokenCounter) -> int:
    """Characters of the text that fit when quoted, at least one."""
    frame = _cost(replace(said, text=""), counter)
    size = len(head_of(said.text, tokens - frame, counter))
    while size > 1 and _cost(replace(said, text=said.text[:size]), counter) > tokens:
        size = int(size * 0.85)  # escaping makes some texts longer
    if size < 1:
        raise ConfigurationError(f"{tokens} tokens are too few to quote {said.handle}")
    return size


def _piece(span: Span, number: int, pieces: Sequence[Sequence[Said]]) -> Span:
    """A piece with the positions it reaches over; together they cover the span without a gap."""
    starts = [span.first, *(_position(piece[0], span) for piece in pieces[1:])]
    first = starts[number]
    following = starts[number + 1] if number + 1 < len(starts) else span.last
    last = max(following, _position(pieces[number][-1], span) + 1) if pieces[number] else span.last
    return Span(first, min(last, span.last), tuple(pieces[number]))


def _position(said: Said, span: Span) -> int:
    digits = re.match(r"s(\d+)", said.handle)
    return int(digits[1]) if digits else span.first


def _quoted(span: Span) -> str:
    return "\n".join(_frame(each) for each in span.said)


def _frame(said: Said) -> str:
    """One text inside its frame, which it cannot close."""
    about = (
        f' of="{escape(_POSITION.sub(" ", inert(said.about))[:80])}"'
        if said.voice == "result" and said.about
        else ""
    )
    tool = (
        f' tool="{escape(_POSITION.sub(" ", said.about.split(":")[0])[:60])}"' if said.voice == "call" else ""
    )
    failed = ' failed="yes"' if said.failed else ""
    more = ' continued="yes"' if said.offset else ""
    head = f'<pagein-step handle="{said.handle}" by="{said.voice}"{tool}{about}{failed}{more}>'
    return f"{head}\n{inert(said.text)}\n</pagein-step>"


def _cost(said: Said, counter: TokenCounter) -> int:
    return counter.text(_frame(said)) + 1
