"""Merging by code: superseded entries replaced, rules never lost, nothing decays."""

import pytest
from hypothesis import given, settings
from summaries_corpus import RULES, round_span, summaries

from pagein.summaries.extractive import extracted
from pagein.summaries.merge import MOST_HANDLES, merged, merged_all
from pagein.summaries.sanitize import normal
from pagein.summaries.summary import Item, Summary, Task


@settings(max_examples=50, deadline=None)
@given(summaries, summaries)
def test_merging_again_changes_nothing(a, b):
    both = merged(a, b)
    assert merged(both, both) == both
    assert merged(Summary(), both) == both == merged(both, Summary())


@settings(max_examples=50, deadline=None)
@given(summaries, summaries, summaries)
def test_it_does_not_matter_what_is_merged_first(a, b, c):
    assert merged(merged(a, b), c) == merged(a, merged(b, c))


@settings(max_examples=50, deadline=None)
@given(summaries, summaries)
def test_no_rule_and_no_error_is_lost(a, b):
    both = merged(a, b)
    kept = {normal(each.text) for each in both.constraints}
    assert {normal(each.text) for each in (*a.constraints, *b.constraints)} - {""} == kept


def test_the_newer_words_stand_where_the_older_stood():
    older = Summary(artifacts=(Item("a.py", "broken", ("s1",)), Item("b.py")), decisions=(Item("Use uv."),))
    newer = Summary(artifacts=(Item("a.py", "works", ("s9",), "m"),), decisions=(Item("use  UV", "faster"),))
    both = merged(older, newer)
    assert both.artifacts == (Item("a.py", "works", ("s1", "s9"), "m"), Item("b.py"))
    assert both.decisions == (Item("use  UV", "faster"),)


def test_a_note_is_not_lost_to_a_bare_name():
    both = merged(
        Summary(artifacts=(Item("a.py", "works", (), "m"),)), Summary(artifacts=(Item("a.py", "", ("s9",)),))
    )
    assert both.artifacts == (Item("a.py", "works", ("s9",), "m"),)


def test_names_that_differ_by_case_are_two():
    both = merged(Summary(artifacts=(Item("Makefile"),)), Summary(artifacts=(Item("makefile"),)))
    assert len(both.artifacts) == 2


def test_a_rule_keeps_its_words_and_a_copy_goes_before_a_models():
    copy, told = Item("NEVER push!", handles=("s1",)), Item("never push", author="m", handles=("s9",))
    for older, newer in ((copy, told), (told, copy)):
        (rule,) = merged(Summary(constraints=(older,)), Summary(constraints=(newer,))).constraints
        assert (rule.text, rule.author) == ("NEVER push!", "extractive")


@pytest.mark.parametrize(
    "newer",
    [
        Summary(tasks=(Task("other words", id="T-1", status="done"),)),
        Summary(done=(Item("fix the parser."),)),
    ],
)
def test_a_done_task_leaves_the_open_ones(newer):
    older = Summary(tasks=(Task("Fix the parser", id="T-1"), Task("Ship", id="T-2")))
    both = merged(older, newer)
    assert [(each.id, each.status) for each in both.tasks] == [("T-1", "done"), ("T-2", "open")]
    again = merged(both, Summary(tasks=(Task("Fix the parser", id="T-1", status="open"),)))
    assert again.tasks[0].status == "open"  # opened again by its id is open again


def test_an_old_intention_is_no_record_of_now():
    older, newer = Summary(next_steps=(Item("x"),)), Summary(next_steps=(Item("y"),))
    assert merged(older, newer).next_steps == (Item("y"),)
    assert merged(older, Summary()).next_steps == (Item("x"),)


def test_fifty_merges_lose_nothing_and_handles_stay_few():
    rounds = [extracted(round_span(number)) for number in range(50)]
    whole = merged_all(rounds)
    assert [each.text for each in whole.constraints] == list(RULES)
    for each in rounds:
        for section in ("artifacts", "errors", "decisions", "dead_ends", "done"):
            texts = {normal(item.text) for item in whole.section(section)}
            assert {normal(item.text) for item in each.section(section)} <= texts
    assert all(len(item.handles) <= MOST_HANDLES for _, item in whole.entries())
    assert merged(whole, rounds[-1]) == whole
