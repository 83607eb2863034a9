"""Every key of a configuration, read from the documented fields of the code that takes it.

A field of one of ``OWNERS`` is a key as soon as it is annotated with a line of documentation, see
``pagein._common.validation``; a test requires one. The fields that a file sets as text, and code as an object, are
listed here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, get_args

from pagein._common.json_values import parse_json
from pagein._common.validation import POSITIVE_TOKENS, SECONDS, Constraint, Option, option_from_hint, options_of
from pagein.context.compaction.ladder import RUNGS
from pagein.context.compaction.registry import POLICIES, policy_named
from pagein.context.tool_rules import Tools
from pagein.facts.ranking import Weights
from pagein.facts.retention import Capacity
from pagein.facts.settings import Settings
from pagein.formats import FORMATS
from pagein.log.raw_rows import SYNCHRONOUS
from pagein.memory.checkpoints import AutoCheckpoint
from pagein.memory.options import MAX_SPEND_SHARE, PAGE_IN_MAX_SHARE, PAGE_IN_SHARE, SPEND_SHARE, TelemetryMode
from pagein.models.openai_chat import OpenAIModel
from pagein.models.retrying import Breaker, RetryPolicy
from pagein.models.spending import Price, Spending
from pagein.tokens import Budget
from pagein.tokens.prices import PRICES

Value = int | float | bool | str | tuple[str, ...] | dict[str, Any]

_NAME = r".*\S.*"
_OWNER = Constraint(form="a name that is not empty", pattern=_NAME)

_MEMORY: Mapping[str, tuple[Any, Any]] = {
    "session": (Annotated[str, Constraint(form="a name that does not begin with pagein:facts:", pattern=r"(?!pagein:facts:).*"), "Name of the run."], "default"),
    "tenant": (Annotated[str, "Tenant whose data is read and written. No other tenant's is visible."], ""),
    "timeout": (Annotated[float, SECONDS, "Seconds to wait for a busy store."], 5.0),
    "synchronous": (Annotated[str, Constraint(choices=SYNCHRONOUS), "SQLite's synchronous mode: durability of a write when it returns."], "FULL"),
    "readonly": (Annotated[bool, "Write nothing. Compactions are kept by this memory only."], False),
    "model": (Annotated[str, Constraint(form="the name of a model", pattern=_NAME), "The run's model, for counting tokens. Without it: o200k_base."], None),
    "prompts": (Annotated[str, Constraint(form="the path of a folder", pattern=_NAME, kind="path"), "Folder of your own prompts, relative to the file."], None),
    "page_in": (Annotated[float, Constraint(most=PAGE_IN_MAX_SHARE), "Share of the budget for steps that are inserted again automatically. 0: off."], PAGE_IN_SHARE),
    "prices": (Annotated[str, Constraint(choices=tuple(PRICES)), "Prices of the provider's tokens: what is worth showing depends on them. none: without a prompt cache."], "default"),
    "embedder": (Annotated[str, Constraint(form="none, auto, minilm or openai:MODEL, optionally followed by @URL#DIMENSION", pattern=r"none|auto|minilm|openai:\S+", guarded="@"), "Embedder for search by meaning. none: search by words."], "none"),
    "user": (Annotated[str, _OWNER, "User whose facts are read and shown."], None),
    "project": (Annotated[str, _OWNER, "Project of the user whose facts are read and shown too."], None),
    "task": (Annotated[str, _OWNER, "Task of the session whose facts are read and shown too."], None),
    "format": (Annotated[str, Constraint(choices=tuple(FORMATS)), "Format of requests."], "openai"),
    "spend": (Annotated[float, Constraint(most=MAX_SPEND_SHARE), "Tokens of the models that write summaries and facts, as a share of the run's own."], SPEND_SHARE),
    "telemetry": (Annotated[str, Constraint(choices=get_args(TelemetryMode)), "OpenTelemetry spans and metrics. content: also what was searched for and came back."], "off"),
    "direct": (Annotated[bool, "Write a summary from all its steps while they fit into one request, not from the one before."], False),
    "resume": (Annotated[bool, Constraint(choices=("fresh",)), "Close calls in flight as unknown. fresh: also start with an empty view."], False),
}  # fmt: skip
"""Options of ``AgentMemory.open`` that are no section, with their defaults."""

_EXTRA: Mapping[str, tuple[Any, Any]] = {
    "policy.name": (Annotated[str, Constraint(choices=tuple(POLICIES)), "Compaction policy. Default: tiers with a model that writes summaries, else ladder."], None),
    "policy.ladder.rungs": (Annotated[tuple[str, ...], Constraint(choices=tuple(name for name in POLICIES if name != "ladder")), "Policies to apply, in this order."], tuple(policy.name for policy in RUNGS)),
    "facts.enabled": (Annotated[bool, "Facts on or off. Default: on where a user, project, task or any key here is set."], None),
    "summarizer.model": (Annotated[str, Constraint(form="maker:model, such as openai:gpt-4o-mini", pattern=r"[^:\s]+:\s*\S.*"), "Model that writes summaries and facts."], None),
}  # fmt: skip
"""Keys of sections that are no field of the section's owner."""

