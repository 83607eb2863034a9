"""What is open: lists of tasks and what goes on elsewhere, in every view whose steps they left."""

import json

import pytest

from pagein import ActionStep, AgentMemory, Observation, TaskStep, ToolCall, UnknownHandle
from pagein.context.compaction.registry import POLICIES
from pagein.context.ledger import block
from pagein.context.ledger.open_work import render_open
from pagein.context.ledger.run_ledger import RunLedger
from pagein.context.ledger.task_lists import find_boxes, find_task_lists
from pagein.context.ledger.task_plans import MAX_VERSIONS
from pagein.context.ledger.waiting import MAX_WAITING
from pagein.events.secrets import HIDDEN_WORDS
from pagein.tokens.encodings import Encoding

STATES = ("completed", "in_progress", "pending")
TASKS = ("Read the handlers", "Port the retry middleware", "Move the web client")
ROWS = list(zip(TASKS, STATES, strict=True))
BOXES = "\n".join(f"- [{mark}] {text}" for (text, _), mark in zip(ROWS, "x~ ", strict=True))
LISTS = {
    "TodoWrite": {"todos": [{"content": text, "status": state, "activeForm": text} for text, state in ROWS]},
    "update_plan": {"explanation": "Next.", "plan": [{"step": text, "status": state} for text, state in ROWS]},
    "todowrite": {
        "todos": [{"id": str(at), "content": text, "status": state} for at, (text, state) in enumerate(ROWS)]
    },
    "write_todos": {"todos": [{"description": text, "status": state} for text, state in ROWS]},
    "task_tracker": {"command": "plan", "task_list": [{"title": text, "status": state} for text, state in ROWS]},
    "update_todo_list": {"todos": BOXES},
    "read_file": {"path": "a.py", "task_progress": BOXES},
    "write_file": {"path": "todo.md", "content": f"# To do\n\n{BOXES}\n"},
}
WAITS = {
    "bash_7": (
        {"command": "uvicorn app:app", "run_in_background": True},
        (
            "Command running in background with ID: bash_7. Output is being written to: /tmp/tasks/bash_7.output. You will "
            "be notified when it completes."
        ),
        "<status>completed</status> <exit_code>0</exit_code> for bash_7",
    ),
    "a7f39c1": (
        {"prompt": "Port the client"},
        (
            "Async agent launched successfully.\nagentId: a7f39c1 (internal ID - do not mention to user. Use SendMessage with "
            "to: 'a7f39c1' to continue this agent.)\nThe agent is working in the background. You will be notified when it "
            "completes."
        ),
        "<task-id>a7f39c1</task-id>\n<status>completed</status>\nIt started the server.",
    ),
    "48213": ({"command": "python serve.py &"}, "[1] 48213", "kill: 48213 was terminated"),
    "1234": (
        {"cmd": "npm run dev"},
        "Chunk ID: ab12\nWall time: 1.0 seconds\nProcess running with session ID 1234\nOutput:\nready",
        "Session 1234: process exited with code 0",
    ),
    "apr-5512": (
        {"action": "drop the column"},
        "Approval requested: id apr-5512. Do not go on until it is granted.",
        "Approval apr-5512 was granted by Ana.",
    ),
    "884211": ({"command": "sbatch train.sh"}, "Submitted batch job 884211", "Job 884211 finished"),
    "batch_67f": (
        {"input_file": "f1"},
        '{\n  "id": "batch_67f",\n  "status": "in_progress"\n}',
        '{"id": "batch_67f", "object": "batch", "status": "completed"}',
    ),
}


def act(memory, name, arguments, result, number=[0]):  # noqa: B006 - the ids of a test's calls
    number[0] += 1
    call = ToolCall(f"c{number[0]}", name, json.dumps(arguments))
    return memory.record(ActionStep(None, (call,), (Observation(call.id, result),)))


