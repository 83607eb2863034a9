"""Every key of a configuration: its type and default are read from the code that takes it, its range stands here.

A field added to one of ``OWNERS`` is a key as soon as it has a rule, and a test asks for one.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pagein.backends.open import open_log
from pagein.context.compaction.registry import POLICIES, policy_named
from pagein.facts.ranking import Weights
from pagein.facts.retention import Capacity
from pagein.facts.settings import Settings
from pagein.memory.checkpoints import Automatic
from pagein.memory.config.rules import RULES, Rule
from pagein.memory.options import Options
from pagein.models.openai_chat import OpenAIModel
from pagein.models.retrying import Breaker, Waits
from pagein.models.spending import Price, Spending
from pagein.tokens import Budget

Kind = Literal["whole", "number", "switch", "text", "path", "list", "table"]
Value = int | float | bool | str | tuple[str, ...] | dict[str, Any]

OWNERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "budget": Budget,
        "policy": policy_named,
        **{f"policy.{name}": made for name, made in POLICIES.items()},
        "facts": Settings,
        "facts.weights": Weights,
        "facts.capacity": Capacity,
        "summarizer": OpenAIModel,
        "summarizer.waits": Waits,
        "summarizer.breaker": Breaker,
        "summarizer.spending": Spending,
        "summarizer.price": Price,
        "checkpoints": Automatic,
    }
)
"""What each section is made into: its parameters are the section's keys."""

SHORT: Mapping[str, str] = MappingProxyType(
    {
        "budget": "budget.window",
        "policy": "policy.name",
        "summarizer": "summarizer.model",
        "facts": "facts.enabled",
    }
)
"""A section given as one value: ``budget = 8000``."""

IN_CODE: Mapping[str, str] = MappingProxyType(
    {
        "branch": "the branch to go on with, another from run to run",
        "counter": "a token counter of your own",
        "clock": "another time than the machine's",
        "key": "a key to encrypted logs, which stands in no file: the environment variable PAGEIN_KEY holds one",
        "callbacks": "what is called when a step was recorded",
        "policy.relevance.weight": "what a step counts for beside its words",
        "policy.relevance.embedder": "what its steps are compared by, in place of words",
        "policy.tiers.weight": "the same for what keeps its place behind the window",
        "policy.tiers.embedder": "what those are compared by, in place of words",
    }
)
"""Options that are no text, and are given in code."""

PREFIX = "PAGEIN_"


