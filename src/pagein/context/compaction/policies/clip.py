"""Clip: head and tail of something too long, and the handle by which the whole comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pagein.context.compaction.base import Plan, observed, plan_of
from pagein.context.view.stubs import without_thinking
from pagein.context.view.view import Shown, View
from pagein.events.entries import Observed, Replacement, Stub, Tier
from pagein.events.handles import observation_handle, step_handle
from pagein.events.steps import ActionStep, Content, FinalAnswerStep, Image, PlanningStep, as_parts, as_text
from pagein.tokens import Budget, TokenCounter

CHARS_PER_TOKEN = 4
"""A first guess only: cutting to a number of tokens starts from it and then counts."""


MOST_CHARS_PER_TOKEN = 130
"""No vocabulary has a longer token: a run of spaces, 128 to a token in o200k_base."""


_GAP = re.compile(r"\n\[\.\.\. ([\d,]{1,20}) characters left out: s[\d.]{1,20} \.\.\.\]\n")


def head_of(text: str, tokens: int, counter: TokenCounter) -> str:
    """The longest beginning found of at most ``tokens`` tokens, to a line's end where one is near.

    Counts a few times the length of what it returns, whatever the length of the text.
    """
    return _end_at_line(_within(text, tokens, counter, tail=False))


def tail_of(text: str, tokens: int, counter: TokenCounter) -> str:
    """The longest end found of at most ``tokens`` tokens, from a line's start where one is near."""
    return _start_at_line(_within(text, tokens, counter, tail=True))


def _within(text: str, tokens: int, counter: TokenCounter, *, tail: bool) -> str:
    if tokens <= 0:
        return ""
    length, best = min(len(text), tokens * CHARS_PER_TOKEN), ""
    for _ in range(8):
        piece = text[len(text) - length :] if tail else text[:length]
        found = counter.text(piece)
        if found <= tokens:
            best = max(best, piece, key=len)
            if length == len(text) or found >= tokens * 0.9:
                break
            length = min(len(text), int(length * min(4, tokens / max(1, found))) + 1)
        else:
            length = min(length - 1, int(length * tokens / found))
        if length <= len(best):
            break
    return best


def _end_at_line(text: str) -> str:
    at = text.rfind("\n")
    return text[:at] if at >= len(text) * 0.7 else text


def _start_at_line(text: str) -> str:
    at = text.find("\n")
    return text[at + 1 :] if 0 <= at < len(text) * 0.3 else text


def clip_text(text: str, tokens: int, counter: TokenCounter, handle: str, *, tail: float = 0.5) -> str:
    """Head and tail of the text in about ``tokens`` tokens, the gap marked with the handle; short text as it is.

    ``tail`` is the tail's share of what is kept.
    """
    if len(text) <= tokens * MOST_CHARS_PER_TOKEN and counter.text(text) <= tokens:
        return text
    room = max(0, tokens - counter.text(gap(len(text), handle)))
    start = head_of(text, int(room * (1 - tail)), counter)
    end = tail_of(text[len(start) :], int(room * tail), counter)
    clipped = start + gap(_left_out(text[len(start) : len(text) - len(end)]), handle) + end
    return clipped if len(clipped) < len(text) else text


def _left_out(text: str) -> int:
    """Characters of the original in a text, those counted that an earlier clip had left out of it."""
    gaps = list(_GAP.finditer(text))
    return len(text) + sum(int(each[1].replace(",", "")) - len(each[0]) for each in gaps)


def gap(characters: int, handle: str) -> str:
    """What stands where text was left out."""
    return f"\n[... {characters:,} characters left out: {handle} ...]\n"


def clip_content(content: Content, tokens: int, counter: TokenCounter, handle: str) -> str:
    """The content as clipped text; images are named where they stood."""
    images = sum(isinstance(part, Image) for part in as_parts(content))
    text = as_text(content)
    return clip_text(text, tokens, counter, handle) if text or not images else f"[{images} images: {handle}]"


def clip_arguments(arguments: str, tokens: int, counter: TokenCounter, handle: str) -> str:
    """Arguments of at most about ``tokens`` tokens, still legal JSON: their longest strings are clipped.

    What is not an object of strings is replaced by one string.
    """
    if counter.text(arguments) <= tokens:
        return arguments
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        given = None
    if isinstance(given, dict) and len(given) <= tokens:
        share = max(8, (tokens - 8 * len(given)) // max(1, sum(_is_long(each) for each in given.values())))
        short = {
            key: clip_text(each, share, counter, handle) if _is_long(each) else each
            for key, each in given.items()
        }
        clipped = json.dumps(short, ensure_ascii=False)
        if counter.text(clipped) <= tokens * 1.2:
            return clipped
    return json.dumps(
        {"left_out": clip_text(arguments, max(0, tokens - 8), counter, handle)}, ensure_ascii=False
    )


def _is_long(value: object) -> bool:
    return isinstance(value, str) and len(value) > 64


def clip_results(shown: Shown, tokens: int, counter: TokenCounter, tier: Tier = "clip") -> Iterator[Stub]:
    """Stubs for the results in an entry that are longer than ``tokens``, images counted: an action's, or a late one."""
    if isinstance(shown.item, Observed):
        late = shown.item.observation.content
        if _cost(late, counter) > tokens:
            yield Stub("content", 0, clip_content(late, tokens, counter, step_handle(shown.first)), tier)
    for index, seen in observed(shown):
        if _cost(seen.content, counter) > tokens:
            handle = observation_handle(shown.first, index)
            yield Stub("observation", index, clip_content(seen.content, tokens, counter, handle), tier)


def clip_whole(shown: Shown, tokens: int, counter: TokenCounter, tier: Tier) -> Iterator[Stub]:
    """Stubs for every slot of an entry that is longer than ``tokens``: results, arguments, prose; thinking stays."""
    yield from clip_results(shown, tokens, counter, tier)
    handle = step_handle(shown.first)
    match shown.item:
        case ActionStep(content=content, tool_calls=calls):
            for index, call in enumerate(calls):
                if counter.text(call.arguments) > tokens:
                    yield Stub(
                        "arguments", index, clip_arguments(call.arguments, tokens, counter, handle), tier
                    )
            prose = without_thinking(content)
        case PlanningStep(content=prose) | FinalAnswerStep(content=prose):
            pass
        case _:
            return
    if prose is not None and _cost(prose, counter) > tokens:
        yield Stub("content", 0, clip_content(prose, tokens, counter, handle), tier)


def _cost(content: Content, counter: TokenCounter) -> int:
    images = sum(counter.image(part) for part in as_parts(content) if isinstance(part, Image))
    return images + counter.text(as_text(content))


@dataclass(frozen=True, slots=True)
class Clip:
    """Clips each observation longer than ``share`` of the budget as it enters the view; the log has it whole."""

    share: float = 0.25
    name: str = "clip"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan for the observations that are too long, or none. ``budget`` is not otherwise asked."""
        del budget
        tokens = max(64, int(view.limit * self.share))
        found = []
        for each in reversed(view.run):
            if each.tier in ("summary", "clip", "mask"):
                break  # what stands before it was looked at when it was new
            if each.tokens > tokens:
                stubs = tuple(clip_results(each, tokens, view.counter))
                if stubs:
                    found.append(Replacement(each.first, each.last, stubs))
        return plan_of(reversed(found), self.name, f"observations over {tokens} tokens")
