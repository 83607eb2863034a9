"""Checks of the promises, one function each; each raises AssertionError for a broken promise.

They take plain values, so that an application can check its own runs.

    check_budget, check_bytes, check_well_formed  the request
    check_lossless, check_tiling, check_replay    the record and its view
    check_retrievable                             what a compaction replaced
    check_prefix, check_progress                  compactions
    check_verbatim, check_data_framing            what may not change, and what may not act as instructions
    check_forgeries                               what a tool wrote that looks like the library's own
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pagein._common.surrogates import replace_surrogates
from pagein.context.ledger.block import with_ledger
from pagein.context.ledger.error_lines import has_failed
from pagein.context.ledger.task_lists import find_task_lists
from pagein.context.view.fold import Fold, undone_positions
from pagein.context.view.layout import CONTINUE, EARLIER, ContextBlock, ViewEntry
from pagein.context.view.view import View
from pagein.errors import UnknownHandle
from pagein.events.entries import Compaction, Observed, Pin
from pagein.events.messages import Message
from pagein.events.quoting import MARK
from pagein.events.steps import (
    ActionStep,
    Image,
    Observation,
    Opaque,
    Step,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    Text,
    as_parts,
    as_text,
)
from pagein.formats import FORMATS as _REGISTRY
from pagein.formats import format_named
from pagein.log.base import Entry
from pagein.memory.host_memory import runtime_of
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.bytes import ByteCounter, json_bytes
from pagein.tokens.counter import message_tokens, request_tokens

if TYPE_CHECKING:
    from pagein.memory.agent_memory import AgentMemory

FORMATS = tuple(_REGISTRY)
"""Every wire format, by its name."""

HANDLE = re.compile(r"(?<![\w/.])s\d+(?:\.\d+|-\d+)?(?![\w/])")
_TAGS = ("memory", "pinned", "system-notice", "late-result")


def check_budget(view: View, counter: TokenCounter) -> None:
    """Check that the request's tokens are within the view's limit, and that the view reports them correctly."""
    tokens = request_tokens(view.messages(), counter)
    assert tokens <= view.limit, f"the request costs {tokens} tokens, the limit is {view.limit}"
    assert tokens == view.tokens, f"the request costs {tokens} tokens, the view says {view.tokens}"
    lines = sum(line.tokens for line in view.report.lines)
    assert lines == tokens, f"the report's lines add up to {lines} tokens, the request costs {tokens}"


def check_bytes(request: Mapping[str, Any], budget: Budget) -> None:
    """Check that a rendered request has no more bytes than its budget."""
    size = json_bytes(request)
    assert budget.bytes is None or size <= budget.bytes, f"the request has {size} bytes, the budget is {budget.bytes}"


def check_well_formed(messages: Sequence[Message], formats: Iterable[str] = FORMATS) -> None:
    """Check that results follow their calls, roles are legal, and every provider takes the request."""
    turns = [message for message in messages if message.role != "system"]
    assert turns, "the request has no message"
    assert turns[0].role == "user", f"the request begins with {turns[0].role}"
    assert turns[-1].role in ("user", "tool"), f"the request ends with {turns[-1].role}"
    behind = messages[len(messages) - len(turns) :]
    assert list(behind) == turns, "a system message behind the first other one"
    _check_pairing(turns)
    for name in formats:
        form = format_named(name)
        problems = form.problems(form.render(messages))
        assert not problems, f"{name} would refuse the request: {'; '.join(problems)}"


def _check_pairing(messages: Sequence[Message]) -> None:
    waiting: list[str] = []
    used: set[str] = set()
    for number, message in enumerate(messages):
        if message.role == "tool":
            assert waiting, f"message {number}: orphan tool result {message.call_id!r}"
            assert message.call_id == waiting.pop(0), f"message {number}: a result out of its call's order"
            continue
        assert not waiting, f"message {number}: comes before the results of {waiting}"
        waiting = [call.id for call in message.tool_calls]
        assert not used & set(waiting), f"message {number}: a call id is used twice"
        assert len(set(waiting)) == len(waiting), f"message {number}: two calls of one id"
        used |= set(waiting)
    assert not waiting, f"no result for {waiting}"


def check_lossless(steps: Sequence[Step], expected: Sequence[Step]) -> None:
    """Check that exactly the recorded steps are read back, unchanged and in order."""
    assert len(steps) == len(expected), f"{len(expected)} steps were recorded, {len(steps)} are read back"
    for number, (read, recorded) in enumerate(zip(steps, expected, strict=True)):
        assert read == recorded, f"step {number} was {recorded!r}, and is read back as {read!r}"


def check_tiling(view: View, shown_steps: Mapping[int, Step], notes: Mapping[int, Observation]) -> None:
    """Check that each step and note is shown, or covered by exactly one summary; ranges do not overlap."""
    for one, other in zip(view.run, view.run[1:], strict=False):
        assert one.last <= other.first, f"{one.handle} and {other.handle} overlap"
    behind = [entry for entry in view.run if isinstance(entry.item, SummaryStep)]
    whole = {entry.first: entry for entry in view.entries if not isinstance(entry.item, SummaryStep | Pin)}
    for position in (*shown_steps, *notes):
        covered = [summary for summary in behind if summary.first <= position < summary.last]
        entry = whole.get(position)
        if entry is not None and isinstance(entry.item, SystemPromptStep):
            continue  # a late system prompt always stays
        assert len(covered) + (entry is not None) == 1, (
            f"position {position} is {'shown' if entry else 'not shown'}, and behind {len(covered)} summaries"
        )
    for position, entry in whole.items():
        expected: object = shown_steps.get(position)
        if not entry.stubs and isinstance(entry.item, Step):
            assert entry.item == expected, f"s{position} is shown as {entry.item!r}, and was recorded as {expected!r}"
        elif not entry.stubs and isinstance(entry.item, Observed):
            assert entry.item.observation == notes.get(position), f"the note at {position} is not what was recorded"


def check_replay(entries: Sequence[Entry], view: View, counter: TokenCounter, *, may_lack_ledger: bool = False) -> None:
    """Check that folding the log gives the same view, except for its tail, which is rebuilt each time.

    ``may_lack_ledger``: where the budget limits bytes, the ledger's block may be shorter, or have no room.
    """
    fold = fold_entries(entries, counter)
    again = fold.view(view.limit)
    if again.has_replaced_entries:
        is_shown = (lambda other: bool(other.entries == view.entries)) if may_lack_ledger else None
        again = with_ledger(again, fold.learned.ledger, fold.learned.blocks, is_shown)
    for mine, other in zip(view.entries, again.entries, strict=False):
        assert mine == other, f"the view shows {mine}, the log folded again shows {other}"
    assert view.with_tail(()) == again, "the view is not what the log folded again gives"


def fold_entries(entries: Sequence[Entry], counter: TokenCounter) -> Fold:
    """Fold a log from its beginning."""
    fold = Fold(counter, skip=undone_positions(entry.body for entry in entries))
    for entry in entries:
        fold.apply(entry)
    return fold


def check_retrievable(
    expand: Callable[[str | int], Any], view: View, steps: Mapping[int, Step], notes: Mapping[int, Observation]
) -> None:
    """Check that replaced content expands by its handle, by the handles in the text, and by position."""
    for entry in view.entries:
        if isinstance(entry.item, SummaryStep):
            _check_range(expand, entry, steps, notes)
        for stub in entry.stubs:
            _check_slot(expand, entry.first, stub.slot, stub.index, steps, notes)
    for out in view.report.out:
        expand(out.handle)
    for handle in library_handles(view):
        try:
            expand(handle)
        except UnknownHandle as error:
            raise AssertionError(f"the request names {handle}, which expands to nothing: {error}") from error


def library_handles(view: View) -> set[str]:
    """Return the handles in the text that the library wrote into the view; a quoted line is another's."""
    texts = [entry.item.content for entry in view.entries if isinstance(entry.item, SummaryStep)]
    texts += [block.item.text for block in view.tail if isinstance(block.item, ContextBlock)]
    texts += [stub.text for entry in view.entries for stub in entry.stubs]
    lines = (line for text in texts for line in text.splitlines() if not line.startswith(MARK))
    return {match[0] for line in lines for match in HANDLE.finditer(line)}


