"""What is handed over wrongly is refused in words of ours, and before anything is opened or written."""

import asyncio
import collections
import contextlib
import copy
import functools
import json
import math
import pickle
from pathlib import Path

import pytest

from pagein import AgentMemory, AsyncAgentMemory, Budget, CallbackRegistry, MemoryStep, TaskStep, Usage
from pagein.errors import (
    BudgetError,
    ConfigurationError,
    FormatError,
    LogBusy,
    LogClosed,
    LogUnwritable,
    ProtocolError,
    UnknownHandle,
)
from pagein.events.steps import ActionStep, Image, Observation, Text, ToolCall
from pagein.worker import work


@pytest.mark.parametrize(
    ("item", "cure"),
    [("hi", r"TaskStep\('hi'\)"), ({"role": "user"}, "record_messages"), ([TaskStep("x")], "record_messages"), (None, "TaskStep")],
)  # fmt: skip
def test_what_is_no_step_is_not_recorded(memory, log, item, cure):
    with pytest.raises(ProtocolError, match=cure):
        memory.record(TaskStep("first"), item)
    assert log.head() == 0


@pytest.mark.parametrize(
    ("items", "cure"),
    [
        ([TaskStep(None)], "content is text"),
        ([TaskStep((Text("x"), Image("screen.png", "image/png")))], "read the file first"),
        ([ActionStep("x", (ToolCall("a", "f"),), (Observation("a", "y", "failed"),))], '"ok", "error" or "unknown"'),
        ([ActionStep("x", (ToolCall("a", "f"),)), Observation("a", "y", "failed")], '"ok", "error" or "unknown"'),
    ],
)
def test_what_no_step_may_have_is_said_in_words_of_ours(memory, log, items, cure):
    with pytest.raises(ProtocolError, match=cure):
        memory.record(*items)
    assert log.head() == 0


@pytest.mark.parametrize("budget", ["8000", 2.5, math.nan, True, [8000]])
def test_a_budget_is_a_whole_number(tmp_path, budget):
    with pytest.raises(BudgetError):
        Budget(budget)
    with pytest.raises(BudgetError, match="budget is a whole number of tokens"):
        AgentMemory.open(str(tmp_path / "run.db"), budget=budget)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("share", ["0.5", None, True])
