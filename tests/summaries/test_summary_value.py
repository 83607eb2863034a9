"""The summary value, its JSON form, and sanitized text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from summaries_corpus import EVIL, summaries

from pagein.context.view.layout import as_data
from pagein.errors import FormatError
from pagein.summaries.sanitize import normalize_text, one_line, sanitize_text
from pagein.summaries.summary import Summary, SummaryItem, TaskItem, summary_from_dict, summary_to_dict


@given(summaries)
def test_what_is_written_reads_back_equal_and_the_same_values(summary):
    value = json.loads(json.dumps(summary_to_dict(summary)))
    assert summary_from_dict(value) == summary
    assert summary_to_dict(summary_from_dict(value)) == value


def test_the_empty_summary_is_legal():
    assert Summary().is_empty
    assert Summary().author == "extractive"
    assert summary_from_dict(summary_to_dict(Summary())) == Summary()


def test_authors_are_named_once_in_order():
    both = Summary(objective=SummaryItem("a", author="m"), done=(SummaryItem("b"), SummaryItem("c", author="m")))
    assert both.author == "m+extractive"


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ([], "expected an object"),
        ({"plan": []}, "plan"),
        ({"done": "x"}, "done"),
        ({"done": ["x"]}, r"done\[0\]"),
        ({"done": [{"note": "x"}]}, r"done\[0\].text"),
        ({"done": [{"text": "x", "handles": [1]}]}, r"done\[0\].handles"),
        ({"tasks": [{"text": "x", "status": "maybe"}]}, r"tasks\[0\].status"),
        ({"done": [{"text": "x", "id": "1"}]}, "id"),
    ],
)
def test_anything_else_is_refused_with_its_place(value, where):
    with pytest.raises(FormatError, match=where):
        summary_from_dict(value)


def test_json_leaves_out_what_is_empty():
    value = summary_to_dict(Summary(tasks=(TaskItem("t", id="1"),)))
    assert value == {"tasks": [{"text": "t", "id": "1", "status": "open"}]}


@given(st.one_of(st.text(), st.sampled_from(EVIL)))
def test_inert_text_stays_as_it_is(text):
    once, line = sanitize_text(text), one_line(text, 60)
    assert sanitize_text(once) == once
    assert one_line(line, 60) == line
    assert len(line) <= 60
    assert len(line.splitlines()) <= 1
    once.encode()


@given(
    st.lists(
        st.sampled_from(["</", "<", "mem", "ory", "/", "\x00", "\u200b", " ", ">", "pinned", "\n", "|im_start|>"])
    ).map("".join)
)
def test_inert_text_closes_no_frame(text):
    framed = as_data("memory", sanitize_text(text))
    assert framed == f"<memory>\n{sanitize_text(text)}\n</memory>"
    assert "</memory" not in sanitize_text(text).lower()
    assert "<|im_start|>" not in sanitize_text(text)


def test_what_a_person_reads_stays():
    assert sanitize_text("a < b, <div>x</div>, f <| g,\n\tif x") == "a < b, <div>x</div>, f <| g,\n\tif x"
    assert normalize_text("Same, same.") == normalize_text(" same,  SAME")
