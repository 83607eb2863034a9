"""A client hands over the model's answers in other words: with its calls as text, without its thinking. The run stays one."""

import json
from itertools import count

import pytest

from pagein import AgentMemory
from pagein.events.steps import as_text
from pagein.testing.provider import Answer, Call

pytestmark = pytest.mark.slow

TASK = "Read all parts one by one. Never skip a part."
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]


def with_text_calls(message, number):
    """As smolagents spells an answer."""
    calls = [{"id": call["id"], "function": call["function"]} for call in message.get("tool_calls") or []]
    return f"{message.get('content') or ''}\nCalling tools:\n{calls or [{'id': f'call_{number}'}]}"


def arguments_alone(message, number):
    """As programs spell an answer that instructor had the model give as a call."""
    return message["tool_calls"][0]["function"]["arguments"].replace('": ', '":')


def as_a_model_is_dumped(message, number):
    said = json.loads(message["tool_calls"][0]["function"]["arguments"])
    return json.dumps({"page": None, **said}, sort_keys=True, ensure_ascii=False, indent=1)


def its_text(message, number):
    return f"Answer: {json.loads(message['tool_calls'][0]['function']['arguments'])['title']}"


def answer_by_a_schema(number):
    return Answer("", (Call("read", {"title": f'Part {number}, "M\u00f6wen",\nwith a line', "part": number}),))


def without_thinking(message, number):
    return message["content"].partition("</think>")[2].strip()


CLIENTS = {
    "code agent": (lambda number: Answer(f"I read part {number}.\n<code>\nread({number})\n</code>"), with_text_calls),
    "calls alone": (
        lambda number: Answer("", (Call("read", {"part": number}, f"call_Xq{number:04}aB"),)),
        with_text_calls,
    ),
    "answer by a schema": (
        lambda number: Answer("", (Call("read", {"part": number, "title": f"Part {number}"}),)),
        arguments_alone,
    ),
    "answer by a schema in other letters": (answer_by_a_schema, as_a_model_is_dumped),
    "no thinking": (
        lambda number: Answer(
            f"<think>\nPart {number} is next.\n</think>\nI read part {number}.\n```\nread {number}\n```"
        ),
        without_thinking,
    ),
}


class Play:
    """A client with its list. ``respell`` makes the text of an answer that it keeps."""

    def __init__(self, made, respell):
        self.http, self.respell = made.http(), respell
        self.rows, self.turns = [{"role": "user", "content": TASK}], 0

    def turn(self, respell=None):
        self.turns += 1
        body = {"model": "gpt-5", "messages": self.rows, "tools": TOOLS}
        answer = self.http.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        said = (respell or self.respell)(answer.json()["choices"][0]["message"], self.turns)
        result = f"Observation:\npart {self.turns}: handler_{self.turns}\n" + f"line of part {self.turns}\n" * 40
        self.rows += [{"role": "assistant", "content": said}, {"role": "user", "content": result}]


def runs_of(made):
    with AgentMemory.open(made.store, session="look", readonly=True) as memory:
        store = memory._runtime.log.store
        return sorted(name for name in store.sessions() if not name.startswith("pagein:") and store.head(name))


@pytest.mark.parametrize("client", CLIENTS)
def test_its_run_is_one_with_few_branches_and_each_word_as_the_client_has_it(stack, client):
    script, respell = CLIENTS[client]
    numbers = count(1)
    made = stack(lambda question: script(next(numbers)), window=4_000, provider_window=4_000)
    play = Play(made, respell)
    for _ in range(20):
        play.turn()
    assert (made.provider.illegal, made.provider.over) == ((), 0)
    assert all(TASK in str(request.body["messages"]) for request in made.provider.received)
    [run] = runs_of(made)
    with made.memory(run) as memory:
        texts = [as_text(step.content) for step in memory.steps if step.content]
        assert len(memory.branches()) <= 3, "a branch for each answer slows every turn"
    for row in play.rows[:-2]:
        is_recorded = any(row["content"] in text for text in texts) or row["content"].startswith("Observation")
        assert is_recorded, row
    assert len(texts) == len(set(texts))


def test_one_text_of_an_answer_by_a_schema_is_the_answer(stack):
    numbers = count(1)
    made = stack(lambda question: answer_by_a_schema(next(numbers)), window=50_000)
    play = Play(made, its_text)
    for _ in range(6):
        play.turn()
    [run] = runs_of(made)
    with made.memory(run) as memory:
        assert len(memory.branches()) == 3


def test_an_answer_that_somebody_changed_once_is_a_branch_and_the_next_one_is_recorded_at_once(stack):
    numbers = count(1)
    made = stack(lambda question: Answer(f"This is answer number {next(numbers)}."), window=8_000)
    play = Play(made, lambda message, number: message["content"])
    play.turn()
    play.turn(lambda message, number: f"{message['content']} And the deploy is off.")
    play.turn()
    [run] = runs_of(made)
    with made.memory(run) as memory:
        texts = [as_text(step.content) for step in memory.steps if step.content]
        assert [branch.name for branch in memory.branches()] == ["main", "branch-1"]
    assert "This is answer number 2. And the deploy is off." in texts
    assert texts[-1] == "This is answer number 3.", "before its client hands it over"


def test_words_before_a_call_stay_though_the_client_drops_them(stack):
    numbers = count(1)
    script = lambda question: Answer(f"I read part {(n := next(numbers))}.", (Call("read", {"part": n}),))  # noqa: E731
    made = stack(script, window=8_000)
    http, rows = made.http(), [{"role": "user", "content": TASK}]
    for number in range(1, 9):
        answer = http.post("/v1/chat/completions", json={"model": "gpt-5", "messages": rows, "tools": TOOLS}).json()
        calls = answer["choices"][0]["message"]["tool_calls"]
        rows += [{"role": "assistant", "content": None, "tool_calls": calls}]
        rows += [{"role": "tool", "tool_call_id": calls[0]["id"], "content": f"part {number}"}]
    [run] = runs_of(made)
    with made.memory(run) as memory:
        assert [branch.name for branch in memory.branches()] == ["main"]
        texts = [as_text(step.content) for step in memory.steps if step.content]
    assert texts == [TASK, *(f"I read part {number}." for number in range(1, 9))]
