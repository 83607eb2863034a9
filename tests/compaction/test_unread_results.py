"""Results that the model has not read yet: a compaction leaves them whole where they fit."""

import re

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.context.compaction.base import Plan
from pagein.context.compaction.clips import clip_text
from pagein.context.compaction.episodes import shortens_unread
from pagein.events.entries import Compaction, Replacement, Stub
from pagein.events.steps import ActionStep, FinalAnswerStep, Observation, TaskStep, ToolCall, as_text
from pagein.memory.agent_memory import AgentMemory
from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")


def play_reads(budget, lines):
    """Record a read of so many lines for each turn; return the log, and whether each result was whole in its first view."""
    log, shown = InMemoryLog(), []
    memory = AgentMemory(log, budget=budget)
    memory.record(TaskStep("Mend the parser."))
    for turn, count in enumerate(lines):
        output = "\n".join(f"line {line} of step {turn} reads field_{line}_{turn}" for line in range(count))
        memory.record(ActionStep(f"I read part {turn}.", (ToolCall(f"c{turn}", "read", f'{{"part": {turn}}}'),)))
        memory.record(Observation(f"c{turn}", output))
        shown.append(any(output in as_text(message.content or "") for message in memory.view().messages()))
    return log, shown


def test_a_result_that_was_not_read_yet_stays_whole_at_a_compaction():
    log, shown = play_reads(4_000, [15 if turn % 6 else 90 for turn in range(24)])
    assert sum(isinstance(entry.body, Compaction) for entry in log.read()) >= 3
    assert all(shown), f"the model never saw the whole of {[turn for turn, whole in enumerate(shown) if not whole]}"


def test_a_result_that_has_no_space_is_abridged():
    _, shown = play_reads(4_000, [15, 15, 400, 15])
    assert shown == [True, True, False, True]


@pytest.mark.parametrize("budget", [500, 800])
def test_in_a_small_budget_what_failed_and_what_holds_leave_unread_results_whole(budget):
    with AgentMemory.open(":memory:", budget=budget) as memory:
        memory.record(TaskStep("Mend the parser. Never touch settings.py."))
        for turn in range(25):
            if turn % 5 == 0:
                memory.record(
                    FinalAnswerStep("Done."),
                    TaskStep(f"Always use tabs in module {turn}, whatever the linter of it may say."),
                )
            failed = "\n".join(f"error: case {case} of step {turn} raised ValueError" for case in range(3))
            memory.record(ActionStep("I run it.", (ToolCall(f"c{turn}", "run", f'{{"part": {turn}}}'),)))
            memory.record(Observation(f"c{turn}", f"{failed}\n{'passed ' * (budget // 10)}"))
            shown = [as_text(message.content or "") for message in memory.view().messages()]
            assert any(f"{failed}\n{'passed ' * (budget // 10)}" in text for text in shown), turn
            assert any("Never touch settings.py." in text for text in shown)


def test_a_plan_that_clips_the_newest_result_shortens_what_is_unread_also_where_it_came_as_a_message():
    rows = [
        {"role": "user", "content": "Mend the parser."},
        {"role": "assistant", "content": "I look.\nAction: read[1]"},
        {"role": "user", "content": "Observation: a long page"},
    ]
    with AgentMemory.open(":memory:", budget=4_000) as memory:
        memory.record_messages(rows)
        view = memory.view()
        for position, is_unread in ((1, False), (2, True)):
            stub = Stub("content", 0, "short", "clip")
            plan = Plan((Replacement(position, position + 1, (stub,)),), "clip", "a test")
            assert shortens_unread(view, plan) == is_unread


def test_what_is_clipped_again_has_one_gap():
    lines = "\n".join(f"line {number} of the file" for number in range(400))
    once = clip_text(lines, 200, COUNTER, "s3.0")
    twice = clip_text(once, 60, COUNTER, "s3.0")
    head, gap, tail = re.split(r"\n(\[.* characters left out: s3\.0 \.\.\.\])\n", twice)
    assert head
    assert lines.startswith(head)
    assert tail
    assert lines.endswith(tail)
    assert len(head) + len(tail) + int(re.sub(r"\D", "", gap.split(":")[0])) == len(lines)


@pytest.mark.parametrize("calls", [1, 2])
def test_a_result_above_a_third_of_the_budget_is_whole_where_the_view_has_space(calls):
    outputs = [
        f"part {part}\n" + f"line of part {part} that nobody read yet\n" * (200 // calls) for part in range(calls)
    ]
    with AgentMemory.open(":memory:", budget=4_000) as memory:
        memory.record(TaskStep("Mend the parser."))
        memory.record(ActionStep(None, tuple(ToolCall(f"c{part}", "read", "{}") for part in range(calls))))
        memory.record(*(Observation(f"c{part}", output) for part, output in enumerate(outputs)))
        shown = [as_text(message.content or "") for message in memory.view().messages()]
        assert all(output in shown for output in outputs)
        memory.record(ActionStep("Read.", (ToolCall("d", "run", "{}"),), (Observation("d", "short"),)))
        assert not any(isinstance(entry.body, Compaction) for entry in memory._runtime.log.read())


def test_a_result_is_whole_where_the_extract_beside_it_needs_little():
    """The extract may have a fifth of the limit; of steps that say little it does not need it, and the result has the rest."""
    output = "\n".join(f"row {row} of the table has value_{row} in it" for row in range(245))
    with AgentMemory.open(":memory:", budget=4_000) as memory:
        memory.record(TaskStep("Sum the values."))
        for turn in range(40):
            call = ToolCall(f"c{turn}", "wait", "{}")
            memory.record(ActionStep("I wait.", (call,), (Observation(f"c{turn}", "Nothing yet. " * 6),)))
            memory.view()
        memory.record(ActionStep("It came.", (ToolCall("d", "read", "{}"),), (Observation("d", output),)))
        shown = [as_text(message.content or "") for message in memory.view().messages()]
        assert memory.view().has_replaced_entries
        assert output in shown
