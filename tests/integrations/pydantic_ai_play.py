"""pydantic-ai's FunctionModel under a provider's rules: any request that is illegal or too long is refused."""

import itertools
import json

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from pagein.tokens.encodings import Encoding

BUDGET = 4_000
FACT = "The staging password is heron-4417."
COUNTER = Encoding("o200k_base")


def dumped(messages):
    return ModelMessagesTypeAdapter.dump_python(messages, mode="json")


def cost(messages, instructions=""):
    """Tokens of a request by a count of the test's own: less than ours, never more."""
    told = 3 + COUNTER.text(instructions or "")
    for row in dumped(messages):
        for part in row["parts"]:
            texts = [part.get(key) for key in ("content", "args", "tool_name", "tool_call_id")]
            told += 3 + sum(COUNTER.text(each if isinstance(each, str) else json.dumps(each)) for each in texts if each)
    return told


def check_legal(messages):
    """Every call answered once, in the request behind it; the user begins, and a request ends."""
    rows = dumped(messages)
    kinds = [row["kind"] for row in rows]
    assert kinds[0] == kinds[-1] == "request"
    assert all(one != other for one, other in itertools.pairwise(kinds))
    first = [part["part_kind"] for part in rows[0]["parts"] if part["part_kind"] != "system-prompt"]
    assert first
    assert first[0] == "user-prompt"
    seen = set()
    waiting = []
    for row in rows:
        answers = [part["tool_call_id"] for part in row["parts"] if part["part_kind"] == "tool-return"]
        calls = [part["tool_call_id"] for part in row["parts"] if part["part_kind"] == "tool-call"]
        if row["kind"] == "request":
            assert sorted(answers) == sorted(waiting)
            waiting = []
        else:
            assert row["parts"]
            assert not seen & set(calls)
            seen |= set(calls)
            waiting = calls
    assert not waiting


def model_of(script, limit=BUDGET):
    """A FunctionModel that answers by ``script(messages)``; ``.costs`` is what each request cost."""
    costs = []

    def answer(messages, info):
        check_legal(messages)
        costs.append(cost(messages, info.instructions))
        assert costs[-1] <= limit, f"{costs[-1]} tokens were sent"
        said = script(messages)
        if isinstance(said, BaseException):
            raise said
        return ModelResponse(parts=[TextPart(said)]) if isinstance(said, str) else said

    async def stream(messages, info):
        for part in answer(messages, info).parts:
            if isinstance(part, TextPart):
                yield part.content
            else:
                yield {
                    0: DeltaToolCall(
                        name=part.tool_name, json_args=json.dumps(part.args), tool_call_id=part.tool_call_id
                    )
                }

    model = FunctionModel(answer, stream_function=stream)
    model.costs = costs
    return model


def call(name, call_id, **args):
    return ModelResponse(parts=[ToolCallPart(name, args, call_id)])


def looks_and_answers(steps=60):
    """The script of an agent that looks ``steps`` times and then says the fact, or asks for what it forgot."""
    done, asked = 0, 0

    def script(messages):
        nonlocal done, asked
        parts = [part for row in dumped(messages) for part in row["parts"]]
        looked = [part["args"] for part in parts if part.get("tool_name") == "look" and "args" in part]
        read = [each if isinstance(each, dict) else json.loads(each) for each in looked]
        done = max(done, 0, *(each["number"] for each in read))
        if done < steps:
            return call("look", f"call_{done + 1}", number=done + 1)
        if FACT in json.dumps(parts):
            return f"I remember: {FACT}"
        asked += 1
        return "I do not know." if asked > 1 else call("recall", "call_r", query="staging password")

    return script


def page(number):
    lines = [f"page {number} line {line}: value {(number * 7919 + line) % 1000}" for line in range(30)]
    if number == 3:
        lines.insert(6, FACT)
    return "\n".join(lines)


def agent_of(model, *capabilities, look=page, **settings):
    agent = Agent(model, capabilities=list(capabilities), instructions="You read pages.", **settings)
    agent.tool_plain(look, name="look")
    return agent
