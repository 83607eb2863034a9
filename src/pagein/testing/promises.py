"""The promises, one function each: returns when it holds, raises AssertionError that says what is broken.

Each takes values and asks for no state of its own, so a host can hold its own runs to them.

    within_budget, well_formed   the request
    lossless, tiled, replayed    the record and the view of it
    retrievable                  what left
    prefix_kept, progress        compactions
    verbatim, data_is_data       what may not change, and what may not command
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pagein.context.view.fold import Fold, undone
from pagein.context.view.layout import CONTINUE, EARLIER, Aside
from pagein.context.view.view import Shown, View
from pagein.errors import UnknownHandle
from pagein.events.entries import Compaction, Observed, Pin
from pagein.events.messages import Message
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
from pagein.formats import format_named
from pagein.log.base import Entry
from pagein.tokens import TokenCounter
from pagein.tokens.requests import message_tokens, request_tokens

if TYPE_CHECKING:
    from pagein.memory.agent_memory import AgentMemory

FORMATS = ("openai", "anthropic")
HANDLE = re.compile(r"(?<![\w/.])s\d+(?:\.\d+|-\d+)?(?![\w/])")
_TAGS = ("memory", "pinned", "system-notice", "late-result")


def within_budget(view: View, counter: TokenCounter) -> None:
    """The request, counted message by message, is within the view's limit, and the view told the truth about it."""
    found = request_tokens(view.messages(), counter)
    assert found <= view.limit, f"the request costs {found} tokens, the limit is {view.limit}"
    assert found == view.tokens, f"the request costs {found} tokens, the view says {view.tokens}"
    lines = sum(line.tokens for line in view.report.lines)
    assert lines == found, f"the report's lines add up to {lines} tokens, the request costs {found}"


def well_formed(messages: Sequence[Message], formats: Iterable[str] = FORMATS) -> None:
    """Results stand right behind their calls, roles are legal, and every provider would take the request."""
    spoken = [each for each in messages if each.role != "system"]
    assert spoken, "the request has no message"
    assert spoken[0].role == "user", f"the request begins with {spoken[0].role}"
    assert spoken[-1].role in ("user", "tool"), f"the request ends with {spoken[-1].role}"
    assert [each.role for each in messages[: len(messages) - len(spoken)]] == ["system"] * (
        len(messages) - len(spoken)
    ), "a system message behind the first other one"
    _paired(spoken)
    for name in formats:
        form = format_named(name)
        problems = form.problems(form.render(messages))
        assert not problems, f"{name} would refuse the request: {'; '.join(problems)}"


def _paired(messages: Sequence[Message]) -> None:
    waiting: list[str] = []
    used: set[str] = set()
    for number, each in enumerate(messages):
        if each.role == "tool":
            assert waiting, f"message {number}: orphan tool result {each.call_id!r}"
            assert each.call_id == waiting.pop(0), f"message {number}: a result out of its call's order"
            continue
        assert not waiting, f"message {number}: comes before the results of {waiting}"
        waiting = [call.id for call in each.tool_calls]
        assert not used & set(waiting), f"message {number}: a call id is used twice"
        assert len(set(waiting)) == len(waiting), f"message {number}: two calls of one id"
        used |= set(waiting)
    assert not waiting, f"no result for {waiting}"


def lossless(steps: Sequence[Step], expected: Sequence[Step]) -> None:
    """Every step recorded is read back unchanged, in order, and nothing else is."""
    assert len(steps) == len(expected), f"{len(expected)} steps were recorded, {len(steps)} are read back"
    for number, (read, said) in enumerate(zip(steps, expected, strict=True)):
        assert read == said, f"step {number} was {said!r}, and is read back as {read!r}"


def tiled(view: View, seen: Mapping[int, Step], notes: Mapping[int, Observation]) -> None:
    """Each position of a step or a note is shown, or behind exactly one summary; ranges follow one another."""
    for one, other in zip(view.run, view.run[1:], strict=False):
        assert one.last <= other.first, f"{one.handle} and {other.handle} overlap"
    behind = [each for each in view.run if isinstance(each.item, SummaryStep)]
    whole = {each.first: each for each in view.entries if not isinstance(each.item, SummaryStep | Pin)}
    for position in (*seen, *notes):
        covered = [each for each in behind if each.first <= position < each.last]
        shown = whole.get(position)
        if shown is not None and isinstance(shown.item, SystemPromptStep):
            continue  # a late system prompt stays, whatever leaves around it
        assert len(covered) + (shown is not None) == 1, (
            f"position {position} is {'shown' if shown else 'not shown'}, and behind {len(covered)} summaries"
        )
    for position, shown in whole.items():
        expected: object = seen.get(position)
        if not shown.stubs and isinstance(shown.item, Step):
            assert shown.item == expected, (
                f"s{position} is shown as {shown.item!r}, and was recorded as {expected!r}"
            )
        elif not shown.stubs and isinstance(shown.item, Observed):
            assert shown.item.observation == notes.get(position), (
                f"the note at {position} is not what was recorded"
            )


