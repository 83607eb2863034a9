"""What a memory is told when it is opened, checked, and the session made of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from pagein._common.validation import is_number, is_whole_number
from pagein.context.compaction.base import Policy
from pagein.context.view.fold import Fold
from pagein.errors import ConfigurationError
from pagein.events.callbacks import CallbackRegistry
from pagein.events.steps import Usage
from pagein.facts.owners import is_reserved
from pagein.formats import format_named
from pagein.memory._state import FoldedLog, PageInState, RunState, SummaryState, UsageState
from pagein.memory.checkpoints import AutoCheckpoint
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.calibration import Calibration
from pagein.tokens.encodings import Encoding

if TYPE_CHECKING:
    from pagein.models import AsyncModel, Model
    from pagein.search.base import Embedder, Role
    from pagein.summaries.job import Summarizer

    AnyModel = Model | AsyncModel

PAGE_IN_SHARE, PAGE_IN_MAX_SHARE = 0.2, 0.5
"""Share of the budget for what comes back by itself, unless told otherwise; and the most that may be asked for."""

SUMMARY_MAX_TOKENS = 2_000
"""Tokens a summary's JSON may have; at most a quarter of its author's window."""


class Options(TypedDict, total=False):
    """How a memory behaves; every one has a default.

    ``budget``: tokens of the rendered messages, or a Budget; without it the window of ``model`` less its reserves.
    ``policy``: a policy's name, or a policy; without it ``tiers`` where a model writes summaries, else ``ladder``.
    ``model``: the run's own model. A name says what tokens are counted for (without one, exactly in o200k_base); a
    model that can be asked, as ``pagein.models`` knows it, a LangChain chat model or a callable, also writes the
    summaries. ``summarizer``: another model that writes them, or its name as ``openai:gpt-4o-mini``. ``prompts``: a
    folder or a mapping of prompts in place of ours. ``page_in``: the share of the budget for what left the view and
    comes back by itself, 0 to 0.5; 0 turns it off. ``embedder``: who finds by meaning, an ``Embedder`` or a name as
    ``minilm``; without one, by words. ``user``, ``project``, ``task``: whose facts are read and shown; ``facts``: their
    ``Settings``, True, or False for none. ``counter``: instead of the model's own. ``format``: what
    ``to_messages`` speaks unless told otherwise. ``checkpoints``: when they are made unasked, an ``AutoCheckpoint``;
    never, unless told so. ``resume``: True closes calls that were in flight as unknown; ``"fresh"`` has the view
    start anew from here too. ``clock``: seconds since the epoch. ``callbacks``: called with each step and
    observation once it is recorded; what one raises is raised by ``record``, and the steps stay recorded.
    """

    budget: int | Budget | None
    policy: str | Policy
    model: Any
    summarizer: Any
    prompts: str | os.PathLike[str] | Mapping[str, str] | None
    page_in: float
    embedder: Any
    user: str | None
    project: str | None
    task: str | None
    facts: Any
    counter: TokenCounter | None
    format: str
    checkpoints: AutoCheckpoint
    resume: bool | Literal["fresh"]
    clock: Callable[[], float]
    callbacks: CallbackRegistry | None


class RecallFilters(TypedDict, total=False):
    """What narrows a recall: recorded between ``since`` and ``until``, in seconds since the epoch; said by ``role``.

    ``across`` looks in every session of the tenant, never another tenant's.
    """

    since: float | None
    until: float | None
    role: Role | tuple[Role, ...] | None
    across: bool


def check_session(session: str) -> str:
    """The session's name, unchanged. Raises ConfigurationError for one that is a log of facts or branches."""
    if is_reserved(session):
        raise ConfigurationError(
            f"the session {session!r} is a log of facts or branches; give the run another name"
        )
    return session


def check_usage(usage: Usage) -> Usage:
    """The usage, unchanged. Raises ConfigurationError for counts that are no whole numbers."""
    counts = (getattr(usage, name, None) for name in ("input_tokens", "output_tokens", "cached_tokens"))
    if not all(map(is_whole_number, counts)):
        raise ConfigurationError(f"usage is a Usage of whole numbers of tokens, not {usage!r}")
    return usage


def check_count(keep_last_n: int | None) -> int | None:
    """The number of actions to show, unchanged. Raises ConfigurationError for what is no number of them."""
    if keep_last_n is None or is_whole_number(keep_last_n):
        return keep_last_n
    raise ConfigurationError(f"keep_last_n is a whole number of actions, not {keep_last_n!r}")


