# ruff: noqa: RUF001 - letters of other languages
"""Values and subjects of a sentence: what it sets, and the stems that say what it is about.

Other words for the same thing share a concept: "the limit is 200 EUR" and "raise the budget to 350 EUR" are both about
``spend``; "use tabs" and "spaces, actually" are both about ``indent``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A value in a sentence: its text, its type (``money``, ``time``, ``date``, ``unit:h``, ``name``, ...), its span."""

    text: str
    type: str
    start: int
    end: int


_CURRENCY = r"(?:EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK|CAD|AUD|NZD|INR|BRL|TRY|RUB|CNY|KRW|MXN|euros?|dollars?|pounds?|quid|bucks|francs?|rupees?|yen|yuan|z[lł]oty|reais|pesos?|lira|rubles?|cents?|grand|€|\$|£|¥|₹|元|円|원|руб\w*)"
_NUM = r"\d+(?:[.,:\u00a0\u202f']\d+)*"
_NUM_WORD = r"(?:(?:a|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[ -]?){1,2}(?:hundred|thousand)(?: and \w+)?"
_MONTH = r"(?:jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|apr(?:il)?|may|mai|june?|juni|july?|juli|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)"
_DAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo)s?)"
_UNIT = (
    r"(?:%|percent|pct|ms|milliseconds?|secs?|seconds?|s|mins?|minutes?|hours?|hrs?|h|days?|weeks?|months?|years?|yrs?|nights?|"
    r"kb|mb|gb|tb|kib|mib|gib|bytes?|words?|characters?|chars?|letters?|lines?|pages?|paragraphs?|sentences?|bullets?|bullet points?|slides?|columns?|spaces?|"
    r"km|kilometers?|kilometres?|miles?|m|metres?|meters?|cm|mm|ft|feet|inch(?:es)?|kg|kilos?|g|grams?|mg|mcg|lbs?|pounds?|oz|ml|l|litres?|liters?|cups?|"
    r"calories|kcal|people|persons?|guests?|seats?|tickets?|users?|customers?|items?|pieces?|units?|requests?|retries|attempts?|tries|times|rps|qps|"
    r"tablets?|pills?|drops?|puffs?|degrees?|°c|°f|c|f|credits?|points?|stops?|bags?|pupils?|students?|rooms?|files?|commits?|reviewers?|approvals?|replicas?|instances?|nodes?|workers?|threads?|cores?|tokens?|questions?|examples?|options?|emails?|messages?|calls?|meetings?|doses?|units)"
)
_TYPED = re.compile(
    r"(?i)(?P<code>`[^`\n]{1,80}`)"
    r"|(?P<quoted>[\"\u201c\u201e][^\"\u201d\n\x00]{1,60}[\"\u201d])"
    r"|(?P<url>\b(?:https?://|www\.)[^\s,;]{3,120}|\b[\w.+-]{1,60}@[\w-]{1,60}(?:\.[\w-]{1,30}){1,4})"
    rf"|(?P<iso>\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b)"
    r"|(?P<address>(?-i:\b\d{1,5}[a-z]?,? (?:[A-Z][\w.'-]+ ){0,3}(?:Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Way|Court|Ct|Place|Pl|Boulevard|Blvd|Close|Square|Terrace|Crescent|Row|Hill|Park|Gardens|Highway|Parkway)\b|\b[A-Z]\w+(?:stra(?:ße|sse)|weg|gasse|platz|allee|straat|laan) \d{1,4}[a-z]?\b|\b(?:Rue|Calle|Via|Rua|Avenida|Boulevard) (?:[\w'-]+ ){1,4}\d{1,4}\b))"
    rf"|(?P<date>\b(?:(?:the )?\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{_MONTH}|{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?)\b(?:,? \d{{4}})?|\bthe \d{{1,2}}(?:st|nd|rd|th)\b)"
    rf"|(?P<money>[$€£¥₹]\s?{_NUM}\s?(?:k|m|million)?\b|\b(?:{_NUM}\s?(?:k\s?|thousand |million )?|{_NUM_WORD} ){_CURRENCY}(?!\w))"
    r"|(?P<time>\b\d{1,2}(?:[:.]\d\d)?\s?(?:am|pm|a\.m\.|p\.m\.)(?!\w)|(?<=\bat )\d{1,2}\.[0-5]\d\b(?![.\d])|\b\d{1,2}:\d\d\b(?:\s?(?:h|uhr|o'clock))?|\b\d{1,2} o'clock|\b(?:noon|midnight|half past \w+|quarter (?:past|to) \w+)\b)"
    rf"|(?P<percent>\b{_NUM}\s?(?:%|percent\b))"
    rf"|(?P<unit>\b{_NUM}[ -]?{_UNIT}(?!\w)|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred) {_UNIT}(?!\w))"
    rf"|(?P<day>\b{_DAY}\b|\b(?:tomorrow|tonight|weekends?|weekdays?)\b)"
    rf"|(?P<month>\b(?:in|by|until|till|from|before|after|end of|early|mid|late|to|this|next) (?-i:January|February|March|April|May|June|July|August|September|October|November|December)\b(?! \d)|(?-i:(?<![.!?] )(?<!^)\b(?:(?:end|start|middle|beginning) of )?(?:January|February|April|June|July|August|September|October|November|December|Easter|Christmas|Thanksgiving|Ramadan|Pentecost)\b))"
    r"|(?P<identifier>(?<![\w/.-])(?-i:/?[\w.-]+/[\w./-]+|[a-zA-Z]+(?:_[a-zA-Z0-9]+)+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Z]{2,}[- ]?\d[\w-]*|[A-Za-z]+-?\d(?:[\w.-]*\w)?|v?\d+(?:\.\d+)+(?:[-.]\w+)*|\d+[A-Z]+\d*|#\w+|[A-Z]{1,5}-[A-Z0-9]{2,}[A-Z0-9-]*|(?:[\w-]+\.)+(?:py|js|ts|md|json|ya?ml|toml|txt|csv|pdf|com|org|io|net|de|dev|xlsx?|docx?))(?![\w/]))"
    rf"|(?P<number>(?<![\w.]){_NUM}(?![\w])|\b{_NUM_WORD}\b)",
)  # fmt: skip
_NAME = re.compile(
    r"(?<=[a-z,:;\u2019'] )(?:(?:Mrs?|Ms|Dr|Prof|St)\. )?(?:[A-Z\u00c0-\u00de][\w\u2019'&-]*)(?: (?:[A-Z\u00c0-\u00de][\w\u2019'&-]*|of|de|van|von|la|&)(?= [A-Z]| ?[.,;!)]|$| [a-z])){0,3}"
)
_FIRST_NAME = re.compile(
    r"^(?:[Oo]k,? |[Aa]lso,? )?[A-Z][\w+#.-]+(?: [A-Z]\w+)?(?= (?:it is\b|has taken|takes? over|took over|instead\b|will (?:take|be|do)))"
)
_NOT_NAMES = frozenset("i i'm i'll i'd i've ok okay".split())  # noqa: SIM905 - easier to read

