"""An extract says what was done so that a reader can act on it; the floor gives up no more than it must."""

import json
from dataclasses import replace

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.context.compaction.base import actions
from pagein.context.compaction.floor import floor
from pagein.context.salience.extract import NAMES_MAX_SHARE, select_lines
from pagein.context.salience.tracker import SalienceTracker
from pagein.context.view.body import preview
from pagein.events.identifiers import format_call
from pagein.events.steps import ActionStep, Image, Observation, TaskStep, Text, ToolCall
from pagein.memory.agent_memory import AgentMemory
from pagein.testing.promises import fold_entries
from pagein.tokens import Budget
from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")


def test_a_call_is_told_with_its_name_and_keys():
    line = format_call("reserve", json.dumps({"order": "W12", "variant": 77, "note": "one\ntwo"}))
    assert line.text == "reserve order=W12 variant=77 note=one"
    assert (line.alone, line.rest) == ("", "two")
    assert format_call("run", '"ls"').text == "run ls"
    assert format_call("run", "{broken").text == "run {broken"
    assert format_call("run", "").text.strip() == "run"


def tracker_of(*bodies):
    memo = SalienceTracker()
    for position, body in enumerate(bodies):
        memo.learn_step(position, body)
    return memo


def act(name, arguments, result=""):
    return ActionStep(
        None, (ToolCall("c", name, json.dumps(arguments)),), (Observation("c", result),) if result else ()
    )


def test_a_call_of_several_arguments_is_one_line_of_an_extract():
    memo = tracker_of(act("order", {"order": "W12345", "why": "late"}), act("inbox", {}))
    extract = select_lines(memo, 200, COUNTER, visible=())
    assert "order order=W12345 why=late" in [line.text for line in extract.lines]


def test_a_run_of_one_tool_does_not_name_it_and_a_run_of_two_does():
    one = tracker_of(act("sh", {"command": "cat first_file.txt"}))
    two = tracker_of(act("sh", {"command": "cat first_file.txt"}), act("find", {"what": "second_thing"}))
    assert [line.text for line in one.lines.values()] == ["cat first_file.txt"]
    assert [line.text for line in two.lines.values()] == ["cat first_file.txt", "find what=second_thing"]


def test_a_call_of_one_argument_that_an_extract_shows_with_its_tool_is_in_view():
    memo = tracker_of(act("find", {"what": "second_thing", "where": "inbox"}), act("get_mail", {"id": "msg_4711"}))
    shown = [line.text for line in select_lines(memo, 200, COUNTER, visible=()).lines]
    assert "get_mail id=msg_4711" in shown
    assert not select_lines(memo, 200, COUNTER, visible=shown).lines


def test_no_line_of_an_extract_is_the_name_of_an_image():
    screen = (Text("The form is empty."), Image(b"\x89PNG" + bytes(60), "image/png"))
    step = replace(act("click", {"x": 4}), observations=(Observation("c", screen),))
    assert [line.text for line in tracker_of(step).lines.values()] == ["click x=4", "The form is empty."]


def test_of_a_result_the_line_that_speaks_of_the_task_is_worth_most():
    noise = [f"The lantern of the harbour was painted again, number {n}." for n in range(10)]
    result = "\n".join([*noise[:5], "Locker A7-1234 opens with 55555.", *noise[5:]])
    memo = tracker_of(TaskStep("Open the lockers."), act("cat", {"path": "a.txt"}, result))
    worth = {key: memo.result_worth(line) for key, line in memo.lines.items()}
    assert max(worth, key=worth.get) == "Locker A7-1234 opens with 55555."


def test_a_decision_of_the_model_has_its_share_and_one_in_a_result_has_not():
    words = "I decided to keep the old parser."
    noise = [act("sh", {"c": f"cat file_{n}.py"}, f"He decided on item_{n}.") for n in range(60)]
    memo = tracker_of(TaskStep("Mend it."), ActionStep(words), *noise)
    lines = select_lines(memo, 200, COUNTER, visible=()).lines
    assert words in [line.text for line in lines]
    assert not any(memo.lines[key].is_decision for key in memo.lines if key.startswith("He"))


def test_names_by_themselves_leave_room_for_lines():
    result = "\n".join(f"name_{n}_of_many other_{n}_thing" for n in range(200))
    extract = select_lines(tracker_of(act("ls", {"path": "src"}, result)), 400, COUNTER, visible=())
    assert extract.lines
    assert sum(COUNTER.text(name) + 2 for name in extract.names) <= 400 * NAMES_MAX_SHARE


