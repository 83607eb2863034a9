"""The search index over any database that implements ``IndexStore``: its public methods, one search, and the writes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Self, TypeVar

from pagein.errors import LogError, LogUnreadable
from pagein.events.entries import Erased, Observed
from pagein.events.steps import ActionStep
from pagein.log.base import Entry, Log
from pagein.log.hash_chain import check_name
from pagein.search import index_store, ranking
from pagein.search.base import Hit, Query
from pagein.search.dates import DateWindow, date_windows, first_date
from pagein.search.passages import (
    CONTENT_PART,
    MAX_PASSAGES,
    Passage,
    handle_of,
    own_calls,
    passage_id,
    passages,
    range_of_session,
    session_of,
)
from pagein.search.sessions import rank_sessions
from pagein.search.tokenizer import ends_with_question, query_terms, surface_forms, terms

T = TypeVar("T")

_BATCH_ENTRIES = 128
"""Entries indexed in one transaction; it bounds how long a writer of the log waits."""


class SearchIndex:
    """The index over every step of a tenant's sessions, in a ``store``. Derived: dropped and rebuilt where it is damaged.

    ``session`` is the session of calls that name none; the store has one tenant. ``own_tools`` names the tools whose
    results are not indexed because they repeat recalled text. Threads may share one index. Every method raises a
    ``LogError`` or ``ConfigurationError``, never a driver's error.
    """

    def __init__(
        self, store: index_store.IndexStore, *, session: str = "default", own_tools: Collection[str] = ()
    ) -> None:
        self.session = session
        self._store = store
        self._own_tools = frozenset(own_tools)
        self._counts: ranking.TermCounts = {}
        self._logs: dict[str, Log] = {}

    @property
    def path(self) -> str:
        """The address of the index, without a password."""
        return self._store.path

    @property
    def problems(self) -> tuple[str, ...]:
        """Unavailable features that were asked for, such as search by vectors; a line each."""
        return self._store.problems

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def catch_up(self, log: Log, *, session: str | None = None) -> int:
        """Index the entries of the session's log above the watermark; return how many there were.

        Each batch and its watermark are one transaction. A log other than the one indexed before, as after a restore, is
        indexed from the start. Raises LogBusy, LogUnwritable, and what reading the log raises.
        """
        session = self._session_name(session)
        self._logs[session] = log
        return self._with_rebuild(lambda: self._catch_up(log, session))

    def index(self, entries: Iterable[Entry], *, session: str | None = None) -> int:
        """Index entries in order, skipping those below the watermark; return how many were new.

        Raises LogError for a gap; the entries before it are indexed.
        """
        session = self._session_name(session)
        batch = tuple(entries)
        return self._with_rebuild(lambda: self._index(iter(batch), session))

    def watermark(self, session: str | None = None) -> int:
        """The position up to which the session is indexed."""
        session = self._session_name(session)
        indexed = self._store.run_read(lambda reader: reader.find_session(session))
        return 0 if indexed is None else indexed.position

    def watermarks(self) -> dict[str, int]:
        """The position up to which each session is indexed, for all indexed sessions of the tenant."""
        return self._store.run_read(lambda reader: {indexed.name: indexed.position for indexed in reader.sessions()})

    def search(self, query: Query | str) -> tuple[Hit, ...]:
        """The best hits, best first, at most ``limit``. There is no query syntax: any text is searched as it is.

        If the embedder fails, the hits are those by words.
        """
        parsed = Query(query) if isinstance(query, str) else query
        return self._with_rebuild(lambda: self._search(parsed))

    def sessions(self, query: Query | str) -> tuple[tuple[str, float], ...]:
        """The best sessions for the query with their scores, best first, at most ``limit``."""
        parsed = Query(query) if isinstance(query, str) else query
        return self._with_rebuild(lambda: self._sessions(parsed))

    def forget(self, positions: Iterable[int], *, session: str | None = None) -> int:
        """Remove the passages at these positions; return how many there were."""
        session = self._session_name(session)
        places = tuple(positions)
        return self._with_rebuild(lambda: self._forget(places, session))

    def revise(self, entries: Iterable[Entry], *, session: str | None = None) -> int:
        """Remove passages that these entries no longer contain, as after an erasure; return how many there were."""
        session = self._session_name(session)
        batch = tuple(entries)
        return self._with_rebuild(lambda: self._store.run_write(lambda writer: remove_stale(writer, session, batch)))

    def clear(self, session: str | None = None) -> None:
        """Drop the index of one session; the next ``catch_up`` builds it again."""
        session = self._session_name(session)
        self._with_rebuild(lambda: self._clear(session))

    def rebuild(self) -> None:
        """Drop the index: of every tenant in a file, of this tenant on a server. The next ``catch_up`` builds it again."""
        self._counts.clear()
        self._store.empty()

    def pending(self) -> int:
        """The number of the tenant's passages without a vector; 0 without an embedder."""
        vectors = self._store.vectors
        return 0 if vectors is None else max(0, self._store.run_read(lambda reader: vectors.pending(reader, 1)[1]))

    def embed_pending(self, limit: int = 64) -> int:
        """Embed at most ``limit`` passages that have no vector, newest first; return how many remain.

        May run in a thread of its own: nothing is locked while the embedder works. Raises ConfigurationError for vectors of a
        wrong dimension, and what the embedder raises; nothing is written then.
        """
        vectors = self._store.vectors
        if vectors is None:
            return 0
        todo, total = self._store.run_read(lambda reader: vectors.pending(reader, limit))
        if not todo:
            return 0
        embedded = vectors.embed_texts([text for _, text in todo])
        self._store.run_write(lambda writer: vectors.store_vectors(writer, [id for id, _ in todo], embedded))
        return max(0, total - len(todo))

    def close(self) -> None:
        """Release the store; a second call does nothing."""
        self._store.close()

    # The methods without the rebuild

    def _catch_up(self, log: Log, session: str) -> int:
        head = log.head()
        # Read once: another process may index more meanwhile.
        indexed = self._store.run_read(lambda reader: reader.find_session(session))
        start = 0 if indexed is None else indexed.position
        if indexed is not None and start and not _is_same_log(log, indexed, head):
            self._clear(session)
            start = 0
        return self._index(log.read(start, head), session) if start < head else 0

    def _index(self, entries: Iterator[Entry], session: str) -> int:
        total = 0
        while batch := tuple(islice(entries, _BATCH_ENTRIES)):
            total += self._store.run_write(lambda writer: add_entries(writer, session, batch, self._own_tools))
            for entry in batch:
                if isinstance(entry.body, Erased):
                    self._forget_erased(entry.body, entry.position, session)
        return total

    def _forget_erased(self, note: Erased, before: int, session: str) -> None:
        """Remove passages of entries that the log erased after they were indexed."""
        log = self._logs.get(session)
        for first, end in note.spans if not note.gone else ():
            last = min(end, before)
            if log is None:
                self._forget(range(first, last), session)
            else:
                entries = tuple(log.read(first, last))
                self._store.run_write(lambda writer: remove_stale(writer, session, entries))  # noqa: B023 - called at once

    def _search(self, query: Query) -> tuple[Hit, ...]:
        vector_scores = self._vector_scores(query)

        def search(reader: index_store.IndexReader) -> tuple[Hit, ...]:
            candidates, names, _ = self._find(reader, query, vector_scores)
            return build_hits(reader, query, candidates, names)

        return self._store.run_read(search)

    def _sessions(self, query: Query) -> tuple[tuple[str, float], ...]:
        vector_scores = self._vector_scores(query)

        def rank(reader: index_store.IndexReader) -> tuple[tuple[str, float], ...]:
            candidates, names, scope = self._find(reader, query, vector_scores)
            ranked = rank_sessions(reader, query, scope, self._counts, candidates.scored)
            return tuple((names[key], score) for key, score in ranked[: query.limit] if key in names)

        return self._store.run_read(rank)

    def _vector_scores(self, query: Query) -> index_store.VectorScores | None:
        vectors = self._store.vectors
        return None if vectors is None else vectors.scores_for(query.text)

    def _find(
        self, reader: index_store.IndexReader, query: Query, vector_scores: index_store.VectorScores | None
    ) -> tuple[SearchCandidates, dict[int, str], index_store.Scope]:
        names = {indexed.key: indexed.name for indexed in reader.sessions()}
        scope = _scope_of(reader, query, names)
        if vector_scores is not None:
            vector_scores.load(reader, scope)
        own = reader.find_session(self.session) if query.exclude else None
        excluded = frozenset() if own is None else frozenset(reader.ids_at(own, query.exclude))
        return find_candidates(reader, query, scope, excluded, self._counts, vector_scores), names, scope

    def _forget(self, positions: Collection[int], session: str) -> int:
        def forget(writer: index_store.IndexWriter) -> int:
            indexed = writer.find_session(session)
            return 0 if indexed is None else writer.remove_passages(indexed, writer.ids_at(indexed, positions))

        return self._store.run_write(forget)

    def _clear(self, session: str) -> None:
        def clear(writer: index_store.IndexWriter) -> None:
            if indexed := writer.find_session(session):
                writer.remove_session(indexed)

        self._store.run_write(clear)

    def _session_name(self, session: str | None) -> str:
        return self.session if session is None else check_name("session", session)

    def _with_rebuild(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``; if the index is damaged or gone, rebuild it once and repeat.

        Raises LogUnreadable where the logs to rebuild it from are not known: the index is then empty.
        """
        try:
            return work()
        except LogUnreadable as error:
            if not self._store.is_damage(error):
                raise
        self._counts.clear()
        self._store.recreate()
        if not self._logs:
            raise LogUnreadable(
                f"{self.path}: the index was damaged, and is empty now; catch_up() builds it again from the log"
            )
        for session, log in self._logs.items():
            self._catch_up(log, session)
        return work()


def _is_same_log(log: Log, indexed: index_store.IndexedSession, head: int) -> bool:
    """True if the indexed entries are the beginning of this log, by the hash of the last one."""
    if indexed.position > head:
        return False
    return next(iter(log.read(indexed.position - 1, indexed.position))).digest == indexed.digest


def _scope_of(reader: index_store.IndexReader, query: Query, names: dict[int, str]) -> index_store.Scope:
    if not names:
        return index_store.Scope((), (), query.roles)
    keys = sorted(key for key, name in names.items() if not query.sessions or name in query.sessions)
    sessions = tuple(keys) if query.sessions else None
    if query.since is not None or query.until is not None:
        early = float("-inf") if query.since is None else query.since
        late = float("inf") if query.until is None else query.until
        return index_store.Scope(tuple(reader.ranges_between(keys, early, late)), sessions, query.roles)
    if sessions is None:
        return index_store.Scope((reader.range_of_all(),), None, query.roles)
    return index_store.Scope(tuple(map(range_of_session, sessions)), sessions, query.roles)


# One search

_NEIGHBOUR_SEEDS = (24, 64)
"""Best passages whose neighbours are scored too: for ten hits, and at most."""

_MIN_SCORED = 64
"""Passages scored for any limit; on LoCoMo ten hits are the same as with 256."""

_NEIGHBOUR_OFFSETS = (-2, -1, 1, 2)


@dataclass(frozen=True, slots=True)
class SearchCandidates:
    """Every scored candidate of a search, best first, with their rows and the query's terms."""

    scored: tuple[ranking.ScoredCandidate, ...]
    rows: Mapping[int, index_store.PassageRow]
    terms: tuple[str, ...]


VECTOR_CANDIDATES = 100
"""Candidates taken from the vectors."""


def find_candidates(
    reader: index_store.IndexReader,
    query: Query,
    scope: index_store.Scope,
    hidden: frozenset[int],
    counts: ranking.TermCounts,
    vector_scores: index_store.VectorScores | None,
) -> SearchCandidates:
    """Score every candidate for the query within the scope, best first."""
    query_words = query_terms(query.text, ranking.QUERY_TERMS)
    matches = ranking.match_terms(reader, query_words, scope, counts)
    ids = _select_ids(matches, query.limit, scope, hidden)
    if vector_scores is not None:
        ids.update(vector_scores.nearest(VECTOR_CANDIDATES))
    ids -= hidden
    rows = {row.id: row for row in reader.rows(ids) if _matches_filters(row, query)}
    similarities = {} if vector_scores is None else dict(vector_scores.similarities(rows))
    word_scores, sizes, questions = _word_scores(reader, rows, matches)
    for id in questions & similarities.keys():
        if id + 1 in similarities:
            similarities[id + 1] = max(similarities[id + 1], ranking.ANSWER_MEANING * similarities[id])
    candidates = [
        _build_candidate(row, word_scores[row.id], similarities.get(row.id), sizes.get(row.id, 0))
        for row in rows.values()
    ]
    times = date_windows(query.text, query.now)
    return SearchCandidates(tuple(ranking.fuse(candidates, times)), rows, query_words)


def build_hits(
    reader: index_store.IndexReader, query: Query, candidates: SearchCandidates, names: Mapping[int, str]
) -> tuple[Hit, ...]:
    """Select the hits and read their texts. ``names`` maps session keys to names."""
    selected = ranking.select_hits(candidates.scored, query.limit)
    texts = {row[0]: row[1:] for row in reader.texts([scored.candidate.id for scored in selected])}
    surfaces = surface_forms(query.text, candidates.terms)
    times = date_windows(query.text, query.now)
    built = []
    for scored in selected:
        row = candidates.rows[scored.candidate.id]
        if row.id not in texts:
            continue
        text, whole, stored = texts[row.id]
        built.append(
            Hit(
                handle_of(row.position, row.part),
                text,
                scored.score,
                _explain(scored, row, frozenset(stored.split()), surfaces, times),
                names.get(session_of(row.id), ""),
                row.position,
                row.at,
                row.role,
                whole,
                dict(scored.scores),
            )
        )
    return tuple(built)


def _select_ids(matches: ranking.TermMatches, limit: int, scope: index_store.Scope, hidden: frozenset[int]) -> set[int]:
    """Passages to score: those with the rarest terms, and the neighbours of the best of them.

    An answer need not repeat the words of its question. Neighbours of a hidden passage may be found.
    """
    sums = ranking.sum_rarities(matches.present, matches.statistics.rarity)
    best = ranking.top_ids(sums, min(_NEIGHBOUR_SEEDS[1], max(_NEIGHBOUR_SEEDS[0], 2 * limit)))
    neighbours = {id + offset for id in best for offset in _NEIGHBOUR_OFFSETS}
    within = {id for id in neighbours if any(first <= id <= last for first, last in scope.ranges)}
    for id in hidden:
        sums.pop(id, None)
    scored = max(limit, min(ranking.MAX_SCORED, max(_MIN_SCORED, 8 * limit)))
    return within.union(ranking.top_ids(sums, scored))


def _matches_filters(row: index_store.PassageRow, query: Query) -> bool:
    early = query.since is not None and row.at < query.since
    late = query.until is not None and row.at > query.until
    return not early and not late and (not query.roles or row.role in query.roles)


def _word_scores(
    reader: index_store.IndexReader, rows: Mapping[int, index_store.PassageRow], matches: ranking.TermMatches
) -> tuple[dict[int, float], dict[int, int], set[int]]:
    """BM25F of each passage, with its neighbours in the session; the numbers of terms; and what ends with a question."""
    ids = {id + offset for id in rows for offset in (0, *ranking.NEIGHBOUR_WEIGHTS)}
    # The postings of a rare term are complete. Those of a common one are not, so it is counted in every text.
    common = matches.present.keys() - matches.complete
    holding = ids if common else rows.keys() | (ids & set().union(*matches.present.values()))
    stored = tuple(reader.terms(holding))
    sizes = {id: size for id, size, _ in stored}
    texts = {id: ranking.pad_terms(terms) for id, _, terms in stored}
    counts: dict[str, dict[int, int]] = {}
    for term, holders in matches.present.items():
        counted = holders & texts.keys() if term in matches.complete else texts.keys()
        padded = f" {term} "
        counts[term] = {id: times for id in counted if (times := texts[id].count(padded))}
    questions = {id for id, _, terms in stored if terms.endswith(_QUESTION_END)}
    return ranking.bm25f_scores(rows, sizes, counts, matches.statistics, questions), sizes, questions


_QUESTION_END = f" {ranking.QUESTION_TERM}"


def _build_candidate(
    row: index_store.PassageRow, words: float, meaning: float | None, size: int
) -> ranking.PassageCandidate:
    handle = (session_of(row.id), row.position, row.part)
    return ranking.PassageCandidate(
        row.id, handle, row.role, row.at, row.mentioned_at, words, meaning, row.text_hash, size
    )


def _explain(
    candidate: ranking.ScoredCandidate,
    row: index_store.PassageRow,
    terms: frozenset[str],
    surfaces: Mapping[str, str],
    times: Sequence[DateWindow],
) -> str:
    words = ", ".join(dict.fromkeys(surfaces[term] for term in surfaces if term in terms))
    parts = [f"words: {words}" if words else "words around it"] if candidate.scores["words"] > 0 else []
    if candidate.scores.get("meaning", 0.0) > 0:
        parts.append(f"meaning {candidate.scores['meaning']:.2f}")
    if candidate.scores["time"] > 1:
        times_of_row = (row.at,) if row.mentioned_at is None else (row.at, row.mentioned_at)
        parts.append(next(window.phrase for window in times if any(map(window.contains, times_of_row))))
    return "; ".join(parts)


# Writing, within the transaction of the caller


def add_entries(writer: index_store.IndexWriter, session: str, entries: Iterable[Entry], tools: Collection[str]) -> int:
    """Index the entries above the watermark and move it; return how many there were. Raises LogError for a gap."""
    indexed = writer.open_session(session)
    new = [entry for entry in entries if entry.position >= indexed.position]
    if not new:
        return 0
    batch: list[Passage] = []
    for expected, entry in enumerate(new, indexed.position):
        if entry.position != expected:
            raise LogError(
                f"entry {entry.position} of session {session!r} came where {expected} was expected; index the log in order"
            )
        batch += passages(entry, _own_calls_of(writer, indexed, entry, tools))
    end = indexed.next + len(batch)
    if end > MAX_PASSAGES:
        raise LogError(f"session {session!r} has more than {MAX_PASSAGES:,} passages; nothing was indexed")
    first = passage_id(indexed.key, indexed.next)
    writer.add_passages(indexed, list(map(_build_stored_passage, count(first), batch)))
    last = new[-1]
    writer.set_watermark(indexed, last.position + 1, last.digest, end)
    return len(new)


def _own_calls_of(
    writer: index_store.IndexWriter, indexed: index_store.IndexedSession, entry: Entry, tools: Collection[str]
) -> set[tuple[int, int]]:
    """The calls of own tools whose results this entry may hold."""
    mine = set(own_calls(entry, tools))
    if mine:
        writer.note_own_calls(indexed, mine)
    action = getattr(entry.body, "action", None)
    return mine.union(writer.own_calls(indexed, action)) if isinstance(action, int) else mine


def _build_stored_passage(id: int, passage: Passage) -> index_store.StoredPassage:
    passage_terms = list(terms(passage.text))
    joined = " ".join(passage_terms)
    text = _encodable(passage.text)
    # Equal for texts of equal terms, so that repetitions are dropped from the hits.
    digest = hashlib.blake2b((joined or text).encode("utf-8", "replace"), digest_size=7).digest()
    where = (id, passage.position, passage.part, passage.role, passage.at)
    row = index_store.PassageRow(*where, first_date(text, passage.at), int.from_bytes(digest, "big"))
    if passage.role in ("user", "assistant") and ends_with_question(text):
        joined += _QUESTION_END
    return index_store.StoredPassage(row, passage.start, passage.whole, len(passage_terms), joined, text)


def remove_stale(writer: index_store.IndexWriter, session: str, entries: Iterable[Entry]) -> int:
    """Remove the passages that these entries no longer contain; return how many there were."""
    indexed = writer.find_session(session)
    if indexed is None:
        return 0
    stale = {id for entry in entries for id in _stale_ids(writer, indexed, entry)}
    return writer.remove_passages(indexed, sorted(stale)) if stale else 0


def _stale_ids(writer: index_store.IndexWriter, indexed: index_store.IndexedSession, entry: Entry) -> Iterator[int]:
    position, parts = _position_and_parts(entry)
    current = {(passage.part, _encodable(passage.text)) for passage in passages(entry)}
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