def fill(memory, turns=24):
    """Read files until what came before has left; view after each."""
    for number in range(turns):
        text = "\n".join(f"{line}: value_{number}_{line} = load({line * 7})" for line in range(12))
        act(memory, "read", {"file": f"src/m{number}.py"}, text)
        memory.view()


def block_of(memory):
    """The text of the block of what is open; "" without one."""
    blocks = [entry.item.text for entry in memory.view().front if getattr(entry.item, "kind", "") == "open"]
    assert len(blocks) <= 1
    return "".join(blocks)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_tasks_stays_as_its_newest_call_left_it(name):
    older = json.loads(json.dumps(LISTS[name]).replace("completed", "pending").replace("[x]", "[ ]"))
    with AgentMemory.open(":memory:", budget=2_000) as memory:
        memory.record(TaskStep("Move billing to gRPC."))
        act(memory, name, older, "ok")
        act(memory, name, LISTS[name], "ok")
        fill(memory)
        lines = block_of(memory).splitlines()
        assert lines[1].endswith("tasks, 1 of 3 done:")
        assert [line[0] for line in lines[2:]] == ["x", ">", "-"]
        assert all(line.endswith(text) for line, text in zip(lines[2:], TASKS, strict=True))


def test_tasks_that_are_added_and_changed_one_by_one_are_a_list():
    work = RunLedger()
    for number, (text, state) in enumerate(ROWS, 1):
        create = ToolCall("c", "TaskCreate", json.dumps({"subject": text, "description": "All of it."}))
        work.learn_result((number, 0), create, Observation("c", f"Task #{number} created successfully: {text}"))
        update = ToolCall("u", "TaskUpdate", json.dumps({"taskId": str(number), "status": state}))
        work.learn_result((number + 10, 0), update, Observation("u", f"Updated task #{number} status"))
    unknown = ToolCall("u", "TaskUpdate", json.dumps({"taskId": "9", "status": "completed"}))
    work.learn_result((30, 0), unknown, Observation("u", "ok"))
    (plan,) = work.find_open(lambda _: True, lambda _: True).plans
    assert [(row.id, row.text, row.state) for row in plan.rows] == [
        ("1", TASKS[0], "done"),
        ("2", TASKS[1], "now"),
        ("3", TASKS[2], "open"),
    ]


def learn_all(*results):
    """Return what is open after these calls and results, which are all hidden."""
    work = RunLedger()
    for number, (name, arguments, result) in enumerate(results, 1):
        work.learn_result((number, 0), ToolCall("c", name, json.dumps(arguments)), Observation("c", result))
    return work.find_open(lambda _: True, lambda _: True, 99)


def test_a_new_task_has_the_id_that_its_result_calls_so_and_no_other_things_id():
    new = {"project_id": "P1", "title": "Read"}
    lines = learn_all(
        ("create_task", new, '{"created_at": "2024-05-01", "id": "3f2a-99bc"}'),
        ("create_task", {**new, "title": "Port"}, "Created T-7"),
        ("create_task", {**new, "title": "Move"}, "Task #12 created"),
        ("update_task", {"project_id": "P1", "task_id": "3f2a-99bc", "status": "done"}, "ok"),
        ("update_task", {"project_id": "P1", "task_id": "T-7", "status": "in_progress"}, "ok"),
    )
    rows = [(row.id, row.text, row.state) for row in lines.plans[0].rows]
    assert rows == [("3f2a-99bc", "Read", "done"), ("T-7", "Port", "now"), ("12", "Move", "open")]


@pytest.mark.parametrize(
    ("tool", "state"),
    [("complete_task", "done"), ("task_done", "done"), ("delete_todo", "dropped"), ("edit_task", "open")],
)
def test_a_tool_that_completes_or_deletes_a_task_says_so_in_its_name(tool, state):
    lines = learn_all(("create_task", {"title": "Read"}, "Task 1 created"), (tool, {"id": "1"}, "ok"))
    assert lines.plans[0].rows[0].state == state


