# ruff: noqa: RUF001 - letters of other languages
"""Binding words of languages other than English.

``languages.txt`` is the table of the other languages. A sentence with two or more of the commonest English words is not
read with it.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from importlib.resources import files
from typing import NamedTuple

from pagein.context.ledger.items import StatementKind
from pagein.context.ledger.values import OPTION_GROUPS, TypedValue, concepts

FOREIGN_KINDS: tuple[StatementKind, ...] = (
    "rule",
    "rule",
    "limit",
    "decision",
    "goal",
    "preference",
    "value",
    "commitment",
)
_PATTERNS = ("rule", "duty", "limit", "decision", "goal", "preference", "value", "commitment")

_MARKS = re.compile(r"[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670\u093c\u09bc\u200c]")
_IS = re.compile(r"\b[éè]\b")
_ONE_LETTER = str.maketrans(
    {"ß": "ss", "ł": "l", "đ": "d", "ø": "o", "æ": "ae", "œ": "oe", "ı": "i", "ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه"}
)


_ACCENTED = "Vietnamese"
"""The language whose words differ by their accents; they are folded only where a text has none."""


class ForeignPatterns(NamedTuple):
    """The patterns of a language: of each of ``FOREIGN_KINDS``, of a change, of what binds nobody, of what lifts a rule."""

    kinds: tuple[re.Pattern[str], ...]
    change: re.Pattern[str]
    story: re.Pattern[str]
    lifts: re.Pattern[str]


def folds(language: str, text: str) -> bool:
    """True where the letters of a text in a language are folded."""
    return language != _ACCENTED or text.isascii()


def fold_letters(text: str) -> str:
    """Return the text without accents and marks, which many leave out in a chat; "é" alone is another word than "e".

    >>> fold_letters("dürfen, Größe, é, błąd"), fold_letters("أجب")
    ('durfen, Grosse, e_, blad', 'اجب')
    """
    if text.isascii():
        return text
    bare = _MARKS.sub("", unicodedata.normalize("NFD", _IS.sub("e_", text)))
    return unicodedata.normalize("NFC", bare).translate(_ONE_LETTER)


def _read_languages(text: str) -> dict[str, dict[str, str]]:
    """Return the table of ``languages.txt``: by language, its patterns, words and letters by their names."""
    table: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("["):
            section = table[line.strip("[]")] = {}
        elif line and not line.startswith("#"):
            name, _, section[name] = line.partition(" = ")
    return table


LANGUAGES = _read_languages((files("pagein.context.ledger") / "languages.txt").read_text("utf-8"))


@functools.cache
def foreign_patterns(language: str, *, is_folded: bool = True) -> ForeignPatterns:
    """The patterns of a language; they match texts in lower case, and their letters are folded unless said otherwise."""

    def compiled(name: str) -> re.Pattern[str]:
        pattern = LANGUAGES[language][name]
        return re.compile(fold_letters(pattern) if is_folded else pattern)

    return ForeignPatterns(tuple(map(compiled, _PATTERNS)), *map(compiled, ("change", "story", "lifts")))


@functools.cache
def common_words(language: str) -> frozenset[str]:
    """The commonest words of a language, which say nothing of what a sentence is about."""
    markers = LANGUAGES[language]["markers"]
    return frozenset((markers if language == _ACCENTED else fold_letters(markers)).split())


_NUMBER_WORDS = re.compile(
    r"(?i)\d|[一二三四五六七八九十百千万两]"
    r"|\b(?:(?:zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|zwanzig|drei(?:ß|ss)ig|vierzig|fünfzig|hundert|tausend)\w*|halbe\w*"
    r"|deux|trois|quatre|cinq|sept|huit|neuf|dix|onze|douze|quinze|vingt|trente|quarante|cinquante|cent|mille"
    r"|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|doce|quince|veinte|treinta|cincuenta|cien|mil|dois|duas|três|quatro|sete|oito|nove|dez|doze|vinte|trinta|cinquenta|cem"
    r"|due|tre|quattro|cinque|sette|otto|dieci|dodici|quindici|venti|trenta|cinquanta|\w*(?:cento|mila)"
    r"|(?:twee|drie|vijf|zes|zeven|negen|tien|twaalf|twintig|dertig|vijftig|honderd|duizend)\w*"
    r"|dw(?:a|ie|óch|om|oma)|trz(?:y|ech|em|ema)|cztery|czterech|pięć|pięciu|sześć|sześciu|dziesięć|dziesięciu|dwanaście|dwadzieścia|sto|tysiąc\w*|tysięcy"
    r"|дв(?:а|е|ух|ум|умя)|тр(?:и|ёх|ех|ём|емя)|четыр\w+|пят(?:ь|и)|шест(?:ь|и)|сем(?:ь|и)|восемь|девять|десят(?:ь|и)|двенадцат(?:ь|и)|двадцат(?:ь|и)|сто|тысяч\w*"
    r"|två|tre|tres?|fyra|fire|fem|seks|sju|syv|sju|åtta|otte|åtte|nio|ni|tio|ti|tolv|tusen|tusind|hundra|hundrede"
    r"|kaksi|kahta|kolme[an]?|neljä[än]?|viisi|viittä|kymmenen|sata|tuhat|dv[aě]|dvou|tři|tří|čtyři|pět|šest|sedm|osm|devět|deset|sto|tisíc\w*"
    r"|дв[аі]|двох|три|трьох|чотири|чотирьох|п'ять|шість|сім|вісім|дев'ять|десять|doi|două|trei|patru|cinci|șase|șapte|opt|nouă|zece|sută|mie|mii"
    r"|két|kettő|három\w*|négy|öt|hat|hét|nyolc|kilenc|tíz|száz|ezer|δύο|τρεις|τρία|τέσσερ\w+|πέντε|έξι|επτά|οκτώ|εννιά|δέκα|εκατό|χίλια"
    r"|hai|ba|bốn|năm|sáu|bảy|tám|chín|mười|trăm|nghìn|triệu|dua|tiga|empat|lima|enam|tujuh|delapan|sembilan|sepuluh|seratus|seribu|ribu|juta"
    r"|دو|سه|چهار|پنج|شش|هفت|هشت|نه|ده|صد|هزار|שני|שתי|שניים|שלוש\w*|מ?שלוש|ארבע\w*|חמש\w*|שש|שבע|עשר\w*|מאה|אלף|দুই|দুটি|তিন\S*|চার|পাঁচ|দশ|একশ|হাজার"
    r"|iki|üç\w*|dört|beş|altı|yedi|sekiz|dokuz|yirmi|otuz|elli|yüz|bin|दो|तीन|चार|पाँच|पांच|छह|सात|आठ|नौ|दस|बारह|बीस|सौ|हज़ार|हजार)(?!\w)"
    r"|(?:اثن|ثلاث|أربع|خمس|سبع|ثمان|تسع|عشر|مئة|مائة|ألف)"
    r"|(?:สอง|สาม|สี่|ห้า|หก|เจ็ด|แปด|เก้า|สิบ|ร้อย|พัน)(?:ข้อ|คน|หน้า|คำ|ครั้ง|ชั่วโมง|นาที|วัน|กิโล|บาท|ประโยค)"
    r"|(?:한|두|세|네|다섯|여섯|일곱|여덟|아홉|열|스무) ?(?:개|명|번|시간|문장|줄|장|분|달|잔|살|가지|페이지)|[일이삼사오육칠팔구]?[십백천만]"
)


def _twice(letters: str) -> str:
    return f"[{letters}][^{letters}]*[{letters}]"


_OTHER_SCRIPT = re.compile(r"[\u0370-\u1cff\u3040-\ud7ff]")
SCRIPTS = tuple(
    (language, re.compile(script))
    for language, script in (
        (
            "Ukrainian",
            r"[\u0400-\u04ff].*[іїєґІЇЄҐ]|[іїєґІЇЄҐ].*[\u0400-\u04ff]|(?i:\b(?:завжди|можеш|може|лише|треба|тепер|дуже|мене|маю|нема|коли|або|яка|яке|щоб|вже)\b)",
        ),
        ("Russian", _twice(r"\u0400-\u04ff")),
        ("Japanese", _twice(r"\u3040-\u30ff")),
        ("Korean", _twice(r"\uac00-\ud7a3")),
        ("Chinese", _twice(r"\u4e00-\u9fff")),
        ("Persian", rf"{_twice('پچژگکی')}|^به |(?<!\S)(?:از|را|است|حالا|نزن|نکن)(?!\S)"),
        ("Arabic", _twice(r"\u0600-\u06ff")),
        ("Hindi", _twice(r"\u0900-\u097f")),
        ("Greek", _twice(r"\u0370-\u03ff\u1f00-\u1fff")),
        ("Thai", _twice(r"\u0e00-\u0e7f")),
        ("Hebrew", _twice(r"\u0590-\u05ff")),
        ("Bengali", _twice(r"\u0980-\u09ff")),
    )
    if language in LANGUAGES
)
ENGLISH = frozenset(
    "the is are and to of you we my it this that with for from not be have has do don't i'm will i your our a on at by if never always must only please all every use let's us them they he she was were can can't should no any before after without until than in so but as an what when who how one two three more most least me up out new now week day get got go use using it's that's there any no only just not".split()  # noqa: SIM905
)
_BARE_NOW = frozenset(
    fold_letters(
        "jetzt neu neue neuer neues neuen maintenant nouveau nouvelle ahora nuevo nueva mejor melhor agora novo nova adesso ora nuovo nuova nu nieuw nieuwe maar teraz nowy nowa nowe теперь лучше 现在 以后 今は 新しい 이제 이제는 새로운 الآن الجديد بل अब नया नई şimdi yeni doch eigentlich"
    ).split()
)
_ABBREVIATIONS = re.compile(r"(?i)\b(?:e\.g|i\.e|a\.m|p\.m)\.")
_STRONG = frozenset(
    "prefiero prefiro preferisco soy estoy estou nie niemals immer bitte keine kein jamais toujours nunca siempre jamas sempre nooit altijd nigdy zawsze asla tercih doch".split()  # noqa: SIM905
)
"""Words that name their language alone."""

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


_LONG_WORD, _FEW_WORDS = 5, 4
"""Letters of a long word, and words from which a sentence without common English ones is in the language of one long word."""


def _weigh_word(word: str, languages: int) -> float:
    """Return what a word counts for: more if it is of one language alone, if it is long, if it names its language."""
    return 1 + (word in _STRONG) + (languages == 1) * (0.25 if len(word) < _LONG_WORD else 0.5)


def _weigh_words() -> dict[str, tuple[tuple[str, float], ...]]:
    """Return what a common word of languages with Latin letters counts for: more where it is of one alone."""
    owners: dict[str, list[str]] = {}
    for language in _LATIN:
        own_words = fold_letters(LANGUAGES[language].get("words", "")).split()
        for word in common_words(language).union(own_words):
            owners.setdefault(word, []).append(language)
    return {
        word: tuple((name, 1.0 if word in ENGLISH else _weigh_word(word, len(names))) for name in names)
        for word, names in owners.items()
    }


_LATIN = tuple(name for name in LANGUAGES if name not in dict(SCRIPTS))
_WEIGHTS = _weigh_words()
_LETTERS = {
    name: (frozenset(row["letters"] + row["own_letters"]), frozenset(row["own_letters"]))
    for name, row in LANGUAGES.items()
    if "letters" in row
}
"""Letters that English lacks: all of a language, and those that no other of these languages has."""


def guess_language(text: str) -> str:
    """Name the language of a sentence, ``English`` where nothing else is likely.

    >>> guess_language("Bitte nie am Freitag deployen."), guess_language("Never deploy on Fridays.")
    ('German', 'English')
    """
    is_ascii = text.isascii()
    if not is_ascii and _OTHER_SCRIPT.search(text, 0, 200) and (script := _guess_script(text[:200])):
        return script
    written = _WORD.findall(_ABBREVIATIONS.sub(" ", text[:300]))
    words = [word.lower() for word in written]
    english, scores = 0, dict[str, float]()
    for word in words:
        folded = fold_letters(word)
        weights = _WEIGHTS.get(folded) or _WEIGHTS.get(folded[: folded.find("'") + 1]) or ()
        for language, weight in weights if folded == word else (*weights, *_WEIGHTS.get(word, ())):
            scores[language] = scores.get(language, 0) + weight
        english += word in ENGLISH
    if not is_ascii:
        # A name may have letters of another language: those of its own count twice in words without a capital.
        letters, small = set("".join(words)), set("".join(filter(str.islower, written)))
        for language, (all_letters, own_letters) in _LETTERS.items():
            by_letters = (not letters.isdisjoint(all_letters)) + (not small.isdisjoint(own_letters))
            scores[language] = scores.get(language, 0) + by_letters
    best = max(scores, key=scores.__getitem__, default="English")
    least = max(1.5, 1.25 * english) if english or len(words) < _FEW_WORDS else 1.25
    return best if scores.get(best, 0) > least else "English"


def _guess_script(text: str) -> str | None:
    """Name the language of letters that are not Latin; None where common English words stand beside them."""
    if sum(word.lower() in ENGLISH for word in _WORD.findall(text)) >= 2:
        return None
    return next((language for language, script in SCRIPTS if script.search(text)), None)


_CODE = re.compile(
    r"(?<!\S)(?:\S*(?:://|@|/\S*/|\\\S*\\|[{}=]|;\S)\S*)|`[^`]*`|\"[^\"]*\"|[„“«「『][^”“»」』]{0,500}[”“»」』]|\b\w+\([^)]{0,500}\)"
)


def blank_code(text: str) -> str:
    """Return the text without addresses, paths, code and quotations, whose words are not the speaker's.

    >>> blank_code('Lies "nie wieder" unter https://example.de/die/das/und.html')
    'Lies   unter  '
    """
    return _CODE.sub(" ", text)


_NO_SPACES = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_PARTED = re.compile(rf"(?<=\d)(?=[{_NO_SPACES}])|(?<=[{_NO_SPACES}])(?=\d)")
_THOUSANDS = re.compile(r"\b(\d{1,3}) (?=\d{3}\b)")
_FOREIGN_WORD = re.compile(r"[^\s\d!-/:-@\[-`{-~\u00a1\u00ab\u00bb\u00bf\u2000-\u206f\u3000-\u303f\uff00-\uff0f،؛؟।]+")
_UNSPACED = ("Chinese", "Japanese", "Thai")
_STEM_CHARS, _LATIN_STEM_CHARS, _MAX_STEMS = {"Chinese": 2, "Japanese": 2, "Korean": 2, "Thai": 4}, 5, 24


def part_numbers(text: str) -> str:
    """Return the text with its numbers apart from words, and with "3 000" as one number.

    >>> part_numbers("预算3000欧元")
    '预算 3000 欧元'
    """
    return _THOUSANDS.sub("\\1\u00a0", _PARTED.sub(" ", text))


def foreign_subject(text: str, value: TypedValue | None, language: str) -> tuple[str, ...]:
    """Return the beginnings of the content words, without the value; of languages without spaces a few letters in a row.

    >>> foreign_subject("Das Budget ist jetzt knapp.", None, "German")
    ('=spend', 'knapp')
    """
    if value is not None:
        text = f"{text[: value.start]} {text[value.end :]}"
    text, size = text.lower(), _STEM_CHARS.get(language, _LATIN_STEM_CHARS)
    text, common = fold_letters(text) if folds(language, text) else text, common_words(language)
    if language in _UNSPACED:
        text = _common_parts(language).sub(" ", text)
    stems = dict[str, None]()
    for word in _FOREIGN_WORD.findall(text):
        if word in common:
            continue
        if word in OPTION_GROUPS:
            stems[f"@{OPTION_GROUPS[word]}"] = None
        elif (concept := concepts().get(word)) is not None:
            stems[concept] = None
        elif len(word) > 1:
            starts = range(max(1, len(word) - size + 1)) if language in _UNSPACED else (0,)
            stems.update((word[at : at + size], None) for at in starts)
    return tuple(stems)[:_MAX_STEMS]


@functools.cache
def _common_parts(language: str) -> re.Pattern[str]:
    return re.compile("|".join(sorted(common_words(language), key=len, reverse=True)))


def holds_number(text: str) -> bool:
    """True for a text with a number, in digits or in words of another language.

    >>> holds_number("höchstens drei Sätze"), holds_number("不超过三句"), holds_number("kurze Sätze")
    (True, True, False)
    """
    return bool(_NUMBER_WORDS.search(text))


ALLERGY = re.compile(
    fold_letters("allerg|alerg|аллерг|алерг|アレルギー|알레르기|过敏|過敏|حساسي|एलर्जी|এলার্জি|অ্যালার্জি|dị ứng|แพ้|אלרג")
)
"""What does harm in every language, whosever it is."""


def revises(change: re.Pattern[str], folded: str) -> bool:
    """True where a sentence says that something changed in more than a bare "now" or "new"."""
    return any(match[0] not in _BARE_NOW for match in change.finditer(folded))


def has_english(text: str, *, least: int = 1) -> bool:
    """True for a text with some of the commonest English words."""
    return sum(word.lower() in ENGLISH for word in _WORD.findall(text)) >= least
