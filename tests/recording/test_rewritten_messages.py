"""A message of the user that each list words anew: a clock, or what is open in an editor, at the beginning of the list."""

import pytest

from pagein import AgentMemory, FormatError, NothingToUndo, TaskStep
from pagein.events.steps import as_text

TASK = "Fix the parser of dates. Never touch setup.cfg."


def clock(turn):
    return {"role": "user", "content": f"It is {turn} o'clock, and a{turn}.py is open.\n{TASK}"}


def work(turn):
    call = {"id": f"c{turn}", "type": "function", "function": {"name": "read", "arguments": f'{{"part":{turn}}}'}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{turn}", "content": f"Part {turn}. " + "One more line of it. " * 40},
    ]


def open_memory(path):
    return AgentMemory.open(path, session="run", budget=1_500)


def branches_of(memory):
    return [branch.name for branch in memory.branches()]


@pytest.mark.parametrize("reopened", [False, True], ids=["one process", "reopened"])
def test_a_first_message_that_changes_each_turn_is_one_branch_with_its_newest_words(tmp_path, reopened):
    path, rows = tmp_path / "run.db", []
    memory = open_memory(path)
    for turn in range(30):
        if reopened:
            memory.close()
            memory = open_memory(path)
        rows = [clock(turn), *rows[1:]]
        result = memory.record_messages(rows)
        assert len(memory.steps) == (len(rows) + 1) // 2
        assert memory.steps[0] == TaskStep(clock(turn)["content"])
        request = memory.to_messages()
        assert request[0]["content"].count(clock(turn)["content"]) == 1
        assert not turn or f"It is {turn - 1} o'clock" not in str(request)
        if turn > 1:
            assert result.branch is None
            assert result.repairs == ("the list has s0 in other words than before, and so has the view",)
        rows = [*rows, *work(turn)]
    assert branches_of(memory) == ["main", "branch-1"]
    assert memory.verify().ok
    memory.close()


def test_the_rules_are_those_of_the_newest_words(tmp_path):
    rules = ["Never touch setup.cfg.", "Never touch setup.cfg.", "Never rename a test.", "Never rename a test."]
    rows = []
    with open_memory(tmp_path / "run.db") as memory:
        for turn, rule in enumerate(rules):
            rows = [{"role": "user", "content": f"It is {turn} o'clock. {rule}"}, *rows[1:]]
            memory.record_messages(rows)
            rows = [*rows, *work(turn)]
        assert [text for statement in memory.ledger() if "Never" in (text := statement.text)] == [
            "Never rename a test."
        ]


def test_undo_takes_back_what_was_done_and_not_what_a_list_says(tmp_path):
    rows = []
    with open_memory(tmp_path / "run.db") as memory:
        for turn in range(4):
            rows = [clock(turn), *rows[1:]]
            memory.record_messages(rows)
            rows = [*rows, *work(turn)]
            if turn == 1:
                memory.edit("s1", "I looked.")
        assert str(memory.expand("s0")).startswith("It is 3 o'clock")
        assert memory.undo().policy == "edit"
        with pytest.raises(NothingToUndo):
            memory.undo()
        assert as_text(memory.steps[0].content).startswith("It is 3 o'clock")
        assert "It is 3 o'clock" in (shown := str(memory.to_messages()))
        assert "I looked." not in shown
        memory.switch("main")
        assert as_text(memory.steps[0].content).startswith("It is 0 o'clock")


def test_what_is_erased_is_in_none_of_the_words_that_a_list_had(tmp_path):
    rows = []
    with open_memory(tmp_path / "run.db") as memory:
        for turn in range(5):
            rows = [clock(turn), *rows[1:]]
            memory.record_messages(rows)
            memory.to_messages()
            rows = [*rows, *work(turn)]
        memory.erase("s0")
        assert "o'clock" not in str(memory.to_messages())
        assert "o'clock" not in str(memory.steps)


