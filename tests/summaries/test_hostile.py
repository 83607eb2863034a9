"""Texts that make patterns slow take time linear in their length all the same."""

import time

import pytest

from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall
from pagein.summaries.extractive import extract_summary
from pagein.summaries.fidelity import verify_summary
from pagein.summaries.reply_parser import SummaryRejected, parse_reply
from pagein.summaries.requests import PromptSettings, build_requests
from pagein.summaries.spans import build_span
from pagein.summaries.templates import load_prompts
from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")
LONG = 30_000
HOSTILE = {
    "an opening and spaces": "<" + " " * LONG,
    "line ends before a box": "\n" * LONG + "- [ ] x",
    "tags": "<a>" * (LONG // 3),
    "fences": "```\n" * (LONG // 4),
    "figures": "1.1." * (LONG // 4),
    "rules": "".join(f"You must do {number}. " for number in range(LONG // 20)),
    "errors": "error: x\n" * (LONG // 9),
    "brackets": "[" * LONG,
    "half objects": '{"a":' * (LONG // 5),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("voice", ["user", "model", "result"])
def test_no_text_takes_long(name, voice):
    text = HOSTILE[name]
    call = ToolCall("1", "t", text)
    step = {
        "user": TaskStep(text),
        "model": ActionStep(text, (call,)),
        "result": ActionStep("", (call,), (Observation("1", text, "error"),)),
    }[voice]
    span = build_span([(0, step)], 0, 1)
    started = time.process_time()
    result = verify_summary(extract_summary(span), span, 600, counter=COUNTER, threshold=None)
    build_requests(span, PromptSettings(load_prompts(), COUNTER, 8_000, 1_000))
    with pytest.raises(SummaryRejected):
        parse_reply(text, span, author="m", counter=COUNTER)
    assert COUNTER.text(result.text) <= 600
    assert time.process_time() - started < 30, "a pattern is quadratic"
