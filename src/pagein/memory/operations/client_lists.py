"""A list whose client wrote recorded messages another way: each such message is made the recorded one again.

A client joins messages of the user, divides one, clears old results, drops images or the words before a call, or shortens the
arguments of old calls.
The list is the same run for all that, and what was recorded stays. Words that stand behind or before joined ones are new.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pagein._common.sequences import count_same
from pagein.context.view.body import find_shown
from pagein.context.view.view import View
from pagein.events.entries import IN_TEXT, Observed
from pagein.events.handles import observation_handle, step_handle
from pagein.events.protocol import MODEL_PREFIX, RESULT_PREFIX, USER_PREFIX, fingerprint, is_same_item, normal_text
from pagein.events.steps import ActionStep, Content, Image, Observation, Part, TaskStep, Text, as_parts, as_text
from pagein.formats import Item
from pagein.memory.operations import lineage

MAX_JOINED = 20
"""Messages of the user that are looked for in one."""

_NUMBER = re.compile(r"\d+")

RESPELLED_SHARE = 0.8
"""Share of its words that a message keeps where a client only wrote the time anew: "It is 10:00 on Monday." keeps four of five."""

CERTAIN_WORDS = 5
"""Words of a line that two messages have by no chance."""

SHORTENED_SHARE = 0.8
"""Share of its size that an old result keeps at most where a client shortened it; else somebody changed what it says."""

IMAGE_SIZE = 1_000
"""Characters that an image counts for where sizes are compared."""

_READ_AHEAD = 64
"""Entries read at a time."""

_CLEARED = re.compile(
    r"\b(?:clear|delet|elid|evict|exclu|hid|omit|omis|prune|redact|remov|compact|compress|collaps|drop|expir|offload|shorten"
    r"|snip|stripp|trim|truncat|archiv|discard|suppress|supprim|no longer|not shown|too long|gel[\u00f6o]scht|entfernt|gek[\u00fcu]rzt"
    r"|ausgelassen|geleert|effac|masqu|retir|tronqu|troncat|elimin|borrad|recortad|apagad|rimoss|cancellat|omess"
    r"|\u0443\u0434\u0430\u043b|\u043e\u0447\u0438\u0449|\u0441\u043e\u043a\u0440\u0430\u0449|\u043f\u0440\u043e\u043f\u0443\u0449|\u043e\u0431\u0440\u0435\u0437)"
    r"|[\u6e05\u5220\u79fb\u6d88\u524a]\u9664|\u7701\u7565|\u622a\u65ad|\u6d88\u53bb|\uc0dd\ub7b5|\uc0ad\uc81c|\uc81c\uac70",
    re.IGNORECASE,
)
"""Says that something was cleared or shortened, in nine languages."""

_IN_BRACKETS = re.compile(r"[\[(<{].{0,300}[\])>}]|[.\u2026\s]*", re.DOTALL)
_STATE = re.compile(r"\[.*\w.*\]", re.DOTALL)
_MAX_PLACEHOLDER = 300


ShortenedItem = tuple[int, bytes]
"""The number of a recorded item's fingerprint, and the fingerprint that a client's list has in its place."""


def as_recorded(
    items: Sequence[Item], chain: lineage.Chain, first: int
) -> tuple[list[Item], list[bytes], dict[ShortenedItem, str]]:
    """Compare a list's items with the chain from the place ``first`` on, and make those that a client changed the recorded ones.

    Return them, their fingerprints, and the handles of those that the list has shorter.
    """
    reader = _Reader(list(items), [fingerprint(item) for item in items], chain, first)
    reader.align_items()
    return reader.items, reader.marks, reader.shortened


@dataclass(slots=True)
class _Reader:
    """A list beside a chain: before the item ``at`` both say the same, up to ``place`` of the chain."""

    items: list[Item]
    marks: list[bytes]
    chain: lineage.Chain
    first: int
    """The place that the list's first item is compared with."""
    place: int = 0
    at: int = 0
    added: list[TaskStep] = field(default_factory=list)
    """New words of joined messages, and words that moved: they stand behind what was recorded, at the latest."""
    shortened: dict[ShortenedItem, str] = field(default_factory=dict)

    def align_items(self) -> None:
        """Change item after item, for as long as the list says what was recorded."""
        self.place = self.first
        while True:
            skippable = self.chain.skippable(self.place)
            alignment = lineage.align(self.marks[self.at :], self.chain.marks(self.place), skippable)
            self.at, self.place = self.at + alignment.at, self.place + alignment.reached
            if self.place == len(self.chain):
                break
            if self._place_added() or self._take_moved():
                continue
            if self.at == len(self.items) or not self._read_changed():
                break
        place = lineage.results_end(self.marks, self.at)  # nothing stands between a call and its results
        self._replace(place, place, self.added)

    def _place_added(self) -> bool:
        """True for new words that were recorded before, in their place: the list has them among older ones."""
        mark = self.chain.mark(self.place)
        step = next((step for step in self.added if fingerprint(step) == mark), None)
        if step is not None:
            self.added.remove(step)
            self._replace(self.at, self.at, [step])
        return step is not None

    def _take_moved(self) -> bool:
        """True for words that a list took back from earlier places, and that this one has among older ones: they are new."""
        if self.at == len(self.items) or not isinstance(step := self.items[self.at], TaskStep):
            return False
        log, removed = self.chain.run.log, self.chain.run.fold.changes.removed
        positions, hash = log.fingerprint_positions, self.marks[self.at][1:]
        places = [at for at, mark in enumerate(log.fingerprints) if mark[1:] == hash and positions[at] in removed]
        is_moved = bool(self.place and places) and places[-1] < self.chain.numbers[self.place - 1]
        if is_moved:
            self.added.append(step)
            self._replace(self.at, self.at + 1, ())
        return is_moved

    def _read_changed(self) -> bool:
        """Make the next item the recorded one; False where it says something else."""
        listed, recorded = self.marks[self.at], self.chain.mark(self.place)
        if listed[:1] != recorded[:1]:
            return False
        if recorded.startswith(RESULT_PREFIX):
            return self._read_results()
        if recorded.startswith(USER_PREFIX) and self._read_joined():
            return True
        is_grown = recorded.startswith(MODEL_PREFIX) and self._read_grown()
        return is_grown or (bool(self.at or self.first) and self._read_shortened_step())

    def _replace(self, start: int, stop: int, items: Sequence[Item]) -> None:
        self.items[start:stop] = items
        self.marks[start:stop] = map(fingerprint, items)

    # Joined and divided messages of the user

    def _read_joined(self) -> bool:
        stop = min(len(self.chain), self.place + MAX_JOINED)
        recorded = lineage.first_tasks(self.chain.read_items(self.place, stop, _READ_AHEAD))
        listed = lineage.first_tasks(self.items[self.at : self.at + MAX_JOINED])
        count, recorded_count, words = match_joined(listed, recorded)
        self._replace(self.at, self.at + count, recorded[:recorded_count])
        self.added += words
        return count > 0

    def _read_grown(self) -> bool:
        """Make an answer the recorded one and what follows it: the client began it, or handed its first items over alone."""
        recorded = self.chain.read_items(self.place, min(len(self.chain), self.place + 2), _READ_AHEAD)
        if (behind := step_behind(self.items[self.at], recorded[0])) is not None:
            if _plain_answer(recorded[0]) and not self.chain.run.transcript.is_untouched:
                return False  # it may be an answer that the client words anew, with its calls in it
            self._replace(self.at, self.at + 1, [recorded[0], behind])
            return True
        texts = [_plain_answer(item) for item in (self.items[self.at], *recorded)]
        rest = text_behind(texts[0], texts[1]) if texts[0] and texts[1] else None
        if not rest:
            return False
        if len(recorded) == 1 and len(rest) >= len(texts[1]):  # less is a mark that the client puts behind each answer
            self._replace(self.at, self.at + 1, [recorded[0], ActionStep(rest.strip())])
        elif len(recorded) > 1 and normal_text(rest) == normal_text(texts[2]):
            self._replace(self.at, self.at + 1, recorded)
        else:
            return False
        return True

    # Shortened results, arguments and images

    def _read_results(self) -> bool:
        """Make the results of a step the recorded ones, where the client shortened some."""
        stop, end = lineage.results_end(self.marks, self.at), self.chain.results_end(self.place)
        open_places, indexes = [*range(self.place, end)], list[int]()
        for index in range(self.at, stop):
            place = next((at for at in open_places if is_same_item(self.chain.mark(at), self.marks[index])), None)
            if place is None:
                indexes.append(index)
            else:
                open_places.remove(place)
        if len(open_places) != len(indexes) or not self._is_old(stop, end):
            return False
        is_last = end == len(self.chain)
        pairs = list(zip(indexes, open_places, strict=True))
        for index, place in pairs:
            if not self._is_shorter(index, place, is_last=is_last):
                return False
        for index, place in pairs:
            self._put_recorded(index, place)
        return True

    def _is_old(self, stop: int, end: int) -> bool:
        """True where the list goes on behind these results as the run did, or as it now does: they are no last words."""
        if stop == len(self.items):
            return False
        if end == len(self.chain):
            return self.marks[stop].startswith(MODEL_PREFIX)
        if is_same_item(self.chain.mark(end), self.marks[stop]):
            return True
        following = self.chain.read_items(end, end + 1, _READ_AHEAD)
        return is_shortened_step(self.items[stop], following[0])

    def _is_shorter(self, index: int, place: int, *, is_last: bool) -> bool:
        """True for a result that the client shortened or cleared, not one that somebody changed."""
        mark, item = self.marks[index], self.items[index]
        if any(other == mark for _, other in (*self.chain.run.transcript.shortened, *self.shortened)):
            return True
        text, parts = as_text(item.content), as_parts(item.content)
        has_words = not parts or any(isinstance(part, Text) for part in parts)  # a picture's name in brackets is none
        if is_last:
            return has_words and is_placeholder(text, is_last=True)
        known = self.chain.marks()
        # One new text for several results says that they were cleared, unless one text stood for them before, until they came.
        is_of_many = self.marks.count(mark) > 1 and mark not in known and known.count(self.chain.mark(place)) == 1
        recorded = self.chain.read_items(place, place + 1, _READ_AHEAD)[0]
        size = _size(recorded.content)
        # "[done]" in the place of "[running]" is what a tool says now: to clear a short result would save nothing.
        is_own = size <= _MAX_PLACEHOLDER and _STATE.fullmatch(text.strip()) and not _CLEARED.search(text)
        if (has_words and is_placeholder(text) and not is_own) or is_of_many:
            return True
        # A short result may have stood in the place of this one, until that came, or have had notes behind it.
        is_part = size > _MAX_PLACEHOLDER or len(text) // 2 < count_same(text, as_text(recorded.content)) < len(text)
        if is_part and _size(item.content) <= SHORTENED_SHARE * size:
            return True
        is_close = not has_words or is_respelled(as_text(recorded.content), text)
        return is_close and not self._is_shown(place)

    def _is_shown(self, place: int) -> bool:
        """True for a result that the view has as it was recorded."""
        position = self.chain.position(place)
        body = self.chain.run.runtime.read_entries(position, position + 1)[0].body
        if not isinstance(body, Observed):
            return False
        at = (position, IN_TEXT) if body.late else (body.action, body.index)
        result = shown_result(self.chain.run.current_view(), *at)
        return result is not None and fingerprint(result) == self.chain.mark(place)

    def _read_shortened_step(self) -> bool:
        """Make a message with shorter arguments, or without its words or images, the recorded one."""
        if self.at + 1 == len(self.items):
            return False
        recorded = self.chain.read_items(self.place, self.place + 1, _READ_AHEAD)[0]
        if not is_shortened_step(self.items[self.at], recorded):
            return False
        self._put_recorded(self.at, self.place)
        return True

    def _put_recorded(self, index: int, place: int) -> None:
        """Put the recorded item in the place of the list's, and note the handle where that was not known."""
        number, mark = self.chain.numbers[place], self.marks[index]
        if (number, mark) not in self.chain.run.transcript.shortened:
            self.shortened[number, mark] = self._handle(place)
        self.items[index] = self.chain.read_items(place, place + 1, _READ_AHEAD)[0]
        self.marks[index] = self.chain.mark(place)

    # What was recorded

    def _handle(self, place: int) -> str:
        position = self.chain.position(place)
        body = self.chain.run.runtime.read_entries(position, position + 1)[0].body
        if isinstance(body, Observed) and not body.observation.is_message:
            return observation_handle(body.action, body.index)
        index = self.chain.numbers[place] - self.chain.run.log.count_fingerprints(position)
        return observation_handle(position, index - 1) if index else step_handle(position)


