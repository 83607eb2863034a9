"""Whole runs of agents on the real SDKs through the proxy: nothing is over, nothing malformed, all is recorded."""

import pytest

from pagein.testing.provider import ToolLoop
from tests.server.sdk_agents import run_chat, run_messages, run_responses

CALLS, SIZE = 14, 800
WINDOW = 3_000  # holds some five calls


@pytest.mark.parametrize(
    ("protocol", "stream"),
    [
        ("messages", True),
        ("messages", False),
        ("chat", True),
        ("chat", False),
        ("responses", True),
        ("stateful", False),
    ],
)
def test_a_run_longer_than_the_window_ends_as_if_there_were_none(stack, protocol, stream):
    made = stack(ToolLoop(CALLS), window=WINDOW, provider_window=WINDOW)
    if protocol == "messages":
        history = run_messages(made.claude("a run"), stream=stream, size=SIZE)
    elif protocol == "chat":
        history = run_chat(made.gpt("a run"), stream=stream, size=SIZE)
    else:
        history = run_responses(made.gpt("a run"), stream=stream, size=SIZE, stateful=protocol == "stateful")
    provider = made.provider
    assert "All done." in str(history[-1])
    assert (provider.over, provider.illegal) == (0, ())
    assert len(provider.received) == CALLS + 1
    assert provider.received[-1].reading.tokens > WINDOW / 4, "the window is used"
    assert not made.app.metrics.counts["failures", "FormatError"]
    assert made.count("answers", "recorded") == CALLS + 1
    with made.memory("a run") as memory:
        assert [branch.name for branch in memory.branches()] == ["main"]
        steps = memory.steps
    assert len([step for step in steps if type(step).__name__ == "ActionStep"]) == CALLS + 1
