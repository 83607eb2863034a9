"""Owners: the scopes of facts that a memory sees, and the log of each in the store of the runs.

The tenant is the log's own. Within it each name is built of quoted parts at fixed places, the user always first, so
that no choice of names can reach another user's log. Only a tenant's facts are common to its users.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pagein._common.surrogates import is_utf8
from pagein.errors import ConfigurationError
from pagein.events.entries import FactScope
from pagein.log.branch_log import is_branching, run_of

RESERVED = "pagein:facts:"
"""The prefix of the names of these logs; a run's session may not begin with it."""


def is_reserved(session: str) -> bool:
    """True if a session's name is reserved by pagein, so that no run may have it.

    >>> is_reserved("pagein:facts:user:alice"), is_reserved("web-app")
    (True, False)
    """
    return isinstance(session, str) and (session.startswith(RESERVED) or is_branching(session))


def users_with_facts(sessions: Iterable[str]) -> set[str]:
    """The users whose logs of facts are among the sessions of a store.

    >>> users_with_facts(["web-app", "pagein:facts:user:a%3Ab", "pagein:facts:tenant"])
    {'a:b'}
    """
    from urllib.parse import unquote  # noqa: PLC0415

    prefix = f"{RESERVED}user:"
    return {unquote(name.removeprefix(prefix)) for name in sessions if name.startswith(prefix)}


def check_owner_name(what: str, name: object) -> None:
    """Raise ConfigurationError if a user, a project or a task has a name that is empty or no text. None is no name."""
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise ConfigurationError(f"{what} is a name that is not empty, not {name!r}")


@dataclass(frozen=True, slots=True)
class Owners:
    """The session, user, project and task that facts are read for.

    Without a ``user`` only the tenant's facts are shared between sessions. Raises ConfigurationError for a name that is
    empty or no text, and for a session with a reserved name.
    """

    session: str
    user: str | None = None
    project: str | None = None
    task: str | None = None
    tenant: str = ""

    def __post_init__(self) -> None:
        for what in ("user", "project", "task"):
            check_owner_name(what, getattr(self, what))
        for what in ("session", "tenant"):
            if not isinstance(getattr(self, what), str):
                raise ConfigurationError(f"{what} is a name, not {getattr(self, what)!r}")
        if self.session.startswith(RESERVED):
            raise ConfigurationError(f"the session {self.session!r} is a log of facts; give the run another name")
        for part in (self.session, self.user or "", self.project or "", self.task or ""):
            if not is_utf8(part):
                raise ConfigurationError(f"a name is text without lone surrogates, not {part!r}")

    @property
    def scopes(self) -> tuple[FactScope, ...]:
        """The scopes that have an owner, the narrowest first."""
        from pagein.facts.fact import SCOPES  # noqa: PLC0415 - loads where facts are wanted

        return tuple(scope for scope in SCOPES if self._has(scope))

    @property
    def default_scope(self) -> FactScope:
        """The scope of a fact that names none: the user, or the session without a user."""
        return "session" if self.user is None else "user"

    def owner(self, scope: FactScope) -> str:
        """The owner's name in a scope. Raises FactError where there is none."""
        if not self._has(scope):
            from pagein.facts.fact import FactError  # noqa: PLC0415

            raise FactError(f"no {scope} is known here: open the memory with {scope}=... Nothing was recorded.")
        name: str = getattr(self, scope)
        return name

    def log_name(self, scope: FactScope) -> str:
        """The session name of the log with the facts of a scope. Raises FactError without an owner.

        >>> Owners("s", user="a:b").log_name("user")
        'pagein:facts:user:a%3Ab'
        """
        owner, run = self.owner(scope), run_of(self.session)  # the facts of a run are shown on all its branches
        within = {
            "tenant": (),
            "user": (owner,),
            "project": (self.user or "", owner),
            "session": (self.user or "", run),
            "task": (self.user or "", run, owner),
        }[scope]
        from urllib.parse import quote  # noqa: PLC0415

        return RESERVED + ":".join((scope, *(quote(part, safe="") for part in within)))

    def _has(self, scope: FactScope) -> bool:
        return scope in ("session", "tenant") or getattr(self, scope) is not None
