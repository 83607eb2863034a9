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
    for turn in range(26):
        if turn == 13 and restart:
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


def with_result(row, words):
    """A message of results, the last of them in other words."""
    if row["role"] == "tool":
        return {**row, "content": words(row["content"])}
    return {"role": "user", "content": [{**block, "content": words(block["content"])} for block in row["content"]]}


def open_files(rows, turn):
    blocks = [{"type": "text", "text": text} for text in (rows[0]["content"], f"a{turn}.py is open.")]
    return [{"role": "user", "content": blocks}, *rows[1:]]


def a_job_that_runs(rows, turn):
    return [*rows[:-1], with_result(rows[-1], lambda _: "The job is running.")] if turn else rows


def notes_in_the_result(rows, turn):
    return [*rows[:-1], with_result(rows[-1], lambda text: f"{text}\na{turn}.py is open.")] if turn else rows


def a_reminder_at_the_end(rows, turn):
    return [*rows, {"role": "user", "content": f"It is {turn} o'clock."}]


CHANGES = (open_files, a_job_that_runs, notes_in_the_result)


@pytest.mark.parametrize("name", ["", "mine"])
@pytest.mark.parametrize(
    ("client", "change"),
    [
        *((client, change) for client in (Chat(), Messages()) for change in CHANGES),
        (Chat(), a_reminder_at_the_end),  # Messages has no two messages of the user in a row
    ],
)
def test_what_a_client_words_anew_each_turn_is_one_run_with_two_branches_at_most(stack, client, name, change):
    made = stack(calling(), window=6_000)
    play = Play(made, client, name)
    for turn in range(16):
        play.turn(lambda rows, turn=turn: change(rows, turn))
        play.rows[-1] = client.reply(play.rows[-2], turn + 1)
    [run] = runs_of(made)
    assert made.provider.illegal == ()
    with made.memory(run) as memory:
        assert len(memory.branches()) == (2 if change is open_files else 1)
        results = [step.observations[0].content for step in memory.steps if getattr(step, "observations", ())]
        assert results[:-1] == [f"Result {n}: {n * 7} boats." for n in range(1, len(results))]
        assert len(results) == 15
