"""Golden requests: one recorded run gives the same requests, byte for byte, on every machine.

A trace has one line a request: its number, tokens, messages, the compactions so far, and the hash of its JSON. A change
of behaviour shows as a changed line; ``python tests/golden/test_golden.py`` writes the traces anew.
"""

import ast
import hashlib
import json
import os
import random
import subprocess
import sys
from itertools import accumulate
from pathlib import Path

import pytest

from pagein import AgentMemory, Compaction
from pagein.evaluation.runs import demo_run

HERE = Path(__file__).parent
CASES = [(budget, format) for budget in (4_000, 8_000) for format in ("openai", "anthropic")]


def trace(budget, format, clock=lambda: 0.0):
    """Return one line for each request of the bundled run."""
    lines = []
    with AgentMemory.open(":memory:", budget=budget, format=format, clock=clock) as memory:
        for message in demo_run().messages:
            if message["role"] == "assistant":
                request = memory.to_request()
                digest = hashlib.sha256(json.dumps(request, ensure_ascii=False).encode()).hexdigest()[:16]
                out = len(memory.report().out)
                tokens, message_count = memory.view().tokens, len(request["messages"])
                lines.append(f"{len(lines):3} {tokens:6} tokens {message_count:3} messages {out:3} out {digest}")
            memory.record_messages([message], "openai", whole=False)
    return lines


def path(budget, format):
    """Return the path of a trace."""
    return HERE / f"demo-{budget}-{format}.txt"


@pytest.mark.parametrize(("budget", "format"), CASES)
def test_the_bundled_run_gives_the_requests_it_gave(budget, format):
    assert trace(budget, format) == path(budget, format).read_text().splitlines()


@pytest.mark.parametrize("seed", [0, 2])
def test_the_requests_do_not_depend_on_how_fast_the_run_goes(seed):
    pauses = random.Random(seed)  # shorter than a provider keeps its cache, and all on one day
    clock = accumulate(pauses.choice((*[1e-6] * 20, 250.0)) for _ in range(2_000)).__next__
    assert trace(4_000, "openai", clock) == path(4_000, "openai").read_text().splitlines()


@pytest.mark.slow
def test_the_requests_do_not_depend_on_the_hash_seed():
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); from test_golden import trace; print(trace(4000, 'openai'))"
    other = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    # The traces on disk were written, and are compared above, under other seeds.
    assert ast.literal_eval(other) == path(4_000, "openai").read_text().splitlines()


TALK = """
import hashlib, json
from pagein import AgentMemory
from pagein.evaluation.planted import build_session
from pagein.evaluation.runs import replay_clock

for policy in ("ladder", "short_long", "relevance", "tiers"):
    digest = hashlib.sha256()
    with AgentMemory.open(":memory:", budget=900, policy=policy, clock=replay_clock()) as memory:
        for message in build_session(3, 40).messages:
            if message["role"] == "assistant":
                digest.update(json.dumps(memory.to_messages()).encode())
            memory.record_messages([dict(message)], whole=False)
        digest.update(repr([(hit.handle, hit.scores) for hit in memory.recall("Which budget and which date?")]).encode())
    print(policy, digest.hexdigest())
"""


@pytest.mark.slow
def test_what_a_talk_shows_and_finds_does_not_depend_on_the_hash_seed(tmp_path):
    from tests._support.scripts import run_script  # this file is also a program, which sees no tests

    script = tmp_path / "talk.py"
    script.write_text(TALK)
    env = os.environ | {"PYTHONHASHSEED": "1"}
    other = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, check=True).stdout
    assert len(other.splitlines()) == 4
    assert run_script(script).stdout == other  # the seed of this process is another


def is_page_in(row):
    return '<memory kind="recalled"' in str(row["content"])


def without_page_ins(request):
    """Return the messages without page-ins, which leave where the budget has no room for them."""
    return [row for row in request if not is_page_in(row)]


def test_every_request_between_two_compactions_starts_with_the_one_before():
    with AgentMemory.open(":memory:", budget=5_000) as memory:
        before, passes, unchanged, without_room, with_page_in = [], 0, 0, 0, 0
        for message in demo_run().messages:
            if message["role"] == "assistant":
                request = memory.to_messages()
                bodies = [entry.body for entry in memory._runtime.log.read()]
                now = sum(isinstance(body, Compaction) for body in bodies)
                if now == passes and request[: len(before)] == before:
                    unchanged += 1
                elif now == passes:
                    # Only a page-in may leave, all the rest starts as before.
                    rest = without_page_ins(before)
                    assert len(rest) < len(before)
                    assert without_page_ins(request)[: len(rest)] == rest
                    without_room += 1
                with_page_in += any(map(is_page_in, request))
                before, passes = request, now
            memory.record_messages([message], whole=False)
    assert passes > 2
    assert unchanged > 10
    assert without_room < unchanged / 2
    assert with_page_in > 10


if __name__ == "__main__":
    for case in CASES:
        path(*case).write_text("\n".join(trace(*case)) + "\n")
