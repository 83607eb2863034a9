"""The salience tracker learns the identifiers and lines of any run in bounded memory."""

import json

from pagein import ActionStep, Observation, TaskStep, ToolCall
from pagein.context.salience.lines import LINE_MAX_CHARS, strip_line_number
from pagein.context.salience.tracker import MAX_OLD_ACTIONS, POOL_SIZE, SalienceTracker


def track(*texts, source=TaskStep):
    memo = SalienceTracker()
    for position, text in enumerate(texts):
        memo.learn_step(position, source(text))
    return memo


def test_a_long_line_is_learnt_in_pieces_that_together_are_the_line():
    line = json.dumps([{"reservation_id": f"ZX{number:04}", "total_price": number} for number in range(60)])
    memo = track(line)
    assert all(len(piece.text) <= LINE_MAX_CHARS for piece in memo.lines.values())
    assert {"reservation_id", "total_price"} <= memo.names.keys()
    assert sum(len(piece.text) for piece in memo.lines.values()) > len(line) * 0.9


def test_a_line_without_any_mark_is_cut_by_length():
    memo = track("x" * 5 * LINE_MAX_CHARS)
    assert all(len(piece.text) == LINE_MAX_CHARS for piece in memo.lines.values())


def test_the_same_line_behind_a_number_is_the_same_line():
    assert strip_line_number("  12: return total_price") == strip_line_number("return total_price")
    memo = track("return total_price", "12\treturn total_price")
    assert len(memo.lines) == 1


def test_what_is_kept_in_mind_is_bounded_and_the_likelier_half_stays():
    memo = SalienceTracker()
    memo.learn_step(0, ActionStep("", (ToolCall("a", "sh", '{"command": "open wanted_name.py"}'),)))
    for turn in range(1, 40):
        memo.learn_step(turn, ActionStep("", (ToolCall("a", "sh", "{}"),)))
        memo.learn_observation(turn, Observation("a", "\n".join(f"noise_{turn}_{n} here" for n in range(60))))
    assert len(memo.names) <= 2 * POOL_SIZE
    assert len(memo.lines) <= 2 * POOL_SIZE
    assert "wanted_name.py" in memo.names


def test_what_was_done_stays_in_mind_when_what_was_seen_leaves():
    memo = SalienceTracker()
    for turn in range(MAX_OLD_ACTIONS + 50):
        memo.learn_step(turn, ActionStep("", (ToolCall("a", "sh", json.dumps({"command": f"probe file_{turn}.c"})),)))
        memo.learn_observation(turn, Observation("a", f"noise {turn} here\nother noise {turn}\nmore {turn}"))
    positions = sorted(line.position for line in (*memo.lines.values(), *memo.old_actions.values()) if line.is_action)
    assert positions[-MAX_OLD_ACTIONS:] == list(range(50, MAX_OLD_ACTIONS + 50))
    assert len(memo.lines) <= 2 * POOL_SIZE
    assert len(memo.old_actions) <= MAX_OLD_ACTIONS
    assert SalienceTracker.from_state(json.loads(json.dumps(memo.to_state()))).to_state() == memo.to_state()


def test_what_is_done_again_is_back_among_the_lines():
    memo = SalienceTracker()
    for turn in (*range(MAX_OLD_ACTIONS), 0):
        memo.learn_step(turn, ActionStep("", (ToolCall("a", "sh", json.dumps({"command": f"probe f_{turn}.c"})),)))
    assert "probe f_0.c" in memo.lines
    assert "probe f_0.c" not in memo.old_actions
    assert memo.old_actions


def test_what_the_agent_wrote_itself_is_likelier_needed_than_what_it_only_saw():
    memo = SalienceTracker()
    call = ToolCall("a", "sh", '{"command": "cat written_by_agent.py"}')
    memo.learn_step(0, ActionStep("I look.", (call,), (Observation("a", "seen_in_output.py is here"),)))
    assert memo.name_chance("written_by_agent.py") > memo.name_chance("seen_in_output.py")


def test_a_line_of_a_script_is_likelier_written_again_than_one_by_itself():
    memo = SalienceTracker()
    script = "\n".join(f"    result_{number} = compute(value_{number})" for number in range(40))
    for position, text in enumerate((script, "    result_99 = compute(value_99)")):
        memo.learn_step(position, ActionStep("", (ToolCall("a", "sh", json.dumps({"command": f"python\n{text}"})),)))
    memo.learn_step(2, ActionStep("", (ToolCall("a", "sh", '{"command": "ls"}'),)))
    of_script, alone = (memo.lines[f"result_{number} = compute(value_{number})"] for number in (39, 99))
    assert of_script.use.last < alone.use.last
    assert memo.quote_chance(of_script) > memo.quote_chance(alone)


def test_chances_fall_as_time_goes_by():
    memo = track("the wanted_name stands here")
    now = memo.name_chance("wanted_name")
    for turn in range(1, 9):
        memo.learn_step(turn, ActionStep("go on"))
    assert memo.name_chance("wanted_name") < now


def test_the_files_that_a_run_read_are_in_its_state_until_they_are_forgotten():
    tracker = SalienceTracker()
    tracker.learn_step(3, ActionStep("", (ToolCall("c", "shell", '{"cmd": "cat src/a.py"}'),)))
    state = json.loads(json.dumps(tracker.to_state()))
    restored = SalienceTracker.from_state(state)
    assert restored.files.find("a.py") == "src/a.py"
    assert restored.files.positions("src/a.py") == (3,)
    restored.forget(3, 4)
    assert not restored.files.find("a.py")
