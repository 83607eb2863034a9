"""The branches of a run: forked at a position, each with views, compactions and summaries of its own.

A registry, a log of its own beside the run's, says which branches there are and which one the run goes on with. A fork is
one entry there, however long the run is. Nothing is taken back: a rewind is a fork at an earlier position.
"""

from __future__ import annotations

import builtins
import json
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from pagein.errors import ConfigurationError, LogUnreadable, LogUnwritable, UnknownBranch
from pagein.events.entries import Checkpoint
from pagein.events.handles import range_handle
from pagein.events.steps import Step
from pagein.log.base import Entry, StoredLog
from pagein.log.branch_log import OWN, REGISTRY, BranchLog, BranchPiece

MAIN = "main"
FORK, SWITCH, DROP = "pagein:fork", "pagein:switch", "pagein:drop"
BRANCH_NAME_MAX_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch: its name, the branch it was forked from, and the position ``at`` from which its entries are its own.

    ``parent`` is None for ``main``. ``digest`` is that of the last entry before the fork.
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
    """Two branches compared: they share the entries ``[0, common)``; the steps that only one of them has, by position."""

    common: int
    left: tuple[tuple[int, Step], ...]
    right: tuple[tuple[int, Step], ...]

    @property
    def handle(self) -> str:
        """The handle of the shared entries; "" if there are none."""
        return range_handle(0, self.common) if self.common else ""


@dataclass(frozen=True, slots=True)
class BranchRegistry:
    """The content of the registry: branches by name, the ``last`` one switched to, and the session of each branch."""

    branches: dict[str, Branch]
    last: str
    sessions: dict[str, str]

    def apply(self, entry: Entry, run_session: str) -> BranchRegistry:
        """The registry after one more entry. Raises ValueError, KeyError, TypeError or AttributeError for a bad one."""
        body: Any = entry.body
        state = json.loads(body.state)
        if body.name == SWITCH:
            return replace(self, last=str(state["to"]))
        if body.name == DROP:
            dropped = self.branches[str(state["name"])]
            return replace(self, branches=self.branches | {dropped.name: replace(dropped, is_dropped=True)})
        if body.name != FORK:
            return self  # of a later release
        branch = Branch(str(state["name"]), str(state["parent"]), int(state["at"]), digest=str(state["digest"]))
        if branch.name in self.branches or branch.parent not in self.branches:
            raise ValueError(f"the branch {branch.name!r} of {branch.parent!r}")
        session = f"{OWN}{entry.position}:{run_session}"
        return replace(
            self, branches=self.branches | {branch.name: branch}, sessions=self.sessions | {branch.name: session}
        )


