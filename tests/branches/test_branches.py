"""A branch has what was before its fork and what is its own, and nothing of it is seen elsewhere."""

import asyncio
import contextlib
import itertools
import json
import random
import threading

import pytest

from pagein import (
    ActionStep,
    AgentMemory,
    AsyncAgentMemory,
    AutoCheckpoint,
    Observation,
    TaskStep,
    ToolCall,
    UnknownBranch,
    UnknownCheckpoint,
)
from pagein.backends.memory import InMemoryLog
from pagein.backends.postgres.log import PostgresLog
from pagein.backends.sqlite.log import SQLiteLog
from pagein.cli import main
from pagein.errors import ConfigurationError, Conflict, LogErased, LogUnwritable, NothingToUndo
from pagein.events.entries import Compaction, Pin
from pagein.log.branch_log import BranchLog, BranchPiece
from pagein.log.raw_rows import Row
from pagein.memory.export import export_session, import_session
from pagein.models.errors import ModelError
from pagein.summaries.job import SummaryRecord
from pagein.summaries.summary import Summary, SummaryItem
from pagein.testing.logs import LogTests, OpenLog


def turn(number, words="word"):
    call = ToolCall(f"c{number}", "bash", f'{{"command": "make {words}{number}"}}')
    lines = [f"src/{words}_{number}.py ok", *(f"line {n} of {words}_{number} sets value_{n * 37}" for n in range(12))]
    return ActionStep(f"Turn {number}.", (call,)), Observation(f"c{number}", "\n".join(lines))


def opened(path=None, **options):
    options = {"budget": 1_500, "page_in": 0, "checkpoints": AutoCheckpoint(close=False)} | options
    return AgentMemory.open(":memory:" if path is None else path, **options)


def played(memory, turns=8, words="word"):
    memory.record(TaskStep("Build the shop."))
    for number in range(turns):
        memory.record(*turn(number, words))


def test_a_branch_has_what_was_before_the_fork_and_its_own(tmp_path):
    with opened(tmp_path / "run.db") as memory:
        played(memory)
        whole = memory.steps
        branch = memory.fork(at="s2", name="other")
        assert (branch.parent, branch.at, branch.head, branch.is_current) == ("main", 3, 3, False)
        assert memory.steps == whole
        memory.switch("other")
        assert memory.steps == whole[:2]
        memory.record(*turn(100, "other"))
        assert memory.expand("s3").steps[0].content == "Turn 100."
        memory.switch("main")
        assert memory.steps == whole
        assert memory.expand("s3").steps[0].content == "Turn 1."
        assert memory.verify().ok
    with opened(tmp_path / "run.db", branch="other") as memory:
        assert [each.content for each in memory.steps] == ["Build the shop.", "Turn 0.", "Turn 100."]
        assert memory.verify().ok
        assert memory.verify().entries == 5


def test_a_run_goes_on_with_the_branch_that_was_switched_to_last(tmp_path):
    path = tmp_path / "run.db"
    with opened(path) as memory:
        played(memory, 3)
        rewound = memory.rewind("s2")
        assert (rewound.name, rewound.at, rewound.is_current) == ("branch-1", 3, True)
        assert len(memory.steps) == 2
        memory.record(TaskStep("Another way."))
    with opened(path) as memory:
        assert memory.steps[-1] == TaskStep("Another way.")
        assert [(each.name, each.head, each.is_current) for each in memory.branches()] == [
            ("main", 7, False), ("branch-1", 4, True)
        ]  # fmt: skip
    with opened(path, branch="main") as memory:
        assert len(memory.steps) == 4


