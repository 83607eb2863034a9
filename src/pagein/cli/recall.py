"""``pagein recall``: what was recorded, found again."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.backends.search import archive_of
from pagein.cli import _output as screen
from pagein.cli import _stores as stores
from pagein.cli._options import AsJson
from pagein.cli._settings import ConfigFile, Tenant, told
from pagein.cli._stores import Store
from pagein.errors import ConfigurationError, LogBusy, LogUnwritable
from pagein.log.base import Log
from pagein.memory.config import load
from pagein.memory.search_runtime import OWN_TOOLS
from pagein.search import Hit, Query
from pagein.search.base import ROLES, Role
from pagein.search.dates import windows
from pagein.search.embedders import embedder_named
from pagein.search.index import DerivedArchive

EmbedderName = Annotated[
    str,
    Parameter(
        help="Who makes vectors: auto (the local model where it is installed), none, minilm, openai:MODEL."
    ),
]
Day = Annotated[str | None, Parameter(help="A day, as 2026-05-08, or a time, as 2026-05-08T14:30.")]


def recall(
    db: Store,
    query: Annotated[str, Parameter(help="What to look for; any text, no operators.")],
    /,
    *,
    session: Annotated[
        tuple[str, ...], Parameter(consume_multiple=True, help="Only in these sessions; without it in all.")
    ] = (),
    tenant: Tenant = None,
    limit: Annotated[int, Parameter(help="Hits to show.")] = 10,
    since: Day = None,
    until: Day = None,
    role: Annotated[str | None, Parameter(help=f"Who said it: {', '.join(ROLES)}.")] = None,
    embedder: Annotated[
        str | None, Parameter(help="Who makes vectors, as in bench recall; none where nothing says it.")
    ] = None,
    config: ConfigFile = None,
    json: AsJson = False,
) -> int:
    """Find what was recorded: by words, and by meaning where there is an embedder.

    The index lies in tables beside the log, and is brought up to date first;
    where the store may not be written it is built in memory. With an embedder,
    whatever has no vector yet gets one, which takes a while the first time. What is
    not said is what pagein.toml says: tenant and embedder.

    Each hit shows its handle, its score, what each arm gave and why it was found.
    pagein expand gives back the whole of what a handle names.

    For example:

      pagein recall run.db "why did the build fail?"
      pagein recall run.db E1234 --role tool --limit 3 --json
      pagein recall run.db "what the user said of tests" --since 2026-05-01
    """
    asked = Query(
        query,
        limit=limit,
        since=_time("--since", since),
        until=_time("--until", until, end=True),
        role=_role(role),
        sessions=session,
        now=time.time(),
    )
    with ExitStack() as opened:
        settings = load(config)
        tenant, embedder = told(settings, "tenant", tenant), told(settings, "embedder", embedder)
        archive, names = _archive(db, tenant, embedder, opened)
        unknown = [each for each in session if each not in names]
        if unknown:
            stores.chosen(db, names, unknown[0])
        hits = archive.search(asked)
    if json:
        screen.show_json([_as_dict(hit) for hit in hits])
        return 0
    if not hits:
        screen.show("Nothing was found.")
    for hit in hits:
        _print_hit(hit, several=len(names) > 1)
    return 0


def _archive(
    db: str, tenant: str, embedder: str, opened: ExitStack
) -> tuple[DerivedArchive, tuple[str, ...]]:
    """The archive of a store, up to date, and its sessions; in memory where the store may not be written."""
    names = stores.sessions(db, tenant, is_left_out=lambda _: False)
    maker = embedder_named(embedder)
    logs = {name: opened.enter_context(stores.opened(db, name, tenant)) for name in names}
    try:
        beside = opened.enter_context(stores.opened(db, names[0], tenant, readonly=False))
        archive = opened.enter_context(archive_of(beside, embedder=maker, own_tools=OWN_TOOLS))
        _catch_up(archive, logs)
    except (LogUnwritable, LogBusy):
        archive = opened.enter_context(archive_of(logs[names[0]], embedder=maker, own_tools=OWN_TOOLS))
        _catch_up(archive, logs)
    for problem in archive.problems:
        screen.complain(problem)
    return archive, names


def _catch_up(archive: DerivedArchive, logs: Mapping[str, Log]) -> None:
    with screen.progress("index", len(logs)) as advance:
        for name, log in logs.items():
            archive.catch_up(log, session=name)
            advance()
    left = archive.embed_pending(_A_BATCH)
    with screen.progress("embed", left) as advance:
        total = left
        while left:
            left = archive.embed_pending(_A_BATCH)
            advance(total - left, of=total, what="embed")


_A_BATCH = 64


def _time(option: str, given: str | None, *, end: bool = False) -> float | None:
    if given is None:
        return None
    with suppress(ValueError):
        if "T" in given:
            return dt.datetime.fromisoformat(given).replace(tzinfo=dt.UTC).timestamp()
    day = windows(given)
    if not day:
        raise ConfigurationError(
            f"{option} is a day, as 2026-05-08, or a time, as 2026-05-08T14:30; not {given!r}"
        )
    return day[0].last if end else day[0].first


def _role(given: str | None) -> Role | None:
    for role in ROLES:
        if role == given:
            return role
    if given is not None:
        raise ConfigurationError(f"no role is called {given!r}: use one of {', '.join(ROLES)}")
    return None


def _as_dict(hit: Hit) -> dict[str, Any]:
    return {
        "handle": hit.handle,
        "session": hit.session,
        "position": hit.position,
        "at": hit.at,
        "role": hit.role,
        "score": hit.score,
        "arms": dict(hit.arms),
        "why": hit.why,
        "whole": hit.whole,
        "text": hit.text,
    }


_SHOWN = 400


def _print_hit(hit: Hit, *, several: bool) -> None:
    where = f"{hit.session} {hit.handle}" if several else hit.handle
    arms = "  ".join(f"{name} {value:.2f}" for name, value in hit.arms.items())
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(hit.at)) if 0 <= hit.at < 1e11 else f"{hit.at:g}"
    text = " ".join(hit.text.split())
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    screen.show(f"{where}  {hit.score:.3f}  {hit.role}, {when}  [{hit.why}]  ({arms})")
    screen.show(f"    {shown}\n")


def rebuilt(db: str, tenant: str, sessions: Sequence[str]) -> int:
    """Build the index of a store anew from the record of these sessions; how many entries it holds then."""
    with (
        stores.opened(db, sessions[0], tenant, readonly=False) as beside,
        archive_of(beside, own_tools=OWN_TOOLS) as archive,
    ):
        archive.rebuild()
        entries = 0
        for name in sessions:
            with stores.opened(db, name, tenant) as record:
                entries += archive.catch_up(record, session=name)
    return entries