def _check_range(
    expand: Callable[[str | int], Any], entry: ViewEntry, steps: Mapping[int, Step], notes: Mapping[int, Observation]
) -> None:
    expansion = expand(entry.handle)
    inside = [steps[at] for at in sorted(steps) if entry.first <= at < entry.last]
    assert list(expansion.steps) == inside, (
        f"{entry.handle} stands for {len(inside)} steps and gives {len(expansion.steps)} back, or others"
    )
    for position in range(entry.first, entry.last):
        if position in steps:
            by_position = expand(position).steps
            assert by_position == (steps[position],), f"position {position} gives back {by_position!r}"
        elif position in notes:
            text = as_text(notes[position].content)
            texts = [message.text for message in expansion.messages] or [str(expansion)]
            assert text in texts, f"{entry.handle} does not give back the note at {position}"
            assert text in expand(position), f"position {position} does not give back its note"


def _check_slot(
    expand: Callable[[str | int], Any],
    position: int,
    slot: str,
    index: int,
    steps: Mapping[int, Step],
    notes: Mapping[int, Observation],
) -> None:
    step = steps.get(position)
    if step is None:
        assert as_text(notes[position].content) in expand(position), f"the note at {position} is lost"
        return
    assert expand(position).steps == (step,), f"s{position} does not come back whole"
    if slot == "observation" and isinstance(step, ActionStep):
        observation = step.observations[index]
        assert observation is not None
        assert str(expand(f"s{position}.{index}")) == as_text(observation.content), f"s{position}.{index} is lost"


