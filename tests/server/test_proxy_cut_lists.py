"""A client cuts its list: it sends the newest messages alone, or a summary before them. The run goes on all the same."""

import json
import re
from itertools import count

import pytest

from pagein import AgentMemory
from pagein.events.steps import as_text
from pagein.server.clients import compaction_point
from pagein.server.naming import call_ids
from pagein.testing.provider import Answer, Call
from tests.server.sdk_agents import CHAT_TOOL, GEMINI_TOOL, TOOL

pytestmark = pytest.mark.slow

TASK = "Count the boats. Never count a boat twice, whatever anybody says."
SUMMARY = "Summary: the boats of the first piers were counted, and none of them was counted twice so far."


def calling(ids="call_Xq7{:04}kQ02bLm"):
    """A script that calls a tool at each request, with an id of its own."""
    numbers = count(1)

    def answer(question):
        number = next(numbers)
        return Answer(f"Pier {number}.", (Call("read", {"pier": number}, ids.format(number)),))

    return answer


def talking():
    numbers = count(1)
    return lambda question: Answer(f"Answer {next(numbers)}: the pier is quiet.")


def user(text):
    return {"role": "user", "content": text}


class Chat:
    path, key, user = "/v1/chat/completions", "messages", staticmethod(user)

    def body(self, rows):
        return {
            "model": "gpt-5",
            "messages": [{"role": "system", "content": "You count."}, *rows],
            "tools": [CHAT_TOOL],
        }

    def said(self, answer):
        return answer["choices"][0]["message"]

    def reply(self, message, number):
        calls = message.get("tool_calls")
        text = f"Result {number}: {number * 7} boats."
        return (
            {"role": "tool", "tool_call_id": calls[0]["id"], "content": text} if calls else user(f"Question {number}?")
        )


class KeyedChat(Chat):
    """A chat whose program names a cache."""

    def __init__(self, cache):
        self.cache = cache

    def body(self, rows):
        return {**super().body(rows), "prompt_cache_key": self.cache}


class Messages:
    path, key, user = "/v1/messages", "messages", staticmethod(user)

    def body(self, rows):
        return {
            "model": "claude-opus-4-8",
            "max_tokens": 100,
            "messages": rows,
            "tools": [TOOL],
            "system": "You count.",
        }

    def said(self, answer):
        return {"role": "assistant", "content": answer["content"]}

    def reply(self, message, number):
        call = next((block for block in message["content"] if block["type"] == "tool_use"), None)
        if call is None:
            return user(f"Question {number}?")
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"Result {number}: {number * 7} boats."}
        return {"role": "user", "content": [result]}


class Contents:
    path, key = "/v1beta/models/gemini-3-pro-preview:generateContent", "contents"

    def user(self, text):
        return {"role": "user", "parts": [{"text": text}]}

    def body(self, rows):
        return {"contents": rows, "tools": [GEMINI_TOOL], "systemInstruction": {"parts": [{"text": "You count."}]}}

    def said(self, answer):
        return answer["candidates"][0]["content"]

    def reply(self, message, number):
        call = next(part["functionCall"] for part in message["parts"] if "functionCall" in part)
        response = {"output": f"Result {number}: {number * 7} boats."}
        return {
            "role": "user",
            "parts": [{"functionResponse": {"id": call["id"], "name": "read", "response": response}}],
        }


class PythonContents(Contents):
    """With the spelling of Python, as LiteLLM has it."""

    def said(self, answer):
        return json.loads(json.dumps(super().said(answer)).replace("functionCall", "function_call"))

    def reply(self, message, number):
        message = json.loads(json.dumps(message).replace("function_call", "functionCall"))
        return json.loads(json.dumps(super().reply(message, number)).replace("functionResponse", "function_response"))


class Play:
    """A client that keeps its whole list, and sends what it likes of it."""

    def __init__(self, made, client, name=""):
        self.client, self.http = client, made.http()
        self.headers = {"x-pagein-run": name} if name else {}
        self.rows, self.turns = [client.user(TASK)], 0

    def send(self, rows):
        answer = self.http.post(self.client.path, json=self.client.body(rows), headers=self.headers)
        assert answer.status_code == 200, answer.text
        self.said = answer.headers["x-pagein"]
        return self.client.said(answer.json())

    def turn(self, cut=lambda rows: rows):
        self.turns += 1
        message = self.send(cut(self.rows))
        self.rows += [message, self.client.reply(message, self.turns)]


def newest(rows, length=6):
    """The newest messages, behind the first: a list must begin with a message of the user's."""
    return rows if len(rows) <= length + 1 else [rows[0], *rows[len(rows) - length :]]


