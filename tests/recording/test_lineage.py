"""Each way of handing over, as the guide's table says it: what is recorded, what is told."""

import asyncio
import copy

import pytest

from pagein import AgentMemory, AsyncAgentMemory
from pagein.errors import Conflict, FormatError
from pagein.events.steps import ActionStep, SystemPromptStep, TaskStep, as_text


def said(role, text):
    return {"role": role, "content": text}


TALK = [said("user", "Hi."), said("assistant", "Yes?"), said("user", "Mend it."), said("assistant", "Done.")]


def open_memory(url=":memory:", **options):
    return AgentMemory.open(url, budget=4_000, **options)


def texts(memory):
    return [as_text(step.content) for step in memory.steps if not isinstance(step, SystemPromptStep)]


def test_the_same_words_again_are_recorded_again():
    memory = open_memory()
    rows = []
    for row in [said("user", "Try again."), said("assistant", "ok")] * 3:
        rows.append(row)
        memory.record_messages([row])
        memory.to_messages()
    assert texts(memory) == ["Try again.", "ok"] * 3
    memory.record_messages([*rows, said("user", "Try again.")])
    assert texts(memory)[-2:] == ["ok", "Try again."]
    assert memory.to_messages()[-1]["content"] == "Try again."


def test_a_clock_in_the_system_prompt_records_the_clock_alone():
    memory = open_memory()
    for hour in range(4):
        memory.record_messages([said("system", f"It is {hour} o'clock."), *TALK[: hour + 1]])
        assert memory.to_messages()[0] == said("system", f"It is {hour} o'clock.")
    assert texts(memory) == ["Hi.", "Yes?", "Mend it.", "Done."]
    assert len([message for message in memory.to_messages() if message["role"] == "system"]) == 1
    assert memory.repairs[0] == 'the system prompt was changed: "It is 1 o\'clock." stands in the place of s0'


@pytest.mark.parametrize("reopened", [False, True])
def test_a_client_s_own_fields_beside_its_messages_are_no_other_messages(tmp_path, reopened):
    """Such as the time at which a list was read from a database: each turn recorded the whole list again."""
    memory = open_memory(tmp_path / "run.db")
    for hour in range(4):
        if reopened:
            memory.close()
            memory = open_memory(tmp_path / "run.db")
        own = {"timestamp": hour, "messageId": f"m{hour}", "metadata": {"seen": hour}} if hour else {}
        prompt = {"role": "developer" if hour % 2 else "system", "content": "Be brief."}
        memory.record_messages([{**row, **own} for row in (prompt, *TALK[: hour + 1])])
    assert texts(memory) == [row["content"] for row in TALK]
    assert len(memory.steps) == 5
    assert memory.repairs == ()
    named = [{**row, "name": "bob"} if row is TALK[2] else row for row in TALK]
    assert memory.record_messages(named).branch == "branch-1"


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("head", [["It is {} o'clock. Hi."], ["<env>\nToday is day {}.\n</env>", "Hi."]])
def test_a_clock_in_the_first_message_doubles_nothing(tmp_path, head, reopened):
    memory = open_memory(tmp_path / "run.db")
    for hour in range(4):
        if reopened:
            memory.close()
            memory = open_memory(tmp_path / "run.db")
        first = [text.format(hour) for text in head]
        rest = [row["content"] for row in TALK[1 : hour + 1]]
        memory.record_messages([*(said("user", text) for text in first), *TALK[1 : hour + 1]])
        assert texts(memory) == [*first, *rest]


def test_another_first_message_is_no_edit_where_the_list_is_no_run_again():
    memory = open_memory()
    memory.record_messages([said("user", "Count the herons.")])
    memory.record_messages([said("user", "Paint the fence."), said("assistant", "Yes?"), said("user", "Red.")])
    assert texts(memory) == ["Count the herons.", "Paint the fence.", "Yes?", "Red."]