def is_ledger(message: Message) -> bool:
    """Return True for the ledger's blocks: what holds, what failed, and what is open."""
    return re.match(r'<memory kind="(?:ledger|failed|open)">', as_text(message.content)) is not None


OPEN_WORK_MIN_LIMIT, OPEN_WORK_TOKENS = 1_000, 200
"""Tokens of a view from which its block has a place for a list of tasks, and those that are free where it must be shown."""


def check_open_work(view: View, steps: Mapping[int, Step]) -> None:
    """Check that a view names the step of the newest list of tasks where it left, and there is space for it."""
    positions = (
        position
        for position, step in steps.items()
        if isinstance(step, ActionStep)
        for call, result in zip(step.tool_calls, step.observations, strict=False)
        if result is not None and not has_failed(result)
        if any(tasks.rows and tasks.old is None for tasks in find_task_lists(call.arguments, call.name))
    )
    newest = max(positions, default=None)
    has_space = view.limit >= max(OPEN_WORK_MIN_LIMIT, view.tokens + OPEN_WORK_TOKENS)
    in_view = {entry.first for entry in view.run if not isinstance(entry.item, SummaryStep)}
    if newest is None or newest in in_view or not has_space:
        return
    texts = [entry.item.text for entry in view.front if isinstance(entry.item, ContextBlock)]
    places = [int(head[1]) for text in texts for head in re.finditer(r"^\[s(\d+)[.\d]*\] tasks, ", text, re.MULTILINE)]
    assert max(places, default=-1) >= newest, f"the tasks of s{newest} are in no block, but those of {places}"


_SUMMARY = re.compile(r'<memory kind="summary"[^>]*>\n')

_ANSWER_LINE = re.compile(r"\n\[s\d+\] answered: [^\n]*(?=\n</memory>\Z)")
"""The answer at the end of a notice."""