def test_compactions_and_pins_of_a_branch_are_its_own_and_undo_reaches_behind_the_fork(tmp_path):
    memory = opened(tmp_path / "run.db")
    played(memory, 20)
    memory.view()
    made = [each for each in memory._runtime.log.read() if isinstance(each.body, Compaction)]
    assert made
    before = memory.to_messages()
    memory.fork(name="other")
    memory.switch("other")
    assert memory.to_messages() == before, "an unchanged branch shows another view"
    memory.pin("Only here.")
    assert memory.undo() == made[-1].body
    memory.switch("main")
    assert memory.to_messages() == before
    assert "Only here." not in str(before)
    memory.switch("other")
    assert "Only here." in str(memory.to_messages())
    for _ in range(20):
        try:
            memory.undo()
        except NothingToUndo:
            break
    assert memory.verify().ok


def test_a_summary_that_one_branch_wrote_is_never_seen_in_another():
    class Silent:
        name, window = "silent", 8_000

        def write(self, request):
            raise ModelError("nothing to say")

    secret = "the-secret-of-main"
    memory = opened(summarizer=Silent(), budget=3_000)
    played(memory, 4)
    memory.fork(name="other")
    for number in range(4, 30):
        memory.record(*turn(number))
        written = SummaryRecord(1, memory._runtime.log.head(), Summary(state=SummaryItem(secret, author="silent")))
        memory._runtime.state.summaries.records.append(written)
        memory.view()
    assert secret in str(memory.to_messages()), "the test shows nothing: the summary is not even in its own branch"
    memory.switch("other")
    for number in range(4, 30):
        memory.record(*turn(number, "other"))
        assert secret not in str(memory.to_messages())
    assert any(isinstance(each.body, Compaction) for each in memory._runtime.log.read())
    memory.switch("main")
    assert secret in str(memory.to_messages())


def test_recall_finds_what_was_before_the_fork_and_nothing_after_it(tmp_path):
    with opened(tmp_path / "run.db") as memory:
        played(memory, 3, "early")
        memory.fork(name="other")
        memory.record(*turn(50, "mainly"))
        assert memory.recall("mainly_50")
        memory.switch("other")
        memory.record(*turn(60, "otherwise"))
        assert memory.recall("early_1")[0].handle.startswith("s3")
        assert all("mainly" not in each.text for each in memory.recall("mainly_50"))
        assert "otherwise_60" in memory.recall("otherwise_60")[0].text
        across = {each.session for each in memory.recall("early_1 mainly_50", across=True)}
        assert across == {"default", memory._runtime.log.session}
        memory.switch("main")
        assert "mainly_50" in memory.recall("mainly_50")[0].text
        assert all("otherwise" not in each.text for each in memory.recall("otherwise_60"))


def test_places_are_positions_checkpoints_and_handles():
    memory = opened()
    played(memory, 4)
    memory.checkpoint("half way")
    memory.record(*turn(9))
    assert memory.fork().at == memory._runtime.log.head()
    assert memory.fork(at=0).at == 0
    assert memory.fork(at="half way").at == 10
    assert memory.fork(at="s3").at == 5, "a step without its result was forked off"
    assert memory.fork(at="s1-6").at == 7
    for at in (-1, 99, 2.5, True):
        with pytest.raises(ConfigurationError):
            memory.fork(at=at)
    for at in ("nowhere", "s99"):
        with pytest.raises(UnknownCheckpoint):
            memory.fork(at=at)
    assert len(memory.branches()) == 6


def test_a_branch_of_nothing_and_a_branch_of_a_branch_of_a_branch():
    memory = opened()
    played(memory, 3)
    memory.rewind(0)
    assert memory.steps == ()
    memory.record(TaskStep("From nothing."))
    for depth in range(30):
        memory.rewind(memory._runtime.log.head())
        memory.record(TaskStep(f"depth {depth}"))
    assert [each.content for each in memory.steps] == ["From nothing.", *(f"depth {n}" for n in range(30))]
    low = memory.rewind("s4")
    assert low.parent == "branch-5", "a fork before the parent's own entries hangs on whoever has them"
    assert len(memory.steps) == 5
    assert memory.verify().ok


