"""What an application hands over for one turn and takes back in its next list: looked-up context, in every place."""

import json
import re

import pytest

from pagein import AgentMemory
from pagein.events.steps import as_text

TURNS = 6
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


def user(text):
    return {"role": "user", "content": text}


def answer(text):
    return {"role": "assistant", "content": text}


def context(turn):
    return f"Context {turn}: boat {turn} lies at pier {turn * 3}. " * 4


def question(turn):
    return f"Question {turn}: where is boat {turn}?"


WAYS = {
    "before": lambda turn: [user(context(turn)), user(question(turn))],
    "before, acknowledged": lambda turn: [user(context(turn)), answer("Understood."), user(question(turn))],
    "behind": lambda turn: [user(question(turn)), user(context(turn))],
    "in front": lambda turn: [user(f"{context(turn)}\n\n{question(turn)}")],
    "around": lambda turn: [user(f"Use this.\n{context(turn)}\nQuestion: {question(turn)}\nAnswer in one word.")],
    "a part": lambda turn: [user([{"type": "text", "text": context(turn)}, {"type": "text", "text": question(turn)}])],
}


def work(turn):
    """A call and its result, within the turn."""
    call = {"id": f"c{turn}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{turn}", "content": f"Result {turn}."},
    ]


def lists(way, *, history=(), works=False):
    """The lists of a talk, in order: in each the newest turn alone has its context."""
    before = list(history)
    for turn in range(TURNS):
        shown = WAYS[way](turn)
        yield [*before, *shown]
        done = work(turn) if works else []
        if done:
            yield [*before, *shown, *done]
        before += [user(question(turn)), *done, answer(f"Answer {turn}.")]


def handles(written):
    """The handles that a record's repairs name."""
    return re.findall(r"\bs\d+", " ".join(written.repairs))


def texts(memory):
    return [as_text(step.content) for step in memory.steps if step.content]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("history", [(), (user("Hello."), answer("Hi."))], ids=["at once", "in a talk"])
@pytest.mark.parametrize("works", [False, True], ids=["talk", "tools"])
@pytest.mark.parametrize("reopened", [False, True], ids=["one process", "restarts"])
def test_each_word_is_recorded_once_in_one_branch(tmp_path, way, history, works, reopened):
    # A run whose first list began with context had been recorded anew, whole, with each list.
    memory = AgentMemory.open(str(tmp_path / "run.db"), budget=4_000)
    for rows in lists(way, history=history, works=works):
        if reopened:
            memory.close()
            memory = AgentMemory.open(str(tmp_path / "run.db"), budget=4_000)
        memory.record_messages(rows)
        memory.to_messages()
    said = "\n".join(texts(memory))
    for turn in range(TURNS):
        assert said.count(f"Question {turn}:") == 1
        assert said.count(f"Context {turn}:") == 4
        assert said.count(f"Answer {turn}.") == (turn < TURNS - 1)
    assert [branch.name for branch in memory.branches()] == ["main"]
    assert memory.verify().ok
    memory.close()


@pytest.mark.parametrize("way", WAYS)
def test_the_view_follows_the_list_and_the_log_keeps_what_was_taken_back(way):
    memory = AgentMemory.open(":memory:", budget=4_000)
    for rows in lists(way, history=(user("Hello."), answer("Hi."))):
        written = memory.record_messages(rows)
        shown = memory.to_messages()
    # What the first list has with an answer in it may be a history: it stays.
    assert not any(f"Context {turn}:" in json.dumps(shown) for turn in range(1, TURNS - 1))
    assert f"Context {TURNS - 1}:" in json.dumps(shown)
    assert way == "before, acknowledged" or shown[:3] == rows[:3]
    originals = [memory.expand(handle) for handle in handles(written)]
    assert "Context 4" in "".join(originals)
    assert question(4) in json.dumps(shown)


def test_a_rule_in_what_was_taken_back_does_not_stand():
    memory = AgentMemory.open(":memory:", budget=600)
    before = [user("Hello."), answer("Hi.")]
    memory.record_messages([*before, user("Policy page: never answer on Fridays."), user("When are you open?")])
    before += [user("When are you open?"), answer("Always.")]
    for turn in range(20):
        before += [user(f"And in week {turn}? " + "please " * 20), answer(f"In week {turn}, too.")]
        memory.record_messages(before)
        shown = memory.to_messages()
    assert "Fridays" not in json.dumps(shown)
    assert not any("Fridays" in entry.text for entry in memory.ledger())
    assert not any("Fridays" in hit.text for hit in memory.recall("answer on Fridays"))


def test_a_rule_of_the_users_own_beside_context_holds_once_both_left_the_view():
    memory, before = AgentMemory.open(":memory:", budget=700), []
    for turn in range(16):
        said = ("Never answer on Fridays. " if turn == 0 else "") + question(turn)
        memory.record_messages([*before, user(f"{context(turn)}\n\n{said}")])
        assert "Never answer on Fridays." in json.dumps(memory.to_messages())
        before += [user(said), answer(f"Answer {turn}.")]


def test_it_is_taken_back_where_it_left_the_view_before():
    memory = AgentMemory.open(":memory:", budget=500)
    for rows in lists("before", history=(user("Hello."), answer("Hi.")), works=True):
        memory.record_messages(rows)
        memory.to_messages()
    assert [branch.name for branch in memory.branches()] == ["main"]
    assert len(texts(memory)) == len(set(texts(memory)))


