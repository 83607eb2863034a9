"""The manual controls: another look at the same view, recorded nowhere."""

from __future__ import annotations

from dataclasses import replace

from pagein.context.compaction.policies.window import Window
from pagein.context.view.fold import preview, show
from pagein.context.view.view import Shown, View, cost
from pagein.errors import ConfigurationError
from pagein.events.steps import ActionStep, FinalAnswerStep, PlanningStep
from pagein.tokens import Budget


def manual(view: View, *, summary_mode: bool, keep_last_n: int | None) -> View:
    """The view with only the last ``keep_last_n`` actions, and in ``summary_mode`` without prompts, plans and prose.

    Summary mode is a filter, not a summary (smolagents ``write_memory_to_messages``): tasks, tool calls, observations
    and errors stay. Raises ConfigurationError for a negative number.
    """
    if keep_last_n is not None:
        if keep_last_n < 0:
            raise ConfigurationError(f"keep_last_n must be 0 or more, not {keep_last_n}")
        plan = Window(keep_last_n, always=True)(view, Budget(view.limit))
        view = view if plan is None else preview(view, plan.replacements, plan.reason)
    if not summary_mode:
        return view
    run = tuple(brief for each in view.run if (brief := _without_prose(each, view)) is not None)
    return replace(view, systems=(), run=run, tokens=cost((*view.kept, *run), view.counter))


def _without_prose(shown: Shown, view: View) -> Shown | None:
    match shown.item:
        case PlanningStep() | FinalAnswerStep() | ActionStep(tool_calls=()):
            return None
        case ActionStep(tool_calls=calls) as step:
            bare = replace(step, content=None, tool_calls=tuple(replace(call, at=None) for call in calls))
            return show(
                bare,
                shown.first,
                shown.last,
                view.counter,
                tier=shown.tier,
                why="summary mode",
                ids=shown.ids,
            )
        case _:
            return shown