def is_notice(message: Message) -> bool:
    """Return True for a message that says what is out of view and no more."""
    return _SUMMARY.sub("", as_text(message.content)) == "</memory>" or (
        re.fullmatch(_SUMMARY.pattern + r"Out of view: s[\d-]+\.\n</memory>", as_text(message.content)) is not None
    )


def answer_lines(messages: Iterable[Message]) -> frozenset[str]:
    """Return the model's answers in a request's notices and summaries."""
    texts = (as_text(message.content) for message in messages)
    return frozenset(match[0] for text in texts if _SUMMARY.match(text) for match in _ANSWER_LINE.finditer(text))


def check_answers(earlier: Sequence[Message], view: View, counter: TokenCounter) -> None:
    """Check that answers left a request without a compaction only where there is no room for them."""
    lost = answer_lines(earlier) - answer_lines(view.messages())
    tokens = view.tokens + sum(map(counter.text, lost)) + 40 * len(lost)
    assert not lost or tokens > view.limit, f"{lost} left, and there is room: {tokens} of {view.limit} tokens"


def is_page_in(message: Message) -> bool:
    """Return True for a page-in."""
    # A tool may write the frame too; what a frame of ours begins with stands on a line of its own.
    return message.role == "user" and as_text(message.content).startswith('<memory kind="recalled">\n')


def ledger_lines(messages: Sequence[Message]) -> frozenset[str]:
    """Return the lines of the ledger's blocks in a request, and the answers in its notices."""
    blocks = (as_text(message.content).split("\n") for message in messages if is_ledger(message))
    return answer_lines(messages).union(*blocks)


def without_ledger(messages: Iterable[Message]) -> list[Message]:
    """Return a request without the ledger's blocks, the answers in its notices, notices that say no more, and the line in their place."""
    opening = Message("user", EARLIER)
    rest = (message for message in map(_without_answer, messages) if message != opening)
    return [message for message in rest if not is_ledger(message) and not is_notice(message)]


def settled_prefix(view: View) -> tuple[Message, ...]:
    """Return the messages that later requests must begin with: all before the first open call, without the closing line."""
    settled: list[Message] = []
    for entry in view.request_entries:
        item = entry.item
        if entry.tier in ("facts", "ledger"):
            continue
        if isinstance(item, ActionStep) and (
            len(item.observations) < len(item.tool_calls) or None in item.observations
        ):
            break
        settled.extend(entry.messages)
    front = [message for message in view.messages() if message != Message("user", CONTINUE)]
    start = next((i for i, message in enumerate(front) if message.role != "system"), len(front))
    if settled[start:] and front[start : start + 1] == [Message("user", EARLIER)] != settled[start : start + 1]:
        settled.insert(start, front[start])
    return tuple(settled)


def check_prefix(earlier: Sequence[Message], later: Sequence[Message], *, with_page_ins: bool = True) -> None:
    """Check that the later request begins with the whole earlier one.

    A ledger block that lost a line may differ: a statement was replaced, or there is no room for it any more. It gains
    no line. A block may come where there was none, with the notices that it takes in, or go with them. Answers may leave
    where there is no room for them (``check_answers``). Page-ins may leave where the user's words need their room, and
    none changes; without ``with_page_ins`` they are not compared.
    """
    if ledger_lines(earlier) - ledger_lines(later) or not any(map(is_ledger, earlier)):
        earlier, later = without_ledger(earlier), without_ledger(later)
    if not with_page_ins:
        earlier, later = ([message for message in messages if not is_page_in(message)] for messages in (earlier, later))
    else:
        earlier = _without_lost_page_ins(earlier, later)
    for number, (one, other) in enumerate(zip(earlier, later, strict=False)):
        assert one == other, f"message {number} was {one!r}, and is {other!r} without a compaction between"
    assert len(earlier) <= len(later), "the later request is shorter, without a compaction between"