class Branches:
    """The branches of one run; ``root`` is the log of ``main``. Logs are opened when needed and closed together.

    Threads may share it. Every method raises ConfigurationError, UnknownBranch or a LogError, and then changed nothing.
    """

    def __init__(self, root: StoredLog) -> None:
        self.root = root
        self.current = MAIN
        self._session = root.session
        self._logs: dict[str, StoredLog] = {}
        self._lock = threading.RLock()
        self._cached: tuple[int, BranchRegistry] | None = None

    def list(self) -> tuple[Branch, ...]:
        """All branches, oldest first, dropped ones too."""
        return tuple(
            replace(branch, head=self.log(branch.name).head(), is_current=branch.name == self.current)
            for branch in self._registry()[1].branches.values()
        )

    def log(self, name: str) -> StoredLog:
        """The log of a branch. Raises UnknownBranch."""
        with self._lock:
            registry = self._registry()[1]
            if name not in registry.branches:
                raise UnknownBranch(name, tuple(registry.branches))
            if name == MAIN:
                return self.root
            if name not in self._logs:
                own = self._open_session(registry.sessions[name])
                self._logs[name] = BranchLog(tuple(self._pieces(registry, name)), own)
            return self._logs[name]

    @property
    def current_branch(self) -> Branch:
        """The branch that the run is on."""
        return self._registry()[1].branches[self.current]

    @property
    def last_branch(self) -> str:
        """The name of the branch that the run goes on with when it is opened."""
        return self._registry()[1].last

    def select(self, name: str | None = None) -> StoredLog:
        """Make a branch the current one, the last one without a name; return its log. Raises UnknownBranch."""
        self.current = self.last_branch if name is None else name
        return self.log(self.current)

    def fork(self, name: str | None, at: int, now: float) -> str:
        """Record a new branch of the current one; return its name. Raises Conflict if another was recorded meanwhile."""
        self.check_writable()
        with self._lock:
            after, registry = self._registry()
            branches = registry.branches
            if name is None:
                numbers = range(1, len(branches) + 2)
                name = next(free for number in numbers if (free := f"branch-{number}") not in branches)
            if check_branch_name(name) in branches:
                raise ConfigurationError(f"there is a branch {name!r} already: choose another name, or switch to it")
            parent = branches[self.current]
            while at <= parent.at and parent.parent is not None:
                parent = branches[parent.parent]  # the entries there are the parent's
            last = next(iter(self.log(self.current).read(at - 1, at)), None) if at else None
            state = {"name": name, "parent": parent.name, "at": at, "digest": last.digest if last else ""}
            self._append(FORK, state, after, now)
            return name

    def switch(self, name: str, now: float) -> None:
        """Record that the run goes on with a branch."""
        self.check_writable()
        with self._lock:
            self.log(name)
            after, registry = self._registry()
            if registry.last != name:
                self._append(SWITCH, {"to": name}, after, now)
            self.current = name

    def drop(self, name: str, now: float) -> None:
        """Record that a branch is left for good: its entries and its name stay."""
        self.check_writable()
        with self._lock:
            self.log(name)
            after, registry = self._registry()
            if name in (MAIN, self.current, registry.last):
                raise ConfigurationError(f"the run goes on with {name!r}: switch to another branch first")
            self._append(DROP, {"name": name}, after, now)

    def forget(self) -> None:
        """Go on with ``main`` alone, after every other branch was erased."""
        with self._lock:
            for log in self._logs.values():
                log.close()
            self._logs.clear()
            self._cached, self.current = None, MAIN

    def close(self) -> None:
        """Release every log, the root too; a second call does nothing."""
        with self._lock:
            for log in (*self._logs.values(), self.root):
                log.close()

    def check_writable(self) -> None:
        """Raise LogUnwritable if the memory was opened for reading alone."""
        if self.root.readonly:
            raise LogUnwritable("this memory was opened with readonly=True. Nothing was written.")

    def _append(self, name: str, state: dict[str, Any], after: int, now: float) -> None:
        body = Checkpoint(name, json.dumps(state, ensure_ascii=False))
        self._open_session(REGISTRY + self._session).append((body,), after=after, at=now)

    def _registry(self) -> tuple[int, BranchRegistry]:
        """The head of the registry's log, and its content."""
        with self._lock:
            name = REGISTRY + self._session
            # Most runs have no branches: the store tells so without opening another log.
            head = self.root.store.head(name)
            if self._cached is None or self._cached[0] != head:
                entries = self._open_session(name).read(0, head) if head else ()
                self._cached = head, self._fold_registry(entries)
            return self._cached

    def _fold_registry(self, entries: Iterable[Entry]) -> BranchRegistry:
        registry = BranchRegistry({MAIN: Branch(MAIN)}, MAIN, {})
        for entry in entries:
            try:
                registry = registry.apply(entry, self._session)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise LogUnreadable(f"entry {entry.position} of the branches cannot be read: {error!r}") from error
        return registry

    def _open_session(self, session: str) -> StoredLog:
        with self._lock:
            if session not in self._logs:
                self._logs[session] = self.root.store.log(session)
            return self._logs[session]

    def _pieces(self, registry: BranchRegistry, name: str) -> Iterator[BranchPiece]:
        """The entries that a branch has of its ancestors, oldest first."""
        line: builtins.list[Branch] = [registry.branches[name]]
        while (parent := line[-1].parent) is not None:  # a parent is always older, so this ends
            line.append(registry.branches[parent])
        line.reverse()
        for above, below in pairwise(line):
            if above.at < below.at:
                log = self.root if above.name == MAIN else self._open_session(registry.sessions[above.name])
                yield BranchPiece(log, above.at, above.at, below.at, below.digest)


def check_branch_name(name: object) -> str:
    """The name of a branch, unchanged. Raises ConfigurationError for one that cannot be a name."""
    is_text = isinstance(name, str) and name.strip() and name.isprintable()
    if not isinstance(name, str) or not is_text or len(name) > BRANCH_NAME_MAX_CHARACTERS:
        raise ConfigurationError(
            f"a branch's name is one line of at most {BRANCH_NAME_MAX_CHARACTERS} characters, not {name!r:.80}"
        )
    return name
