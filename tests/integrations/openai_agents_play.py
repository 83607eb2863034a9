"""The SDK's scripted model under a provider's rules: any request that is illegal or too long is refused."""

import json

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

from pagein.formats import validate
from pagein.tokens.encodings import Encoding

BUDGET = 4_000
FACT = "The staging password is heron-4417."
COUNTER = Encoding("o200k_base")

set_tracing_disabled(True)


class Crash(BaseException):
    """The process is gone."""


def cost(items, instructions=""):
    """Tokens of a request by a count of the test's own: less than ours, never more."""
    told = 3 + COUNTER.text(instructions or "")
    for each in items:
        texts = [each.get(key) for key in ("name", "arguments", "call_id", "content", "output", "summary")]
        told += 3 + sum(COUNTER.text(text if isinstance(text, str) else json.dumps(text)) for text in texts if text)
    return told


class Model(ScriptedModel):
    """Answers by ``script(items)``: output items, text, or an error to raise; keeps what each request cost."""

    def __init__(self, script, limit=BUDGET, turns=200):
        super().__init__()
        self.costs = []
        self._script, self._limit = script, limit
        for _ in range(turns):
            self.enqueue(ModelStep.respond(self._answer))

    def _answer(self, call: ModelCall):
        items = call.input if isinstance(call.input, list) else [{"role": "user", "content": call.input}]
        validate(items, "openai-responses")
        self.costs.append(cost(items, call.system_instructions))
        assert self.costs[-1] <= self._limit, f"{self.costs[-1]} tokens were sent"
        answer = self._script(items)
        if isinstance(answer, BaseException):
            raise answer
        return [assistant_message(answer)] if isinstance(answer, str) else answer


def read_numbers(items):
    """The pages that the request shows were asked for."""
    return [
        json.loads(each["arguments"])["number"]
        for each in items
        if each.get("type") == "function_call" and each["name"] == "look"
    ]


def looks_and_answers(steps=60, done=0):
    """The script of an agent that looks ``steps`` times, ``done`` of them before, and then says the fact or asks for it."""
    asked = 0

    def script(items):
        nonlocal done, asked
        done = max(done, 0, *read_numbers(items))
        if done < steps:
            return [function_call("look", {"number": done + 1}, call_id=f"call_{done + 1}")]
        if FACT in json.dumps(items):
            return f"I remember: {FACT}"
        asked += 1
        if asked > 1:
            return "I do not know."
        return [function_call("recall", {"query": "staging password"}, call_id="call_r")]

    return script


def page(number):
    lines = [f"page {number} line {line}: value {(number * 7919 + line) % 1000}" for line in range(30)]
    if number == 3:
        lines.insert(6, FACT)
    return "\n".join(lines)


@function_tool
def look(number: int) -> str:
    """Look at page ``number``."""
    return page(number)


def agent_of(model, *tools, instructions="You read pages, then you answer."):
    return Agent(name="reader", model=model, tools=list(tools) or [look], instructions=instructions)


def run(agent, task, session, **settings):
    """One run of the agent, in a loop of its own; ``settings`` are the RunConfig's."""
    import asyncio

    return asyncio.run(
        Runner.run(agent, task, session=session, run_config=session.run_config(**settings), max_turns=200)
    )