def _plain_answer(item: Item) -> str:
    """The text of an answer that calls nothing; "" for any other item."""
    is_answer = isinstance(item, ActionStep) and not item.tool_calls
    return as_text(item.content) if is_answer and all(isinstance(part, Text) for part in as_parts(item.content)) else ""


def step_behind(listed: Item, recorded: Item) -> ActionStep | None:
    """What an answer has behind all parts and calls of the recorded one; None for another answer, and where that is words alone."""
    if not isinstance(listed, ActionStep) or not isinstance(recorded, ActionStep):
        return None
    parts, count, calls = as_parts(listed.content), len(as_parts(recorded.content)), len(recorded.tool_calls)
    begun = replace(listed, content=parts[:count] or None, tool_calls=listed.tool_calls[:calls])
    later = tuple(
        call if call.at is None else replace(call, at=max(0, call.at - count)) for call in listed.tool_calls[calls:]
    )
    is_more = bool(later) or not all(isinstance(part, Text) for part in parts[count:])
    has_words = any(isinstance(part, Text) for part in parts[:count])
    if not (is_more or (parts[count:] and not has_words)) or fingerprint(begun) != fingerprint(recorded):
        return None
    return replace(listed, content=parts[count:] or None, tool_calls=later)


def shown_result(view: View, position: int, index: int) -> Observation | None:
    """The result that a view shows, of the action at a position, or one in text there; None where it left the view."""
    entry = find_shown(view.run, position)
    match None if entry is None else entry.item:
        case Observed(observation=result):
            return result
        case ActionStep(observations=results) if index < len(results):
            return results[index]
    return None