def replayed(entries: Sequence[Entry], view: View, counter: TokenCounter) -> None:
    """Folding the log from its beginning gives the same view, but for its tail, which is made afresh each time."""
    again = folded(entries, counter).view(view.limit)
    for mine, other in zip(view.entries, again.entries, strict=False):
        assert mine == other, f"the view shows {mine}, the log folded again shows {other}"
    assert view.with_tail(()) == again, "the view is not what the log folded again gives"


def folded(entries: Sequence[Entry], counter: TokenCounter) -> Fold:
    """A log folded from its beginning."""
    fold = Fold(counter, skip=undone(entry.body for entry in entries))
    for entry in entries:
        fold.apply(entry)
    return fold


def retrievable(
    expand: Callable[[str | int], Any],
    view: View,
    steps: Mapping[int, Step],
    notes: Mapping[int, Observation],
) -> None:
    """Whatever left comes back by the handle that stands for it, by the handles in the text, and by position."""
    for each in view.entries:
        if isinstance(each.item, SummaryStep):
            _range_comes_back(expand, each, steps, notes)
        for stub in each.stubs:
            _slot_comes_back(expand, each.first, stub.slot, stub.index, steps, notes)
    for out in view.report.out:
        expand(out.handle)
    for handle in spoken_handles(view):
        try:
            expand(handle)
        except UnknownHandle as error:
            raise AssertionError(f"the request names {handle}, which expands to nothing: {error}") from error


def spoken_handles(view: View) -> set[str]:
    """The handles in what the library itself wrote into the view."""
    texts = [each.item.content for each in view.entries if isinstance(each.item, SummaryStep)]
    texts += [each.item.text for each in view.tail if isinstance(each.item, Aside)]
    texts += [stub.text for each in view.entries for stub in each.stubs]
    return {found[0] for text in texts for found in HANDLE.finditer(text)}


def _range_comes_back(
    expand: Callable[[str | int], Any],
    shown: Shown,
    steps: Mapping[int, Step],
    notes: Mapping[int, Observation],
) -> None:
    given = expand(shown.handle)
    inside = [steps[at] for at in sorted(steps) if shown.first <= at < shown.last]
    assert list(given.steps) == inside, (
        f"{shown.handle} stands for {len(inside)} steps and gives {len(given.steps)} back, or others"
    )
    for position in range(shown.first, shown.last):
        if position in steps:
            by_position = expand(position).steps
            assert by_position == (steps[position],), f"position {position} gives back {by_position!r}"
        elif position in notes:
            text = as_text(notes[position].content)
            assert text in given, f"{shown.handle} does not give back the note at {position}"
            assert text in expand(position), f"position {position} does not give back its note"


