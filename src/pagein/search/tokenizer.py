"""What a text is found by: its words' stems, names whole and by part, bigrams where a script has no spaces.

One analysis for what is stored and what is asked, so the two meet. Pure, linear in the text, no language's grammar but
the English stems (Snowball, Porter's second stemmer), which other languages' words mostly pass through unchanged.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator

LONGEST = 64
"""Characters of a term; what is longer is content (base64, minified code), and is known by its beginning."""

_NAME = re.compile(r"\w+(?:[./\\:@#+-]+\w+)*")
_SLASH = re.compile(r"[/\\:]+")
_PIECE = re.compile(r"[^\W_]+")
_CASE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_WIDE = re.compile(
    "["
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3041-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\uac00-\ud7af"  # Hangul
    "\U00020000-\U0003ffff"
    "]+"
)
"""Scripts written without spaces, or whose words are glued to their particles."""

_STOPS = """
a about above after again all also am an and any are as at be because been before being below between both but by
can cannot could did do does doing don down during each few for from further had has have having he her here hers
herself him himself his how i if in into is isn it its itself just let ll me more most my myself no nor not now of
off on once only or other our ours ourselves out over own re same shall she should so some such than that the their
theirs them themselves then there these they this those through to too under until up us ve very was wasn we were
what when where which while who whom whose why will with would you your yours yourself yourselves
"""

STOP_WORDS = frozenset(_STOPS.split())
"""Left out of a query where anything else is in it: they cost most and say least."""


def terms(text: str) -> Iterator[str]:
    """The terms of a text in order, each as it is stored; a name with its parts behind it.

    >>> list(terms("Running get_user_by_id in src/a.py: E1234"))[:6]
    ['run', 'get_user_by_id', 'get', 'user', 'by', 'id']
    >>> list(terms("E1234")), list(terms("日本語"))
    (['e1234', 'e', '1234'], ['日', '日本', '本', '本語', '語'])
    """
    for name in _NAME.findall(_folded(text)):
        yield from _of_name(name) if name.isascii() else _of_foreign(name)


_NONE: frozenset[str] = frozenset()


class Wanted:
    """Terms that are looked for in many short texts of one kind; what of them a name holds is found out once.

    >>> sorted(Wanted(["run", "user"]).held_in("Running get_user_by_id in src/a.py: E1234"))
    ['run', 'user']
    """

    def __init__(self, wanted: Iterable[str]) -> None:
        self._wanted = frozenset(wanted)
        self._names: dict[str, frozenset[str]] = {}

    def held_in(self, text: str) -> frozenset[str]:
        """Those that are among the text's terms."""
        held, names = _NONE, self._names
        for name in _NAME.findall(_folded(text)):
            found = names.get(name)
            if found is None:
                every = _of_name(name) if name.isascii() else _of_foreign(name)
                found = names[name] = self._wanted.intersection(every)
            if found:
                held |= found
        return held


def query_terms(text: str, most: int) -> tuple[str, ...]:
    """The distinct terms of a query, at most ``most``: first its names and numbers, then its words, in order.

    Stop words are left out unless there is nothing else. Of a long query only the beginning and the end are read.
    """
    found = tuple(dict.fromkeys(_asked(_ends(text))))
    telling = tuple(each for each in found if each not in _STOPPED and (len(each) > 1 or not each.isascii()))
    kept = telling or found
    if len(kept) <= most:
        return kept
    special = [each for each in kept if not each.isalpha()]
    return tuple(dict.fromkeys((*special[:most], *kept)))[:most]


_READ = 20_000
"""Characters that are read of either end of a query."""


def _asked(text: str) -> Iterator[str]:
    """As ``terms``, but where a script has no spaces only the bigrams, which say more."""
    for found in _NAME.finditer(_folded(text)):
        name = found[0]
        if name.isascii():
            yield from _of_name(name)
        else:
            each = tuple(_of_foreign(name))
            wide = [term for term in each if len(term) > 1 or not _WIDE.match(term)]
            yield from wide or each


