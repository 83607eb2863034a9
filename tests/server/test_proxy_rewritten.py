"""A client whose first message says something else in each list, such as the time: the run goes on, behind a proxy too."""

import pytest

from pagein.events.steps import SystemPromptStep, as_text
from tests.server.test_proxy_cut_lists import Chat, Messages, Play, calling, runs_of, sent_text

pytestmark = pytest.mark.slow


def told_the_time(client, turn):
    return lambda rows: [client.user(f"It is {turn} o'clock. Count the boats. Never count a boat twice."), *rows[1:]]


@pytest.mark.parametrize("client", [Chat(), Messages()], ids=["chat", "messages"])
@pytest.mark.parametrize(("name", "restart"), [("", False), ("mine", False), ("mine", True)])
def test_a_first_message_that_changes_each_turn_is_one_run(stack, client, name, restart):
    script = calling()
    made = stack(script, window=6_000)
    play = Play(made, client, name)
    for turn in range(40):
        if turn == 20 and restart:
            made = stack(script, window=6_000, store=made.store)
            play.http = made.http()
        play.turn(told_the_time(client, turn))
        play.rows[-1] = client.reply(play.rows[-2], turn + 1)
        assert f"It is {turn} o'clock" in sent_text(made)
        assert not turn or f"It is {turn - 1} o'clock" not in sent_text(made)
    [run] = runs_of(made)
    assert made.provider.illegal == ()
    with made.memory(run) as memory:
        assert [branch.name for branch in memory.branches()] == ["main", "branch-1"]
        texts = [as_text(step.content or "") for step in memory.steps if not isinstance(step, SystemPromptStep)]
        assert texts == [
            f"It is {turn} o'clock. Count the boats. Never count a boat twice.",
            *(f"Pier {n}." for n in range(1, len(texts))),
        ]
        assert len(texts) > 20
