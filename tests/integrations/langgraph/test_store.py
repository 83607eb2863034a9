"""The long-term store: what LangGraph's and LangChain's own store tests ask, and what durability asks beside."""

import asyncio
import math

import pytest
from langchain.agents import create_agent
from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_play import scripted
from langgraph.config import get_store
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from pagein import AgentMemory, ConfigurationError, FormatError
from pagein.integrations.langgraph import PageinByteStore, PageinStore

pytestmark = pytest.mark.slow


class Clock:
    """Seconds, that go on when they are told to."""

    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


class Letters(Embeddings):
    """A text's meaning is its letters."""

    def embed_query(self, text):
        return [text.lower().count(letter) / max(1, len(text)) for letter in "abcdefghijklmnopqrstuvwxyz"]

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    made = PageinStore(tmp_path / "run.db", clock=clock, synchronous="OFF")
    yield made
    made.close()


def keys(items):
    return [each.key for each in items]


def test_an_item_is_kept_replaced_and_deleted(store, clock):
    store.put(("users", "ann"), "name", {"first": "Ann", "tags": ["a", None]})
    first = store.get(("users", "ann"), "name")
    assert (first.value, first.namespace, first.key) == (
        {"first": "Ann", "tags": ["a", None]},
        ("users", "ann"),
        "name",
    )
    clock.now += 5
    store.put(("users", "ann"), "name", {"first": "Anne"})
    second = store.get(("users", "ann"), "name")
    assert second.value == {"first": "Anne"}
    assert second.created_at == first.created_at
    assert (second.updated_at - first.updated_at).total_seconds() == 5
    store.delete(("users", "ann"), "name")
    assert store.get(("users", "ann"), "name") is None


def test_a_batch_gives_its_results_in_order_and_reads_before_it_writes(store):
    store.put(("a",), "old", {"n": 1})
    ops = [
        GetOp(("a",), "old"),
        PutOp(("a",), "new", {"n": 2}),
        SearchOp(("a",)),
        ListNamespacesOp(),
        PutOp(("a",), "new", {"n": 3}),
        GetOp(("a",), "nowhere"),
    ]
    got, put, found, namespaces, again, nothing = asyncio.run(store.abatch(ops))
    assert (got.value, put, keys(found), namespaces, again, nothing) == ({"n": 1}, None, ["old"], [("a",)], None, None)
    assert store.get(("a",), "new").value == {"n": 3}


def test_a_batch_with_one_bad_value_writes_nothing(store):
    with pytest.raises(FormatError, match="the value of 'bad' is no JSON"):
        store.batch([PutOp(("a",), "good", {"n": 1}), PutOp(("a",), "bad", {"n": object()})])
    with pytest.raises(FormatError):
        store.put(("a",), "nan", {"n": math.nan})
    assert store.search(("a",)) == []


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"color": "red"}, ["one", "three"]),
        ({"score": {"$gt": 4.5}}, ["two", "three"]),
        ({"score": {"$gte": 4, "$lt": 9}}, ["one", "two"]),
        ({"color": {"$ne": "red"}}, ["two"]),
        ({"meta": {"lang": "de"}}, ["two"]),
        ({"meta.lang": "de"}, ["two"]),
        ({"color": "red", "score": {"$lte": 4}}, ["one"]),
        ({"color": {"$gt": "green"}}, ["one", "three"]),
        ({"nothing": {"$gt": 1}}, []),
        ({"x' OR 1=1 --": "red"}, []),
    ],
)
def test_a_filter_finds_what_it_says(store, wanted, found):
    store.put(("docs",), "one", {"color": "red", "score": 4})
    store.put(("docs",), "two", {"color": "blue", "score": 5, "meta": {"lang": "de", "n": 1}})
    store.put(("docs",), "three", {"color": "red", "score": 9})
    assert sorted(keys(store.search(("docs",), filter=wanted))) == sorted(found)
    with pytest.raises(ValueError, match=r"unknown operator '\$like'"):
        store.search(("docs",), filter={"color": {"$like": "r%"}})


def test_a_prefix_is_of_labels_not_of_letters(store):
    for namespace in (("a",), ("a", "b"), ("ab",), ("A",), ("a%",)):
        store.put(namespace, "k", {"at": list(namespace)})
    assert [each.namespace for each in store.search(("a",))] == [("a",), ("a", "b")]
    assert len(store.search(())) == 5
    odd = ("\x1f", "\\e", "\\")
    store.batch([PutOp(odd, "k", {})])
    assert store.batch([SearchOp(odd[:1])])[0][0].namespace == odd