def is_placeholder(text: str, *, is_last: bool = False) -> bool:
    """True for a text that says that another one was cleared. In the place of the last result it must say so in brackets."""
    words = text.strip()
    if len(words) > _MAX_PLACEHOLDER:
        return False
    says_so, in_brackets = _CLEARED.search(words) is not None, _IN_BRACKETS.fullmatch(words) is not None
    if in_brackets and words:
        try:
            json.loads(words)
        except ValueError:
            pass
        else:
            return False
    return (says_so and in_brackets) if is_last else (says_so or in_brackets)


def is_shortened_step(listed: Item, recorded: Item) -> bool:
    """True for a call with shorter arguments or without the words before it, and for the user's words without some of their images."""
    match listed, recorded:
        case ActionStep(tool_calls=(_, *_) as calls), ActionStep(tool_calls=old_calls):
            if [call.name for call in calls] != [call.name for call in old_calls]:
                return False
            words = normal_text(as_text(listed.content))
            if words and words != normal_text(as_text(recorded.content)):
                return False
            pairs = [(call.arguments, old.arguments) for call, old in zip(calls, old_calls, strict=True)]
            return all(
                new == old or len(new) <= SHORTENED_SHARE * len(old) or is_placeholder(new) for new, old in pairs
            )
        case TaskStep(content=content), TaskStep(content=old) if _count_images(content) < _count_images(old):
            rest = text_behind(_text_parts(content), _text_parts(old))
            return rest is not None and (not rest.strip() or is_placeholder(rest))
        case _:
            return False


