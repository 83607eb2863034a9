"""The saver under LangGraph's own conformance suite, and what that suite does not ask."""

import asyncio
import contextlib
import sqlite3

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from pagein import AgentMemory, ConfigurationError, FormatError, LogClosed, LogUnreadable, TaskStep
from pagein.integrations.langgraph import PageinSaver, PageinStore

pytestmark = pytest.mark.slow

CAPABILITIES = {
    "put", "put_writes", "get_tuple", "list", "delete_thread", "delete_for_runs", "copy_thread", "prune",
}  # fmt: skip


@pytest.fixture
def saver(tmp_path):
    with PageinSaver(tmp_path / "run.db", synchronous="OFF") as made:
        yield made


def conforms(path):
    @checkpointer_test(name="PageinSaver")
    async def fresh():
        async with PageinSaver(path, synchronous="OFF") as made:
            yield made

    return asyncio.run(validate(fresh))


def test_it_conforms_in_every_capability(tmp_path):
    report = conforms(tmp_path / "run.db")
    assert {name for name, each in report.results.items() if each.passed} == CAPABILITIES
    # A report says FULL where nothing was tested, too.
    assert sum(each.tests_passed for each in report.results.values()) >= 70
    assert [each.failures for each in report.results.values() if each.failures] == []
    assert report.conformance_level() == "FULL"


def test_the_suite_sees_a_saver_that_forgets(tmp_path, monkeypatch):
    monkeypatch.setattr(PageinSaver, "delete_thread", lambda self, thread: None)
    report = conforms(tmp_path / "run.db")
    assert report.results["delete_thread"].passed is False


# -- against the saver in memory, move by move


def config(thread, checkpoint=None, ns=""):
    named = {"thread_id": thread, "checkpoint_ns": ns}
    return {"configurable": named | ({"checkpoint_id": checkpoint} if checkpoint else {})}


def grow(saver, thread, count, *, start=None, values=None):
    """A conversation of ``count`` messages, saved after each; gives the configs."""
    found, messages, version = [], list(values or ()), None
    at = start or config(thread)
    for number in range(count):
        messages = [*messages, HumanMessage(f"message {number} " + "word " * 40, id=f"{thread}-{number}")]
        version = saver.get_next_version(version, None)
        checkpoint = empty_checkpoint() | {
            "id": str(uuid6(clock_seq=number)),
            "channel_values": {"messages": messages, "count": number},
            "channel_versions": {"messages": version, "count": version},
        }
        at = saver.put(at, checkpoint, {"source": "loop", "step": number}, {"messages": version, "count": version})
        found.append(at)
    return found


def test_every_version_of_a_growing_list_comes_back(saver):
    for count, each in enumerate(grow(saver, "a", 100), 1):
        values = saver.get_tuple(each).checkpoint["channel_values"]
        assert [m.id for m in values["messages"]] == [f"a-{number}" for number in range(count)]
        assert all(type(m) is HumanMessage for m in values["messages"])
        assert values["count"] == count - 1


def test_a_thread_of_n_messages_costs_n_messages(tmp_path):
    with PageinSaver(tmp_path / "run.db", synchronous="OFF") as saver:
        grow(saver, "a", 200)
    ours = (tmp_path / "run.db").stat().st_size
    whole = InMemorySaver()
    grow(whole, "a", 200)
    assert ours < 0.1 * sum(len(body) for _, body in whole.blobs.values())


def test_a_list_that_was_edited_in_the_middle_is_what_it_says(saver):
    (at,) = grow(saver, "a", 3)[-1:]
    before = saver.get_tuple(at).checkpoint
    edited = [before["channel_values"]["messages"][0], AIMessage("instead", id="x")]
    version = saver.get_next_version(before["channel_versions"]["messages"], None)
    changed = before | {
        "id": str(uuid6(clock_seq=9)),
        "channel_values": {"messages": edited},
        "channel_versions": {"messages": version},
    }
    saver.put(at, changed, {"source": "update", "step": 3}, {"messages": version})
    assert saver.get_tuple(config("a")).checkpoint["channel_values"]["messages"] == edited
    assert len(saver.get_tuple(at).checkpoint["channel_values"]["messages"]) == 3