@pytest.mark.parametrize("whole", [None, True])
def test_a_new_wording_that_leaves_out_what_followed_is_a_branch(tmp_path, whole):
    rows = []
    with open_memory(tmp_path / "run.db") as memory:
        for turn in range(3):
            rows = [clock(turn), *rows[1:], *work(turn)]
            memory.record_messages(rows, whole=whole)
        result = memory.record_messages([clock(7), *work(0), *work(8)], whole=whole)
        assert result.branch == "branch-2"
        assert len(memory.steps) == 3
        with pytest.raises(FormatError, match="shares nothing"):
            memory.record_messages([clock(8), *work(9)], whole=True)


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}


def text(words):
    return {"type": "text", "text": words}


@pytest.mark.parametrize("reopened", [False, True], ids=["one process", "reopened"])
@pytest.mark.parametrize(
    "parts",
    [
        lambda turn: [text(TASK), text(f"It is {turn} o'clock, and a{turn}.py is open.")],
        lambda turn: [text(f"It is {turn} o'clock."), text(TASK)],
        lambda turn: [text(f"It is {turn} o'clock."), PICTURE],
        lambda turn: [text(TASK), *(text(f"a{number}.py is open.") for number in range(turn % 3 + 1)), PICTURE],
    ],
    ids=["behind", "before", "picture", "more blocks"],
)
def test_a_block_of_the_first_message_that_changes_each_turn_is_one_branch(tmp_path, parts, reopened):
    path, rows = tmp_path / "run.db", []
    memory = open_memory(path)
    for turn in range(12):
        if reopened:
            memory.close()
            memory = open_memory(path)
        rows = [{"role": "user", "content": parts(turn)}, *rows[1:]]
        memory.record_messages(rows)
        assert memory.to_messages()[0]["content"] == parts(turn)
        assert len(memory.steps) == (len(rows) + 1) // 2
        rows = [*rows, *work(turn)]
    assert branches_of(memory) == ["main", "branch-1"]
    memory.close()


def test_a_clock_in_the_system_prompt_too_is_one_branch(tmp_path):
    rows = []
    with open_memory(tmp_path / "run.db") as memory:
        for turn in range(8):
            rows = [clock(turn), *rows[1:]]
            memory.record_messages([{"role": "system", "content": f"You mend. It is {turn} o'clock."}, *rows])
            rows = [*rows, *work(turn)]
        assert branches_of(memory) == ["main", "branch-1"]


def test_words_around_each_newest_message_that_change_while_it_is_worked_on_are_two_branches(tmp_path):
    rows = [{"role": "user", "content": TASK}]
    with open_memory(tmp_path / "run.db") as memory:
        for turn in range(20):
            newest = max(at for at, row in enumerate(rows) if row["role"] == "user")
            words = f"value = {turn * 7}\n{rows[newest]['content']}\na{turn}.py is open."
            memory.record_messages([*rows[:newest], {"role": "user", "content": words}, *rows[newest + 1 :]])
            assert words in [as_text(step.content) for step in memory.steps]
            rows += work(turn)
            if turn % 4 == 3:
                rows += [
                    {"role": "assistant", "content": f"Done {turn}."},
                    {"role": "user", "content": f"Now do {turn}."},
                ]
        assert len(branches_of(memory)) <= 3


def test_a_task_behind_what_was_looked_up_for_each_turn_is_one_branch(tmp_path):
    rows = []
    with open_memory(tmp_path / "run.db") as memory:
        for turn in range(12):
            found = " ".join(f"{word}{turn}" for word in ("keel", "mast", "sail", "oar", "rope", "deck", "hull") * 4)
            memory.record_messages([{"role": "user", "content": f"{found}\n\n{TASK}"}, *rows])
            rows += work(turn)
        assert branches_of(memory) == ["main", "branch-1"]
        assert len(memory.steps) == 12
        assert found in memory.to_messages()[0]["content"]


