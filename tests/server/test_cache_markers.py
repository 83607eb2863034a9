"""Anthropic's cache markers: ours in the place of the client's, never in or behind what changes from request to request."""

import json

import pytest

from pagein.server.cache_markers import SentRows, place_markers
from pagein.server.memories import Lineage
from pagein.server.proxy import _with_view
from pagein.server.runs import Place, PreparedView, RunRequest
from pagein.server.wire import MESSAGES, RESPONSES
from pagein.testing.provider import ScriptedProvider, ToolLoop
from pagein.testing.provider.agent import run_agent
from pagein.testing.provider.prompt_cache import MIN_CACHED_TOKENS

MARKER = {"type": "ephemeral", "ttl": "1h"}
LONG = 4_096
"""Tokens beside the messages from which on every model's cache keeps a prefix."""


def blocks(*texts, marked=()):
    rows = [{"type": "text", "text": text} for text in texts]
    return [{**row, "cache_control": MARKER} if at in marked else row for at, row in enumerate(rows)]


def user(*texts, marked=()):
    return {"role": "user", "content": blocks(*texts, marked=marked)}


def assistant(text):
    return {"role": "assistant", "content": blocks(text)}


def marked_texts(body):
    rows = [*body.get("system", []), *(block for row in body["messages"] for block in row["content"])]
    return [row["text"] for row in rows if "cache_control" in row]


def test_ours_stand_at_the_end_of_the_system_and_of_what_is_stable():
    client = {"model": "m", "system": blocks("a", "b", marked=(0,)), "messages": [user("x", marked=(0,))]}
    stable = [user("one"), assistant("two"), user("three", "four"), assistant("five"), user("six")]
    rows = [*stable[:-1], user("six", "what came back, another time something else")]
    body = place_markers(client, rows, stable, ends=(4, 0), beside=LONG)
    assert marked_texts(body) == ["b", "four", "six"]
    assert body["system"][-1]["cache_control"] == MARKER, "as long as the client asked"
    assert client["system"][0]["cache_control"] == MARKER, "the client's own is not changed"


def test_what_stands_in_the_middle_and_changes_ends_what_is_stable():
    client = {"system": "text", "tools": [{"name": "t"}], "messages": [user("x", marked=(0,))]}
    stable = [user("one"), assistant("two"), user("three")]
    rows = [user("one"), user("facts, new"), assistant("two"), user("three")]
    assert marked_texts(place_markers(client, rows, stable, beside=LONG)) == ["text", "one"]


def test_a_client_without_markers_gets_none():
    client = {"system": "text", "messages": [user("x")]}
    body = place_markers(client, [user("one")], [user("one")])
    assert "cache_control" not in str(body)
    assert body["system"] == "text"


def test_arguments_of_a_tool_that_are_called_like_a_marker_stay():
    call = {"type": "tool_use", "id": "t", "name": "set", "input": {"cache_control": {"max_age": 3}}}
    rows = [user("one"), {"role": "assistant", "content": [call]}, user("two")]
    body = place_markers({"system": blocks("s", marked=(0,)), "messages": []}, rows, rows)
    assert body["messages"][1]["content"][0]["input"] == {"cache_control": {"max_age": 3}}


@pytest.mark.parametrize(
    ("model", "beside", "words", "expected"),
    [
        ("claude-opus-4-6", 4_095, 1, ["one", "two"]),  # where it is not clear that a prefix is too short, it is marked
        ("claude-opus-4-6", 3_000, 1, []),
        ("claude-opus-4-6", 3_000, 500, ["one", "two"]),
        ("claude-opus-4-6", 3_000, 300, ["two"]),
        ("claude-opus-4.7", 2_048, 1, ["s", "one", "two"]),
        ("claude-opus-4-20250514", 1_024, 1, ["s", "one", "two"]),
        ("claude-sonnet-5", 600, 1, []),
        ("claude-opus-5", 600, 1, ["s", "one", "two"]),
    ],
)
def test_a_prefix_that_the_models_cache_does_not_keep_has_no_marker(model, beside, words, expected):
    rows = [user("word " * words, "one"), assistant("word " * words), user("two")]
    client = {"model": model, "system": blocks("s", marked=(0,)), "messages": []}
    body = place_markers(client, rows, rows, ends=(1,), beside=beside)
    assert [text for text in marked_texts(body) if not text.startswith("word")] == expected


