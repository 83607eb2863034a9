"""A summary made without a model: what was asked, done, seen to fail and said last, copied from the run by code.

So every strategy works without a model, and the turn is served where a model fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pagein.context.salience.lines import grounds
from pagein.context.salience.tracker import Memo
from pagein.events.identifiers import argument_text
from pagein.summaries.key_items import Mention, error_lines, mentions, sentences
from pagein.summaries.sanitize import normal, one_line
from pagein.summaries.spans import Said, Span
from pagein.summaries.summary import Item, Status, Summary, Task

OBJECTIVE, STATE = 600, 400
"""Characters of the user's words that are the objective, and of the last words said that are the state."""

NOD = 12
"""Characters below which the user's words ("go on", "yes please") replace no objective."""

LONG_RESULT, MOST_HINTS = 2_000, 12
"""Characters from which a result is worth a hint where it is, and the hints a span gets."""

_BOX = re.compile(
    r"^[ \t]*(?:(?:[-*]|\d{1,3}[.)])[ \t]*)?\[(?P<mark>[ xX~-])\][ \t]+(?P<text>\S.*)$", re.MULTILINE
)
_ID = re.compile(r"^(?P<id>#?\w{1,12}-?\d{1,6}|\d{1,3})[:.)]\s+")
_STATUS: Mapping[str, Status] = {
    "done": "done", "completed": "done", "complete": "done", "finished": "done", "blocked": "blocked",
    "open": "open", "pending": "open", "todo": "open", "in_progress": "open", "in progress": "open",
}  # fmt: skip
_NAMES = ("content", "text", "title", "task", "description", "step")


def extracted(span: Span, memo: Memo | None = None) -> Summary:
    """The summary of a span, without a model. ``memo`` puts the identifiers that are likely needed first.

    Equal spans and memos give equal summaries. What it cannot know (questions answered, why) it leaves empty.
    """
    found = mentions(span)
    spoken = [each for each in span.said if each.voice in ("model", "plan", "answer")]
    return Summary(
        objective=_objective(span),
        state=_quoted(spoken[-1], STATE) if spoken else None,
        constraints=_items(found, "constraint"),
        tasks=tuple(_tasks(span)),
        dead_ends=tuple(_dead_ends(span)),
        artifacts=_artifacts(found, memo),
        errors=_items(found, "error"),
        decisions=_items(found, "decision"),
        questions=tuple(_questions(spoken)),
        done=tuple(_done(span)),
        hints=tuple(_hints(span)),
    )


def _quoted(said: Said, most: int) -> Item:
    return Item(one_line(said.text, most), handles=(said.handle,))


def _objective(span: Span) -> Item | None:
    """The user's newest words in the span that are more than a nod: what was asked last is what is being done."""
    asked = [each for each in span.said if each.voice == "user" and len(each.text.strip()) >= NOD]
    return _quoted(asked[-1], OBJECTIVE) if asked else None


def _items(found: Sequence[Mention], kind: str) -> tuple[Item, ...]:
    return tuple(Item(each.text, handles=(each.handle,)) for each in found if each.kind == kind)


def _artifacts(found: Sequence[Mention], memo: Memo | None) -> tuple[Item, ...]:
    """Every identifier with its line; the likely needed last, where a bounded rendering looks first."""
    named = [each for each in found if each.kind in ("path", "identifier", "number")]
    if memo is not None:
        known = memo.names
        named.sort(key=lambda each: memo.name_chance(each.text) if each.text in known else 0.0)
    return tuple(Item(each.text, grounding(each), (each.handle,)) for each in named)


def grounding(each: Mention) -> str:
    """The line of a name where it says what the name is about; else nothing."""
    return each.line if grounds(each.line, each.text) else ""


def _done(span: Span) -> Iterator[Item]:
    failed = {each.about for each in _results(span) if each.failed}
    succeeded = {each.about for each in _results(span) if not each.failed}
    table: dict[str, str] = {}
    for each in span.said:
        if each.voice == "call" and (each.about in succeeded or each.about not in failed):
            table.pop(each.about, None)
            table[each.about] = each.handle
    for about, handle in table.items():
        yield Item(one_line(about), handles=(handle,))


def _dead_ends(span: Span) -> Iterator[Item]:
    """Actions whose last result was a failure, with what it said."""
    last = {each.about: each for each in _results(span)}
    for about, each in last.items():
        if each.failed:
            said = error_lines(each)
            yield Item(one_line(about), said[-1] if said else "", (each.handle,))


def _results(span: Span) -> Iterator[Said]:
    return (each for each in span.said if each.voice == "result" and each.about)


def _questions(spoken: Sequence[Said]) -> Iterator[Item]:
    for each in spoken[-1:]:
        for sentence in sentences(each.text):
            if sentence.endswith(("?", "\uff1f")):
                yield Item(one_line(sentence, 300), handles=(each.handle,))


def _hints(span: Span) -> Iterator[Item]:
    long = [each for each in span.said if each.voice == "result" and len(each.text) >= LONG_RESULT]
    chosen = set(sorted(long, key=lambda each: -len(each.text))[:MOST_HINTS])
    for each in long:
        if each in chosen:
            yield Item(f"{one_line(each.about)} gave {len(each.text):,} characters", handles=(each.handle,))


def _tasks(span: Span) -> Iterator[Task]:
    """To-do lists, as check boxes and as a tool's arguments; the newest word on each task."""
    table: dict[str, Task] = {}
    for said in span.said:
        for task in _listed(said):
            table[task.id or normal(task.text)] = task
    yield from table.values()


def _listed(said: Said) -> Iterator[Task]:
    if said.voice == "result":
        return
    text = said.text
    if said.voice == "call":
        yield from _in_arguments(said)
        text = argument_text(said.text)
    for box in _BOX.finditer(text[:100_000]):
        words = one_line(box["text"], 300)
        named = _ID.match(words)
        status: Status = "done" if box["mark"] in "xX" else "open"
        yield Task(
            words[named.end() :] if named else words,
            "",
            (said.handle,),
            id=named["id"] if named else "",
            status=status,
        )


def _in_arguments(said: Said) -> Iterator[Task]:
    try:
        given = json.loads(said.text)
    except (ValueError, RecursionError):
        return
    for listed in given.values() if isinstance(given, dict) else ():
        for each in listed if isinstance(listed, list) else ():
            task = _as_task(each, said.handle) if isinstance(each, dict) else None
            if task is not None:
                yield task


def _as_task(value: Mapping[str, Any], handle: str) -> Task | None:
    status = _STATUS.get(str(value.get("status", "")).lower())
    text = next((value[name] for name in _NAMES if isinstance(value.get(name), str)), "")
    if status is None or not text.strip():
        return None
    name = value.get("id", "")
    own = one_line(str(name), 100) if isinstance(name, str | int) and not isinstance(name, bool) else ""
    return Task(one_line(text, 300), "", (handle,), id=own, status=status)