def test_a_version_said_again_with_other_words_takes_none_with_it(saver):
    def put(number, version, texts):
        checkpoint = empty_checkpoint() | {
            "id": f"{number:04}",
            "channel_values": {"texts": texts},
            "channel_versions": {"texts": version},
        }
        return saver.put(config("a"), checkpoint, {}, {"texts": version})

    put(1, 1, ["a", "b"])
    second = put(2, 2, ["a", "b", "c"])
    put(3, 1, ["x", "y"])
    assert saver.get_tuple(second).checkpoint["channel_values"]["texts"] == ["a", "b", "c"]
    assert saver.get_tuple(config("a")).checkpoint["channel_values"]["texts"] == ["x", "y"]


@pytest.mark.parametrize("keep", [0, 40, 70])
def test_what_is_pruned_leaves_what_is_kept_whole_and_no_rest(saver, tmp_path, keep):
    grow(saver, "a", 70 if keep else 5)
    grow(saver, "b", 3)
    saver.prune(["a"], strategy="keep_latest" if keep else "delete")
    latest = saver.get_tuple(config("a"))
    assert (latest is None) == (not keep)
    if latest:
        assert len(latest.checkpoint["channel_values"]["messages"]) == 70
    with contextlib.closing(sqlite3.connect(tmp_path / "run.db")) as database, database:
        left = dict(database.execute("SELECT thread, count(*) FROM langgraph_elements GROUP BY thread"))
        channels = dict(database.execute("SELECT thread, count(*) FROM langgraph_channels GROUP BY thread"))
    database.close()
    assert left == ({"a": 70, "b": 3} if keep else {"b": 3})
    assert channels["b"] == 6
    assert channels.get("a", 0) == (2 if keep else 0)
    assert len(saver.get_tuple(config("b")).checkpoint["channel_values"]["messages"]) == 3


@pytest.mark.skipif(
    not hasattr(BaseCheckpointSaver, "get_delta_channel_history"), reason="langgraph-checkpoint 3 has no DeltaChannel"
)
def test_pruning_keeps_what_a_delta_channel_is_rebuilt_from(saver):
    at, wanted = config("a"), []
    for number in range(6):
        values = {"log": ["whole"]} if number == 2 else {}
        version = f"{number:03}"
        checkpoint = empty_checkpoint() | {
            "id": f"{number:04}", "channel_values": values, "channel_versions": {"log": version},
        }  # fmt: skip
        at = saver.put(
            at, checkpoint, {"counters_since_delta_snapshot": {"log": [1, 1]}}, {"log": version} if values else {}
        )
        saver.put_writes(at, [("log", number)], f"task-{number}")
        wanted.append(at)
    before = saver.get_delta_channel_history(config=wanted[-1], channels=["log"])
    saver.prune(["a"])
    assert saver.get_delta_channel_history(config=wanted[-1], channels=["log"]) == before
    assert [each.checkpoint["id"] for each in saver.list(config("a"))] == ["0005", "0004", "0003", "0002"]


def test_forks_of_one_checkpoint_do_not_share_a_version(saver):
    (at,) = grow(saver, "a", 2)[-1:]
    for words in ("left", "right"):
        version = saver.get_next_version("1.0", None)
        checkpoint = empty_checkpoint() | {
            "id": str(uuid6()), "channel_values": {"messages": [words, words]}, "channel_versions": {"messages": version},
        }  # fmt: skip
        saver.put(at, checkpoint, {"source": "fork"}, {"messages": version})
    said = [each.checkpoint["channel_values"]["messages"][0] for each in saver.list(config("a"), limit=2)]
    assert said == ["right", "left"]


def test_a_save_that_fails_half_way_saved_nothing(saver):
    grow(saver, "a", 1)

    checkpoint = empty_checkpoint() | {
        "channel_values": {"good": [1, 2], "bad": object()}, "channel_versions": {"good": 1, "bad": 1},
    }  # fmt: skip
    with pytest.raises(TypeError):
        saver.put(config("a"), checkpoint, {}, {"good": 1, "bad": 1})
    with pytest.raises(TypeError):
        saver.put_writes(config("a", "0"), [("good", 1), ("bad", object())], "task")
    assert len(list(saver.list(config("a")))) == 1
    assert saver._tables.rows("SELECT count(*) FROM langgraph_channels") == [(2,)]
    assert saver._tables.rows("SELECT count(*) FROM langgraph_writes") == [(0,)]


