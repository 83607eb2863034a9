"""``pagein facts``: inspect and change the facts of a store."""

from __future__ import annotations

import json as json_
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from pagein.backends.open import is_postgres, open_store
from pagein.cli import _output, _stores
from pagein.cli._options import AsJson
from pagein.cli._settings import option_or_setting
from pagein.cli._stores import StoreAddress
from pagein.errors import ConfigurationError, FormatError
from pagein.facts.fact import Fact
from pagein.facts.owners import users_with_facts
from pagein.facts.settings import Settings
from pagein.facts.store import Facts
from pagein.memory.config import load
from pagein.memory.config.build import build_options

Id = Annotated[str, Parameter(help="Id of the fact, such as fu12.")]
Scope = Annotated[str | None, Parameter(help="task, session, project, user or tenant. Default: user, if one is named.")]
OnlyScope = Annotated[str | None, Parameter(help="Only facts of the task, session, project, user or tenant.")]
ImportScope = Annotated[str | None, Parameter(help="Scope of all of them. Default: that of each in the file.")]
Reason = Annotated[str, Parameter(help="Reason, which is kept in the history.")]
Category = Annotated[
    str, Parameter(help="preference, knowledge, context, behaviour, goal, correction, constraint or procedure.")
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class OwnerOptions:
    """Whose facts a command uses. The configuration completes them."""

    user: Annotated[
        str | None, Parameter(help="User whose facts are used. Default: only the session's and the tenant's.")
    ] = None
    session: Annotated[str | None, Parameter(help="Session whose facts are used too.")] = None
    project: Annotated[str | None, Parameter(help="Project whose facts are used too.")] = None
    tenant: Annotated[str | None, Parameter(help="Tenant. Facts of other tenants are never visible.")] = None


ANYONE = OwnerOptions()

COMMANDS = ("list", "search", "add", "correct", "remove", "history", "export", "import")


def build_facts_app() -> App:
    """Build the commands under ``pagein facts``."""
    app = App(
        name="facts", help="Facts that outlive the runs: list, search, add, correct, remove, history, export, import."
    )
    functions: tuple[Callable[..., int], ...] = (list_facts, search, add, correct, remove, history, export, import_file)
    for name, function in zip(COMMANDS, functions, strict=True):
        app.command(function, name=name)
    return app


def reorder_arguments(arguments: Sequence[str]) -> list[str]:
    """Put the command before the database: ``facts run.db list`` becomes ``facts list run.db``."""
    words = list(arguments)
    if len(words) > 2 and words[0] == "facts" and words[1] not in COMMANDS and words[2] in COMMANDS:
        words[1], words[2] = words[2], words[1]
    return words


def list_facts(
    db: StoreAddress, /, *, owners: OwnerOptions = ANYONE, scope: OnlyScope = None, category: Annotated[str | None, Parameter(help="Only this category.")] = None,
    all: Annotated[bool, Parameter(help="Include facts whose time is over. Replaced and removed ones are in pagein facts history.")] = False,
    json: AsJson = False,
) -> int:  # fmt: skip
    """List the facts that are valid now.

    For example:

      pagein facts list run.db --user alice
    """
    with _open_facts(db, owners) as facts:
        matches = facts.list(scope=scope, category=category, all=all)  # type: ignore[arg-type]
    title = _output.count_of(len(matches), "fact")
    _print_facts(matches, json=json, title=title, elsewhere=lambda: _other_users(db, owners))
    return 0


def search(
    db: StoreAddress, query: Annotated[str, Parameter(help="Text to compare the facts with.")], /, *, owners: OwnerOptions = ANYONE,
    limit: Annotated[int, Parameter(help="Maximum number of facts.")] = 10, json: AsJson = False,
) -> int:  # fmt: skip
    """Search the facts for a query, best match first.

    For example:

      pagein facts search run.db "how to write tests" --user alice
    """
    with _open_facts(db, owners) as facts:
        matches = (*facts.find_procedures(query, limit=limit), *facts.search(query, limit=limit))[:limit]
    if json:
        _output.print_json([asdict(match) for match in matches])
        return 0
    facts_and_scores = ((match.fact, _output.format_share(match.score)) for match in matches)
    _output.print_table(
        _output.count_of(len(matches), "fact"), "id", "category", "content", "score", text_columns=3,
        rows=((fact.id, fact.category, fact.content, score) for fact, score in facts_and_scores),
        empty="" if matches else f"No facts match.{_other_users(db, owners)}",
    )  # fmt: skip
    return 0


def add(
    db: StoreAddress, content: Annotated[str, Parameter(help="One sentence that is clear on its own.")], /, *,
    owners: OwnerOptions = ANYONE, scope: Scope = None, category: Category = "context",
    confidence: Annotated[float, Parameter(help="From 0 to 1.")] = 1.0, reason: Reason = "", json: AsJson = False,
) -> int:  # fmt: skip
    """Add a fact, or confirm it if it is known.

    For example:

      pagein facts add run.db "Prefers pytest" --category preference --user alice
    """
    with _open_facts(db, owners, new=True) as facts:
        fact = facts.add(
            content, category=category, confidence=confidence, scope=scope, author="user", reason=reason  # type: ignore[arg-type]
        )  # fmt: skip
    _print_facts([fact], json=json, title="stated")
    return 0


def correct(
    db: StoreAddress, id: Id, content: Annotated[str, Parameter(help="The correct sentence.")], /, *,
    owners: OwnerOptions = ANYONE, reason: Reason = "corrected", json: AsJson = False,
) -> int:  # fmt: skip
    """Replace a fact. The history keeps the old one.

    For example:

      pagein facts correct run.db fu12 "Prefers unittest" --user alice
    """
    with _open_facts(db, owners, write=True) as facts:
        fact = facts.correct(id, content, reason=reason)
    _print_facts([fact], json=json, title="stated")
    return 0


def remove(
    db: StoreAddress,
    id: Id,
    /,
    *,
    owners: OwnerOptions = ANYONE,
    reason: Reason = "removed by hand",
    json: AsJson = False,
) -> int:
    """Remove a fact. The history keeps its content and the reason.

    For example:

      pagein facts remove run.db fu12 --reason "moved to uv" --user alice
    """
    with _open_facts(db, owners, write=True) as facts:
        fact = facts.remove(id, reason=reason, author="user")
    _print_facts([fact], json=json, title="removed")
    return 0


def history(
    db: StoreAddress, id: Annotated[str | None, Parameter(help="Id of one fact. Default: all facts.")] = None, /, *,
    owners: OwnerOptions = ANYONE, json: AsJson = False,
) -> int:  # fmt: skip
    """Show the changes of a fact, or of all facts, with author and reason.

    For example:

      pagein facts history run.db fu12 --user alice
    """
    with _open_facts(db, owners) as facts:
        changes = facts.audit() if id is None else facts.history(id)
    if json:
        _output.print_json([asdict(change) for change in changes])
        return 0
    cells = (
        (change.fact.id, change.what, change.by or change.author, change.fact.content, change.reason)
        for change in changes
    )
    _output.print_table(
        _output.count_of(len(changes), "change"), "id", "what", "by", "content", "reason", rows=cells, text_columns=5,
        wraps=("content", "reason"), empty="" if changes else f"No changes.{_other_users(db, owners)}",
    )  # fmt: skip
    return 0


def export(db: StoreAddress, /, *, owners: OwnerOptions = ANYONE) -> int:
    """Print all facts as JSON, which pagein facts import reads.

    For example:

      pagein facts export run.db --user alice > facts.json
    """
    with _open_facts(db, owners) as facts:
        _output.print_json(facts.export())
    return 0


def import_file(
    db: StoreAddress, file: Annotated[Path, Parameter(help="Exported facts, or deer-flow's memory.json; - is stdin.")], /, *,
    owners: OwnerOptions = ANYONE, scope: ImportScope = None, json: AsJson = False,
) -> int:  # fmt: skip
    """Add the facts of a file. Known facts are confirmed.

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
    with _open_facts(db, owners, new=True) as facts:
        imported = facts.import_(data, scope=scope)  # type: ignore[arg-type]
    _print_facts(imported, json=json, title=f"{_output.count_of(len(imported), 'fact')} stated or confirmed")
    return 0


@contextmanager
def _open_facts(db: str, owners: OwnerOptions, *, write: bool = False, new: bool = False) -> Iterator[Facts]:
    """Open the facts of a store; ``new`` also creates it. The configuration completes the options."""
    config = load()
    settings = build_options(config.values).get("facts")
    exists = is_postgres(db) or Path(db).exists()
    readonly = not (write or new)
    with Facts.open(
        db,
        **{name: option_or_setting(config, name, value) for name, value in asdict(owners).items()},
        settings=settings if isinstance(settings, Settings) else None,
        readonly=readonly or not (new or exists),
        timeout=config.value("timeout"),
        synchronous=config.value("synchronous"),
    ) as facts:
        yield facts


def _other_users(db: str, owners: OwnerOptions) -> str:
    """Say where else facts may be, for where none were found: under the users that have some, or another tenant."""
    if not is_postgres(db) and not Path(db).exists():
        return ""
    config = load()
    store = open_store(db, tenant=option_or_setting(config, "tenant", owners.tenant), readonly=True)
    users = users_with_facts(store.sessions())
    if option_or_setting(config, "user", owners.user) in users:
        return ""
    return f" {_stores.users_hint(sorted(users))} {_stores.OTHER_TENANT}".replace("  ", " ")


def _print_facts(facts: Sequence[Fact], *, json: bool, title: str, elsewhere: Callable[[], str] = str) -> None:
    if json:
        _output.print_json([asdict(fact) for fact in facts])
        return
    cells = ((fact.id, fact.scope, fact.category, fact.content, f"{fact.confidence:.2f}") for fact in facts)
    columns = ("id", "scope", "category", "content", "confidence")
    _output.print_table(title, *columns, rows=cells, text_columns=4, empty="" if facts else f"No facts.{elsewhere()}")