def test_compare_tells_what_is_common_and_what_is_not():
    memory = opened()
    played(memory, 3)
    memory.fork(at="s2", name="other")
    memory.switch("other")
    memory.record(TaskStep("Another way."))
    found = memory.compare("main", "other")
    assert (found.common, found.handle) == (3, "s0-2")
    assert [at for at, _ in found.left] == [3, 5]
    assert found.right == ((3, TaskStep("Another way.")),)
    with pytest.raises(UnknownBranch, match="'other'"):
        memory.compare("main", "nobody")


def test_a_result_of_a_call_before_the_fork_is_accepted_on_each_branch_for_itself():
    memory = opened()
    action, seen = turn(1)
    memory.record(TaskStep("Go."), action)
    memory.fork(name="other")
    memory.record(seen)
    memory.switch("other")
    assert memory.resume().unknown[0].id == "c1"
    memory.record(seen)
    assert "src/word_1.py" in str(memory.to_messages())
    assert memory.verify().ok


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 101, 7, "main"])
def test_what_is_no_name_of_a_branch_is_refused(name):
    memory = opened()
    with pytest.raises(ConfigurationError):
        memory.fork(name=name)
    with pytest.raises(UnknownBranch):
        memory.switch("nobody")
    assert [each.name for each in memory.branches()] == ["main"]


def test_a_readonly_memory_looks_at_branches_and_makes_none(tmp_path):
    with opened(tmp_path / "run.db") as memory:
        played(memory, 3)
        memory.fork(at=1, name="other")
    with opened(tmp_path / "run.db", readonly=True) as memory:
        assert [each.name for each in memory.branches()] == ["main", "other"]
        with pytest.raises(LogUnwritable):
            memory.fork()
        with pytest.raises(LogUnwritable):
            memory.switch("other")
        assert len(memory.steps) == 4
    with opened(tmp_path / "run.db", readonly=True, branch="other") as memory:
        assert len(memory.steps) == 1


def test_damage_before_the_fork_and_behind_it_is_named_by_the_branch(tmp_path):
    path = tmp_path / "run.db"
    with opened(path) as memory:
        played(memory, 3)
        memory.fork(at=3, name="other")
        memory.switch("other")
        memory.record(TaskStep("Here."), TaskStep("And here."))
        own = memory._runtime.log.own.session
    for session, position, expected in (("default", 5, None), (own, 1, 4), ("default", 1, 1)):
        with SQLiteLog(path, session=session)._using(writing=True) as database:
            database.execute(
                "UPDATE entries SET body = replace(body, 'content', 'kontent') WHERE session = ? AND position = ?",
                (session, position),
            )
        log = SQLiteLog(path)
        found = BranchLog((BranchPiece(log, 0, 0, 3),), SQLiteLog(path, session=own)).verify()
        assert (expected is None) == found.ok
        assert expected is None or expected in {each.position for each in found.problems}


def test_another_history_before_the_fork_does_not_pass():
    trunk, own = InMemoryLog(), InMemoryLog(session="own")
    trunk.append([TaskStep("a"), TaskStep("b")], after=0, at=0)
    own.append([TaskStep("mine")], after=0, at=0)
    digest = [each.digest for each in trunk.read()][-1]
    assert BranchLog((BranchPiece(trunk, 0, 0, 2, digest),), own).verify().ok
    other = InMemoryLog()
    other.append([TaskStep("a"), TaskStep("changed")], after=0, at=0)
    assert [each.position for each in BranchLog((BranchPiece(other, 0, 0, 2, digest),), own).verify().problems] == [1]
    short = InMemoryLog()
    assert not BranchLog((BranchPiece(short, 0, 0, 2, digest),), own).verify().ok


def test_a_branch_is_exported_as_a_session_of_its_own(tmp_path):
    with opened(tmp_path / "run.db") as memory:
        played(memory, 3)
        memory.rewind("s2")
        memory.record(TaskStep("Another way."))
        steps = memory.steps
        export_session(memory._runtime.log, tmp_path / "branch.jsonl")
    log = SQLiteLog(tmp_path / "other.db", session="copy")
    import_session(tmp_path / "branch.jsonl", log)
    memory = AgentMemory(log, budget=5_000)
    assert memory.steps == steps
    assert memory.verify().ok
    memory.close()


