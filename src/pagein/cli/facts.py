"""``pagein facts``: what outlives the runs in a database, looked at and changed by hand."""

from __future__ import annotations

import json as json_
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from pagein.backends.open import is_postgres
from pagein.cli import _output as screen
from pagein.cli._options import AsJson
from pagein.cli._settings import told
from pagein.cli._stores import Store
from pagein.errors import ConfigurationError, FormatError
from pagein.facts.fact import Fact
from pagein.facts.settings import Settings
from pagein.facts.store import Facts
from pagein.memory.config import load
from pagein.memory.config.build import options_of

Id = Annotated[str, Parameter(help="The fact's id, as fu12.")]
User = Annotated[str | None, Parameter(help="Whose facts; without it the session's own and the tenant's.")]
Session = Annotated[str | None, Parameter(help="The session whose facts are seen too.")]
Project = Annotated[str | None, Parameter(help="The project whose facts are seen too.")]
Tenant = Annotated[str | None, Parameter(help="The tenant; nothing of another is ever seen.")]
Scope = Annotated[
    str | None,
    Parameter(help="task, session, project, user or tenant; by default the user, where one is named."),
]
Reason = Annotated[str, Parameter(help="Why; it is kept.")]
Category = Annotated[
    str, Parameter(help="preference, knowledge, context, behaviour, goal, correction or constraint.")
]

VERBS = ("list", "search", "add", "correct", "remove", "history", "export", "import")


def app() -> App:
    """The commands under ``pagein facts``."""
    made = App(
        name="facts",
        help="What outlives the runs: list, search, add, correct, remove, history, export, import.",
    )
    commands: tuple[Callable[..., int], ...] = (
        listed,
        search,
        add,
        correct,
        remove,
        history,
        export,
        restore,
    )
    for name, command in zip(VERBS, commands, strict=True):
        made.command(command, name=name)
    return made


def in_order(arguments: Sequence[str]) -> list[str]:
    """The arguments, the command before the database: ``facts run.db list`` is ``facts list run.db``."""
    given = list(arguments)
    if len(given) > 2 and given[0] == "facts" and given[1] not in VERBS and given[2] in VERBS:
        given[1], given[2] = given[2], given[1]
    return given


def listed(
    db: Store, /, *, user: User = None, session: Session = None, project: Project = None, tenant: Tenant = None,
    scope: Scope = None, category: str | None = None, all: Annotated[bool, Parameter(help="Those too that do not hold now.")] = False,
    json: AsJson = False,
) -> int:  # fmt: skip
    """List the facts that hold now.

    For example:

      pagein facts list run.db --user alice
    """
    with _facts(db, user, session, project, tenant) as facts:
        found = facts.list(scope=scope, category=category, all=all)  # type: ignore[arg-type]
    _show(found, json=json, title=f"{len(found):,} facts")
    return 0


def search(
    db: Store, query: Annotated[str, Parameter(help="What it is about.")], /, *, user: User = None,
    session: Session = None, project: Project = None, tenant: Tenant = None,
    limit: Annotated[int, Parameter(help="At most so many.")] = 10, json: AsJson = False,
) -> int:  # fmt: skip
    """Find the facts that have something in common with a query, best first.

    For example:

      pagein facts search run.db "how to write tests" --user alice
    """
    with _facts(db, user, session, project, tenant) as facts:
        found = facts.search(query, limit=limit)
    if json:
        screen.show_json([asdict(each) for each in found])
        return 0
    made = screen.table(f"{len(found):,} facts", "id", "category", "score", "content", left=2)
    for each in found:
        screen.row(
            made, each.fact.id, each.fact.category, screen.rate(each.score), screen.clean(each.fact.content)
        )
    screen.console().print(made if found else "Nothing is known about that.")
    return 0


def add(
    db: Store, content: Annotated[str, Parameter(help="One sentence that can be understood on its own.")], /, *,
    user: User = None, session: Session = None, project: Project = None, tenant: Tenant = None, scope: Scope = None,
    category: Category = "context", confidence: Annotated[float, Parameter(help="From 0 to 1.")] = 1.0,
    reason: Reason = "", json: AsJson = False,
) -> int:  # fmt: skip
    """State a fact. One that is known already is confirmed.

    For example:

      pagein facts add run.db "Prefers pytest" --category preference --user alice
    """
    with _facts(db, user, session, project, tenant, new=True) as facts:
        made = facts.add(
            content, category=category, confidence=confidence, scope=scope, author="user", reason=reason  # type: ignore[arg-type]
        )  # fmt: skip
    _show([made], json=json, title="stated")
    return 0