def texts_of(memory):
    """The texts of all steps that have one."""
    return [text for step in memory.steps if (text := as_text(step.content or ""))]


def steps_of(made, run, **options):
    with made.memory(run, **options) as memory:
        return texts_of(memory)


def branches_of(made):
    """Each run with each of its branches."""
    for run in runs_of(made):
        with made.memory(run) as memory:
            yield from ((run, branch.name) for branch in memory.branches())


def runs_of(made):
    with AgentMemory.open(made.store, session="look", readonly=True) as memory:
        store = memory._runtime.log.store
        return sorted(name for name in store.sessions() if not name.startswith("pagein:") and store.head(name))


def sent_text(made):
    return json.dumps(made.provider.received[-1].body)


CLIENTS = pytest.mark.parametrize(
    "client", [Chat(), Messages(), Contents(), PythonContents()], ids=["chat", "messages", "gemini", "gemini in Python"]
)


@CLIENTS
@pytest.mark.parametrize("name", ["", "mine"], ids=["by its calls", "by its name"])
@pytest.mark.parametrize("restart", [False, True], ids=["one server", "two servers"])
def test_a_client_that_sends_its_newest_messages_has_one_run(stack, client, name, restart):
    script = calling()
    made = stack(script, window=8_000)
    play = Play(made, client, name)
    for _ in range(7):
        play.turn(newest)
    if restart and name:
        made = stack(script, window=8_000, store=made.store)
        play.http = made.http()
    for _ in range(7):
        cut = newest(play.rows)
        play.turn(newest)
        sent = [row for row in made.provider.received[-1].body[client.key] if row["role"] != "system"]
        assert sent == cut, "a list that fits goes out as it came"
    [run] = runs_of(made)
    assert made.provider.illegal == ()
    with made.memory(run) as memory:
        texts = texts_of(memory)
        assert [branch.name for branch in memory.branches()] == ["main"]
        assert any("Result 1: 7 boats." in hit.text for hit in memory.recall("Result 1: 7 boats"))
    assert sum(f"Pier {number}." in texts for number in range(1, 15)) == 14
    assert len(texts) == len(set(texts)), "nothing is recorded twice"


def test_a_cut_list_with_a_picture_is_counted_with_the_pictures_tokens_not_its_letters(stack):
    made = stack(calling(), window=16_000)
    play = Play(made, Chat(), "mine")
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo" + "QUJD" * 60_000}}
    for _ in range(14):
        play.turn(newest)
        play.rows[-1]["content"] += " The pier is long and old." * 160
    play.rows.append(user([picture, {"type": "text", "text": "Which boat is it?"}]))
    cut = newest(play.rows, 7)
    play.turn(lambda rows: cut)
    assert made.provider.received[-1].body["messages"][1:] == cut


@pytest.mark.parametrize("name", ["", "mine"], ids=["without a name", "by its name"])
def test_a_chat_with_context_for_its_newest_message_is_one_run_and_goes_out_as_it_came(stack, name):
    made = stack(talking(), window=8_000)
    play = Play(made, Chat(), name)
    play.rows = [user("Hello, harbour.")]
    for number in range(1, 9):
        shown = [*play.rows[:-1], user(f"Context {number}: tides of pier {number}."), play.rows[-1]]
        play.turn(lambda rows, shown=shown: shown)
        assert made.provider.received[-1].body["messages"][1:] == shown
    # Without a name the first list, which begins with context, has nothing of the next one at its beginning.
    run = "mine" if name else max(runs_of(made), key=lambda run: len(steps_of(made, run)))
    assert len(runs_of(made)) == (1 if name else 2)
    texts = steps_of(made, run)
    assert len(texts) == len(set(texts))
    with made.memory(run) as memory:
        assert [branch.name for branch in memory.branches()] == ["main"]


def test_a_list_that_was_cut_and_does_not_fit_is_a_view_of_its_run(stack):
    made = stack(calling(), window=3_000, provider_window=3_000)
    play = Play(made, Chat())
    for _ in range(20):
        play.turn(lambda rows: newest(rows, 12))
        play.rows[-1]["content"] += " The pier is long and old, and the boats lie in three rows behind it." * 20
    assert made.provider.illegal == ()
    assert made.provider.over == 0
    assert len(runs_of(made)) == 1
    assert "count a boat twice" in sent_text(made)