def _count_images(content: Content | None) -> int:
    return sum(isinstance(part, Image) for part in as_parts(content))


def _text_parts(content: Content | None) -> str:
    return "\n".join(part.text for part in as_parts(content) if isinstance(part, Text))


def _size(content: Content | None) -> int:
    parts = as_parts(content)
    sizes = (IMAGE_SIZE if isinstance(part, Image) else len(getattr(part, "body", "") or part.text) for part in parts)
    return sum(sizes)


def match_joined(listed: Sequence[TaskStep], recorded: Sequence[TaskStep]) -> tuple[int, int, tuple[TaskStep, ...]]:
    """Return how many messages from the beginning say the same in the list and in the log, where one has them as one.

    Behind them, or before them, the list's may have new words, which come last. (0, 0, ()) for other words.
    """
    if listed:
        for count in range(len(recorded), 1, -1):
            if (words := words_beside(listed[0], recorded[:count])) is not None:
                return 1, count, words
    for count in range(2, len(listed) + 1 if recorded else 0):
        if words_beside(recorded[0], listed[: count - 1]) is None:
            break
        joined = replace(listed[0], content=tuple(part for step in listed[:count] for part in as_parts(step.content)))
        if (words := words_beside(joined, recorded[:1])) is not None:
            return count, 1, words
    return 0, 0, ()


