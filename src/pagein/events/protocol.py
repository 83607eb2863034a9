# ruff: noqa: RUF001 - letters of other languages
"""The order of items in a run: the matching of observations to calls, fingerprints, and results in plain text.

A step that comes while calls are open closes them first, each with an ``unknown`` observation: the run stopped before
their results were recorded, and they may have run. pagein never runs them again. A result that arrives later is recorded
as a note at its own position, so nothing that the model has already read changes.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import assert_never

from pagein._common.surrogates import replace_surrogates
from pagein.errors import ConfigurationError, ProtocolError
from pagein.events import steps
from pagein.events.entries import Body, Checkpoint, Compaction, FactBody, Mark, Observed, Pin, Replacement, Undo, Unpin
from pagein.events.normal_form import (
    CACHE_MARKERS,
    normal_arguments,
    normal_fields,
    speaker_name,
    without_thinking_text,
)
from pagein.events.quoting import HIDDEN


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without an observation: call ``index`` of the action at position ``action``, with the model's id for it."""

    action: int
    index: int
    id: str


def check_item(item: object) -> None:
    """Raise ProtocolError for what an application may not record: a summary, and anything but steps and observations."""
    if isinstance(item, steps.SummaryStep):
        # A summary from outside could replace the recorded past with any text.
        raise ProtocolError("a SummaryStep is written by a compaction, not recorded; use pin() or a TaskStep")
    if isinstance(item, steps.Step | steps.Observation):
        return
    if isinstance(item, str):
        cure = f"pass TaskStep({item[:20]!r}) for what the user said, ActionStep for what the model said"
    elif isinstance(item, dict | list | tuple):
        cure = "pass messages to record_messages(), and several steps as arguments of their own"
    else:
        cure = "pass steps such as TaskStep('hi'), or a provider's messages to record_messages()"
    raise ProtocolError(f"record() takes steps and observations, not {type(item).__name__}: {cure}")


def open_calls(step: steps.Step, position: int) -> tuple[OpenCall, ...]:
    """Return the calls of an action that have no observation yet; none for other steps."""
    if not isinstance(step, steps.ActionStep):
        return ()
    answered = {i for i, observation in enumerate(step.observations) if observation is not None}
    return tuple(OpenCall(position, i, call.id) for i, call in enumerate(step.tool_calls) if i not in answered)


def check_action(step: steps.ActionStep) -> None:
    """Raise ProtocolError if an observation of the action does not answer the call at the same index."""
    for index, (call, observation) in enumerate(zip(step.tool_calls, step.observations, strict=False)):
        if observation is not None and observation.call_id != call.id:
            raise ProtocolError(
                f"observation {index} answers call {observation.call_id!r}, but call {index} is {call.id!r}"
            )


def find_call(observation: steps.Observation, calls: Iterable[OpenCall]) -> OpenCall | None:
    """Return the call an observation answers: the first open one with its id, and with its ``index`` if set.

    Calls with empty or repeated ids are answered in their order, so that each gets its own result.
    """
    for call in calls:
        if call.id == observation.call_id and observation.index in (None, call.index):
            return call
    return None


def unknown_observation(call: OpenCall) -> steps.Observation:
    """Return the observation that closes a call whose result was never recorded."""
    return steps.Observation(call.id, "", "unknown", call.index)


def with_observations(step: steps.ActionStep, answers: Mapping[int, steps.Observation]) -> steps.ActionStep:
    """Return the action with these observations, by the index of their calls."""
    length = max(len(step.tool_calls), *(index + 1 for index in answers), len(step.observations))
    observations = list(step.observations) + [None] * (length - len(step.observations))
    for index, observation in answers.items():
        observations[index] = observation
    return replace(step, observations=tuple(observations))


RESULT_PREFIX, SYSTEM_PREFIX, USER_PREFIX, MODEL_PREFIX, SUMMARY_PREFIX = b"r", b"y", b"u", b"a", b"s"
"""First byte of a fingerprint: a result, a system prompt, the user's words, the model's, a summary."""

REASONING_KINDS = frozenset({
    "thinking", "redacted_thinking", "thinking_blocks", "reasoning", "reasoning_content", "reasoning_details", "thought",
    "reasoningContent",
})  # fmt: skip
"""The kinds of opaque parts that hold a model's reasoning: clients hand it back in one turn, and drop it in another."""

