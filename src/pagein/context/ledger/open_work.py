"""The work of a run: the newest lists of tasks, what runs or waits elsewhere under an id, and what was answered. Pure and bounded.

A program that was started in the background, an agent that works beside this one, an approval that was asked for: a
result names its id and says that it goes on. It is over where a later call or text that names the id says so.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import accumulate, islice
from typing import Any, NamedTuple

from pagein.context.ledger.error_lines import clip_line, has_failed
from pagein.context.ledger.task_lists import (
    TaskList,
    TaskRow,
    TaskState,
    find_boxes,
    find_task_lists,
    read_id,
    read_state,
    read_text,
)
from pagein.events.entries import Slot
from pagein.events.handles import observation_handle, step_handle
from pagein.events.identifiers import format_call, parse_arguments
from pagein.events.secrets import holds_secret
from pagein.events.steps import Observation, ToolCall, as_text
from pagein.tokens import TokenCounter

MAX_VERSIONS, MAX_SOURCES = 64, 3
"""Versions remembered of a list of tasks, and lists; beyond it the oldest is dropped."""

MAX_TASKS = 200
"""Tasks remembered of a list: its last ones."""

MAX_ANSWERS, ANSWER_MAX_CHARS = 256, 120
"""Answers remembered of requests that took work, and characters kept of each."""

MAX_WAITING = 64
"""Things that run or wait which are remembered; beyond it the oldest is dropped, those that are over first."""

NOTICE_CHARS = 600
"""Characters behind an id in which a status is looked for."""

MAX_IDS_PER_RESULT = 2
"""Ids of one result that may go on; what names more is a listing."""

SHORT_RESULT_CHARS, SHORT_RESULT_LINES, END_LINES = 2_000, 12, 2
"""A result up to these characters and lines is read whole, of a longer one the first and last lines: logs say what ran, not what runs."""

CALL_MAX_CHARS, SHORT_CALL_MAX_CHARS, LINE_MAX_CHARS, AFTER_ID_MAX_CHARS = 60, 28, 140, 40
"""Characters of the call in a line and in a short one, of the words around the id, and of those behind it."""

SHORT_TOKENS = 160
"""Tokens up to which the lines are short."""

HEAD = "Open when these steps left the view; a newer step may say otherwise. > in progress, x done, - open."
SHORT_HEAD = "Open:"
"""The headings."""

HIDDEN_WORDS = "(words with a secret)"
"""What stands for an answer or a task that holds a secret: no block repeats one."""

_GOES_ON = re.compile(
    r"(?i)\b(?:(?:still |now )?running|in[ _-](?:the )?background|started|starting|launched|spawned|queued|enqueued|scheduled|pending"
    r"|waiting|await(?:s|ing)|submitted|in[ _-]?progress|detached|dispatched|requested|armed)\b"
)
_IS_OVER = re.compile(
    r"(?i)\b(?:killed|terminated|stopped|finished|completed?|exit(?:ed|[ _-]?code)|done|succeeded|success|failed|failure|cancell?ed|aborted|granted"
    r"|approved|denied|rejected|expired|deleted|removed|merged|closed|not (?:found|running)|no such|fired|ended|resolved|revoked)\b"
)
_STATUS = re.compile(r"(?i)\b(?:status|state)[\"']?\s*[>:=]\s*[\"']?(?P<status>[a-z][a-z _-]*)")
"""A status with its label, as in JSON or in a notice."""

_ENDS = re.compile(r"(?i)kill|stop|cancel|terminat|abort|close|delete|remove|revoke|wait|join|collect")
_ID = re.compile(
    r"(?i)(?:\b(?:pid|job|task|process|session|shell|agent|timer|batch|build|run|request|approval|ticket|execution|deployment|workflow"
    r"|container|thread|worker|terminal|transfer|export|import|query|operation|cell|sandbox|reminder|alarm|instance)[ _-]?(?:id)?s?|\bid)"
    r"[ :=#\"'(\[`<>]{1,4}(?:(?:is|ID|id)[ :=#\"'`]{1,3})?(?P<id>(?=[\w./:-]*\d)\w[\w./:-]{0,78}\w)"
)
"""An id with a digit behind the word for what it names."""

_PROCESS_ID = re.compile(
    r"(?i)(?:pid|(?:sub_?agent|agent|process|proc|job|shell|bash|worker)[ _-]?(?:id|pid))[\"']? ?[:=]"
)
"""A label that names what runs, by itself."""

_WORD = re.compile(r"\w+")
_SHORT_NUMBER = re.compile(r"\d{1,3}")

_SHELL_JOB = re.compile(r"^\[\d+\] (?P<id>\d{2,8})$", re.MULTILINE)
"""The line of a shell about a job in the background; R shows a number so."""

_IN_BACKGROUND = re.compile(r"(?<![&>])&(?![&>\d])")
"""The mark of a command that a shell runs in the background."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")

