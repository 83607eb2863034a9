"""What goes wrong in a run, the same in every framework: each gives a ``Host``, the cases are here, written once.

A host's model holds every request to the rules of a strict provider and to the budget, so a case that ends well has sent
nothing illegal on its way.
"""

import asyncio
import contextlib
import importlib.metadata
import json
import re
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from pagein import AgentMemory, ConfigurationError, Conflict, PageinError
from pagein.errors import LogClosed

BUDGET = 2_000
EDITS = ("removed", "replaced", "reordered", "renamed", "unanswered")


@dataclass(frozen=True)
class Call:
    """The model asks for a page."""

    id: str
    number: int


@dataclass(frozen=True)
class Breaks:
    """The model says this much, then its connection is gone."""

    said: str


class Overflow(Exception):
    """As Anthropic's SDK says it."""


class Hung(BaseException):
    """Somebody lost patience with a tool, as one does with Ctrl-C."""


def page(number):
    """Some 300 tokens."""
    return "\n".join(f"page {number} line {line}: value {(number * 7919 + line) % 1000}" for line in range(24))


def in_order(*answers):
    """A script that gives one answer after the other, and the last for ever."""
    return lambda number, _: answers[min(number, len(answers)) - 1]


class Host:
    """An agent of one framework with a memory of ours, on a file.

    ``script(number, said)`` answers its model's requests, ``look(number)`` is its one tool, ``asked`` has the text of each
    request. A subclass gives what is not written here.
    """

    retries_overflow = True
    """Whether a request that was too long is made again by itself; else the host is told by ``overflowed``."""
    knows_open_calls = True
    """Whether a call is known, to us or in the state, before its tool runs."""
    is_the_state = False
    """Whether the framework has no state beside the memory."""
    reopens = True
    """Whether it goes on after its memory was closed, with the state it has."""
    takes_turns = True
    """Whether another process may write to the session between two turns."""
    shows_both = False
    """Whether two agents that share the memory are of one conversation."""

    def __init__(self, path, *, is_async=False, source=None):
        self.path, self.is_async, self.source = path, is_async, source
        self.script, self.look, self.asked = in_order("Done."), page, []
        self.began = asyncio.Event()
        self.open()

    def open(self):
        """Open the memory, or take the one that is shared."""
        raise NotImplementedError

    def turn(self, words, *, stream=False):
        """One turn of the user's, played to its end: what the agent answers."""
        raise NotImplementedError

    async def aturn(self, words, *, stream=False):
        """The same, awaited."""
        raise NotImplementedError

    def history(self):
        """The framework's own state, as JSON-safe values."""
        raise NotImplementedError

    def edit(self, how):
        """Change the state as somebody else's code would; ``how`` is one of EDITS."""
        raise NotImplementedError

    def plant(self):
        """Put messages of kinds nobody knows into the state, each with the word ``hologram`` in it."""
        raise NotImplementedError

    def take_over(self, other):
        """Go on with the state of an agent in another process."""

    def sharing(self):
        """Another agent with the same memory."""
        raise NotImplementedError

    def memory(self):
        """The AgentMemory beneath."""
        raise NotImplementedError

    def enter(self):
        """What a user calls first."""
        raise NotImplementedError

    def overflowed(self, error):
        """Tell the memory of a provider's error."""
        raise NotImplementedError

    def close(self):
        """Close the memory."""
        raise NotImplementedError

    def settle(self):
        """Have what was said last recorded, where that waits for the next request."""

    def play(self, words, *, stream=False):
        """A turn in the host's colour."""
        if self.is_async:
            return asyncio.run(self.aturn(words, stream=stream))
        return self.turn(words, stream=stream)

    def answer(self, said):
        """What the model answers to a request that says this; raises what it is to raise."""
        self.asked.append(said)
        answer = self.script(len(self.asked), said)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def waits(self):
        """Whether the tool is to be awaited."""
        return asyncio.iscoroutinefunction(self.look)


