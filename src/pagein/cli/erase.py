"""``pagein erase`` and ``pagein retain``: what somebody has a right to have forgotten, and what is too old to keep."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.cli import _output as screen
from pagein.cli import _stores as stores
from pagein.cli._options import AsJson, SessionName
from pagein.cli._stores import Store, TenantName
from pagein.errors import ConfigurationError
from pagein.memory.erasure import Erasure

Yes = Annotated[bool, Parameter(help="Do not ask.", show_default=False)]
Reason = Annotated[str, Parameter(help="Why; it is kept in the record.")]
Traceless = Annotated[
    bool, Parameter(help="Keep nothing of a session, not even its name.", show_default=False)
]

DECLINED = 1
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdwy])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_557_600}


def erase(
    db: Store,
    handles: Annotated[
        tuple[str, ...], Parameter(help="Steps (s12), results (s12.0), ranges (s3-18), or facts (fu12).")
    ] = (),
    /,
    *,
    session: SessionName = None,
    whole: Annotated[bool, Parameter(help="The whole session, on every branch.", show_default=False)] = False,
    user: Annotated[
        str | None, Parameter(help="Every fact of this user; with handles, whose facts they name.")
    ] = None,
    tenant: TenantName = "",
    reason: Reason = "",
    traceless: Traceless = False,
    yes: Yes = False,
    json: AsJson = False,
) -> int:
    """Erase what was said, for good, wherever it was repeated. Nothing brings it back.

    It goes from the record, the index, the facts that came of it alone, and what
    was written of it: summaries, checkpoints, results of recall. What stays is in
    docs/durability.md. Backups and exports are yours to erase. Exit code 1 where it
    was not done.

    For example:

      pagein erase run.db s12 s14.0 --reason "asked for"
      pagein erase run.db --session web-app --whole --yes
      pagein erase run.db --user alice --yes
    """
    if sum((bool(handles), whole, user is not None and not handles)) != 1:
        raise ConfigurationError("say what: handles, --whole, or --user alone")
    if handles or whole:
        session = stores.chosen(db, stores.sessions(db, tenant), session)
    what = " ".join(handles) or (f"the session {session!r}" if whole else f"the facts of {user!r}")
    where = f" of {session!r}" if handles else ""
    if not yes and not _agreed(f"Erase {what}{where} from {stores.where(db)} for good?"):
        screen.complain("nothing was erased; --yes does not ask")
        return DECLINED
    done = _done(db, handles, session, user, whole=whole, tenant=tenant, reason=reason, trace=not traceless)
    _tell(done, json=json)
    return 0


def retain(
    db: Store,
    /,
    *,
    older_than: Annotated[str, Parameter(help="An age since the last entry, as 90d, 12h, 8w or 1y.")],
    tenant: TenantName = "",
    reason: Reason = "too old",
    traceless: Traceless = False,
    dry_run: Annotated[bool, Parameter(help="Only tell; erase nothing.", show_default=False)] = False,
    yes: Yes = False,
    json: AsJson = False,
) -> int:
    """Erase every session that was not written to for that long, whole, and give the room back.

    Facts stay: they are an owner's, and pagein erase --user has them. Exit code 1
    where it was not done.

    For example:

      pagein retain run.db --older-than 90d --dry-run
      pagein retain run.db --older-than 90d --yes
    """
    from pagein.memory.erasure.sessions import retain as retained  # noqa: PLC0415 - loads the archive

    age = _seconds(older_than)
    stores.sessions(db, tenant)
    found = retained(db, age, dry_run=True, tenant=tenant)
    if found.sessions and not dry_run:
        asked = f"Erase {len(found.sessions):,} sessions from {stores.where(db)} for good?"
        if not yes and not _agreed(asked):
            screen.complain("nothing was erased; --yes does not ask")
            return DECLINED
        found = retained(db, age, tenant=tenant, reason=reason, trace=not traceless)
    if json:
        told = [{"session": name, "last": last} for name, last in found.sessions]
        screen.show_json({"sessions": told, "erased": not dry_run, **_plain(found.erasure)})
        return 0
    for name, last in found.sessions:
        screen.show(
            screen.clean(f"{name}: last written to {datetime.fromtimestamp(last, UTC):%Y-%m-%d %H:%M} UTC")
        )
    screen.show(f"{len(found.sessions):,} sessions {'would be' if dry_run else 'were'} erased")
    return 0


def _done(
    db: str, handles: tuple[str, ...], session: str | None, user: str | None, *, whole: bool, tenant: str,
    reason: str, trace: bool,
) -> Erasure:  # fmt: skip
    from pagein.memory.agent_memory import AgentMemory  # noqa: PLC0415
    from pagein.memory.erasure.sessions import erase_session, erase_user  # noqa: PLC0415 - loads the archive

    if whole:
        return erase_session(db, str(session), tenant=tenant, reason=reason, trace=trace)
    if not handles:
        return erase_user(db, str(user), tenant=tenant, reason=reason)
    options: dict[str, Any] = {} if user is None else {"user": user}
    with AgentMemory.open(db, session=str(session), tenant=tenant, **options) as memory:
        return memory.erase(*handles, reason=reason)


def _tell(done: Erasure, *, json: bool) -> None:
    if json:
        screen.show_json(_plain(done))
        return
    screen.show(
        f"erased: {done.entries:,} of the record, {done.facts:,} of the facts, and what {done.derived:,} more had repeated"
    )
    if done.elsewhere:
        screen.show(f"the same lines are said in {' '.join(done.elsewhere)}, which stay")
    if not done.scrubbed:
        screen.show("another process has the file open: erase again, or VACUUM it, when it is done")


def _plain(done: Erasure) -> dict[str, Any]:
    return {
        "entries": done.entries, "facts": done.facts, "derived": done.derived, "elsewhere": list(done.elsewhere),
        "scrubbed": done.scrubbed,
    }  # fmt: skip


def _agreed(question: str) -> bool:
    """Whether somebody at a terminal says yes; where nobody can be asked, no."""
    if not sys.stdin.isatty():
        return False
    sys.stderr.write(f"{screen.clean(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _seconds(age: str) -> float:
    found = _AGE.fullmatch(age.strip().lower())
    if found is None or float(found[1]) <= 0:
        raise ConfigurationError(f"an age is a number and a unit, as 90d, 12h, 8w or 1y, not {age[:40]!r}")
    return float(found[1]) * _SECONDS[found[2]]
