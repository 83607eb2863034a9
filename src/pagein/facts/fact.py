"""A fact: a lasting statement with confidence, scope, validity and the steps it came from. Values and checks only."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from difflib import get_close_matches

from pagein.errors import PageinError
from pagein.events.entries import FactScope, FactStated, Source
from pagein.summaries.sanitize import normal

CATEGORIES = ("preference", "knowledge", "context", "behaviour", "goal", "correction", "constraint")
"""What a fact may be, unless the host names more."""

GUARANTEED = ("correction", "constraint")
"""What is shown before all else, and leaves last."""

SCOPES: tuple[FactScope, ...] = ("task", "session", "project", "user", "tenant")
"""Whom a fact is for, from the narrowest to the widest."""

MOST_CONTENT = 4_000
"""Characters of a fact; a longer text is no statement, and would fill the block by itself."""

_LETTER = {"task": "t", "session": "s", "project": "p", "user": "u", "tenant": "a"}
_SCOPE = {_LETTER[scope]: scope for scope in SCOPES}
_ID = re.compile(r"f([tspua])(\d{1,15})", re.ASCII)
_CATEGORY = re.compile(r"[a-z][a-z0-9_-]{0,39}", re.ASCII)
_SPELLED = {"behavior": "behaviour"}


class FactError(PageinError):
    """A fact that cannot be one, or a change to facts that cannot be made. Nothing was recorded."""


class UnknownFact(FactError):
    """The id names no fact that this memory may see, or one that was removed."""

    def __init__(self, id: str, why: str = "") -> None:
        self.id = id
        super().__init__(f"no fact {id!r}{': ' + why if why else ''}; facts.list() names those there are")


@dataclass(frozen=True, slots=True)
class Fact:
    """A lasting statement, as it stands now.

    ``id`` is a short name such as ``fu12``, unique among the facts one memory may see. ``confidence`` is from 0 to 1;
    ``owner`` is the task, session, project, user or tenant it is for. Times are seconds since the epoch; it holds from
    ``valid_from`` on and before ``valid_until``. ``sources`` are the steps it came from, ``supersedes`` the ids of the
    facts it took the place of, ``disputes`` of older ones it does not agree with, and ``disputed_by`` of the newer one
    that does not agree with it.

    Raises FactError for what is no fact.
    """

    id: str
    content: str
    category: str = "context"
    confidence: float = 1.0
    scope: FactScope = "session"
    owner: str = ""
    valid_from: float | None = None
    valid_until: float | None = None
    sources: tuple[Source, ...] = ()
    supersedes: tuple[str, ...] = ()
    disputes: tuple[str, ...] = ()
    disputed_by: str = ""
    stated_at: float = 0.0
    confirmed_at: float | None = None
    uses: int = 0
    author: str = "host"

    def __post_init__(self) -> None:
        checked_content(self.content)
        checked_category(self.category)
        checked_confidence(self.confidence)
        checked_scope(self.scope)
        checked_interval(self.valid_from, self.valid_until)

    def holds(self, at: float) -> bool:
        """Whether it holds at a time, by its validity interval."""
        began = self.valid_from is None or self.valid_from <= at
        return began and (self.valid_until is None or at < self.valid_until)

    @property
    def seen_at(self) -> float:
        """When it was last said: stated, or confirmed."""
        return self.stated_at if self.confirmed_at is None else self.confirmed_at


def fact_of(position: int, at: float, body: FactStated) -> Fact:
    """The fact that an entry states."""
    return Fact(
        fact_id(body.scope, position), body.content, body.category, body.confidence, body.scope, body.owner,
        body.valid_from, body.valid_until, body.sources,
        tuple(fact_id(body.scope, each) for each in body.supersedes),
        tuple(fact_id(body.scope, each) for each in body.disputes),
        stated_at=at, author=body.author,
    )  # fmt: skip


def fact_id(scope: FactScope, position: int) -> str:
    """The id of the fact stated at a position of its owner's log.

    >>> fact_id("user", 12)
    'fu12'
    """
    return f"f{_LETTER[scope]}{position}"


def parsed_id(id: str) -> tuple[FactScope, int]:
    """The scope and the position that an id means. Raises UnknownFact."""
    found = _ID.fullmatch(id.strip("[] \n")) if isinstance(id, str) else None
    if found is None:
        raise UnknownFact(str(id)[:80], "ids look like fu12")
    return _SCOPE[found[1]], int(found[2])


def checked_content(content: object) -> str:
    """The content, without white space around it. Raises FactError for what is no statement."""
    if not isinstance(content, str):
        raise FactError(f"a fact is text, not a {type(content).__name__}. Nothing was recorded.")
    text = content.strip()
    if not key_of(text):
        raise FactError("a fact says something; its content is empty. Nothing was recorded.")
    if len(text) > MOST_CONTENT:
        raise FactError(
            f"a fact has at most {MOST_CONTENT:,} characters, this one {len(text):,}: state what lasts of it, and "
            "keep the rest in a step. Nothing was recorded."
        )
    return text


def checked_confidence(confidence: object) -> float:
    """The confidence as a float. Raises FactError for what is no number from 0 to 1."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        raise FactError(f"a confidence is a number from 0 to 1, not {confidence!r}. Nothing was recorded.")
    if not math.isfinite(confidence) or not 0 <= confidence <= 1:
        raise FactError(f"a confidence is from 0 to 1, not {confidence!r}. Nothing was recorded.")
    return float(confidence)


def checked_category(category: object, known: tuple[str, ...] | None = None) -> str:
    """The category as it is spelled here. Raises FactError for no name, and for one that is not ``known``."""
    if not isinstance(category, str):
        raise FactError(f"a category is a name, not {category!r}. Nothing was recorded.")
    name = category.strip().lower()
    name = _SPELLED.get(name, name)
    if not _CATEGORY.fullmatch(name):
        raise FactError(f"a category is a short name such as {CATEGORIES[0]!r}, not {category[:60]!r}")
    if known is not None and name not in known:
        near = get_close_matches(name, known, n=1)
        cure = (
            f"did you mean {near[0]!r}?"
            if near
            else f"there are {', '.join(known)}; name more with categories="
        )
        raise FactError(f"no category {name!r}: {cure} Nothing was recorded.")
    return name


def checked_scope(scope: object) -> FactScope:
    """The scope. Raises FactError for one there is not."""
    for each in SCOPES:
        if scope == each:
            return each
    raise FactError(f"a scope is one of {', '.join(SCOPES)}, not {scope!r}. Nothing was recorded.")


def checked_interval(start: object, end: object) -> None:
    """Raises FactError for times that are none, or an interval that holds nothing."""
    for each in (start, end):
        if each is None:
            continue
        if isinstance(each, bool) or not isinstance(each, int | float) or not math.isfinite(each):
            raise FactError(f"a time is in seconds since the epoch, not {each!r}. Nothing was recorded.")
    if isinstance(start, int | float) and isinstance(end, int | float) and not start < end:
        raise FactError(f"a fact valid from {start} until {end} never holds. Nothing was recorded.")


def key_of(content: str) -> str:
    """The text by which two facts are the same: case, white space, width and the punctuation around do not matter.

    >>> key_of("  Prefers  TABS. ") == key_of("prefers tabs")
    True
    """
    text = content.encode("utf-8", "replace").decode()
    return normal(unicodedata.normalize("NFKC", text))
