"""``pagein erase`` and ``pagein retain``: erase on request, or by age."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.backends.open import display_name
from pagein.cli import _output, _stores
from pagein.cli._options import AsJson
from pagein.cli._settings import ANY_RUN, ConfiguredTenant, RunOptions, resolve_tenant
from pagein.cli._stores import StoreAddress
from pagein.errors import ConfigurationError
from pagein.memory.erasure import Erasure

Yes = Annotated[bool, Parameter(help="Do not ask for confirmation.")]
Reason = Annotated[str, Parameter(help="Reason, which is kept in the record.")]
Traceless = Annotated[bool, Parameter(help="Keep no trace of a session, not even its name.")]

DECLINED = 1
_NOT_CONFIRMED = "not erased: confirmation is needed. Run again with --yes."
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdwy])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_557_600}


def erase(
    db: StoreAddress,
    handles: Annotated[
        tuple[str, ...], Parameter(help="Steps (s12), results (s12.0), ranges (s3-18) or facts (fu12).")
    ] = (),
    /,
    *,
    run: RunOptions = ANY_RUN,
    whole: Annotated[bool, Parameter(help="Erase the whole session, on every branch.")] = False,
    user: Annotated[
        str | None, Parameter(help="Erase every fact of this user; with handles: the user whose facts they name.")
    ] = None,
    reason: Reason = "",
    traceless: Traceless = False,
    yes: Yes = False,
    json: AsJson = False,
) -> int:
    """Erase steps, a session or a user's facts permanently, with every repetition.

    pagein erases the entries of the record, their part of the search index, the
    facts that came only from them, and their repetitions in summaries, checkpoints
    and results of recall. docs/erasing.md lists what stays. Erase backups and
    exports yourself. Exit code 1 if you did not confirm.

    For example:

      pagein erase run.db s12 s14.0 --reason "asked for"
      pagein erase run.db --session web-app --whole --yes
      pagein erase run.db --user alice --yes
    """
    if sum((bool(handles), whole, user is not None and not handles)) != 1:
        raise ConfigurationError("give handles, or --whole, or --user alone")
    session, tenant = run.resolve()
    if handles or whole:
        session = _stores.find_session(db, session, tenant)
    what = " ".join(handles) or (f"the session {session!r}" if whole else f"the facts of {user!r}")
    origin = f" of {session!r}" if handles else ""
    if not yes and not _confirm(f"Erase {what}{origin} from {display_name(db)} permanently?"):
        _output.print_error(_NOT_CONFIRMED)
        return DECLINED
    erasure = _run_erasure(db, handles, session, user, whole=whole, tenant=tenant, reason=reason, trace=not traceless)
    _print_erasure(erasure, json=json)
    return 0


def retain(
    db: StoreAddress,
    /,
    *,
    older_than: Annotated[str, Parameter(help="Age since the last entry, such as 90d, 12h, 8w or 1y.")],
    tenant: ConfiguredTenant = None,
    reason: Reason = "too old",
    traceless: Traceless = False,
    dry_run: Annotated[bool, Parameter(help="List the sessions only; erase nothing.")] = False,
    yes: Yes = False,
    json: AsJson = False,
) -> int:
    """Erase every session whose last entry is older than --older-than, and free its disk space.

    Facts stay, because they belong to their owner: erase them with pagein erase
    --user. Exit code 1 if you did not confirm.

    For example:

      pagein retain run.db --older-than 90d --dry-run
      pagein retain run.db --older-than 90d --yes
    """
    from pagein.memory.erasure.sessions import retain as retain_sessions  # noqa: PLC0415 - loads the search

    age, tenant = _parse_age(older_than), resolve_tenant(tenant)
    _stores.list_sessions(db, tenant)
    with _output.progress_bar("look", None) as advance:
        retention = retain_sessions(db, age, dry_run=True, tenant=tenant, tell=advance)
    if retention.sessions and not dry_run:
        question = f"Erase {_output.count_of(len(retention.sessions), 'session')} from {display_name(db)} permanently?"
        if not yes and not _confirm(question):
            _output.print_error(_NOT_CONFIRMED)
            return DECLINED
        with _output.progress_bar("erase", None) as advance:
            retention = retain_sessions(db, age, tenant=tenant, reason=reason, trace=not traceless, tell=advance)
    if json:
        rows = [{"session": name, "last": last} for name, last in retention.sessions]
        _output.print_json({"sessions": rows, "erased": not dry_run, **asdict(retention.erasure)})
        return 0
    for name, last in retention.sessions:
        _output.print_text(f"{_stores.shown_name(name)}: last entry {_output.format_time(last)} UTC")
    state = "would be erased" if dry_run else "erased"
    _output.print_text(f"{_output.count_of(len(retention.sessions), 'session')} {state}")
    return 0


def _run_erasure(
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


def _print_erasure(erasure: Erasure, *, json: bool) -> None:
    if json:
        _output.print_json(asdict(erasure))
        return
    _output.print_text(
        f"erased: {_output.count_of(erasure.entries, 'entry', 'entries')}, {_output.count_of(erasure.facts, 'fact')}, "
        f"and repetitions in {_output.count_of(erasure.derived, 'other entry', 'other entries')}"
    )
    if erasure.elsewhere:
        _output.print_text(
            f"the same lines stay in {' '.join(erasure.elsewhere)}: erase these handles, too, if they should go"
        )
    elif not erasure.scrubbed:
        _output.print_text(
            "the file may still have some of these words: another program has it open, or another session says them. "
            "Close other programs, and erase again"
        )


def _confirm(question: str) -> bool:
    """Ask at the terminal; False for any answer but yes, and without a terminal."""
    if not sys.stdin.isatty():
        return False
    sys.stderr.write(f"{_output.strip_control(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _parse_age(age: str) -> float:
    """Parse an age such as ``90d`` into seconds."""
    match = _AGE.fullmatch(age.strip().lower())
    if match is None or float(match[1]) <= 0:
        raise ConfigurationError(f"an age is a number and a unit, such as 90d, 12h, 8w or 1y, not {age[:40]!r}")
    return float(match[1]) * _SECONDS[match[2]]
