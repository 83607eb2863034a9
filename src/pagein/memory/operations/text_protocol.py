# ruff: noqa: RUF001 - letters of other languages
"""Agents that speak text alone: the result of an action comes as a message of the user. Pure.

Such a message is recorded as an observation of the action before it, so that only the user's words are the user's. It goes
out again as it came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pagein.errors import ConfigurationError
from pagein.events.protocol import TEXT_ACTION, as_text_observation
from pagein.events.steps import ActionStep, Observation, TaskStep, as_text
from pagein.formats import Item

TextObservations = str | re.Pattern[str] | Callable[[str], bool] | bool | None
"""The messages of the user that are results: those that begin with a text, that match a pattern from their beginning on, or
that a function says so of. None: those that certainly are; False: none."""

_RESULT = re.compile(
    r"[\s*_]*(?:(?:Call id:[^\n]*\n\s*)?(?:Observation(?: \d+)?|Beobachtung|Observaci[oó]n|Osservazione|Observa[çc][aã]o|Наблюдение|[观觀観][察测測](?:结果|結果)?|관찰(?: ?결과)?|Quan sát|الملاحظة"
    r"|(?:Tool|Code|Command|Function|Shell|Terminal|Execution|Program)[ _-](?:Output|Result|Response)s?|(?:工具|代码|命令|函数|执行|运行|调用)[^\s:：]{0,6}(?:结果|输出|返回)[^\s:：]{0,2})\s*\**\s*[:：]"
    r"|(?:Call id:[^\n]*\n\s*)?Error:\s[\s\S]*\bNow let's retry: take care not to repeat|exitcode: -?\d|Command \w+ returned:"
    r"|<(?:returncode|(?:std)?out(?:put)?|stderr|results?|tool_(?:response|result|output)s?|function_(?:response|result|output)s?|(?:command|execution|code|bash)_(?:result|output)s?|observations?)\b|```tool_output\b"
    r"|EXECUTION RESULT of |\[[\w-]{1,60}(?: for [^\]\n]{0,200})?\] Result:)",
    re.IGNORECASE,
)
"""A result in text, as ReAct (in several languages), smolagents, mini-swe-agent, SWE-agent, OpenHands, Cline, AutoGPT, AutoGen, and models
that call tools in tags spell it. Behind an action in text alone: both are needed."""


def check_observations(observations: object) -> TextObservations:
    """The value, unchanged. Raises ConfigurationError for one that tells no results."""
    if observations is None or isinstance(observations, bool | re.Pattern) or callable(observations):
        return observations
    if isinstance(observations, str) and observations:
        return observations
    raise ConfigurationError(
        f"observations is the beginning of a result, a compiled pattern, a function of a text, or False, not {observations!r}"
    )


def mark_observations(
    items: Sequence[Item], observations: TextObservations, last_action: ActionStep | None
) -> Sequence[Item]:
    """Make observations of the user's messages that are results. ``last_action`` stands right before the first item."""
    if observations is False or not any(isinstance(item, TaskStep) for item in items):
        return items
    marked: list[Item] = []
    action = last_action
    for item in items:
        step = item
        if isinstance(item, TaskStep) and action is not None and _is_result(item, observations, action):
            step = as_text_observation(item)
        elif not isinstance(item, Observation):
            action = item if isinstance(item, ActionStep) and not item.tool_calls else None
        marked.append(step)
    return marked


def has_text_observation(items: Sequence[Item]) -> bool:
    """True if one of the items is a result that came as a message of the user."""
    return any(isinstance(item, Observation) and item.is_message for item in items)


def _is_result(step: TaskStep, observations: TextObservations, action: ActionStep) -> bool:
    text = as_text(step.content)
    if observations is None or observations is True:
        return _RESULT.match(text) is not None and TEXT_ACTION.search(as_text(action.content)) is not None
    if isinstance(observations, str):
        return text.lstrip().startswith(observations)
    if isinstance(observations, re.Pattern):
        return observations.match(text) is not None
    return callable(observations) and bool(observations(text))
