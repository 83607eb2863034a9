"""The times that a text speaks of, by rules: a window in a query, a day in what was said.

Soft on purpose. Read by rules (and by weak models, as LongMemEval measured) a window is wrong often enough that a hard
filter loses more than it finds; here it only lifts what falls within.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH = {name: number for number, name in enumerate(_MONTHS, 1)} | {
    name[:3]: number for number, name in enumerate(_MONTHS, 1)
}
_NAME = r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"

_SPELLED = (
    re.compile(r"\b(?P<year>(?:19|20)\d\d)[-/.](?P<number>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?\b"),
    re.compile(rf"\b{_DAY}(?:\s+of)?\s+{_NAME},?(?:\s+{_YEAR})?\b", re.IGNORECASE),
    re.compile(rf"\b{_NAME}\s+{_DAY}\b(?:,?\s+{_YEAR}\b)?", re.IGNORECASE),
    re.compile(rf"\b{_NAME},?(?:\s+of)?\s+{_YEAR}\b", re.IGNORECASE),
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

_HINT = re.compile(r"(?:19|20)\d\d|\b(?:yesterday|ago)\b|\b(?:" + "|".join(_MONTHS) + r")\b", re.IGNORECASE)
"""What nearly every text that names a time holds; most texts have none, and are done with at once."""

_DAY_READ = 400
_READ = 20_000
_MOST = 4


@dataclass(frozen=True, slots=True)
class Window:
    """From ``first`` to ``last``, in seconds since the epoch, both within; ``said`` is how the text put it."""

    first: float
    last: float
    said: str

    def holds(self, at: float) -> bool:
        """True for a time within."""
        return self.first <= at <= self.last


def windows(text: str, now: float | None = None) -> tuple[Window, ...]:
    """The times that a text names, at most four; ``now`` is what "last week" counts from, and a day without a year.

    >>> [each.said for each in windows("what broke on 8 May 2023, or in June 2024?")]
    ['8 May 2023', 'in June 2024']
    >>> windows("what broke yesterday?"), windows("in 1850"), windows("on 2023-13-45")
    ((), (), ())
    """
    found = [*_spelled(text[:_READ], now), *(() if now is None else _counted(text[:_READ], now))]
    return tuple(dict.fromkeys(found))[:_MOST]


def day_said(text: str, now: float | None = None) -> float | None:
    """The middle of the first time that a text names, where it names one."""
    start = text[:_DAY_READ]
    found = windows(start, now) if _HINT.search(start) else ()
    return (found[0].first + found[0].last) / 2 if found else None


def _spelled(text: str, now: float | None) -> Iterator[Window]:
    taken: list[tuple[int, int]] = []
    for pattern in _SPELLED:
        for found in pattern.finditer(text):
            if any(start < found.end() and found.start() < end for start, end in taken):
                continue
            made = _of_calendar(found, now)
            if made is not None:
                taken.append(found.span())
                yield made


def _of_calendar(found: re.Match[str], now: float | None) -> Window | None:
    parts = found.groupdict()
    month = (
        int(parts["number"]) if parts.get("number") else _MONTH.get((parts.get("month") or "")[:3].lower())
    )
    year = int(parts["year"]) if parts.get("year") else None
    day = int(parts["day"]) if parts.get("day") else None
    try:
        if year is None:
            if now is None or month is None:
                return None
            year = _latest_year(month, day or 1, now)
        first = dt.datetime(year, month or 1, day or 1, tzinfo=dt.UTC)
        last = _end(first, month, day)
    except (ValueError, OverflowError):
        return None
    return Window(first.timestamp(), last.timestamp() - 1, found[0].strip())


def _end(first: dt.datetime, month: int | None, day: int | None) -> dt.datetime:
    if day is not None:
        return first + dt.timedelta(days=1)
    if month is not None:
        return (first + dt.timedelta(days=32)).replace(day=1)
    return first.replace(year=first.year + 1)


def _latest_year(month: int, day: int, now: float) -> int:
    """The year of the last such day that is not to come."""
    today = dt.datetime.fromtimestamp(now, dt.UTC)
    return today.year if (month, day) <= (today.month, today.day) else today.year - 1


def _counted(text: str, now: float) -> Iterator[Window]:
    day = 86_400.0
    midnight = now - now % day
    lowered = text.lower()
    for word, back in (("yesterday", 1), ("today", 0)):
        if re.search(rf"\b{word}\b", lowered):
            yield Window(midnight - back * day, midnight - back * day + day - 1, word)
    for found in _AGO.finditer(text):
        word = (found["count"] or found["vague"]).lower()
        unit = found["unit"].lower()
        middle = now - (int(word) if word.isdigit() else _COUNT[word]) * _UNIT_DAYS[unit] * day
        slack = _SLACK[unit] * day
        yield Window(middle - slack, middle + slack, found[0])
    for found in _LAST.finditer(text):
        length = _UNIT_DAYS[found["unit"].lower()] * day
        reach = 1 if found["which"].lower() == "this" else 2
        yield Window(now - reach * length, now, found[0])
    for found in _WEEKDAY.finditer(text):
        wanted = _WEEKDAYS.index(found["weekday"].lower())
        back = (dt.datetime.fromtimestamp(now, dt.UTC).weekday() - wanted) % 7 or 7
        yield Window(midnight - back * day, midnight - back * day + day - 1, found[0])
