"""The options of a memory: their checks, and the state built from them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast, get_args

from pagein._common.validation import is_number, is_whole_number
from pagein.context.compaction.base import Policy, PolicyName
from pagein.context.tool_rules import NO_RULES, Tools
from pagein.context.view.fold import Fold
from pagein.errors import ConfigurationError
from pagein.events.callbacks import Callback, CallbackRegistry
from pagein.events.steps import ActionStep, MemoryStep, Usage
from pagein.facts.owners import check_owner_name
from pagein.formats import FormatName, format_named
from pagein.formats.sdk_objects import read_usage
from pagein.memory._state import FoldedLog, PageInState, RunState, SummaryState, UsageState
from pagein.memory.checkpoints import AutoCheckpoint
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.budget import as_budget
from pagein.tokens.calibration import Calibration
from pagein.tokens.encodings import Encoding
from pagein.tokens.prices import Prices, prices_named

if TYPE_CHECKING:
    from pagein.models import AsyncModel, Model
    from pagein.models.writer_account import WriterAccounts
    from pagein.search.base import Embedder, Role
    from pagein.summaries.job import Summarizer

    AnyModel = Model | AsyncModel

TelemetryMode = Literal["off", "on", "content"]

SPEND_SHARE, MAX_SPEND_SHARE = 1.0, 1_000.0
"""Tokens of the models that write, as a share of the tokens that the run recorded: by default, and at most."""

PAGE_IN_SHARE, PAGE_IN_MAX_SHARE = 0.2, 0.5
"""Share of the budget for a page-in: by default, and at most."""

SUMMARY_MAX_TOKENS = 2_000
"""Tokens that a summary's JSON may have; at most a quarter of its model's window."""


class Options(TypedDict, total=False):
    """The options of a memory; each has a default.

    ``budget``: tokens of the rendered messages, or a Budget; without it the window of ``model`` less its reserves.
    ``policy``: a policy's name, or a policy; without it ``tiers`` where a model writes summaries, else ``ladder``.
    ``model``: the run's own model. Its name selects the token counter (without one, o200k_base exactly). A model
    object of ``pagein.models``, a LangChain chat model or a callable also writes the summaries. ``summarizer``:
    another model that writes them, or its name as ``openai:gpt-4o-mini``. ``prompts``: a folder or a mapping of
    prompts instead of the library's. ``page_in``: the share of the budget for what left the view and is likely needed
    again, 0 to 0.5; 0 turns it off. ``prices``: the provider's, a ``Prices`` or a name of ``pagein.tokens.prices``: what is
    shown again must be worth them. ``tool_rules``: rules for the results of tools, a ``Tools``. ``embedder``: an ``Embedder`` for search by meaning, or a name as ``minilm``;
    without one search is by words. ``user``, ``project``, ``task``: the owners whose facts are extracted and shown;
    ``facts``: their ``Settings``, True, or False for none. ``counter``: a counter instead of the model's own.
    ``format``: the default format of ``to_messages``. ``checkpoints``: automatic ones, an ``AutoCheckpoint``; none by
    default. ``resume``: True closes calls in flight as unknown; ``"fresh"`` also starts the view anew from here.
    ``roles``: your names of roles, such as ``{"human": "user"}``: read in messages, and written in requests.
    ``spend``: the tokens of the models that write summaries and facts, as a share of the tokens that the run recorded
    (1.0); None for no limit. ``direct``: True has a summary written from all its steps while they fit into one request,
    instead of from the record before and what is new. ``step_types``: classes of steps of one's own, of which ``steps`` gives objects again.
    ``clock``: returns seconds since the epoch. ``callbacks``: called with each step and observation once it is
    recorded; their errors are raised by ``record``, and the steps stay recorded. ``telemetry``: "on" gives OpenTelemetry
    spans and metrics of every turn, "content" also what was searched for and came back; "off" by default.
    """

    budget: int | Budget | None
    policy: PolicyName | Policy
    model: Any
    summarizer: Any
    prompts: str | os.PathLike[str] | Mapping[str, str] | None
    page_in: float
    prices: Prices | str
    tool_rules: Tools
    embedder: Any
    user: str | None
    project: str | None
    task: str | None
    facts: Any
    counter: TokenCounter | None
    format: FormatName
    roles: Mapping[str, str] | None
    checkpoints: AutoCheckpoint
    resume: bool | Literal["fresh"]
    spend: float | None
    direct: bool
    clock: Callable[[], float]
    callbacks: CallbackRegistry | Sequence[Callback] | Mapping[type, Callback | Sequence[Callback]] | None
    telemetry: TelemetryMode
    step_types: Sequence[type[MemoryStep]]


class RecallFilters(TypedDict, total=False):
    """Filters of a recall: recorded between ``since`` and ``until``, in seconds since the epoch, and said by ``role``.

    ``across`` searches every session of the tenant, never another tenant's.
    """

    since: float | None
    until: float | None
    role: Role | tuple[Role, ...] | None
    across: bool


def check_usage(usage: Any) -> Usage:
    """The usage: a Usage, or that of an SDK's response. Raises ConfigurationError for counts that are not whole numbers."""
    report = read_usage(usage)
    if not all(map(is_whole_number, (report.input_tokens, report.output_tokens, report.cached_tokens))):
        raise ConfigurationError(f"usage is a Usage of whole numbers of tokens, not {usage!r}")
    return report