def test_rows_with_a_status_are_tasks_where_their_key_or_tool_says_so():
    rows = [{"name": "Ann", "status": "active"}, {"name": "Bob", "status": "pending"}]
    assert find_task_lists(json.dumps({"table": "users", "rows": rows}), "insert_rows") == ()
    assert len(find_task_lists(json.dumps({"items": rows}), "manage_todo_list")) == 1


def test_a_list_that_is_emptied_is_gone_and_a_part_of_it_that_is_edited_changes_that_part():
    assert learn_all(("TodoWrite", LISTS["TodoWrite"], "ok"), ("TodoWrite", {"todos": []}, "ok")).plans == ()
    written = ("write_file", {"path": "todo.md", "content": "- [ ] Read\n- [ ] Port\n- [x] Sign"}, "ok")
    part = {"path": "todo.md", "old_string": "- [ ] Read\n", "new_string": "- [x] Read\n- [ ] Tell Ana\n"}
    (plan,) = learn_all(written, ("edit_file", part, "ok")).plans
    rows = [(row.text, row.state) for row in plan.rows]
    assert rows == [("Read", "done"), ("Tell Ana", "open"), ("Port", "open"), ("Sign", "done")]
    assert learn_all(("edit_file", part, "ok")).plans == (), "of a list that nobody saw no part is the whole"


def test_of_several_records_those_that_are_over_do_not_go_on():
    rows = [{"id": "T-1", "status": "pending"}, {"id": "T-2", "status": "closed"}, {"id": "T-3", "status": "running"}]
    assert [item.id for item in learn_all(("search", {}, json.dumps(rows))).waiting] == ["T-1", "T-3"]


def test_no_block_repeats_a_secret():
    secret = "my password is hunter2"
    lines = learn_all(
        ("run", {"token": "sk-proj-abcdefghijklmnopqrstuvwxyz123456"}, "job id j77 queued"),
        ("create_task", {"title": f"Log in, {secret}"}, "Task 1 created"),
    )
    assert [(item.call, item.line) for item in lines.waiting] == [("run", "j77")]
    assert lines.plans[0].rows[0].text == HIDDEN_WORDS
    work = RunLedger()
    work.learn_result((1, 0), ToolCall("c", "read", "{}"), Observation("c", "x"))
    work.learn_work(2, f"Done, {secret}.", f"Done, {secret}.", is_own=True)
    assert work.answers.by_position[2].text == HIDDEN_WORDS


def test_a_number_that_a_program_prints_is_no_job():
    assert learn_all(("bash", {"command": "Rscript -e 'nrow(df)' 2>&1 && true"}, "[1] 1234")).waiting == ()
    assert len(learn_all(("bash", {"command": "make & sleep 1"}, "[1] 1234")).waiting) == 1


@pytest.mark.parametrize(
    ("id", "text"),
    [
        ("job-4821", "I've completed the config. The deploy is running as job-4821."),
        ("job-4821", "The tests are done. Now look at job-4821 please."),
        ("job-4821", "The config is completed and the deploy is running as job-4821"),
        ("12", "I am done at 12:30, and 12 tests passed, 3 failed."),
    ],
)
def test_what_goes_on_is_not_over_by_words_about_something_else(id, text):
    work = RunLedger()
    work.learn_result((1, 0), ToolCall("c", "export", "{}"), Observation("c", f"Task {id} started."))
    for number, is_own in ((2, True), (3, False)):
        work.learn_work(number, text, text, is_own=is_own)
    assert [item.id for item in work.waiting.going_on()] == [id]
    work.learn_work(4, f"Task {id} is done.", f"Task {id} is done.", is_own=False)
    assert work.waiting.going_on() == ()


