"""The methods of ``Facts``: what is appended and can be read back; over reopening, other processes, and races."""

import json
import threading
from types import SimpleNamespace

import pytest
from facts_play import Clock, Scripted, Store

from pagein.errors import ConfigurationError, LogError, LogUnwritable
from pagein.events.entries import FactRemoved, FactStated, Source
from pagein.events.steps import ActionStep, FinalAnswerStep, Observation, TaskStep, ToolCall
from pagein.facts import FactError, Owners, UnknownFact
from pagein.facts.contradiction import is_contrary, is_near
from pagein.facts.retention import Capacity
from pagein.facts.settings import Settings
from pagein.facts.store import Facts
from pagein.models import ModelUnavailable

DAY = 86_400.0


def contents(facts):
    return [fact.content for fact in facts]


def test_a_correction_supersedes_and_the_past_stays_readable(facts, clock):
    first = facts.add("Deploys on Friday", category="knowledge", confidence=0.8, sources=["s3"], reason="told")
    clock.now += 100
    second = facts.correct(first.id, "Deploys on Monday", reason="changed")
    assert contents(facts.list()) == ["Deploys on Monday"]
    assert (second.supersedes, second.category, second.confidence) == ((first.id,), "knowledge", 1.0)
    assert second.sources == (Source("s", "s3"),)
    assert contents(facts.as_of(clock.now - 1)) == ["Deploys on Friday"]
    assert contents(facts.as_of(clock.now)) == ["Deploys on Monday"]
    assert facts.as_of(0.0) == ()
    with pytest.raises(UnknownFact, match=f"superseded by {second.id}"):
        facts.get(first.id)
    changes = [(fact.what, fact.fact.id, fact.by, fact.author, fact.reason) for fact in facts.history(second.id)]
    assert changes == [
        ("stated", first.id, "", "host", "told"),
        ("stated", second.id, "", "user", "changed"),
        ("superseded", first.id, second.id, "user", "changed"),
    ]


def test_a_removal_is_a_tombstone(facts):
    fact = facts.add("Likes tea")
    assert facts.remove(fact.id, reason="asked to", author="user") == fact
    assert facts.list() == ()
    with pytest.raises(UnknownFact, match="removed"):
        facts.remove(fact.id)
    last = facts.audit()[-1]
    assert (last.what, last.fact.content, last.reason, last.author) == ("removed", "Likes tea", "asked to", "user")
    assert facts.add("Likes tea").id != fact.id


def test_what_is_known_is_confirmed_not_stated_again(facts, clock):
    first = facts.add("Prefers tabs", confidence=0.7)
    clock.now += 5
    again = facts.add("  prefers TABS. ", confidence=0.9, sources=["s9"])
    assert (again.id, again.confidence, again.confirmed_at) == (first.id, 0.9, clock.now)
    assert again.sources == (Source("s", "s9"),)
    assert facts.add("Prefers tabs", confidence=0.2).confidence == 0.9
    assert len(facts.list()) == 1
    assert facts.confirm(first.id, confidence=0.4).confidence == 0.4


def test_an_update_keeps_what_is_not_named(facts):
    first = facts.add("In Berlin until May", category="context", confidence=0.8, valid_until=2e9, sources=["s1"])
    second = facts.update(first.id, category="knowledge", valid_until=None)
    assert (second.content, second.category, second.confidence, second.valid_until) == (
        "In Berlin until May", "knowledge", 0.8, None,
    )  # fmt: skip
    with pytest.raises(FactError):
        facts.update(second.id, "")
    assert facts.list() == (second,)


def test_a_fact_is_listed_while_it_holds(facts, clock):
    facts.add("On holiday", valid_from=clock.now + 10, valid_until=clock.now + 20)
    contents_then = []
    for now in (0, 10, 20):
        clock.now = 1_000_000.0 + now
        contents_then.append(len(facts.list()))
    assert contents_then == [0, 1, 0]
    assert len(facts.list(all=True)) == 1
    assert [fact.content for fact in facts.stale()] == ["On holiday"]
    assert [fact.what for fact in facts.tidy()] == ["removed"]


