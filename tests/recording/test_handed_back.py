"""A request of ours that comes back: what followed it is recorded, and nothing of ours as the user's words."""

import asyncio
import copy
import json
import random

import pytest

from pagein import AgentMemory, AsyncAgentMemory
from pagein.events.steps import ActionStep, SystemPromptStep, TaskStep, as_text

WORDS = "the quick brown fox jumps over the lazy dog " * 8


def said(role, text):
    return {"role": role, "content": text}


def start(memory, system):
    memory.record(*([SystemPromptStep("Be brief.")] if system else []), TaskStep("Mend the bug."))


def texts(steps):
    return [as_text(step.content) for step in steps]


EXPECTED = ["Mend the bug.", *(text for n in range(25) for text in (f"reply {n} {WORDS}", f"go on {n}"))]


@pytest.mark.parametrize("format", ["openai", "anthropic"])
@pytest.mark.parametrize("system", [True, False])
@pytest.mark.parametrize("pinned", [True, False])
def test_the_loop_the_interface_invites_records_each_word_once(format, system, pinned):
    memory = AgentMemory.open(":memory:", budget=900, format=format)
    start(memory, system)
    if pinned:
        memory.pin("Never push.")
    for number in range(25):
        request = memory.to_messages()
        request += [said("assistant", f"reply {number} {WORDS}"), said("user", f"go on {number}")]
        memory.record_messages(request)
    assert memory.report().out
    assert texts(memory.steps)[system:] == EXPECTED
    assert memory.repairs == ()


def hand_back_changed(memory, change, *, words="go on {}"):
    """Play a loop in which the host changes each request before it hands it back: ``change(request, number)``."""
    for number in range(25):
        request = change(memory.to_messages(), number)
        news = [said("assistant", f"reply {number} {WORDS}"), said("user", words.format(number))]
        assert memory.record_messages([*request, *news]).branch is None
    assert memory.report().out


@pytest.mark.parametrize("left", [slice(1, None), slice(2, None), slice(None, None, 2)])
def test_a_request_that_the_host_trimmed_brings_none_of_our_words_back(left):
    memory = AgentMemory.open(":memory:", budget=900)
    start(memory, system=True)
    memory.pin("Never push.")

    def trim(request, _):
        return [request[0], *request[1:-1][left], request[-1]] if len(request) > 5 else request

    hand_back_changed(memory, trim)
    assert texts(memory.steps)[1:] == EXPECTED


def drop_second(request, _):
    return [request[0], *request[2:]] if len(request) > 5 else request


def test_the_user_says_the_last_words_of_a_trimmed_request_again():
    memory = AgentMemory.open(":memory:", budget=900)
    start(memory, system=True)
    memory.pin("Never push.")
    hand_back_changed(memory, drop_second, words="Try again.")
    assert texts(memory.steps).count("Try again.") == 25


REMINDER = "<reminder>stay calm</reminder>"


@pytest.mark.parametrize("edit", [lambda text: f"{text}\n{REMINDER}", lambda text: f"{REMINDER}\n\n{text}"])
@pytest.mark.parametrize("pinned", [True, False])
def test_words_that_the_host_added_to_a_request_are_recorded_and_nothing_of_ours(edit, pinned):
    memory = AgentMemory.open(":memory:", budget=900)
    start(memory, system=True)
    if pinned:
        memory.pin("Never push.")
    edits = []

    def add_words(request, number):
        if not pinned and not memory.report().out:
            return request
        edits.append(number)
        *rest, last = request
        return [*rest, last | {"content": edit(last["content"])}]

    hand_back_changed(memory, add_words)
    assert [text for text in texts(memory.steps)[1:] if text != REMINDER] == EXPECTED
    assert texts(memory.steps).count(REMINDER) == len(edits) > 10


@pytest.mark.parametrize("is_first", [True, False])
def test_an_image_that_the_host_added_to_a_request_is_an_image(is_first):
    memory = AgentMemory.open(":memory:", budget=20_000)
    start(memory, system=True)
    memory.pin("Never push.")
    *rest, last = memory.to_messages()
    added = [
        {"type": "image_url", "image_url": {"url": "https://a.example/a.png"}},
        {"type": "text", "text": "Like this."},
    ]
    words = [{"type": "text", "text": last["content"]}]
    changed = last | {"content": [*added, *words] if is_first else [*words, *added]}
    memory.record_messages([*rest, changed, said("assistant", "I see.")])
    assert added in [message["content"] for message in memory.to_messages()]
    assert sum("Never push." in str(message) for message in memory.to_messages()) == 1