def _without_answer(message: Message) -> Message:
    text = as_text(message.content)
    return replace(message, content=_ANSWER_LINE.sub("", text)) if _SUMMARY.match(text) else message


def _without_lost_page_ins(earlier: Sequence[Message], later: Sequence[Message]) -> list[Message]:
    """The earlier request without the page-ins that are not where they were; none may stand where something else did."""
    staying: list[Message] = []
    for message in earlier:
        after = later[len(staying)] if len(staying) < len(later) else None
        if message != after and is_page_in(message):
            continue
        assert after is None or message == after or not is_page_in(after), (
            "a page-in changed, without a compaction between"
        )
        staying.append(message)
    return staying


def check_progress(
    entries: Sequence[Entry], position: int, counter: TokenCounter, *, has_byte_limit: bool = False
) -> None:
    """Check that the compaction at a position made the request smaller, and reports its tokens correctly.

    Where the budget limits bytes, too, one of both is enough: an extract of names may have fewer bytes and more tokens.
    """
    body = entries[position].body
    assert isinstance(body, Compaction)
    views = [fold_entries(entries[:end], counter).view(1) for end in (position, position + 1)]
    before, after = (view.tokens for view in views)
    assert body.tokens_before == before, f"it says {body.tokens_before} tokens before; they were {before}"
    assert body.tokens_after == after, f"it says {body.tokens_after} tokens after; they are {after}"
    if has_byte_limit and after >= before:
        before, after = (sum(map(ByteCounter().message, view.messages())) for view in views)
    assert after < before, f"a compaction took {before} tokens to {after}"


