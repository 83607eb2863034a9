"""The page-in of files: an action that works on a file brings back what the run read of it and is out of view."""

import json
from itertools import count

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.context.page_in.files import FileUse, choose_file_lines, file_block, replaced_lines
from pagein.context.salience.files import MAX_CALLS, MAX_FILES, FileTable
from pagein.events.call_files import files_of
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall
from pagein.memory.agent_memory import AgentMemory
from pagein.tokens.estimates import ANY_ESTIMATE

BUDGET = 4_000


def line_of(name, number):
    """One line of a file, as it is on disk."""
    return f"value_{name}_{number} = compute_{name}(user_{number}, rate_{number * 7})"


def file_text(name, lines=30, first=1):
    """A file as a tool shows it, with the numbers of its lines."""
    return "\n".join(f"{number:6}\u2192{line_of(name, number)}" for number in range(first, first + lines))


class Agent:
    """An agent that reads and edits files."""

    def __init__(self, log=None, **options):
        self.log = InMemoryLog() if log is None else log
        options = {"budget": BUDGET} | options
        self.memory = AgentMemory(self.log, clock=count(1.0).__next__, **options)
        self.numbers = count()

    def call(self, tool, result, **arguments):
        """One action with its result; returns the text of the next request."""
        name = f"c{next(self.numbers)}"
        self.memory.record(ActionStep("Next.", (ToolCall(name, tool, json.dumps(arguments)),)))
        self.memory.record(Observation(name, result))
        return self.request()

    def read(self, name, **arguments):
        return self.call("Read", file_text(name, **arguments), file_path=f"/src/{name}.py")

    def edit(self, name, number, new="value = 0"):
        return self.call(
            "Edit", "updated", file_path=f"/src/{name}.py", old_string=line_of(name, number), new_string=new
        )

    def request(self):
        return "\n".join(
            str(message.content) for entry in self.memory.view().entries for message in entry.messages
        ) + "".join(str(message.content) for entry in self.memory.view().tail for message in entry.messages)

    def file_lines(self):
        """The text of the page-ins of files that the view shows."""
        shown = self.memory._runtime.state.page_in.shown
        return "".join(
            str(message.content) for page_in in shown if page_in.is_of_files for message in page_in.entry.messages
        )

    def lose(self, *names):
        """Read files until the first ones have left the view."""
        self.memory.record(TaskStep("Rename the values."))
        for name in names:
            text = self.read(name)
        return text


NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota")


def test_the_lines_around_a_change_come_back():
    agent = Agent()
    before = agent.lose(*NAMES)
    assert sum(line_of("alpha", number) in before for number in range(1, 31)) < 10
    after = agent.edit("alpha", 15)
    assert all(line_of("alpha", number) in after for number in (12, 13, 14, 16, 17, 18))
    assert agent.memory.report().tokens <= BUDGET


def test_a_long_file_comes_back_in_a_fifth_of_the_budget_at_most_and_in_what_is_free():
    agent = Agent()
    agent.memory.record(TaskStep("Rename the values."))
    for name in NAMES:
        agent.read(name, lines=90)
    for number in (10, 80, 45):
        agent.edit("alpha", number)
        assert agent.memory._runtime.state.page_in.file_tokens <= BUDGET / 5
        assert agent.memory.report().tokens <= BUDGET
    assert agent.file_lines()


def test_what_was_read_of_another_file_stays_away():
    agent = Agent()
    before = agent.lose(*NAMES)
    after = agent.edit("alpha", 15)
    assert sum(line_of("beta", n) in after for n in range(1, 31)) <= sum(
        line_of("beta", n) in before for n in range(1, 31)
    )


def test_nothing_comes_back_where_page_in_is_off():
    agent = Agent(page_in=0)
    agent.lose(*NAMES)
    after = agent.edit("alpha", 15)
    assert sum(line_of("alpha", number) in after for number in range(1, 31)) < 10


