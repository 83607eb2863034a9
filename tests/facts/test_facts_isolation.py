"""No fact of one tenant, user or session appears for another, whatever they are called."""

import itertools

import pytest
from facts_play import Clock, Store
from hypothesis import given
from hypothesis import strategies as st

from pagein.facts.owners import Owners
from pagein.facts.store import Facts

NAMES = st.text(st.sampled_from("a:%/\u00e9 b3A\x1f\\"), min_size=1, max_size=6).filter(str.strip)
OWNERS = st.builds(
    Owners, session=NAMES, user=st.none() | NAMES, project=st.none() | NAMES, task=st.none() | NAMES, tenant=NAMES
)


def sees(mine, whose, scope):
    """True if the owners of ``mine`` may see a fact of ``whose``; independent of the names of logs."""
    same = {
        "tenant": ("tenant",),
        "user": ("tenant", "user"),
        "project": ("tenant", "user", "project"),
        "session": ("tenant", "user", "session"),
        "task": ("tenant", "user", "session", "task"),
    }[scope]
    return all(getattr(mine, name) == getattr(whose, name) for name in same)


@given(OWNERS, OWNERS, st.sampled_from(("task", "session", "project", "user", "tenant")))
def test_a_fact_is_seen_by_whom_it_is_for_and_by_nobody_else(whose, mine, scope):
    if scope not in whose.scopes:
        return
    store = Store()
    Facts(store.opener(whose.tenant), whose, clock=Clock()).add("The secret is here", scope=scope)
    facts = Facts(store.opener(mine.tenant), mine, clock=Clock())
    expected = scope in mine.scopes and sees(mine, whose, scope)
    assert [fact.content for fact in facts.list()] == ["The secret is here"] * expected
    assert len(facts.search("secret")) == expected
    assert len(facts.as_of(2e9)) == len(facts.audit()) == len(facts.export()["facts"]) == expected


@given(OWNERS, OWNERS)
def test_no_two_owners_share_a_log(one, other):
    for mine, whose in itertools.product(one.scopes, other.scopes):
        if mine != whose or (
            mine != "tenant"
            and not all(
                getattr(one, item) == getattr(other, item)
                for item in {
                    "user": ("user",),
                    "project": ("user", "project"),
                    "session": ("user", "session"),
                    "task": ("user", "session", "task"),
                }[mine]
            )
        ):
            assert one.log_name(mine) != other.log_name(whose)


def test_a_name_with_the_marks_of_a_name_is_still_one_name():
    one, other = Owners("c", user="a:b"), Owners("b:c", user="a")
    assert one.log_name("session") != other.log_name("session")
    assert Owners("s", user="a%3Ab").log_name("user") != Owners("s", user="a:b").log_name("user")


def test_an_id_of_another_owner_names_nothing_here(facts_of):
    from pagein.facts import UnknownFact

    fact = facts_of(user="alice").add("Mine")
    bob = facts_of(user="bob")
    for call in (bob.get, bob.remove, bob.confirm, bob.history, lambda named: bob.correct(named, "Now mine")):
        with pytest.raises(UnknownFact):
            call(fact.id)
    assert facts_of(user="alice").get(fact.id) == fact


def test_without_a_user_nothing_is_shared_between_sessions_but_the_tenants(facts_of):
    facts_of("one").add("Only here")
    facts_of("one").add("For all", scope="tenant")
    assert [fact.content for fact in facts_of("two").list()] == ["For all"]


def test_sessions_of_one_user_share_the_users_facts(facts_of):
    first = facts_of("one", user="alice")
    first.add("Everywhere")
    first.add("Only in one", scope="session")
    assert {fact.content for fact in facts_of("two", user="alice").list()} == {"Everywhere"}


def test_tenants_in_one_file_are_apart(tmp_path):
    db = str(tmp_path / "run.db")
    with Facts.open(db, user="alice", tenant="acme") as facts:
        facts.add("Acme's")
    with Facts.open(db, user="alice", tenant="other") as facts:
        assert facts.list() == ()