def test_what_another_opening_writes_is_seen_at_the_next_look(facts_of):
    mine, other = facts_of(user="alice"), facts_of("t", user="alice")
    fact = mine.add("Prefers tabs")
    assert contents(other.list()) == ["Prefers tabs"]
    other.correct(fact.id, "Prefers spaces")
    assert contents(mine.list()) == ["Prefers spaces"]
    assert [match.fact.content for match in mine.rank("spaces")] == ["Prefers spaces"]
    with pytest.raises(UnknownFact):
        mine.correct(fact.id, "Prefers both")


def test_the_store_lasts(tmp_path, clock):
    db = str(tmp_path / "run.db")
    with Facts.open(db, user="alice", clock=clock) as facts:
        first = facts.add("Prefers tabs", category="preference")
        facts.search("tabs")
    with Facts.open(db, user="alice", clock=clock) as facts:
        (again,) = facts.list()
        assert (again.id, again.uses) == (first.id, 1)
        assert facts.fact_log("user").log.verify().ok
    with Facts.open(db, user="alice", clock=clock, readonly=True) as facts:
        assert len(facts.search("tabs")) == 1
        with pytest.raises(LogUnwritable):
            facts.add("Prefers spaces")
        assert len(facts.list()) == 1


def test_writers_at_the_same_time_all_get_through(tmp_path):
    db = str(tmp_path / "run.db")
    Facts.open(db, user="alice").close()
    failed = []

    def write(name):
        try:
            with Facts.open(db, user="alice") as facts:
                for at in range(6):
                    facts.add(f"Fact {at} of {name} alone")
                    facts.add("Everybody says this")
        except LogError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Facts.open(db, user="alice") as facts:
        assert failed == []
        assert sorted(contents(facts.list())) == sorted(
            ["Everybody says this", *(f"Fact {at} of {name} alone" for name in "abcd" for at in range(6))]
        )


def test_contradictions_without_a_model_keep_both_and_prefer_the_newer(facts, clock):
    old = facts.add("My port is 8080", confidence=1.0)
    clock.now += 60
    new = facts.add("My port is 8081", confidence=0.8)
    assert new.disputes == (old.id,)
    assert facts.get(old.id).disputed_by == new.id
    assert [match.fact.id for match in facts.rank("which port")] == [new.id, old.id]
    facts.remove(new.id)
    assert facts.get(old.id).disputed_by == ""


def test_contradictions_are_asked_of_a_model_where_there_is_one(facts_of):
    model = Scripted('{"contradicted": ["fu0", "fu77"]}', ModelUnavailable("down"), '{"contradicted": []}')
    facts = facts_of(user="alice", model=model)
    old = facts.add("The user prefers tabs for indentation")
    new = facts.add("The user prefers spaces for indentation")
    assert new.supersedes == (old.id,)
    assert len(facts.list()) == 1
    assert "prefers tabs" in str(model.asked[0])
    # A model that is down leaves it to the rules; one that sees no contradiction has the last word.
    facts.add("The user never prefers spaces for indentation")
    assert facts.get(new.id).disputed_by
    facts.add("The user prefers spaces for indentation of 4")
    assert len(facts.list()) == 3


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ("My name is Ann", "My name is Bob", True),
        ("The database is Postgres 16", "The database is Postgres 15", True),
        ("I do not eat meat", "I eat meat", True),
        ("Deploys at 9:30", "Deploys at 10:30", True),
        ("My name is Ann", "my name is ann.", False),
        ("My cat is black", "My dog is white", False),
        ("I use vim", "I use git", False),
        ("Prefers tabs", "Prefers tea", False),
        ("It is late", "It is early", False),
    ],
)
def test_what_cannot_both_hold(new, old, expected):
    assert is_contrary(new, old) is expected


def test_near_duplicates_are_merged_with_their_sources_and_the_highest_confidence(facts, clock):
    facts.add("Prefers short answers with code samples", confidence=0.9, sources=["s1"])
    clock.now += 5
    facts.add("The user prefers short code samples with answers", confidence=0.7, sources=["s2"])
    facts.add("Port 80 is open")
    facts.add("Port 81 is open")
    assert is_near("Port 80 is open", "Port 81 is open") is False
    changes = facts.tidy()
    assert [change.what for change in changes] == ["stated", "superseded", "superseded"]
    merged = facts.get(changes[0].fact.id)
    assert (merged.confidence, merged.sources) == (0.9, (Source("s", "s1"), Source("s", "s2")))
    assert merged.content == "The user prefers short code samples with answers"
    assert len(facts.list()) == 3
    assert facts.tidy() == ()