def test_a_changed_line_does_not_come_back():
    agent = Agent()
    agent.lose(*NAMES)
    agent.edit("alpha", 14, "renamed_14 = 14")
    agent.lose("kappa", "lambda", "mu", "nu", "xi", "omicron", "pi", "rho")
    agent.edit("alpha", 16)
    assert line_of("alpha", 17) in agent.file_lines()
    assert line_of("alpha", 14) not in agent.file_lines()


def test_a_file_that_was_written_anew_does_not_come_back():
    agent = Agent()
    agent.lose(*NAMES)
    whole = "\n".join(line_of("alpha", number) for number in range(1, 25))
    agent.call("Write", "written", file_path="/src/alpha.py", content=whole)
    assert not agent.file_lines()


def test_a_part_that_is_read_again_brings_what_is_around_it():
    agent = Agent()
    agent.lose(*NAMES)
    after = agent.call("Read", file_text("alpha", 3, 15), file_path="/src/alpha.py", offset=15, limit=3)
    assert all(line_of("alpha", number) in after for number in (13, 14, 18, 19))


def test_what_was_erased_does_not_come_back():
    agent = Agent()
    agent.lose(*NAMES)
    agent.memory.erase("s1")
    after = agent.edit("alpha", 15)
    assert line_of("alpha", 16) not in after


def test_it_stays_where_it_was_shown():
    agent = Agent()
    agent.lose(*NAMES)
    agent.edit("alpha", 15)
    request, lines = agent.memory.to_request(), agent.file_lines()
    assert agent.memory.to_request() == request
    agent.call("Bash", "ok", command="make test")
    assert lines
    assert agent.file_lines() == lines
    assert agent.memory.to_request()["messages"][: len(request["messages"])] == request["messages"]


def test_a_request_with_lines_of_a_file_is_rendered_again(tmp_path):
    with AgentMemory.open(tmp_path / "runs.db", budget=BUDGET, clock=count(1.0).__next__) as memory:
        agent = Agent()
        agent.memory = memory
        agent.lose(*NAMES)
        assert line_of("alpha", 16) in agent.edit("alpha", 15)
        sent = memory.to_request()
        record = memory.requests()[-1]
        assert "file" in {block.kind for page_in in record.page_ins for block in page_in.blocks}
        agent.read("kappa")
        again = memory.request(record.number)
        assert again.problem == ""
        assert again.request["messages"] == sent["messages"]


@pytest.mark.parametrize("key", ["file_path", "filePath", "path", "target_file", "absolute-path", "filename"])
def test_the_usual_names_of_a_path_are_known(key):
    assert files_of(json.dumps({"instruction": "x", key: "/a/b.py"})).path == "/a/b.py"


@pytest.mark.parametrize(
    "arguments", ['{"command": "cat a.py"}', '{"path": ["a.py"]}', '{"path": 3}', "path", "[1]", ""]
)
def test_other_arguments_name_no_file(arguments):
    assert files_of(arguments).path == ""


def test_the_nearest_lines_are_chosen_with_gaps_between():
    text = file_text("alpha", 40)
    use = FileUse("/src/alpha.py", 9, frozenset((line_of("alpha", 20),)))
    chosen = choose_file_lines(text, use, {line_of("alpha", 20)}, {line_of("alpha", 19)}, 90, ANY_ESTIMATE)
    shown = [number + 1 for number in chosen]
    assert {18, 21} <= set(shown)
    assert {19, 20}.isdisjoint(shown), "the changed line is between them"
    assert len(shown) < 10
    assert file_block(3, 0, text.splitlines(), chosen, 9).text.count("[…]") == 3


def test_lines_between_come_with_those_around_them_where_nothing_changed():
    lines = [line_of("alpha", number) if number % 3 else "}" for number in range(1, 31)]
    use = FileUse("/src/alpha.py", 9, frozenset((line_of("alpha", 16),)))
    chosen = choose_file_lines("\n".join(lines), use, use.lines, {"}"}, 2_000, ANY_ESTIMATE)
    assert chosen == (*range(14), *range(16, 29))
    few = choose_file_lines("\n".join(lines), use, use.lines, {"}"}, 60, ANY_ESTIMATE)
    assert few
    assert sum(ANY_ESTIMATE.text(lines[number]) + 1 for number in few) <= 60


