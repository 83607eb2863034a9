"""What failed: which lines are errors, how they fold, and that every view shows those whose steps are out of it."""

import json

import pytest

from pagein import ActionStep, AgentMemory, Observation, TaskStep, ToolCall
from pagein.backends.memory import InMemoryLog
from pagein.context.compaction.registry import POLICIES
from pagein.context.ledger.error_lines import error_key, errors_of_readers, find_errors
from pagein.context.ledger.failures import GONE_HEAD, FailureLedger, select_failures
from pagein.events.entries import Compaction

TRACEBACK = (
    "Traceback (most recent call last):\n  File 'a.py', line 3, in <module>\n    raise KeyError('id')\nKeyError: 'id'"
)
PYTEST = """\
    def test_limit():
>       assert limit() == 3
E       TypeError: limit() takes no arguments

tests/test_a.py:7: TypeError
=========== short test summary info ===========
FAILED tests/test_a.py::test_limit - TypeError: li...
========= 1 failed, 68 passed in 2.84s ========="""


@pytest.mark.parametrize(
    ("text", "failed", "errors"),
    [
        (TRACEBACK, False, ("KeyError: 'id'",)),
        (
            PYTEST,
            True,
            ("TypeError: limit() takes no arguments", "FAILED tests/test_a.py::test_limit - TypeError: li..."),
        ),
        ("FAIL: test_x (m.T)\nFAILED (failures=1, skipped=2)", True, ("FAIL: test_x (m.T)",)),
        ("Error: not enough seats on flight HAT229", False, ("Error: not enough seats on flight HAT229",)),
        ("/bin/bash: line 7: mvn: command not found", False, ("/bin/bash: line 7: mvn: command not found",)),
        (
            "rm: cannot remove 'a': No such file or directory",
            False,
            ("rm: cannot remove 'a': No such file or directory",),
        ),
        ("[ERROR] COMPILATION ERROR", False, ("[ERROR] COMPILATION ERROR",)),
        ("src/A.java:12: error: cannot find symbol", False, ("src/A.java:12: error: cannot find symbol",)),
        ('{"error": "no such user"}', False, ('{"error": "no such user"}',)),
        (
            "a.OperationalError: no table t\nb.utils.OperationalError: no table t",
            True,
            ("b.utils.OperationalError: no table t",),
        ),
        ("The answer was late.\nIt gave up.", True, ("It gave up.",)),
        ("<returncode>1</returncode>\n<output>\n</output>", True, ()),
        ('{"error": null}', False, ()),
        ("97:    throw new IllegalArgumentException(1);\n    except KeyError:\nclass BadError(ValueError):", False, ()),
        ('print("Error: x")\n+raise ValueError("Error: y")', False, ()),
        ("Command: ls\nOutput: a.txt\nError: (none)\nExit Code: 0\nSignal: (none)", False, ()),
        ('Last error: none\nError Output: (none)\nErrors: []\n"error": "",\nError: n/a\nError: -', False, ()),
        ('a_test.go-70- t.Fatalf("failed to start: %v", err)\n917- fmt.Errorf("failed to get: %w", err)', False, ()),
        ('   605\u2192\t\treturn fmt.Errorf("failed to get it: error: %w", err)', False, ()),
        ("=== RUN TestA\n    a_test.go:8: Phase 1\n--- PASS: TestA (0.0s)", False, ()),
        ("KeyError: 0", False, ("KeyError: 0",)),
        ("Error: no such column", False, ("Error: no such column",)),
        (
            "E       assert 502 == 200\nt.py::test_a FAILED [ 3%]",
            False,
            ("assert 502 == 200", "t.py::test_a FAILED [ 3%]"),
        ),
        ("E       shop.errors.OutOfStock: sku-9\nE        +  where 3 = f()", False, ("shop.errors.OutOfStock: sku-9",)),
        ("--- FAIL: TestA (0.0s)\n    a_test.go:8: got 3", False, ("--- FAIL: TestA (0.0s)", "a_test.go:8: got 3")),
        ("test a::b ... ok\ntest a::c ... FAILED", False, ("test a::c ... FAILED",)),
        ("FAIL src/a.test.ts\n  \u25cf cart \u203a adds", False, ("FAIL src/a.test.ts", "\u25cf cart \u203a adds")),
        ("/a.js\n  3:7  error  no-var\n  4:1  warning  semi", False, ("3:7 error no-var",)),
        (
            "2026-11-22 10:00:01,2 ERROR no card\n2026-11-22 10:00:02 INFO errors: 0",
            False,
            ("2026-11-22 10:00:01,2 ERROR no card",),
        ),
        ("time=1 level=error msg=reset\ntime=2 level=info msg=error_page", False, ("time=1 level=error msg=reset",)),
        (
            "[ERROR] a.B:5 expected 3\n[ERROR] -> [Help 1]\n[ERROR] For more information",
            False,
            ("[ERROR] a.B:5 expected 3",),
        ),
        ("\x1b[1m\x1b[31mE       assert 1 == 2\x1b[0m\n\x1b[32m0 errors\x1b[0m", False, ("assert 1 == 2",)),
        (
            "2026-11-22T10:00:00.12Z FAILED a.py::b\n2026-11-22T10:00:01.2Z ##[error]Exit 2",
            False,
            ("FAILED a.py::b", "##[error]Exit 2"),
        ),
        ("api-1  | ValueError: no\napi-1  | ready", False, ("ValueError: no",)),
        ("0 errors, 12 passed\nFound 3 errors in docs/errors.md", False, ()),
    ],
)
def test_an_error_is_the_line_that_says_what_failed(text, failed, errors):
    assert find_errors(text, failed=failed) == errors


