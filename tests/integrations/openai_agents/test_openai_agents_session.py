"""PageinSession as a Session of the SDK: items come back equal, newest last, and go one by one."""

import asyncio
import threading

import pytest
from agents.memory import Session, SessionSettings

from pagein.errors import ConfigurationError, FormatError, LogClosed
from pagein.integrations import _versions as releases
from pagein.integrations._item_history import ItemHistory
from pagein.integrations.openai_agents.session import PageinSession

pytestmark = pytest.mark.slow

USER = {"role": "user", "content": "Look."}
CALLS = [
    {"type": "function_call", "call_id": f"c{at}", "name": "look", "arguments": "{}", "status": "completed"}
    for at in (1, 2)
]
OUTPUTS = [{"type": "function_call_output", "call_id": f"c{at}", "output": f"page {at}"} for at in (1, 2)]
SAID = {"role": "assistant", "content": "Done."}
RUN = [USER, *CALLS, *OUTPUTS, SAID]


@pytest.fixture
def session(tmp_path):
    made = PageinSession("ann", tmp_path / "run.db", budget=4_000)
    yield made
    made.close()


def do(awaitable):
    return asyncio.run(awaitable)


def test_it_is_a_session(session):
    assert isinstance(session, Session)


def test_items_come_back_equal_and_in_a_new_process(session, tmp_path):
    do(session.add_items(RUN[:3]))
    do(session.add_items(RUN[3:]))
    assert do(session.get_items()) == RUN
    session.close()
    again = PageinSession("ann", tmp_path / "run.db", budget=4_000)
    assert do(again.get_items()) == RUN
    again.close()


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (2, 2), (6, 6), (99, 6), (-1, 6), (None, 6)])
def test_a_limit_gives_the_newest(session, limit, count):
    do(session.add_items(RUN))
    assert do(session.get_items(limit)) == RUN[len(RUN) - count :]


def test_the_settings_limit_and_the_call_overrides(tmp_path):
    session = PageinSession("ann", tmp_path / "run.db", budget=4_000, session_settings=SessionSettings(limit=2))
    do(session.add_items(RUN))
    assert do(session.get_items()) == RUN[-2:]
    assert do(session.get_items(3)) == RUN[-3:]
    session.close()


def test_items_are_taken_back_one_by_one_and_the_model_is_told_the_rest(session):
    do(session.add_items(RUN[:5]))
    do(session.add_items(RUN[5:]))
    for count in range(5, 0, -1):
        assert do(session.pop_item()) == RUN[count]
        assert do(session.get_items()) == RUN[:count]
        told = len(session.memory.to_messages("openai-responses"))
        assert told == {5: 5, 4: 5, 3: 5, 2: 3, 1: 1}[count]
    assert do(session.pop_item()) == USER
    assert do(session.pop_item()) is None
    assert session.memory.verify().ok


def test_a_result_taken_back_may_be_given_again(session):
    do(session.add_items(RUN[:5]))
    do(session.pop_item())
    other = {**OUTPUTS[1], "output": "another page"}
    do(session.add_items([other]))
    assert do(session.get_items()) == [*RUN[:4], other]
    assert session.memory.to_messages("openai-responses")[-1] == other


def test_a_crash_between_taking_back_and_telling_the_rest_loses_nothing(session, tmp_path, monkeypatch):
    do(session.add_items(RUN))
    monkeypatch.setattr(ItemHistory, "refresh", lambda self: None)
    session._history._pop()  # the edit is written, and the process is gone
    monkeypatch.undo()
    again = PageinSession("ann", tmp_path / "run.db", budget=4_000)
    assert do(again.get_items()) == RUN[:5]
    assert again.memory.to_messages("openai-responses") == RUN[:5]
    again.close()


def test_a_cleared_session_is_empty_and_the_record_is_whole(session):
    do(session.add_items([{"role": "system", "content": "Be brief."}, *RUN]))
    do(session.clear_session())
    assert do(session.get_items()) == []
    do(session.add_items([USER]))
    assert do(session.get_items()) == [USER]
    assert session.memory.to_messages("openai-responses") == [USER]
    assert "page 2" in "".join(str(entry.body) for entry in session.memory.log()._log.read())


def test_two_sessions_of_one_file_do_not_mix(session, tmp_path):
    other = PageinSession("bob", tmp_path / "run.db", budget=4_000)
    do(session.add_items(RUN))
    do(other.add_items([USER]))
    assert (len(do(session.get_items())), len(do(other.get_items()))) == (6, 1)
    other.close()


def test_two_agents_may_share_a_session(session, tmp_path):
    other = PageinSession("ann", tmp_path / "run.db", budget=4_000)
    do(session.add_items([USER]))
    do(other.add_items([SAID]))
    do(session.add_items([USER]))
    assert do(other.get_items()) == do(session.get_items()) == [USER, SAID, USER]
    do(other.pop_item())
    assert do(session.get_items()) == [USER, SAID]
    do(session.clear_session())
    assert do(other.get_items()) == []
    assert other.memory.view().tokens <= session.memory.view().tokens
    other.close()


def test_many_threads_write_and_nothing_is_lost(session, tmp_path):
    others = [PageinSession("ann", tmp_path / "run.db", budget=4_000) for _ in range(3)]

    def write(which, name):
        for number in range(5):
            do(which.add_items([{"role": "user", "content": f"{name} {number}"}]))

    threads = [threading.Thread(target=write, args=(each, at)) for at, each in enumerate([session, *others])]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    said = [each["content"] for each in do(session.get_items(-1))]
    assert sorted(said) == sorted(f"{name} {number}" for name in range(4) for number in range(5))
    for each in others:
        each.close()


def test_what_is_not_json_is_refused_and_nothing_is_written(session):
    do(session.add_items([USER]))
    with pytest.raises(FormatError, match="items"):
        do(session.add_items([SAID, {"role": "user", "content": object()}]))
    assert do(session.get_items()) == [USER]


def test_what_is_no_item_is_given_back_as_it_came_and_shown_to_no_model(session):
    odd = {"content": "no role, no type"}
    do(session.add_items([USER]))
    do(session.add_items([odd]))
    assert do(session.get_items(-1)) == [USER, odd]
    assert session.memory.to_messages("openai-responses") == [USER]


def test_cancelled_writes_are_known(session):
    async def cancelled():
        task = asyncio.create_task(session.add_items(RUN))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await session.get_items()

    assert do(cancelled()) == RUN


def test_a_closed_session_says_so(session):
    session.close()
    with pytest.raises(LogClosed):
        do(session.add_items([]))
    with pytest.raises(LogClosed):
        do(session.get_items())


@pytest.mark.parametrize("found", ["0.21.3", "0.25.0", "1.0", "unknown"])
def test_another_release_is_refused_by_name(found):
    with pytest.raises(ConfigurationError, match=rf"openai-agents {found} .*openai-agents>=0.22,<0.25"):
        releases.require_release("openai-agents", found)
