"""The layout of a request: the order of its items, and the messages that render each, independent of a provider.

System prompts and pins come first, then the run in order. A summary takes the place of its steps. Only the tail changes
from turn to turn, so between two compactions each request begins with the previous one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Literal, assert_never

from pagein.errors import LogUnreadable
from pagein.events import steps
from pagein.events.entries import FactsShown, Observed, Pin, Stub, Tier
from pagein.events.handles import range_handle
from pagein.events.messages import Message
from pagein.events.quoting import escape_frames, escape_parts, quote_lines
from pagein.tokens import TokenCounter
from pagein.tokens.counter import message_tokens

NO_RESULT = "(No result was recorded for this call. It may have run.)"

CONTINUE = "Continue."
EARLIER = "(The conversation begins here.)"

THINKING = frozenset({"thinking", "redacted_thinking", "reasoning_content", "reasoning", "reasoning_details"})
"""The kinds of opaque parts that hold a model's reasoning."""


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A framed block of text that is not part of the run: ``kind`` is "recalled" for a page-in, "facts", "ledger", "failed" or "open"."""

    kind: str
    text: str


Item = steps.Step | Pin | Observed | ContextBlock
"""An item of a view: a step, a pin, an observation too late to stand behind its call, or a context block."""


EntryTier = Literal["system", "pin", "user", "whole", "note", "recalled", "facts", "ledger"] | Tier
"""The tier of a view entry: how it came into the view, or which step of compaction replaced it."""


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """An entry of a view: the item shown for positions ``[first, last)``, its cost in tokens, and the reason."""

    first: int
    last: int
    item: Item
    tier: EntryTier
    why: str
    messages: tuple[Message, ...]
    tokens: int
    ids: tuple[str, ...] = ()
    stubs: tuple[Stub, ...] = ()

    @property
    def handle(self) -> str:
        """The handle of the original."""
        return range_handle(self.first, self.last)

    @property
    def follows_summaries(self) -> bool:
        """True for the blocks of what failed and of what is open in steps out of view."""
        return isinstance(self.item, ContextBlock) and self.item.kind in ("failed", "open")


def as_data(tag: str, text: str, **attributes: str) -> str:
    r"""Wrap text in a tag that marks it as data; pagein's tags inside it are escaped, so that it cannot end early.

    >>> as_data("memory", "do </memory> this", kind="summary")
    '<memory kind="summary">\ndo &lt;/memory> this\n</memory>'
    """
    head, tail = _frame_tags(tag, attributes)
    return f"{head}{escape_frames(text)}{tail}"


def _frame_tags(tag: str, attributes: Mapping[str, str]) -> tuple[str, str]:
    named = "".join(f' {name}="{escape(" ".join(value.split()))}"' for name, value in attributes.items())
    return f"<{tag}{named}>\n", f"\n</{tag}>"


def messages_of(  # noqa: C901 - one case for each kind of item
    item: Item, ids: Sequence[str] = (), *, late_system: bool = False
) -> tuple[Message, ...]:
    """Render an item as messages. ``ids`` are the wire ids of an action's calls, unique in the run."""
    match item:
        case steps.SystemPromptStep(content=content, extra=extra):
            prompt = Message("system", content, extra=extra)
            # Strict providers refuse a system message behind the first user message; the others get the prompt itself.
            notice = Message("user", _frame_content("system-notice", content), as_system=prompt)
            return (notice,) if late_system else (prompt,)
        case steps.TaskStep(content=content, extra=extra):
            return (Message("user", content, extra=extra),)
        case steps.PlanningStep(content=content, extra=extra):
            return (Message("assistant", content, extra=extra), Message("user", steps.PROCEED))
        case steps.ActionStep():
            return _action_messages(item, ids)
        case steps.FinalAnswerStep(content=content, extra=extra):
            return (Message("assistant", content, extra=extra),)
        case steps.SummaryStep(content=""):
            return ()  # the notice of another summary stands for its range, too
        case steps.SummaryStep(content=content, author=author):
            return (Message("user", as_data("memory", content, kind="summary", author=author)),)
        case ContextBlock(kind=kind, text=text):
            return (Message("user", as_data("memory", text, kind=kind)),)
        case Pin(text=text):
            return (Message("user", as_data("pinned", text)),)
        case Observed(observation=late) if late.is_message:
            return (Message("user", late.content),) if late.content else ()
        case Observed(observation=late):
            return (Message("user", _frame_content("late-result", _quote_parts(late.content), call=late.call_id)),)
        case _:
            assert_never(item)


def _frame_content(tag: str, content: steps.Content, **attributes: str) -> steps.Content:
    """Wrap content like ``as_data``; images stay images."""
    if isinstance(content, str):
        return as_data(tag, content, **attributes)
    head, tail = _frame_tags(tag, attributes)
    return (steps.Text(head), *escape_parts(content), steps.Text(tail))


def _quote_parts(content: steps.Content) -> steps.Content:
    """Quote the lines of a tool's words in a message that is the user's."""
    if isinstance(content, str):
        return quote_lines(content)
    return tuple(
        replace(part, text=quote_lines(part.text)) if isinstance(part, steps.Text) else part for part in content
    )


def _action_messages(step: steps.ActionStep, ids: Sequence[str]) -> tuple[Message, ...]:
    calls = tuple(replace(call, id=wire) for call, wire in zip(step.tool_calls, ids, strict=True))
    message = Message("assistant", step.content, calls, extra=step.extra)
    observations = list(step.observations) + [None] * (len(calls) - len(step.observations))
    return (
        message,
        *(_result_message(call.id, observation) for call, observation in zip(calls, observations, strict=True)),
    )


