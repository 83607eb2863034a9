# ruff: noqa: RUF001 - letters of other languages
"""Binding words of languages other than English, and phrases of English that look binding and are not.

``languages.txt`` is the table of the other languages. A sentence with two or more of the commonest English words is not
read with it.
"""

from __future__ import annotations

import functools
import re
from importlib.resources import files

FOREIGN_KINDS = ("rule", "rule", "limit", "decision", "goal", "preference", "value", "commitment")
_PATTERNS = ("rule", "duty", "limit", "decision", "goal", "preference", "value", "commitment", "change")


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
def foreign_patterns(language: str) -> tuple[re.Pattern[str], ...]:
    """The patterns of a language: of each of ``FOREIGN_KINDS``, and of a change."""
    return tuple(re.compile(LANGUAGES[language][name], re.IGNORECASE) for name in _PATTERNS)


MARKERS = {name: frozenset(row["markers"].split()) for name, row in LANGUAGES.items() if "markers" in row}
"""The commonest words of the languages with Latin letters: two of them, or one with a letter English lacks, name one."""

LETTERS = {
    name: (re.compile(f"[{row['letters']}{row['own_letters']}]"), re.compile(f"[{row['own_letters']}]"))
    for name, row in LANGUAGES.items()
    if "letters" in row
}
"""Letters that English lacks: all of a language, and those that no other of these languages has."""

_NUMBER_WORDS = re.compile(
    r"\d|[一二三四五六七八九十百千万两]"
    r"|\b(?:(?:zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|zwanzig|drei(?:ß|ss)ig|vierzig|fünfzig|hundert|tausend)\w*|halbe\w*"
    r"|deux|trois|quatre|cinq|sept|huit|neuf|dix|onze|douze|quinze|vingt|trente|quarante|cinquante|cent|mille"
    r"|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|doce|quince|veinte|treinta|cincuenta|cien|mil|dois|duas|três|quatro|sete|oito|nove|dez|doze|vinte|trinta|cinquenta|cem"
    r"|due|tre|quattro|cinque|sette|otto|dieci|dodici|quindici|venti|trenta|cinquanta|\w*(?:cento|mila)"
    r"|(?:twee|drie|vijf|zes|zeven|negen|tien|twaalf|twintig|dertig|vijftig|honderd|duizend)\w*"
    r"|dw(?:a|ie|óch|om|oma)|trz(?:y|ech|em|ema)|cztery|czterech|pięć|pięciu|sześć|sześciu|dziesięć|dziesięciu|dwanaście|dwadzieścia|sto|tysiąc\w*|tysięcy"
    r"|дв(?:а|е|ух|ум|умя)|тр(?:и|ёх|ех|ём|емя)|четыр\w+|пят(?:ь|и)|шест(?:ь|и)|сем(?:ь|и)|восемь|девять|десят(?:ь|и)|двенадцат(?:ь|и)|двадцат(?:ь|и)|сто|тысяч\w*"
    r"|iki|üç|dört|beş|altı|yedi|sekiz|dokuz|yirmi|otuz|elli|yüz|bin|दो|तीन|चार|पाँच|पांच|छह|सात|आठ|नौ|दस|बारह|बीस|सौ|हज़ार|हजार)(?!\w)"
    r"|(?:اثن|ثلاث|أربع|خمس|سبع|ثمان|تسع|عشر|مئة|مائة|ألف)"
    r"|(?:한|두|세|네|다섯|여섯|일곱|여덟|아홉|열|스무) ?(?:개|명|번|시간|문장|줄|장|분|달|잔|살|가지|페이지)|[일이삼사오육칠팔구]?[십백천만]",
    re.IGNORECASE,
)

SCRIPTS = (
    ("Russian", re.compile(r"[\u0400-\u04ff]")),
    ("Japanese", re.compile(r"[\u3040-\u30ff]")),
    ("Korean", re.compile(r"[\uac00-\ud7a3]")),
    ("Chinese", re.compile(r"[\u4e00-\u9fff]")),
    ("Arabic", re.compile(r"[\u0600-\u06ff]")),
    ("Hindi", re.compile(r"[\u0900-\u097f]")),
)
ENGLISH = frozenset(
    "the is are and to of you we my it this that with for from not be have has do don't i'm will i your our a on at by if never always must only please all every use let's us them they he she was were can can't should no any before after without until than in so but as an what when who how one two three more most least me up out new now week day get got go use using it's that's there any no only just not".split()  # noqa: SIM905
)
_BARE_NOW = frozenset(
    "jetzt neu neue neuer neues neuen maintenant nouveau nouvelle ahora nuevo nueva mejor melhor agora novo nova adesso ora nuovo nuova nu nieuw nieuwe maar teraz nowy nowa nowe теперь лучше 现在 以后 今は 新しい 이제 이제는 새로운 الآن الجديد بل अब नया नई şimdi yeni doch eigentlich".split()  # noqa: SIM905
)
_ABBREVIATIONS = re.compile(r"\b(?:e\.g|i\.e|a\.m|p\.m)\.", re.IGNORECASE)
_STRONG = frozenset(
    "prefiero prefiro preferisco soy estoy estou nie niemals immer bitte keine kein jamais toujours nunca siempre jamás sempre nooit altijd nigdy zawsze asla tercih doch".split()  # noqa: SIM905
)
"""Words that name their language alone."""

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_NONE = re.compile(r"(?!)")


