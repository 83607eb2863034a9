"""``pagein worker``: background work in its own process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.backends.open import display_name, is_postgres
from pagein.cli import _output, _stores
from pagein.cli._options import AsJson, resolve_summarizer
from pagein.cli._settings import ConfigFile, ConfiguredPolicy, ConfiguredTenant, option_or_setting
from pagein.cli._stores import StoreAddress
from pagein.cli.recall import EmbedderName
from pagein.errors import ConfigurationError
from pagein.memory.config import load
from pagein.memory.config.build import build_options, build_summarizer
from pagein.search.embedders import embedder_named
from pagein.worker.jobs import JobResult, WorkQueue
from pagein.worker.run import LEASE_SECONDS, POLL_SECONDS, stop_on_signals, work


def worker(
    db: StoreAddress,
    /,
    *,
    tenant: ConfiguredTenant = None,
    once: Annotated[bool, Parameter(help="Run the jobs that are due, then exit.")] = False,
    embedder: EmbedderName = "none",
    user: Annotated[str | None, Parameter(help="User of the sessions. Facts are extracted for this user.")] = None,
    project: Annotated[str | None, Parameter(help="Project of the sessions. Facts are extracted for it.")] = None,
    model: Annotated[
        str | None, Parameter(help="Model that extracts facts; scripted: a stand-in. Default: rules.")
    ] = None,
    summarizer: Annotated[
        str | None, Parameter(help="Model that writes summaries of runs above their soft mark.")
    ] = None,
    budget: Annotated[int | None, Parameter(help="Maximum tokens of the runs' requests.")] = None,
    policy: ConfiguredPolicy = None,
    config: ConfigFile = None,
    every: Annotated[float, Parameter(help="Seconds between two checks for jobs.")] = POLL_SECONDS,
    lease: Annotated[
        float, Parameter(help="Seconds without a sign of life after which a worker counts as dead.")
    ] = LEASE_SECONDS,
    json: AsJson = False,
) -> int:
    """Run background jobs for the sessions of a store: indexing, embedding, extraction of facts, summaries.

    Summaries are written if --summarizer or the configuration names a model, and
    only for runs active today. Use your application's own budget and policy.

    One worker at a time runs a job. If it dies, another takes over. SIGINT and
    SIGTERM end the worker after the current job. --json prints a line for each
    job. With --once the exit code is 1 if a job failed.

    On PostgreSQL the jobs go through procrastinate: pip install 'pagein[worker]'.

    For example:

      pagein worker run.db --once
      pagein worker postgresql://localhost/agents --tenant acme --embedder minilm
    """
    if every <= 0 or lease < 1:
        raise ConfigurationError("--every must be above 0 seconds, and --lease 1 second or more")
    tenant = option_or_setting(load(config), "tenant", tenant)
    if not is_postgres(db):
        with _stores.open_stored_log(db, tenant=tenant):  # the worker does not create a file
            pass
    failed = 0
    with stop_on_signals() as stop:
        jobs = WorkQueue(
            db, tenant=tenant, embedder=embedder_named(embedder), model=resolve_summarizer(model), user=user, project=project,
            summaries=_summary_options(config, resolve_summarizer(summarizer), budget, policy),
        )  # fmt: skip
        if not json and not once:
            _output.print_text(f"working on {display_name(db)}; SIGINT or SIGTERM ends it")
        for result in work(jobs, stop=stop, once=once, every=every, lease=lease):
            failed += bool(result.failed)
            _print_result(result, json=json)
    if once and not json and not failed:
        _output.print_text("no more jobs are due")
    return 1 if once and failed else 0


def _summary_options(file: Path | None, model: Any, budget: int | None, policy: str | None) -> dict[str, Any] | None:
    """Options of the memories that write summaries: the command line's, else the configuration's; None for no summaries."""
    values = load(file).values
    summarizer = build_summarizer(values) if model is None else model
    if summarizer is None:
        return None
    configured = {name: option for name, option in build_options(values).items() if name in _VIEW_OPTIONS}
    explicit = {"summarizer": summarizer, "budget": budget, "policy": policy}
    return configured | {name: option for name, option in explicit.items() if option is not None}


_VIEW_OPTIONS = ("budget", "policy", "model", "prompts")
_UNITS = {
    "index": ("entry", "entries"),
    "embed": ("passage",),
    "facts": ("fact",),
    "summary": ("token less", "tokens less"),
}


def _print_result(result: JobResult, *, json: bool) -> None:
    if json:
        row = {"job": result.job.kind, "session": result.job.session or None, "count": result.count}
        _output.print_json_line(row | {"failed": result.failed or None})
    elif result.failed:
        _output.print_error(f"{result.job}: {result.failed}")
    else:
        _output.print_text(f"{result.job}: {_output.count_of(result.count, *_UNITS[result.job.kind])}")
