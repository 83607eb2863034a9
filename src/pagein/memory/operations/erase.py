"""The erase operations: names are resolved, the entries erased, and the run folded again without them."""

from __future__ import annotations

from pagein.errors import ConfigurationError, UnknownHandle
from pagein.events.entries import FactScope
from pagein.events.handles import Handle, parse_handle
from pagein.facts.fact import checked_scope, parse_fact_id
from pagein.memory._state import RunState
from pagein.memory.branches import MAIN
from pagein.memory.erasure.sessions import Erasure
from pagein.memory.operations.history import expand
from pagein.memory.operations.load import catch_up, rebuild_after_erasure, restart_empty
from pagein.memory.operations.summarize import cancel_summary

REASON_MAX_CHARACTERS = 500
"""Characters of a reason: it stays, and is no place for what was erased."""


def erase(run: RunState, handles: tuple[str | int, ...], reason: str) -> Erasure:
    """Erase steps, results or pins by their handles, or facts by their ids. Raises UnknownHandle, LogError."""
    reason = check_reason(reason)
    if not handles:
        raise ConfigurationError("name what is to be erased: a handle such as 's12', or a fact's id such as 'fu12'")
    if not run.log.unwritten:
        catch_up(run)  # a handle may be of what another recorded
    places: dict[int, frozenset[int] | None] = {}
    facts: list[tuple[FactScope, int]] = []
    for handle in handles:
        if isinstance(handle, str) and handle.strip("[] \n").startswith("f"):
            facts.append(parse_fact_id(handle))
        else:
            named = _parse_place(run, handle)
            if named.observation is not None:
                expand(run, handle)  # it raises for a result that is not there
            for at in range(named.first, named.last):
                parts, one = places.get(at, frozenset()), named.observation
                places[at] = None if one is None or parts is None else parts | {one}
    erasure = Erasure()
    if places:
        cancel_summary(run)
        erasure = run.runtime.eraser().erase(places, reason)
        rebuild_after_erasure(run)
    for scope, position in facts:
        erasure = add_erasures(erasure, run.runtime.eraser().erase_facts(scope, position, reason))
    if facts:
        rebuild_after_erasure(run)
    return erasure


def erase_facts(run: RunState, scope: FactScope, reason: str) -> Erasure:
    """Erase every fact of the scope's owner, with its history."""
    erasure = run.runtime.eraser().erase_facts(checked_scope(scope), None, check_reason(reason))
    rebuild_after_erasure(run)
    return erasure


def erase_session(run: RunState, reason: str, *, trace: bool) -> Erasure:
    """Erase the run, and go on with an empty one."""
    reason = check_reason(reason)
    cancel_summary(run)
    erasure = run.runtime.eraser().erase_session(reason, trace)
    run.runtime.move_to(run.runtime.branch_log(MAIN))
    restart_empty(run)
    return erasure


def _parse_place(run: RunState, handle: object) -> Handle:
    named = parse_handle(handle) if isinstance(handle, str) else None
    if isinstance(handle, int) and not isinstance(handle, bool):
        named = Handle(handle, handle + 1)
    if named is None or not 0 <= named.first < named.last <= run.fold.head:
        raise UnknownHandle(str(handle), run.fold.head)
    return named


def add_erasures(one: Erasure, other: Erasure) -> Erasure:
    """Add up two erasures."""
    return Erasure(
        one.entries + other.entries, one.facts + other.facts, one.derived + other.derived,
        (*one.elsewhere, *other.elsewhere), one.scrubbed and other.scrubbed,
    )  # fmt: skip


def check_reason(reason: object) -> str:
    """The reason, unchanged. Raises ConfigurationError for anything but a short text."""
    if not isinstance(reason, str) or len(reason) > REASON_MAX_CHARACTERS:
        raise ConfigurationError(
            f"a reason is a text of at most {REASON_MAX_CHARACTERS} characters; it is kept in the record"
        )
    return reason
