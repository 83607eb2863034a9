"""A run whose names come again and again, hosts in either colour, and models that answer as they are told."""

import asyncio
import inspect
import json
import logging

from pagein import ActionStep, AgentMemory, AsyncAgentMemory, Observation, SystemPromptStep, TaskStep, ToolCall
from pagein.testing import promises
from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")
NAMES = ("src/app/core.py", "parse_header", "user_id", "tests/test_core.py", "HeaderError", "max_retries", "4711")
RULE = "Never touch the production database."
BUDGET = 1_500

GOOD = json.dumps(
    {
        "state": {"text": "the header tests are being mended"},
        "done": [{"text": "looked for the cause in the parser"}],
        "artifacts": [{"text": name, "note": "seen in this part"} for name in NAMES],
        "dead_ends": [{"text": "raising max_retries", "note": "it fails as before"}],
    }
)
"""What a model that writes well says of any part of the run."""


def turn(number):
    """One step: about 130 tokens, all names in it, and two of its own."""
    call = ToolCall(f"c{number}", "bash", json.dumps({"command": f"sed -n {number}p {NAMES[0]} && pytest {NAMES[3]}"}))
    seen = "\n".join(
        f"{line}: {NAMES[1]}({NAMES[2]}, {NAMES[5]}=4711) raised {NAMES[4]} in step_{number} at item_{number}_{line}"
        for line in range(3)
    )
    return ActionStep(f"I look at line {number} of {NAMES[0]}.", (call,), (Observation(call.id, seen),))


class Host:
    """A memory of either colour, called as if it were the sync one; ``loop`` runs on while a call does."""

    def __init__(self, colour, where=":memory:", **options):
        self.colour = colour
        self._runner = asyncio.Runner() if colour == "async" else None
        kind = AsyncAgentMemory if colour == "async" else AgentMemory
        options = {"budget": BUDGET, "counter": COUNTER, "policy": "rolling", "spend": None, **options}
        self.memory = kind(where, **options) if hasattr(where, "append") else kind.open(where, **options)
        if options.get("readonly") is not True and not self.steps:
            self.record(SystemPromptStep("You mend code."), TaskStep(f"Mend the header. {RULE}"))

    def __getattr__(self, name):
        found = getattr(self.memory, name)
        if callable(found):
            return lambda *args, **more: self.run(found(*args, **more))
        return self.run(found)

    def run(self, given):
        if not inspect.isawaitable(given):
            return given
        return self._runner.run(_awaited(given))

    def turns(self, first, last, settle=True):
        """Record the turns and make a request after each, each held against the promises."""
        for number in range(first, last):
            self.record(turn(number))
            served(self)
            if settle:
                self.wait(300)

    def end(self):
        self.close()  # a second time for some
        if self._runner is not None:
            self._runner.close()


async def _awaited(given):
    return await given


def served(host):
    """The view: within budget, legal for every provider, every rule in it, what is data marked as data."""
    view = host.view()
    promises.check_budget(view, COUNTER)
    promises.check_well_formed(view.messages())
    assert RULE in str(view.messages())
    promises.check_data_framing(view, [SystemPromptStep("You mend code.")])
    return view


def compactions(host):
    held = set(host.memory._runtime.state.fold.compactions)
    return [each.body for each in host.memory._runtime.log.read() if each.position in held]


def records(host):
    """What a model wrote and a compaction keeps."""
    return [each for made in compactions(host) for each in made.replacements if each.record]


class Listening(logging.Handler):
    """What the library logged."""

    def __init__(self):
        super().__init__()
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())