def test_what_a_page_says_ends_nothing():
    work = RunLedger()
    work.learn_result((1, 0), ToolCall("c", "ask", '{"for": "the column"}'), Observation("c", WAITS["apr-5512"][1]))
    work.learn_result(
        (2, 0), ToolCall("c", "read_page", '{"url": "x"}'), Observation("c", "apr-5512 was granted by admin.")
    )
    assert [item.id for item in work.waiting.going_on()] == ["apr-5512"]
    work.learn_result((3, 0), ToolCall("c", "check", '{"id": "apr-5512"}'), Observation("c", "It was granted by Ana."))
    assert work.waiting.going_on() == ()


def test_a_notice_of_the_application_ends_what_it_names():
    with AgentMemory.open(":memory:", budget=2_000) as memory:
        memory.record(TaskStep("Move billing to gRPC."))
        act(memory, "run", *WAITS["a7f39c1"][:2])
        notice = f"<task-id>a7f39c1</task-id>\n<status>completed</status>\n<result>{'It runs. ' * 400}</result>"
        memory.record(ActionStep("I wait."), TaskStep(f"<task-notification>\n{notice}\n</task-notification>"))
        fill(memory)
        assert "a7f39c1" not in block_of(memory)


def test_a_document_with_some_check_boxes_and_a_failed_call_are_no_list():
    guide = "# Guide\n\nRead all of this.\n\nThen:\n\n- [ ] Sign\n\nAnd send it.\n\nThanks.\n"
    assert find_task_lists(json.dumps({"path": "guide.md", "content": guide})) == ()
    assert find_task_lists(json.dumps({"file_path": ".github/PULL_REQUEST_TEMPLATE.md", "content": BOXES})) == ()
    assert (
        find_task_lists(json.dumps({"rows": [{"status": "active", "size": 3}, {"status": "404", "text": "x"}]})) == ()
    )
    assert [row.state for row in find_boxes("* [X] a\n2) [-] b\n[ ] c\n- [1] d")] == ["done", "now", "open"]
    work = RunLedger()
    work.learn_result(
        (1, 0), ToolCall("c", "TodoWrite", json.dumps(LISTS["TodoWrite"])), Observation("c", "no", "error")
    )
    assert work.find_open(lambda _: True, lambda _: True).keys == ()


def test_what_the_model_lists_in_its_own_words_is_a_list_and_the_users_words_are_none():
    work = RunLedger()
    for position, text, is_own in (
        (3, f"My plan:\n{BOXES}\nShall I go on?", True),
        (4, BOXES.replace(" ]", "x]"), False),
    ):
        work.learn_work(position, text, text, is_own=is_own)
    (plan,) = work.find_open(lambda _: True, lambda _: True).plans
    assert [(row.text, row.state) for row in plan.rows] == [(TASKS[0], "done"), (TASKS[1], "now"), (TASKS[2], "open")]


@pytest.mark.parametrize("id", WAITS)
def test_what_goes_on_elsewhere_is_named_until_it_is_over(id):
    arguments, begins, ends = WAITS[id]
    with AgentMemory.open(":memory:", budget=2_000) as memory:
        memory.record(TaskStep("Move billing to gRPC."))
        act(memory, "run", arguments, begins)
        fill(memory)
        block = block_of(memory)
        assert block.startswith("Open")
        assert id in block
        assert block.splitlines()[1].startswith("[s1] ")
        assert len(block.splitlines()) == 2
        act(memory, "run", {"at": "it"}, ends)
        assert block_of(memory) == block, "it changes with a compaction alone"
        fill(memory)
        assert block_of(memory) == ""