def test_a_text_without_the_change_or_of_nothing_else_gives_none():
    text = file_text("alpha", 4)
    for lines in ((), ("another line of text",), tuple(line_of("alpha", number) for number in range(1, 5))):
        assert choose_file_lines(text, FileUse("a", 9, frozenset(lines)), (), (), 500, ANY_ESTIMATE) == ()


def test_what_was_removed_does_not_come_back():
    agent = Agent()
    agent.lose("alpha")
    agent.memory.remove("s1")
    agent.lose(*NAMES[1:])
    agent.edit("alpha", 15)
    assert line_of("alpha", 16) not in agent.file_lines()


def problems_of(memory):
    """The problems of rendering again each request with a page-in; at least one has lines of a file."""
    records = [record for record in memory.requests() if record.page_ins]
    assert any(block.kind == "file" for record in records for page_in in record.page_ins for block in page_in.blocks)
    return {memory.request(record.number).problem for record in records}


def test_a_file_that_has_the_mark_of_a_gap_is_rendered_again():
    agent = Agent()
    lines = file_text("alpha").splitlines()
    agent.memory.record(TaskStep("Rename the values."))
    agent.call("Read", "\n".join((*lines, "[…]", "the last line of the file")), file_path="/src/alpha.py")
    for name in NAMES[1:]:
        agent.read(name)
    agent.edit("alpha", 15)
    agent.memory.to_request()
    assert "[…]" in agent.file_lines()
    assert problems_of(agent.memory) == {""}


def test_many_stretches_of_many_files_are_rendered_again():
    agent = Agent(budget=100_000)
    agent.memory.record(TaskStep("Rename the values."))
    names = [f"f{number}" for number in range(150)]
    for name in names:
        lines = (line_of(name, at) if at % 4 == 0 else ("return x", "else: pass", "}")[at % 4 - 1] for at in range(200))
        agent.call("Read", "\n".join(lines), file_path=f"/src/{name}.py")
    for name in names[:25]:
        agent.edit(name, 60)
        agent.memory.to_request()
    assert problems_of(agent.memory) == {""}


def test_a_file_that_has_the_mark_of_what_was_erased_comes_back():
    agent = Agent()
    agent.memory.record(TaskStep("Rename the values."))
    agent.call("Read", f'{file_text("alpha")}\nERASED = "[erased]"', file_path="/src/alpha.py")
    for name in NAMES[1:]:
        agent.read(name)
    agent.edit("alpha", 15)
    assert line_of("alpha", 16) in agent.file_lines()


def test_a_look_at_the_view_before_the_result_takes_nothing_away():
    agent = Agent()
    agent.lose(*NAMES)
    arguments = json.dumps({"file_path": "/src/alpha.py", "offset": 15})
    agent.memory.record(ActionStep("", (ToolCall("part", "Read", arguments),)))
    agent.memory.view()
    agent.memory.record(Observation("part", file_text("alpha", 3, 15)))
    assert line_of("alpha", 19) in agent.request()


class ShellAgent(Agent):
    """An agent that reads files by commands and changes them by patches, as Codex does."""

    def shell(self, command, result="", **arguments):
        return self.call("exec_command", result, cmd=command, **arguments)

    def read(self, name, **arguments):
        return self.shell(f"sed -n '1,200p' src/{name}.py", file_text(name, **arguments), workdir="/home/u/proj")

    def edit(self, name, number, new="value = 0", folder="src/"):
        before, after = (f" {line_of(name, at)}" for at in (number - 1, number + 1))
        hunk = "\n".join(("@@", before, f"-{line_of(name, number)}", f"+{new}", after))
        patch = f"*** Begin Patch\n*** Update File: {folder}{name}.py\n{hunk}\n*** End Patch"
        self.memory.record(ActionStep("", (ToolCall(f"p{next(self.numbers)}", "apply_patch", patch),)))
        self.memory.record(Observation(f"p{next(self.numbers) - 1}", "Done."))
        return self.request()


