"""The reach of an erasure in a store, and the erasure of whole sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import quote

from pagein.errors import LogEncrypted, LogUnwritable
from pagein.events.entries import FactStated
from pagein.facts.owners import RESERVED, is_reserved
from pagein.log.base import Entry, LogStore, StoredLog
from pagein.log.branch_log import OWN, REGISTRY
from pagein.log.erasure import Cut, Removal
from pagein.memory.erasure.derived import ErasedParts
from pagein.memory.erasure.plan import cut_facts, cut_shown_facts, facts_from

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


def opened(logs: Iterable[StoredLog]) -> Iterator[StoredLog]:
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
) -> Erasure:
    """Erase the sessions of ``sizes``, which gives their numbers of entries, with what was derived from them.

    ``facts`` is the store of the facts; ``clear`` drops the index of one session.
    """
    check_erasable(root)
    erased: dict[str, ErasedParts] = {name: dict.fromkeys(range(size)) for name, size in sizes.items()}
    runs = [name for name in sizes if not is_reserved(name)]
    names = dict.fromkeys((*root.store.sessions(), *facts.sessions()))
    removals = [Removal(name, reason, trace and name in runs) for name in _with_parts(runs, names)]
    cuts = []
    # Without the run's key its facts, too, are among those that do not open.
    for log in opened(fact_logs(facts)) if _is_open(root) else fact_logs(facts):
        entries = tuple(log.read())
        positions = facts_from(entries, erased, lambda _: False)
        if all(removal.session != log.session for removal in removals) and (
            cut := cut_facts(log.session, entries, positions, reason)
        ):
            cuts.append(cut)
    for name in sizes:
        clear(name)
    if facts is root.store:
        root.erase((*removals, *cuts), at=at)
    else:
        root.erase([removal for removal in removals if not removal.session.startswith(RESERVED)], at=at)
        facts.erase([*(removal for removal in removals if removal.session.startswith(RESERVED)), *cuts], at=at)
    return Erasure(sum(sizes[name] for name in runs), count_facts(cuts), scrubbed=root.store.scrub())


def _with_parts(runs: Iterable[str], names: Iterable[str]) -> Iterator[str]:
    listed = tuple(names)
    for run in runs:
        yield run
        yield from session_parts(run, listed)


def session_parts(run: str, names: Iterable[str]) -> Iterator[str]:
    """The sessions that belong to a run: its branches, their registry, and the facts for it alone."""
    own = quote(run, safe="")
    for name in names:
        if (
            name == REGISTRY + run
            or (name.startswith(OWN) and name.removeprefix(OWN).partition(":")[2] == run)
            or (name.startswith(_OF_SESSIONS) and name.removeprefix(RESERVED).split(":")[2] == own)
        ):
            yield name
