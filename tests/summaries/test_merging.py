"""Merging by code: superseded entries replaced, rules never lost, nothing decays."""

import pytest
from hypothesis import given
from summaries_corpus import RULES, round_span, summaries

from pagein.summaries.extractive import extract_summary
from pagein.summaries.merge import MAX_HANDLES_PER_ITEM, merge_all, merge_summaries
from pagein.summaries.sanitize import normalize_text
from pagein.summaries.summary import Summary, SummaryItem, TaskItem


@given(summaries, summaries)
def test_merging_again_changes_nothing(a, b):
    both = merge_summaries(a, b)
    assert merge_summaries(both, both) == both
    assert merge_summaries(Summary(), both) == both == merge_summaries(both, Summary())


@given(summaries, summaries, summaries)
def test_it_does_not_matter_what_is_merged_first(a, b, c):
    assert merge_summaries(merge_summaries(a, b), c) == merge_summaries(a, merge_summaries(b, c))


@given(summaries, summaries)
def test_no_rule_and_no_error_is_lost(a, b):
    both = merge_summaries(a, b)
    rules = {normalize_text(rule.text) for rule in both.constraints}
    assert {normalize_text(rule.text) for rule in (*a.constraints, *b.constraints)} - {""} == rules


def test_the_newer_words_stand_where_the_older_stood():
    older = Summary(
        artifacts=(SummaryItem("a.py", "broken", ("s1",)), SummaryItem("b.py")), decisions=(SummaryItem("Use uv."),)
    )
    newer = Summary(
        artifacts=(SummaryItem("a.py", "works", ("s9",), "m"),), decisions=(SummaryItem("use  UV", "faster"),)
    )
    both = merge_summaries(older, newer)
    assert both.artifacts == (SummaryItem("a.py", "works", ("s1", "s9"), "m"), SummaryItem("b.py"))
    assert both.decisions == (SummaryItem("use  UV", "faster"),)


def test_a_note_is_not_lost_to_a_bare_name():
    both = merge_summaries(
        Summary(artifacts=(SummaryItem("a.py", "works", (), "m"),)),
        Summary(artifacts=(SummaryItem("a.py", "", ("s9",)),)),
    )
    assert both.artifacts == (SummaryItem("a.py", "works", ("s9",), "m"),)


def test_names_that_differ_by_case_are_two():
    both = merge_summaries(Summary(artifacts=(SummaryItem("Makefile"),)), Summary(artifacts=(SummaryItem("makefile"),)))
    assert len(both.artifacts) == 2


def test_a_rule_keeps_its_words_and_a_copy_goes_before_a_models():
    copy, paraphrase = (
        SummaryItem("NEVER push!", handles=("s1",)),
        SummaryItem("never push", author="m", handles=("s9",)),
    )
    for older, newer in ((copy, paraphrase), (paraphrase, copy)):
        (rule,) = merge_summaries(Summary(constraints=(older,)), Summary(constraints=(newer,))).constraints
        assert (rule.text, rule.author) == ("NEVER push!", "extractive")


@pytest.mark.parametrize(
    "newer",
    [
        Summary(tasks=(TaskItem("other words", id="T-1", status="done"),)),
        Summary(done=(SummaryItem("fix the parser."),)),
    ],
)
def test_a_done_task_leaves_the_open_ones(newer):
    older = Summary(tasks=(TaskItem("Fix the parser", id="T-1"), TaskItem("Ship", id="T-2")))
    both = merge_summaries(older, newer)
    assert [(task.id, task.status) for task in both.tasks] == [("T-1", "done"), ("T-2", "open")]
    again = merge_summaries(both, Summary(tasks=(TaskItem("Fix the parser", id="T-1", status="open"),)))
    assert again.tasks[0].status == "open"  # opened again by its id is open again


def test_an_old_intention_is_no_record_of_now():
    older, newer = Summary(next_steps=(SummaryItem("x"),)), Summary(next_steps=(SummaryItem("y"),))
    assert merge_summaries(older, newer).next_steps == (SummaryItem("y"),)
    assert merge_summaries(older, Summary()).next_steps == (SummaryItem("x"),)


def test_fifty_merges_lose_nothing_and_handles_stay_few():
    rounds = [extract_summary(round_span(number)) for number in range(50)]
    whole = merge_all(rounds)
    assert [summary.text for summary in whole.constraints] == list(RULES)
    for summary in rounds:
        for section in ("artifacts", "errors", "decisions", "dead_ends", "done"):
            texts = {normalize_text(item.text) for item in whole.items_in(section)}
            assert {normalize_text(item.text) for item in summary.items_in(section)} <= texts
    assert all(len(item.handles) <= MAX_HANDLES_PER_ITEM for _, item in whole.entries())
    assert merge_summaries(whole, rounds[-1]) == whole