def test_the_ends_are_what_a_compaction_left_and_what_the_request_before_had():
    sent = SentRows()
    whole = [row for number in range(6) for row in (user(f"result {number}"), assistant(f"call {number}"))]
    assert sent.find_ends(whole[:9]) == (0, 0)
    assert sent.find_ends([*whole[:8], user("result 4", marked=(0,)), *whole[9:11]]) == (0, 9), "a marker is no news"
    shorter = [*whole[:2], user("masked"), *whole[3:]]
    assert sent.find_ends(shorter) == (3, 2), "what stood before the compaction, and what it left"
    assert sent.find_ends([*shorter, user("new")]) == (3, 12)
    assert sent.find_ends([user("summary"), *whole[7:], user("new"), assistant("call")]) == (1, 0)
    assert sent.find_ends([user("another run")]) == (1, 0), "nothing stands again"


def test_the_provider_reads_from_its_cache_all_that_was_sent_before(stack):
    made = stack(ScriptedProvider(ToolLoop(45)), window=16_000)
    run_agent(made.url, "messages", 2_000)
    received = made.provider.received
    breaks = [
        at for at, request in enumerate(received) if at and request.reading.shared < received[at - 1].reading.tokens
    ]
    assert len(breaks) > 2, "the run is compacted several times"
    for request in received:
        assert str(request.body).count("cache_control") <= 4
        last = request.body["messages"][-1]["content"][-1]
        assert "cache_control" not in last or "<memory" not in str(last)
        reading = request.reading
        assert reading.shared - reading.cached < 100 or reading.shared < MIN_CACHED_TOKENS, (
            "a marker ends what is sent again"
        )


@pytest.mark.parametrize(
    ("upstream", "own", "expected"),
    [
        ("https://api.openai.com/v1", None, "made"),
        ("https://api.openai.com", "theirs", "theirs"),
        ("http://127.0.0.1:8000/v1", None, None),
    ],
)
def test_a_view_for_openai_has_a_key_for_its_prompt_cache_and_no_other_host_gets_one(upstream, own, expected):
    body = {"model": "gpt-5", "input": []} | ({"prompt_cache_key": own} if own else {})
    request = RunRequest("", "run", "default", RESPONSES, body, [], 0)
    keys = []
    for length in (1, 2):
        prepared = PreparedView(Place(Lineage("", "a run of Ann", "main"), length), 1, 0, 1, 1, rows=[])
        keys.append(json.loads(_with_view(request, prepared, upstream)).get("prompt_cache_key"))
    assert keys[0] == keys[1]
    assert "Ann" not in str(keys)
    assert (keys[0] if expected != "made" else len(keys[0])) == (expected if expected != "made" else 32)


@pytest.mark.parametrize(
    ("upstream", "tools", "is_marked"),
    [
        ("https://api.anthropic.com", [{"name": "read"}], True),
        ("https://api.anthropic.com", [], False),
        ("http://127.0.0.1:8000", [{"name": "read"}], False),
    ],
)
def test_a_view_of_an_agent_for_anthropic_has_markers_though_its_client_sets_none(upstream, tools, is_marked):
    rows = [user("one"), assistant("two"), user("three")]
    body = {"model": "m", "system": "text", "messages": [], "tools": tools}
    request = RunRequest("", "run", "default", MESSAGES, body, [], 0)
    place = Place(Lineage("", "run", "main"), 3)
    prepared = PreparedView(place, 1, LONG, 1, 1, rows=rows, stable_rows=rows, cache_ends=(1, 3))
    sent = json.loads(_with_view(request, prepared, upstream))
    assert (marked_texts(sent) if is_marked else str(sent).count("cache_control")) == (["text", "one", "three"] if is_marked else 0)  # fmt: skip


def test_a_tool_that_is_loaded_later_has_no_marker_for_the_api_refuses_it():
    later = [
        {"name": "find", "defer_loading": True},
        {"type": "mcp_toolset", "default_config": {"defer_loading": True}},
    ]
    for tools, marked in (([{"name": "read"}, *later], [True, False, False]), (later, [False, False])):
        body = place_markers({"model": "m", "tools": tools}, [], [], beside=LONG, marker=MARKER)
        assert ["cache_control" in tool for tool in body["tools"]] == marked


def test_markers_that_were_recorded_come_out_wherever_they_stand_and_the_rows_stay_as_they_were():
    result = {"type": "tool_result", "tool_use_id": "t", "content": blocks("in it", marked=(0,))}
    rows = [user("one", marked=(0,)), assistant("two"), {"role": "user", "content": [result]}, user("three")]
    sent = SentRows()
    ends = (*sent.find_ends(rows), 3)
    body = place_markers({"system": blocks("s", marked=(0,)), "messages": []}, rows, sent.rows, ends=ends, beside=LONG)
    ours = [(number, at) for number, row in enumerate(body["messages"]) for at, block in enumerate(row["content"]) if "cache_control" in block]  # fmt: skip
    assert ours == [(2, 0), (3, 0)]
    assert body["messages"][2]["content"][0]["content"] == blocks("in it")
    assert rows[0] == user("one", marked=(0,))
    assert result["content"] == blocks("in it", marked=(0,))
