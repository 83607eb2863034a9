"""An extract says what was done so that a reader can act on it; the floor gives up no more than it must."""

import json

from pagein.backends.memory import InMemoryLog
from pagein.context.compaction.base import actions
from pagein.context.compaction.floor import floor
from pagein.context.salience.extract import NAMED, choose
from pagein.context.salience.tracker import Memo
from pagein.context.view.fold import preview
from pagein.events.identifiers import told_call
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall
from pagein.testing.promises import folded
from pagein.tokens import Budget
from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")


def test_a_call_is_told_with_its_name_and_keys():
    told = told_call("reserve", json.dumps({"order": "W12", "variant": 77, "note": "one\ntwo"}))
    assert told.text == "reserve order=W12 variant=77 note=one"
    assert (told.alone, told.rest) == ("", "two")
    assert told_call("run", '"ls"').text == "run ls"
    assert told_call("run", "{broken").text == "run {broken"
    assert told_call("run", "").text.strip() == "run"


def memo_of(*bodies):
    memo = Memo()
    for position, body in enumerate(bodies):
        memo.learn_step(position, body)
    return memo


def act(name, arguments, seen=""):
    return ActionStep(
        None, (ToolCall("c", name, json.dumps(arguments)),), (Observation("c", seen),) if seen else ()
    )


def test_a_call_of_several_arguments_is_one_line_of_an_extract():
    memo = memo_of(act("order", {"order": "W12345", "why": "late"}), act("inbox", {}))
    found = choose(memo, 200, COUNTER, visible=())
    assert "order order=W12345 why=late" in [each.text for each in found.lines]


def test_a_run_of_one_tool_does_not_name_it_and_a_run_of_two_does():
    one = memo_of(act("sh", {"command": "cat first_file.txt"}))
    two = memo_of(act("sh", {"command": "cat first_file.txt"}), act("find", {"what": "second_thing"}))
    assert [each.text for each in one.lines.values()] == ["cat first_file.txt"]
    assert [each.text for each in two.lines.values()] == ["cat first_file.txt", "find what=second_thing"]


def test_of_a_result_the_line_that_speaks_of_the_task_is_worth_most():
    noise = [f"The lantern of the harbour was painted again, number {n}." for n in range(10)]
    seen = "\n".join([*noise[:5], "Locker A7-1234 opens with 55555.", *noise[5:]])
    memo = memo_of(TaskStep("Open the lockers."), act("cat", {"path": "a.txt"}, seen))
    worth = {key: memo.told(line) for key, line in memo.lines.items()}
    assert max(worth, key=worth.get) == "Locker A7-1234 opens with 55555."


def test_a_decision_of_the_model_has_its_share_and_one_in_a_result_has_not():
    words = "I decided to keep the old parser."
    noise = [act("sh", {"c": f"cat file_{n}.py"}, f"He decided on item_{n}.") for n in range(60)]
    memo = memo_of(TaskStep("Mend it."), ActionStep(words), *noise)
    kept = choose(memo, 200, COUNTER, visible=()).lines
    assert words in [each.text for each in kept]
    assert not any(memo.lines[key].decides for key in memo.lines if key.startswith("He"))


def test_names_by_themselves_leave_room_for_lines():
    seen = "\n".join(f"name_{n}_of_many other_{n}_thing" for n in range(200))
    found = choose(memo_of(act("ls", {"path": "src"}, seen)), 400, COUNTER, visible=())
    assert found.lines
    assert sum(COUNTER.text(each) + 2 for each in found.names) <= 400 * NAMED


def test_the_floor_takes_the_oldest_turns_only_as_many_as_it_must():
    run = [TaskStep("Go."), *(act("sh", {"command": f"run {n}"}, f"output {n} " * 40) for n in range(20))]
    whole = folded(InMemoryLog().append(run, after=0, at=0.0), COUNTER).view(10**6)
    view = folded(InMemoryLog().append(run, after=0, at=0.0), COUNTER).view(whole.tokens // 2)
    after = preview(view, floor(view, Budget(view.limit)).replacements)
    assert view.limit * 0.7 < after.tokens <= view.limit
    kept = [each.first for each in actions(after)]
    assert kept == [each.first for each in actions(view)][-len(kept) :]
    assert len(kept) >= 7


def test_a_long_run_still_tells_what_was_done_at_its_start():
    many = 900
    noise = "\n".join(f"lantern of harbour {n}" for n in range(8))
    memo = memo_of(*(act("probe", {"file": f"core/f_{n}.c"}, noise) for n in range(many)))
    told = {each.text for each in choose(memo, 60_000, COUNTER, visible=()).lines}
    assert {f"core/f_{n}.c" for n in range(many)} <= told
