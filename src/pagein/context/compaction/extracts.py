"""Summaries made of what they stand for: which entries, within which room, in which words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from pagein.context.compaction.base import actions
from pagein.context.compaction.episodes import folds, is_summary, span
from pagein.context.salience.extract import Extract, choose
from pagein.context.view.fold import is_kept
from pagein.context.view.view import Shown, View
from pagein.events.entries import Replacement
from pagein.events.handles import range_handle, step_handle
from pagein.events.identifiers import argument_text, told_call
from pagein.events.steps import TaskStep, as_text

HEADER = 60
"""Tokens of a summary beside its lines."""


def stays(shown: Shown) -> bool:
    """True for what no fold takes out: system prompts, pins, the user's words."""
    return is_kept(shown) or isinstance(shown.item, TaskStep)


def boundary(view: View, tokens: float) -> int:
    """The position from which on the newest steps cost at most ``tokens``; the newest action is always among them."""
    acted = actions(view)
    stop = acted[-1].first if acted else view.head
    for each in reversed(view.run):
        if stays(each):
            continue
        tokens -= each.tokens
        if tokens < 0:
            break
        stop = min(stop, each.first)
    return stop


def visible_from(view: View, stop: int, *, users: bool = True) -> tuple[str, ...]:
    """The texts that stay in sight when what stands before ``stop`` leaves; the user's words too, unless ``users``."""
    stay = stays if users else is_kept
    shown = (*view.systems, *view.kept, *(each for each in view.run if each.first >= stop or stay(each)))
    return tuple(text for each in shown for text in _texts(each))


def _texts(shown: Shown) -> Iterator[str]:
    for message in shown.messages:
        yield as_text(message.content)
        for call in message.tool_calls:
            yield argument_text(call.arguments)
            yield told_call(call.name, call.arguments).text


def summary_of(
    view: View, held: tuple[Shown, ...], tokens: int, visible: tuple[str, ...], *, own: bool = False
) -> Replacement:
    """What stands for these entries: an extract of at most ``tokens`` tokens, or one line where that is too few.

    ``own`` makes it of their own lines only; else it is an extract of the whole run, whose newest summary it is.
    """
    first, last = span(view, held)
    extract = Extract()
    if tokens > HEADER:
        within = (first, last) if own else None
        extract = choose(view.memo, tokens - HEADER, view.counter, visible=visible, within=within)
    return Replacement(first, last, summary=_text(first, last, extract))


def summaries(view: View, stop: int, tokens: int) -> Iterator[Replacement]:
    """A summary for every stretch before ``stop``, of ``tokens`` together; an older one that is one already stays."""
    found, visible = folds(view, stop), visible_from(view, stop)
    for number, held in enumerate(found):
        newest = number == len(found) - 1
        if newest or not is_summary(held):
            yield summary_of(view, held, tokens // len(found), visible, own=not newest)


def _text(first: int, last: int, extract: Extract) -> str:
    handle = range_handle(first, last)
    if not extract.lines and not extract.names:
        return f"Out of view: {handle}."
    said = [f"Out of view: {handle}; expand(handle) gives a step back. Lines of theirs (> done, ! failed):"]
    for position, group in groupby(extract.lines, key=lambda each: each.position):
        said.append(f"[{step_handle(position)}]")
        said.extend(each.mark + each.text for each in group)
    if extract.names:
        said.append("Also named: " + " ".join(extract.names))
    return "\n".join(said)
