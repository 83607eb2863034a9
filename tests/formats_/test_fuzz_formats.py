"""The fuzzer of formats, at a size for every run of the tests; and that it sees what is refused or over the budget."""

import pytest

from benchmarks.fuzz.__main__ import fuzz_formats
from benchmarks.fuzz.rendered_requests import RandomHistory
from pagein.formats.bedrock.wire import Bedrock
from pagein.formats.openai_chat.wire import OpenAIChat
from pagein.tokens.encodings import Encoding

pytestmark = pytest.mark.slow


@pytest.mark.slow
def test_no_type_refuses_a_request_and_none_is_over_the_budget():
    report = fuzz_formats(seed=1, count=12)
    assert report.failures == []
    assert len(report.played) == 6


def test_the_fuzzer_sees_a_request_that_is_over_the_budget(monkeypatch):
    counted = Encoding.text
    monkeypatch.setattr(Encoding, "text", lambda self, text: counted(self, text) // 3)
    assert any("the budget is" in failure for failure in fuzz_formats(seed=1, count=18).failures)


def test_the_fuzzer_sees_a_request_that_the_types_refuse(monkeypatch):
    for form, number in ((OpenAIChat, 0), (Bedrock, 4)):
        render = form.render

        def render_odd(self, messages, render=render):
            request = render(self, messages)
            for row in request["messages"]:
                row["content"] = 7
            return request

        with monkeypatch.context() as patch:
            patch.setattr(form, "render", render_odd)
            patch.setattr(form, "problems", lambda self, request: ())
            failures = [line for at in range(3) for line in fuzz_formats(number + 6 * at, 1).failures]
        assert RandomHistory.from_seed(number).way in failures[0]
        assert "refuse" in failures[0]