_HASH_BYTES = 16
_ERASED_HASH = bytes(_HASH_BYTES)

_HIDDEN_CHARS = re.compile(f"[{HIDDEN}]+")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPACES = re.compile(r"[^\S\n\t ]")
_ASCII_TABLE = str.maketrans(
    "\x0b\x0c\x1c\x1d\x1e\x1f", "\n\n    ", "".join(map(chr, (*range(9), *range(14, 28), 127)))
)


_BASE64_ALPHABET = str.maketrans("-_", "+/")
"""Google's SDK has bytes, and writes them as JSON in the other alphabet of base64."""


def normal_text(text: str) -> str:
    r"""Spell a text normally: clients trim it, drop what nobody sees, and write characters, spaces and line ends otherwise.

    >>> normal_text("cafe\u0301\u00a0au\r\nlait\u200b \ud83d \n") == normal_text(" caf\u00e9 au\nlait \ufffd")
    True
    """
    if text.isascii():
        return text.replace("\r\n", "\n").replace("\r", "\n").translate(_ASCII_TABLE).strip()
    text = _SPACES.sub(" ", _LINE_ENDS.sub("\n", _HIDDEN_CHARS.sub("", replace_surrogates(text))))
    return unicodedata.normalize("NFC", text).strip()


def fingerprint(item: steps.Step | steps.Observation) -> bytes:
    """Hash the normal spelling of an item; observations of an action are hashed by themselves.

    Cache markers, ids, the order of keys and the usage are not part of it, and a text equals a list of that one text. Of
    what a model said its text and its calls count: clients drop its reasoning, also from its text, and its annotations. Of the fields beside a
    user's message its name counts: clients add times, ids and notes of their own, and change them.
    """
    if isinstance(item, steps.Observation) and item.is_message:
        item = steps.TaskStep(item.content)  # an application hands it over as the user's words
    prefix = _prefix(item)
    parts = [
        piece for part in steps.as_parts(item.content) if (piece := _normal_part(part, is_model=prefix == MODEL_PREFIX))
    ]
    calls = item.tool_calls if isinstance(item, steps.ActionStep) else ()
    pieces = [piece for piece in parts if piece[0] not in REASONING_KINDS]
    pieces += [("call", call.name, normal_text(normal_arguments(call.arguments))) for call in calls]
    pieces = pieces or parts
    if isinstance(item, steps.TaskStep) and item.extra is not None and (name := speaker_name(item.extra.body)):
        pieces.append(("name", name))
    text = repr(pieces).encode("utf-8", "surrogatepass")
    return prefix + hashlib.blake2b(text, digest_size=_HASH_BYTES).digest()


def handed_items(body: Body) -> tuple[steps.Step | steps.Observation, ...]:
    """The items of an entry that an application handed over; none for what the library wrote."""
    if isinstance(body, Compaction | Pin | Unpin | Mark | Checkpoint | Undo | FactBody):
        return ()
    match body:
        case steps.ActionStep(observations=observations):
            return (body, *(observation for observation in observations if observation is not None))
        case Observed(observation=observation):
            return () if observation.status == "unknown" else (observation,)
        case steps.SystemPromptStep():
            return (current_prompt(body)[0],)
        case steps.TaskStep() | steps.PlanningStep() | steps.FinalAnswerStep() | steps.SummaryStep():
            return (body,)
        case _:
            assert_never(body)


def body_fingerprints(body: Body) -> tuple[bytes, ...]:
    """The fingerprints of the items that an application handed over in one entry."""
    return tuple(map(fingerprint, handed_items(body)))


def erased_fingerprint(mark: bytes) -> bytes:
    """The fingerprint that stands for an erased item: of its kind, it equals every other one."""
    return mark[:1] + _ERASED_HASH


def relisted_fingerprint(mark: bytes, by: Replacement) -> bytes:
    """The fingerprint of an item that a list changed: that of its new words; what was taken back stands outside the chain."""
    if not by.stubs:
        return SYSTEM_PREFIX + mark[1:]
    if mark == erased_fingerprint(mark):
        return mark
    content = by.stubs[0].content
    return fingerprint(steps.Observation("", content) if mark.startswith(RESULT_PREFIX) else steps.TaskStep(content))