class Key:
    """A cipher for the test: it hides nothing, and never says the same twice."""

    made = 0

    def encrypt(self, plain):
        self.made += 1
        return "key", self.made.to_bytes(4) + plain[::-1]

    def decrypt(self, name, cipher):
        return cipher[4:][::-1]


def test_what_is_encrypted_is_kept_as_it_is(tmp_path):
    serde = EncryptedSerializer(Key(), JsonPlusSerializer())
    with PageinSaver(tmp_path / "run.db", serde=serde) as saver:
        (at,) = grow(saver, "a", 5)[-1:]
        assert len(saver.get_tuple(at).checkpoint["channel_values"]["messages"]) == 5
    assert b"message 4" not in (tmp_path / "run.db").read_bytes()


def test_tenants_do_not_see_each_other(tmp_path):
    with PageinSaver(tmp_path / "run.db", tenant="one") as one, PageinSaver(tmp_path / "run.db", tenant="two") as two:
        grow(one, "a", 2)
        assert two.get_tuple(config("a")) is None
        assert list(two.list(None)) == []
        two.delete_thread("a")
        assert len(list(one.list(None))) == 2


def test_it_shares_the_file_with_the_log(tmp_path):
    with (
        AgentMemory.open(tmp_path / "run.db", session="a", budget=500) as memory,
        PageinSaver(tmp_path / "run.db", synchronous="OFF") as saver,
    ):
        memory.record(TaskStep("Hi"))
        grow(saver, "a", 2)
        memory.record(TaskStep("Bye"))
        assert memory.verify().ok
        saver.delete_thread("a")
        assert len(memory.steps) == 2


# -- in a graph


def approving():
    def ask(state):
        return {"messages": [AIMessage(f"You said {interrupt('Well?')}.")]}

    builder = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    return builder


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_an_interrupt_goes_on_in_another_process_s_saver(tmp_path, is_async):
    for given in ({"messages": [HumanMessage("Hi")]}, Command(resume="yes")):
        with PageinSaver(tmp_path / "run.db", synchronous="OFF") as saver:
            graph = approving().compile(checkpointer=saver)
            done = asyncio.run(graph.ainvoke(given, config("a"))) if is_async else graph.invoke(given, config("a"))
    assert done["messages"][-1].content == "You said yes."


# -- misuse


def test_misuse_is_told(saver, tmp_path):
    with pytest.raises(FormatError, match="a checkpoint needs a thread"):
        saver.get_tuple({"configurable": {}})
    with pytest.raises(ConfigurationError, match="keep_latest"):
        saver.prune(["a"], strategy="some")
    with pytest.raises(ConfigurationError, match="SQLite file"):
        PageinSaver("postgresql://localhost/x")
    saver.close()
    saver.close()
    with pytest.raises(LogClosed):
        saver.get_tuple(config("a"))
    (tmp_path / "other").write_text("not a database, and long enough to be looked at" * 20)
    with pytest.raises(LogUnreadable):
        PageinSaver(tmp_path / "other")


def test_a_forked_process_opens_its_own(saver, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: -1)
        with pytest.raises(LogClosed, match="forked"):
            saver.get_tuple(config("a"))
        saver.close()
    assert saver.get_tuple(config("a")) is None, "the parent's connection is open"


@pytest.mark.parametrize("owner", [PageinSaver, PageinStore])
@pytest.mark.parametrize("tenant", [None, 7, b"x", lambda config: "acme"], ids=["None", "7", "bytes", "a function"])
def test_a_tenant_that_is_no_name_is_refused_at_once(tmp_path, owner, tenant):
    with pytest.raises(ConfigurationError, match="tenant must be text"):
        owner(tmp_path / "run.db", tenant=tenant)
