"""Search without an index: rows are scanned as they are stored, and only the best of them are decoded.

An index of a long run takes many times as long as one look through its rows, and the inspector may not write one.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import repeat
from math import log
from typing import Literal, NamedTuple

from pagein.errors import PageinError
from pagein.log.base import LogStore, StoredLog
from pagein.log.codec import blob_names
from pagein.log.hash_chain import decode_row
from pagein.log.raw_rows import Row
from pagein.search.base import Hit
from pagein.search.passages import Passage, passages
from pagein.search.tokenizer import query_terms, surface_forms

MAX_TERMS = 12
MAX_DECODED_ROWS = 80
"""Rows whose passages are ranked; among rows with the same terms the newest."""

MAX_SCANNED_BYTES = 80_000_000
"""Bytes that one search scans, about .6 s; the next one goes on behind them."""

_RUN_BYTES, _ROW_BYTES = 70_000, 1_000
"""Bytes that are scanned in the time of opening a run, and of reading a row."""

_MIN_WITHIN = 3
"""Characters of a term that is looked for within words."""

Strength = Literal["", "word", "within"]
_WEIGHTS: Mapping[Strength, float] = {"": 0.0, "word": 1.0, "within": 0.3}


class SearchCursor(NamedTuple):
    """A place in the runs of a store, to go on from: a run, and a position in it."""

    run: str
    position: int


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The hits of a search, best first; the entries and runs scanned, the runs that cannot be read, and where it ended."""

    hits: tuple[Hit, ...]
    entries: int
    runs: int
    unread: tuple[str, ...]
    next: SearchCursor | None


class _Term:
    """A term of a query, as it is looked for in text in lower case."""

    def __init__(self, term: str, surface: str) -> None:
        is_word = term.isascii() and term.isalpha()
        # A stem of more than four letters may end otherwise than its words: "happi", "sensibl".
        self.name, self.root = surface, term[:-1] if is_word and len(term) > 4 else term
        self._roots = (self.root,) if is_word and surface.startswith(self.root) else (self.root, surface)
        # In a stored body a letter behind a backslash is a line break or a tab, and a name before a colon is the body's own.
        # What stands before is looked at last: so the pattern begins with a literal, which is searched for quickly.
        end = r"[a-z]{0,5}" if is_word else ""
        self._word = re.compile(
            "|".join(
                rf'{root}(?:(?<![a-z0-9]{root})|(?<=\\[bfnrt]{root})){end}(?![a-z0-9]|":)'
                for root in map(re.escape, dict.fromkeys(self._roots))
            )
        )

    def strength_in(self, text: str) -> Strength:
        """The strength with which the text, in lower case, contains the term."""
        if not any(root in text for root in self._roots):
            return ""
        if self._word.search(text):
            return "word"
        return "within" if len(self.root) >= _MIN_WITHIN and self.root.isascii() else ""

    def spelling_in(self, text: str) -> str:
        """The word of the text that the term is; the term itself where it is only within words."""
        match = self._word.search(text)
        return self.name if match is None else match[0]

    def density_in(self, text: str) -> float:
        """From .5 for a term that stands once in a long text to 1 for one that the text is full of, as BM25 has it."""
        times = len(self._word.findall(text))
        return 0.5 + 0.5 * times / (times + 1 + len(text) / 400)


