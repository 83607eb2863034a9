"""What one memory erases, another that is open on the run says no more from its next verb on; and it goes on."""

import asyncio
import contextlib
import inspect

import pytest

from pagein import ActionStep, AgentMemory, AsyncAgentMemory, Conflict, LogErased, Observation, TaskStep, ToolCall
from pagein.backends.memory import InMemoryLog

SECRET = "xanthippe-4711"
MESSAGES = [{"role": "user", "content": f"I am {SECRET}"}, {"role": "assistant", "content": "Hello."}]


class Two:
    """Two memories on one run: the one that erases, and one of a colour that has it open meanwhile."""

    def __init__(self, colour, opened, stack):
        self.runner = stack.enter_context(asyncio.Runner()) if colour == "async" else None
        self.opened, self.stack = opened, stack
        self.eraser = stack.enter_context(contextlib.closing(opened(AgentMemory)))
        self.other = opened(AsyncAgentMemory if colour == "async" else AgentMemory)
        stack.callback(lambda: self.call("close"))

    def call(self, verb, *given, **more):
        """A verb of the memory that has it open."""
        found = getattr(self.other, verb)
        found = found(*given, **more) if callable(found) else found
        return self.runner.run(_awaited(found)) if inspect.isawaitable(found) else found

    def says(self):
        """All that it gives out."""
        told = [self.call("to_messages"), self.call("steps"), self.call("recall", SECRET)]
        return f"{told} {[each.body for each in self.other._runtime.log.read()]}"


async def _awaited(given):
    return await given


@pytest.fixture(params=["sync", "async"])
def colour(request):
    return request.param


@pytest.fixture(params=["memory", "file", "server"])
def two(request, colour, tmp_path):
    with contextlib.ExitStack() as stack:
        options = {"budget": 2_000}
        if request.param == "memory":
            log = InMemoryLog()
            yield Two(colour, lambda kind: kind(log, **options), stack)
            return
        url = tmp_path / "run.db"
        if request.param == "server":
            url = request.getfixturevalue("postgres").url
        name = f"heals {request.node.name} {tmp_path}"
        yield Two(colour, lambda kind: kind.open(url, session=name, **options), stack)


def turn(number, said):
    call = ToolCall(f"c{number}", "read", f'{{"path": "file{number}.py"}}')
    return ActionStep(f"I look at {said}.", (call,)), Observation(call.id, f"{said}\n" * 30)


def filled(two, count=14):
    """The other memory records and looks; something left its view. The secret is at s1."""
    two.call("record", TaskStep("Find the customer."), *turn(0, SECRET))
    for number in range(1, count):
        two.call("record", *turn(number, f"part {number}"))
        two.call("view")
    assert SECRET in two.says()


@pytest.mark.slow
def test_the_next_view_says_it_no_more_and_the_next_step_is_recorded(two):
    filled(two)
    done = two.eraser.erase("s1")
    assert done.entries == 2
    assert SECRET not in str(two.call("to_messages"))
    assert SECRET not in two.says()
    assert two.call("expand", "s1.0") == "[erased]"
    written = two.call("record", TaskStep("Go on."))
    assert written.last == two.eraser._runtime.log.head()
    fresh = two.stack.enter_context(contextlib.closing(two.opened(AgentMemory)))
    assert two.call("view").entries == fresh.view().entries
    found = two.call("verify")
    assert (found.ok, found.erased > 1) == (True, True)


@pytest.mark.slow
def test_a_step_is_recorded_behind_an_erasure_without_a_look(two):
    filled(two, 3)
    two.eraser.erase("s1")
    two.call("record", TaskStep("Go on."))
    two.call("pin", "Stay.")
    assert SECRET not in two.says()
    assert two.call("verify").ok


def test_what_another_host_said_beside_it_is_still_told_of_by_a_conflict(two):
    filled(two, 3)
    two.eraser.erase("s1")
    two.eraser.record(TaskStep("Mine."))
    with contextlib.suppress(Conflict):
        two.call("record", TaskStep("Go on."))
    assert SECRET not in two.says()
    two.call("record", TaskStep("Go on again."))
    assert [each for each in two.call("steps") if isinstance(each, TaskStep)][-1].content == "Go on again."
    assert two.call("verify").ok


def test_a_list_that_is_handed_over_again_brings_nothing_back(two):
    two.call("record_messages", MESSAGES)
    two.eraser.erase("s0")
    head = two.eraser._runtime.log.head()
    two.call("record_messages", [*MESSAGES, {"role": "user", "content": "Go on."}])
    assert two.eraser._runtime.log.head() == head + 1
    assert SECRET not in two.says()


