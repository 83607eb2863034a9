"""pagein in the OpenAI Agents SDK: one session. ``pip install 'pagein[openai-agents]'``."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from copy import copy
from typing import Any, Unpack, cast
from weakref import WeakValueDictionary, finalize

from pagein.errors import ConfigurationError
from pagein.integrations._item_history import HostItem, ItemHistory
from pagein.integrations._owners import OwnedConversation, OwnerChoice, OwnerOf
from pagein.integrations._tools import ToolChoice, ToolDefinition, offered_tools
from pagein.integrations._versions import require_release
from pagein.integrations.openai_agents.branches import SessionBranches, run_in_thread
from pagein.integrations.openai_agents.view import SessionViews
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import Options

try:
    from agents import FunctionTool, RunConfig, Tool
    from agents.items import TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
    from agents.run import CallModelData, ModelInputData
except ImportError as missing:
    raise ConfigurationError("the OpenAI Agents SDK needs pip install 'pagein[openai-agents]'") from missing

__all__ = ["PageinSession"]


class PageinSession(SessionBranches, SessionABC):
    """A session of the SDK, recorded whole; what any model is sent of it is within budget and legal.

        session = PageinSession("ann", "run.db", budget=80_000)
        await Runner.run(agent, "Hello", session=session, run_config=session.run_config())

    ``user``, ``project``, ``task`` and ``tenant`` may be functions of the run's context. Then the session has no items of its
    own: ``bind(context)`` gives the session of a run, and its tools and filter serve the context that calls them.

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
        tenant: str | OwnerOf = "",
        session_settings: SessionSettings | dict[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> None:
        require_release("openai-agents")
        self.session_id = session_id
        self.session_settings = (
            SessionSettings() if session_settings is None else coerce_session_settings(session_settings)
        )
        self._url, self._owners, self._options = url, OwnerChoice(tenant, options), options
        self._bound: WeakValueDictionary[OwnedConversation, PageinSession] = WeakValueDictionary()
        self._bound_to: OwnedConversation | None = None
        if not self._owners.has_functions:
            self._open(OwnedConversation(session_id, cast(str, tenant)))

    def _open(self, conversation: OwnedConversation) -> None:
        """Open the history of a conversation; it is closed with this session, or when nobody holds it any more."""
        options, tenant = self._owners.owner_options(conversation), conversation.tenant
        self._opened_history = ItemHistory.open(self._url, session=conversation.session, tenant=tenant, **options)
        self._opened_views = SessionViews(self._opened_history, options)
        self._bound_to = conversation

    def bind(self, context: Any) -> PageinSession:
        """The session of a run with this context, which is what ``Runner.run(..., context=context)`` is given.

        It is the same one for the same owners while anybody holds it. Raises ConfigurationError.
        """
        conversation = self._owners.conversation(self.session_id, context)
        if conversation == self._bound_to:
            return self
        if self._bound_to is not None:
            raise ConfigurationError(
                "the run's context names another owner than this session is bound to. Nothing was shown: bind the "
                "session to the context that the run is given"
            )
        bound = self._bound.get(conversation)
        if bound is None:
            bound = copy(self)
            bound._open(conversation)  # noqa: SLF001 - it is one of these
            finalize(bound, _close_both, bound._opened_views, bound._opened_history)  # noqa: SLF001
            self._bound[conversation] = bound
        return bound

    @property
    def _history(self) -> ItemHistory:
        self._check_bound()
        return self._opened_history

    @property
    def _views(self) -> SessionViews:
        self._check_bound()
        return self._opened_views

    def _check_bound(self) -> None:
        if self._bound_to is None:
            raise ConfigurationError("the user of this session depends on the run: use session.bind(context) instead")

    @property
    def memory(self) -> AgentMemory:
        """The memory of the session, to look into, pin and recall."""
        return self._history.memory

    async def get_items(self, limit: int | None = None, branch_id: str | None = None) -> list[TResponseInputItem]:
        """The newest ``limit`` items as they came, oldest first; a negative one means all.

        Without a limit, and without one in the settings: all of them where they fit the budget, else the view. Those of
        another branch are returned as they came.
        """
        limit = resolve_session_limit(limit, self.session_settings)
        return cast(list[TResponseInputItem], await run_in_thread(self._newest_items, limit, branch_id))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Write the items durably, all or none."""
        await run_in_thread(self._history.append, list(items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item from the session, and return it; the record keeps it."""
        return cast("TResponseInputItem | None", await run_in_thread(self._history.pop))

    async def clear_session(self) -> None:
        """Empty the session; the record keeps everything."""
        await run_in_thread(self._history.clear)

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Hold the request to the budget, instructions included; a ``call_model_input_filter``.

        Input that is not this session's (another agent's, or changed by a callback) is shown within the same budget from
        a memory of its own.
        """
        request, session = data.model_data, self.bind(data.context)
        rows = await run_in_thread(session._views.fit, list(request.input), request.instructions)  # noqa: SLF001
        return ModelInputData(input=cast(list[TResponseInputItem], rows), instructions=request.instructions)

    def run_config(self, **settings: Any) -> RunConfig:
        """Make the SDK's RunConfig of these settings and ``filter``. Raises ConfigurationError for two filters."""
        if settings.get("call_model_input_filter") is not None:
            raise ConfigurationError("there is a call_model_input_filter already: call session.filter in it")
        return RunConfig(**{**settings, "call_model_input_filter": self.filter})

    def tools(self, choice: ToolChoice = True) -> list[Tool]:
        """The tools of the memory for the agent, or those of these names.

        They are recall, expand, pin, note and forget; with facts, remember and update. Raises ConfigurationError.
        """
        return [_make_tool(self, definition) for definition in offered_tools(choice, self._options)]

    def handle_overflow(self, error: BaseException | str) -> bool:
        """Learn from a provider's error that the request was too long; True where the next one will be smaller."""
        return self.memory.handle_overflow(error) is not None

    def close(self) -> None:
        """Release the store; a second call does nothing."""
        if self._bound_to is not None:
            self._bound.pop(self._bound_to, None)
            _close_both(self._opened_views, self._opened_history)
            return
        for bound in list(self._bound.values()):
            bound.close()

    def _newest_items(self, limit: int | None, branch: str | None) -> Sequence[HostItem]:
        if branch is None and limit is None:
            return self._views.all_items()
        items: list[HostItem] = json.loads(json.dumps([item for item, _ in self._history.items_on(branch)]))
        return items if limit is None or limit < 0 else items[max(0, len(items) - limit) :]


def _close_both(views: SessionViews, history: ItemHistory) -> None:
    views.close()
    history.close()


def _make_tool(session: PageinSession, definition: ToolDefinition) -> FunctionTool:
    async def call_tool(context: Any, arguments: str) -> str:
        bound = session.bind(context.context)  # held until the tool has run
        return await asyncio.to_thread(bound._views.memory.call_tool, definition["name"], arguments)  # noqa: SLF001

    return FunctionTool(
        name=definition["name"],
        description=definition["description"],
        params_json_schema=dict(definition["parameters"]),
        on_invoke_tool=call_tool,
        strict_json_schema=False,  # it would have every argument given
    )