def _result_message(call_id: str, observation: steps.Observation | None) -> Message:
    if observation is None or observation.status == "unknown":
        return Message("tool", NO_RESULT, call_id=call_id, is_error=True)
    return Message(
        "tool", observation.content, call_id=call_id, is_error=observation.status == "error", extra=observation.extra
    )


def lay_out(entries: Iterable[tuple[Message, ...]]) -> tuple[Message, ...]:
    """Lay out the whole request: the first non-system message is the user's, the last one the user's or a tool's."""
    messages = [message for group in entries for message in group]
    start = _first_non_system(messages)
    return (*messages[:start], *missing_opening(messages), *messages[start:], *missing_ending(messages))


def _first_non_system(messages: Sequence[Message]) -> int:
    return next((i for i, message in enumerate(messages) if message.role != "system"), len(messages))


def missing_opening(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the user message to insert before the first non-system message if that is not the user's; else none."""
    start = _first_non_system(messages)
    if start < len(messages) and messages[start].role == "user":
        return ()
    return (Message("user", EARLIER),)


def missing_ending(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the user message to append if the last message is the assistant's; else none."""
    if messages and messages[-1].role == "assistant":
        return (Message("user", CONTINUE),)
    return ()


def wire_ids(step: steps.ActionStep, position: int, used: set[str]) -> tuple[str, ...]:
    """Return the ids of an action's calls in a request: the model's own if new in this run, else derived.

    Empty, repeated and reused ids are replaced by the position and the call's number, so equal runs give equal requests.
    """
    ids: list[str] = []
    for index, call in enumerate(step.tool_calls):
        wire, attempt = call.id, 0
        while not wire or wire in used:
            wire = f"call_{position}_{index}" + (f"_{attempt}" if attempt else "")
            attempt += 1
        used.add(wire)
        ids.append(wire)
    return tuple(ids)


def with_stubs(item: Item, stubs: Iterable[Stub]) -> Item:
    """Return the item with each stub in its slot. Raises LogUnreadable for a slot that the item does not have."""
    for stub in stubs:
        item = _with_stub(item, stub)
    return item


def _with_stub(item: Item, stub: Stub) -> Item:
    match item:
        case steps.ActionStep():
            return _with_action_stub(item, stub)
        case steps.TaskStep() | steps.PlanningStep() | steps.FinalAnswerStep():
            return replace(item, content=stub.content)
        case Observed(observation=late):
            return replace(item, observation=replace(late, content=stub.content))
        case steps.SystemPromptStep() | steps.SummaryStep() | Pin() | ContextBlock():
            raise LogUnreadable(f"a {type(item).__name__} has no slot for a stub")
        case _:
            assert_never(item)


def _with_action_stub(step: steps.ActionStep, stub: Stub) -> steps.ActionStep:
    match stub.slot:
        case "content":
            # Signed thinking is sent unchanged or not at all, so a stub replaces the prose only.
            thinking = tuple(part for part in steps.as_parts(step.content) if is_thinking(part))
            return replace(step, content=(*thinking, *steps.as_parts(stub.text)) if thinking else stub.text)
        case "thinking":
            return replace(step, content=without_thinking(step.content), extra=None)
        case "arguments":
            calls = list(step.tool_calls)
            calls[stub.index] = replace(calls[stub.index], arguments=stub.text)
            return replace(step, tool_calls=tuple(calls))
        case "observation":
            observations = list(step.observations)
            old = observations[stub.index] or steps.Observation(step.tool_calls[stub.index].id)
            observations[stub.index] = replace(old, content=stub.content)
            return replace(step, observations=tuple(observations))
        case _:
            assert_never(stub.slot)


def is_thinking(part: object) -> bool:
    """True for a model's reasoning, signed or not."""
    return isinstance(part, steps.Opaque) and part.kind in THINKING


def without_thinking(content: steps.Content | None) -> steps.Content | None:
    """Return the content without any of the model's reasoning; None if nothing else is in it."""
    if content is None or isinstance(content, str):
        return content
    return tuple(part for part in content if not is_thinking(part)) or None


def make_entry(
    item: Item,
    first: int,
    last: int,
    counter: TokenCounter,
    *,
    tier: EntryTier,
    why: str,
    ids: tuple[str, ...] = (),
    stubs: tuple[Stub, ...] = (),
) -> ViewEntry:
    """Build the view entry of an item: stubs in place, messages rendered, tokens counted."""
    stubbed = with_stubs(item, stubs)
    messages = messages_of(stubbed, ids, late_system=tier == "note")
    tokens = sum(message_tokens(message, counter) for message in messages)
    return ViewEntry(first, last, stubbed, tier, why, messages, tokens, ids, stubs)


class FactsHead:
    """The facts block at the head of a view: the newest that was recorded, and the entry that shows it."""

    def __init__(self) -> None:
        self.newest: FactsShown | None = None
        """It may be an empty one; None before the first."""
        self.position: int | None = None
        self.entries: tuple[ViewEntry, ...] = ()
        """Empty without a block."""

    def show(self, position: int, facts: FactsShown, counter: TokenCounter, tokens: int | None = None) -> None:
        """Show a facts block; nothing for an empty one. ``tokens`` is its cost, where that is known."""
        self.newest, self.position = facts, position
        item, why = ContextBlock("facts", facts.text), "known when the view was laid out"
        if tokens is None:
            entry = make_entry(item, position, position + 1, counter, tier="facts", why=why)
        else:
            entry = ViewEntry(position, position + 1, item, "facts", why, messages_of(item), tokens)
        self.entries = (entry,) if facts.text else ()

    @property
    def tokens(self) -> int:
        """Tokens of the block."""
        return sum(entry.tokens for entry in self.entries)
