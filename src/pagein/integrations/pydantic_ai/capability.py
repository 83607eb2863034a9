"""pagein in a pydantic-ai agent: one capability. ``pip install 'pagein[pydantic-ai]'``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Unpack

from pagein.context.view.layout import NO_RESULT
from pagein.errors import ConfigurationError
from pagein.integrations._owners import OWNER_MARK, OwnedConversation, OwnerChoice, OwnerOf
from pagein.integrations._threads import MAX_OVERFLOW_RETRIES
from pagein.integrations._tools import ToolChoice, ToolDefinition, offered_tools
from pagein.integrations._versions import require_release
from pagein.integrations.pydantic_ai.conversations import MessageConversation, MessageConversations
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import Options

try:
    from pydantic_ai import DeferredToolRequests, RunContext
    from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        ToolCallPart,
        ToolReturnPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import Tool
    from pydantic_ai.toolsets import FunctionToolset
except ImportError as missing:
    raise ConfigurationError("pydantic-ai needs pip install 'pagein[pydantic-ai]', in a known release") from missing

try:
    from pydantic_ai.exceptions import RetryModelRequest
except ImportError:  # before 2.64, whose capabilities cannot ask for another attempt
    RetryModelRequest = None  # type: ignore[assignment, misc]

__all__ = ["Pagein"]


class Pagein(AbstractCapability[Any]):
    """Sends the model pagein's view of the messages: within budget, legal, its prefix kept. The history stays whole.

        agent = Agent(model, capabilities=[Pagein("run.db", budget=80_000)])

    ``conversation`` names the session in the store; without it each ``conversation_id`` of pydantic-ai is one. Requests
    and responses are recorded, durable before the tools run; ``history`` returns them, in a new process too. A request
    that a provider finds too long is made again, smaller. ``tools`` are the tools the model is offered, True, False or
    their names: recall, expand, pin, note, forget; remember and update with facts. The options are
    ``AgentMemory.open``'s; ``user``, ``project``, ``task`` and ``tenant`` may be functions of the run's context:
    ``user=lambda ctx: ctx.deps.user_id``. Then each owner's conversations are their own. Raises ConfigurationError,
    BudgetError; in a run OverBudget, LogError.
    """

    def __init__(
        self,
        url: str | os.PathLike[str] = ":memory:",
        *,
        conversation: str | None = None,
        tenant: str | OwnerOf = "",
        tools: ToolChoice = True,
        **options: Unpack[Options],
    ) -> None:
        require_release("pydantic-ai-slim")
        self._name = conversation
        self._owners = OwnerChoice(tenant, options)
        self._conversations = MessageConversations(url, self._owners, _dump_messages)
        self._tools = offered_tools(tools, options)
        self._owned: OwnedConversation | None = None

    async def for_run(self, ctx: RunContext[Any]) -> Pagein:
        """The capability of one run: whose it is is asked once, when it starts."""
        run = copy(self)
        run._owned = self._conversation_name(ctx)  # noqa: SLF001 - it is one of these
        return run

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Keep the run's conversation open until it ends."""
        with self._conversations.using(self._conversation_name(ctx)):
            return await handler()

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """As ``prepare_model_request``, which releases before 2.64 do not call."""
        return await self.prepare_model_request(ctx, request_context) if RetryModelRequest is None else request_context

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Record the new messages, and put the view in their place, for this request alone."""
        view = await asyncio.to_thread(self._view, ctx, request_context.messages, _instructions_of(request_context))
        return replace(request_context, messages=view)

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,  # noqa: ARG002 - the framework names it
        response: ModelResponse,
    ) -> ModelResponse:
        """Record the response, marked as the owner's, before any tool runs."""
        name = self._conversation_name(ctx)
        if mark := self._owners.mark(name):
            response = replace(response, metadata={**(response.metadata or {}), OWNER_MARK: mark})
        await asyncio.to_thread(self._conversations.record_answer, name, response, ctx.run_id)
        return response

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Record what came behind the last response: results of tools, and the calls that wait for another run."""
        deferred = (
            [*result.output.calls, *result.output.approvals] if isinstance(result.output, DeferredToolRequests) else []
        )
        await asyncio.to_thread(self._record_end, ctx, result.all_messages(), [call.tool_call_id for call in deferred])
        return result

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Ask again with less, where the provider said that the request was too long."""
        conversation = self._conversations.latest(self._conversation_name(ctx), ctx.run_id)
        if RetryModelRequest is None:
            return await _ask_with_less(conversation, request_context, error)
        memory = conversation.history.memory
        if request_context.attempt <= MAX_OVERFLOW_RETRIES and memory.handle_overflow(error) is not None:
            raise RetryModelRequest from error
        raise error

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """The tools of the memory, over the conversation that calls them."""
        return FunctionToolset(list(map(self._make_tool, self._tools))) if self._tools else None

    def _make_tool(self, definition: ToolDefinition) -> Tool[Any]:
        async def call_tool(ctx: RunContext[Any], **arguments: Any) -> str:
            memory = self._conversations.latest(self._conversation_name(ctx), ctx.run_id).history.memory
            return await asyncio.to_thread(memory.call_tool, definition["name"], arguments)

        schema = dict(definition["parameters"])
        return Tool.from_schema(call_tool, definition["name"], definition["description"], schema, takes_ctx=True)

    async def process(self, ctx: RunContext[Any], messages: list[ModelMessage]) -> list[ModelMessage]:
        """Replace the run's own history by the view; a history processor, for ``ProcessHistory(pages.process)``.

        The capability itself leaves the history whole, and also records answers as they come: use one of the two.
        """
        return await asyncio.to_thread(self._view, ctx, messages, "")

    def history(self, conversation: str | None = None, **owners: str) -> list[ModelMessage]:
        """Every message recorded in a conversation, as it came, for ``message_history=``.

        Calls that a crash left without a result are answered as interrupted: no tool runs twice. Calls that a run ended
        with stay open for ``deferred_tool_results=``. ``owners`` names those that are functions of the run.
        """
        history = self._latest(conversation, owners).history
        messages: list[ModelMessage] = list(ModelMessagesTypeAdapter.validate_python(history.items()))
        if messages and isinstance(messages[-1], ModelResponse) and messages[-1].tool_calls:
            deferred = history.deferred_calls()
            open_calls = [call for call in messages[-1].tool_calls if call.tool_call_id not in deferred]
            if not open_calls:
                return messages
            messages.append(ModelRequest(parts=[_interrupted_return(call) for call in open_calls]))
        return messages

    def memory(self, conversation: str | None = None, **owners: str) -> AgentMemory:
        """The memory of a conversation, to look into, pin and recall. ``owners`` as in ``history``."""
        return self._latest(conversation, owners).history.memory

    def close(self) -> None:
        """Release the store; the next request opens it again."""
        self._conversations.close()

    def _latest(self, conversation: str | None, owners: Mapping[str, str]) -> MessageConversation:
        name = conversation or self._name or "default"
        return self._conversations.latest(self._owners.named_conversation(name, owners))

    def _conversation_name(self, ctx: RunContext[Any]) -> OwnedConversation:
        return self._owned or self._owners.conversation(self._name or ctx.conversation_id or "default", ctx)

    def _record_end(self, ctx: RunContext[Any], messages: Sequence[ModelMessage], deferred: Sequence[str]) -> None:
        history = self._conversations.record(self._conversation_name(ctx), messages, ctx.run_id).history
        if deferred:
            history.note_deferred(deferred)

    def _view(self, ctx: RunContext[Any], messages: Sequence[ModelMessage], instructions: str) -> list[ModelMessage]:
        name = self._conversation_name(ctx)
        with self._conversations.using(name):
            conversation = self._conversations.record(name, messages, ctx.run_id)
            return list(ModelMessagesTypeAdapter.validate_python(conversation.view(instructions)))


def _instructions_of(request_context: ModelRequestContext) -> str:
    parts = request_context.model_request_parameters.instruction_parts or ()
    return "\n\n".join(part.content for part in parts)


async def _ask_with_less(
    conversation: MessageConversation, request_context: ModelRequestContext, error: Exception
) -> ModelResponse:
    """Ask the model again in an attempt of our own, with a smaller view each time. Raises the model's last error."""
    settings, parameters = request_context.model_settings, request_context.model_request_parameters
    for _ in range(MAX_OVERFLOW_RETRIES):
        if conversation.history.memory.handle_overflow(error) is None:
            break
        rows = await asyncio.to_thread(conversation.view, _instructions_of(request_context))
        messages = list(ModelMessagesTypeAdapter.validate_python(rows))
        try:
            return await request_context.model.request(messages, settings, parameters)
        except Exception as again:  # noqa: BLE001 - any error of a provider may say that a request is too long
            error = again
    raise error


def _interrupted_return(call: ToolCallPart) -> ToolReturnPart:
    return ToolReturnPart(
        tool_name=call.tool_name, content=NO_RESULT, tool_call_id=call.tool_call_id, outcome="interrupted"
    )


def _dump_messages(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return rows
