"""Where talk goes on without a question: the newest turns that left the view come back, and stay where they were first shown."""

from __future__ import annotations

import re
from itertools import pairwise, takewhile

import pytest

from pagein import AgentMemory

PLACES = ("the market", "the keep", "the library", "the orchard", "the smithy", "the gate", "the ferry", "the hall")


def scene(number):
    """What the model tells, some 90 tokens, different in each turn."""
    place = PLACES[number % len(PLACES)]
    rest = " ".join(f"Lamp {number}.{lamp} burns over {place}." for lamp in range(6))
    return f"Scene {number}. You walk through {place}, and {rest} Somebody calls your name. What do you do?"


def play(memory, turns, first=0):
    """Play a story to which the user says little, and yield each request with what was told until then."""
    scenes = [scene(number) for number in range(first)]
    for number in range(first, first + turns):
        memory.record_messages([{"role": "user", "content": f"I go on, step {number}."}], whole=False)
        yield scenes, memory.to_messages()
        scenes = [*scenes, scene(number)]
        memory.record_messages([{"role": "assistant", "content": scenes[-1]}], whole=False)


def whole_newest(scenes, request):
    """How many of the newest scenes are whole in the request, without a gap."""
    text = "\n".join(str(message["content"]) for message in request)
    return sum(1 for _ in takewhile(lambda told: told in text, reversed(scenes)))


def shared(before, request):
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, request, strict=False)))


@pytest.mark.parametrize("budget", [1_000, 3_000])
def test_the_newest_scenes_of_a_story_are_in_every_request(budget):
    with AgentMemory.open(":memory:", budget=budget) as memory:
        requests = list(play(memory, 120))[-50:]
        assert memory.view().has_replaced_entries
    assert all(str(request).count(told) <= 1 for scenes, request in requests for told in scenes), "a scene comes twice"
    newest = [whole_newest(scenes, request) for scenes, request in requests]
    in_budget = budget / 110  # a scene and the words before it have some 110 tokens
    assert sum(newest) / len(newest) >= in_budget / 2
    assert min(newest) >= in_budget / 4


def test_they_stay_in_the_providers_cache_until_a_compaction():
    with AgentMemory.open(":memory:", budget=3_000) as memory:
        requests = [request for _, request in play(memory, 60)]
    recalled = ['<memory kind="recalled">' in str(request) for request in requests]
    assert sum(recalled) > 20
    # Of two requests with page-ins the second has nearly all of the first, but where a compaction came between.
    pairs = [(before, request) for before, request in pairwise(requests) if '<memory kind="recalled">' in str(before)]
    assert sum(shared(before, request) >= len(before) - 2 for before, request in pairs) > 0.6 * len(pairs)


def test_such_a_request_can_be_made_again_also_from_the_file(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=1_500) as memory:
        *_, (_, request) = play(memory, 40)
        assert '<memory kind="recalled">' in str(request)
        again = memory.request()
        assert (again.problem, again.request["messages"]) == ("", request)
    with AgentMemory.open(tmp_path / "run.db", budget=1_500) as memory:
        again = memory.request()
        assert (again.problem, again.request["messages"]) == ("", request)
        for scenes, request in play(memory, 3, first=40):
            assert whole_newest(scenes, request) >= 5


def test_a_turn_that_was_erased_does_not_come_back():
    with AgentMemory.open(":memory:", budget=1_500) as memory:
        *_, (scenes, request) = play(memory, 40)
        count = whole_newest(scenes, request)
        erased = len(scenes) - count
        handle = next(f"s{at}" for at, step in enumerate(memory.steps) if step.content == scenes[erased])
        memory.erase(handle)
        *_, (_, request) = play(memory, 2, first=40)
    assert scenes[erased] not in str(request)
    assert "[erased]" not in str([message for message in request if "recalled" in str(message)])


def test_a_cleared_view_begins_anew():
    with AgentMemory.open(":memory:", budget=1_500) as memory:
        *_, (scenes, _) = play(memory, 40)
        memory.clear_view()
        memory.record_messages([{"role": "user", "content": "I open the door."}], whole=False)
        request = memory.to_messages()
        assert whole_newest(scenes, request) == 0
        *_, (scenes, request) = play(memory, 30, first=40)
    assert whole_newest(scenes, request) >= 5


@pytest.mark.parametrize(
    "question",
    [
        "what did scene 3 say about the orchard",
        "um so which lamp is it that burns over the orchard in scene 3",
        "wats lamp 3.2 doing in the orchard",
        "who is in the orchard with lamp 3.2 do you know",
    ],
)
def test_a_question_without_a_mark_has_the_room_of_one(question):
    recalled = []
    for asked in (question, f"{question}?"):
        with AgentMemory.open(":memory:", budget=3_000) as memory:
            list(play(memory, 60))
            memory.record_messages([{"role": "user", "content": asked}], whole=False)
            request = str(memory.to_messages()).replace(asked, "")
            recalled.append(re.findall(r"Scene \d+", request))
    assert recalled[0] == recalled[1]
    assert "Scene 3" in recalled[0]
