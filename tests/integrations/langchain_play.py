"""A chat model that plays a script, and refuses any request that a strict provider would refuse, or that is too long."""

import json
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from pagein.formats import validate
from pagein.tokens.encodings import Encoding

BUDGET = 4_000
FACT = "The staging password is heron-4417."
COUNTER = Encoding("o200k_base")


def cost(messages):
    """Tokens of a request by a count of the test's own: less than ours, never more."""
    told = 3
    for each in messages:
        calls = [[call["name"], json.dumps(call["args"])] for call in getattr(each, "tool_calls", ())]
        texts = [str(each.content), *(text for call in calls for text in call)]
        told += 3 + sum(COUNTER.text(text) for text in texts if text)
    return told


class Scripted(BaseChatModel):
    """Calls ``script(messages)`` for each answer: text, calls, or an error to raise; keeps what it was asked."""

    script: Any
    limit: int = BUDGET
    asked: list[Any]
    costs: list[int]

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages: list[BaseMessage], stop=None, run_manager=None, **kwargs):
        validate([each.model_dump() for each in messages], "langchain")
        self.asked.append(list(messages))
        self.costs.append(cost(messages))
        assert self.costs[-1] <= self.limit, f"{self.costs[-1]} tokens were sent"
        answer = self.script(messages)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, str):
            answer = AIMessage(answer)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def scripted(script, limit=BUDGET):
    return Scripted(script=script, limit=limit, asked=[], costs=[])


def call(name, number, /, **arguments):
    return AIMessage(f"I look at {number}.", tool_calls=[{"name": name, "args": arguments, "id": f"call_{number}"}])


def looks_and_answers(steps=60, *, stop_at=None):
    """The script of an agent that looks ``steps`` times and then says the fact, or expands the handle it needs."""
    done = 0
    expanded = False

    def script(messages):
        nonlocal done, expanded
        done = max(done, *(each for each in _numbers(messages)), 0)
        if stop_at is not None and done >= stop_at:
            raise Crash
        if done < steps:
            return call("look", done + 1, number=done + 1)
        if any(FACT in str(each.content) for each in messages):
            return f"I remember: {FACT}"
        if expanded:
            return "I do not know."
        expanded = True
        return call("expand", "e", handle="s6")

    return script


class Crash(BaseException):
    """The process is gone."""


def _numbers(messages):
    for each in messages:
        for one in getattr(each, "tool_calls", ()):
            if one["name"] == "look":
                yield one["args"]["number"]


@tool
def look(number: int) -> str:
    """Look at page ``number``."""
    lines = [f"page {number} line {line}: value {(number * 7919 + line) % 1000}" for line in range(30)]
    if number == 3:
        lines.insert(6, FACT)
    return "\n".join(lines)
