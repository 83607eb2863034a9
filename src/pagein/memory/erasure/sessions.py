"""The reach of an erasure in a store; erasure of whole sessions, by name or by age, and of all facts of a user."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, unquote

from pagein.backends.base import Store
from pagein.backends.open import open_store
from pagein.errors import ConfigurationError, Conflict, LogEncrypted, LogUnwritable
from pagein.events.entries import Erased, FactStated
from pagein.facts.owners import RESERVED, is_reserved
from pagein.log.base import Entry, LogStore, StoredLog
from pagein.log.branch_log import OWN, REGISTRY
from pagein.log.erasure import Cut, Removal
from pagein.memory.erasure.plan import cut_facts, cut_shown_facts, facts_from
from pagein.memory.erasure.redact import ErasedParts

ENTRIES_AT_ONCE = 20_000
"""Entries that are erased in one transaction, about: who writes to the store waits for a moment, and not for all of them."""

LAST_ENTRIES = 32
"""Entries of which the newest time is that of a run."""

_OF_SESSIONS = (f"{RESERVED}session:", f"{RESERVED}task:")


@dataclass(frozen=True, slots=True)
class Erasure:
    """The result of an erasure: the run's entries, the facts, and the entries that had repeated them.

    ``elsewhere`` are handles of other steps that contain a line of it in their own right, and ids of facts that name
    no step and say it: they were not named, and stay. ``scrubbed`` is True where the files were written anew, and searched for the longest words that
    only the erased steps had; False where another connection was open, or a word was found.
    """

    entries: int = 0
    facts: int = 0
    derived: int = 0
    elsewhere: tuple[str, ...] = ()
    scrubbed: bool = True


def fact_logs(store: LogStore) -> Iterator[StoredLog]:
    """The logs of facts in a store, one after the other; each is closed when the next is read."""
    return _logs(store, (name for name in store.sessions() if name.startswith(RESERVED)))


def run_logs(store: LogStore) -> Iterator[StoredLog]:
    """The logs of runs and branches in a store, one after the other; each is closed when the next is read."""
    return _logs(store, (name for name in store.sessions() if not name.startswith((RESERVED, REGISTRY))))


def _logs(store: LogStore, names: Iterable[str]) -> Iterator[StoredLog]:
    for name in names:
        with closing(store.log(name)) as log:
            yield log


def openable_logs(logs: Iterable[StoredLog]) -> Iterator[StoredLog]:
    """Those of the logs that the store's key opens. A run's facts have its key: nothing of it is in the others."""
    return (log for log in logs if _is_open(log))


def _is_open(log: StoredLog) -> bool:
    try:
        next(iter(log.read(0, 1)), None)
    except LogEncrypted:
        return False
    return True


def cut_shown(logs: Iterable[StoredLog], contents: Sequence[str], reason: str) -> Iterator[Cut]:
    """The cuts that erase facts from the blocks that the views of runs showed."""
    for log in logs:
        if cut := cut_shown_facts(log.session, tuple(log.read()), contents, reason):
            yield cut


def erased_contents(entries: Sequence[Entry], cut: Cut) -> list[str]:
    """The contents of the facts that a cut erases."""
    bodies = (entry.body for entry in entries if entry.position in cut.bodies and entry.erased is None)
    return [body.content for body in bodies if isinstance(body, FactStated)]


def count_facts(cuts: Iterable[Cut]) -> int:
    """Count the facts that these cuts erase."""
    return sum(isinstance(body, FactStated) for cut in cuts for body in cut.bodies.values())


def check_erasable(log: StoredLog) -> StoredLog:
    """The log, unchanged. Raises ConfigurationError or LogUnwritable where its entries cannot be erased."""
    if log.readonly:
        raise LogUnwritable("this was opened with readonly=True. Nothing was erased.")
    if not log.store.can_erase:
        log.erase((), at=0.0)  # it says why not
    return log


def erase_sessions(
    root: StoredLog,
    facts: LogStore,
    sizes: Mapping[str, int],
    clear: Callable[[str], None],
    *,
    reason: str,
    trace: bool,
    at: float,
    unless_changed: bool = False,
) -> Erasure:
    """Erase the sessions of ``sizes``, which gives their numbers of entries, with what was derived from them; scrub nothing.

    ``facts`` is the store of the facts; ``clear`` drops the index of one session. With ``unless_changed`` Conflict is
    raised where a session has another number of entries, and nothing is erased.
    """
    check_erasable(root)
    erased: dict[str, ErasedParts] = {name: dict.fromkeys(range(size)) for name, size in sizes.items()}
    runs = [name for name in sizes if not is_reserved(name)]
    heads = sizes if unless_changed else {}
    parts = group_parts(dict.fromkeys((*root.store.sessions(), *facts.sessions())))
    leaving = (name for run in runs for name in (run, *parts.get(run, ())))
    removals = [Removal(name, reason, trace and name in runs, heads.get(name)) for name in leaving]
    cuts = []
    # Without the run's key its facts, too, are among those that do not open.
    for log in openable_logs(fact_logs(facts)) if _is_open(root) else fact_logs(facts):
        entries = tuple(log.read())
        positions = facts_from(entries, erased, lambda _: False)
        if all(removal.session != log.session for removal in removals) and (
            cut := cut_facts(log.session, entries, positions, reason, sizes)
        ):
            cuts.append(cut)
    for name in sizes:
        clear(name)
    if facts is root.store:
        root.erase((*removals, *cuts), at=at)
    else:
        root.erase([removal for removal in removals if not removal.session.startswith(RESERVED)], at=at)
        facts.erase([*(removal for removal in removals if removal.session.startswith(RESERVED)), *cuts], at=at)
    return Erasure(sum(sizes[name] for name in runs), count_facts(cuts))


def group_parts(names: Iterable[str]) -> dict[str, list[str]]:
    """The sessions that belong to each run: its branches, their registry, and the facts for it alone."""
    parts: dict[str, list[str]] = {}
    for name in names:
        if name.startswith(REGISTRY):
            parts.setdefault(name.removeprefix(REGISTRY), []).append(name)
        elif name.startswith(OWN):
            parts.setdefault(name.removeprefix(OWN).partition(":")[2], []).append(name)
        elif name.startswith(_OF_SESSIONS):
            parts.setdefault(unquote(name.removeprefix(RESERVED).split(":")[2]), []).append(name)
    return parts


# Whole sessions, by name or by age, and all facts of a user


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """The result of a retention: sessions that are too old, with the time of their last entry, and the erasure.

    Times in seconds since the epoch.
    """

    sessions: tuple[tuple[str, float], ...] = ()
    erasure: Erasure = field(default_factory=Erasure)


def erase_session(
    url: str | os.PathLike[str], session: str, *, reason: str = "", trace: bool = True, **store: Any
) -> Erasure:
    """Erase a whole session from a store: every branch of it, its index, and the facts that came from it alone.

    With ``trace`` its name stays listed, with one entry that says how many there were, when and why they were
    erased; without it nothing stays. ``store`` is what ``open_store`` takes, as ``tenant`` and ``key``. Raises
    ConfigurationError for an unknown session, LogError.
    """
    with _open(url, store) as logs:
        names = logs.sessions()
        if session not in names or is_reserved(session):
            raise ConfigurationError(f"no session {session!r} in this store. Nothing was erased.")
        sizes = {name: logs.head(name) for name in _branch_logs((session,), group_parts(names))}
        erasure = _erase(logs, sizes, reason=reason, trace=trace, at=time.time())
        return replace(erasure, scrubbed=logs.scrub())


def retain(
    url: str | os.PathLike[str],
    older_than: float,
    *,
    dry_run: bool = False,
    reason: str = "",
    trace: bool = True,
    now: float | None = None,
    tell: Callable[[int, int], None] = lambda *_: None,
    **store: Any,
) -> RetentionResult:
    """Erase every session whose last entry is more than ``older_than`` seconds old, as ``erase_session`` does.

    ``tell`` is told how many sessions were looked at or erased, of how many.

    A run that gets an entry meanwhile stays. Erased sessions and facts stay as they are: facts are an owner's, and
    expire on their own. With ``dry_run`` nothing is changed. Raises ConfigurationError for an invalid age, LogError.
    """
    if isinstance(older_than, bool) or not isinstance(older_than, int | float) or not older_than > 0:
        raise ConfigurationError(f"older_than is an age in seconds, above 0, not {older_than!r}")
    at = time.time() if now is None else now
    with _open(url, store | {"readonly": dry_run}) as logs:
        names = logs.sessions()
        parts = group_parts(names)
        runs = [name for name in names if not is_reserved(name)]
        ages: dict[str, float | None] = {}
        for name in runs:
            ages[name] = _last_time(logs, [name, *parts.get(name, ())])
            tell(len(ages), len(runs))
        old = tuple((name, last) for name, last in ages.items() if last is not None and at - last > older_than)
        if dry_run or not old:
            return RetentionResult(old)
        gone: list[tuple[str, float]] = []
        entries = facts = 0
        for batch in _batches(logs, old, parts):
            erased, erasure = _erase_old(logs, batch, parts, reason, trace, at)
            gone += erased
            entries, facts = entries + erasure.entries, facts + erasure.facts
            tell(min(len(gone), len(old)), len(old))
        return RetentionResult(tuple(gone), Erasure(entries, facts, scrubbed=logs.scrub()))


def _batches(
    store: Store, old: Iterable[tuple[str, float]], parts: Mapping[str, Sequence[str]]
) -> Iterator[Sequence[tuple[str, float]]]:
    """The runs in groups that are erased in one transaction each."""
    batch: list[tuple[str, float]] = []
    entries = 0
    for run, last in old:
        batch.append((run, last))
        entries += sum(map(store.head, _branch_logs((run,), parts)))
        if entries >= ENTRIES_AT_ONCE:
            yield batch
            batch, entries = [], 0
    yield batch


def _erase_old(
    store: Store,
    old: Sequence[tuple[str, float]],
    parts: Mapping[str, Sequence[str]],
    reason: str,
    trace: bool,
    at: float,
) -> tuple[Sequence[tuple[str, float]], Erasure]:
    """Erase those of the runs that still have no entry after their times, in one transaction; return them."""
    heads = {name: store.head(name) for name in _branch_logs([run for run, _ in old], parts)}
    old = [(run, last) for run, last in old if _last_time(store, [run, *parts.get(run, ())]) == last]
    while old:
        sizes = {name: heads[name] for name in _branch_logs([run for run, _ in old], parts)}
        try:
            return old, _erase(store, sizes, reason=reason, trace=trace, at=at, unless_changed=True)
        except Conflict:  # somebody goes on with one of them in this moment, whatever his clock says
            old = [row for row in old if all(store.head(name) == heads[name] for name in _branch_logs(row[:1], parts))]
    return (), Erasure()


def erase_user(url: str | os.PathLike[str], user: str, *, reason: str = "", **store: Any) -> Erasure:
    """Erase every fact in a scope of a user, with its history. Runs stay.

    Raises ConfigurationError where there are no facts of the user, LogError.
    """
    if not isinstance(user, str) or not user.strip():
        raise ConfigurationError(f"a user is a name, not {user!r}")
    mine = tuple(f"{RESERVED}{name}:{quote(user, safe='')}" for name in ("user", "project", "session", "task"))
    with _open(url, store) as logs:
        names = [
            name for name in logs.sessions() if name in mine or name.startswith(tuple(f"{prefix}:" for prefix in mine))
        ]
        if not names:
            raise ConfigurationError(f"nothing is known of a user {user!r} in this store. Nothing was erased.")
        cuts: list[Cut] = []
        contents: list[str] = []
        for log in fact_logs(logs):
            entries = tuple(log.read()) if log.session in names else ()
            stated = {entry.position for entry in entries if isinstance(entry.body, FactStated)}
            if cut := cut_facts(log.session, entries, stated, reason):
                contents += erased_contents(entries, cut)
                cuts.append(cut)
        if contents:
            cuts += cut_shown(openable_logs(run_logs(logs)), contents, reason)
        logs.erase(cuts, at=time.time())
        return Erasure(facts=count_facts(cuts), scrubbed=logs.scrub())


def _branch_logs(runs: Iterable[str], parts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The sessions that have the entries of these runs: their own, and those of their branches."""
    for run in runs:
        yield run
        yield from (name for name in parts.get(run, ()) if name.startswith(OWN))