def words_beside(whole: TaskStep, steps: Sequence[TaskStep]) -> tuple[TaskStep, ...] | None:
    """Return what a message has before or behind the words of these steps, white space aside; None where they are not all in it."""
    parts, old_parts = as_parts(whole.content), [part for step in steps for part in as_parts(step.content)]
    keys, old_keys = (
        [normal_text(part.text) if isinstance(part, Text) else part for part in some] for some in (parts, old_parts)
    )
    if keys[: len(old_parts)] == old_keys:
        return _as_words(whole, parts[len(old_parts) :])
    if not all(isinstance(part, Text) for part in (*parts, *old_parts)):
        return None
    text, words = _text_parts(parts), _text_parts(tuple(old_parts))
    behind, before = text_behind(text, words), text_behind(text[::-1], words[::-1])
    if behind is None and before is None:
        return None
    return _as_words(whole, (Text((behind if behind is not None else (before or "")[::-1]).strip()),))


def _as_words(whole: TaskStep, parts: Sequence[Part]) -> tuple[TaskStep, ...]:
    is_said = any(not isinstance(part, Text) or part.text.strip() for part in parts)
    content = parts[0].text if len(parts) == 1 and isinstance(parts[0], Text) else tuple(parts)
    return (replace(whole, content=content),) if is_said else ()


def text_behind(text: str, words: str) -> str | None:
    """Return what is behind the words that a text begins with, white space aside; None for another text, or a word that grew."""
    letters = "".join(normal_text(words).split())
    text, at = normal_text(text), 0
    for index, letter in enumerate(text):
        if letter.isspace():
            continue
        if at == len(letters):
            is_grown = index and letter.isalnum() and text[index - 1].isalnum()
            return None if is_grown else text[index:]
        if letter != letters[at]:
            return None
        at += 1
    return "" if at == len(letters) else None


def is_respelled(text: str, other: str) -> bool:
    """True where the texts share a line of words, or nearly all words of the shorter one; numbers, as a clock's, are all the same."""
    lines, others = ({line.strip() for line in words.splitlines()} for words in (text, other))
    if any(len(line.split()) >= CERTAIN_WORDS for line in lines & others):
        return True
    one, two = (Counter(_NUMBER.sub("0", words).split()) for words in (text, other))
    return (one & two).total() >= RESPELLED_SHARE * max(1, min(one.total(), two.total()))