def correct(
    db: Store, id: Id, content: Annotated[str, Parameter(help="What is so instead.")], /, *, user: User = None,
    session: Session = None, project: Project = None, tenant: Tenant = None, reason: Reason = "corrected",
    json: AsJson = False,
) -> int:  # fmt: skip
    """Put a fact in the place of another, which stays readable in the history.

    For example:

      pagein facts correct run.db fu12 "Prefers unittest" --user alice
    """
    with _facts(db, user, session, project, tenant, write=True) as facts:
        made = facts.correct(id, content, reason=reason)
    _show([made], json=json, title="stated")
    return 0


def remove(
    db: Store, id: Id, /, *, user: User = None, session: Session = None, project: Project = None,
    tenant: Tenant = None, reason: Reason = "removed by hand", json: AsJson = False,
) -> int:  # fmt: skip
    """Let a fact go. What it said, and why it went, stays readable in the history.

    For example:

      pagein facts remove run.db fu12 --reason "moved to uv" --user alice
    """
    with _facts(db, user, session, project, tenant, write=True) as facts:
        gone = facts.remove(id, reason=reason, author="user")
    _show([gone], json=json, title="removed")
    return 0


def history(
    db: Store, id: Annotated[str | None, Parameter(help="Of one fact; without it, of all.")] = None, /, *,
    user: User = None, session: Session = None, project: Project = None, tenant: Tenant = None, json: AsJson = False,
) -> int:  # fmt: skip
    """Show what became of a fact, or every change there was, with its author and reason.

    For example:

      pagein facts history run.db fu12 --user alice
    """
    with _facts(db, user, session, project, tenant) as facts:
        changes = facts.audit() if id is None else facts.history(id)
    if json:
        screen.show_json([asdict(each) for each in changes])
        return 0
    made = screen.table(f"{len(changes):,} changes", "id", "what", "by", "content", "reason", left=5)
    for each in changes:
        told = screen.clean(each.reason)
        screen.row(
            made, each.fact.id, each.what, each.by or each.author, screen.clean(each.fact.content), told
        )
    screen.console().print(made)
    return 0


def export(
    db: Store,
    /,
    *,
    user: User = None,
    session: Session = None,
    project: Project = None,
    tenant: Tenant = None,
) -> int:
    """Print every fact that stands as JSON, which import takes.

    For example:

      pagein facts export run.db --user alice > facts.json
    """
    with _facts(db, user, session, project, tenant) as facts:
        screen.show_json(facts.export())
    return 0


def restore(
    db: Store, file: Annotated[Path, Parameter(help="What export gave, or deer-flow's memory.json; - is stdin.")], /, *,
    user: User = None, session: Session = None, project: Project = None, tenant: Tenant = None, scope: Scope = None,
    json: AsJson = False,
) -> int:  # fmt: skip
    """State the facts of a file. Those that are known already are confirmed.

    For example:

      pagein facts import run.db facts.json --user alice
    """
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
        data = json_.loads(text)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}", path=str(file)) from error
    with _facts(db, user, session, project, tenant, new=True) as facts:
        found = facts.import_(data, scope=scope)  # type: ignore[arg-type]
    _show(found, json=json, title=f"{len(found):,} facts stated or confirmed")
    return 0


@contextmanager
def _facts(
    db: str,
    user: str | None,
    session: str | None,
    project: str | None,
    tenant: str | None,
    *,
    write: bool = False,
    new: bool = False,
) -> Iterator[Facts]:
    """The facts in a database, which is not written to unless that is asked for, and only made where it may be ``new``.

    What was not said is what the configuration says that holds here.
    """
    config = load()
    settings = options_of(config.values).get("facts")
    is_there = is_postgres(db) or Path(db).exists()
    if is_there and not is_postgres(db) and Path(db).is_dir():
        raise ConfigurationError(f"{db}: that is a folder, not the file of a memory")
    readonly = not (write or new)
    with Facts.open(
        db,
        session=told(config, "session", session),
        user=told(config, "user", user),
        project=told(config, "project", project),
        tenant=told(config, "tenant", tenant),
        settings=settings if isinstance(settings, Settings) else None,
        readonly=readonly or not (new or is_there),
        timeout=config.value("timeout"),
        synchronous=config.value("synchronous"),
    ) as facts:
        yield facts


def _show(facts: Iterable[Fact], *, json: bool, title: str) -> None:
    found = tuple(facts)
    if json:
        screen.show_json([asdict(each) for each in found])
        return
    made = screen.table(title, "id", "scope", "category", "confidence", "content", left=3)
    for each in found:
        screen.row(
            made, each.id, each.scope, each.category, f"{each.confidence:.2f}", screen.clean(each.content)
        )
    screen.console().print(made if found else "No facts.")
