"""Procedures: how a task was done, from the steps of its run, and which task is similar to it. Pure.

A procedure has the user's words, the calls that did not fail, and the answer. No text of a result enters it, and no secret.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pagein.context.ledger.error_lines import find_errors, has_failed
from pagein.events.handles import step_handle
from pagein.events.identifiers import parse_arguments
from pagein.events.protocol import FENCED, split_text_action
from pagein.events.secrets import holds_secret
from pagein.events.shell import COMPANIONS, split_command
from pagein.events.steps import ActionStep, FinalAnswerStep, Observation, Step, TaskStep, as_text
from pagein.facts.block import render_line
from pagein.facts.fact import PROCEDURE, Fact, FactError
from pagein.facts.ranking import RankedFact, plain_text
from pagein.search.tfidf import fact_terms
from pagein.summaries.key_items import split_sentences
from pagein.summaries.sanitize import one_line

TASK_MAX_CHARS, STEP_MAX_CHARS, SECRET_MAX_CHARS = 200, 120, 400
"""Characters of a task and a step, and those searched for a secret: more, as a cut may hide that it is one."""

MAX_STEPS, MAX_SCRATCH_STEPS, MAX_LOOKS = 12, 2, 4
"""Steps of a procedure: in all, about files that were removed again, and that change nothing."""

MIN_TASK_TERMS, READ_MAX_CHARS = 3, 8_000
"""Different terms from which a message sets a task, and is no greeting; characters read of it, and of a call."""

MIN_SIMILARITY, MIN_COMMON_TERMS = 0.1, 2
"""The terms that two similar tasks have in common: their share of all, and their number. Measured: decision 0050."""

MAX_SHOWN, SHOWN_SHARE = 2, 0.4
"""Procedures in a view, and their share of its tokens for facts."""

UNCONFIRMED_CONFIDENCE = 0.5
"""Confidence in a procedure that nobody confirmed: of too many facts it leaves before those that somebody said."""

_INTRODUCTION = re.compile(
    r"\s*(?:</?[^<>]{1,60}>|.*[:\uff1a]|#{2,6} .*|(?:[-*] )?\[[ xX]\] .*|[#=*_-]{0,80}\s{0,9}[\w.]{0,40}[=*_-]{0,80})\s*"
)
"""Lines before a task: tags, headings, checkboxes, rules, single words, and what ends with a colon."""

_PREAMBLE = re.compile(r"(?:import|from)\s+[\w.]+|#|//|/?\*|\"\"\"|'''|using\s|package\s|[\s{}()\[\];,]*$")
"""Lines of a program that do not tell what it does."""

_LOOK = re.compile(
    r"(?i:get|read|view|list|search|fetch|look|open|glob|show|query|check|calculate|describe|visit"
    r"|inspect|recall|expand|pin|note|forget|remember|compact|which|file|stat|more|od"
    r"|diff|env|cut|goto|scroll|sed\s+-n|git\s+(?:status|log|diff|show|branch|grep|blame|ls-files)"
    rf"|pip3?\s+(?:show|list|freeze)|{'|'.join(sorted(COMPANIONS - {'sed'}))})(?![a-z0-9.-])"
)
"""Names of tools, and commands, that change nothing, unless they write to a file."""

_WRITE = re.compile(r"(?:^|[^-=>&\d])>{1,2}\s*(?!&|/dev/null)[\w./~$\"'-]|\btee\b")
_REMOVE = re.compile(r"\brm\s+(?:-\w+\s+)*([^;&|\n]+)")
_NAME = re.compile(r"(?<![\w./-])(?=[\w./-]*[\d./_])[\w./-]{3,}")
_PATH = re.compile(r"\w[./]\w")


class _Call(NamedTuple):
    """A call that did not fail: its position, its line, all of its arguments and the first line of them."""

    position: int
    line: str
    text: str
    head: str
    is_look: bool


def derive_procedure(steps: Sequence[tuple[int, Step]], task: str | None = None) -> tuple[str, tuple[str, ...]]:
    """Derive how the last task with an action was done, as lines: the task (``task``, or the user's words), the steps, the answer.

    Returns the handles of the steps that it is from, too. Raises FactError where none succeeded, or nothing says the task.
    """
    if not isinstance(task, str | None):
        raise FactError(f"a task is text, not {task!r:.80}. Nothing was recorded.")
    steps = steps[_task_start([step for _, step in steps]) :]
    position, words = _find_task(steps)
    line = describe_task(words if task is None else task)
    if not line:
        raise FactError("nothing describes the task without a secret: name it with task=. Nothing was recorded.")
    calls = _select([call for at, step in steps if isinstance(step, ActionStep) for call in _calls(at, step)])
    if not calls:
        raise FactError("no step of the task succeeded, so that there is no procedure. Nothing was recorded.")
    answer_position, answer = _find_answer(steps)
    lines = [line, *(f"{number}. {call.line}" for number, call in enumerate(calls, 1)), f"Ended: {answer}"]
    positions = [position if task is None else -1, *(call.position for call in calls), answer_position]
    handles = tuple(step_handle(at) for at in dict.fromkeys(positions) if at >= 0)
    return "\n".join(lines if answer else lines[:-1]), handles


def current_tasks(items: Sequence[object]) -> tuple[str, ...]:
    """Describe the task of a run's items, and the newest message of the user, each in a line."""
    newest = next((item for item in reversed(items) if isinstance(item, TaskStep)), None)
    tasks = (_find_task(enumerate(stretch))[1] for stretch in (items[_task_start(items) :], (newest,)))
    return tuple(dict.fromkeys(filter(None, map(describe_task, tasks))))


@functools.lru_cache(maxsize=128)
def describe_task(text: str) -> str:
    """Describe a task in one line: its first sentences that say something, without secrets, which the line before may name."""
    task = before = ""
    for line in FENCED.sub("\n", text).splitlines():
        for sentence in () if _INTRODUCTION.fullmatch(line) else split_sentences(line):
            if task and len(task) + len(sentence) >= TASK_MAX_CHARS:
                return one_line(task, TASK_MAX_CHARS)
            if not holds_secret(sentence) and (holds_secret(before) or not holds_secret(f"{before} {sentence}")):
                task = f"{task} {sentence}".strip()
            before = sentence[-TASK_MAX_CHARS:]
        before = line.strip()[-TASK_MAX_CHARS:] or before
    return one_line(task or ("" if holds_secret(text[:SECRET_MAX_CHARS]) else text), TASK_MAX_CHARS)


def rank_procedures(procedures: Iterable[Fact], tasks: Sequence[str]) -> tuple[RankedFact, ...]:
    """Rank the procedures whose task is similar to one of ``tasks``, best first. Each scores as the best fact does."""
    shares = ((fact, max((_similarity(task, fact.headline) for task in tasks), default=0.0)) for fact in procedures)
    similar = (RankedFact(fact, 1.0, share) for fact, share in shares if share >= MIN_SIMILARITY)
    return tuple(sorted(similar, key=lambda item: (-item.similarity, -item.fact.seen_at, item.fact.id)))


def fit_procedures(ranked: Iterable[RankedFact], tokens: int, cost: Callable[[str], int]) -> list[RankedFact]:
    """The facts without the procedures that do not fit in their share of the tokens."""
    room, fitting = int(tokens * SHOWN_SHARE), list[RankedFact]()
    for item in ranked:
        price = cost(render_line(item.fact)) if item.fact.category == PROCEDURE else 0
        if price <= room:
            room -= price
            fitting.append(item)
    return fitting


def _similarity(task: str, other: str) -> float:
    """The share of the terms of two tasks that both have; 0 for fewer than two, unless a task has no more."""
    terms, others = _task_terms(task), _task_terms(other)
    common = len(terms & others)
    return common / len(terms | others) if common >= min(MIN_COMMON_TERMS, len(terms), len(others)) > 0 else 0.0


@functools.lru_cache(maxsize=1024)
def _task_terms(task: str) -> frozenset[str]:
    return frozenset(fact_terms(task))


def _task_start(steps: Sequence[object]) -> int:
    """The place behind the last final answer that an action follows."""
    start = len(steps)
    for kind in (ActionStep, FinalAnswerStep):
        while start and not isinstance(steps[start - 1], kind):
            start -= 1
    return start


def _find_task(steps: Iterable[tuple[int, object]]) -> tuple[int, str]:
    """Find the message of the user that sets the task, with its position: the last one before the first action."""
    position, words, is_task = -1, "", False
    for at, step in steps:
        if isinstance(step, ActionStep) and is_task:
            break
        if isinstance(step, TaskStep):
            text = plain_text(step.content)[:READ_MAX_CHARS]
            says_task = len(_task_terms(describe_task(text))) >= MIN_TASK_TERMS
            if says_task or not is_task:
                position, words, is_task = at, text, says_task
    return position, words


def _find_answer(steps: Sequence[tuple[int, Step]]) -> tuple[int, str]:
    """The position of the last answer, and its first sentence; "" where there is none, or it holds a secret."""
    for at, step in reversed(steps):
        is_reply = isinstance(step, ActionStep) and not (step.tool_calls or step.observations)
        if isinstance(step, FinalAnswerStep) or is_reply:
            sentence = next(split_sentences(plain_text(step.content)), "")
            return at, "" if holds_secret(sentence) else one_line(sentence, TASK_MAX_CHARS)
    return -1, ""


def _calls(position: int, step: ActionStep) -> Iterator[_Call]:
    """The calls of an action that did not fail; an action in text is one call."""
    calls = [(call.name, parse_arguments(call.arguments)) for call in step.tool_calls]
    if not calls and step.observations:
        prose, action = split_text_action(as_text(step.content))
        calls = [("", {"": (action or prose).removeprefix("Action:")})]
    for (name, fields), observation in zip(calls, step.observations, strict=False):
        if name not in ("final_answer", "think") and observation is not None and not _is_failure(observation):
            values = {  # in nested values the ends of lines are no part of a word
                key: value.strip() if isinstance(value, str) else re.sub(r"\\[nrt]", " ", str(value))
                for key, value in fields.items()
            }
            text = "\n".join(values.values())[:READ_MAX_CHARS]
            head = text.partition("\n")[0]
            is_look = len(fields) == 1 and not _WRITE.search(head) and all(map(_LOOK.match, split_command(head)))
            yield _Call(position, _call_line(name, values), text, head, is_look or _LOOK.match(name) is not None)


def _is_failure(observation: Observation) -> bool:
    first_line = as_text(observation.content).lstrip()[:300].partition("\n")[0]
    return observation.status != "ok" or has_failed(observation) or bool(find_errors(first_line, failed=False))


def _call_line(name: str, arguments: Mapping[str, str]) -> str:
    """A call in one line, without comments and imports, up to where a secret begins, which a key or the tool's name may tell."""
    text = ""
    for piece in _pieces(arguments):
        is_secret = holds_secret(f"{name.replace('_', ' ')} {text}{piece[:SECRET_MAX_CHARS]}")
        text += " (a secret)" if is_secret else piece
        if is_secret or len(text) > STEP_MAX_CHARS:
            break
    text = text.removeprefix(f" {next(iter(arguments))}=") if len(arguments) == 1 else text
    return one_line(": ".join(filter(None, (name, text.strip()))) or "(nothing)", STEP_MAX_CHARS)


def _pieces(arguments: Mapping[str, str]) -> Iterator[str]:
    """The lines of arguments that tell what is done, each with what stands before it in one line."""
    for key, value in arguments.items():
        lines = [line.strip() for line in value.splitlines()]
        for number, line in enumerate([line for line in lines if not _PREAMBLE.match(line)] or lines):
            yield f"; {line}" if number else f" {key}={line}"


def _select(calls: Sequence[_Call]) -> list[_Call]:
    """The calls that matter, in order: of those that look at the same the first, of others that are repeated the last.

    A look matters where a later call has a name that it has, too, or edits the file that it opened; or where there is no other.
    """
    removals = " ".join(names for call in calls for names in _REMOVE.findall(call.text))
    removed = {name.removeprefix("./") for name in _NAME.findall(removals)}
    looks, scratch, others = dict[str, int](), dict[str, int](), dict[str, int]()
    places, used, opened = dict[str, set[int]](), set[int](), -1
    for index, call in enumerate(calls):
        names = _NAME.findall(call.head)
        path = next(filter(_PATH.search, names), None)
        opened = opened if path is None else index
        if call.is_look:
            looks.setdefault(path or call.head, index)
            for name in names:
                places.setdefault(name, set()).add(index)
            continue
        used = used.union(
            [opened] * call.head.startswith(("edit ", "insert ")),
            *(places.get(name, ()) for name in _NAME.findall(call.text)),
        )
        if not any(name in call.head for name in removed):
            others[call.line] = index
        elif not _REMOVE.search(call.head):
            scratch[re.sub(r"\d+", "", call.head)] = index
    seen = [index for index in looks.values() if index in used or not others][-MAX_LOOKS:]
    best = [*sorted(others.values())[-MAX_STEPS:], *sorted(scratch.values())[-MAX_SCRATCH_STEPS:], *seen]
    return [calls[index] for index in sorted(best[:MAX_STEPS])]
