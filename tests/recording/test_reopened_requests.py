"""A request that comes back after a restart, or to another process: the table of requests knows it, whatever stands in it."""

import shutil
from contextlib import suppress

import pytest

from pagein import AgentMemory, ToolCall
from pagein.errors import Conflict
from pagein.events.messages import Message
from pagein.events.steps import ActionStep, TaskStep, as_text
from pagein.formats.registry import FORMATS, format_named

TURNS = 8
WORDS = "the quick brown fox jumps over the lazy dog " * 4


def messages_of_turn(number):
    """A turn, as it is handed over piece by piece: words that hold, two calls, a failure and an empty result, a reply."""
    calls = (ToolCall(f"c{number}", "look", '{"at": "b"}'), ToolCall(f"d{number}", "read", "{}"))
    words = f"Never push branch {number}, and always use port {8_000 + number}. {WORDS}"
    called = Message("assistant", f"I look {number}.", calls)
    failed = Message("tool", f"Error: no file {number}", call_id=calls[0].id, is_error=True)
    return [Message("user", words)], [called], [called, failed, Message("tool", "", call_id=calls[1].id)], [
        Message("assistant", f"reply {number} {WORDS}")
    ]  # fmt: skip


def new_rows(messages, format):
    """The messages in a format; of results those of their call are left out."""
    render = format_named(format).render
    earlier = len(render(messages[:1])["messages"]) if messages[1:] else 0
    return render(messages)["messages"][earlier:]


def recorded_texts(memory):
    for step in memory.steps:
        yield as_text(step.content).strip()
        if isinstance(step, ActionStep):
            yield from (as_text(result.content).removeprefix("Error: ") for result in step.observations if result)


def said_texts(messages):
    return [as_text(message.content).strip().removeprefix("Error: ") for message in messages[len(messages) > 1 :]]


@pytest.mark.parametrize(
    ("format", "asks"), [*((format, "user tool") for format in FORMATS), ("openai", "user"), ("anthropic", "user")]
)
def test_after_every_restart_what_followed_the_request_is_recorded_once(tmp_path, format, asks):
    path, said, request, shown = str(tmp_path / "run.db"), [], [], ""
    for number in range(TURNS):
        for messages in messages_of_turn(number):
            said += said_texts(messages)
            request = [*request, *new_rows(messages, format)]
            with AgentMemory.open(path, budget=700, format=format) as memory:
                assert memory.record_messages(request).branch is None
                assert [text.replace("(no output)", "") for text in recorded_texts(memory)] == said, f"turn {number}"
                if messages[-1].role in asks:
                    request = memory.to_messages()
                    shown += str(request)
    for part in ('kind="ledger"', 'kind="failed"', "Out of view"):
        assert part in shown


@pytest.mark.parametrize("format", ["openai", "anthropic", "gemini"])
def test_a_request_of_one_process_is_known_to_another(tmp_path, format):
    path, said, request = str(tmp_path / "run.db"), [], []
    memories = [AgentMemory.open(path, budget=700, format=format) for _ in range(2)]
    for number in range(TURNS):
        for messages in messages_of_turn(number):
            said += said_texts(messages)
            request = [*request, *new_rows(messages, format)]
            memories.reverse()
            with suppress(Conflict):  # the other wrote since: it knows now what
                memories[0].record_messages(request)
            assert memories[0].record_messages(request).branch is None
            assert [text.replace("(no output)", "") for text in recorded_texts(memories[0])] == said, f"turn {number}"
            if messages[-1].role in "user tool":
                request = memories[0].to_messages()
    for memory in memories:
        memory.close()


SIZES = (1_060, 1_000, 940, 880, 820, 760, 700, 640)
"""Tokens of eight requests at one place of a run: the oldest four are not rendered again, the table of requests knows them."""


def test_the_oldest_of_eight_requests_is_known_after_a_restart(tmp_path):
    path, reply = tmp_path / "run.db", {"role": "assistant", "content": "Fine."}
    with AgentMemory.open(str(path), budget=1_100) as memory:
        for number in range(8):
            for messages in messages_of_turn(number):
                memory.record_messages(new_rows(messages, "openai"), whole=False)
        requests, count = [memory.to_messages(max_tokens=size) for size in SIZES], len(memory.steps)
    oldest = requests[0]
    assert len({str(request) for request in requests}) == len(SIZES)
    assert [request[-1]["content"] for request in requests] == ["Continue."] * len(SIZES)  # nobody said that
    for request, new in (
        ([*oldest, reply], ["Fine."]),
        (oldest, ["Continue."]),  # with nothing behind it the user says it
        (oldest[:-1], []),
        ([*oldest[:-1], reply | {"role": "user"}], ["Fine."]),
    ):
        copy = str(shutil.copy(path, tmp_path / "copy.db"))
        with AgentMemory.open(copy, budget=1_100) as memory:
            assert memory.record_messages(request).branch is None
            assert [as_text(step.content) for step in memory.steps[count:]] == new


def test_what_this_process_knows_of_its_request_stays_where_another_process_writes(tmp_path):
    path = str(tmp_path / "run.db")
    with AgentMemory.open(path, budget=1_100) as memory:
        memory.record_messages([{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}])
        request = memory.to_messages()
        assert request[-1]["content"] == "Continue."
        with AgentMemory.open(path, budget=1_100) as other:
            other.record(TaskStep("Never push."))
        with suppress(Conflict):  # nothing is written; it knows now what the other wrote
            memory.record(TaskStep("Always pull."))
        assert memory.record_messages(request).branch is None
        assert [as_text(step.content) for step in memory.steps] == ["Hello.", "Hi.", "Never push."]