def test_the_floor_takes_the_oldest_turns_only_as_many_as_it_must():
    run = [TaskStep("Go."), *(act("sh", {"command": f"run {n}"}, f"output {n} " * 40) for n in range(20))]
    whole = fold_entries(InMemoryLog().append(run, after=0, at=0.0), COUNTER).view(10**6)
    view = fold_entries(InMemoryLog().append(run, after=0, at=0.0), COUNTER).view(whole.tokens // 2)
    after = preview(view, floor(view, Budget(view.limit)).replacements)
    assert view.limit * 0.7 < after.tokens <= view.limit
    staying = [entry.first for entry in actions(after)]
    assert staying == [entry.first for entry in actions(view)][-len(staying) :]
    assert len(staying) >= 7


def test_a_long_run_still_tells_what_was_done_at_its_start():
    many = 900
    noise = "\n".join(f"lantern of harbour {n}" for n in range(8))
    memo = tracker_of(*(act("probe", {"file": f"core/f_{n}.c"}, noise) for n in range(many)))
    lines = {line.text for line in select_lines(memo, 60_000, COUNTER, visible=()).lines}
    assert {f"core/f_{n}.c" for n in range(many)} <= lines


def test_an_extract_shows_what_is_worth_its_tokens_and_the_newest_action_whatever_its_worth():
    memo = tracker_of(
        act("cat", {"path": "old.py"}, "\n".join(f"plain words of line {n} that nobody will need" for n in range(40))),
        act("grep", {"path": "src/cache.py"}, "def fetch_rate(): ..."),
    )
    whole, frugal, dear = (select_lines(memo, 600, COUNTER, visible=(), worth=worth) for worth in (0.0, 0.002, 1.0))
    assert len(whole.lines) > len(frugal.lines) >= len(dear.lines)
    assert "def fetch_rate(): ..." in [line.text for line in frugal.lines]
    assert any(line.mark == "> " for line in dear.lines)
    assert not select_lines(memo, 600, COUNTER, visible=(), worth=1.0, reserves=False).lines


@pytest.mark.parametrize("policy", ["projection", "tiers"])
def test_where_no_cache_makes_tokens_cheap_less_of_them_is_shown(policy):
    sizes = {}
    for prices in ("default", "none"):
        with AgentMemory(InMemoryLog(), budget=4_000, policy=policy, prices=prices, page_in=0) as memory:
            memory.record(TaskStep("Find the slow query."))
            for number in range(40):
                lines = "\n".join(f"row {n} of table_{number} took {n * 7} ms in app/query_{n}.py" for n in range(12))
                memory.record(act("sh", {"command": f"explain query_{number}"}, lines))
                view = memory.view()
        sizes[prices] = sum(entry.tokens for entry in view.run if entry.tier == "summary")
    assert 0 < sizes["none"] < 0.9 * sizes["default"]


def test_a_low_mark_that_is_given_is_filled_whatever_the_tokens_are_worth():
    for prices, low, expected in (("none", None, True), ("none", 0.8, False), ("default", None, True)):
        budget = Budget(4_000) if low is None else Budget(4_000, low=low)
        with AgentMemory(InMemoryLog(), budget=budget, prices=prices) as memory:
            assert (memory._runtime.state.current_view().extract_worth > 0) == expected


def test_arguments_that_all_calls_of_a_tool_end_with_stand_at_the_newest_alone():
    alike = {"workdir": "/repo", "seconds": 10}
    calls = [act("run", {"cmd": f"pytest tests/test_{name}.py", **alike}) for name in ("red", "green", "blue", "grey")]
    memo = tracker_of(*calls, act("find", {"what": "a_thing", "seconds": 9}))
    lines = [line.text for line in select_lines(memo, 400, COUNTER, visible=()).lines]
    short = [f"run cmd=pytest tests/test_{name}.py" for name in ("red", "green", "blue")]
    assert lines == [
        *short,
        "run cmd=pytest tests/test_grey.py workdir=/repo seconds=10",
        "find what=a_thing seconds=9",
    ]
    # An extract in view has them so: they do not come back beside it.
    again = select_lines(memo, 400, COUNTER, visible=("\n".join(short),), reserves=False).lines
    assert not set(short) & {line.text.removesuffix(" workdir=/repo seconds=10") for line in again}
    other = tracker_of(*calls, act("run", {"cmd": "make", "workdir": "/other", "seconds": 10}))
    lines = [line.text for line in select_lines(other, 400, COUNTER, visible=()).lines]
    assert "run cmd=pytest tests/test_red.py workdir=/repo" in lines
    assert "run cmd=make workdir=/other seconds=10" in lines
