"""The base of both memories: how one is opened, and the methods that wait for nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

from pagein.errors import ConfigurationError
from pagein.formats import FormatName
from pagein.log.base import Log, StoredLog
from pagein.log.encryption import Key
from pagein.memory._runtime import OpenedRun, open_run, runtime_type
from pagein.memory.options import Options, check_usage
from pagein.memory.tools import tools
from pagein.tokens import Budget
from pagein.tokens.bytes import json_bytes

if TYPE_CHECKING:
    from pagein.facts.store import Facts
    from pagein.models import Overflow


class MemoryBase:
    """The base of AgentMemory and AsyncAgentMemory."""

    def __init__(self, log: Log | OpenedRun, **options: Unpack[Options]) -> None:
        self._runtime = runtime_type(options)(log, options, self._wrap_log)

    def _wrap_log(self, log: StoredLog) -> StoredLog:
        """The log of a branch as this memory reads it."""
        return log

    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str],
        *,
        session: str = "default",
        tenant: str = "",
        branch: str | None = None,
        readonly: bool = False,
        timeout: float = 5.0,
        synchronous: str = "FULL",
        key: Key | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Open the memory of one session in a store: a SQLite file, ``:memory:``, or PostgreSQL. See ``Options``.

        With ``readonly`` nothing is written: what leaves the view is remembered by this memory only. ``branch`` is the
        one to go on with; without it, the one that was switched to last. With a ``key`` the record is encrypted.
        Raises ConfigurationError, UnknownBranch, BudgetError, LogError.
        """
        from pagein.backends.open import open_store  # noqa: PLC0415 - a store's drivers load when one is opened

        store = open_store(url, tenant=tenant, readonly=readonly, timeout=timeout, synchronous=synchronous, key=key)
        opened = open_run(store, options, session, branch)
        try:
            return cls(opened, **options)
        except BaseException:
            opened.branches.close()
            raise

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Refuse ``copy`` and ``pickle``. Raises ConfigurationError."""
        raise ConfigurationError(
            f"a memory has its store open, so it cannot be copied or pickled: hand on its address, and open it again there "
            f"({type(self).__name__}.open(address, session=...)). For a second line of the run, fork() it"
        )

    @property
    def budget(self) -> Budget:
        """The budget of every view."""
        return self._runtime.state.usage.budget

    @property
    def has_facts(self) -> bool:
        """True if the views show facts."""
        return self._runtime.state.facts_block.is_on

    @property
    def system_prompt(self) -> str:
        """The text of the system prompts, in order, a blank line between them; for APIs that take it apart."""
        self._runtime.check_folded()
        return self._runtime.state.system_prompt

    @property
    def facts(self) -> Facts:
        """The facts that outlive the run: stated, corrected, searched; from the first use on every view shows them too.

        Its methods work on its own logs, at once; in async code call them in a thread. Raises ConfigurationError if
        the memory was opened with ``facts=False``.
        """
        return self._runtime.use_facts()

    def tools(self, format: FormatName | None = None, names: Sequence[str] | None = None) -> list[Any]:
        """The tools that a model may be offered, in its provider's format: recall, expand, pin, note, forget and more.

        ``names`` chooses among them; ``compact`` is offered only where it is named.
        From now on every view keeps tokens free for them, unless the budget or the request's ``tools`` say what tools cost.
        """
        form, state = self._runtime.format_of(format), self._runtime.state
        definitions = tools(form.name, names)
        state.usage.own_tools = form.count_tools(definitions, state.counter.text)
        state.usage.own_tool_bytes = json_bytes(definitions)
        return definitions

    @property
    def repairs(self) -> tuple[str, ...]:
        """The repairs made to transcripts since this memory was opened."""
        return tuple(self._runtime.state.transcript.repairs)

    def observe_usage(self, usage: Any) -> None:
        """Learn from the provider's count of the last request, so that later counts come nearer to it."""
        self._runtime.check_open()
        self._runtime.state.usage.learn(check_usage(usage))
        self._runtime.requests.observe_usage(usage)

    def handle_overflow(self, error: BaseException | str) -> Overflow | None:
        """Learn from a provider's error that the last request was too long: the next view fits, and is smaller.

        None, and nothing learnt, for any other error. The smaller budget holds until the memory is closed.
        """
        self._runtime.check_open()
        from pagein.models.overflow import detect_overflow  # noqa: PLC0415 - loads where something overflowed

        if not isinstance(error, BaseException | str):
            raise ConfigurationError(
                f"an error is the exception of the provider's SDK, or its text, not {type(error).__name__}"
            )
        overflow, state = detect_overflow(error), self._runtime.state
        if overflow is not None:
            last = state.usage.last_view or state.fold.view(1)
            state.usage.shrink(last.tokens, overflow.window, overflow.requested)
        return overflow