def _folded(text: str) -> str:
    """Compatibility forms made one, accents kept; what is no character is a gap."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode())


def _of_name(name: str) -> tuple[str, ...]:
    # The cache would keep long content alive for nothing.
    return _cached(name) if len(name) <= LONGEST else tuple(_parts(name))


@functools.lru_cache(maxsize=32_768)
def _cached(name: str) -> tuple[str, ...]:
    return tuple(_parts(name))


def _parts(name: str) -> Iterator[str]:
    if name.isalpha() and (name.islower() or name.istitle()):
        yield stem(name.lower())
        return
    whole = name.lower()[:LONGEST]
    pieces = list(_pieces(name))
    if pieces != [whole]:
        yield whole if not whole.isalpha() else stem(whole)
    for piece in pieces[:_MOST_PIECES]:
        yield stem(piece)


_MOST_PIECES = 64


def _pieces(name: str) -> Iterator[str]:
    """The parts of a name in lower case: at marks, at changes of case, and between letters and digits.

    Of a path each component that is a name itself, too: ``b.py`` in ``src/a/b.py``.
    """
    steps = _SLASH.split(name)
    if len(steps) > 1:
        yield from (step.lower()[:LONGEST] for step in steps if step and not step.isalnum())
    for piece in _PIECE.findall(name):
        parts = _CASE.findall(piece)
        if len(parts) > 1 and not piece.isdigit():
            dotted = piece.lower()[:LONGEST]
            if piece != name:
                yield dotted
        yield from (part.lower()[:LONGEST] for part in parts)


def _of_foreign(name: str) -> Iterator[str]:
    """Runs without spaces by character and by bigram, what stands between them as names."""
    at = 0
    for run in _WIDE.finditer(name):
        yield from _between(name[at : run.start()])
        letters = run[0]
        for index, letter in enumerate(letters):
            yield letter
            if index + 1 < len(letters):
                yield letters[index : index + 2]
        at = run.end()
    yield from _between(name[at:])


def _between(text: str) -> Iterator[str]:
    for found in _NAME.finditer(text):
        yield from _of_name(found[0])


def stem(word: str) -> str:
    """The stem of a word in lower case; names, numbers and short words are their own.

    >>> stem("failures"), stem("e1234"), stem("id")
    ('failur', 'e1234', 'id')
    """
    return _stemmed(word) if 3 < len(word) <= 40 and word.isalpha() and word.isascii() else word[:LONGEST]


@functools.lru_cache(maxsize=65_536)
def _stemmed(word: str) -> str:
    from snowballstemmer import stemmer  # noqa: PLC0415 - loaded with the first word, not with the library

    # A stemmer keeps its word in itself, so threads may not share one; to make one costs nothing.
    found: str = stemmer("english").stemWord(word)
    return found


_STOPPED = STOP_WORDS | {
    "becaus",
    "befor",
    "onc",
    "doe",
    "thi",
    "wa",
    "hi",
    "veri",
    "whi",
    "ani",
    "abov",
    "dure",
}
"""Stop words as they are, and as their stems."""


def counted(found: Iterable[str]) -> dict[str, int]:
    """How often each term occurs."""
    counts: dict[str, int] = {}
    for each in found:
        counts[each] = counts.get(each, 0) + 1
    return counts


def surfaces(text: str, wanted: Iterable[str]) -> dict[str, str]:
    """How each of the wanted terms was first put in the text, in lower case.

    >>> surfaces("Running tests in src/a.py", ["run", "src/a.py"])
    {'run': 'running', 'src/a.py': 'src/a.py'}
    """
    left = dict.fromkeys(wanted)
    found: dict[str, str] = {}
    for match in _NAME.finditer(_folded(_ends(text))):
        name = match[0]
        for term in _of_name(name) if name.isascii() else _of_foreign(name):
            if term in left and term not in found:
                found[term] = name.lower() if stem(name.lower()) == term else term
    return {term: found[term] for term in left if term in found}


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _READ else f"{text[:_READ]}\n{text[-_READ:]}"
