"""The conversations of a pydantic-ai agent, each in a session of its own."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from operator import is_
from typing import Any

from pagein.events.entries import Checkpoint
from pagein.events.protocol import as_current_prompt, current_prompt
from pagein.events.steps import SystemPromptStep
from pagein.formats import Item
from pagein.formats.parsing import to_plain_json
from pagein.integrations._editable_history import to_json
from pagein.integrations._item_history import ItemHistory
from pagein.integrations._owners import OwnedConversation, OwnerChoice
from pagein.integrations._threads import HistoryTracker, OpenConversations, session_name
from pagein.integrations.pydantic_ai.messages import NAME, dynamic_ref, to_items, to_rows

Row = dict[str, Any]

DEFERRED_CHECKPOINT = "host:pydantic-ai:deferred"
"""Name of the checkpoints with the ids of the calls that a run ended with: another run brings their results."""

_SENT_FIELDS = ("part_kind", "content", "tool_name", "tool_call_id", "args", "signature")
"""Fields of a part that a model is sent; the framework fills in others as it goes."""


class MessageHistory(ItemHistory):
    """The history of a conversation in pydantic-ai's messages, each returned as it came."""

    format = NAME

    def parse(self, rows: Sequence[Any]) -> tuple[Item, ...]:
        return to_items(rows)

    def update_prompts(self, rows: Sequence[Row]) -> None:
        """Record the dynamic system prompts of these messages that have a new text, each in the place of its older one."""
        dynamic = [row for row in rows if any(part.get("dynamic_ref") for part in row.get("parts", ()))]
        prompts = [prompt for prompt in to_items(dynamic) if dynamic_ref(prompt)]
        standing = self._standing_prompts() if prompts else {}
        counts, new = Counter[str](), list[Item]()
        for prompt in prompts:
            ref = dynamic_ref(prompt)
            older = standing.get((ref, counts[ref]))
            counts[ref] += 1
            if older is not None and isinstance(prompt, SystemPromptStep) and prompt.content != older[1]:
                new.append(as_current_prompt(prompt, [older[0]]))
        if new:
            self.memory.record_new_messages(new, tuple)

    def note_deferred(self, call_ids: Iterable[str]) -> None:
        """Note durably that these calls wait for results of a later run."""
        with self.memory.exclusive():
            self.refresh()
            self._append(Checkpoint(DEFERRED_CHECKPOINT, to_json({"calls": sorted(call_ids)})))

    def deferred_calls(self) -> frozenset[str]:
        """The ids of the calls that the last run ended with."""
        bodies = (entry.body for entry in reversed(self.entries()))
        notes = (body for body in bodies if isinstance(body, Checkpoint) and body.name == DEFERRED_CHECKPOINT)
        newest = next(notes, None)
        return frozenset() if newest is None else frozenset(json.loads(newest.state)["calls"])

    def _standing_prompts(self) -> dict[tuple[str, int], tuple[int, Any]]:
        """Return position and text of the dynamic system prompts in the view, by reference and number among its own."""
        keys: dict[int, tuple[str, int]] = {}
        counts, standing = Counter[str](), dict[tuple[str, int], tuple[int, Any]]()
        for entry in self.entries():
            if not isinstance(entry.body, SystemPromptStep):
                continue
            prompt, replaced = current_prompt(entry.body)
            if not (ref := dynamic_ref(prompt)):
                continue
            key = keys.get(replaced[0], (ref, 0)) if replaced else (ref, counts[ref])
            counts[ref] += not replaced
            keys[entry.position], standing[key] = key, (entry.position, prompt.content)
        return standing


@dataclass(slots=True)
class MessageConversation:
    """An open history, and the messages it has recorded. ``run`` is the run that used it last."""

    history: MessageHistory
    tracker: HistoryTracker = field(
        default_factory=lambda: HistoryTracker(
            is_same=_is_same_content, values_of=_message_values, has_same_values=_are_same_objects
        )
    )
    run: str | None = None

    def catch_up(self) -> None:
        """Learn what another process recorded here."""
        rows = self.history.current_items()[len(self.tracker) :]
        self.tracker.records += map(sent_content, rows)

    def record(self, messages: Sequence[Any], rows: Sequence[Row]) -> None:
        """Write the messages durably, all or none; ``rows`` are the messages as JSON."""
        if rows:
            self.history.append(rows)
            self.tracker.add(messages, map(sent_content, rows))

    def view(self, instructions: str) -> list[Row]:
        """The view, with room for the instructions that are sent beside it. Raises OverBudget."""
        self.history.reserve_instructions(instructions)
        view = self.history.memory.view()
        self.history.memory.note_request(view)
        rows = to_rows(view.messages())
        self.tracker.set_view(map(sent_content, rows), len(self.tracker))
        return rows