def test_a_run_that_was_erased_whole_is_told_of_once_and_begun_anew(two):
    filled(two, 3)
    two.eraser.erase_session(reason="asked for")
    with pytest.raises(LogErased, match="call again"):
        two.call("record", *turn(9, "what comes too late"))
    assert two.call("steps") == ()
    two.call("record", TaskStep("A new run."))
    assert "A new run." in str(two.call("to_messages"))
    assert SECRET not in two.says()
    assert two.call("verify").ok


def test_a_run_that_was_erased_whole_and_begun_anew_by_another_is_not_mixed_with_it(two):
    filled(two, 3)
    head = two.other._runtime.log.head()
    two.eraser.erase_session()
    two.eraser.record(*(TaskStep(f"new {number}") for number in range(head + 3)))
    with pytest.raises(LogErased, match="call again"):
        two.call("view")
    assert [each.content for each in two.call("steps")] == [f"new {number}" for number in range(head + 3)]
    assert SECRET not in two.says()
    two.call("record", TaskStep("And on."))


# In a file


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


def test_a_branch_heals_too_where_what_it_was_forked_from_is_erased(path):
    with AgentMemory.open(path, budget=2_000) as memory, AgentMemory.open(path, budget=2_000) as other:
        memory.record(TaskStep(SECRET), *turn(1, "more"))
        with contextlib.suppress(Conflict):
            other.record(TaskStep("x"))
        other.rewind(3)
        assert SECRET in str(other.to_messages())
        memory.erase("s0")
        assert SECRET not in str(other.to_messages())
        other.record(TaskStep("On the branch."))
        assert other.verify().ok
        memory.erase_session()
        with pytest.raises(LogErased, match="call again"):
            other.view()
        assert [each.name for each in other.branches()] == ["main"]
        other.record(TaskStep("Anew."))
        assert other.verify().ok


def test_facts_that_go_with_a_step_are_shown_no_more_elsewhere(path):
    options = {"budget": 4_000, "user": "alice"}
    with AgentMemory.open(path, **options) as memory, AgentMemory.open(path, **options) as other:
        memory.record(TaskStep("Hello."), TaskStep(f"I live in {SECRET}."))
        memory.facts.add(f"Lives in {SECRET}.", sources=["s1"])
        with contextlib.suppress(Conflict):
            other.record(TaskStep("x"))
        assert SECRET in str(other.to_messages())
        assert other.facts.search(SECRET)
        assert memory.erase("s1").facts >= 1
        assert SECRET not in str(other.to_messages())
        assert SECRET not in str(other.facts.search(SECRET))
        assert SECRET not in str(other.facts.list())
        other.facts.add("Likes the sea.")
        other.record(TaskStep("Go on."))


def test_facts_of_a_run_alone_that_was_erased_are_stated_anew(path):
    with AgentMemory.open(path, facts=True) as memory, AgentMemory.open(path, facts=True) as other:
        memory.record(TaskStep("Hello."))
        other.facts.add(f"Is {SECRET}.", scope="session")
        memory.facts.add("Is here.", scope="session")
        memory.erase_session()
        other.facts.add("Is another.", scope="session")  # before any verb of the run
        assert [each.content for each in other.facts.list()] == ["Is another."]


def test_a_memory_that_may_only_read_says_it_no_more(path):
    with AgentMemory.open(path, budget=600) as memory:
        memory.record(TaskStep("Look."), *turn(0, SECRET))
        for number in range(1, 12):
            memory.record(*turn(number, f"part {number}"))
        with AgentMemory.open(path, budget=600, readonly=True) as reader:
            assert SECRET in str(reader.to_messages()) + str(reader.recall(SECRET))
            head = reader._runtime.state.fold.head
            assert head > memory._runtime.log.head(), "nothing left its view"
            memory.erase("s1")
            assert SECRET not in str(reader.to_messages())
            assert SECRET not in str(reader.recall(SECRET))
            assert SECRET not in str([each.messages for each in reader.view().entries])


def test_one_that_closes_without_a_look_keeps_no_snapshot_of_it(path):
    with AgentMemory.open(path) as memory:
        other = AgentMemory.open(path)
        other.record(*(TaskStep(f"{SECRET} {number}") for number in range(3)))
        memory.erase("s0-2")
        other.close()
    assert SECRET.encode() not in b"".join(each.read_bytes() for each in path.parent.glob("run.db*"))
    with AgentMemory.open(path) as memory:
        assert SECRET not in str(memory.to_messages())
