"""Contraries that are detected, and pairs that only look contrary."""

import pytest

from pagein.facts.contradiction import is_contrary, is_near, lives_elsewhere

CONTRARY = [
    ("My favourite editor is vim", "my favourite editor is emacs"),
    ("The staging server is called atlas", "The staging server is called hermes"),
    ("Our deploy day is now Monday", "Our deploy day is Friday"),
    ("The feature flag is disabled", "The feature flag is enabled"),
    ("The database has been moved to Frankfurt", "The database is in Dublin"),
    ("timeout: 60s", "timeout: 30s"),
    ("Python version = 3.12.1", "Python version = 3.11"),
    ("I moved to Oslo", "I live in Rome"),
    ("I now live in Oslo", "I live in Rome"),
    ("The user is based in Oslo", "The user lives in Rome"),
    ("I joined Acme", "I work at Initech"),
    ("I got married last year", "I'm single"),
    ("I'm a vegan for two years now", "I'm vegetarian"),
    ("Works for Acme", "The user works at Initech"),
    ("I prefer spaces over tabs", "I prefer tabs over spaces"),
    ("Prefers spaces over tabs", "Prefers tabs"),
    ("The user likes tabs", "The user prefers spaces over tabs"),
    ("I prefer tea to coffee", "I love coffee"),
    ("Deploys on Monday", "Deploys on Friday"),
    ("The release is due in March", "The release is due in April"),
    ("The API listens on port 9090", "The API listens on port 8080"),
    ("The meeting with Bob on 3 May is at 11:00", "The meeting with Bob on 3 May is at 10:00"),
    ("Chapter 1 has 12 pages", "Chapter 1 has 10 pages"),
    ("Never use tabs", "Always use tabs"),
    ("I no longer use vim", "I use vim"),
    ("I stopped eating meat", "I am eating meat"),
    ("We don't support Windows anymore", "We support Windows"),
    ("The build isn't green", "The build is green"),
]  # fmt: skip

COMPATIBLE = [
    ("Prefers tabs", "Prefers spaces"),
    ("I prefer tea to coffee", "I prefer vim to emacs"),
    ("I like tea", "I prefer coffee over water"),
    ("The stack is Python and Postgres", "The stack is Python"),
    ("The server is in Frankfurt", "The server was moved to Frankfurt"),
    ("Room 5 is red", "Room 6 is blue"),
    ("Chapter 2 has 10 pages", "Chapter 1 has 10 pages"),
    ("I live in Rome", "I live in Rome, Italy"),
    ("I moved to the new API", "I work at Acme"),
    ("Bob lives in Rome", "I live in Oslo"),
    ("We moved to Postgres", "We moved to uv"),
    ("I work for the first time with Rust", "I live in Rome"),
    ("Never push to main", "Always run the tests"),
    ("I don't live in Rome", "I live in Rome, near the station, with two dogs"),
    ("Uses pytest for tests", "Uses hypothesis for tests"),
    ("The parser reads JSON", "The parser reads YAML"),
    ("I'm single-handedly running the shop", "I'm married"),
    ("I have single malt every Friday", "I'm married"),
    ("I'm a vegan chef", "I'm vegetarian"),
    ("I have a vegan daughter", "I'm vegetarian"),
    ("My home is in good shape", "I live in Rome"),
    ("I joined a choir", "I work at Acme"),
    ("I left my laptop at Acme", "I work at Acme"),
    ("Anna is my sister", "Berta is my sister"),
    ("My brother is called Tom", "My brother is called Tim"),
    ("I live in Italy", "I live in Rome"),
    ("I live in a small flat", "I live in Rome"),
    ("My car is a Toyota", "My car is blue"),
    ("My wife is from Spain", "My wife is a doctor"),
    ("My office is on the third floor", "My office is in Bonn"),
    ("", "My name is Ann"),
    ("My name is Ann", "my name is ANN!"),
]


@pytest.mark.parametrize(("new", "old"), CONTRARY)
def test_two_that_can_hardly_both_hold(new, old):
    assert is_contrary(new, old)
    assert is_contrary(old, new)


@pytest.mark.parametrize(("new", "old"), COMPATIBLE)
def test_two_that_can(new, old):
    assert not is_contrary(new, old)
    assert not is_contrary(old, new)


def test_what_is_preferred_the_other_way_round_is_no_duplicate():
    assert not is_near("Prefers tabs over spaces", "Prefers spaces over tabs")


def test_both_stay_with_their_times_and_the_newer_is_preferred(facts, clock):
    old = facts.add("The user lives in Rome", category="knowledge")
    clock.now += 86_400
    new = facts.add("The user moved to Oslo", category="knowledge")
    assert [match.fact.id for match in facts.rank("where does the user live?")] == [new.id, old.id]
    assert facts.get(old.id).disputed_by == new.id
    assert facts.get(old.id).stated_at < facts.get(new.id).stated_at
    assert facts.as_of(clock.now - 1)[0].disputed_by == ""


def test_a_home_at_times_does_not_replace_another():
    assert lives_elsewhere("I live in Oslo.", "I live in Rome.")
    for at_times in ("in winter", "during the week", "for this project", "until May"):
        assert not lives_elsewhere(f"I live in Oslo {at_times}.", "I live in Rome.")