class Embedder:
    name, dimension = "test", 2

    def embed(self, texts):
        return [[1.0, 0.01 * len(text)] if "tea" in text or "infusion" in text else [0.0, 1.0] for text in texts]


class Broken(Embedder):
    def embed(self, texts):
        raise RuntimeError("no")


def test_meaning_tells_duplicates_where_there_is_an_embedder(facts_of):
    facts = facts_of(user="alice", embedder=Embedder())
    first = facts.add("Drinks herbal tea every morning")
    assert facts.add("Drinks an infusion of herbs every morning").id == first.id
    assert facts.add("Drinks herbal tea every 2 morning").id != first.id  # another number is another fact
    assert facts_of(user="bob", embedder=Broken()).add("Drinks tea daily").content == "Drinks tea daily"


def test_capacity_lets_the_least_worth_go_after_the_new_is_stored(facts_of, store, clock):
    facts = facts_of(user="a", settings=Settings(capacity=Capacity(max_facts=5)))
    rule = facts.add("Never push to main", category="constraint", confidence=0.1)
    for at in range(4):
        facts.add(f"Likes dish number {at}", confidence=0.5 + at / 10)
        clock.now += DAY
    new = facts.add("Likes something else entirely", confidence=0.3)
    remaining = contents(facts.list())
    assert len(remaining) == 5
    assert {rule.content, new.content} <= set(remaining)
    assert "Likes dish number 0" not in remaining
    change = facts.audit()[-1]
    assert (change.what, change.author) == ("removed", "rules")
    assert "capacity" in change.reason
    bodies = [fact.body for fact in store.logs["", "pagein:facts:user:a"].read()]
    assert [type(item) for item in bodies[-2:]] == [FactStated, FactRemoved]


def test_stale_facts_are_named_and_nothing_is_removed(facts, clock):
    facts.add("Works on the old project")
    facts.add("Never push", category="constraint")
    clock.now += 91 * DAY
    facts.add("New here")
    assert contents(facts.stale()) == ["Works on the old project"]
    assert len(facts.stale(1000)) == 0
    assert len(facts.list()) == 3
    with pytest.raises(ConfigurationError):
        facts.stale(0)


def test_export_and_import_are_inverse(facts_of, clock):
    here = facts_of(user="alice", project="web")
    here.add("Prefers tabs", category="preference", confidence=0.75, sources=["s1"], valid_until=2e9)
    here.add("Uses Postgres", scope="project")
    here.add("Never push \ud83d \u2028 </memory>", category="constraint", scope="session")
    data = json.loads(json.dumps(here.export()))
    there = facts_of("other", user="bob", project="web")
    there.import_(data)
    exported = [
        (fact.content, fact.category, fact.confidence, fact.scope, fact.sources, fact.valid_until)
        for fact in here.list()
    ]
    assert [
        (fact.content, fact.category, fact.confidence, fact.scope, fact.sources, fact.valid_until)
        for fact in there.list()
    ] == exported
    assert {fact.owner for fact in there.list()} == {"bob", "web", "other"}
    there.import_(data)
    assert len(there.list()) == 3


def test_deer_flows_memory_is_imported(facts):
    facts.import_(
        {"facts": [{"id": "fact_1", "content": "Likes tea", "category": "behavior", "confidence": 0.8, "source": "t1"}]}
    )
    (fact,) = facts.list()
    assert (fact.category, fact.confidence, fact.sources) == ("behaviour", 0.8, (Source("t1", ""),))


@pytest.mark.parametrize(
    "data",
    [
        None, 5, {}, {"facts": 5}, [5], [{"content": ""}], [{"content": "x y", "confidence": True}],
        [{"content": "fine"}, {"content": "x y", "category": "nope"}], {"pagein_facts": 9, "facts": []},
        [{"content": "x y", "scope": "planet"}], [{"content": "x y", "valid_from": 3, "valid_until": 2}],
        [{"content": "x y", "sources": ["s1"]}], [{"content": "x y", "author": 5}],
    ],
)  # fmt: skip
def test_an_import_is_whole_or_nothing(facts, data):
    with pytest.raises(FactError):
        facts.import_(data)
    assert facts.audit() == ()