_CREATES, _UPDATES = (
    re.compile(r"(?i)(?:create|add|new)_?(?:todo|task)|(?:todo|task)_?(?:create|add|new)"),
    re.compile(
        r"(?i)(?:update|set|edit|mark|complete|finish|close|delete|remove|cancel)_?(?:todo|task)"
        r"|(?:todo|task)_?(?:update|set|edit|complete|finish|close|done|delete|remove|cancel)"
    ),
)
"""Names of tools that add one task to a list, and that change one."""

ONE_BY_ONE = "tasks"
"""The source of the list of such tasks."""

_NAMED_STATES: tuple[tuple[re.Pattern[str], TaskState], ...] = (
    (re.compile(r"(?i)(?<!in)(?<!un)complete|finish|close|done"), "done"),
    (re.compile(r"(?i)delete|remove|cancel"), "dropped"),
)
"""What the name of such a tool makes of a task, where no status does."""

_TASK_ID_KEY = re.compile(r"(?i)(?:task|todo)?_?id")

_MARKDOWN = re.compile(r"[#*|]+(?=\s|$)|(?<!\S)[#*|]+|\*\*|-{3,}|^>", re.MULTILINE)
_PRELUDE = re.compile(
    r"(?i)\s*(?:(?:now i (?:have|understand|see|can)|i (?:now )?(?:have|understand)|let me|here(?:'s| is| are)|perfect|great|excellent|good|okay|ok)\b"
    r"[^.!?:\n]{0,120}[.!?:]+(?:\s+|$))+"
)

_NEW_IDS = (
    re.compile(r"(?i)(?:\btask|\btodo|id)[\"']?[\s:=#\"']{1,5}(?P<id>[\w-]*\d[\w-]*)"),
    re.compile(r"(?P<id>[\w-]*\d[\w-]*)"),
)
"""The id of a new task in a result: the one that is called so, else the first number."""

_MARKS: Mapping[TaskState, str] = {"done": "x", "now": ">", "open": "-", "blocked": "!", "dropped": "x"}
_ORDER: tuple[TaskState, ...] = ("now", "blocked", "open", "done")

Place = tuple[int, int]
"""The position of a step, and the number of its call."""


class PlanVersion(NamedTuple):
    """The tasks of a list as a call left them."""

    place: Place
    rows: tuple[TaskRow, ...]


class WorkAnswer(NamedTuple):
    """The words of the model at the end of its work, shortened, and the position of the next thing that was said or called."""

    text: str
    end: int | None = None


@dataclass(frozen=True, slots=True)
class WaitingItem:
    """Something that goes on elsewhere: the place of the result that named its id, the call, and the words around the id.

    ``kind`` is the word before its id, as "pid" or "agentid"; ``end`` the position at which it was said to be over.
    """

    place: Place
    id: str
    kind: str
    tool: str
    call: str
    line: str
    end: int | None = None


@dataclass(frozen=True, slots=True)
class OpenLines:
    """The open work of hidden steps: the newest version of each list of tasks, and what goes on, oldest first."""

    plans: tuple[PlanVersion, ...]
    waiting: tuple[WaitingItem, ...]

    @property
    def keys(self) -> tuple[tuple[int | str, ...], ...]:
        """The places of what is shown, which says all that may change in it."""
        return (*(("plan", *plan.place) for plan in self.plans), *((item.id, *item.place) for item in self.waiting))


