"""Open the stores and choose the sessions that commands name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Annotated

from cyclopts import Parameter

from pagein.backends.base import Store
from pagein.backends.open import display_name, open_log
from pagein.cli import _output
from pagein.errors import ConfigurationError
from pagein.facts.owners import is_reserved
from pagein.log.base import Entry, StoredLog

_STORE = "SQLite file of a memory, or its address: postgresql://..."
StoreAddress = Annotated[str, Parameter(help=_STORE)]
OTHER_TENANT = "Another tenant may have some: --tenant NAME."
"""Where else to look. The tenants of a store are not listed: no tenant sees another."""
ReadonlyStoreAddress = Annotated[str, Parameter(help=f"{_STORE} The command never writes to it.")]


@contextmanager
def open_stored_log(
    db: str, session: str = "default", tenant: str = "", *, readonly: bool = True
) -> Iterator[StoredLog]:
    """Open the log of a session. Raises LogError."""
    with closing(open_log(db, session=session, tenant=tenant, readonly=readonly)) as log:
        yield log


class BriefLog:
    """The log of a session that is open only while it is read: a store may have more sessions than files may be open."""

    def __init__(self, store: Store, session: str, tell: Callable[[Entry], object] = lambda _: None) -> None:
        self._store, self._session, self._tell = store, session, tell

    def head(self) -> int:
        """The number of entries."""
        return self._store.head(self._session)

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries ``[start, stop)`` in order. Raises LogError."""
        with closing(self._store.log(self._session)) as log:
            for entry in log.read(start, stop):
                yield entry
                self._tell(entry)


def list_sessions(db: str, tenant: str = "", *, is_left_out: Callable[[str], bool] = is_reserved) -> tuple[str, ...]:
    """The recorded sessions, without pagein's internal ones. Raises ConfigurationError where there are none."""
    with open_stored_log(db, tenant=tenant) as log:
        names = tuple(name for name in log.store.sessions() if not is_left_out(name))
    if not names:
        of_tenant = f" for the tenant {tenant!r}" if tenant else ""
        raise ConfigurationError(f"{display_name(db)}: nothing is recorded there{of_tenant}. {OTHER_TENANT}")
    return names


def find_session(db: str, session: str | None, tenant: str) -> str:
    """The session of that name, or the only one there is. Raises ConfigurationError as ``choose_session`` does."""
    return choose_session(db, list_sessions(db, tenant), session)


def choose_session(db: str, names: Sequence[str], session: str | None) -> str:
    """The session among these names, or the only one. Raises ConfigurationError where it is missing or ambiguous."""
    if session is None and len(names) == 1:
        return names[0]
    some_names = ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    store = display_name(db)
    if session is None:
        raise ConfigurationError(f"{store} has {len(names):,} sessions, choose one with --session: {some_names}")
    if session not in names and not is_reserved(session):
        raise ConfigurationError(f"{store}: no session {session!r}; there are {some_names}. {OTHER_TENANT}")
    return session


def shown_name(name: str) -> str:
    """The name of a session as text that can be seen: in quotes where it is empty, or has control characters or spaces at an end.

    >>> shown_name("web app"), shown_name(" ")
    ('web app', "' '")
    """
    return name if name and _output.strip_control(name.strip()).replace("\n", "") == name else repr(name)


def users_hint(users: Sequence[str]) -> str:
    """Say which users have facts; "" where none has.

    >>> users_hint(["alice", "bob"])
    'There are facts of the users alice, bob: --user NAME.'
    """
    names = ", ".join(users[:8]) + (f" and {len(users) - 8} more" if len(users) > 8 else "")
    return f"There are facts of {'the user' if len(users) == 1 else 'the users'} {names}: --user NAME." if users else ""
