"""A client of the Responses API that names the model's items by their ids, as the AI SDK does where answers have reasoning."""

from itertools import count

import pytest

from pagein.testing.provider import Answer, Call
from tests.server.test_proxy_cut_lists import runs_of, texts_of

pytestmark = pytest.mark.slow

TOOL = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}


def thinking():
    numbers = count(1)

    def answer(question):
        number = next(numbers)
        call = Call("read", {"pier": number}, f"call_Xq7{number:04}kQ02bLm")
        return Answer(f"Pier {number}.", (call,), thinking=f"Thought {number}.")

    return answer


def as_sent(item):
    if item["type"] == "function_call":
        return {key: item[key] for key in ("type", "call_id", "name", "arguments")}
    return {"type": "item_reference", "id": item["id"]}


@pytest.mark.parametrize("restart", [False, True], ids=["one server", "two servers"])
def test_references_are_the_items_that_the_proxy_recorded(stack, restart):
    script = thinking()
    made = stack(script, window=6_000, provider_window=6_000)
    rows = [{"role": "user", "content": "Count the boats."}]
    for turn in range(1, 25):
        body = {"model": "gpt-5", "input": rows, "tools": [TOOL]}
        if restart and turn == 12:
            made = stack(script, window=6_000, provider_window=6_000, store=made.store)
        answer = made.http().post("/v1/responses", json=body)
        assert answer.status_code == 200, answer.text
        output = answer.json()["output"]
        rows += map(as_sent, output)
        result = f"Result {turn}: {turn * 7} boats. " + "The pier is long and old. " * 40
        rows.append({"type": "function_call_output", "call_id": output[-1]["call_id"], "output": result})
    assert made.provider.illegal == ()
    assert made.provider.over == 0
    [run] = runs_of(made)
    with made.memory(run) as memory:
        texts = [text.strip() for text in texts_of(memory)]
        assert [branch.name for branch in memory.branches()] == ["main"]
    assert texts == ["Count the boats.", *(f"Pier {number}." for number in range(1, 25))]
