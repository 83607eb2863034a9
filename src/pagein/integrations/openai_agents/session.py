"""pagein in the OpenAI Agents SDK: one session. ``pip install 'pagein[openai-agents]'``.

session = PageinSession("ann", "run.db", budget=80_000)
await Runner.run(agent, "Hello", session=session, run_config=session.run_config())
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Unpack, cast

from pagein.errors import ConfigurationError
from pagein.integrations._tools import Chosen
from pagein.integrations._versions import checked_release
from pagein.integrations.openai_agents.branches import Branching, newest, outcome
from pagein.integrations.openai_agents.items import Item, ItemMemory
from pagein.integrations.openai_agents.tools import tools_of
from pagein.integrations.openai_agents.view import Views
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import Options

try:
    from agents import RunConfig, Tool
    from agents.items import TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
    from agents.run import CallModelData, ModelInputData
except ImportError as missing:
    raise ConfigurationError("the OpenAI Agents SDK needs pip install 'pagein[openai-agents]'") from missing

__all__ = ["PageinSession"]


class PageinSession(Branching, SessionABC):
    """A session of the SDK, recorded whole; what any model is sent of it is within budget and legal.

    ``get_items()`` gives the items as they came while all of them fit the budget, else pagein's view of them;
    ``get_items(limit)`` always gives the newest as they came. ``filter`` holds each request of a run to the budget, the
    calls of that run included. The options are ``AgentMemory.open``'s. Raises ConfigurationError, BudgetError; in a run
    OverBudget, LogError.
    """

    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        url: str | os.PathLike[str] = ":memory:",
        *,
        tenant: str = "",
        session_settings: SessionSettings | dict[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> None:
        checked_release("openai-agents")
        self.session_id = session_id
        self.session_settings = (
            SessionSettings() if session_settings is None else coerce_session_settings(session_settings)
        )
        self._items = ItemMemory.open(url, session=session_id, tenant=tenant, **options)
        self._views = Views(self._items, options)

    @property
    def memory(self) -> AgentMemory:
        """The memory of the session, to look into, pin and recall."""
        return self._items

    async def get_items(
        self, limit: int | None = None, branch_id: str | None = None
    ) -> list[TResponseInputItem]:
        """The newest ``limit`` items as they came, oldest first; a negative one means all.

        Without a limit, and without one in the settings: all of them where they fit the budget, else the view. Those of
        another branch are given as they came.
        """
        most = resolve_session_limit(limit, self.session_settings)
        return cast(list[TResponseInputItem], await outcome(self._given, most, branch_id))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Write the items durably, all or none."""
        await outcome(self._items.put_items, list(items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item out of the session; the record keeps it."""
        return cast("TResponseInputItem | None", await outcome(self._items.take_back))

    async def clear_session(self) -> None:
        """Empty the session; the record keeps what was in it."""
        await outcome(self._items.clear)

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """A ``call_model_input_filter``: the request within budget, the instructions' cost included.

        Input that is not this session's, as another agent's or one that a callback changed, is shown within the same
        budget from a memory of its own.
        """
        told = data.model_data
        rows = await outcome(self._views.of, list(told.input), told.instructions)
        return ModelInputData(input=cast(list[TResponseInputItem], rows), instructions=told.instructions)

    def run_config(self, **settings: Any) -> RunConfig:
        """The SDK's RunConfig of these settings, with ``filter`` in it. Raises ConfigurationError for two filters."""
        if settings.get("call_model_input_filter") is not None:
            raise ConfigurationError("there is a call_model_input_filter already: call session.filter in it")
        return RunConfig(**{**settings, "call_model_input_filter": self.filter})

    def tools(self, chosen: Chosen = True) -> list[Tool]:
        """The tools of the memory for the agent, or those of these names, over everything that was recorded.

        They are recall, expand, pin, note and forget; with facts, remember and update. Raises ConfigurationError.
        """
        return list(tools_of(self._views, chosen))

    def overflowed(self, error: BaseException | str) -> bool:
        """Learn from a provider's error that the request was too long; True where the next one will be smaller."""
        return self._items.overflowed(error) is not None

    def close(self) -> None:
        """Release the store; a second call does nothing."""
        self._views.close()
        self._items.close()

    def _given(self, limit: int | None, branch: str | None) -> Sequence[Item]:
        if branch is None and limit is None:
            return self._views.history()
        items: list[Item] = json.loads(json.dumps([item for item, _ in self._items.items_on(branch)]))
        return newest(items, -1 if limit is None else limit)