def test_a_list_cut_to_its_newest_messages_is_known_after_reopening(tmp_path):
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    work = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
    ]
    with open_memory(tmp_path / "run.db") as memory:
        memory.record_messages([*TALK, *work, said("assistant", "Done.")])
    with open_memory(tmp_path / "run.db") as memory:
        memory.record_messages([*work, said("assistant", "Done."), said("user", "Next.")])
        assert texts(memory)[-2:] == ["Done.", "Next."]
        assert len(memory.steps) == 7


SYSTEMS = {
    "openai": lambda text, rows: [{"role": "developer", "content": text}, *rows],
    "anthropic": lambda text, rows: {"system": [{"type": "text", "text": "Fixed."}, {"type": "text", "text": text}], "messages": rows},
    "openai-responses": lambda text, rows: {"instructions": text, "input": rows},
    "gemini": lambda text, rows: {"config": {"system_instruction": text}, "contents": rows},
    "bedrock": lambda text, rows: {"system": [{"text": text}], "messages": rows},
    "langchain": lambda text, rows: [{"type": "system", "content": text}, *rows],
}  # fmt: skip


@pytest.mark.parametrize("form", SYSTEMS)
def test_the_newest_clock_is_shown_in_every_format(form):
    memory, rows = open_memory(format=form), []
    for hour in range(4):
        rows.append(spoken("user", f"Words {hour}.", form))
        memory.record_messages(SYSTEMS[form](f"It is {hour} o'clock.", rows))
        rows.append(spoken("assistant", f"Reply {hour}.", form))
        request = str(memory.to_request())
        assert request.count("o'clock") == request.count(f"It is {hour} o'clock") == 1
    assert len(texts(memory)) == 7


def test_a_config_of_geminis_sdk_has_the_system_prompt():
    types = pytest.importorskip("google.genai.types")
    memory = open_memory(format="gemini")
    config = types.GenerateContentConfig(system_instruction="Be brief.", temperature=0)
    memory.record_messages({"model": "m", "contents": [spoken("user", "Hi.", "gemini")], "config": config})
    assert [as_text(step.content) for step in memory.steps] == ["Be brief.", "Hi."]


RESPELLED = {
    "ends of lines": ("one\ntwo", "one\r\ntwo"),
    "space at the end": ("one", "one \n"),
    "composed characters": ("caf\u00e9", "cafe\u0301"),
    "space around": ("one\n", "\tone "),
    "spaces": ("10\u00a0km: 3\u202f\u20ac", "10 km: 3 \u20ac"),
    "breaks of lines": ("one\u2028two\x85three", "one\ntwo\nthree"),
    "hidden characters": ("\ufeffone\u200b two\x00\x1b", "one two"),
    "lone surrogate": ("one \ud83d two", "one \ufffd two"),
}


@pytest.mark.parametrize("form", SYSTEMS)
@pytest.mark.parametrize("how", RESPELLED)
def test_words_that_a_client_spells_anew_are_not_recorded_again(form, how):
    memory, (before, after) = open_memory(format=form), RESPELLED[how]
    memory.record_messages([spoken("user", before, form), spoken("assistant", before, form)])
    rows = [spoken("user", after, form), spoken("assistant", after, form), spoken("user", "Next.", form)]
    assert memory.record_messages(rows).repairs == ()
    assert texts(memory)[0] == before
    assert len(texts(memory)) == 3


def spoken(role, text, form):
    match form:
        case "gemini":
            return {"role": {"assistant": "model"}.get(role, role), "parts": [{"text": text}]}
        case "bedrock":
            return {"role": role, "content": [{"text": text}]}
        case "langchain":
            return {"type": {"assistant": "ai"}.get(role, "human"), "content": text}
    return said(role, text)


