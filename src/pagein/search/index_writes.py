"""What is written to the index, each within the caller's transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

from pagein.errors import LogError
from pagein.log.base import Entry
from pagein.search.dates import day_said
from pagein.search.index_store import Indexed, Kept, Row, Writing
from pagein.search.passage_ids import MOST_PASSAGES, passage_id
from pagein.search.passages import Passage, own_calls, passages
from pagein.search.tokenizer import terms


def add(writing: Writing, session: str, entries: Iterable[Entry], tools: Collection[str]) -> int:
    """Take in the entries above the watermark, and move it; how many there were. Raises LogError for a gap."""
    known = writing.begun(session)
    new = [each for each in entries if each.position >= known.position]
    if not new:
        return 0
    found: list[Passage] = []
    for expected, entry in enumerate(new, known.position):
        if entry.position != expected:
            raise LogError(
                f"entry {entry.position} of session {session!r} came where {expected} was expected; index the log in order"
            )
        found += passages(entry, _own(writing, known, entry, tools))
    end = known.next + len(found)
    if end > MOST_PASSAGES:
        raise LogError(f"session {session!r} has more than {MOST_PASSAGES:,} passages; nothing was indexed")
    writing.keep(known, [_kept(id, each) for id, each in enumerate(found, passage_id(known.key, known.next))])
    last = new[-1]
    writing.move(known, last.position + 1, last.digest, end)
    return len(new)


def _own(writing: Writing, known: Indexed, entry: Entry, tools: Collection[str]) -> set[tuple[int, int]]:
    """The calls of our own tools whose results this entry may hold."""
    mine = set(own_calls(entry, tools))
    if mine:
        writing.note_own(known, mine)
    action = getattr(entry.body, "action", None)
    return mine.union(writing.own(known, action)) if isinstance(action, int) else mine


def _kept(id: int, each: Passage) -> Kept:
    held = list(terms(each.text))
    joined = " ".join(held)
    text = each.text.encode("utf-8", "replace").decode()
    # Equal for texts of equal terms: what says the same is shown once.
    digest = hashlib.blake2b((joined or text).encode("utf-8", "replace"), digest_size=7).digest()
    row = Row(
        id,
        each.position,
        each.part,
        each.role,
        each.at,
        day_said(text, each.at),
        int.from_bytes(digest, "big"),
    )
    return Kept(row, each.start, each.whole, len(held), joined, text)
