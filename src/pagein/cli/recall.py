"""``pagein recall``: search what was recorded."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.backends.base import Store
from pagein.backends.open import open_store
from pagein.cli import _output, _stores
from pagein.cli._options import AsJson
from pagein.cli._settings import ConfigFile, ConfiguredTenant, option_or_setting
from pagein.cli._stores import StoreAddress
from pagein.errors import ConfigurationError, LogBusy, LogUnreadable, LogUnwritable
from pagein.memory.config import load
from pagein.memory.search_runtime import OWN_TOOLS
from pagein.search import Hit, Query
from pagein.search.base import ROLES, Role
from pagein.search.dates import date_windows
from pagein.search.embedders import embedder_named
from pagein.search.index import SearchIndex

EmbedderName = Annotated[
    str, Parameter(help="Embedder: auto (the local model if it is installed), none, minilm or openai:MODEL.")
]
Day = Annotated[str | None, Parameter(help="Day or time, such as 2026-05-08 or 2026-05-08T14:30.")]


def recall(
    db: StoreAddress,
    query: Annotated[str, Parameter(help="Text to search for. There is no query syntax.")],
    /,
    *,
    session: Annotated[
        tuple[str, ...], Parameter(consume_multiple=True, help="Search only these sessions. Default: all.")
    ] = (),
    tenant: ConfiguredTenant = None,
    limit: Annotated[int, Parameter(help="Maximum number of hits.")] = 10,
    since: Day = None,
    until: Day = None,
    role: Annotated[str | None, Parameter(help=f"Role of the speaker: {', '.join(ROLES)}.")] = None,
    embedder: Annotated[
        str | None,
        Parameter(help="Embedder: auto, none, minilm or openai:MODEL. Default: the configuration's, else none."),
    ] = None,
    config: ConfigFile = None,
    json: AsJson = False,
) -> int:
    """Search what was recorded: by words, and by meaning if there is an embedder.

    The search index is a set of tables in the store. The command updates it first;
    for a read-only store it builds one in memory. With an embedder, new passages
    get vectors, which takes some time at first. pagein.toml sets the defaults of
    tenant and embedder.

    Each hit shows its handle, its score, the score of each search, and the reason.
    pagein expand prints the whole original of a handle.

    For example:

      pagein recall run.db "why did the build fail?"
      pagein recall run.db E1234 --role tool --limit 3 --json
      pagein recall run.db "what the user said of tests" --since 2026-05-01
    """
    request = Query(
        query,
        limit=limit,
        since=parse_time("--since", since),
        until=parse_time("--until", until, end=True),
        role=_check_role(role),
        sessions=session,
        now=time.time(),
    )
    with ExitStack() as stack:
        settings = load(config)
        tenant = option_or_setting(settings, "tenant", tenant)
        index, names = _open_index(db, tenant, option_or_setting(settings, "embedder", embedder), stack)
        unknown = [name for name in session if name not in names]
        if unknown:
            _stores.choose_session(db, names, unknown[0])
        hits = index.search(request)
    if json:
        _output.print_json([_hit_as_dict(hit) for hit in hits])
        return 0
    if not hits:
        _output.print_text("No hits.")
    for hit in hits:
        _print_hit(hit, several=len(names) > 1)
    return 0


def _open_index(db: str, tenant: str, embedder: str, stack: ExitStack) -> tuple[SearchIndex, tuple[str, ...]]:
    """Open and update the search index of a store, in memory where the store is read-only; also return the sessions."""
    names = _stores.list_sessions(db, tenant, is_left_out=lambda _: False)
    instance = embedder_named(embedder)

    def open_index(*, readonly: bool) -> SearchIndex:
        store = stack.enter_context(closing(open_store(db, tenant=tenant, readonly=readonly)))
        index = stack.enter_context(store.search_index(names[0], embedder=instance, own_tools=OWN_TOOLS))
        index_sessions(index, store, names)
        _embed(index)
        return index

    try:
        index = open_index(readonly=False)
    except (LogUnwritable, LogBusy):
        index = open_index(readonly=True)
    for problem in index.problems:
        _output.print_error(problem)
    return index, names


def index_sessions(index: SearchIndex, store: Store, names: Sequence[str]) -> int:
    """Index what is new in these sessions, and show how many entries are done; return how many there were."""
    marks: dict[str, int] = {}
    with suppress(LogUnreadable):  # of a damaged index, which is built again
        marks = index.watermarks()
    new = {name: max(0, store.head(name) - marks.get(name, 0)) for name in names}
    with _output.progress_bar("index", sum(new.values())) as advance:
        logs = {name: _stores.BriefLog(store, name, lambda _: advance()) for name in names}
        return sum(index.catch_up(log, session=name) for name, log in logs.items())


def _embed(index: SearchIndex) -> None:
    pending = index.embed_pending(_EMBED_BATCH_SIZE)
    with _output.progress_bar("embed", pending) as advance:
        total = pending
        while pending:
            pending = index.embed_pending(_EMBED_BATCH_SIZE)
            advance(total - pending, total=total, label="embed")


_EMBED_BATCH_SIZE = 64


def parse_time(option: str, text: str | None, *, end: bool = False) -> float | None:
    """The time that an option names, in seconds since the epoch. Raises ConfigurationError for another text."""
    if text is None:
        return None
    with suppress(ValueError):
        time = dt.datetime.fromisoformat(text)
        time += dt.timedelta(days=1, seconds=-1) if end and len(text) <= len("2026-05-08") else dt.timedelta()
        return (time if time.tzinfo else time.replace(tzinfo=dt.UTC)).timestamp()
    day = date_windows(text)
    if not day:
        raise ConfigurationError(f"{option} is a day or a time, such as 2026-05-08 or 2026-05-08T14:30, not {text!r}")
    return day[0].last if end else day[0].first


def _check_role(name: str | None) -> Role | None:
    if name is not None and name not in ROLES:
        raise ConfigurationError(f"no role {name!r}: use one of {', '.join(ROLES)}")
    return name


def _hit_as_dict(hit: Hit) -> dict[str, Any]:
    names = ("handle", "session", "position", "at", "role", "score", "scores", "why", "whole", "text")
    return {name: getattr(hit, name) for name in names} | {"scores": dict(hit.scores)}


_SHOWN_CHARACTERS = 400


def _print_hit(hit: Hit, *, several: bool) -> None:
    where = f"{hit.session} {hit.handle}" if several else hit.handle
    scores = "  ".join(f"{name} {value:.2f}" for name, value in hit.scores.items())
    text = " ".join(hit.text.split())
    excerpt = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    _output.print_text(f"{where}  {hit.score:.3f}  {hit.role}, {_output.format_time(hit.at)}  [{hit.why}]  ({scores})")
    _output.print_text(f"    {excerpt}\n")


def rebuild_search_index(db: str, tenant: str, sessions: Sequence[str]) -> int:
    """Rebuild the search index of a store from the logs of these sessions; return the number of entries."""
    with closing(open_store(db, tenant=tenant)) as store, store.search_index(sessions[0], own_tools=OWN_TOOLS) as index:
        index.rebuild()
        return index_sessions(index, store, sessions)