def test_the_shares_of_a_budget_are_numbers(share):
    with pytest.raises(BudgetError):
        Budget(100, margin=share)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": 5}, "policy"),
        ({"model": 5}, "model"),
        ({"counter": 5}, "counter"),
        ({"clock": 5}, "clock"),
        ({"format": None}, "format"),
        ({"bugdet": 4000}, "unknown option 'bugdet': did you mean 'budget'"),
        ({"read_only": True}, "did you mean 'readonly'"),
        ({"max_tokens": 5}, "there are budget.*session, tenant, readonly"),
        ({"callbacks": {MemoryStep: asyncio.sleep}}, "nothing awaits"),
        ({"timeout": "5"}, "timeout"),
        ({"synchronous": 1}, "synchronous"),
        ({"user": 12}, "user is a name"),
        ({"user": ""}, "user is a name"),
        ({"project": lambda config: "shop"}, "project is a name"),
    ],
)
@pytest.mark.parametrize("kind", [AgentMemory, AsyncAgentMemory])
def test_a_bad_option_is_named_and_leaves_no_file_behind(tmp_path, kind, options, message):
    with pytest.raises(ConfigurationError, match=message):
        kind.open(str(tmp_path / "run.db"), **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("source", ["run.db", None])
def test_a_path_in_place_of_a_log_names_the_way_to_open_it(source):
    with pytest.raises(ConfigurationError, match=r"AgentMemory\.open"):
        AgentMemory(source, budget=8_000)


@pytest.mark.parametrize("url", [None, 5, b"run.db"])
def test_an_address_is_text(url):
    with pytest.raises(ConfigurationError, match="address"):
        AgentMemory.open(url)


def test_what_a_verb_takes_is_checked(memory):
    memory.record(TaskStep("x"))
    with pytest.raises(ConfigurationError, match="usage"):
        memory.observe_usage(Usage(None))
    with pytest.raises(ConfigurationError, match="usage"):
        memory.record_messages([{"role": "user", "content": "y"}], usage=Usage(None))
    with pytest.raises(BudgetError):
        memory.to_messages(max_tokens="3")
    with pytest.raises(ConfigurationError, match="keep_last_n"):
        memory.to_messages(keep_last_n="3")
    for text in ("", " ", None):
        with pytest.raises(ConfigurationError, match="pin"):
            memory.pin(text)
    for handle in (None, 1.5, True, "s9"):
        with pytest.raises(UnknownHandle):
            memory.expand(handle)
    with pytest.raises(UnknownHandle):
        memory.unpin(5)
    assert len(memory.steps) == 1


def test_a_closed_memory_answers_nothing():
    memory = AgentMemory.open(":memory:")
    memory.close()
    for ask in (lambda: memory.system_prompt, memory.report, lambda: memory.observe_usage(Usage(1))):
        with pytest.raises(LogClosed):
            ask()


def test_an_unknown_model_warns_once(caplog):
    AgentMemory.open(":memory:", model="no-such-model-of-anyone", budget=1_000)
    assert len(caplog.records) == 1


def filled(path):
    with AgentMemory.open(path, budget=700) as memory:
        for number in range(20):
            memory.record(TaskStep(f"go on {number}"), ActionStep(f"{number} " + "word " * 40))


def test_a_readonly_memory_is_viewed_and_not_written(tmp_path):
    path = str(tmp_path / "run.db")
    filled(path)
    with AgentMemory.open(path, budget=700, readonly=True, timeout=1) as memory:
        assert memory.view().tokens <= 700
        assert memory.to_messages() == memory.to_messages()
        assert memory.report().out
        assert memory.verify().ok
        assert len(memory.steps) == 40
        with pytest.raises(LogUnwritable, match="readonly"):
            memory.record(TaskStep("x"))
        memory.view()
        with pytest.raises(LogUnwritable, match="readonly"):
            memory.undo()  # the compaction of this view is in no log
        with pytest.raises(UnknownHandle):
            memory.expand(40)
    with AgentMemory.open(path, budget=100_000) as memory:
        assert memory._runtime.log.head() == 40


def test_a_readonly_memory_in_async_code(tmp_path):
    path = str(tmp_path / "run.db")
    filled(path)

    async def run():
        async with AsyncAgentMemory.open(path, budget=700, readonly=True, synchronous="NORMAL") as memory:
            assert (await memory.view()).tokens <= 700
            with pytest.raises(LogUnwritable):
                await memory.pin("x")

    asyncio.run(run())


def test_a_program_that_pins_its_rules_at_each_start_has_each_once(tmp_path):
    handles = set()
    for _ in range(3):
        with AgentMemory.open(tmp_path / "run.db", budget=4_000) as memory:
            handles.add(memory.pin("Never touch the production database."))
            memory.call_tool("pin", {"text": "The port is 8080."})
            assert str(memory.to_messages()).count("production database") == 1
            assert str(memory.to_messages()).count("8080") == 1
    (handle,) = handles
    with AgentMemory.open(tmp_path / "run.db", budget=4_000) as memory:
        memory.unpin(handle)
        assert memory.pin("Never touch the production database.") != handle


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"sesion": "a"}, "unknown filter 'sesion': there are since, until, role, across"),
        ({"since": "2026-01-01"}, "since is a time in seconds since the epoch, not '2026-01-01'"),
        ({"until": True}, "until is a time"),
        ({"role": 5}, "role is one or a tuple of"),
    ],
)
def test_a_filter_that_would_find_nothing_in_silence_is_refused(memory, filters, message):
    memory.record(TaskStep("The port is 8080."))
    with pytest.raises(ConfigurationError, match=message):
        memory.recall("port", **filters)


def test_what_is_no_queue_and_no_outcome_is_named(memory):
    with pytest.raises(ConfigurationError, match=r"WorkQueue\('run.db'\)"):
        list(work("run.db", once=True))
    memory.to_messages()
    with pytest.raises(ConfigurationError, match="an outcome is a word"):
        memory.note_outcome(5)


@pytest.mark.parametrize("kind", [AgentMemory, AsyncAgentMemory])
@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_memory_is_not_copied_and_the_error_names_the_cure(tmp_path, kind, copier):
    memory = kind.open(tmp_path / "run.db")
    with pytest.raises(ConfigurationError, match=rf"{kind.__name__}\.open\(address.*fork\(\)"):
        copier({"memory": memory})["memory"].__reduce__()
    memory.close() if kind is AgentMemory else asyncio.run(memory.close())