def test_a_patch_brings_back_what_a_command_showed_of_its_file():
    agent = ShellAgent()
    before = agent.lose(*NAMES)
    assert sum(line_of("alpha", number) in before for number in range(1, 31)) < 10
    after = agent.edit("alpha", 15)
    assert all(line_of("alpha", number) in after for number in (11, 12, 13, 17, 18, 19))
    assert agent.memory.report().tokens <= BUDGET


@pytest.mark.parametrize("folder", ["/home/u/proj/src/", "proj/src/", "./src/", ""])
def test_a_path_is_known_by_its_last_components(folder):
    agent = ShellAgent()
    agent.lose(*NAMES)
    agent.edit("alpha", 15, folder=folder)
    assert line_of("alpha", 18) in agent.file_lines()


def test_a_path_that_may_be_of_two_files_names_none():
    agent = ShellAgent()
    agent.shell("cat lib/src/alpha.py", "nothing = 1", workdir="/home/u/proj")
    agent.lose(*NAMES)
    agent.edit("alpha", 15)
    assert not agent.file_lines()
    agent.edit("alpha", 17, folder="/home/u/proj/src/")
    assert line_of("alpha", 13) in agent.file_lines()


def test_a_line_that_a_patch_took_away_does_not_come_back():
    agent = ShellAgent()
    agent.lose(*NAMES)
    agent.edit("alpha", 14)
    agent.lose("kappa", "lambda", "mu", "nu", "xi", "omicron", "pi", "rho")
    agent.edit("alpha", 17)
    assert line_of("alpha", 20) in agent.file_lines()
    assert line_of("alpha", 14) not in agent.file_lines()


def test_a_patch_replaces_the_lines_that_it_takes_away_and_not_those_around_them():
    table, patch = FileTable(), "*** Update File: src/a.py\n@@\n around_it = 1\n-what_left = 2\n+what_came = 3\n"
    table.queue_call(1, json.dumps({"cmd": "cat src/a.py b.py"}))
    assert replaced_lines(patch, files_of(patch), "src/a.py", table) == {"what_left = 2"}
    assert not replaced_lines(patch, files_of(patch), "b.py", table)


def test_a_program_in_a_command_that_rewrites_a_file_brings_back_its_lines():
    agent = ShellAgent()
    agent.lose(*NAMES)
    program = f"python - <<'END'\np = 'src/alpha.py'\ns = s.replace('''\n{line_of('alpha', 15)}\n''', '')\nEND"
    assert line_of("alpha", 16) in agent.shell(program)


@pytest.mark.parametrize("command", ["rg -n value src/", "ls src", "find . -name '*.py'", "cat src/beta.py"])
def test_what_names_another_file_or_a_folder_is_no_text_of_the_file(command):
    agent = ShellAgent()
    agent.memory.record(TaskStep("Rename the values."))
    agent.shell(command, file_text("alpha"))
    for name in NAMES[1:]:
        agent.read(name)
    agent.edit("alpha", 15)
    assert line_of("alpha", 18) not in agent.file_lines()


@pytest.mark.parametrize(
    "command", ["sed -n '15,17p' src/alpha.py", "rg -n 'value' src/alpha.py", "git diff src/alpha.py"]
)
def test_a_command_that_only_shows_a_part_brings_nothing_back(command):
    agent = ShellAgent()
    agent.lose(*NAMES)
    agent.shell(command, file_text("alpha", 3, 15))
    assert not agent.file_lines()


