"""Whole sessions that go: asked for by name, or because they are old; and what is known of one user."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote

from pagein.backends.open import open_log
from pagein.backends.search import archive_of
from pagein.errors import ConfigurationError
from pagein.events.entries import Erased, FactStated
from pagein.facts.owners import RESERVED, is_reserved
from pagein.log.branch_log import OWN
from pagein.log.erasure import Cut, ErasableLog
from pagein.memory.erasure.plan import facts_cut
from pagein.memory.erasure.scope import (
    Erasure,
    contents_of,
    erasable,
    fact_logs,
    names_of,
    run_logs,
    sessions_of,
    shown_cuts,
    stated_in,
    take_out,
)
from pagein.memory.facts_runtime import open_beside

DAY = 86_400.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Retained:
    """What a retention did, or would do: the sessions that are too old, with when each was last written to.

    Times in seconds since the epoch.
    """

    sessions: tuple[tuple[str, float], ...] = ()
    erasure: Erasure = field(default_factory=Erasure)


def erase_session(
    url: str | os.PathLike[str], session: str, *, reason: str = "", trace: bool = True, **store: Any
) -> Erasure:
    """Erase a whole session from a store: every branch of it, its index, and the facts that came of it alone.

    With ``trace`` its name stays listed, with one entry that says how many there were, when and why it went; without
    it nothing of it stays. ``store`` is what ``open_log`` takes, as ``tenant`` and ``key``. Raises ConfigurationError
    for a session there is not, LogError.
    """
    with _opened(url, session, store) as root:
        names = sessions_of(root)
        if session not in names or is_reserved(session):
            raise ConfigurationError(f"no session {session!r} in this store. Nothing was erased.")
        return _gone(root, (session,), url, store, reason=reason, trace=trace, at=time.time())


def retain(
    url: str | os.PathLike[str],
    older_than: float,
    *,
    dry_run: bool = False,
    reason: str = "",
    trace: bool = True,
    now: float | None = None,
    **store: Any,
) -> Retained:
    """Erase every session whose last entry is more than ``older_than`` seconds old, whole, as ``erase_session`` does.

    A session that was erased already is left as it is, as are facts: those are an owner's, and have their own end. With
    ``dry_run`` nothing is changed. Raises ConfigurationError for an age that is none, LogError.
    """
    if isinstance(older_than, bool) or not isinstance(older_than, int | float) or not older_than > 0:
        raise ConfigurationError(f"older_than is an age in seconds, above 0, not {older_than!r}")
    at = time.time() if now is None else now
    with _opened(url, "default", store | {"readonly": dry_run}) as root:
        every = sessions_of(root)
        ages = {
            name: _last(url, [name, *names_of(name, every)], store) for name in every if not is_reserved(name)
        }
        old = tuple(
            (name, last) for name, last in ages.items() if last is not None and at - last > older_than
        )
        if dry_run or not old:
            return Retained(old)
        gone = [name for name, _ in old]
        return Retained(old, _gone(root, gone, url, store, reason=reason, trace=trace, at=at))


def erase_user(url: str | os.PathLike[str], user: str, *, reason: str = "", **store: Any) -> Erasure:
    """Erase what is known of a user: every fact in a scope of theirs, with its history. Runs stay.

    Raises ConfigurationError where nothing is known of them, LogError.
    """
    if not isinstance(user, str) or not user.strip():
        raise ConfigurationError(f"a user is a name, not {user!r}")
    mine = tuple(
        f"{RESERVED}{scope}:{quote(user, safe='')}" for scope in ("user", "project", "session", "task")
    )
    with _opened(url, "default", store) as root:
        names = [
            each
            for each in sessions_of(root)
            if each in mine or each.startswith(tuple(f"{at}:" for at in mine))
        ]
        if not names:
            raise ConfigurationError(
                f"nothing is known of a user {user!r} in this store. Nothing was erased."
            )
        cuts: list[Cut] = []
        contents: list[str] = []
        beside = partial(open_beside, url, **store)
        for log in fact_logs(root, beside):
            entries = tuple(log.read()) if log.session in names else ()
            stated = {each.position for each in entries if isinstance(each.body, FactStated)}
            if cut := facts_cut(log.session, entries, stated, reason):
                contents += contents_of(entries, cut)
                cuts.append(cut)
        if contents:
            cuts += shown_cuts(run_logs(root, beside), contents, reason)
        root.erase(cuts, at=time.time())
        return Erasure(facts=stated_in(cuts), scrubbed=root.scrub())


def _gone(
    root: ErasableLog,
    runs: Sequence[str],
    url: str | os.PathLike[str],
    store: Mapping[str, Any],
    *,
    reason: str,
    trace: bool,
    at: float,
) -> Erasure:
    every = sessions_of(root)
    sizes = {}
    for name in (
        each for run in runs for each in (run, *(at for at in names_of(run, every) if at.startswith(OWN)))
    ):
        with contextlib.closing(open_beside(url, name, **store)) as log:
            sizes[name] = log.head()
    with contextlib.closing(archive_of(root)) as archive:
        return take_out(
            root, partial(open_beside, url, **store), sizes, archive.clear,
            reason=reason, trace=trace, at=at,
        )  # fmt: skip


def _last(url: str | os.PathLike[str], names: Iterable[str], store: Mapping[str, Any]) -> float | None:
    """When the newest entry of any of these was written; None where there is nothing left to erase."""
    found: list[float] = []
    for name in names:
        if name.startswith(RESERVED):
            continue
        with contextlib.closing(open_beside(url, name, **{**store, "readonly": True})) as log:
            head = log.head()
            last = next(iter(log.read(head - 1, head)), None) if head else None
        if last is not None and not (head == 1 and isinstance(last.body, Erased) and last.body.gone):
            found.append(last.at)
    return max(found, default=None)


@contextlib.contextmanager
def _opened(url: str | os.PathLike[str], session: str, store: Mapping[str, Any]) -> Iterator[ErasableLog]:
    """A log by which the whole store is reached. Raises ConfigurationError for one that is in no store."""
    options = dict(store)
    with contextlib.closing(open_log(url, session=session, **options)) as log:
        if options.get("readonly"):
            yield log  # type: ignore[misc] # it is only looked at
            return
        root = erasable(log)
        if not root.joint:
            raise ConfigurationError("sessions in memory end with their memory; name a file or a server")
        yield root