class MessageConversations:
    """The conversations in one store, by name. Threads may share it.

    ``dump`` makes JSON-safe rows of messages; it gets the new ones, and all where something changed.
    """

    def __init__(
        self, url: str | os.PathLike[str], owners: OwnerChoice, dump: Callable[[Sequence[Any]], list[Row]]
    ) -> None:
        self._url, self._owners, self._dump = url, owners, dump
        self._open = OpenConversations[OwnedConversation, list[MessageConversation]]()
        self._lock = threading.RLock()
        MessageHistory.open(":memory:", **owners.options).close()  # a bad option raises now

    def record(self, name: OwnedConversation, messages: Sequence[Any], run: str | None = None) -> MessageConversation:
        """Record the messages, and return the conversation of that name that begins with them.

        Messages that were edited go on in another session, ``name#1`` and so on. Raises FormatError, LogError.
        """
        self._owners.check_marks(name, (getattr(message, "metadata", None) for message in messages))
        with self._lock:
            conversations = self._conversations(name)
            for conversation in conversations:
                conversation.catch_up()
            unedited = [candidate for candidate in conversations if candidate.tracker.has_same_objects(messages)]
            if unedited:
                conversation = max(unedited, key=lambda candidate: len(candidate.tracker))
                fresh = messages[len(conversation.tracker) :]
                conversation.record(fresh, to_plain_json(self._dump(fresh), "messages"))
            else:
                conversation = self._record_compared(name, conversations, messages)
            conversations.remove(conversation)
            conversations.append(conversation)  # the newest is last
            conversation.run = run
            return conversation

    def record_answer(self, name: OwnedConversation, message: Any, run: str | None = None) -> None:
        """Record the model's message in the conversation that its run used last."""
        with self._lock:
            self.latest(name, run).record([message], self._dump([message]))

    def latest(self, name: OwnedConversation, run: str | None = None) -> MessageConversation:
        """The conversation of that name that the run used last, else any run, else the one in the store."""
        with self._lock:
            conversations = self._conversations(name)
            of_run = (candidate for candidate in reversed(conversations) if run is not None and candidate.run == run)
            return next(of_run, conversations[-1])

    def using(self, name: OwnedConversation) -> AbstractContextManager[None]:
        """Keep the conversations of that name open meanwhile, whatever others are opened."""
        return self._open.using(name)

    def close(self) -> None:
        """Release the store."""
        with self._lock:
            for name in list(self._open):
                self._close(name)

    def _close(self, name: OwnedConversation) -> None:
        for conversation in self._open.pop(name):
            conversation.history.close()

    def _record_compared(
        self, name: OwnedConversation, conversations: list[MessageConversation], messages: Sequence[Any]
    ) -> MessageConversation:
        """As ``record``, by comparing what the messages say."""
        rows: list[Row] = to_plain_json(self._dump(messages), "messages")
        contents = [sent_content(row) for row in rows]
        matches = [
            (candidate, count)
            for candidate in conversations
            if (count := next(candidate.tracker.recorded_counts(contents), None)) is not None
        ]
        conversation, count = max(matches, key=lambda match: len(match[0].tracker), default=(None, 0))
        if conversation is None:
            conversation = self._open_session(name, len(conversations))
            conversations.append(conversation)
        if count == len(conversation.tracker):
            conversation.tracker.set_objects(messages[:count])
        conversation.history.update_prompts(rows[:count])
        conversation.record(messages[count:], rows[count:])
        return conversation

    def _conversations(self, name: OwnedConversation) -> list[MessageConversation]:
        conversations = self._open.get(name)
        if conversations is None:
            while (idle := self._open.first_to_close()) is not None:
                self._close(idle)
            conversations = [self._open_session(name, 0)]
            while conversations[-1].tracker.records:
                conversations.append(self._open_session(name, len(conversations)))
            if len(conversations) > 1:
                conversations.pop().history.close()
            self._open[name] = conversations
        self._open.move_to_end(name)
        return conversations

    def _open_session(self, name: OwnedConversation, number: int) -> MessageConversation:
        session, options = session_name(name.session, number), self._owners.owner_options(name)
        history = MessageHistory.open(self._url, session=session, tenant=name.tenant, **options)
        conversation = MessageConversation(history)
        erased = history.erased_numbers()
        conversation.tracker.records += [
            (content[0], None) if number in erased else content
            for number, content in enumerate(map(sent_content, history.items()))
        ]
        return conversation


def _is_same_content(content: Any, record: Any) -> bool:
    """True for the same content; what was erased is the same as any of its kind."""
    return bool(content == record or (record[1] is None and record[0] == content[0]))


def _message_values(message: Any) -> tuple[Any, ...]:
    """The parts of a message and the objects in them: the same ones while nobody edits it."""
    return tuple(value for part in message.parts for value in _part_values(part))


def _part_values(part: Any) -> tuple[Any, ...]:
    content = getattr(part, "content", None)
    elements = tuple(content) if isinstance(content, list) else ()
    return (part, content, getattr(part, "args", None), *elements)


def _are_same_objects(values: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(values) == len(others) and all(map(is_, values, others))


def sent_content(row: Mapping[str, Any]) -> Any:
    """The part of a message that a model is sent, without what the framework notes beside it.

    A dynamic system prompt is the same whatever it says: the framework evaluates it again for each run.
    """
    return row.get("kind"), list(map(_sent_fields, row.get("parts", ())))


def _sent_fields(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("dynamic_ref"):
        return {"part_kind": part.get("part_kind"), "dynamic_ref": part["dynamic_ref"]}
    return {key: part[key] for key in _SENT_FIELDS if part.get(key) is not None}