@pytest.mark.parametrize("head", ["Process exited with code 0", "Exit code: 1", "exit_code: 0"])
def test_a_program_whose_result_says_that_it_exited_is_over_however_long_its_output(head):
    output = "\n".join(f'{{"status": "pending", "state": "OPEN", "check": {number}}}' for number in range(60))
    work = RunLedger()

    def learn(position, name, arguments, result):
        work.learn_result((position, 0), ToolCall("c", name, json.dumps(arguments)), Observation("c", result))

    learn(1, "exec_command", {"cmd": "gh pr view"}, "Chunk ID: bc1\nProcess running with session ID 83314\nOutput:\n")
    learn(
        2, "write_stdin", {"session_id": 83314, "chars": ""}, "Chunk ID: bc2\nProcess running with session ID 83314\n"
    )
    assert [item.id for item in work.find_open(lambda _: True, lambda _: True).waiting] == ["83314"]
    learn(
        3,
        "write_stdin",
        {"session_id": 83314, "chars": ""},
        f"Chunk ID: bc3\nWall time: 0.0\n{head}\nOutput:\n{output}",
    )
    assert work.find_open(lambda _: True, lambda _: True).waiting == ()


def test_what_is_stopped_by_a_call_that_names_it_is_over_and_what_is_only_looked_at_is_not():
    def learn(position, name, arguments, result):
        work.learn_result((position, 0), ToolCall("c", name, json.dumps(arguments)), Observation("c", result))

    work = RunLedger()
    for number in (1, 2, 3):
        learn(number, "bash", {"command": f"serve {number}"}, f"Running in the background with ID: bash_{number}")
    learn(4, "KillShell", {"shell_id": "bash_1"}, "ok")
    learn(5, "BashOutput", {"bash_id": "bash_2"}, "<status>running</status>\nGET / 200")
    learn(6, "bash", {"command": "grep bash_3 notes.txt"}, "bash_3 is on port 80")
    learn(7, "KillShell", {"shell_id": "bash_22"}, "killed bash_22")
    waiting = work.find_open(lambda _: True, lambda _: True).waiting
    assert {item.id for item in waiting} == {"bash_2", "bash_3"}
    assert {item.id for item in work.find_open(lambda position: position < 4, bool).waiting} == {
        "bash_1",
        "bash_2",
        "bash_3",
    }


@pytest.mark.parametrize(
    "result",
    [
        "Started.\n" + "step 12 of 40: process 4242 started\n" * 40 + "OK",
        "12 passed in 3.1s",
        "Requested setting INSTALLED_APPS, but settings are not configured.",
        '{"reservation_id": "4WQ150", "status": "confirmed"}',
        "id=123",
        json.dumps([{"ticket_id": f"T-{number}", "status": "pending"} for number in range(5)]),
        "job 11 queued\njob 12 queued\njob 13 queued",
    ],
)
def test_a_log_and_a_plain_result_wait_for_nothing(result):
    work = RunLedger()
    work.learn_result((1, 0), ToolCall("c", "bash", '{"command": "make"}'), Observation("c", result))
    assert work.find_open(lambda _: True, lambda _: True).waiting == ()


@pytest.mark.parametrize(
    ("text", "is_over"),
    [
        ("The build is done. bash_7 is the server on port 80.", False),
        ("bash_7 is on port 80.\nAll tests completed.", False),
        ("I killed bash_7 and went on.", True),
        ("bash_7: exit code 0", True),
        ("<task-id>bash_7</task-id>\n<output-file>/tmp/out/bash_7.output</output-file>\n<status>failed</status>", True),
        ('{"id": "bash_7", "log": "2 tests failed", "status": "running"}', False),
    ],
)
def test_only_what_is_said_of_an_id_ends_it(text, is_over):
    work = RunLedger()
    work.learn_result((1, 0), ToolCall("c", "run", '{"command": "serve"}'), Observation("c", WAITS["bash_7"][1]))
    work.learn_work(2, text, text, is_own=False)
    assert (work.waiting.going_on() == ()) is is_over


@pytest.mark.parametrize("policy", POLICIES)
def test_under_every_policy_the_list_is_in_the_request(policy):
    with AgentMemory.open(":memory:", budget=1_500, policy=policy) as memory:
        memory.record(TaskStep("Move billing to gRPC."))
        act(memory, "TodoWrite", LISTS["TodoWrite"], "ok")
        fill(memory, 30)
        assert memory.view().has_replaced_entries
        text = "\n".join(f"{message['content']} {message.get('tool_calls')}" for message in memory.to_messages())
        assert text.count(TASKS[2]) >= 1


