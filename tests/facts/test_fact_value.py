"""Valid and invalid facts."""

import math

import pytest

from pagein.errors import ConfigurationError, PageinError
from pagein.facts import Fact, FactError, Owners, UnknownFact, Weights, is_reserved
from pagein.facts.fact import MAX_CONTENT_CHARS, content_key, fact_id, parse_fact_id
from pagein.facts.retention import Capacity
from pagein.facts.settings import Settings


@pytest.mark.parametrize("confidence", [math.nan, math.inf, -0.1, 1.1, None, True, False, "0.9", [], 1 + 0j])
def test_a_confidence_is_a_number_from_0_to_1(facts, confidence):
    with pytest.raises(FactError, match="confidence"):
        Fact("fu0", "Prefers tabs", confidence=confidence)
    with pytest.raises(FactError, match="confidence"):
        facts.add("Prefers tabs", confidence=confidence)
    assert facts.list() == ()


@pytest.mark.parametrize("content", ["", "  \n", "...", None, 7, b"bytes", "x" * 100_000, "\u200b"])
def test_a_content_is_a_statement(facts, content):
    with pytest.raises(FactError):
        facts.add(content)
    assert facts.list() == ()


def test_the_longest_content_is_taken(facts):
    assert len(facts.add("y" * MAX_CONTENT_CHARS).content) == MAX_CONTENT_CHARS


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"category": "preferense"}, "preference"),
        ({"category": "No Name!"}, "short name"),
        ({"category": None}, "category"),
        ({"scope": "planet"}, "scope"),
        ({"scope": "project"}, "project"),
        ({"valid_from": 5.0, "valid_until": 5.0}, "never holds"),
        ({"valid_until": math.nan}, "seconds"),
        ({"valid_until": True}, "seconds"),
        ({"sources": "s12"}, "handles"),
        ({"sources": [12]}, "handles"),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_recorded(facts, options, named):
    with pytest.raises(FactError, match=named):
        facts.add("Prefers tabs", **options)
    assert facts.audit() == ()


def test_behavior_may_be_spelled_as_elsewhere_and_categories_may_be_added(facts_of):
    facts = facts_of(user="a", settings=Settings(categories=("allergy",)))
    assert facts.add("Works at night", category="Behavior").category == "behaviour"
    assert facts.add("No nuts", category="allergy").category == "allergy"


def test_ids_are_short_and_say_their_scope():
    assert [fact_id(scope, 7) for scope in ("task", "session", "project", "user", "tenant")] == [
        "ft7", "fs7", "fp7", "fu7", "fa7",
    ]  # fmt: skip
    assert parse_fact_id("[fu7]") == ("user", 7)
    for wrong in ("", "s7", "fx7", "fu", "fu-1", "fu7 and more", None, "fu\u0663"):
        with pytest.raises(UnknownFact):
            parse_fact_id(wrong)


def test_the_key_ignores_what_does_not_matter():
    assert content_key(" Prefers\n TABS! ") == content_key("\uff50refers tabs")
    assert content_key("uses 3.11") != content_key("uses 3.12")
    assert content_key("\ud83d x") == content_key("? x") or content_key("\ud83d x")


@pytest.mark.parametrize(
    "wrong",
    [
        {"similarity": 0.6, "confidence": 0.5},
        {"similarity": -0.1, "confidence": 1.1},
        {"similarity": math.nan},
        {"similarity": True, "confidence": 0.0},
        {"similarity": "0.6"},
        {"recency": 0.9},
        {"half_life": 0},
    ],
)
def test_weights_sum_to_1(wrong):
    with pytest.raises(ConfigurationError):
        Weights(**wrong)
    assert Weights(1, 0).similarity == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"extract": "sometimes"}, {"min_confidence": 2}, {"debounce": -1}, {"debounce": True}, {"tools": 1},
        {"scopes": ("tenant",)}, {"categories": ("A b",)}, {"max_injection_tokens": 1.5}, {"guaranteed_share": math.nan},
        {"stale_days": 0},
    ],
)  # fmt: skip
def test_settings_are_checked(wrong):
    with pytest.raises(PageinError):
        Settings(**wrong)


@pytest.mark.parametrize("wrong", [{"max_facts": -1}, {"max_facts": True}, {"confidence": 0.9}, {"half_life": 0}])
def test_a_capacity_is_checked(wrong):
    with pytest.raises(ConfigurationError):
        Capacity(**wrong)


@pytest.mark.parametrize("wrong", [{"user": ""}, {"user": " "}, {"project": ""}, {"task": 5}, {"user": "\ud83d"}])
def test_an_owner_has_a_name(wrong):
    with pytest.raises(ConfigurationError):
        Owners("s", **wrong)


def test_a_run_may_not_be_named_like_a_log_of_facts():
    name = Owners("s", user="alice").log_name("user")
    assert is_reserved(name)
    with pytest.raises(ConfigurationError, match="log of facts"):
        Owners(name)