def _slot_comes_back(
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
        seen = step.observations[index]
        assert seen is not None
        assert str(expand(f"s{position}.{index}")) == as_text(seen.content), f"s{position}.{index} is lost"


def settled_prefix(view: View) -> tuple[Message, ...]:
    """The messages that later requests must begin with: all but the closing line and what still waits for results."""
    settled: list[Message] = []
    for each in view.entries:
        item = each.item
        if isinstance(item, ActionStep) and (
            len(item.observations) < len(item.tool_calls) or None in item.observations
        ):
            break
        settled.extend(each.messages)
    front = [each for each in view.messages() if each != Message("user", CONTINUE)]
    start = next((i for i, each in enumerate(front) if each.role != "system"), len(front))
    if (
        settled[start:]
        and front[start : start + 1] == [Message("user", EARLIER)] != settled[start : start + 1]
    ):
        settled.insert(start, front[start])
    return tuple(settled)


def prefix_kept(earlier: Sequence[Message], later: Sequence[Message]) -> None:
    """The later request begins with the whole of the earlier one."""
    for number, (one, other) in enumerate(zip(earlier, later, strict=False)):
        assert one == other, f"message {number} was {one!r}, and is {other!r} without a compaction between"
    assert len(earlier) <= len(later), "the later request is shorter, without a compaction between"


def progress(entries: Sequence[Entry], position: int, counter: TokenCounter) -> None:
    """The compaction at a position made the request smaller, and tells the truth about how much."""
    body = entries[position].body
    assert isinstance(body, Compaction)
    before = folded(entries[:position], counter).view(1).tokens
    after = folded(entries[: position + 1], counter).view(1).tokens
    assert body.tokens_before == before, f"it says {body.tokens_before} tokens before; they were {before}"
    assert body.tokens_after == after, f"it says {body.tokens_after} tokens after; they are {after}"
    assert after < before, f"a compaction took {before} tokens to {after}"


def verbatim(
    view: View,
    pins: Iterable[str],
    tasks: Sequence[tuple[int, TaskStep]],
    counter: TokenCounter,
    formats: Iterable[str] = FORMATS,
    *,
    half: int | None = None,
) -> None:
    """Pins and the user's newest words are in the request word for word; earlier ones while they fit ``half``.

    ``half`` is half of the smallest limit that the run was held to, without it half of the view's.
    """
    must = [as_text_parts(step) for _, step in tasks[-1:]]
    earlier = [step for _, step in tasks[:-1]]
    cost = sum(message_tokens(Message("user", each.content, extra=each.extra), counter) for each in earlier)
    if cost <= (view.limit // 2 if half is None else half):
        must += [as_text_parts(each) for each in earlier]
    for name in formats:
        said = [_safe(text) for text in wire_texts(format_named(name).render(view.messages()), "user")]
        for text in pins:
            assert any(_same(_safe(text), each) for each in said), f"the pin {text!r} is not in the request"
        for parts in must:
            for text in parts:
                assert _safe(text) in said or not text.strip(), (
                    f"the user's words {text!r} are not in the request"
                )
    shown = [message.content for message in view.messages() if message.role == "user"]
    for _, step in tasks[-1:]:
        assert step.content in shown, "the user's newest words are not whole in the request"


def as_text_parts(step: TaskStep) -> list[str]:
    """The texts of a message of the user, each by itself."""
    return [part.text for part in as_parts(step.content) if isinstance(part, Text)]


def _same(pin: str, said: str) -> bool:
    """True where ``said`` holds the pin; inside a frame, what looks like a frame's end is escaped."""
    return pin in said or pin in said.replace("&lt;", "<")


def _safe(text: str) -> str:
    return re.sub(
        "[\ud800-\udfff]", "\ufffd", text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )


def data_is_data(view: View, systems: Sequence[SystemPromptStep]) -> None:
    """The system role holds the host's own prompts and nothing else; nothing inside a frame can end it."""
    messages = view.messages()
    found = [each.content for each in messages if each.role == "system"]
    expected = [each.content for each in systems]
    assert found == expected, f"the system role holds {found!r}, the host said {expected!r}"
    for each in (*view.entries, *view.tail):
        if isinstance(each.item, SummaryStep | Pin | Observed | Aside) or each.tier == "note":
            for message in each.messages:
                assert message.role == "user", f"{each.handle} speaks as {message.role}"
                _framed(message)


def _framed(message: Message) -> None:
    texts = [part.text for part in as_parts(message.content) if isinstance(part, Text)]
    whole = "\n".join(texts).lower()
    opened = next((tag for tag in _TAGS if whole.startswith(f"<{tag}")), None)
    assert opened is not None, f"not marked as data: {whole[:60]!r}"
    assert whole.endswith(f"</{opened}>"), f"the frame does not end: {whole[-60:]!r}"
    assert len(re.findall(rf"<\s*/\s*{opened}", whole)) == 1, f"the frame <{opened}> can be ended from inside"


def wire_texts(request: Mapping[str, Any], role: str) -> list[str]:
    """The texts of a role's messages in a rendered request."""
    return [
        text
        for each in request["messages"]
        if each.get("role") == role
        for text in _texts(each.get("content"))
    ]


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if part.get("type") == "text":
            yield part["text"]


def as_json(messages: Sequence[Mapping[str, Any]]) -> str:
    """Messages as a provider's cache compares them."""
    return "\n".join(json.dumps(each, sort_keys=True, ensure_ascii=True) for each in messages)


def only_to_its_maker(view: View, formats: Iterable[str] = FORMATS) -> None:
    """Opaque provider content is in no other provider's request."""
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


def forgotten(memory: AgentMemory, words: Iterable[str]) -> None:
    """Words that were erased are in no stored row, no entry and no view of the run, and are not recalled."""
    log = memory._log  # noqa: SLF001 - what is watched
    words = tuple(words)
    if not words:
        return
    steps = memory.steps
    places = {
        "a stored row": b"\n".join(each.body for each in log.rows()).decode(),  # type: ignore[attr-defined]
        "an entry": repr([each.body for each in log.read()]),
        "the view": repr(memory._session.fold.view(1).messages()),  # noqa: SLF001
        "a step": repr(steps),
    }
    for word in words:
        for place, text in places.items():
            assert word not in text, f"{word} was erased, and is in {place}"
    hits = memory.recall(words[-1])
    assert not any(words[-1] in each.text for each in hits), f"{words[-1]} was erased, and is recalled"
