"""Results and answers that a list has in other words than before: a job that ended meanwhile, an answer that was begun."""

import json
import re
from contextlib import closing

import pytest

from pagein import AgentMemory
from pagein.backends import SQLiteLog
from pagein.events.entries import Compaction
from pagein.events.steps import as_text

TASK = {"role": "user", "content": "Build all parts."}
RUNNING = "The job is running."


def calls(turn, count=1):
    made = [
        {
            "id": f"c{turn}-{at}",
            "type": "function",
            "function": {"name": "build", "arguments": f'{{"part":{turn + at}}}'},
        }
        for at in range(count)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(turn, words, at=0):
    return {"role": "tool", "tool_call_id": f"c{turn}-{at}", "content": words}


def built(turn, at=0):
    return f"Part {turn}-{at} was built by keel{turn}x{at}. " + "One more line of it. " * 20


def branches_of(memory):
    return [branch.name for branch in memory.branches()]


@pytest.mark.parametrize("reopened", [False, True], ids=["one process", "reopened"])
def test_a_result_that_comes_after_its_place_was_taken_is_shown_there(tmp_path, reopened):
    path, rows, handles = tmp_path / "run.db", [TASK], []
    memory = AgentMemory.open(path, budget=1_500)
    for turn in range(20):
        if reopened:
            memory.close()
            memory = AgentMemory.open(path, budget=1_500)
        if turn:
            rows[-1] = result(turn - 1, RUNNING)
        if turn > 1:
            rows[-3] = result(turn - 2, built(turn - 2))
        told = memory.record_messages(rows)
        if turn > 1:
            (handle,) = re.findall(r"^the list has (s\d+\.0) in other words", "\n".join(told.repairs))
            assert memory.steps[turn - 1].observations[0].content == built(turn - 2)
            assert f"keel{turn - 2}x0" in str(memory.to_messages())
            assert str(memory.expand(handle)) == built(turn - 2)
            handles.append(handle)
        rows += [calls(turn), result(turn, "")]
    assert branches_of(memory) == ["main"]
    assert [hit.handle for hit in memory.recall("keel3x0", limit=1)] == [handles[3]]
    assert memory.verify().ok
    memory.close()


@pytest.mark.parametrize("words", [("[running]", "[done]"), (RUNNING, "[3 files changed]")])
def test_a_short_result_in_brackets_is_what_the_tool_says_now(tmp_path, words):
    old, new = words
    with AgentMemory.open(tmp_path / "run.db", budget=4_000) as memory:
        rows = [TASK, calls(0), result(0, old), {"role": "assistant", "content": "I wait."}]
        memory.record_messages(rows)
        memory.record_messages([*rows[:2], result(0, new), rows[3], {"role": "user", "content": "And now?"}])
        request = str(memory.to_messages())
        assert new in request
        assert old not in request
        assert branches_of(memory) == ["main"]


def test_each_of_several_results_comes_to_its_own_call(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=4_000) as memory:
        waiting = [result(0, RUNNING, at) for at in range(3)]
        memory.record_messages([TASK, calls(0, 3), *waiting, calls(1), result(1, "ok")])
        came = [waiting[2], result(0, built(0), 0), waiting[1]]
        memory.record_messages([TASK, calls(0, 3), *came, calls(1), result(1, "ok")])
        assert [as_text(each.content) for each in memory.steps[1].observations] == [built(0), RUNNING, RUNNING]
        assert branches_of(memory) == ["main"]


def test_several_results_under_other_ids_are_a_branch(tmp_path):
    def renamed(rows):
        return json.loads(json.dumps(rows).replace("c0-", "toolu_0-"))

    with AgentMemory.open(tmp_path / "run.db", budget=4_000) as memory:
        before = [TASK, calls(0, 3), *(result(0, RUNNING, at) for at in range(3)), calls(1), result(1, "ok")]
        memory.record_messages(before)
        after = [*before[:2], result(0, built(0), 2), result(0, RUNNING, 1), result(0, built(2), 0), *before[5:]]
        assert memory.record_messages(renamed(after)).branch == "branch-1"


def test_a_result_in_other_words_without_an_answer_behind_it_is_a_branch(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=4_000) as memory:
        memory.record_messages([TASK, calls(0), result(0, "No such part.")])
        assert memory.record_messages([TASK, calls(0), result(0, built(0))]).branch == "branch-1"


def test_a_new_result_of_a_step_that_left_the_view_is_a_branch(tmp_path):
    rows = [TASK, calls(0), result(0, RUNNING)]
    with AgentMemory.open(tmp_path / "run.db", budget=900) as memory:
        for turn in range(1, 20):
            rows += [calls(turn), result(turn, built(turn))]
            memory.record_messages(rows)
            memory.to_messages()
        assert RUNNING not in str(memory.to_messages())
        told = memory.record_messages([*rows[:2], result(0, "It was built by the oarsman."), *rows[3:]])
        assert told.branch == "branch-1"


def test_what_a_client_adds_to_its_newest_result_leaves_the_view_with_the_next_list(tmp_path):
    rows = [TASK]
    with AgentMemory.open(tmp_path / "run.db", budget=6_000) as memory:
        for turn in range(10):
            notes = f"\n<notes>file{turn}.py is open, {turn * 7} lines were changed</notes>"
            shown = [*rows[:-1], {**rows[-1], "content": rows[-1]["content"] + notes}]
            memory.record_messages(shown)
            assert str(memory.to_messages()).count("<notes>") == 1
            rows += [calls(turn), result(turn, built(turn))]
        assert branches_of(memory) == ["main"]


def test_notes_beside_results_in_text_leave_the_view_and_make_no_facts(tmp_path):
    rows = [[{"type": "text", "text": TASK["content"]}]]
    path = tmp_path / "run.db"
    with AgentMemory.open(path, session="run", user="ana", budget=6_000) as memory:
        for turn in range(8):
            notes = {"type": "text", "text": f"<notes>It is {turn} o'clock. I live in Oslo{turn}.</notes>"}
            shown = [*rows[:-1], [*rows[-1], notes]]
            memory.record_messages(
                [{"role": ("user", "assistant")[at % 2], "content": content} for at, content in enumerate(shown)]
            )
            assert str(memory.to_messages()).count("<notes>") == 1
            rows.append(f"I read it.\n<read_file><path>a{turn}.py</path></read_file>")
            rows.append([{"type": "text", "text": f"[read_file for 'a{turn}.py'] Result:\n\nI live in Bergen{turn}."}])
        assert branches_of(memory) == ["main"]
        memory.wait()
        assert "Bergen" not in str([fact.content for fact in memory.facts.list()])


def test_an_erased_result_is_in_none_of_the_words_that_a_list_had(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=4_000) as memory:
        for words in (RUNNING, "half of keel", "all of keel"):
            memory.record_messages([TASK, calls(0), result(0, words), calls(1), result(1, "ok")])
        memory.recall("keel")
        memory.erase("s1.0")
        assert "keel" not in str(memory.steps) + str(memory.to_messages()) + str(memory.recall("keel"))
    assert b"of keel" not in path.read_bytes()


THOUGHTS = ["<think>I see {}.</think>", "<thinking>\nI see {}.\n</thinking>\n\n", "I see {}.\n</think>\n\n"]


@pytest.mark.parametrize("thought", [*THOUGHTS, '<details type="reasoning" done="true">\nI see {}.\n</details>\n'])
def test_reasoning_that_a_client_takes_out_of_older_answers_is_no_edit(tmp_path, thought):
    rows = [TASK]
    with AgentMemory.open(tmp_path / "run.db", budget=4_000) as memory:
        for turn in range(8):
            answer = f"Part {turn} is built."
            memory.record_messages([*rows, {"role": "assistant", "content": thought.format(turn) + answer}])
            rows += [{"role": "assistant", "content": answer}, {"role": "user", "content": f"Now part {turn + 1}."}]
            memory.record_messages(rows)
        assert branches_of(memory) == ["main"]
        assert len(memory.steps) == len(rows)


@pytest.mark.parametrize("begun", ["Sure:", "{", "Here is the plan of the boat, with"])
@pytest.mark.parametrize("apart", [False, True], ids=["one list", "the rest by itself"])
def test_an_answer_that_the_host_began_goes_on_behind_that(tmp_path, begun, apart):
    rows = [TASK]
    with AgentMemory.open(tmp_path / "run.db", budget=4_000) as memory:
        for turn in range(6):
            rest = f' "keel": {turn}, "mast": {turn * 7}, "sails": "three, as before"}}'
            memory.record_messages([*rows, {"role": "assistant", "content": begun}])
            if apart:
                memory.record_messages({"role": "assistant", "content": rest}, whole=False)
            rows += [{"role": "assistant", "content": begun + rest}, {"role": "user", "content": f"Now part {turn}."}]
            memory.record_messages(rows)
            assert rest.strip() in str(memory.to_messages())
        assert branches_of(memory) == ["main"]
        said = "".join(as_text(step.content) for step in memory.steps)
        assert said.count(begun.strip()) == 6


def test_the_entry_of_a_result_in_other_words_covers_its_step_alone(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=4_000) as memory:
        rows = [TASK, calls(0), result(0, RUNNING), calls(1), result(1, "ok")]
        memory.record_messages(rows)
        memory.record_messages([*rows[:2], result(0, built(0)), *rows[3:]])
    with closing(SQLiteLog(path)) as log:
        (rewritten,) = (entry.body for entry in log.read() if isinstance(entry.body, Compaction))
    assert (rewritten.first, rewritten.last) == (1, 2)


def test_a_picture_that_a_list_has_in_the_place_of_another_is_shown(tmp_path):
    def pictured(name):
        source = {"type": "url", "url": f"https://example.org/{name}.png"}
        shown = [{"type": "tool_result", "tool_use_id": "c0", "content": [{"type": "image", "source": source}]}]
        call = {"role": "assistant", "content": [{"type": "tool_use", "id": "c0", "name": "look", "input": {}}]}
        return [TASK, call, {"role": "user", "content": shown}, {"role": "assistant", "content": "I see."}]

    with AgentMemory.open(tmp_path / "run.db", budget=20_000, format="anthropic") as memory:
        for name in ("before", "meanwhile", "now"):
            memory.record_messages(pictured(name))
            assert re.findall(r"example.org/(\w+).png", str(memory.to_messages())) == [name]
        assert branches_of(memory) == ["main"]


def test_results_that_came_alike_are_no_mark_of_cleared_ones():
    rows = [TASK, calls(0, 2), result(0, RUNNING), result(0, RUNNING, 1), {"role": "assistant", "content": "I wait."}]
    with AgentMemory.open(":memory:", budget=4_000) as memory:
        memory.record_messages(rows)
        rows[2:4] = [result(0, "done"), result(0, "done", 1)]
        memory.record_messages([*rows, {"role": "user", "content": "And now?"}])
        assert [observation.content for observation in memory.steps[1].observations] == ["done", "done"]
        assert RUNNING not in str(memory.to_messages())
        assert branches_of(memory) == ["main"]