def check_verbatim(
    view: View,
    pins: Iterable[str],
    tasks: Sequence[tuple[int, TaskStep]],
    counter: TokenCounter,
    formats: Iterable[str] = FORMATS,
    *,
    half: int | None = None,
) -> None:
    """Check that pins and the newest user message are in the request verbatim; earlier ones if they fit in ``half``.

    ``half`` is half of the smallest limit that the run had, in tokens; by default half of the view's limit.
    """
    required = [task_texts(step) for _, step in tasks[-1:]]
    earlier = [step for _, step in tasks[:-1]]
    cost = sum(message_tokens(Message("user", step.content, extra=step.extra), counter) for step in earlier)
    if cost <= (view.limit // 2 if half is None else half):
        required += [task_texts(step) for step in earlier]
    for name in formats:
        wire_lines = [
            replace_surrogates(text) for text in wire_texts(format_named(name).render(view.messages()), "user")
        ]
        for text in pins:
            assert any(_holds_pin(replace_surrogates(text), line) for line in wire_lines), (
                f"the pin {text!r} is not in the request"
            )
        for parts in required:
            for text in parts:
                assert replace_surrogates(text) in wire_lines or not text.strip(), (
                    f"the user's words {text!r} are not in the request"
                )
    user_contents = [message.content for message in view.messages() if message.role == "user"]
    for _, step in tasks[-1:]:
        assert step.content in user_contents, "the user's newest words are not whole in the request"


def task_texts(step: TaskStep) -> list[str]:
    """Return the texts of a user message, part by part."""
    return [part.text for part in as_parts(step.content) if isinstance(part, Text)]


def _holds_pin(pin: str, text: str) -> bool:
    """Report whether the text has the pin; inside a frame, text that looks like its end tag is escaped."""
    return pin in text or pin in text.replace("&lt;", "<")


def check_data_framing(view: View, systems: Sequence[SystemPromptStep]) -> None:
    """Check that the system role has only the application's prompts, and that no text inside a frame can end it."""
    messages = view.messages()
    system_contents = [message.content for message in messages if message.role == "system"]
    expected = [entry.content for entry in systems]
    assert system_contents == expected, f"the system role holds {system_contents!r}, the application said {expected!r}"
    for entry in (*view.entries, *view.tail):
        if isinstance(entry.item, SummaryStep | Pin | Observed | ContextBlock) or entry.tier == "note":
            for message in entry.messages:
                assert message.role == "user", f"{entry.handle} speaks as {message.role}"
                _check_frame(message)


def _check_frame(message: Message) -> None:
    texts = [part.text for part in as_parts(message.content) if isinstance(part, Text)]
    whole = "\n".join(texts).lower()
    opened = next((tag for tag in _TAGS if whole.startswith(f"<{tag}")), None)
    assert opened is not None, f"not marked as data: {whole[:60]!r}"
    assert whole.endswith(f"</{opened}>"), f"the frame does not end: {whole[-60:]!r}"
    assert len(re.findall(rf"<\s*/\s*{opened}", whole)) == 1, f"the frame <{opened}> can be ended from inside"


def check_forgeries(view: View, tool_texts: Iterable[str], forged: Iterable[str]) -> None:
    """Check that no ``forged`` beginning of a line, each with a word of its own, begins one where the library speaks.

    That is in summaries, in blocks beside the run and in late results of a view, and in the results of the library's tools.
    """
    items = SummaryStep | ContextBlock | Observed
    speaking = (entry for entry in (*view.entries, *view.tail) if isinstance(entry.item, items))
    texts = [as_text(message.content) for entry in speaking for message in entry.messages]
    lines = [line.lstrip(_LEADING) for text in (*texts, *tool_texts) for line in text.splitlines()]
    for beginning in forged:
        bare = beginning.lstrip(_LEADING)
        passing = next((line for line in lines if line.startswith(bare)), None)
        assert passing is None, f"what a tool wrote passes for a line of the library: {passing!r:.200}"
    for text in tool_texts:
        tag = re.search(rf"<[\s/]*(?:{'|'.join(_TAGS)})", text, re.IGNORECASE)
        assert tag is None, f"what a tool wrote passes for a frame of the library: {text[tag.start() :]!r:.200}"


_LEADING = " \t\u200b"


def wire_texts(request: Mapping[str, Any], role: str) -> list[str]:
    """Return the texts of a role's messages in a rendered request."""
    names = {"user": ("user", "human"), "assistant": ("assistant", "ai", "model")}.get(role, (role,))
    return [
        text
        for message in request["messages"]
        if message.get("role", message.get("type")) in names
        for text in _texts(message.get("content", message.get("parts")))
    ]


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if part.get("type", "text") in ("text", "input_text", "output_text") and isinstance(part.get("text"), str):
            yield part["text"]


def check_opaque_content(view: View, formats: Iterable[str] = FORMATS) -> None:
    """Check that opaque content of a provider is in no other provider's request."""
    bodies = [
        (part.provider, part.body)
        for message in view.messages()
        for part in as_parts(message.content)
        if isinstance(part, Opaque) and not isinstance(part, Image)
    ]
    for name in formats:
        request = json.dumps(format_named(name).render(view.messages()))
        for provider, body in bodies:
            signature = json.loads(body).get("signature", "") if provider != name else ""
            assert not signature or signature not in request, f"{provider}'s content went to {name}"


def check_erasure(memory: AgentMemory, words: Iterable[str]) -> None:
    """Check that erased words are in no stored row, entry or view of the run, and are not recalled."""
    log = runtime_of(memory).log
    words = tuple(words)
    if not words:
        return
    steps = memory.steps
    places = {
        "a stored row": b"\n".join(row.body for row in log.rows()).decode(),
        "an entry": repr([entry.body for entry in log.read()]),
        "the view": repr(runtime_of(memory).state.fold.view(1).messages()),
        "a step": repr(steps),
    }
    for word in words:
        for place, text in places.items():
            assert word not in text, f"{word} was erased, and is in {place}"
    hits = memory.recall(words[-1])
    assert not any(words[-1] in hit.text for hit in hits), f"{words[-1]} was erased, and is recalled"
