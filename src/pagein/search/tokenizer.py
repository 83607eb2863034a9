"""The tokenizer of the index: stems of words, names whole and in parts, bigrams for scripts without spaces.

Stored texts and queries are analysed alike. Latin letters lose their accents: "Cafe Muller" finds "Café Müller". Pure, and
linear in the text. English words have stems (Snowball, Porter's second stemmer). Words of other languages have their first
letters as terms beside them: most languages change the ends of words, so "kissa" finds "kissani".
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from pagein._common.sequences import count_same

MAX_TERM_CHARS = 64
"""Characters of a term. Longer ones are content (base64, minified code) and are cut."""

_LETTER = r"[\w\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff]"
"""A letter, a digit, or a vowel sign of Arabic or of an Indian script, which is part of its word and no letter."""

_NAME = re.compile(rf"{_LETTER}+(?:[./\\:@#+-]+{_LETTER}+)*")
_ASCII_NAME = re.compile(_NAME.pattern.replace(_LETTER, "[A-Za-z0-9_]"))
"""The same pattern for ASCII texts, where it takes two thirds of the time."""
_SLASH = re.compile(r"[/\\:]+")
_PIECE = re.compile(rf"(?:(?!_){_LETTER})+")
_WORD = re.compile(rf"(?:(?![\d_]){_LETTER})+")
_CASE = re.compile(rf"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|(?:(?![\dA-Za-z_]){_LETTER})+")
_WIDE = re.compile(
    "["
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3041-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\uac00-\ud7af"  # Hangul
    "\U00020000-\U0003ffff"
    "]+"
)
"""Scripts written without spaces, or whose words are joined to their particles."""

_STOP_WORD_TEXT = """
a about above after again all also am an and any are as at be because been before being below between both but by
can cannot could did do does doing don down during each few for from further had has have having he her here hers
herself him himself his how i if in into is isn it its itself just let ll me more most my myself no nor not now of
off on once only or other our ours ourselves out over own re same shall she should so some such than that the their
theirs them themselves then there these they this those through to too under until up us ve very was wasn we were
what when where which while who whom whose why will with would you your yours yourself yourselves
"""

_IRREGULAR_FORMS = """
became become|began begun begin|blew blown blow|broke broken break|brought bring|built build|bought buy|caught catch|chose
chosen choose|came come|dealt deal|dug dig|drew drawn draw|drank drunk drink|drove driven drive|ate eaten eat|fell fallen
fall|fed feed|felt feel|fought fight|found find|flew flown fly|forgot forgotten forget|forgave forgiven forgive|froze
frozen freeze|got gotten get|gave given give|went gone go|grew grown grow|hung hang|heard hear|hid hidden hide|held
hold|kept keep|knew known know|learnt learn|left leave|lent lend|lost lose|made make|meant mean|met meet|paid pay|rode
ridden ride|rang rung ring|risen rise|ran run|said say|saw seen see|sought seek|sold sell|sent send|shook shaken
shake|shown show|sang sung sing|sank sunk sink|sat sit|slept sleep|spoke spoken speak|spent spend|stood stand|stole
stolen steal|stuck stick|struck strike|swam swum swim|took taken take|taught teach|tore torn tear|told tell|thought
think|threw thrown throw|understood understand|woke woken wake|wore worn wear|won win|wrote written write|children
child|men man|women woman|people person|feet foot|teeth tooth|mice mouse|wives wife|knives knife|two 2|three
3|four 4|five 5|six 6|seven 7|eight 8|nine 9|ten 10|eleven 11|twelve 12
"""

IRREGULAR: Mapping[str, str] = {
    form: forms[-1] for row in _IRREGULAR_FORMS.split("|") if (forms := row.split()) for form in forms[:-1]
}
"""Forms that have no common stem with their word: a question has the infinitive, its answer the past. Numbers as digits."""

STOP_WORDS = frozenset(_STOP_WORD_TEXT.split())
"""Words left out of a query that has others: they are frequent and distinguish little."""


def terms(text: str) -> Iterator[str]:
    """The terms of a text in order, as they are stored; a name is followed by its parts.

    >>> list(terms("Running get_user_by_id in src/a.py: E1234"))[:6]
    ['run', 'get_user_by_id', 'get', 'user', 'by', 'id']
    >>> list(terms("E1234")), list(terms("日本語"))
    (['e1234', 'e', '1234'], ['日', '日本', '本', '本語', '語'])
    """
    names = _names_in(text)
    is_short = max(map(len, names), default=0) <= MAX_TERM_CHARS  # as nearly everywhere; then all of it is C
    return chain.from_iterable(map(_cached_terms if is_short else _name_terms, names))


BEGINNING_LETTERS = (3, 4)
"""Letters of the beginnings of words. Of 181 questions with inflected words, in 15 languages, among 194 messages, both find
160 at first place, one of them 145 or 147, the words alone 48."""

BEGINNING = "~"
"""The end of a term that is the beginning of a word."""

_SAME_WORD_SHARE = 0.6
"""Share of the shorter of two words that forms of one word begin with."""

_SHARED_WORDS = """
a all also am an any are as at be but by can do don for had has have he her here him his i if in is it let ll me more most
my no nor now of off on once or our out over own re s same so some than then to under up us ve was we were will
"""
_FREQUENT_WORDS = """
always amazing awesome day even excited family feel felt friends going good got great happy help hey know like likes lives
look looking love made make many much need needs never new people please prefers really right said says see since something
sounds sure take tell thank thanks things think time today together tomorrow told user users wants way week well work works
yeah year yesterday
"""
_ENGLISH_WORDS = STOP_WORDS.difference(_SHARED_WORDS.split()).union(_FREQUENT_WORDS.split())
"""Words that show that a text is English: other languages have the shared ones, too."""

_MIN_ENGLISH_SHARE, _MIN_WORD_SHARE, _MAX_SIGN_SHARE = 0.05, 0.8, 0.03
_CODE_SIGN = re.compile(r"[=(){}\[\]<>\\|_;$#@]")

_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]+")
"""Accents, the vowel signs of Hebrew and Arabic, and what stretches an Arabic word."""

_PREFIXES = re.compile(
    "^(?:\u05d5?[\u05d1\u05d4\u05db\u05dc\u05de\u05e9]{0,2}(?=[\u05d0-\u05ea]{3})"  # and, in, the, as, to, from, that
    "|[\u0641\u0648]?(?:[\u0628\u0643]?\u0627\u0644|\u0644\u0644)(?=[\u0621-\u064a]{3}))"  # and, so; in, as; the; to the
)
"""What Hebrew and Arabic write in one with the word behind it."""

_SPELLINGS = str.maketrans({"\u03c2": "\u03c3", "\u0649": "\u064a", "\u0629": "\u0647"})
"""Letters that are spelled otherwise at the end of a word."""


def beginnings(text: str) -> tuple[str, ...]:
    """Return the beginnings of the words of a text that is not English, as terms of their own.

    >>> beginnings("Kissani nukkuu katolla."), beginnings("My cat sleeps on the roof.")
    (('kis~', 'kiss~', 'nuk~', 'nukk~', 'kat~', 'kato~'), ())
    """
    if len(_CODE_SIGN.findall(text)) > _MAX_SIGN_SHARE * len(text):
        return ()
    names = _names_in(text)
    words = [name for name in names if _is_word(name)]
    english = sum(word.lower() in _ENGLISH_WORDS for word in words)
    if len(words) < _MIN_WORD_SHARE * len(names) or english > _MIN_ENGLISH_SHARE * len(words):
        return ()
    return tuple(chain.from_iterable(map(_beginnings_of_word, words)))


_DONE_OFTEN = """
bake camp climb code collect cook dance dislike dream enjoy exercise fish garden hate hike jog juggle knit listen live meditate own paint play
practice practise prefer program rent sew skate skip smoke study surf teach train travel translate use volunteer walk watch work worry
"""
_SURELY_ENGLISH = re.compile(
    rf"n['\u2019]t\b|['\u2019]m\b|\b(?:I|we) (?:{'|'.join(sorted({*IRREGULAR.values(), *_DONE_OFTEN.split()}))})\b",
    re.IGNORECASE,
)


def is_surely_english(text: str) -> bool:
    """True if a frequent word of the text is English and of no other language, or somebody does what an English verb says."""
    if any(word in _ENGLISH_WORDS for name in _names_in(text.lower()) for word in name.split("'")):
        return True
    return _SURELY_ENGLISH.search(text) is not None


def _is_word(name: str) -> bool:
    """True for letters alone, with the vowel signs that belong to them; longer ones are content."""
    if len(name) > MAX_TERM_CHARS:
        return False
    return name.isalpha() or (not name.isascii() and _WORD.fullmatch(name) is not None)


@functools.lru_cache(maxsize=32_768)
def _beginnings_of_word(word: str) -> tuple[str, ...]:
    if not _is_word(word) or _WIDE.search(word):
        return ()
    letters = word.lower()
    if not letters.isascii():
        letters = _MARKS.sub("", unicodedata.normalize("NFD", letters.translate(_LETTERS))).translate(_SPELLINGS)
        letters = _PREFIXES.sub("", letters)
    return tuple(f"{letters[:count]}{BEGINNING}" for count in BEGINNING_LETTERS if len(letters) >= count)


def form_finder(beginning: str, query: Iterable[str]) -> Callable[[str], bool]:
    """Make a function that finds a form of one of the query's words with this beginning in stored terms.

    A word that goes on otherwise is none. Where no stored word begins so, it is written in one with what is before it.

    >>> [form_finder("pas~", ["passport"])(text) for text in (" passage  pas~ ", " passports  pas~ ")]
    [False, True]
    """
    prefix = beginning.removesuffix(BEGINNING)
    asked = [word for word in query if word.startswith(prefix) and not word.endswith(BEGINNING)]
    stored = re.compile(rf" ({re.escape(prefix)}[^ ]*)(?<!{BEGINNING})(?= )")

    @functools.cache
    def is_form(word: str) -> bool:
        return any(count_same(one, word) >= _SAME_WORD_SHARE * min(len(one), len(word)) for one in asked)

    def has_form(text: str) -> bool:
        words = stored.findall(text) if asked else ()
        return not words or any(map(is_form, words))

    return has_form


_NO_TERMS: frozenset[str] = frozenset()


class TermMatcher:
    """Finds given terms in many short texts. Matches of a name are cached.

    >>> sorted(TermMatcher(["run", "user"]).terms_in("Running get_user_by_id in src/a.py: E1234"))
    ['run', 'user']
    """

    def __init__(self, terms: Iterable[str]) -> None:
        self._terms = frozenset(terms)
        self._has_beginnings = any(term.endswith(BEGINNING) for term in self._terms)
        self._names: dict[str, frozenset[str]] = {}

    def terms_in(self, text: str) -> frozenset[str]:
        """The given terms that the text contains."""
        terms, names = _NO_TERMS, self._names
        for name in _names_in(text):
            matches = names.get(name)
            if matches is None:
                forms = (*_name_terms(name), *_beginnings_of_word(name)) if self._has_beginnings else _name_terms(name)
                matches = names[name] = self._terms.intersection(forms)
            if matches:
                terms |= matches
        return terms


_LONE_DIGIT = re.compile(r"(?<![0-9A-Za-z])[0-9](?![0-9A-Za-z])")
"""A digit between letters of scripts without spaces, as in "第7章", which is chapter 7."""


def query_terms(text: str, limit: int) -> tuple[str, ...]:
    """The distinct terms of a query, at most ``limit``: names and numbers first, then words, in order.

    Stop words are left out unless there is nothing else. Of a long query only the beginning and the end are read.
    """
    text = _head_and_tail(text)
    distinct = tuple(dict.fromkeys(_terms_of_query(text)))
    names = _names_in(text)
    single = {stem(name.lower()) for name in names if _is_telling_alone(name)}
    single.update(digit for name in names if not name.isascii() for digit in _LONE_DIGIT.findall(name))
    telling = (
        term for term in distinct if term not in _STOP_TERMS and (len(term) > 1 or not term.isascii() or term in single)
    )
    selected = tuple(telling) or distinct
    if len(selected) <= limit:
        return tuple(dict.fromkeys((*selected, *beginnings(text))))[:limit]
    special = [term for term in selected if not term.isalpha()]
    return tuple(dict.fromkeys((*special[:limit], *selected)))[:limit]


def count_telling(text: str, limit: int) -> float:
    """About how many words of a query say something, at most ``limit``: a word of a script without spaces has two bigrams.

    >>> count_telling("And when was it?", 9), count_telling("Where did she buy the boat?", 9), count_telling("他多大了?", 9)
    (0, 2, 1.5)
    """
    terms = (term for term in query_terms(text, 2 * limit) if not (term in _STOP_TERMS or term.endswith(BEGINNING)))
    return min(limit, sum(0.5 if _WIDE.match(term) else 1 for term in terms))


def _is_telling_alone(name: str) -> bool:
    """True for a digit, for the word of one, and for a capital that is no word: "chapter 7", "plan B"."""
    return name.isdigit() or (len(name) == 1 and name.isupper() and name not in "AI") or name.lower() in IRREGULAR


_MAX_END_CHARS = 20_000
"""Characters read of either end of a query."""


def _terms_of_query(text: str) -> Iterator[str]:
    """As ``terms``, but only the bigrams of scripts without spaces, which distinguish more."""
    for name in _names_in(text):
        every = _name_terms(name)
        if not name.isascii() and without_accents(name) != name:
            every = (*every, name.lower()[:MAX_TERM_CHARS])  # as an index of an older release has it
        wide = () if name.isascii() else [term for term in every if len(term) > 1 or not _WIDE.match(term)]
        yield from wide or every


def _names_in(text: str) -> list[str]:
    """The names of a text in compatibility forms (NFKC); lone surrogates are replaced."""
    if text.isascii():
        return _ASCII_NAME.findall(text)
    return _NAME.findall(unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode()))


def _name_terms(name: str) -> tuple[str, ...]:
    # Long content is not cached: it does not repeat.
    return _cached_terms(name) if len(name) <= MAX_TERM_CHARS else _uncached_terms(name)


def _uncached_terms(name: str) -> tuple[str, ...]:
    return tuple(_parts(name) if name.isascii() else _foreign_terms(name))


_cached_terms = functools.lru_cache(maxsize=32_768)(_uncached_terms)


def _parts(name: str) -> Iterator[str]:
    if name.isalpha() and (name.islower() or name.istitle()):
        yield stem(name.lower())
        return
    whole = name.lower()[:MAX_TERM_CHARS]
    pieces = list(_pieces(name))
    if pieces != [whole]:
        yield whole if not whole.isalpha() else stem(whole)
    for piece in pieces[:_MAX_PIECES]:
        yield stem(piece)


_MAX_PIECES = 64


def _pieces(name: str) -> Iterator[str]:
    """The parts of a name in lower case: split at punctuation, at changes of case, and between letters and digits.

    Also each component of a path that is a name itself: ``b.py`` in ``src/a/b.py``.
    """
    steps = _SLASH.split(name)
    if len(steps) > 1:
        yield from (step.lower()[:MAX_TERM_CHARS] for step in steps if step and not step.isalnum())
    for piece in _PIECE.findall(name):
        parts = _CASE.findall(piece)
        if len(parts) > 1 and not piece.isdigit():
            dotted = piece.lower()[:MAX_TERM_CHARS]
            if piece != name:
                yield dotted
        yield from (part.lower()[:MAX_TERM_CHARS] for part in parts)


def _foreign_terms(name: str) -> Iterator[str]:
    """Runs without spaces as characters and bigrams, the text between them as names."""
    at = 0
    for run in _WIDE.finditer(name):
        yield from _plain_terms(name[at : run.start()])
        letters = run[0]
        for index, letter in enumerate(letters):
            yield letter
            if index + 1 < len(letters):
                yield letters[index : index + 2]
        at = run.end()
    yield from _plain_terms(name[at:])


def _plain_terms(text: str) -> Iterator[str]:
    for match in _NAME.finditer(without_accents(text)):
        yield from _parts(match[0])


_ACCENTS = re.compile(r"(?<=[A-Za-z])[\u0300-\u036f]+")
_LETTERS = str.maketrans({
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ł": "l",
    "Ł": "L",
})  # fmt: skip


def without_accents(text: str) -> str:
    """Return the text with plain Latin letters in the place of those with accents; other scripts stay.

    >>> without_accents("Café Straße, й")
    'Cafe Strasse, й'
    """
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", text.translate(_LETTERS))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))


def stem(word: str) -> str:
    """The stem of a word in lower case; names, numbers and short words stay as they are.

    >>> stem("failures"), stem("e1234"), stem("id"), stem("bought"), stem("three")
    ('failur', 'e1234', 'id', 'buy', '3')
    """
    word = IRREGULAR.get(word, word)
    return _stem_word(word) if 3 < len(word) <= 40 and word.isalpha() and word.isascii() else word[:MAX_TERM_CHARS]


def stems(words: Iterable[str]) -> list[str]:
    """The stems of plain English words of more than three letters, all at once.

    >>> stems(["failures", "bought"])
    ['failur', 'buy']
    """
    from Stemmer import Stemmer  # noqa: PLC0415

    stemmed: list[str] = Stemmer("english", 0).stemWords([IRREGULAR.get(word, word) for word in words])
    return stemmed


@functools.lru_cache(maxsize=65_536)
def _stem_word(word: str) -> str:
    from Stemmer import Stemmer  # noqa: PLC0415 - loaded with the first word, not with the library

    # A stemmer has state, so threads may not share one. Creating one is cheap.
    stemmed: str = Stemmer("english", 0).stemWord(word)
    return stemmed


_STOP_TERMS = STOP_WORDS | {
    "becaus", "befor", "onc", "doe", "thi", "wa", "hi", "veri", "whi", "ani", "abov", "dure",
}  # fmt: skip
"""Stop words and their stems."""


_QUESTION = re.compile(r"[?\uff1f\u061f][^?\uff1f\u061f]{0,29}\Z")
"""A question mark near the end, before a quotation mark or a short phrase."""


def ends_with_question(text: str) -> bool:
    """True if the text ends with a question, which what is said next answers.

    >>> ends_with_question('She asked, "What is it called?"'), ends_with_question("Why? It was late, and I had no more time.")
    (True, False)
    """
    return _QUESTION.search(text) is not None


def surface_forms(text: str, terms: Iterable[str]) -> dict[str, str]:
    """The first spelling of each term in the text, in lower case.

    >>> surface_forms("Running tests in src/a.py", ["run", "src/a.py"])
    {'run': 'running', 'src/a.py': 'src/a.py'}
    """
    wanted_terms = dict.fromkeys(terms)
    forms: dict[str, str] = {}
    for name in _names_in(_head_and_tail(text)):
        for term in (*_name_terms(name), *_beginnings_of_word(name)):
            if term in wanted_terms and term not in forms:
                is_word = term.endswith(BEGINNING) or stem(without_accents(name).lower()) == term
                forms[term] = name.lower() if is_word else term
    return {term: forms[term] for term in wanted_terms if term in forms}


def _head_and_tail(text: str) -> str:
    return text if len(text) <= 2 * _MAX_END_CHARS else f"{text[:_MAX_END_CHARS]}\n{text[-_MAX_END_CHARS:]}"