def test_a_run_without_branches_opens_one_log(tmp_path, monkeypatch):
    opened_logs, whole = [], SQLiteLog.__init__
    monkeypatch.setattr(
        SQLiteLog, "__init__", lambda self, *at, **how: (opened_logs.append(how), whole(self, *at, **how))[1]
    )
    with opened(tmp_path / "run.db") as memory:
        memory.record(TaskStep("Go."))
        assert [each.name for each in memory.branches()] == ["main"]
    assert len(opened_logs) == 1
    with opened(tmp_path / "run.db") as memory:
        memory.rewind(0)
    with opened(tmp_path / "run.db") as memory:
        assert [each.name for each in memory.branches()] == ["main", "branch-1"]


def test_a_fork_writes_one_entry_whatever_the_length(tmp_path):
    with opened(tmp_path / "run.db", budget=1_000_000) as memory:
        played(memory, 60)
        size = [sum(1 for _ in _rows(tmp_path / "run.db"))]
        for _ in range(5):
            memory.fork()
            size.append(sum(1 for _ in _rows(tmp_path / "run.db")))
        assert [b - a for a, b in itertools.pairwise(size)] == [1] * 5


def _rows(path):
    with SQLiteLog(path)._using(writing=False) as database:
        return database.execute("SELECT 1 FROM entries").fetchall()