def test_a_clock_leaves_open_calls_open_and_is_there_after_reopening(tmp_path):
    path = tmp_path / "run.db"
    call = {"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    rows = [said("user", "Hi."), {"role": "assistant", "content": None, "tool_calls": [call]}]
    with open_memory(path) as memory:
        memory.record_messages([said("system", "1"), said("system", "Never push."), *rows])
        rows.append({"role": "tool", "tool_call_id": "a", "content": "ok"})
        written = memory.record_messages([said("system", "2"), said("system", "Never push."), *rows])
        assert "no result" not in str(written.repairs)
    with open_memory(path) as memory:
        assert [message["content"] for message in memory.to_messages()] == ["2", "Never push.", "Hi.", None, "ok"]
        again = memory.record_messages([said("system", "2"), said("system", "Never push."), *rows])
        assert again.first == again.last


@pytest.mark.parametrize("system", [[], [said("system", "Mend.")]])
def test_seed_messages_after_a_restart_are_told_and_the_run_goes_on(tmp_path, system):
    path = tmp_path / "run.db"
    with open_memory(path) as memory:
        memory.record_messages([*system, *TALK[:3]])
    with open_memory(path) as memory:
        seeds = [*system, TALK[0]]
        assert memory.record_messages(seeds).repairs
        memory.record_messages([*seeds, said("assistant", "I go on.")])
        memory.record_messages([*seeds, said("assistant", "I go on."), said("user", "Good.")])
        assert texts(memory) == ["Hi.", "Yes?", "Mend it.", "I go on.", "Good."]


@pytest.mark.parametrize("rest", [[], [said("assistant", "Done.")]])
def test_an_edited_list_goes_on_in_a_branch(rest):
    memory = open_memory()
    memory.record_messages(TALK)
    edited = [*TALK[:2], said("user", "Leave it."), *rest]
    written = memory.record_messages(edited)
    assert written.branch == "branch-1"
    assert written.repairs == ("the list was edited at s2: it goes on in 'branch-1'",)
    memory.record_messages([*edited, said("user", "Thanks.")])
    assert texts(memory) == [*(row["content"] for row in edited), "Thanks."]
    memory.switch("main")
    assert texts(memory) == [row["content"] for row in TALK]


def test_an_edited_list_goes_on_in_a_branch_in_async_code():
    async def run():
        async with AsyncAgentMemory.open(":memory:", budget=4_000) as memory:
            await memory.record_messages(TALK)
            written = await memory.record_messages([*TALK[:2], said("user", "Leave it.")])
            return written.branch, [step.content for step in await memory.steps]

    assert asyncio.run(run()) == ("branch-1", ["Hi.", "Yes?", "Leave it."])


def test_what_a_client_compacted_stays_and_its_summary_is_named():
    memory = open_memory()
    for stop in range(1, 5):
        memory.record_messages(TALK[:stop])
    written = memory.record_messages([said("user", "So far: mended."), TALK[3], said("user", "Next.")])
    assert texts(memory) == ["Hi.", "Yes?", "Mend it.", "Done.", "Next."]
    assert written.repairs == ("'So far: mended.' left out: it stands in the list for s0-2, which was recorded",)


def test_a_list_that_shares_nothing_is_recorded_or_refused_as_the_host_says():
    memory = open_memory()
    memory.record_messages(TALK)
    other = [said("user", "Another thing."), said("assistant", "What?")]
    with pytest.raises(FormatError, match="shares nothing"):
        memory.record_messages(other, whole=True)
    memory.record_messages(other)
    assert texts(memory)[4:] == ["Another thing.", "What?"]


@pytest.mark.parametrize("marker", ["cache_control", "prompt_cache_breakpoint"])
@pytest.mark.parametrize("reopened", [True, False])
def test_markers_move_and_nothing_is_recorded_again(tmp_path, marker, reopened):
    memory = open_memory(tmp_path / "run.db", format="anthropic")
    for stop in range(1, 5):
        rows = copy.deepcopy(TALK[:stop])
        rows[-1]["content"] = [{"type": "text", "text": rows[-1]["content"], marker: {"type": "ephemeral"}}]
        assert memory.record_messages(rows).repairs == ()
        memory = open_memory(tmp_path / "run.db", format="anthropic") if reopened else memory
    assert texts(memory) == [row["content"] for row in TALK]


@pytest.mark.parametrize("format", ["bedrock", "langchain"])
@pytest.mark.parametrize("reopened", [True, False])
def test_a_cache_point_is_no_word_of_the_user(tmp_path, format, reopened):
    call, result = {"toolUseId": "c1", "name": "look", "input": {}}, {"toolUseId": "c1", "content": [{"text": "seen"}]}
    rows = [{"role": "user", "content": [{"text": "Look."}]}]
    rows += [
        {"role": "assistant", "content": [{"toolUse": call}]},
        {"role": "user", "content": [{"toolResult": result}]},
    ]
    if format == "langchain":
        called = {"type": "ai", "content": "", "tool_calls": [{"id": "c1", "name": "look", "args": {}}]}
        rows = [{"type": "human", "content": [{"type": "text", "text": "Look."}]}, called]
        rows.append({"type": "tool", "content": ["seen"], "tool_call_id": "c1"})
    memory = open_memory(tmp_path / "run.db", format=format)
    for stop in range(1, 4):
        listed = copy.deepcopy(rows[:stop])
        if isinstance(listed[-1]["content"], list):
            listed[-1]["content"].append({"cachePoint": {"type": "default"}})
        assert memory.record_messages(listed).branch is None
        memory = open_memory(tmp_path / "run.db", format=format) if reopened else memory
    assert [type(step) for step in memory.steps] == [TaskStep, ActionStep]
    assert as_text(memory.steps[1].observations[0].content).strip() == "seen"


def test_a_list_is_no_edit_of_a_run_that_another_process_went_on_with(tmp_path):
    behind, ahead = open_memory(tmp_path / "run.db"), open_memory(tmp_path / "run.db")
    ahead.record_messages(TALK[:2])
    with pytest.raises(Conflict):
        behind.record_messages(TALK[:2])
    ahead.record_messages(TALK[:4])
    edited = [TALK[0], said("assistant", "Another reply."), said("user", "Good.")]
    with pytest.raises(Conflict):
        behind.record_messages(edited)
    assert len(behind.branches()) == 1
    assert texts(behind) == [row["content"] for row in TALK[:4]]
    assert behind.record_messages(edited).branch


@pytest.mark.parametrize("is_edited", [False, True])
def test_what_was_erased_is_not_brought_back_by_a_list_after_reopening(tmp_path, is_edited):
    path = tmp_path / "run.db"
    talk = [*TALK[:3], said("assistant", "Done anew.")] if is_edited else TALK
    with open_memory(path) as memory:
        memory.record_messages(TALK)
        memory.erase("s2")
        assert bool(memory.record_messages(talk).branch) == is_edited
    with open_memory(path) as memory:
        memory.record_messages([*talk, said("user", "Next.")])
        assert texts(memory) == ["Hi.", "Yes?", "[erased]", talk[3]["content"], "Next."]


REFUSED_REASONING = {
    "openai-responses": [{"type": "reasoning", "summary": []}, {"role": "assistant", "content": "Yes?"}],
    "openai-responses at the end": [{"type": "reasoning", "id": "rs_1", "summary": []}],
    "anthropic": [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes?"}]}
    ],
}


@pytest.mark.parametrize("case", REFUSED_REASONING)
def test_reasoning_that_no_request_can_have_is_told(case):
    reply, form = REFUSED_REASONING[case], case.split()[0]
    memory = open_memory(format=form)
    written = memory.record_messages([TALK[0], *reply])
    assert [line.split(" is ")[0] for line in written.repairs] == [
        f"s1: its {'thinking' if form == 'anthropic' else 'reasoning'}"
    ]
    assert not {"Hm.", "summary"} & set(str(memory.to_request()).split("'"))
    assert memory.repairs == written.repairs


def test_reasoning_that_goes_back_is_not_told():
    memory = open_memory(format="openai-responses")
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    assert memory.record_messages([TALK[0], reasoning, said("assistant", "Yes?")]).repairs == ()
    assert reasoning in memory.to_messages()


def test_a_reply_without_its_reasoning_is_the_same_reply():
    memory = open_memory()
    reply = {"role": "assistant", "content": "Yes?\n", "reasoning_content": "Hm.", "annotations": [{"type": "x"}]}
    memory.record_messages([TALK[0], reply])
    memory.record_messages(TALK)
    assert [type(step) for step in memory.steps].count(ActionStep) == 2
    assert memory.repairs == ()


@pytest.mark.parametrize("reopened", [True, False])
def test_a_note_of_the_session_is_shown_on_the_branch_of_an_edit(tmp_path, reopened):
    memory = open_memory(tmp_path / "run.db", facts=True)
    memory.record_messages(TALK[:4])
    memory.call_tool("note", {"text": "the key is under the mat"})
    assert memory.record_messages([TALK[0], said("assistant", "Another reply."), said("user", "Good.")]).branch
    if reopened:
        memory.close()
        memory = open_memory(tmp_path / "run.db", facts=True)
    assert "under the mat" in str(memory.to_messages())
    request = memory.request()
    assert request.problem == ""
    assert memory.erase("fs0").facts == 1
    assert "under the mat" not in str(memory.to_messages())


@pytest.mark.parametrize(
    ("form", "key", "role", "reasoning"),
    [
        ("gemini", "parts", "model", {"text": "Hm.", "thought": True}),
        ("bedrock", "content", "assistant", {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}}),
        ("anthropic", "content", "assistant", {"type": "thinking", "thinking": "Hm.", "signature": "s"}),
    ],
)
def test_a_client_that_drops_reasoning_makes_no_edit_in_any_format(form, key, role, reasoning):
    def says(role, *parts):
        own = [{"type": "text", **part} if form == "anthropic" and "text" in part else part for part in parts]
        return {"role": role, key: own}

    start, words = says("user", {"text": "Hi."}), {"text": "Hello."}
    with AgentMemory.open(":memory:", budget=1_000, format=form) as memory:
        memory.record_messages([start, says(role, reasoning, words)])
        result = memory.record_messages([start, says(role, words), says("user", {"text": "And?"})])
        assert (result.branch, result.repairs) == (None, ())
        assert len(memory.steps) == 3


