"""Options that a command takes from the configuration where the command line does not give them.

The command line overrides the environment, which overrides ``pagein.toml``, which overrides the defaults in the code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import CycloptsError, Parameter

from pagein.cli import _stores
from pagein.cli._options import SessionName, check_budget, resolve_counter
from pagein.context.compaction.base import Policy
from pagein.context.compaction.registry import policy_named
from pagein.formats import FORMATS, FormatName, format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.checkpoints import AutoCheckpoint
from pagein.memory.config import Config, load
from pagein.memory.config.build import build_options
from pagein.tokens import TokenCounter

ConfigFile = Annotated[
    Path | None, Parameter(help="Configuration file. Default: the nearest pagein.toml, from this folder upwards.")
]
ConfiguredBudget = Annotated[
    int | None, Parameter(help="Maximum tokens of a request. Required if no configuration sets it.")
]
ConfiguredPolicy = Annotated[
    str | None, Parameter(help="Compaction policy. Default: the configuration's, else ladder.")
]
ConfiguredFormat = Annotated[
    str | None, Parameter(help=f"Format of requests: {', '.join(FORMATS)}. Default: the configuration's, else openai.")
]
ConfiguredTenant = Annotated[
    str | None, Parameter(help="Tenant of the session, in a shared store. Default: the configuration's.")
]


@dataclass(frozen=True, slots=True)
class ViewSettings:
    """The settings with which a command makes views. ``name`` is the policy's name; ``budget`` in tokens."""

    budget: int
    policy: Policy
    name: str
    format: FormatName
    counter: TokenCounter
    page_in: float


def load_view_settings(
    file: Path | None, *, budget: int | None, policy: str | None, format: str | None, model: str | None
) -> ViewSettings:
    """Complete the options of the command line from the configuration. Raises ConfigurationError, BudgetError."""
    config = load(file)
    options = build_options(config.values)
    model = options.get("model") if model is None else model
    configured = options.get("policy", "ladder") if policy is None else policy
    instance = policy_named(configured) if isinstance(configured, str) else configured
    return ViewSettings(
        _resolve_budget(budget, options, model),
        instance,
        instance.name,
        format_named(option_or_setting(config, "format", format)).name,
        resolve_counter(model),
        config.value("page_in"),
    )


def _resolve_budget(budget: int | None, options: dict[str, Any], model: str | None) -> int:
    if budget is not None:
        check_budget(budget)
        return budget
    if "budget" in options:
        limit: int = options["budget"].limit
        return limit
    if model is None:
        raise CycloptsError(msg="Set the tokens of a request: --budget, or budget in pagein.toml.")
    from pagein.tokens.windows import budget_for  # noqa: PLC0415 - the table loads when it is needed

    return budget_for(model).limit


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class RunOptions:
    """The run that a command is about. The configuration completes what is not given."""

    session: SessionName = None
    tenant: ConfiguredTenant = None

    def resolve(self, file: Path | None = None) -> tuple[str | None, str]:
        """The session and the tenant; no session where nothing sets one. Raises ConfigurationError."""
        config = load(file)
        setting = config.values.get("session")
        name = self.session if self.session is not None or setting is None else str(setting.value)
        return name, option_or_setting(config, "tenant", self.tenant)

    def find(self, db: str, file: Path | None = None) -> tuple[str, str]:
        """The session and the tenant; the only session there is where nothing sets one. Raises ConfigurationError."""
        name, tenant = self.resolve(file)
        return _stores.find_session(db, name, tenant), tenant

    @contextmanager
    def open_memory(self, db: str, *, file: Path | None = None, **options: Any) -> Iterator[AgentMemory]:
        """Open the memory of an existing run, see ``find``, without a checkpoint at close."""
        name, tenant = self.find(db, file)
        with AgentMemory.open(
            db, session=name, tenant=tenant, checkpoints=AutoCheckpoint(close=False), **options
        ) as memory:
            yield memory


ANY_RUN = RunOptions()


def resolve_tenant(tenant: str | None) -> str:
    """The tenant of the command line, else the environment's or the configuration's, else "". Raises ConfigurationError."""
    return str(option_or_setting(load(), "tenant", tenant))


def option_or_setting(config: Config, key: str, option: Any) -> Any:
    """The option of the command line, else the configuration's value of a key."""
    return config.value(key) if option is None else option
