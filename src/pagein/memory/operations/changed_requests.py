"""One of our own requests as the host changed it: which messages of a list are the request's, and which words are the host's.

A host may leave messages out, put up to three of its own in, add words to a message of the user, join such messages, or do all
of it. That a message is in it which nobody handed over shows that it is a request. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pagein._common.sequences import count_same
from pagein.events.protocol import fingerprint
from pagein.events.steps import Observation, SystemPromptStep, TaskStep, Text, as_parts, as_text
from pagein.formats import Item
from pagein.formats.raw_messages import RawRequest
from pagein.memory._state import KnownList, RunState, SentRequest, TranscriptState
from pagein.memory.operations.client_lists import MAX_JOINED, text_behind, words_beside

if TYPE_CHECKING:
    from pagein.memory.operations.ingest import Transcript
    from pagein.memory.requests import RequestRecord

MAX_INSERTED = 3
"""Messages that a host may have put into a request of ours; with more it is no longer taken for one."""


ChangedRequest = tuple[int, KnownList, tuple[Item, ...]]
"""The number of the first messages of a list, system prompts aside, that are a request; that request; words of the host's."""


def find_changed_request(request: RawRequest, run: RunState, least: int) -> ChangedRequest | None:
    """Find one of the last requests at the beginning of a list; None for one of not more than ``least`` messages."""
    if not run.transcript.sent:
        return None
    hashes = request.hashes()
    numbers = [number for number, _ in request.list_hashes()]
    messages = [request.rows[number] for number in numbers]
    rows = [hashes[number] for number in numbers]
    best: ChangedRequest | None = None
    for sent in reversed(run.transcript.sent):
        if sent.covers > run.log.list_start:
            match = _Comparison(request, messages, rows, sent, run).match(least)
            best = match if match is not None and (best is None or match[0] > best[0]) else best
    return best


@dataclass(frozen=True, slots=True)
class _Path:
    """One way to read a list as the request: its first ``at`` messages are passed, and ``inserted`` of the list are the host's.

    ``place`` is the place in the request of the list's last message, -1 for one that the host put in; of joined ones that
    of the last, and ``first`` that of the first.
    """

    at: int = 0
    inserted: int = 0
    place: int = -1
    added: tuple[Item, ...] = ()
    before: _Path | None = None
    first: int = 0

    def places(self) -> Iterator[int]:
        """Yield the places of the list's messages in the request."""
        path: _Path = self
        while path.before is not None:
            if path.place >= 0:
                yield from range(path.first, path.place + 1)
            path = path.before
        yield from range(path.at)