def sessions(path):
    """The sessions in a file."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        return [row[0] for row in database.execute("SELECT DISTINCT session FROM entries")]


def recorded(path):
    """Everything that was ever recorded in a file, in any session, as text."""
    told = []
    for each in sessions(path):
        with AgentMemory.open(path, session=each, budget=10**6, readonly=True) as memory:
            assert memory.verify().ok
            told += map(repr, memory.steps)
    return "\n".join(told)


def plain(value):
    """JSON-safe values as they are after a copy: what is compared is what they say."""
    return json.loads(json.dumps(value, default=str))


class BadEnds:
    """The cases. A subclass names its ``HOST``."""

    HOST = Host

    @pytest.fixture
    def make(self, tmp_path):
        """Hosts on one file, closed at the end."""
        made = []

        def make(**options):
            made.append(self.HOST(tmp_path / "run.db", **options))
            return made[-1]

        yield make
        for each in made:
            each.close()

    @pytest.fixture(params=["sync", "async"])
    def host(self, request, make):
        """A host in either colour; a framework that has one overrides this."""
        return make(is_async=request.param == "async")

    # -- the release

    @pytest.mark.parametrize("found", ["0.0.1", "99.0.0", "unknown"])
    def test_a_release_outside_the_range_is_named_with_the_range(self, make, monkeypatch, found):
        host = make()
        monkeypatch.setattr(importlib.metadata, "version", lambda package: found)
        with pytest.raises(ConfigurationError, match=rf"{found} is installed.*>=\d+\.\d+,<\d+\.\d+: pip"):
            host.enter()

    # -- kinds nobody knows

    def test_messages_of_kinds_nobody_knows_are_kept_shown_and_given_back_unchanged(self, host):
        host.script = in_order("Done.")
        host.play("Begin.")
        host.plant()
        planted = plain(host.history())
        host.play("What is that?")
        assert plain(host.history())[: len(planted)] == planted
        assert "hologram" in recorded(host.path)

    def test_and_they_leave_the_view_like_any_other(self, host):
        host.play("Begin.")
        host.plant()
        planted = plain(host.history())
        host.script = lambda number, said: "Done." if number % 8 == 0 else Call(f"c{number}", number)
        for turn in range(2):
            host.play(f"Turn {turn}.")
        assert plain(host.history())[: len(planted)] == planted
        assert "hologram" in recorded(host.path)

    # -- a state that others edit

    @pytest.mark.parametrize("how", EDITS)
    def test_the_view_is_of_the_state_as_it_was_edited_and_the_record_keeps_what_was(self, host, how):
        host.script = in_order(
            Call("c1", 1), "First done.", Call("c2", 2), "Second done.", "Third.", Call("c3", 3), "Fourth."
        )
        host.play("Look at page one.")
        host.play("Look at page two.")
        host.edit(how)
        edited = plain(host.history())
        assert host.play("And now?") == "Third."
        assert plain(host.history())[: len(edited)] == edited
        shown = host.asked[-1]
        match how:
            case "removed" | "unanswered":
                assert "page 1 line" not in shown
                assert "page 2 line" in shown
            case "replaced":
                assert "Look at page seven." in shown
                assert "Look at page one." not in shown
            case "reordered":
                assert shown.index("page 2 line") < shown.index("page 1 line")
            case "renamed":
                assert "page 1 line" in shown
        assert "page 1 line 3: value" in recorded(host.path)
        assert "Look at page one." in recorded(host.path)
        before = plain(host.history())
        assert host.play("Look at page three.") == "Fourth."
        assert plain(host.history())[: len(before)] == before

    def test_what_was_erased_stays_gone_though_the_state_has_it(self, host, make):
        host.script = in_order(Call("c1", 1), "First done.", "Second.", "Third.")
        host.play("My items: the egret of content, role user.")
        for words in ("egret", "page 1 line"):
            host.memory().erase(host.memory().recall(words)[0].handle)
        assert host.play("Go on.") == "Second."
        assert not re.search("egret|page 1 line", host.asked[-1])
        host.close()
        again = host if host.reopens else make(is_async=host.is_async)
        again.script = in_order(*["Third."] * 9)
        assert again.play("Are you there?") == "Third."
        assert "Go on." in again.asked[-1]
        assert not re.search("egret|page 1 line", again.asked[-1])
        again.close()
        assert not any(re.search(b"egret|page 1 line", file.read_bytes()) for file in host.path.parent.glob("run.db*"))

    # -- two agents

    def test_two_agents_that_share_a_memory_take_turns(self, host):
        other = host.sharing()
        for each, word in ((host, "walrus"), (other, "osprey")):
            each.script = lambda number, said, word=word: (
                f"{word} {number}" if number % 2 == 0 else Call(f"{word}{number}", number)
            )
        for _ in range(3):
            host.play("For walrus.")
            other.play("For osprey.")
        host.settle()
        other.settle()
        told = recorded(host.path)
        for each, word, strange in ((host, "walrus", "osprey"), (other, "osprey", "walrus")):
            assert all(f"{word} {number}" in told for number in (2, 4, 6))
            assert any(strange in said for said in each.asked) == each.shows_both

    def test_two_processes_take_turns_in_one_conversation(self, make):
        one, two = make(), make()
        for number in range(4):
            host, other = (two, one) if number % 2 else (one, two)
            host.script = lambda _, said, number=number: (
                f"Answer {number}." if f"page {number} line" in said else Call(f"c{number}", number)
            )
            host.take_over(other)
            if number and not host.takes_turns:
                with pytest.raises(Conflict):
                    host.play("Question 1.")
                return
            assert host.play(f"Question {number}.") == f"Answer {number}."
            assert [host.asked[-1].count(f"Question {turn}.") for turn in range(4)] == [1] * (number + 1) + [0] * (
                3 - number
            )
        one.settle()
        assert len(sessions(one.path)) == 1

    def test_two_agents_that_share_a_memory_at_the_same_time(self, host):
        other = host.sharing()
        meet = threading.Barrier(2)

        def live(each, word):
            def script(number, said):
                # Both have been asked before either answers, as long as both are asked.
                with contextlib.suppress(threading.BrokenBarrierError):
                    meet.wait(0.5)
                return f"{word} {number}" if number % 2 == 0 else Call(f"{word}{number}", number)

            each.script = script
            for _ in range(3):
                each.play(f"For {word}.")

        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(live, *each) for each in ((host, "walrus"), (other, "osprey"))]
        for each in runs:
            each.result()
        host.settle()
        other.settle()
        told = recorded(host.path)
        assert all(f"{word} {number}" in told for word in ("walrus", "osprey") for number in (2, 4, 6))
        assert len(sessions(host.path)) == (1 if host.shows_both else 2)
        if not host.shows_both:
            assert not any("osprey" in said for said in host.asked)
            assert not any("walrus" in said for said in other.asked)
        host.script = in_order("Fine.")
        assert host.play("And now?") == "Fine."

    # -- a stream that breaks off

    @pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
    def test_half_a_message_is_recorded_nowhere_and_the_next_turn_is_legal(self, host, stream):
        host.script = in_order(Call("c1", 1), Breaks("Half an ans"), "Whole.")
        with pytest.raises(Exception, match="the connection is gone"):
            host.play("Look at page one.", stream=stream)
        assert "Half an" not in recorded(host.path)
        assert "Half an" not in str(host.history())
        assert host.play("Go on.") == "Whole."
        assert "Half an" not in host.asked[-1]
        host.settle()
        assert "Whole." in recorded(host.path)

    # -- tools

    def test_a_tool_that_never_answers_is_a_call_that_may_have_run(self, host):
        def hang(number):
            raise Hung

        async def wait(number):
            host.began.set()
            await asyncio.Event().wait()

        host.script = in_order(Call("c1", 1), "Then not.", Call("c2", 2), "Two.")
        if host.is_async:
            host.look = wait
            asyncio.run(self._cancelled(host))
        else:
            host.look = hang
            with pytest.raises(Hung):
                host.play("Look at page one.")
        host.look = page
        before = plain(host.history())
        assert host.play("Go on.") == "Then not."
        assert ("may have run" in host.asked[-1]) == host.knows_open_calls
        assert plain(host.history())[: len(before)] == before
        assert host.play("Look at page two.") == "Two."

    @staticmethod
    async def _cancelled(host):
        host.began = asyncio.Event()
        run = asyncio.create_task(host.aturn("Look at page one."))
        await asyncio.wait_for(host.began.wait(), 30)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    def test_a_tool_that_fails_is_told_to_the_model_or_to_the_host(self, host):
        def torn(number):
            raise ValueError("the page is torn")

        host.look, host.script = torn, in_order(Call("c1", 1), "A pity.", Call("c2", 2), "Two.")
        answer, error = attempted(host, "Look at page one.")
        if answer is None:
            assert isinstance(error, ValueError)
            answer = host.play("Leave it.")
        else:
            assert "error" in host.asked[-1].lower()
        assert answer == "A pity."
        host.look, before = page, plain(host.history())
        assert host.play("Look at page two.") == "Two."
        assert plain(host.history())[: len(before)] == before

    # -- the provider

    def test_a_request_that_the_provider_finds_too_long_is_followed_by_a_smaller_one(self, host):
        def script(number, said):
            if len(said) > 3_000:
                return Overflow(f"prompt is too long: {len(said)} tokens > 3000 maximum")
            return "Done." if "page 6 line" in said else Call(f"c{number}", min(6, number))

        host.script = script
        answer, error = attempted(host, "Look.")
        while answer is None:
            assert not host.retries_overflow
            assert isinstance(_root(error), Overflow), error
            assert host.overflowed(error)
            before = plain(host.history())
            answer, error = attempted(host, "Go on.")
            assert plain(host.history())[: len(before)] == before
        assert answer == "Done."
        over = [at for at, said in enumerate(host.asked) if len(said) > 3_000]
        assert over
        assert all(len(host.asked[at + 1]) < len(host.asked[at]) for at in over)

    def test_an_error_that_is_none_of_ours_is_the_hosts_and_nothing_is_recorded_of_it(self, host):
        host.script = in_order(OSError("the house is on fire"), "Fine.")
        with pytest.raises(Exception, match="the house is on fire"):
            host.play("Begin.")
        assert "on fire" not in recorded(host.path)
        assert host.play("Go on.") == "Fine."

    # -- a memory that is closed

    def test_a_memory_closed_in_mid_run_is_opened_again_or_a_clear_error(self, host, make):
        def closing(number):
            host.close()
            return page(number)

        host.look, host.script = closing, in_order(Call("c1", 1), "Done.")
        answer, error = attempted(host, "Look at page one.")
        if answer is None:
            assert isinstance(_root(error), LogClosed), error
            assert "open it again" in str(error)
        else:
            assert answer == "Done."
        host.close()
        again = make(is_async=host.is_async)
        again.script = in_order("Here I am.")
        assert again.play("Are you there?") == "Here I am."
        kept = again if host.is_the_state else host
        assert "Look at page one." in str(kept.history())
        assert "Look at page one." in recorded(host.path)


def attempted(host, words):
    """What a turn answers, or None and what it raised."""
    try:
        return host.play(words), None
    except Exception as error:  # noqa: BLE001 - what it is, the case says
        return None, error


def _root(error):
    """What a framework's own error was made of."""
    while not isinstance(error, (Overflow, PageinError)) and (error.__cause__ or error.__context__):
        error = error.__cause__ or error.__context__
    return error
