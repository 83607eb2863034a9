"""Writes to the search index, each within the transaction of its caller: new entries are added, stale passages removed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from itertools import count

from pagein.errors import LogError
from pagein.events.entries import Compaction, Observed
from pagein.events.steps import ActionStep
from pagein.log.base import Entry
from pagein.search import ranking
from pagein.search.dates import first_date
from pagein.search.index_store import IndexedSession, IndexWriter, PassageRow, StoredPassage
from pagein.search.passages import CONTENT_PART, MAX_PASSAGES, Passage, own_calls, passage_id, passages
from pagein.search.tokenizer import beginnings, ends_with_question, terms


def add_entries(writer: IndexWriter, session: str, entries: Iterable[Entry], tools: Collection[str]) -> int:
    """Index the entries above the watermark and move it; return how many there were. Raises LogError for a gap."""
    indexed = writer.open_session(session)
    new = [entry for entry in entries if entry.position >= indexed.position]
    if not new:
        return 0
    batch, stale = list[Passage](), list[int]()
    for expected, entry in enumerate(new, indexed.position):
        if entry.position != expected:
            raise LogError(
                f"entry {entry.position} of session {session!r} came where {expected} was expected; index the log in order"
            )
        found = list(passages(entry, _own_calls_of(writer, indexed, entry, tools)))
        if isinstance(entry.body, Compaction):  # a list's words in the place of others
            places = {(passage.position, passage.part) for passage in found}
            batch = [passage for passage in batch if (passage.position, passage.part) not in places]
            stale += _ids_at(writer, indexed, places)
        batch += found
    end = indexed.next + len(batch)
    if end > MAX_PASSAGES:
        raise LogError(f"session {session!r} has more than {MAX_PASSAGES:,} passages; nothing was indexed")
    if stale:
        writer.remove_passages(indexed, stale)
    first = passage_id(indexed.key, indexed.next)
    writer.add_passages(indexed, list(map(_build_stored_passage, count(first), batch)))
    last = new[-1]
    writer.set_watermark(indexed, last.position + 1, last.digest, end)
    return len(new)


def _ids_at(writer: IndexWriter, indexed: IndexedSession, places: Collection[tuple[int, int]]) -> list[int]:
    """The passages of these texts, by position and part."""
    ids = list(writer.ids_at(indexed, sorted({position for position, _ in places}))) if places else []
    return [row.id for row in writer.rows(ids) if (row.position, row.part) in places]


def _own_calls_of(
    writer: IndexWriter, indexed: IndexedSession, entry: Entry, tools: Collection[str]
) -> set[tuple[int, int]]:
    """The calls of own tools whose results this entry may hold."""
    mine = set(own_calls(entry, tools))
    if mine:
        writer.note_own_calls(indexed, mine)
    action = getattr(entry.body, "action", None)
    return mine.union(writer.own_calls(indexed, action)) if isinstance(action, int) else mine


def _build_stored_passage(id: int, passage: Passage) -> StoredPassage:
    passage_terms = list(terms(passage.text))
    joined = " ".join(passage_terms)
    text = _encodable(passage.text)
    # Equal for texts of equal terms, so that repetitions are dropped from the hits.
    digest = hashlib.blake2b((joined or text).encode("utf-8", "replace"), digest_size=7).digest()
    where = (id, passage.position, passage.part, passage.role, passage.at)
    joined = " ".join((joined, *beginnings(text)))
    row = PassageRow(*where, first_date(text, passage.at), int.from_bytes(digest, "big"))
    if passage.role in ("user", "assistant") and ends_with_question(text):
        joined += ranking.QUESTION_END
    return StoredPassage(row, passage.start, passage.whole, len(passage_terms), joined, text)


def remove_stale(writer: IndexWriter, session: str, entries: Iterable[Entry]) -> int:
    """Remove the passages that these entries no longer contain; return how many there were."""
    indexed = writer.find_session(session)
    if indexed is None:
        return 0
    stale = {id for entry in entries for id in _stale_ids(writer, indexed, entry)}
    return writer.remove_passages(indexed, sorted(stale)) if stale else 0


def _stale_ids(writer: IndexWriter, indexed: IndexedSession, entry: Entry) -> Iterator[int]:
    position, parts = _position_and_parts(entry)
    own = set(writer.own_calls(indexed, position))
    current = {(passage.part, _encodable(passage.text)) for passage in passages(entry, own)}
    ids = list(writer.ids_at(indexed, (position,)))
    part_of = {row.id: row.part for row in writer.rows(ids) if row.part in parts}
    for id, text, _, _ in writer.texts(list(part_of)):
        if (part_of[id], text) not in current:
            yield id


def _position_and_parts(entry: Entry) -> tuple[int, frozenset[int]]:
    """The position under which an entry's texts are indexed, and its own parts there."""
    body = entry.body
    if isinstance(body, Observed) and not body.late:
        return body.action, frozenset({body.index})
    if isinstance(body, ActionStep):
        indexes = (index for index, observation in enumerate(body.observations) if observation is not None)
        return entry.position, frozenset({CONTENT_PART, *indexes})
    return entry.position, frozenset({CONTENT_PART})


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
