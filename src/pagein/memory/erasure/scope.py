"""What of a store is in reach of an erasure, and how whole sessions leave it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from pagein.errors import ConfigurationError, LogUnwritable
from pagein.events.entries import FactStated
from pagein.facts.owners import RESERVED, is_reserved
from pagein.log.base import Entry, Log
from pagein.log.branch_log import OWN, REGISTRY
from pagein.log.erasure import Cut, ErasableLog, Removal
from pagein.memory.erasure.derived import Gone
from pagein.memory.erasure.plan import facts_cut, facts_of, unshown

_OF_SESSIONS = (f"{RESERVED}session:", f"{RESERVED}task:")


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was erased: how many entries of the run, how many facts, and in how many entries it had been repeated.

    ``elsewhere`` are handles of other steps that say a line of it in their own right: they were not asked for, and
    stay. ``scrubbed`` is False where files could not be written anew because another connection was in the way.
    """

    entries: int = 0
    facts: int = 0
    derived: int = 0
    elsewhere: tuple[str, ...] = ()
    scrubbed: bool = True


def fact_logs(root: ErasableLog, open_log: Callable[[str], Log]) -> Iterator[ErasableLog]:
    """The logs of facts in a store, one after the other; each is closed when the next is asked for."""
    for name in sessions_of(root):
        if name.startswith(RESERVED):
            log = erasable(open_log(name))
            try:
                yield log
            finally:
                log.close()


def run_logs(root: ErasableLog, open_log: Callable[[str], Log]) -> Iterator[ErasableLog]:
    """The logs of runs in a store, branches too, one after the other; each is closed when the next is asked for."""
    for name in sessions_of(root):
        if not name.startswith((RESERVED, REGISTRY)):
            log = erasable(open_log(name))
            try:
                yield log
            finally:
                log.close()


def shown_cuts(logs: Iterable[ErasableLog], contents: Sequence[str], reason: str) -> Iterator[Cut]:
    """The cuts that take facts out of what the views of runs were shown of them."""
    for log in logs:
        if cut := unshown(log.session, tuple(log.read()), contents, reason):
            yield cut


def contents_of(entries: Sequence[Entry], cut: Cut) -> list[str]:
    """What the facts say that a cut erases."""
    found = (each.body for each in entries if each.position in cut.bodies and each.erased is None)
    return [body.content for body in found if isinstance(body, FactStated)]


def stated_in(cuts: Iterable[Cut]) -> int:
    """How many facts cuts erase."""
    return sum(isinstance(body, FactStated) for cut in cuts for body in cut.bodies.values())


def sessions_of(log: Log) -> tuple[str, ...]:
    """The sessions of a store's tenant, those that are ours among them."""
    names: Iterable[str] = getattr(log, "sessions", tuple)()
    return tuple(names)


def erasable(log: Log) -> ErasableLog:
    """The log as one that can forget. Raises ConfigurationError, LogUnwritable; nothing was erased then."""
    if getattr(log, "readonly", False):
        raise LogUnwritable("this was opened with readonly=True. Nothing was erased.")
    if isinstance(log, ErasableLog):
        return log
    raise ConfigurationError(f"a {type(log).__name__} cannot erase: it is no pagein.log.erasure.ErasableLog")


def take_out(
    root: ErasableLog,
    open_beside: Callable[[str], Log],
    sizes: Mapping[str, int],
    clear: Callable[[str], None],
    *,
    reason: str,
    trace: bool,
    at: float,
    held: Sequence[ErasableLog] = (),
) -> Erasure:
    """Erase the sessions of ``sizes``, which says how many entries each has, with what was made of them.

    ``clear`` drops the index of one; ``held`` are the logs of a store whose sessions cannot be opened twice.
    """
    gone: dict[str, Gone] = {name: dict.fromkeys(range(size)) for name, size in sizes.items()}
    names = sessions_of(root) or tuple(sizes)
    runs = [each for each in sizes if not is_reserved(each)]
    removals = [Removal(each, reason, trace and each in runs) for each in _whole(runs, names)]
    cuts = []
    for log in fact_logs(root, open_beside) if root.joint else ():
        entries = tuple(log.read())
        wanted = facts_of(entries, gone, lambda _: False)
        if all(each.session != log.session for each in removals) and (
            cut := facts_cut(log.session, entries, wanted, reason)
        ):
            cuts.append(cut)
    for name in sizes:
        clear(name)
    if root.joint:
        root.erase((*removals, *cuts), at=at)
    else:
        for log in held:
            log.erase([each for each in removals if each.session == log.session], at=at)
    return Erasure(sum(sizes[each] for each in runs), stated_in(cuts), scrubbed=root.scrub())


def _whole(runs: Iterable[str], names: Sequence[str]) -> Iterator[str]:
    for run in runs:
        yield run
        yield from names_of(run, names)


def names_of(run: str, names: Iterable[str]) -> Iterator[str]:
    """The sessions of a store that are a run's: its branches, which there are, and the facts for it alone."""
    own = quote(run, safe="")
    for name in names:
        if (
            name == REGISTRY + run
            or (name.startswith(OWN) and name.removeprefix(OWN).partition(":")[2] == run)
            or (name.startswith(_OF_SESSIONS) and name.removeprefix(RESERVED).split(":")[2] == own)
        ):
            yield name