def test_a_number_that_the_host_made_longer_is_recorded_whole():
    memory = AgentMemory.open(":memory:", budget=4_000)
    start(memory, system=True)
    memory.pin("Never push.")
    memory.record_messages([said("assistant", "Which?"), said("user", "Issue 1")], whole=False)
    *rest, last = memory.to_messages()
    memory.record_messages([*rest, last | {"content": "Issue 12"}, said("assistant", "Done.")])
    assert texts(memory.steps)[-2:] == ["Issue 12", "Done."]


@pytest.mark.parametrize("others", [1, 3])
def test_a_trimmed_request_is_known_where_others_were_made_after_it(others):
    memory = AgentMemory.open(":memory:", budget=900)
    start(memory, system=True)
    memory.pin("Never push.")

    def make_others(request, number):
        for last in range(1, others + 1):
            memory.to_messages(keep_last_n=last)
        return drop_second(request, number)

    hand_back_changed(memory, make_others)
    assert texts(memory.steps)[1:] == EXPECTED


@pytest.mark.parametrize("place", [1, -1])
@pytest.mark.parametrize("pinned", [True, False])
def test_a_message_that_the_host_put_into_a_request_is_recorded_and_nothing_of_ours(place, pinned):
    memory = AgentMemory.open(":memory:", budget=900)
    start(memory, system=True)
    if pinned:
        memory.pin("Never push.")
    inserted = []

    def insert(request, number):
        if pinned or memory.report().out:
            inserted.append(number)
            request.insert(place, said("user", f"{REMINDER} {number}"))
        return request

    hand_back_changed(memory, insert)
    assert [text for text in texts(memory.steps)[1:] if REMINDER not in text] == EXPECTED
    assert sum(REMINDER in text for text in texts(memory.steps)) == len(inserted) > 10


@pytest.mark.parametrize("place", [3, -1])
@pytest.mark.parametrize("glued", [False, True])
def test_a_request_that_the_host_trimmed_and_put_words_into_is_known(place, glued):
    memory = AgentMemory.open(":memory:", budget=900)
    start(memory, system=True)
    memory.pin("Never push.")
    inserted = []

    def change(request, number):
        if len(request) < 7:
            return request
        inserted.append(number)
        rest = [request[0], *request[2:]]  # the first of them left
        rest.insert(place, said("user", f"{REMINDER} {number}"))
        return [*rest[:-1], rest[-1] | {"content": f"{rest[-1]['content']}\n\n{REMINDER} too"}] if glued else rest

    hand_back_changed(memory, change)
    assert [text for text in texts(memory.steps)[1:] if REMINDER not in text] == EXPECTED
    assert sum(REMINDER in text for text in texts(memory.steps)) == len(inserted) * (1 + glued) > 10


@pytest.mark.parametrize("rows", [[], [said("system", "Be brief.")], [said("system", "Be long.")]])
def test_a_list_without_a_message_after_a_request_with_an_ending_adds_no_words(rows):
    """The request ended with a line in the user's place, and an IndexError came of it."""
    memory = AgentMemory.open(":memory:", budget=900)
    memory.record_messages([said("system", "Be brief."), said("user", "Hello"), said("assistant", "Hi.")])
    assert memory.to_messages()[-1] == said("user", "Continue.")
    memory.record_messages(rows)
    assert [text for text in texts(memory.steps) if text in ("Hello", "Hi.")] == ["Hello", "Hi."]
    assert "Continue." not in texts(memory.steps)


def test_the_loop_in_async_code():
    async def run():
        async with AsyncAgentMemory.open(":memory:", budget=900) as memory:
            await memory.record(TaskStep("Mend the bug."))
            for number in range(25):
                request = await memory.to_messages()
                request += [said("assistant", f"reply {number} {WORDS}"), said("user", f"go on {number}")]
                await memory.record_messages(request)
            return await memory.steps

    assert texts(asyncio.run(run())) == EXPECTED


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_loop_where_only_the_model_speaks_never_records_our_line(format):
    memory = AgentMemory.open(":memory:", budget=900, format=format)
    start(memory, True)
    for number in range(25):
        memory.record_messages([*memory.to_messages(), said("assistant", f"reply {number} {WORDS}")])
    assert [type(step) for step in memory.steps] == [SystemPromptStep, TaskStep, *[ActionStep] * 25]