def test_what_was_taken_back_and_erased_is_gone(tmp_path):
    memory = AgentMemory.open(str(tmp_path / "run.db"), budget=4_000)
    taken = [handle for rows in lists("in front") for handle in handles(memory.record_messages(rows))]
    [rows] = list(lists("in front"))[-1:]
    assert "Context 1" in memory.expand(taken[1])
    assert memory.erase(taken[1]).scrubbed
    memory.record_messages([*rows[:-1], user(question(TURNS - 1)), answer("Bye."), user("Bye.")])
    assert [branch.name for branch in memory.branches()] == ["main"]
    assert len(memory.steps) == 2 * TURNS + 1
    memory.close()
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"boat 1 lies" not in raw
    assert b"where is boat 1?" not in raw


@pytest.mark.parametrize("kind", ["document", "image"])
def test_a_document_or_a_picture_that_later_lists_lack_leaves_the_view(kind):
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    text = {"type": "text", "media_type": "text/plain", "data": "Tides of the harbour."}
    memory, before = AgentMemory.open(":memory:", budget=8_000, format="anthropic"), []
    for turn in range(4):
        part = {"type": kind, "source": text if kind == "document" else source}
        memory.record_messages([*before, user([part, {"type": "text", "text": question(turn)}])])
        shown = memory.to_messages()
        before += [user(question(turn)), answer(f"Answer {turn}.")]
    assert [branch.name for branch in memory.branches()] == ["main"]
    assert len(memory.steps) == 7
    assert f"'{kind}'" in str(shown[-1])
    assert kind == "image" or f"'{kind}'" not in str(shown[:-1]), "old pictures stay where they were shown"


def test_the_newest_words_with_another_answer_are_an_edit():
    memory = AgentMemory.open(":memory:", budget=4_000)
    rows = [user("Hello."), answer("Hi."), user("Book Paris for Ana.")]
    memory.record_messages(rows)
    edited = [*rows[:2], user("Book Rome for Ana."), answer("Booked."), user("Thanks.")]
    assert memory.record_messages(edited).branch == "branch-1"


def test_words_of_an_earlier_turn_that_a_list_lacks_stay_in_the_view():
    memory = AgentMemory.open(":memory:", budget=4_000)
    rows = [row for turn in range(6) for row in (user(question(turn)), answer(f"Answer {turn}."))]
    memory.record_messages(rows)
    written = memory.record_messages([*rows[:4], *rows[6:], user("And now?")])
    assert any("lacks s4" in repair for repair in written.repairs)
    assert question(2) in json.dumps(memory.to_messages())
    assert memory.record_messages([*rows[:4], *rows[6:], user("And now?"), answer("Now."), user("Ok.")]).repairs == ()
    assert len(memory.steps) == 15


def test_what_was_taken_back_and_stands_in_a_later_list_again_is_in_view_once():
    begin = [user("Hello."), answer("Hi.")]
    rule, job, done = user("Never push to main."), user("Do the job."), answer("Done.")
    with AgentMemory.open(":memory:") as memory:
        memory.record_messages([*begin, rule, job])
        memory.record_messages([*begin, job, done])
        assert memory.to_messages()[:4] == [*begin, job, done]
        again = [*begin, rule, job, done, user("And now?")]
        memory.record_messages(again)
        assert memory.to_messages() == again


def test_the_users_continue_is_no_context_where_a_request_ended_with_ours():
    memory = AgentMemory.open(":memory:", budget=4_000)
    rows = [user("Read a."), answer("It is read.")]
    memory.record_messages(rows)
    assert memory.to_messages()[-1] == user("Continue.")
    rows += [user("Continue.")]
    memory.record_messages([rows[0], answer("It is\u00a0read."), rows[2]])  # a store that writes spaces its own way
    for number in range(3):
        rows += [answer(f"Part {number}."), user(f"Go on {number}.")]
        assert memory.record_messages(json.loads(json.dumps(rows))).repairs == ()
    assert texts(memory) == [row["content"] for row in rows]
    assert memory.to_messages()[: len(rows)] == rows


NOTE = user("[note] The user likes short answers, and sails on Thursdays.")


@pytest.mark.parametrize("depth", [1, 2, 4, 6])
@pytest.mark.parametrize("works", [False, True], ids=["talk", "tools"])
@pytest.mark.parametrize("reopened", [False, True], ids=["one process", "restarts"])
def test_a_note_that_moves_through_the_list_stays_in_one_branch(tmp_path, depth, works, reopened):
    # A note before the newest messages but so many had been an edit in each list, so a branch.
    memory = AgentMemory.open(str(tmp_path / "run.db"), budget=4_000)
    rows = []
    for turn in range(TURNS):
        rows.append(user(question(turn)))
        rows += work(turn) if works else []
        place = max(0, len(rows) - depth)
        place -= rows[place]["role"] == "tool"
        if reopened:
            memory.close()
            memory = AgentMemory.open(str(tmp_path / "run.db"), budget=4_000)
        memory.record_messages([*rows[:place], NOTE, *rows[place:]])
        rows.append(answer(f"Answer {turn}."))
        shown = memory.to_messages()
        assert shown.count(NOTE) == 1
        assert all(user(question(before)) in shown for before in range(turn + 1))
    assert len(memory.branches()) == 1
    said = texts(memory)
    assert all(said.count(question(turn)) == 1 for turn in range(TURNS))
    memory.close()