def is_same_item(recorded: bytes, other: bytes) -> bool:
    """True if a fingerprint is that of the recorded item, or of its kind where the item was erased."""
    return recorded == other or (recorded[1:] == _ERASED_HASH and recorded[:1] == other[:1])


def _normal_part(part: steps.Part, *, is_model: bool) -> tuple[str, ...]:
    match part:
        case steps.Text(text=text) if is_model:
            return ("text", normal) if (normal := normal_text(without_thinking_text(text))) else ()
        case steps.Text(text=text, extra=extra):
            normal, beside = normal_text(text), _normal_extra(extra)
            return ("text", normal, beside) if normal or beside else ()
        case steps.Image(extra=extra):
            return ("image", part.digest, _normal_extra(extra))
        case steps.Opaque(kind=kind, body=body):
            fields = normal_text(normal_fields(body))
            fields = fields.translate(_BASE64_ALPHABET) if kind == "inlineData" else fields
            is_said = fields or not (is_model or any(marker in body for marker in CACHE_MARKERS))
            return (kind, fields) if is_said else ()  # of a model, an id alone refers to what it thought
        case _:
            assert_never(part)


def _normal_extra(extra: steps.Opaque | None) -> str:
    if extra is None or extra.body == "{}" or (extra.provider, extra.kind) == steps.TEXT_OBSERVATION:
        return ""
    return normal_text(normal_fields(extra.body))


def _prefix(item: steps.Step | steps.Observation) -> bytes:
    match item:
        case steps.Observation():
            return RESULT_PREFIX
        case steps.SystemPromptStep():
            return SYSTEM_PREFIX
        case steps.TaskStep():
            return USER_PREFIX
        case steps.SummaryStep():
            return SUMMARY_PREFIX
        case steps.ActionStep() | steps.PlanningStep() | steps.FinalAnswerStep():
            return MODEL_PREFIX
        case _:
            assert_never(item)


TEXT_ACTION = re.compile(
    r"^[ \t*_#>]*(?:(?:Action(?: Input| \d+)?|Tool(?: call)?|Command|Code|Run|Call(?:ing tools?)?|Aktion|Acci[oó]n|Azione|A[çc][aã]o|Действие|[行动動]+[动動作]|アクション|행동|Hành động|الإجراء)\s*\**\s*(?:[:：]|$)|```|\$ \S"
    r"|<(?:[^\W\d_]+_[\w]+|tool_calls?|function_calls?|invoke|function|execute|code|bash|run|call|[^\x00-\x7f]\w*|\w+(?= [^<>\n]{0,200}/>))\b[^<>\n]{0,200}>|[a-z_]\w*\([^\n]*\)\s*$)|\A\s*\{\s*\"[\s\S]*\}\s*\Z",
    re.MULTILINE | re.IGNORECASE,
)
"""An action in text: of a model without tool calls, whose results come as messages of the user."""


_CALLING_END = re.compile(
    r"(?:</(?:tool_calls?|function_calls?|invoke|function|execute|bash|run|call|[^\W\d_]+_\w+)>|/>|^[ \t*_]*(?:Action(?: Input)?|Input)\s*\**\s*[:：][^\n]*|^(?!(?:NOTE|WARNING|IMPORTANT|TODO|FYI|TIP|HINT|INFO|TLDR|SUMMARY|QUESTION|ANSWER|UPDATE|EDIT|CAUTION|STATUS|RESULT|NEXT|REMINDER|DISCLAIMER|EXAMPLE):)(?-i:[A-Z]{3,12}): [^\n]+|^[a-z_]\w*\([^\n]*\))\s*\Z",
    re.MULTILINE | re.IGNORECASE,
)
_CALLING_OBJECT = re.compile(
    r"\{\s*\"(?:tool|action|command|function|name|tool_name)\"|[\s\S]*?\"(?:actions?|commands?|(?:tool|function)_calls?)\"\s*:\s*[\[{]",
    re.IGNORECASE,
)
"""The beginning of a reply that is a JSON object and calls, as far as its call."""