def check_options(options: Options) -> None:
    """Raises ConfigurationError for an option there is not, and for a value that is of no use; reads no table."""
    for name in options:
        if name not in Options.__annotations__:
            near = get_close_matches(name, (*Options.__annotations__, *_STORE), n=1, cutoff=0.5)
            cure = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(Options.__annotations__)}"
            raise ConfigurationError(f"unknown option {name!r}: {cure}")
    policy, counter = options.get("policy", "ladder"), options.get("counter")
    if isinstance(policy, str):
        _policy(policy)
    elif not callable(policy):
        raise ConfigurationError(f"policy is a policy's name or a policy, not {policy!r}")
    if counter is not None and not callable(getattr(counter, "text", None)):
        raise ConfigurationError(f"counter is a token counter, not {counter!r}")
    share = options.get("page_in", PAGE_IN_SHARE)
    if not is_number(share) or not 0 <= share <= PAGE_IN_MAX_SHARE:
        raise ConfigurationError(
            f"page_in is a share of the budget from 0 to {PAGE_IN_MAX_SHARE}, not {share!r}"
        )
    if not callable(options.get("clock", time.time)):
        raise ConfigurationError(f"clock gives seconds since the epoch when called, not {options['clock']!r}")
    if not isinstance(options.get("checkpoints", AutoCheckpoint()), AutoCheckpoint):
        raise ConfigurationError(f"checkpoints is an AutoCheckpoint, not {options['checkpoints']!r}")
    if options.get("resume", False) not in (True, False, "fresh"):
        raise ConfigurationError(f'resume is True, False or "fresh", not {options["resume"]!r}')
    format_named(options.get("format", "openai"))


_STORE = ("session", "tenant", "readonly", "timeout", "synchronous")
"""What ``open`` takes beside the options, for the store."""


def build_state(options: Options) -> tuple[RunState, AnyModel | None]:
    """A session as the options say, and the model that writes for it. Raises ConfigurationError, BudgetError."""
    check_options(options)
    from pagein.tokens.windows import budget_for, counter_for  # noqa: PLC0415 - the table loads when it is asked

    model, budget = options.get("model"), options.get("budget")
    writes = _summary_model(options)
    name = model if isinstance(model, str) else getattr(model, "name", None) if model is not None else None
    counter = options.get("counter") or (counter_for(name) if name else Encoding("o200k_base"))
    if budget is None:
        budget = budget_for(name or "")
    policy = options.get("policy") or ("ladder" if writes is None else "tiers")
    state = RunState(
        _policy(policy) if isinstance(policy, str) else policy,
        counter,
        _check_callbacks(options.get("callbacks")),
        FoldedLog(Fold(counter)),
        UsageState(
            budget if isinstance(budget, Budget) else Budget(budget), Calibration(exact=counter.margin == 0)
        ),
        page_in=PageInState(options.get("page_in", PAGE_IN_SHARE)),
        summaries=SummaryState(None if writes is None else _build_summarizer(writes, options)),
    )
    return state, writes


def _check_callbacks(given: object) -> CallbackRegistry | None:
    if given is None or isinstance(given, CallbackRegistry):
        return given
    raise ConfigurationError(f"callbacks is a CallbackRegistry, not {given!r}")


def _policy(name: str) -> Policy:
    from pagein.context.compaction.registry import policy_named  # noqa: PLC0415 - the policies load when one is asked for

    return policy_named(name)


def _summary_model(options: Options) -> AnyModel | None:
    """The model that writes: the summarizer, or the run's own where it can be asked."""
    model, summarizer = options.get("model"), options.get("summarizer")
    given = model if summarizer is None and not isinstance(model, str) else summarizer
    if given is None:
        return None
    from pagein.models import as_model  # noqa: PLC0415 - SDKs load where a model is given

    return as_model(given)


def _build_summarizer(model: AnyModel, options: Options) -> Summarizer:
    from pagein.summaries.job import Summarizer  # noqa: PLC0415
    from pagein.summaries.requests import PromptSettings  # noqa: PLC0415 - loads where a model writes
    from pagein.summaries.templates import load_prompts  # noqa: PLC0415
    from pagein.tokens.windows import MODELS  # noqa: PLC0415

    window, counter = model.window, MODELS.get(model.name).counter
    counter.text("its vocabulary loads now, not in the first turn that needs it")
    asking = PromptSettings(
        load_prompts(options.get("prompts")), counter, window, min(SUMMARY_MAX_TOKENS, window // 4)
    )
    return Summarizer(model.name, asking, holds_run=options.get("summarizer") is None)


def resolve_embedder(options: Options) -> Embedder | None:
    """Who finds by meaning, as the options say. Raises ConfigurationError."""
    given = options.get("embedder")
    if given is None or isinstance(given, str):
        if given is None:
            return None
        from pagein.search.embedders import embedder_named  # noqa: PLC0415 - loads where one is asked for

        return embedder_named(given)
    if not callable(getattr(given, "embed", None)):
        raise ConfigurationError(f"embedder is an Embedder, or the name of one, not {given!r}")
    embedder: Embedder = given
    return embedder