class AsyncCallback:
    async def __call__(self, step):
        """Never awaited."""


@pytest.mark.parametrize("callback", [asyncio.sleep, functools.partial(asyncio.sleep, 0), AsyncCallback()])
def test_a_callback_that_nobody_would_await_is_refused(callback):
    with pytest.raises(ConfigurationError, match="pass a plain function"):
        CallbackRegistry().register(MemoryStep, callback)


def test_an_async_memory_that_was_not_awaited_gives_no_empty_answer(tmp_path):
    filled(tmp_path / "run.db")

    async def run():
        memory = AsyncAgentMemory.open(tmp_path / "run.db", budget=700)
        for ask in (memory.report, lambda: memory.system_prompt):
            with pytest.raises(ConfigurationError, match="await it first"):
                ask()
        await memory
        assert len(memory.report().lines) > 1
        await memory.close()

    asyncio.run(run())


@pytest.mark.parametrize("query", [None, 5, b"port", ["port"]])
def test_a_query_is_text(memory, query):
    memory.record(TaskStep("The port is 8080."))
    with pytest.raises(ConfigurationError, match="a query is text"):
        memory.recall(query)


@pytest.mark.parametrize("error", [5, {"code": "context_length_exceeded"}])
def test_an_overflow_is_an_error_or_its_text(memory, error):
    with pytest.raises(ConfigurationError, match="or its text"):
        memory.handle_overflow(error)


@pytest.mark.parametrize("messages", ["Hello.", {"text": "Hello."}, None, 5])
def test_what_is_no_list_of_messages_is_shown_one(memory, messages):
    with pytest.raises(FormatError, match='"role": "user"'):
        memory.record_messages(messages)


async def coroutine():
    """A tool's result that was not awaited."""


async def async_generator():
    yield "line"


@pytest.mark.parametrize(
    ("result", "cure"), [(coroutine, "await it"), (async_generator, "await it"), (lambda: (x for x in "ab"), "list")]
)
def test_what_is_no_result_yet_is_not_recorded_as_its_repr(result, cure):
    pending = result()
    with pytest.raises(ProtocolError, match=cure):
        Observation.of("c", pending)
    if result is coroutine:
        pending.close()


def test_a_result_of_any_sequence_or_number_is_its_values():
    class Number:
        """As numpy has them: no array, and no number of Python."""

        shape = ()

        def item(self):
            return 3

    for value, values in (
        (collections.deque([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        (Number(), 3),
        ({"a": Number()}, {"a": 3}),
        ([collections.UserString("ab")], ["ab"]),
        ([memoryview(b"abcd")[::2]], [{"_type": "bytes", "base64": "YWM="}]),
    ):
        assert json.loads(Observation.of("c", value).result) == values


def test_a_home_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with AgentMemory.open("~/run.db") as memory:
        memory.record(TaskStep("x"))
    assert (tmp_path / "run.db").exists()


def test_no_free_descriptor_is_said_as_that(tmp_path):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(limits[0], 128), limits[1]))
        open_one = functools.partial(AgentMemory.open, tmp_path / "run.db", synchronous="OFF")
        with pytest.raises(LogBusy, match=r"close memories that are done.* up to ten"):
            opened.extend(open_one(session=f"s{number}") for number in range(128))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    for memory in opened:
        memory.record(TaskStep("x"))
        memory.close()


@pytest.mark.parametrize(("options", "recalls", "count"), [({}, False, 2), ({}, True, 4), ({"user": "ann"}, True, 10)])
def test_an_open_memory_has_as_many_descriptors_as_is_said(tmp_path, options, recalls, count):
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("only Linux counts them")
    with contextlib.ExitStack() as opened:
        counts = []
        for number in range(8):
            memory = opened.enter_context(AgentMemory.open(tmp_path / "run.db", session=f"s{number}", **options))
            memory.record(TaskStep("The port is 8080."))
            assert memory.to_messages()
            assert not recalls or memory.recall("port")
            counts.append(len(list(descriptors.iterdir())))
        assert counts[-1] - counts[1] == 6 * count  # SQLite keeps some more for all of a file