def test_the_command_line_shows_the_branches_and_hides_where_they_lie(tmp_path, capsys):
    db = str(tmp_path / "run.db")
    with opened(db, session="web") as memory:
        played(memory, 3)
        memory.checkpoint("tests pass")
        memory.fork(at="tests pass", name="docs")
        memory.rewind("s2")
        memory.record(TaskStep("Another way."))
        memory.checkpoint("there")
    assert main(["log", db, "--graph"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "main: 8 entries",
        "│  s7 checkpoint: tests pass",
        "├─ docs: 8 entries, from main at 8",
        "└─ branch-1 *: 5 entries, from main at 3",
        "      s4 checkpoint: there",
    ]
    assert main(["log", db, "--graph", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == ["main", "docs", "branch-1"]
    assert main(["log", db]) == 0
    assert main(["resume", db, "--look", "--json"]) == 0
    assert main(["export", db, str(tmp_path / "run.jsonl")]) == 0
    assert main(["verify", db]) == 0
    capsys.readouterr()
    for name in ("pagein:branches:web", "pagein:branch:0:web"):
        with pytest.raises(ConfigurationError):
            AgentMemory.open(db, session=name)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_any_walk_over_branches_keeps_each_as_it_was(tmp_path, seed):
    chance, path = random.Random(seed), tmp_path / "run.db"
    memory = opened(path)
    wanted, current, said = {"main": ()}, "main", 0
    for _ in range(60):
        move = chance.choice(("say", "say", "say", "fork", "switch", "rewind", "compact", "undo", "pin", "reopen"))
        if move == "say":
            said += 1
            memory.record(TaskStep(f"said {said}"), *turn(said))
            wanted[current] = memory.steps
            assert memory.steps[-2].content == f"said {said}"
        elif move in ("fork", "rewind"):
            at = chance.randint(0, memory._runtime.log.head())
            made = memory.fork(at=at) if move == "fork" else memory.rewind(at)
            with opened(path, branch=made.name, readonly=True) as other:
                wanted[made.name] = other.steps
            before = wanted[current]
            assert [each.content for each in wanted[made.name]] == [
                each.content for each in before[: len(wanted[made.name])]
            ]
            current = made.name if move == "rewind" else current
        elif move == "switch":
            current = chance.choice(list(wanted))
            memory.switch(current)
        elif move == "compact":
            memory.compact()
        elif move == "pin":
            memory.pin(f"pin {chance.random()}")
        elif move == "undo":
            with contextlib.suppress(NothingToUndo):
                memory.undo()
        else:
            before = memory.to_messages()
            memory = opened(path)  # the old one is dropped, as in a crash
            assert memory.to_messages() == before
        assert memory.steps == wanted[current]
        assert memory.view().tokens <= 1_500
    for name, steps in wanted.items():
        memory.switch(name)
        assert memory.steps == steps
        assert memory.verify().ok


def test_branches_and_checkpoints_on_a_server(postgres):
    with opened(postgres.url, session="branches") as memory:
        memory.record(TaskStep("Go."), turn(1)[0])
        memory.checkpoint("here")
        memory.rewind("here")
        memory.record(TaskStep("Another way."))
    with opened(postgres.url, session="branches", resume=True) as memory:
        assert memory.steps[-1] == TaskStep("Another way.")
        assert memory.status().unknown[0].id == "c1"
        assert [each.name for each in memory.branches()] == ["main", "branch-1"]
        assert memory.compare("main", "branch-1").common == 3
        assert memory.verify().ok


def test_a_log_on_a_server_opens_its_branches_itself(postgres):
    with AgentMemory(PostgresLog(postgres.url, session="beside"), budget=1_500) as memory:
        memory.record(TaskStep("Go."))
        memory.fork(name="other")
        memory.switch("other")
        memory.record(TaskStep("Another way."))
    with opened(postgres.url, session="beside") as memory:
        memory.switch("other")
        assert memory.steps[-1] == TaskStep("Another way.")


def test_both_colours_do_the_same(tmp_path):
    async def twin():
        async with AsyncAgentMemory.open(tmp_path / "a.db", budget=1_500, clock=lambda: 0.0) as memory:
            await memory.record(TaskStep("Go."), *turn(1))
            await memory.fork(at=1, name="other")
            await memory.switch("other")
            await memory.record(TaskStep("Another way."))
            await memory.rewind("s1")
            return await memory.branches(), await memory.compare("main", "other"), await memory.to_messages()

    with AgentMemory.open(tmp_path / "b.db", budget=1_500, clock=lambda: 0.0) as memory:
        memory.record(TaskStep("Go."), *turn(1))
        memory.fork(at=1, name="other")
        memory.switch("other")
        memory.record(TaskStep("Another way."))
        memory.rewind("s1")
        same = memory.branches(), memory.compare("main", "other"), memory.to_messages()
    assert asyncio.run(twin()) == same


def test_threads_that_switch_and_record_never_mix_branches():
    memory = opened(budget=100_000)
    memory.record(TaskStep("Go."))
    memory.fork(name="other")
    failures = []

    def record():
        try:
            for number in range(40):
                memory.record(TaskStep(f"t{number}"))
        except Exception as error:  # noqa: BLE001 - told to the test's own thread
            failures.append(error)

    thread = threading.Thread(target=record)
    thread.start()
    for number in range(20):
        memory.switch("other" if number % 2 else "main")
    thread.join()
    assert failures == []
    found = []
    for name in ("main", "other"):
        memory.switch(name)
        assert memory.verify().ok
        found += [each.content for each in memory.steps[1:]]
    assert sorted(found) == sorted(f"t{number}" for number in range(40))


class Behind:
    """A branch with entries before its fork, seen as if it began there: what ``LogTests`` says holds of its own part."""

    def __init__(self, log, by):
        self.log, self.by = log, by
        self.session, self.tenant = log.session, log.tenant

    def _to(self, entry):
        return type(entry)(entry.position - self.by, entry.at, entry.body, entry.digest)

    def head(self):
        return self.log.head() - self.by

    def append(self, bodies, *, after, at):
        try:
            return tuple(map(self._to, self.log.append(bodies, after=after + self.by, at=at)))
        except Conflict as error:
            raise Conflict(error.expected - self.by, error.head - self.by) from error

    def read(self, start=0, stop=None):
        return map(self._to, self.log.read(max(start, 0) + self.by, None if stop is None else max(stop, 0) + self.by))

    def verify(self):
        found = self.log.verify()
        moved = tuple(type(each)(each.position - self.by, each.what) for each in found.problems)
        return type(found)(found.entries - self.by, moved)

    def close(self):
        self.log.close()


class TestBranchLog(LogTests):
    @pytest.fixture
    def open_log(self, tmp_path) -> OpenLog:
        trunk = SQLiteLog(tmp_path / "trunk.db")
        trunk.append([TaskStep("a"), TaskStep("b"), Pin("c"), TaskStep("not in the branch")], after=0, at=0)

        def open_log(session="default", tenant=""):
            own = SQLiteLog(tmp_path / "own.db", session=session, tenant=tenant, synchronous="OFF")
            return Behind(BranchLog((BranchPiece(trunk, 0, 0, 3),), own), 3)

        return open_log

    def stored_bytes(self, log):
        with log.log.own._using(writing=False) as database:
            bodies = database.execute("SELECT sum(length(CAST(body AS BLOB))) FROM entries").fetchone()[0]
            return bodies + (database.execute("SELECT sum(length(data)) FROM blobs").fetchone()[0] or 0)

    def tamper(self, log, position):
        with log.log.own._using(writing=True) as database:
            database.execute(
                "UPDATE entries SET body = replace(body, 'content', 'kontent') WHERE session = ? AND position = ?",
                (log.session, position),
            )


def test_the_rows_of_a_branch_are_in_order():
    trunk, own = InMemoryLog(), InMemoryLog(session="own")
    trunk.append([TaskStep("a"), TaskStep("b")], after=0, at=1.0)
    own.append([TaskStep("c")], after=0, at=2.0)
    rows = list(BranchLog((BranchPiece(trunk, 0, 0, 1),), own).rows())
    assert [(each.position, each.at) for each in rows] == [(0, 1.0), (1, 2.0)]
    assert all(isinstance(each, Row) for each in rows)


def test_a_branch_is_dropped_for_good_and_those_forked_from_it_stay(tmp_path):
    path = tmp_path / "run.db"
    with opened(path) as memory:
        memory.record(TaskStep("Go."), *turn(1))
        memory.fork(name="dead")
        memory.switch("dead")
        memory.record(*turn(2))
        memory.fork(name="child")
        for name in ("dead", "main"):
            with pytest.raises(ConfigurationError, match="the run goes on with"):
                memory.drop(name)
        memory.switch("child")
        memory.drop("dead")
        assert [each.name for each in memory.branches()] == ["main", "child"]
        assert len(memory.steps) == 3
        with pytest.raises(ConfigurationError, match="there is a branch 'dead' already"):
            memory.fork(name="dead")
        for gone in (memory.switch, memory.drop):
            with pytest.raises(UnknownBranch, match="'dead'"):
                gone("dead")
        assert memory.verify().ok

    async def again():
        async with await AsyncAgentMemory.open(path, budget=1_500) as memory:
            await memory.fork(name="other")
            await memory.drop("other")
            return [each.name for each in await memory.branches()], await memory.steps

    names, steps = asyncio.run(again())
    assert names == ["main", "child"]
    assert len(steps) == 3


def test_another_memory_on_a_branch_of_a_branch_from_the_first_step_sees_an_erasure(tmp_path):
    one = AgentMemory.open(tmp_path / "run.db", budget=5_000)
    one.record(TaskStep("root"))
    one.switch(one.fork(at=0).name)
    one.record(*(TaskStep(f"word {number}") for number in range(6)))
    branch = one.fork(at=4).name
    one.switch(branch)
    one.record(TaskStep("the secret is zq4xw"))
    with AgentMemory.open(tmp_path / "run.db", budget=5_000) as other:
        other.switch(branch)
        assert "zq4xw" in str(other.view().messages())
        one.erase("s4")
        assert "zq4xw" not in str(other.view().messages())
        one.erase_session()
        with pytest.raises(LogErased):
            other.view()
    one.close()