def test_an_import_states_nothing_for_the_whole_tenant_unless_told(facts_of):
    facts = facts_of(user="alice")
    facts.import_([{"content": "For everybody", "scope": "tenant"}])
    assert facts_of(user="bob").list() == ()
    facts.import_([{"content": "For all of us", "scope": "user"}], scope="tenant")
    assert contents(facts_of(user="bob").list()) == ["For all of us"]


def test_searches_find_and_count(facts):
    facts.add("Prefers pytest for tests", category="preference")
    facts.add("Uses Docker")
    (match,) = facts.search("how do I test this?")
    assert match.fact.content == "Prefers pytest for tests"
    assert "similarity" in match.why
    facts.note_uses()
    assert facts.get(match.fact.id).uses == 1
    assert facts.search("zebra") == ()
    for wrong in (0, True, "3"):
        with pytest.raises(ConfigurationError):
            facts.search("x", limit=wrong)


def test_the_block_is_of_what_stands_now(facts, counter):
    fact = facts.add("Prefers </memory> tabs", category="preference")
    block = facts.block("tabs", counter=counter)
    assert (block.ids, block.tokens) == ((fact.id,), counter.text(block.text))
    assert block == facts.block("spaces", counter=counter)
    assert facts.block("tabs", counter=counter, max_tokens=10).text == ""
    facts.remove(fact.id)
    assert facts.block("tabs", counter=counter).text == ""


def test_a_writer_that_always_loses_gives_up(clock):
    from pagein.errors import Conflict

    class Lost:
        def head(self):
            return 0

        def read(self, start=0, stop=None):
            return iter(())

        def append(self, bodies, *, after, at):
            raise Conflict(after, after + 1)

        def close(self):
            """Nothing."""

    facts = Facts(SimpleNamespace(log=lambda name: Lost()), Owners("s"), clock=clock)
    with pytest.raises(Conflict):
        facts.add("Prefers tabs")


def test_no_settings_or_stores_are_shared():
    one, other = (
        Facts(Store().opener(), Owners("s"), clock=Clock()),
        Facts(Store().opener(), Owners("s"), clock=Clock()),
    )
    one.add("Only here")
    assert other.list() == ()


# Procedures


def bash(number, command, result="ok", status="ok"):
    call = ToolCall(f"c{number}", "bash", json.dumps({"command": command}))
    return ActionStep("", (call,), (Observation(call.id, result, status),))


def run_of(task, *commands):
    steps = (
        TaskStep(task),
        *(bash(number, command) for number, command in enumerate(commands)),
        FinalAnswerStep("Done."),
    )
    return tuple(enumerate(steps))


def test_a_procedure_is_a_fact_of_its_owner_that_a_similar_task_finds(facts_of):
    alice = facts_of(user="alice")
    fact = alice.save_procedure(run_of("Deploy the shop to the staging server", "make build", "make deploy"))
    assert (
        fact.content == "Deploy the shop to the staging server\n1. bash: make build\n2. bash: make deploy\nEnded: Done."
    )
    assert (fact.category, fact.scope, fact.confidence) == ("procedure", "user", 1.0)
    assert [source.handle for source in fact.sources] == ["s0", "s1", "s2", "s3"]
    again = facts_of("another session", user="alice")
    assert [match.fact for match in again.find_procedures("Please deploy the shop to staging")] == [fact]
    assert again.find_procedures("Translate the letter to my aunt") == again.search("make deploy") == ()
    assert facts_of(user="bob").find_procedures("Deploy the shop to the staging server") == ()
    assert facts_of(user="bob").list() == ()
    assert again.list(category="procedure") == (fact,)
    assert facts_of(user="carol").import_(again.export())[0].content == fact.content


