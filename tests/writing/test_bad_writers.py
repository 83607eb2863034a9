"""Twelve kinds of writer that write badly: none is asked again and again, and none costs more than the run."""

import asyncio
import json

import pytest
from writing_runs import GOOD, turn

from pagein import AgentMemory, AsyncAgentMemory
from pagein.errors import ConfigurationError
from pagein.events.identifiers import identifiers
from pagein.events.steps import Usage
from pagein.models.base import ModelResponse
from pagein.models.errors import ModelEmpty, ModelOverflow, ModelRefused, ModelUnavailable
from pagein.models.retrying import RetryingModel, RetryPolicy
from pagein.models.writer_account import MAX_REFUSALS
from pagein.tokens.encodings import Encoding

pytestmark = pytest.mark.slow

COUNTER = Encoding("o200k_base")


def echo(request):
    return json.dumps({"done": [{"text": request.messages[-1].content[-3_000:]}]})


BAD = {
    "prose": lambda _: "The run went well and nothing is left to do.",
    "too long": lambda _: json.dumps({"done": [f"did thing {number} in file_{number}.py" for number in range(250)]}),
    "another language": lambda _: json.dumps({"done": ["El tiempo era bueno y no pas\u00f3 nada"] * 3}),
    "invents": lambda _: json.dumps({"done": ["rewrote billing.rs for invoice 99-1812"], "constraints": ["Use Rust."]}),
    "echo": echo,
    "invalid JSON": lambda _: "{'done': ['all'],}",
    "wrong keys": lambda _: json.dumps({"summary": "all is well", "todo": ["go on"]}),
    "half JSON": lambda _: GOOD[: len(GOOD) // 2],
    "refusal": lambda _: "I'm sorry, but I can't help with that.",
    "no item that is one": lambda _: json.dumps({"done": [None, {}, {"said": 1}], "errors": [[{}]]}),
    "empty": lambda _: ModelEmpty("nothing was said", usage=Usage(500)),
    "400 context length": lambda _: ModelOverflow("maximum context length is 8192 tokens"),
    "400": lambda _: ModelRefused("unknown parameter", status=400),
    "timeout": lambda _: ModelUnavailable("no answer within 120 s"),
}


class Writer:
    """A model that counts all tokens that go in and out."""

    name, window = "writer", 32_768

    def __init__(self, answer):
        self.answer, self.tokens, self.asked = answer, 0, 0

    def write(self, request):
        self.asked += 1
        self.tokens += sum(COUNTER.text(str(message.content)) for message in request.messages)
        answer = self.answer(request)
        if isinstance(answer, Exception):
            raise answer
        self.tokens += COUNTER.text(answer)
        return ModelResponse(answer)


def play(answer, turns=36, *, now=lambda: 0.0, **options):
    """A run of about 400 tokens a turn under 4,000, compacted again and again; with what it recorded in tokens."""
    writer = Writer(answer)
    model = RetryingModel(writer, retry=RetryPolicy(attempts=2, first=0))
    memory = AgentMemory.open(
        ":memory:", budget=4_000, policy="rolling", counter=COUNTER, summarizer=model, user="ana", clock=now, **options
    )
    for number in range(turns):
        memory.record(*map(turn, range(3 * number, 3 * number + 3)))
        memory.view()
        memory.wait()
    return writer, memory, memory._runtime.state.fold.costs.total


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_writer_costs_less_than_the_run_and_is_not_asked_again_and_again(kind):
    writer, memory, run_tokens = play(BAD[kind])
    (report,) = memory.report().writers
    assert writer.tokens <= run_tokens
    assert report.tokens <= run_tokens
    assert (report.purpose, report.asked) == ("summaries", writer.asked)
    assert writer.asked <= 3 * 4, "three pieces of work, each at most in four requests"
    assert len(memory.report().problems) <= 2
    assert report.taken == 0
    if kind != "too long":  # a writer that does not keep its limit of tokens ends at the run's
        assert report.refused == MAX_REFUSALS
        assert report.resting > 0
    memory.close()


def test_a_changed_number_or_name_is_left_out_and_the_rest_is_kept():
    lies = {
        **json.loads(GOOD),
        "decisions": ["the timeout is 60606 s", "HeaderFault is harmless"],
        "done": ["mended it"],
    }
    _, memory, _ = play(lambda _: json.dumps(lies), spend=None)
    text = str(memory.to_messages())
    assert memory.report().writers[0].taken > 0
    assert "mended it" in text
    assert "60606" not in text
    assert "HeaderFault" not in text
    memory.close()


class Leaving:
    """A model that ends with an error which a framework or a library means for somebody else."""

    name, window = "leaving", 32_768

    def __init__(self, error):
        self.error = error

    def write(self, request):
        raise self.error

    async def awrite(self, request):
        raise self.error


EXITS = [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()]


@pytest.mark.parametrize("error", EXITS, ids=repr)
def test_an_exit_or_a_cancellation_in_the_writer_is_its_failure(error):
    with AgentMemory.open(":memory:", budget=4_000, policy="rolling", summarizer=Leaving(error), user="ana") as memory:
        for number in range(12):
            memory.record(*map(turn, range(3 * number, 3 * number + 3)))
            memory.view()
            memory.wait()
        assert type(error).__name__ in str(memory.report().problems)
        assert memory.report().writers[0].refused >= 1


@pytest.mark.parametrize("error", EXITS, ids=repr)
def test_an_exit_or_a_cancellation_in_a_writer_leaves_the_loop_alone(error):
    def sync(prompt):
        raise error

    async def awaited(prompt):
        raise error

    async def play_with(writer):
        async with AsyncAgentMemory.open(":memory:", budget=4_000, policy="rolling", summarizer=writer) as memory:
            for number in range(12):
                await memory.record(*map(turn, range(3 * number, 3 * number + 3)))
                await memory.view()
                await memory.wait()
            return str(memory.report().problems)

    assert type(error).__name__ in asyncio.run(play_with(sync))
    if isinstance(error, asyncio.CancelledError):  # the others end the loop by Python's own rule
        assert "CancelledError" in asyncio.run(play_with(awaited))
        assert "CancelledError" in asyncio.run(play_with(Leaving(error)))


def test_a_pause_grows_and_ends_with_an_answer_of_use():
    clock, answers = [0.0], [BAD["prose"]]
    _, memory, _ = play(lambda request: answers[-1](request), 20, now=lambda: clock[0], spend=None)  # noqa: PLW0108 - the last one changes
    pauses = []
    for number in range(20, 40):
        pauses.append(memory.report().writers[0].resting)
        clock[0] += pauses[-1] + 1
        memory.record(*map(turn, range(3 * number, 3 * number + 3)))
        memory.view()
        memory.wait()
        if memory.report().writers[0].refused == MAX_REFUSALS + 2:
            break
    assert pauses[0] == 60
    assert memory.report().writers[0].resting == 60 * 16
    answers.append(lambda _: GOOD)
    clock[0] += 10_000
    for number in range(40, 50):
        memory.record(*map(turn, range(3 * number, 3 * number + 3)))
        memory.view()
        memory.wait()
    report = memory.report().writers[0]
    assert report.taken > 0
    assert report.resting == 0
    assert report.saved > 0
    assert report.net == report.saved - report.tokens
    refusal, rest = memory.report().problems
    assert "not json" in refusal
    assert rest == "3 answers of writer in a row were of no use; it rests for 60 s", "it is said once, however it grows"
    memory.close()


@pytest.mark.parametrize(
    "text",
    [
        "\u8bfb\u53d6\u4e86{0}\uff0c\u4fee\u6539\u4e86{1}\u6587\u4ef6",
        "{0}\u3092\u8aad\u307f\u3001{1}\u3092\u5909\u66f4",
        "Leyó {0} y cambió {1}",
    ],
)
def test_a_record_in_another_language_is_measured_by_its_names(text):
    names = identifiers(text.format("src/io/app.py", "read_file"))
    assert names == ["src/io/app.py", "read_file"]
    assert identifiers("data/\u62a5\u544a.csv") == ["data/\u62a5\u544a.csv"]


def test_what_may_be_spent_is_a_share_of_the_run():
    for share, least in ((0.0, 0), (0.5, 1), (None, 8)):
        writer, memory, run_tokens = play(lambda _: GOOD, spend=share)
        assert writer.asked >= least
        assert share is None or writer.tokens <= share * run_tokens
        memory.close()
    with pytest.raises(ConfigurationError, match="spend"):
        AgentMemory.open(":memory:", spend=-1)


def test_facts_are_asked_for_on_the_same_account():
    writer, memory, _ = play(BAD["refusal"], 12)
    memory.record_messages([{"role": "user", "content": f"I live in Rome, at number {n}."} for n in range(3)])
    for _ in range(8):
        memory._runtime.facts.extract(flush=True)
        memory.wait()
    report = next(report for report in memory.report().writers if report.purpose == "facts")
    assert report.refused <= MAX_REFUSALS
    assert writer.tokens <= memory._runtime.state.fold.costs.total
    memory.close()
