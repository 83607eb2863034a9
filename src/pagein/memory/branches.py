"""Branches of a run: forked at a position, each with views, compactions and summaries of its own.

Which branches there are, and on which one the run goes on, is a log of its own beside the run's: a fork is one entry
there, whatever the run's length. Nothing is ever taken back: to rewind is to fork at an earlier position and go on there.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any

from pagein.context.view.fold import Fold
from pagein.errors import ConfigurationError, LogUnreadable, LogUnwritable, UnknownBranch, UnknownCheckpoint
from pagein.events.entries import Checkpoint, Observed
from pagein.events.handles import parse_handle, range_handle
from pagein.events.steps import Step
from pagein.log.base import Entry, Log
from pagein.log.branch_log import OWN, REGISTRY, BranchLog, Piece
from pagein.memory._effects import Effect, Flow, Read
from pagein.memory._state import Session
from pagein.memory.operations.load import keep, load
from pagein.memory.operations.view import thrown_away

MAIN = "main"
FORK, SWITCH, DROP = "pagein:fork", "pagein:switch", "pagein:drop"
LONGEST = 100
"""Characters of a branch's name."""

OpenLog = Callable[[str], Log]
"""The log of a name, in the store and the tenant of the run."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch: its name, the one it was forked from, and the position from which its entries are its own.

    ``parent`` is None for ``main``. ``digest`` is that of the last entry before the fork. ``is_dropped``: it was left.
    """

    name: str
    parent: str | None = None
    at: int = 0
    head: int = 0
    is_current: bool = False
    digest: str = field(default="", repr=False)
    is_dropped: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two branches have in common, ``[0, common)``, and the steps that only one of them has, by position."""

    common: int
    left: tuple[tuple[int, Step], ...]
    right: tuple[tuple[int, Step], ...]

    @property
    def handle(self) -> str:
        """The handle of what both have; "" where that is nothing."""
        return range_handle(0, self.common) if self.common else ""


@dataclass(frozen=True)
class Asked(Effect[Any]):
    """Have the run's ``Grove`` do something."""

    verb: str
    given: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Moved(Effect[None]):
    """Go on with another log from here."""

    log: Log
    head: int


@dataclass(frozen=True, slots=True)
class Known:
    """What the log of the branches says: the branches by name, on which the run goes on, and where each has its own."""

    branches: dict[str, Branch]
    last: str
    sessions: dict[str, str]