@pytest.mark.parametrize(
    "notes", ["{} notes are kept.", "The boat lies at pier {}, which was built of stone in the year {}."]
)
def test_two_messages_that_change_each_turn_are_one_branch(tmp_path, notes):
    rows = []
    with open_memory(tmp_path / "run.db") as memory:
        for turn in range(12):
            opening = [clock(turn), {"role": "user", "content": notes.format(turn, turn * 7)}]
            memory.record_messages([*opening, *rows])
            assert [message["content"] for message in memory.to_messages()[:2]] == [row["content"] for row in opening]
            rows += work(turn)
        assert branches_of(memory) == ["main", "branch-1"]
        assert len(memory.steps) == 13


def test_a_branch_from_before_a_new_wording_has_the_newest_words(tmp_path):
    rows = []
    with open_memory(tmp_path / "run.db") as memory:
        for turn in range(6):
            rows = [clock(turn), *rows[1:]]
            memory.record_messages(rows)
            rows = [*rows, *work(turn)]
        edited = [clock(5), *rows[1:3], {"role": "user", "content": "Stop reading, and say what you know."}]
        assert memory.record_messages(edited).branch == "branch-2"
        words = [as_text(step.content) for step in memory.steps if isinstance(step, TaskStep)]
        assert words == [clock(5)["content"], edited[-1]["content"]]
        assert memory.to_messages()[0]["content"] == clock(5)["content"]


def test_words_that_a_list_has_again_after_a_restart_are_its_words(tmp_path):
    path, rows = tmp_path / "run.db", []
    for turn in range(10):
        with open_memory(path) as memory:
            rows = [clock(turn % 3), *rows[1:]]
            memory.record_messages(rows)
            assert clock(turn % 3)["content"] == memory.to_messages()[0]["content"]
        rows = [*rows, *work(turn)]


def test_facts_are_learned_from_the_newest_words_too(tmp_path):
    rows = []
    with AgentMemory.open(tmp_path / "run.db", session="run", budget=1_500, user="ana") as memory:
        for turn, city in enumerate(("Rome", "Rome", "Rome", "Lyon")):
            rows = [{"role": "user", "content": f"It is {turn} o'clock. I live in {city}."}, *rows[1:]]
            memory.record_messages(rows)
            rows = [*rows, *work(turn)]
        memory.record_messages(rows)
    with AgentMemory.open(tmp_path / "run.db", session="look", user="ana") as memory:
        assert "I live in Lyon" in [fact.content for fact in memory.facts.list()]


def test_a_new_wording_replaces_what_the_old_one_said_and_brings_nothing_back(tmp_path):
    """A client words its first message anew each turn: what the user changed behind it had come back as the newest."""
    rows = []
    with AgentMemory.open(tmp_path / "run.db", session="run", budget=1_500, user="ana") as memory:

        def play(turn, city):
            rows[:1] = [{"role": "user", "content": f"It is {turn} o'clock. I live in {city}."}]
            memory.record_messages(rows)
            rows.extend(work(turn))
            return [fact.content for fact in memory.facts.list()]

        assert play(0, "Rome") == play(1, "Rome") == ["I live in Rome"]
        assert play(2, "Lyon") == ["I live in Lyon"]
        assert play(3, "Rome") == ["I live in Rome"]
        changes = len(memory.facts.audit())
        rows.append({"role": "user", "content": "I moved to Oslo."})
        memory.record_messages(rows)
        rows.append({"role": "assistant", "content": "Nice."})
        assert play(4, "Rome") == play(5, "Rome") == ["I moved to Oslo"]
        assert len(memory.facts.audit()) == changes + 2, "said anew is said once"


def test_blocks_without_text_are_erased_from_the_words_that_a_list_had(tmp_path):
    work = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c0", "name": "build", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c0", "content": "ok"}]},
        {"role": "assistant", "content": "Done."},
    ]
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=4_000, format="anthropic") as memory:
        for words in ("keel0", "keel1", "keel2"):
            rows = [{"role": "user", "content": [{"type": "own_block", "data": words}]}, *work]
            assert memory.record_messages(rows).branch == ("branch-1" if words == "keel1" else None)
        assert "keel2" in str(memory.to_messages())
        memory.erase("s0")
        assert "keel2" not in str(memory.to_messages())
    assert b"keel2" not in path.read_bytes()
