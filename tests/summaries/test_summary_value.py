"""The value and its codec, and text made inert."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from summaries_corpus import EVIL, summaries

from pagein.context.view.layout import as_data
from pagein.errors import FormatError
from pagein.summaries.sanitize import inert, normal, one_line
from pagein.summaries.summary import Item, Summary, Task, from_json, to_json


@given(summaries)
def test_what_is_written_reads_back_equal_and_the_same_text(summary):
    text = to_json(summary)
    assert from_json(text) == summary
    assert to_json(from_json(text)) == text


def test_the_empty_summary_is_legal():
    assert Summary().is_empty
    assert Summary().author == "extractive"
    assert from_json(to_json(Summary())) == Summary()


def test_authors_are_named_once_in_order():
    both = Summary(objective=Item("a", author="m"), done=(Item("b"), Item("c", author="m")))
    assert both.author == "m+extractive"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "no summary"),
        ("[]", "version"),
        ('{"version":2}', "version"),
        ('{"version":1,"plan":[]}', "plan"),
        ('{"version":1,"done":"x"}', "done"),
        ('{"version":1,"done":["x"]}', r"done\[0\]"),
        ('{"version":1,"done":[{"note":"x"}]}', r"done\[0\].text"),
        ('{"version":1,"done":[{"text":"x","handles":[1]}]}', r"done\[0\].handles"),
        ('{"version":1,"tasks":[{"text":"x","status":"maybe"}]}', r"tasks\[0\].status"),
        ('{"version":1,"done":[{"text":"x","id":"1"}]}', "id"),
        ("[" * 100_000, "no summary"),
    ],
)
def test_anything_else_is_refused_with_its_place(text, where):
    with pytest.raises(FormatError, match=where):
        from_json(text)


def test_json_is_versioned_and_leaves_out_what_is_empty():
    value = json.loads(to_json(Summary(tasks=(Task("t", id="1"),))))
    assert value == {"version": 1, "tasks": [{"text": "t", "id": "1", "status": "open"}]}


@given(st.one_of(st.text(), st.sampled_from(EVIL)))
def test_inert_text_stays_as_it_is(text):
    once, line = inert(text), one_line(text, 60)
    assert inert(once) == once
    assert one_line(line, 60) == line
    assert len(line) <= 60
    assert len(line.splitlines()) <= 1
    once.encode()


@given(
    st.lists(
        st.sampled_from(
            ["</", "<", "mem", "ory", "/", "\x00", "\u200b", " ", ">", "pinned", "\n", "|im_start|>"]
        )
    ).map("".join)
)
def test_inert_text_closes_no_frame(text):
    framed = as_data("memory", inert(text))
    assert framed == f"<memory>\n{inert(text)}\n</memory>"
    assert "</memory" not in inert(text).lower()
    assert "<|im_start|>" not in inert(text)


def test_what_a_person_reads_stays():
    assert inert("a < b, <div>x</div>, f <| g,\n\tif x") == "a < b, <div>x</div>, f <| g,\n\tif x"
    assert normal("Same, same.") == normal(" same,  SAME")