def test_a_list_that_grows_between_two_requests_is_recorded_once():
    memory = AgentMemory.open(":memory:", budget=4_000)
    start(memory, True)
    request = memory.to_messages()
    for message in (said("assistant", "a"), said("user", "b"), said("assistant", "c")):
        request.append(message)
        memory.record_messages(request)
    assert texts(memory.steps)[2:] == ["a", "b", "c"]


def test_what_was_recorded_since_by_itself_is_not_recorded_again():
    memory = AgentMemory.open(":memory:", budget=4_000)
    start(memory, False)
    request = memory.to_messages()
    memory.record(ActionStep("a"))
    memory.record_messages([*request, said("assistant", "a"), said("user", "b")])
    assert texts(memory.steps)[1:] == ["a", "b"]
    memory.record(TaskStep("c"))
    memory.record_messages([*request, said("assistant", "a"), said("user", "b"), said("assistant", "d")])
    assert texts(memory.steps)[1:] == ["a", "b", "c", "d"]
    assert memory.record_messages([*request, said("assistant", "other")]).branch, "another reply is an edit"
    assert texts(memory.steps)[1:] == ["other"]


def test_cache_markers_of_the_host_change_nothing():
    memory = AgentMemory.open(":memory:", budget=4_000, format="anthropic")
    start(memory, True)
    request = memory.to_request()
    request["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    request["messages"].append(said("assistant", "a"))
    memory.record_messages(request)
    assert texts(memory.steps)[1:] == ["Mend the bug.", "a"]


@pytest.mark.parametrize("format", ["openai", "anthropic"])
@pytest.mark.parametrize("system", [True, False])
@pytest.mark.parametrize("policy", ["ladder", "window", "mask"])
@pytest.mark.parametrize("answered", [True, False])
def test_after_reopening_a_compacted_request_is_known_by_the_log(tmp_path, format, system, policy, answered):
    path = str(tmp_path / "run.db")
    with AgentMemory.open(path, budget=900, format=format, policy=policy) as memory:
        start(memory, system)
        for number in range(12):
            memory.record_messages(
                [*memory.to_messages(), said("assistant", f"{number} {WORDS}"), said("user", f"go on {number}")]
            )
        request = memory.to_messages()
        if answered:
            request.append(said("assistant", "an answer"))
            memory.record_messages(request)
    with AgentMemory.open(path, budget=900, format=format, policy=policy) as memory:
        before = texts(memory.steps)
        memory.record_messages([*request, said("user", "new"), said("assistant", "newer")])
        assert texts(memory.steps) == [*before, "new", "newer"]


def test_after_reopening_the_users_words_may_be_those_of_our_closing_line(tmp_path):
    path = str(tmp_path / "run.db")
    rows = [said("user", "t"), said("assistant", "a")]
    with AgentMemory.open(path, budget=900) as memory:
        memory.record_messages(rows)
        memory.to_messages()
    with AgentMemory.open(path, budget=900) as memory:
        for row in (said("user", "Continue."), said("assistant", "b"), said("user", "Continue.")):
            rows.append(row)
            memory.record_messages(rows)
        assert texts(memory.steps) == ["t", "a", "Continue.", "b", "Continue."]
        assert memory.repairs == ()


def test_after_reopening_a_later_request_takes_the_place_of_an_equal_one(tmp_path):
    path = str(tmp_path / "run.db")
    with AgentMemory.open(path, budget=900) as memory:
        memory.record_messages([said("user", "t"), said("assistant", "a")])
        request = memory.to_messages()  # it ends with our "Continue."
        memory.record_messages([*request, said("user", "Continue.")])
        assert memory.to_messages() == request
    with AgentMemory.open(path, budget=900) as memory:
        assert memory.record_messages([*request, said("assistant", "b")]).branch is None
        assert texts(memory.steps) == ["t", "a", "Continue.", "b"]


@pytest.mark.parametrize("format", ["openai", "anthropic"])
@pytest.mark.parametrize("whole", [None, False])
def test_the_users_words_are_no_frame_of_ours_whatever_they_look_like(format, whole):
    memory = AgentMemory.open(":memory:", budget=4_000, format=format)
    memory.pin("x")
    frame = '<memory kind="summary" author="extractive">\nwhat was\n</memory>'
    for words in (frame, "<pinned>\nx\n</pinned>", "hello"):
        written = memory.record_messages([said("user", words)], whole=whole)
        assert written.repairs == ()
    assert texts(memory.steps) == [frame, "<pinned>\nx\n</pinned>", "hello"]


@pytest.mark.parametrize(
    "text", ["Continue.", "what is <pinned>\nx\n</pinned>?", "<memory>\nmine\n</memory>", "<pinned>\nopen"]
)
def test_the_users_own_words_stay(text):
    memory = AgentMemory.open(":memory:", budget=4_000)
    memory.record_messages([said("user", "a"), said("assistant", "b"), said("user", text)])
    assert texts(memory.steps)[-1] == text


def test_an_equal_repeat_that_is_taken_for_the_whole_history_is_named():
    memory = AgentMemory.open(":memory:", budget=4_000)
    memory.record_messages([said("user", "yes")])
    written = memory.record_messages([said("user", "yes")])
    assert written.repairs == (
        "all 1 items were recorded already, the last as s0; whole=False records equal ones again",
    )
    assert len(memory.steps) == 1


@pytest.mark.parametrize("form", ["bedrock", "gemini", "openai-responses", "anthropic"])
def test_a_list_in_another_format_than_the_request_before_it_is_recorded(form):
    memory = AgentMemory.open(":memory:", budget=2_000)
    start(memory, system=False)
    listed = [said("user", "Mend the bug.")]
    for number in range(3):
        memory.to_request(form)
        listed += [said("assistant", f"reply {number}"), said("user", f"go on {number}")]
        memory.record_messages(listed, "openai")
    assert texts(memory.steps) == [message["content"] for message in listed]
    assert memory.repairs == ()


def change_each(change):
    return lambda rows: [change(dict(row)) for row in rows]


def change_blocks(change):
    def change_row(row):
        for key in row.keys() & {"content", "parts"}:
            row[key] = [change(dict(block)) for block in row[key]] if isinstance(row[key], list) else row[key]
        return row

    return change_each(change_row)


RESPELLED = {
    "nulls": change_each(lambda row: {**row, "name": None}),
    "own fields": change_each(lambda row: {**row, "id": "x", "timestamp": 12, "metadata": {"seen": True}}),
    "nulls in blocks": change_blocks(lambda block: {**block, "annotations": None}),
    "other line ends": lambda rows: json.loads(json.dumps(rows).replace("\\n", "\\r\\n")),
    "a space at the end": lambda rows: json.loads(json.dumps(rows).replace('"}', ' "}')),
    "a type": change_each(lambda row: {"type": "message", **row}),
}


@pytest.mark.parametrize("form", ["openai", "anthropic", "openai-responses", "gemini", "bedrock"])
@pytest.mark.parametrize("respell", RESPELLED.values(), ids=RESPELLED)
def test_a_request_is_known_in_the_spelling_of_the_clients_store(tmp_path, form, respell):
    """Our summaries, page-ins and the line at the end were recorded as the user's words."""

    def spoken(role, text):
        match form:
            case "gemini":
                return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
            case "bedrock":
                return said(role, [{"text": text}])
            case _:
                return said(role, text)

    path = tmp_path / "run.db"
    memory = AgentMemory.open(path, budget=900, format=form)
    memory.record_messages([spoken("user", "Mend the bug.")])
    for number in range(12):
        request = respell(copy.deepcopy(memory.to_messages()))
        if number % 4 == 3:
            memory.close()
            memory = AgentMemory.open(path, budget=900, format=form)
        memory.record_messages(
            [*request, spoken("assistant", f"reply {number} {WORDS}"), spoken("user", f"go on {number}")]
        )
    assert memory.report().out
    assert [text.strip() for text in texts(memory.steps)] == [text.strip() for text in EXPECTED[:25]]
    memory.close()


FUNCTION = {"name": "f", "arguments": "{}"}
CALLS = {
    "additional_kwargs": {"tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION}]},
    "invalid_tool_calls": [{"id": "c1", "name": "f", "args": "{", "error": "no JSON"}],
}


@pytest.mark.parametrize("key", CALLS)
def test_calls_beside_the_words_of_a_message_of_langchain_are_recorded(key):
    """Such a message was taken for the one without calls, and the result was lost."""
    memory = AgentMemory.open(":memory:", budget=900, format="langchain")
    memory.record_messages([{"type": "human", "content": "Mend."}, {"type": "ai", "content": "I look."}])
    task, answer = memory.to_messages()[:2]
    result = {"type": "tool", "tool_call_id": "c1", "content": "nothing"}
    memory.record_messages([task, {**answer, key: CALLS[key]}, result])
    step = memory.steps[-1]
    assert [call.name for call in step.tool_calls] == ["f"]
    assert texts(step.observations) == ["nothing"]


def add_reminder(request, place, edit):
    """The request with a reminder in one of its user's messages: in the first, one in the middle, or the last."""
    users = [at for at, row in enumerate(request) if row["role"] == "user"]
    at = {"first": users[0], "middle": users[len(users) // 2], "last": users[-1]}[place]
    content = request[at]["content"]
    if isinstance(content, str):
        changed = edit(content)
    else:
        changed = [*content[:-1], content[-1] | {"text": edit(content[-1]["text"])}]
    return [*request[:at], request[at] | {"content": changed}, *request[at + 1 :]]


@pytest.mark.parametrize("format", ["openai", "anthropic"])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("is_reopened", [False, True])
def test_words_added_to_any_message_of_a_request_are_recorded_and_nothing_of_ours(tmp_path, format, place, is_reopened):
    def open_memory():
        return AgentMemory.open(tmp_path / "run.db", budget=900, format=format)

    memory, edits = open_memory(), 0
    start(memory, system=True)
    memory.pin("Never push.")
    for number in range(25):
        request = memory.to_messages()
        if is_reopened and number > 20:
            memory.close()
            memory = open_memory()
        if number > 18:
            edits += 1
            request = add_reminder(request, place, lambda text: f"{text}\n{REMINDER}")
        news = [said("assistant", f"reply {number} {WORDS}"), said("user", f"go on {number}")]
        assert memory.record_messages([*request, *news]).branch is None
    recorded = texts(memory.steps)[1:]
    assert [text for text in recorded if text != REMINDER] == EXPECTED
    assert recorded.count(REMINDER) == edits == 6
    memory.close()


@pytest.mark.parametrize(
    ("change", "reminders"),
    [(drop_second, 0), (lambda request, _: [*request[:2], said("user", REMINDER), *request[2:]], 6)],
)
def test_a_request_that_the_host_changed_is_known_after_a_restart(tmp_path, change, reminders):
    for number in range(25):
        with AgentMemory.open(tmp_path / "run.db", budget=900) as memory:
            if not number:
                start(memory, system=True)
                memory.pin("Never push.")
            request = memory.to_messages()
        with AgentMemory.open(tmp_path / "run.db", budget=900) as memory:
            request = change(request, number) if number > 18 else request
            news = [said("assistant", f"reply {number} {WORDS}"), said("user", f"go on {number}")]
            assert memory.record_messages([*request, *news]).branch is None
            recorded = texts(memory.steps)[1:]
    assert [text for text in recorded if text != REMINDER] == EXPECTED
    assert recorded.count(REMINDER) == reminders


@pytest.mark.parametrize("is_last", [True, False])
def test_words_behind_results_that_the_host_added_are_recorded_alone(is_last):
    memory = AgentMemory.open(":memory:", budget=900, format="anthropic")
    memory.pin("Never push.")
    start(memory, system=False)
    for number in range(12):
        call = {"type": "tool_use", "id": f"c{number}", "name": "read", "input": {"n": number}}
        memory.record_messages(said("assistant", [call]))
        block = {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"result {number} {WORDS}"}
        memory.record_messages(said("user", [block]))
        request = memory.to_messages()
    at = max(at for at, row in enumerate(request[: None if is_last else -1]) if "tool_result" in str(row))
    blocks = [*request[at]["content"], {"type": "text", "text": REMINDER}]
    before = len(memory.steps)
    request = [*request[:at], said("user", blocks), *request[at + 1 :]]
    assert memory.record_messages([*request, said("assistant", "Done.")]).branch is None
    assert texts(memory.steps[before:]) == [REMINDER, "Done."]


def test_a_message_with_an_image_that_begins_like_a_line_of_ours_stays_whole():
    memory = AgentMemory.open(":memory:", budget=20_000)
    rows = [said("user", "Mend the bug."), said("assistant", "Done.")]
    memory.record_messages(rows)
    assert memory.to_messages()[-1]["content"] == "Continue."
    image = {"type": "image_url", "image_url": {"url": "https://a.example/a.png"}}
    rows.append(said("user", [{"type": "text", "text": "Continue."}, image]))
    memory.record_messages(rows)
    edited = [rows[0], said("assistant", "Not yet."), rows[2], said("assistant", "I see."), said("user", "And?")]
    memory.record_messages(edited)
    assert texts(memory.steps) == [
        "Mend the bug.",
        "Not yet.",
        "Continue.\n[image https://a.example/a.png]",
        "I see.",
        "And?",
    ]


def merge(request, _):
    """The request with the user's messages that follow one another as one, as clients of strict providers make it."""
    merged = []
    for row in request:
        if merged and row["role"] == "user" == merged[-1]["role"]:
            merged[-1] = said("user", f"{merged[-1]['content']}\n\n{row['content']}")
        else:
            merged.append(row)
    return merged


@pytest.mark.parametrize("note", ["", f"\n\n{REMINDER}"])
def test_a_request_whose_messages_the_host_joined_is_known(note):
    memory = AgentMemory.open(":memory:", budget=900)
    start(memory, system=True)
    memory.pin("Never push.")
    merged = []

    def change(request, number):
        changed = merge(request, number)
        if len(changed) < len(request):
            merged.append(number)
            changed[-1] = changed[-1] | {"content": changed[-1]["content"] + note}
        return changed

    hand_back_changed(memory, change)
    assert [text for text in texts(memory.steps)[1:] if text != REMINDER] == EXPECTED
    assert texts(memory.steps).count(REMINDER) == (len(merged) if note else 0)
    assert len(merged) > 10


@pytest.mark.parametrize("seed", range(6))
def test_a_request_is_known_where_equal_replies_stand_beside_one_another_after_trimming(seed):
    memory, draw, expected = AgentMemory.open(":memory:", budget=900), random.Random(seed), ["Mend the bug."]
    start(memory, system=True)
    memory.pin("Never push.")
    for number in range(25):
        request = memory.to_messages()
        older = [
            at for at, row in enumerate(request[:-1]) if row["content"] in expected[2::2] and row["role"] == "user"
        ]
        dropped = draw.sample(older, len(older) * 3 // 4)
        request = [row for at, row in enumerate(request) if at not in dropped]
        words = draw.choice(("Try again.", f"go on {number}: {WORDS}", f"go on {number}"))
        news = [draw.choice(("ok", "Done.")), words]
        expected += news
        assert memory.record_messages([*request, said("assistant", news[0]), said("user", words)]).branch is None
    assert memory.report().out
    assert texts(memory.steps)[1:] == expected


def test_a_list_spelled_anew_is_no_changed_request_where_a_step_has_several_messages():
    memory = AgentMemory.open(":memory:", budget=100_000, format="openai-responses")
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    rows = [said("user", "Look."), said("assistant", "I look."), call, output, said("assistant", "Done.")]
    rows += [said("user", "And there? "), said("assistant", "Done.")]
    memory.record_messages(rows)
    memory.to_messages()
    memory.record_messages([*rows[:5], said("user", "And there?"), rows[6], said("user", "Go on.")])
    assert texts(memory.steps) == ["Look.", "I look.", "Done.", "And there? ", "Done.", "Go on."]


def test_a_summary_of_the_client_before_what_the_user_said_last_is_not_recorded():
    memory = AgentMemory.open(":memory:", budget=100_000)
    turns = [said("user", "yes"), said("assistant", "Done."), said("user", "Words."), said("assistant", "ok")]
    turns += [said("user", "yes"), said("assistant", "Reply 2.")]
    memory.record_messages(turns)
    ending = memory.to_messages()[-1]
    memory.record_messages([said("user", "A summary of it."), said("user", "yes"), turns[-1], ending])
    assert texts(memory.steps)[-1] == ending["content"]
    assert "A summary of it." not in texts(memory.steps)
