"""``pagein worker``: background work in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.backends.open import is_postgres
from pagein.cli import _output as screen
from pagein.cli import _stores as stores
from pagein.cli._options import AsJson
from pagein.cli._settings import ConfigFile, PolicyName
from pagein.cli._stores import Store, TenantName
from pagein.cli._writers import WriterName, writer
from pagein.cli.recall import EmbedderName
from pagein.errors import ConfigurationError
from pagein.memory.config import load
from pagein.memory.config.build import options_of, summarizer_of
from pagein.search.embedders import embedder_named
from pagein.worker.jobs import Desk, Done
from pagein.worker.run import EVERY, LEASE, stopping, work


def worker(
    db: Store,
    /,
    *,
    tenant: TenantName = "",
    once: Annotated[bool, Parameter(help="Do what is due, and end.", show_default=False)] = False,
    embedder: EmbedderName = "none",
    user: Annotated[
        str | None, Parameter(help="Whose sessions they are: they are read for his facts.")
    ] = None,
    project: Annotated[
        str | None, Parameter(help="The project they are of: they are read for its facts.")
    ] = None,
    model: WriterName = None,
    summarizer: Annotated[
        str | None, Parameter(help="Who writes summaries of runs that are beyond their soft mark.")
    ] = None,
    budget: Annotated[int | None, Parameter(help="Tokens that the runs' requests may have.")] = None,
    policy: PolicyName = None,
    config: ConfigFile = None,
    every: Annotated[float, Parameter(help="Seconds between two looks for what is due.")] = EVERY,
    lease: Annotated[float, Parameter(help="Seconds after which a silent worker is taken for dead.")] = LEASE,
    json: AsJson = False,
) -> int:
    """Do what the sessions of a store lack: index them, embed them, read them for facts, summarise them.

    Summaries are written where --summarizer or the configuration names a model,
    of runs that were gone on with today; budget and policy are to be their hosts'.

    Each job is done by one worker at a time, however many there are, and by
    another where that one dies. SIGINT and SIGTERM end it when what is under way
    is at an end. With --json each job is a line. With --once the exit code is 1
    where a job failed.

    On PostgreSQL the jobs go through procrastinate: pip install 'pagein[worker]'.

    For example:

      pagein worker run.db --once
      pagein worker postgresql://localhost/agents --tenant acme --embedder minilm
    """
    if every <= 0 or lease < 1:
        raise ConfigurationError("--every is above 0 seconds, --lease 1 or more")
    if not is_postgres(db):
        with stores.opened(db, tenant=tenant):  # a file is not made by looking for work in it
            pass
    failed = 0
    with writer(model) as author, writer(summarizer) as summarises, stopping() as stop:
        desk = Desk(
            db, tenant=tenant, embedder=embedder_named(embedder), model=author, user=user, project=project,
            summaries=_summaries(config, summarises, budget, policy),
        )  # fmt: skip
        if not json and not once:
            screen.show(f"working on {stores.where(db)}; SIGINT or SIGTERM ends it")
        for done in work(desk, stop=stop, once=once, every=every, lease=lease):
            failed += bool(done.failed)
            _tell(done, json=json)
    if once and not json and not failed:
        screen.show("nothing more is due")
    return 1 if once and failed else 0


def _summaries(
    file: Path | None, model: Any, budget: int | None, policy: str | None
) -> dict[str, Any] | None:
    """What the runs are opened with to write of them: what was said here, then what the configuration says."""
    found = load(file)
    writes = summarizer_of(found.values) if model is None else model
    if writes is None:
        return None
    options = {name: each for name, each in options_of(found.values).items() if name in _OF_A_VIEW}
    given = {"summarizer": writes, "budget": budget, "policy": policy}
    return options | {name: each for name, each in given.items() if each is not None}


_OF_A_VIEW = ("budget", "policy", "model", "prompts")
_WHAT = {"index": "entries", "embed": "passages", "facts": "facts", "summary": "tokens less"}


def _tell(done: Done, *, json: bool) -> None:
    if json:
        told = {"job": done.job.kind, "session": done.job.session or None, "count": done.count}
        screen.show(screen.compact(told | {"failed": done.failed or None}))
    elif done.failed:
        screen.complain(f"{done.job}: {done.failed}")
    else:
        screen.show(f"{done.job}: {done.count:,} {_WHAT[done.job.kind]}")
