"""A result that a newer one repeats leaves one line, where a compaction happens anyway; a series of calls is one line."""

import json
from dataclasses import replace

import pytest

from pagein import AgentMemory
from pagein.backends.memory import InMemoryLog
from pagein.context.compaction.apply import plan_once
from pagein.context.compaction.base import Plan
from pagein.context.compaction.policies.window import Window
from pagein.context.compaction.registry import POLICIES
from pagein.context.salience.extract import select_lines
from pagein.context.salience.series import find_series
from pagein.context.salience.tracker import SalienceTracker
from pagein.context.view.body import preview
from pagein.events.entries import Compaction, Replacement, Stub
from pagein.events.steps import ActionStep, Image, Observation, TaskStep, Text, ToolCall
from pagein.testing.promises import fold_entries
from pagein.tokens import Budget
from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")
FILE = [f"def function_{n}(request): return request.field_{n}" for n in range(20)]
OTHER = [f"The lantern number {n} hangs at the harbour." for n in range(20)]


def act(lines, path="a.py", name="read"):
    call = ToolCall("c", name, json.dumps({"path": path}))
    return ActionStep(None, (call,), (Observation("c", "\n".join(lines)),))


def view_of(*steps, limit=100_000):
    entries = InMemoryLog().append([TaskStep("Mend it."), *steps], after=0, at=0.0)
    return fold_entries(entries, COUNTER).view(limit)


def breaks_at(first):
    """A policy that replaces the result at a position, and nothing else."""

    def policy(view, budget):
        stub = Stub("observation", 0, "[gone]", "mask")
        return Plan((Replacement(first, first + 1, (stub,)),), "test", "because")

    return policy


def results(*steps, first=1):
    """What stands in the place of the results after a compaction that begins at ``first``."""
    view = view_of(act(OTHER[:9], "first.txt"), *steps)
    plan = plan_once(view, Budget(view.limit), breaks_at(first))
    after = preview(view, plan.replacements)
    return [entry.item.observations[0].content for entry in after.run if isinstance(entry.item, ActionStep)]


def test_a_file_read_again_is_shown_once_the_newest_time():
    first, *middle, last = results(act(FILE), act(OTHER), act(FILE), act(FILE))
    assert first == "[gone]"
    size = len("\n".join(FILE))
    assert middle == [
        f"[{size:,} characters masked: s2.0; s5.0 has the same]",
        "\n".join(OTHER),
        f"[{size:,} characters masked: s4.0; s5.0 has the same]",
    ]
    assert last == "\n".join(FILE)


def test_what_changed_is_counted_and_a_small_difference_is_shown():
    changed = [*FILE[:3], "def new_function(): pass", *FILE[4:]]
    older = results(act(FILE), act(changed))[1]
    assert older.splitlines()[0].endswith("s3.0 has it again, without 1 of its lines, with 1 others]")
    assert older.splitlines()[1:] == ["| " + FILE[3]]
    much = results(act([*FILE, *OTHER[:15]]), act(FILE))[1]
    assert "without 15 of its lines" in much
    assert "\n" not in much


def test_line_numbers_make_no_difference():
    numbered = [f"{n}: {line}" for n, line in enumerate(FILE)]
    assert "s3.0 has the same" in results(act(numbered), act(FILE))[1]


@pytest.mark.parametrize("number", ["{}\t{}", "{}\u2192{}", "{} | {}"])
def test_a_viewers_numbers_and_its_empty_lines_are_no_change(number):
    def numbered(lines):
        return [number.format(f"{n:6}", line) for n, line in enumerate(lines, 1)]

    older = results(act(numbered(FILE)), act(numbered([*FILE[:5], "", "", *FILE[5:12], "", *FILE[13:]])))[1]
    assert older.splitlines()[0].endswith("s3.0 has it again, without 1 of its lines, with 0 others]")
    assert older.splitlines()[1:] == ["| " + numbered(FILE)[12].strip()]


ELEMENTS = ("[{}] link '{}'", "- [{}] <a>{}</a>", '- link "{1}" [ref=e{0}]', 'uid=3_{} link "{}"', "[{}]<a {}/>")


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_page_whose_elements_are_numbered_anew_is_a_repeat(element):
    def page(start, price):
        names = [*(f"Department {n}" for n in range(20)), f"Price {price}", "Checkout"]
        return [element.format(start + 3 * n, name) for n, name in enumerate(names)]

    older = results(act(page(100, 12)), act(page(700, 14)))[1]
    assert older.splitlines()[0].endswith("s3.0 has it again, without 1 of its lines, with 1 others]")
    assert older.splitlines()[1:] == ["| " + page(100, 12)[20]]


def pods(minute, waiting):
    return [
        f"shop-worker-{n}   {'0/1     Pending' if n == waiting else '1/1     Running'}   0   {minute}m{n}s"
        for n in range(12)
    ]


def test_a_poll_whose_times_alone_change_says_what_else_changed():
    first, second, _ = results(*(act(pods(minute, waiting)) for minute, waiting in ((1, 7), (2, 7), (3, 30))))[1:]
    why = "has it again, but for numbers, without 1 of its lines, with 1 others]"
    assert first.splitlines()[0].endswith(f"s4.0 {why}")
    assert second.splitlines()[1:] == ["| " + pods(2, 7)[7]]
    assert results(act(pods(1, 30), name="one"), act(pods(2, 30), name="two"))[1] == "\n".join(pods(1, 30))
    orders = [[f"handled order {n} of the day" for n in range(start, start + 20)] for start in (0, 40)]
    assert results(*map(act, orders))[1] == "\n".join(orders[0])


