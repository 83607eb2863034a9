"""Whole runs of agents on the real SDKs through the proxy: nothing is over, nothing malformed, all is recorded."""

import pytest

from pagein.testing.provider import ToolLoop
from pagein.tokens import Budget
from pagein.tokens.bytes import json_bytes
from tests.server.sdk_agents import run_chat, run_gemini, run_gemini_chat, run_messages, run_responses

CALLS, SIZE = 14, 800
WINDOW = 3_000  # holds some five calls


def run_protocol(made, protocol, *, stream):
    if protocol == "messages":
        return run_messages(made.claude("a run"), stream=stream, size=SIZE)
    if protocol == "chat":
        return run_chat(made.gpt("a run"), stream=stream, size=SIZE)
    if protocol == "gemini":
        return run_gemini(made.gemini("a run"), stream=stream, size=SIZE)
    if protocol == "gemini chat":
        return run_gemini_chat(made.gemini("a run"), stream=stream, size=SIZE)
    return run_responses(made.gpt("a run"), stream=stream, size=SIZE, stateful=protocol == "stateful")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "stream"),
    [
        ("messages", True),
        ("messages", False),
        ("chat", True),
        ("chat", False),
        ("responses", True),
        ("stateful", False),
        ("gemini", True),
        ("gemini", False),
        ("gemini chat", True),
        ("gemini chat", False),
    ],
)
def test_a_run_longer_than_the_window_ends_as_if_there_were_none(stack, protocol, stream):
    made = stack(ToolLoop(CALLS), window=WINDOW, provider_window=WINDOW)
    history = run_protocol(made, protocol, stream=stream)
    provider = made.provider
    assert "All done." in str(history[-1])
    assert (provider.over, provider.illegal) == (0, ())
    assert len(provider.received) == CALLS + 1
    # The last request alone says where in the cycle of compactions the run ends, not how much of the window is used.
    filled = [request.reading.tokens for request in provider.received[-CALLS // 2 :]]
    assert max(filled) > WINDOW * 2 / 3, "the window is used"
    # The calls differ in one number, so what is left of the older ones is one line.
    assert min(filled) > WINDOW / 5, "a compaction leaves something"
    assert not made.app.metrics.counts["failures", "FormatError"]
    assert made.count("answers", "recorded") == CALLS + 1
    with made.memory("a run") as memory:
        assert [branch.name for branch in memory.branches()] == ["main"]
        steps = memory.steps
    assert len([step for step in steps if type(step).__name__ == "ActionStep"]) == CALLS + 1


def test_what_a_request_recorded_is_learned_and_indexed_while_its_answer_is_awaited(stack):
    made = stack(ToolLoop(6), window=WINDOW)
    run_messages(made.claude("a run"), stream=True, size=SIZE)
    pool = made.app._parts.proxy._runs._pool
    (memory,) = (memory for memory, _ in pool._open.values())
    runtime = memory._runtime
    pending = {text.source for text in runtime.state.fold.learned.tracker._pending}
    assert pending <= {"said"}, "all but the last answer"
    assert runtime.search._index.watermark() >= memory.head - 2


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["messages", "chat", "responses", "stateful", "gemini"])
def test_no_request_has_more_bytes_than_the_budget(stack, protocol):
    made = stack(ToolLoop(CALLS), window=100_000, options={"budget": Budget(100_000, bytes=6_000)})
    history = run_protocol(made, protocol, stream=True)
    assert "All done." in str(history[-1])
    sizes = [json_bytes(request.body) for request in made.provider.received]
    assert len(sizes) == CALLS + 1
    assert 3_000 < max(sizes) <= 6_000
    assert made.provider.illegal == ()


def test_a_list_whose_calls_share_an_id_goes_out_with_an_id_for_each(stack):
    made = stack(ToolLoop(0))
    call = {"id": "call_" + "a" * 24, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    turn = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": call["id"], "content": "x"}]
    asked = [{"role": "user", "content": "Look."}]
    for messages in ([*asked, *turn], [*asked, *turn, *turn], [*asked, *turn, *turn, *turn]):
        answer = made.http().post(
            "/v1/chat/completions", json={"model": "gpt-5", "messages": messages}, headers={"x-pagein-run": "shared"}
        )
        assert answer.headers["x-pagein"].endswith("; whole") == (len(messages) == 3)
    assert made.provider.illegal == ()
    ids = [row["tool_call_id"] for row in made.provider.received[-1].body["messages"] if row["role"] == "tool"]
    assert len(set(ids)) == 3
    assert ids[0] == call["id"]
