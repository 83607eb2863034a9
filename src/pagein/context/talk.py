"""Talk: the steps in which someone speaks to someone, and the share that they have of a run. Pure."""

from __future__ import annotations

from pagein.context.compaction.base import newest_user_position
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.events.steps import ActionStep, FinalAnswerStep, SummaryStep, TaskStep

TALK_SHARE = 0.5
"""Share of a run's tokens above which it is talk: its oldest turns then leave together, the user's words with them."""


def is_speech(entry: ViewEntry) -> bool:
    """True for what the user says, and for an answer that calls no tool."""
    return is_speech_step(entry.item)


def is_speech_step(item: object) -> bool:
    """True for a step that says something and calls no tool."""
    match item:
        case TaskStep() | FinalAnswerStep() | ActionStep(tool_calls=(), observations=()):
            return True
        case _:
            return False


def speech_share(view: View) -> float:
    """Return the share of speech in the tokens of the steps in view, without the newest user message.

    Where nothing else is in view, the newest steps left it, too: only speech does.
    """
    newest = newest_user_position(view)
    spoken = total = 0
    for entry in view.run:
        if isinstance(entry.item, SummaryStep) or entry.first == newest:
            continue
        total += entry.tokens
        spoken += entry.tokens if is_speech(entry) else 0
    return spoken / total if total else float(view.has_replaced_entries)


def is_talk(view: View) -> bool:
    """True for a run that is mostly talk."""
    return speech_share(view) > TALK_SHARE
