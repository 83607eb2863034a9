"""Answers to what the user asked for: they stand before the user's next words when the work has left the view."""

import json
import time

import pytest

from pagein import ActionStep, AgentMemory, FinalAnswerStep, Observation, TaskStep, ToolCall
from pagein.context.compaction.registry import POLICIES
from pagein.context.ledger.answers import ANSWERS_SHARE
from pagein.context.ledger.run_ledger import RunLedger

REQUESTS = (
    ("Rename the class Invoice to Bill.", "Done. I renamed it in 12 files, and all 84 tests pass."),
    ("Now send the release mail.", "The mail went out to 31 testers; two addresses bounced."),
    ("Delete the old exports.", "I deleted 214 exports; 11 are left."),
)


def work(memory, first, steps=15):
    """Read files; view after each."""
    for number in range(first, first + steps):
        call = ToolCall(f"c{number}", "read", json.dumps({"file": f"src/m{number}.py"}))
        text = "\n".join(f"{line}: value_{number}_{line} = load({line * 7})" for line in range(12))
        memory.record(ActionStep(None, (call,), (Observation(call.id, text),)))
        memory.view()


def play(memory, requests=REQUESTS):
    for number, (request, answer) in enumerate(requests):
        memory.record(TaskStep(request))
        work(memory, 100 * number)
        memory.record(FinalAnswerStep(answer))
    memory.record(TaskStep("Add retries to the client."))
    work(memory, 100 * len(requests))


def texts_of(memory):
    return [str(message["content"]) for message in memory.to_messages()]


@pytest.mark.parametrize("policy", POLICIES)
def test_under_every_policy_each_answer_stands_before_the_users_next_words(policy):
    with AgentMemory.open(":memory:", budget=2_000, policy=policy) as memory:
        play(memory)
        assert memory.view().has_replaced_entries
        texts = texts_of(memory)
        for (request, answer), (following, _) in zip(REQUESTS, (*REQUESTS[1:], ("Add retries", "")), strict=True):
            start, end = (next(at for at, text in enumerate(texts) if words in text) for words in (request, following))
            assert any(answer in text for text in texts[start:end])


@pytest.mark.parametrize("budget", [600, 900, 1_500, 4_000])
def test_the_newest_answers_have_their_share_and_the_view_its_budget(budget):
    requests = [(f"Do task {number}.", f"Task {number} is done: {'all of it ' * 20}") for number in range(40)]
    with AgentMemory.open(":memory:", budget=budget) as memory:
        for number, (request, answer) in enumerate(requests):
            memory.record(TaskStep(request))
            work(memory, 10 * number, 2)
            memory.record(FinalAnswerStep(answer))
        memory.record(TaskStep("Go on."))
        work(memory, 1_000)
        view = memory.view()
        assert view.tokens <= budget
        lines = [line for text in texts_of(memory) for line in text.splitlines() if " answered: " in line]
        assert sum(view.counter.text(line) + 1 for line in lines) <= budget * ANSWERS_SHARE
        numbers = [int(line.split("Task ")[1].split()[0]) for line in lines]
        assert numbers == list(range(40 - len(numbers), 40))


def test_between_compactions_and_on_reopening_the_request_stays_the_same(tmp_path):
    address = str(tmp_path / "run.db")
    with AgentMemory.open(address, budget=2_000, page_in=0) as memory:
        play(memory)
        view = memory.view()
    with AgentMemory.open(address, budget=2_000, page_in=0) as memory:
        assert memory.view().messages() == view.messages()
        memory.record(FinalAnswerStep("The client tries three times."))
        memory.compact()
        before = memory.view().messages()
        assert "[s65] answered: The client tries three times." in before[-2].content or before[-2].role == "assistant"
        memory.record(TaskStep("Thanks."))
        after = memory.view().messages()
        assert after[: len(before) - 1] == before[:-1] or after[: len(before)] == before


def test_what_was_said_on_the_way_or_without_work_is_no_answer():
    with AgentMemory.open(":memory:", budget=1_500) as memory:
        memory.record(TaskStep("Hello."), FinalAnswerStep("Hello! What shall we do?"), TaskStep("Build it."))
        work(memory, 0, 2)
        memory.record(ActionStep("I have read the half."), TaskStep("Go on."))
        work(memory, 10, 3)
        memory.record(ActionStep("I stop here."))
        work(memory, 20)
        lines = [line for text in texts_of(memory) for line in text.splitlines() if " answered: " in line]
        assert [line.split("answered: ")[1] for line in lines] == ["I have read the half."]


def test_an_answer_begins_with_what_it_says():
    answer = "Now I understand it. Let me summarize:\n\n## Bug\n\nThe **total** is `a + b`, and it was `a`."
    with AgentMemory.open(":memory:", budget=1_500) as memory:
        play(memory, [("Find the bug.", answer), ("Thanks. And now?", "Perfect.")])
        lines = [line for text in texts_of(memory) for line in text.splitlines() if " answered: " in line]
        said = [line.split("answered: ")[1] for line in lines]
        assert said == ["Bug The total is `a + b`, and it was `a`.", "Perfect."]


def test_an_erased_answer_is_not_shown():
    with AgentMemory.open(":memory:", budget=2_000) as memory:
        play(memory)
        (line,) = (line for text in texts_of(memory) for line in text.splitlines() if "31 testers" in line)
        memory.erase(line[1 : line.index("]")])
        text = "\n".join(texts_of(memory))
        assert "31 testers" not in text
        assert REQUESTS[0][1] in text


def test_an_answer_of_one_mark_a_hundred_thousand_times_takes_no_time():
    started = time.process_time()
    for mark in "#|*":
        ledger = RunLedger()
        ledger.learn_result((1, 0), ToolCall("c", "read", "{}"), Observation("c", "x"))
        text = f"x{mark * 100_000}x"
        ledger.learn_work(2, text, text, is_own=True)
        assert ledger.answers.by_position[2].text.startswith("x")
    assert time.process_time() - started < 5


def test_an_answer_in_a_notice_that_says_nothing_has_no_empty_line_before_it():
    with AgentMemory.open(":memory:", budget=600) as memory:
        for number in range(12):
            memory.record(TaskStep(f"Do task {number}, and then tell me."))
            work(memory, 10 * number, 1 if number % 3 == 0 else 0)
            memory.record(FinalAnswerStep(f"Task {number} is done: {'all ' * 8}"))
        answers = [text for text in texts_of(memory) if "\n[s" in text and " answered: " in text]
        assert answers
        assert not any("\n\n" in text for text in answers)