_GROUP_TEXT = """
indent: tabs spaces
seat: aisle window
colour: red blue green yellow black white grey gray purple orange pink brown teal navy beige turquoise silver gold
theme: dark light
unitsystem: metric imperial celsius fahrenheit
codelanguage: python typescript javascript java rust golang kotlin swift ruby php scala c# c++ elixir perl bash powershell
store: postgres postgresql mysql mariadb sqlite mongodb mongo redis dynamodb oracle cassandra cockroachdb duckdb clickhouse
cloud: aws azure gcp heroku fly.io hetzner digitalocean vercel netlify cloudflare
frontend: react vue svelte angular solid htmx
webframework: django flask fastapi express rails spring nestjs
testtool: pytest unittest jest vitest mocha
packager: npm yarn pnpm bun pip poetry uv conda
diet: vegetarian vegan pescatarian omnivore kosher halal keto
carrier: train plane bus car bike boat ferry
tongue: english german french spanish italian portuguese dutch polish russian chinese japanese korean arabic hindi turkish
tone: formal informal casual friendly chatty polite politely
length: short brief concise long detailed verbose terse
register: sie du
branch: main master develop staging
environment: production prod staging
format: json yaml xml csv markdown html pdf toml docx
channel: slack discord whatsapp telegram signal email phone sms
drink: coffee tea water wine beer juice
milk: oat soy almond dairy
daypart: morning afternoon evening night mornings afternoons evenings nights
clock: 24-hour 12-hour
spelling: british american
tempo: weekly daily monthly biweekly quarterly hourly fortnightly
"""


def _table(text: str) -> dict[str, str]:
    rows = (line.partition(":") for line in text.strip().splitlines() if line[0] != "#")
    return {word: concept for concept, _, words in rows for word in words.split()}


@functools.cache
def concepts() -> Mapping[str, str]:
    """Return by word the concept, or the stem of its synonyms, in whose place it stands."""
    text = resources.files("pagein.context.ledger").joinpath("concepts.txt").read_text("utf-8")
    return MappingProxyType(_table(text))


OPTION_GROUPS = MappingProxyType(_table(_GROUP_TEXT))
"""Options of which one is chosen: another one of the same group may replace it."""