def check_count(keep_last_n: int | None) -> int | None:
    """The number of actions to show, unchanged. Raises ConfigurationError for anything but a whole number."""
    if keep_last_n is None or is_whole_number(keep_last_n):
        return keep_last_n
    raise ConfigurationError(f"keep_last_n is a whole number of actions, not {keep_last_n!r}")


def _find_cure(unknown: str) -> str:
    if unknown == "session":
        return "the framework's own name of the conversation is used"
    near = [] if unknown in _STORE else get_close_matches(unknown, (*Options.__annotations__, *_STORE), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join((*Options.__annotations__, *_STORE))}"


def _is_roles(roles: Any) -> bool:
    names = roles or {}
    is_mapping = isinstance(names, Mapping) and all(isinstance(name, str) and name for name in names)
    return is_mapping and all(role in ROLES for role in names.values())


ROLES = ("system", "developer", "user", "assistant", "tool", "function")

_ALLOWED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "policy": (lambda policy: isinstance(policy, str) or (callable(policy) and not isinstance(policy, type)), 'is a name, such as "tiers", or a policy, such as Tiers()'),
    "counter": (lambda counter: counter is None or callable(getattr(counter, "text", None)), "is a token counter"),
    "page_in": (lambda share: is_number(share) and 0 <= share <= PAGE_IN_MAX_SHARE, f"is a share of the budget from 0 to {PAGE_IN_MAX_SHARE}"),
    "direct": (lambda direct: isinstance(direct, bool), "is True or False"),
    "spend": (lambda spend: spend is None or (is_number(spend) and 0 <= spend <= MAX_SPEND_SHARE), f"is a share of the run's tokens from 0 to {MAX_SPEND_SHARE:g}, or None for no limit"),
    "tool_rules": (lambda rules: isinstance(rules, Tools), "is a pagein.Tools"),
    "clock": (callable, "gives seconds since the epoch when called"),
    "checkpoints": (lambda automatic: isinstance(automatic, AutoCheckpoint), "is an AutoCheckpoint"),
    "resume": (lambda resume: resume in (True, False, "fresh"), 'is True, False or "fresh"'),
    "telemetry": (lambda mode: mode in get_args(TelemetryMode), f"is {', '.join(get_args(TelemetryMode))}"),
    "roles": (_is_roles, f"maps your names to {', '.join(ROLES)}"),
}  # fmt: skip
"""The values that an option may have, as a test and in words; the classes of others check them."""


def check_options(options: Options) -> None:
    """Raise ConfigurationError for an unknown option or a value that is not allowed; load no table of models."""
    for name in options:
        if name not in Options.__annotations__:
            raise ConfigurationError(f"unknown option {name!r}: {_find_cure(name)}")
    values = cast("Mapping[str, Any]", options)
    for name, (is_allowed, words) in _ALLOWED.items():
        if name in values and not is_allowed(values[name]):
            raise ConfigurationError(f"{name} {words}, not {values[name]!r}")
    if isinstance(policy := options.get("policy"), str):
        _policy(policy)
    prices_named(options.get("prices", "default"))
    format_named(options.get("format", "openai"))
    for owner in ("user", "project", "task"):
        check_owner_name(owner, values.get(owner))


_STORE = ("session", "tenant", "readonly", "timeout", "synchronous")
"""Parameters of ``open`` for the store, beside the options."""


def build_state(options: Options) -> tuple[RunState, AnyModel | None]:
    """Build an empty state, and the model that writes its summaries. Raises ConfigurationError, BudgetError."""
    check_options(options)
    from pagein.tokens.windows import budget_for, counter_for  # noqa: PLC0415 - the table loads when it is asked

    model, budget = options.get("model"), options.get("budget")
    summary_model = _summary_model(options)
    name = model_name(model)
    counter = options.get("counter") or (counter_for(name) if name else Encoding("o200k_base"))
    if budget is None:
        budget = budget_for(name or "")
    policy = options.get("policy") or default_policy(summary_model)
    state = RunState(
        _policy(policy) if isinstance(policy, str) else policy,
        counter,
        _callback_registry(options.get("callbacks")),
        FoldedLog(Fold(counter)),
        UsageState(as_budget(budget), Calibration(counter.margin == 0), is_named=bool(name or options.get("counter"))),
        page_in=PageInState(options.get("page_in", PAGE_IN_SHARE), prices_named(options.get("prices", "default"))),
        summaries=SummaryState(None if summary_model is None else _build_summarizer(summary_model, options)),
        writers=None if summary_model is None else _open_accounts(options),
        tools=options.get("tool_rules", NO_RULES),
    )
    return state, summary_model


