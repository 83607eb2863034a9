"""What was erased from a log leaves the index too: every passage that its entry does not say any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pagein.events.entries import Observed
from pagein.events.steps import ActionStep
from pagein.log.base import Entry
from pagein.search.index_store import Indexed, Writing
from pagein.search.passages import CONTENT, passages


def revise(writing: Writing, session: str, entries: Iterable[Entry]) -> int:
    """Take out the passages that these entries, as they stand now, do not say; how many there were."""
    known = writing.indexed(session)
    if known is None:
        return 0
    stale = {id for entry in entries for id in _stale(writing, known, entry)}
    return writing.remove(known, sorted(stale)) if stale else 0


def _stale(writing: Writing, known: Indexed, entry: Entry) -> Iterator[int]:
    position, parts = _place(entry)
    said = {(each.part, _kept(each.text)) for each in passages(entry)}
    ids = list(writing.places(known, (position,)))
    mine = {row.id: row.part for row in writing.rows(ids) if row.part in parts}
    for id, text, _, _ in writing.texts(list(mine)):
        if (mine[id], text) not in said:
            yield id


def _place(entry: Entry) -> tuple[int, frozenset[int]]:
    """The position under which an entry's texts are found, and which parts there are its own."""
    body = entry.body
    if isinstance(body, Observed) and not body.late:
        return body.action, frozenset({body.index})
    if isinstance(body, ActionStep):
        seen = (index for index, each in enumerate(body.observations) if each is not None)
        return entry.position, frozenset({CONTENT, *seen})
    return entry.position, frozenset({CONTENT})


def _kept(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