_STOP_TEXT = """
date dates hmm hm oops wait something else someone took taken old enough summer winter spring autumn fall place instead they told office a an the this that these those it its he she they them him her his their theirs we us our ours you your yours i me my mine
and or but nor so yet if then else when while where who whom whose which what why how as at by for from in into of off on
onto out over per than through till to toward under until up upon via with within without about above across after
against along among around before behind below beneath beside between beyond during except
is are was were be been being am do does did done doing have has had having will would shall should can could may might
must need needs needed ought cannot can't don't doesn't didn't won't wouldn't shouldn't mustn't isn't aren't wasn't
not no never none nothing nobody always ever only just also too even still already again anymore any some each every all
both either neither more most less least much many few other another such same own very really quite rather pretty
please thanks thank sorry ok okay yes yeah yep nope hey hi hello well now actually instead oh ah um btw fyi way let lets
let's make makes made making sure keep keeps kept keeping get gets got go goes going gone use uses used using take takes
set sets put change changed changes changing switch switched raise raised lower lowered bump bumped update updated
new newer old older current currently longer longer today from onwards future forward thing things stuff like want wants
wanted prefer prefers rule rules limit limits cap ceiling maximum max minimum min threshold target goal aim decision decide decided goal remember note important mind forget whatever under
circumstances i'm i'll i'd i've he's she's they're they've who's you're you'll we're we'll we've it's that's there's there here up down back know think
one two three four five six seven eight nine ten fine good great better best bit lot kind sort maybe perhaps guess say
said says tell told ask asked mean means meant call called scratch correction revised revise moved move moves pushed
come comes coming begin begins began start starts started starting aim aiming hope hoping wants leave leaves leaving stop stops second settle settled
first last next once twice time times day days week weeks month months year years hour hours minute minutes
per cent percent eur usd gbp euros euro dollars dollar pounds allowed fine because since due
der die das den dem des ein eine einen einem einer und oder aber nicht kein keine nie niemals immer nur bitte ist sind
war mein meine unser unsere wir ich du sie es auf mit von zu im in am an statt jetzt doch le la les un une des et ou ne
pas jamais toujours mon ma mes nous je tu vous il elle que qui est sont el los las una unos y o no nunca siempre mi mis
nosotros yo es son de del para por con ahora en vez lugar o os as um uma e ou não nunca sempre meu minha il lo gli uno e
non mai sempre mio mia het een en niet nooit altijd mijn
"""
TYPE_CONCEPTS = MappingProxyType({"address": "=address", "flight": "=flight", "version": "=version", "money": "=spend"})
"""Concepts that a value brings with it."""

VALUE_CONCEPTS = frozenset((*TYPE_CONCEPTS.values(), "=name"))

STOP_WORDS = frozenset(_STOP_TEXT.split())
_WORDS = re.compile(r"[^\W_]+(?:['\u2019.+#-][^\W_]+)*[+#]*")
_PARTED = re.compile(r"[a-z]{3,}(?=-)|(?<=-)[a-z]{3,}")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")


def find_values(masked: str) -> Iterator[TypedValue]:
    """Yield the typed values of a sentence, in order; names last."""
    ends = []
    for match in _TYPED.finditer(masked):
        kind = match.lastgroup or "number"
        start, end = match.span()
        ends.append((start, end))
        type_name = _type_of(kind, match[0])
        if type_name == "number":
            is_people = _counts_people(masked, start, end)
            type_name = "unit:people" if is_people else "label" if _LABELLED.search(masked[:start]) else type_name
        yield TypedValue(match[0].strip('`"\u201c\u201d\u201e'), type_name, start, end)
    for match in (*_NAME.finditer(masked), *_FIRST_NAME.finditer(masked)):
        is_covered = any(start < match.end() and match.start() < end for start, end in ends)
        first = re.split(r"['\u2019 ]", match[0].lower())[0]
        if not is_covered and first not in _NOT_NAMES and first not in STOP_WORDS:
            yield TypedValue(match[0], "name", *match.span())


_BEFORE_PEOPLE = re.compile(
    r"(?i)(?:\b(?:party|group|table|room|tickets?|seats?) (?:of|for)|\bwe(?:'re|\u2019re| are|'ll be| will be)(?: now| only| just)?) $"
)
_LABELLED = re.compile(
    r"(?i)\b(?:room|gate|platform|seat|stall|plot|table|track|hall|box|locker|floor|line|bus|tram|stand|bay|unit|number|no\.|(?-i:[A-Z])) $"
)
"""What a number is the name of, not a count: "room 305"."""
_BEHIND_PEOPLE = re.compile(r"(?i) (?:of us|guests|adults|persons|heads)\b")


def _counts_people(masked: str, start: int, end: int) -> bool:
    """True for the number in "we're 6 now", "a table for 4" or "7 of us"."""
    return bool(_BEFORE_PEOPLE.search(masked[:start]) or _BEHIND_PEOPLE.match(masked[end:]))


_ADJECTIVE = re.compile(r"(?i)main (?!branch\b)[a-z]")
"""Is no option: "main goal"."""