def test_files_that_commands_showed_are_known_in_a_run_that_was_opened_again(tmp_path):
    tables = []
    for opened_again in (False, True):
        address = tmp_path / f"{opened_again}.db"
        agent, clock = ShellAgent(), count(1.0).__next__
        agent.memory = AgentMemory.open(address, budget=BUDGET, clock=clock)
        agent.lose(*NAMES)
        if opened_again:
            agent.memory.close()
            agent.memory = AgentMemory.open(address, budget=BUDGET, clock=clock)
        agent.edit("alpha", 15)
        assert line_of("alpha", 18) in agent.file_lines()
        agent.memory.to_request()
        assert problems_of(agent.memory) == {""}
        tables.append(agent.memory.view().tracker.files.to_state())
        agent.memory.close()
    assert tables[0] == tables[1]


def test_an_erased_call_is_forgotten():
    agent = ShellAgent()
    agent.lose(*NAMES)
    agent.memory.erase("s1")
    agent.edit("alpha", 15)
    assert not agent.file_lines()
    assert not agent.memory.view().tracker.files.find("src/alpha.py")


def test_the_table_of_files_is_bounded_and_keeps_those_named_last():
    table = FileTable()
    for number in range(MAX_FILES + 5):
        table.queue_call(number, json.dumps({"cmd": f"cat src/f{number}.py && cat src/f0.py"}))
    for number in range(MAX_FILES + 5, MAX_FILES + 50):
        table.queue_call(number, json.dumps({"path": "/home/src/f0.py"}))
    assert len(table.to_state()) == MAX_FILES
    assert table.find("f0.py") == table.find("src/f0.py") == "/home/src/f0.py"
    assert len(table.positions("/home/src/f0.py")) == MAX_CALLS
    assert table.newest == MAX_FILES + 49
    assert not table.find("src/f3.py")
    assert FileTable(table.to_state()).to_state() == table.to_state()
    table.queue_call(MAX_FILES + 50, json.dumps({"path": f"src/f{MAX_FILES}.py"}))
    table.forget(MAX_FILES + 50, MAX_FILES + 51)
    assert table.newest == MAX_FILES + 49
    table.forget(0, MAX_FILES)
    assert {path for path, _ in table.to_state()} == {
        "/home/src/f0.py", *(f"src/f{number}.py" for number in range(MAX_FILES, MAX_FILES + 5))
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        ({"command": "cd src && head -20 a.py 2>/dev/null"}, ["src/a.py"]),
        ({"command": ["bash", "-lc", "cat 'app/(shop)/[id]/page.tsx'"]}, ["app/(shop)/[id]/page.tsx"]),
        ({"cmd": "nl -ba ../b/a.py | tail -3", "workdir": "/home/u/c"}, ["/home/u/b/a.py"]),
        ({"cmd": "cd $DIR && cat a.py"}, ["a.py"]),
        ({"command": ["cat", "src/a.py"], "path": ""}, ["src/a.py"]),
        ({"command": ["bash", "-lc", "cat 'app/(shop)/[id]/page.tsx'", 3]}, []),
        ({"cmd": r"cat C:\one\a.py; grep -n \.py b.txt"}, []),
        ({"cmd": "sed -i s/a/b/ a.py; cat a.py > b.py; cat > c.py <<'END'\ncat d.py\nEND"}, []),
        ({"cmd": "python a.py && git diff b.py"}, []),
        ({"cmd": "cat"}, []),
        ({"cmd": 3}, []),
    ],
)
def test_the_files_that_a_command_shows_are_found(arguments, paths):
    assert list(files_of(json.dumps(arguments)).text_paths) == paths


def test_the_files_of_patches_are_found():
    diff = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    assert files_of(json.dumps({"cmd": f"cd lib && git apply <<'END'\n{diff}END"})).mention_paths == ("lib/src/a.py",)
    two = "*** Update File: a.py\n-a\n*** Add File: b.py\n+b\n*** Update File: a.py\n-c\n"
    assert {path: hunks.split() for path, hunks in files_of(two).patches.items()} == {
        "a.py": ["-a", "-c"],
        "b.py": ["+b"],
    }