class _Scan:
    """One search: the terms, and the rows that contain any, by the terms that they contain."""

    def __init__(self, query: str) -> None:
        terms = query_terms(query, MAX_TERMS)
        surfaces = surface_forms(query, terms)
        self._phrase = " ".join(query.lower().split())
        self._terms = [_Term(term, surfaces.get(term, term)) for term in terms]
        self._rows: dict[tuple[Strength, ...], deque[tuple[str, Row]]] = {}
        self._counts = [0] * len(self._terms)
        self.entries = 0

    def add(self, run: str, row: Row, text: str) -> None:
        """Note a row, by its text in lower case."""
        self.entries += 1
        strengths = self._strengths(text)
        if any(strengths):
            self._rows.setdefault(strengths, deque(maxlen=MAX_DECODED_ROWS)).append((run, row))
            for at, strength in enumerate(strengths):
                self._counts[at] += bool(strength)

    def best_rows(self) -> list[tuple[str, Row]]:
        """The rows to decode, best first."""
        groups = sorted(self._rows, key=self._score, reverse=True)
        return [place for group in groups for place in reversed(self._rows[group])][:MAX_DECODED_ROWS]

    def rate(self, passage: Passage, run: str) -> Hit | None:
        """The hit that a passage is; None where it contains no term."""
        text = passage.text.lower()
        strengths = self._strengths(text)
        if not any(strengths):
            return None
        densities = [term.density_in(text) for term in self._terms]
        score = self._score(strengths, densities) * (1.5 if self._phrase in " ".join(text.split()) else 1.0)
        spellings = [(strength, term.spelling_in(text)) for term, strength in zip(self._terms, strengths, strict=True)]
        words, within = ([word for strength, word in spellings if strength == wanted] for wanted in ("word", "within"))
        why = "; ".join(
            f"{what}: {', '.join(dict.fromkeys(names))}"
            for what, names in (("words", words), ("within", within))
            if names
        )
        excerpt = self._from_best_line(passage.text)
        is_whole = passage.whole and excerpt == passage.text
        return Hit(passage.handle, excerpt, score, why, run, passage.position, passage.at, passage.role, is_whole)

    def _from_best_line(self, text: str) -> str:
        """The text from the line on that has the most of the terms."""
        lines = text.splitlines(keepends=True)
        scores = [self._score(self._strengths(line.lower())) for line in lines]
        return "".join(lines[scores.index(max(scores)) :])

    def _strengths(self, text: str) -> tuple[Strength, ...]:
        return tuple(term.strength_in(text) for term in self._terms)

    def _score(self, strengths: Sequence[Strength], densities: Iterable[float] = repeat(1.0)) -> float:
        """The sum of the terms' rarities, as far as the scan has come."""
        return sum(
            _WEIGHTS[strength] * density * log(1 + self.entries / max(1, count))
            for strength, density, count in zip(strengths, densities, self._counts, strict=False)
        )


def scan_runs(store: LogStore, query: str, runs: Sequence[str], start: SearchCursor | None, limit: int) -> ScanResult:
    """Search runs from a place on. Raises what reading the run raises where there is only one."""
    scan, unread, scanned, count = _Scan(query), list[str](), 0, 0
    following: SearchCursor | None = None
    for run in [run for run in runs if query.strip() and (start is None or run >= start.run)]:
        if scanned >= MAX_SCANNED_BYTES:
            following = SearchCursor(run, 0)
            break
        scanned, count = scanned + _RUN_BYTES, count + 1
        position = start.position if start is not None and start.run == run else 0
        try:
            with closing(store.log(run)) as stored:
                for row in stored.rows(position):
                    if scanned >= MAX_SCANNED_BYTES:
                        following = SearchCursor(run, row.position)
                        break
                    text = _text_of(row, stored)
                    scanned += _ROW_BYTES + len(text)
                    scan.add(run, row, text)
        except PageinError:
            if len(runs) == 1:
                raise
            unread.append(run)
        if following is not None:
            break
    return ScanResult(_best_hits(scan, store, limit), scan.entries, count, tuple(unread), following)


def _text_of(row: Row, stored: StoredLog) -> str:
    """The text of a row in lower case: as it is stored, or where parts of it lie elsewhere, that of its passages."""
    if row.kind == "compaction":
        return ""  # it repeats words of the steps that it stands for
    if blob_names(row.body):
        return "\n".join(passage.text for passage in passages(decode_row(row, stored.blob))).lower()
    return row.body.decode("utf-8", "replace").lower()


def _best_hits(scan: _Scan, store: LogStore, limit: int) -> tuple[Hit, ...]:
    """The best passage of each text, best first, the newest first among equals."""
    by_run: dict[str, list[Row]] = {}
    for run, row in scan.best_rows():
        by_run.setdefault(run, []).append(row)
    best: dict[tuple[str, str], Hit] = {}
    for run, rows in by_run.items():
        for hit in _hits_of(scan, store, run, rows):
            place = (run, hit.handle)
            if place not in best or hit.score > best[place].score:
                best[place] = hit
    return tuple(sorted(best.values(), key=lambda hit: (-hit.score, -hit.at))[:limit])


def _hits_of(scan: _Scan, store: LogStore, run: str, rows: Iterable[Row]) -> Iterator[Hit]:
    with closing(store.log(run)) as stored:
        for row in rows:
            for passage in passages(decode_row(row, stored.blob)):
                hit = scan.rate(passage, run)
                if hit is not None:
                    yield hit