@dataclass(slots=True)
class _Comparison:
    """A list beside a request that was sent: ``messages`` are the list's, and ``rows`` their hashes, system prompts aside."""

    request: RawRequest
    messages: Sequence[Any]
    rows: Sequence[bytes]
    sent: SentRequest
    run: RunState
    _places: dict[bytes, list[int]] = field(default_factory=dict)
    """The places of each message in the request, by its hash."""
    _items: dict[int, tuple[Item, ...]] = field(default_factory=dict)
    _sent_items: dict[int, tuple[Item, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, row_hash in enumerate(self.sent.hashes):
            self._places.setdefault(row_hash, []).append(place)

    def match(self, least: int) -> ChangedRequest | None:
        """Read the list as the request, with as few messages of the host as may be; None for another list."""
        hashes, rows = self.sent.hashes, self.rows
        start = count_same(rows, hashes)
        paths = [_Path(start, place=start - 1)]
        ends = [(start, paths[0])] if start else []
        for number in range(start, len(rows)):
            best = dict[tuple[int, bool], _Path]()
            for path in (longer for shorter in paths for longer in self._extend(shorter, number)):
                key = path.inserted, path.place < 0
                if key not in best or path.at < best[key].at:
                    best[key] = path
            paths = [*best.values()]
            ends += ((number + 1, path) for path in paths)
            if not paths:
                break
        ends = [(count, path) for count, path in ends if self._is_end(path)]
        for count, path in sorted(ends, key=lambda end: (end[1].inserted - end[0], end[1].inserted)):
            # The user may say what an ending says: with nothing behind it the user said it.
            is_said = self.sent.has_ending and count == len(rows) and rows[-1] == hashes[-1]
            known = (path.before or _Path(path.at - 1)) if is_said else path
            if count - is_said > least and self._is_certain(known):
                return count - is_said, KnownList(self.sent.covers, is_request=True), path.added
        return None

    def _extend(self, path: _Path, number: int) -> Iterator[_Path]:
        """Yield the ways to read the list's next message: as one of the request, as one with words of the host, as the host's own."""
        hashes, row = self.sent.hashes, self.rows[number]
        place = next((place for place in self._places.get(row, ()) if self._is_open(path, place)), None)
        if place is not None:
            yield _Path(place + 1, path.inserted, place, path.added, path, place)
            if place == path.at:
                return  # a message of the host with the same words may as well stand behind it
        items = self._items_of(number)
        if not items or not isinstance(items[-1], TaskStep):
            return
        if number + 1 < len(self.rows) and row not in hashes[path.at :]:
            yield from self._with_words(path, items)
        if path.inserted < MAX_INSERTED and all(isinstance(item, TaskStep) for item in items):
            yield _Path(path.at, path.inserted + 1, -1, (*path.added, *items), path)

    def _is_open(self, path: _Path, place: int) -> bool:
        """True for a place that the list's next message may have: any, but behind a message of the host the next one alone.

        A message of the host beside one that is left out stands in its place: somebody changed it. Of two with the same
        words in a row either may be left out.
        """
        is_host = path.place < 0 and path.before is not None
        if place == path.at or not is_host:
            return place >= path.at
        hashes = self.sent.hashes
        return 0 < path.at < place and all(row == hashes[path.at - 1] for row in hashes[path.at : place])

    def _with_words(self, path: _Path, items: tuple[Item, ...]) -> Iterator[_Path]:
        """Yield the ways to read a message as one of the request, or some joined ones, with words of the host's."""
        # The message before may have been a later one with the same words.
        same = self._places[self.sent.hashes[path.at - 1]] if path.at else []
        for place in (path.at, *(place + 1 for place in same if place >= path.at)):
            mine = self._sent_items_of(place) if place < len(self.sent.rows) else ()
            if not mine or not isinstance(mine[-1], TaskStep | Observation):
                continue
            stop, words = self._read_joined(place, items)
            if stop == place:
                stop, words = place + 1, self._added_words(mine, items)
            if stop > place + 1 or words:
                yield _Path(stop, path.inserted, stop - 1, (*path.added, *words), path, place)
                return

    def _added_words(self, items: Sequence[Item], changed: Sequence[Item]) -> tuple[TaskStep, ...]:
        """The words that the host added to a message of ours; none in one that was recorded as it stands."""
        words = added_words(items, changed)
        return () if words and fingerprint(changed[-1]) in self.run.log.fingerprints else words

    def _read_joined(self, place: int, items: tuple[Item, ...]) -> tuple[int, tuple[TaskStep, ...]]:
        """The end of the messages from a place on that the host joined, and what else it says; ``place`` where it joined none."""
        if len(items) != 1 or not isinstance(items[0], TaskStep):
            return place, ()
        rest: str | None = as_text(items[0].content)
        tasks: list[TaskStep] = []
        for at in range(place, len(self.sent.rows)):
            match self._sent_items_of(at):
                case (TaskStep() as task,):
                    rest = None if rest is None else text_behind(rest, as_text(task.content))
                    if rest is None and len(tasks) >= MAX_JOINED:
                        break
                    tasks.append(task)
                case _:
                    break
        for count in range(len(tasks), 1, -1):
            if (words := words_beside(items[0], tasks[:count])) is not None:
                return place + count, words
        return place, ()

    def _is_end(self, path: _Path) -> bool:
        """True if the list's last message is the last of the request, which an ending may follow."""
        hashes, end = self.sent.hashes, len(self.sent.hashes) - (2 if self.sent.has_ending else 1)
        return path.place >= 0 and (path.place >= end or hashes[path.place] in hashes[max(0, end) :])

    def _is_certain(self, path: _Path) -> bool:
        """True if more than one of the request's messages is in the list, and one that was not recorded."""
        places = sorted(path.places())
        if len(places) < 2:
            return False
        # Together: a step may have several messages.
        items = without_systems(self.sent.form.parse([self.sent.rows[place] for place in places]))
        return not {*map(fingerprint, items)} <= {*self.run.log.fingerprints}

    def _items_of(self, number: int) -> tuple[Item, ...]:
        if number not in self._items:
            self._items[number] = self.request.form.parse([self.messages[number]])
        return self._items[number]

    def _sent_items_of(self, place: int) -> tuple[Item, ...]:
        if place not in self._sent_items:
            self._sent_items[place] = self.sent.form.parse([self.sent.rows[place]])
        return self._sent_items[place]


def without_systems(items: Iterable[Item]) -> list[Item]:
    """Return the items without system prompts."""
    return [item for item in items if not isinstance(item, SystemPromptStep)]


def added_words(items: Sequence[Item], changed: Sequence[Item]) -> tuple[TaskStep, ...]:
    """Return what the host added before or behind the user's words, images too; nothing for any other change.

    Words that grew, as a number by a digit, are no additions: then it is the whole message. Results may stand before them.
    """
    match items, changed:
        case [*first, TaskStep(content=content)], [*others, TaskStep(content=whole) as message]:
            old, new = as_parts(content), as_parts(whole)
        case [*first, Observation() as result], [*others, TaskStep() as message]:
            first.append(result)
            old, new = (), as_parts(message.content)
        case _:
            return ()
    if [*map(fingerprint, first)] != [*map(fingerprint, others)]:
        return ()
    # Of a text the words count alone.
    keys, new_keys = ([part.text if isinstance(part, Text) else part for part in parts] for parts in (old, new))
    start = count_same(keys, new_keys)
    stop = count_same(keys[start:][::-1], new_keys[start:][::-1])
    old, new = old[start : len(old) - stop], new[start : len(new) - stop]
    if not old:
        return (replace(message, content=new),) if new else ()
    text = as_text(old).strip()
    for at, cut in ((0, str.removeprefix), (len(new) - 1, str.removesuffix)):
        words = as_text(new[at : at + 1]).strip()
        added = cut(words, text)
        if text and added != words and (len(new) > 1 or added):
            seam = text[-1:] + added[:1] if at == 0 and words.startswith(text) else added[-1:] + text[:1]
            if len(seam) > 1 and seam.isalnum():
                return (message,)
            own = (Text(added.strip()),) if added else ()
            return (replace(message, content=(*new[:at], *own, *new[at + 1 :])),)
    return ()


def remember_request(state: TranscriptState, request: RawRequest, covers: int, ending: Any) -> None:
    """Remember a request that was given out: what comes behind it is new, and nothing in it is.

    ``ending`` is its last message where nobody said that, else None.
    """
    _remember_hashes(state, request.request_hashes(has_ending=ending is not None), covers, ending)
    numbers = [number for number, _ in request.list_hashes()]
    if numbers:
        hashes = request.hashes()
        rows = [hashes[number] for number in numbers]
        messages = [request.rows[number] for number in numbers]
        state.sent.append(SentRequest(rows, messages, request.form, covers, has_ending=ending is not None))


def has_strange_words(transcript: Transcript, run: RunState) -> bool:
    """True for a list that may be a changed request of ours: words that were not recorded begin it, or stand before some that were."""
    known = set(run.log.fingerprints)
    items = without_systems(transcript.request.parse())
    is_known = [fingerprint(item) in known for item in items]
    is_strange = not all(is_known) and any(is_known[is_known.index(False) :])
    return is_strange or (len(items) > 1 and isinstance(items[0], TaskStep) and not is_known[0])


def remember_records(run: RunState, records: Iterable[RequestRecord]) -> None:
    """Remember requests that were given out before, or by another process: a list may be one, and what followed it."""
    run.transcript.knows_requests = True
    known = set(run.transcript.lists)  # a later request takes the place of an equal one
    for record in records:
        hashes = [bytes.fromhex(text) for text in record.lists]
        if not known.issuperset(hashes):
            ending = object() if hashes[1:] else None
            _remember_hashes(run.transcript, hashes, run.log.count_fingerprints(record.head), ending)


def _remember_hashes(state: TranscriptState, hashes: Sequence[bytes], covers: int, ending: Any) -> None:
    for at, digest in enumerate(hashes, 1):
        state.remember(digest, KnownList(covers, is_request=True, ending=ending if at == len(hashes) else None))