_SERVER: Mapping[str, tuple[Any, Any]] = {
    "server.upstreams": (Annotated[Mapping[str, Any], Constraint(kind="table", form="a table of names and addresses", guarded="."), 'Upstreams of `pagein serve`, the first is the default: `name = "https://..."`.'], None),
    "server.clients": (Annotated[Mapping[str, Any], Constraint(kind="table", form="a table of hashes and tenants"), "Who may use `pagein serve` from other machines: the SHA-256 of a proxy key, in hexadecimal, and its tenant."], None),
    "server.origins": (Annotated[tuple[str, ...], Constraint(form="a list of origins", pattern=r"https?://[^/\s]+|[a-z-]+://[^/\s]*"), "Origins of web pages and browser extensions that may use `pagein serve`, such as `https://chat.example.org`."], ()),
    "server.window": (Annotated[int, POSITIVE_TOKENS, "Window that `pagein serve` takes every model to have. Default: the model's."], None),
    "server.mode": (Annotated[str, Constraint(choices=("view", "observe", "off")), "What `pagein serve` does: send views, record alone, or neither."], "view"),
}  # fmt: skip
"""Keys of the server, whose own package is above this one."""

OWNERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "budget": Budget,
        "policy": policy_named,
        **{f"policy.{name}": policy for name, policy in POLICIES.items()},
        "facts": Settings,
        "facts.weights": Weights,
        "facts.capacity": Capacity,
        "summarizer": OpenAIModel,
        "summarizer.waits": RetryPolicy,
        "summarizer.breaker": Breaker,
        "summarizer.spending": Spending,
        "summarizer.price": Price,
        "tool_rules": Tools,
        "checkpoints": AutoCheckpoint,
    }
)
"""The class of each section: its documented parameters are the section's keys."""

SHORT: Mapping[str, str] = MappingProxyType(
    {"budget": "budget.window", "policy": "policy.name", "summarizer": "summarizer.model", "facts": "facts.enabled"}
)
"""The key that a section given as one value sets: ``budget = 8000``."""

IN_CODE: Mapping[str, str] = MappingProxyType(
    {
        "branch": "the branch to continue; it differs from run to run",
        "counter": "a token counter of your own",
        "clock": "a clock other than the machine's",
        "key": "the key of an encrypted log. Set the environment variable PAGEIN_KEY; a file may not contain it",
        "callbacks": "functions called after each recorded step",
        "step_types": "classes of steps of your own",
        "roles": "names of roles in your messages other than the provider's",
        "policy.relevance.weight": "a weight for steps in addition to their words",
        "policy.relevance.embedder": "an embedder to compare steps with, instead of words",
        "policy.relevance.rater": "a rater of steps near the limit, such as ModelRater",
        "policy.tiers.weight": "a weight for the relevant steps that stay behind the window",
        "policy.tiers.embedder": "an embedder to compare these steps with",
    }
)
"""Options that can only be given in code."""

PREFIX = "PAGEIN_"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a configuration: its allowed values, its documentation and its default."""

    name: str
    constraint: Constraint
    doc: str
    default: Any

    @property
    def variable(self) -> str:
        """The environment variable that overrides it.

        >>> KEYS["budget.window"].variable
        'PAGEIN_BUDGET_WINDOW'
        """
        return PREFIX + self.name.upper().replace(".", "_")

    def accepts(self, value: object) -> bool:
        """True where a value, as TOML gives it, is allowed."""
        return self.constraint.accepts(value, configured=True)

    def parse(self, text: str) -> object:
        """Parse the text of an environment variable; return the text itself where it is none of the key's kind."""
        try:
            match self.constraint.kind:
                case "whole":
                    return int(text)
                case "number":
                    return float(text)
                case "switch":
                    return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
                case "list":
                    return [item.strip() for item in text.split(",")]
                case "table":
                    return parse_json(text, text)
                case _:
                    return text
        except ValueError:
            return text


def _read_keys() -> Iterator[Key]:
    """Every key, section by section."""
    yield from _keys_of_table(_MEMORY, "")
    for section, owner in OWNERS.items():
        yield from _keys_of_table(_EXTRA, section)
        parameters = inspect.signature(owner).parameters
        for name, option in options_of(owner).items():
            yield _key(f"{section}.{name}", option, parameters[name].default)
    yield from _keys_of_table(_SERVER, "server")


def _keys_of_table(table: Mapping[str, tuple[Any, Any]], section: str) -> Iterator[Key]:
    for name, (hint, default) in table.items():
        option = option_from_hint(hint)
        if option is not None and name.rpartition(".")[0] == section:
            yield _key(name, option, default)


def _key(name: str, option: Option, default: Any) -> Key:
    plain = default if isinstance(default, int | float | str | tuple) else None
    return Key(name, option.constraint, option.doc, plain)


KEYS: Mapping[str, Key] = MappingProxyType({key.name: key for key in _read_keys()})
"""Every key by its name, section by section."""

SECTIONS = tuple(dict.fromkeys(name[:dot] for name in KEYS for dot in range(len(name)) if name[dot] == "."))
"""The names of the tables, such as ``policy`` and ``policy.tiers``."""
