"""Accepted by mypy --strict and by pyright; never run: requests and tools go into the SDKs' calls as they are."""

import anthropic
import openai

from pagein import AgentMemory, AsyncAgentMemory, Budget


def chat(memory: AgentMemory, client: openai.OpenAI) -> str | None:
    """Chat completions take the messages, the tools and the whole request."""
    tools = memory.tools("openai")
    reply = client.chat.completions.create(model="m", messages=memory.to_messages("openai"), tools=tools)
    client.chat.completions.create(model="m", **memory.to_request("openai"))
    memory.record_messages(reply, usage=reply.usage)
    return reply.choices[0].message.content


def responses(memory: AgentMemory, client: openai.OpenAI) -> None:
    """The Responses API does, too."""
    items, tools = memory.to_messages("openai-responses"), memory.tools("openai-responses")
    reply = client.responses.create(model="m", input=items, tools=tools)
    client.responses.create(model="m", **memory.to_request("openai-responses"))
    memory.record_messages(reply, usage=reply.usage)


async def claude(memory: AsyncAgentMemory, client: anthropic.AsyncAnthropic) -> None:
    """Anthropic's messages do, too."""
    messages, tools = await memory.to_messages("anthropic"), memory.tools("anthropic")
    reply = await client.messages.create(model="m", max_tokens=9, messages=messages, tools=tools)
    await memory.record_messages(reply, usage=reply.usage)


memory = AgentMemory.open("x", budget=Budget(1), policy="ladder", format="openai")