class WorkLedger:
    """The lists of tasks of one run, and what goes on elsewhere. The same results give the same."""

    def __init__(self) -> None:
        self._plans: dict[str, list[PlanVersion]] = {}
        """By source, the versions of a list of tasks, oldest first; the source with the newest one last."""
        self._waiting: dict[str, WaitingItem] = {}
        self.answers: dict[int, WorkAnswer] = {}
        """By position, what the model said on what took work, and called no tool."""
        self._has_called = False

    def note_step(self, position: int) -> None:
        """Note that something was said or called behind the last answer."""
        last = next(reversed(self.answers), None)
        if last is not None and self.answers[last].end is None and position > last:
            self.answers[last] = self.answers[last]._replace(end=position)

    def learn(self, place: Place, call: ToolCall, observation: Observation) -> None:
        """Fold the result of a call at this place."""
        self._has_called = True
        if has_failed(observation):
            self._close_named(place[0], call, as_text(observation.content), has_failed=True)
            return
        text = as_text(observation.content)
        for tasks in find_task_lists(call.arguments, call.name):
            self._add_version(place, tasks)
        self._change_task(place, call, text)
        self._close_named(place[0], call, text, has_failed=False)
        self._find_waiting(place, call, text)

    def learn_edited(self, place: Place, call: ToolCall) -> None:
        """Fold the lists of tasks in arguments that were changed by hand, in the place of the old ones."""
        for tasks in find_task_lists(call.arguments, call.name):
            self._add_version(place, tasks)
            self._plans.get(tasks.source, []).sort(key=lambda version: version.place)

    def learn_text(self, position: int, text: str, whole: str, *, is_own: bool) -> None:
        """Fold what was said in text: what is over, and where the model says it, its answer and its list of tasks.

        ``whole`` has what the application put beside it, too, as a notice that something is over.
        """
        for part in _SENTENCE_END.split(text) if whole == text else (whole,):
            self._close(position, part)
        if not text:
            return  # nobody spoke
        self.note_step(position)
        if is_own and self._has_called:
            self.answers[position] = WorkAnswer(_without_secret(clip_line(_drop_prelude(text), ANSWER_MAX_CHARS)))
            while len(self.answers) > MAX_ANSWERS:
                del self.answers[next(iter(self.answers))]
        self._has_called = is_own and self._has_called
        rows = tuple(find_boxes(text)) if is_own and "[" in text else ()
        if len(rows) > 1:
            self._add_version((position, 0), TaskList("", rows))

    @property
    def waiting(self) -> tuple[WaitingItem, ...]:
        """The items that go on, oldest first."""
        return tuple(item for item in self._waiting.values() if item.end is None)

    def has_step(self, position: int) -> bool:
        """True where a step made a list of tasks, or began what goes on."""
        versions = (version for versions in self._plans.values() for version in versions)
        return any(place[0] == position for place, *_ in versions) or any(
            item.place[0] == position for item in self.waiting
        )

    def remove_step(self, position: int) -> None:
        """Drop what is open by a step."""
        self._plans = {
            source: others
            for source, versions in self._plans.items()
            if (others := [version for version in versions if version.place[0] != position])
        }
        self._waiting = {id: item for id, item in self._waiting.items() if item.place[0] != position}

    def remove_slot(self, place: Place, slot: Slot) -> None:
        """Drop what is open by a slot of a step: the lists in the model's words or in the arguments of a call, or what its result named."""
        for source, versions in list(self._plans.items()):
            if slot == ("arguments" if source else "content"):
                self._plans[source] = [version for version in versions if version.place != place]
        if slot != "content":
            self._waiting = {id: item for id, item in self._waiting.items() if item.place != place}

    def find_hidden(
        self, is_hidden: Callable[[int], bool], hides_words: Callable[[int], bool], newest: int = -1
    ) -> OpenLines:
        """Return what is open by the steps whose results are hidden, and the lists of those that hide the model's words.

        Steps in view change nothing, so a block stays as it is. But what is over is so by steps before ``newest``, the
        newest one that left: the words of the user stay in view for long.
        """
        plans = list[PlanVersion]()
        for versions in self._plans.values():
            hidden = (version for version in reversed(versions) if hides_words(version.place[0]))
            plans += (version for version in islice(hidden, 1) if version.rows)
        waiting = (
            item
            for item in self._waiting.values()
            if is_hidden(item.place[0]) and (item.end is None or not (item.end < newest or is_hidden(item.end)))
        )
        return OpenLines(tuple(sorted(plans, key=lambda plan: plan.place)), tuple(waiting))

    def to_state(self) -> list[Any]:
        """Return it as JSON-safe values."""
        plans = {
            source: [[*version.place, *map(astuple, version.rows)] for version in versions]
            for source, versions in self._plans.items()
        }
        waiting = [
            [*item.place, item.id, item.kind, item.tool, item.call, item.line, item.end]
            for item in self._waiting.values()
        ]
        return [plans, waiting, [[at, *answer] for at, answer in self.answers.items()], self._has_called]

    @classmethod
    def from_state(cls, state: Iterable[Any]) -> WorkLedger:
        """Restore it from ``to_state``."""
        work = cls()
        plans, waiting, answers, work._has_called = state
        work.answers = {position: WorkAnswer(*answer) for position, *answer in answers}
        for source, versions in plans.items():
            work._plans[source] = [
                PlanVersion((position, index), tuple(TaskRow(*row) for row in rows))
                for position, index, *rows in versions
            ]
        for position, index, id, *words in waiting:
            work._waiting[id] = WaitingItem((position, index), id, *words)
        return work

    def _add_version(self, place: Place, tasks: TaskList) -> None:
        versions = self._plans.get(tasks.source, [])
        if not versions and (tasks.old is not None or not tasks.rows):
            return  # a part of a list that was never seen, or none
        whole = tasks.rows if tasks.old is None else tasks.edit(versions[-1].rows)
        rows = (replace(row, text=_without_secret(row.text)) for row in whole[-MAX_TASKS:])
        self._plans.pop(tasks.source, None)
        version = PlanVersion(place, tuple(rows))
        self._plans[tasks.source] = [*versions[1 - MAX_VERSIONS :], version]
        while len(self._plans) > MAX_SOURCES:
            del self._plans[next(iter(self._plans))]

    def _change_task(self, place: Place, call: ToolCall, result: str) -> None:
        """Fold a call that adds one task or changes one."""
        creates, updates = _CREATES.search(call.name), _UPDATES.search(call.name)
        if not creates and not updates:
            return
        fields = parse_arguments(call.arguments)
        versions = self._plans.get(ONE_BY_ONE, [])
        rows = {row.id: row for row in (versions[-1].rows if versions else ())}
        text, state = read_text(fields), read_state(fields.get("status"))
        ids = {name: read_id(value).lstrip("#") for name, value in fields.items() if name.lower().endswith("id")}
        if creates:
            id = next((id for name, id in ids.items() if id and _TASK_ID_KEY.fullmatch(name)), "")
            numbers = (match["id"] for pattern in _NEW_IDS if (match := pattern.search(result)))
            id = id or next(numbers, str(len(rows) + 1))
        else:
            id = next((id for id in ids.values() if id in rows), "")
            state = state or next((state for name, state in _NAMED_STATES if name.search(call.name)), None)
        if not id:
            return
        old = rows.get(id)
        text = text or (old.text if old else "")
        if not text:
            return
        rows[id] = TaskRow(id, text, state or (old.state if old else "open"))
        self._add_version(place, TaskList(ONE_BY_ONE, tuple(rows.values())))

    def _find_waiting(self, place: Place, call: ToolCall, text: str) -> None:
        for part in _parts(text):
            for match in _ids_that_go_on(part, may_be_job=_IN_BACKGROUND.search(call.arguments) is not None):
                id = match["id"]
                if not _is_short(text) and text.count(id) > 1:
                    continue  # a log
                before = self._waiting.pop(id, None)
                kind = _WORD.match(part[match.start() : match.start("id")])
                about, line = clip_line(_shown_call(call), CALL_MAX_CHARS), _words_around(part, match.end())
                if holds_secret(about) or holds_secret(line):
                    about, line = call.name, id
                item = WaitingItem(place, id, kind[0].lower() if kind else "job", call.name, about, line)
                # What is asked for again and goes on stays under the call that began it.
                self._waiting[id] = item if before is None or before.end is not None else before
        while len(self._waiting) > MAX_WAITING:
            over = (id for id, item in self._waiting.items() if item.end is not None)
            del self._waiting[next(over, next(iter(self._waiting)))]

    def _close_named(self, position: int, call: ToolCall, result: str, *, has_failed: bool) -> None:
        """End what a call names and its result says to be over, and what the call itself ends.

        Of what a call does not name, only the tool that began it says so: a page or a mail may say anything.
        """
        for part in _parts(result):
            self._close(position, part, call.name)
        ends = not has_failed and (_ENDS.search(call.name) or _ENDS.search(call.arguments)) is not None
        status = _STATUS.search(result, 0, NOTICE_CHARS)
        verdict = _is_over(status["status"] if status else result if _is_short(result) else "")
        for id, item in list(self._waiting.items()):
            is_named = item.end is None and id in call.arguments and _name(id).search(call.arguments)
            if is_named and (ends if verdict is None else verdict):
                self._waiting[id] = replace(item, end=position)

    def _close(self, position: int, text: str, tool: str = "") -> None:
        for id, item in list(self._waiting.items()):
            may_end = item.end is None and tool in ("", item.tool) and id in text
            match = _name(id, item.kind).search(text) if may_end else None
            if match is None:
                continue
            start, stop = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
            status = _STATUS.search(text, match.end(), match.end() + NOTICE_CHARS)
            verdict = _is_over(status["status"] if status else text[match.end() : stop if stop >= 0 else None])
            if _was_over(text[start : match.start()]) if verdict is None else verdict:
                self._waiting[id] = replace(item, end=position)


