"""Clipped text: the head and the tail of something too long, and the handle of the original."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pagein.context.compaction.abridge import COUNT_LINE, abridge
from pagein.context.compaction.base import iter_observations
from pagein.context.view.layout import ViewEntry, without_thinking
from pagein.events.entries import Observed, Replacement, Stub, Tier
from pagein.events.handles import observation_handle, step_handle
from pagein.events.steps import ActionStep, Content, FinalAnswerStep, Image, PlanningStep, TaskStep, as_parts, as_text
from pagein.tokens import TokenCounter

CHARS_PER_TOKEN = 4
"""A first guess for the length of a clip, which is then counted."""

ABRIDGED_MIN_TOKENS = 48
"""Tokens below which a result is clipped to head and tail, whatever its structure is."""

MAX_CHARS_PER_TOKEN = 130
"""Characters of the longest token in any vocabulary: o200k_base has one of 128 spaces."""

FORM_CHARS_PER_TOKEN = 16
"""Characters of a token above which no form of a result has them on average: a longer form is not counted."""

_GAP_LINE = re.compile(r"\n\[\.\.\. ([\d,]{1,20}) characters left out: (s[\d.]{1,20}) \.\.\.\]\n")


def head_of(text: str, tokens: int, counter: TokenCounter) -> str:
    """Return the longest beginning found of at most ``tokens`` tokens, up to the end of a line if one is near.

    It counts a few times the length of its result, however long the text is.
    """
    head = _fit_tokens(text, tokens, counter, tail=False)
    at = head.rfind("\n")
    return head[:at] if at >= len(head) * 0.7 else head


def tail_of(text: str, tokens: int, counter: TokenCounter) -> str:
    """Return the longest end found of at most ``tokens`` tokens, from the start of a line if one is near."""
    tail = _fit_tokens(text, tokens, counter, tail=True)
    at = tail.find("\n")
    return tail[at + 1 :] if 0 <= at < len(tail) * 0.3 else tail


def _fit_tokens(text: str, tokens: int, counter: TokenCounter, *, tail: bool) -> str:
    if tokens <= 0:
        return ""
    length, best = min(len(text), tokens * CHARS_PER_TOKEN), ""
    for _ in range(8):
        piece = text[len(text) - length :] if tail else text[:length]
        counted = counter.text(piece)
        if counted <= tokens:
            best = max(best, piece, key=len)
            if length == len(text) or counted >= tokens * 0.9:
                break
            length = min(len(text), int(length * min(4, tokens / max(1, counted))) + 1)
        else:
            length = min(length - 1, int(length * tokens / counted))
        if length <= len(best):
            break
    return best


def clip_text(text: str, tokens: int, counter: TokenCounter, handle: str) -> str:
    """Return head and tail of a text in about ``tokens`` tokens, the gap marked with the handle; a short text unchanged."""
    if len(text) <= tokens * MAX_CHARS_PER_TOKEN and counter.text(text) <= tokens:
        return text
    room = max(0, tokens - counter.text(_gap_line(len(text), handle)))
    gaps = [match for match in _GAP_LINE.finditer(text) if match[2] == handle]  # of an earlier clip
    start = head_of(text[: gaps[0].start()] if gaps else text, room // 2, counter)
    end = tail_of(text[gaps[-1].end() if gaps else len(start) :], room // 2, counter)
    clipped = start + _gap_line(_count_left_out(text[len(start) : len(text) - len(end)]), handle) + end
    return clipped if len(clipped) < len(text) else text


def _count_left_out(text: str) -> int:
    """Count the characters of the original in a text, including those that an earlier clip left out."""
    gaps = list(_GAP_LINE.finditer(text))
    return len(text) + sum(int(match[1].replace(",", "")) - len(match[0]) for match in gaps)


def _gap_line(characters: int, handle: str) -> str:
    return f"\n[... {characters:,} characters left out: {handle} ...]\n"


def clip_content(content: Content, tokens: int, counter: TokenCounter, handle: str) -> str:
    """Clip content as text; content of images alone becomes a line with their number."""
    images = sum(isinstance(part, Image) for part in as_parts(content))
    text = as_text(content)
    return clip_text(text, tokens, counter, handle) if text or not images else f"[{images} images: {handle}]"


def clip_arguments(arguments: str, tokens: int, counter: TokenCounter, handle: str) -> str:
    """Clip the long strings in arguments to about ``tokens`` tokens together; the result is valid JSON.

    Arguments that stay too long, or are no object, become an object with one clipped string.
    """
    if counter.text(arguments) <= tokens:
        return arguments
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        values = None
    if isinstance(values, dict) and len(values) <= tokens:
        share = max(8, (tokens - 8 * len(values)) // max(1, sum(_is_long(value) for value in values.values())))
        short = {
            key: clip_text(value, share, counter, handle) if _is_long(value) else value for key, value in values.items()
        }
        clipped = json.dumps(short, ensure_ascii=False)
        if counter.text(clipped) <= tokens * 1.2:
            return clipped
    return json.dumps({"left_out": clip_text(arguments, max(0, tokens - 8), counter, handle)}, ensure_ascii=False)


def _is_long(value: object) -> bool:
    return isinstance(value, str) and len(value) > 64


def clip_results(entry: ViewEntry, tokens: int, counter: TokenCounter, tier: Tier = "clip") -> Iterator[Stub]:
    """Yield stubs for the results in an entry, an action's or a late one, that cost more than ``tokens``."""
    if isinstance(entry.item, Observed):
        late = entry.item.observation.content
        if content_tokens(late, counter) > tokens:
            yield Stub("content", 0, _clip_result(late, tokens, counter, step_handle(entry.first)), tier)
    for index, observation in iter_observations(entry):
        if content_tokens(observation.content, counter) > tokens:
            handle = observation_handle(entry.first, index)
            yield Stub("observation", index, _clip_result(observation.content, tokens, counter, handle), tier)


