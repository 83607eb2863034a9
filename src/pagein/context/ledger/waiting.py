"""Work that goes on elsewhere under an id: a program in the background, an agent beside this one, an approval that was asked for.

A result names its id and says that it goes on. It is over where a later call or text that names the id says so. Pure and bounded.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, replace
from itertools import accumulate, islice
from typing import Any

from pagein.context.ledger.error_lines import EXIT_CODE, clip_line
from pagein.events.handles import Place, place_handle
from pagein.events.identifiers import format_call
from pagein.events.secrets import holds_secret
from pagein.events.steps import ToolCall

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

_GOES_ON = re.compile(
    r"(?i)\b(?:(?:still |now )?running|in[ _-](?:the )?background|started|starting|launched|spawned|queued|enqueued|scheduled|pending"
    r"|waiting|await(?:s|ing)|submitted|in[ _-]?progress|detached|dispatched|requested|armed)\b"
)
_IS_OVER = re.compile(
    r"(?i)\b(?:killed|terminated|stopped|finished|completed?|exit(?:ed|[ _-]?code)|done|succeeded|success|failed|failure|cancell?ed|aborted|granted"
    r"|approved|denied|rejected|expired|deleted|removed|merged|closed|not (?:found|running)|no such|fired|ended|resolved|revoked)\b"
)
_STATUS = re.compile(r"(?i)\b(?:status|state)[\"']?\s*[>:=]\s*[\"']?(?P<status>[a-z][a-z _-]*)")
"""A status with its label, as in JSON or in a notice: ``"status": "running"``, ``<status>completed``."""

_EXITED = re.compile(rf"(?im)^\W*(?:process )?{EXIT_CODE}\d")
"""The line of a tool, before the output of a program, that says that it has ended: of what the call names, and no page or mail."""

_ENDS = re.compile(r"(?i)kill|stop|cancel|terminat|abort|close|delete|remove|revoke|wait|join|collect")
"""The name or the arguments of a call that ends what it names: ``kill_shell``, ``kill 48213``."""

_ID = re.compile(
    r"(?i)(?:\b(?:pid|job|task|process|session|shell|agent|timer|batch|build|run|request|approval|ticket|execution|deployment|workflow"
    r"|container|thread|worker|terminal|transfer|export|import|query|operation|cell|sandbox|reminder|alarm|instance)[ _-]?(?:id)?s?|\bid)"
    r"[ :=#\"'(\[`<>]{1,4}(?:(?:is|ID|id)[ :=#\"'`]{1,3})?(?P<id>(?=[\w./:-]*\d)\w[\w./:-]{0,78}\w)"
)
"""An id with a digit behind the word for what it names: ``agentId: a7f39c1``, ``job 884211``, ``with ID: bash_7``."""

_PROCESS_ID = re.compile(
    r"(?i)(?:pid|(?:sub_?agent|agent|process|proc|job|shell|bash|worker)[ _-]?(?:id|pid))[\"']? ?[:=]"
)
"""A label that names what runs, by itself: ``pid: 48213``, ``"job_id": "j1"``."""

_WORD = re.compile(r"\w+")
_SHORT_NUMBER = re.compile(r"\d{1,3}")

_SHELL_JOB = re.compile(r"^\[\d+\] (?P<id>\d{2,8})$", re.MULTILINE)
"""The line of a shell about a job in the background, ``[1] 48213``; R shows a number so."""

_IN_BACKGROUND = re.compile(r"(?<![&>])&(?![&>\d])")
"""The mark of a command that a shell runs in the background: ``serve &``, not ``a && b`` or ``2>&1``."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


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