def test_lines_that_come_more_often_or_in_another_order_are_a_change():
    jobs = [f'"job": "build-{n}",' for n in range(9)]
    states = [["completed" if n < done else "queued" for n in range(9)] for done in (2, 4)]
    polls = [[line for pair in zip(jobs, state, strict=True) for line in pair] for state in states]
    assert "has it again, without 2 of its lines, with 2 others]" in results(*map(act, polls))[1]
    assert "s3.0 has the same lines in another order]" in results(act(FILE), act(FILE[::-1]))[1]


def test_another_call_has_to_repeat_most_of_it_and_the_same_call_half():
    half = [*FILE[:12], *OTHER[:8]]
    assert "has it again" in results(act(FILE), act(half))[1]
    assert results(act(FILE), act(half, "b.py"))[1] == "\n".join(FILE)
    assert "has it again" in results(act(FILE), act([*FILE, *OTHER], "b.py"))[1]
    assert results(act(FILE), act(OTHER))[1] == "\n".join(FILE)


def test_nothing_changes_before_the_place_where_the_prefix_breaks_anyway():
    steps = act(FILE), act(FILE), act(OTHER), act(OTHER), act(OTHER)
    view = view_of(*steps)
    plan = plan_once(view, Budget(view.limit), breaks_at(3))
    assert [by.first for by in plan.replacements] == [3, 4]
    assert plan_once(view, Budget(view.limit), lambda view, budget: None) is None


def test_an_important_step_and_a_picture_stay():
    view = view_of(act(OTHER[:9], "first.txt"), act(FILE), act(FILE))
    view = replace(view, important=frozenset({2}), find_important=None)
    plan = plan_once(view, Budget(view.limit), breaks_at(1))
    assert [by.first for by in plan.replacements] == [1]
    pictures = [(Text("\n".join(FILE)), Image(b"\x89PNG" + bytes([number] * 60), "image/png")) for number in (1, 2, 2)]
    acts = [replace(act([]), observations=(Observation("c", content),)) for content in pictures]
    assert results(*acts)[1] == pictures[0]
    assert "has the same" in results(*acts)[2]


def a_run(memory, rounds=12):
    """Read the same file again and again, with other work between."""
    memory.record(TaskStep("Mend a.py."))
    for number in range(rounds):
        text = "\n".join([*FILE, f"# version_{number} of the file"])
        memory.record(act(text.splitlines()))
        memory.record(act([f"{line} {number}" for line in OTHER[:3]], f"b{number}.txt", "search"))
        memory.to_messages()


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_under_every_policy_each_handle_gives_the_original_and_undo_takes_it_back(policy):
    with AgentMemory.open(":memory:", budget=1_600, policy=policy) as memory:
        a_run(memory)
        assert memory.verify().ok
        for entry in memory.view().run:
            for stub in entry.stubs:
                handle = f"s{entry.first}.{stub.index}"
                assert FILE[0] in str(memory.expand(handle)) or OTHER[0] in str(memory.expand(handle))
        before = memory.view().messages()
        memory.undo()
        memory.view()
        assert memory.verify().ok
        assert before


def test_a_policy_that_keeps_the_newest_steps_shows_a_file_once_in_them():
    with AgentMemory.open(":memory:", budget=2_500, policy=Window(6)) as memory:
        a_run(memory)
        bodies = [entry.body for entry in memory._runtime.log.read()]
        compactions = [body for body in bodies if isinstance(body, Compaction)]
        assert any(body.policy == "window+repeats" for body in compactions)
        text = json.dumps(memory.to_messages())
        shown, read = text.count(FILE[5]), sum(entry.item.tool_calls[0].name == "read" for entry in memory.view().run if isinstance(entry.item, ActionStep))  # fmt: skip
        assert shown < read


# Series of calls


def tracker_of(*steps):
    tracker = SalienceTracker()
    for position, step in enumerate(steps):
        tracker.learn_step(position, step)
    return tracker


def call(name, **arguments):
    return ActionStep(None, (ToolCall("c", name, json.dumps(arguments)),), (Observation("c", "ok"),))


def test_calls_that_differ_in_one_number_are_one_line_of_an_extract():
    steps = [call("read_part", part=number) for number in range(1, 296)]
    tracker = tracker_of(*steps, call("search", text="total"))
    lines = [line.text for line in select_lines(tracker, 500, COUNTER, visible=()).lines]
    assert lines == ["read_part part=1..295", "search text=total"]


def test_a_gap_parts_a_series_and_an_even_distance_is_said():
    def texts(*steps):
        return sorted(series.line.text for series in find_series(tracker_of(*steps).lines))

    assert texts(*(call("page", page=n) for n in (1, 2, 3, 7, 8, 9, 20))) == ["page page=1..3", "page page=7..9"]
    assert texts(*(call("page", offset=n * 100) for n in range(5))) == ["page offset=0..400 by 100"]
    assert texts(*(call("page", page=n) for n in (3, 4))) == []
    assert texts(*(call("issue", id=n) for n in (1432, 2211, 9034))) == []
    assert texts(*(call("read", path=f"file_{n}.py") for n in range(5))) == []


def test_each_call_is_in_one_series_and_calls_in_view_are_in_none():
    steps = [call("read", start=a, width=b) for a in range(4) for b in range(3)]
    tracker = tracker_of(*steps)
    keys = [key for series in find_series(tracker.lines) for key in series.keys]
    assert len(keys) == len(set(keys)) == 12
    lines = select_lines(
        tracker_of(*(call("page", page=n) for n in range(6))), 300, COUNTER, visible=["page page=5"]
    ).lines
    assert [line.text for line in lines] == ["page page=0..4"]