def guess_language(text: str) -> str:
    """Name the language of a sentence, ``English`` where nothing else is likely.

    >>> guess_language("Bitte nie am Freitag deployen."), guess_language("Never deploy on Fridays.")
    ('German', 'English')
    """
    for language, script in SCRIPTS:
        if len(script.findall(text[:200])) >= 2:
            return language
    written = _WORD.findall(_ABBREVIATIONS.sub(" ", text[:300]))
    words = [word.lower() for word in written]
    small = " ".join(filter(str.islower, written))
    english = sum(word in ENGLISH for word in words)
    best, most = "English", max(1, english)
    for language, markers in MARKERS.items():
        count = sum((word in markers) * (1 + (word in _STRONG)) for word in words)
        letters, own_letters = LETTERS.get(language, (_NONE, _NONE))
        # A name may have letters of another language: those of its own count twice in words without a capital.
        count += any(map(letters.search, words)) + bool(own_letters.search(small))
        if count > most:
            best, most = language, count
    return best


def holds_number(text: str) -> bool:
    """True for a text with a number, in digits or in words of another language.

    >>> holds_number("höchstens drei Sätze"), holds_number("不超过三句"), holds_number("kurze Sätze")
    (True, True, False)
    """
    return bool(_NUMBER_WORDS.search(text))


def revises(language: str, text: str) -> bool:
    """True where a sentence says that something changed in more than a bare "now" or "new"."""
    *_, revising = foreign_patterns(language)
    return any(match[0].lower() not in _BARE_NOW for match in revising.finditer(text))


def has_english(text: str) -> bool:
    """True for a text with one of the commonest English words."""
    return any(word.lower() in ENGLISH for word in _WORD.findall(text))


IDIOMS = re.compile(
    r"\b(?:(?:please )?(?:don't|do not|dont) (?:you )?(?:worry|stress|sweat|panic|hesitate|mention it|give up|get me wrong|be (?:so |too )?(?:hard|shy|afraid|silly|sad|sorry|a stranger|discouraged|scared)|"
    r"beat yourself|know|think|even|remember|mind|believe|lose (?:hope|heart)|let (?:it|that|them|this|anyone|anything|fear|\w+ \w+) (?:get|stop|bring|discourage|hold|ruin|define)|let the \w+ \w+ you|you (?:think|just|love|agree)|forget to (?:take care|have fun|enjoy|breathe|smile|treat|rest|relax)|rush yourself|ask me why|get me started|tell me|look back|stop believing)"
    r"|never (?:mind|know|knew|say never|give up|stop (?:dreaming|learning|believing|amaz\w+|exploring)|too late|gets? old|ever(?:land)?$|cease\w*|fail\w* to|hurts?|looked back|look back|thought|felt|had|been|really|expected|realized|realised|imagined|seen|heard|tried|liked|got|lose hope|underestimate|forget (?:that|how|the|where|those))"
    r"|never(?:-|\s)ending|never too (?:late|early|old)|always (?:be (?:there|here|grateful|thankful|my|a)|been|wanted|loved|there|a (?:pleasure|joy|good)|nice|fun|good|great|wanted|remember(?:ed)?|room|welcome|believe in|thought|had|felt|dreamed|enjoyed|liked)"
    r"|must(?:-|\s)(?:see|try|read|visit|do|watch)s?\b|must-haves?\b|a must have\b|must (?:say|admit|confess|have been|have \w+ed|be (?:so |really |very |such |quite |pretty |a |an |hard|nice|tough|exciting|great|fun|tired|amazing|wonderful|something|difficult|proud|happy|lovely|awesome|incredible|kidding|joking|\w+ing\b|nervous|excited|thrilled|stressful|rewarding|beautiful))"
    r"|can't (?:wait|believe|imagine|help|complain|thank|get enough|stop|say enough|remember|tell you|seem|recommend|afford to miss|go wrong|beat)|no (?:worries|problem|way|doubt|wonder|idea|matter|one knows|big deal|pressure|rush|offen[cs]e|need to (?:thank|worry|apologi[sz]e)|thanks?|thank you|clue|pun|joke|kidding|luck|end|time to lose|pain,? no gain)"
    r"|only (?:if|when) you (?:want|like|feel)|if only|not only|always (?:at|in|on) my (?:side|mind|heart)|should be (?:fun|good|great|fine|nice|interesting|exciting|able|proud)|let's (?:see|face it|say|be honest|hope|go!|do (?:it|this|that)|catch up|chat|talk|hang|get (?:started|going|into it)|keep (?:in touch|going|it up|at it)|start|continue|begin|move on|dive|have a look|take a look|try|try again|check)\b"
    r"|needless to say|at least (?:it|he|she|they|we|you|i|for now|that)\b|as (?:always|ever|usual)|(?:than|like) (?:never|ever) (?:before)?|once in a lifetime|keep (?:it up|up the|going|me (?:posted|updated|in the loop)|in touch|pushing|shining|smiling|rocking|being|doing|at it|fighting|believing|dreaming|following|moving|on|exploring|spreading)|stay (?:strong|positive|safe|tuned|in touch|true|motivated|awesome|focused))\b",
    re.IGNORECASE,
)  # fmt: skip
"""Phrases of small talk with a binding word in them, which bind nobody."""