ITEMS_OF_A_RESPONSE = {
    "a search and what it found": [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is x."}]},
    ],
    "words and a call": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
    ],
    "two calls": [
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"a": 1}'},
        {"type": "function_call", "call_id": "c2", "name": "read", "arguments": '{"a": 2}'},
    ],
}


@pytest.mark.parametrize("items", ITEMS_OF_A_RESPONSE.values(), ids=ITEMS_OF_A_RESPONSE)
@pytest.mark.parametrize("first", [True, False])
def test_an_answer_whose_first_items_were_recorded_before_a_restart_goes_on_behind_them(tmp_path, items, first):
    before = [] if first else [said("user", "Hi."), said("assistant", "Yes?")]
    rows = [*before, said("user", "Look."), items[0]]
    with open_memory(tmp_path / "run.db", format="openai-responses") as memory:
        memory.record_messages(rows)
        count = len(memory.steps)
    with open_memory(tmp_path / "run.db", format="openai-responses") as memory:
        memory.record_messages([*rows, items[1]])
        assert (len(memory.steps), len(memory.branches())) == (count + 1, 1)
        shown = [
            row for row in memory.to_messages() if "output" not in row.get("type", "") and row.get("role") != "user"
        ]
        assert len(shown) == len(before) // 2 + 2
        assert memory.record_messages([*rows, items[1], said("user", "So?")]).repairs[1:] == ()
        assert len(memory.steps) == count + 2


def test_results_of_an_answer_that_was_recorded_in_two_steps_stand_with_their_own_calls(tmp_path):
    """The first result was taken for that of the second call, whose own was kept as a note."""

    def answer(*ids):
        function = {"name": "look", "arguments": "{}"}
        calls = [{"id": id, "type": "function", "function": function} for id in ids]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    with open_memory(tmp_path / "run.db") as memory:
        memory.record_messages([said("user", "Look."), answer("a")])
        memory.record_messages([said("user", "Look."), answer("a", "b")])
    with open_memory(tmp_path / "run.db") as memory:
        results = [{"role": "tool", "tool_call_id": id, "content": f"result of {id}"} for id in "ab"]
        memory.record_messages([said("user", "Look."), answer("a", "b"), *results])
        shown = [as_text(step.observations[0].content) for step in memory.steps[1:]]
        assert shown == ["result of a", "result of b"]
