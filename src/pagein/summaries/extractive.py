"""Summaries without a model: requests, actions, failures and the last statement, copied from the run by code.

So every policy works without a model, and a model's failure does not stop the turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pagein.context.ledger.error_lines import find_errors
from pagein.context.ledger.task_lists import TASK_MAX_CHARS, TaskRow, TaskState, find_boxes, find_task_lists
from pagein.context.salience.lines import has_context
from pagein.context.salience.tracker import SalienceTracker
from pagein.summaries.key_items import KeyItem, find_key_items, split_sentences
from pagein.summaries.progress import find_decisions, find_next_steps, find_refuted
from pagein.summaries.sanitize import normalize_text, one_line
from pagein.summaries.spans import QuotedText, Span
from pagein.summaries.summary import Summary, SummaryItem, TaskItem, TaskStatus

OBJECTIVE_MAX_CHARS, STATE_MAX_CHARS = 600, 400
"""Maximum characters of the objective (the user's text) and of the state (the model's last statement)."""

MIN_OBJECTIVE_CHARS = 12
"""Characters from which a user's text is an objective. Shorter ones ("go on", "yes please") are not."""

HINT_MIN_CHARS, MAX_HINTS = 2_000, 12
"""Characters from which a result gets a hint, and maximum hints of a span."""

_STATUSES: Mapping[TaskState, TaskStatus] = {"done": "done", "now": "open", "open": "open", "blocked": "blocked"}


def extract_summary(span: Span, tracker: SalienceTracker | None = None) -> Summary:
    """Summarize a span without a model. ``tracker`` ranks the identifiers by the chance that they are needed.

    Deterministic. Fields that rules cannot fill (answers, reasons) stay empty.
    """
    key_items = find_key_items(span)
    statements = [text for text in span.texts if text.speaker in ("model", "plan", "answer")]
    return Summary(
        objective=_objective(span),
        state=_quote(statements[-1], STATE_MAX_CHARS) if statements else None,
        constraints=_items_of_kind(key_items, "constraint"),
        tasks=tuple(_tasks(span)),
        dead_ends=(*_dead_ends(span), *find_refuted(span)),
        artifacts=_artifacts(key_items, tracker),
        errors=_items_of_kind(key_items, "error"),
        decisions=find_decisions(span),
        questions=tuple(_questions(statements)),
        done=tuple(_actions_done(span)),
        next_steps=find_next_steps(span),
        hints=tuple(_hints(span)),
    )


def _quote(quoted: QuotedText, max_chars: int) -> SummaryItem:
    return SummaryItem(one_line(quoted.text, max_chars), handles=(quoted.handle,))


def _objective(span: Span) -> SummaryItem | None:
    """The user's newest text that is long enough for an objective."""
    requests = [text for text in span.texts if text.speaker == "user" and len(text.text.strip()) >= MIN_OBJECTIVE_CHARS]
    return _quote(requests[-1], OBJECTIVE_MAX_CHARS) if requests else None


def _items_of_kind(key_items: Sequence[KeyItem], kind: str) -> tuple[SummaryItem, ...]:
    return tuple(SummaryItem(item.text, handles=(item.handle,)) for item in key_items if item.kind == kind)


def _artifacts(key_items: Sequence[KeyItem], tracker: SalienceTracker | None) -> tuple[SummaryItem, ...]:
    """Every identifier with its line; the likely needed last, where the renderer starts."""
    names = [item for item in key_items if item.kind in ("path", "identifier", "number")]
    if tracker is not None:
        known_names = tracker.names
        names.sort(key=lambda item: tracker.name_chance(item.text) if item.text in known_names else 0.0)
    return tuple(SummaryItem(item.text, context_line(item), (item.handle,)) for item in names)


def context_line(item: KeyItem) -> str:
    """The line of a name if it says what the name is about; else an empty text."""
    return item.line if has_context(item.line, item.text) else ""


def _actions_done(span: Span) -> Iterator[SummaryItem]:
    failures = {text.about for text in _results(span) if text.failed}
    successes = {text.about for text in _results(span) if not text.failed}
    table: dict[str, str] = {}
    for text in span.texts:
        if text.speaker == "call" and (text.about in successes or text.about not in failures):
            table.pop(text.about, None)
            table[text.about] = text.handle
    for about, handle in table.items():
        yield SummaryItem(one_line(about), handles=(handle,))


def _dead_ends(span: Span) -> Iterator[SummaryItem]:
    """Actions whose last result was a failure, with its error."""
    last_results = {result.about: result for result in _results(span)}
    for about, result in last_results.items():
        if result.failed:
            errors = find_errors(result.text, failed=True)
            yield SummaryItem(one_line(about), one_line(errors[-1]) if errors else "", (result.handle,))


def _results(span: Span) -> Iterator[QuotedText]:
    return (text for text in span.texts if text.speaker == "result" and text.about)


def _questions(statements: Sequence[QuotedText]) -> Iterator[SummaryItem]:
    for statement in statements[-1:]:
        for sentence in split_sentences(statement.text):
            if sentence.endswith(("?", "\uff1f")):
                yield SummaryItem(one_line(sentence, 300), handles=(statement.handle,))


def _hints(span: Span) -> Iterator[SummaryItem]:
    long_results = [
        result for result in span.texts if result.speaker == "result" and len(result.text) >= HINT_MIN_CHARS
    ]
    longest = set(sorted(long_results, key=lambda result: -len(result.text))[:MAX_HINTS])
    for result in long_results:
        if result in longest:
            yield SummaryItem(
                f"{one_line(result.about)} gave {len(result.text):,} characters", handles=(result.handle,)
            )


def _tasks(span: Span) -> Iterator[TaskItem]:
    """To-do lists, from check boxes and tool arguments; the newest version of each task."""
    table: dict[str, TaskItem] = {}
    for quoted in span.texts:
        for row in _task_rows(quoted):
            key = row.id or normalize_text(row.text)
            if row.state == "dropped":
                table.pop(key, None)
            else:
                text, status = one_line(row.text, TASK_MAX_CHARS), _STATUSES[row.state]
                table[key] = TaskItem(text, "", (quoted.handle,), id=one_line(row.id, 100), status=status)
    yield from table.values()


def _task_rows(quoted: QuotedText) -> Iterator[TaskRow]:
    if quoted.speaker == "call":
        yield from (row for tasks in find_task_lists(quoted.text) for row in tasks.rows)
    elif quoted.speaker != "result":
        yield from find_boxes(quoted.text)
