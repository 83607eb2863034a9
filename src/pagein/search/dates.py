"""Dates in a text, by rules: windows named in a query, the first day named in a passage.

Soft on purpose: read by rules (and by weak models, as LongMemEval measured) a window is wrong so often that a hard
filter loses more than it finds. Here it only raises the score of passages within.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass

_MONTHS = [
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
]  # fmt: skip
_MONTH = {name: number for number, name in enumerate(_MONTHS, 1)} | {
    name[:3]: number for number, name in enumerate(_MONTHS, 1)
}
_NAME = r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
_MONTHS_ELSEWHERE = (
    "januari januar janvier enero gennaio janeiro", "februari februar février febrero febbraio fevereiro",
    "märz mars marzo março maart", "avril abril aprile", "mai mei mayo maggio maio", "juni juin junio giugno junho",
    "juli juillet julio luglio julho", "augustus août agosto", "septembre septiembre settembre setembro",
    "oktober octobre octubre ottobre outubro", "novembre noviembre novembro", "dezember décembre diciembre dicembre dezembro",
)  # fmt: skip
_MONTH_ELSEWHERE = {name: number for number, names in enumerate(_MONTHS_ELSEWHERE, 1) for name in names.split()}
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"

_CALENDAR_PATTERNS = (
    re.compile(r"\b(?P<year>(?:19|20)\d\d)[-/.](?P<number>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?\b"),
    re.compile(rf"\b{_DAY}(?:\s+of)?\s+{_NAME},?(?:\s+{_YEAR})?\b", re.IGNORECASE),
    re.compile(rf"\b{_NAME}\s+{_DAY}\b(?:,?\s+{_YEAR}\b)?", re.IGNORECASE),
    re.compile(rf"\b{_NAME},?(?:\s+of)?\s+{_YEAR}\b", re.IGNORECASE),
    re.compile(
        rf"\b{_DAY}\.?\s+(?:d[ei]\s+)?(?P<elsewhere>{'|'.join(_MONTH_ELSEWHERE)})\b(?:\s+(?:de\s+)?{_YEAR}\b)?",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?:{_YEAR}\s?[年년]\s?)?(?<!\d)(?P<number>\d{{1,2}})\s?[月월](?:\s?(?P<day>\d{{1,2}})\s?[日号號일])?"
    ),
    re.compile(rf"\b(?:in|during|since|of|last|this)\s+{_NAME}(?!\w)(?!\s+\d)", re.IGNORECASE),
    re.compile(rf"\b(?:in|during|since|of)\s+{_YEAR}\b", re.IGNORECASE),
)
_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_COUNT = {"a": 1, "an": 1, "couple": 2, "few": 3} | {name: count for count, name in enumerate(_NUMBERS, 1)}
_AGO = re.compile(
    rf"\b(?:(?P<count>\d{{1,3}}|an?|{'|'.join(_NUMBERS)})|a\s+(?P<vague>couple|few)(?:\s+of)?)\s+"
    r"(?P<unit>hour|day|week|month|year)s?\s+ago\b",
    re.IGNORECASE,
)
_LAST = re.compile(r"\b(?P<which>last|past|this)\s+(?P<unit>week|month|year)\b", re.IGNORECASE)
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_WEEKDAY = re.compile(rf"\b(?:last|on)\s+(?P<weekday>{'|'.join(_WEEKDAYS)})\b", re.IGNORECASE)
_UNIT_DAYS = {"hour": 1 / 24, "day": 1, "week": 7, "month": 30.4, "year": 365.25}
_SLACK = {"hour": 1 / 24, "day": 1, "week": 4, "month": 15, "year": 120}

_REST = "|".join(f"(?<={word[0]}){word[1:]}" for word in ("yesterday", "ago", *_MONTHS))
_HINT = re.compile(rf"(?:19|20)\d\d|[yafjmsond](?<!\w\w)(?:{_REST})\b")
"""Nearly every text with a date matches this in lower case. It begins with characters: with ``\\b`` it takes twice the time."""

_FIRST_DATE_CHARS = 400
_MAX_CHARS = 20_000
_MAX_WINDOWS = 4


@dataclass(frozen=True, slots=True)
class DateWindow:
    """The time from ``first`` to ``last``, both included, in seconds since the epoch; ``phrase`` is its text."""

    first: float
    last: float
    phrase: str

    def contains(self, at: float) -> bool:
        """True for a time within."""
        return self.first <= at <= self.last


def date_windows(text: str, now: float | None = None) -> tuple[DateWindow, ...]:
    """The dates that a text names, at most four. "Last week", and days without a year, count from ``now``.

    >>> [window.phrase for window in date_windows("what broke on 8 May 2023, or in June 2024?")]
    ['8 May 2023', 'June 2024']
    >>> date_windows("what broke yesterday?"), date_windows("in 1850"), date_windows("on 2023-13-45")
    ((), (), ())
    """
    candidates = [
        *_calendar_windows(text[:_MAX_CHARS], now),
        *(() if now is None else _relative_windows(text[:_MAX_CHARS], now)),
    ]
    return tuple(dict.fromkeys(candidates))[:_MAX_WINDOWS]


def first_date(text: str, now: float | None = None) -> float | None:
    """The middle of the first date that a text names, or None."""
    start = text[:_FIRST_DATE_CHARS]
    dates = date_windows(start, now) if _HINT.search(start.lower()) else ()
    return (dates[0].first + dates[0].last) / 2 if dates else None


def _calendar_windows(text: str, now: float | None) -> Iterator[DateWindow]:
    taken = bytearray(len(text))
    for pattern in _CALENDAR_PATTERNS:
        for match in pattern.finditer(text):
            if any(taken[match.start() : match.end()]):
                continue
            window = _calendar_window(match, now)
            if window is not None:
                taken[match.start() : match.end()] = b"\1" * len(match[0])
                yield window


def _calendar_window(match: re.Match[str], now: float | None) -> DateWindow | None:
    parts = match.groupdict()
    elsewhere = _MONTH_ELSEWHERE.get((parts.get("elsewhere") or "").lower())
    month = (
        int(parts["number"]) if parts.get("number") else _MONTH.get((parts.get("month") or "")[:3].lower(), elsewhere)
    )
    year = int(parts["year"]) if parts.get("year") else None
    day = int(parts["day"]) if parts.get("day") else None
    try:
        if year is None:
            if now is None or month is None:
                return None
            year = _latest_year(month, day or 1, now)
        first = dt.datetime(year, month or 1, day or 1, tzinfo=dt.UTC)
        last = _window_end(first, month, day)
    except (ValueError, OverflowError):
        return None
    return DateWindow(first.timestamp(), last.timestamp() - 1, match[0].strip())


def _window_end(first: dt.datetime, month: int | None, day: int | None) -> dt.datetime:
    if day is not None:
        return first + dt.timedelta(days=1)
    if month is not None:
        return (first + dt.timedelta(days=32)).replace(day=1)
    return first.replace(year=first.year + 1)


def _latest_year(month: int, day: int, now: float) -> int:
    """The year of the last such day that is not in the future."""
    today = dt.datetime.fromtimestamp(now, dt.UTC)
    return today.year if (month, day) <= (today.month, today.day) else today.year - 1


def _relative_windows(text: str, now: float) -> Iterator[DateWindow]:
    day = 86_400.0
    midnight = now - now % day
    lowered = text.lower()
    for word, back in (("yesterday", 1), ("today", 0)):
        if re.search(rf"\b{word}\b", lowered):
            yield DateWindow(midnight - back * day, midnight - back * day + day - 1, word)
    for match in _AGO.finditer(text):
        word = (match["count"] or match["vague"]).lower()
        unit = match["unit"].lower()
        middle = now - (int(word) if word.isdigit() else _COUNT[word]) * _UNIT_DAYS[unit] * day
        slack = _SLACK[unit] * day
        yield DateWindow(middle - slack, middle + slack, match[0])
    for match in _LAST.finditer(text):
        length = _UNIT_DAYS[match["unit"].lower()] * day
        reach = 1 if match["which"].lower() == "this" else 2
        yield DateWindow(now - reach * length, now, match[0])
    for match in _WEEKDAY.finditer(text):
        weekday = _WEEKDAYS.index(match["weekday"].lower())
        back = (dt.datetime.fromtimestamp(now, dt.UTC).weekday() - weekday) % 7 or 7
        yield DateWindow(midnight - back * day, midnight - back * day + day - 1, match[0])