def test_the_most_similar_task_comes_first(facts_of):
    facts = facts_of(user="alice")
    for place in ("the backup server in Oslo", "the staging server", "production"):
        facts.save_procedure(run_of(f"Deploy the shop to {place}", "make deploy"))
    matches = facts.find_procedures("Deploy the shop to the staging server", limit=3)
    assert [match.fact.headline for match in matches] == [
        "Deploy the shop to the staging server", "Deploy the shop to the backup server in Oslo", "Deploy the shop to production",
    ]  # fmt: skip
    assert [match.similarity for match in matches] == sorted((match.similarity for match in matches), reverse=True)
    assert len(facts.find_procedures("Deploy the shop", limit=1)) == 1
    with pytest.raises(ConfigurationError, match="limit"):
        facts.find_procedures("Deploy the shop", limit=0)


def test_a_task_that_is_saved_again_has_one_procedure_and_a_history(facts_of, clock):
    facts = facts_of(user="alice")
    first = facts.save_procedure(run_of("Deploy the shop to staging", "make deploy"))
    other = facts.save_procedure(run_of("Book a table for the team lunch", "book --seats 8"))
    clock.now += 60
    second = facts.save_procedure(run_of("deploy the shop to STAGING.", "make test", "make deploy"))
    assert facts.list() == (other, second)
    assert [change.what for change in facts.history(second.id)] == ["stated", "stated", "superseded"]
    assert second.supersedes == (first.id,)
    same = facts.save_procedure(run_of("deploy the shop to STAGING.", "make test", "make deploy"))
    assert (same.id, same.confirmed_at) == (second.id, clock.now)


def test_a_procedure_belongs_to_the_project_where_there_is_one(facts_of):
    facts = facts_of(user="alice", project="shop")
    assert facts.save_procedure(run_of("Deploy the shop to staging", "make deploy")).scope == "project"
    assert facts_of(user="alice").find_procedures("Deploy the shop to staging") == ()


@pytest.mark.parametrize(
    ("owners", "steps", "task", "said"),
    [
        ({}, run_of("Deploy the shop", "make"), None, "no user is known here"),
        ({"user": "a"}, (*enumerate((TaskStep("Deploy the shop"), bash(0, "make", "no rule", "error"))),), None, "no step of the task"),
        ({"user": "a"}, (), None, "nothing describes the task"),
        ({"user": "a"}, run_of("My password is hunter2", "make"), None, "without a secret"),
        ({"user": "a"}, run_of("My password is:\nhunter2", "make"), None, "without a secret"),
        ({"user": "a"}, run_of("My password is:\nhunter2 forever", "make"), None, "without a secret"),
        ({"user": "a"}, run_of("Deploy the shop", "make"), "Use the key sk-live-0123456789abcdefghij", "without a secret"),
        ({"user": "a"}, run_of("Deploy the shop", "make"), 7, "task is text"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_procedure_is_refused_and_says_why(facts_of, owners, steps, task, said):
    facts = facts_of(**owners)
    with pytest.raises(FactError, match=said):
        facts.save_procedure(steps, task)
    assert facts.list() == ()


def test_procedures_and_other_facts_leave_one_another_alone(facts_of):
    model = Scripted('{"contradicted": []}')
    facts = facts_of(user="alice", model=model)
    facts.add("Deploy the shop to staging with make deploy")
    facts.save_procedure(run_of("Deploy the shop to staging", "make deploy"))
    facts.save_procedure(run_of("Deploy the shop to staging 2", "make deploy"))
    facts.add("Never deploy the shop to staging with make deploy on Friday")
    assert len(facts.list()) == 4
    assert [fact.disputed_by for fact in facts.list()] == [""] * 4
    assert facts.tidy() == ()
    assert all("1. bash" not in str(ask) for ask in model.asked)


def test_of_too_many_facts_a_procedure_that_saved_itself_leaves_first(facts_of):
    facts = facts_of(user="alice", settings=Settings(capacity=Capacity(max_facts=3)))
    facts.add("Prefers tea", confidence=0.7)
    kept = facts.save_procedure(run_of("Deploy the shop to staging", "make deploy"))
    facts.save_procedure(run_of("Book a table for lunch", "book --seats 8"), author="rules")
    facts.add("Prefers pytest", confidence=0.7)
    assert [fact.content for fact in facts.list()] == ["Prefers tea", kept.content, "Prefers pytest"]
