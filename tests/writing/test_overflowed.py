"""What a provider says of a request that was too long, in its own words, and the view that follows."""

import runpy
from pathlib import Path

import pytest
from writing_runs import served, turn

KNOWN = runpy.run_path(str(Path(__file__).parents[1] / "models" / "test_overflow.py"))
SAID, NOT_ONE = KNOWN["SAID"], KNOWN["NOT_ONE"]


class Refused(Exception):
    def __init__(self, status, said):
        super().__init__(said)
        self.status_code = status


@pytest.mark.parametrize(("status", "said", "window"), [row[1:4] for row in SAID], ids=[row[0] for row in SAID])
def test_the_next_view_fits_the_window_that_was_named_and_is_smaller(host, status, said, window):
    room = max(3_000, (window or 3_000) // 64)
    memory = host(budget=(window and window * 2) or room)
    memory.record(*(turn(number) for number in range(20)))
    before = served(memory).tokens
    found = memory.handle_overflow(Refused(status, said))
    assert found is not None
    after = served(memory)
    assert after.tokens < before
    assert window is None or after.tokens <= after.limit < window
    assert memory.verify().ok


@pytest.mark.parametrize("said", NOT_ONE)
def test_an_unrelated_error_teaches_nothing(host, said):
    memory = host()
    memory.turns(0, 6)
    budget, view = memory.budget, memory.view()
    assert memory.handle_overflow(Refused(429, said)) is None
    assert memory.handle_overflow(ValueError("no key")) is None
    assert memory.budget == budget
    assert memory.view() == view


@pytest.mark.parametrize("said", ["prompt is too long", "prompt is too long: 1200 tokens > 1100 maximum", ""])
def test_an_overflow_that_comes_again_always_shrinks_and_never_raises(host, said):
    memory = host(budget=20_000)
    memory.record(*(turn(number) for number in range(30)))
    sizes = [served(memory).tokens]
    for _ in range(4):
        assert memory.handle_overflow(Refused(413, said)) is not None
        sizes.append(served(memory).tokens)
    assert sizes == sorted(set(sizes), reverse=True), "a request was not smaller than the one that overflowed"
    for _ in range(60):
        assert memory.handle_overflow(Refused(413, said)) is not None
    assert memory.budget.limit >= 1


def test_what_was_learnt_holds_for_later_turns(host):
    memory = host(budget=20_000)
    memory.turns(0, 20)
    memory.handle_overflow(Refused(400, "prompt is too long: 2400 tokens > 1200 maximum"))
    for number in range(20, 40):
        memory.record(turn(number))
        assert served(memory).tokens <= 1_200