def render_open(lines: OpenLines, tokens: int, counter: TokenCounter) -> str:
    """Return the text of what is open that fits: the lists of tasks, then what goes on, the newest first; "" if nothing fits.

    The newest list has half, then what goes on, then the lists have what is left. Of a list without room for all, the
    tasks that are done leave first, then the last of those that are open.
    """
    is_short = tokens <= SHORT_TOKENS
    head = SHORT_HEAD if is_short else HEAD
    tokens -= counter.text(head) + 1
    least = sum(counter.text(_render_plan(plan, tokens // 2, counter)) + 1 for plan in lines.plans[-1:])
    going_on, remaining = list[str](), tokens - least
    for item in reversed(lines.waiting):
        line = _render_waiting(item, is_short=is_short)
        if (cost := counter.text(line) + 1) <= remaining:
            remaining -= cost
            going_on.insert(0, line)
    remaining += least
    plans = list[str]()
    for plan in reversed(lines.plans):
        text = _render_plan(plan, remaining, counter)
        if text:
            remaining -= counter.text(text) + 1
            plans.insert(0, text)
    return "\n".join((head, *plans, *going_on)) if plans or going_on else ""


def _render_plan(plan: PlanVersion, tokens: int, counter: TokenCounter) -> str:
    rows = [row for row in plan.rows if row.state != "dropped"]
    done_count = sum(row.state == "done" for row in rows)
    head = f"[{_handle(plan.place)}] tasks, {done_count} of {len(rows)} done"
    room = tokens - counter.text(head) - 2
    if room < 0:
        return ""
    visible: set[int] = set()
    for state in _ORDER if done_count < len(rows) else ():
        numbers = [number for number, row in enumerate(rows) if row.state == state]
        for number in reversed(numbers) if state == "done" else numbers:
            cost = counter.text(_render_task(rows[number])) + 1
            if cost > room:
                room = 0  # what matters less does not take the place of what matters more
                break
            room -= cost
            visible.add(number)
    return "\n".join(
        (f"{head}:" if visible else f"{head}.", *(_render_task(rows[number]) for number in sorted(visible)))
    )


def _render_task(row: TaskRow) -> str:
    return f"{_MARKS[row.state]} {f'{row.id}: ' if row.id else ''}{row.text}"


def _render_waiting(item: WaitingItem, *, is_short: bool) -> str:
    if is_short:
        return f"[{_handle(item.place)}] {item.id}: {clip_line(item.call, SHORT_CALL_MAX_CHARS)}"
    return f"[{_handle(item.place)}] {item.call} > {item.line}"


def _handle(place: Place) -> str:
    return observation_handle(*place) if place[1] else step_handle(place[0])


def _is_short(text: str) -> bool:
    return len(text) <= SHORT_RESULT_CHARS and text.count("\n") < SHORT_RESULT_LINES


def _parts(text: str) -> tuple[str, ...]:
    """Return a short text whole, and the first and the last lines of a longer one."""
    if _is_short(text):
        return (text,)
    lines = [line[:SHORT_RESULT_CHARS] for line in text.splitlines() if line.strip()]
    return (*lines[:END_LINES], *lines[END_LINES:][-END_LINES:])


def _is_over(text: str) -> bool | None:
    """Return what a text says first: that something is over, or that it goes on; None where it says neither."""
    over, goes_on = _IS_OVER.search(text), _GOES_ON.search(text)
    if over is None:
        return None if goes_on is None else False
    return goes_on is None or over.start() < goes_on.start()


def _was_over(text: str) -> bool:
    """True where a text says last that something is over."""
    over, goes_on = (
        max((match.start() for match in words.finditer(text)), default=-1) for words in (_IS_OVER, _GOES_ON)
    )
    return over > goes_on


def _ids_that_go_on(text: str, *, may_be_job: bool) -> tuple[re.Match[str], ...]:
    """Return the ids of what goes on: of processes, and those in a line that says so, else the first at the start of a line beside one."""
    jobs = tuple(_SHELL_JOB.finditer(text)) if may_be_job else ()
    if not _GOES_ON.search(text):
        is_over = not _is_short(text) or _IS_OVER.search(text) is not None
        return (*jobs, *(match for match in _ID.finditer(text) if not is_over and _PROCESS_ID.match(match[0])))
    lines = text.splitlines(keepends=True)
    starts = tuple(accumulate(map(len, lines), initial=0))
    goes_on = [_GOES_ON.search(line) is not None for line in lines]
    ids = [(bisect_right(starts, match.start()) - 1, match) for match in _records_not_over(text)]
    in_lines = tuple(match for at, match in ids if goes_on[at] and _GOES_ON.search(_near(text, match)))
    if len({match["id"] for match in in_lines}) > MAX_IDS_PER_RESULT:
        return jobs
    beside = (
        match
        for at, match in ids
        if not text[starts[at] : match.start()].strip(" \t\"'{") and any(goes_on[max(0, at - 1) : at + 2])
    )
    return (*jobs, *(in_lines or tuple(islice(beside, 1))))


def _records_not_over(text: str) -> Iterator[re.Match[str]]:
    """Yield the ids in a text, of several those behind which no words say first that it is over."""
    matches = tuple(_ID.finditer(text))
    ends = (*(match.start() for match in matches[1:]), len(text))
    for match, end in zip(matches, ends, strict=False):
        if len(matches) == 1 or not _is_over(text[match.end() : min(end, match.end() + LINE_MAX_CHARS)]):
            yield match


def _near(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - LINE_MAX_CHARS) : match.end() + LINE_MAX_CHARS]


def _name(id: str, kind: str = "") -> re.Pattern[str]:
    """Return the pattern of an id; a short number is one behind the word for what it names."""
    is_short = kind and _SHORT_NUMBER.fullmatch(id)
    before = rf"(?i:(?:{re.escape(kind)}|id)[\"']?[\s:=(\"']{{1,4}}#?|#)" if is_short else r"(?<![\w-])"
    return re.compile(rf"{before}{re.escape(id)}(?![\w-])")


def _words_around(text: str, end: int) -> str:
    """Return the words around an id on one line."""
    before = " ".join(text[:end].split())
    first = max(0, len(before) - LINE_MAX_CHARS + AFTER_ID_MAX_CHARS)
    behind = " " * text[end : end + 1].isspace() + clip_line(text[end:], AFTER_ID_MAX_CHARS)
    return ("\u2026" * bool(first) + before[first:] + behind).rstrip()


def _drop_prelude(text: str) -> str:
    """Return an answer without marks of Markdown, and without the sentences that only lead over to it."""
    plain = _MARKDOWN.sub(" ", text[:SHORT_RESULT_CHARS])
    return plain[match.end() :] if (match := _PRELUDE.match(plain)) and match.end() < len(plain.rstrip()) else plain


def _without_secret(text: str) -> str:
    return HIDDEN_WORDS if holds_secret(text) else text


def _shown_call(call: ToolCall) -> str:
    line = format_call(call.name, call.arguments)
    return line.alone or line.text
