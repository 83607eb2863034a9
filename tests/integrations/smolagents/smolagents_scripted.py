"""Scripted models and an agent that looks things up, for the tests of the smolagents memory."""

import re
from itertools import pairwise

from smolagents import CodeAgent, Tool, ToolCallingAgent
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    Model,
    get_clean_message_list,
    tool_role_conversions,
)
from smolagents.monitoring import LogLevel, TokenUsage

from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")
SECRET = "KESTREL-7741-OMEGA"


def text_of(message):
    content = message.content if isinstance(message.content, str) else message.content or []
    return content if isinstance(content, str) else "\n".join(each.get("text", "") for each in content)


def tokens_of(messages):
    """What the words of a request cost, four more for each message and three for the request."""
    return 3 + sum(4 + COUNTER.text(text_of(each)) for each in messages)


def check_legal(messages):
    """What smolagents' own cleaning and the providers behind it ask of a list of messages."""
    roles = [each.role for each in messages]
    assert all(isinstance(each, ChatMessage) for each in messages)
    assert all(isinstance(each.content, list) and each.content for each in messages)
    assert MessageRole.SYSTEM not in roles[1:]
    cleaned = get_clean_message_list(messages, role_conversions=tool_role_conversions)
    said = [each["role"] for each in cleaned if each["role"] != MessageRole.SYSTEM]
    assert said[0] == MessageRole.USER
    assert said[-1] == MessageRole.USER
    assert all(a != b for a, b in pairwise(said))
    for before, now in pairwise(messages):
        if now.role == MessageRole.TOOL_RESPONSE:
            assert before.role in (
                MessageRole.TOOL_CALL,
                MessageRole.TOOL_RESPONSE,
                MessageRole.USER,
                MessageRole.ASSISTANT,
            )
        if before.role == MessageRole.TOOL_CALL:
            assert now.role in (MessageRole.TOOL_RESPONSE, MessageRole.USER)


class Scripted(Model):
    """Says what ``script`` gives for the number of the request and its messages; holds each request to a budget."""

    def __init__(self, script, budget=None):
        super().__init__(model_id="scripted")
        self.script, self.budget, self.requests = script, budget, []

    def generate(self, messages, stop_sequences=None, **kwargs):
        check_legal(messages)
        if self.budget is not None:
            assert tokens_of(messages) <= self.budget
        self.requests.append(list(messages))
        return self.script(len(self.requests), messages)


def said(text):
    return ChatMessage(role=MessageRole.ASSISTANT, content=text, token_usage=TokenUsage(10, 5))


def code(text):
    return said(f"Thought: go on.\n<code>\n{text}\n</code>")


def called(*calls):
    made = [
        ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), id, "function")
        for id, name, arguments in calls
    ]
    return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=made, token_usage=TokenUsage(10, 5))


class LookUp(Tool):
    """Pages of a report; the third names the secret."""

    name = "look_up"
    description = "Gives a page of the report."
    inputs = {"page": {"type": "integer", "description": "The page."}}  # noqa: RUF012 - as smolagents wants it
    output_type = "string"

    def forward(self, page: int) -> str:
        found = f"The vault's word is {SECRET}." if page == 3 else "Nothing of note here."
        lines = "\n".join(f"page {page} line {line}: value {page * 37 + line}" for line in range(30))
        return f"{found}\n{lines}"


def agent_of(kind, script, budget=None, tools=(), **options):
    made = {"code": CodeAgent, "calls": ToolCallingAgent}[kind]
    model = script if isinstance(script, Model) else Scripted(script, budget)
    return made(
        tools=list(tools) or [LookUp()],
        model=model,
        verbosity_level=LogLevel.OFF,
        max_steps=options.pop("max_steps", 100),
        **options,
    )


def handles_in(messages):
    return re.findall(r"\bs\d+(?:-\d+)?(?:\.\d+)?\b", "\n".join(map(text_of, messages)))