@dataclass(frozen=True, slots=True)
class Key:
    """One thing that can be set: where it stands, its type, its default, and its rule."""

    name: str
    kind: Kind
    default: Any
    rule: Rule
    choices: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """The environment variable that overrides it.

        >>> KEYS["budget.window"].variable
        'PAGEIN_BUDGET_WINDOW'
        """
        return PREFIX + self.name.upper().replace(".", "_")

    @property
    def allowed(self) -> str:
        """What it may be, in words, as ``a number from 0 to 0.5``."""
        if self.rule.form:
            return self.rule.form
        named = ", ".join(self.choices)
        match self.kind:
            case "whole" | "number":
                what = "a whole number" if self.kind == "whole" else "a number"
                least, most = (f"{each:,}" for each in (self.rule.least, self.rule.most))
                return (
                    f"{what} above {least}, at most {most}"
                    if self.rule.above
                    else f"{what} from {least} to {most}"
                )
            case "switch":
                return f"true, false or {named}" if named else "true or false"
            case "list":
                return f"a list of one or more of {named}" if named else "a list of texts"
            case "table":
                return "a table"
            case "text" | "path":
                return f"one of {named}" if named else "a text"

    def fits(self, value: object) -> bool:
        """Whether a value as TOML gives it may be the key's; lists may be tuples."""
        match self.kind:
            case "whole":
                return isinstance(value, int) and not isinstance(value, bool) and self._is_within(value)
            case "number":
                return (
                    isinstance(value, int | float) and not isinstance(value, bool) and self._is_within(value)
                )
            case "switch":
                return isinstance(value, bool) or (isinstance(value, str) and value in self.choices)
            case "list":
                given = value if isinstance(value, list | tuple) else (None,)
                return all(self._is_word(each) for each in given) and bool(given or not self.choices)
            case "table":
                return isinstance(value, dict)
            case "text" | "path":
                return self._is_word(value)

    def read(self, text: str) -> object:
        """What the text of an environment variable means; the text itself where it means nothing of the kind."""
        try:
            match self.kind:
                case "whole":
                    return int(text)
                case "number":
                    return float(text)
                case "switch":
                    return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
                case "list":
                    return [each.strip() for each in text.split(",")]
                case "table":
                    import json  # noqa: PLC0415 - for the one key that is a table

                    return json.loads(text)
                case "text" | "path":
                    return text
        except (ValueError, RecursionError):
            return text

    def _is_within(self, value: float) -> bool:
        if isinstance(value, float) and not math.isfinite(value):
            return False
        return self.rule.least <= value <= self.rule.most and not (
            self.rule.above and value == self.rule.least
        )

    def _is_word(self, value: object) -> bool:
        if not isinstance(value, str) or "\0" in value or not _is_utf8(value):
            return False
        if self.choices:
            return value in self.choices
        return re.fullmatch(self.rule.pattern, value, re.DOTALL) is not None


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _derived() -> Iterator[Key]:
    store = {name: each for name, each in _parameters(open_log).items() if name != "url"}
    options = {name: (hint, None) for name, hint in get_type_hints(Options).items()}
    yield from _keys("", store | options)
    for section, owner in OWNERS.items():
        found = _parameters(owner)
        if section.startswith("policy."):
            del found["name"]
        elif section == "summarizer":
            found = {"model": found.pop("name"), **found}
        elif section == "facts":
            found = {"enabled": (bool, None), **found}
        yield from _keys(f"{section}.", found)


def _parameters(owner: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """The type and the default of each parameter; None where there is none."""
    # What takes them may be a base's.
    made = (vars(each).get("__init__") for each in owner.__mro__) if isinstance(owner, type) else (owner,)
    hints = get_type_hints(next(each for each in made if each is not None))
    given = inspect.signature(owner).parameters.values()
    plain = (int, float, str, bool, tuple)
    return {
        each.name: (hints[each.name], each.default if isinstance(each.default, plain) else None)
        for each in given
    }


def _keys(prefix: str, parameters: Mapping[str, tuple[Any, Any]]) -> Iterator[Key]:
    for last, (hint, default) in parameters.items():
        name = prefix + last
        rule = RULES.get(name)
        kind, choices = _kind(hint)
        kind = rule.kind or kind if rule is not None else None
        if rule is not None and kind is not None:
            told = rule.default if default is None or rule.default is not None else default
            yield Key(name, kind, told, rule, rule.choices or choices)


def _kind(hint: Any) -> tuple[Kind | None, tuple[str, ...]]:
    """What a type is in a file, with its words where only some will do; None for what no file can say."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        left = [each for each in inner if each is not NoneType]
        return _kind(left[0]) if len(left) == 1 else (None, ())
    if origin is Literal:
        return "text", inner
    if origin is tuple:
        kind, choices = _kind(inner[0])
        return ("list" if kind == "text" else None), choices
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return "table", ()
    kinds: dict[Any, Kind] = {bool: "switch", int: "whole", float: "number", str: "text"}
    return kinds.get(hint), ()


KEYS: Mapping[str, Key] = MappingProxyType({key.name: key for key in _derived()})
"""Every key under its name, section by section."""

SECTIONS = tuple(dict.fromkeys(name[:dot] for name in KEYS for dot in range(len(name)) if name[dot] == "."))
"""The names of the tables, ``policy`` and ``policy.tiers``."""
