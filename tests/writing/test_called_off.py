"""Going on elsewhere while a summary is being written: it is called off, nobody waits, and its answer enters nothing."""

import json
import threading
import time

import pytest
from test_ending import gone
from test_jobs import begun
from writing_runs import GOOD, records, served

from pagein.models import ModelResponse, ModelUnavailable, RetryingModel, RetryPolicy
from pagein.testing.scripted_writer import ScriptedModel

pytestmark = pytest.mark.slow

LATE = json.dumps(json.loads(GOOD) | {"state": {"text": "LATEWORD"}})


class Blocking(ScriptedModel):
    """The first ask is at work until the gate is opened, and answers all the same; the others answer at once."""

    def __init__(self):
        super().__init__(gate=threading.Event())
        self.answered = threading.Event()

    def write(self, ask):
        self.requests.append(ask)
        if len(self.requests) > 1:
            return ModelResponse(GOOD)
        self.gate.wait(300)
        self.answered.set()
        return ModelResponse(LATE)


def switched(memory):
    memory.fork(name="other")
    memory.switch("other")


def rewound(memory):
    memory.rewind(len(memory.steps))


def erased(memory):
    assert memory.erase("s2").entries > 0


def erased_whole(memory):
    memory.erase_session()


GOES_ON = pytest.mark.parametrize("verb", [switched, rewound, erased, erased_whole])


@GOES_ON
def test_it_goes_on_while_the_model_blocks_and_the_late_answer_enters_nothing(host, verb):
    model = Blocking()
    memory = host(summarizer=model)
    at = begun(memory, model)
    verb(memory)
    assert not model.answered.is_set(), "it waited for the model"
    assert memory.memory._runtime.state.summaries.job is None
    model.gate.set()
    assert model.answered.wait(300)
    if verb is erased_whole:
        assert memory.steps == ()
        return
    memory.turns(at, at + 20)
    assert len(model.requests) > 1, "the next job is begun as ever"
    assert records(memory)
    assert "LATEWORD" not in str([each.body for each in memory.memory._runtime.log.read()])
    assert memory.verify().ok
    served(memory)


@pytest.mark.parametrize("patience", [None, RetryPolicy(first=40.0, most=40.0)], ids=["ours", "the user's"])
def test_a_pause_between_two_attempts_ends_with_it_and_nothing_more_is_asked(host, patience):
    asked = []

    def down(ask):
        asked.append(ask)
        raise ModelUnavailable("come back later", status=503, retry_after=40.0)

    model = ScriptedModel([down] * 9)
    memory = host(summarizer=model if patience is None else RetryingModel(model, retry=patience))
    at = begun(memory, model)
    switched(memory)
    assert gone(), "it is still pausing"
    assert len(asked) == 1
    memory.turns(at, at + 10, settle=False)
    until = time.monotonic() + 300
    while len(asked) < 2 and time.monotonic() < until:
        memory.wait(0.1)
    assert len(asked) > 1, "another job did not begin"


def test_going_on_elsewhere_again_and_again_leaves_one_job_and_nothing_late(host):
    model = Blocking()
    memory = host(summarizer=model)
    at = begun(memory, model)
    for number in range(at, at + 30):
        memory.turns(number, number + 1, settle=False)
        switched_to = f"b{number}"
        memory.fork(name=switched_to)
        memory.switch(switched_to)
    assert not model.answered.is_set()
    model.gate.set()
    memory.turns(at + 30, at + 45)
    assert "LATEWORD" not in str([each.body for each in memory.memory._runtime.log.read()])
    assert memory.verify().ok
