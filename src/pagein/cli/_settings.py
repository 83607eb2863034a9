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
from pagein.cli._options import ModelName, SessionName, check_budget, resolve_counter
from pagein.context.compaction.base import Policy
from pagein.context.compaction.registry import policy_named
from pagein.formats import FORMATS, FormatName, format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.checkpoints import AutoCheckpoint
from pagein.memory.config import Config, load
from pagein.memory.config.build import build_options
from pagein.memory.options import PAGE_IN_SHARE, Options
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
    """The settings with which a command makes views. ``budget`` in tokens."""

    budget: int
    policy: Policy
    format: FormatName
    counter: TokenCounter
    page_in: float = PAGE_IN_SHARE

    @property
    def options(self) -> Options:
        """The same as options of a memory, but the format, which one that is replayed does not speak."""
        return {"budget": self.budget, "policy": self.policy, "counter": self.counter, "page_in": self.page_in}


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ViewOptions:
    """The settings of the views to make, as the command line has them."""

    budget: ConfiguredBudget = None
    policy: ConfiguredPolicy = None
    format: ConfiguredFormat = None
    model: ModelName = None
    config: ConfigFile = None

    def settings(self) -> ViewSettings:
        """The options, completed from the configuration. Raises ConfigurationError, BudgetError."""
        config = load(self.config)
        options = build_options(config.values)
        model = options.get("model") if self.model is None else self.model
        policy = options.get("policy", "ladder") if self.policy is None else self.policy
        return ViewSettings(
            _resolve_budget(self.budget, options, model),
            policy_named(policy) if isinstance(policy, str) else policy,
            format_named(option_or_setting(config, "format", self.format)).name,
            resolve_counter(model),
            config.value("page_in"),
        )


CONFIGURED_VIEW = ViewOptions()


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
