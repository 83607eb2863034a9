"""Erasure of whole sessions, by name or by age, and of all facts of a user."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from pagein.backends.base import Store
from pagein.backends.open import open_store
from pagein.errors import ConfigurationError
from pagein.events.entries import Erased, FactStated
from pagein.facts.owners import RESERVED, is_reserved
from pagein.log.branch_log import OWN
from pagein.log.erasure import Cut
from pagein.memory.erasure import scope
from pagein.memory.erasure.plan import cut_facts


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """The result of a retention: sessions that are too old, with the time of their last entry, and the erasure.

    Times in seconds since the epoch.
    """

    sessions: tuple[tuple[str, float], ...] = ()
    erasure: scope.Erasure = field(default_factory=scope.Erasure)


def erase_session(
    url: str | os.PathLike[str], session: str, *, reason: str = "", trace: bool = True, **store: Any
) -> scope.Erasure:
    """Erase a whole session from a store: every branch of it, its index, and the facts that came from it alone.

    With ``trace`` its name stays listed, with one entry that says how many there were, when and why they were
    erased; without it nothing stays. ``store`` is what ``open_store`` takes, as ``tenant`` and ``key``. Raises
    ConfigurationError for an unknown session, LogError.
    """
    with _open(url, store) as logs:
        if session not in logs.sessions() or is_reserved(session):
            raise ConfigurationError(f"no session {session!r} in this store. Nothing was erased.")
        return _erase(logs, (session,), reason=reason, trace=trace, at=time.time())


def retain(
    url: str | os.PathLike[str],
    older_than: float,
    *,
    dry_run: bool = False,
    reason: str = "",
    trace: bool = True,
    now: float | None = None,
    **store: Any,
) -> RetentionResult:
    """Erase every session whose last entry is more than ``older_than`` seconds old, as ``erase_session`` does.

    Erased sessions and facts stay as they are: facts are an owner's, and expire on their own. With ``dry_run``
    nothing is changed. Raises ConfigurationError for an invalid age, LogError.
    """
    if isinstance(older_than, bool) or not isinstance(older_than, int | float) or not older_than > 0:
        raise ConfigurationError(f"older_than is an age in seconds, above 0, not {older_than!r}")
    at = time.time() if now is None else now
    with _open(url, store | {"readonly": dry_run}) as logs:
        names = logs.sessions()
        ages = {
            name: _last_time(logs, [name, *scope.session_parts(name, names)]) for name in names if not is_reserved(name)
        }
        old = tuple((name, last) for name, last in ages.items() if last is not None and at - last > older_than)
        if dry_run or not old:
            return RetentionResult(old)
        runs = [name for name, _ in old]
        return RetentionResult(old, _erase(logs, runs, reason=reason, trace=trace, at=at))


def erase_user(url: str | os.PathLike[str], user: str, *, reason: str = "", **store: Any) -> scope.Erasure:
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
        for log in scope.fact_logs(logs):
            entries = tuple(log.read()) if log.session in names else ()
            stated = {entry.position for entry in entries if isinstance(entry.body, FactStated)}
            if cut := cut_facts(log.session, entries, stated, reason):
                contents += scope.erased_contents(entries, cut)
                cuts.append(cut)
        if contents:
            cuts += scope.cut_shown(scope.opened(scope.run_logs(logs)), contents, reason)
        logs.erase(cuts, at=time.time())
        return scope.Erasure(facts=scope.count_facts(cuts), scrubbed=logs.scrub())


def _erase(store: Store, runs: Sequence[str], *, reason: str, trace: bool, at: float) -> scope.Erasure:
    names = store.sessions()
    branches = (
        name for run in runs for name in (run, *scope.session_parts(run, names)) if name == run or name.startswith(OWN)
    )
    sizes = {name: store.head(name) for name in branches}
    with contextlib.closing(store.log(runs[0])) as root, contextlib.closing(store.search_index()) as index:
        return scope.erase_sessions(root, store, sizes, index.clear, reason=reason, trace=trace, at=at)


def _last_time(store: Store, names: Iterable[str]) -> float | None:
    """The time of the newest entry of these sessions; None where there is nothing left to erase."""
    times: list[float] = []
    for name in names:
        if name.startswith(RESERVED):
            continue
        with contextlib.closing(store.log(name)) as log:
            head = log.head()
            last = next(iter(log.read(head - 1, head)), None) if head else None
        if last is not None and not (head == 1 and isinstance(last.body, Erased) and last.body.gone):
            times.append(last.at)
    return max(times, default=None)


@contextlib.contextmanager
def _open(url: str | os.PathLike[str], options: Mapping[str, Any]) -> Iterator[Store]:
    """The store at an address. Raises ConfigurationError for one in memory, LogUnwritable."""
    with contextlib.closing(open_store(url, **options)) as store:
        if not store.is_durable:
            raise ConfigurationError("sessions in memory end with their memory; name a file or a server")
        yield store