def ends_in_call(item: object) -> bool:
    """True for a reply that ends in a call in its text: what follows is a result, though it comes as a message of the user.

    A code block is none: people are given one, too.
    """
    if not isinstance(item, steps.ActionStep) or item.tool_calls or item.observations:
        return False
    text = steps.as_text(item.content).strip()
    if text.startswith("{") and text.endswith("}") and _CALLING_OBJECT.match(text):
        return True
    return _CALLING_END.search(text[-2_000:]) is not None


FENCED = re.compile(r"^```[\w+-]*[ \t]*\r?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def split_text_action(text: str) -> tuple[str, str]:
    """Split a reply that acts in its text: its prose, and its action, which is its last code block, or its label and what follows.

    >>> split_text_action("I look. Action: ls"), split_text_action("Action: ls")
    (('I look. Action: ls', ''), ('', 'Action: ls'))
    """
    *_, block = (None, *FENCED.finditer(text))
    if block is not None:
        return text[: block.start()] + text[block.end() :], block[1]
    action = TEXT_ACTION.search(text)
    return (text, "") if action is None else (text[: action.start()], text[action.start() :])


# Notes of the library in a step's extra

_CURRENT_PROMPT = ("pagein", "current-prompt")


def as_text_observation(step: steps.TaskStep) -> steps.Observation:
    """The result of an action whose agent speaks text alone: it came as a message of the user."""
    return steps.Observation("", step.content, extra=steps.Opaque(*steps.TEXT_OBSERVATION, "{}"))


def as_current_prompt(step: steps.SystemPromptStep, replaces: Iterable[int]) -> steps.SystemPromptStep:
    """The system prompt as one that takes the place of those at these positions, in every view from here on."""
    extra = None if step.extra is None else [step.extra.provider, step.extra.kind, step.extra.body, step.extra.text]
    note = json.dumps({"replaces": list(replaces), "extra": extra})
    return replace(step, extra=steps.Opaque(*_CURRENT_PROMPT, note))


def current_prompt(step: steps.SystemPromptStep) -> tuple[steps.SystemPromptStep, tuple[int, ...] | None]:
    """The system prompt as it was handed over, and the positions of those whose place it takes; None for another one."""
    if step.extra is None or (step.extra.provider, step.extra.kind) != _CURRENT_PROMPT:
        return step, None
    note = json.loads(step.extra.body)
    extra = None if note["extra"] is None else steps.Opaque(*note["extra"])
    return replace(step, extra=extra), tuple(note["replaces"])


# Agents that speak text alone: the result of an action comes as a message of the user. It goes out again as it came.


TextObservations = str | re.Pattern[str] | Callable[[str], bool] | bool | None
"""The messages of the user that are results: those that begin with a text, that match a pattern from their beginning on, or
that a function says so of. None: those that certainly are; False: none."""

_RESULT = re.compile(
    r"[\s*_]*(?:(?:Call id:[^\n]*\n\s*)?(?:Observation(?: \d+)?|Beobachtung|Observaci[oó]n|Osservazione|Observa[çc][aã]o|Наблюдение|[观觀観][察测測](?:结果|結果)?|관찰(?: ?결과)?|Quan sát|الملاحظة"
    r"|(?:Tool|Code|Command|Function|Shell|Terminal|Execution|Program|Action)[ _-](?:Output|Result|Response|Error)s?|(?:工具|代码|命令|函数|执行|运行|调用)[^\s:：]{0,6}(?:结果|输出|返回)[^\s:：]{0,2})\s*\**\s*[:：]"
    r"|(?:Call id:[^\n]*\n\s*)?Error:\s[\s\S]*\bNow let's retry: take care not to repeat|exitcode: -?\d|Command \w+ returned:"
    r"|<(?:returncode|(?:std)?out(?:put)?|stderr|results?|tool_(?:response|result|output)s?|function_(?:response|result|output)s?|(?:command|execution|code|bash)_(?:result|output)s?|observations?)\b|```tool_output\b"
    r"|EXECUTION RESULT of |\[[\w-]{1,60}(?: for [^\]\n]{0,200})?\] Result:|[\s\S]*\(Current directory: [^\n]*\)\nbash-\$\s*\Z)",
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


PAGE_MIN_CHARS, PAGE_MIN_LINES = 1_500, 12
"""Characters or lines from which a message directly behind a call is a page that a program wrote, not a person's answer."""

FRAME_CHARS = 24
"""Characters with which a program begins what it shows after each call."""

_LABEL = re.compile(r"\W{0,3}\w[\w ]{1,22}[:：]")
"""The word with which a program begins it, such as ``URL:`` before an address that differs."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An action, what the results of its calls say, and the messages of the user behind it.

    ``before`` are those behind the action before it, ``is_shown`` says if a result was among them. ``is_answered`` once
    somebody spoke: what follows may be theirs, too.
    """

    action: steps.ActionStep | None = None
    results: str | None = None
    messages: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    is_shown: bool = False
    is_answered: bool = False

    def after(self, item: object) -> Turn:
        """The turn once an item stands behind it."""
        match item:
            case steps.TaskStep(content=content):
                return replace(self, messages=(*self.messages, steps.as_text(content)), is_answered=True)
            case steps.Observation(content=content) if item.is_message:
                return replace(self, messages=(*self.messages, steps.as_text(content)))
            case steps.Observation(content=content):
                return replace(self, results=(self.results or "") + steps.as_text(content).strip())
            case steps.ActionStep(observations=observations):
                is_shown = bool(self.messages) and not self.is_answered
                turn = Turn(item, before=self.messages, is_shown=is_shown)
                return reduce(Turn.after, filter(None, observations), turn)
            case _:
                return Turn()

    def has_result(self, step: steps.TaskStep, observations: TextObservations) -> bool:
        """True if a message of the user behind this turn is a result."""
        action, text = self.action, steps.as_text(step.content)
        if action is None or observations is False:
            return False
        if observations is None or observations is True:
            return self._is_page(action, step.content) or (not self.is_answered and _is_spelled(action, text))
        if self.is_answered:
            return False
        if isinstance(observations, str):
            return text.lstrip().startswith(observations)
        if isinstance(observations, re.Pattern):
            return observations.match(text) is not None
        return observations(text)

    def _is_page(self, action: steps.ActionStep, content: steps.Content) -> bool:
        """True for a page or a screenshot that a program shows behind each call.

        It stands behind a call in text, behind results that say nothing, or begins as the one behind the action before. A
        screenshot behind a call is the program's where it has no words, a page of them, or those of the one before.
        """
        parts = steps.as_parts(content)
        words = "\n".join(part.text for part in parts if isinstance(part, steps.Text))
        is_long = len(words) >= PAGE_MIN_CHARS or words.count("\n") >= PAGE_MIN_LINES
        is_framed = any(words[:FRAME_CHARS] == other[:FRAME_CHARS] for other in self.before)
        if not self.is_answered and any(isinstance(part, steps.Image) for part in parts):
            label = _LABEL.match(words) if self.is_shown or self.results is not None else None
            is_framed = bool(words) and (
                is_framed or any(label and other.startswith(label[0]) for other in self.before)
            )
            acted = self.is_shown or TEXT_ACTION.search(steps.as_text(action.content)) is not None
            is_behind_call = self.results is not None or ends_in_call(action)
            return (is_framed and (acted or is_behind_call)) or (is_behind_call and (is_long or not words))
        if not is_long:
            return False
        if not action.tool_calls:
            return not self.is_answered and ends_in_call(action)
        return self.results == "" or is_framed


def _is_spelled(action: steps.ActionStep, text: str) -> bool:
    """True for a result that is spelled as one, behind an action."""
    acted = bool(action.tool_calls) or TEXT_ACTION.search(steps.as_text(action.content)) is not None
    return acted and _RESULT.match(text) is not None


def mark_observations(
    items: Sequence[steps.Step | steps.Observation], observations: TextObservations, turn: Turn
) -> Sequence[steps.Step | steps.Observation]:
    """Make observations of the user's messages that are results. ``turn`` stands right before the first item."""
    marked: list[steps.Step | steps.Observation] = []
    for item in items:
        is_result = isinstance(item, steps.TaskStep) and turn.has_result(item, observations)
        marked.append(as_text_observation(item) if isinstance(item, steps.TaskStep) and is_result else item)
        turn = turn.after(marked[-1])
    return marked


def has_text_observation(items: Sequence[steps.Step | steps.Observation]) -> bool:
    """True if one of the items is a result that came as a message of the user."""
    return any(isinstance(item, steps.Observation) and item.is_message for item in items)
