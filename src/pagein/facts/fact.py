"""Facts: lasting statements with confidence, scope, validity and sources. Values and checks only."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial

from pagein._common.validation import is_number
from pagein.errors import PageinError
from pagein.events.entries import FactScope, FactStated, Source
from pagein.summaries.sanitize import normalize_text

PROCEDURE = "procedure"
"""The category of how a task was done: its first line is the task, and each step has a line."""

CATEGORIES = ("preference", "knowledge", "context", "behaviour", "goal", "correction", "constraint")
"""The categories of what was said; settings may add more."""

GUARANTEED = ("correction", "constraint")
"""The categories that are shown first and evicted last."""

SCOPES: tuple[FactScope, ...] = ("task", "session", "project", "user", "tenant")
"""The scopes of facts, from the narrowest to the widest."""

MAX_CONTENT_CHARS = 4_000
"""Characters of a fact; a longer text is no statement, and would fill the block by itself."""

_LETTER = {"task": "t", "session": "s", "project": "p", "user": "u", "tenant": "a"}
_SCOPE = {_LETTER[scope]: scope for scope in SCOPES}
_ID = re.compile(r"f([tspua])(\d{1,15})", re.ASCII)
_CATEGORY = re.compile(r"[a-z][a-z0-9_-]{0,39}", re.ASCII)
_SPELLED = {"behavior": "behaviour"}


class FactError(PageinError):
    """An invalid fact, or an impossible change to facts. Nothing was recorded."""


class UnknownFact(FactError):
    """The id names no fact that this memory may see, or one that was removed."""

    def __init__(self, id: str, why: str = "") -> None:
        self.id = id
        super().__init__(f"no fact {id!r}{': ' + why if why else ''}; list the facts to see them")


@dataclass(frozen=True, slots=True)
class Fact:
    """A lasting statement in its current state.

    ``id`` is a short name such as ``fu12``, unique among the facts one memory may see. ``confidence`` is from 0 to 1;
    ``owner`` is the task, session, project, user or tenant it is for. Times are seconds since the epoch; it holds from
    ``valid_from`` until before ``valid_until``. ``sources`` are the steps it came from, ``supersedes`` the ids of the facts
    it replaced, ``disputes`` the ids of older facts that it contradicts, and ``disputed_by`` the id of a newer fact that
    contradicts it.

    Raises FactError for invalid values.
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
        """True if it is valid at a time."""
        began = self.valid_from is None or self.valid_from <= at
        return began and (self.valid_until is None or at < self.valid_until)

    @property
    def headline(self) -> str:
        """The first line: of a procedure its task, of most facts all."""
        return self.content.partition("\n")[0]

    @property
    def seen_at(self) -> float:
        """The time it was last stated or confirmed."""
        return self.stated_at if self.confirmed_at is None else self.confirmed_at


def fact_from_entry(position: int, at: float, body: FactStated) -> Fact:
    """The fact that a log entry states."""
    id_of = partial(fact_id, body.scope)
    return Fact(
        id_of(position), body.content, body.category, body.confidence, body.scope, body.owner,
        body.valid_from, body.valid_until, body.sources, tuple(map(id_of, body.supersedes)),
        tuple(map(id_of, body.disputes)), stated_at=at, author=body.author,
    )  # fmt: skip


def fact_id(scope: FactScope, position: int) -> str:
    """The id of the fact stated at a position of its owner's log.

    >>> fact_id("user", 12)
    'fu12'
    """
    return f"f{_LETTER[scope]}{position}"


def parse_fact_id(id: str) -> tuple[FactScope, int]:
    """The scope and the position in an id. Raises UnknownFact."""
    match = _ID.fullmatch(id.strip("[] \n")) if isinstance(id, str) else None
    if match is None:
        raise UnknownFact(str(id)[:80], "ids look like fu12")
    return _SCOPE[match[1]], int(match[2])


def checked_content(content: object) -> str:
    """The content without surrounding white space. Raises FactError for an invalid one."""
    if not isinstance(content, str):
        raise FactError(f"a fact is text, not {type(content).__name__}. Nothing was recorded.")
    text = content.strip()
    if not content_key(text):
        raise FactError("the content of a fact is empty. Nothing was recorded.")
    if len(text) > MAX_CONTENT_CHARS:
        raise FactError(
            f"a fact has at most {MAX_CONTENT_CHARS:,} characters, this one {len(text):,}: state what lasts of it, and "
            "keep the rest in a step. Nothing was recorded."
        )
    return text


def checked_confidence(confidence: object) -> float:
    """The confidence as a float. Raises FactError unless it is a number from 0 to 1."""
    if not is_number(confidence):
        raise FactError(f"a confidence is a number from 0 to 1, not {confidence!r}. Nothing was recorded.")
    if not math.isfinite(confidence) or not 0 <= confidence <= 1:
        raise FactError(f"a confidence is from 0 to 1, not {confidence!r}. Nothing was recorded.")
    return float(confidence)


def checked_category(category: object, categories: tuple[str, ...] | None = None) -> str:
    """The category in its canonical spelling. Raises FactError for an invalid name, or one not in ``categories``."""
    if not isinstance(category, str):
        raise FactError(f"a category is a name, not {category!r}. Nothing was recorded.")
    name = category.strip().lower()
    name = _SPELLED.get(name, name)
    if not _CATEGORY.fullmatch(name):
        raise FactError(f"a category is a short name such as {CATEGORIES[0]!r}, not {category[:60]!r}")
    if categories is not None and name not in (*categories, PROCEDURE):
        near = get_close_matches(name, categories, n=1)
        cure = (
            f"did you mean {near[0]!r}"
            if near
            else f"there are {', '.join(categories)}; name more with Settings(categories=(...))"
        )
        raise FactError(f"no category {name!r}: {cure}. Nothing was recorded.")
    return name


def checked_scope(scope: object) -> FactScope:
    """The scope. Raises FactError for an unknown one."""
    for valid in SCOPES:
        if scope == valid:
            return valid
    raise FactError(f"a scope is one of {', '.join(SCOPES)}, not {scope!r}. Nothing was recorded.")


def checked_interval(start: object, end: object) -> None:
    """Raise FactError for invalid times, or an empty interval."""
    for time in (start, end):
        if time is not None and not (is_number(time) and math.isfinite(time)):
            raise FactError(f"a time is in seconds since the epoch, not {time!r}. Nothing was recorded.")
    if isinstance(start, int | float) and isinstance(end, int | float) and not start < end:
        raise FactError(f"a fact valid from {start} until {end} never holds. Nothing was recorded.")


def content_key(content: str) -> str:
    """The text by which facts are equal: case, white space, width and surrounding punctuation do not count.

    >>> content_key("  Prefers  TABS. ") == content_key("prefers tabs")
    True
    """
    text = content.encode("utf-8", "replace").decode()
    return normalize_text(unicodedata.normalize("NFKC", text))