def test_two_clients_with_the_same_example_of_a_call_have_a_run_each(stack):
    call = {"id": "call_Fs9kQ02bLmZ", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    example = [
        user("Example: how many boats?"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "3 boats."},
        {"role": "assistant", "content": "There are 3 boats."},
    ]
    made = stack(talking(), window=8_000)
    ann, bob = Play(made, Chat()), Play(made, Chat())
    ann.rows = [user("I am Ann, and my card ends with 4417."), *example, user("And today?")]
    bob.rows = [*example, user("And tomorrow?")]
    ann.turn()
    bob.turn()
    assert len(runs_of(made)) == 2
    assert not any(
        {"4417", "tomorrow"} <= set(re.findall(r"\w+", " ".join(steps_of(made, run)))) for run in runs_of(made)
    )


def test_a_talk_with_a_name_has_one_run_and_one_without_is_joined_with_nobodys(stack):
    made = stack(talking(), window=8_000)
    play = Play(made, Chat(), "mine")
    for _ in range(9):
        play.turn(lambda rows: rows[-5:])
    assert runs_of(made) == ["mine"]
    other = stack(talking(), window=8_000, store=made.store)
    one, two = Play(other, Chat()), Play(other, Chat())
    one.rows = [user("My name is Ana, and my card ends with 4417."), *play.rows[1:5]]
    one.turn()
    two.rows = [user("Good day."), *play.rows[1:5], one.rows[-2], user("And now?")]
    two.turn(lambda rows: [rows[0], *rows[2:]])
    assert "4417" not in sent_text(other), "the same words are no sign of the same person"


@pytest.mark.parametrize("id", ["call_9f8e7d6cba4412", "call_function1234"])
def test_two_people_whose_calls_have_equal_ids_have_a_run_each(stack, id):
    numbers = count(1)

    def answer(question):  # as a provider whose ids are made of what is called
        number = next(numbers)
        is_first = number in (7, 8)
        return Answer("Look.", (Call("read", {"pier": 1}, id if is_first else f"call_Xq7{number:04}kQ02bLm"),))

    made = stack(answer, window=8_000)
    ann, bob = Play(made, Chat()), Play(made, Chat())
    ann.rows = [user("My card ends with 4417.")]
    for _ in range(7):
        ann.turn()
    bob.rows = [user("How many boats?")]
    bob.turn()
    bob.rows[-1] = ann.rows[-1]
    bob.turn()
    assert len(runs_of(made)) == 2
    assert "4417" not in sent_text(made)


OWN_KEY = "chat-d60cff75-5876-4aad-93c5-8a5b3d0a0e4e"


def test_the_first_words_of_a_chat_with_a_key_of_its_own_are_recorded(stack):
    made = stack(talking(), window=8_000)
    client = KeyedChat(OWN_KEY)
    body = {"model": "gpt-5", "messages": [user("Hello, harbour.")], "prompt_cache_key": OWN_KEY}
    answer = made.http().post(client.path, json=body)
    assert "side" not in answer.headers["x-pagein"]
    assert "Hello, harbour." in steps_of(made, f"conversation:{OWN_KEY}")


@pytest.mark.parametrize("begins_alike", [False, True], ids=["same words", "same words and answer"])
@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize(
    "cache", ["", "chat-gpt4omini", "thread_support2024", "session:9f8e7d6c5b4a39281706a1b2c3d4e5f6"]
)
def test_two_people_without_a_name_who_begin_and_go_on_alike_have_a_run_each(stack, begins_alike, is_cut, cache):
    made = stack(talking(), window=8_000)
    client = KeyedChat(cache) if cache else Chat()
    greeting = [user("Good day."), {"role": "assistant", "content": "Hello! How can I help?"}]
    polite = [
        *[user("Thanks."), {"role": "assistant", "content": "You are welcome."}],
        *[user("Very kind."), {"role": "assistant", "content": "With pleasure."}],
        *[user("Really."), {"role": "assistant", "content": "Any time."}],
    ]
    ann, bob = Play(made, client), Play(made, client)
    secret = [user("My card ends with 4417."), {"role": "assistant", "content": "Noted."}]
    ann.rows = [*greeting, *secret, *polite, user("And today?")]
    ann.turn()
    own = [user("How is the weather?"), {"role": "assistant", "content": "Sunny."}]
    bob.rows = [*greeting[: 2 if begins_alike else 1], *(() if is_cut else own), *polite, user("And tomorrow?")]
    if not begins_alike and not is_cut:
        bob.rows.insert(1, {"role": "assistant", "content": "Good day to you."})
    bob.turn()
    texts = [" ".join(steps_of(made, run, branch=branch)) for run, branch in branches_of(made)]
    assert any("4417" in text for text in texts)
    assert any("tomorrow" in text for text in texts)
    assert not any("4417" in text and "tomorrow" in text for text in texts)


@CLIENTS
@pytest.mark.parametrize("kept", [6, 2], ids=["three-calls", "the-newest-call"])
def test_a_summary_before_the_newest_messages_continues_the_run(stack, client, kept):
    made = stack(calling(), window=8_000)
    play = Play(made, client)
    for _ in range(8):
        play.turn()
    play.rows = [client.user(SUMMARY), *play.rows[-kept:]]
    play.turn()
    assert "continues" in play.said
    assert sent_text(made).count(SUMMARY) == 1
    assert len(made.provider.received[-1].body[client.key]) < 12, "what the summary stands for left the view"
    assert "Never count a boat twice" in sent_text(made), "the ledger holds"
    play.turn()
    assert "continues" not in play.said
    [run] = runs_of(made)
    with made.memory(run) as memory:
        results = [text for text in texts_of(memory) if "Result" in text]
        assert len(results) == len(set(results)), "what the client kept is not there twice"
        assert any("Result 1: 7 boats." in hit.text for hit in memory.recall("Result 1 of the first pier, 7 boats"))


def test_an_answer_that_is_asked_for_again_and_a_changed_question_stay_in_the_run(stack):
    made = stack(calling(), window=8_000)
    play = Play(made, Chat())
    for _ in range(8):
        play.turn(newest)
    play.send(newest(play.rows))
    play.send([*newest(play.rows)[:-1], {**play.rows[-1], "content": "Result 8, read again."}])
    play.turn(newest)
    play.turn(newest)
    assert len(runs_of(made)) == 1
    with made.memory(runs_of(made)[0]) as memory:
        texts = texts_of(memory)
    assert len(texts) == len(set(texts))


def test_a_call_that_anybody_could_have_made_tells_no_run(stack):
    made = stack(calling(ids="call_{}"), window=8_000)
    play = Play(made, Chat())
    for _ in range(6):
        play.turn()
    stranger = Play(made, Chat())
    stranger.rows = [user("Another task."), *play.rows[-6:]]
    stranger.turn()
    assert "Never count a boat twice" not in sent_text(made)


def test_no_tenant_is_known_by_anothers_calls(stack):
    made = stack(calling(), window=8_000, tenant_secret="secret")
    play = Play(made, Messages())
    play.headers = {"x-api-key": "one"}
    for _ in range(6):
        play.turn()
    stranger = Play(made, Messages())
    stranger.headers, stranger.rows = {"x-api-key": "two"}, [user(SUMMARY), *play.rows[-6:]]
    stranger.turn()
    assert "continues" not in stranger.said
    assert "Never count a boat twice" not in sent_text(made)


@pytest.mark.parametrize(
    ("program", "share"), [("QwenCode/0.15.10 (linux; x64)", 0.7), ("GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux)", 0.5)]
)
def test_an_agent_that_compacts_early_gets_no_cause_to(stack, program, share):
    made = stack(calling(), window=10_000)
    play = Play(made, Chat())
    play.rows = [user(TASK + " The sea is calm." * 60)]
    play.headers = {"user-agent": program}
    for number in range(40):
        play.turn()
        play.rows[-1]["content"] += f" Pier {number} has a crane." * 60
    readings = [request.reading.tokens for request in made.provider.received]
    assert 10_000 * (share - 0.2) < max(readings) < 10_000 * share


@pytest.mark.parametrize(
    ("id", "is_known"),
    [
        ("call_Ab3dEf6hIj9kLm2n", True),
        ("toolu_01A09q90qw90lq917835lq9", True),
        ("chatcmpl-tool-0a1b2c3d4e5f6a7b", True),
        ("D681PevKs", True),
        ("call_1", False),
        ("functions.get_weather:0", False),
        ("functions.get_weather2:0", False),
        ("call_getUser1234", False),
        ("call_function", False),
        ("12345678901", False),
        ("", False),
        (None, False),
        (7, False),
    ],
)
def test_only_an_id_that_no_two_calls_have_tells_a_run(id, is_known):
    rows = [{"role": "assistant", "tool_calls": [{"id": id}]}, "odd", None, {"content": [{"type": "text"}, 3]}]
    assert list(call_ids(rows)) == ([id] if is_known else [])


@pytest.mark.parametrize(
    ("program", "window", "kept_free"),
    [
        ("QwenCode/0.24.4 (linux; x64)", 200_000, 60_000),
        ("QwenCode/0.24.4 (linux; x64)", 100_000, 34_000),
        ("QwenCode/0.24.4 (linux; x64)", 50_000, 15_000),
        ("GeminiCLI-tui/0.61.0", 1_000_000, 500_000),
        ("kimi-code-cli/2.1.0", 200_000, 60_000),
        ("anything else", 200_000, 0),
    ],
)
def test_what_an_agent_keeps_free_by_compacting_stays_free(program, window, kept_free):
    assert compaction_point(program).tokens_kept_free(window) == pytest.approx(kept_free, abs=1)