@pytest.mark.parametrize("label", ["foo.bar", "", 1])
def test_a_batch_with_a_label_that_no_namespace_has_is_refused_whole(store, label):
    wrong = (
        GetOp((label,), "k"),
        PutOp(("a", label), "k", None),
        SearchOp((label,)),
        ListNamespacesOp((MatchCondition("suffix", (label,)),)),
    )
    for op in wrong:
        with pytest.raises(FormatError, match="is no label") as told:
            store.batch([PutOp(("a",), "k", {}), op])
        assert isinstance(told.value, InvalidNamespaceError)
        with pytest.raises(InvalidNamespaceError):
            asyncio.run(store.abatch([op]))
    assert store.search(()) == []


def test_namespaces_are_listed_by_prefix_suffix_wildcard_and_depth(store):
    for namespace in (("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "c", "f"), ("x",)):
        store.put(namespace, "k", {})
    assert store.list_namespaces(prefix=("a", "b"), max_depth=3) == [("a", "b", "c"), ("a", "b", "d")]
    assert store.list_namespaces(suffix=("f",)) == [("a", "c", "f")]
    assert store.list_namespaces(prefix=("a", "*", "d")) == [("a", "b", "d", "e"), ("a", "b", "d", "i")]
    assert store.list_namespaces(limit=2, offset=1) == [("a", "b", "d", "e"), ("a", "b", "d", "i")]
    both = (MatchCondition("prefix", ("a",)), MatchCondition("suffix", ("*", "f")))
    assert store.batch([ListNamespacesOp(both)]) == [[("a", "c", "f")]]


def test_a_query_finds_by_words_first_and_fills_the_limit(store):
    store.put(("docs",), "paging", {"text": "Demand paging moves pages in when they are needed."})
    store.put(("docs",), "cake", {"text": "Bake for an hour.", "notes": ["not a page in sight", {"deep": "paging"}]})
    store.put(("docs",), "none", {"text": "Nothing of the kind."})
    store.put(("docs",), "hidden", {"text": "paging paging paging"}, index=False)
    found = store.search(("docs",), query="demand paging")
    assert keys(found)[:2] == ["paging", "cake"]
    assert found[0].score > found[1].score > 0
    assert {each.key: each.score for each in found[2:]} == {"none": None, "hidden": None}
    assert keys(store.search(("docs",), query="demand paging", limit=1, offset=1)) == ["cake"]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_with_an_index_a_query_finds_by_meaning(tmp_path, is_async):
    index = {"dims": 26, "embed": Letters(), "fields": ["text", "more[*].text"]}
    store = PageinStore(tmp_path / "run.db", index=index, synchronous="OFF")
    puts = [
        PutOp(("d",), "abc", {"text": "abcabc", "zzz": "zzz"}),
        PutOp(("d",), "xyz", {"text": "xyz", "more": [{"text": "q"}, {"text": "zz"}]}),
        PutOp(("d",), "own", {"other": "mmm"}, index=["other"]),
        PutOp(("d",), "none", {"text": "zzz"}, index=False),
    ]
    ask = [SearchOp(("d",), query="zz"), SearchOp(("d",), query="m", limit=1)]

    async def awaited():
        await store.abatch(puts)
        return await store.abatch(ask)

    found, own = asyncio.run(awaited()) if is_async else (store.batch(puts), store.batch(ask))[1]
    assert keys(found)[0] == "xyz"
    assert (found[0].score, keys(own)) == (pytest.approx(1.0), ["own"])
    assert found[-1].key == "none"
    assert found[-1].score is None
    store.put(("d",), "xyz", {"text": "changed"})
    assert store.search(("d",), query="zz")[0].score < 0.9
    store.close()


def test_an_item_past_its_time_is_gone_unless_it_was_read(store, clock):
    store.put(("a",), "short", {"n": 1}, ttl=1)
    store.put(("a",), "read", {"n": 2}, ttl=1)
    store.put(("a",), "long", {"n": 3})
    clock.now += 50
    assert store.get(("a",), "read").value == {"n": 2}
    assert keys(store.search(("a",), filter={"n": 3}, refresh_ttl=False)) == ["long"]
    clock.now += 20
    assert keys(store.search(("a",), refresh_ttl=False)) == ["long", "read"]
    clock.now += 100
    store.put(("b",), "sweeps", {})
    assert store._tables.rows("SELECT key FROM langgraph_items ORDER BY key") == [("long",), ("sweeps",)]


def test_items_outlive_the_process_and_tenants_are_apart(tmp_path):
    for tenant in ("one", "two"):
        store = PageinStore(tmp_path / "run.db", tenant=tenant)
        store.put(("a",), "k", {"of": tenant})
        store.close()
    store = PageinStore(tmp_path / "run.db", tenant="one")
    assert [each.value for each in store.search(())] == [{"of": "one"}]
    store.close()


def test_a_tool_of_an_agent_reaches_the_store(store):
    @tool
    def remember(text: str) -> str:
        """Remember."""
        get_store().put(("facts",), "one", {"text": text})
        return "kept"

    from langchain_play import call

    model = scripted(lambda messages: "Done." if messages[-1].type == "tool" else call("remember", 1, text="heron"))
    create_agent(model, [remember], store=store).invoke({"messages": [HumanMessage("Remember heron.")]})
    assert store.search(("facts",), query="heron")[0].value == {"text": "heron"}


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_byte_store_is_langchain_s(tmp_path, is_async):
    store, other = (PageinByteStore(tmp_path / "run.db", name=name) for name in ("one", "two"))

    async def theirs():
        await store.amset([("foo", b"1"), ("bar", b"2"), ("foo", b"3")])
        await store.amdelete(["bar", "never"])
        return await store.amget(["foo", "bar", "foo"]), [key async for key in store.ayield_keys(prefix="f")]

    if is_async:
        values, found = asyncio.run(theirs())
    else:
        store.mset([("foo", b"1"), ("bar", b"2"), ("foo", b"3")])
        store.mdelete(["bar", "never"])
        values, found = store.mget(["foo", "bar", "foo"]), list(store.yield_keys(prefix="f"))
    assert (values, found) == ([b"3", None, b"3"], ["foo"])
    assert other.mget(["foo"]) == [None]
    with pytest.raises(FormatError, match="not bytes"):
        store.mset([("ok", b"1"), ("bad", "text")])
    assert store.mget(["ok"]) == [None]
    store.close()
    other.close()


class Meaning:
    """pagein's own kind of embedder: a text's meaning is which of two things it is about."""

    name, dimension = "animals", 3
    fails = False

    def embed(self, texts):
        if self.fails:
            raise OSError("the model is gone")
        return [self._of(text.lower()) for text in texts]

    def _of(self, text):
        cats, boats = (any(word in text for word in words) for words in (("cat", "feline"), ("boat", "vessel")))
        return [float(cats), float(boats), 0.01]


def test_with_an_embedder_a_query_finds_by_words_and_by_meaning(tmp_path, caplog):
    meaning = Meaning()
    store = PageinStore(tmp_path / "run.db", embedder=meaning)
    store.put(("d",), "cat", {"text": "The cat sleeps."})
    store.put(("d",), "boat", {"text": "The boat sails."})
    store.put(("e",), "other", {"text": "A feline of another namespace."})
    found = store.search(("d",), query="felines")
    assert (keys(found)[0], found[0].score > 0) == ("cat", True)
    assert keys(store.search(("d",), query="sails"))[0] == "boat"
    store.put(("d",), "cat", {"text": "The vessel sinks."})  # what it said before is found no more
    assert sorted(keys(store.search(("d",), query="boats", limit=2))) == ["boat", "cat"]
    assert all(each.score is None or each.score < 0.1 for each in store.search(("d",), query="sleeps"))
    meaning.fails = True
    store.put(("d",), "dog", {"text": "The dog barks."})
    assert keys(store.search(("d",), query="barks"))[0] == "dog"
    assert "found by words alone" in caplog.text
    store.close()
    with pytest.raises(ConfigurationError, match="not both"):
        PageinStore(tmp_path / "run.db", embedder=meaning, index={"dims": 26, "embed": Letters()})


def test_facts_of_a_user_are_read_as_items(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=4_000, user="ann") as memory:
        first = memory.facts.add("Ann lives in Bremen.", scope="user", category="knowledge")
        memory.facts.add("Ann eats no fish.", scope="user", category="preference")
        memory.facts.add("The build is red.", scope="session")
    store = PageinStore(path, facts="facts")
    found = store.search(("facts", "ann"), query="Where does Ann live? In Bremen?")
    assert [each.value["content"] for each in found] == ["Ann lives in Bremen.", "Ann eats no fish."]
    assert store.get(("facts", "ann"), first.id).value["category"] == "knowledge"
    assert keys(store.search(("facts", "ann"), filter={"category": "preference"})) != [first.id]
    assert store.search(("facts", "bob")) == []
    assert store.get(("facts", "ann"), "fu99") is None
    assert store.get(("facts", "ann", "deeper"), first.id) is None
    with pytest.raises(FormatError, match="facts are stated by"):
        store.put(("facts", "ann"), "new", {"content": "Ann flies."})
    store.put(("facts",), "of the graph", {"n": 1})
    assert store.get(("facts",), "of the graph").value == {"n": 1}
    store.close()
    plain = PageinStore(path)
    assert plain.search(("facts", "ann")) == []
    plain.close()
