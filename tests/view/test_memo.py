"""What a run uses is learnt from what was recorded, in bounded memory, whatever its shape."""

import json

from pagein import ActionStep, Observation, TaskStep, ToolCall
from pagein.context.salience.lines import LINE, bare
from pagein.context.salience.tracker import DEEDS, POOL, Memo


def learnt(*texts, source=TaskStep):
    memo = Memo()
    for position, text in enumerate(texts):
        memo.learn_step(position, source(text))
    return memo


def test_a_long_line_is_learnt_in_pieces_that_together_are_the_line():
    line = json.dumps([{"reservation_id": f"ZX{number:04}", "total_price": number} for number in range(60)])
    memo = learnt(line)
    assert all(len(each.text) <= LINE for each in memo.lines.values())
    assert {"reservation_id", "total_price"} <= memo.names.keys()
    assert sum(len(each.text) for each in memo.lines.values()) > len(line) * 0.9


def test_a_line_without_any_mark_is_cut_by_length():
    memo = learnt("x" * 5 * LINE)
    assert all(len(each.text) == LINE for each in memo.lines.values())


def test_the_same_line_behind_a_number_is_the_same_line():
    assert bare("  12: return total_price") == bare("return total_price")
    memo = learnt("return total_price", "12\treturn total_price")
    assert len(memo.lines) == 1


def test_what_is_kept_in_mind_is_bounded_and_the_likelier_half_stays():
    memo = Memo()
    memo.learn_step(0, ActionStep("", (ToolCall("a", "sh", '{"command": "open wanted_name.py"}'),)))
    for turn in range(1, 40):
        memo.learn_step(turn, ActionStep("", (ToolCall("a", "sh", "{}"),)))
        memo.learn_observation(
            turn, 0, Observation("a", "\n".join(f"noise_{turn}_{n} here" for n in range(60)))
        )
    assert len(memo.names) <= 2 * POOL
    assert len(memo.lines) <= 2 * POOL
    assert "wanted_name.py" in memo.names


def test_what_was_done_stays_in_mind_when_what_was_seen_leaves():
    memo = Memo()
    for turn in range(DEEDS + 50):
        memo.learn_step(
            turn, ActionStep("", (ToolCall("a", "sh", json.dumps({"command": f"probe file_{turn}.c"})),))
        )
        memo.learn_observation(
            turn, 0, Observation("a", f"noise {turn} here\nother noise {turn}\nmore {turn}")
        )
    done = sorted(each.position for each in (*memo.lines.values(), *memo.deeds.values()) if each.leads)
    assert done[-DEEDS:] == list(range(50, DEEDS + 50))
    assert len(memo.lines) <= 2 * POOL
    assert len(memo.deeds) <= DEEDS
    assert Memo.of(json.loads(json.dumps(memo.kept()))).kept() == memo.kept()


def test_what_is_done_again_is_back_among_the_lines():
    memo = Memo()
    for turn in (*range(DEEDS), 0):
        memo.learn_step(
            turn, ActionStep("", (ToolCall("a", "sh", json.dumps({"command": f"probe f_{turn}.c"})),))
        )
    assert "probe f_0.c" in memo.lines
    assert "probe f_0.c" not in memo.deeds
    assert memo.deeds


def test_what_the_agent_wrote_itself_is_likelier_needed_than_what_it_only_saw():
    memo = Memo()
    call = ToolCall("a", "sh", '{"command": "cat written_by_agent.py"}')
    memo.learn_step(0, ActionStep("I look.", (call,), (Observation("a", "seen_in_output.py is here"),)))
    assert memo.name_chance("written_by_agent.py") > memo.name_chance("seen_in_output.py")


def test_chances_fall_as_time_goes_by():
    memo = learnt("the wanted_name stands here")
    now = memo.name_chance("wanted_name")
    for turn in range(1, 9):
        memo.learn_step(turn, ActionStep("go on"))
    assert memo.name_chance("wanted_name") < now