def _erase(
    store: Store, sizes: Mapping[str, int], *, reason: str, trace: bool, at: float, unless_changed: bool = False
) -> Erasure:
    with contextlib.closing(store.log(next(iter(sizes)))) as root, contextlib.closing(store.search_index()) as index:
        return erase_sessions(
            root, store, sizes, index.clear, reason=reason, trace=trace, at=at, unless_changed=unless_changed
        )


def _last_time(store: Store, names: Iterable[str]) -> float | None:
    """The newest time in these sessions; None where there is nothing left to erase.

    It is that of the last entries or of the first, whichever is later: a clock may have gone back.
    """
    times: list[float] = []
    for name in names:
        if name.startswith(RESERVED):
            continue
        with contextlib.closing(store.log(name)) as log:
            head = log.head()
            last = next(iter(log.read(0, 1)), None) if head == 1 else None
            if last is None or not (isinstance(last.body, Erased) and last.body.gone):
                times += [row.at for row in (*log.rows(0, 1), *log.rows(max(1, head - LAST_ENTRIES), head))]
    return max(times, default=None)


@contextlib.contextmanager
def _open(url: str | os.PathLike[str], options: Mapping[str, Any]) -> Iterator[Store]:
    """The store at an address. Raises ConfigurationError for one in memory, LogUnwritable."""
    with contextlib.closing(open_store(url, **options)) as store:
        if not store.is_durable:
            raise ConfigurationError("sessions in memory end with their memory; name a file or a server")
        yield store