def test_of_many_errors_of_one_result_the_last_three_count():
    text = "\n".join(f"ValueError: number {name}" for name in "abcde")
    assert find_errors(text, failed=False) == ("ValueError: number c", "ValueError: number d", "ValueError: number e")


def test_an_error_is_the_same_at_another_place_and_time():
    assert error_key("E at 0x7f01, line 3, 2.5s") == error_key("e at 0x7f99,  line 40, 0.1s")
    assert error_key("limit 3 is too low") != error_key("limit 4 is too low")


class Words:
    """A counter whose tokens are words."""

    name, margin = "words", 0.0

    def text(self, text):
        return len(text.split())

    def image(self, image):
        return 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"cmd": "sed -n '1,80p' src/errors.ts", "workdir": "/w"},
        {"command": "cd src && nl -ba errors.ts | sed -n 10,40p"},
        {"command": ["bash", "-lc", "cat src/errors.ts"]},
        {"cmd": 'rg -n "error|failed" src; echo; head -5 README.md || true'},
    ],
)
def test_text_that_a_command_prints_from_a_file_did_not_fail_now(arguments):
    call = ToolCall("c", "exec_command", json.dumps(arguments))
    text = "function describe(error: unknown): string {\nFailure pattern: the pane is closed"
    own = "sed: can't read src/b.ts: No such file or directory"
    assert find_errors(text, failed=False)
    ledger = FailureLedger()
    ledger.learn(1, 0, call, Observation("c", text))
    assert ledger.find_hidden(lambda _: True) == ()
    ledger.learn(2, 0, call, Observation("c", f"{text}\n{own}"))
    assert [line.result.error for line in ledger.find_hidden(lambda _: True)] == [own]


@pytest.mark.parametrize(
    "arguments",
    [
        {"cmd": "make && cat src/errors.ts"},
        {"command": "cat build.log"},
        {"command": "tail -20 /tmp/test-run"},
        {"command": "sed -n 1,5p a.ts\npytest"},
        {"command": "ls src"},
        {"command": 3},
        {"path": "src/errors.ts"},
    ],
)
def test_what_a_command_ran_or_logged_may_have_failed(arguments):
    call = ToolCall("c", "bash", json.dumps(arguments))
    assert errors_of_readers(call, ("ValueError: no",)) == ("ValueError: no",)


CODEX = "Chunk ID: 3f2e47\nWall time: 0.0000 seconds\nProcess exited with code {}\nOriginal token count: 9\nOutput:\n"


@pytest.mark.parametrize(
    ("command", "code", "output", "errors"),
    [
        ("gh pr diff 7 -- a.md", 1, "accepts at most 1 arg(s), received 2", ["accepts at most 1 arg(s), received 2"]),
        ("node run.mjs", 1, "Cannot find module 'sdk'", ["Cannot find module 'sdk'"]),
        ("node run.mjs", 0, "Cannot find module 'sdk'", []),
        ("git branch -vv | grep gone", 1, "", []),
        ("rg -n nothing src", 1, "", []),
        (
            "rg -n throw src missing",
            2,
            "src/a.ts:3: throw error\nrg: missing: No such file",
            ["rg: missing: No such file"],
        ),
    ],
)
def test_what_failed_with_an_exit_code_in_the_head_of_codex(command, code, output, errors):
    ledger = FailureLedger()
    call = ToolCall("c", "exec_command", json.dumps({"cmd": command}))
    ledger.learn(1, 0, call, Observation("c", CODEX.format(code) + output))
    assert [line.result.error for line in ledger.find_hidden(lambda _: True)] == errors