def _clip_result(content: Content, tokens: int, counter: TokenCounter, handle: str) -> str:
    """Abridge a result by its structure, where it has one; else clip it to head and tail."""
    text = as_text(content)
    gap = _GAP_LINE.search(text)
    body = text if gap is None else text[: gap.start()]
    whole = _count_left_out(COUNT_LINE.sub("", text))

    def with_gap(form: str) -> str:
        return form + _gap_line(max(0, whole - len(COUNT_LINE.sub("", form))), handle)

    def fits(form: str) -> bool:
        return len(form) < min(len(text), tokens * FORM_CHARS_PER_TOKEN) and counter.text(with_gap(form)) <= tokens

    # A text that was abridged before ends with its gap; one with a gap in it has two parts, which are no whole of a kind.
    is_whole = gap is None or gap.end() == len(text)
    has_images = any(isinstance(part, Image) for part in as_parts(content))
    abridged = abridge(body, fits) if is_whole and not has_images and tokens >= ABRIDGED_MIN_TOKENS else None
    return clip_content(content, tokens, counter, handle) if abridged is None else with_gap(abridged)


def clip_entry(entry: ViewEntry, tokens: int, counter: TokenCounter, tier: Tier) -> Iterator[Stub]:
    """Yield stubs for the results, arguments and prose of an entry that cost more than ``tokens``; thinking stays."""
    yield from clip_results(entry, tokens, counter, tier)
    yield from clip_own_words(entry, tokens, counter, tier)


def clip_own_words(entry: ViewEntry, tokens: int, counter: TokenCounter, tier: Tier) -> Iterator[Stub]:
    """Yield stubs for the arguments and the prose of an entry that cost more than ``tokens``; thinking stays."""
    handle = step_handle(entry.first)
    match entry.item:
        case ActionStep(content=content, tool_calls=calls):
            for index, call in enumerate(calls):
                if counter.text(call.arguments) > tokens:
                    yield Stub("arguments", index, clip_arguments(call.arguments, tokens, counter, handle), tier)
            prose = without_thinking(content)
        case PlanningStep(content=prose) | FinalAnswerStep(content=prose):
            pass
        case _:
            return
    if prose is not None and content_tokens(prose, counter) > tokens:
        yield Stub("content", 0, clip_content(prose, tokens, counter, handle), tier)


def clip_user_message(entry: ViewEntry, tokens: int, counter: TokenCounter) -> Replacement:
    """Return the replacement that clips a user message to ``tokens``."""
    content = entry.item.content if isinstance(entry.item, TaskStep) else ""
    text = clip_content(content, tokens, counter, step_handle(entry.first))
    return Replacement(entry.first, entry.last, (Stub("content", 0, text, "clip"),))


def content_tokens(content: Content, counter: TokenCounter) -> int:
    """Count the tokens of content: its text and its images."""
    images = sum(counter.image(part) for part in as_parts(content) if isinstance(part, Image))
    return images + counter.text(as_text(content))
