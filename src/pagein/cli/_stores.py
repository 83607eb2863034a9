"""Stores as commands are given them: a file or an address, what it is called, and the session in it that is meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pagein.backends.open import is_postgres, open_log
from pagein.errors import ConfigurationError, LogUnreadable
from pagein.facts.owners import is_reserved
from pagein.log.raw_rows import RowLog

_STORE = "The SQLite file of a memory, or the address of one: postgresql://..."
Store = Annotated[str, Parameter(help=_STORE)]
Database = Annotated[str, Parameter(help=f"{_STORE} It is never written to.")]
TenantName = Annotated[str, Parameter(help="Whose session, where the store is shared.")]


def where(db: str) -> str:
    """What a store is called: its path, or its address without the password."""
    if not is_postgres(db):
        return db
    from pagein.backends.postgres.connection import address_of  # noqa: PLC0415 - its driver is an extra

    return address_of(db).name


@contextmanager
def opened(db: str, session: str = "default", tenant: str = "", *, readonly: bool = True) -> Iterator[RowLog]:
    """The log of a session, to be read unless told otherwise. Raises ConfigurationError for a folder, LogError."""
    if not is_postgres(db) and Path(db).is_dir():
        raise ConfigurationError(f"{db}: that is a folder, not the file of a memory")
    with closing(open_log(db, session=session, tenant=tenant, readonly=readonly)) as log:
        if not isinstance(log, RowLog):
            raise LogUnreadable(f"{where(db)}: this store does not give its rows")
        yield log


def sessions(
    db: str, tenant: str = "", *, is_left_out: Callable[[str], bool] = is_reserved
) -> tuple[str, ...]:
    """The sessions recorded there, without those of ours. Raises ConfigurationError where there are none."""
    with opened(db, tenant=tenant) as log:
        found = tuple(each for each in getattr(log, "sessions", tuple)() if not is_left_out(each))
    if not found:
        raise ConfigurationError(f"{where(db)}: nothing is recorded there")
    return found


def chosen(db: str, names: Sequence[str], wanted: str | None) -> str:
    """The session that is meant. Raises ConfigurationError where that is none, or unclear."""
    if wanted is None and len(names) == 1:
        return names[0]
    listed = ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    if wanted is None:
        raise ConfigurationError(f"{where(db)}: say which session with --session: {listed}")
    if wanted not in names and not is_reserved(wanted):
        raise ConfigurationError(f"{where(db)}: no session {wanted!r}; there are {listed}")
    return wanted