def test_the_block_is_the_same_on_reopening_and_goes_with_what_is_erased(tmp_path):
    address = str(tmp_path / "run.db")
    with AgentMemory.open(address, budget=1_500) as memory:
        memory.record(TaskStep("Move billing to gRPC."))
        act(memory, "TodoWrite", LISTS["TodoWrite"], "ok")
        act(memory, "run", *WAITS["bash_7"][:2])
        act(memory, "run", *WAITS["1234"][:2])
        fill(memory)
        view = memory.view()
    with AgentMemory.open(address, budget=1_500) as memory:
        assert memory.view().messages() == view.messages()
        assert "bash_7" in block_of(memory)
        memory.erase("s2")
        assert "bash_7" not in block_of(memory)
        assert "1234" in block_of(memory)


def test_what_a_step_left_open_can_be_dropped(tmp_path):
    address = str(tmp_path / "run.db")
    with AgentMemory.open(address, budget=1_500) as memory:
        memory.record(TaskStep("Move billing to gRPC."))
        act(memory, "TodoWrite", LISTS["TodoWrite"], "ok")
        act(memory, "run", *WAITS["bash_7"][:2])
        fill(memory)
        memory.unpin("s2")
        assert "bash_7" not in block_of(memory)
        with pytest.raises(UnknownHandle):
            memory.unpin("s2")
        memory.unpin("s1")
        assert block_of(memory) == ""
    with AgentMemory.open(address, budget=1_500) as memory:
        assert block_of(memory) == ""


def test_what_a_removed_step_left_open_is_not_shown():
    with AgentMemory.open(":memory:", budget=1_500) as memory:
        memory.record(TaskStep("Move billing to gRPC."))
        act(memory, "TodoWrite", LISTS["TodoWrite"], "ok")
        act(memory, "run", {"command": "make it"}, "KeyError: 'rate'\njob 4711 queued")
        act(memory, "run", *WAITS["1234"][:2])
        memory.view()
        memory.remove("s1")
        memory.remove("s2")
        fill(memory)
        shown = "\n".join(str(message["content"]) for message in memory.to_messages())
        assert "1234" in block_of(memory)
        assert not any(text in shown for text in (TASKS[2], "4711", "KeyError"))


def test_the_state_is_bounded_and_comes_back_whole():
    work = RunLedger()
    for number in range(300):
        call = ToolCall("c", "TodoWrite", json.dumps(LISTS["TodoWrite"]))
        work.learn_result((number, 0), call, Observation("c", f"job {number + 1000} queued"))
    state = json.loads(json.dumps(work.to_state()))
    plans, waiting, *_ = state["open"]
    assert len(plans["todos"]) == MAX_VERSIONS
    assert len(waiting) == MAX_WAITING
    lines = work.find_open(lambda _: True, lambda _: True)
    assert RunLedger.from_state(state).find_open(lambda _: True, lambda _: True) == lines


def test_with_little_space_what_is_in_progress_stays_first():
    counter, work = Encoding("o200k_base"), RunLedger()
    rows = [{"content": f"{'Write chapter' if at else 'Read'} {at}", "status": "pending"} for at in range(40)]
    rows[20]["status"], rows[0]["status"] = "in_progress", "completed"
    work.learn_result((1, 0), ToolCall("c", "plan", json.dumps({"plan": rows})), Observation("c", "job 4711 queued"))
    lines = work.find_open(lambda _: True, lambda _: True)
    whole = render_open(lines, 2_000, counter)
    assert whole.count("\n- ") == 38
    for tokens in range(10, 400, 13):
        text = render_open(lines, tokens, counter)
        assert counter.text(text) <= tokens
        assert "x Read 0" not in text or text == whole
        if "\n- " in text:
            assert "> Write chapter 20" in text