def test_a_shell_without_the_reading_program_failed():
    call = ToolCall("c", "bash", '{"command": "rg x"}')
    errors = ("/bin/bash: line 1: rg: command not found",)
    assert errors_of_readers(call, errors) == errors


def learn(*results):
    ledger = FailureLedger()
    for position, (command, output) in enumerate(results):
        call = ToolCall(f"c{position}", "bash", json.dumps({"command": command}))
        ledger.learn(position, 0, call, Observation(call.id, output))
    return ledger


def show(ledger, tokens=1_000, hidden=lambda position: True):
    return select_failures(ledger.find_hidden(hidden), tokens, Words()).splitlines()


RESULTS = (
    ("python a.py", "KeyError: 'id'"),
    ("pytest", "KeyError: 'id'"),
    ("python b.py", "ValueError: no"),
    ("python b.py", "fine"),
    ("ls x", "ls: cannot access 'x': No such file or directory\nls: cannot access 'y': No such file or directory"),
)


def test_an_error_stands_once_with_its_newest_call_its_count_and_what_came_of_it():
    assert show(learn(*RESULTS)) == [
        "[s1] pytest ! KeyError: 'id' (2 times)",
        "[s4] ls x ! ls: cannot access 'x': No such file or directory",
        "! ls: cannot access 'y': No such file or directory",
        GONE_HEAD,
        "[s2] python b.py ! ValueError: no",
    ]


def test_results_in_view_change_nothing():
    ledger = learn(*RESULTS)
    assert show(ledger, hidden={0, 2}.__contains__) == [
        "[s0] python a.py ! KeyError: 'id'",
        "[s2] python b.py ! ValueError: no",
    ]
    assert show(ledger, hidden={3}.__contains__) == []


def test_an_error_that_comes_again_and_again_in_view_leaves_the_block_as_it_is():
    # With each of them in view the count of those out of view fell by one, and the prompt's cache was lost.
    ledger, blocks = FailureLedger(), set()
    for position in range(300):
        ledger.learn(position, 0, ToolCall("1", "run", '{"command": "make"}'), Observation("1", "KeyError: 'id'"))
        if position >= 200:
            blocks.add("\n".join(show(ledger, hidden=range(200).__contains__)))
    [block] = blocks
    assert block.endswith("! KeyError: 'id' (200 times)")


def test_errors_of_one_result_that_come_again_in_view_leave_the_block_as_it_is():
    # Each that came again stood last of its result from then on: three of one result took turns, and each broke the prefix.
    errors = [f"bash: line 7: {name}: command not found" for name in ("There", "We", "Let")]
    results = [("run", "\n".join(errors)), *(("run", error) for error in errors)]
    ledgers = [learn(*results[: count + 1]) for count in range(len(results))]
    [block] = {"\n".join(show(ledger, hidden={0}.__contains__)) for ledger in ledgers}
    assert [line.partition("! ")[2] for line in block.splitlines()] == errors


def test_hundreds_of_other_errors_in_view_leave_the_block_as_it_is():
    # In a view of 200,000 tokens each new error dropped an old one, and each broke the prefix.
    results = [(f"run {number}", f"ValueError: number {number}") for number in range(500)]
    ledgers = [learn(*results[:count]) for count in range(200, 500, 25)]
    assert len({"\n".join(show(ledger, tokens=500, hidden=range(200).__contains__)) for ledger in ledgers}) == 1


def test_in_a_large_view_what_failed_has_a_bounded_part():
    # With a share alone it had 5,000 tokens of errors of other tasks, from thousands of steps ago.
    with AgentMemory.open(":memory:", budget=100_000) as memory:
        memory.record(TaskStep("Fix what fails."))
        for number in range(300):
            call = ToolCall(f"c{number}", "bash", json.dumps({"command": f"run {number}"}))
            said = f"ValueError: {number} is out of range for what was asked\n" + "it goes on and on. " * 200
            memory.record(ActionStep("I run it.", (call,)), Observation(call.id, said))
        view = memory.view()
    [block] = [entry for entry in view.entries if getattr(entry.item, "kind", "") == "failed"]
    assert 1_500 < block.tokens <= 2_000


