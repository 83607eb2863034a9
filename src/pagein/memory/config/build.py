"""From values to what ``AgentMemory.open`` takes: each section made into what the code knows, checked as a whole there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pagein.context.compaction.base import Policy
from pagein.context.compaction.ladder import RUNGS, Ladder
from pagein.context.compaction.policies.tiers import Tiers
from pagein.context.compaction.registry import POLICIES
from pagein.errors import ConfigurationError, PageinError
from pagein.facts.ranking import Weights
from pagein.facts.retention import Capacity
from pagein.facts.settings import Settings
from pagein.memory.checkpoints import Automatic
from pagein.memory.config.keys import KEYS
from pagein.memory.config.sources import Found
from pagein.models.registry import model_named
from pagein.models.retrying import Breaker, Patient, Waits
from pagein.models.spending import Price, Spending
from pagein.tokens import Budget

Values = Mapping[str, Found]


def options_of(values: Values) -> dict[str, Any]:
    """What was set, as options; all but the model that writes. Raises ConfigurationError with the sections' sources."""
    options: dict[str, Any] = {
        name: each.value for name, each in values.items() if "." not in name and name in KEYS
    }
    made = {
        "budget": _budget(values),
        "policy": _policy(values),
        "facts": _facts(values),
        "checkpoints": _checkpoints(values),
    }
    return options | {name: each for name, each in made.items() if each is not None}


def patience_of(values: Values) -> dict[str, Any]:
    """What ``Patient`` takes beside the model, as far as it was set: nothing where nothing was."""
    with _told("summarizer", values):
        waits, breaker = _under("summarizer.waits", values), _under("summarizer.breaker", values)
        price, spending = _under("summarizer.price", values), _under("summarizer.spending", values)
        if price and not {"input", "output"} <= price.keys():
            raise ConfigurationError("a price is at least input and output")
        if price and "money" not in spending:
            raise ConfigurationError("a price is for a limit, spending.money, which is not set")
        made = {
            "waits": Waits(**waits) if waits else None,
            "breaker": Breaker(**breaker) if breaker else None,
            "spending": Spending(**spending, price=Price(**price) if price else None) if spending else None,
        }
        given = {name: each for name, each in made.items() if each is not None}
        if _sources("summarizer", values) and "summarizer.model" not in values:
            raise ConfigurationError('there is no model: set summarizer.model, as "openai:gpt-4o-mini"')
    return given


def summarizer_of(values: Values) -> Any:
    """The model that writes; its name alone where nothing else was set, None without one. Raises ConfigurationError."""
    given = _under("summarizer", values)
    if not given:
        return None
    name, patience = given.pop("model"), patience_of(values)
    if not given and not patience:
        return name
    with _told("summarizer", values):
        model = model_named(name, **given)
        return Patient(model, **patience) if patience else model


def _budget(values: Values) -> Budget | None:
    given = _under("budget", values)
    if not given:
        return None
    with _told("budget", values):
        if "window" in given:
            return Budget(**given)
        from pagein.tokens.windows import budget_for  # noqa: PLC0415 - the table loads when it is asked

        model = values.get("model")
        return replace(budget_for("" if model is None else str(model.value)), **given)


def _policy(values: Values) -> Policy | str | None:
    """The policy with the parameters of its section, a ladder with those of its rungs' sections too."""
    named = values.get("policy.name")
    with _told("policy", values):
        made = {name: _with(name, policy(), values) for name, policy in POLICIES.items()}
        tiers = made["tiers"]
        if isinstance(tiers, Tiers) and tiers.fewest > tiers.most:
            raise ConfigurationError(f"policy.tiers.fewest is at most most: {tiers.fewest}, {tiers.most}")
        if named is not None:
            return made[str(named.value)]
        if _sources("policy", values):
            raise ConfigurationError(f"policy.name says which policy: one of {', '.join(POLICIES)}")
    return None


def _with(name: str, policy: Policy, values: Values) -> Policy:
    given = _under(f"policy.{name}", values)
    if isinstance(policy, Ladder):
        ours = {each.name: each for each in RUNGS}
        rungs = [ours.get(each) or POLICIES[each]() for each in given.get("rungs", ours)]
        return replace(policy, rungs=tuple(_with(each.name, each, values) for each in rungs))
    return replace(policy, **given) if given else policy  # type: ignore[type-var]  # every policy is a dataclass


def _facts(values: Values) -> Settings | bool | None:
    given = _under("facts", values)
    enabled = given.pop("enabled", None)
    with _told("facts", values):
        weights, capacity = _under("facts.weights", values), _under("facts.capacity", values)
        if weights:
            given["weights"] = Weights(**weights)
        if capacity:
            given["capacity"] = Capacity(**capacity)
        settings = Settings(**given) if given else None
    return False if enabled is False else settings or enabled


def _checkpoints(values: Values) -> Automatic | None:
    given = _under("checkpoints", values)
    with _told("checkpoints", values):
        return Automatic(**given) if given else None


def _under(section: str, values: Values) -> dict[str, Any]:
    """The parameters of a section that were set, without those of the sections in it."""
    start = f"{section}."
    return {
        name.removeprefix(start): each.value
        for name, each in values.items()
        if name.startswith(start) and name.rpartition(".")[0] == section
    }


def _sources(section: str, values: Values) -> str:
    return " and ".join(
        dict.fromkeys(each.source for name, each in values.items() if name.startswith(f"{section}."))
    )


@contextmanager
def _told(section: str, values: Values) -> Iterator[None]:
    """What a section's owner refuses, with the section and where its values are from."""
    try:
        yield
    except PageinError as error:
        raise ConfigurationError(f"{_sources(section, values)}: [{section}]: {error}") from None