class WaitingItems:
    """The work that goes on elsewhere in one run. The same results and texts give the same."""

    def __init__(self) -> None:
        self._items: dict[str, WaitingItem] = {}

    def going_on(self) -> tuple[WaitingItem, ...]:
        """Return the items that go on, oldest first."""
        return tuple(item for item in self._items.values() if item.end is None)

    def learn(self, place: Place, call: ToolCall, result: str, *, has_failed: bool) -> None:
        """Fold the result of a call: first what it ends, then what it begins.

        Of what a call does not name, only the tool that began it says that it is over: a page or a mail may say anything.
        """
        for part in _parts(result):
            self._end_named_in(place[0], part, call.name)
        ends = not has_failed and (_ENDS.search(call.name) or _ENDS.search(call.arguments)) is not None
        has_exited = _EXITED.search(result, 0, NOTICE_CHARS) is not None
        is_over = True if has_exited else _reads_as_over(result, 0, result if _is_short(result) else "")
        for id, item in list(self._items.items()):
            is_named = item.end is None and id in call.arguments and _pattern_of(id).search(call.arguments)
            if is_named and (ends if is_over is None else is_over):
                self._items[id] = replace(item, end=place[0])
        if not has_failed:
            self._find(place, call, result)

    def learn_text(self, position: int, text: str, whole: str) -> None:
        """End what a text says to be over; ``whole`` has what the application put beside it, too, as a notice."""
        for part in _SENTENCE_END.split(text) if whole == text else (whole,):
            self._end_named_in(position, part)

    def has_step(self, position: int) -> bool:
        """True where a step began what goes on."""
        return any(item.place[0] == position for item in self.going_on())

    def remove_step(self, position: int) -> None:
        """Drop what a step began."""
        self._items = {id: item for id, item in self._items.items() if item.place[0] != position}

    def remove_result(self, place: Place) -> None:
        """Drop what a result named."""
        self._items = {id: item for id, item in self._items.items() if item.place != place}

    def find_hidden(self, is_hidden: Callable[[int], bool], newest: int) -> tuple[WaitingItem, ...]:
        """Return what the hidden steps began and is not over by steps that are hidden, or before the ``newest`` that left."""
        return tuple(
            item
            for item in self._items.values()
            if is_hidden(item.place[0]) and (item.end is None or not (item.end < newest or is_hidden(item.end)))
        )

    def to_state(self) -> list[Any]:
        """Return the items as JSON-safe values."""
        return [[*item.place, *astuple(item)[1:]] for item in self._items.values()]

    @classmethod
    def from_state(cls, state: Iterable[Any]) -> WaitingItems:
        """Restore the items from ``to_state``."""
        items = cls()
        for position, index, id, *words in state:
            items._items[id] = WaitingItem((position, index), id, *words)
        return items

    def _find(self, place: Place, call: ToolCall, text: str) -> None:
        """Find what a result says to go on."""
        may_be_job = _IN_BACKGROUND.search(call.arguments) is not None
        for part in _parts(text):
            for match in _ids_that_go_on(part, may_be_job=may_be_job):
                if not _is_short(text) and text.count(match["id"]) > 1:
                    continue  # a log
                item = _make_item(place, call, part, match)
                before = self._items.pop(item.id, None)
                # What is asked for again and goes on stays under the call that began it.
                self._items[item.id] = item if before is None or before.end is not None else before
        while len(self._items) > MAX_WAITING:
            over = (id for id, item in self._items.items() if item.end is not None)
            del self._items[next(over, next(iter(self._items)))]

    def _end_named_in(self, position: int, text: str, tool: str = "") -> None:
        """End what a text names and says to be over; of a ``tool``'s result only what the tool began."""
        for id, item in list(self._items.items()):
            may_end = item.end is None and tool in ("", item.tool) and id in text
            match = _pattern_of(id, item.kind).search(text) if may_end else None
            if match is None:
                continue
            start, stop = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
            is_over = _reads_as_over(text, match.end(), text[match.end() : stop if stop >= 0 else None])
            if _ends_as_over(text[start : match.start()]) if is_over is None else is_over:
                self._items[id] = replace(item, end=position)


def render_waiting(item: WaitingItem, *, is_short: bool) -> str:
    """Return the line of an item: its call and the words around its id, or in a short one the id and the call."""
    handle = place_handle(item.place)
    if is_short:
        return f"[{handle}] {item.id}: {clip_line(item.call, SHORT_CALL_MAX_CHARS)}"
    return f"[{handle}] {item.call} > {item.line}"


def _make_item(place: Place, call: ToolCall, text: str, match: re.Match[str]) -> WaitingItem:
    kind = _WORD.match(text[match.start() : match.start("id")])
    words, line = (
        clip_line(format_call(call.name, call.arguments).brief, CALL_MAX_CHARS),
        _words_around(text, match.end()),
    )
    if holds_secret(words) or holds_secret(line):
        words, line = call.name, match["id"]
    return WaitingItem(place, match["id"], kind[0].lower() if kind else "job", call.name, words, line)


def _words_around(text: str, end: int) -> str:
    """Return the words around an id on one line."""
    before = " ".join(text[:end].split())
    first = max(0, len(before) - LINE_MAX_CHARS + AFTER_ID_MAX_CHARS)
    behind = " " * text[end : end + 1].isspace() + clip_line(text[end:], AFTER_ID_MAX_CHARS)
    return ("\u2026" * bool(first) + before[first:] + behind).rstrip()


def _is_short(text: str) -> bool:
    return len(text) <= SHORT_RESULT_CHARS and text.count("\n") < SHORT_RESULT_LINES


def _parts(text: str) -> tuple[str, ...]:
    """Return a short text whole, and the first and the last lines of a longer one."""
    if _is_short(text):
        return (text,)
    lines = [line[:SHORT_RESULT_CHARS] for line in text.splitlines() if line.strip()]
    return (*lines[:END_LINES], *lines[END_LINES:][-END_LINES:])


def _reads_as_over(text: str, start: int, words: str) -> bool | None:
    """Return what the status from ``start`` on says, else the ``words``: it is over, or goes on; None where neither is said."""
    status = _STATUS.search(text, start, start + NOTICE_CHARS)
    return _begins_as_over(status["status"] if status else words)


def _begins_as_over(text: str) -> bool | None:
    """Return what a text says first: that something is over, or that it goes on; None where it says neither.

    >>> _begins_as_over("exited, was running"), _begins_as_over("running until done"), _begins_as_over("ok")
    (True, False, None)
    """
    over, goes_on = _IS_OVER.search(text), _GOES_ON.search(text)
    if over is None:
        return None if goes_on is None else False
    return goes_on is None or over.start() < goes_on.start()


def _ends_as_over(text: str) -> bool:
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
        if len(matches) == 1 or not _begins_as_over(text[match.end() : min(end, match.end() + LINE_MAX_CHARS)]):
            yield match


def _near(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - LINE_MAX_CHARS) : match.end() + LINE_MAX_CHARS]


def _pattern_of(id: str, kind: str = "") -> re.Pattern[str]:
    """Return the pattern of an id; a short number is one behind the word for what it names."""
    is_short = kind and _SHORT_NUMBER.fullmatch(id)
    before = rf"(?i:(?:{re.escape(kind)}|id)[\"']?[\s:=(\"']{{1,4}}#?|#)" if is_short else r"(?<![\w-])"
    return re.compile(rf"{before}{re.escape(id)}(?![\w-])")