def test_what_an_edited_step_left_open_is_not_shown_but_as_it_is_now():
    with AgentMemory.open(":memory:", budget=1_500) as memory:
        memory.record(TaskStep("Move billing to gRPC."), ActionStep(f"My plan:\n{BOXES}"), TaskStep("Go on."))
        act(memory, "run", {"command": "make it"}, "KeyError: 'rate'\njob id j4711 queued")
        todos = {"todos": [{"content": "Call Ana", "status": "pending"}, {"content": "Write", "status": "pending"}]}
        call = ToolCall("t", "TodoWrite", json.dumps(todos))
        memory.record(ActionStep(None, (call,), (Observation("t", "ok"),)))
        memory.edit("s1", "My plan: nothing yet.")
        memory.edit("s3.0", "It was made.")
        memory.edit("s4", ActionStep(None, (ToolCall("t", "TodoWrite", call.arguments.replace("Ana", "Ben")),)))
        fill(memory)
        shown = "\n".join(str(message["content"]) for message in memory.to_messages())
        assert "Call Ben" in block_of(memory)
        assert not any(text in shown for text in (TASKS[2], "j4711", "KeyError", "Ana"))


def test_a_result_that_a_list_has_in_other_words_brings_no_older_tasks_back():
    def listed(result, steps):
        rows = [("TodoWrite", LISTS["TodoWrite"], result), ("TodoWrite", LISTS["update_todo_list"], "Updated.")]
        rows += [("read", {"file": f"src/m{number}.py"}, f"value_{number} = load\n" * 40) for number in range(steps)]
        messages = [{"role": "user", "content": "Move billing to gRPC."}]
        for number, (name, arguments, content) in enumerate(rows):
            function = {"name": name, "arguments": json.dumps(arguments)}
            calls = [{"id": f"k{number}", "type": "function", "function": function}]
            messages += [
                {"role": "assistant", "content": None, "tool_calls": calls},
                {"role": "tool", "tool_call_id": f"k{number}", "content": content},
            ]
        return messages

    with AgentMemory.open(":memory:", budget=20_000) as memory:
        memory.record_messages(listed("Todos have been modified successfully.", 3))
        memory.record_messages(listed("Nothing has been changed: no disk.", 4))
        versions = memory._runtime.state.fold.learned.ledger.plans.to_state()["todos"]
        assert [version[0] for version in versions] == [1, 3]


def test_a_view_of_which_nothing_is_due_counts_no_request_for_blocks(monkeypatch):
    counted = []
    real = block.request_cost
    monkeypatch.setattr(block, "request_cost", lambda entries, counter: counted.append(1) or real(entries, counter))
    with AgentMemory.open(":memory:", budget=4_000, page_in=0) as memory:
        memory.record(TaskStep("Read the files."))
        fill(memory, 40)
        assert memory.view().has_replaced_entries
        assert counted == []
        act(memory, "TodoWrite", LISTS["TodoWrite"], "ok")
        fill(memory, 40)
        assert counted


def test_the_tasks_of_a_call_that_was_clipped_before_its_result_came_are_known(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=400) as memory:
        memory.record(TaskStep("Port the handlers."))
        todos = [{"content": f"{text} {number}", "status": state} for number in range(40) for text, state in ROWS]
        memory.record(ActionStep("", (ToolCall("c1", "TodoWrite", json.dumps({"todos": todos})),)))
        assert "left out" in str(memory.view().messages()), "the arguments are not clipped: the test watches nothing"
        memory.record(Observation("c1", "Todos have been modified."))
        memory.clear_view()
    with AgentMemory.open(tmp_path / "run.db", budget=3_000) as memory:
        shown = "\n".join(str(message.content) for message in memory.view().messages())
        assert "[s1] tasks, 40 of 120 done" in shown
