"""The verbs, written once: what is asked for is looked up, erased, and the run folded anew without it."""

from __future__ import annotations

from pagein.errors import ConfigurationError, UnknownHandle
from pagein.events.entries import FactScope
from pagein.events.handles import Handle, parse_handle
from pagein.facts.fact import checked_scope
from pagein.log.base import Log
from pagein.memory._effects import Flow
from pagein.memory._state import Session
from pagein.memory.branches import MAIN, Asked, Moved
from pagein.memory.erasure.colours import Erase
from pagein.memory.erasure.scope import Erasure
from pagein.memory.operations.load import catch_up, healed
from pagein.memory.operations.view import thrown_away

MOST_REASON = 500
"""Characters of a reason: it stays, and is no place for what was erased."""


def erase(session: Session, handles: tuple[str | int, ...], reason: str) -> Flow[Erasure]:
    """Erase steps, results or pins by their handles, or facts by their ids. Raises UnknownHandle, LogError."""
    reason = checked_reason(reason)
    if not handles:
        raise ConfigurationError(
            "name what is to be erased: a handle such as 's12', or a fact's id such as 'fu12'"
        )
    if not session.unwritten:
        yield from catch_up(session)  # a handle may be of what another recorded
    places: dict[int, frozenset[int] | None] = {}
    facts: list[tuple[FactScope, int]] = []
    for each in handles:
        if isinstance(each, str) and each.strip("[] \n").startswith("f"):
            from pagein.facts.fact import parsed_id  # noqa: PLC0415 - loads where facts are meant

            facts.append(parsed_id(each))
        else:
            _add(places, _named(session, each))
    done = Erasure()
    if places:
        yield from thrown_away(session)
        done = yield from Erase("erase", (places, reason))
        yield from healed(session)
    for scope, position in facts:
        done = joined(done, (yield from Erase("erase_facts", (scope, position, reason))))
    if facts:
        yield from healed(session)
    return done


def erase_facts(session: Session, scope: FactScope, reason: str) -> Flow[Erasure]:
    """Erase every fact of the owner that a scope has here, with its history."""
    done = yield from Erase("erase_facts", (checked_scope(scope), None, checked_reason(reason)))
    yield from healed(session)
    return done


def erase_session(session: Session, reason: str, *, trace: bool) -> Flow[Erasure]:
    """Erase the run, and go on with an empty one."""
    reason = checked_reason(reason)
    yield from thrown_away(session)
    done = yield from Erase("erase_session", (reason, trace))
    root: Log = yield from Asked("log", (MAIN,))
    yield from Moved(root, root.head())
    session.rendered.clear()
    yield from healed(session)
    session.heard, session.heard_at = [], []
    return done


def _named(session: Session, handle: object) -> Handle:
    named = parse_handle(handle) if isinstance(handle, str) else None
    if isinstance(handle, int) and not isinstance(handle, bool):
        named = Handle(handle, handle + 1)
    if named is None or not 0 <= named.first < named.last <= session.fold.head:
        raise UnknownHandle(str(handle), session.fold.head)
    return named


def _add(places: dict[int, frozenset[int] | None], named: Handle) -> None:
    for at in range(named.first, named.last):
        parts = places.get(at, frozenset())
        one = named.observation
        places[at] = None if one is None or parts is None else parts | {one}


def joined(one: Erasure, other: Erasure) -> Erasure:
    """Two erasures told as one."""
    return Erasure(
        one.entries + other.entries, one.facts + other.facts, one.derived + other.derived,
        (*one.elsewhere, *other.elsewhere), one.scrubbed and other.scrubbed,
    )  # fmt: skip


def checked_reason(reason: object) -> str:
    """The reason, unchanged. Raises ConfigurationError for one that is no short text."""
    if not isinstance(reason, str) or len(reason) > MOST_REASON:
        raise ConfigurationError(
            f"a reason is a text of at most {MOST_REASON} characters; it is kept in the record"
        )
    return reason