class Grove:
    """The branches of one run: opened where they are wanted, and closed together. Threads may share it.

    ``root`` is the log of ``main``; ``open_log`` opens another session beside it. Every method raises ConfigurationError,
    UnknownBranch or a LogError, and then nothing was changed.
    """

    def __init__(self, root: Log, open_log: OpenLog) -> None:
        self.root = root
        self.current = MAIN
        self._open_log = open_log
        self._session: str = getattr(root, "session", "default")
        self._logs: dict[str, Log] = {}
        self._lock = threading.RLock()
        self._read: tuple[int, Known] | None = None

    def branches(self) -> tuple[Branch, ...]:
        """All of them, oldest first, those that were dropped too."""
        return tuple(
            replace(each, head=self.log(each.name).head(), is_current=each.name == self.current)
            for each in self._known()[1].branches.values()
        )

    def log(self, name: str) -> Log:
        """The log of a branch. Raises UnknownBranch."""
        with self._lock:
            known = self._known()[1]
            if name not in known.branches:
                raise UnknownBranch(name, tuple(known.branches))
            if name == MAIN:
                return self.root
            if name not in self._logs:
                own = self._beside(known.sessions[name])
                self._logs[name] = BranchLog(tuple(self._pieces(known, name)), own)
            return self._logs[name]

    def entries(self, log: Log) -> tuple[Entry, ...]:
        """All entries of a log."""
        return tuple(log.read())

    def last(self) -> str:
        """The name of the branch on which the run goes on when it is opened."""
        return self._known()[1].last

    def fork(self, name: str | None, at: int, now: float) -> str:
        """Note a new branch from the current one, durably; its name. Raises Conflict where another noted one meanwhile."""
        self._check_writable()
        with self._lock:
            after, known = self._known()
            branches = known.branches
            if name is None:
                name = next(
                    each for n in range(1, len(branches) + 2) if (each := f"branch-{n}") not in branches
                )
            if checked_branch(name) in branches:
                raise ConfigurationError(f"there is a branch {name!r} already")
            parent = branches[self.current]
            while at <= parent.at and parent.parent is not None:
                parent = branches[parent.parent]  # what stands there is another's own
            last = next(iter(self.log(self.current).read(at - 1, at)), None) if at else None
            state = {"name": name, "parent": parent.name, "at": at, "digest": last.digest if last else ""}
            self._note(FORK, state, after, now)
            return name

    def switch(self, name: str, now: float) -> None:
        """Note that the run goes on there, durably."""
        self._check_writable()
        with self._lock:
            self.log(name)
            after, known = self._known()
            if known.last != name:
                self._note(SWITCH, {"to": name}, after, now)
            self.current = name

    def drop(self, name: str, now: float) -> None:
        """Note that nobody goes on with a branch again, durably: its entries and its name stay."""
        self._check_writable()
        with self._lock:
            self.log(name)
            after, known = self._known()
            if name in (MAIN, self.current, known.last):
                raise ConfigurationError(f"the run goes on with {name!r}: switch to another branch first")
            self._note(DROP, {"name": name}, after, now)

    def forget(self) -> None:
        """Go on with ``main`` alone, after every other branch was erased."""
        with self._lock:
            for each in self._logs.values():
                each.close()
            self._logs.clear()
            self._read, self.current = None, MAIN

    def close(self) -> None:
        """Release every log, the root among them; a second call does nothing."""
        with self._lock:
            for each in (*self._logs.values(), self.root):
                each.close()

    def _check_writable(self) -> None:
        if getattr(self.root, "readonly", False):
            raise LogUnwritable("this memory was opened with readonly=True. Nothing was written.")

    def _note(self, name: str, state: dict[str, Any], after: int, now: float) -> None:
        body = Checkpoint(name, json.dumps(state, ensure_ascii=False))
        self._beside(REGISTRY + self._session).append((body,), after=after, at=now)

    def _known(self) -> tuple[int, Known]:
        """The head of the log of the branches, and what it says."""
        with self._lock:
            name = REGISTRY + self._session
            # Most runs have no branches: nothing more is opened to find that out.
            head_of = getattr(self.root, "head_of", None)
            head = self._beside(name).head() if head_of is None else head_of(name)
            if self._read is None or self._read[0] != head:
                self._read = head, self._folded(self._beside(name).read(0, head) if head else ())
            return self._read

    def _folded(self, entries: Iterable[Entry]) -> Known:
        known = Known({MAIN: Branch(MAIN)}, MAIN, {})
        for entry in entries:
            try:
                known = self._with(known, entry)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise LogUnreadable(
                    f"entry {entry.position} of the branches cannot be read: {error!r}"
                ) from error
        return known

    def _with(self, known: Known, entry: Entry) -> Known:
        body: Any = entry.body
        state = json.loads(body.state)
        if body.name == SWITCH:
            return replace(known, last=str(state["to"]))
        if body.name == DROP:
            gone = known.branches[str(state["name"])]
            return replace(known, branches=known.branches | {gone.name: replace(gone, is_dropped=True)})
        if body.name != FORK:
            return known  # of a later release
        made = Branch(str(state["name"]), str(state["parent"]), int(state["at"]), digest=str(state["digest"]))
        if made.name in known.branches or made.parent not in known.branches:
            raise ValueError(f"the branch {made.name!r} of {made.parent!r}")
        session = f"{OWN}{entry.position}:{self._session}"
        return replace(
            known, branches=known.branches | {made.name: made}, sessions=known.sessions | {made.name: session}
        )

    def _beside(self, session: str) -> Log:
        with self._lock:
            if session not in self._logs:
                self._logs[session] = self._open_log(session)
            return self._logs[session]

    def _pieces(self, known: Known, name: str) -> Iterator[Piece]:
        """What a branch has of others, oldest first. A parent is always older, so this ends."""
        chain: list[Branch] = [known.branches[name]]
        while (parent := chain[-1].parent) is not None:
            chain.append(known.branches[parent])
        chain.reverse()
        for above, below in pairwise(chain):
            if above.at < below.at:
                log = self.root if above.name == MAIN else self._beside(known.sessions[above.name])
                yield Piece(log, above.at, above.at, below.at, below.digest)


def checked_branch(name: object) -> str:
    """The name of a branch, unchanged. Raises ConfigurationError for one that cannot be one."""
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST or not name.isprintable():
        raise ConfigurationError(
            f"a branch's name is one line of at most {LONGEST} characters, not {name!r:.80}"
        )
    return name


def on_branch(grove: Grove, branch: str | None = None) -> Log:
    """The log of a branch of the run, or of the one it goes on with. Raises UnknownBranch."""
    grove.current = grove.last() if branch is None else branch
    return grove.log(grove.current)


