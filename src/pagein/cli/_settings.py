"""What a command was not told: the environment says it, then the configuration file that holds here, then the code.

As with ``AgentMemory.open(url, **load().options())``: a file is read because a command was run in its folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import CycloptsError, Parameter

from pagein.cli._options import check_budget, counter_of
from pagein.context.compaction.base import Policy
from pagein.context.compaction.registry import policy_named
from pagein.formats import format_named
from pagein.memory.config import Config, load
from pagein.memory.config.build import options_of
from pagein.tokens import TokenCounter

ConfigFile = Annotated[
    Path | None,
    Parameter(help="Settings from this file; without it from the nearest pagein.toml, from here upwards."),
]
Budget = Annotated[
    int | None, Parameter(help="Tokens a request may have; needed where no configuration says it.")
]
PolicyName = Annotated[
    str | None, Parameter(help="What leaves, by a policy's name; ladder where nothing says it.")
]
FormatName = Annotated[
    str | None, Parameter(help="How requests are spelled: openai or anthropic; openai where nothing says it.")
]


Tenant = Annotated[str | None, Parameter(help="Whose session, where the store is shared.")]


@dataclass(frozen=True, slots=True)
class Viewing:
    """How a command makes views: of ``budget`` tokens by a policy, spelled and counted so."""

    budget: int
    policy: Policy
    name: str
    """The policy's."""
    format: str
    counter: TokenCounter
    page_in: float


def viewing(
    file: Path | None, *, budget: int | None, policy: str | None, format: str | None, model: str | None
) -> Viewing:
    """What was said on the command line, and for the rest what holds here. Raises ConfigurationError, BudgetError."""
    config = load(file)
    options = options_of(config.values)
    name = model if model is not None else options.get("model")
    chosen = options.get("policy", "ladder") if policy is None else policy
    made = policy_named(chosen) if isinstance(chosen, str) else chosen
    return Viewing(
        _budget(budget, options, name),
        made,
        made.name,
        format_named(format if format is not None else config.value("format")).name,
        counter_of(name),
        config.value("page_in"),
    )


def _budget(given: int | None, options: dict[str, Any], model: str | None) -> int:
    if given is not None:
        check_budget(given)
        return given
    if "budget" in options:
        limit: int = options["budget"].limit
        return limit
    if model is None:
        raise CycloptsError(msg="Say how many tokens a request may have: --budget, or budget in pagein.toml.")
    from pagein.tokens.windows import budget_for  # noqa: PLC0415 - the table loads when it is asked

    return budget_for(model).limit


def place(file: Path | None, session: str | None, tenant: str | None) -> tuple[str | None, str]:
    """The session and the tenant that are meant; no session where nothing says it. Raises ConfigurationError."""
    config = load(file)
    found = config.values.get("session")
    named = session if session is not None or found is None else str(found.value)
    return named, told(config, "tenant", tenant)


def told(config: Config, key: str, given: Any) -> Any:
    """What was given, else what holds here for a key."""
    return config.value(key) if given is None else given