def model_name(model: object) -> str:
    """The name of the run's model; "" where it has none."""
    name = model if isinstance(model, str) else getattr(model, "name", None)
    return name if isinstance(name, str) else ""


def default_policy(summary_model: object) -> str:
    """The name of the policy where the options name none."""
    return "ladder" if summary_model is None else "tiers"


def policy_name(options: Options, state: RunState) -> str:
    """The name of the run's policy; "" for one that is not as its name gives it."""
    policy = options.get("policy") or default_policy(state.summaries.summarizer)
    if isinstance(policy, str):
        return policy
    from pagein.context.compaction.registry import POLICIES  # noqa: PLC0415 - the policies load when one is asked for

    return next((name for name, make in POLICIES.items() if make() == policy), "")


def _callback_registry(callbacks: object) -> CallbackRegistry | None:
    """The registry itself, or one of a list for actions or of functions by class, as smolagents takes them."""
    if callbacks is None or isinstance(callbacks, CallbackRegistry):
        return callbacks
    if isinstance(callbacks, list | tuple):
        callbacks = {ActionStep: callbacks}
    if not isinstance(callbacks, Mapping):
        raise ConfigurationError(f"callbacks is a CallbackRegistry, functions in a list or by class, not {callbacks!r}")
    registry = CallbackRegistry()
    for kind, functions in callbacks.items():
        for function in functions if isinstance(functions, list | tuple) else (functions,):
            registry.register(kind, function)
    return registry


def _policy(name: str) -> Policy:
    from pagein.context.compaction.registry import policy_named  # noqa: PLC0415 - the policies load when one is asked for

    return policy_named(name)


def _summary_model(options: Options) -> AnyModel | None:
    """The model that writes summaries: the summarizer, or the run's own model if it is one."""
    model, summarizer = options.get("model"), options.get("summarizer")
    writer = model if summarizer is None and not isinstance(model, str) else summarizer
    if writer is None:
        return None
    from pagein.models import as_model  # noqa: PLC0415 - SDKs load where a model is given

    return as_model(writer)


def _open_accounts(options: Options) -> WriterAccounts:
    from pagein.models.writer_account import WriterAccounts  # noqa: PLC0415 - loads where a model writes

    return WriterAccounts(options.get("spend", SPEND_SHARE), options.get("clock", time.time))


def _build_summarizer(model: AnyModel, options: Options) -> Summarizer:
    from pagein.summaries.job import Summarizer  # noqa: PLC0415
    from pagein.summaries.requests import PromptSettings  # noqa: PLC0415 - loads where a model writes
    from pagein.summaries.templates import load_prompts  # noqa: PLC0415
    from pagein.tokens.windows import MODELS  # noqa: PLC0415

    window, counter = model.window, MODELS.get(model.name).counter
    counter.text("its vocabulary loads now, not in the first turn that needs it")
    settings = PromptSettings(
        load_prompts(options.get("prompts")), counter, window, min(SUMMARY_MAX_TOKENS, window // 4)
    )
    direct = options.get("direct", False)
    return Summarizer(model.name, settings, holds_run=options.get("summarizer") is None, is_direct=direct)


def with_embedder(policy: Policy, embedder: Embedder) -> Policy:
    """The policy with this embedder, where it compares steps and has none of its own."""
    from pagein.context.compaction.policies.relevance import Relevance  # noqa: PLC0415 - loads where an embedder is given
    from pagein.context.compaction.policies.tiers import Tiers  # noqa: PLC0415

    if isinstance(policy, Relevance | Tiers) and policy.embedder is None:
        return replace(policy, embedder=embedder)
    return policy


def resolve_embedder(options: Options) -> Embedder | None:
    """The embedder of the options. Raises ConfigurationError."""
    embedder: Any = options.get("embedder")
    if embedder is None:
        return None
    if isinstance(embedder, str):
        from pagein.search.embedders import embedder_named  # noqa: PLC0415 - loads where one is asked for

        return embedder_named(embedder)
    if not callable(getattr(embedder, "embed", None)):
        raise ConfigurationError(f"embedder is an Embedder, or the name of one, not {embedder!r}")
    return cast("Embedder", embedder)
