"""Build the options of ``AgentMemory.open`` from configured values; each section's own class checks it as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from pagein.context.compaction.base import Policy
from pagein.context.compaction.ladder import RUNGS, Ladder
from pagein.context.compaction.policies.tiers import Tiers
from pagein.context.compaction.registry import POLICIES
from pagein.context.tool_rules import Tools
from pagein.errors import ConfigurationError, PageinError
from pagein.facts.ranking import Weights
from pagein.facts.retention import Capacity
from pagein.facts.settings import Settings
from pagein.memory.checkpoints import AutoCheckpoint
from pagein.memory.config.keys import KEYS
from pagein.memory.config.sources import ConfiguredValue
from pagein.models.registry import model_named
from pagein.models.retrying import Breaker, RetryingModel, RetryPolicy
from pagein.models.spending import Price, Spending
from pagein.tokens import Budget
from pagein.tokens.windows import budget_for

T = TypeVar("T")
Values = Mapping[str, ConfiguredValue]


def build_options(values: Values) -> dict[str, Any]:
    """Build all options but the summarizer. Raises ConfigurationError with the source of the wrong section."""
    options: dict[str, Any] = {
        name: setting.value for name, setting in values.items() if "." not in name and name in KEYS
    }
    sections = {
        "budget": _build_budget(values),
        "policy": _build_policy(values),
        "facts": _build_facts(values),
        "tool_rules": _build_section("tool_rules", Tools, values),
        "checkpoints": _build_section("checkpoints", AutoCheckpoint, values),
    }
    return options | {name: section for name, section in sections.items() if section is not None}


def build_retry_options(values: Values) -> dict[str, Any]:
    """Build the configured arguments of ``RetryingModel``; an empty dict where none was set."""
    with _section_in_errors("summarizer", values):
        retry, breaker, price, spending = (
            _section_values(f"summarizer.{name}", values) for name in ("waits", "breaker", "price", "spending")
        )
        if price and not {"input", "output"} <= price.keys():
            raise ConfigurationError("a price is at least input and output")
        if price and "money" not in spending:
            raise ConfigurationError("a price is for a limit, spending.money, which is not set")
        arguments = {
            "retry": RetryPolicy(**retry) if retry else None,
            "breaker": Breaker(**breaker) if breaker else None,
            "spending": Spending(**spending, price=Price(**price) if price else None) if spending else None,
        }
        if _section_sources("summarizer", values) and "summarizer.model" not in values:
            raise ConfigurationError('there is no model: set summarizer.model, such as "openai:gpt-4o-mini"')
    return {name: argument for name, argument in arguments.items() if argument is not None}


def build_summarizer(values: Values) -> Any:
    """Build the model that writes summaries: None without one, its name where only the name is set.

    Raises ConfigurationError.
    """
    parameters = _section_values("summarizer", values)
    if not parameters:
        return None
    name, retry_options = parameters.pop("model"), build_retry_options(values)
    if not parameters and not retry_options:
        return name
    with _section_in_errors("summarizer", values):
        model = model_named(name, **parameters)
        return RetryingModel(model, **retry_options) if retry_options else model


def _build_budget(values: Values) -> Budget | None:
    parameters = _section_values("budget", values)
    if not parameters:
        return None
    with _section_in_errors("budget", values):
        if "window" in parameters:
            return Budget(**parameters)
        model = values.get("model")
        return replace(budget_for("" if model is None else str(model.value)), **parameters)


def _build_policy(values: Values) -> Policy | str | None:
    """Build the policy with its section's parameters; a ladder also with those of its rungs' sections."""
    name = values.get("policy.name")
    with _section_in_errors("policy", values):
        policies = {name: _configure_policy(name, policy(), values) for name, policy in POLICIES.items()}
        tiers = policies["tiers"]
        if isinstance(tiers, Tiers) and tiers.fewest > tiers.most:
            raise ConfigurationError(f"policy.tiers.fewest is at most most: {tiers.fewest}, {tiers.most}")
        if name is not None:
            return policies[str(name.value)]
        if _section_sources("policy", values):
            raise ConfigurationError(f"policy.name says which policy: one of {', '.join(POLICIES)}")
    return None


def _configure_policy(name: str, policy: Policy, values: Values) -> Policy:
    parameters = _section_values(f"policy.{name}", values)
    if isinstance(policy, Ladder):
        defaults = {rung.name: rung for rung in RUNGS}
        rungs = [defaults.get(rung) or POLICIES[rung]() for rung in parameters.get("rungs", defaults)]
        return replace(policy, rungs=tuple(_configure_policy(rung.name, rung, values) for rung in rungs))
    return replace(policy, **parameters) if parameters else policy  # type: ignore[type-var]  # every policy is a dataclass


def _build_facts(values: Values) -> Settings | bool | None:
    parameters = _section_values("facts", values)
    enabled = parameters.pop("enabled", None)
    with _section_in_errors("facts", values):
        weights, capacity = (_section_values("facts.weights", values), _section_values("facts.capacity", values))
        if weights:
            parameters["weights"] = Weights(**weights)
        if capacity:
            parameters["capacity"] = Capacity(**capacity)
        settings = Settings(**parameters) if parameters else None
    return False if enabled is False else settings or enabled


def _build_section(section: str, kind: Callable[..., T], values: Values) -> T | None:
    parameters = _section_values(section, values)
    with _section_in_errors(section, values):
        return kind(**parameters) if parameters else None


def _section_values(section: str, values: Values) -> dict[str, Any]:
    """The values set in a section, without those of its subsections."""
    return {
        name.removeprefix(f"{section}."): setting.value
        for name, setting in values.items()
        if name.rpartition(".")[0] == section
    }


def _section_sources(section: str, values: Values) -> str:
    sources = (setting.source for name, setting in values.items() if name.startswith(f"{section}."))
    return " and ".join(dict.fromkeys(sources))


@contextmanager
def _section_in_errors(section: str, values: Values) -> Iterator[None]:
    """Add the section and the sources of its values to an error."""
    try:
        yield
    except PageinError as error:
        raise ConfigurationError(f"{_section_sources(section, values)}: [{section}]: {error}") from None