def test_where_not_all_fit_those_that_are_gone_leave_first_and_then_the_oldest():
    errors = [
        "[s4] ls x ! ls: cannot access 'x': No such file or directory",
        "! ls: cannot access 'y': No such file or directory",
    ]
    assert show(learn(*RESULTS), tokens=36) == ["[s1] pytest ! KeyError: 'id' (2 times)", *errors]
    assert show(learn(*RESULTS), tokens=28) == errors
    assert show(learn(*RESULTS), tokens=3) == []


def test_a_ledger_comes_back_from_its_state():
    ledger = learn(*RESULTS)
    again = FailureLedger.from_state(json.loads(json.dumps(ledger.to_state())))
    assert again.to_state() == ledger.to_state()
    assert show(again) == show(ledger)


ERRORS = ("KeyError: 'harbour'", "AssertionError: 3 is not 4", "error: linker command gave up on crane.o")


def record_run(memory, turns=90):
    """Record a run whose first results fail, each in its own way; make a view before each turn."""
    memory.record(TaskStep("Mend the crane."))
    for number in range(turns):
        call = ToolCall(f"c{number}", "bash", json.dumps({"command": f"make step{number}"}))
        output = ERRORS[number] if number < len(ERRORS) else "All is well with the crane of the port. " * 12
        memory.record(ActionStep(f"Step {number}.", (call,), (Observation(call.id, output),)))
        memory.view()


def text_of(memory):
    return "\n".join(str(message["content"]) for message in memory.to_messages())


@pytest.mark.parametrize("policy", POLICIES)
def test_errors_are_in_every_view_after_ten_compactions_under_every_policy(policy):
    log = InMemoryLog()
    with AgentMemory(log, budget=1_500, policy=policy) as memory:
        record_run(memory)
        assert sum(isinstance(entry.body, Compaction) for entry in log.read()) >= 10
        text = text_of(memory)
        assert all(error in text for error in ERRORS)
        assert str(memory.expand("s1")).endswith(ERRORS[0])


def test_the_block_is_the_same_on_reopening_and_goes_with_what_is_erased_or_undone(tmp_path):
    address = str(tmp_path / "run.db")
    with AgentMemory.open(address, budget=1_500) as memory:
        record_run(memory, 12)
        view = memory.view()
        assert any(entry.follows_summaries and ERRORS[0] in entry.item.text for entry in view.front)
    with AgentMemory.open(address, budget=1_500) as memory:
        assert memory.view().messages() == view.messages()
        memory.erase("s1")
        assert ERRORS[0] not in text_of(memory)
        assert ERRORS[2] in text_of(memory)
        memory.undo()
        assert "ledger" not in memory.report().by_tier()


def test_what_failed_stands_behind_the_newest_summary_and_stays_between_compactions():
    with AgentMemory.open(":memory:", budget=1_500, page_in=0) as memory:
        record_run(memory, 12)
        tiers = [entry.tier for entry in memory.view().request_entries]
        assert tiers[tiers.index("ledger") - 1] == "summary"
        compactions, kept = len(memory.view().report.out), 0
        for number in range(30):
            before = memory.view()
            call = ToolCall(f"d{number}", "bash", '{"command": "make it"}')
            memory.record(ActionStep("Again.", (call,), (Observation(call.id, ERRORS[0]),)))
            after = memory.view()
            if after.report.out == before.report.out:
                kept += 1
                assert after.messages()[: len(before.messages())] == before.messages()
        assert compactions
        assert kept > 5


def test_errors_of_late_results_stay_when_their_notes_leave(tmp_path, monkeypatch):
    monkeypatch.setattr("pagein.memory._state.SNAPSHOT_MIN_ENTRIES", 8)
    path, options = tmp_path / "run.db", {"budget": 1_500, "page_in": 0}
    with AgentMemory.open(path, **options) as memory:
        memory.record(
            TaskStep("Build it."), ActionStep("Building.", (ToolCall("c", "bash", '{"command": "make it"}'),))
        )
        memory.resume()
        record_run(memory, 12)
        memory.view()
    with AgentMemory.open(path, **options) as memory:
        memory.record(Observation("c", "ld: cannot find -lssl"))
        assert "cannot find -lssl" in memory.view().messages()[-1].content
        record_run(memory, 12)
        entries = memory.view().request_entries
        (block,) = (entry for entry in entries if entry.tier == "ledger")
        assert "make it ! ld: cannot find -lssl" in block.messages[0].content
        assert sum("cannot find -lssl" in message.content for entry in entries for message in entry.messages) == 1