def beside(log: Log) -> OpenLog:
    """Opens other sessions where a log lies, as the log does. It raises ConfigurationError where the log cannot."""

    def cannot(session: str) -> Log:
        raise ConfigurationError(
            f"a {type(log).__name__} does not open session {session!r} beside it: use AgentMemory.open() for branches"
        )

    found: OpenLog = getattr(log, "beside", cannot)
    return found


# The verbs


def branches(session: Session) -> Flow[tuple[Branch, ...]]:
    """The branches of the run, oldest first."""
    del session
    given: tuple[Branch, ...] = yield from Asked("branches")
    return tuple(each for each in given if not each.is_dropped)


def fork(session: Session, at: int | str | None, name: str | None, now: float) -> Flow[Branch]:
    """Fork the current branch there; the run goes on where it is."""
    if name is not None:
        checked_branch(name)
    position = yield from place(session, at)
    made: str = yield from Asked("fork", (name, position, now))
    return next(each for each in (yield from branches(session)) if each.name == made)


def switch(session: Session, name: str, now: float) -> Flow[None]:
    """Go on with another branch. A summary that is being written is called off."""
    yield from _there(session, name)
    log: Log = yield from Asked("log", (name,))
    other = _anew(session)
    yield from load(other, log)  # may raise: then nothing was changed
    yield from thrown_away(session)
    yield from keep(session, closing=True)
    yield from Asked("switch", (name, now))
    yield from Moved(log, other.fold.head)
    for each in fields(Session):
        setattr(session, each.name, getattr(other, each.name))


def drop(session: Session, name: str, now: float) -> Flow[None]:
    """Leave a branch for good. Raises UnknownBranch, ConfigurationError for the one the run goes on with."""
    yield from _there(session, name)
    yield from Asked("drop", (name, now))


def _there(session: Session, name: str) -> Flow[None]:
    known = tuple(each.name for each in (yield from branches(session)))
    if name not in known:
        raise UnknownBranch(name, known)


def rewind(session: Session, to: int | str, now: float) -> Flow[Branch]:
    """Fork there, and go on with that: what came after stays on the branch that it was recorded on."""
    branch = yield from fork(session, to, None, now)
    yield from switch(session, branch.name, now)
    return next(each for each in (yield from branches(session)) if each.name == branch.name)


def compare(session: Session, left: str, right: str) -> Flow[Comparison]:
    """What two branches have in common, and what only one of them has. Raises UnknownBranch."""
    del session
    sides: list[tuple[Entry, ...]] = []
    for name in (left, right):
        log = yield from Asked("log", (name,))
        sides.append((yield from Asked("entries", (log,))))
    pairs = enumerate(zip(*sides, strict=False))
    common = next((at for at, (a, b) in pairs if a.digest != b.digest), min(map(len, sides)))
    only = (tuple((e.position, e.body) for e in side[common:] if isinstance(e.body, Step)) for side in sides)
    return Comparison(common, *only)


def place(session: Session, at: int | str | None) -> Flow[int]:
    """How many entries a fork there keeps: a number of entries, behind a checkpoint, behind a step and its results.

    Raises ConfigurationError, UnknownCheckpoint.
    """
    head = session.fold.head
    if at is None:
        return head
    if isinstance(at, bool) or not isinstance(at, int | str):
        raise ConfigurationError(
            f"a place in a run is a position, a handle or a checkpoint's name, not {at!r}"
        )
    if isinstance(at, str):
        try:
            from pagein.memory.checkpoints.build import found  # noqa: PLC0415 - loads where a checkpoint is named

            mark = yield from found(session, at)
        except UnknownCheckpoint:
            handle = parse_handle(at)
            if handle is None or not 0 <= handle.first < handle.last <= head:
                raise
            return (yield from _behind(handle.last, head))
        return head if mark is None else mark.position + 1
    if not 0 <= at <= head:
        raise ConfigurationError(f"a position from 0 to {head} is needed, not {at}")
    return at


def _behind(position: int, head: int) -> Flow[int]:
    """The first position from this one on that is no result of what stands before it."""
    entries = yield from Read(position, head)
    for entry in entries:
        if not isinstance(entry.body, Observed) or entry.body.late or entry.body.action >= position:
            return entry.position
    return head


def _anew(session: Session) -> Session:
    """A session that knows nothing of the run yet, with the settings of this one, and what it learnt of the provider."""
    return Session(
        Fold(session.counter), session.policy, session.budget, session.counter, session.calibration,
        repairs=session.repairs, share=session.share, author=session.author, problems=session.problems,
        callbacks=session.callbacks, has_facts=session.has_facts,
    )  # fmt: skip