def find_option(masked: str) -> TypedValue | None:
    """Return the last option of a known group in a sentence, such as "spaces"; None without one."""
    option = None
    for word in _WORDS.finditer(masked):
        group = OPTION_GROUPS.get(word[0].lower())
        is_adjective = _ADJECTIVE.match(masked, word.start())
        if group is not None and not is_adjective and not (group == "tongue" and option is not None):
            option = TypedValue(word[0], f"option:{group}", *word.span())
    return option


def is_typed(value: TypedValue) -> bool:
    """True for a value that is no plain name: a number, a date, an identifier with digits or marks."""
    return value.type != "name" or bool(_MARKED.search(value.text))


_MARKED = re.compile(r"[\d_./@#-]")
_SHAPES = (
    ("flight", re.compile(r"[A-Z][A-Z0-9] ?\d{2,4}")),
    ("version", re.compile(r"v?\d+(?:\.\d+)+(?:[-.]\w+)*")),
    ("path", re.compile(r"/?[\w.-]+/[\w./-]+")),
)
"""Types of identifiers by their shape."""


def _type_of(kind: str, text: str) -> str:
    match kind:
        case "iso" | "date" | "month":
            return "date"
        case "percent":
            return "unit:%"
        case "unit":
            unit = re.sub(r"^[\d.,:\s-]+|^\w+ (?=\w)", "", text.lower()).strip()
            unit = unit if len(unit) <= 2 else unit.rstrip("s")
            return f"unit:{_UNIT_NAMES.get(unit, unit)}"
        case "identifier":
            return next((name for name, shape in _SHAPES if shape.fullmatch(text)), "name")
        case "code" | "quoted":
            return "name"
        case _:
            return kind


_UNIT_NAMES = MappingProxyType({
    "sec": "second", "min": "minute", "hr": "hour", "h": "hour", "char": "character", "person": "people", "kilo": "kg", "yr": "year",
    "attempt": "retry", "retrie": "retry", "trie": "retry", "metre": "m", "meter": "m", "liter": "l", "litre": "l", "gram": "g", "percent": "%", "pct": "%",
    "guest": "people", "pill": "tablet",
})  # fmt: skip


def is_same_type(one: str, other: str) -> bool:
    """True for values of which one can replace the other; a plain number fits any number."""
    if one == other:
        return one != ""
    numeric = ("number", "money", "unit:", "time")
    if "number" in (one, other) and one.startswith(numeric) and other.startswith(numeric):
        return True
    return any(
        {one, other} <= kinds
        for kinds in ({"date", "day"}, {"name", "text"}, {"number", "label"}, {"option:indent", "unit:space"})
    )


def is_when(kind: str) -> bool:
    """True for the types of dates and times."""
    return kind in ("date", "day", "time", "option:daypart")


def is_specific(kind: str) -> bool:
    """True for types of which a talk has few values, so that the type alone says much."""
    return kind.startswith(("unit:", "option:")) or kind in ("money", "flight", "version", "address", "path", "url")


def subject_stems(masked: str, values: tuple[TypedValue, ...]) -> tuple[str, ...]:
    """Return the stems of the content words, without those of the values, concepts for words that have one."""
    text, by_word = list(masked), concepts()
    stems: dict[str, None] = {}
    for value in values:
        text[value.start : value.end] = " " * (value.end - value.start)
        names = value.text.lower().split() if value.type == "name" else ()
        stems.update((by_word[word], None) for word in names if word in by_word)
    for word in _WORDS.findall("".join(text).replace("\x00", " ")):
        lower = word.lower().replace("\u2019", "'")
        if lower in OPTION_GROUPS:
            stems[f"@{OPTION_GROUPS[lower]}"] = None
        if lower in by_word:
            stems[by_word[lower]] = None
        elif _CJK.match(lower):
            stems.update(dict.fromkeys(lower[at : at + 2] for at in range(min(40, max(1, len(lower) - 1)))))
        elif lower not in STOP_WORDS and len(lower) > 1 and lower not in OPTION_GROUPS:
            stems[stem(lower)] = None
            stems.update((stem(part), None) for part in _PARTED.findall(lower) if part not in STOP_WORDS)
    return tuple(stems)[:24]


def stem(word: str) -> str:
    """Return the word without the commonest English endings.

    >>> stem("deployments"), stem("booking"), stem("policies")
    ('deployment', 'book', 'policy')
    """
    word = word.removesuffix("'s")
    if len(word) < 4 or not word.isascii():
        return word
    for ending, new in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("ly", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not (ending == "s" and word.endswith("ss")):
            base = word[: -len(ending)] + new
            return (
                base[:-1]
                if len(base) > 4 and base[-1] == base[-2:-1] and base[-1] not in "sl"
                else base.removesuffix("e")
            )
    return word.removesuffix("e")
